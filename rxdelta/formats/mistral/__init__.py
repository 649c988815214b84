"""Mistral's dialect of openai-chat."""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.mistral.decoder import MistralDecoder, recognises
from rxdelta.formats.mistral.request import request
from rxdelta.formats.signatures import MISTRAL
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(
    name="mistral",
    decoder=MistralDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    vendors={MISTRAL},
    writer=later("mistral"),
    endpoint=endpoint_of("mistral"),
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
