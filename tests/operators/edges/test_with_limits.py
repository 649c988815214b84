"""Where the limits of a pipeline hold."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import ThreadPoolScheduler
from reactivex.subject import Subject

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.asgi import EventStreamResponse
from rxdelta.errors import LimitExceededError

SMALL, LARGE = rd.Limits(block_chars=4), rd.Limits(block_chars=100)
HELLO: list[Any] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text", "text": "Hello"}),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]
CHUNKS = [
    {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": None}]},
    {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
]


def told() -> Any:
    return rx.from_iterable(HELLO)


def end(source: Any) -> Any:
    """How it ends for who subscribes: the error's type, or `None`."""
    ends: list[Any] = []
    source.subscribe(lambda _: None, lambda error: ends.append(type(error)), lambda: ends.append(None))
    assert len(ends) == 1
    return ends[0]


FOLD = rd.scan_deltas()
TOOLS = rd.run_tools({"f": lambda: 1})


@pytest.mark.parametrize(
    "pipeline",
    [
        pytest.param(lambda w: told().pipe(w, FOLD), id="behind"),
        pytest.param(lambda w: told().pipe(FOLD, w), id="in front"),
        pytest.param(lambda w: told().pipe(FOLD, ops.map(lambda x: x), w), id="in front, past Rx's"),
        pytest.param(lambda w: told().pipe(w, ops.map(lambda x: x), FOLD), id="behind, past Rx's"),
        pytest.param(
            lambda w: rx.merge(rx.never().pipe(ops.take_until(rx.of(1))), told().pipe(w)).pipe(FOLD),
            id="merge",
        ),
        pytest.param(lambda w: rx.concat(rx.empty(), told().pipe(FOLD)).pipe(w), id="concat, in front"),
        pytest.param(
            lambda w: rx.of(1).pipe(ops.flat_map(lambda _: told().pipe(FOLD)), w), id="flat_map, in front"
        ),
        pytest.param(
            lambda w: rx.of(1).pipe(ops.map(lambda _: told().pipe(FOLD)), ops.switch_latest(), w),
            id="switch_latest",
        ),
        pytest.param(
            lambda w: rd.retry_stream(lambda: told().pipe(FOLD, ops.ignore_elements()), attempts=1).pipe(w),
            id="a request",
        ),
        pytest.param(lambda w: told().pipe(FOLD, ops.retry(2), w), id="retry"),
        pytest.param(lambda w: told().pipe(rd.share_events(), w), id="share_events"),
        pytest.param(lambda w: told().pipe(w, rd.share_events(), FOLD), id="behind share_events"),
        pytest.param(lambda w: told().pipe(FOLD, rd.share_latest(), w), id="in front of share_latest"),
        pytest.param(
            lambda w: told().pipe(w, rd.group_by_choice(), ops.flat_map(lambda c: c.pipe(FOLD))), id="a child"
        ),
        pytest.param(
            lambda w: told().pipe(rd.group_by_message(), ops.flat_map(lambda c: c.pipe(FOLD)), w),
            id="grouped",
        ),
        pytest.param(
            lambda w: told().pipe(rd.per_block(lambda b: b.pipe(rd.throttle_latest(9))), w), id="per_block"
        ),
        pytest.param(lambda w: told().pipe(TOOLS, w), id="run_tools"),
    ],
)
def test_they_hold_wherever_the_operator_stands(pipeline: Callable[[Any], Any]) -> None:
    assert end(pipeline(rd.with_limits(SMALL))) is LimitExceededError
    assert end(pipeline(rd.with_limits(LARGE))) is None

    async def at_a_door() -> None:
        with pytest.raises(LimitExceededError):
            await rd.for_each(pipeline(rd.with_limits(SMALL)), lambda _: None, limits=LARGE)
        await rd.for_each(pipeline(rd.with_limits(LARGE)), lambda _: None, limits=SMALL)

    asyncio.run(at_a_door())


def test_between_two_the_one_behind_holds() -> None:
    small, large = rd.with_limits(SMALL), rd.with_limits(LARGE)
    assert end(told().pipe(small, FOLD, large)) is None
    assert end(told().pipe(large, FOLD, small)) is LimitExceededError
    assert end(told().pipe(FOLD, small, large)) is LimitExceededError


def test_merged_branches_keep_their_own_and_loosen_none() -> None:
    small, large = rd.with_limits(SMALL), rd.with_limits(LARGE)
    for one, other in ((small, large), (large, small)):
        source = Subject[Any]()
        ends: list[Any] = []
        branches = [
            source.pipe(which, FOLD, ops.materialize(), ops.last(), ops.map(lambda note: note.kind))
            for which in (one, other)
        ]
        rx.merge(*branches).subscribe(ends.append)
        for event in HELLO:
            source.on_next(event)
        source.on_completed()
        assert sorted(ends) == ["C", "E"]
        assert end(rx.merge(rx.empty().pipe(one), told().pipe(other)).pipe(FOLD)) is LimitExceededError


def test_a_hot_source_and_another_thread() -> None:
    source = Subject[Any]()
    ends: list[Any] = []
    source.pipe(ops.observe_on(ThreadPoolScheduler(1)), FOLD, rd.with_limits(SMALL)).subscribe(
        on_error=lambda error: ends.append(type(error))
    )
    for event in HELLO:
        source.on_next(event)
    asyncio.run(asyncio.sleep(0.05))
    assert ends == [LimitExceededError]


def test_a_second_reader_of_a_shared_source_has_the_limits_in_front() -> None:
    source = Subject[Any]()
    shared = source.pipe(rd.with_limits(SMALL), ops.map(lambda event: event), rd.share_events(unread="keep"))
    ends: list[Any] = []
    shared.subscribe(on_error=lambda _: None)
    shared.pipe(FOLD).subscribe(on_error=lambda error: ends.append(type(error)))
    for event in HELLO:
        source.on_next(event)
    assert ends == [LimitExceededError]


def test_a_tools_own_events_are_bounded() -> None:
    agent = rd.run_tools({"ask": lambda: rx.from_iterable(HELLO)})
    asked = [
        ev.MessageStart("m"),
        ev.BlockFinish(0, {"type": "tool_call", "id": "c", "name": "ask", "args": {}}),
        ev.MessageFinish("tool_calls"),
    ]
    updates: list[Any] = []
    rx.from_iterable(asked).pipe(agent, rd.with_limits(SMALL)).subscribe(updates.append)
    statuses = [one.execution_status for one in updates if isinstance(one, ev.ToolUpdate)]
    assert statuses[-1] == "failed"


def test_an_encoder_shows_them() -> None:
    frames: list[Any] = []
    told().pipe(rd.to_ai_sdk(on_error=lambda error: type(error).__name__), rd.with_limits(SMALL)).subscribe(
        frames.append
    )
    assert frames[-2] == {"type": "error", "errorText": "LimitExceededError"}


def test_each_door_has_its_own() -> None:
    async def main() -> None:
        folded = told().pipe(FOLD)
        with pytest.raises(LimitExceededError):
            await rd.for_each(folded, lambda _: None, limits=SMALL)
        with pytest.raises(LimitExceededError):
            [one async for one in rd.iterate(folded, limits=SMALL)]
        with pytest.raises(LimitExceededError):
            async with rd.to_async_iterable(folded, limits=SMALL) as values:
                [one async for one in values]
        with pytest.raises(LimitExceededError):
            async with rd.stream(CHUNKS, limits=SMALL) as reply:
                await reply.result()
        response = EventStreamResponse(
            told(), rd.to_ai_sdk(on_error=lambda error: type(error).__name__), limits=SMALL
        )
        body = b"".join([piece async for piece in response.body_iterator])  # type: ignore[misc]
        assert b"LimitExceededError" in body

    asyncio.run(main())
    with pytest.raises(LimitExceededError), rd.to_iterable(told().pipe(FOLD), limits=SMALL) as values:
        list(values)


def test_the_run_of_a_relay_has_those_of_start(caplog: pytest.LogCaptureFixture) -> None:
    from rxdelta.relay import Relay

    async def main() -> list[Any]:
        async with Relay.open() as relay:
            await relay.start("one", told().pipe(rd.share_events()), limits=SMALL)
            return [event async for event in rd.iterate(relay.watch("one"))]

    with pytest.raises(rd.RxDeltaError):
        asyncio.run(main())
    assert "LimitExceededError" in caplog.text


def test_what_is_no_limits_is_refused() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"rd\.Limits"):
        rd.with_limits(4)  # type: ignore[arg-type]
