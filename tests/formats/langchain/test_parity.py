"""The merge rules of LangChain's message chunks, case by case: decoded, folded, and told in its words again.

`langchain_deviations.json` lists each case that differs on purpose, with the letter of the reason (docs/design.md)
and what ours gives instead. A deviation that no longer deviates fails too.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings, strategies as st
from support.parity import same
from support.shared import parity

import rxdelta as rd

DEVIATIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("langchain_deviations.json").read_text("utf-8")
)
FINISHES = (rd.events.BlockFinish, rd.events.MessageFinish)
LAST = {"content": "", "chunk_position": "last"}


def decoded(chunks: Sequence[Any]) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("langchain")
    return [event for chunk in chunks for event in decoder.decode(chunk)]


def folded(events: Sequence[rd.events.Event]) -> rd.Snapshot:
    fold = rd.Fold(choice=0)
    for event in events:
        fold.step(event)
    return fold.snapshot


def preview(text: Any) -> Any:
    """Arguments that are not there yet, unless they can't become one JSON object any more."""
    reader = rd.core.PartialJsonParser()
    reader.feed(text)
    return rd.core.thaw(reader.value) if reader.error is None else None


class Projection:
    """A stream as LangChain has it after its last chunk.

    It parses calls after each fragment, so they are looked at as they are while open, unless the stream has
    ended. What the decoder only tells with the finish is read from the same stream with an end.
    """

    def __init__(self, chunks: Sequence[Any]) -> None:
        self.contents = [chunk.get("content", "") for chunk in chunks]
        events = decoded(chunks)
        self.chunk_position = (
            "last" if any(isinstance(event, rd.events.MessageFinish) for event in events) else None
        )
        self.live = folded([event for event in events if not isinstance(event, FINISHES)])
        self.final = folded(events)
        self.ended = folded(decoded([*chunks, LAST]))
        self.starts = {event.index: event for event in events if isinstance(event, rd.events.BlockStart)}
        self.pieces = {event.index for event in events if isinstance(event, rd.events.ToolCallDelta)}

    def message(self) -> dict[str, Any]:
        calls = [block for block in self.live.blocks if self.space(block) == "call"]
        parsed = [self.parsed(call) for call in calls if isinstance(call, rd.ToolCall)]
        metadata = rd.core.thaw(self.ended.metadata)
        kwargs = metadata.pop("additional_kwargs", {}) | self.kwargs()
        known = {"model_name": self.ended.model, "finish_reason": self.ended.provider_finish_reason}
        usage = self.ended.usage
        return {
            "content": self.content(),
            "tool_call_chunks": [self.chunk(call) for call in calls if isinstance(call, rd.ToolCall)],
            "tool_calls": [call for call in parsed if isinstance(call["args"], dict)],
            "invalid_tool_calls": [call for call in parsed if not isinstance(call["args"], dict)],
            "id": metadata.pop("message_id", self.ended.id),
            "chunk_position": self.chunk_position,
            "additional_kwargs": kwargs,
            "response_metadata": metadata | {name: value for name, value in known.items() if value},
            "usage_metadata": None if usage is None else rd.core.thaw(usage.raw),
        }

    def space(self, block: rd.ContentPart | rd.ToolCall) -> str:
        return str(block.key).partition(":")[0]

    def index(self, block: rd.ContentPart | rd.ToolCall) -> dict[str, Any]:
        at = str(block.key).partition(":")[2].partition("~")[0]
        return {} if not at else {"index": int(at) if at.lstrip("-").isdecimal() else at}

    def call_id(self, call: rd.ToolCall) -> str | None:
        return None if call.metadata.get("synthetic_id") else call.call_id

    def arguments(self, call: rd.ToolCall) -> Any:
        """LangChain tells no arguments from empty ones, which a fold does not."""
        came = call.key in self.pieces
        return ("" if came else None) if call.arguments is None else rd.core.thaw(call.arguments)

    def name(self, call: rd.ToolCall) -> str | None:
        return self.starts[call.key].content.get("name") if call.name is None else call.name

    def chunk(self, call: rd.ToolCall) -> dict[str, Any]:
        index = self.index(call).get("index")
        return {
            "name": self.name(call),
            "args": self.arguments(call),
            "id": self.call_id(call),
            "index": index,
        }

    def parsed(self, call: rd.ToolCall) -> dict[str, Any]:
        if self.chunk_position == "last":
            value = self.whole(self.final, call)
        else:
            value = self.whole(self.ended, call)
            if value is None:
                value = preview(call.arguments) if call.arguments else {}
        if isinstance(value, dict):
            return {"name": call.name or "", "id": self.call_id(call), "args": value}
        return {**self.chunk(call), "error": None}

    def whole(self, reply: rd.Snapshot, call: rd.ToolCall) -> Any:
        """The arguments at the end, if the call is a valid one there."""
        final = next(block for block in reply.blocks if block.key == call.key)
        assert isinstance(final, rd.ToolCall)
        return rd.core.thaw(final.arguments) if final.type == "tool_call" else None

    def content(self) -> Any:
        """A string, unless there are parts of a list."""
        items: list[Any] = []
        for block in self.live.blocks:
            space = self.space(block)
            if space in ("text", "item"):
                assert isinstance(block, rd.ContentPart)
                if space == "text" and items and isinstance(items[-1], str):
                    items[-1] += block.text or ""
                else:
                    items.append(block.text or "")
            elif space == "part":
                items.append(self.part(block) | self.index(block))
        if not any(isinstance(content, list) for content in self.contents):
            return "".join(items)
        first = next(place for place, content in enumerate(self.contents) if isinstance(content, list))
        if first and not "".join(self.contents[:first]):
            items.insert(0, "")  # it says nothing, so that there is no block of it
        return items

    def part(self, block: rd.ContentPart | rd.ToolCall) -> dict[str, Any]:
        if isinstance(block, rd.ToolCall):
            metadata = {name: value for name, value in block.metadata.items() if name != "synthetic_id"}
            return {
                "type": f"{block.type}_chunk",
                "name": self.name(block),
                "args": self.arguments(block),
                "id": self.call_id(block),
                **rd.core.thaw(metadata),
            }
        # A field is told again when it has grown by an eighth, and at the end.
        block = next(one for one in self.ended.blocks if one.key == block.key)
        assert isinstance(block, rd.ContentPart)
        if block.type == "unsupported":
            whole = rd.core.thaw(block.options)
            start = self.starts[block.key].content["value"]
            return whole if "type" in start else {"type": "non_standard", "value": whole}
        wire = rd.core.block_to_wire(block)
        citations = [rd.core.thaw(citation.raw) for citation in block.citations]
        wire.pop("citations", None)
        return wire | ({"annotations": citations} if citations else {})

    def kwargs(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for block in self.live.blocks:
            if self.space(block) == "kwargs":
                name = str(block.key).split(":")[1]
                if isinstance(block, rd.ToolCall):
                    found[name] = {"name": block.name, "arguments": self.arguments(block)}
                elif block.type != "audio":
                    found[name] = found.get(name, "") + (block.text or "")
        return found


def merge_lists(given: dict[str, Any]) -> dict[str, Any]:
    """Any list of parts is a content, and contents are merged as lists are."""
    chunks = [{"content": given[side]} for side in ("left", "right") if given[side] is not None]
    return {"merged": Projection(chunks).content()}


def project(case: dict[str, Any]) -> dict[str, Any]:
    try:
        if case["op"] == "merge_lists":
            return merge_lists(case["input"])
        return Projection(case["input"]["chunks"]).message()
    except rd.RxDeltaError as error:
        return {"error": str(error)}


@pytest.mark.parametrize("case", parity("tool_call_chunks.json"))
def test_merging_chunks(case: dict[str, Any]) -> None:
    got, expected = project(case), case["expect"]
    if "error" in expected:
        said = expected["error"].get("contains", "") in str(got.get("error", ""))
        got, expected = {"error": "error" in got and said, "said": got}, {"error": True}
    deviation = DEVIATIONS.get(case["id"])
    if deviation is None:
        assert same(expected, got), f"{case['about']}\nexpected {expected}\ngot      {got}"
        return
    assert not same(expected, got), (
        f"{case['id']} is listed as a deviation ({deviation['letter']}) but doesn't deviate"
    )
    assert same(deviation["ours"], got), f"{case['about']}\nours     {deviation['ours']}\ngot      {got}"


# And any chunks at all, with LangChain as the judge, where none of the deviations is asked for.

_TEXTS = st.sampled_from(["", "a", "b c"])
_PARTS = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": _TEXTS, "index": st.sampled_from([0, "lc_t"])}),
    st.fixed_dictionaries(
        {"type": st.just("reasoning"), "reasoning": _TEXTS, "index": st.sampled_from([1, -1])}
    ),
    st.fixed_dictionaries({"type": st.just("made_up"), "v": _TEXTS, "n": st.just(1), "index": st.just(2)}),
    st.fixed_dictionaries({"type": st.just("text"), "text": _TEXTS}, optional={"index": st.just("other")}),
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": _TEXTS, "annotations": st.just([{"u": 1}]), "index": st.just(3)}
    ),
)
_FRAGMENTS = st.fixed_dictionaries(
    {
        "name": st.none(),
        "args": st.sampled_from(["", "{", '"a"', ":[", "]", "}", None]),
        "id": st.sampled_from(["i", None]),
        "index": st.sampled_from([0, 1, -1, None]),
    }
)
_USAGES = st.builds(
    lambda n, m: {"input_tokens": n, "output_tokens": m, "total_tokens": n + m},
    st.integers(0, 9),
    st.integers(0, 9),
)
_CHUNKS = st.fixed_dictionaries(
    {"content": _TEXTS | st.lists(_PARTS, min_size=1, max_size=1)},
    optional={
        "tool_call_chunks": st.lists(_FRAGMENTS, min_size=1, max_size=1),
        "usage_metadata": _USAGES,
        "id": st.sampled_from(["msg_1", "msg_2", "lc_run-1", "lc_x"]),
        "additional_kwargs": st.sampled_from(
            [{"a": "x"}, {"a": "y", "b": {"n": 1}}, {"reasoning_content": "r"}]
        ),
    },
)


@given(st.lists(_CHUNKS, min_size=1, max_size=5))
@settings(max_examples=200)
@example([{"content": [{"type": "made_up", "v": said, "n": 1, "index": 2}]} for said in ("b cb cb c", "a")])
def test_langchain_says_the_same(chunks: list[dict[str, Any]]) -> None:
    messages = pytest.importorskip("langchain_core.messages")
    total, *rest = (messages.AIMessageChunk(**copy.deepcopy(chunk)) for chunk in chunks)
    for one in rest:
        total += one
    projection = Projection(chunks)
    got = projection.message()
    for name in ("content", "id", "usage_metadata", "additional_kwargs"):
        assert same(getattr(total, name), got[name], name), f"{name}: {getattr(total, name)} but {got[name]}"
    fragments = [{key: one[key] for key in ("name", "args", "id", "index")} for one in total.tool_call_chunks]
    assert same(fragments, got["tool_call_chunks"]), f"{fragments} but {got['tool_call_chunks']}"
    assert total.text == projection.live.text
