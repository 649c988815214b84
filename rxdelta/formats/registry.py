"""The wire formats of the library and of other installed distributions, and the names by which people mean one."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rxdelta.core import UnknownWireFormatError, alternatives, described, did_you_mean, quote
from rxdelta.formats.format import Format

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_OPENAI = ("openai-chat", "openai-responses")
_CHAT = ("openai-chat",)
_BY_WORD = {
    **dict.fromkeys(("claude", "anthropic"), ("anthropic-messages",)),
    **dict.fromkeys(("openai", "gpt", "chatgpt", "azure", "o1", "o3", "o4", "codex"), _OPENAI),
    **dict.fromkeys(("google", "genai", "vertex", "aistudio", "gemini"), ("gemini",)),
    **dict.fromkeys(("bedrock", "aws", "amazon", "converse", "nova"), ("bedrock-converse",)),
    **dict.fromkeys(("cohere", "command"), ("cohere",)),
    **dict.fromkeys(("mistral", "mixtral", "codestral", "magistral"), ("mistral",)),
    **dict.fromkeys(("ollama", "llama"), ("ollama",)),
    **dict.fromkeys(
        (
            *(
                "openrouter",
                "groq",
                "together",
                "fireworks",
                "deepseek",
                "xai",
                "grok",
                "perplexity",
                "cerebras",
            ),
            *("litellm", "vllm", "sglang", "lmstudio", "qwen", "kimi", "moonshot", "huggingface", "nvidia"),
        ),
        _CHAT,
    ),
    **dict.fromkeys(("vercel", "usechat"), ("ai-sdk",)),
    **dict.fromkeys(("copilotkit", "agui"), ("ag-ui",)),
    **dict.fromkeys(("langgraph", "langsmith"), ("langchain",)),
}
"""The formats that providers and models speak, by the words that their names begin with."""


def meant_formats(given: str, known: Iterable[str]) -> str:
    """Advise on a name that no format has: the formats that are likely meant, then all.

    Example:
        >>> meant_formats("claude-opus", ["anthropic-messages", "gemini"])
        "did you mean 'anthropic-messages'? There are anthropic-messages, gemini"
        >>> meant_formats("qqq", ["gemini"])
        'there are gemini'
    """
    names = sorted(known)
    if not did_you_mean(given, names):
        words = re.findall(r"[a-z]+\d?", given[:100].lower())
        found = {
            name
            for word in words
            for key, formats in _BY_WORD.items()
            if word.startswith(key)
            for name in formats
            if name in names
        }
        if found:
            meant = " or ".join(map(repr, sorted(found)))
            return f"did you mean {meant}? There are {', '.join(names)}"
    return alternatives(given, names)


GROUP = "rxdelta.formats"
"""The group of entry points by which another distribution adds a format."""

_OWN: Mapping[str, str] = {
    "anthropic-messages": "anthropic_messages",
    "ag-ui": "ag_ui",
    "ai-sdk": "ai_sdk",
    "bedrock-converse": "bedrock_converse",
    "gemini": "gemini",
    "gemini-interactions": "gemini_interactions",
    "cohere": "cohere",
    "langchain": "langchain",
    "openai-responses": "openai_responses",
    "ollama": "ollama",
    "mistral": "mistral",  # before openai-chat, of which it is a dialect
    "openai-completions": "openai_completions",
    "openai-chat": "openai_chat",
}
"""The folder of each format, which is imported when the format is first needed. The order is that of `recognise`."""

_log = logging.getLogger("rxdelta.formats")


def names() -> tuple[str, ...]:
    """The names of all formats: the library's, then those that are installed beside it."""
    return (*_OWN, *_installed())


def find(name: str) -> Format | None:
    """The format of this name, or `None`. A name of the library's own always means the library's own.

    Raises:
        UnknownWireFormatError: Another distribution has a format of this name, which can't be loaded; or two have.
    """
    if name in _OWN:
        return _own(name)
    return _load(name) if name in _installed() else None


def get(name: str) -> Format:
    """The format of this name.

    Raises:
        UnknownWireFormatError: No format has this name; the error lists those that exist. Or as for `find`.
    """
    known = find(name)
    if known is None:
        wrong = f"no wire format is called {quote(repr(name))}"
        raise UnknownWireFormatError(f"{wrong}; {meant_formats(name, names())}")
    return known


def is_own(name: str) -> bool:
    """Whether the format is the library's own."""
    return name in _OWN


def formats() -> Iterator[Format]:
    """All formats that can be loaded: the library's, then those that are installed beside it."""
    yield from map(_own, _OWN)
    yield from _loaded()


def recognise(chunk: Mapping[str, Any]) -> str | None:
    """The name of the first format whose stream can begin with this chunk. An installed format that raises is logged and skipped."""
    for one in map(_own, _OWN):
        if one.recognises(chunk):
            return one.name
    for one in _loaded():
        try:
            if one.recognises(chunk):
                return one.name
        except Exception:
            _log.warning("the installed format %r failed to look at a chunk", one.name, exc_info=True)
    return None


@cache
def _own(name: str) -> Format:
    own: Format = import_module(f"rxdelta.formats.{_OWN[name]}").FORMAT
    return own


@cache
def _installed() -> Mapping[str, tuple[EntryPoint, ...]]:
    """What other distributions offer by names that aren't the library's. Looked up once, when first needed."""
    from importlib.metadata import entry_points  # takes as long to import as much of the package

    found: dict[str, tuple[EntryPoint, ...]] = {}
    for point in entry_points(group=GROUP):
        if point.name not in _OWN:
            found[point.name] = (*found.get(point.name, ()), point)
    return found


@cache
def _loaded() -> tuple[Format, ...]:
    """The installed formats. One that fails to load is logged once and left out."""
    loaded: list[Format] = []
    for name in _installed():
        try:
            loaded.append(_load(name))
        except UnknownWireFormatError as error:
            _log.warning("%s", error)
    return tuple(loaded)


@cache
def _load(name: str) -> Format:
    first, *others = _installed()[name]
    if any(other.value != first.value for other in others):
        places = ", ".join(point.value for point in (first, *others))
        raise UnknownWireFormatError(f"several installed formats are called {name!r}: {places}")
    try:
        loaded = first.load()
    except Exception as error:
        raise UnknownWireFormatError(
            f"the installed format {name!r} ({first.value}) can't be loaded: {described(error)}"
        ) from error
    if not isinstance(loaded, Format) or loaded.name != name:
        raise UnknownWireFormatError(
            f"the installed format {name!r} ({first.value}) must be an rxdelta.providers.Format of this name"
        )
    return loaded
