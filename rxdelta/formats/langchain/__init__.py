"""LangChain's message chunks and event protocol.

Reading: `decoder`; `addresses` (which run), `graph_items`, `forms` and `protocol` (a message or an event in any form),
`messages` and `envelope` (a message), `content`, `parts` and `calls` (its pieces), `blocks` and `merging` (which block a
piece continues), `tool_reports` (the ends of calls), `fields` and `tables`.
Writing: `encoder` on `frames`, `block_frames` and `tool_runs`; `request`. Both sides share `marks` and `protocol_content`.
"""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.langchain.addresses import Addresses
from rxdelta.formats.langchain.decoder import LangChainDecoder, recognises
from rxdelta.formats.langchain.request import request
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(
    name="langchain",
    decoder=LangChainDecoder,
    recognises=recognises,
    address=Addresses,
    keeps_call_ids=True,  # as LangChain merges its chunks
    carries_more=True,
    request=request,
    tools=functions,
    writer=later("langchain"),
    endpoint=endpoint_of("langchain"),
    carries={
        "text",
        "reasoning",
        "redacted_reasoning",
        "refusal",
        "tool_call",
        "invalid_tool_call",
        "tool_result",
        "server_tool_call",
        "server_tool_result",
        "image",
        "image_url",
        "audio",
        "audio_url",
        "video",
        "video_url",
        "file",
        "file_url",
        "file_id",
        "unsupported",
        "citation",
        "citation_without_url",
        "runs",
        "messages",
        "attempts",
        "interruption",
        "corrections",
        "custom",
        "doubtful_tool_call",
    },
    loses={"usage_details"},
)
