"""`MessageDelta` beside `Snapshot`: what the one has and the other has not, and what becomes what. The rules of merging: `test_merge`."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops

import rxdelta as rd
from rxdelta import events as ev

REPLY = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "text", "text": "Hi"}),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "tool_call", "id": "c", "name": "f", "args": "{}"}),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]


def folded() -> rd.Snapshot:
    fold = rd.Fold()
    for event in REPLY:
        fold.step(event)
    return fold.snapshot


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        (
            "content",
            r"a Snapshot has no attribute 'content'; read \.text, or \.blocks for all that it consists of",
        ),
        ("merged_content", r"among \.blocks"),
        ("index", r"its alternative reply is \.choice"),
        ("migrate_to_content_parts", "only a MessageDelta"),
    ],
)
def test_what_a_reader_looks_for_says_what_to_read(name: str, advice: str) -> None:
    with pytest.raises(AttributeError, match=advice):
        getattr(folded(), name)
    assert not hasattr(folded(), name)


def test_any_other_name_has_no_advice() -> None:
    with pytest.raises(AttributeError, match=r"a Snapshot has no attribute 'txet'$"):
        folded().txet  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("given", [("Hi",), (None, [])])
def test_a_snapshot_is_made_by_a_fold(given: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"scan_deltas.*MessageDelta.*Message;.*from_dict"):
        rd.Snapshot(*given)
    with pytest.raises(rd.InvalidValueError, match="MessageDelta"):
        rd.Snapshot(content="Hi")  # type: ignore[arg-type]


def test_a_delta_is_a_snapshot_with_more() -> None:
    delta = rd.MessageDelta("Hi", index=2)
    assert isinstance(delta, rd.Snapshot)
    assert (delta.content, delta.index, delta.merged_content, delta.text) == ("Hi", 2, (), "")
    assert delta.migrate_to_content_parts() == rd.MessageDelta(rd.ContentPart("text", "Hi"), index=2)


def test_merging_deltas_makes_a_delta() -> None:
    merged = rd.merge_deltas([rd.MessageDelta("Hel"), rd.MessageDelta("lo", index=0)])
    assert type(merged) is rd.MessageDelta
    assert (merged.text, merged.content, merged.index, len(merged.merged_content)) == ("Hello", None, 0, 1)
    assert [block.type for block in merged.blocks] == ["text"]
    assert type(rd.merge_delta(None, ev.TextDelta(0, "x"))) is rd.MessageDelta
    assert type(rd.merge_delta(merged, ev.MessageFinish("stop"))) is rd.MessageDelta
    assert type(rd.merge_delta(merged, folded())) is rd.MessageDelta


def test_what_is_merged_into_a_snapshot_is_a_snapshot() -> None:
    snapshot = folded()
    for more in (rd.MessageDelta("!", index=4), folded(), ev.MessageFinish("stop")):
        assert type(rd.merge_delta(snapshot, more)) is rd.Snapshot
        assert type(snapshot.merge(more)) is type(snapshot + more) is rd.Snapshot
    assert type(rd.merge_deltas(snapshot, [rd.MessageDelta("!")])) is rd.Snapshot


@pytest.mark.parametrize("kind", [rd.Snapshot, rd.MessageDelta])
def test_each_operation_keeps_the_kind(kind: type[rd.Snapshot]) -> None:
    reply = kind.from_dict(folded().to_dict())
    assert type(reply) is kind
    changed = [
        reply.upsert_tool_call(rd.ToolCall(call_id="c", name="g")),
        reply.upsert_tool_call(rd.ToolCall(call_id="d", name="g")),
        reply.set_tool_execution_status("c", "executing"),
        reply.set_tool_display_text("c", "Reading"),
        reply.accumulate_token_usage(rd.MessageDelta(usage=rd.TokenUsage(1, 2))),
        pickle.loads(pickle.dumps(reply)),
        copy.deepcopy(reply),
    ]
    assert {type(one) for one in changed} == {kind}
    delta = rd.MessageDelta("x", tool_calls=[rd.ToolCall(call_id="c")], index=1)
    named = delta.set_tool_display_text("c", "Reading")
    assert (named.content, named.index, named.tool_calls[0].display_text) == ("x", 1, "Reading")


def test_a_delta_equals_a_snapshot_that_says_the_same() -> None:
    snapshot = folded()
    same = rd.MessageDelta.from_dict(snapshot.to_dict())
    assert snapshot == same == snapshot
    assert hash(snapshot) == hash(same)
    for other in (rd.MessageDelta("x"), rd.MessageDelta(index=1)):
        assert rd.merge_delta(None, rd.MessageDelta()) != other
        assert rd.Snapshot() != other
        assert other != rd.Snapshot()
    assert rd.MessageDelta("x") != rd.MessageDelta("y")


def test_a_seed_loses_none_of_its_content() -> None:
    seed = rd.MessageDelta("Hel", role="assistant")
    assert rd.Fold(seed).snapshot.text == "Hel"
    assert type(rd.Fold(seed).snapshot) is rd.Snapshot
    (last,) = rx.of(rd.MessageDelta("lo")).pipe(rd.scan_deltas(seed), ops.to_list()).run()
    assert last.text == "Hello"
    assert rd.apply_event(seed, ev.MessageFinish("stop")).to_message().text == "Hel"


parts = st.sampled_from(
    [None, "", "Hi", ["a", rd.ContentPart("reasoning", "r")], rd.ContentPart("text", "p")]
)
deltas = st.builds(rd.MessageDelta, parts, index=st.none() | st.integers(0, 3), role=st.just("assistant"))


@given(st.lists(deltas, max_size=5))
def test_a_stored_delta_is_read_as_a_delta_or_as_the_reply_that_it_is(found: list[rd.MessageDelta]) -> None:
    for delta in (*found, rd.merge_deltas(found)):
        if delta is None:
            continue
        stored = json.loads(json.dumps(delta.to_dict()))
        assert rd.MessageDelta.from_dict(stored) == delta
        read = rd.Snapshot.from_dict(stored)
        assert type(read) is rd.Snapshot
        assert read == rd.Fold(delta).snapshot
        assert "content" not in read.to_dict()
        assert "index" not in read.to_dict()


@given(st.lists(deltas, max_size=5))
def test_a_snapshot_takes_deltas_as_a_delta_does(found: list[rd.MessageDelta]) -> None:
    small, whole = rd.merge_delta(None, rd.MessageDelta()), rd.Snapshot()
    for delta in found:
        small, whole = rd.merge_delta(small, delta), rd.merge_delta(whole, delta)
    assert rd.Fold(small).snapshot == whole


def test_how_they_print() -> None:
    assert repr(rd.MessageDelta("x", choice=2)) == "<MessageDelta incomplete; choice 2; content='x'>"
    assert repr(folded()).startswith("<Snapshot complete; text 'Hi'")
