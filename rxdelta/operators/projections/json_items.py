"""The items of a JSON array, one by one, while the model still writes the rest of it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rxdelta.core import (
    DEFAULT_LIMITS,
    Event,
    InvalidValueError,
    Limits,
    MalformedChunkError,
    PartialJsonParser,
)
from rxdelta.operators.projections.calls import Calls, argument_text
from rxdelta.operators.projections.projection import ChangeKind, Projection, project
from rxdelta.operators.projections.prose import JsonText, Unfenced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from reactivex import Observable, abc

    from rxdelta.core.events import Index

__all__ = ["json_items"]

# Up to each character at which a value may end, so that one stretch ends one item at most.
_stretches = re.compile(r'[^,\]}"]*(?:[,\]}"]|\Z)').findall


def json_items(
    path: str | int | Sequence[str | int] = (),
    *,
    call_id: str | None = None,
    choice: int = 0,
    limits: Limits = DEFAULT_LIMITS,
) -> Callable[[Observable[Event]], Observable[Any]]:
    """Each item of one array in the reply's JSON, as soon as it is closed.

    The reply's text is one JSON document, as in `partial_json`, or a call's arguments are. Items come once each, in
    their order, as read-only values; a string or an object that is still open waits, and so does a number, until the
    character behind it has come. An item takes time in proportion to itself, however long the array is.

    Completes with the source; empty if nothing is at `path`, or no array. Items that were given can't be taken back:
    of a text that the provider replaced only those come that weren't given yet, by their number, and another attempt,
    or another message, gives its own from the first.

    Args:
        path: Where the array is: a key, or keys and indexes from the outside in; `()` is the document itself.
        call_id: The call whose arguments it is in; `None` is the reply's text.
        choice: Which of several alternative replies.
        limits: What the stream may make us hold.

    Raises:
        InvalidValueError: At once, if `path` consists of anything but strings and indexes.

    Errors: The source's own; `MalformedChunkError`, naming the character, for text that can't be JSON, after the
    items before it; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for what is no
    event.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> texts = ['{"steps": ["loo', 'k", {"day', 's": 3}, 4', ", 5"]
        >>> events = [rd.events.BlockStart(0, {"type": "text"})]
        >>> events += [rd.events.TextDelta(0, text) for text in texts]
        >>> rx.from_iterable(events).pipe(rd.json_items("steps")).subscribe(print).dispose()
        look
        {'days': 3}
        4
    """
    steps: tuple[Any, ...] = tuple(path) if isinstance(path, (list, tuple)) else (path,)
    if not all(isinstance(step, str) or (type(step) is int and step >= 0) for step in steps):
        raise InvalidValueError.of([("path", path, "must consist of keys and indexes")])
    return project(lambda observer: _Items(observer, steps, call_id, choice, limits))


class _Items(Projection[Any]):
    """One subscription's state."""

    def __init__(
        self,
        observer: abc.ObserverBase[Any],
        path: tuple[str | int, ...],
        call_id: str | None,
        choice: int,
        limits: Limits,
    ) -> None:
        self._path = path
        self._call_id = call_id
        self._limits = limits
        super().__init__(observer, choice)

    def begin(self) -> None:
        self._text = JsonText(self._limits)
        self._calls = Calls(self._choice, self._limits)
        self._index: Index | None = None  # of the call
        self._array = _Array(self._path, self._limits)
        self._unfenced = Unfenced()

    def step(self, event: Event, emit: Callable[[Any], None]) -> None:
        for how, text in self._changes(event):
            if how != "more":
                self._array.read_again()
                self._unfenced = Unfenced()
            if self._call_id is not None:
                self._array.feed(text, emit)
                continue
            for piece in self._unfenced.pieces(text, self._array.is_whole):
                self._array.feed(piece, emit)

    def _changes(self, event: Event) -> Iterable[tuple[ChangeKind, str]]:
        if self._call_id is None:
            yield from self._text.step(event)
            return
        for index, call, how, text in self._calls.step(event):
            if self._index is None and call.call_id == self._call_id:
                self._index = index
                yield "begun", argument_text(call)
            elif index == self._index and call.call_id == self._call_id:
                yield how, text


class _Array:
    """The array at a path, read from a document that is fed in pieces, and its items that were given.

    After each item the reader is replaced by one that stands at the same place of a document without the items
    before; else looking at an item would mean to look at all of them.
    """

    def __init__(self, path: tuple[str | int, ...], limits: Limits) -> None:
        self._path = path
        self._depth = limits.json_depth
        self._prefix = "".join(
            f"{{{json.dumps(step)}:" if isinstance(step, str) else "[" + "0," * step for step in path
        )
        self._emitted = 0
        self.read_again()

    def read_again(self) -> None:
        """Begin with the text's first character, and give what hasn't been given."""
        self._reader = PartialJsonParser(max_depth=self._depth)
        self._text: list[str] = []
        self._seen = 0
        self._ended = False

    def is_whole(self) -> bool:
        return self._reader.complete

    def feed(self, text: str, emit: Callable[[Any], None]) -> None:
        """Read on.

        Raises:
            MalformedChunkError: The text can't be JSON.
        """
        self._text.append(text)
        if self._ended:
            self._reader.feed(text)
        else:
            for stretch in _stretches(text):
                self._reader.feed(stretch)
                self._emit_closed_item(stretch, emit)
        if self._reader.error is not None:
            reader = PartialJsonParser(max_depth=self._depth)  # one that counts from the beginning
            reader.feed("".join(self._text))
            raise MalformedChunkError(f"the items end here: {reader.error}")

    def _emit_closed_item(self, stretch: str, emit: Callable[[Any], None]) -> None:
        if self._ended:
            return
        index = 1 if self._seen else 0  # of those before, one stands for all
        if self._reader.is_final((*self._path, index)):
            item: Any = self._reader.value
            for step in (*self._path, index):
                item = item[step]
            self._seen += 1
            if self._seen > self._emitted:
                self._emitted += 1
                emit(item)
            if self._reader.is_final(self._path) or self._reader.error is not None:
                self._ended = True
                return
            self._reader = PartialJsonParser(max_depth=self._depth)
            self._reader.feed(f'{self._prefix}[""{"," if stretch.endswith(",") else ""}')
        elif stretch.endswith("]"):
            self._ended = self._reader.is_final(self._path)
