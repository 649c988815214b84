"""Snapshots and messages as values: construction, views, finishing, writing, reading, continuing."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from core.strategies import clean_json, events, fold, fold_leniently
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events
CALL = rd.ToolCall(call_id="c", name="f", arguments='{"a": 1}', index=0)


def test_an_empty_delta() -> None:
    delta = rd.MessageDelta()
    assert (delta.content, delta.blocks, delta.role, delta.status, delta.index) == (
        None,
        (),
        "unknown",
        "incomplete",
        None,
    )
    assert (delta.text, delta.reasoning, delta.metadata, delta.usage, delta.attempt) == ("", "", {}, None, 0)
    assert delta.to_dict() == {"role": "unknown", "status": "incomplete", "choice": 0}


def test_parts_come_before_calls_and_each_has_a_key_of_its_kind() -> None:
    delta = rd.MessageDelta(
        merged_content=[None, rd.ContentPart("text", "b")], tool_calls=[rd.ToolCall(), CALL]
    )
    assert [block.key for block in delta.blocks] == [("part", 1), ("call", None), ("call", 0)]
    assert rd.MessageDelta(merged_content=rd.ContentPart("text", "b")).blocks[0].key == ("part", 0)
    part, call = {"type": "text", "text": "b"}, {"name": "f", "index": 2}
    read = rd.MessageDelta.from_dict({"merged_content": [None, part], "tool_calls": [call]})
    assert [block.key for block in read.blocks] == [("part", 1), ("call", 2)]


@pytest.mark.parametrize(("arguments", "status"), [({"a": 1}, "incomplete"), ('{"a"', "incomplete")])
def test_a_call_that_was_open_when_the_message_broke_off_is_invalid(arguments: Any, status: str) -> None:
    call = {"type": "tool_call", "call_id": "c", "name": "f", "arguments": arguments, "status": status}
    stored = rd.Snapshot.from_dict({"role": "assistant", "status": "interrupted", "blocks": [call]})
    message = stored.to_message()
    assert (message.tool_calls, [one.call_id for one in message.invalid_tool_calls]) == ((), ["c"])


def test_a_part_without_text_has_none_in_a_message_too() -> None:
    (part,) = rd.Message(blocks=[rd.ContentPart("text")]).blocks
    assert isinstance(part, rd.ContentPart)
    assert part.text is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rd.MessageDelta(role="user", status="done", index="3", choice=None, id=5),
         "role: is invalid; status: is invalid; index: is invalid; choice: is invalid; id: must be a string"),
        (lambda: rd.MessageDelta(index=True), "index: is invalid"),
        (lambda: rd.MessageDelta(content=5), "content: must be text, a part, or a list of them"),
        (lambda: rd.MessageDelta(content=["x", None]), "content: must hold parts, strings and mappings"),
        (lambda: rd.MessageDelta(content=[5]), "content: must hold parts, strings and mappings"),
        (lambda: rd.MessageDelta(merged_content=["x"]), "merged_content: must be ContentPart or None (got"),
        (lambda: rd.MessageDelta(merged_content="x"), "merged_content: must be a list"),
        (lambda: rd.MessageDelta(tool_calls=5), "tool_calls: must be a list"),
        (lambda: rd.MessageDelta(tool_calls=[rd.ContentPart()]), "tool_calls: must be ToolCall"),
        (lambda: rd.MessageDelta(usage={"input_tokens": 1}), "usage: must be TokenUsage or None"),
        (lambda: rd.MessageDelta(metadata=[]), "metadata: must be a mapping"),
        (lambda: rd.Message(role="unknown", status="incomplete", blocks=["x"], choice=-1, _attempt=None),
         "role: is invalid; status: is invalid; blocks: must be ContentPart or ToolCall; choice: is invalid; attempt"),
        (lambda: rd.Message(blocks=5), "blocks: must be a list"),
        (lambda: rd.Message(usage=1, _failed_usage=2), "usage: must be TokenUsage or None; failed_usage: must be"),
        (lambda: rd.MessageDelta.from_dict([]), "MessageDelta: must be a mapping"),
        (lambda: rd.MessageDelta.from_dict({"attempt": "x"}), "attempt: is invalid"),
        (lambda: rd.MessageDelta.from_dict({"failed_usage": 5}), "failed_usage: must be TokenUsage or None"),
        (lambda: rd.MessageDelta.from_dict({"usage": {"input_tokens": -1}}), "input_tokens: must be greater"),
        (lambda: rd.MessageDelta.from_dict({"merged_content": "x"}), "merged_content: must hold parts"),
        (lambda: rd.MessageDelta.from_dict({"tool_calls": ["x"]}), "tool_calls: must hold tool calls"),
        (lambda: rd.MessageDelta.from_dict({"blocks": "x"}), "blocks: must hold parts"),
        (lambda: rd.MessageDelta.from_dict({"blocks": [{"type": []}]}), "type: is invalid"),
        (lambda: rd.Message.from_dict(None), "Message: must be a mapping"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_by_name_all_at_once(make: Any, said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        make()
    assert said in str(caught.value)
    assert caught.value.field == said.partition(":")[0]


def test_equal_means_equal_also_in_what_is_open_and_under_which_key() -> None:
    one = fold(ev.BlockStart(0, {"type": "text", "text": "a"}))
    assert one == fold(ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "a"))
    assert hash(one) == hash(fold(ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "a")))
    assert one != fold(ev.BlockStart(1, {"type": "text", "text": "a"}))
    assert one != fold(ev.BlockStart(0, {"type": "text", "text": "a"}), ev.BlockFinish(0))
    assert one != fold(ev.BlockStart(0, {"type": "text", "text": "b"}))
    assert one != fold(ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "a"}))
    assert one != fold()
    assert one != "a"


def test_texts_are_joined_by_nothing_and_as_a_string_by_a_blank_line() -> None:
    parts = [
        rd.ContentPart("text", "a"),
        rd.ContentPart("thinking", "r"),
        rd.ContentPart("text"),
        rd.ContentPart("text", "b"),
        rd.ContentPart("refusal", "no"),
    ]
    for reply in (rd.MessageDelta(merged_content=parts), rd.Message(blocks=parts)):
        assert (reply.text, reply.reasoning) == ("ab", "r")
        assert reply.content_to_string() == "a\n\n\n\nb"
        assert reply.content_to_string("thinking") == reply.content_to_string("reasoning") == "r"
        assert reply.content_to_string("image") is None
    for text in (None, ""):
        assert rd.Message(blocks=[rd.ContentPart("text", text)]).content_to_string() is None


def call(status: str | None, kind: str = "tool_call") -> rd.ToolCall:
    return rd.ToolCall(
        call_id="c", type=kind, metadata={} if status is None else {"execution_status": status}
    )


@pytest.mark.parametrize(
    ("calls", "terminal"),
    [
        ([], False),
        ([call(None)], False),
        ([call("executing"), call("completed")], False),
        ([call("completed"), call("failed")], True),
        ([call(None, "invalid_tool_call")], True),
        ([call(None, "invalid_tool_call"), call("executing")], False),
        ([call("completed", "server_tool_call")], False),
        ([call("completed"), call(None, "server_tool_call")], True),
        ([call("completed"), call("awaiting_approval")], False),
        ([call("awaiting_approval", "server_tool_call")], False),
        ([call("completed"), call("awaiting_approval", "server_tool_call")], False),
    ],
)
def test_when_all_tools_are_terminal(calls: list[rd.ToolCall], terminal: bool) -> None:
    assert rd.MessageDelta(tool_calls=calls).all_tools_terminal() is terminal
    assert rd.Message(blocks=calls).all_tools_terminal() is terminal


def test_a_decided_call_of_the_provider_is_terminal() -> None:
    for decision in ("approved", "denied"):
        decided = rd.ToolCall(
            call_id="c",
            type="server_tool_call",
            metadata={"execution_status": "completed"},
            result=rd.ToolResult("c", metadata={decision: True}),
        )
        assert rd.Message(blocks=[decided]).all_tools_terminal()


def test_the_calls_that_wait_for_approval() -> None:
    kinds = ("tool_call", "server_tool_call", "invalid_tool_call")
    calls = [call("awaiting_approval", kind) for kind in kinds] + [call("executing"), call(None)]
    for reply in (rd.MessageDelta(tool_calls=calls), rd.Message(blocks=calls)):
        assert [one.type for one in reply.waiting_calls] == ["tool_call", "server_tool_call"]


def test_setting_a_status_moves_only_forward_and_shares_what_it_leaves() -> None:
    delta = rd.MessageDelta(tool_calls=[CALL, rd.ToolCall(call_id="d"), rd.ToolCall(call_id="c")])
    busy = delta.set_tool_execution_status("c", "executing")
    assert [each.execution_status("-") for each in busy.tool_calls] == ["executing", "-", "executing"]
    assert busy.tool_calls[1] is delta.tool_calls[1]
    assert busy.set_tool_execution_status("c", "identified") is busy
    assert busy.set_tool_execution_status("nobody", "failed") is busy
    done = busy.set_tool_execution_status("c", "failed")
    assert done.set_tool_execution_status("c", "completed") is done
    assert done.tool_calls[0].execution_status() == "failed"
    with pytest.raises(rd.InvalidValueError, match="status: must be a string"):
        delta.set_tool_execution_status("c", None)
    assert delta.tool_calls[0] == CALL


def test_deviation_m_a_display_text_is_refined_never_blanked() -> None:
    delta = rd.MessageDelta(tool_calls=[CALL]).set_tool_display_text("c", "Reading\ud83d")
    assert delta.tool_calls[0].display_text == "Reading\ufffd"
    for nothing in ("", None, "Reading\ud83d"):
        assert delta.set_tool_display_text("c", nothing) is delta
    assert delta.set_tool_display_text("x", "No") is delta
    with pytest.raises(rd.InvalidValueError, match="text: must be a string"):
        delta.set_tool_display_text("c", 5)
    updated = delta.upsert_tool_call(
        rd.ToolCall(call_id="c", display_text="", metadata={"execution_status": "failed"})
    )
    again = updated.upsert_tool_call(rd.ToolCall(call_id="c", metadata={"execution_status": "executing"}))
    assert (again.tool_calls[0].display_text, again.tool_calls[0].execution_status()) == (
        "Reading\ufffd",
        "failed",
    )


def test_upserting_a_call() -> None:
    delta = rd.MessageDelta(tool_calls=[CALL])
    assert delta.upsert_tool_call(rd.ToolCall(name="g")) is delta
    grown = delta.upsert_tool_call(rd.ToolCall(call_id="d", name="g", index=7))
    assert [each.key for each in grown.blocks] == [("call", 0), ("call", 7)]
    new = rd.ToolCall(
        call_id="c",
        name="g",
        arguments={"b": 2},
        status="complete",
        result=rd.ToolResult("c", 1),
        metadata={"m": 1},
    )
    changed = grown.upsert_tool_call(new).tool_calls[0]
    assert (changed.name, changed.arguments, changed.status, changed.index) == ("g", {"b": 2}, "complete", 0)
    assert (changed.result, changed.metadata) == (rd.ToolResult("c", 1), {"m": 1})
    unchanged = grown.upsert_tool_call(rd.ToolCall(call_id="c")).tool_calls[0]
    assert unchanged == CALL


def test_migrating_content_to_parts() -> None:
    assert rd.MessageDelta("x").migrate_to_content_parts().content == rd.ContentPart("text", "x")
    assert rd.MessageDelta("").migrate_to_content_parts().content is None
    other = rd.MessageDelta(["x"])
    assert other.migrate_to_content_parts() is other


def test_adding_up_usage() -> None:
    delta = rd.MessageDelta(usage=rd.TokenUsage(1, 2))
    assert delta.accumulate_token_usage(rd.Snapshot()) is delta
    assert rd.Snapshot().accumulate_token_usage(delta).usage == rd.TokenUsage(1, 2)
    assert delta.accumulate_token_usage(delta).usage == rd.TokenUsage(2, 4)


# Finishing.


def test_an_incomplete_reply_is_no_message() -> None:
    snapshot = fold(ev.BlockStart(0, {"type": "text", "text": "so far"}))
    with pytest.raises(
        rd.IncompleteMessageError, match=r"Cannot convert incomplete message: .*was cut off, or still goes on"
    ) as caught:
        snapshot.to_message()
    assert caught.value.snapshot is snapshot
    with pytest.raises(rd.IncompleteMessageError, match="nothing of it has come: the stream was empty"):
        rd.Snapshot().to_message()
    with pytest.raises(rd.IncompleteMessageError, match="was cut off"):
        fold(ev.MessageStart("m1")).to_message()


def test_the_role_of_a_message_is_known() -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        rd.MessageDelta(status="complete").to_message()
    assert caught.value.field == "role"


def test_a_message_holds_plain_strings_without_keys() -> None:
    snapshot = fold(
        ev.MessageStart("m", "model", rd.TokenUsage(1, 2), {"x": 1}),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "a"),
        ev.TextDelta(0, "b\ud83d"),
        ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f"}),
        ev.ToolCallDelta(1, '{"a": '),
        ev.ToolCallDelta(1, "1}"),
        ev.BlockFinish(0),
        ev.BlockFinish(1),
        ev.MessageFinish("stop", "end"),
    )
    message = snapshot.to_message()
    assert [(block.key, block.open) for block in message.blocks] == [(None, False)] * 2
    assert type(message.blocks[0]).__dict__["text"].fget(message.blocks[0]) == "ab\ufffd"
    assert message.to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "m",
        "model": "model",
        "blocks": [
            {"type": "text", "text": "ab\ufffd"},
            {"type": "tool_call", "call_id": "c", "name": "f", "arguments": {"a": 1}, "status": "complete"},
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "end",
        "usage": {"input_tokens": 1, "output_tokens": 2},
        "metadata": {"x": 1},
    }
    assert rd.Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message
    assert rd.Message(blocks=snapshot.blocks) == rd.Message(blocks=message.blocks)


def test_deviation_h_a_complete_message_needs_complete_calls() -> None:
    for bad in (
        rd.ToolCall(call_id="c", name="f", arguments='{"a": 1} tail'),
        rd.ToolCall(call_id="c", name="f", arguments='{"a"'),
        rd.ToolCall(call_id="c", name="f", arguments='{"a"', status="complete"),
        rd.ToolCall(call_id="c", name="f", arguments=""),
        rd.ToolCall(name="f", arguments="{}"),
        rd.ToolCall(call_id="c", arguments="{}"),
    ):
        delta = rd.MessageDelta(role="assistant", status="complete", tool_calls=[bad])
        with pytest.raises(rd.errors.InvalidToolCallError, match=r"^tool_calls: ") as caught:
            delta.to_message()
        assert caught.value.snapshot is delta


@pytest.mark.parametrize("status", ["length", "interrupted"])
def test_calls_left_open_when_the_message_was_cut_are_invalid(status: str) -> None:
    calls = [
        CALL,
        rd.ToolCall(call_id="d", name="f", arguments={}, status="complete"),
        rd.ToolCall(type="server_tool_call"),
    ]
    message = rd.MessageDelta(role="assistant", status=status, tool_calls=calls).to_message()
    assert [each.type for each in message.blocks] == ["invalid_tool_call", "tool_call", "server_tool_call"]
    assert (message.invalid_tool_calls[0].arguments, message.invalid_tool_calls[0].call_id) == (
        '{"a": 1}',
        "c",
    )
    assert status in message.invalid_tool_calls[0].error


def test_a_message_of_delta_content_alone() -> None:
    assert rd.MessageDelta("x", role="assistant", status="complete").to_message().text == "x"


# Writing, reading, continuing.


@given(st.lists(events(), max_size=20))
def test_any_snapshot_is_json_and_read_back_as_it_was(events: list[rd.Event]) -> None:
    for snapshot in fold_leniently(events)[-2:]:
        written = json.dumps(snapshot.to_dict(), allow_nan=False, ensure_ascii=False).encode()
        assert rd.MessageDelta.from_dict(json.loads(written)) == snapshot
        assert pickle.loads(pickle.dumps(snapshot)) == snapshot
        assert copy.copy(snapshot) is copy.deepcopy(snapshot) is snapshot
        hash(snapshot)
        repr(snapshot)
        if snapshot.status != "incomplete":
            message = snapshot.to_message()
            assert rd.Message.from_dict(json.loads(json.dumps(message.to_dict(), allow_nan=False))) == message
            assert pickle.loads(pickle.dumps(message)) == message == copy.deepcopy(message)
            hash(message)


def test_a_half_built_snapshot_is_stored_and_continued() -> None:
    half = [
        ev.MessageStart("m"),
        ev.BlockStart(0, {"type": "text", "text": "a"}),
        ev.TextDelta(0, "b"),
        ev.BlockStart("call", {"type": "tool_call_chunk", "id": "c", "name": "f"}),
        ev.ToolCallDelta("call", '{"path": "out'),
    ]
    rest = [
        ev.TextDelta(0, "c"),
        ev.BlockFinish(0),
        ev.ToolCallDelta("call", 'line"}'),
        ev.BlockFinish("call"),
        ev.MessageFinish("tool_use"),
    ]
    stored = json.dumps(fold(*half).to_dict())
    assert json.loads(stored)["blocks"] == [
        {"key": 0, "open": True, "type": "text", "text": "ab"},
        {
            "key": "call",
            "open": True,
            "type": "tool_call",
            "call_id": "c",
            "name": "f",
            "arguments_text": '{"path": "out',
            "arguments": {"path": "out"},
            "status": "incomplete",
        },
    ]
    for again in (rd.MessageDelta.from_dict(json.loads(stored)), pickle.loads(pickle.dumps(fold(*half)))):
        folding = rd.Fold(again)
        for event in rest:
            folding.step(event)
        assert folding.snapshot == fold(*half, *rest)
        assert folding.snapshot.to_message().text == "abc"


def test_a_half_merged_snapshot_is_stored_and_continued() -> None:
    half = rd.merge_deltas(
        [
            rd.MessageDelta("Hel", index=1, metadata={"m": [1]}, usage=rd.TokenUsage(1, 1)),
            rd.MessageDelta(tool_calls=[rd.ToolCall(call_id="c", name="f", arguments="", index=0)]),
        ]
    )
    again = rd.MessageDelta.from_dict(json.loads(json.dumps(half.to_dict())))
    assert again == half
    rest = [
        rd.MessageDelta("lo", index=1),
        rd.MessageDelta(tool_calls=[rd.ToolCall(arguments="{}", index=0)], status="complete"),
    ]
    assert rd.merge_deltas(again, rest).to_message() == rd.merge_deltas(half, rest).to_message()
    assert rd.merge_deltas(again, rest).text == "Hello"


def test_unmerged_content_is_stored_too() -> None:
    for content in ("x", rd.ContentPart("image", "AA=="), ["x", rd.ContentPart("text", "y")]):
        delta = rd.MessageDelta(content, index=2)
        assert rd.MessageDelta.from_dict(json.loads(json.dumps(delta.to_dict()))) == delta


def test_the_constructors_keywords_are_read_as_json() -> None:
    read = rd.MessageDelta.from_dict(
        {
            "content": ["x", {"type": "thinking", "text": "y"}],
            "merged_content": {"type": "text", "text": "z"},
            "tool_calls": [
                {"call_id": "c", "name": "f", "arguments": "{}", "status": "complete", "index": "1"}
            ],
            "index": "3",
            "choice": "2",
        }
    )
    assert read == rd.MessageDelta(
        ["x", rd.ContentPart("reasoning", "y")],
        [rd.ContentPart("text", "z")],
        [rd.ToolCall(call_id="c", name="f", arguments={}, status="complete", index=1)],
        index=3,
        choice=2,
    )
    assert rd.MessageDelta.from_dict(
        {"blocks": [{"type": "text"}, {"type": "tool_call", "index": 4}]}
    ).blocks[1].key == ("call", 4)


@pytest.mark.slow
@given(
    st.dictionaries(
        st.sampled_from(["role", "status", "content", "merged_content", "tool_calls", "blocks", "usage", "metadata",
                         "choice", "index", "attempt", "failed_usage", "id", "model", "finish_reason"]),
        clean_json | st.lists(st.dictionaries(st.sampled_from(["type", "text", "key", "arguments", "index"]), clean_json, max_size=3)),
    )
)  # fmt: skip
def test_any_json_makes_a_reply_or_an_error_of_ours(data: dict[str, Any]) -> None:
    for kind in (rd.Snapshot, rd.Message):
        try:
            read = kind.from_dict(data)
        except rd.RxDeltaError:
            continue
        written = json.dumps(read.to_dict(), allow_nan=False)
        assert json.dumps(kind.from_dict(json.loads(written)).to_dict()) == json.dumps(json.loads(written))


def test_lone_surrogates_are_replaced_everywhere() -> None:
    half = "\ud83d"
    fields: dict[str, Any] = dict.fromkeys(("id", "model", "provider_finish_reason"), half)
    delta = rd.MessageDelta([half, {"type": half}], metadata={half: half}, **fields)
    for reply in (delta, rd.Message(metadata={half: half}, **fields)):
        assert "\ufffd" in json.dumps(reply.to_dict(), ensure_ascii=False).encode().decode()


def test_how_they_print() -> None:
    snapshot = fold(
        ev.BlockStart(0, {"type": "text", "text": "x" * 100}),
        ev.BlockStart(1, {"type": "image"}),
        ev.BlockStart(2, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": '{"a'}),
        ev.BlockStart(3, {"type": "tool_call_chunk", "id": "d", "name": "g"}),
        ev.BlockFinish(1),
        ev.BlockFinish(3),
    )
    assert repr(snapshot) == (
        f"<Snapshot incomplete; text {'x' * 60!r}… (100 characters) …; image; tool_call f('{{\"a') …; tool_call g({{}})>"
    )
    assert repr(rd.MessageDelta("x", choice=2)) == "<MessageDelta incomplete; choice 2; content='x'>"
    assert repr(rd.Message(blocks=[rd.ContentPart("text", "Hi")])) == "<Message complete; text 'Hi'>"
