"""What a reader of a stream in a relay gets: from the start or behind an id, early or late, and by which ids."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import reactivex as rx
from core.strategies import events as any_event
from hypothesis import example, given, settings, strategies as st
from reactivex import Observable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from relay.comparing import folded, is_transient, number_of
from support.runs import text, turn
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.relay import Entry, Relay

ev = rd.events
HELLO = turn(text(0, "Hello"))


class Tape:
    """A stream in virtual time, whose events are published by hand."""

    def __init__(self, relay: Relay, *events: rd.Event, stream_id: str = "chat") -> None:
        self.relay, self.stream_id = relay, stream_id
        self.scheduler = TestScheduler()
        self.source = Subject[rd.Event]()
        self.source.pipe(relay.publish(stream_id)).subscribe(
            on_error=lambda _: None, scheduler=self.scheduler
        )
        self.publish(*events)

    def publish(self, *events: rd.Event) -> None:
        for event in events:
            self.source.on_next(event)

    def read(self, after: str | None = None, split_at: str | None = None) -> list[Any]:
        """A new reader's entries, with the end."""
        got: list[Any] = []
        entries = self.relay.entries(self.stream_id, after, split_at=split_at)
        entries.subscribe(got.append, got.append, lambda: got.append("|"), scheduler=self.scheduler)
        self.play()
        return got

    def play(self) -> None:
        self.scheduler.advance_by(3)


def in_relay(check: Any, **options: Any) -> None:
    async def main() -> None:
        async with Relay.open(**options) as relay:
            check(relay)

    asyncio.run(main())


def events_of(entries: list[Any]) -> list[Any]:
    return [entry.event if isinstance(entry, Entry) else entry for entry in entries]


def test_a_late_reader_gets_neighbouring_deltas_joined_and_then_what_comes() -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay, *HELLO[:5])
        got = tape.read()
        assert events_of(got) == [*HELLO[:2], ev.TextDelta(0, "Hel")]
        assert [number_of(entry.id) for entry in got] == [1, 2, 5]
        tape.publish(*HELLO[5:])
        tape.play()
        assert events_of(got[3:]) == HELLO[5:]
        tape.source.on_completed()
        tape.play()
        assert got[-1] == "|"
        assert events_of(tape.read()) == [*HELLO[:2], ev.TextDelta(0, "Hello"), *HELLO[7:], "|"]

    in_relay(check)


def test_a_subscription_begins_at_once_so_what_is_published_in_the_same_moment_is_live() -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay, *HELLO[:3])
        got: list[Any] = []
        relay.watch("chat").subscribe(got.append, scheduler=tape.scheduler)
        status = ev.Custom("status", "looking", transient=True)
        tape.publish(HELLO[3], HELLO[4], status)
        tape.play()
        assert got == [*HELLO[:5], status]

    in_relay(check)


@pytest.mark.parametrize(
    "change", [lambda one: one[:-1] + "9", lambda one: f"{one}0", lambda one: "0" * 16 + one[16:]]
)
def test_what_looks_like_an_id_and_is_none_of_this_stream_is_refused(change: Any) -> None:
    def check(relay: Relay) -> None:
        tape = Tape(relay, *HELLO[:3])
        (*_, last) = tape.read()
        (error,) = tape.read(change(last.id))
        assert isinstance(error, rd.InvalidValueError)

    in_relay(check)


@pytest.mark.parametrize(
    "after", ["", "x", "1-0", "0-0", "$", "²", 3, b"x", "a" * 100, "0" * 16 + "-01", "0" * 16 + "-0"]
)
@pytest.mark.parametrize("name", ["after", "split_at"])
def test_what_can_be_no_id_is_refused_at_once(name: str, after: Any) -> None:
    def check(relay: Relay) -> None:
        with pytest.raises(rd.InvalidValueError, match=name):
            relay.entries("chat", **{name: after})
        if name == "after":
            with pytest.raises(rd.InvalidValueError, match=name):
                relay.watch("chat", after)

    in_relay(check)


def custom(data: Any, id: str | None = None, name: str = "note", **more: Any) -> ev.Custom:
    return ev.Custom(name, data, id, **more)


def test_of_the_applications_data_a_late_reader_gets_all_without_an_id_and_the_newest_of_each_id() -> None:
    published = [
        custom(1),
        custom("old", "a"),
        HELLO[0],
        custom("gone", transient=True),
        custom("b", "b"),
        custom(2),
        *HELLO[1:4],
        custom("new", "a"),
        custom("other", "a", "other"),
        *HELLO[4:],
        custom("newest", "a"),
    ]

    def check(relay: Relay) -> None:
        tape = Tape(relay, *published)
        got = tape.read()
        assert events_of(got) == [
            custom(1),
            custom("newest", "a"),
            HELLO[0],
            custom("b", "b"),
            custom(2),
            HELLO[1],
            ev.TextDelta(0, "He"),
            custom("other", "a", "other"),
            ev.TextDelta(0, "llo"),
            *HELLO[7:],
        ]
        assert folded(events_of(got)) == folded(published)
        assert events_of(tape.read(got[0].id)) == [one for one in published[1:] if not is_transient(one)]

    in_relay(check)


def test_the_applications_data_of_another_message_or_run_stay_where_they_are() -> None:
    other = [ev.Custom("note", "of b", "a", run_id="b"), ev.MessageStart("m2", run_id="b")]
    published = [
        *HELLO,
        custom("one", "a"),
        *turn(text(0, "2"), id="m2"),
        custom("two", "a"),
        *other,
        custom("three", "a"),
    ]

    def check(relay: Relay) -> None:
        got = events_of(Tape(relay, *published).read())
        assert [one for one in got if isinstance(one, ev.Custom)] == [
            one for one in published if isinstance(one, ev.Custom)
        ]

    in_relay(check)


def test_transient_data_are_for_who_reads_at_that_moment_also_if_slow_and_their_ids_are_ids() -> None:
    status = custom("looking", transient=True)

    def check(relay: Relay) -> None:
        tape = Tape(relay, HELLO[0])
        live = tape.read()
        tape.publish(status, HELLO[1])
        tape.play()
        assert events_of(live) == [HELLO[0], status, HELLO[1]]
        assert events_of(tape.read()) == [HELLO[0], HELLO[1]]
        assert events_of(tape.read(live[0].id)) == [HELLO[1]]
        assert events_of(tape.read(live[1].id)) == [HELLO[1]]

    in_relay(check)


def test_a_usage_with_each_delta_and_pings_dont_part_what_is_joined() -> None:
    usages = [ev.UsageUpdate(rd.TokenUsage(number, number)) for number in range(5)]
    ping = ev.ProviderEvent("made-up", "ping")
    woven = [each for pair in zip(HELLO[2:7], usages) for each in (*pair, ping)]
    citation = ev.ProviderEvent("made-up", "citation")
    published = [*HELLO[:2], *woven, *HELLO[2:4], citation, ev.TextDelta(0, "!"), *HELLO[7:]]

    def check(relay: Relay) -> None:
        got = Tape(relay, *published).read()
        joined = [ev.TextDelta(0, "Hello"), usages[-1], ev.TextDelta(0, "He"), citation, ev.TextDelta(0, "!")]
        assert events_of(got) == [*HELLO[:2], *joined, *HELLO[7:]]
        assert [number_of(entry.id) for entry in got[2:5]] == [15, 16, 19]

    in_relay(check)


@pytest.mark.parametrize("wire_format", RECORDED)
def test_a_recorded_reply_of_one_block_is_at_most_ten_events(wire_format: str) -> None:
    def check(relay: Relay) -> None:
        seen = 0
        for recording in recordings(wire_format):
            if recording.marks:
                pytest.skip("no recordings")
            published: list[rd.Event] = []
            chunks: Observable[Any] = rx.from_iterable(recording.values[0])
            chunks.pipe(rd.decode(wire_format), relay.publish(recording.id)).subscribe(
                published.append, lambda _: None
            )
            got: list[Any] = []
            relay.watch(recording.id).subscribe(
                got.append, lambda _: None, scheduler=(scheduler := TestScheduler())
            )
            scheduler.start()
            blocks = sum(isinstance(event, ev.BlockStart) for event in published)
            assert blocks > 1 or len(got) <= 10
            seen += blocks == 1
        assert seen > 0 or wire_format == "gemini-interactions"

    in_relay(check)


@settings(max_examples=40)
@example([*HELLO, HELLO[0]], 0.5)
@example([ev.UsageUpdate(rd.TokenUsage(1, 1)), ev.UsageUpdate(rd.TokenUsage())], 0)
@given(st.lists(any_event(), max_size=12), st.floats(0, 1))
def test_any_events_fold_to_the_same_from_the_start_and_behind_any_id(
    events: list[rd.Event], cut: float
) -> None:
    """Against a plain list. Some orders are no conversation: those are only read."""

    def check(relay: Relay) -> None:
        tape = Tape(relay, *events)
        got = tape.read()
        numbers = [number_of(entry.id) for entry in got]
        assert numbers == sorted(set(numbers))
        kept = [event for event in events if not is_transient(event)]
        try:
            whole = folded(kept)
        except rd.RxDeltaError:
            return
        assert folded(events_of(got)) == whole
        if got:
            split = got[int(cut * (len(got) - 1))]
            at = number_of(split.id)
            parted = tape.read(None, split.id)
            head = [entry.event for entry in parted if number_of(entry.id) <= at]
            assert folded(head) == folded(events[:at])
            assert folded(events_of(parted)) == whole
            assert events_of(tape.read(split.id)) == [one for one in events[at:] if not is_transient(one)]

    in_relay(check)


def test_a_split_keeps_joined_deltas_and_newer_data_apart() -> None:
    published = [custom("old", "a"), *HELLO[:5], custom("new", "a"), *HELLO[5:]]

    def check(relay: Relay) -> None:
        tape = Tape(relay)
        live = tape.read()
        tape.publish(*published)
        tape.play()
        split = next(entry for entry in live if entry.event == ev.TextDelta(0, "e"))
        got = tape.read(None, split.id)
        assert events_of(got) == [
            custom("old", "a"),
            *HELLO[:2],
            ev.TextDelta(0, "He"),
            ev.TextDelta(0, "l"),
            custom("new", "a"),
            ev.TextDelta(0, "lo"),
            *HELLO[7:],
        ]
        assert split.id in [entry.id for entry in got]

    in_relay(check)


@pytest.mark.parametrize("operator", [rd.throttle_latest(1), rd.conflate()])
def test_what_keeps_the_newest_refuses_events_and_entries(operator: Any) -> None:
    def check(relay: Relay) -> None:
        for stream in (relay.watch("a"), relay.entries("a"), rx.never().pipe(relay.publish("a"))):
            with pytest.raises(rd.InvalidValueError, match="would drop"):
                stream.pipe(operator)

    in_relay(check)


def test_data_of_a_run_and_data_of_all_runs_dont_pass_over_one_another() -> None:
    published = [
        ev.MessageStart("m1", run_id="a"),
        custom("one", "x", run_id="a"),
        custom("for all", "x"),
        custom("two", "x", run_id="a"),
    ]

    def check(relay: Relay) -> None:
        got = events_of(Tape(relay, *published).read())
        assert folded(got) == folded(published)
        assert got == published

    in_relay(check)


def test_data_of_parallel_runs_are_each_the_newest() -> None:
    runs = [ev.MessageStart("m1", run_id="a"), ev.MessageStart("m2", run_id="b")]
    published = [*runs, *(custom(number, "x", run_id=run) for number in range(50) for run in "ab")]

    def check(relay: Relay) -> None:
        got = events_of(Tape(relay, *published).read())
        assert got == [*runs, custom(49, "x", run_id="a"), custom(49, "x", run_id="b")]

    in_relay(check)
