"""Mistral's dialect of openai-chat."""

from rxdelta.formats.format import Format
from rxdelta.formats.mistral.decoder import MistralDecoder, recognises
from rxdelta.formats.mistral.request import request

__all__ = ["FORMAT"]

FORMAT = Format(name="mistral", decoder=MistralDecoder, recognises=recognises, request=request)
