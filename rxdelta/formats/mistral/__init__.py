"""Mistral's dialect of openai-chat: `decoder` and `request`; `writer` writes and serves its replies."""

from rxdelta.formats.conversation import functions
from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.mistral.decoder import MistralDecoder, recognises
from rxdelta.formats.mistral.request import request
from rxdelta.formats.notes import MISTRAL

__all__ = ["FORMAT"]

FORMAT = Format(
    name="mistral",
    decoder=MistralDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    vendors={MISTRAL},
    writer=later("mistral"),
    endpoint=endpoint_of("mistral", module="writer"),
    carries={"text", "reasoning", "tool_call", "image", "image_url", "invalid_tool_call"},
    loses={
        "id",
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "media_type",
        "borders",
        "empty_blocks",
        "open_calls",
        "cut_calls",
        "order",
        "other_signatures",
    },
)
