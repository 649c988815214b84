"""Google's Interactions API."""

from rxdelta.formats.format import Format
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder, recognises
from rxdelta.formats.gemini_interactions.request import request

__all__ = ["FORMAT"]

FORMAT = Format(
    name="gemini-interactions", decoder=GeminiInteractionsDecoder, recognises=recognises, request=request
)
