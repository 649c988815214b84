"""A reply behind an operator that drops events shows that it lost something, to every reader, and in the log."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import rxdelta as rd
from rxdelta.relay import Relay
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    Operator = Callable[[Observable[Any]], Observable[Any]]

ev = rd.events
CALL = {"type": "tool_call_chunk", "id": "c1", "name": "f"}
REPLY: list[rd.Event] = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text"}),
    ev.TextDelta(0, "Hel"),
    ev.TextDelta(0, "lo"),
    ev.BlockFinish(0),
    ev.BlockStart(1, CALL),
    ev.ToolCallDelta(1, "{}"),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]
as_it_is: Operator = ops.map(lambda value: value)  # so that who drops isn't directly in front


def no(kind: type) -> Operator:
    return ops.filter(lambda event: not isinstance(event, kind))


LOSSY: dict[str, Operator] = {
    "skip(1)": ops.skip(1),
    "skip(6)": ops.skip(6),
    "skip_while": ops.skip_while(lambda event: not isinstance(event, ev.ToolCallDelta)),
    "take_last(1)": ops.take_last(1),
    "take_last(8)": ops.take_last(8),
    "debounce": ops.debounce(1.0),
    "a filter of the starts of blocks": no(ev.BlockStart),
    "a filter of the ends of blocks": no(ev.BlockFinish),
    "a filter of the message's start": no(ev.MessageStart),
    "the start twice": ops.flat_map(lambda event: rx.of(event, event) if isinstance(event, ev.BlockStart) else rx.of(event)),
}  # fmt: skip
lossy = pytest.mark.parametrize("name", LOSSY)


def behind(name: str, *steps: Operator) -> list[Any]:
    """What these steps emit behind the lossy operator."""
    got: list[Any] = []
    scheduler = TestScheduler()
    rx.from_iterable(REPLY).pipe(LOSSY[name], as_it_is, *steps).subscribe(got.append, scheduler=scheduler)
    scheduler.start()
    return got


@lossy
def test_a_reply_that_lost_something_shows_it(name: str) -> None:
    *_, snapshot = behind(name, rd.scan_deltas())
    assert snapshot.violations
    (message,) = behind(name, rd.scan_deltas(), rd.to_message())
    assert message.status == "complete"
    assert message.violations == snapshot.violations
    named: list[str] = []
    behind(name, rd.validate(lambda rule, _: named.append(rule)))
    assert {rule: named.count(rule) for rule in sorted(named)} == dict(snapshot.violations)


@pytest.mark.parametrize(
    "step",
    [
        *(as_it_is, ops.delay(1), ops.take(5), ops.filter(bool), rd.compact_deltas(1)),
        *(rd.redact("ell"), rd.map_text(str.upper), rd.cut_text(), rd.until_sequence("ell"), rd.guard(bool)),
        rd.guard(lambda text: "ell" not in text),
    ],
)
def test_a_reply_that_lost_nothing_and_one_that_was_cut_off_show_nothing(
    step: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    *_, snapshot = rx.from_iterable(REPLY).pipe(step, rd.scan_deltas(), ops.to_list()).run()
    assert snapshot.violations == {}
    assert caplog.records == []


@lossy
def test_a_late_reader_sees_it_too(name: str) -> None:
    source = Subject[rd.Event]()
    shared = source.pipe(rd.share_events(unread="keep"))
    shared.subscribe()
    live: list[rd.Snapshot] = []
    shared.pipe(rd.scan_deltas()).subscribe(live.append)
    for event in behind(name):
        source.on_next(event)
        late: list[rd.Snapshot] = []
        shared.pipe(rd.scan_deltas()).subscribe(late.append).dispose()
        assert late[-1].violations == live[-1].violations
    source.on_completed()
    assert live[-1].violations
    again = shared.pipe(rd.scan_deltas(), rd.to_message()).run()
    assert again.violations == live[-1].violations


@lossy
def test_who_reads_by_a_relay_sees_it_too(name: str) -> None:
    events = behind(name)
    expected = rx.from_iterable(events).pipe(rd.scan_deltas(), rd.to_message()).run().violations

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("chat", rx.from_iterable(events))
            await asyncio.sleep(1)
            for _ in range(2):
                late = relay.watch("chat").pipe(rd.scan_deltas(), rd.to_message())
                # It joins neighbouring deltas, so two wrong ones may be one.
                assert (await rd.last_value(late)).violations.keys() == expected.keys()

    VirtualTime().run(main())


@lossy
def test_each_choice_and_message_and_run_has_its_own(name: str) -> None:
    events = [*behind(name), *REPLY]
    split: list[rd.Snapshot] = []
    rx.from_iterable(events).pipe(
        rd.with_run("agent"),
        rd.group_by_run(),
        ops.flat_map(lambda run: run.pipe(rd.group_by_message())),
        ops.flat_map(lambda one: one.pipe(rd.scan_deltas(), ops.last())),
    ).subscribe(split.append)
    assert [bool(snapshot.violations) for snapshot in split] == [True, False]


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if (r.name, r.levelno) == ("rxdelta", logging.WARNING)]


@lossy
def test_a_reply_that_ends_with_violations_is_one_line_in_the_log(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    *_, snapshot = behind(name, rd.scan_deltas(), rd.until_all_tools_terminal())
    (line,) = warnings(caplog)
    for rule, count in snapshot.violations.items():
        assert f"{rule} {count}" in line
    assert "ops.skip" in line


def test_the_line_comes_when_the_message_is_over_and_also_if_the_stream_fails(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Subject[rd.Event]()
    source.pipe(rd.scan_deltas(), ops.take_while(lambda one: one.status == "incomplete", True)).subscribe()
    for event in REPLY[1:]:
        assert warnings(caplog) == []
        source.on_next(event)
    assert len(warnings(caplog)) == 1
    caplog.clear()
    failing = rx.concat(rx.from_iterable(REPLY[1:3]), rx.throw(OSError("gone")))
    with pytest.raises(rd.StreamInterrupted):
        failing.pipe(rd.scan_deltas()).run()
    assert len(warnings(caplog)) == 1
    caplog.clear()
    late = [*REPLY, ev.TextDelta(0, "late")]
    rx.from_iterable(late).pipe(rd.scan_deltas()).run()
    (line,) = warnings(caplog)
    assert "event_after_message_finish 1" in line
    assert "'m1'" in line


def test_a_name_of_the_providers_doesnt_break_the_line(caplog: pytest.LogCaptureFixture) -> None:
    events = [ev.MessageStart("m\n" * 900), *REPLY[2:]]
    rx.from_iterable(events).pipe(rd.scan_deltas()).run()
    (line,) = warnings(caplog)
    assert "\n" not in line
    assert len(line) < 500


def test_the_short_way_shows_it_too_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> rd.Message:
        async with rd.stream(REPLY[1:]) as reply:
            assert [piece async for piece in reply.text_deltas]
            async for _ in reply:
                pass
            return await reply.result()

    message = asyncio.run(main())
    assert message.violations == {"missing_message_start": 1}
    assert len(warnings(caplog)) == 1
