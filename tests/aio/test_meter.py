"""`ReaderMeter`: what waits for the readers, and what becomes of it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex.subject import Subject
from support.loops import run as run_loop

import rxdelta as rd

ev = rd.events


def total(metrics: rd.types.ReaderMetrics) -> int:
    return metrics.queued + metrics.delivered + metrics.joined + metrics.dropped + metrics.unread


def test_two_readers_are_counted_together() -> None:
    async def main() -> None:
        meter, source = rd.ReaderMeter(), Subject[rd.Event]()
        assert meter.metrics == rd.types.ReaderMetrics()
        async with (
            rd.to_async_iterable(source, meter=meter) as all_of_them,
            rd.to_async_iterable(source, "join", meter=meter),
        ):
            source.on_next(ev.BlockStart(0, {"type": "text"}))
            for piece in "abc":
                source.on_next(ev.TextDelta(0, piece))
            await anext(all_of_them)
            assert meter.metrics == rd.types.ReaderMetrics(
                readers=2, queued=5, longest_queue=4, received=8, delivered=1, joined=2
            )
        assert meter.metrics == rd.types.ReaderMetrics(
            longest_queue=4, received=8, delivered=1, joined=2, unread=5
        )

    run_loop(main)


def test_a_newer_value_drops_one() -> None:
    meter, source = rd.ReaderMeter(), Subject[int]()

    async def main() -> None:
        async with rd.to_async_iterable(source, "latest", meter=meter) as values:
            for number in range(5):
                source.on_next(number)
            assert await anext(values) == 4

    run_loop(main)
    assert meter.metrics == rd.types.ReaderMetrics(longest_queue=1, received=5, delivered=1, dropped=4)


def test_who_is_too_slow_is_counted_once() -> None:
    meter, source = rd.ReaderMeter(), Subject[rd.Snapshot]()

    async def main() -> None:
        async with rd.to_async_iterable(source, "error", maxsize=2, meter=meter) as values:
            for number in range(5):
                source.on_next(rd.MessageDelta(content=str(number)))
            with pytest.raises(rd.errors.BufferOverflowError) as caught:
                [value async for value in values]
            assert caught.value.snapshot is not None

    run_loop(main)
    assert meter.metrics == rd.types.ReaderMetrics(longest_queue=2, received=2, delivered=2, overflows=1)


def test_who_falls_behind_the_others_is_counted_too() -> None:
    meter = rd.ReaderMeter()

    async def many() -> Any:
        for number in range(9_000):
            yield ev.ProviderEvent("p", "odd", {"number": number})  # isn't joined

    async def main() -> None:
        shared = rd.from_async_iterable(many).pipe(rd.share_events())
        async with rd.to_async_iterable(shared, "join", meter=meter, maxsize=1) as stuck:
            await rd.last_value(shared)
            with pytest.raises(rd.errors.BufferOverflowError):
                [value async for value in stuck]

    run_loop(main)
    assert (meter.metrics.overflows, meter.metrics.received) == (1, 8_193)


@pytest.mark.parametrize("way", ["for_each", "iterate", "to_iterable", "stream", "blocking stream"])
def test_every_door_takes_it(way: str) -> None:
    meter = rd.ReaderMeter()
    chunks = [{"id": "c1", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "lo")]

    async def main() -> None:
        if way == "for_each":
            await rd.for_each(rx.of(1, 2), str, meter=meter)
        elif way == "iterate":
            assert [value async for value in rd.iterate(rx.of(1, 2), meter=meter)] == [1, 2]
        else:
            async with rd.stream(chunks, meter=meter) as reply:
                assert [snapshot async for snapshot in reply][-1].text == "Hello"
                assert [piece async for piece in reply.text_deltas] == ["Hello"]

    if way == "to_iterable":
        with rd.to_iterable(rx.of(1, 2), meter=meter) as values:
            assert list(values) == [1, 2]
    elif way == "blocking stream":
        with rd.stream(chunks, meter=meter) as reply:
            assert list(reply)[-1].text == "Hello"
            assert list(reply.text_deltas) == ["Hello"]
    else:
        run_loop(main)
    metrics = meter.metrics
    assert metrics.delivered >= 2
    assert (metrics.readers, metrics.queued, metrics.received) == (0, 0, total(metrics))


def test_what_is_no_meter_is_refused() -> None:
    wrong: Any = {"queued": 0}
    with pytest.raises(rd.InvalidValueError, match="ReaderMeter"):
        rd.to_iterable(rx.of(1), meter=wrong)
    with pytest.raises(rd.InvalidValueError, match="ReaderMeter"):
        rd.stream([], meter=wrong)


@given(
    st.lists(st.sampled_from("et-l"), max_size=60),
    st.sampled_from(["block", "buffer", "latest", "join", "error"]),
)
def test_the_counts_add_up(steps: list[str], policy: Any) -> None:
    meter, source = rd.ReaderMeter(), Subject[Any]()

    async def main() -> None:
        async with rd.to_async_iterable(source, policy, maxsize=100, meter=meter) as values:
            came = taken = 0
            for step in steps:
                if step == "e":
                    event: Any = ev.TextDelta(0, "x") if came % 3 else ev.ToolUpdate(f"c{came}", "running")
                    source.on_next(came if policy == "latest" else event)
                    came += 1
                elif step == "t" and meter.metrics.queued:
                    await anext(values)
                    taken += 1
                now = meter.metrics
                assert (now.received, now.delivered, total(now)) == (came, taken, came)
                assert now.readers == 1
                if policy not in ("latest", "join"):
                    assert now.joined == now.dropped == 0

    asyncio.run(main())
    assert meter.metrics.queued == 0
    assert total(meter.metrics) == meter.metrics.received


def test_53_it_may_be_asked_while_threads_count() -> None:
    meter = rd.ReaderMeter()

    def read() -> None:
        for _ in range(5):
            with rd.to_iterable(rd.from_iterable(lambda: iter(range(200))), meter=meter) as values:
                assert list(values) == list(range(200))

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    before = meter.metrics
    while any(thread.is_alive() for thread in threads):
        now = meter.metrics
        assert total(now) == now.received >= before.received
        assert now.delivered >= before.delivered
        before = now
    assert (meter.metrics.received, meter.metrics.delivered, meter.metrics.readers) == (2_000, 2_000, 0)


def test_opentelemetry_gets_it_as_often_as_it_asks() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    meter, source = rd.ReaderMeter(), Subject[int]()
    meter.report_otel(attributes={"of": "chat"}, meter_provider=provider)

    def exported() -> dict[tuple[str, Any], Any]:
        data: Any = reader.get_metrics_data()
        return {
            (metric.name, point.attributes.get("rxdelta.reader.outcome")): point.value
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
            if point.attributes["of"] == "chat"
        }

    async def main() -> dict[tuple[str, Any], Any]:
        async with rd.to_async_iterable(
            source, "latest", key=lambda number: number % 2, meter=meter
        ) as values:
            for number in range(5):
                source.on_next(number)
            await anext(values)
            return exported()

    name = "rxdelta.reader"
    assert run_loop(main) == {
        (f"{name}.count", None): 1,
        (f"{name}.queue.length", None): 1,
        (f"{name}.queue.longest", None): 2,
        (f"{name}.overflows", None): 0,
        (f"{name}.values", "delivered"): 1,
        (f"{name}.values", "joined"): 0,
        (f"{name}.values", "dropped"): 3,
        (f"{name}.values", "unread"): 0,
    }
    assert exported()[f"{name}.values", "unread"] == 1
    assert exported()[f"{name}.count", None] == 0
    provider.shutdown()
