"""OpenAI's Responses API."""

from rxdelta.formats.format import Format
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder, recognises
from rxdelta.formats.openai_responses.request import request

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-responses", decoder=OpenAIResponsesDecoder, recognises=recognises, request=request
)
