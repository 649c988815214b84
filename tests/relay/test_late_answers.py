"""What a publisher and a reader do while their store hasn't answered, or has failed, and on which thread they go on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from threading import Thread, get_ident
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import Observable, operators as ops
from reactivex.disposable import Disposable
from reactivex.subject import Subject
from relay.conftest import Opener
from relay.later import Later
from relay.reading import HELLO, told
from support.loops import run, turns

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError
from rxdelta.relay.logs import End, Name
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from reactivex import abc

    from rxdelta.relay.logs import Seeker

ev = rd.events
START, BLOCK, *_ = HELLO
AWAY = rd.StreamInterrupted("the server can't be reached")
LEFT = ev.MessageInterrupted("publisher left")


def opened(*holds: str) -> tuple[Relay, Later]:
    later = Later(asyncio.get_running_loop(), holds or ("claim", "find", "read", "append", "end"))
    return Relay(later, 10.0, 1_000_000), later


def counted(*events: rd.Event) -> tuple[Observable[rd.Event], list[str]]:
    """A source that emits these and then nothing more, and a list of what becomes of it."""
    life: list[str] = []

    def subscribe(observer: Any, _: Any = None) -> Any:
        life.append("subscribed")
        for event in events:
            observer.on_next(event)
        return Disposable(lambda: life.append("disposed"))

    return rx.create(subscribe), life


async def in_log(later: Later, stream: str = "chat") -> list[Any]:
    """What the log has, read without a wire."""
    relay = Relay(later.memory, 0.01, 1_000_000)
    got = told(relay.watch(stream).pipe(ops.take_until(rx.timer(0.05))))
    while not got or not (got[-1] == "|" or isinstance(got[-1], Exception)):
        await asyncio.sleep(0.005)
    return got


def test_nothing_is_subscribed_before_the_log_has_begun() -> None:
    async def main() -> None:
        relay, later = opened()
        source, life = counted(START)
        published = told(source.pipe(relay.publish("chat")))
        await turns()
        assert (life, published, later.asked) == ([], [], ["claim"])
        later.answer(1)
        assert life == []  # what a store says is a turn of the subscriber's own
        await turns()
        assert (life, published, later.asked) == (["subscribed"], [], ["append"])
        await relay._close()

    run(main)


def test_an_event_is_emitted_when_it_is_written_and_not_before() -> None:
    async def main() -> None:
        relay, later = opened()
        source = Subject[rd.Event]()
        published = told(source.pipe(relay.publish("chat")))
        later.answer()
        await turns()
        for event in HELLO:
            source.on_next(event)
        source.on_completed()
        await turns()
        assert published == []
        for count in range(1, len(HELLO) + 1):
            later.answer(1)
            await turns()
            assert published == HELLO[:count]
        assert later.asked == ["end"]
        later.answer()
        await turns()
        assert published == [*HELLO, "|"]

    run(main)


def test_a_source_that_completes_at_once_ends_behind_its_last_event() -> None:
    async def main() -> None:
        relay, later = opened()
        published = told(rx.of(*HELLO).pipe(relay.publish("chat")))
        while later.answer():
            await turns()
        assert published == [*HELLO, "|"]
        assert (await in_log(later))[-1] == "|"

    run(main)


def test_a_name_that_turns_out_to_be_taken_is_refused_and_nothing_is_paid() -> None:
    async def main() -> None:
        relay, later = opened()
        first, second = Subject[rd.Event](), Subject[rd.Event]()
        told(first.pipe(relay.publish("chat")))
        source, life = counted()
        refused = told(source.pipe(relay.publish("chat")))
        starting = asyncio.create_task(relay.start("chat", second))
        await turns()
        assert (refused, starting.done()) == ([], False)
        later.answer()
        await turns()
        (error,) = refused
        assert isinstance(error, rd.InvalidValueError)
        assert "is live" in str(error)
        assert starting.result() is False
        assert (life, len(second.observers)) == ([], 0)
        await relay._close()

    run(main)


def test_a_run_has_started_when_the_store_says_so() -> None:
    async def main() -> None:
        relay, later = opened()
        starting = asyncio.create_task(relay.start("chat", rx.of(*HELLO)))
        await turns()
        assert not starting.done()
        answering = Thread(target=later.answer, args=(1,))
        answering.start()
        answering.join()
        assert await starting is True
        assert later.asked == ["append"] * len(HELLO) + ["end"]  # the source is subscribed
        await relay._close()

    run(main)


def test_a_log_that_cannot_be_begun_is_the_error_of_publish_and_of_start() -> None:
    async def main() -> None:
        relay, later = opened()
        source, life = counted()
        published = told(source.pipe(relay.publish("chat")))
        starting = asyncio.create_task(relay.start("tides", source))
        await turns()
        later.fail(AWAY)
        await turns()
        assert published == [AWAY]
        with pytest.raises(rd.StreamInterrupted, match="can't be reached"):
            await starting
        assert life == []
        with pytest.raises(rd.StreamInterrupted, match="can't be reached"):
            await relay.start("moon", source)

    run(main)


def test_a_subscriber_that_leaves_before_the_log_has_begun_ends_it_at_its_beginning() -> None:
    async def main() -> None:
        relay, later = opened()
        source, life = counted(START)
        publishing = source.pipe(relay.publish("chat")).subscribe()
        publishing.dispose()
        later.answer()
        await turns()
        later.answer()
        assert life == []
        assert await in_log(later) == [LEFT, "|"]

    run(main)


def test_a_stop_as_soon_as_the_log_has_begun_is_heard_before_the_source_is_subscribed() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(START)
        published = told(source.pipe(relay.publish("chat")))
        later.answer(1)
        assert await relay.cancel("chat", "enough") is True  # the subscription is the subscriber's next turn
        assert await relay.cancel("chat", "enough") is False
        await turns()
        later.answer()
        await turns()
        assert life == []
        assert published == await in_log(later) == [ev.MessageInterrupted("enough"), "|"]

    run(main)


def test_a_stop_while_the_source_is_being_subscribed_disposes_it() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        life: list[str] = []

        def subscribe(observer: Any, _: Any = None) -> Any:
            stopping = Thread(target=lambda: asyncio.run(relay.cancel("chat", "enough")))
            stopping.start()
            stopping.join()
            observer.on_next(START)
            return Disposable(lambda: life.append("disposed"))

        published = told(rx.create(subscribe).pipe(relay.publish("chat")))
        later.answer(1)
        await turns()
        assert (life, later.asked) == (["disposed"], ["end"])
        later.answer()
        await turns()
        assert published == await in_log(later) == [ev.MessageInterrupted("enough"), "|"]

    run(main)


def test_a_subscriber_that_leaves_with_events_unwritten_leaves_them_in_the_log() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(START, BLOCK)
        published: list[rd.Event] = []
        publishing = source.pipe(relay.publish("chat")).subscribe(published.append)
        later.answer(1)
        await turns()
        publishing.dispose()
        assert life == ["subscribed", "disposed"]
        later.answer()
        await turns()
        assert published == []
        assert await in_log(later) == [START, BLOCK, LEFT, "|"]

    run(main)


def test_a_reader_of_the_publisher_that_has_enough_ends_the_log_behind_what_was_appended() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(START, BLOCK)
        published = told(source.pipe(relay.publish("chat"), ops.take(1)))
        later.answer(1)
        await turns()
        later.answer(1)
        await turns()
        assert (published, life) == ([START, "|"], ["subscribed", "disposed"])
        later.answer()
        assert await in_log(later) == [START, BLOCK, LEFT, "|"]

    run(main)


@pytest.mark.parametrize("written", range(4))
def test_when_the_log_fails_the_subscriber_has_what_was_written_and_the_source_is_closed(
    written: int,
) -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(*HELLO[:3])
        published = told(source.pipe(relay.publish("chat")))
        later.answer(1)
        await turns()
        later.answer(written)
        later.fail(AWAY)
        assert life == ["subscribed", "disposed"]  # at once
        await turns()
        assert published == [*HELLO[:written], AWAY]
        assert await relay.cancel("chat") is False

    run(main)


def test_a_run_whose_log_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(START)
        starting = asyncio.create_task(relay.start("chat", source))
        await turns()
        later.answer(1)
        assert await starting is True
        await turns()
        later.fail(AWAY)
        await turns()
        assert life == ["subscribed", "disposed"]

    with caplog.at_level(logging.ERROR, "rxdelta"):
        run(main)
    assert "the run of the stream 'chat' ended with an error" in caplog.text


def test_a_run_that_cannot_begin_is_logged_when_its_caller_has_left(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        relay, later = opened("claim")
        starting = asyncio.create_task(relay.start("chat", rx.of(START)))
        await turns()
        starting.cancel()
        await asyncio.wait([starting])
        later.fail(AWAY)
        await turns()

    with caplog.at_level(logging.ERROR, "rxdelta"):
        run(main)
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is AWAY


def test_a_source_that_goes_on_behind_a_failed_log_writes_and_emits_nothing() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source = Subject[rd.Event]()
        published = told(source.pipe(relay.publish("chat")))
        later.answer(1)
        await turns()
        source.on_next(START)
        later.fail(AWAY)
        later.failure = None  # it is back
        source.on_next(BLOCK)
        source.on_completed()
        later.answer()
        await turns()
        assert published == [AWAY]

    run(main)


def test_an_error_of_the_source_comes_behind_its_events() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        broken = RuntimeError("broken")
        published = told(rx.concat(rx.of(START), rx.throw(broken)).pipe(relay.publish("chat")))
        later.answer(1)
        await turns()
        later.answer(1)
        await turns()
        assert published == [START]
        later.answer()
        await turns()
        assert published == [START, broken]

    run(main)


def test_a_store_on_a_thread_of_its_own_answers_on_the_subscribers_loop() -> None:
    async def main() -> None:
        relay, later = opened()
        here, threads = get_ident(), set[int]()
        published: list[rd.Event] = []
        done = asyncio.Event()

        def take(event: rd.Event) -> None:
            threads.add(get_ident())
            published.append(event)

        def subscribed(_: Any) -> Observable[rd.Event]:
            threads.add(get_ident())
            return rx.of(*HELLO)

        rx.defer(subscribed).pipe(relay.publish("chat")).subscribe(take, None, done.set)
        while not done.is_set():
            await asyncio.to_thread(later.answer)
            await turns()
        assert (published, threads) == (HELLO, {here})

    run(main)


def test_a_publisher_without_a_loop_goes_on_on_a_thread_that_ends_with_it() -> None:
    async def main() -> None:
        relay, later = opened()
        published: list[Any] = []

        def publish() -> None:
            rx.of(*HELLO).pipe(relay.publish("chat")).subscribe(
                published.append, published.append, lambda: published.append("|")
            )

        thread = Thread(target=publish)
        thread.start()
        thread.join()
        while "|" not in published:
            later.answer()
            await asyncio.sleep(0.001)
        assert published == [*HELLO, "|"]

    run(main)


def test_what_an_observer_raises_at_an_event_that_was_written_later_ends_the_log() -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source, life = counted(START, BLOCK)

        def take(_: rd.Event) -> None:
            raise ZeroDivisionError

        source.pipe(relay.publish("chat")).subscribe(take)
        later.answer(1)
        await turns()
        later.answer(1)
        await turns()
        assert life == ["subscribed", "disposed"]
        later.answer()
        assert await in_log(later) == [START, BLOCK, LEFT, "|"]

    reports: list[dict[str, Any]] = []
    run(main, reports=reports)
    assert [type(one["exception"]) for one in reports] == [ZeroDivisionError]


# Readers.


def published(later: Later, *events: rd.Event) -> Subject[rd.Event]:
    """A log with these events, and its source, written past the wire."""
    source = Subject[rd.Event]()
    source.pipe(Relay(later.memory, 10.0, 1_000_000).publish("chat")).subscribe()
    for event in events:
        source.on_next(event)
    return source


def test_a_reader_emits_what_it_is_told_however_late() -> None:
    async def main() -> None:
        relay, later = opened()
        source = published(later, START)
        got = told(relay.watch("chat"))
        await turns()
        assert (got, later.asked) == ([], ["find"])
        later.answer(1)
        await turns()
        assert (got, later.asked) == ([START], ["read"])
        source.on_next(BLOCK)
        source.on_completed()
        await turns()
        assert got == [START]
        later.answer()
        await turns()
        assert got == [START, BLOCK, "|"]

    run(main)


def test_a_reader_on_another_thread_than_its_store_emits_on_its_own_loop() -> None:
    async def main() -> None:
        relay, later = opened()
        published(later, *HELLO).on_completed()
        here, threads, done = get_ident(), set[int](), asyncio.Event()
        relay.watch("chat").subscribe(lambda _: threads.add(get_ident()), None, done.set)
        while not done.is_set():
            await asyncio.to_thread(later.answer)
            await turns()
        assert threads == {here}

    run(main)


def test_a_stream_that_is_stopped_before_its_source_is_subscribed_costs_nothing() -> None:
    async def main() -> None:
        relay, later = opened()
        subscribed: list[int] = []
        source = rx.defer(lambda _: subscribed.append(1) or rx.from_iterable(HELLO))
        got = told(source.pipe(relay.publish("chat")))
        later.answer(1)  # the claim; its publisher has its turn later
        assert await relay.cancel("chat", "enough")
        later.answer()
        await turns(10)
        later.answer()
        await turns(10)
        assert (got, subscribed) == ([ev.MessageInterrupted("enough"), "|"], [])
        assert await in_log(later) == [ev.MessageInterrupted("enough"), "|"]

    run(main)


def test_a_reader_whose_store_fails_gets_its_error() -> None:
    async def main() -> None:
        relay, later = opened()
        got = told(relay.watch("chat"))
        later.fail(AWAY)
        assert got == []  # in a turn of its own
        await turns()
        (error,) = got
        assert isinstance(error, StreamUnreadableError)
        assert str(error) == str(AWAY)

    run(main)


def test_a_reader_whose_store_fails_behind_its_first_events_gets_them_and_an_error_that_is_no_end() -> None:
    async def main() -> None:
        relay, later = opened()
        published(later, START)
        got = told(relay.watch("chat"))
        later.answer(1)
        await turns()
        later.fail(AWAY)
        await turns()
        start, error = got
        assert (start, type(error), str(error)) == (START, StreamUnreadableError, str(AWAY))
        assert error.snapshot is not None
        assert await relay.is_live("chat")

    run(main)


def test_a_reader_that_leaves_before_its_log_is_found_leaves_that_log_too() -> None:
    async def main() -> None:
        relay, later = opened()
        published(later, START)
        got: list[Any] = []
        asked = relay.watch("chat").subscribe(got.append)
        answering = Thread(target=later.answer, args=(1,))
        answering.start()
        answering.join()  # found, but not told yet: that is the reader's next turn
        asked.dispose()
        await turns()
        assert (got, later.asked, later.left) == ([], [], 1)
        again = relay.watch("chat").subscribe(got.append)
        again.dispose()
        later.answer()
        await turns()
        assert (got, later.left) == ([], 1)  # nothing was found for it

    run(main)


def test_a_reader_leaves_its_log_once() -> None:
    async def main() -> None:
        relay, later = opened("find")
        published(later, *HELLO).on_completed()
        reading = relay.watch("chat").subscribe()
        later.answer()
        await turns()
        reading.dispose()
        assert later.left == 1

    run(main)


def test_a_reader_that_has_found_its_log_asks_for_it_no_more() -> None:
    async def main() -> None:
        relay, later = opened("find")
        got = told(relay.watch("chat"))
        later.answer(1)  # there is none yet
        published(later, START)
        await asyncio.sleep(100)  # the lease is over
        assert (got, later.asked) == ([START], [])

    VirtualTime().run(main())


class Twice(Later):
    """A store whose publisher begins as a reader asks again: the reader is told by both threads."""

    publisher: Subject[rd.Event] | None = None

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        if self.publisher is None:
            self.publisher = Subject()
            return super().find(name, seeker)
        self.publisher.pipe(Relay(self.memory, 10.0, 1_000_000).publish(name.id)).subscribe()
        for event in HELLO[:3]:
            self.publisher.on_next(event)
        super().find(name, seeker)
        return super().find(name, seeker)


def test_a_reader_that_is_told_twice_where_its_log_is_reads_it_once() -> None:
    async def main() -> None:
        later = Twice(asyncio.get_running_loop(), ("append",))
        got = told(Relay(later, 0.01, 1_000_000).watch("chat"))
        while not got:
            await asyncio.sleep(0.005)
        await turns()
        assert later.publisher is not None
        later.publisher.on_completed()
        await turns()
        assert got == [*HELLO[:3], "|"]
        assert later.left == 2

    run(main)


@pytest.mark.parametrize("kind", ["publish", "start"])
def test_what_a_dead_publisher_had_written_is_what_readers_get(kind: str) -> None:
    async def main() -> None:
        relay, later = opened("claim", "append", "end")
        source = Subject[rd.Event]()
        if kind == "publish":
            publishing = asyncio.create_task(rd.for_each(source.pipe(relay.publish("chat")), lambda _: None))
        else:
            publishing = asyncio.create_task(relay.start("chat", source))  # type: ignore[arg-type]
        await turns()
        later.answer()
        await turns()
        for event in HELLO:
            source.on_next(event)
        later.answer(3)
        later.die(Name("", "chat"))
        *events, error = await in_log(later)
        assert events == HELLO[:3]
        assert isinstance(error, rd.StreamInterrupted)
        assert error.snapshot is not None
        publishing.cancel()
        for task in relay._runs:
            task.cancel()
        await turns()

    run(main)


# Stores.


def test_what_is_appended_behind_the_end_is_not_in_the_log(open_relay: Opener) -> None:
    """The source may emit on another thread at the moment at which its stream is stopped."""

    class Claimant:
        def __init__(self) -> None:
            self.writer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
            self.written_ones: list[rd.Event] = []

        def claimed(self, writer: Any) -> None:
            self.writer.set_result(writer)

        def written(self, events: Sequence[rd.Event]) -> None:
            self.written_ones += events

    async def main() -> None:
        async with open_relay() as relay:
            claimant: Any = Claimant()
            relay._store.claim(Name("", "chat"), claimant)
            writer, ended = await claimant.writer, asyncio.Event()
            writer.append((START,))
            writer.end((LEFT,), End(), ended.set)
            writer.append((BLOCK,))
            await ended.wait()
            got: list[rd.Event] = []
            await rd.for_each(relay.watch("chat"), got.append)
            assert got == [START, LEFT]
            assert BLOCK not in claimant.written_ones

    run(main)
