"""The shell of operators: turns, ends, and the two kinds of exceptions."""

from __future__ import annotations

import gc
import logging
import weakref
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, compose, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.loops import run

import rxdelta as rd
from rxdelta import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BOOM = ValueError("boom")


class Doubling:
    """A machine: each value twice."""

    def step(self, value: str) -> Iterator[str]:
        if value == "?":
            raise BOOM
        yield value
        yield value.upper()
        if value == "!":
            raise BOOM

    def close(self) -> Iterator[str]:
        yield "."


class Forgiving(Doubling):
    def fail(self, error: Exception) -> tuple[list[str], Exception | None]:
        return [f"({error})"], None


class Passing:
    """A state: each value, and one that is added."""

    def __init__(self, sink: rd.building.Sink[str]) -> None:
        self._sink = sink

    def on_next(self, value: str) -> None:
        if value == "?":
            raise BOOM
        self._sink.on_next(value)
        self._sink.on_next(value.upper())


class Upper:
    """A mapper."""

    def step(self, value: str) -> str | None:
        if value == "?":
            raise BOOM
        return None if value == "_" else value.upper()


def machine() -> Any:
    return rd.building.lift_machine("doubling", lambda _: Doubling())


def state() -> Any:
    return rd.building.lift("passing", Passing)


def mapper() -> Any:
    return rd.building.lift_map("upper", lambda _: Upper())


def read(source: Observable[Any], on_value: Callable[[Any], object] = lambda _: None) -> list[Any]:
    got: list[Any] = []

    def on_next(value: Any) -> None:
        got.append(value)
        on_value(value)

    source.subscribe(on_next, got.append, lambda: got.append("|"))
    return got


def test_what_each_form_emits() -> None:
    assert read(rx.of("a", "b").pipe(machine())) == ["a", "A", "b", "B", ".", "|"]
    assert read(rx.of("a", "b").pipe(state())) == ["a", "A", "b", "B", "|"]
    assert read(rx.of("a", "_", "b").pipe(mapper())) == ["A", "B", "|"]


def test_errors_of_the_own_code_end_the_stream_after_the_values_before_them() -> None:
    for operator, expected in (
        (machine(), ["a", "A", BOOM]),
        (state(), ["a", "A", BOOM]),
        (mapper(), ["A", BOOM]),
    ):
        source = Subject[str]()
        got = read(source.pipe(operator))
        for value in ("a", "?", "b"):
            source.on_next(value)
        assert got == expected
        assert source.observers == []
    assert read(rx.of("!", "b").pipe(machine())) == ["!", "!", BOOM]


def test_a_machine_may_turn_errors_into_values() -> None:
    operator: Any = rd.building.lift_machine("forgiving", lambda _: Forgiving())
    assert read(rx.of("a", "?", "b").pipe(operator)) == ["a", "A", "(boom)", "|"]
    assert read(rx.throw(BOOM).pipe(operator)) == ["(boom)", "|"]


def test_an_error_of_the_source_is_passed_on_without_a_trace_of_its_own() -> None:
    error = ValueError()
    assert read(rx.throw(error).pipe(machine(), state(), mapper())) == [error]
    assert error.__traceback__ is None


def test_an_effect_waits_for_the_chain_and_for_the_turn() -> None:
    done: list[Any] = []

    class Asking:
        def __init__(self, sink: rd.building.Sink[str]) -> None:
            self._sink = sink

        def on_next(self, value: str) -> None:
            self._sink.effect(done.append, value)
            self._sink.on_next(value)

    def subscribe(observer: abc.ObserverBase[str], _: abc.SchedulerBase | None = None) -> abc.DisposableBase:
        observer.on_next("a")
        observer.on_next("b")
        return Disposable()

    asking = rd.building.lift("asking", Asking)
    Observable(subscribe).pipe(asking, ops.take(1)).subscribe()
    assert done == []
    Observable(subscribe).pipe(asking, ops.take(3)).subscribe(lambda value: done.append(value.upper()))
    assert done == ["A", "B", "a", "b"]


def test_a_source_is_disposed_when_an_observer_raises_in_an_effect_of_the_subscription() -> None:
    class Opening:
        def __init__(self, sink: rd.building.Sink[str]) -> None:
            self.on_next = sink.on_next
            sink.effect(sink.turn, sink.on_next, "a")

    def draw(_: str) -> None:
        raise BOOM

    source = Subject[str]()
    with pytest.raises(ValueError, match="boom"):
        source.pipe(rd.building.lift("opening", Opening)).subscribe(draw)
    assert source.observers == []


def test_an_observer_that_raises_in_a_timers_turn_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    class Ticking:
        def __init__(self, sink: rd.building.Sink[str]) -> None:
            self._sink = sink
            self.timer = sink.timer(sink.clock())
            self.timer.start(5, self.tick, "tick")

        def tick(self, value: str) -> None:
            self._sink.on_next(value)

        def on_next(self, value: str) -> None:
            self._sink.on_next(value)

    def draw(value: str) -> None:
        raise BOOM

    scheduler, source = TestScheduler(), Subject[str]()
    with caplog.at_level(logging.ERROR, "rxdelta"):
        source.pipe(rd.building.lift("ticking", Ticking)).subscribe(draw, scheduler=scheduler)
        scheduler.advance_to(10)
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [BOOM]
    assert source.observers == []


def test_the_last_owned_is_disposed_first_and_the_source_before_all() -> None:
    order: list[str] = []

    class Owning:
        def __init__(self, sink: rd.building.Sink[str]) -> None:
            for name in "ab":
                sink.own(Disposable(lambda name=name: order.append(name)))
            self.on_next = sink.on_next

    rx.never().pipe(
        ops.finally_action(lambda: order.append("source")), rd.building.lift("owning", Owning)
    ).subscribe().dispose()
    assert order == ["source", "b", "a"]


@pytest.mark.parametrize(
    ("make", "value"),
    [
        (machine, "a"),
        (state, "a"),
        (mapper, "a"),
        (rd.share_latest, "a"),
        (rd.group_by_block, ev.MessageStart()),
        (lambda: rd.run_tools({}), ev.MessageStart()),
    ],
)
@pytest.mark.parametrize("way", ["on_completed", "on_error", "dispose"])
@pytest.mark.parametrize("count", [0, 2])
def test_the_end_frees_the_observer_without_the_garbage_collector(
    make: Callable[[], Any], value: Any, way: str, count: int
) -> None:
    class Reader:
        def take(self, _: object) -> None: ...

    source, reader = Subject[str](), Reader()
    alive = weakref.ref(reader)
    gc.disable()
    try:
        subscription = source.pipe(make()).subscribe(reader.take, reader.take)
        del reader
        assert alive() is not None
        for _ in range(count):
            source.on_next(value)
        if way == "on_completed":
            source.on_completed()
        elif way == "on_error":
            source.on_error(BOOM)
        else:
            subscription.dispose()
        del source, subscription
        assert alive() is None
    finally:
        gc.enable()


TINY = rd.Limits(block_chars=3)
TEXT = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "abcd")]


class Replaying:
    """A decoder whose chunks are events."""

    def decode(self, chunk: Any) -> Any:
        return (chunk,)

    def close(self) -> Any:
        return ()


@pytest.mark.parametrize(
    "behind",
    [
        pytest.param([rd.scan_deltas()], id="next to it"),
        pytest.param(
            [ops.map(lambda event: event), rd.validate(lambda *_: None), rd.scan_deltas()],
            id="behind stock operators",
        ),
        pytest.param([rd.share_events()], id="share_events"),
        pytest.param([rd.share_events(), rd.scan_deltas()], id="behind share_events"),
    ],
)
def test_limits_given_at_decode_hold_behind_it(behind: list[Any]) -> None:
    got = read(rx.of(*TEXT).pipe(rd.decode(Replaying), rd.with_limits(TINY), *behind))
    assert isinstance(got[-1], rd.errors.LimitExceededError)
    assert not isinstance(read(rx.of(*TEXT).pipe(rd.decode(Replaying), *behind))[-1], Exception)


@pytest.mark.parametrize(
    "join",
    [
        pytest.param(lambda turn: rx.concat(rx.empty(), turn), id="concat"),
        pytest.param(lambda turn: rx.merge(rx.empty(), turn), id="merge"),
        pytest.param(lambda turn: rx.of(1).pipe(ops.flat_map(lambda _: turn)), id="flat_map"),
        pytest.param(lambda turn: turn.pipe(ops.retry(2)), id="retry"),
        pytest.param(lambda turn: rx.concat(rx.empty(), turn).pipe(rd.share_events()), id="share_events"),
    ],
)
def test_limits_given_at_decode_hold_for_the_reading_behind_turns_that_are_subscribed_later(
    join: Callable[[Any], Any],
) -> None:
    async def main() -> None:
        turn = rx.of(*TEXT).pipe(rd.decode(Replaying), rd.with_limits(TINY))
        with pytest.raises(rd.errors.LimitExceededError):
            await rd.for_each(join(turn).pipe(rd.scan_deltas()), lambda _: None)
        with pytest.raises(rd.errors.LimitExceededError):  # also where the door has others
            await rd.for_each(join(turn).pipe(rd.scan_deltas()), lambda _: None, limits=rd.Limits())

    run(main)


def test_limits_given_at_decode_hold_for_requests_that_come_later() -> None:
    decode = compose(rd.decode(Replaying), rd.with_limits(TINY))
    requests = iter([rx.throw(TimeoutError()).pipe(decode), rx.of(*TEXT).pipe(decode)])
    got = read(rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0).pipe(rd.scan_deltas()))
    assert isinstance(got[-1], rd.errors.LimitExceededError)


def test_an_operators_own_limits_come_first() -> None:
    operators: list[Any] = [
        rd.decode(Replaying),
        rd.with_limits(TINY),
        rd.scan_deltas(),
        rd.with_limits(rd.Limits()),
    ]
    assert read(rx.of(*TEXT).pipe(*operators))[-1] == "|"


def test_limits_of_one_pipeline_do_not_hold_for_another() -> None:
    read(rx.of(*TEXT).pipe(rd.decode(Replaying), rd.with_limits(TINY), rd.scan_deltas()))
    assert read(rx.of(*TEXT).pipe(rd.decode(Replaying), rd.scan_deltas()))[-1] == "|"


def test_encoders_show_a_limit_as_their_protocols_error() -> None:
    frames = read(rx.of(*TEXT).pipe(rd.decode(Replaying), rd.with_limits(TINY), rd.to_ai_sdk(on_error=str)))
    assert [frame for frame in frames if getattr(frame, "get", lambda _: 0)("type") == "error"]
    assert frames[-1] == "|"


@pytest.mark.parametrize("make", [rd.scan_deltas, rd.decode, rd.throttle_latest, rd.to_sse, rd.on_settled])
def test_an_operator_without_its_parentheses_says_so(make: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=rf"write source\.pipe\({make.__name__}\("):
        rx.of(1).pipe(make)
