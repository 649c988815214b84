"""The library's own Observables, and the mark that says what their values are.

A value's type often doesn't say whether a newer value replaces it: a text may be a piece, or the whole text so far. The
operator that emitted it knows. So an operator of ours marks its output, and two kinds of mistakes are refused when the
pipeline is built:

- *Pieces* are values that no later value contains: events, pieces of text, calls, frames. An operator that keeps the
  newest value (`throttle_latest`, `debounce_latest`, `conflate`, `share_latest`, a reader with `overflow="latest"`) refuses
  them, unless the user says by `key=` which value replaces which.
- The *newest* values are those that such an operator emits. Readers that need every value refuse them: `decode`, the parsers,
  `scan_deltas`, the projections and the encoders.

Rx's own operators don't pass a mark on: behind `map` and its kin a value is what the user made of it. But those that drop
values are known by their functions in `reactivex`. In front of a reader that needs every value, those that drop by time
are refused as ours are. A reader of events also refuses those that drop by place or by value: what they leave may be a
legal stream, and no reader would learn that the reply lacks words. Not refused are `filter`, whose user says what it drops, and
what only ends a stream (`take`, `first`, …), since the reply is then incomplete. `last` looks like `reduce` here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import iscoroutinefunction
from typing import Any, Generic, Literal, NamedTuple, NoReturn, TypeAlias, TypeVar, get_args

from reactivex import Observable, abc, never
from reactivex.disposable import Disposable
from reactivex.internal import default_error, noop

from rxdelta.core import InvalidValueError, check_word

T = TypeVar("T")
R = TypeVar("R")

Emits: TypeAlias = Literal[
    "events", "chunks", "texts", "items", "frames", "streams", "snapshots", "newest", "same"
]
"""The values of an operator: one of the pieces; `snapshots`; the `newest` values; or the `same` as its source."""

_PIECES = {
    "events": ("events", "put scan_deltas() in front of {by}, or pace the events with compact_deltas()"),
    "chunks": ("chunks", "put decode() and scan_deltas() in front of {by}"),
    "texts": (
        "pieces of text",
        "pace the events in front of {of}, or join the pieces in front of {by} with ops.scan(operator.add)",
    ),
    "items": ("items", "leave {by} out"),
    "frames": ("frames", "pace the events in front of {of} with compact_deltas()"),
    "streams": ("streams", "pace each stream by itself: per_block(lambda block: block.pipe({by}(…)))"),
}
_SHARED = "share the events in front of {of} with share_events()"
_CURES = {  # other ones
    "share_latest": {
        "events": "use share_events(), or put scan_deltas() in front",
        "texts": _SHARED,
        "items": _SHARED,
        "frames": _SHARED,
        "streams": _SHARED,
    },
    'overflow="latest"': {
        "events": "put scan_deltas() in front, or read the events with overflow='join'",
        "streams": "read each stream by itself: per_block(lambda block: block.pipe(throttle_latest(…)))",
    },
}


_LESS_OFTEN = "for fewer updates put throttle_latest() or debounce_latest() behind scan_deltas()"
_ON_SNAPSHOTS = (
    "an event means nothing without those before it, so choose among snapshots, behind scan_deltas()"
)
_EARLIER = "to end a reply early use until_stopped() or ops.take_while()"
_NO_REPETITION = "two equal events are two pieces of the reply, so leave it out"

_BY_TIME = dict.fromkeys(("sample", "throttle_first", "throttle_with_mapper"), _LESS_OFTEN) | {
    "debounce": f"throttle_with_timeout() is another name of it; {_LESS_OFTEN}"
}
_THE_BEGINNING = dict.fromkeys(
    ("skip", "skip_while", "skip_until", "skip_until_with_time", "skip_with_time"), _ON_SNAPSHOTS
)
_OTHERS = {
    **dict.fromkeys(("take_last", "take_last_with_time", "element_at"), _ON_SNAPSHOTS),
    **dict.fromkeys(("skip_last", "skip_last_with_time"), _EARLIER),
    **dict.fromkeys(("distinct", "distinct_until_changed"), _NO_REPETITION),
}


class Mark(NamedTuple):
    """The kind of values of our own Observable, and the operator that made them so."""

    emits: Emits
    operator: str
    headers: Mapping[str, str] | None = None  # of the response that sends the frames


def mark_of(source: Observable[Any]) -> Mark | None:
    mark: Mark | None = getattr(source, "_mark", None)
    return mark


def marked(operator: str, emits: Emits | None, source: Observable[Any] | None) -> Mark | None:
    """The mark of an operator's output.

    Raises:
        InvalidValueError: `emits` is an unknown word.
    """
    if emits is not None:
        check_word("emits", emits, get_args(Emits))
    if emits == "same":
        return None if source is None else mark_of(source)
    return None if emits is None else Mark(emits, operator)


def refuse_pieces(source: Observable[Any], by: str) -> None:
    """Refuse a source whose values aren't replaced by newer ones, for an operator or a reader that keeps the newest.

    Raises:
        InvalidValueError: It is one.
    """
    mark = mark_of(source)
    if mark is not None and mark.emits in _PIECES:
        raise _error(by, f"{_PIECES[mark.emits][0]} of {mark.operator}()", mark.emits, f"{mark.operator}()")


def piece_error(by: str, value: object, emits: Emits) -> InvalidValueError:
    """The error for a value that is a piece by its type."""
    name = type(value).__name__
    article = "an" if name[0] in "AEIO" else "a"  # "a UsageUpdate"
    error = _error(by, f"{article} {name}", emits, "the operator that makes them")
    error.field, error.value = "value", value
    return error


def _error(by: str, what: str, emits: str, of: str) -> InvalidValueError:
    cure = _CURES.get(by, {}).get(emits, _PIECES[emits][1])
    return InvalidValueError(
        f"{by} would drop {what}, which no later value contains; {cure.format(by=by, of=of)}; "
        "or say with key= which value replaces which",
        field="source",
    )


def keeps_newest(source: Observable[Any]) -> bool:
    """Whether the operator in front keeps the newest value, and may hold it for a busy reader."""
    mark = mark_of(source)
    return mark is not None and mark.emits == "newest"


def emits_events(source: Observable[Any]) -> bool:
    """Whether the operator in front is one of ours that emits events."""
    mark = mark_of(source)
    return mark is not None and mark.emits == "events"


_NO_EVENTS = {
    "snapshots": "snapshots; give it the events in front of {of}",
    "newest": "only some of its values; give it the events, in front of scan_deltas()",
    "frames": "frames; leave out {of}, because {by} makes them itself",
    "chunks": "chunks; put decode() behind {of}",
    "texts": "pieces of text; leave out {of}",
    "items": "items; leave out {of}",
    "streams": "streams of events; put ops.merge_all() behind {of}, or use {by} on each of them",
}


def refuse_all_but_events(source: Observable[Any], by: str) -> None:
    """Refuse a source that emits something else than events, as far as the operator in front tells.

    Raises:
        InvalidValueError: It does.
    """
    mark = mark_of(source)
    if mark is not None and mark.emits in _NO_EVENTS:
        of = f"{mark.operator}()"
        wrong = _NO_EVENTS[mark.emits].format(of=of, by=by)
        raise InvalidValueError(f"{by} reads events, and {of} in front of it emits {wrong}", field="events")


def sent_with(
    operator: Callable[[Observable[T]], Observable[R]], headers: Mapping[str, str]
) -> Callable[[Observable[T]], Observable[R]]:
    """The operator, an encoder, whose output tells the headers of its protocol; see `headers_of`."""

    def apply(source: Observable[T]) -> Observable[R]:
        frames: Any = operator(source)
        frames._mark = frames._mark._replace(headers=headers)
        return frames  # type: ignore[no-any-return]

    return apply


def headers_of(encode: Callable[[Observable[Any]], Observable[Any]]) -> Mapping[str, str] | None:
    """The headers of the protocol that an encoder, or a pipeline that ends with one, writes; `None` if it isn't known."""
    mark = mark_of(encode(never()))
    return None if mark is None else mark.headers


def refuse_newest(source: Observable[Any], by: str) -> None:
    """Refuse a source that has dropped values for newer ones, for an operator that needs every value.

    Raises:
        InvalidValueError: It is one.
    """
    _refuse_droppers(source, by, _BY_TIME)
    mark = mark_of(source)
    if mark is not None and keeps_newest(source):
        raise InvalidValueError(
            f"{by}() needs every value, and {mark.operator}() in front of it drops those that a newer one replaces; "
            f"put {mark.operator}() behind scan_deltas()",
            field="source",
        )


def all_events(
    by: str,
    operator: Callable[[Observable[T]], Observable[R]],
    *,
    goes_on: bool = False,
    needs_all: bool = False,
) -> Callable[[Observable[T]], Observable[R]]:
    """The operator, a reader of events, which refuses Rx's operators that drop some of them.

    Args:
        by: The operator's name in messages.
        operator: The operator.
        goes_on: Whether it has the beginning already, so that the source may lack it.
        needs_all: Whether it also refuses a source that keeps only the newest value.

    Raises:
        InvalidValueError: By the result, for a source that drops events.
    """
    droppers = {**_BY_TIME, **({} if goes_on else _THE_BEGINNING), **_OTHERS}

    def apply(source: Observable[T]) -> Observable[R]:
        _refuse_droppers(source, by, droppers)
        if needs_all:
            refuse_newest(source, by)
        return operator(source)

    return apply


def _refuse_droppers(source: Observable[Any], by: str, cures: Mapping[str, str]) -> None:
    operator = _rx_operator(source)
    if operator in cures:
        raise InvalidValueError(
            f"{by}() needs every value, and ops.{operator}() in front of it drops some; {cures[operator]}",
            field="source",
        )


def _rx_operator(source: Observable[Any]) -> str:
    """The operator of Rx that has made this Observable, by the function that subscribes it; `""` if none has."""
    subscribe = getattr(source, "_subscribe", None)
    module: str = getattr(subscribe, "__module__", None) or ""
    if not module.startswith("reactivex.operators."):
        return ""
    function: str = getattr(subscribe, "__qualname__", "").partition(".")[0]
    return function.removesuffix("_").removesuffix("_observable").removesuffix("_or_default")


T_co = TypeVar("T_co", covariant=True)


class Taker(NamedTuple, Generic[T]):
    """The functions of a subscriber."""

    on_next: Callable[[T], None]
    on_error: Callable[[Exception], None]
    on_completed: Callable[[], None]


def _named(source: Observable[object]) -> str:
    """The operator of Rx, or the function of ours, that has made an Observable whose source isn't known."""
    if isinstance(source, OwnObservable):
        return str(getattr(source, "_name", None) or type(source).__name__)
    subscribe = getattr(source, "_subscribe", None)
    module: str = getattr(subscribe, "__module__", None) or ""
    function: str = getattr(subscribe, "__qualname__", "").partition(".")[0].strip("_")
    if module.startswith("reactivex.operators."):
        return f"… | ops.{function}(…)"
    return f"rd.{function}(…)" if module.startswith("rxdelta.") else "…"


class OwnObservable(Observable[T_co]):
    """An Observable that is marked with what it emits, and that refuses to be read by a loop.

    In Rx `observable[n]` is the observable of one value, so Python would let a plain `for` run for ever, without a value.
    """

    _mark: Mark | None = None
    _made: tuple[object, Observable[object]] | None = None
    """The operator that has made it, and the source of that."""

    def subscribe(
        self,
        on_next: abc.ObserverBase[T_co] | abc.OnNext[T_co] | None = None,
        on_error: abc.OnError | None = None,
        on_completed: abc.OnCompleted | None = None,
        *,
        scheduler: abc.SchedulerBase | None = None,
    ) -> abc.DisposableBase:
        """Subscribe functions, or an observer, as in Rx.

        Raises:
            InvalidValueError: `on_next` is a coroutine function, which would be called without running.
        """
        take: Any = on_next
        if iscoroutinefunction(take):
            raise InvalidValueError(
                "subscribe() calls its function and awaits nothing, so a coroutine function never runs: "
                "write await rd.for_each(observable, fn)",
                field="on_next",
                value=take,
            )
        if callable(getattr(take, "on_next", None)):
            take, on_error, on_completed = take.on_next, take.on_error, take.on_completed
        return self._start(Taker(take or noop, on_error or default_error, on_completed or noop), scheduler)

    def _start(self, taker: Taker[T_co], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        """Begin a subscription."""
        raise NotImplementedError

    def __repr__(self) -> str:
        operators, source = pipeline_of(self)
        steps = [repr(operator)[1:-1] for operator in reversed(operators)]
        return f"<Observable of {' | '.join([_named(source), *steps])}>"

    def __iter__(self) -> NoReturn:
        raise InvalidValueError(
            "a `for` loop can't read an Observable: write `with rd.to_iterable(observable) as values:` and loop over "
            "values, or rd.stream(chunks) for a whole reply",
            field="source",
        )

    def __aiter__(self) -> NoReturn:
        raise InvalidValueError(
            "an `async for` loop can't read an Observable: write `async with rd.to_async_iterable(observable) as values:` "
            "and loop over values, or rd.stream(chunks) for a whole reply",
            field="source",
        )


def pipeline_of(source: Observable[Any]) -> tuple[list[Any], Observable[Any]]:
    """Our operators that have made an Observable, the last one first, and what they were applied to, as far as it shows."""
    operators: list[Any] = []
    while isinstance(source, OwnObservable) and source._made is not None:
        operator, source = source._made
        operators.append(operator)
    return operators, source


class SourceObservable(OwnObservable[T]):
    """A source that ends once, and stops when it is disposed, so that values don't need Rx's wrapper of an observer.

    Args:
        name: The name in `repr`.
        begin: Begins to call a subscriber, and returns what stops it. An exception becomes `on_error`.
    """

    def __init__(
        self, name: str, begin: Callable[[Taker[T], abc.SchedulerBase | None], abc.DisposableBase]
    ) -> None:
        super().__init__()
        self._name = name
        self._begin = begin

    def _start(self, taker: Taker[T], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        try:
            return self._begin(taker, scheduler)
        except Exception as error:
            taker.on_error(error)
            return Disposable()
