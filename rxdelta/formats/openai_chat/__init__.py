"""OpenAI's Chat Completions, and everybody's dialects of it.

Reading: `decoder` (a chunk), `choice` (a choice and its delta), which passes the delta's fields to `reasoning`, `calls`,
`server_tools` and `media`. Writing a request: `request`. As an endpoint: `messages` reads its requests, `encoder` writes its
chunks (`choice_chunks` a choice's, `block_chunks` a block's), `completion` joins these to one body, `writer` writes as a provider. All share `tables`.
"""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder, recognises
from rxdelta.formats.openai_chat.request import request
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-chat",
    decoder=OpenAIChatDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("openai_chat"),
    endpoint=endpoint_of("openai_chat"),
    carries={
        "text",
        "reasoning",
        "refusal",
        "tool_call",
        "image",
        "image_url",
        "audio",
        "citation",
        "choices",
        "invalid_tool_call",
    },
    loses={
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "signatures",
        "citation_details",
        "media_type",
        "borders",
        "empty_blocks",
        "cut_calls",
        "order",
        "other_signatures",
    },
)
