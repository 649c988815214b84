"""LangChain's decoder as a whole: what is malformed, and anything at all."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from formats.langchain.chunks import STREAM, USAGE, Chunk, chunk, decoded, folded
from hypothesis import example, given, settings
from hypothesis import strategies as st

import rxdelta as rd
from rxdelta.formats.langchain.decoder import recognises


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (None, ""),
        ([], ""),
        ("x", ""),
        (b"x", ""),
        ({"content": 1}, "content"),
        ({"content": [1]}, "content[0]"),
        ({"content": [{"type": "text", "text": 1}]}, "content[0].text"),
        ({"content": [{"type": "text", "text": "", "annotations": 1}]}, "content[0].annotations"),
        ({"content": "", "tool_call_chunks": 1}, "tool_call_chunks"),
        ({"content": "", "tool_call_chunks": [1]}, "tool_call_chunks[0]"),
        ({"content": "", "tool_call_chunks": [{"name": 1}]}, "tool_call_chunks[0].name"),
        ({"content": "", "tool_call_chunks": [{"args": 1}]}, "tool_call_chunks[0].args"),
        ({"content": "", "usage_metadata": 1}, "usage_metadata"),
        ({"content": "", "response_metadata": 1}, "response_metadata"),
        ({"content": "", "additional_kwargs": 1}, "additional_kwargs"),
        ({"content": "", "id": 1}, "id"),
        ({"lc": 1, "type": "constructor", "kwargs": {"content": 1}}, "kwargs.content"),
    ],
)
def test_what_is_malformed_is_named_by_its_path(found: Any, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decoded(found)
    assert (caught.value.wire_format, caught.value.path) == ("langchain", path)


def test_what_came_before_the_fault_is_not_lost() -> None:
    decoder = rd.providers.decoder("langchain")
    with pytest.raises(rd.errors.MalformedChunkError):
        decoder.decode(chunk(["a", 1]))
    assert decoder.decode(chunk("b"))[0].event == "message-start"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["lc_0", "text", "tool_call_chunk", "last", "ai", "message-start", "length", "reasoning"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "content",
                    "text",
                    "index",
                    "id",
                    "name",
                    "args",
                    "tool_call_chunks",
                    "tool_calls",
                    "additional_kwargs",
                    "data",
                    "kwargs",
                    "event",
                    "response_metadata",
                    "usage_metadata",
                    "chunk_position",
                    "delta",
                    "message",
                    "value",
                    "extras",
                    "annotations",
                    "summary",
                    "input",
                    "function_call",
                    "audio",
                    "reasoning_content",
                    "finish_reason",
                    "fields",
                    "usage",
                    "reason",
                    "metadata",
                    "params",
                    "ns",
                    "run_id",
                    "langgraph_checkpoint_ns",
                    "method",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4))
@settings(max_examples=300)
@example([{"event": "on_chat_model_stream", "data": {"chunk": 1}}])
@example([{"message": {"message": {"message": 1}}}])
def test_any_json_gives_events_or_our_errors(chunks: list[Any]) -> None:
    decoder, fold = rd.providers.decoder("langchain"), rd.Fold()
    for one in chunks:
        if isinstance(one, dict):
            assert recognises(one) in (True, False)
        with suppress(rd.RxDeltaError):
            for event in decoder.decode(one):
                json.dumps(event.to_dict())
                fold.step(event)
    with suppress(
        rd.ProtocolError, rd.errors.MalformedChunkError
    ):  # of events that were theirs; all another format's
        for event in decoder.close():
            fold.step(event)


parts = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "text",
                "reasoning",
                "thinking",
                "tool_call_chunk",
                "tool_use",
                "server_tool_call_chunk",
                "image",
                "x",
                "non_standard",
                "refusal",
                "input_json_delta",
                "server_tool_result",
            ]
        )
    },
    optional={
        "text": st.just("a"),
        "reasoning": st.just("b"),
        "args": st.sampled_from(["{", "}", '{"a": 1}', ""]),
        "id": st.sampled_from(["i", "j", None]),
        "index": st.sampled_from([0, 1, -1, "lc_0", "a", None]),
        "value": st.just({"k": "v"}),
        "extras": st.just({"signature": "s"}),
        "annotations": st.just([{"u": 1}]),
    },
)
fragments = st.fixed_dictionaries(
    {"args": st.sampled_from(["{", "}", '{"a": 1}', "", None])},
    optional={
        "index": st.sampled_from([0, 1, -1, None]),
        "id": st.sampled_from(["i", "j", "", None]),
        "name": st.sampled_from(["f", "g", "", None]),
    },
)
messages = st.fixed_dictionaries(
    {"content": st.sampled_from(["", "a"]) | st.lists(parts, max_size=2)},
    optional={
        "tool_call_chunks": st.lists(fragments, max_size=2),
        "additional_kwargs": st.sampled_from(
            [
                {"reasoning_content": "r"},
                {"function_call": {"name": "f", "arguments": "{}"}},
                {"audio": {"data": "A"}},
            ]
        ),
        "response_metadata": st.sampled_from(
            [{"finish_reason": "stop"}, {"finish_reason": "length"}, {"a": "b"}]
        ),
        "usage_metadata": st.just(USAGE),
        "chunk_position": st.just("last"),
        "id": st.sampled_from(["m", "lc_run-1"]),
    },
)


@given(st.lists(messages, max_size=6))
@settings(max_examples=300)
def test_any_chunks_keep_the_protocol_and_end_every_block(chunks: list[Chunk]) -> None:
    decoder, fold, lifecycle = rd.providers.decoder("langchain"), rd.Fold(), rd.core.ProtocolChecker()
    for one in chunks:
        for event in decoder.decode(one):
            assert lifecycle.check(event) is None, event
            fold.step(event)
    try:
        last = decoder.close()
    except rd.errors.MalformedChunkError:  # nothing was read
        last = ()
    for event in last:
        assert lifecycle.check(event) is None, event
        fold.step(event)
    if fold.snapshot.status != "incomplete":
        assert not any(block.open for block in fold.snapshot.blocks)
        assert lifecycle.close() is None
        assert rd.Message.from_dict(fold.snapshot.to_message().to_dict()) == fold.snapshot.to_message()
    else:
        assert not any(
            isinstance(one, rd.ToolCall) and one.status == "complete" and one.open
            for one in fold.snapshot.blocks
        )


@pytest.mark.parametrize("place", range(len(STREAM)))
def test_a_stream_with_a_chunk_lost_doubled_or_swapped(place: int) -> None:
    for mangled in (
        [*STREAM[:place], *STREAM[place + 1 :]],
        [*STREAM[: place + 1], *STREAM[place:]],
        [*STREAM[:place], *reversed(STREAM[place : place + 2]), *STREAM[place + 2 :]],
        STREAM[:place],
    ):
        reply = folded(*mangled)
        for one in reply.tool_calls:
            assert one.status == "incomplete" or rd.core.thaw(one.arguments) in ({"at": "sea"}, {})
