"""Mistral's dialect of openai-chat."""

from rxdelta.formats.format import Format
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
)
