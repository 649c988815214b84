"""Cohere's Chat API (v2).

Reading: `decoder` (an event) and `blocks` (the blocks of a message, and the format's names). Writing: `request`. `writer` writes
and serves its replies.
"""

from rxdelta.formats.cohere.decoder import CohereDecoder, recognises
from rxdelta.formats.cohere.request import request
from rxdelta.formats.conversation import functions
from rxdelta.formats.format import Format, endpoint_of, later

__all__ = ["FORMAT"]

FORMAT = Format(
    name="cohere",
    decoder=CohereDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("cohere"),
    endpoint=endpoint_of("cohere", module="writer"),
    carries={"text", "reasoning", "tool_call", "citation", "invalid_tool_call"},
    owns=later("cohere", "owns"),
    loses={
        "model",
        "finish_reason",
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "signatures",
        "empty_blocks",
        "order",
        "other_signatures",
        "citation_details",
    },
)
