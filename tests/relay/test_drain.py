"""A relay is drained before its process stops: what finishes, what is ended, what is refused, and at which price."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import partial
from threading import Event as Flag, Thread
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from relay.conftest import Opener
from relay.later import Later
from relay.promises import promised
from relay.reading import HELLO, Source, read, said, told, until
from support.cutting_proxy import CuttingProxy
from support.loops import run, turns
from support.valkey_servers import ValkeyServer

import rxdelta as rd
from rxdelta.relay import Relay, StreamUnreadableError
from rxdelta.testing import VirtualTime

ev = rd.events
BEGUN = HELLO[:4]
STOPPING = ev.MessageInterrupted("the server is stopping")
CLOSED = ev.MessageInterrupted("the relay was closed")


async def refuses(relay: Relay, stream_id: str = "late") -> None:
    """A relay that drains takes no new stream, and pays for none."""
    paid = list[str]()
    source = rx.defer(lambda _: paid.append(stream_id) or rx.of(*HELLO))
    with pytest.raises(rd.StreamInterrupted, match="the relay is draining"):
        await relay.start(stream_id, source)
    (error,) = await read(source.pipe(relay.publish(stream_id)))
    assert isinstance(error, rd.StreamInterrupted)
    assert "the relay is draining" in str(error)
    assert paid == []


@promised("`drain` lets the streams")
def test_replies_that_finish_in_time_are_whole_and_nothing_is_ended(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            started, published = Source(), Source()
            assert await relay.start("started", started.events)
            publishing = asyncio.create_task(read(published.events.pipe(relay.publish("published"))))
            await until(lambda: published.life)
            draining = asyncio.create_task(relay.drain(1000))
            await turns()
            for source in (started, published):
                source.emit(*HELLO)
                assert not draining.done()
                source.complete()
            assert await draining == []
            assert await publishing == [*HELLO, "|"]
            assert not await relay.is_live("started")
            assert said(await read(relay.watch("started"))) == "Hello"

    run(main)


@promised("`drain` lets the streams")
def test_what_goes_on_is_ended_for_its_readers_with_the_reason(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            sources, acme = [Source() for _ in range(3)], relay.scope("acme")
            publishing = asyncio.create_task(read(sources[0].events.pipe(relay.publish("chat"))))
            await until(lambda: sources[0].life)
            assert await acme.start("chat 2", sources[1].events)
            assert await relay.start("finished", rx.of(*HELLO))
            assert await relay.scope(allow=lambda *_: True).start("chat 3", sources[2].events)
            following = [
                asyncio.create_task(read(one)) for one in (relay.watch("chat"), acme.watch("chat 2"))
            ]
            for source in sources:
                source.emit(*BEGUN)
            assert await relay.drain(0.1, "a deploy") == ["chat", "chat 2", "chat 3"]
            assert not any(
                [await relay.is_live("chat"), await acme.is_live("chat 2")]
            )  # the ends are written
            for got in (await publishing, *(await asyncio.gather(*following))):
                assert (said(got), got[-2:]) == ("He", [ev.MessageInterrupted("a deploy"), "|"])
            await until(lambda: all(source.life == ["subscribed", "closed"] for source in sources))

    run(main)


@promised("`drain` lets the streams")
def test_from_its_call_on_no_stream_begins_and_all_else_goes_on(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            source, other = Source(), Source()
            assert await relay.start("chat", source.events)
            assert await relay.start("other", other.events)
            draining = asyncio.create_task(relay.drain(1000))
            await turns(1)
            await refuses(relay)
            await refuses(relay, "chat")  # it is live
            await refuses(relay.scope("acme"))
            source.emit(*HELLO)
            source.complete()
            assert said(await read(relay.watch("chat"))) == "Hello"
            assert sorted(await relay.streams()) == ["chat", "other"]
            assert await relay.delete("chat")
            assert await relay.cancel("other", "enough")
            assert await draining == []
            assert (await read(relay.watch("other")))[-2:] == [ev.MessageInterrupted("enough"), "|"]
            await refuses(relay)

    run(main)


def test_who_is_allowed_to_publish_too_late_is_refused() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
            scoped = relay.scope(allow=lambda *_: answer)
            starting = asyncio.create_task(scoped.start("chat", rx.of(*HELLO)))
            publishing = asyncio.create_task(read(rx.of(*HELLO).pipe(scoped.publish("chat"))))
            await turns()
            assert await relay.drain(1) == []
            answer.set_result(True)
            with pytest.raises(rd.StreamInterrupted, match="draining"):
                await starting
            assert "draining" in str((await publishing)[0])
            assert await relay.streams() == []

    run(main)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((0,), "timeout"),
        (("5",), "timeout"),
        ((float("nan"),), "timeout"),
        ((1, None), "reason"),
        ((1, b""), "reason"),
    ],
)
def test_a_wrong_argument_is_refused_and_the_relay_isnt_drained(arguments: Any, field: str) -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            with pytest.raises(rd.InvalidValueError, match=field):
                await relay.drain(*arguments)
            for scope in (relay.scope("acme"), relay.scope(allow=lambda *_: True)):
                with pytest.raises(rd.InvalidValueError, match="drain the relay itself"):
                    await scope.drain(1)
            assert await relay.start("chat", rx.of(*HELLO))

    run(main)


def test_of_two_calls_the_one_whose_time_is_over_first_ends_the_streams() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", rx.never())
            long = asyncio.create_task(relay.drain(100, "long"))
            await asyncio.sleep(1)
            assert await relay.drain(10, "short") == ["chat"]
            assert await long == []
            assert asyncio.get_running_loop().time() == 11
            assert await read(relay.watch("chat")) == [ev.MessageInterrupted("short"), "|"]
            assert await relay.drain(10) == []
            assert asyncio.get_running_loop().time() == 11

    VirtualTime().run(main())


def test_it_takes_no_longer_than_the_last_reply() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            for seconds in (3, 7):
                await relay.start(f"chat {seconds}", late(seconds))
            assert await relay.drain(100) == []
            assert asyncio.get_running_loop().time() == 7

    def late(seconds: float) -> Any:
        async def items() -> AsyncIterator[rd.Event]:
            await asyncio.sleep(seconds)
            yield HELLO[0]

        return rd.from_async_iterable(items)

    VirtualTime().run(main())


def test_streams_of_other_threads_are_drained_from_any_loop(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay() as relay:
            begun, got = Flag(), list[Any]()

            async def publish() -> None:
                source = Source()
                source.emit(*BEGUN)
                reading = asyncio.create_task(read(source.events.pipe(relay.publish("there")), got))
                await until(lambda: said(got) == "He")
                begun.set()
                got.append((await reading)[-1])

            there = Thread(target=lambda: asyncio.run(publish()))
            there.start()
            here = Source()
            assert await relay.start("here", here.events)
            assert await asyncio.to_thread(begun.wait, 60)
            ended = await asyncio.to_thread(lambda: asyncio.run(relay.drain(0.1)))
            assert sorted(ended) == ["here", "there"]
            await asyncio.to_thread(there.join)
            assert got[-2:] == [STOPPING, "|"]
            assert await read(relay.watch("here")) == [STOPPING, "|"]

    run(main)


def test_a_publication_whose_claim_isnt_answered_ends_when_it_begins() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        later = Later(loop, ["claim"])
        relay, paid = Relay(later, 10.0, 10**6), Source()
        starting = asyncio.create_task(relay.start("chat", paid.events))
        await turns()
        draining = asyncio.create_task(relay.drain(1))
        await asyncio.sleep(2)
        assert not draining.done()
        later.answer()
        assert await draining == ["chat"]
        assert loop.time() == 2
        assert await starting is True
        assert await read(Relay(later.memory, 1.0, 10**6).watch("chat")) == [STOPPING, "|"]
        assert paid.life == []
        await relay._close()

    VirtualTime().run(main())


@pytest.mark.parametrize("fails", [False, True])
def test_a_publication_that_never_began_isnt_among_the_ended(fails: bool) -> None:
    async def main() -> None:
        later = Later(asyncio.get_running_loop(), ["claim"])
        relay = Relay(later, 10.0, 10**6)
        await Relay(later.memory, 10.0, 10**6).start("chat", rx.of(*HELLO))
        got = told(rx.never().pipe(relay.publish("chat")))
        draining = asyncio.create_task(relay.drain(1))
        await asyncio.sleep(2)
        if fails:
            later.fail(rd.StreamInterrupted("the server can't be reached"))
        later.answer()
        assert await draining == []
        await turns()
        assert isinstance(got[0], rd.StreamInterrupted if fails else rd.InvalidValueError)
        await relay._close()

    VirtualTime().run(main())


def test_a_source_that_hangs_while_it_is_closed_holds_nobody_up() -> None:
    async def main() -> None:
        closes, may_close = Flag(), asyncio.Event()

        async def items() -> AsyncIterator[rd.Event]:
            try:
                yield HELLO[0]
                await asyncio.Event().wait()
            finally:
                closes.set()
                await may_close.wait()

        async with Relay.open() as relay:
            await relay.start("chat", rd.from_async_iterable(items))
            await relay.start("other", rx.never())
            following = asyncio.create_task(read(relay.watch("chat")))
            assert await relay.drain(1) == ["chat", "other"]
            assert asyncio.get_running_loop().time() == 1
            assert await following == [HELLO[0], STOPPING, "|"]
            assert closes.is_set()
            may_close.set()

    VirtualTime().run(main())


def test_a_source_that_cant_be_closed_is_reported_and_the_others_end() -> None:
    reports: list[dict[str, Any]] = []

    async def main() -> None:
        class Broken(rx.abc.DisposableBase):
            def dispose(self) -> None:
                raise ZeroDivisionError

        async with Relay.open() as relay:
            rx.create(lambda *_: Broken()).pipe(relay.publish("chat")).subscribe()
            await relay.start("other", rx.never())
            assert await relay.drain(0.01) == ["chat", "other"]
            assert await read(relay.watch("chat")) == [STOPPING, "|"]

    run(main, reports=reports)
    assert [type(report["exception"]) for report in reports] == [ZeroDivisionError]


def test_a_caller_that_is_cancelled_ends_no_stream_and_the_relay_drains_on() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            source = Subject[rd.Event]()
            got = told(source.pipe(relay.publish("chat")))
            draining = asyncio.create_task(relay.drain(100))
            await asyncio.sleep(1)
            draining.cancel()
            await asyncio.wait([draining])
            assert draining.cancelled()
            await asyncio.sleep(1000)
            assert await relay.is_live("chat")
            await refuses(relay)
            assert await relay.drain(1) == ["chat"]
            assert got == [STOPPING, "|"]

    VirtualTime().run(main())


def test_a_relay_that_is_closed_meanwhile_ends_the_wait() -> None:
    async def main() -> None:
        async with Relay.open() as relay:
            got = told(rx.never().pipe(relay.publish("chat")))
            draining = asyncio.create_task(relay.drain(100))
            await asyncio.sleep(1)
        assert await draining == []
        assert asyncio.get_running_loop().time() == 1
        assert got == [CLOSED, "|"]
        assert await relay.drain(1) == []

    VirtualTime().run(main())


def test_an_end_that_cant_be_written_is_waited_for_five_seconds_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        later = Later(asyncio.get_running_loop(), ["end"])
        relay = Relay(later, 10.0, 10**6)
        source = Source()
        assert await relay.start("chat", source.events)
        await turns()
        assert await relay.drain(1) == ["chat"]
        assert asyncio.get_running_loop().time() == 6
        assert source.life == ["subscribed", "closed"]
        assert "after 5 seconds it has no end in the logs of 1 streams" in caplog.text
        await relay._close()

    with caplog.at_level(logging.WARNING, "rxdelta"):
        VirtualTime().run(main())


def test_a_server_that_is_away_holds_it_up_for_the_patience_at_most(
    server: ValkeyServer, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with CuttingProxy(server.port) as proxy, Relay.open(server.url) as there:
            async with Relay.open(f"valkey://127.0.0.1:{proxy.port}", lease=0.5, patience=0.4) as here:
                source, got = Source(), list[Any]()
                publishing = asyncio.create_task(read(source.events.pipe(here.publish("chat")), got))
                source.emit(*BEGUN)
                await until(lambda: said(got) == "He")
                proxy.is_hole = True
                assert await here.drain(0.1) == ["chat"]
                assert source.life == ["subscribed", "closed"]
                assert isinstance((await publishing)[-1], rd.StreamInterrupted)
                await refuses(here)
            *_, end = await read(there.watch("chat"))
            assert "taken for dead" in str(end)
            assert not isinstance(end, StreamUnreadableError)

    run(main)


@pytest.mark.slow
def test_thousands_of_streams_end_in_few_round_trips_and_finished_ones_cost_nothing(
    server: ValkeyServer,
) -> None:
    live, finished = 2000, 200

    def seen(kind: str, name: str) -> int:
        return int(str(server.info(kind).get(name, "0")).removeprefix("calls=").partition(",")[0])

    asked = partial(seen, "commandstats", "cmdstat_evalsha")
    reads = partial(seen, "stats", "total_reads_processed")

    async def main() -> None:
        async with Relay.open(server.url, lease=1000) as relay:
            for number in range(finished):
                await read(rx.of(*HELLO).pipe(relay.publish(f"finished {number}")))
            names = [f"chat {number}" for number in range(live)]
            assert all(await asyncio.gather(*(relay.start(name, rx.never()) for name in names)))
            calls, trips = asked(), reads()
            assert await relay.drain(0.001) == names
            assert asked() - calls == live  # their ends, and no question
            assert reads() - trips < live / 10
            before = asked()
            assert await relay.drain(1000) == []
            assert asked() == before

    run(main)


def test_a_reply_that_has_finished_but_isnt_written_yet_is_waited_for_and_isnt_ended() -> None:
    async def main() -> None:
        later = Later(asyncio.get_running_loop(), ["end"])
        relay = Relay(later, 10.0, 10**6)
        got = told(rx.of(*HELLO).pipe(relay.publish("chat")))
        draining = asyncio.create_task(relay.drain(1))
        await asyncio.sleep(2)
        assert not draining.done()
        later.answer()
        assert await draining == []
        await turns()
        assert got == [*HELLO, "|"]
        await relay._close()

    VirtualTime().run(main())
