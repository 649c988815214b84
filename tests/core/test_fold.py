"""How a reply grows by events: the rulings of parity/RULES.md §3, order, choices, limits, updates, cost."""

from __future__ import annotations

import copy
import gc
import json
import random
import sys
import tracemalloc
from typing import Any

import pytest
from core.strategies import events, fold
from hypothesis import example, given, strategies as st
from support.cost import lines_run

import rxdelta as rd
from rxdelta.core import text as text_module, text_delta, tool_call_delta

ev = rd.events
TEXT, REASONING = {"type": "text"}, {"type": "reasoning"}
CHUNK = {"type": "tool_call_chunk", "id": "c", "name": "f"}


# The rulings.


def test_a_finish_without_start_is_the_block() -> None:
    snapshot = fold(
        ev.BlockFinish(1, {"type": "text", "text": "b"}), ev.BlockFinish(0, CHUNK), ev.BlockFinish(5)
    )
    assert [(block.key, block.type, block.open) for block in snapshot.blocks] == [
        (0, "tool_call", False),
        (1, "text", False),
    ]


def only_counted(folding: rd.Fold, event: rd.Event) -> str:
    """The rule that is counted for this event, which changes nothing else of the reply."""
    before = folding.snapshot
    after = folding.step(event)
    assert after == before
    (rule,) = (name for name, n in after.violations.items() if n != before.violations.get(name))
    return rule


@pytest.mark.parametrize(
    "delta",
    [ev.TextDelta(0, "x"), ev.BlockDelta(0, {"text": "x"}), ev.BlockFinish(0), ev.ToolCallDelta(0, "x")],
)
def test_bad_input_7_a_delta_before_its_start_is_ignored(delta: rd.Event) -> None:
    folding = rd.Fold(fold(ev.MessageStart("m")))
    rule = "finish_without_start" if isinstance(delta, ev.BlockFinish) else "delta_before_start"
    assert only_counted(folding, delta) == rule
    assert folding.step(ev.BlockStart(0, TEXT)).text == ""


@pytest.mark.parametrize("delta", [ev.TextDelta(0, "x"), ev.BlockDelta(0, {"text": "x"}), ev.BlockFinish(0)])
def test_bad_input_8_a_delta_after_the_finish_is_ignored(delta: rd.Event) -> None:
    folding = rd.Fold(fold(ev.BlockStart(0, {"type": "text", "text": "a"}), ev.BlockFinish(0)))
    rule = "duplicate_block_finish" if isinstance(delta, ev.BlockFinish) else "delta_after_finish"
    assert only_counted(folding, delta) == rule


def test_bad_input_9_a_second_start_resets_the_block_in_its_place() -> None:
    started = [ev.BlockStart(0, {"type": "text", "text": "a"}), ev.BlockStart(1, REASONING)]
    again = fold(
        *started, ev.BlockFinish(0), ev.BlockStart(0, {"type": "text", "text": "b"}), ev.TextDelta(0, "c")
    )
    assert [(block.key, block.text) for block in again.blocks] == [(0, "bc"), (1, None)]


def test_bad_input_13_a_start_of_another_kind_resets_it_too() -> None:
    again = fold(
        ev.BlockStart(0, {"type": "text", "text": "a"}), ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, "{}")
    )
    assert [(block.type, block.key) for block in again.blocks] == [("tool_call", 0)]
    assert again.blocks[0].arguments == "{}"


@pytest.mark.parametrize(
    ("start", "delta"),
    [
        (REASONING, ev.TextDelta(0, "x")),
        (TEXT, ev.ReasoningDelta(0, "x")),
        (TEXT, ev.DataDelta(0, "x")),
        (CHUNK, ev.TextDelta(0, "x")),
        (TEXT, ev.ToolCallDelta(0, "x")),
        ({"type": "image"}, ev.TextDelta(0, "x")),
    ],
)
def test_bad_input_13_a_delta_of_another_kind_is_ignored(start: dict[str, str], delta: rd.Event) -> None:
    before = fold(ev.BlockStart(0, start))
    assert only_counted(rd.Fold(before), delta) == "delta_type_mismatch"
    assert rd.core.BlockFold(before.blocks[0]).step(delta) is before.blocks[0]


ONE = st.one_of(
    st.fixed_dictionaries({"url": st.sampled_from("ab")}, optional={"start_index": st.sampled_from([0, 1, True, 1.0]), "at": st.just(1)}),
    st.sampled_from(["a", "b"]),
)  # fmt: skip


@st.composite
def citing(draw: st.DrawFn) -> list[rd.Event]:
    """Lists of citations that come whole again, most longer than before, some changed or of another block."""
    told: list[rd.Event] = [ev.BlockStart(0, TEXT)]
    listed: list[Any] = []
    for _ in range(draw(st.integers(1, 8))):
        listed = draw(
            st.sampled_from(
                [listed, listed[:-1], [*listed, draw(ONE)], [draw(ONE), *listed[1:]], [draw(ONE)]]
            )
        )
        start = ev.BlockStart(
            0, {"type": draw(st.sampled_from(["text", "unheard of"])), "citations": [draw(ONE)]}
        )
        delta = ev.BlockDelta(0, {"citations": copy.deepcopy(listed)})
        told.append(
            draw(
                st.sampled_from(
                    [delta, delta, delta, ev.TextDelta(0, "x"), ev.BlockDelta(0, {"a": 1}), start]
                )
            )
        )
    return told


@given(citing())
@example(
    [
        ev.BlockStart(0, TEXT),
        *(ev.BlockDelta(0, {"citations": [{"start_index": n}]}) for n in (1, True, 1.0, 1)),
    ]
)
@example([
    ev.BlockStart(0, {"type": "unheard of"}), ev.BlockDelta(0, {"citations": ["a"]}),
    ev.BlockStart(0, TEXT), ev.BlockDelta(0, {"citations": ["a", "b"]}),
])  # fmt: skip
def test_citations_that_come_whole_again_are_those_of_their_list_read_afresh(told: list[rd.Event]) -> None:
    kept, afresh = rd.Fold(), rd.Snapshot()
    for event in told:
        afresh = rd.apply_event(afresh, event)
        assert kept.step(event) == afresh
        told_apart = json.dumps(kept.snapshot.to_dict(), sort_keys=True)  # 1, 1.0 and True, too
        assert told_apart == json.dumps(afresh.to_dict(), sort_keys=True)


def test_a_citation_that_comes_again_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    read, count = rd.Citation.from_dict, 0

    def from_dict(data: Any) -> rd.Citation:
        nonlocal count
        count += 1
        return read(data)

    monkeypatch.setattr(rd.Citation, "from_dict", from_dict)
    kept = rd.Fold()
    kept.step(ev.BlockStart(0, TEXT))
    for size in range(1, 101):
        kept.step(ev.BlockDelta(0, {"citations": [{"url": f"u{n}"} for n in range(size)]}))
        kept.step(ev.TextDelta(0, "x"))
    (part,) = kept.snapshot.blocks
    assert isinstance(part, rd.ContentPart)
    assert [one.url for one in part.citations] == [f"u{n}" for n in range(100)]
    assert count == 100


def test_after_the_message_has_finished_nothing_of_it_changes() -> None:
    ended = fold(ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.MessageFinish("stop", "end"))
    for event in (
        ev.BlockStart(1, TEXT),
        ev.BlockStart(0, TEXT),
        ev.TextDelta(0, "x"),
        ev.BlockDelta(0, {"text": "x"}),
        ev.BlockFinish(0, {"type": "text", "text": "x"}),
        ev.BlockFinish(1, {"type": "text", "text": "x"}),
        ev.UsageUpdate(rd.TokenUsage(9)),
        ev.MessageFinish("length"),
    ):
        is_finish = isinstance(event, ev.MessageFinish)
        rule = "duplicate_message_finish" if is_finish else "event_after_message_finish"
        assert only_counted(rd.Fold(ended), event) == rule
    assert rd.apply_event(ended, ev.MessageInterrupted("user")) is ended


def test_a_finished_snapshot_stays_even_with_a_block_left_open() -> None:
    odd = rd.Snapshot.from_dict(
        {"status": "complete", "blocks": [{"type": "text", "text": "a", "key": 0, "open": True}]}
    )
    assert only_counted(rd.Fold(odd), ev.TextDelta(0, "b")) == "event_after_message_finish"


def refused_as_another(snapshot: rd.Snapshot, start: rd.Event) -> None:
    folding = rd.Fold(snapshot)
    for refuse in (lambda: rd.apply_event(snapshot, start), lambda: folding.step(start)):
        with pytest.raises(rd.ProtocolError, match="group_by_message") as caught:
            refuse()
        assert (caught.value.violation, caught.value.snapshot) == ("duplicate_message_start", snapshot)
    assert folding.snapshot is snapshot


def test_a_start_after_the_end_is_refused_whatever_its_id() -> None:
    for end in (ev.MessageFinish("stop"), ev.MessageInterrupted("user")):
        ended = fold(ev.MessageStart("m"), end)
        for second in (ev.MessageStart("n"), ev.MessageStart(), ev.MessageStart("m")):
            refused_as_another(ended, second)


BLOCKS: dict[str, list[rd.Event]] = {
    "open": [ev.BlockStart(0, TEXT), ev.TextDelta(0, "a")],
    "finished": [ev.BlockStart(0, TEXT), ev.BlockFinish(0)],
    "only finished": [ev.BlockFinish(0, TEXT | {"text": "a"})],
}


def test_a_stored_half_of_a_reply_has_had_its_start() -> None:
    half = rd.Snapshot.from_dict(fold(ev.MessageStart("m"), *BLOCKS["open"]).to_dict())
    refused_as_another(half, ev.MessageStart("n"))
    assert rd.apply_event(half, ev.MessageStart("m")).text == "a"


@pytest.mark.parametrize(
    ("reason", "word", "start", "shown"),
    [
        ("stop", "end_turn", TEXT, ("stop", "end_turn", "complete")),
        ("stop", None, TEXT, ("stop", None, "complete")),
        ("end_turn", None, TEXT, ("stop", "end_turn", "complete")),
        (None, None, TEXT, ("stop", None, "complete")),
        ("stop", "STOP", CHUNK, ("tool_use", "STOP", "complete")),
        ("tool_use", None, TEXT, ("stop", "tool_use", "complete")),
        ("tool_use", None, CHUNK, ("tool_use", None, "complete")),
        ("tool_use", "tool_use", {"type": "server_tool_call_chunk"}, ("stop", "tool_use", "complete")),
        ("stop", None, {"type": "invalid_tool_call", "args": "x"}, ("tool_use", "stop", "complete")),
        (None, None, CHUNK, ("tool_use", None, "complete")),
        ("pause", None, CHUNK, ("tool_use", "pause", "complete")),
        ("length", "max_tokens", CHUNK, ("length", "max_tokens", "length")),
        ("content_filter", "SAFETY", CHUNK, ("content_filter", "SAFETY", "complete")),
        ("pause", "pause_turn", TEXT, ("pause", "pause_turn", "complete")),
        ("pause", None, {"type": "server_tool_call_chunk"}, ("pause", None, "complete")),
        ("pause", "pause_turn", CHUNK, ("tool_use", "pause_turn", "complete")),
        ("pause_turn", None, TEXT, ("stop", "pause_turn", "complete")),
    ],
)
def test_why_a_message_finished(
    reason: str | None, word: str | None, start: dict[str, str], shown: tuple[Any, ...]
) -> None:
    snapshot = fold(ev.BlockStart(0, start), ev.MessageFinish(reason, word))
    assert (snapshot.finish_reason, snapshot.provider_finish_reason, snapshot.status) == shown
    assert fold(*rd.to_events(snapshot)) == snapshot == rd.Snapshot.from_dict(snapshot.to_dict())
    message = snapshot.to_message()
    assert (message.finish_reason, message.provider_finish_reason) == shown[:2]


def test_an_id_that_the_start_did_not_have_may_come_with_the_finish() -> None:
    late = fold(ev.MessageStart(), ev.MessageFinish(metadata={"id": "m1", "a": 2}))
    assert (late.id, late.metadata) == ("m1", {"a": 2})
    other = fold(ev.MessageStart("m1"), ev.MessageFinish(metadata={"id": "m2"}))
    assert (other.id, other.metadata) == ("m1", {"id": "m2"})


@pytest.mark.parametrize(
    ("end", "why"),
    [
        (ev.MessageFinish("length"), "cut short by the token limit"),
        (ev.MessageInterrupted("user"), "interrupted"),
    ],
)
def test_a_cut_leaves_open_calls_invalid_and_finished_ones_alone(end: rd.Event, why: str) -> None:
    snapshot = fold(
        ev.BlockStart(0, CHUNK),
        ev.ToolCallDelta(0, '{"a":1}'),
        ev.BlockFinish(0),
        ev.BlockStart(1, CHUNK | {"id": "d"}),
        ev.ToolCallDelta(1, '{"b":2}'),
        ev.BlockStart(2, {"type": "server_tool_call_chunk"}),
        ev.BlockStart(3, {"type": "text", "text": "so fa"}),
        end,
    )
    assert [block.type for block in snapshot.blocks] == [
        "tool_call",
        "invalid_tool_call",
        "server_tool_call",
        "text",
    ]
    assert snapshot.invalid_tool_calls[0].arguments == '{"b":2}'
    assert why in snapshot.invalid_tool_calls[0].error
    assert why in snapshot.blocks[2].error
    assert not any(block.open for block in snapshot.blocks)
    message = snapshot.to_message()
    assert (message.status, message.text) == (snapshot.status, "so fa")
    assert message.tool_calls == snapshot.tool_calls


def test_an_error_of_the_provider_has_the_reply_so_far() -> None:
    folding = rd.Fold(fold(ev.BlockStart(0, {"type": "text", "text": "so far"})))
    for choice in (0, 1):
        with pytest.raises(rd.ProviderError) as caught:
            folding.step(ev.StreamError("busy", "overloaded", "529", choice=choice))
        assert (caught.value.message, caught.value.type, caught.value.code) == ("busy", "overloaded", "529")
        assert caught.value.snapshot is folding.snapshot
    assert folding.snapshot.text == "so far"


@pytest.mark.parametrize("thing", [{"choices": []}, None, "text", ev.TextDelta])
def test_what_is_no_event_is_refused(thing: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="reads events or snapshots, and got"):
        rd.apply_event(None, thing)


# Order and choices.


@pytest.mark.parametrize(
    ("indexes", "order"),
    [
        ([1, 0], [0, 1]),
        ([5, 0, 3], [0, 3, 5]),
        (["b", "a"], ["b", "a"]),
        (["z", 1, "a", 0], ["z", 0, 1, "a"]),
        ([3, "a", 5, 4], [3, "a", 4, 5]),
        ([0, -1], [-1, 0]),
    ],
)
def test_bad_inputs_5_and_6_integers_stand_in_their_order_and_names_as_first_seen(
    indexes: list[Any], order: list[Any]
) -> None:
    folding = rd.Fold()
    for index in indexes:
        folding.step(ev.BlockStart(index, TEXT))
    for index in indexes:
        folding.step(ev.TextDelta(index, f"<{index}>"))
    assert [(block.key, block.text) for block in folding.snapshot.blocks] == [
        (index, f"<{index}>") for index in order
    ]
    assert rd.apply_event(folding.snapshot, ev.MessageFinish()).to_message().text == "".join(
        f"<{i}>" for i in order
    )


def test_bad_input_5_arguments_are_never_swapped() -> None:
    snapshot = fold(
        ev.BlockStart(1, CHUNK | {"id": "b"}),
        ev.ToolCallDelta(1, '{"b"'),
        ev.BlockStart(0, CHUNK | {"id": "a"}),
        ev.ToolCallDelta(0, '{"a"'),
        ev.ToolCallDelta(1, ":1}"),
        ev.ToolCallDelta(0, ":0}"),
        ev.MessageFinish(),
    )
    assert [(call.call_id, call.arguments) for call in snapshot.tool_calls] == [
        ("a", {"a": 0}),
        ("b", {"b": 1}),
    ]


def test_applying_an_event_of_another_choice_changes_nothing() -> None:
    one = rd.apply_event(None, ev.BlockStart(0, TEXT, choice=1))
    assert one.choice == 1
    assert rd.apply_event(one, ev.TextDelta(0, "x")) is one
    assert rd.apply_event(one, ev.TextDelta(0, "x", choice=1)).text == "x"
    assert rd.merge_delta(one, rd.MessageDelta("x")) is one
    assert rd.merge_delta(one, rd.MessageDelta("x", choice=1)).text == "x"
    assert rd.Fold(choice=1).step(rd.MessageDelta("x")).text == ""


# Tools and attempts.


def calls(*ids: str) -> list[rd.Event]:
    return [ev.BlockStart(n, CHUNK | {"id": call_id}) for n, call_id in enumerate(ids)]


def test_bad_input_55_an_update_of_an_unknown_call_changes_nothing() -> None:
    snapshot = fold(*calls("c"))
    assert rd.apply_event(snapshot, ev.ToolUpdate("nobody", "completed")) is snapshot


def test_bad_input_56_updates_move_only_forward_and_the_first_terminal_result_stands() -> None:
    folding = rd.Fold(fold(*calls("c", "d")))
    other = folding.snapshot.tool_calls[1]
    folding.step(ev.ToolUpdate("c", "identified", "Reading"))
    folding.step(ev.ToolUpdate("c", "executing", "", rd.ToolResult("c", "half")))
    busy = folding.snapshot
    assert (busy.tool_calls[0].execution_status(), busy.tool_calls[0].display_text) == (
        "executing",
        "Reading",
    )
    assert busy.tool_calls[0].result == rd.ToolResult("c", "half")
    for nothing_new in (
        ev.ToolUpdate("c"),
        ev.ToolUpdate("c", "identified"),
        ev.ToolUpdate("c", "executing", "Reading", rd.ToolResult("c", "half")),
    ):
        assert folding.step(nothing_new) is busy
    done = folding.step(ev.ToolUpdate("c", "completed", "Read", rd.ToolResult("c", "all")))
    for too_late in (
        ev.ToolUpdate("c", "failed", None, rd.ToolResult("c", "boom", True)),
        ev.ToolUpdate("c", "executing"),
        ev.ToolUpdate("c", result=rd.ToolResult("c", "more")),
    ):
        assert folding.step(too_late) is done
    assert (done.tool_calls[0].execution_status(), done.tool_calls[0].result) == (
        "completed",
        rd.ToolResult("c", "all"),
    )
    assert done.tool_calls[1] is other


def test_an_update_does_not_reach_a_call_that_has_begun_behind_a_call_that_ended_as_a_text() -> None:
    first = [ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1"}), ev.ToolUpdate("c1", "executing")]
    second = [ev.BlockFinish(0, {"type": "text"}), ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c2"})]
    folding = rd.Fold()
    for event in (*first, *second):
        snapshot = folding.step(event)
    assert folding.step(ev.ToolUpdate("c1", "completed")) is snapshot


def test_an_update_reaches_every_call_of_that_id_and_the_newest_still_grows() -> None:
    first = rd.merge_deltas(
        [
            rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c", name="f", index=0)]),
            rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c", name="f", index=1)]),
        ]
    )
    updated = rd.apply_event(first, ev.ToolUpdate("c", "executing"))
    assert [call.execution_status() for call in updated.tool_calls] == ["executing", "executing"]


def test_a_new_attempt_starts_afresh_and_remembers_the_cost() -> None:
    folding = rd.Fold()
    for event in (
        ev.MessageStart("m", usage=rd.TokenUsage(10, 0)),
        ev.BlockStart(0, {"type": "text", "text": "lost"}),
        ev.UsageUpdate(rd.TokenUsage(10, 4)),
        ev.AttemptReset(1, "overloaded"),
    ):
        folding.step(event)
    fresh = folding.snapshot
    assert (fresh.blocks, fresh.id, fresh.attempt, fresh.status, fresh.role) == (
        (),
        None,
        1,
        "incomplete",
        "assistant",
    )
    assert (fresh.usage, fresh.total_usage) == (None, rd.TokenUsage(10, 4))
    folding.step(ev.TextDelta(0, "of the old block"))
    folding.step(ev.UsageUpdate(rd.TokenUsage(1, 1, cumulative=True)))
    assert folding.snapshot.total_usage == rd.TokenUsage(11, 5)
    folding.step(ev.AttemptReset(2, usage=rd.TokenUsage(100, 100, cumulative=True)))
    for event in (
        ev.MessageStart("n"),
        ev.BlockStart(0, {"type": "text", "text": "kept"}),
        ev.MessageFinish(usage=rd.TokenUsage(1)),
    ):
        folding.step(event)
    message = folding.snapshot.to_message()
    assert (message.text, message.attempt, message.usage) == ("kept", 2, rd.TokenUsage(1))
    assert message.total_usage == folding.snapshot.total_usage == rd.TokenUsage(111, 104)


def test_a_new_attempt_after_the_end_belongs_to_the_next_message() -> None:
    with pytest.raises(
        rd.ProtocolError, match=r"another attempt begins after the first has finished.*group_by_message"
    ) as caught:
        fold(ev.MessageStart("m"), ev.MessageFinish(), ev.AttemptReset(1))
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.status == "complete"


# One block alone.


@given(st.lists(events(st.just(0)), max_size=30))
def test_the_fold_of_a_block_is_that_block_of_the_whole_fold(events: list[rd.Event]) -> None:
    whole, block = rd.Fold(), None
    for event in events:
        if isinstance(
            event, (ev.MessageFinish, ev.MessageInterrupted, ev.AttemptReset, ev.ToolUpdate, ev.MessageStart)
        ):
            continue
        snapshot = whole.step(event)
        if isinstance(event, ev.BlockStart):
            block = rd.core.BlockFold(event) if block is None else block
            block.reset(event)
        elif block is not None and hasattr(event, "index"):
            block.step(event)
        elif isinstance(event, ev.BlockFinish) and snapshot.blocks:
            block = rd.core.BlockFold(snapshot.blocks[0])
        if block is not None:
            assert (block.block, block.block.open, block.block.key) == (
                snapshot.blocks[0],
                snapshot.blocks[0].open,
                0,
            )


@example([ev.MessageInterrupted(), ev.MessageStart()])
@given(st.lists(events(), max_size=30))
def test_a_fold_that_goes_on_answers_as_one_that_begins_with_its_snapshot(events: list[rd.Event]) -> None:
    folding = rd.Fold()
    for event in events:
        before = folding.snapshot
        if folding.begins_another(event):
            with pytest.raises(rd.ProtocolError):
                rd.apply_event(before, event)
            return
        assert folding.step(event).to_dict() == rd.apply_event(before, event).to_dict()


@given(st.lists(st.integers(-3, 12) | st.sampled_from("abc"), unique=True), st.data())
def test_whichever_block_comes_first_numbered_ones_stand_in_the_order_of_their_numbers(
    indexes: list[int | str], data: st.DataObject
) -> None:
    expected: list[int | str] = []
    folding = rd.Fold()
    for index in indexes:
        higher = (n for n, known in enumerate(expected) if isinstance(known, int))
        higher = (n for n in higher if isinstance(index, int) and expected[n] > index)  # type: ignore[operator]
        expected.insert(next(higher, len(expected)), index)
        folding.step(ev.BlockStart(index, TEXT))
        chosen = data.draw(st.sampled_from(expected))
        folding.step(ev.TextDelta(chosen, f"{chosen}"))
        assert [block.key for block in folding.snapshot.blocks] == expected
        assert all(set(block.text or "") <= set(f"{block.key}") for block in folding.snapshot.blocks)
        assert [block.key for block in rd.Fold(folding.snapshot).step(ev.BlockStart("z", TEXT)).blocks] == [
            *expected,
            "z",
        ]
    finished = folding.step(ev.MessageFinish("stop"))
    assert [(block.key, block.open) for block in finished.blocks] == [(key, False) for key in expected]


# What a step costs, counted.


def steps(of: list[rd.Event]) -> int:
    def act() -> None:
        folding = rd.Fold()
        for event in of:
            folding.step(event)

    return lines_run(act)


@pytest.mark.parametrize("kind", ["ascending", "descending", "shuffled"])
def test_in_whatever_order_blocks_come_each_costs_the_same(kind: str) -> None:
    def blocks(count: int) -> list[rd.Event]:
        indexes = list(range(count))
        if kind == "descending":
            indexes.reverse()
        if kind == "shuffled":
            random.Random(1).shuffle(indexes)
        return [
            event
            for index in indexes
            for event in (ev.BlockStart(index, TEXT), ev.TextDelta(index, "a"), ev.BlockFinish(index))
        ]

    assert steps(blocks(400)) < 2.1 * steps(blocks(200))


def test_the_news_of_a_call_cost_the_same_however_many_calls_there_are() -> None:
    def calls(count: int) -> list[rd.Event]:
        found: list[rd.Event] = []
        for index in range(count):
            found += [ev.BlockStart(index, CHUNK | {"id": f"c{index}"}), ev.BlockFinish(index)]
            found += [ev.ToolUpdate(f"c{index}", "executing")]
        return [*found, *(ev.ToolUpdate(f"c{index}", "completed") for index in range(count))]

    assert steps(calls(400)) < 2.1 * steps(calls(200))


def test_bad_input_31_empty_deltas_and_keep_alives_cost_and_change_nothing() -> None:
    folding = rd.Fold(fold(ev.BlockStart(0, TEXT), ev.BlockStart(1, CHUNK), ev.TextDelta(0, "a")))
    before = folding.snapshot
    empty = [
        ev.TextDelta(0, ""),
        ev.ReasoningDelta(0, ""),
        ev.ToolCallDelta(1, ""),
        ev.BlockDelta(0, {}),
        ev.ProviderEvent("p", "ping"),
        ev.ToolUpdate("c"),
    ]
    tracemalloc.start()
    try:
        assert all(folding.step(event) is before for _ in range(2_000) for event in empty)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**17


def test_a_step_shares_every_block_it_does_not_touch() -> None:
    folding = rd.Fold(
        fold(*[ev.BlockStart(n, CHUNK | {"id": f"c{n}"}) for n in range(5)], ev.BlockStart(9, TEXT))
    )
    for n in range(300):
        before = folding.snapshot
        index = (0, 9, 3)[n % 3]
        after = folding.step(ev.TextDelta(9, "x") if index == 9 else ev.ToolCallDelta(index, "x"))
        place = 5 if index == 9 else index
        assert [now is then for now, then in zip(after.blocks, before.blocks)] == [
            n != place for n in range(6)
        ]
        assert after._head is before._head
        assert [call is then for call, then in zip(after.tool_calls, before.tool_calls)].count(False) == (
            index != 9
        )


@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_a_step_touches_no_text_but_its_own_and_now_and_then_a_leaf(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, copied = 20_000, [0]
    seal = text_module._seal

    def counted(older: Any, text: str) -> Any:
        sealed = seal(older, text)
        copied[0] += len(text) + len(sealed[2])
        return sealed

    monkeypatch.setattr(text_module, "_seal", counted)
    read: list[object] = []
    monkeypatch.setattr(text_module, "read_text", read.append)
    folding = rd.Fold(fold(ev.BlockStart(0, TEXT if kind == "text" else CHUNK)))
    piece = text_delta(0, "abcd") if kind == "text" else tool_call_delta(0, "abcd")
    for _ in range(count):
        folding.step(piece)
    assert read == []
    assert 0 < copied[0] <= 4 * count * 10  # log2 of the number of leaves, and the leaf itself


def bytes_held(value: object) -> int:
    """The size of all that is reachable from a value, classes apart; unlike a traced allocation always the same."""
    seen, pending, size = {id(value)}, [value], 0
    while pending:
        held = pending.pop()
        size += sys.getsizeof(held)
        for inner in gc.get_referents(held):
            if id(inner) not in seen and not isinstance(inner, type):
                seen.add(id(inner))
                pending.append(inner)
    return size


@pytest.mark.parametrize("kind", ["text", "arguments"])
def test_keeping_every_snapshot_of_a_stream_takes_memory_in_proportion(kind: str) -> None:
    def held(count: int) -> int:
        folding = rd.Fold(fold(ev.BlockStart(0, TEXT if kind == "text" else CHUNK)))
        make = text_delta if kind == "text" else tool_call_delta
        return bytes_held([folding.step(make(0, f"{n:05}")) for n in range(count)])

    small, large = held(2_000), held(8_000)
    assert large / 8_000 < 450
    assert large < 4.2 * small  # four times as many, and each text is kept in log n sealed sizes


def test_a_kept_snapshot_never_changes_and_two_branches_stay_apart() -> None:
    rng = random.Random(7)
    folding = rd.Fold(fold(ev.BlockStart(0, TEXT), ev.BlockStart(1, CHUNK)))
    said, args = "", ""
    side: list[tuple[rd.Snapshot, str, str]] = []
    for n in range(2_000):
        if rng.random() < 0.5:
            said += f"<{n}>"
            folding.step(ev.TextDelta(0, f"<{n}>"))
        else:
            args += f"[{n}]"
            folding.step(ev.ToolCallDelta(1, f"[{n}]"))
        if rng.random() < 0.3:  # somebody goes on from a snapshot while the fold goes on too
            branch = rd.apply_event(
                rd.apply_event(folding.snapshot, ev.TextDelta(0, "!X")), ev.ToolCallDelta(1, "!Y")
            )
            side.append((branch, said + "!X", args + "!Y"))
        if side and rng.random() < 0.3:
            k = rng.randrange(len(side))
            branch, text, arguments = side[k]
            side[k] = (rd.apply_event(branch, ev.TextDelta(0, "Z")), text + "Z", arguments)
        if rng.random() < 0.05:
            assert (folding.snapshot.text, folding.snapshot.tool_calls[0].arguments) == (said, args)
            side.append((folding.snapshot, said, args))
    assert len(side) > 500
    for snapshot, text, arguments in side:
        assert (snapshot.text, snapshot.tool_calls[0].arguments) == (text, arguments)


@given(st.lists(events(), max_size=30))
def test_snapshots_never_change_afterwards(events: list[rd.Event]) -> None:
    folding, kept = rd.Fold(), []
    for event in events:
        try:
            snapshot = folding.step(event)
        except rd.RxDeltaError:
            break
        kept.append((snapshot, repr(snapshot), snapshot.to_dict()))
    for snapshot, shown, written in kept:
        assert (repr(snapshot), snapshot.to_dict()) == (shown, written)


@given(st.lists(events(), max_size=30))
def test_applying_events_one_by_one_is_the_fold(events: list[rd.Event]) -> None:
    folding, snapshot = rd.Fold(), None
    for event in events:
        try:
            snapshot = rd.apply_event(snapshot, event)
        except rd.RxDeltaError as error:
            with pytest.raises(type(error)):
                folding.step(event)
            return
        assert folding.step(event) == snapshot
