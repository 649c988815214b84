"""The items of a JSON array, one by one, while the array is still streaming."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from rxdelta.core import (
    Block,
    BlockFold,
    Change,
    Event,
    InvalidValueError,
    Limits,
    MalformedChunkError,
    PartialJsonParser,
    ToolCall,
    Walk,
)
from rxdelta.core.events import TextDelta, ToolCallDelta
from rxdelta.operators.projections.json_search import Unfenced
from rxdelta.operators.projections.projection import (
    Growth,
    Projection,
    TextDocument,
    argument_growth,
    argument_text,
    call_of,
    project,
)
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


# Each stretch ends with a character that may end a value, so it ends at most one item.
_stretches = re.compile(r'[^,\]}"]*(?:[,\]}"]|\Z)').findall


@operator_maker
def json_items(
    path: str | int | Sequence[str | int] = (),
    *,
    call_id: str | None = None,
) -> Callable[[Observable[Event]], Observable[Any]]:
    """Emit each item of one array in the reply's JSON as soon as the item is closed.

    ::

        reply   <'["low", "hi'>-<'gh", 2'>-<', 3]'>|
                json_items()
        values  <low>          -<high>    -[23]    |

    The JSON document is the reply's text, as in `partial_json`, or a call's arguments. Each item is emitted once, in
    order, as a read-only value. An open string or object waits for its end, and a number for the next character. The
    time for an item depends on its own length only, not on the array's.

    Completes with the source; emits nothing if there is no array at `path`. Emitted items can't be taken back. If the
    provider replaces the text, only the items after the number of emitted ones follow. Another attempt, or another
    message, emits its own items from the first.

    Args:
        path: The path to the array: a key, or keys and indexes from the outside in; `()` is the document itself.
        call_id: The call whose arguments contain the array; `None` is the reply's text.

    Raises:
        InvalidValueError: At once, if `path` contains anything but strings and indexes.

    Errors: The source's own; `MalformedChunkError`, naming the character, for text that can't be JSON, after the
    items before it; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a value that
    is no event.

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
    return project("json_items", lambda name, walk: _Items(name, walk, steps, call_id), emits="items")


class _Items(Projection[Any]):
    """One subscription's state."""

    def __init__(self, name: str, walk: Walk, path: tuple[str | int, ...], call_id: str | None) -> None:
        self._path = path
        self._call_id = call_id
        super().__init__(name, walk, TextDelta if call_id is None else ToolCallDelta)

    def begin(self) -> None:
        self._text = TextDocument()
        self._call: BlockFold | None = None  # the first with the id
        self._array = _Array(self._path, self.walk.limits, of_a_call=self._call_id is not None)
        self._unfenced = Unfenced()

    def keeps(self, block: Block) -> bool:
        return self._call_id is None and self._text.keeps(block)

    def grown(self, fold: BlockFold, piece: str) -> Iterator[Any]:
        if self._call_id is None:
            piece = self._text.grown(fold, piece)
        elif fold is not self._call or not self._is_wanted(call_of(fold)):
            piece = ""
        return self._items((("more", piece),) if piece else ())

    def changed(self, changes: Sequence[Change], event: Event) -> Iterator[Any]:
        if self._call_id is None:
            return self._items(self._text.changed(changes))
        return self._items(self._argument_growths(changes, event))

    def _argument_growths(self, changes: Sequence[Change], event: Event) -> Iterator[Growth]:
        for change in changes:
            fold, call = change.fold, call_of(change.fold)
            if not self._is_wanted(call):
                continue
            if self._call is None:
                self._call = fold
                yield "begun", argument_text(call)
            elif fold is self._call:
                yield argument_growth(call, change, event)

    def _is_wanted(self, call: ToolCall | None) -> TypeGuard[ToolCall]:
        return call is not None and call.call_id == self._call_id

    def _items(self, growths: Iterable[Growth]) -> Iterator[Any]:
        for how, text in growths:
            if how != "more":
                self._array.read_again()
                self._unfenced = Unfenced()
            if self._call_id is not None:
                yield from self._array.feed(text)
                continue
            for piece in self._unfenced.pieces(text, self._array.is_whole):
                yield from self._array.feed(piece)


class _Array:
    """The array at a path of a document that is fed in pieces.

    After each item the parser is replaced: the new one is at the same position of a document without the earlier
    items. Otherwise reading one item would cost as much as reading all.
    """

    def __init__(self, path: tuple[str | int, ...], limits: Limits, *, of_a_call: bool) -> None:
        self._path = path
        self._new_parser = partial(
            PartialJsonParser, max_depth=limits.json_depth, control_characters=of_a_call
        )
        self._prefix = "".join(
            f"{{{json.dumps(step)}:" if isinstance(step, str) else "[" + "0," * step for step in path
        )
        self._emitted = 0
        self.read_again()

    def read_again(self) -> None:
        """Read the text from its first character again; items that were emitted are skipped."""
        self._reader = self._new_parser()
        self._text: list[str] = []
        self._seen = 0
        self._ended = False

    def is_whole(self) -> bool:
        return self._reader.complete

    def feed(self, text: str) -> Iterator[Any]:
        """Read on, and return the items that are closed.

        Raises:
            MalformedChunkError: The text can't be JSON.
        """
        self._text.append(text)
        if self._ended:
            self._reader.feed(text)
        else:
            for stretch in _stretches(text):
                self._reader.feed(stretch)
                if not self._ended:
                    yield from self._closed_item(stretch)
        if self._reader.error is not None:
            reader = self._new_parser()  # one that counts from the beginning
            reader.feed("".join(self._text))
            raise MalformedChunkError(f"the items end here: {reader.error}")

    def _closed_item(self, stretch: str) -> Iterator[Any]:
        index = 1 if self._seen else 0  # one empty item stands for all the earlier ones
        if self._reader.is_final((*self._path, index)):
            item: Any = self._reader.value
            for step in (*self._path, index):
                item = item[step]
            self._seen += 1
            if self._seen > self._emitted:
                self._emitted += 1
                yield item
            if self._reader.is_final(self._path) or self._reader.error is not None:
                self._ended = True
                return
            self._reader = self._new_parser()
            self._reader.feed(f'{self._prefix}[""{"," if stretch.endswith(",") else ""}')
        elif stretch.endswith("]"):
            self._ended = self._reader.is_final(self._path)
