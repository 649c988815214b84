"""Nothing is shown before its check has passed, which may answer later."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
from reactivex import Observable, operators as ops
from reactivex.disposable import Disposable, SerialDisposable

from rxdelta.core import GuardError, InvalidValueError, check_function, concerns_any_run
from rxdelta.core.events import (
    EVENT_TYPES,
    BlockFinish,
    Event,
    MessageFinish,
    MessageInterrupted,
    StreamError,
    UsageUpdate,
)
from rxdelta.operators.text.rewriting import Rewriting, Step, refused
from rxdelta.operators.text.text import Lanes, Text, Units, units_of
from rxdelta.runtime import Sink, all_events, call_on, is_interrupt, lift, operator_maker, running_loop

if TYPE_CHECKING:
    from rxdelta.cutting import By

Check: TypeAlias = Callable[[str], bool | Awaitable[bool] | Observable[bool]]
OnHit: TypeAlias = str | Callable[[str], str]

_LOG = logging.getLogger("rxdelta")

_WHY = "a check refused the call"
_WHY_OPEN = "a check ended the reply while the call was open"


@operator_maker
def guard(
    check: Check,
    by: By = "sentence",
    *,
    on_hit: OnHit = "stop",
    context: int | None = None,
    reasoning: bool = True,
    arguments: bool = True,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, but nothing of a unit of text is emitted before its check has passed.

    ::

        events   The   _tide _is _bad  _now|
        check()        -     -   <True>|
        check()                  -     -   <True>|
        check()                            -     -<False>                         |
                 guard(check, "word")
        events   (text)-     -   The_  -   tide_ -[(finish:content_filter,guard)|]

    `check(text)` gets the text of the block so far, as it came, the new unit last, and returns whether it may pass: a
    boolean, or an awaitable or Observable of one, whose first value counts. An exception, an Observable without a value,
    and what is neither true nor false, such as a text, a score, a service's reply or a thread's future, mean no; the log
    says so. Units are checked one after another, and the next events wait. While a check runs, the source waits, too, as
    it does for a slow reader. A source that doesn't wait for readers is held in memory.

    An end that breaks the reply off waits for no check: an error, an error event, an interruption. The check that runs is then
    cancelled. The unit and what waits behind it are dropped, but for usage and events without a reply, such as `Custom`.
    The source's completion waits. A check that may never answer needs a limit of its own, or a `stall_timeout` behind.

    The arguments of a call are one unit, as JSON. The call is shown without them until they have passed. If they don't,
    it ends as an invalid call, which `run_tools` behind this operator never runs.

    An unfinished piece is dropped where the reply is cut off, since it wasn't checked. Log probabilities, which say the
    text token by token, are left out. Citations wait for the end of their text; those of a refused place are left out.
    Where a later event quotes a refused unit, or several words of it alone, that is replaced, too.

    Put it behind `retry_stream`, and in front of `run_tools`, `share_events`, `scan_deltas` and encoders: what stands in
    front has seen all. To find what two units say together, the check needs the text so far; to hide a pattern for certain
    use `redact`.

    Completes with the source, or at a hit. Each of several replies (choices, runs) ends by itself, and the stream completes
    when all that have begun are over.

    Args:
        check: Decides. It runs where the event comes; what is awaitable runs on the loop of the subscription, and is cancelled
            when the subscription ends. One that blocks would block the loop: `lambda text: asyncio.to_thread(ask, text)`.
            A plain `with rd.stream(…)` has a loop of its own for each reply: give a client that needs none.
        by: The kind of units, as in `map_text`. A smaller one is shown earlier, and checked more often.
        on_hit: The reaction to a check that says no. `stop`: the message is complete, with the finish reason
            `content_filter`, and nothing comes behind it. `error`: the stream ends with `GuardError`. Any other text, or
            what a function of the unit returns, stands in the unit's place, and the reply goes on; a call becomes
            invalid. The next checks still get the refused unit, as part of the text so far, unless `context` is 0.
        context: How many characters in front of the unit the check gets; by default all of the block. With a bound, the work
            is linear in a long text.
        reasoning: Also reasoning.
        arguments: Also the arguments of calls.

    Raises:
        InvalidValueError: At once, if `check` is no function, for other units, for an `on_hit` that is neither text nor
            function, and for a `context` that is no number.

    Errors: The source's own, at once, without the reply so far as it was in front; `GuardError`; the exception of
    `on_hit`. `InvalidValueError` if `on_hit` returns no text, for an asynchronous check without a running asyncio loop,
    and for a value that is no event; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "It is warm. "})
        >>> events = rx.of(start, rd.events.TextDelta(0, "Ask Bob. Bye."), rd.events.MessageFinish("stop"))
        >>> reply = events.pipe(rd.guard(lambda text: "Bob" not in text), rd.scan_deltas()).run()
        >>> reply.text, reply.finish_reason
        ('It is warm. ', 'content_filter')
    """
    check_function("check", check, "a function of a text")
    hit: Any = on_hit
    if not isinstance(hit, str) and not callable(hit):
        raise InvalidValueError.of(
            [("on_hit", hit, "must be 'stop', 'error', another text, or a function of the unit")]
        )
    given: Any = context
    if given is not None and (isinstance(given, bool) or not isinstance(given, int) or given < 0):
        raise InvalidValueError.of([("context", given, "must be a number of characters, from 0")])
    units, whole = units_of(by), units_of("block")

    def begin(sink: Sink[Event]) -> _Guard:
        replaced = _Replaced()
        rewriting = Rewriting(
            sink,
            lambda: _Checked(units(None), context),
            reasoning=reasoning,
            arguments=(lambda: _Checked(whole(None), context)) if arguments else None,
            apart=True,
            drops=True,
            elsewhere=replaced,
            cites_last=True,
        )
        return _Guard(sink, check, hit, rewriting, replaced)

    guarding: Callable[[Observable[Event]], Observable[Event]] = lift("guard", begin, emits="events")
    return all_events("guard", guarding, needs_all=True)


class _Checked:
    """The filter of one text: its units, and what the checks of them have said."""

    __slots__ = ("_at", "_context", "_so_far", "changes", "close", "feed")

    def __init__(self, units: Units, context: int | None) -> None:
        self.feed, self.close = units.feed, units.close
        self._context = context
        self.changes: list[tuple[int, int, int]] = []
        self._at = 0  # of the next unit
        self._so_far = ""

    def in_context(self, unit: str) -> str:
        """The text with which the next unit is checked."""
        so_far = self._so_far
        if self._context is not None:
            so_far = so_far[max(0, len(so_far) - self._context) :]
        self._so_far = so_far + unit
        return self._so_far

    def decide(self, unit: str, instead: str | None) -> None:
        """Note that the next unit has passed, or what stands in its place."""
        if instead is not None:
            self.changes.append((self._at, len(unit), len(instead)))
        self._at += len(unit)


class _Replaced:
    """The refused text, where the reply quotes it later."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}  # by the unit: a reply may repeat it without end

    def all_of(self, text: str) -> str:
        for unit, instead in self.found.items():
            text = text.replace(unit, instead)
            if text in unit and len(text.split()) > 1:  # one word may be a name of the protocol
                return instead
        return text

    all_certain = all_of


class _Guard:
    """One subscription's state. It handles one event at a time, and waits in it for each check."""

    def __init__(
        self, sink: Sink[Event], check: Check, on_hit: Any, rewriting: Rewriting, replaced: _Replaced
    ) -> None:
        self._sink = sink
        self._on_hit = on_hit
        self._rewriting = rewriting
        self._replaced = replaced
        self._room = sink.room()
        self._checks = Checks(sink, check, self._go_on)
        self._queue: deque[Event | Exception | None] = deque()  # `None` is the end
        self._work: Generator[str, bool, None] | None = None  # on the item that is handled
        self._item: Event | Exception | None = None
        self._lanes = Lanes()

    def on_next(self, event: Event) -> None:
        if type(event) not in EVENT_TYPES:
            raise self._sink.refusal(event)
        self._take(event)

    def on_error(self, error: Exception) -> None:
        self._take(error)

    def on_completed(self) -> None:
        self._take(None)

    def _take(self, item: Event | Exception | None) -> None:
        if self._work is not None and (isinstance(item, Exception) or type(item) in _BREAKS_OFF):
            self._drop(item)
        self._queue.append(item)
        if self._work is None:
            self._go_on()

    def _go_on(self, passes: bool | None = None) -> None:
        """Handle what waits, with the answer of the check that was waited for, until the next answer that comes later."""
        while not self._sink.closed:
            work: Any = self._work
            self._work = None  # until it waits: an exception ends it
            if work is None:
                if not self._queue:
                    self._room.open()
                    return
                self._item = self._queue.popleft()
                work, passes = self._handled(self._item), None
            try:
                text: str = work.send(passes)
            except StopIteration:
                continue
            passes = self._checks.ask(text)
            self._work = work
            if passes is None:
                self._room.close()
                return

    def _drop(self, end: Any) -> None:
        """Forget the check that runs, and what waits, of the replies that are broken off."""
        self._queue = deque(item for item in self._queue if not _is_lost(item, end))
        if _is_lost(self._item, end):
            self._checks.leave()
            self._work = None

    def _handled(self, item: Event | Exception | None) -> Generator[str, bool, None]:
        if item is None:
            self._sink.on_completed()
        elif isinstance(item, Exception):
            self._sink.on_error(self._rewriting.fail(item)[1])
        elif self._lanes.begin(item) not in self._lanes.ended:
            for step in self._rewriting.steps(item):
                if not (yield from self._shown(step)):
                    return

    def _shown(self, step: Step) -> Generator[str, bool, bool]:
        """Emit a step, each unit when it has passed. Return whether the reply goes on."""
        shown: list[str] = []
        for piece in step.pieces:
            text: Any = step.text
            passes = yield text.filter.in_context(piece)
            instead = piece if passes else self._hit(step, text, piece)
            if instead is None:
                return False
            if not passes and text.kind == "arguments":
                return True
            text.filter.decide(piece, None if passes else instead)
            if step.inside:
                shown.append(instead)
            else:
                self._emit(self._rewriting.events(Step(None, text), (instead,)))
        self._emit(self._rewriting.events(step, shown))
        return True

    def _hit(self, step: Step, text: Text, piece: str) -> str | None:
        """The text in the place of a refused unit; `None` if its reply has ended."""
        on_hit = self._on_hit
        if on_hit == "error":
            self._sink.on_error(GuardError("a check refused a part of the reply"))
            return None
        if text.kind == "arguments":
            self._sink.on_next(_refused_call(step, text))
        if on_hit == "stop":
            self._stop(text)
            return None
        instead = on_hit(piece) if callable(on_hit) else on_hit
        if not isinstance(instead, str):
            raise InvalidValueError.of([("on_hit", instead, "must return a text")])
        if piece.strip():
            self._replaced.found[piece.strip()] = instead.strip()
        return instead

    def _stop(self, text: Text) -> None:
        run_id, choice = text.lane
        refused = text.index if text.kind == "arguments" else None
        self._emit(self._rewriting.ending(text.lane, _WHY_OPEN, unseen=True, but=refused))
        self._sink.on_next(MessageFinish("content_filter", "guard", choice=choice, run_id=run_id))
        self._lanes.end(text.lane)
        if self._lanes.all_over():
            self._sink.on_completed()

    def _emit(self, events: Any) -> None:
        for event in events:
            self._sink.on_next(event)


_BREAKS_OFF = frozenset([StreamError, MessageInterrupted])
"""The events that don't wait for a check, as the source's error doesn't."""


def _is_lost(item: Any, end: Any) -> bool:
    """Whether what waits is lost by this end: it is of a reply that is broken off, and says more than its usage."""
    choice = getattr(item, "choice", None)
    if choice is None or type(item) is UsageUpdate:
        return False
    if isinstance(end, Exception):
        return True
    is_of_run = concerns_any_run(end) or end.run_id == item.run_id
    return is_of_run and (type(end) is StreamError or end.choice in (None, choice))


def _refused_call(step: Step, text: Text) -> Event:
    """The end of a call whose arguments were refused."""
    end: Any = refused(text.index, text.lane, _WHY)
    content = step.event.content if isinstance(step.event, BlockFinish) else None
    whole: Event = end if content is None else attrs.evolve(end, content={**content, **end.content})
    return whole


class Checks:
    """Asks a check, and passes its answer on: at once, or later as a turn of the sink. One check runs at a time.

    A check that raises, ends without an answer, or returns what is neither true nor false says no. An awaitable runs
    on the loop that was running at the subscription. It is cancelled when the subscription ends.
    """

    def __init__(
        self, sink: Sink[Any], check: Callable[[str], object], answered: Callable[[bool], object]
    ) -> None:
        self._sink = sink
        self._check = check
        self._answered = answered
        self._loop = running_loop()
        self._asked: object = None  # by which an answer is known that comes too late
        self._running = SerialDisposable()
        sink.own(self._running)

    def ask(self, text: str) -> bool | None:
        """Return the answer, or `None` if it comes later.

        Raises:
            InvalidValueError: The answer must be awaited, and there is no loop.
        """
        try:
            answer = self._check(text)
            if not isinstance(answer, Observable) and not inspect.isawaitable(answer):
                return _truth(answer)
        except BaseException as error:
            return _refused_by(error)
        if isinstance(answer, Observable):
            answers: Observable[object] = answer  # pyright: ignore[reportUnknownVariableType]
            self._asked = asked = _Answer(self, self._sink)
            self._running.disposable = self._sink.subscribe(answers.pipe(ops.take(1)), asked)
            return None
        loop = self._loop
        if loop is None or loop.is_closed():
            if inspect.iscoroutine(answer):
                answer.close()
            raise InvalidValueError(
                "an asynchronous check needs a running asyncio loop: read the pipeline inside a coroutine, or with "
                "to_iterable()",
                field="check",
            )
        self._asked = task = _Task(lambda ended: self._sink.run(self._ended, task, ended))
        self._running.disposable = Disposable(lambda: call_on(loop, task.cancel))
        call_on(loop, lambda: task.begin(loop, answer))
        return None

    def leave(self) -> None:
        """Cancel the check that runs. Its answer is ignored."""
        self._asked = None
        self._running.disposable = Disposable()

    def tell(self, asked: object, passes: bool) -> None:
        """Pass an answer on in a turn, unless it isn't waited for any more."""
        if asked is self._asked:
            self.leave()
            self._answered(passes)

    def _ended(self, asked: object, task: asyncio.Task[object]) -> None:
        try:
            passes = _truth(task.result())
        except BaseException as error:
            passes = _refused_by(error)
        self.tell(asked, passes)


def _truth(answer: object) -> bool:
    """Whether the answer is yes.

    No answer is what is true whatever it says: a service's reply or its JSON, a model's "no", a score, a thread's future.
    """
    kind = type(answer)
    try:
        is_score = isinstance(answer, (int, float)) and answer not in (0, 1)
        if answer is not None and (is_score or not hasattr(kind, "__bool__")):
            return _refused(f"returned a {kind.__name__}, which is neither true nor false")
        return bool(answer)
    except Exception as error:
        return _refused(f"returned a {kind.__name__}, whose truth raised {type(error).__name__}")


def _refused_by(error: BaseException) -> bool:
    """No, unless the error ends the program: nothing would end a reply whose check has no answer."""
    if is_interrupt(error):
        raise error
    return _refused(f"raised {type(error).__name__}")


def _refused(why: str) -> bool:
    # Without the text of an exception, which may quote what nobody is to see.
    _LOG.warning("the check of guard() %s, which counts as no", why)
    return False


async def _value(answer: Awaitable[object]) -> object:
    return await answer


class _Task:
    """A task that may be cancelled before it has begun. All happens on its loop."""

    def __init__(self, ended: Callable[[asyncio.Task[object]], object]) -> None:
        self._ended = ended
        self._task: asyncio.Task[object] | None = None
        self._is_cancelled = False

    def begin(self, loop: asyncio.AbstractEventLoop, answer: Awaitable[object]) -> None:
        # A coroutine itself becomes the task: in `_value` it would stay unawaited if cancelled at once.
        if not self._is_cancelled:
            self._task = loop.create_task(answer if inspect.iscoroutine(answer) else _value(answer))
            self._task.add_done_callback(self._end)
        elif inspect.iscoroutine(answer):
            answer.close()

    def _end(self, task: asyncio.Task[object]) -> None:
        if not self._is_cancelled:
            self._ended(task)
        elif not task.cancelled():
            task.exception()  # nobody else looks at it

    def cancel(self) -> None:
        self._is_cancelled = True
        if self._task is not None:
            self._task.cancel()


class _Answer:
    """The first value of an Observable is the answer."""

    def __init__(self, checks: Checks, sink: Sink[Any]) -> None:
        self._checks = checks
        self._sink = sink
        self._is_over = False

    def on_next(self, passes: object) -> None:
        self._is_over = True
        self._checks.tell(self, _truth(passes))

    def on_error(self, error: Exception) -> None:
        if self._is_over:  # it is that of our own code, which took the answer
            self._sink.on_error(error)
        else:
            self._checks.tell(self, _refused(f"failed with {type(error).__name__}"))

    def on_completed(self) -> None:
        if not self._is_over:
            self._checks.tell(self, _refused("completed without an answer"))
