"""Ollama's words for the end of a reply."""

from __future__ import annotations

from collections.abc import Mapping

from rxdelta.formats.provider_errors import Broken

__all__ = ["BROKEN", "REASONS", "WORDS"]

REASONS: Mapping[str, str] = {
    "stop": "stop",
    "length": "length",
    "tool_calls": "tool_use",
    "content_filter": "content_filter",
}

WORDS: Mapping[str, str] = {
    "stop": "stop",
    "tool_use": "stop",
    "pause": "stop",
    "length": "length",
    "content_filter": "content_filter",
}
"""What a reply that is written to a client ends with. Ollama itself has `stop` and `length` only."""

BROKEN: Mapping[str, Broken] = {
    "load": Broken("the request had no prompt: the model was loaded, and wrote nothing", False),
    "unload": Broken("the request had no prompt: the model was unloaded, and wrote nothing", False),
}
"""The reasons of an answer that is no reply. The same request has the same answer.

https://docs.ollama.com/api/chat and https://github.com/ollama/ollama/blob/main/docs/api.md#load-a-model
"""
