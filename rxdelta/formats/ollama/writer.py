"""A reply as Ollama streams it."""

from __future__ import annotations

from rxdelta.formats.encoding import Masked
from rxdelta.formats.ollama.encoder import OllamaEncoder
from rxdelta.formats.provider_reply import CREATED
from rxdelta.formats.reply import as_provider

__all__ = ["writer"]


def writer(on_error: Masked) -> OllamaEncoder:
    return as_provider(OllamaEncoder(now=lambda: CREATED, tools=(), on_error=on_error))
