"""A reply's text as a JSON value while it is streaming."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, overload

from rxdelta.core.events import MessageFinish, MessageInterrupted, TextDelta
from rxdelta.operators.projections.partial import Into, PartialReading, PartialValue
from rxdelta.operators.projections.projection import Projection, TextDocument, project
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.core import Block, BlockFold, Change, Event, Walk


T = TypeVar("T")


@overload
def partial_json(
    into: None = None, *, find: bool = False
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]: ...
@overload
def partial_json(
    into: type[T], *, find: bool = False
) -> Callable[[Observable[Event]], Observable[PartialValue[T]]]: ...
@operator_maker
def partial_json(
    into: type[Any] | None = None, *, find: bool = False
) -> Callable[[Observable[Event]], Observable[PartialValue[Any]]]:
    """Emit the reply's text, one JSON document, as values while it arrives; not the arguments of its calls.

    ::

        reply   <'{"at": "no'>-<'on", "m": 2'> -<'.5}'>                   |
                partial_json()
        values  <{"at": "no"}>-<{"at": "noon"}>-<{"at": "noon", "m": 2.5}>[<{"at": "noon", "m": 2.5} ✓>|]

    The text blocks are concatenated in their order. A markdown fence around the document is ignored, and so is any
    text after the fence; other text before or after the document is an `error`.

    With `find` the document is the first JSON value in the text that begins an object or a list. A sentence, a fence or
    `<think>…</think>` may stand in front of it, and anything behind it. Text that isn't JSON is passed over, such as `{name}`. So
    is what may be a mark in a sentence (`[1]`, `[ ]`, `{}`), if another value follows.

    A `PartialValue` is emitted whenever the visible part of the document changes, the document closes, or the text
    turns out not to be JSON. A last one is emitted when the message has finished. It is `complete` if there is a document
    in strict JSON, which the class, if any, has accepted. The time is in proportion to the text, for any deltas, unless the
    provider replaces the text. A reply without text emits nothing.

    Completes with the source; a stream that was cut off emits no last one. Another attempt, or another message, begins
    another document.

    Args:
        into: The class for the `value` of the whole document, as in `partial_arguments`. Draw `so_far` until then.
        find: Whether to search the text for the document. Only the end of the text shows that there is none, so the `error`
            comes with the last value.

    Raises:
        InvalidValueError: At once, if `into` is no class that can be built.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event. Invalid text is no error.

    Examples:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> texts = ["```json\\n", '{"title": "Ti', 'des"}', "\\n```"]
        >>> events = [rd.events.BlockStart(0, {"type": "text"})]
        >>> events += [rd.events.TextDelta(0, text) for text in texts]
        >>> events += [rd.events.BlockFinish(0), rd.events.MessageFinish("stop")]
        >>> partials = rx.from_iterable(events).pipe(rd.partial_json())
        >>> partials.subscribe(lambda partial: print(partial.value, partial.complete)).dispose()
        {'title': 'Ti'} False
        {'title': 'Tides'} False
        {'title': 'Tides'} True

        >>> sure = rd.events.BlockStart(0, {"type": "text", "text": "Sure, {name}! "})
        >>> partials = rx.from_iterable([sure, *events[1:]]).pipe(rd.partial_json(find=True))
        >>> partials.subscribe(lambda partial: print(partial.value, partial.complete)).dispose()
        {'title': 'Ti'} False
        {'title': 'Tides'} False
        {'title': 'Tides'} True

        >>> import dataclasses
        >>> @dataclasses.dataclass
        ... class Page:
        ...     title: str
        >>> pages = rx.from_iterable(events).pipe(rd.partial_json(into=Page))
        >>> pages.subscribe(lambda page: print(page.so_far.get("title"), page.value)).dispose()
        Ti None
        Tides None
        Tides Page(title='Tides')
    """
    made = None if into is None else Into(into)
    return project("partial_json", lambda name, walk: _Document(name, walk, made, find))


class _Document(Projection[PartialValue[T]]):
    """One subscription's state."""

    def __init__(self, name: str, walk: Walk, into: Into[T] | None, find: bool) -> None:
        self._into = into
        self._find = find
        super().__init__(name, walk, TextDelta)

    def begin(self) -> None:
        self._text = TextDocument()
        self._reading = PartialReading(self._into, self.walk.limits, is_text=True, find=self._find)

    def keeps(self, block: Block) -> bool:
        return self._text.keeps(block)

    def grown(self, fold: BlockFold, piece: str) -> Sequence[PartialValue[T]]:
        text = self._text.grown(fold, piece)
        if not text:
            return ()
        self._reading.more(text)
        partial = self._reading.changed_value()
        return () if partial is None else (partial,)

    def changed(self, changes: Sequence[Change], event: Event) -> Sequence[PartialValue[T]]:
        grown = False
        for growth in self._text.changed(changes):
            self._reading.take(growth)
            grown = True
        partial = None
        if changes[-1].kind == "ended":
            partial = self._reading.last_value_of_text(_why_cut(event))
        elif grown:
            partial = self._reading.changed_value()
        return () if partial is None else (partial,)


def _why_cut(event: Event) -> str | None:
    if isinstance(event, MessageInterrupted):
        return "the message was interrupted before the document ended"
    limit = isinstance(event, MessageFinish) and event.reason == "length"
    return "the token limit cut the message before the document ended" if limit else None
