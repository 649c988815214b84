"""Ollama's chat API.

Reading: `decoder`. Writing a request: `request`. As an endpoint: `messages` reads its requests, `encoder` writes its replies.
"""

from rxdelta.formats.conversation import functions
from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.ollama.decoder import OllamaDecoder, recognises
from rxdelta.formats.ollama.request import request

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ollama",
    decoder=OllamaDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("ollama", module="encoder"),
    endpoint=endpoint_of("ollama", module="encoder"),
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
