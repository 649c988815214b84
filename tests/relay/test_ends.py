"""How a stream in a relay ends, and what its readers get of that: the publisher, those who follow, those who come later."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from threading import Event as Flag
from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from relay.comparing import folded, now
from relay.conftest import Opener
from relay.reading import HELLO, read, told
from support.loops import run, turns
from support.runs import text, turn, within, woven

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError

ev = rd.events
START, BLOCK, *_ = HELLO
BEGUN = HELLO[:4]
STOPPED = ev.MessageInterrupted("enough")


async def ended_stream(relay: Relay) -> None:
    while await relay.is_live("chat"):
        await asyncio.sleep(0)


async def said(text: str, got: list[Any]) -> None:
    """Wait until the events have this text."""
    while "".join(getattr(event, "text", "") for event in got) != text:
        await asyncio.sleep(0)


def silent(*events: rd.Event) -> tuple[Observable[rd.Event], list[str]]:
    """A source that emits these and then nothing more, and a list of what becomes of it."""
    life: list[str] = []

    async def items() -> AsyncIterator[rd.Event]:
        life.append("subscribed")
        try:
            for event in events:
                yield event
            await asyncio.Event().wait()
        finally:
            life.append("closed")

    return rd.from_async_iterable(items), life


def test_an_event_is_in_the_log_when_it_is_emitted() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, kept = Subject[rd.Event](), list[list[Any]]()

            def take(_: rd.Event) -> None:
                kept.append(told(relay.watch("chat")))

            source.pipe(relay.publish("chat")).subscribe(take)
            source.on_next(START)
            source.on_next(BLOCK)
            await turns()
            assert kept == [[START, BLOCK], [START, BLOCK]]
            assert (
                len(told(relay.watch("chat"))) == 0
            )  # a reader is told in a turn of its own, never in `subscribe`

    run(main)


@pytest.mark.parametrize("ended", [False, True])
def test_a_second_publisher_is_refused_before_anything_is_paid(ended: bool, open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            first, second = Subject[rd.Event](), list[object]()
            await relay.start("chat", first)
            if ended:
                first.on_completed()
                await ended_stream(relay)
            paid = rx.defer(lambda _: second.append("subscribed") or rx.never())
            (error,) = await read(paid.pipe(relay.publish("chat")))
            assert isinstance(error, rd.InvalidValueError)
            assert ("is kept" if ended else "is live") in str(error)
            assert second == []
            assert await relay.start("chat", paid) is False
            assert second == []

    run(main)


def test_a_foreign_error_is_the_subscribers_own_and_masked_for_readers(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            error = RuntimeError("db password=hunter2")
            source = rx.concat(rx.of(*BEGUN), rx.throw(error))
            early = asyncio.create_task(read(relay.watch("chat")))
            await turns()
            published = await read(source.pipe(relay.publish("chat")))
            assert published[-1] is error
            errors = [await early, await read(relay.watch("chat")), await read(relay.watch("chat"))]
            assert len({id(got[-1]) for got in errors}) == 3
            for got in errors:
                seen = got[-1]
                assert type(seen) is rd.StreamInterrupted
                assert "hunter2" not in f"{seen!r} {seen.__cause__} {seen.__context__} {vars(seen)}"
                assert seen.snapshot is not None
                assert seen.snapshot.text == "He"

    run(main)


def test_an_error_of_ours_that_quotes_a_foreign_one_is_masked_too(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            quoting = rd.StreamInterrupted.by(RuntimeError("db password=hunter2"))
            assert "hunter2" in str(quoting)
            await read(rx.throw(quoting).pipe(relay.publish("chat")))
            (seen,) = await read(relay.watch("chat"))
            assert "hunter2" not in f"{seen!r} {seen.__cause__} {seen.__context__}"

    run(main)


OURS: list[rd.RxDeltaError] = [
    rd.ProviderError("busy", type="overloaded_error", code="529", transient=True),
    rd.errors.StallTimeoutError("silent", limit="idle", seconds=3.0),
    rd.errors.MalformedChunkError.at("openai-chat", "choices[0]", "an object", 3),
    rd.errors.LimitExceededError.of("blocks", 3, "it"),
    rd.InvalidValueError("wrong", field="a", value=object()),
    rd.StreamInterrupted("the network went away"),
]


@pytest.mark.parametrize("error", OURS, ids=lambda error: type(error).__name__)
def test_an_error_of_ours_comes_by_type_with_the_fold_of_the_whole_log(
    error: rd.RxDeltaError, open_relay: Opener
) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            published = await read(rx.concat(rx.of(*BEGUN), rx.throw(error)).pipe(relay.publish("chat")))
            assert published[-1] is error
            assert error.snapshot is None
            entries = await read(relay.entries("chat"))
            for after in (None, entries[0].id, entries[-2].id):
                seen = (await read(relay.watch("chat", after)))[-1]
                assert type(seen) is type(error)
                assert str(seen) == str(error)
                plain = {
                    name: value for name, value in vars(error).items() if isinstance(value, (str, float))
                }
                assert plain.items() <= vars(seen).items()
                assert vars(seen).keys() == vars(error).keys()
                assert vars(seen).get("value") is None  # it may be anything
                assert seen is not error
                assert seen.snapshot.text == "He"

    run(main)


class _Busy(rd.ProviderError):
    """An application's own kind."""


def test_a_users_kind_of_our_error_comes_as_ours(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            await read(rx.throw(_Busy("busy", code="529")).pipe(relay.publish("chat")))
            (seen,) = await read(relay.watch("chat"))
            assert type(seen) is rd.ProviderError
            assert (seen.message, seen.code) == ("busy", "529")

    run(main)


def test_notes_stay_with_the_publisher_and_a_reader_can_add_its_own(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            error = rd.ProviderError("busy")
            error.add_note("the key was sk-1")
            await read(rx.throw(error).pipe(relay.publish("chat")))
            (seen,) = await read(relay.watch("chat"))
            seen.add_note("in chat 7")
            assert seen.__notes__ == ["in chat 7"]
            (other,) = await read(relay.watch("chat"))
            assert not hasattr(other, "__notes__")

    run(main)


def test_an_error_before_the_first_event_has_no_snapshot(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            await read(rx.throw(rd.ProviderError("busy")).pipe(relay.publish("chat")))
            (seen,) = await read(relay.watch("chat"))
            assert seen.snapshot is None

    run(main)


def test_of_several_runs_the_snapshot_is_the_newest_message(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            woven_ = woven(within("a", turn(text(0, "of a"))), within("b", turn(text(0, "of b"))))
            source = rx.concat(rx.of(*woven_), rx.throw(rd.ProviderError("busy")))
            await read(source.pipe(relay.publish("chat")))
            seen = (await read(relay.watch("chat")))[-1]
            assert (seen.snapshot.run_id, seen.snapshot.text) == ("b", "of b")

    run(main)


@pytest.mark.parametrize("how", ["publish", "start"])
def test_a_stop_is_in_the_log_and_closes_a_source_that_is_silent(how: str, open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            source, life = silent(*BEGUN)
            if how == "start":
                assert await relay.start("chat", source)
                published = None
            else:
                published = asyncio.create_task(read(source.pipe(relay.publish("chat"))))
            got: list[Any] = []
            following = asyncio.create_task(read(relay.watch("chat"), got))
            await said("He", got)
            assert life == ["subscribed"]
            assert await relay.is_live("chat")
            assert await relay.cancel("chat", "enough") is True
            async with asyncio.timeout(2):
                if published is not None:
                    assert await published == [*BEGUN, STOPPED, "|"]
                *events, last, end = await following
                assert folded(events) == folded(BEGUN)  # a reader that comes late gets them joined
                assert [last, end] == [STOPPED, "|"]
                assert not await relay.is_live("chat")
                while life != ["subscribed", "closed"]:
                    await asyncio.sleep(0)
            assert (await read(relay.watch("chat")))[-2:] == [STOPPED, "|"]
            assert await relay.cancel("chat", "enough") is False
            assert await relay.cancel("another") is False

    run(main)


@pytest.mark.parametrize("how", ["cancel", "delete", "close", "leave"])
def test_a_source_that_cannot_be_closed_ends_the_stream_all_the_same(how: str) -> None:
    def unclosable(observer: Any, _: Any) -> Disposable:
        for event in BEGUN:
            observer.on_next(event)

        def close() -> None:
            raise OSError("the connection is gone")

        return Disposable(close)

    reports: list[dict[str, Any]] = []

    async def main() -> None:
        async with Relay.open() as relay:
            publisher = rx.create(unclosable).pipe(relay.publish("chat")).subscribe()
            other = told(rx.create(unclosable).pipe(relay.publish("other")))
            following = asyncio.create_task(read(relay.watch("chat")))
            await turns()
            if how == "cancel":
                assert await relay.cancel("chat", "enough") is True
            elif how == "delete":
                assert await relay.delete("chat") is True
            elif how == "leave":
                with pytest.raises(OSError, match="gone"):
                    publisher.dispose()
            if how != "close":
                assert not await relay.is_live("chat")
                assert await relay.cancel("other")
        async with asyncio.timeout(2):
            last, end = (await following)[-2:]
        assert isinstance(last, ev.MessageInterrupted)
        assert end == other[-1] == "|"

    run(main, reports=reports)
    assert {type(report["exception"]) for report in reports} == {OSError}


def test_a_stop_that_comes_while_the_stream_begins_is_no_less_a_stop() -> None:
    """A reader that waits for the stream hears of it before the source is subscribed, and stops it at that moment."""

    async def main() -> None:
        async with Relay.open() as relay:
            source, life = silent(*HELLO)
            stopped: list[bool] = []

            class Stopping(TestScheduler):
                def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> Any:
                    if duetime == 0:
                        stopped.append(now(relay.cancel("chat", "enough")))
                    return super().schedule_relative(duetime, action, state)

            relay.watch("chat").subscribe(scheduler=Stopping())
            published = told(source.pipe(relay.publish("chat")))
            assert stopped[:1] == [True]
            assert published == await read(relay.watch("chat")) == [STOPPED, "|"]
            assert life == []

    run(main)


def test_a_stop_reaches_the_readers_while_the_publishers_own_subscriber_is_stuck() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, go_on = Subject[rd.Event](), Flag()
            published: list[Any] = []

            def take(event: rd.Event) -> None:
                published.append(event)
                assert go_on.wait(60)

            source.pipe(relay.publish("chat")).subscribe(
                take, published.append, lambda: published.append("|")
            )
            emitting = asyncio.create_task(asyncio.to_thread(source.on_next, START))
            following = asyncio.create_task(read(relay.watch("chat")))
            while published == []:
                await asyncio.sleep(0)
            await asyncio.to_thread(source.on_next, BLOCK)  # waits for its turn, and comes behind the end
            assert await relay.cancel("chat", "enough")
            assert await following == [START, STOPPED, "|"]
            assert source.observers == []
            go_on.set()
            await emitting
            assert published == [START, STOPPED, "|"]

    run(main)


def test_a_run_that_has_started_has_subscribed_its_source(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            assert await relay.start("chat", rx.concat(rx.from_iterable(HELLO[:3]), rx.never()))
            assert await relay.cancel("chat", "enough")
            assert await read(relay.watch("chat")) == [*HELLO[:3], STOPPED, "|"]

    run(main)


def test_a_stop_of_several_runs_is_one_for_all() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source = Subject[rd.Event]()
            told(source.pipe(relay.publish("chat")))
            for event in woven(
                within("a", turn(text(0, "of a"))[:-2]), within("b", turn(text(0, "of b"))[:-2])
            ):
                source.on_next(event)
            await relay.cancel("chat", "enough")
            runs: dict[str, rd.Snapshot] = {}

            def fold(stream: Any) -> Any:
                stream.pipe(rd.scan_deltas()).subscribe(lambda now: runs.__setitem__(now.run_id, now))

            await rd.for_each(relay.watch("chat").pipe(rd.group_by_run()), fold)
            assert {name: now.status for name, now in runs.items()} == dict.fromkeys("ab", "interrupted")

    run(main)


def test_who_leaves_as_the_publisher_ends_the_stream(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            source, life = silent(*BEGUN)
            publishing = source.pipe(relay.publish("chat")).subscribe()
            got: list[Any] = []
            following = asyncio.create_task(read(relay.watch("chat"), got))
            await said("He", got)
            publishing.dispose()
            *events, last, end = await following
            assert folded(events) == folded(BEGUN)
            assert [last, end] == [ev.MessageInterrupted("publisher left"), "|"]
            await turns()
            assert life == ["subscribed", "closed"]

    run(main)


def test_an_observer_of_the_publisher_that_raises_has_left() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source = Subject[rd.Event]()

            def take(_: rd.Event) -> None:
                raise ZeroDivisionError

            source.pipe(relay.publish("chat")).subscribe(take)
            with pytest.raises(ZeroDivisionError):
                source.on_next(START)
            assert await read(relay.watch("chat")) == [START, ev.MessageInterrupted("publisher left"), "|"]

    run(main)


@pytest.mark.parametrize("value", [rd.Snapshot(), {"event": "message-start"}, None])
def test_what_is_no_event_ends_the_stream_for_all(value: Any, open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            published = await read(rx.of(START, value).pipe(relay.publish("chat")))
            assert isinstance(published[-1], rd.InvalidValueError)
            got = await read(relay.watch("chat"))
            assert got[0] == START
            assert (type(got[1]), str(got[1])) == (rd.InvalidValueError, str(published[-1]))

    run(main)


def test_a_stream_that_grows_beyond_the_limit_ends_with_what_it_has(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay(max_events=4) as relay:
            source, life = silent(*HELLO)
            for got in (await read(source.pipe(relay.publish("chat"))), await read(relay.watch("chat"))):
                error = got[-1]
                assert isinstance(error, rd.errors.LimitExceededError)
                assert (error.limit, error.maximum) == ("max_events", 4)
            assert error.snapshot is not None
            assert error.snapshot.text == "He"
            await turns()
            assert life == ["subscribed", "closed"]
            exactly = await read(rx.of(*BEGUN).pipe(relay.publish("exactly")))
            assert exactly == [*BEGUN, "|"]

    run(main)


def test_an_error_of_a_run_that_nobody_watches_is_logged_and_kept(
    caplog: pytest.LogCaptureFixture, open_relay: Opener
) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            assert await relay.start("chat", rx.concat(rx.of(START), rx.throw(RuntimeError("db is away"))))
            await ended_stream(relay)
            got = await read(relay.watch("chat"))
            assert [type(one) for one in got] == [ev.MessageStart, rd.StreamInterrupted]

    with caplog.at_level(logging.ERROR, "rxdelta"):
        run(main)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert "db is away" in str(record.exc_info[1])


def test_what_raises_behind_a_timer_of_a_run_ends_the_run() -> None:
    async def main() -> None:
        async with Relay.open() as relay:

            def begin(sink: rd.building.Sink[rd.Event]) -> Any:
                sink.timer(sink.clock()).start(0.001, divide)
                return sink

            def divide() -> None:
                raise ZeroDivisionError

            assert await relay.start("chat", rx.never().pipe(rd.building.lift("boom", begin)))
            (got,) = await read(relay.watch("chat"))
            assert type(got) is rd.StreamInterrupted

    run(main)


def test_a_run_goes_on_without_readers_and_can_be_joined_by_calling_start_again(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            source, life = silent(*HELLO)
            assert await relay.start("chat", source) is True
            reading = asyncio.create_task(read(relay.watch("chat")))
            await turns()
            reading.cancel()
            await asyncio.wait([reading])
            assert await relay.start("chat", source) is False
            assert life == ["subscribed"]
            assert await rd.first_value(relay.watch("chat")) == START
            assert await relay.streams() == ["chat"]

    run(main)


def test_a_run_outlives_the_caller_that_was_cancelled() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, life = silent(*HELLO)
            caller = asyncio.create_task(relay.start("chat", source))
            await asyncio.sleep(0)
            caller.cancel()
            await asyncio.wait([caller])
            await turns()
            assert await relay.is_live("chat")
            assert life == ["subscribed"]

    run(main)


def test_a_run_within_a_reading_doesnt_end_with_it() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source, life = silent(*HELLO)
            async with rd.to_async_iterable(rx.of(1)) as numbers:
                async for _ in numbers:
                    await relay.start("chat", source)
            await turns()
            assert await relay.is_live("chat")
            assert life == ["subscribed"]

    run(main)


def test_a_closed_relay_says_so_on_its_loop_and_on_another_when_that_is_gone(open_relay: Opener) -> None:
    async def check(relay: Relay) -> None:
        (error,) = await read(relay.watch("chat"))
        assert (type(error), str(error)) == (StreamUnreadableError, "the relay was closed")
        (error,) = await read(rx.of(START).pipe(relay.publish("chat")))
        assert isinstance(error, rd.InvalidValueError)
        with pytest.raises(rd.InvalidValueError, match="was closed"):
            await relay.start("chat", rx.of(START))
        for asking in relay.is_live("chat"), relay.streams(), relay.cancel("chat"), relay.delete("chat"):
            with pytest.raises(
                rd.StreamInterrupted, match=r"^the relay was closed$"
            ):  # it may be live on the server
                await asking

    async def closed() -> Relay:
        async with open_relay() as relay:
            await relay.start("chat", rx.of(START))
        await check(relay)
        return relay

    relay = asyncio.run(closed())
    run(lambda: check(relay))
