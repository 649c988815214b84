"""Bedrock's ConverseStream: whatever the input, only legal events and our own errors come out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bedrock_converse import START, USAGE, WEB, Chunk, block_start, decode, delta, message_stop, stop

import rxdelta as rd
from rxdelta.core import Fold, LimitExceededError, MalformedChunkError, ProtocolChecker
from rxdelta.core.events import Event, MessageStart, StreamError
from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder, recognises

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2**33)
    | st.floats()
    | st.text(max_size=6)
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def sometimes(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: json_values if n == 0 else good)


indexes = sometimes(st.integers(0, 3))
words = st.sampled_from(["", "a", '{"a"', ": 1}", "{}", "YQ=="])
ids = st.sampled_from(["t1", "t2", "", None])
sources = st.fixed_dictionaries(
    {}, optional={"bytes": sometimes(st.binary(max_size=5) | words), "s3": json_values}
)
media = st.fixed_dictionaries(
    {}, optional={"format": words, "source": sometimes(sources), "error": json_values}
)
starts = st.fixed_dictionaries(
    {},
    optional={
        "toolUse": sometimes(
            st.fixed_dictionaries(
                {"toolUseId": ids, "name": words},
                optional={"type": st.sampled_from(["server_tool_use", "tool_use"]), "input": json_values},
            )
        ),
        "toolResult": sometimes(st.fixed_dictionaries({"toolUseId": ids}, optional={"type": words})),
        "image": sometimes(media),
        "new": json_values,
    },
)
deltas = st.fixed_dictionaries(
    {},
    optional={
        "text": sometimes(words),
        "reasoningContent": sometimes(
            st.dictionaries(st.sampled_from(["text", "signature", "redactedContent", "x"]), words, max_size=2)
        ),
        "toolUse": sometimes(st.fixed_dictionaries({"input": sometimes(words)})),
        "toolResult": sometimes(st.lists(json_values, max_size=2)),
        "citation": sometimes(st.just(WEB)),
        "image": sometimes(media),
        "new": json_values,
    },
)
reasons = st.sampled_from(["end_turn", "tool_use", "max_tokens", None])
chunks = st.one_of(
    st.just(START),
    st.builds(lambda index, start: block_start(index, **start), indexes, starts),
    st.builds(lambda index, fields: delta(index, **fields), indexes, deltas),
    st.builds(lambda index, fields: delta(index, **fields), indexes, deltas),
    st.builds(stop, indexes),
    st.builds(message_stop, reasons),
    st.builds(lambda usage: {"metadata": {"usage": usage}}, sometimes(st.just(USAGE))),
    st.dictionaries(
        st.sampled_from(["throttlingException", "new", "metadata", "amazon-bedrock-x"]), json_values
    ),
    st.builds(
        lambda content, reason: {"output": {"message": {"content": content}}, "stopReason": reason},
        sometimes(st.lists(starts | deltas, max_size=3)),
        reasons,
    ),
)


@pytest.mark.slow
@given(stream=st.lists(chunks, max_size=20), begun=st.booleans())
@settings(max_examples=300, deadline=None)
def test_whatever_comes_gives_events_in_legal_order_or_one_of_our_errors(
    stream: list[Chunk], begun: bool
) -> None:
    decoder = BedrockConverseDecoder()
    decoded: list[Event] = []
    for chunk in [START, *stream] if begun else stream:
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


@given(stream=st.lists(json_values, max_size=4))
def test_any_json_gives_events_or_one_of_our_errors(stream: list[Any]) -> None:
    for chunk in stream:
        with suppress(MalformedChunkError, LimitExceededError):
            decode(chunk)


def test_what_is_nested_absurdly_deep_is_no_crash() -> None:
    deep: Any = 0
    for _ in range(5000):
        deep = {"a": deep}
    with suppress(rd.RxDeltaError):
        decode(
            START, {"new": deep}, block_start(0, new=deep), message_stop(additionalModelResponseFields=deep)
        )
