"""One message from repeated requests, without repeated text."""

from __future__ import annotations

from contextvars import copy_context
from functools import cached_property
from typing import TYPE_CHECKING, Literal, overload

import attrs
from reactivex import Observable, abc

from rxdelta.core import (
    ByChoice,
    Event,
    Fold,
    IncompleteMessageError,
    InvalidValueError,
    Limits,
    ProviderError,
    RxDeltaError,
    Snapshot,
    described,
    is_over,
    refusal,
)
from rxdelta.core.events import AttemptReset
from rxdelta.operators.resilience.continuation import Continuation, can_be_continued
from rxdelta.operators.resilience.failures import check_wait, exponential_backoff, is_transient
from rxdelta.runtime import create

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rxdelta.runtime import Sink

__all__ = ["retry_stream"]


@overload
def retry_stream(
    factory: Callable[[], Observable[Event]],
    attempts: int = 3,
    backoff: Callable[[int, Exception], float] | None = None,
    resume: Literal[False] = False,
    *,
    retry_if: Callable[[Exception], bool] = is_transient,
    repeat_calls: bool = False,
    limits: Limits | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Event]: ...
@overload
def retry_stream(
    factory: Callable[[Snapshot | None], Observable[Event]],
    attempts: int = 3,
    backoff: Callable[[int, Exception], float] | None = None,
    *,
    resume: Literal[True],
    retry_if: Callable[[Exception], bool] = is_transient,
    repeat_calls: bool = False,
    limits: Limits | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Event]: ...
@overload
def retry_stream(
    factory: Callable[[Snapshot | None], Observable[Event]],
    attempts: int,
    backoff: Callable[[int, Exception], float] | None,
    resume: Literal[True],
    *,
    retry_if: Callable[[Exception], bool] = is_transient,
    repeat_calls: bool = False,
    limits: Limits | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Event]: ...
def retry_stream(
    factory: Callable[..., Observable[Event]],
    attempts: int = 3,
    backoff: Callable[[int, Exception], float] | None = None,
    resume: bool = False,
    *,
    retry_if: Callable[[Exception], bool] = is_transient,
    repeat_calls: bool = False,
    limits: Limits | None = None,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Event]:
    """Emit the events of one message, from as many requests as needed.

    The first request is made by the subscription. After a failure, and the wait that `backoff` returns, the next one
    is made. Each event is emitted at once. A failed attempt's content stays until the next attempt begins:

    - Starting over emits an `AttemptReset`: `scan_deltas` begins afresh, and the failed attempt's usage stays in
      `total_usage`.
    - With `resume`, the new request continues the message. Its first text continues the text that broke off, its other
      blocks follow the existing ones, and its usage is added. There is no second `MessageStart`. It starts over if the
      message can't be continued: no content yet, a call or an image that broke off, several choices.

    Put it in front of `run_tools` and `share_events`. The factory contains the request and `decode`, and
    `stall_timeout` if a stall counts as a failure. If a failed attempt had complete calls, their tools may have run.
    Such an attempt is not started over, unless with `repeat_calls`, and its error is passed on; `resume` may continue
    it. A finished message is never requested again.

    Completes with the attempt that completes. If it does so before its message has finished, `retry_if` is called with
    an `IncompleteMessageError`; `is_transient` returns `False` for it, and the message stays incomplete.

    Args:
        factory: Makes a request: a function that returns an Observable of its events. With `resume` it is called with
            the message so far, at first `None`, and asks the provider to continue it. The part of the broken text that
            it doesn't send (some providers refuse a trailing blank) will appear twice.
        attempts: The greatest number of requests.
        backoff: Returns the seconds to wait, from the number of failures and the last error; by default
            `exponential_backoff()`.
        resume: Whether to continue the message rather than start over.
        retry_if: Whether an error is worth another try; rxdelta's errors have the reply so far in `.snapshot`.
        repeat_calls: Start over also after a complete call. Safe if no tools are run, if all tools may run twice, or
            with `run_tools(start="message")`.
        limits: The most that an attempt may make us hold; by default the pipeline's, see `decode`.
        scheduler: The scheduler of the waits. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Errors: The last attempt's own. The exception of `backoff` or `retry_if`. `InvalidValueError` for a value that is
    no event; `LimitExceededError`; `ProtocolError` for a second message. The latter three are never retried.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> ev = rd.events
        >>> began = rx.of(ev.BlockStart(0, {"type": "text", "text": "Hel"}), ev.StreamError("", "overloaded_error"))
        >>> whole = rx.of(ev.BlockStart(0, {"type": "text", "text": "Hello"}), ev.MessageFinish("stop"))
        >>> requests = iter([began, whole])
        >>> events = rd.retry_stream(lambda: next(requests), backoff=lambda failures, error: 0)
        >>> events.pipe(rd.scan_deltas()).subscribe(lambda reply: print(reply.attempt, repr(reply.text))).dispose()
        0 'Hel'
        1 ''
        1 'Hello'
        1 'Hello'
    """
    wrong: list[tuple[str, object, str]] = [
        (name, value, "must be a function")
        for name, value in (("factory", factory), ("backoff", backoff), ("retry_if", retry_if))
        if not callable(value) and (name, value) != ("backoff", None)
    ]
    if isinstance(attempts, bool) or not isinstance(attempts, int) or attempts < 1:
        wrong.append(("attempts", attempts, "must be at least 1"))
    if wrong:
        raise InvalidValueError.of(wrong)
    wait = exponential_backoff() if backoff is None else backoff

    request: Callable[[Snapshot | None], Observable[Event]] = factory if resume else lambda _: factory()
    rules = _Rules(attempts, wait, resume, retry_if, repeat_calls)

    def begin(sink: Sink[Event]) -> None:
        _Retrying(sink, request, rules, sink.clock(scheduler)).request(None)

    return create("retry_stream", begin, limits=limits)


class _Rules:
    """Decides whether there is another attempt, and of which kind."""

    def __init__(
        self,
        attempts: int,
        backoff: Callable[[int, Exception], float],
        resume: bool,
        retry_if: Callable[[Exception], bool],
        repeat_calls: bool,
    ) -> None:
        self._attempts = attempts
        self._backoff = backoff
        self._resume = resume
        self._retry_if = retry_if
        self._repeat_calls = repeat_calls

    def continuable(self, message: Snapshot | None) -> bool:
        return self._resume and message is not None and can_be_continued(message)

    def wait(self, failures: int, error: Exception, replies: Sequence[Snapshot]) -> float | None:
        """Return the seconds until the next attempt, or `None` for no further attempt."""
        if failures >= self._attempts or (replies and all(is_over(reply) for reply in replies)):
            return None
        message = replies[0] if len(replies) == 1 else None
        called = any(_has_called(reply) for reply in replies)
        if called and not self._repeat_calls and not self.continuable(message):
            return None
        return check_wait(self._backoff(failures, error)) if self._retry_if(error) else None


def _has_called(reply: Snapshot) -> bool:
    """Whether a tool may have been started; see `run_tools`."""
    return any(
        call.status == "complete"
        or call.execution_status() not in (None, "identified")
        or (call is not reply.blocks[-1] and bool(call.arguments) and call.is_final())
        for call in reply.tool_calls
    )


class _Retrying:
    """One subscription's state: one attempt at a time, or the wait for the next one."""

    def __init__(
        self,
        sink: Sink[Event],
        request: Callable[[Snapshot | None], Observable[Event]],
        rules: _Rules,
        time: abc.SchedulerBase,
    ) -> None:
        self._sink = sink
        self._request = request
        self._rules = rules
        self._timer = sink.timer(time)
        self._context = copy_context()  # the subscriber's: all requests are made in it
        self._failures = 0
        self._reset: AttemptReset | None = None  # the next attempt's first event, if it starts over
        self._continuation: Continuation | None = None

    @cached_property
    def _folds(self) -> dict[int, Fold]:
        folds: dict[int, Fold] = ByChoice(self._sink.limits)
        folds[0] = Fold(choice=0, limits=self._sink.limits)
        return folds

    def request(self, message: Snapshot | None) -> None:
        """Make a request, which continues the message, if any."""
        try:
            source = self._context.copy().run(self._request, message)
        except Exception as error:
            self._sink.turn(self.failed, error)
            return
        if not isinstance(source, Observable):
            raise InvalidValueError.of(
                [("factory", source, "must give an Observable of events; decode() makes one")]
            )
        self._context.copy().run(self._sink.subscribe, source, _Attempt(self, self._sink))

    def _begin(self) -> None:
        """Emit the events between the last attempt and the next one, and make its request."""
        replies = self.replies()
        message = replies[0] if len(replies) == 1 else None
        if message is not None and self._rules.continuable(message):
            self._continuation = Continuation(message)
            self.emit(self._continuation.first())
            message = self.replies()[0]
        else:
            self._continuation = message = None
            self.emit(self._resets())
        self._sink.effect(self.request, message)

    def _resets(self) -> Sequence[AttemptReset]:
        """The reset; one for each choice if a choice is over, because it would be the next message's otherwise."""
        if self._reset is None:
            return ()
        replies = self.replies()
        if not any(is_over(reply) for reply in replies):
            return (self._reset,)
        return [attrs.evolve(self._reset, choice=reply.choice) for reply in replies]

    def replies(self) -> list[Snapshot]:
        """The replies so far of all choices with content or an end."""
        return [
            fold.snapshot for fold in self._folds.values() if fold.snapshot.blocks or is_over(fold.snapshot)
        ]

    def emit(self, events: Sequence[Event]) -> None:
        for event in events:
            self._fold(event)
            self._sink.on_next(event)

    def take(self, event: Event) -> None:
        self.emit((event,) if self._continuation is None else self._continuation.rewrite(event))

    def _fold(self, event: Event) -> None:
        choice = getattr(event, "choice", None)
        if choice is None:
            for fold in self._folds.values():
                fold.step(event)
            return
        known = self._folds.get(choice)
        if known is None:
            known = self._folds[choice] = Fold(choice=choice, limits=self._sink.limits)
        known.step(event)

    def failed(self, error: Exception, *, cut_off: bool = False) -> None:
        """Begin another attempt, at once or after a wait, or end the stream."""
        replies = self.replies()
        if isinstance(error, RxDeltaError) and error.snapshot is None:
            error.snapshot = replies[0] if replies else self._folds[0].snapshot
        wait = self._rules.wait(self._failures + 1, error, replies)
        if wait is None:
            if cut_off:
                self._sink.on_completed()
            else:
                self._sink.on_error(error)
            return
        self._failures += 1
        usages = (fold.snapshot.usage for fold in self._folds.values())
        usage = next((known for known in usages if known), None)
        self._reset = AttemptReset(self._failures, described(error), usage)
        if wait:
            self._timer.start(wait, self._begin)
        else:
            self._sink.effect(self._sink.turn, self._begin)


class _Attempt:
    """One request."""

    def __init__(self, retrying: _Retrying, sink: Sink[Event]) -> None:
        self._retrying = retrying
        self._sink = sink

    def on_next(self, event: Event) -> None:
        failure = refusal(event, "retry_stream")
        if isinstance(failure, ProviderError):
            raise failure
        try:
            if failure is not None:
                raise failure
            self._retrying.take(event)
        except Exception as error:
            if self._sink.raised is None:
                self._sink.on_error(error)  # another request wouldn't help
            else:
                raise

    def on_error(self, error: Exception) -> None:
        self._retrying.failed(error)

    def on_completed(self) -> None:
        replies = self._retrying.replies()
        if replies and all(is_over(reply) for reply in replies):
            self._sink.on_completed()
        else:
            cut = IncompleteMessageError("the stream ended before its message did")
            self._retrying.failed(cut, cut_off=True)
