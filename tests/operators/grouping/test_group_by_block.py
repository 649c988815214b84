"""`group_by_block` in virtual time."""

from __future__ import annotations

import asyncio
import gc
import logging
import tracemalloc
import weakref
from collections import deque
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex import Observable, abc
from reactivex.disposable import CompositeDisposable, SerialDisposable
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.subject import Subject
from support.bounded import bounded
from support.lines import DAY, whole
from support.loops import run as run_loop

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.runtime import Backpressure, Idleness
from rxdelta.runtime.place import current_place
from rxdelta.testing import marbles

BOOM = ValueError("boom")

CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": ""}
OTHER = {"type": "tool_call_chunk", "id": "c2", "name": "find", "args": ""}

MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "N": ev.MessageStart(id="m2"),
    "O": ev.MessageStart(),
    "S": ev.BlockStart(0, {"type": "text"}),
    **{mark: ev.TextDelta(0, mark) for mark in "abc"},
    "_": ev.TextDelta(0, ""),
    "r": ev.ReasoningDelta(0, "no reasoning"),
    "F": ev.BlockFinish(0),
    "W": ev.BlockFinish(0, {"type": "text", "text": "whole"}),
    "T": ev.BlockStart(1, CALL),
    "x": ev.ToolCallDelta(1, '{"n":'),
    "y": ev.ToolCallDelta(1, "1}"),
    "G": ev.BlockFinish(1),
    "U": ev.BlockStart(2, OTHER),
    "z": ev.ToolCallDelta(2, "{}"),
    "H": ev.BlockFinish(2),
    "i": ev.ToolUpdate("c1", "identified"),
    "w": ev.ToolUpdate("c1", "awaiting_approval"),
    "e": ev.ToolUpdate("c1", "executing"),
    "d": ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "one")),
    "f": ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "two")),
    "u": ev.ToolUpdate("c9", "executing"),
    "D": ev.BlockStart(0, {"type": "reasoning"}, choice=1),
    "k": ev.ReasoningDelta(0, "k", choice=1),
    "p": ev.ProviderEvent("anthropic", "ping", {}),
    "E": ev.MessageFinish("stop"),
    "L": ev.MessageFinish("length"),
    "I": ev.MessageInterrupted("enough"),
    "R": ev.AttemptReset(1),
    "!": ev.StreamError("overloaded", "overloaded_error"),
    "?": {"choices": []},
}


def said(block: rd.Block) -> str:
    if isinstance(block, rd.ContentPart):
        return (block.text or "") + ("" if block.open else ".")
    status = block.metadata.get("execution_status", "")
    arguments = block.arguments if isinstance(block.arguments, str) else rd.core.thaw(block.arguments)
    kind = "" if block.type == "tool_call" else "invalid "
    return f"{kind}{arguments}{'' if block.open else '.'}{status and ' ' + status}"


class Panels:
    """Subscribes each block at once and notes what comes, and when."""

    def __init__(self, scheduler: VirtualTimeScheduler | None = None) -> None:
        self.scheduler = scheduler
        self.log: list[tuple[int, str, Any]] = []
        self.readers = CompositeDisposable()

    def note(self, who: str, what: Any) -> None:
        self.log.append((int(self.scheduler.clock) if self.scheduler else 0, who, what))

    def on_next(self, block: rd.types.BlockStream) -> None:
        self.note("", block)
        self.watch(block)

    def watch(self, block: rd.types.BlockStream, who: str | None = None) -> abc.DisposableBase:
        who = who or f"{block.choice}/{block.index}"
        reader = block.subscribe(
            lambda value: self.note(who, said(value)),
            lambda error: self.note(who, error),
            lambda: self.note(who, "|"),
        )
        self.readers.add(reader)
        return reader

    def on_error(self, error: Exception) -> None:
        self.note("", error)

    def on_completed(self) -> None:
        self.note("", "|")

    def of(self, who: str) -> str:
        """What came to one, as "tick:text …"; errors by their types."""
        return " ".join(f"{tick}:{told(what)}" for tick, name, what in self.log if name == who)

    @property
    def blocks(self) -> list[rd.types.BlockStream]:
        return [what for _, _, what in self.log if isinstance(what, rd.types.BlockStream)]


def told(what: Any) -> str:
    if isinstance(what, rd.types.BlockStream):
        return f"{what.choice}/{what.index}"
    return type(what).__name__ if isinstance(what, Exception) else str(what)


def watch(source: str, *, until: float = DAY, **options: Any) -> tuple[Panels, list[Any]]:
    """What the panels of all blocks see of a line, and when its source was read."""
    scheduler = VirtualTimeScheduler()
    panels = Panels(scheduler)
    cold = marbles.cold(source, scheduler, values=MARKS, frame=1, error=BOOM)
    scheduler.schedule_absolute(until, lambda *_: panels.readers.dispose())
    panels.readers.add(cold.pipe(bounded(rd.group_by_block, **options)).subscribe(panels))
    scheduler.advance_to(until)
    return panels, cold.subscriptions


def push(source: Subject[Any], marks: str) -> None:
    for mark in marks:
        source.on_next(MARKS[mark])


@pytest.mark.parametrize(
    ("source", "outer", "first", "second"),
    [
        pytest.param("MSab-FE|", "1:0/0 7:|", "1: 2:a 3:ab 5:ab. 5:|", "", id="a text"),
        pytest.param("STxayGF|", "0:0/0 1:0/1 7:|", "0: 3:a 6:a. 6:|", "1:None 2:{\"n\": 4:{\"n\":1} 5:{'n': 1}. 5:|", id="two"),
        pytest.param("S_paprF|", "0:0/0 7:|", "0: 3:a 6:a. 6:|", "", id="31: what changes nothing is silent"),
        pytest.param("axSa|", "2:0/0 4:|", "2: 3:a 4:StreamInterrupted", "", id="deltas of unknown blocks"),
        pytest.param("SaFbaF|", "0:0/0 6:|", "0: 1:a 2:a. 2:|", "", id="deltas of an ended block"),
        pytest.param("SaSbF|", "0:0/0 5:|", "0: 1:a 2: 3:b 4:b. 4:|", "", id="a second start resets"),
        pytest.param("SSaF|", "0:0/0 4:|", "0: 2:a 3:a. 3:|", "", id="a second start that changes nothing"),
        pytest.param("SFSaF|", "0:0/0 2:0/0 5:|", "0: 1:. 1:| 2: 3:a 4:a. 4:|", "", id="an ended one starts again"),
        pytest.param("W|", "0:0/0 1:|", "0:whole. 0:|", "", id="a block that comes whole"),
        pytest.param("SaW|", "0:0/0 3:|", "0: 1:a 2:whole. 2:|", "", id="a finish that knows better"),
        pytest.param("SaFWW|", "0:0/0 5:|", "0: 1:a 2:a. 2:|", "", id="a second finish of an ended block"),
        pytest.param("WF|", "0:0/0 2:|", "0:whole. 0:|", "", id="a second finish of one that came whole"),
        pytest.param("F-|", "2:|", "", "", id="a finish of nothing"),
        pytest.param("SaE-|", "0:0/0 4:|", "0: 1:a 2:a. 2:|", "", id="the message's finish closes"),
        pytest.param("TxyE|", "0:0/1 4:|", "", "0:None 1:{\"n\": 2:{\"n\":1} 3:{'n': 1}. 3:|", id="and parses"),
        pytest.param("TxyL|", "0:0/1 4:|", "", '0:None 1:{"n": 2:{"n":1} 3:invalid {"n":1}. 3:|', id="but not what was cut"),
        pytest.param("SaTxI|", "0:0/0 2:0/1 5:|", "0: 1:a 4:a. 4:|", '2:None 3:{"n": 4:invalid {"n":. 4:|', id="interrupted"),
        pytest.param("SaESb|", "0:0/0 5:|", "0: 1:a 2:a. 2:|", "", id="nothing after the message"),
        pytest.param("ISaMSaF|", "4:0/0 7:|", "4: 5:a 6:a. 6:|", "", id="nor after an interruption, of whatever choice"),
        pytest.param("MSaEMSF|", "1:0/0 5:0/0 7:|", "1: 2:a 3:a. 3:| 5: 6:. 6:|", "", id="but another message"),
        pytest.param("--|", "2:|", "", "", id="empty"),
        pytest.param("SaTx", "0:0/0 2:0/1", "0: 1:a", '2:None 3:{"n":', id="a source that goes silent"),
        pytest.param("[SaF|]", "0:0/0 0:|", "0: 0:a 0:a. 0:|", "", id="all at once"),
    ],
)  # fmt: skip
def test_each_block_has_a_stream_of_its_snapshots(source: str, outer: str, first: str, second: str) -> None:
    panels, reads = watch(source)
    assert (panels.of(""), panels.of("0/0"), panels.of("0/1")) == (outer, first, second)
    assert reads == whole(source)


@pytest.mark.parametrize(
    ("source", "call"),
    [
        pytest.param("TixyGed-|", "1:None identified ... 4:{'n': 1}. identified 5:{'n': 1}. executing 6:{'n': 1}. completed 6:|", id="lives until its tool has ended"),
        pytest.param("TixydG-|", "... 4:{\"n\":1} completed 5:{'n': 1}. completed 5:|", id="the tool ends first"),
        pytest.param("TixyeGEd-|", "... 5:{'n': 1}. executing 7:{'n': 1}. completed 7:|", id="beyond the message"),
        pytest.param("TixyeENd-|", "... 5:{'n': 1}. executing 7:{'n': 1}. completed 7:|", id="beyond the next message's start"),
        pytest.param("TixyGETxGd|", "... 4:{'n': 1}. identified 9:{'n': 1}. completed 9:|", id="nothing but its tool after the message"),
        pytest.param("TixyGiuE|", "... 4:{'n': 1}. identified 8:StreamInterrupted", id="news that are none, and of nobody"),
        pytest.param("TixyGeif-|", "... 5:{'n': 1}. executing 7:{'n': 1}. failed 7:|", id="a status never goes back"),
        pytest.param("TixyGdfe|", "... 5:{'n': 1}. completed 5:|", id="the first terminal one stands"),
        pytest.param("TixyGed#", "... 6:{'n': 1}. completed 6:|", id="an error after it"),
        pytest.param("TixyGe#", "... 5:{'n': 1}. executing 6:ValueError", id="an error before it"),
        pytest.param("TixyGed-", "... 6:{'n': 1}. completed 6:|", id="the source goes on"),
        pytest.param("TxyGed-|", "... 3:{'n': 1}. 3:|", id="news after an end"),
        pytest.param("TixL-f|", "... 3:invalid {\"n\":. identified 5:invalid {\"n\":. failed 5:|", id="an invalid call too, if somebody looks after it"),
        pytest.param("TxLif-|", "... 2:invalid {\"n\":. 2:|", id="and not if nobody does"),
        pytest.param("TixyGTxyG|", "... 4:{'n': 1}. identified 5:None identified 6:{\"n\": identified 7:{\"n\":1} identified 8:{'n': 1}. identified 9:StreamInterrupted", id="a start while it runs"),
        pytest.param("TixyGTxyGd|", "... 8:{'n': 1}. identified 9:{'n': 1}. completed 9:|", id="whose tool then ends"),
        pytest.param("MTixyGEReOSRd-|", "... 8:{'n': 1}. executing 12:{'n': 1}. completed 12:|", id="beyond the attempts at the next message"),
    ],
)  # fmt: skip
def test_a_call_lives_until_its_tool_has_ended(source: str, call: str) -> None:
    panels, _ = watch(source)
    wanted = call.rpartition("... ")[2]
    assert panels.of("0/1").endswith(wanted)
    assert panels.of("").count("0/1") == 1


def test_the_first_terminal_result_stands_and_display_texts_arrive() -> None:
    source = Subject[Any]()
    got: list[Any] = []
    source.pipe(rd.group_by_block()).subscribe(lambda block: block.subscribe(got.append))
    push(source, "Ti")
    source.on_next(ev.ToolUpdate("c1", display_text="Looking"))
    source.on_next(ev.ToolUpdate("c1", display_text=""))
    source.on_next(ev.ToolUpdate("c1", result=rd.ToolResult("c1", "half")))
    push(source, "xydfG")
    assert [call.display_text for call in got] == [None, None, *["Looking"] * 6]
    assert [call.result and call.result.content for call in got] == [*[None] * 3, *["half"] * 3, "one", "one"]


def test_updates_reach_every_block_of_that_call_also_when_the_id_comes_late_or_changes() -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    source.on_next(ev.BlockStart(1, {"type": "tool_call_chunk", "name": "look"}))
    source.on_next(ev.BlockStart(0, CALL, choice=1))
    push(source, "i")
    (late, other) = panels.blocks
    assert (late.call_id, late.name, late.kind, other.call_id) == (None, "look", "tool_call", "c1")
    source.on_next(ev.BlockDelta(1, {"id": "c1"}))
    assert late.call_id == "c1"
    push(source, "e")
    source.on_next(ev.BlockDelta(1, {"id": "c2"}))
    push(source, "d")
    assert panels.of("0/1") == "0:None 0:None 0:None executing 0:None executing"
    assert panels.of("1/0") == "0:None 0:None identified 0:None executing 0:None completed"


def test_a_stream_is_emitted_before_its_first_snapshot() -> None:
    source, got = Subject[Any](), list[str]()

    def start(block: rd.types.BlockStream) -> None:
        block.subscribe(lambda value: got.append(said(value)))
        got.append("subscribed")

    source.pipe(rd.group_by_block()).subscribe(start)
    push(source, "Sa")
    assert got == ["subscribed", "", "a"]


def test_what_a_block_is_called() -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "SD")
    source.on_next(ev.BlockStart("s", {"type": "tool_call_chunk"}))
    source.on_next(ev.BlockDelta("s", {"name": "find"}))
    text, reasoning, call = panels.blocks
    assert [(one.index, one.choice, one.kind) for one in panels.blocks] == [(0, 0, "text"), (0, 1, "reasoning"), ("s", 0, "tool_call")]  # fmt: skip
    assert (text.call_id, text.name, call.call_id, call.name) == (None, None, None, "find")
    assert repr(reasoning) == "<BlockStream block 0 of choice 1 (reasoning)>"
    assert repr(call) == "<BlockStream block 's' (tool_call 'find')>"
    source.on_next(ev.BlockFinish("s"))
    assert call.kind == "invalid_tool_call"


def test_a_block_is_known_when_its_stream_is_emitted() -> None:
    seen: list[Any] = []
    events = rx.of(MARKS["T"], MARKS["G"])
    events.pipe(rd.group_by_block()).subscribe(
        lambda block: seen.append((block.kind, block.call_id, block.name))
    )
    assert seen == [("tool_call", "c1", "look")]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        pytest.param("SaTx#", ValueError, id="the source's own"),
        pytest.param("SaTx!", rd.ProviderError, id="an error event"),
        pytest.param("SaTx?", rd.InvalidValueError, id="a chunk that wasn't decoded"),
    ],
)
def test_an_error_goes_to_the_open_blocks_first(source: str, kind: type) -> None:
    panels, reads = watch(source)
    ends = [(tick, who, what) for tick, who, what in panels.log if isinstance(what, Exception)]
    assert [(tick, who, type(what)) for tick, who, what in ends] == [
        (4, "0/0", kind),
        (4, "0/1", kind),
        (4, "", kind),
    ]
    assert len({id(what) for *_, what in ends}) == 1
    assert reads == [(0, 4)]


def test_a_cut_stream_interrupts_the_open_blocks_and_completes() -> None:
    panels, _ = watch("SaTix|")
    assert panels.of("") == "0:0/0 2:0/1 5:|"
    errors = [what for *_, what in panels.log if isinstance(what, Exception)]
    assert [str(error) for error in errors] == [
        "the stream ended while block 0 (text) was open",
        "the stream ended while block 1 (tool_call 'look') was open",
    ]
    assert all(type(error) is rd.StreamInterrupted for error in errors)


def test_a_call_that_waits_for_a_later_request_completes_with_the_source() -> None:
    assert watch("TxywGE|")[0].of("0/1").endswith(" 6:|")
    assert [str(what) for *_, what in watch("Txyw|")[0].log if isinstance(what, Exception)] == [
        "the stream ended while block 1 (tool_call 'look') was open"
    ]


def test_an_attempt_that_is_given_up_interrupts_and_the_next_has_blocks_of_its_own() -> None:
    panels, _ = watch("STiRSbFdE|")
    assert panels.of("") == "0:0/0 1:0/1 4:0/0 9:|"
    assert panels.of("0/0") == "0: 3:StreamInterrupted 4: 5:b 6:b. 6:|"
    assert panels.of("0/1") == "1:None 2:None identified 3:StreamInterrupted"
    assert "given up" in str(next(what for *_, what in panels.log if isinstance(what, Exception)))


K = ev.MessageFinish("stop", choice=1)


@pytest.mark.parametrize(
    ("events", "first", "second"),
    [
        ([ev.AttemptReset(1, choice=1)], "", "StreamInterrupted"),
        ([ev.AttemptReset(1, choice=0)], "StreamInterrupted", ""),
        ([ev.AttemptReset(1)], "StreamInterrupted", "StreamInterrupted"),
        ([K, ev.AttemptReset(1)], "StreamInterrupted", "k. |"),
        ([ev.MessageInterrupted(choice=1)], "", "k. |"),
        ([ev.MessageInterrupted()], "a. |", "k. |"),
    ],
)
def test_resets_and_interruptions_concern_the_choices_that_they_name(
    events: list[rd.Event], first: str, second: str
) -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "SaDk")
    for event in events:
        source.on_next(event)
    assert panels.of("0/0").replace("0:", "").removeprefix(" a").strip() == first
    assert panels.of("1/0").replace("0:", "").removeprefix(" k").strip() == second


def test_a_named_reset_also_takes_back_a_finished_message_whose_tool_runs() -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "TixyGE")
    source.on_next(ev.AttemptReset(1, choice=0))
    assert panels.of("0/1").endswith("identified 0:StreamInterrupted")
    push(source, "d")
    assert panels.of("0/1").endswith("identified 0:StreamInterrupted")


def test_an_interruption_ends_the_choices_that_begin_later_unless_it_names_one() -> None:
    for interruption, blocks in ((ev.MessageInterrupted(), []), (ev.MessageInterrupted(choice=0), ["1/0"])):
        panels, source = Panels(), Subject[Any]()
        source.pipe(rd.group_by_block()).subscribe(panels)
        source.on_next(interruption)
        push(source, "SDk")
        assert [told(block) for block in panels.blocks] == blocks


@pytest.mark.parametrize("end", ["E", "I"])
def test_an_attempt_begins_anew_whatever_has_ended_before(end: str) -> None:
    panels, _ = watch(f"Sa{end}RSaF|")
    assert panels.of("") == "0:0/0 4:0/0 7:|"


@pytest.mark.parametrize(
    ("source", "limits", "name", "at", "told_in"),
    [
        pytest.param("STabcT", rd.Limits(block_chars=2), "block_chars", 4, ["0/0", "0/1"], id="a delta"),
        pytest.param("SaWT", rd.Limits(block_chars=2), "block_chars", 2, ["0/0"], id="a finish"),
        pytest.param("WT", rd.Limits(block_chars=2), "block_chars", 0, [], id="a block that comes whole"),
        pytest.param("SFTaU", rd.Limits(blocks=2), "blocks", 4, ["0/1"], id="too many blocks"),
        pytest.param("SaTU", rd.Limits(index=2), "index", 3, ["0/0", "0/1"], id="an index"),
    ],
)
def test_limits_are_those_of_the_fold(
    source: str, limits: rd.Limits, name: str, at: int, told_in: list[str]
) -> None:
    panels, reads = watch(source, limits=limits)
    error = panels.log[-1][2]
    assert (type(error), error.limit, panels.log[-1][:2]) == (rd.errors.LimitExceededError, name, (at, ""))
    assert reads == [(0, at)]
    fold = rd.Fold(choice=0, limits=limits)
    with pytest.raises(rd.errors.LimitExceededError) as judged:
        deque(map(fold.step, [MARKS[mark] for mark in source]))
    assert str(judged.value) == str(error)
    told_of_it = [who for _, who, what in panels.log if what is error]
    assert told_of_it == [*told_in, ""]


def test_a_block_that_starts_again_counts_once() -> None:
    panels, _ = watch("SFSFSFTGTG|", limits=rd.Limits(blocks=2))
    assert panels.of("").endswith("10:|")


def test_the_number_of_blocks_is_counted_for_each_message() -> None:
    panels, _ = watch("MSTENST|", limits=rd.Limits(blocks=2))
    assert panels.of("").endswith("7:|")


def test_a_late_subscriber_gets_the_newest_and_after_the_end_also_the_end() -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "Sa")
    (block,) = panels.blocks
    panels.watch(block, "late")
    push(source, "bF")
    panels.watch(block, "later")
    assert panels.of("late") == "0:a 0:ab 0:ab. 0:|"
    assert panels.of("later") == "0:ab. 0:|"
    push(source, "Sa")
    source.on_error(BOOM)
    panels.watch(panels.blocks[-1], "latest")
    assert panels.of("latest") == "0:a 0:ValueError"


def test_a_subscriber_made_by_another_one_sees_each_value_once() -> None:
    source, got = Subject[Any](), list[str]()

    def start(block: rd.types.BlockStream) -> None:
        def first(value: Any) -> None:
            got.append(f"1{said(value)}")
            if said(value) in ("", "a", "ab."):
                name = len(got)
                block.subscribe(
                    lambda value: got.append(f"{name}:{said(value)}"),
                    on_completed=lambda: got.append(f"{name}|"),
                )

        block.subscribe(first)

    source.pipe(rd.group_by_block()).subscribe(start)
    push(source, "SabF")
    assert got == ["1", "1:", "1a", "3:a", "1:a", "1ab", "1:ab", "3:ab", "1ab.", "9:ab.", "1:ab.", "3:ab.", "1|", "3|", "9|"]  # fmt: skip


def test_51_a_panel_that_raises_is_told_no_more_and_its_siblings_do_not_notice(
    caplog: pytest.LogCaptureFixture,
) -> None:
    panels, source = Panels(), Subject[Any]()

    def start(block: rd.types.BlockStream) -> None:
        if block.index == 0:
            block.subscribe(raising)
        panels.on_next(block)

    calls: list[Any] = []

    def raising(value: Any) -> None:
        calls.append(value)
        if len(calls) == 2:
            raise BOOM

    source.pipe(rd.group_by_block()).subscribe(start, panels.on_error, panels.on_completed)
    with caplog.at_level(logging.ERROR, "rxdelta"):
        push(source, "STaxbyFGE")
    assert len(calls) == 2
    assert panels.of("0/0") == "0: 0:a 0:ab 0:ab. 0:|"
    assert panels.of("0/1").endswith("{'n': 1}. 0:|")
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is BOOM
    assert "block 0 (text)" in record.message


def test_51_with_a_loop_it_is_the_loops_handler_that_hears_of_it() -> None:
    reports: list[dict[str, Any]] = []

    def fail(value: Any) -> None:
        raise BOOM

    async def main() -> None:
        source = Subject[Any]()
        source.pipe(rd.group_by_block()).subscribe(lambda block: block.subscribe(fail))
        push(source, "SabTxF")
        await asyncio.sleep(0)

    run_loop(main, reports=reports)
    assert [report["exception"] for report in reports] == [BOOM, BOOM]
    assert ["block 0" in reports[0]["message"], "block 1" in reports[1]["message"]] == [True, True]


def test_another_block_in_the_place_of_a_call_that_still_runs_has_a_stream_of_its_own() -> None:
    source = Subject[Any]()
    seen: list[tuple[int, str]] = []
    streams: list[rd.types.BlockStream] = []

    def watch_block(block: rd.types.BlockStream) -> None:
        number = len(streams)
        streams.append(block)
        block.subscribe(
            lambda value: seen.append((number, value.type)),
            lambda error: seen.append((number, type(error).__name__)),
            lambda: seen.append((number, "|")),
        )

    source.pipe(rd.group_by_block()).subscribe(watch_block)
    call = {"type": "tool_call", "id": "c1", "name": "f", "args": {}}
    for event in [
        ev.BlockFinish(0, call),
        ev.BlockStart(0, {**call, "id": "c2"}),
        ev.ToolUpdate("c2", "executing"),
        ev.BlockFinish(0),
        ev.BlockStart(0, {"type": "text", "text": "Hi"}),
        ev.BlockFinish(0),
    ]:
        source.on_next(event)
    assert [kind for number, kind in seen if number == 0] == ["tool_call", "|"]
    assert [kind for number, kind in seen if number == 1][-2:] == ["tool_call", "StreamInterrupted"]
    assert [kind for number, kind in seen if number == 2] == ["text", "text", "|"]


class Reading:
    """A session that notes its failures."""

    limits = None
    journal = None

    def __init__(self) -> None:
        self.errors: list[Exception] = []
        self.backpressure = Backpressure(lambda: True)
        self.idleness = Idleness(lambda: True)

    def fail(self, error: Exception) -> bool:
        self.errors.append(error)
        return True


def test_51_a_panel_fails_its_own_reading_or_else_that_of_the_blocks() -> None:
    source, ours, other = Subject[Any](), Reading(), Reading()
    panels = Panels()

    def fail(value: Any) -> None:
        raise ValueError(said(value))

    def within(session: Any, call: Any) -> None:
        token = current_place.set((session, None, None))
        call()
        current_place.reset(token)

    def start(block: rd.types.BlockStream) -> None:
        panels.on_next(block)
        block.subscribe(fail)

    within(ours, lambda: source.pipe(rd.group_by_block()).subscribe(start))
    push(source, "S")
    within(other, lambda: panels.blocks[0].subscribe(fail))
    assert [str(error) for error in other.errors] == [""]
    assert [str(error) for error in ours.errors] == [""]


@pytest.mark.parametrize("end", ["on_error", "on_completed"])
def test_51_raising_at_the_end_does_not_disturb_either(end: str, caplog: pytest.LogCaptureFixture) -> None:
    panels, source = Panels(), Subject[Any]()

    def fail(*_: Any) -> None:
        raise BOOM

    def start(block: rd.types.BlockStream) -> None:
        block.subscribe(**{end: fail})
        panels.on_next(block)

    source.pipe(rd.group_by_block()).subscribe(start, panels.on_error, panels.on_completed)
    push(source, "SaTF" if end == "on_completed" else "Sa")
    source.on_completed()
    assert panels.of("0/0") == ("0: 0:a 0:a. 0:|" if end == "on_completed" else "0: 0:a 0:StreamInterrupted")
    assert panels.of("").endswith("0:|")
    assert BOOM in [record.exc_info[1] for record in caplog.records if record.exc_info]


def test_51_a_late_panel_that_raises_at_once_is_reported_and_subscribing_does_not_raise(
    caplog: pytest.LogCaptureFixture,
) -> None:
    panels, source = Panels(), Subject[Any]()
    subscription = source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "Sa")
    calls: list[Any] = []

    def fail(value: Any) -> None:
        calls.append(value)
        raise BOOM

    panels.blocks[0].subscribe(fail)
    push(source, "b")
    assert len(calls) == len(caplog.records) == 1
    push(source, "F")
    subscription.dispose()
    assert source.observers == []


@pytest.mark.slow
def test_blocks_that_nobody_can_reach_are_not_kept() -> None:
    source, ends = Subject[Any](), list[Any]()
    outer = source.pipe(rd.group_by_block(), rd.with_limits(rd.Limits(blocks=1))).subscribe(
        lambda block: block.subscribe(on_error=ends.append)
    )
    push(source, "S")
    before = alive(rd.core.BlockFold)
    outer.dispose()
    push(source, "TUxz")
    assert alive(rd.core.BlockFold) == before
    assert ends == []


def test_the_source_is_read_as_long_as_anybody_reads() -> None:
    source = Subject[Any]()
    got, readers = list[str](), list[abc.DisposableBase]()

    def start(block: rd.types.BlockStream) -> None:
        readers.append(block.subscribe(lambda value: got.append(said(value)), lambda error: got.append("#")))

    outer = source.pipe(rd.group_by_block()).subscribe(start)
    push(source, "ST")
    outer.dispose()
    push(source, "aU")
    assert len(readers) == 2
    readers[0].dispose()
    push(source, "bx")
    assert len(source.observers) == 1
    readers[0].dispose()
    readers[1].dispose()
    assert source.observers == []
    assert got == ["", "None", "a", '{"n":']


def test_the_end_of_the_last_block_that_is_read_also_leaves_the_source() -> None:
    source = Subject[Any]()
    outer = source.pipe(rd.group_by_block()).subscribe(lambda block: block.subscribe())
    push(source, "S")
    outer.dispose()
    push(source, "a")
    assert len(source.observers) == 1
    push(source, "F")
    assert source.observers == []


def test_unread_blocks_do_not_keep_the_source() -> None:
    panels, source = Panels(), Subject[Any]()
    outer = source.pipe(rd.group_by_block()).subscribe(lambda block: panels.note("", block))
    push(source, "Sa")
    outer.dispose()
    assert source.observers == []
    panels.watch(panels.blocks[0])
    assert panels.of("0/0") == "0:a 0:StreamInterrupted"
    assert "left" in str(panels.log[-1][2])


def test_a_panel_that_unsubscribes_does_not_touch_its_siblings() -> None:
    panels, source = Panels(), Subject[Any]()
    leaving = SerialDisposable()

    def start(block: rd.types.BlockStream) -> None:
        if block.index == 0:
            leaving.disposable = block.subscribe(
                lambda value: leaving.dispose() if said(value) == "a" else None
            )
        panels.on_next(block)

    source.pipe(rd.group_by_block()).subscribe(start)
    push(source, "STaxbF")
    assert panels.of("0/0") == "0: 0:a 0:ab 0:ab. 0:|"
    assert panels.of("0/1") == '0:None 0:{"n":'


def test_52_a_panel_may_dispose_everything_inside_on_next() -> None:
    source = Subject[Any]()
    got, everything = list[str](), list[abc.DisposableBase]()

    def start(block: rd.types.BlockStream) -> None:
        def draw(value: Any) -> None:
            got.append(said(value))
            if said(value) == "a":
                for one in everything:
                    one.dispose()

        everything.append(block.subscribe(draw, lambda _: got.append("#"), lambda: got.append("|")))

    everything.append(source.pipe(rd.group_by_block()).subscribe(start))
    push(source, "STabF")
    assert got == ["", "None", "a"]
    assert source.observers == []


def test_52_a_late_subscriber_that_emits_while_it_catches_up() -> None:
    panels, source = Panels(), Subject[Any]()
    source.pipe(rd.group_by_block()).subscribe(panels)
    push(source, "Sa")
    got: list[str] = []

    def late(value: Any) -> None:
        got.append(said(value))
        if said(value) == "a":
            push(source, "bF")
            got.append("back")

    panels.blocks[0].subscribe(late, on_completed=lambda: got.append("|"))
    assert got == ["a", "back", "ab", "ab.", "|"]


def alive(kind: type) -> int:
    gc.collect()
    return sum(isinstance(thing, kind) for thing in gc.get_objects())


@pytest.mark.slow
def test_5_000_blocks_keep_memory_flat() -> None:
    source = Subject[Any]()
    count = 0

    def start(block: rd.types.BlockStream) -> None:
        nonlocal count
        count += 1
        block.subscribe()

    def add(numbers: range) -> None:
        for n in numbers:
            source.on_next(
                ev.BlockStart(n, {"type": "tool_call_chunk", "id": f"c{n}", "name": "t", "args": ""})
            )
            source.on_next(ev.ToolUpdate(f"c{n}", "identified"))
            source.on_next(ev.ToolCallDelta(n, "{}"))
            source.on_next(ev.BlockFinish(n))
            source.on_next(ev.ToolUpdate(f"c{n}", "completed"))

    before = alive(rd.types.BlockStream), alive(rd.core.BlockFold)
    source.pipe(rd.group_by_block()).subscribe(start)
    add(range(1_000))
    tracemalloc.start()
    try:
        add(range(1_000, 5_000))
        gc.collect()
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 5_000
    assert (alive(rd.types.BlockStream), alive(rd.core.BlockFold)) == before
    assert grown < 50_000  # 12 bytes a block


@pytest.mark.slow
def test_a_block_that_was_left_open_is_freed_with_the_message() -> None:
    source = Subject[Any]()
    streams: list[weakref.ref[Any]] = []
    source.pipe(rd.group_by_block()).subscribe(lambda block: streams.append(weakref.ref(block)))
    push(source, "SaTxyDk")
    assert all(stream() is not None for stream in streams)
    push(source, "E")
    gc.collect()
    assert [stream() is None for stream in streams] == [True, True, False]
    push(source, "R")
    gc.collect()
    assert [stream() is None for stream in streams] == [True, True, True]


# What a block is alone, whatever goes on beside it.

KINDS: dict[str, Any] = {
    "text": lambda index, piece, choice: ev.TextDelta(index, piece, choice=choice),
    "reasoning": lambda index, piece, choice: ev.ReasoningDelta(index, piece, choice=choice),
    "tool_call_chunk": lambda index, piece, choice: ev.ToolCallDelta(index, piece, choice=choice),
}


@st.composite
def a_block(draw: st.DrawFn, key: tuple[int, int | str]) -> list[Any]:
    choice, index = key
    kind = draw(st.sampled_from(sorted(KINDS)))
    call_id = f"call {choice} {index}"
    start = {"type": kind} | ({"id": call_id, "name": "t"} if kind == "tool_call_chunk" else {})
    events: list[Any] = [ev.BlockStart(index, start, choice=choice)]
    if draw(st.booleans()):
        events.append(ev.ToolUpdate(call_id, "identified"))
    pieces = draw(st.lists(st.sampled_from(["", "{", "}", '"a":1', "\ud83c", "é"]), max_size=5))
    wrong = draw(st.sampled_from(sorted(KINDS)))
    events += [KINDS[kind](index, piece, choice) for piece in pieces]
    events += [KINDS[wrong](index, "wrong?", choice)] if draw(st.booleans()) else []
    events += (
        [ev.BlockDelta(index, {"citations": [], "extra": 1}, choice=choice)] if draw(st.booleans()) else []
    )
    if draw(st.integers(0, 3)):
        content = {"type": kind, "text": "!", "reasoning": "!", "args": "{}"} if draw(st.booleans()) else None
        events.append(ev.BlockFinish(index, content, choice=choice))
        events += [ev.TextDelta(index, "too late", choice=choice)] if draw(st.booleans()) else []
    statuses = draw(st.lists(st.sampled_from(["executing", "completed", "failed", "identified"]), max_size=2))
    return events + [ev.ToolUpdate(call_id, status) for status in statuses]


KEYS: list[tuple[int, int | str]] = [(0, 0), (0, 1), (0, "a"), (1, 0), (1, 7)]


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[dict[Any, list[Any]], list[Any]]:
    keys = draw(st.lists(st.sampled_from(KEYS), unique=True, min_size=1))
    blocks = {key: draw(a_block(key)) for key in keys}
    order = draw(st.permutations([key for key, events in blocks.items() for _ in events]))
    left = {key: iter(events) for key, events in blocks.items()}
    return blocks, [next(left[key]) for key in order]


def alone(events: list[Any]) -> list[Any]:
    """What the fold of a message makes of one block: each snapshot that differs, until it has ended."""
    fold, got = rd.Fold(), list[Any]()
    for event in events:
        blocks = fold.step(event).blocks
        grown = type(event) in (
            ev.TextDelta,
            ev.ReasoningDelta,
            ev.ToolCallDelta,
        )  # half a character shows nothing
        if not blocks or (got and blocks[0] is got[-1]):
            continue
        if grown or not (got and got[-1] == blocks[0] and got[-1].open is blocks[0].open):
            got.append(blocks[0])
            call = blocks[0] if isinstance(blocks[0], rd.ToolCall) else None
            status = None if call is None else call.metadata.get("execution_status")
            if not blocks[0].open and status in (None, "completed", "failed"):
                return [*got, "|"]
    return [*got, rd.StreamInterrupted]


def grouped(source: Observable[Any]) -> dict[Any, list[Any]]:
    got: dict[Any, list[Any]] = {}

    def start(block: rd.types.BlockStream) -> None:
        mine = got.setdefault((block.choice, block.index), [])
        block.subscribe(mine.append, lambda error: mine.append(type(error)), lambda: mine.append("|"))

    source.pipe(rd.group_by_block()).subscribe(start, lambda error: pytest.fail(repr(error)))
    return got


@pytest.mark.slow
@settings(max_examples=300)
@given(interleaved())
def test_a_block_among_others_is_what_it_is_alone_hot_and_cold(
    case: tuple[dict[Any, list[Any]], list[Any]],
) -> None:
    blocks, events = case
    expected = {key: alone(script) for key, script in blocks.items()}
    assert grouped(rx.from_iterable(events)) == expected
    hot = Subject[Any]()
    got = grouped(hot)
    for event in events:
        hot.on_next(event)
    hot.on_completed()
    assert got == expected


ANY = st.sampled_from([(choice, index) for choice in (0, 1) for index in (0, 1, "a")]).flatmap(
    lambda key: st.sampled_from(
        [
            ev.BlockStart(key[1], {"type": "text"}, choice=key[0]),
            ev.BlockStart(key[1], {"type": "tool_call_chunk", "id": "c", "name": "t"}, choice=key[0]),
            ev.TextDelta(key[1], "a", choice=key[0]),
            ev.ToolCallDelta(key[1], "{}", choice=key[0]),
            ev.BlockDelta(key[1], {"name": "u"}, choice=key[0]),
            ev.BlockFinish(key[1], choice=key[0]),
            ev.MessageStart(id="m", choice=key[0]),
        ]
    )
)
ENDS = st.sampled_from(
    [
        ev.MessageFinish("stop"),
        ev.MessageFinish("length", choice=1),
        ev.MessageInterrupted("x"),
        ev.AttemptReset(1),
        ev.MessageStart(id="m"),
    ]
)


@settings(max_examples=300)
@given(st.lists(st.one_of(ANY, ANY, ANY, ANY, ENDS), max_size=30))
def test_after_any_events_the_blocks_are_those_of_the_fold(events: list[Any]) -> None:
    folds = {choice: rd.Fold(choice=choice) for choice in (0, 1)}
    newest: dict[Any, rd.Block] = {}
    source = Subject[Any]()

    def start(block: rd.types.BlockStream) -> None:
        block.subscribe(lambda value: newest.__setitem__((block.choice, block.index), value), lambda _: None)

    source.pipe(rd.group_by_block()).subscribe(start)
    for event in events:
        try:
            for fold in folds.values():
                fold.step(event)
        except rd.ProtocolError:  # a second message
            return
        if isinstance(event, ev.MessageStart) and folds[event.choice].snapshot.status != "incomplete":
            return  # one that the fold takes for a repetition, having the same id
        if isinstance(event, ev.AttemptReset):
            newest.clear()
        source.on_next(event)
        for choice, fold in folds.items():
            mine = {index: block for (at, index), block in newest.items() if at == choice}
            assert mine == {block.key: block for block in fold.snapshot.blocks}
            assert all(mine[block.key].open is block.open for block in fold.snapshot.blocks)


def test_a_call_that_a_late_reader_is_told_of_goes_on_after_its_finish() -> None:
    """`to_events` tells that it runs before it tells that its block has ended."""
    fold = rd.Fold()
    call = {"type": "tool_call", "id": "c", "name": "f", "args": {}}
    for event in [
        rd.events.BlockStart(0, call),
        rd.events.ToolUpdate("c", "executing"),
        rd.events.BlockFinish(0),
    ]:
        fold.step(event)
    later = rd.events.ToolUpdate("c", "completed")
    seen: list[Any] = []
    rx.from_iterable([*rd.to_events(fold.snapshot), later]).pipe(rd.per_block(lambda block: block)).subscribe(
        seen.append
    )
    assert seen[-1].execution_status() == "completed"


@pytest.mark.parametrize("start", "NO")
def test_another_message_that_begins_meanwhile_ends_the_open_blocks_and_has_its_own(start: str) -> None:
    panels, _ = watch(f"MSaTxM{start}SbF|")
    assert [told(block) for block in panels.blocks] == ["0/0", "0/1", "0/0"]
    assert panels.of("0/0") == "1: 2:a 6:StreamInterrupted 7: 8:b 9:b. 9:|"
    assert panels.of("0/1") == '3:None 4:{"n": 6:StreamInterrupted'


def test_a_call_whose_tool_runs_lives_on_though_another_message_begins_meanwhile() -> None:
    panels, _ = watch("MTixyGeSaNSd|")
    assert panels.of("0/1").endswith("6:{'n': 1}. executing 11:{'n': 1}. completed 11:|")
