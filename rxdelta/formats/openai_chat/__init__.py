"""OpenAI's Chat Completions, and everybody's dialects of it."""

from rxdelta.formats.format import Format
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder, recognises
from rxdelta.formats.openai_chat.request import request

__all__ = ["FORMAT"]

FORMAT = Format(name="openai-chat", decoder=OpenAIChatDecoder, recognises=recognises, request=request)
