"""Ollama's chat API."""

from rxdelta.formats.format import Format
from rxdelta.formats.ollama.decoder import OllamaDecoder, recognises
from rxdelta.formats.ollama.request import request
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(name="ollama", decoder=OllamaDecoder, recognises=recognises, request=request, tools=functions)
