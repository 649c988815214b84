"""Options of the library and their checks: words, lengths of time, bounds on untrusted input."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sized
from datetime import timedelta
from typing import ClassVar, TypeAlias, TypeVar

import attrs

from rxdelta.core.errors import InvalidValueError, LimitExceededError

_LIKELY = 0.7
"""How similar a word must be to what was given, for `difflib`."""


def check_word(field: str, value: object, allowed: Iterable[str]) -> None:
    """Check an option that is one of a few words.

    Raises:
        InvalidValueError: The value is another one. The error lists the words, the likely one apart.

    Example:
        >>> check_word("start", "mesage", ["ready", "message"])
        Traceback (most recent call last):
        rxdelta.core.errors.InvalidValueError: start: must be 'ready' or 'message' (got start='mesage'); did you mean 'message'?
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
        rxdelta.core.errors.InvalidValueError: fn: must be a function of a block's stream (got fn=None)
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


Seconds: TypeAlias = float | timedelta
"""A number of seconds, or a `timedelta`."""

_MOST = 1e9  # more is more than threads can wait and servers can count
_SLOW_PACE = 10.0
_MILLISECONDS = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s)\s*")

_log = logging.getLogger("rxdelta")


def check_seconds(name: str, value: object) -> float:
    """Return a length of time in seconds.

    Raises:
        InvalidValueError: It is no `timedelta` and no number, not positive, or more than a billion seconds.
    """
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 < seconds <= _MOST:
        wanted = "must be a positive number of seconds, at most 1e9, or a timedelta"
        raise InvalidValueError.of([(name, value, wanted, _cure(value))])
    return float(seconds)


def check_pace(name: str, value: object) -> float:
    """As `check_seconds`, for the time between two updates. So long a time was probably meant in milliseconds: log it.

    Raises:
        InvalidValueError: As by `check_seconds`.
    """
    seconds = check_seconds(name, value)
    if seconds > _SLOW_PACE and not isinstance(value, timedelta):
        _log.warning(
            "%s=%g is in seconds, a long time between two updates; for milliseconds write %s=%g",
            name,
            seconds,
            name,
            seconds / 1000,
        )
    return seconds


def _cure(value: object) -> str:
    """What to write for a text such as `"50ms"`."""
    found = _MILLISECONDS.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return ""
    number = float(found[1]) / (1000 if found[2] == "ms" else 1)
    return f"write {number:g}"


K = TypeVar("K")
T = TypeVar("T")


@attrs.frozen(kw_only=True)
class Limits:
    """Bounds on the memory of a stream; `index` is the highest number of a block, not how many there are.

    Beyond a bound, `LimitExceededError` has the reply so far.

    Raises:
        InvalidValueError: A bound is not a whole number from 0.

    Example:
        >>> import rxdelta as rd
        >>> rd.Limits(block_chars=1_000).blocks
        65536
    """

    index: int = 2**31
    """A block's index must be less than this. Indexes are keys, so a large one takes no memory."""
    blocks: int = 65_536
    """Blocks in one message."""
    choices: int = 1_024
    """Alternative replies in one stream, or in one run of it."""
    runs: int = 10_000
    """Runs in one stream: a graph may make one for each reply."""
    block_chars: int = 64 * 2**20
    """Characters in one block: text, reasoning, arguments, media."""
    json_depth: int = 200
    """Nesting of arguments and other JSON documents."""
    line_bytes: int = 2**20
    """Bytes in one line of SSE or NDJSON."""
    members: int = 4_096
    """Keys of each mapping that grows: a usage's `raw`, the metadata of a message, the options of a part, the metadata of a
    call. Decoders also count what is within a usage that a stream tells piece by piece; nothing else within a value counts."""

    def __attrs_post_init__(self) -> None:
        wrong = [
            (field.name, value, "must be a whole number from 0")
            for field in attrs.fields(Limits)
            if not isinstance(value := getattr(self, field.name), int) or isinstance(value, bool) or value < 0
        ]
        if wrong:
            raise InvalidValueError.of(wrong)


DEFAULT_LIMITS = Limits()


class _Bounded(dict[K, T]):
    """A mapping that takes no more items than a limit."""

    __slots__ = ("_most",)

    limit: ClassVar[str]

    def __init__(self, limits: Limits = DEFAULT_LIMITS) -> None:
        super().__init__()
        self._most: int = getattr(limits, self.limit)

    def __setitem__(self, key: K, value: T) -> None:
        if len(self) >= self._most and key not in self:
            raise LimitExceededError.of(self.limit, self._most, f"the number of {self.limit}")
        super().__setitem__(key, value)


class ByChoice(_Bounded[int, T]):
    """A mapping from the choices of a stream, which takes no more choices than `Limits.choices`.

    Raises:
        LimitExceededError: An item for one more choice is set.
    """

    __slots__ = ()
    limit = "choices"


class ByRun(_Bounded["str | None", T]):
    """A mapping from the runs of a stream, which takes no more runs than `Limits.runs`.

    Raises:
        LimitExceededError: An item for one more run is set.
    """

    __slots__ = ()
    limit = "runs"


def check_members(found: Sized, limits: Limits, what: str) -> None:
    """Check the number of a mapping's keys, or of the items in a usage's list.

    Raises:
        LimitExceededError: There are more than `Limits.members`.
    """
    if len(found) > limits.members:
        raise LimitExceededError.of("members", limits.members, f"the number of members of {what}")


def check_place(index: object, known: int, limits: Limits) -> None:
    """Check that a message of `known` blocks may have one more block, with this index.

    Raises:
        LimitExceededError: The index is too large, or there are too many blocks.
    """
    if isinstance(index, int) and abs(index) >= limits.index:
        raise LimitExceededError.of("index", limits.index, "the block index")
    if known >= limits.blocks:
        raise LimitExceededError.of("blocks", limits.blocks, "the number of blocks in one message")
