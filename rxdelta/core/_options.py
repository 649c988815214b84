"""What is wrong with an option, and what was probably meant."""

from __future__ import annotations

from collections.abc import Iterable

from rxdelta.core._errors import InvalidValueError

__all__ = ["alternatives", "check_function", "check_word", "did_you_mean"]

_LIKELY = 0.7
"""How similar a word must be to what was given, for `difflib`."""


def check_word(field: str, value: object, allowed: Iterable[str]) -> None:
    """Check an option that is one of a few words.

    Raises:
        InvalidValueError: The value is another one. The error lists the words, the likely one apart.

    Example:
        >>> check_word("start", "mesage", ["ready", "message"])
        Traceback (most recent call last):
        rxdelta.core._errors.InvalidValueError: start: must be 'ready' or 'message' (got start='mesage'); did you mean 'message'?
    """
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise InvalidValueError.of([(field, value, f"must be {_listed(words)}", did_you_mean(value, words))])


def check_function(field: str, value: object, what: str) -> None:
    """Check an option that is a function; `what` describes the function.

    Raises:
        InvalidValueError: The value can't be called.

    Example:
        >>> check_function("fn", None, "a function of a block's stream")
        Traceback (most recent call last):
        rxdelta.core._errors.InvalidValueError: fn: must be a function of a block's stream (got fn=None)
    """
    if not callable(value):
        raise InvalidValueError.of([(field, value, f"must be {what}")])


def alternatives(given: object, known: Iterable[str]) -> str:
    """Advise on a wrong word: name the likely words, then list all known words.

    Example:
        >>> alternatives("openai", ["openai-chat", "gemini"])
        "did you mean 'openai-chat'? There are gemini, openai-chat"
        >>> alternatives("x", ["openai-chat", "gemini"])
        'there are gemini, openai-chat'
    """
    words = sorted(known)
    meant = did_you_mean(given, words)
    return f"{meant} There are {', '.join(words)}" if meant else f"there are {', '.join(words)}"


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Ask for the likely words: those with the same beginning, or else the most similar word; `""` without one.

    Example:
        >>> did_you_mean("openai", ["gemini", "openai-chat", "openai-responses"])
        "did you mean 'openai-chat' or 'openai-responses'?"
        >>> did_you_mean("Tool call", ["text", "tool_call"])
        "did you mean 'tool_call'?"
        >>> did_you_mean(7, ["text"])
        ''
    """
    if not isinstance(given, str) or not 0 < len(given) <= 100:
        return ""
    words = {_plain(word): word for word in sorted(known)}
    plain = _plain(given)
    found = [word for key, word in words.items() if key.startswith(plain) or plain.startswith(key)]
    if not found:
        from difflib import get_close_matches  # not needed unless there is a mistake

        found = [words[key] for key in get_close_matches(plain, words, n=1, cutoff=_LIKELY)]
    return f"did you mean {_listed(found)}?" if found else ""


def _listed(words: Iterable[str]) -> str:
    *first, last = map(repr, words)
    return f"{', '.join(first)} or {last}" if first else last


def _plain(word: str) -> str:
    return word.lower().replace("_", "-").replace(" ", "-")
