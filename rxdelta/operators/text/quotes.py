"""Where a reply quotes its own text: in notes about it, in citations, in traces, in results, and token by token.

An error may quote the text, too, and reaches readers that must not see all of the reply.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, Protocol

import attrs

from rxdelta.core import (
    TERMINAL,
    FrozenDict,
    RxDeltaError,
    Snapshot,
    StreamInterrupted,
    described,
    is_list,
    is_mapping,
    thaw,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
)

_FIELDS: Mapping[type, Sequence[str]] = {
    MessageStart: ("metadata",),
    BlockStart: ("content",),
    BlockDelta: ("fields",),
    BlockFinish: ("content",),
    MessageFinish: ("metadata",),
    StreamError: ("message",),
    ProviderEvent: ("payload",),
    Custom: ("data",),
    ToolUpdate: ("display_text", "result"),
    MessageInterrupted: ("reason",),
    AttemptReset: ("error",),
}
_NAMED = frozenset({Custom, ToolUpdate})  # whose keys aren't a provider's words, but may be anything
_KEPT = frozenset(["type", "id", "call_id", "name", "index", "model", "model_name", "encrypted_content"])


class Elsewhere(Protocol):
    """How a text outside of a block's own is rewritten."""

    def all_of(self, text: str, /) -> str:
        """The text rewritten."""
        ...

    def all_certain(self, text: str, /) -> str:
        """The same for a text that may go on later."""
        ...


def elsewhere_in(event: Event, elsewhere: Elsewhere, kept: Collection[str]) -> Event:
    """The event with all its texts rewritten, but for names, ids, types, and these fields of a block's content.

    Lists of the text's tokens are left out.
    """
    given: Any = event
    kind = type(event)
    changes: dict[str, Any] = {}
    for field in (*_FIELDS.get(kind, ()), "more"):
        value: Any = getattr(given, field)
        if not value:
            continue
        if field == "result":
            is_whole = given.execution_status is None or given.execution_status in TERMINAL
            rewrite = elsewhere.all_of if is_whole else elsewhere.all_certain
            content = _rewritten(value.content, rewrite, keys=True)
            new: Any = value if content == value.content else attrs.evolve(value, content=content)
        elif is_mapping(value) and kind not in _NAMED:
            if value.get("type") == "reasoning" and value.get("redacted") is True:
                kept = (*kept, "data")  # a seal of the provider
            new = {
                name: item
                if name in kept or name in _KEPT or _is_opaque(name)
                else _rewritten(item, elsewhere.all_of)
                for name, item in value.items()
                if not _is_token_wise(name, item)
            }
        else:
            new = _rewritten(value, elsewhere.all_of, keys=kind in _NAMED)
        if new != value:
            changes[field] = new
    new_event: Event = attrs.evolve(given, **changes) if changes else event
    return new_event


def _rewritten(value: Any, rewrite: Callable[[str], str], *, keys: bool = False) -> Any:
    if isinstance(value, str):
        return rewrite(value)
    if is_list(value):
        return [_rewritten(item, rewrite, keys=keys) for item in value]
    if is_mapping(value):
        return {
            rewrite(name) if keys else name: item
            if _is_opaque(name)
            else _rewritten(item, rewrite, keys=keys)
            for name, item in value.items()
            if not _is_token_wise(name, item)
        }
    return value


def _is_opaque(name: str) -> bool:
    """Whether a field is the provider's seal, which must come back as it was."""
    return name == "encrypted_content" or name.lower().replace("_", "").endswith("signature")


def _is_token_wise(name: str, value: object) -> bool:
    """Whether a field says the text token by token, where no pattern finds it: log probabilities, numbers of tokens."""
    if not is_mapping(value) and not is_list(value):
        return False
    lower = name.lower()
    return (
        "logprob" in lower
        or lower.endswith(("token_ids", "tokenids"))
        or (lower in ("tokens", "context") and _has_numbers(value))
    )


def _has_numbers(value: object) -> bool:
    return is_list(value) and all(type(item) is int for item in value)


def moved(citations: Sequence[Any], place: Callable[[int], int]) -> list[Any]:
    """The citations with their ranges of the text where they are now, in the provider's own object, too."""
    return [_moved(one, place) if is_mapping(one) else one for one in citations]


def _moved(citation: Mapping[str, Any], place: Callable[[int], int]) -> Any:
    ends = {end: citation.get(f"{end}_index") for end in ("start", "end")}
    now = {end: place(at) for end, at in ends.items() if type(at) is int}
    if all(now[end] == ends[end] for end in now):
        return citation

    def walk(value: Any, name: str = "") -> Any:
        if is_mapping(value):
            return {key: walk(item, key) for key, item in value.items()}
        if is_list(value):
            return [walk(item) for item in value]
        end = next((end for end in now if name.lower().startswith(end) and value == ends[end]), None)
        return value if end is None or type(value) is not int else now[end]

    return FrozenDict(walk(thaw(citation)))


_DEEPEST, _MOST = 5, 10_000  # how far the fields of other libraries' objects are read


def rewritten_error(error: Exception, rewrite: Callable[[str], str]) -> Exception:
    """The error with its texts rewritten, without the reply so far, which the next fold adds again.

    It is another object if anything changes. Then it has no causes and no traceback: they may quote the same text, the
    frames in their local variables, which error trackers show. An exception of another library becomes a `StreamInterrupted`.
    """

    def says_it(value: object) -> bool:
        return any(rewrite(text) != text for text in _texts(value))

    def rewritten(value: Any) -> Any:
        if isinstance(value, str):
            return rewrite(value)
        if is_list(value):
            return [rewritten(item) for item in value]
        return None if says_it(value) else value

    is_changed = says_it(error)
    if not isinstance(error, RxDeltaError):
        if not is_changed:
            return error
        return StreamInterrupted(f"the stream broke off: {rewrite(described(error))}")
    if not is_changed and error.snapshot is None:
        return error
    shown = copy(error)
    shown.snapshot = None
    if is_changed:
        shown.args = tuple(rewritten(one) for one in error.args)
        vars(shown).update({name: rewritten(value) for name, value in vars(shown).items()})
    else:
        shown.__cause__, shown.__suppress_context__ = error.__cause__, error.__suppress_context__
        shown.__context__, shown.__traceback__ = error.__context__, error.__traceback__
    return shown


def _texts(value: object) -> Iterator[str]:
    """All that a value says; of an error, also all that led to it, and the provider's answer that it may have."""
    seen: set[int] = set()
    waiting: list[tuple[object, int]] = [(value, 0)]
    while waiting and len(seen) < _MOST:
        one, depth = waiting.pop()
        if isinstance(one, Snapshot):
            one = one.to_dict()
        if isinstance(one, (str, bytes, bytearray)):
            yield one if isinstance(one, str) else one.decode("utf-8", "replace")
        elif id(one) not in seen and depth <= _DEEPEST and not isinstance(one, type):
            seen.add(id(one))
            inner = _parts(one)
            if not isinstance(one, BaseException):
                depth += 1
                if not inner:
                    yield repr(one)
            else:
                depth = 0
                yield described(one)
            waiting += [(part, depth) for part in inner]


def _parts(value: object) -> Sequence[object]:
    if is_mapping(value):
        return [*value.keys(), *value.values()]
    if is_list(value):
        return value
    fields: object = getattr(value, "__dict__", None)
    parts: list[object] = [*fields.values()] if isinstance(fields, dict) else []
    if isinstance(value, BaseException):
        parts += [*value.args, value.__cause__, value.__context__, *getattr(value, "exceptions", ())]
    return parts
