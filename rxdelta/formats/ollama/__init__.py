"""Ollama's chat API."""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.ollama.decoder import OllamaDecoder, recognises
from rxdelta.formats.ollama.request import request
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ollama",
    decoder=OllamaDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("ollama"),
    endpoint=endpoint_of("ollama"),
    carries={"text", "reasoning", "tool_call", "image"},
    loses={
        "id",
        "finish_reason",
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "signatures",
        "other_signatures",
        "media_type",
        "borders",
        "empty_blocks",
        "cut_calls",
        "order",
        "open_calls",
    },
)
