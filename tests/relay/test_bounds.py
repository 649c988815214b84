"""How much a relay keeps: the bytes of one stream, and of all."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex as rx
from relay.conftest import Opener
from relay.promises import promised
from relay.reading import HELLO, Source, read, said, until
from support.loops import run
from support.runs import call, text, turn
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.relay.logs import bytes_of

ev = rd.events
MB = 2**20


def deltas(letter: str, count: int) -> list[rd.Event]:
    """Deltas of 196 bytes each: 64 for an event, and its text."""
    return [ev.TextDelta(0, letter * (132 // len(letter.encode("utf-8", "surrogatepass"))))] * count


@says("bytes of a stream in a relay")
@promised("No stream takes more")
@pytest.mark.parametrize("letter", ["x", "é", "漢", "\ud83d"])
def test_the_event_that_would_exceed_the_bytes_isnt_written_and_the_source_is_closed(
    letter: str, open_relay: Opener
) -> None:
    async def main() -> None:
        async with open_relay(max_bytes=3 * 196) as relay:
            source = Source()
            source.emit(*deltas(letter, 4), *deltas(letter, 4))
            got = await read(source.events.pipe(relay.publish("chat")))
            await until(lambda: source.life == ["subscribed", "closed"])
            for seen in (got, await read(relay.watch("chat"))):
                *events, error = seen
                assert said(events) == said(deltas(letter, 3))
                assert isinstance(error, rd.errors.LimitExceededError)
                assert (error.limit, error.maximum) == ("max_bytes", 3 * 196)
                assert "Relay.open(max_bytes=…)" in str(error)
            assert not await relay.is_live("chat")
            assert len(got) == 4
            exactly = await read(rx.of(*deltas(letter, 3)).pipe(relay.publish("exactly")))
            assert exactly == [*deltas(letter, 3), "|"]

    run(main)


def test_all_that_an_event_has_counts(open_relay: Opener) -> None:
    large: list[rd.Event] = [
        ev.Custom("note", {"list": ["x" * 1000]}),
        ev.Custom("note", {"x" * 1000: None}),
        ev.Custom("note", [*range(1000)]),
        ev.BlockStart(0, {"type": "text", "text": "x" * 1000}),
        ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "x" * 1000)),
        ev.DataDelta(0, "x" * 1000),
        ev.from_dict({**ev.TextDelta(0, "j").to_dict(), "new": "x" * 1000}),
    ]

    async def main() -> None:
        async with open_relay(max_bytes=1000) as relay:
            for number, event in enumerate(large):
                (error,) = await read(rx.of(event).pipe(relay.publish(f"chat {number}")))
                assert isinstance(error, rd.errors.LimitExceededError)

    run(main)


def test_an_event_counts_no_less_than_it_takes_in_the_stored_form() -> None:
    pytest.importorskip("msgspec")
    from rxdelta.relay.shared.records import Form, Plain
    from rxdelta.relay.store import LogKey

    events = [
        *turn(text(0, "Hello"), call(1, "c1", "sea")),
        ev.Custom("note", [[{"é": "漢" * 9}] * 9, None, 1.5, "\ud83d"]),
    ]
    for event in events:
        stored = Form(Plain(packs=True), LogKey("", "", "")).written(0, [event], None).events
        assert len(stored) <= bytes_of(event) <= len(stored) + 400


@says("bytes of a stream in a relay")
@pytest.mark.parametrize(("options", "passes"), [({}, False), ({"max_bytes": None}, True)])
def test_a_stream_has_64_mb_unless_told_otherwise(options: Any, passes: bool) -> None:
    async def main() -> None:
        async with Relay.open(**options) as relay:
            got = await read(rx.of(*[ev.TextDelta(0, "x" * 8 * MB)] * 8).pipe(relay.publish("chat")))
            assert (got[-1] == "|") is passes
            assert len(got) == 8 + passes

    run(main)


def test_the_snapshot_of_the_error_is_the_reply_up_to_there(open_relay: Opener) -> None:
    async def main() -> None:
        most = sum(map(bytes_of, HELLO[:4]))
        async with open_relay(max_bytes=most) as relay:
            await read(rx.of(*HELLO).pipe(relay.publish("chat")))
            *_, error = await read(relay.watch("chat"))
            assert error.snapshot.text == "He"

    run(main)


TOTAL: dict[str, Any] = {"max_total_bytes": 10 * 196, "lease": 0.5}


def is_full(error: Any) -> bool:
    return isinstance(error, rd.errors.LimitExceededError) and (error.limit, error.maximum) == (
        "max_total_bytes",
        1960,
    )


async def begins(relay: Relay, stream_id: str) -> list[Any]:
    """What a publisher of a delta emits, as soon as there is room for one."""
    while is_full((got := await read(rx.of(*deltas("y", 1)).pipe(relay.publish(stream_id))))[-1]):
        await asyncio.sleep(0.02)
    return got


@promised("No stream takes more")
def test_all_streams_together_take_no_more_than_the_total(open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay(**TOTAL) as relay:
            assert await read(rx.of(*deltas("x", 4)).pipe(relay.publish("kept"))) == [*deltas("x", 4), "|"]
            live, over = Source(), Source()
            assert await relay.scope("acme").start("live", live.events)
            live.emit(*deltas("x", 4))
            await until(lambda: relay.metrics.events_published == 8 and not relay.metrics.backlog)
            over.emit(*deltas("x", 5))
            got = await read(over.events.pipe(relay.publish("over")))
            for seen in (got, await read(relay.watch("over"))):
                *events, error = seen
                assert said(events) == said(deltas("x", 2))
                assert is_full(error)
            await until(lambda: over.life == ["subscribed", "closed"])
            assert await relay.scope("acme").is_live("live")
            live.complete()
            assert said(await read(relay.scope("acme").watch("live"))) == said(deltas("x", 4))

    run(main)


def test_a_reply_that_begins_when_there_is_no_room_isnt_subscribed_and_its_id_stays_free(
    open_relay: Opener,
) -> None:
    async def main() -> None:
        async with open_relay(**TOTAL) as relay:
            await read(rx.of(*deltas("x", 9)).pipe(relay.publish("kept")))
            live, late = Source(), Source()
            assert await relay.start("live", live.events)
            live.emit(*deltas("x", 1))
            await until(lambda: relay.metrics.events_published == 10 and not relay.metrics.backlog)
            with pytest.raises(rd.errors.LimitExceededError) as refused:
                await relay.start("late", late.events)
            assert is_full(refused.value)
            (error,) = await read(late.events.pipe(relay.publish("late")))
            assert is_full(error)
            assert late.life == []
            assert await relay.streams() == ["kept", "live"]
            assert not await relay.start("live", late.events)  # it is there
            assert not await relay.start("kept", late.events)
            assert await relay.delete("kept")
            assert await begins(relay, "late") == [*deltas("y", 1), "|"]
            assert await relay.is_live("live")

    run(main)


@pytest.mark.parametrize("how", ["deleted", "expired", "deleted alive"])
def test_what_is_forgotten_makes_room(how: str, open_relay: Opener) -> None:
    async def main() -> None:
        async with open_relay(**TOTAL, keep=0.6 if how == "expired" else 1000) as relay:
            source = Source()
            source.emit(*deltas("x", 10))
            publishing = asyncio.create_task(read(source.events.pipe(relay.publish("chat"))))
            if how != "deleted alive":
                source.complete()
                await publishing
            await until(lambda: relay.metrics.events_published == 10 and not relay.metrics.backlog)
            if how != "expired":
                assert await relay.delete("chat")
            await publishing
            for number in range(5):
                assert await begins(relay, f"chat {number}") == [*deltas("y", 1), "|"]
            assert relay.metrics.kept_bytes <= 1960

    run(main)


def test_memory_counts_exactly() -> None:
    async def main() -> None:
        async with Relay.open(max_total_bytes=10 * 196) as relay:
            for number in range(10):
                assert (await read(rx.of(*deltas("x", 1)).pipe(relay.publish(f"chat {number}"))))[-1] == "|"
                assert relay.metrics.kept_bytes == (number + 1) * 196
            (error,) = await read(rx.of(*deltas("x", 1)).pipe(relay.publish("late")))
            assert is_full(error)
            assert relay.metrics.kept_bytes == 1960
            for number in range(10):
                await relay.delete(f"chat {number}")
            assert relay.metrics.kept_bytes == 0

    run(main)
