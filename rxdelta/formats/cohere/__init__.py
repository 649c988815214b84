"""Cohere's Chat API (v2)."""

from rxdelta.formats.cohere.decoder import CohereDecoder, recognises
from rxdelta.formats.cohere.request import request
from rxdelta.formats.format import Format
from rxdelta.formats.tool_definitions import functions

__all__ = ["FORMAT"]

FORMAT = Format(name="cohere", decoder=CohereDecoder, recognises=recognises, request=request, tools=functions)
