"""Google's generateContent."""

from rxdelta.formats.format import Format
from rxdelta.formats.gemini.decoder import GeminiDecoder, recognises
from rxdelta.formats.gemini.request import request

__all__ = ["FORMAT"]

FORMAT = Format(name="gemini", decoder=GeminiDecoder, recognises=recognises, request=request)
