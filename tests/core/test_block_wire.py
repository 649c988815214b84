"""Blocks in the protocol's vocabulary, both ways."""

from __future__ import annotations

from typing import Any

import pytest
from core.strategies import fold

import rxdelta as rd

ev = rd.events
Part, Call = rd.ContentPart, rd.ToolCall


@pytest.mark.parametrize(
    ("content", "block"),
    [
        ({"type": "text", "text": "a"}, Part("text", "a")),
        ({}, Part("text")),
        ({"type": "text", "text": None, "id": None}, Part("text")),
        ({"type": "text", "text": "a", "index": 5, "id": "x"}, Part("text", "a", {"id": "x"})),
        ({"type": "reasoning", "reasoning": "a", "signature": "s"}, Part("reasoning", "a", {"signature": "s"})),
        ({"type": "thinking", "thinking": "a", "signature": "s"}, Part("reasoning", "a", {"signature": "s"})),
        ({"type": "refusal", "refusal": "no"}, Part("refusal", "no")),
        ({"type": "refusal", "text": "no"}, Part("refusal", "no")),
        ({"type": "image", "data": "AA==", "mimeType": "image/png"}, Part("image", "AA==", {"mimeType": "image/png"})),
        ({"type": "image", "url": "u"}, Part("image", None, {"url": "u"})),
        ({"type": "image", "data": {"a": 1}}, Part("image", None, {"data": {"a": 1}})),
        ({"type": "server_tool_result", "output": [1]}, Part("server_tool_result", None, {"output": [1]})),
        ({"type": "text", "citations": [{"title": "T"}, "u"]},
         Part("text", citations=[rd.Citation(title="T"), rd.Citation(raw={"value": "u"})])),
        ({"type": "text", "citations": "u"}, Part("text", citations=[rd.Citation(raw={"value": "u"})])),
        ({"type": "new", "a": 1}, Part("unsupported", options={"type": "new", "a": 1})),
        ({"type": "unsupported", "a": 1}, Part("unsupported", options={"type": "unsupported", "a": 1})),
        ({"type": None, "a": 1}, Part("unsupported", options={"type": None, "a": 1})),
        ({"type": ["text"], "a": 1}, Part("unsupported", options={"type": ["text"], "a": 1})),
        ({"type": "non_standard", "value": {"type": "x", "a": 1}}, Part("unsupported", options={"type": "x", "a": 1})),
        ({"type": "non_standard", "value": 5}, Part("unsupported", options={"value": 5})),
        ({"type": "non_standard"}, Part("unsupported", options={"type": "non_standard"})),
        ({"type": "tool_call", "id": "c", "name": "f", "args": {"a": 1}}, Call(call_id="c", name="f", arguments={"a": 1})),
        ({"type": "tool_use", "id": "c", "name": "f", "input": {}}, Call(call_id="c", name="f", arguments={})),
        ({"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""}, Call(call_id="c", name="f")),
        ({"type": "tool_call_chunk", "args": '{"a'}, Call(arguments='{"a')),
        ({"type": "server_tool_call_chunk", "name": "f"}, Call(name="f", type="server_tool_call")),
        ({"type": "invalid_tool_call", "args": "x", "error": "bad"},
         Call(arguments="x", error="bad", type="invalid_tool_call")),
        ({"type": "tool_call", "call_id": "c", "signature": "s", "index": 3, "args": 5, "name": 5},
         Call(call_id="c", metadata={"signature": "s", "args": 5, "name": 5})),
    ],
)  # fmt: skip
def test_reading_the_content_of_a_start(content: dict[str, Any], block: rd.ContentPart | rd.ToolCall) -> None:
    read = rd.core.block_from_wire(ev.BlockStart(0, content).content, 7)
    assert (read, read.key, read.open) == (block, 7, True)
    again = rd.core.block_from_wire(ev.BlockStart(0, rd.core.block_to_wire(read)).content, 7)
    assert again == block


@pytest.mark.parametrize(
    ("block", "content"),
    [
        (Part("text", "a", {"text": "no", "type": "no", "x": 1}), {"type": "text", "text": "a", "x": 1}),
        (Part("reasoning", "a", {"signature": "s"}), {"type": "reasoning", "reasoning": "a", "signature": "s"}),
        (Part("image"), {"type": "image"}),
        (Part("text", "a", citations=[{"type": "web", "url": "u"}]),
         {"type": "text", "text": "a", "citations": [{"type": "web", "url": "u"}]}),
        (Part("text", "a", citations=[rd.Citation(title="T", raw={"a": 1})]),
         {"type": "text", "text": "a", "citations": [{"title": "T", "raw": {"a": 1}}]}),
        (Part("unsupported", options={"type": "new", "a": 1}), {"type": "new", "a": 1}),
        (Part("unsupported", options={"type": "text", "a": 1}), {"type": "non_standard", "value": {"type": "text", "a": 1}}),
        *(
            (Part("unsupported", options={"type": kind, "value": 1}), {"type": "non_standard", "value": {"type": kind, "value": 1}})
            for kind in ("tool_use", "tool_call_chunk", "server_tool_call_chunk", "thinking", "non_standard")
        ),
        (Part("unsupported", options={"a": 1}), {"type": "non_standard", "value": {"a": 1}}),
        (Part("unsupported", "AA", {"type": "new"}), {"type": "new", "data": "AA"}),
        (Call(name="f", _open=True), {"type": "tool_call_chunk", "name": "f", "args": ""}),
        (Call(name="f"), {"type": "tool_call", "name": "f"}),
        (Call(call_id="c", metadata={"id": "no", "execution_status": "failed", "x": 1}), {"type": "tool_call", "id": "c", "x": 1}),
        (Call(metadata={"execution_status": "failed"}), {"type": "tool_call", "execution_status": "failed"}),
        (Call(type="server_tool_call", arguments="{", _open=True), {"type": "server_tool_call_chunk", "args": "{"}),
        (Call(type="invalid_tool_call", arguments="{", error="cut", _open=True),
         {"type": "invalid_tool_call", "args": "{", "error": "cut"}),
    ],
)  # fmt: skip
def test_writing_a_block(block: rd.ContentPart | rd.ToolCall, content: dict[str, Any]) -> None:
    assert rd.core.block_to_wire(block) == content


CHUNK = {"type": "tool_call_chunk", "id": "c", "name": "f"}


@pytest.mark.parametrize(
    ("start", "more", "content", "block"),
    [
        ({"type": "text", "text": "a"}, [], {"type": "text", "text": ""}, Part("text", "")),
        ({"type": "text", "text": "a", "x": 1}, [], {"text": "b"}, Part("text", "b", {"x": 1})),
        ({"type": "text", "text": "a", "x": 1}, [], {}, Part("text", "a", {"x": 1})),
        ({"type": "text", "text": "a"}, [], {"type": "reasoning", "reasoning": "b"}, Part("reasoning", "b")),
        ({"type": "thinking", "thinking": "a"}, [], {"type": "thinking", "signature": "s"},
         Part("reasoning", "a", {"signature": "s"})),
        ({"type": "new", "a": 1}, [], {"type": "new", "b": 2}, Part("unsupported", options={"type": "new", "b": 2})),
        (CHUNK, ['{"a"', ":1}"], None, Call(call_id="c", name="f", arguments={"a": 1}, status="complete")),
        (CHUNK, [], None, Call(call_id="c", name="f", arguments={}, status="complete")),
        (CHUNK, ["{"], {"type": "tool_call", "args": {"b": 2}},
         Call(call_id="c", name="f", arguments={"b": 2}, status="complete")),
        (CHUNK, ["{"], {"args": '{"b":2}'}, Call(call_id="c", name="f", arguments={"b": 2}, status="complete")),
        (CHUNK, ["{}"], {"type": "invalid_tool_call", "args": "{", "error": "bad"},
         Call(type="invalid_tool_call", call_id="c", name="f", arguments="{", error="bad")),
        ({"type": "invalid_tool_call", "id": "c", "name": "f", "args": "x"}, [], None,
         Call(type="invalid_tool_call", call_id="c", name="f", arguments="x", error="marked invalid by its source")),
        ({**CHUNK, "type": "server_tool_call_chunk"}, ["{}"], None,
         Call(type="server_tool_call", call_id="c", name="f", arguments={}, status="complete")),
        ({"type": "server_tool_call_chunk", "name": "f"}, ["{}"], None,
         Call(type="server_tool_call", name="f", arguments={}, status="complete")),
        ({**CHUNK, "type": "server_tool_call_chunk"}, ["{"], None,
         Call(type="server_tool_call", call_id="c", name="f", arguments="{",
              error="not valid JSON: Expecting property name enclosed in double quotes at character 1")),
        ({**CHUNK, "args": {"whole": 1}}, ["{}"], None,
         Call(call_id="c", name="f", arguments={"whole": 1}, status="complete")),
        ({**CHUNK, "args": {}}, ['{"a":1}'], None, Call(call_id="c", name="f", arguments={"a": 1}, status="complete")),
    ],
)  # fmt: skip
def test_finishing_a_block(
    start: dict[str, Any],
    more: list[str],
    content: dict[str, Any] | None,
    block: rd.ContentPart | rd.ToolCall,
) -> None:
    folding = rd.core.BlockFold(ev.BlockStart(0, start))
    for args in more:
        folding.step(ev.ToolCallDelta(0, args))
    done = folding.step(ev.BlockFinish(0, content))
    assert (done, done.open) == (block, False)
    assert getattr(done, "error", None) == getattr(block, "error", None)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        ('{"a": 1} }', "not valid JSON: Extra data at character 9"),
        ('{"a": 1} tail', "not valid JSON: Extra data at character 9"),
        ('{"a": 1}\ud83d', "not valid JSON: Extra data at character 8"),
        ('{"a": ', "not valid JSON: Expecting value at character 6"),
        ("[1]", "not a JSON object but a list"),
        ("   ", "no text"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": ' + "[" * 100_000, "nested deeper than 200"),
        ('{"a": ' + "9" * 5000 + "}", "a number with more than 4300 digits"),
    ],
)
def test_bad_input_21_arguments_that_are_not_one_object_stay_as_raw_text(args: str, error: str) -> None:
    snapshot = fold(ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, args), ev.BlockFinish(0))
    (call,) = snapshot.invalid_tool_calls
    assert (call.arguments, call.error) == (args.replace("\ud83d", "\ufffd"), error)
    assert (snapshot.tool_calls, call.status) == ((), "incomplete")
    message = rd.apply_event(snapshot, ev.MessageFinish("tool_use")).to_message()
    assert message.invalid_tool_calls == (call,)


@pytest.mark.parametrize("args", ["", None, {}, "{}"])
def test_bad_input_22_no_arguments_are_an_empty_object(args: object) -> None:
    start = CHUNK if args is None else CHUNK | {"args": args}
    (call,) = fold(ev.BlockStart(0, start), ev.BlockFinish(0)).tool_calls
    assert (call.arguments, call.status) == ({}, "complete")


def test_bad_input_24_a_lone_surrogate_in_arguments_is_replaced() -> None:
    for args in ('{"a": "\ud83d"}', '{"a": "\\ud83d"}'):
        (call,) = fold(ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, args), ev.BlockFinish(0)).tool_calls
        assert call.arguments == {"a": "\ufffd"}


def test_bad_input_28_of_equal_keys_the_last_wins() -> None:
    (call,) = fold(
        ev.BlockStart(0, CHUNK), ev.ToolCallDelta(0, '{"a":1,"a":2}'), ev.BlockFinish(0)
    ).tool_calls
    assert call.arguments == {"a": 2}


@pytest.mark.parametrize(
    ("start", "error"),
    [
        ({"type": "tool_call", "name": "f"}, "the call has no id"),
        ({"type": "tool_call", "id": "c", "name": " "}, "the call has no name"),
    ],
)
def test_a_call_that_nobody_could_run_or_answer_is_invalid(start: dict[str, Any], error: str) -> None:
    (call,) = fold(ev.BlockStart(0, start | {"args": {"a": 1}}), ev.BlockFinish(0)).invalid_tool_calls
    assert (call.error, call.arguments) == (error, {"a": 1})
