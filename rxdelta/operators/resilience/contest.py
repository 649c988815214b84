"""The contest of several sources for one reply: the first with content gives it. Shared by `fallback` and `race`."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias

from reactivex import Observable, abc
from reactivex.disposable import Disposable

from rxdelta.core import (
    ARGUMENT_FIELDS,
    PIECE_FIELDS,
    TEXT_FIELDS,
    Event,
    InvalidValueError,
    LimitExceededError,
    described,
    quote,
    refusal,
)
from rxdelta.core.events import EVENT_TYPES, BlockDelta, BlockFinish, BlockStart, MessageFinish, ToolUpdate
from rxdelta.runtime import (
    Bounds,
    OwnObservable,
    SessionScheduler,
    Sink,
    Taker,
    Timer,
    create,
    refuse_all_but_events,
    report,
    within,
)

if TYPE_CHECKING:
    from typing_extensions import TypeIs


_LOG = logging.getLogger("rxdelta")

Source: TypeAlias = Observable[Event] | Callable[[], Observable[Event]]
"""A stream of events, or a function that makes a request and returns its stream."""

_WANTED = "must be an Observable of events, or a function without arguments that returns one"
_PROSE = frozenset(TEXT_FIELDS).union(*TEXT_FIELDS.values())  # types, and the fields that have their text
_GROWN = _PROSE.union(["data", "transcript", "name", "output"], ARGUMENT_FIELDS)  # by a `BlockDelta`
_PLACE = ("type", "index")
_FEW = 1_000  # events that any source may emit before its first content, however few blocks are allowed


def contest(
    name: str, sources: Sequence[Source], after: float | None, scheduler: abc.SchedulerBase | None = None
) -> Observable[Event]:
    """The events of the first of these sources that has content.

    Args:
        name: The name in messages.
        sources: Those that are asked, in this order.
        after: The seconds before the next one is asked as well; `None` asks it only after a failure.
        scheduler: The scheduler of these seconds.

    Raises:
        InvalidValueError: There is no source, or one that can't be a stream of events.
    """
    if not sources:
        raise InvalidValueError(f"{name} needs at least one source", field="sources")
    for number, source in enumerate(sources):
        _check(name, number, source)

    def begin(sink: Sink[Event]) -> None:
        timer = sink.timer(sink.clock(scheduler)) if after and len(sources) > 1 else None
        _Contest(sink, sources, after, timer).begin()

    return create(name, begin, emits="events")


def _check(name: str, number: int, source: Any) -> None:
    if _is_observable(source):
        refuse_all_but_events(source, f"{name}()")
    elif not _is_function(source):
        advice = "rd.from_async_iterable() or rd.from_iterable(), then decode(), make one of chunks"
        if type(source) in (list, tuple):
            advice = f"for a list of sources write {name}(*sources)"
        raise InvalidValueError.of([(f"sources[{number}]", source, _WANTED, advice)])


def _is_observable(source: Source) -> TypeIs[Observable[Event]]:
    return isinstance(source, Observable)


def _is_function(source: Any) -> bool:
    """Whether it can be called without arguments, and then returns no coroutine."""
    if not callable(source) or inspect.iscoroutinefunction(source) or inspect.isasyncgenfunction(source):
        return False
    try:
        inspect.signature(source).bind()
    except TypeError:
        return False
    except ValueError:  # a builtin without a signature
        return True
    return True


def _has_content(event: Event) -> bool:
    """Whether the event has text, reasoning, a call or other content: something of the reply itself."""
    piece = PIECE_FIELDS.get(type(event))
    if piece is not None:
        return bool(getattr(event, piece))
    if isinstance(event, BlockDelta):
        return any(event.fields.get(field) for field in _GROWN)
    if isinstance(event, (BlockStart, BlockFinish)):
        content: Mapping[str, Any] = event.content or {}
        if content.get("type", "text") in _PROSE:  # its id, or a signature, says nothing
            return any(content.get(field) for field in _PROSE)
        return any(value for field, value in content.items() if field not in _PLACE)
    return isinstance(event, ToolUpdate)


class _Contest:
    """One subscription's state. All but `_ask` happens in turns: a source that is asked may emit at once."""

    def __init__(
        self, sink: Sink[Event], sources: Sequence[Source], after: float | None, timer: Timer | None
    ) -> None:
        self.sink = sink
        self._after = after
        self._timer = timer
        self._context = copy_context()  # the subscriber's: all requests are made in it
        self._waiting = deque(enumerate(sources))
        self._contestants: list[_Contestant] = []
        self._open = len(sources)  # that may still give a better reply than an empty one
        self._empty: list[_Contestant] = []
        self._failures: list[tuple[int, Exception]] = []
        self.winner: _Contestant | None = None

    def begin(self) -> None:
        self._ask()
        while self._after == 0 and self._waiting and not self._is_decided():
            self._ask()

    def _is_decided(self) -> bool:
        return self.winner is not None or self.sink.closed

    def _ask(self) -> None:
        """Ask the next source, if there is one and none has won. It runs on any thread, and maybe on two at once."""
        if self._is_decided():
            return
        try:
            number, source = self._waiting.popleft()
        except IndexError:
            return
        if self._timer is not None and self._waiting:
            self._timer.start(self._after or 0.0, self.sink.effect, self._ask)
        one = _Contestant(self, number)
        self._contestants.append(one)
        try:
            self._context.copy().run(one.subscribe, source)
        except Exception as error:
            if self.sink.raised is not None:
                raise
            self.sink.turn(one.on_error, error)
        if self.winner not in (None, one):  # decided while it was being subscribed
            self._close(one)

    def win(self, winner: _Contestant) -> None:
        self.winner = winner
        for other in list(self._contestants):
            if other is not winner:
                self._close(other)
        self._contestants.clear()
        self._empty.clear()
        for number, error in self._failures:
            # Without the text of an exception, which may quote what nobody is to see.
            _LOG.warning(
                "source %d of %s failed with %s, and another one gives the reply",
                number + 1,
                self.sink.name,
                type(error).__name__,
            )
        self._failures.clear()
        self.sink.bounds.follow(winner.bounds)
        winner.go_on()

    def _close(self, loser: _Contestant) -> None:
        loser.held.clear()
        try:
            loser.upstream.dispose()
        except Exception as error:  # the reply is another's, and goes on
            report(error, f"a source of {self.sink.name} that has lost raised when it was disposed")

    def finished(self, one: _Contestant) -> None:
        """The reply of this source has ended without content. The source itself may go on, and win."""
        if one not in self._empty:
            self._empty.append(one)
            self._settle()

    def failed(self, one: _Contestant, error: Exception) -> None:
        one.held.clear()
        self._failures.append((one.number, error))
        if one in self._empty:
            self._empty.remove(one)
        else:
            self._settle()

    def _settle(self) -> None:
        """One source less may give a better reply than an empty one."""
        self._open -= 1
        if self._open:
            self.sink.effect(self._ask)
        elif self._empty:
            self.win(self._empty[0])
        else:
            self.sink.on_error(self._failure())

    def _failure(self) -> Exception:
        """The last error, which tells the others in its notes."""
        *others, (_, last) = self._failures
        for number, error in others:
            note = quote(f"source {number + 1} of {self.sink.name} failed before: {described(error)}")
            if error is not last and note not in getattr(last, "__notes__", ()):
                last.add_note(note)
        return last


class _Contestant:
    """One source that has been asked, and its events before the first content."""

    def __init__(self, contest: _Contest, number: int) -> None:
        self._contest = contest
        self._sink = contest.sink
        self.number = number
        self.bounds = contest.sink.bounds.apart()
        self.upstream: abc.DisposableBase = Disposable()
        self.held: list[Event] = []
        self._completed = False
        self._failed = False

    def subscribe(self, source: Source) -> None:
        events = source if _is_observable(source) else source()
        if not _is_observable(events):
            wanted = "must give an Observable of events; decode() makes one"
            raise InvalidValueError.of([(f"sources[{self.number}]", events, wanted)])
        refuse_all_but_events(events, f"{self._sink.name}()")
        self.upstream = self._sink.subscribe(_Apart(events, self.bounds), self)

    def on_next(self, event: Event) -> None:
        winner = self._contest.winner
        if winner is self:
            if type(event) not in EVENT_TYPES:
                raise self._sink.refusal(event)
            self._sink.on_next(event)
        elif winner is None:
            self._hold(event)

    def _hold(self, event: Event) -> None:
        failure = refusal(event, self._sink.name)
        if failure is not None:
            raise failure
        most = max(_FEW, self.bounds.limits.blocks)
        if len(self.held) >= most:
            raise LimitExceededError.of("blocks", most, "the number of events before the first content")
        self.held.append(event)
        if _has_content(event):
            self._contest.win(self)
        elif isinstance(event, MessageFinish):
            self._contest.finished(self)

    def on_error(self, error: Exception) -> None:
        winner = self._contest.winner
        if winner is self:
            self._sink.on_error(error)
        elif winner is None and not (self._completed or self._failed):
            self._failed = True
            self._contest.failed(self, error)

    def on_completed(self) -> None:
        winner = self._contest.winner
        self._completed = True
        if winner is self:
            self._sink.on_completed()
        elif winner is None:
            self._contest.finished(self)

    def go_on(self) -> None:
        """It has won: emit what has been held, and the end if it has ended."""
        held, self.held = self.held, []
        for event in held:
            self._sink.on_next(event)
        if self._completed:
            self._sink.on_completed()


class _Apart(OwnObservable[Event]):
    """A source whose operators tell these bounds what holds behind them, because it may lose."""

    def __init__(self, source: Observable[Event], bounds: Bounds) -> None:
        super().__init__()
        self._source = source
        self._bounds = bounds

    def _start(self, taker: Taker[Event], scheduler: abc.SchedulerBase | None) -> abc.DisposableBase:
        if isinstance(scheduler, SessionScheduler):
            scheduler = SessionScheduler(scheduler.session, scheduler, self._bounds)
        with within(self._bounds):
            return self._source.subscribe(*taker, scheduler=scheduler)
