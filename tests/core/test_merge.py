"""How a reply grows by small deltas: the rules of `merge_delta`, what it does better, and its laws."""

from __future__ import annotations

from typing import Any

import pytest
from core.strategies import details, pieces, plain, usages, word
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
Delta, Part, Call = rd.MessageDelta, rd.ContentPart, rd.ToolCall


def call(
    call_id: str | None = None,
    name: str | None = None,
    arguments: Any = None,
    index: int | None = 0,
    **more: Any,
) -> rd.Snapshot:
    return Delta(tool_calls=[Call(call_id=call_id, name=name, arguments=arguments, index=index, **more)])


def merged(*deltas: rd.Snapshot | rd.Event) -> rd.Snapshot:
    snapshot = rd.merge_deltas(list(deltas))
    assert snapshot is not None
    return snapshot


def shown(snapshot: rd.Snapshot) -> list[Any]:
    return [
        (block.call_id, block.name, block.arguments)
        if isinstance(block, rd.ToolCall)
        else (block.type, block.text)
        for block in snapshot.blocks
    ]


def test_the_first_delta_makes_an_assistants_reply() -> None:
    first = rd.merge_delta(None, Delta("a", choice=2))
    assert (first.role, first.choice, first.content, first.text) == ("assistant", 2, None, "a")


def test_only_an_assistants_reply_takes_more() -> None:
    with pytest.raises(rd.errors.MergeError, match="role is 'unknown'"):
        rd.merge_delta(Delta("a"), Delta("b"))


def test_an_error_item_leaves_the_reply_as_it_is_and_other_events_are_applied() -> None:
    one = merged(Delta("a"))
    assert rd.merge_delta(one, ev.StreamError("no")) is one
    assert rd.merge_delta(None, ev.StreamError("no", choice=1)) == merged(Delta(choice=1))
    assert merged(ev.BlockStart(0, {"type": "text", "text": "b"})).text == "b"
    assert (one + ev.MessageFinish("stop")).status == one.merge(ev.MessageFinish("stop")).status == "complete"


def test_many_deltas_nested_at_any_depth() -> None:
    deep: Any = [Delta("!")]
    for _ in range(5_000):
        deep = [deep]
    assert rd.merge_deltas([Delta("a"), [Delta("b"), [], deep]]).text == "ab!"
    one = merged(Delta("a"))
    assert rd.merge_deltas(one, [Delta("b")]).text == "ab"
    assert rd.merge_deltas(one, []) is one
    assert rd.merge_deltas([]) is rd.merge_deltas(None, []) is None


def test_content_goes_to_the_slot_of_its_delta() -> None:
    both = merged(
        Delta("b", index=1),
        Delta("a"),
        Delta(["B", Part("text", "b"), {"type": "text", "text": "!"}], index=1),
        Delta("A", index=0),
    )
    assert shown(both) == [("text", "aA"), ("text", "bBb!")]
    assert [block.key for block in both.blocks] == [("part", 0), ("part", 1)]
    assert both.index == 0


@pytest.mark.parametrize(
    "nothing",
    [None, "", [], [""], [{"type": "image", "text": "x"}], [{"text": "x"}], [{"type": "text", "text": 5}]],
)
def test_content_that_is_none_makes_no_block(nothing: Any) -> None:
    assert merged(Delta(nothing)).blocks == ()


def test_usage_is_added_and_a_cumulative_one_replaces() -> None:
    both = merged(Delta(usage=rd.TokenUsage(1, 1)), Delta(), Delta(usage=rd.TokenUsage(2, 2)))
    assert both.usage == rd.TokenUsage(3, 3)
    assert (both + Delta(usage=rd.TokenUsage(5, 5, cumulative=True))).usage == rd.TokenUsage(
        5, 5, cumulative=True
    )


# What rxdelta does better, by the letters of the design.


def test_deviation_a_an_identical_fragment_is_text_like_any_other() -> None:
    same = call("c", "f", "ha")
    assert shown(merged(same, same)) == [("c", "f", "haha")]


@pytest.mark.parametrize(
    "second",
    [
        Part("reasoning", "b", {"x": 1}, [{"title": "T"}]),
        [Part("reasoning", "b", {"x": 1}, [{"title": "T"}])],
    ],
)
def test_deviations_b_and_c_a_part_of_another_type_is_a_new_block(second: Any) -> None:
    both = merged(Delta("a"), Delta("z", index=1), Delta(second), Delta([Part("reasoning", "c"), "d"]))
    assert shown(both) == [("text", "a"), ("reasoning", "bc"), ("text", "d"), ("text", "z")]
    assert (both.blocks[1].options, both.blocks[1].citations) == ({"x": 1}, (rd.Citation(title="T"),))
    assert {block.key for block in both.blocks[:3]} == {("part", 0)}


def test_deviation_d_metadata_is_kept_and_the_last_wins() -> None:
    assert merged(Delta(metadata={"a": 1, "b": 1}), Delta(metadata={"b": 2, "c": 3})).metadata == {
        "a": 1,
        "b": 2,
        "c": 3,
    }


def test_deviation_e_content_not_yet_merged_is_merged_first() -> None:
    one = Delta("a", role="assistant", index=1)
    assert shown(one + Delta("b", index=1)) == [("text", "ab")]
    assert shown(one + Delta("b")) == [("text", "b"), ("text", "a")]


def test_deviation_f_another_id_at_the_same_index_is_another_call() -> None:
    both = merged(call("c", "f", "1"), call("d", "g", "2"), call(None, None, "3"), call("c", None, "4"))
    assert shown(both) == [("c", "f", "14"), ("d", "g", "23")]


def test_deviation_g_a_name_that_comes_again_is_kept_once() -> None:
    assert shown(merged(call("c", "foo", "1"), call("c", "foo", "2"), call("c", "", "3"))) == [
        ("c", "foo", "123")
    ]


@pytest.mark.parametrize("arguments", ['{"a":1} x', '{"a"', "[]", ""])
def test_deviation_h_a_call_is_complete_only_with_one_strict_object(arguments: str) -> None:
    for status in ("incomplete", "complete"):
        with pytest.raises(rd.errors.InvalidToolCallError):
            merged(call("c", "f", arguments, status=status), Delta(status="complete")).to_message()


def test_deviation_m_a_terminal_status_stays() -> None:
    done = call("c", metadata={"execution_status": "completed"}, display_text="Read")
    again = merged(done, call("c", metadata={"execution_status": "executing"}, display_text=""))
    assert (again.tool_calls[0].execution_status(), again.tool_calls[0].display_text) == ("completed", "Read")


def test_deviation_n_a_snapshot_is_merged_block_by_block() -> None:
    whole = merged(
        ev.AttemptReset(1, usage=rd.TokenUsage(5, 5)),
        ev.MessageStart("m", "gpt", rd.TokenUsage(1, 1)),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "a"),
        ev.BlockStart("x", {"type": "tool_call_chunk", "id": "c", "name": "f"}),
        ev.ToolCallDelta("x", "{}"),
    )
    assert rd.merge_delta(None, whole) == whole
    assert rd.merge_delta(None, rd.apply_event(whole, ev.MessageFinish("stop", "end"))) == rd.apply_event(
        whole, ev.MessageFinish("stop", "end")
    )
    half = merged(Delta("a"), call("c", "f", "{"))
    rest = merged(Delta("b"), call("c", None, "}"), Delta(status="complete"))
    assert shown(half + rest) == [("text", "ab"), ("c", "f", "{}")]
    assert (half + rest).status == "complete"


# Which fragment belongs to which call.


def test_an_id_that_comes_late_belongs_to_the_open_call_without_one() -> None:
    assert shown(merged(call(None, "f", "1"), call("c", None, "2"), call("c", None, "3"))) == [
        ("c", "f", "123")
    ]
    assert shown(merged(call(None, "f", "{}", status="complete"), call("c", "g"))) == [
        (None, "f", "{}"),
        ("c", "g", None),
    ]


def test_a_complete_call_sent_again_changes_nothing() -> None:
    done = call("c", "f", {"a": 1}, status="complete")
    text = call("c", "f", '{"a":1}', status="complete")
    for one in (done, text):
        assert shown(merged(one, one)) == shown(merged(one))


# Laws.

some_parts = st.builds(
    lambda kind, text, options, slot: Delta(Part(kind, text, options), index=slot),
    st.sampled_from(["text", "reasoning", "image"]),
    st.none() | plain,
    details.filter(lambda options: not options.keys() & {"citations", "execution_status"}),
    st.none() | st.integers(0, 3),
)
own_ids = {0: "c0", 1: "c1", 2: None, None: None}
some_calls = st.builds(
    lambda index, named, args: call(own_ids[index], f"f{index}" if named else None, args, index),
    st.sampled_from([0, 1, 2, None]),
    st.booleans(),
    st.none() | plain,
)
lists = st.builds(
    lambda parts, index: Delta(["x", *[part.content for part in parts]], index=index),
    st.lists(some_parts, max_size=2),
    st.integers(0, 2),
)
others = st.builds(
    Delta,
    status=st.sampled_from(["incomplete", "complete", "length"]),
    metadata=details,
    index=st.none() | st.integers(0, 2),
)
deltas = some_parts | some_calls | lists | others


@given(st.lists(deltas, max_size=6), st.lists(deltas, max_size=6), st.lists(deltas, max_size=6))
def test_merging_is_associative_for_parts_and_for_calls_of_one_id(
    a: list[Any], b: list[Any], c: list[Any]
) -> None:
    x, y, z = (rd.merge_deltas([Delta(), *some]) for some in (a, b, c))
    assert (x + y) + z == x + (y + z) == rd.merge_deltas([Delta(), *a, *b, *c])


@given(st.lists(usages, min_size=3, max_size=3))
def test_merging_usage_is_associative(some: list[rd.TokenUsage]) -> None:
    x, y, z = (rd.TokenUsage(each.input_tokens, each.output_tokens) for each in some)
    assert x.add(y).add(z) == x.add(y.add(z))


@given(st.lists(deltas, max_size=12))
def test_each_snapshot_contains_the_last_and_stays_what_it_was(some: list[Any]) -> None:
    snapshot: rd.Snapshot | None = None
    kept: list[tuple[rd.Snapshot, dict[str, Any]]] = []
    for delta in some:
        before, snapshot = snapshot, rd.merge_delta(snapshot, delta)
        kept.append((snapshot, snapshot.to_dict()))
        if before is None:
            continue
        later = iter(snapshot.blocks)
        for block in before.blocks:  # in the same order, each at least what it was
            assert any(contains(other, block) for other in later)
    for snapshot, written in kept:
        assert snapshot.to_dict() == written


def contains(later: rd.ContentPart | rd.ToolCall, earlier: rd.ContentPart | rd.ToolCall) -> bool:
    if isinstance(later, rd.ToolCall) or isinstance(earlier, rd.ToolCall):
        return (
            type(later) is type(earlier)
            and later.key == earlier.key
            and (later.arguments or "").startswith(earlier.arguments or "")
        )
    return (later.key, later.type) == (earlier.key, earlier.type) and (later.text or "").startswith(
        earlier.text or ""
    )


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["text", "reasoning", "call"]), plain, st.lists(st.integers(0, 6), max_size=3)
        ),
        max_size=6,
    )
)
def test_splitting_a_delta_anywhere_changes_nothing(said: list[tuple[str, str, list[int]]]) -> None:
    def make(n: int, kind: str, text: str) -> rd.Snapshot:
        if kind == "call":
            return call(f"c{n}", f"f{n}", text, n)
        return Delta(Part(kind, text), index=n)

    whole = [make(n, kind, text) for n, (kind, text, _) in enumerate(said) if text]
    split = [
        make(n, kind, piece)
        for n, (kind, text, cuts) in enumerate(said)
        if text
        for piece in pieces(text, cuts)
    ]
    assert rd.merge_deltas([Delta(), *split]) == rd.merge_deltas([Delta(), *whole])


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["text", "reasoning", "call"]), plain, st.lists(st.integers(0, 6), max_size=3)
        ),
        max_size=6,
    )
)
def test_splitting_an_event_anywhere_changes_nothing(said: list[tuple[str, str, list[int]]]) -> None:
    starts = {
        "text": {"type": "text"},
        "reasoning": {"type": "reasoning"},
        "call": {"type": "tool_call_chunk", "id": "c", "name": "f"},
    }
    makers = {"text": ev.TextDelta, "reasoning": ev.ReasoningDelta, "call": ev.ToolCallDelta}
    whole, split = rd.Fold(), rd.Fold()
    for n, (kind, text, cuts) in enumerate(said):
        for folding, some in ((whole, [text]), (split, pieces(text, cuts))):
            folding.step(ev.BlockStart(n, starts[kind]))
            for piece in some:
                folding.step(makers[kind](n, piece))
    assert split.snapshot == whole.snapshot
    assert whole.step(ev.MessageFinish()) == split.step(ev.MessageFinish())


@given(st.data(), st.lists(st.lists(word, max_size=4), min_size=1, max_size=4))
def test_interleaving_blocks_and_calls_changes_nothing(data: st.DataObject, said: list[list[str]]) -> None:
    def own(n: int) -> list[list[Any]]:
        args = [call(f"c{n}", f"f{n}", piece, n) for piece in said[n]]
        text = [Delta(piece, index=n) for piece in said[n]]
        start = ev.BlockStart(
            n, {"type": "text"} if n % 2 else {"type": "tool_call_chunk", "id": f"c{n}", "name": "f"}
        )
        grow = [(ev.TextDelta if n % 2 else ev.ToolCallDelta)(n, piece) for piece in said[n]]
        return [args if n % 2 else text, [start, *grow, ev.BlockFinish(n)]]

    for which in (0, 1):
        streams = [own(n)[which] for n in range(len(said))]
        turns = data.draw(st.permutations([n for n, stream in enumerate(streams) for _ in stream]))
        iterators = [iter(stream) for stream in streams]
        mixed = rd.merge_deltas([Delta(), *(next(iterators[n]) for n in turns)])
        straight = rd.merge_deltas([Delta(), *(delta for stream in streams for delta in stream)])
        assert sorted(map(repr, mixed.blocks)) == sorted(map(repr, straight.blocks))
        assert [block.key for block in mixed.merged_content] == [
            block.key for block in straight.merged_content
        ]
