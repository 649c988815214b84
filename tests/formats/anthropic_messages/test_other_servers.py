"""Anthropic Messages from other servers: deltas that aren't of their block, and indexes that lie."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.anthropic_messages import (
    STOP,
    WEB,
    Chunk,
    args,
    block_start,
    block_stop,
    decode,
    delta,
    fold,
    message_delta,
    message_start,
    text,
    tool_use,
    violations,
)

import rxdelta as rd

TEXT = block_start(0, "text", text="")
END = (message_delta("tool_use"), STOP)


def thinking(index: int, piece: str) -> Chunk:
    return delta(index, "thinking_delta", thinking=piece)


def signature(index: int) -> Chunk:
    return delta(index, "signature_delta", signature="s")


def called(arguments: Any, name: str = "roll", type: str = "tool_call") -> tuple[str, str, Any]:
    return type, name, arguments


def unnamed(arguments: str) -> tuple[str, str, Any]:
    return "invalid_tool_call", "", arguments


def shown(snapshot: rd.Snapshot) -> list[tuple[str, str | None, Any]]:
    """Each block in the order of the message: a part by its text, a call by its name and arguments."""
    return [
        (block.type, block.name or "", rd.core.thaw(block.arguments))
        if isinstance(block, rd.ToolCall)
        else (block.type, block.text, {name for name in block.options if name != "signed_by"})
        for block in snapshot.blocks
    ]


# what comes between `message_start` and the end -> the blocks of the message
FORMS: dict[str, tuple[list[Chunk], list[tuple[str, str | None, Any]]]] = {
    # sgl-project/sglang#24293: the separator between two calls comes at the index of the first
    "text in an open call": (
        [tool_use(0), args(0, '{"a": 1}'), text(0, "\n"), block_stop(0),
         tool_use(1, "toolu_2"), args(1, '{"b": 2}'), block_stop(1)],
        [called({"a": 1}), ("text", "\n", set()), called({"b": 2})],
    ),
    # the same: the rest of the reply comes at the index of the call
    "text amid the arguments of a call": (
        [tool_use(0), args(0, '{"a"'), text(0, "So "), args(0, ": 1}"), text(0, "be it."), block_stop(0)],
        [called({"a": 1}), ("text", "So be it.", set())],
    ),
    "text in a call without arguments": (
        [tool_use(0), text(0, "Wait."), block_stop(0)],
        [called({}), ("text", "Wait.", set())],
    ),
    # and of a reasoning model there (sgl-project/sglang#24294)
    "reasoning in a text": (
        [TEXT, text(0, "a"), thinking(0, "b"), signature(0), text(0, "c"), thinking(0, "d"), block_stop(0)],
        [("text", "ac", set()), ("reasoning", "bd", {"signature"})],
    ),
    "a signature in a text": (
        [TEXT, text(0, "a"), signature(0), block_stop(0)],
        [("text", "a", set()), ("reasoning", "", {"signature"})],
    ),
    "text in a kind that takes none": (
        [block_start(0, "container_upload", file_id="f"), text(0, "a"), block_stop(0)],
        [("unsupported", None, {"type", "file_id"}), ("text", "a", set())],
    ),
    "arguments in a text, in turns": (
        [TEXT, text(0, "a"), args(0, '{"a"'), text(0, "b"), args(0, ": 1}"), block_stop(0)],
        [("text", "ab", set()), unnamed('{"a": 1}')],
    ),
    "arguments at the index of a text, for the call that has none": (
        [TEXT, tool_use(1), args(0, '{"a"'), args(0, ": 1}"), block_stop(1), block_stop(0)],
        [("text", "", set()), called({"a": 1})],
    ),
    "arguments at an index of no block, for the call that has none": (
        [tool_use(1), args(0, '{"a"'), args(0, ": 1}"), block_stop(0)],
        [called({"a": 1})],
    ),
    "arguments at an index of no block, for the call that was stopped without": (
        [tool_use(1), block_stop(1), args(2, '{"a": 1}'), block_stop(2)],
        [called({"a": 1})],
    ),
    "each call's arguments at the index of the first": (
        [tool_use(0), args(0, '{"a": 1}'), block_stop(0), tool_use(1, "toolu_2"), args(0, '{"b"'),
         args(0, ": 2}"), block_stop(1)],
        [called({"a": 1}), called({"b": 2})],
    ),
    "arguments at an index of no block, where no call lacks them": (
        [tool_use(0), args(0, '{"a": 1}'), args(1, '{"b": 2}'), block_stop(0), block_stop(1)],
        [called({"a": 1}), unnamed('{"b": 2}')],
    ),
    "no starts": (
        [thinking(0, "a"), signature(0), block_stop(0), text(1, "b"), text(1, "c"),
         delta(1, "citations_delta", citation=WEB), block_stop(1), args(2, '{"a": 1}'), block_stop(2)],
        [("reasoning", "a", {"signature"}), ("text", "bc", set()), unnamed('{"a": 1}')],
    ),
    "no starts, and one index": (
        [thinking(0, "a"), text(0, "b"), text(0, "c"), args(0, '{"a": 1}')],
        [("reasoning", "a", set()), ("text", "bc", set()), unnamed('{"a": 1}')],
    ),
    "a start behind the first text": (
        [text(0, "a"), TEXT, text(0, "b"), block_stop(0)],
        [("text", "ab", set())],
    ),
    "a start behind the arguments": (
        [args(0, '{"a": 1}'), tool_use(0), block_stop(0)],
        [unnamed('{"a": 1}'), called(None, type="invalid_tool_call")],
    ),
    "text behind the stop": (
        [TEXT, text(0, "a"), block_stop(0), text(0, "b"), text(0, "c")],
        [("text", "a", set()), ("text", "bc", set())],
    ),
    "text behind the stop of a call": (
        [tool_use(0), args(0, '{"a": 1}'), block_stop(0), text(0, "b"), block_stop(0)],
        [called({"a": 1}), ("text", "b", set())],
    ),
    "a citation behind the text of a call": (
        [tool_use(0), args(0, '{"a": 1}'), text(0, "b"), delta(0, "citations_delta", citation=WEB)],
        [called({"a": 1}), ("text", "b", set())],
    ),
    "a summary without a start": (
        [delta(0, "compaction_delta", content="c"), block_stop(0)],
        [("unsupported", None, {"type", "content"})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("begun", [True, False], ids=["begun", "without message_start"])
@pytest.mark.parametrize("form", FORMS)
def test_each_delta_is_in_a_block_of_its_kind(form: str, begun: bool) -> None:
    chunks, blocks = FORMS[form]
    decoded = decode(*([message_start()] if begun else []), *chunks, *END)
    assert violations(decoded) == []
    snapshot = fold(decoded)
    assert snapshot.status == "complete"
    assert shown(snapshot) == blocks
    assert not [event for event in decoded if isinstance(event, rd.events.ProviderEvent)]


pieces = st.lists(
    st.tuples(st.sampled_from(["text", "thinking", "json"]), st.integers(0, 2)), min_size=1, max_size=12
)


@given(pieces)
def test_however_kinds_and_indexes_are_woven_nothing_is_lost_and_no_call_is_made_up(
    pieces: list[tuple[str, int]],
) -> None:
    made = {"text": text, "thinking": thinking, "json": args}
    chunks = [made[kind](index, f"{n};") for n, (kind, index) in enumerate(pieces)]
    snapshot = fold(decode(message_start(), *chunks, *END))
    said = "".join(str(rest if kind.endswith("tool_call") else text) for kind, text, rest in shown(snapshot))
    assert sorted(said.split(";")) == sorted(["", *(str(n) for n in range(len(pieces)))])
    assert not [call for call in snapshot.tool_calls if call.type == "tool_call"]


# -- deltas without what their type promises


@pytest.mark.parametrize(
    ("stray", "path"),
    [
        (delta(0, "text_delta", value="Hello"), "delta.text"),
        (delta(0, "text_delta"), "delta.text"),
        (delta(0, "thinking_delta", text="Hm."), "delta.thinking"),
        (delta(0, "input_json_delta", json="{}"), "delta.partial_json"),
        (delta(0, "signature_delta", sig="s"), "delta.signature"),
        (delta(0, "citations_delta", citations=[WEB]), "delta.citation"),
        (delta(0, "compaction_delta"), "delta.content"),
        ({"type": "content_block_delta", "index": 0, "text": "Hello"}, "delta"),
        ({"type": "content_block_delta", "index": 0, "delta": {"text": "Hello"}}, "delta.type"),
        (tool_use(0) | {"content_block": {"type": "tool_use", "id": "t", "name": "f", "arguments": {"a": 1}}}, "content_block.input"),
        (message_start(content=[{"type": "text", "value": "Hello"}]), "message.content[0].text"),
        ({"type": "message", "role": "assistant", "content": [{"type": "thinking", "text": "Hm."}]}, "content[0].thinking"),
    ],
)  # fmt: skip
def test_what_has_not_the_field_of_its_type_is_malformed(stray: Chunk, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decode(stray)
    assert caught.value.path == path
