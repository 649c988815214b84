"""LangChain's message chunks and event protocol."""

from rxdelta.formats.format import Format
from rxdelta.formats.langchain.decoder import LangChainDecoder, recognises
from rxdelta.formats.langchain.request import request

__all__ = ["FORMAT"]

FORMAT = Format(name="langchain", decoder=LangChainDecoder, recognises=recognises, request=request)
