"""`retry_stream` in virtual time: nothing is said twice, and nothing is lost."""

from __future__ import annotations

import contextvars
import threading
from copy import copy
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import Disposable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import Stream, run as run_loop
from support.replies import ANTHROPIC

import rxdelta as rd
from rxdelta.runtime import clocks
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
OVERLOADED = rd.ProviderError("Overloaded", type="overloaded_error")
INVALID = rd.ProviderError("No such model", type="invalid_request_error")
TEXT = ev.BlockStart(0, {"type": "text"})
CALL = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "look"})
MARKS: dict[str, Any] = {
    "m": ev.MessageStart("m1", usage=rd.TokenUsage(3, 1)),
    "s": TEXT,
    **{mark: ev.TextDelta(0, mark) for mark in "abcd"},
    "f": ev.BlockFinish(0),
    "M": ev.MessageFinish("stop"),
    "t": CALL,
    "g": ev.ToolCallDelta(0, '{"at": "sea"}'),
    "i": ev.BlockStart(0, {"type": "image", "data": "AA"}),
}


def no_wait(failures: int, error: Exception) -> float:
    return 0


def four(failures: int, error: Exception) -> float:
    return 4


def reset(attempt: int, usage: rd.TokenUsage | None = None, error: Exception = OVERLOADED) -> rd.Event:
    return ev.AttemptReset(attempt, f"{type(error).__name__}: {error}", usage)


def attempts(
    *lines: str, errors: dict[int, Exception] | None = None, **options: Any
) -> tuple[list[marbles.Record], list[Any]]:
    """What comes of these attempts, and when each was read."""
    time = VirtualTimeScheduler()
    colds = [
        marbles.cold(line, time, values=MARKS, frame=1, error=(errors or {}).get(number, OVERLOADED))
        for number, line in enumerate(lines)
    ]
    each = iter(colds)
    options = {"backoff": four, "attempts": len(colds), **options}
    if options.get("resume"):
        events = rd.retry_stream(lambda partial: next(each), **options)
    else:
        events = rd.retry_stream(lambda: next(each), **options)
    return marbles.records(events, time, until=100), [cold.subscriptions for cold in colds]


RESETS = MARKS | {"R": reset(1), "Q": reset(2), "U": reset(1, rd.TokenUsage(3, 1))}


@pytest.mark.parametrize(
    ("lines", "expected", "reads"),
    [
        pytest.param(["-s-ab-fM|"], "-s-ab-fM|", [[(0, 8)]], id="an attempt that succeeds is untouched"),
        pytest.param(
            ["-sa#", "-sabfM|"],
            "-sa----RsabfM|",
            [[(0, 3)], [(7, 13)]],
            id="after a failure, the wait, a reset",
        ),
        pytest.param(
            ["-[sa#]", "-sabfM|"],
            "-[sa]---RsabfM|",
            [[(0, 1)], [(5, 11)]],
            id="a burst and a failure",
        ),
        pytest.param(
            ["#", "-sM|"],
            "----RsM|",
            [[(0, 0)], [(4, 7)]],
            id="before anything was said",
        ),
        pytest.param(
            ["-sa#", "-s#", "-sM|"],
            "-sa----Rs----QsM|",
            [[(0, 3)], [(7, 9)], [(13, 16)]],
            id="twice",
        ),
        pytest.param(
            ["-sa#", "-s#"],
            "-sa----Rs#",
            [[(0, 3)], [(7, 9)]],
            id="the last attempt's error",
        ),
        pytest.param(["#"], "#", [[(0, 0)]], id="one attempt"),
        pytest.param(
            ["-msa#", "-sM|"],
            "-msa----UsM|",
            [[(0, 4)], [(8, 11)]],
            id="the usage is told",
        ),
        pytest.param(["-saM#", "-sM|"], "-saM#", [[(0, 4)], []], id="a message that has finished"),
        pytest.param(["-sa|", "-sM|"], "-sa|", [[(0, 3)], []], id="a cut message stays so"),
        pytest.param(["|", "-sM|"], "|", [[(0, 0)], []], id="empty"),
        pytest.param(["-----", "-sM|"], "", [[(0, 100)], []], id="never"),
        pytest.param(
            ["-tg#", "-sM|"],
            "-tg----RsM|",
            [[(0, 3)], [(7, 10)]],
            id="an open call",
        ),
        pytest.param(["-tgf#", "-sM|"], "-tgf#", [[(0, 4)], []], id="a complete call"),
    ],
)
def test_starting_over(lines: list[str], expected: str, reads: list[Any]) -> None:
    records, read = attempts(*lines)
    assert (marbles.draw(records, values=RESETS, frame=1, error=OVERLOADED), read) == (expected, reads)


def snapshots_of(
    *requests: list[rd.Event | Exception], **options: Any
) -> tuple[list[rd.Snapshot], list[Any]]:
    each = iter(requests)
    seen: list[Any] = []

    def request(*partial: Any) -> Observable[rd.Event]:
        seen.extend(partial)
        *told, end = next(each)
        return rx.concat(
            rx.from_iterable(told), rx.throw(end) if isinstance(end, Exception) else rx.just(end)
        )

    options = {"backoff": no_wait, "attempts": len(requests), **options}
    snapshots: list[rd.Snapshot] = []
    errors: list[Exception] = []
    rd.retry_stream(request, **options).pipe(rd.scan_deltas()).subscribe(snapshots.append, errors.append)
    return snapshots, [*seen, *errors]


def test_no_text_is_doubled_and_what_the_failed_attempt_cost_is_kept() -> None:
    first = [
        ev.MessageStart("m1", usage=rd.TokenUsage(10, 2)),
        TEXT,
        ev.TextDelta(0, "Hello wor"),
        OVERLOADED,
    ]
    second = [
        ev.MessageStart("m2", usage=rd.TokenUsage(10, 1)),
        TEXT,
        ev.TextDelta(0, "Hello world!"),
        ev.BlockFinish(0),
        ev.MessageFinish("stop", usage=rd.TokenUsage(10, 4)),
    ]
    snapshots, _ = snapshots_of(first, second)
    last = snapshots[-1]
    assert (last.text, last.id, last.attempt) == ("Hello world!", "m2", 1)
    assert (last.usage, last.total_usage) == (rd.TokenUsage(10, 4), rd.TokenUsage(20, 6))


def test_stopped_while_it_waits_the_message_is_kept() -> None:
    scheduler = TestScheduler()
    requests = iter([rx.concat(rx.of(TEXT, ev.TextDelta(0, "Hel")), rx.throw(OVERLOADED)), rx.never()])
    messages: list[rd.Message] = []
    stop = Subject[None]()
    rd.retry_stream(lambda: next(requests), backoff=four).pipe(
        rd.until_stopped(stop), rd.scan_deltas(), rd.to_message()
    ).subscribe(messages.append, scheduler=scheduler)
    scheduler.advance_to(2)
    stop.on_next(None)
    assert [message.text for message in messages] == ["Hel"]
    scheduler.advance_to(100)
    assert next(requests, None) is not None  # nothing was asked any more


def test_calls_that_were_complete_may_be_repeated_when_that_is_said() -> None:
    told, _ = attempts("-tgf#", "-sM|", repeat_calls=True)
    assert [type(event) for _, _, event in told][3:5] == [ev.AttemptReset, ev.BlockStart]


@pytest.mark.parametrize("start", ["ready", "message"])
def test_no_tool_is_run_twice_unasked(start: Any) -> None:
    call = [CALL, ev.ToolCallDelta(0, "{}"), ev.BlockFinish(0)]
    requests = iter([[*call, OVERLOADED], [*call, ev.MessageFinish("tool_use")]])
    runs: list[int] = []

    def request() -> Observable[rd.Event]:
        *told, end = next(requests)
        return rx.concat(
            rx.from_iterable(told), rx.throw(end) if isinstance(end, Exception) else rx.just(end)
        )  # type: ignore[arg-type]

    events = rd.retry_stream(request, backoff=no_wait, repeat_calls=start == "message")
    got: list[Any] = []
    events.pipe(rd.run_tools({"look": lambda: runs.append(1)}, start=start)).subscribe(got.append, got.append)
    assert runs == [1]
    assert (got[-1] is OVERLOADED) == (start == "ready")


# Going on.


def go_on(*requests: list[rd.Event | Exception], **options: Any) -> tuple[rd.Snapshot, list[Any]]:
    snapshots, seen = snapshots_of(*requests, resume=True, **options)
    return snapshots[-1], seen


def test_the_text_that_broke_off_is_gone_on_with() -> None:
    first = [
        ev.MessageStart("m1", usage=rd.TokenUsage(10, 2)),
        TEXT,
        ev.TextDelta(0, "Hello wor"),
        OVERLOADED,
    ]
    second = [
        ev.MessageStart("m2", usage=rd.TokenUsage(12, 1)),
        ev.BlockStart(0, {"type": "text", "text": "l"}),
        ev.TextDelta(0, "d!"),
        ev.BlockFinish(0, {"type": "text", "text": "ld!"}),
        ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "look", "args": {}}),
        ev.BlockFinish(1),
        ev.UsageUpdate(rd.TokenUsage(12, 5)),
        ev.MessageFinish("tool_use"),
    ]
    last, seen = go_on(first, second)
    assert [block.key for block in last.blocks] == [0, 1]
    assert (last.text, last.id, last.attempt, last.status) == ("Hello world!", "m1", 0, "complete")
    assert last.usage == last.total_usage == rd.TokenUsage(22, 7)
    assert seen[0] is None
    assert (seen[1].text, seen[1].blocks[0].open) == ("Hello wor", True)


@pytest.mark.parametrize(
    ("begun", "rest", "blocks"),
    [
        pytest.param(
            [ev.BlockStart(0, {"type": "reasoning", "reasoning": "Hm"})],
            [ev.BlockStart(0, {"type": "text", "text": "Yes"})],
            [("reasoning", "Hm"), ("text", "Yes")],
            id="behind a reasoning that broke off",
        ),
        pytest.param(
            [ev.BlockStart(0, {"type": "text", "text": "Yes, "})],
            [
                ev.BlockStart(0, {"type": "reasoning", "reasoning": "Hm"}),
                ev.BlockStart(1, {"type": "text", "text": "no"}),
            ],
            [("text", "Yes, no"), ("reasoning", "Hm")],
            id="after a second thought",
        ),
        pytest.param(
            [ev.BlockStart(0, {"type": "text", "text": "Yes"}), ev.BlockFinish(0)],
            [ev.BlockStart(0, {"type": "text", "text": "No"})],
            [("text", "Yes"), ("text", "No")],
            id="behind a text that had ended",
        ),
        pytest.param(
            [ev.BlockStart(7, {"type": "text", "text": "Yes"})],
            [
                ev.BlockStart(0, {"type": "image", "data": "AA"}),
                ev.BlockStart(1, {"type": "text", "text": "No"}),
            ],
            [("text", "Yes"), ("image", "AA"), ("text", "No")],
            id="another block ends the text",
        ),
        pytest.param(
            [ev.BlockStart(0, {"type": "text", "text": "Yes"})],
            [],
            [("text", "Yes")],
            id="nothing more comes",
        ),
        pytest.param(
            [ev.BlockStart("a", {"type": "text", "text": "Yes"}), ev.BlockFinish("a")],
            [
                ev.BlockStart("a", {"type": "text", "text": "No"}),
                ev.BlockStart(-1, {"type": "text", "text": "!"}),
            ],
            [("text", "Yes"), ("text", "No"), ("text", "!")],
            id="indexes that are names, or negative",
        ),
        pytest.param(
            [ev.BlockStart(0, {"type": "text", "text": "Yes, "})],
            [
                ev.BlockStart(2, {"type": "reasoning", "reasoning": "Hm"}),
                ev.BlockStart(1, {"type": "text", "text": "no"}),
                ev.BlockStart(3, {"type": "text", "text": "!"}),
            ],
            [("text", "Yes, no"), ("reasoning", "Hm"), ("text", "!")],
            id="the text comes behind a block of a higher index",
        ),
    ],
)
def test_blocks_come_behind_those_that_are_there(begun: Any, rest: Any, blocks: Any) -> None:
    order: list[rd.Event] = []
    requests = iter(
        [
            rx.concat(rx.from_iterable([ev.MessageStart("m1"), *begun]), rx.throw(OVERLOADED)),
            rx.from_iterable(
                [
                    ev.MessageStart("m2"),
                    *rest,
                    *(ev.BlockFinish(event.index) for event in rest),
                    ev.MessageFinish("stop"),
                ]
            ),
        ]
    )
    events = rd.retry_stream(lambda _: next(requests), 2, no_wait, True)
    events.pipe(rd.validate()).subscribe(order.append, order.append)
    fold = rd.Fold()
    for event in order:
        fold.step(event)
    assert [(block.type, block.text) for block in fold.snapshot.blocks] == blocks  # type: ignore[union-attr]
    assert fold.snapshot.status == "complete"
    assert not any(isinstance(event, ev.AttemptReset) for event in order)


def test_fields_that_replace_the_text_replace_its_rest() -> None:
    first = [ev.BlockStart(0, {"type": "text", "text": "Hel"}), OVERLOADED]
    second = [TEXT, ev.BlockDelta(0, {"text": "lo", "language": "en"}), ev.MessageFinish("stop")]
    last, _ = go_on(first, second)
    assert (last.text, last.blocks[0].options) == ("Hello", {"language": "en"})


@pytest.mark.parametrize(
    "begun",
    [
        pytest.param([], id="nothing"),
        pytest.param([TEXT], id="no text"),
        pytest.param(
            [ev.BlockStart(0, {"type": "text", "text": "Hm"}), ev.BlockStart(1, dict(CALL.content))],
            id="a call",
        ),
        pytest.param([ev.BlockStart(0, {"type": "image", "data": "AA"})], id="an image"),
        pytest.param(
            [TEXT, ev.TextDelta(0, "a"), ev.BlockStart(0, {"type": "text", "text": "b"}, choice=1)],
            id="two choices",
        ),
    ],
)
def test_what_cannot_be_gone_on_with_is_started_over(begun: Any) -> None:
    last, seen = go_on(
        [*begun, OVERLOADED], [ev.BlockStart(0, {"type": "text", "text": "Hi"}), ev.MessageFinish("stop")]
    )
    assert (last.text, last.attempt, seen) == ("Hi", 1, [None, None])


def test_a_complete_call_is_gone_on_with() -> None:
    call = [
        ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {}}),
        ev.BlockFinish(0),
    ]
    last, seen = go_on(
        [*call, OVERLOADED], [ev.BlockStart(0, {"type": "text", "text": "Hi"}), ev.MessageFinish("stop")]
    )
    assert (last.attempt, len(last.tool_calls), last.text, last.finish_reason) == (0, 1, "Hi", "tool_use")
    assert seen[1].tool_calls[0].call_id == "c1"


# Which errors, and when.


def test_an_error_that_will_not_pass_is_passed_on_at_once() -> None:
    told, subscriptions = attempts("-sa#", "-sM|", errors={0: INVALID})
    assert told[-1] == (3, "error", INVALID)
    assert subscriptions[1] == []


def test_an_error_in_the_stream_is_a_failure() -> None:
    last, _ = snapshots_of(
        [TEXT, ev.StreamError("Overloaded", "overloaded_error"), ev.TextDelta(0, "never")],
        [ev.BlockStart(0, {"type": "text", "text": "Hi"}), ev.MessageFinish("stop")],
    )
    assert (last[-1].text, last[-1].attempt) == ("Hi", 1)


def test_the_predicate_and_the_backoff_are_asked_and_see_what_came() -> None:
    asked: list[Any] = []

    def retry_if(error: rd.RxDeltaError) -> bool:
        assert error.snapshot is not None
        asked.append((type(error), error.snapshot.text))
        return True

    def backoff(failures: int, error: Exception) -> float:
        asked.append((failures, error))
        return 0

    snapshots_of(
        [ev.BlockStart(0, {"type": "text", "text": "Hel"}), rd.errors.StallTimeoutError("no")],
        [BOOM],
        [TEXT, OVERLOADED],
        retry_if=retry_if,
        backoff=backoff,
    )
    assert asked[0] == (rd.errors.StallTimeoutError, "Hel")
    assert [type(asked[1][1]), asked[2]] == [rd.errors.StallTimeoutError, (rd.StreamInterrupted, "")]
    assert (asked[3][0], asked[3][1].__cause__) == (2, BOOM)


FAILURES: dict[str, Any] = {
    "a broken connection": ConnectionError("reset"),
    "an error in the stream": OVERLOADED,
    "an error of the decoder": rd.errors.MalformedChunkError("no"),
    "a refusal": rd.ProviderError("Overloaded", type="overloaded_error"),
    "a stall": rd.errors.StallTimeoutError("no"),
    "an interruption": rd.StreamInterrupted.by(ConnectionError("reset")),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("before", [[], [ev.MessageStart("m")], [ev.MessageStart("m"), TEXT]], ids=len)
def test_only_before_the_first_text(failure: Any, before: list[Any]) -> None:
    """The rule of all who fall back: what a reader has seen isn't taken back."""
    waits: list[Any] = []

    def backoff(failures: int, error: rd.RxDeltaError) -> float:
        waits.append(error.snapshot and error.snapshot.blocks)
        return 0

    last, errors = snapshots_of(
        [*before, copy(failure)],
        [ev.BlockStart(0, {"type": "text", "text": "Hi"}), ev.MessageFinish("stop")],
        retry_if=lambda error: error.snapshot is not None and not error.snapshot.blocks,
        backoff=backoff,
    )
    if TEXT in before:
        assert (last[-1].attempt, len(last[-1].blocks), waits) == (0, 1, [])
        assert [isinstance(error, rd.RxDeltaError) for error in errors] == [True]
    else:
        assert (last[-1].attempt, last[-1].text, errors) == (1, "Hi", [])
        assert [*map(list, waits)] == [[]]


def test_the_text_of_another_choice_is_text() -> None:
    asked: list[Any] = []
    events = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "Hi"}, choice=1), BOOM]
    snapshots_of(events, [TEXT], retry_if=lambda error: asked.append(error.snapshot))  # type: ignore[func-returns-value,return-value]
    assert [reply.text for reply in asked] == ["Hi"]


def test_what_is_passed_on_is_the_failure_itself() -> None:
    got: list[Any] = []
    rd.retry_stream(lambda: rx.throw(BOOM), retry_if=lambda _: False).subscribe(on_error=got.append)
    assert got == [BOOM]


@pytest.mark.parametrize(
    "failure", [ConnectionError("reset"), rd.ProviderError("no", type="overloaded_error")]
)
@pytest.mark.parametrize("what", ["retry_if", "backoff"])
def test_what_a_rule_raises_tells_of_the_failure_and_is_not_judged_by_it(
    what: str, failure: Exception
) -> None:
    def fail(*_: object) -> Any:
        raise raised

    for raised in (AttributeError("no"), rd.InvalidValueError("no")):
        got: list[Any] = []
        source = rx.concat(rx.of(TEXT), rx.throw(copy(failure)))
        rd.retry_stream(lambda source=source: source, **{what: fail}).subscribe(on_error=got.append)
        assert got == [raised]
        context = raised.__context__
        assert type(failure) in (type(context), type(context.__cause__))  # type: ignore[union-attr]
        assert not rd.errors.is_transient(raised)
        assert context.snapshot.blocks  # type: ignore[union-attr]
        if isinstance(raised, rd.RxDeltaError):
            assert raised.snapshot is context.snapshot  # type: ignore[union-attr]


@pytest.mark.parametrize("again", [lambda error: error, lambda error: error.__cause__])
def test_a_rule_may_raise_what_it_was_asked_about(again: Any) -> None:
    def fail(error: Exception) -> bool:
        raise again(error)

    got: list[Any] = []
    rd.retry_stream(lambda: rx.throw(ConnectionError("reset")), retry_if=fail).subscribe(on_error=got.append)
    assert rd.errors.is_transient(got[0])
    assert got[0].__context__ is None


def test_a_cut_message_is_asked_for_again_if_the_predicate_says_so() -> None:
    told, subscriptions = attempts(
        "-sa|", "-sa|", retry_if=lambda error: isinstance(error, rd.IncompleteMessageError)
    )
    assert [type(event) for _, _, event in told[2:-1]] == [ev.AttemptReset, ev.BlockStart, ev.TextDelta]
    assert told[-1] == (10, "completed", None)  # the last one stays incomplete
    assert subscriptions == [[(0, 3)], [(7, 10)]]


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), None, "1", True])
def test_a_backoff_gives_seconds(seconds: Any) -> None:
    told, _ = attempts("-sa#", "-sM|", backoff=lambda *_: seconds)
    assert type(told[-1][2]) is rd.InvalidValueError


def test_a_factory_that_raises_has_failed_and_one_that_gives_something_else_is_wrong() -> None:
    each: Any = iter([TimeoutError("no"), TimeoutError("no"), rx.of(ev.MessageFinish("stop"))])

    def request() -> Any:
        made = next(each)
        if isinstance(made, Exception):
            raise made
        return made

    got: list[Any] = []
    rd.retry_stream(request, backoff=no_wait).subscribe(got.append, got.append)
    assert [type(event) for event in got] == [ev.AttemptReset, ev.AttemptReset, ev.MessageFinish]
    got.clear()
    rd.retry_stream(lambda: None).subscribe(got.append, got.append)  # type: ignore[arg-type,return-value]
    assert [type(event) for event in got] == [rd.InvalidValueError]


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([{"type": "ping"}], rd.InvalidValueError),
        ([ev.MessageStart("1"), ev.MessageFinish("stop"), ev.MessageStart("2")], rd.ProtocolError),
        (
            [ev.BlockStart(0, {"type": "text"}), ev.BlockStart(1, {"type": "text"})],
            rd.errors.LimitExceededError,
        ),
    ],
)
def test_what_is_wrong_is_never_tried_again(events: Any, error: type[Exception]) -> None:
    asked: list[int] = []
    source = Subject[Any]()
    got: list[Any] = []
    made = rd.retry_stream(
        lambda: (asked.append(1), source)[1],
        backoff=no_wait,
        retry_if=lambda _: True,
    ).pipe(rd.with_limits(rd.Limits(blocks=1)))
    made.subscribe(got.append, got.append)
    for event in events:
        source.on_next(event)
    assert (type(got[-1]), asked, source.observers) == (error, [1], [])


# Subscribing, leaving, and whose time it is.


def test_each_subscription_makes_its_own_requests() -> None:
    asked: list[int] = []

    def request() -> Observable[rd.Event]:
        asked.append(1)
        return rx.throw(OVERLOADED) if len(asked) % 2 else rx.of(ev.MessageFinish("stop"))

    events = rd.retry_stream(request, backoff=no_wait)
    for _ in range(2):
        got: list[Any] = []
        events.subscribe(got.append, got.append)
        assert [type(event) for event in got] == [ev.AttemptReset, ev.MessageFinish]
    assert len(asked) == 4


def test_an_explicit_scheduler_wins_over_the_subscribers_which_goes_upstream() -> None:
    seen: list[Any] = []

    def subscribe(observer: abc.ObserverBase[Any], scheduler: abc.SchedulerBase | None = None) -> Disposable:
        seen.append(scheduler)
        observer.on_error(OVERLOADED)
        return Disposable()

    mine, theirs = TestScheduler(), TestScheduler()
    rd.retry_stream(lambda: Observable(subscribe), 2, four, scheduler=mine).subscribe(
        on_error=lambda _: None, scheduler=theirs
    )
    theirs.advance_to(100)
    assert seen == [theirs]
    mine.advance_to(100)
    assert seen == [theirs, theirs]


def test_many_attempts_that_fail_at_once_do_not_nest() -> None:
    asked: list[int] = []
    errors: list[Exception] = []
    events = rd.retry_stream(lambda: (asked.append(1), rx.throw(OVERLOADED))[1], 5000, no_wait)
    events.subscribe(on_error=errors.append)
    assert (len(asked), errors) == (5000, [OVERLOADED])


def test_without_a_loop_a_thread_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(clocks, "monotonic", lambda: now[0])
    requests = iter([rx.throw(OVERLOADED), rx.of(ev.MessageFinish("stop"))])
    done = threading.Event()
    rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0.001).subscribe(on_completed=done.set)
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "rxdelta-timer"]
    assert not done.is_set()
    now[0] = 1.0
    assert done.wait(10)
    thread.join(10)
    assert not thread.is_alive()


def test_on_a_loop_every_stream_is_closed_and_the_readers_context_is_kept() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name")
    names: list[str] = []

    async def main() -> rd.Message:
        streams = [Stream(*ANTHROPIC[:5], end=ConnectionResetError("gone")), Stream(*ANTHROPIC)]
        each = iter(streams)

        def request() -> Observable[rd.Event]:
            names.append(name.get())
            return rd.from_async_iterable(next(each)).pipe(rd.decode("anthropic-messages"))

        name.set("reader")
        events = rd.retry_stream(request, backoff=lambda *_: 0.001)
        message = await rd.last_value(events.pipe(rd.scan_deltas(), rd.to_message()))
        assert [stream.closed for stream in streams] == [1, 1]
        return message

    message = run_loop(main)
    assert (message.text, message.attempt, names) == ("Let me look.", 1, ["reader", "reader"])
    assert message.total_usage == rd.TokenUsage(6, 6, message.total_usage.raw)  # type: ignore[union-attr]


def test_every_request_is_made_in_the_readers_context() -> None:
    name: contextvars.ContextVar[str] = contextvars.ContextVar("name", default="nobody")
    names: list[str] = []

    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> Disposable:
        names.append(name.get())
        observer.on_error(OVERLOADED)
        return Disposable()

    def request() -> Observable[rd.Event]:
        names.append(name.get())
        return Observable(subscribe)

    scheduler = TestScheduler()
    events = rd.retry_stream(request, 2, four)

    def read() -> None:
        name.set("reader")
        events.subscribe(on_error=lambda _: None, scheduler=scheduler)

    contextvars.copy_context().run(read)
    scheduler.advance_to(100)
    assert names == ["reader"] * 4


@given(
    cuts=st.lists(st.integers(0, 12), max_size=4),
    resume=st.booleans(),
    limit=st.integers(1, 6),
)
def test_the_text_is_whole_whatever_breaks_off_where(cuts: list[int], resume: bool, limit: int) -> None:
    words = "abcdefghijkl"
    asked = 0

    def request(partial: rd.Snapshot | None) -> Observable[rd.Event]:
        nonlocal asked
        said = len(partial.text) if partial is not None else 0
        rest = [ev.TextDelta(0, letter) for letter in words[said:]]
        asked += 1
        begin = [ev.MessageStart(f"m{asked}", usage=rd.TokenUsage(1, 0)), TEXT]
        if asked > len(cuts):
            return rx.from_iterable([*begin, *rest, ev.BlockFinish(0), ev.MessageFinish("stop")])
        told = [*begin, *rest][: cuts[asked - 1]]
        return rx.concat(rx.from_iterable(told), rx.throw(OVERLOADED))

    requests, in_a_row, longest = len(cuts) + 1, 0, 0
    for number, cut in enumerate(cuts):
        length = min((longest if resume else 0) + max(cut - 2, 0), len(words))
        in_a_row = in_a_row + 1 if length <= longest else 1
        longest = max(longest, length)
        if in_a_row == limit:
            requests = number + 1
            break

    events = rd.retry_stream(request, limit, no_wait, resume)
    got: list[Any] = []
    checked: list[Any] = []
    events.subscribe(checked.append, checked.append, lambda: checked.append("|"))
    asked = 0
    events.pipe(rd.scan_deltas()).subscribe(got.append, got.append, lambda: got.append("|"))
    assert asked == requests
    if asked > len(cuts):
        *_, last, end = got
        assert (end, last.text, last.status) == ("|", words, "complete")
        began = sum(cut > 0 for cut in cuts) + 1
        assert last.total_usage.input_tokens == began
        lifecycle = rd.core.ProtocolChecker()
        assert [lifecycle.check(event) for event in checked[:-1]] == [None] * len(checked[:-1])
    else:
        assert got[-1] is OVERLOADED or type(got[-1]) is rd.ProviderError
        assert checked[-1] is OVERLOADED


def test_the_number_of_choices_is_limited() -> None:
    ends: list[Any] = []
    events = rx.from_iterable([rd.events.MessageStart(choice=choice) for choice in range(3)])
    rd.retry_stream(lambda: events).pipe(rd.with_limits(rd.Limits(choices=2))).subscribe(on_error=ends.append)
    assert [(type(end), end.limit) for end in ends] == [(rd.errors.LimitExceededError, "choices")]
