"""Anthropic Messages: whatever the input, only legal events and our own errors come out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.anthropic_messages import WEB, Chunk, decode, message_start, violations

from rxdelta.core import Fold, LimitExceededError, MalformedChunkError
from rxdelta.core.events import Event, MessageStart, StreamError
from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder, recognises

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def sometimes(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: json_values if n == 0 else good)


def shaped(required: dict[str, Any], **optional: Any) -> st.SearchStrategy[Chunk]:
    fields = {name: st.just(value) if isinstance(value, str) else value for name, value in required.items()}
    return st.fixed_dictionaries(fields, optional=optional)


indexes = st.integers(0, 3)
ids = st.sampled_from(["toolu_1", "toolu_2", "", "None", None])
inputs = st.sampled_from([{}, None, {"a": 1}, "", '{"a"'])
block_types = "text thinking redacted_thinking tool_use server_tool_use mcp_tool_use x_tool_result compaction"
other_types = "fallback tool_call image invalid_tool_call non_standard unsupported"
delta_types = "text_delta thinking_delta input_json_delta signature_delta citations_delta compaction_delta x"
blocks = shaped(
    {"type": st.sampled_from([*block_types.split(), *other_types.split(), ""])},
    id=sometimes(ids),
    tool_use_id=sometimes(ids),
    name=sometimes(st.sampled_from(["roll", "", None])),
    input=sometimes(inputs),
    text=sometimes(st.text(max_size=4)),
    thinking=sometimes(st.text(max_size=4)),
    signature=sometimes(st.text(max_size=4)),
    citations=sometimes(st.lists(st.just(WEB), max_size=2)),
    content=json_values,
    to=json_values,
    index=json_values,
    value=json_values,
    args=json_values,
    error=json_values,
)
deltas = shaped(
    {"type": st.sampled_from([*delta_types.split(), ""])},
    text=sometimes(st.text(max_size=4)),
    thinking=sometimes(st.text(max_size=4)),
    partial_json=sometimes(st.sampled_from(["", '{"a"', ": 1}", "{}"])),
    signature=sometimes(st.text(max_size=4)),
    citation=sometimes(
        st.just(WEB) | st.dictionaries(st.sampled_from(["title", "url", "index"]), json_values)
    ),
    content=json_values,
)
usages = st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "other"]), json_values, max_size=3)
reasons = st.sampled_from(["end_turn", "tool_use", "max_tokens", "refusal", "new", None])
messages = shaped(
    {},
    id=sometimes(st.sampled_from(["msg_1", "msg_2", "", None])),
    model=sometimes(st.just("m")),
    usage=sometimes(usages),
    content=sometimes(st.lists(blocks, max_size=2)),
    stop_reason=sometimes(reasons),
    container=json_values,
)
chunks = st.one_of(
    shaped({"type": "message_start", "message": sometimes(messages)}),
    shaped({"type": "content_block_start", "index": sometimes(indexes), "content_block": sometimes(blocks)}),
    shaped({"type": "content_block_start", "index": indexes, "content_block": blocks}),
    shaped({"type": "content_block_delta", "index": sometimes(indexes), "delta": sometimes(deltas)}),
    shaped({"type": "content_block_delta", "index": indexes, "delta": deltas}),
    shaped({"type": "content_block_delta", "index": indexes, "delta": deltas}),
    shaped({"type": "content_block_stop", "index": sometimes(indexes)}),
    shaped({"type": "content_block_stop", "index": indexes}),
    shaped(
        {"type": "message_delta"}, delta=shaped({}, stop_reason=sometimes(reasons)), usage=sometimes(usages)
    ),
    shaped({"type": "message_stop"}, extra=json_values),
    shaped({"type": "ping"}),
    shaped({"type": "error"}, error=json_values),
    shaped({"type": st.sampled_from(["new", "text", "signature"])}, snapshot=json_values, note=json_values),
    messages.map(lambda message: message | {"type": "message"}),
)


@pytest.mark.slow
@given(stream=st.lists(chunks, max_size=25), begun=st.booleans())
@settings(max_examples=400, deadline=None)
def test_whatever_comes_gives_events_in_legal_order_or_one_of_our_errors(
    stream: list[Chunk], begun: bool
) -> None:
    decoder = AnthropicMessagesDecoder()
    decoded: list[Event] = []
    broken = False
    for chunk in [message_start(), *stream] if begun else stream:
        recognises(chunk)
        try:
            decoded += decoder.decode(chunk)
        except (MalformedChunkError, LimitExceededError):
            broken = True
            break
    if not broken:
        decoded += decoder.close()
    # A start that comes late, behind blocks, is passed on for what it says.
    allowed = {"missing_message_finish", "missing_message_start", "error_event", "duplicate_message_start"}
    assert set(violations(decoded)) <= allowed
    folding = Fold()
    for event in decoded:
        json.dumps(event.to_dict()).encode()
        if isinstance(event, MessageStart) and folding.snapshot.status != "incomplete":
            folding = Fold()
        if isinstance(event, StreamError):
            break  # where every fold ends
        folding.step(event)


@given(
    stream=st.lists(
        json_values | st.dictionaries(st.sampled_from(["type", "index", "delta"]), json_values), max_size=4
    )
)
def test_any_json_gives_events_or_one_of_our_errors(stream: list[Any]) -> None:
    for chunk in stream:
        with suppress(MalformedChunkError, LimitExceededError):
            decode(chunk)
