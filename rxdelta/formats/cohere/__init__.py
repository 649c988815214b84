"""Cohere's Chat API (v2)."""

from rxdelta.formats.cohere.decoder import CohereDecoder, recognises
from rxdelta.formats.cohere.request import request
from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(
    name="cohere",
    decoder=CohereDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("cohere"),
    endpoint=endpoint_of("cohere"),
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
