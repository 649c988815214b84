"""One message from repeated requests, without repeated text."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import Any, TypeAlias

from reactivex import Observable, abc

from rxdelta.core import (
    PIECE_FIELDS,
    ByChoice,
    Event,
    Fold,
    IncompleteMessageError,
    InvalidValueError,
    Limits,
    PerRun,
    ProviderError,
    RxDeltaError,
    Snapshot,
    Tail,
    described,
    is_over,
    refusal,
    with_snapshot,
)
from rxdelta.core.events import AttemptReset
from rxdelta.operators.resilience.continuation import Continuation, can_be_continued
from rxdelta.operators.resilience.failures import check_wait, exponential_backoff, is_transient
from rxdelta.runtime import Sink, checks_options, create, pipeline_of

Request: TypeAlias = Callable[[Snapshot | None, Exception | None, int], Observable[Event]]

Factory: TypeAlias = (
    Callable[[], Observable[Event]]
    | Callable[[Snapshot | None], Observable[Event]]
    | Callable[[Snapshot | None, Exception | None], Observable[Event]]
    | Request
)
"""A function that makes a request, with as many arguments as it takes."""

_MOST = 3
_WANTED = "must take none, (snapshot), (snapshot, error) or (snapshot, error, attempt)"


@checks_options
def retry_stream(
    factory: Factory,
    attempts: int = 3,
    backoff: Callable[[int, RxDeltaError], float] | None = None,
    resume: bool = False,
    *,
    min_overlap: int = 12,
    retry_if: Callable[[RxDeltaError], bool] = is_transient,
    repeat_calls: bool = False,
    scheduler: abc.SchedulerBase | None = None,
) -> Observable[Event]:
    """Emit the events of one message, from as many requests as needed.

    ::

        request()  The _ti--#
        request()              The           _tide _is _high.|
                   retry_stream(request, backoff=lambda failures, error: 0.3)
        events     The _ti-----[(reset:1)The]_tide _is _high.|

    The first request is made by the subscription. After a failure, and the wait that `backoff` returns, the next one
    is made. Each event is emitted at once. A failed attempt's content stays until the next attempt begins:

    - Starting over emits an `AttemptReset`: `scan_deltas` begins afresh, and the failed attempt's usage stays in
      `total_usage`. A `Custom` stays, too: the application said it. (If each attempt says it, give it an id.)
    - With `resume`, the new request continues the message. Its first text continues the text that broke off, its other
      blocks follow the existing ones, and its usage is added. There is no second `MessageStart`. It starts over if the
      message can't be continued: no content yet, a call or an image that broke off, several choices or runs.

    Models repeat themselves when they continue. Where the broken text goes on, the longest overlap of its end with
    the beginning of the new text is left out, if it has at least `min_overlap` characters and a letter or digit, and
    begins where a word begins. (It ends where the text broke off, maybe within a word. In writing without spaces,
    such as Chinese, Japanese or Thai, each character counts as a word. Other blanks or another case make another
    text.) The new text is held while it may be an overlap: until then each of its characters is one that the message
    has already. If the request fails meanwhile, and another one is made, the held text is dropped; at the end of the
    stream it is emitted. A `Custom` behind held text waits until the text is emitted, left out or dropped.
    Arguments and reasoning that broke off are never continued, so nothing is left out there.
    When a resumed message finishes, its metadata have `resumed_at`, the length of its `text` at the last resume, and
    `overlap`, the number of characters that were left out in all.

    Put it in front of `run_tools` and `share_events`, and of what rewrites text: `redact`, `guard`, `map_text`, `cut_text`
    and `until_sequence` would read a continued text as two. With `resume` they are refused in the factory, where they can
    be seen. The factory contains the request and `decode`, and `stall_timeout` if a stall counts as a failure. If a failed
    attempt had complete calls, their tools may have run.
    Such an attempt is not started over, unless with `repeat_calls`, and its error is passed on; `resume` may continue
    it. A finished message is never requested again.

    A stream may have several runs; all of them are repeated, unless all that have begun are finished: nothing shows
    that another was to come, such as the reply of a graph's next node, so the error is passed on. If one stream of
    several is retried, put `with_run` behind this operator: the reset of an attempt that failed before its first
    event can't name its run, so it concerns all.

    Completes with the attempt that completes. If it does so before its message has finished, `retry_if` is called with
    an `IncompleteMessageError`; `is_transient` returns `False` for it, and the message stays incomplete.

    Args:
        factory: Makes a request: a function that returns an Observable of its events. It takes no argument,
            `(snapshot)`, `(snapshot, error)` or `(snapshot, error, attempt)`; its positional parameters without a default
            are counted. The snapshot is the message to continue; `None` for a request that begins a message, which
            without `resume` is each. The error is the last failure, at first `None`. The attempt is the number of
            requests before this one. A part of the broken text that the factory doesn't send to the provider
            (some refuse a trailing blank) will appear twice.
        attempts: The greatest number of requests in a row that bring no new text; the failure of one that does is the
            first of a new row. New text makes the reply longer than it ever was, blanks at its end not counted. Text of
            a continuation is not new if the message had the same words before, so that a provider which breaks off
            after the same first word each time is given up.
        backoff: Returns the seconds to wait, from the number of failures in this row and the last error; by default
            `exponential_backoff()`.
        resume: Whether to continue the message rather than start over.
        min_overlap: The least number of characters of an overlap.
        retry_if: Whether an error is worth another try. It and `backoff` get the error as a reader of `scan_deltas` gets
            it: an exception of another library is the `__cause__` of a `StreamInterrupted`, and each has the reply so far
            in `.snapshot`, which is empty at first. So this tries again only before the first text:
            `lambda error: is_transient(error) and not error.snapshot.blocks`.
        repeat_calls: Start over also after a complete call. Safe if no tools are run, if all tools may run twice, or
            with `run_tools(start="message")`.
        scheduler: The scheduler of the waits. By default the subscriber's, else the running asyncio loop, else a
            thread that ends with the subscription.

    Raises:
        InvalidValueError: At once, for an invalid argument.

    Errors: The last attempt's own. With `resume`, `InvalidValueError` for such an operator in the factory. The exception
    of `backoff` or `retry_if`, whose `__context__` is the failure. `InvalidValueError` for a value that is no event;
    `LimitExceededError`; `ProtocolError` for a second message in a run. The latter three are never retried.

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
        (name, value, wanted)
        for name, value, wanted in (
            (
                "factory",
                factory,
                "must be a function that makes the stream, for a new request in each attempt",
            ),
            ("backoff", backoff, "must be a function of the number of failures and the error"),
            ("retry_if", retry_if, "must be a function of the error"),
        )
        if not callable(value) and (name, value) != ("backoff", None)
    ]
    for name, count in (("attempts", attempts), ("min_overlap", min_overlap)):
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            wrong.append((name, count, "must be at least 1"))
    if wrong:
        raise InvalidValueError.of(wrong)
    request = request_of(factory, resume=resume)
    wait = exponential_backoff() if backoff is None else backoff
    rules = _Rules(attempts, wait, retry_if, repeat_calls, min_overlap if resume else None)

    def begin(sink: Sink[Event]) -> None:
        _Retrying(sink, request, rules, sink.clock(scheduler)).request(None, None)

    return create("retry_stream", begin, emits="events")


_OF_TEXT = frozenset(["cut_text", "guard", "map_text", "redact", "until_sequence"])


def _refuse_operators_of_text(source: Observable[Event]) -> None:
    """A text that breaks off and goes on is two texts for an operator in front: it would show half a key, twice."""
    found = next((one.name for one in pipeline_of(source)[0] if one.name in _OF_TEXT), None)
    if found is not None:
        raise InvalidValueError(
            f"retry_stream(resume=True) continues the provider's own text, which {found} has changed or cut: "
            f"write retry_stream(…, resume=True).pipe(rd.{found}(…))",
            field="factory",
        )


class _Rules:
    """Decides whether there is another attempt, and of which kind."""

    def __init__(
        self,
        attempts: int,
        backoff: Callable[[int, RxDeltaError], float],
        retry_if: Callable[[RxDeltaError], bool],
        repeat_calls: bool,
        min_overlap: int | None,
    ) -> None:
        self._attempts = attempts
        self._backoff = backoff
        self._retry_if = retry_if
        self._repeat_calls = repeat_calls
        self._min_overlap = min_overlap  # None: a message is never continued
        self.resumes = min_overlap is not None

    def continuation(self, replies: Replies, before: Continuation | None) -> Continuation | None:
        """Return the continuation of the message, which may continue an earlier one; `None` to start over."""
        message = replies.only()
        if self._min_overlap is None or message is None or not can_be_continued(message):
            return None
        return Continuation(message, self._min_overlap, before)

    def wait(self, failures: int, error: RxDeltaError, replies: Replies) -> float | None:
        """Return the seconds until the next attempt, or `None` for no further attempt."""
        if failures >= self._attempts or replies.all_over():
            return None
        called = any(map(_has_called, replies.begun()))
        if called and not self._repeat_calls and self.continuation(replies, None) is None:
            return None
        try:
            return check_wait(self._backoff(failures, error)) if self._retry_if(error) else None
        except Exception as failure:
            _tell_of(failure, error)
            raise


def _tell_of(failure: Exception, error: RxDeltaError) -> None:
    """Add to the exception of a rule the error that the rule was asked about.

    It is no cause: a rule that asks whether to try the failure again must not judge by the error.
    """
    if failure.__context__ is None and failure is not error and failure is not error.__cause__:
        failure.__context__ = error
    if isinstance(failure, RxDeltaError) and failure.snapshot is None:
        failure.snapshot = error.snapshot


def _has_called(reply: Snapshot) -> bool:
    """Whether a tool may have been started; see `run_tools`."""
    return any(
        call.status == "complete"
        or call.execution_status() not in (None, "identified")
        or (call is not reply.blocks[-1] and bool(call.arguments) and call.is_final())
        for call in reply.tool_calls
    )


class _Row:
    """Counts failures in a row, without new text between them."""

    def __init__(self) -> None:
        self._failures = 0
        self._longest = 0  # the length of the longest reply so far
        self._before = ""  # the text that this attempt continues

    def begin(self, text: str) -> None:
        """An attempt begins, and continues this text."""
        self._before = text

    def failed(self, text: str) -> int:
        """An attempt has failed that has led to this text. Return how many have failed in a row."""
        length, new = len(text.rstrip()), text[len(self._before) :].strip()
        if length > self._longest and new not in self._before:
            self._failures = 0
        self._longest = max(length, self._longest)
        self._failures += 1
        return self._failures


class _Retrying:
    """One subscription's state: one attempt at a time, or the wait for the next one."""

    def __init__(self, sink: Sink[Event], request: Request, rules: _Rules, time: abc.SchedulerBase) -> None:
        self._sink = sink
        self._request = request
        self._rules = rules
        self._timer = sink.timer(time)
        self._context = copy_context()  # the subscriber's: all requests are made in it
        self._replies: Replies | None = None
        self._failures = _Row()
        self._attempt = 0  # the number of requests that have failed
        self._continuation: Continuation | None = None

    @property
    def replies(self) -> Replies:
        if self._replies is None:  # the limits are known with the first event
            self._replies = Replies(self._sink.limits)
        return self._replies

    def request(self, message: Snapshot | None, error: Exception | None) -> None:
        """Make a request, which continues the message, if any."""
        try:
            source = self._context.copy().run(self._request, message, error, self._attempt)
        except Exception as failure:
            self._sink.turn(self.failed, failure)
            return
        if not isinstance(source, Observable):
            raise InvalidValueError.of(
                [("factory", source, "must give an Observable of events; decode() makes one")]
            )
        if self._rules.resumes:
            _refuse_operators_of_text(source)
        self._context.copy().run(self._sink.subscribe, source, _Attempt(self, self._sink))

    def _begin(self, error: Exception) -> None:
        """Emit the events between the last attempt and the next one, and make its request."""
        replies = self.replies
        self._continuation = self._rules.continuation(replies, self._continuation)
        if self._continuation is None:
            self._emit(replies.resets(self._attempt, described(error)))
            self._failures.begin("")
            self._sink.effect(self.request, None, error)
        else:
            self._emit(self._continuation.first())
            self._failures.begin(replies.text())
            self._sink.effect(self.request, replies.only(), error)

    def _emit(self, events: Sequence[Event]) -> None:
        for event in events:
            self.replies.step(event)
            self._sink.on_next(event)

    def take(self, event: Event) -> None:
        self._emit((event,) if self._continuation is None else self._continuation.rewrite(event))

    def failed(self, error: Exception, *, cut_off: bool = False) -> None:
        """Begin another attempt, at once or after a wait, or end the stream."""
        replies = self.replies
        ours = error if isinstance(error, RxDeltaError) and error.snapshot is None else None
        shown = with_snapshot(error, replies.first())
        wait = self._rules.wait(self._failures.failed(replies.text()), shown, replies)
        if wait is None:
            if self._continuation is not None:
                self._emit(self._continuation.end())
            if ours is not None:
                ours.snapshot = replies.first()
            if cut_off:
                self._sink.on_completed()
            else:
                self._sink.on_error(error)
            return
        self._attempt += 1
        if self._continuation is not None:
            self._emit(self._continuation.behind())
        if wait:
            self._timer.start(wait, self._begin, error)
        else:
            self._sink.effect(self._sink.turn, self._begin, error)


class _Attempt:
    """One request."""

    def __init__(self, retrying: _Retrying, sink: Sink[Event]) -> None:
        self._retrying = retrying
        self._sink = sink

    def on_next(self, event: Event) -> None:
        failure = None if type(event) in PIECE_FIELDS else refusal(event, "retry_stream")
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
        if self._retrying.replies.all_over():
            self._sink.on_completed()
        else:
            cut = IncompleteMessageError("the stream ended before its message did")
            self._retrying.failed(cut, cut_off=True)


def request_of(factory: Factory, *, resume: bool) -> Request:
    """Return a function that gives the factory as many arguments as it takes.

    They are counted by its positional parameters without a default. A parameter with a default is its owner's, as in
    `lambda model=model: …`. Where there are none to count (`*args`, a builtin without a signature), the factory gets
    the snapshot if the message may be resumed, and else nothing.

    Raises:
        InvalidValueError: The factory needs other arguments.
    """
    count = _count(factory, resume=resume)

    def request(snapshot: Snapshot | None, error: Exception | None, attempt: int) -> Observable[Event]:
        call: Callable[..., Observable[Event]] = factory
        return call(*(snapshot, error, attempt)[:count])

    return request


def _count(factory: Callable[..., object], *, resume: bool) -> int:
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return int(resume)
    needed = [one for one in parameters if one.default is one.empty]
    positional = [one for one in needed if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if len(positional) > _MOST or any(one.kind is one.KEYWORD_ONLY for one in needed):
        raise InvalidValueError.of([("factory", factory, _WANTED)])
    if not positional and any(one.kind is one.VAR_POSITIONAL for one in needed):
        return int(resume)
    return len(positional)


class Replies:
    """A fold for each lane: each choice of each run.

    Args:
        limits: Bounds on the number of lanes and on the size of each reply.
    """

    def __init__(self, limits: Limits) -> None:
        self._runs = PerRun(partial(_Run, limits), limits, name=_Run.take_name)
        self._begun: dict[Fold, None] = {}  # the folds with an event since the last reset
        self._tail = Tail(self._step, self._lane)
        self.step = self._tail.feed

    def _lane(self, delta: Any) -> Fold | None:
        run = self._runs.get(delta.run_id)
        return None if run is None else run.get(delta.choice)

    def _step(self, event: Event) -> None:
        choice = getattr(event, "choice", None)
        for run in self._runs.of(event):
            for fold in run.values() if choice is None else (run.fold(choice),):
                fold.step(event)
                if isinstance(event, AttemptReset):
                    self._begun.pop(fold, None)
                elif choice is not None:
                    self._begun[fold] = None

    def _has_begun(self, fold: Fold) -> bool:
        return fold in self._begun or is_over(fold.snapshot)

    def _folds(self) -> list[Fold]:
        self._tail.settle()
        return [fold for run in self._runs.known() for fold in run.values()]

    def begun(self) -> Sequence[Snapshot]:
        """The replies that have begun since the last reset, and those that are over."""
        return [fold.snapshot for fold in self._folds() if self._has_begun(fold)]

    def first(self) -> Snapshot:
        """The first of them that has content, else the first; an empty reply if there is none."""
        replies = [*self.begun(), *(fold.snapshot for fold in self._folds()), Fold(choice=0).snapshot]
        return next((reply for reply in replies if reply.blocks), replies[0])

    def only(self) -> Snapshot | None:
        """The reply, if only one has begun."""
        begun = self.begun()
        return begun[0] if len(begun) == 1 else None

    def all_over(self) -> bool:
        begun = self.begun()
        return bool(begun) and all(map(is_over, begun))

    def text(self) -> str:
        return "".join(reply.text for reply in self.begun())

    def resets(self, attempt: int, error: str) -> Sequence[AttemptReset]:
        """The resets that take back all replies: one for each run.

        If a reply is over, each names its choice, because it would be the next message's otherwise. The reset of the run
        without a name concerns all runs, so it is the first. It tells the usage if there is no other run; otherwise each
        fold knows its own.
        """
        runs = self._runs.known()
        if not runs:
            return [AttemptReset(attempt, error)]
        usages = [fold.snapshot.usage for fold in self._folds() if fold.snapshot.usage is not None]
        usage = usages[0] if usages and len(runs) == 1 else None
        over = any(is_over(fold.snapshot) for fold in self._folds())
        found: list[AttemptReset] = []
        for run in sorted(runs, key=lambda run: run.run_id is not None):
            named = [choice for choice, fold in run.items() if self._has_begun(fold)]
            found += [
                AttemptReset(attempt, error, usage, choice=choice, run_id=run.run_id)
                for choice in (named if over else [None])
            ]
        return found


class _Run(ByChoice[Fold]):
    """The folds of the choices of a run."""

    __slots__ = ("_limits", "run_id")

    def __init__(self, limits: Limits, run_id: str | None) -> None:
        super().__init__(limits)
        self._limits = limits
        self.run_id = run_id
        self.fold(0)

    def take_name(self, run_id: str | None) -> None:
        self.run_id = run_id

    def fold(self, choice: int) -> Fold:
        if choice not in self:
            self[choice] = Fold(choice=choice, run_id=self.run_id, limits=self._limits)
        return self[choice]
