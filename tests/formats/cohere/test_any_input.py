"""Cohere's chat API: whatever the input, only legal events and our own errors come out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.cohere import (
    DOCUMENT,
    Chunk,
    args,
    call_end,
    call_start,
    citation,
    content,
    content_end,
    content_start,
    decode,
    end,
    plan,
    start,
)

from rxdelta.core import Fold, LimitExceededError, MalformedChunkError, ProtocolChecker
from rxdelta.core.events import Event, MessageFinish, MessageStart, StreamError
from rxdelta.formats.cohere.decoder import CohereDecoder, recognises

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def sometimes(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: json_values if n == 0 else good)


indexes = sometimes(st.integers(0, 2))
words = st.sampled_from(["", "a", '{"a"', ": 1}", "{}"])
types = st.sampled_from(["text", "thinking", "image", ""])
names = st.sampled_from(["a", "b", "", None])
reasons = st.sampled_from(["COMPLETE", "TOOL_CALL", "MAX_TOKENS", None])
cited = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["PLAN", "TEXT_CONTENT", "THINKING_CONTENT"]),
        "content_index": json_values | st.integers(0, 2),
        "start": json_values,
        "text": json_values,
        "sources": json_values | st.just([DOCUMENT]),
    },
)
contents = st.fixed_dictionaries(
    {}, optional={"type": types, "text": sometimes(words), "thinking": sometimes(words)}
)
chunks = st.one_of(
    st.builds(start, names),
    st.builds(plan, sometimes(words)),
    st.builds(
        lambda index, kind, text: content_start(index, kind, **{kind: text}), indexes, types, sometimes(words)
    ),
    st.builds(lambda index, fields: content(index, **fields), indexes, contents),
    st.builds(content_end, indexes),
    st.builds(call_start, indexes, sometimes(names), words, sometimes(words)),
    st.builds(args, indexes, sometimes(words)),
    st.builds(call_end, indexes),
    st.builds(lambda index, fields: citation(index, **fields), indexes, cited),
    st.builds(end, sometimes(reasons)),
    st.builds(lambda reason, error: end(reason, error=error), reasons, json_values),
    st.builds(
        lambda kind, more: {"type": kind, "x": more}, st.sampled_from(["debug", "new", "body"]), json_values
    ),
    st.builds(
        lambda message, reason: {"message": message, "finish_reason": reason},
        sometimes(
            st.fixed_dictionaries(
                {
                    "content": sometimes(st.lists(contents, max_size=2)),
                    "citations": st.lists(cited, max_size=2),
                },
                optional={"tool_plan": words, "tool_calls": json_values},
            )
        ),
        reasons,
    ),
)


@pytest.mark.slow
@given(stream=st.lists(chunks, max_size=20), begun=st.booleans())
@settings(max_examples=300, deadline=None)
def test_whatever_comes_gives_events_in_legal_order_or_one_of_our_errors(
    stream: list[Chunk], begun: bool
) -> None:
    decoder = CohereDecoder()
    decoded: list[Event] = []
    for chunk in [start(), *stream] if begun else stream:
        recognises(chunk)
        with suppress(MalformedChunkError, LimitExceededError):
            decoded += decoder.decode(chunk)
    decoded += decoder.close()
    lifecycle, folding = ProtocolChecker(), Fold()
    for event in decoded:
        json.dumps(event.to_dict()).encode()
        if isinstance(event, MessageStart) and folding.snapshot.status != "incomplete":
            lifecycle, folding = ProtocolChecker(), Fold()
        assert lifecycle.check(event) in (None, "error_event")
        if isinstance(event, StreamError):
            assert event is decoded[-1]
        else:
            folding.step(event)
        if isinstance(event, MessageFinish):
            assert not any(block.open for block in folding.snapshot.blocks)


@given(stream=st.lists(json_values, max_size=4))
def test_any_json_gives_events_or_one_of_our_errors(stream: list[Any]) -> None:
    for chunk in stream:
        with suppress(MalformedChunkError, LimitExceededError):
            decode(chunk)
