"""Cohere's chat API, version 2: what each event becomes, and that nothing else ever comes out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rxdelta as rd
from rxdelta.core import (
    Fold,
    LimitExceededError,
    MalformedChunkError,
    ProtocolChecker,
    Snapshot,
    ToolCall,
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.cohere.decoder import CohereDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Iterable

Chunk = dict[str, Any]

USAGE: Chunk = {
    "billed_units": {"input_tokens": 8, "output_tokens": 2},
    "tokens": {"input_tokens": 1394, "output_tokens": 33},
    "cached_tokens": 1376,
}


def start(id: str | None = "m1", **message: Any) -> Chunk:
    empty: Chunk = {"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []}
    return {"id": id, "type": "message-start", "delta": {"message": empty | message}}


def plan(text: Any) -> Chunk:
    return {"type": "tool-plan-delta", "delta": {"message": {"tool_plan": text}}}


def content_start(index: Any, type: str = "text", **fields: Any) -> Chunk:
    content = {"type": type, **(fields or {type: ""})}
    return {"type": "content-start", "index": index, "delta": {"message": {"content": content}}}


def content(index: Any, **fields: Any) -> Chunk:
    return {"type": "content-delta", "index": index, "delta": {"message": {"content": fields}}}


def content_end(index: Any) -> Chunk:
    return {"type": "content-end", "index": index}


def call_start(
    index: Any, id: Any = "roll_1", name: str = "roll", arguments: Any = "", **fields: Any
) -> Chunk:
    call = {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **fields}
    return {"type": "tool-call-start", "index": index, "delta": {"message": {"tool_calls": call}}}


def args(index: Any, piece: Any) -> Chunk:
    call = {"function": {"arguments": piece}}
    return {"type": "tool-call-delta", "index": index, "delta": {"message": {"tool_calls": call}}}


def call_end(index: Any) -> Chunk:
    return {"type": "tool-call-end", "index": index}


def citation(index: Any, **fields: Any) -> Chunk:
    return {"type": "citation-start", "index": index, "delta": {"message": {"citations": CITED | fields}}}


def end(reason: Any = "COMPLETE", **fields: Any) -> Chunk:
    return {"type": "message-end", "delta": {"finish_reason": reason, "usage": USAGE, **fields}}


DOCUMENT = {
    "type": "document",
    "id": "d1",
    "document": {"title": "Tides", "url": "https://a.example", "x": "y"},
}
TOOL = {"type": "tool", "id": "tides_1:0", "tool_output": {"content": "twice"}}
CITED: Chunk = {"start": 0, "end": 5, "text": "Twice", "sources": [TOOL, DOCUMENT], "type": "TEXT_CONTENT"}

RICH: list[Chunk] = [
    start(),
    plan("I will "),
    plan("roll."),
    call_start(0),
    call_end(0),
    call_start(1, "roll_2"),
    args(1, '{"sides"'),
    args(1, ": 20}"),
    call_end(1),
    content_start(0, "thinking"),
    content(0, thinking="Let me "),
    content(0, thinking="see."),
    content_end(0),
    content_start(1),
    content(1, text="Twice "),
    content(1, text="a day"),
    citation(0),
    {"type": "citation-end", "index": 0},
    content_end(1),
    end("TOOL_CALL"),
]


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = CohereDecoder()
    decoded = [event for chunk in chunks for event in decoder.decode(chunk)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*chunks: Chunk) -> list[Event]:
    """The events of chunks in the middle of a message."""
    return decode(start(), *chunks, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*chunks: Any) -> Snapshot:
    return fold(decode(*chunks))


def calls(snapshot: Snapshot) -> list[tuple[str, Any, Any]]:
    return [
        (call.type, call.call_id, thaw(call.arguments))
        for call in snapshot.blocks
        if isinstance(call, ToolCall)
    ]


def violations(decoded: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    found = [lifecycle.check(event) for event in decoded]
    return [violation for violation in [*found, lifecycle.close()] if violation]


# The whole.


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    raw = CITED
    call = {"type": "tool_call", "name": "roll", "status": "complete"}
    cited = {
        "cited_text": "Twice",
        "title": "Tides",
        "url": "https://a.example",
        "start_index": 0,
        "end_index": 5,
    }
    assert fold(decoded).to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "m1",
        "blocks": [
            {"type": "reasoning", "text": "I will roll.", "options": {"provider_type": "tool_plan"}},
            {**call, "call_id": "roll_1", "arguments": {}},
            {**call, "call_id": "roll_2", "arguments": {"sides": 20}},
            {"type": "reasoning", "text": "Let me see."},
            {"type": "text", "text": "Twice a day", "citations": [{**cited, "raw": raw}]},
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "TOOL_CALL",
        "usage": {"input_tokens": 1394, "output_tokens": 33, "raw": USAGE},
    }


def test_after_every_chunk_the_snapshot_is_incomplete_and_no_call_is_called_whole_that_isn_t() -> None:
    for cut in range(len(RICH)):
        snapshot = reply(*RICH[:cut])
        assert snapshot.status == "incomplete"
        whole = [call.call_id for call in snapshot.tool_calls if call.status == "complete"]
        assert whole == ["roll_1"] * (cut > 5) + ["roll_2"] * (cut > 8)


BODY: Chunk = {
    "id": "m1",
    "finish_reason": "TOOL_CALL",
    "message": {
        "role": "assistant",
        "tool_plan": "I will roll.",
        "tool_calls": [
            {"id": "roll_1", "type": "function", "function": {"name": "roll", "arguments": ""}},
            {"id": "roll_2", "type": "function", "function": {"name": "roll", "arguments": '{"sides": 20}'}},
        ],
        "content": [{"type": "thinking", "thinking": "Let me see."}, {"type": "text", "text": "Twice a day"}],
        "citations": [CITED],
    },
    "usage": USAGE,
}


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    streamed = [*RICH[:3], *RICH[9:19], *RICH[3:9], RICH[-1]]  # in a body nothing says what came first
    assert rd.providers.detect(BODY) == "cohere"
    assert violations(decode(BODY)) == []
    assert reply(BODY).to_message() == reply(*streamed).to_message()


def test_the_logprobs_of_a_body_and_of_its_stream_are_the_same() -> None:
    item = {"text": "Hi", "token_ids": [1], "logprobs": [-0.5]}
    streamed = [start(), content_start(0), {**content(0, text="Hi"), "logprobs": item}, content_end(0), end()]
    body = {"id": "m1", "finish_reason": "COMPLETE", "logprobs": [item], "usage": USAGE}
    message = {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]}
    assert thaw(reply(*streamed).to_message().metadata) == {"logprobs": [item]}
    assert reply({**body, "message": message}).to_message() == reply(*streamed).to_message()


def test_a_content_that_is_text_is_a_text() -> None:
    assert reply({"finish_reason": "COMPLETE", "message": {"content": "Hi"}}).to_message().text == "Hi"


def test_a_body_cut_off_at_a_call_without_arguments_has_no_call_to_run() -> None:
    found = calls(reply({**BODY, "finish_reason": "MAX_TOKENS"}))
    assert [kind for kind, _, _ in found] == ["tool_call", "tool_call"]
    message = {**BODY["message"], "tool_calls": BODY["message"]["tool_calls"][:1]}
    found = calls(reply({**BODY, "finish_reason": "MAX_TOKENS", "message": message}))
    assert [kind for kind, _, _ in found] == ["invalid_tool_call"]


# Blocks.


def test_index_0_is_a_content_a_call_and_a_citation_at_once() -> None:
    chunks = [content_start(0), content(0, text="Twice"), citation(0), call_start(0), args(0, "{}")]
    snapshot = reply(start(), *chunks, call_end(0), content_end(0), end("TOOL_CALL"))
    assert [(block.key, block.type) for block in snapshot.blocks] == [(0, "text"), (1, "tool_call")]
    assert len(snapshot.to_message().blocks[0].citations) == 1  # type: ignore[union-attr]


def test_the_plan_for_the_calls_is_a_reasoning_and_ends_when_they_begin() -> None:
    assert in_message(plan("I "), plan("will"), call_start(0)) == [
        BlockStart(0, {"type": "reasoning", "reasoning": "", "provider_type": "tool_plan"}),
        ReasoningDelta(0, "I "),
        ReasoningDelta(0, "will"),
        BlockFinish(0),
        BlockStart(1, {"type": "tool_call_chunk", "id": "roll_1", "name": "roll", "args": ""}),
    ]
    assert in_message(plan("")) == []


def test_a_plan_without_calls_ends_with_the_message() -> None:
    decoded = decode(start(), plan("Hm"), end())
    assert violations(decoded) == []
    assert fold(decoded).reasoning == "Hm"


def test_a_thinking_is_a_reasoning_and_not_a_plan() -> None:
    snapshot = reply(start(), content_start(0, "thinking"), content(0, thinking="Hm"), content_end(0), end())
    assert snapshot.to_message().to_dict()["blocks"] == [{"type": "reasoning", "text": "Hm"}]


def test_a_content_may_begin_with_text_or_without_its_start() -> None:
    assert reply(start(), content_start(0, text="Hi"), content(0, text="!"), end()).text == "Hi!"
    assert reply(start(), content(0, text="Hi"), content(1, thinking="Hm"), end()).text == "Hi"


def test_a_content_of_a_type_that_isn_t_known_is_kept_whole() -> None:
    decoded = decode(start(), content_start(0, "image", image={"url": "u"}), content_end(0), end())
    assert fold(decoded).to_message().to_dict()["blocks"] == [
        {"type": "unsupported", "options": {"type": "image", "image": {"url": "u"}}}
    ]


def test_without_a_message_start_there_is_one_all_the_same() -> None:
    for chunk in (content(0, text="x"), call_start(0), plan("x"), citation(0), end()):
        assert decode(chunk)[0] == MessageStart()


def test_a_start_or_end_sent_twice_is_one() -> None:
    once = [
        start(),
        content_start(0),
        content(0, text="x"),
        content_end(0),
        call_start(0),
        args(0, "{}"),
        end(),
    ]
    twice = [start(), start(), content_start(0), content_start(0), content(0, text="x"), content_end(0)]
    twice += [content_end(0), call_start(0), call_start(0), args(0, "{}"), end()]
    assert decode(*twice) == decode(*once)


# Calls.


def test_a_call_without_arguments_is_finished_when_it_is_known_that_the_message_went_on() -> None:
    for behind in (call_start(1, "b"), content_start(0), content(0, text="x"), plan("x")):
        assert BlockFinish(0) not in in_message(call_start(0), call_end(0))
        assert in_message(call_start(0), call_end(0), behind)[1] == BlockFinish(0)
    assert calls(reply(start(), call_start(0), call_end(0), end("TOOL_CALL"))) == [
        ("tool_call", "roll_1", {})
    ]


def test_a_call_with_arguments_is_finished_when_it_ends() -> None:
    assert in_message(call_start(0), args(0, ""), args(0, '{"a": 1}'), call_end(0))[1:] == [
        ToolCallDelta(0, '{"a": 1}'),
        BlockFinish(0),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param([call_start(0)], id="before its arguments"),
        pytest.param([call_start(0), call_end(0)], id="before its arguments, and ended"),
        pytest.param([call_start(0), args(0, '{"a"')], id="amid them"),
        pytest.param([call_start(0), args(0, '{"a"'), call_end(0)], id="amid them, and ended"),
        pytest.param([call_start(0), args(0, "{}")], id="at what looks whole, but has not ended"),
    ],
)
def test_a_call_cut_off_by_the_token_limit_is_never_one_to_run(chunks: list[Chunk]) -> None:
    snapshot = reply(start(), *chunks, end("MAX_TOKENS"))
    assert [kind for kind, _, _ in calls(snapshot)] == ["invalid_tool_call"]
    assert snapshot.to_message().status == "length"


def test_arguments_may_be_an_object_or_come_with_the_start() -> None:
    assert calls(reply(start(), call_start(0, arguments={"a": 1}), args(0, "x"), call_end(0), end()))[0][
        2
    ] == {"a": 1}
    assert calls(reply(start(), call_start(0, arguments='{"a"'), args(0, ":1}"), call_end(0), end()))[0][
        2
    ] == {"a": 1}


def test_a_call_without_an_id_gets_one_that_is_the_message_s() -> None:
    call = reply(start(), plan("x"), call_start(0, None), call_end(0), end()).tool_calls[0]
    assert (call.call_id, call.metadata) == ("call-m1-1", {"synthetic_id": True})


def test_a_call_in_whose_place_another_begins_is_no_call_to_run() -> None:
    found = calls(reply(start(), call_start(0, "a"), call_start(0, "b"), call_end(0), end()))
    assert [(kind, call_id) for kind, call_id, _ in found] == [("invalid_tool_call", "a"), ("tool_call", "b")]


def test_more_of_a_call_than_is_known_is_its_metadata() -> None:
    call = reply(start(), call_start(0, type="search", note="x"), call_end(0), end()).tool_calls[0]
    assert call.metadata == {"provider_type": "search", "note": "x"}


def test_arguments_of_no_call_are_passed_on() -> None:
    assert in_message(args(4, "{}")) == [ProviderEvent("cohere", "tool-call-delta", args(4, "{}"))]


# Citations.


def test_a_citation_comes_whole_and_says_where_in_the_reply_it_belongs() -> None:
    decoded = in_message(
        content_start(0), content(0, text="Twice"), citation(0), {"type": "citation-end", "index": 0}
    )
    (cited,) = fold(decoded).blocks[0].citations  # type: ignore[union-attr]
    assert (cited.cited_text, cited.start_index, cited.end_index) == ("Twice", 0, 5)
    assert (cited.title, cited.url, thaw(cited.raw)) == ("Tides", "https://a.example", CITED)
    assert len(decoded) == 3


@pytest.mark.parametrize(
    ("fields", "key"),
    [
        ({"type": "TEXT_CONTENT"}, 2),
        ({"type": "TEXT_CONTENT", "content_index": 1}, 2),
        ({"type": None}, 2),
        ({"type": "THINKING_CONTENT"}, 1),
        ({"type": "THINKING_CONTENT", "content_index": 0}, 1),
    ],
)
def test_a_citation_belongs_to_what_it_names(fields: Chunk, key: int) -> None:
    chunks = [plan("x"), content_start(0, "thinking"), content_start(1), citation(0, **fields)]
    (event,) = [event for event in in_message(*chunks) if isinstance(event, BlockDelta)]
    assert event.index == key


def test_a_citation_of_the_plan_is_the_plan_s() -> None:
    (event,) = [
        event for event in in_message(plan("x"), citation(0, type="PLAN")) if isinstance(event, BlockDelta)
    ]
    assert event.index == 0


def test_a_citation_whose_block_has_ended_is_the_message_s() -> None:
    chunks = [
        content_start(0),
        content(0, text="Twice"),
        content_end(0),
        citation(0),
        citation(1, type="PLAN"),
    ]
    metadata = reply(start(), *chunks, end()).to_message().metadata
    assert thaw(metadata) == {"citations": [CITED, {**CITED, "type": "PLAN"}]}


def test_a_citation_of_a_thinking_is_not_the_plan_s() -> None:
    assert not any(
        isinstance(event, BlockDelta) for event in in_message(plan("x"), citation(0, type="THINKING_CONTENT"))
    )


def test_many_citations_are_told_in_steps_and_none_is_lost() -> None:
    decoded = in_message(content_start(0), *(citation(n, text=str(n)) for n in range(100)), content_end(0))
    assert sum(isinstance(event, BlockDelta) for event in decoded) < 50
    found = fold(decoded).blocks[0].citations  # type: ignore[union-attr]
    assert [citation.cited_text for citation in found] == [str(n) for n in range(100)]


@pytest.mark.parametrize("ends", [[], [{"type": "message-end", "delta": {"finish_reason": "ERROR"}}]])
def test_a_stream_that_breaks_off_loses_no_citation(ends: list[Chunk]) -> None:
    decoded = decode(start(), content_start(0), *(citation(n, text=str(n)) for n in range(100)), *ends)
    last = [event for event in decoded if isinstance(event, BlockDelta)][-1]
    assert len(last.fields["citations"]) == 100


# The end.


@pytest.mark.parametrize(
    ("word", "reason"),
    [("COMPLETE", "stop"), ("STOP_SEQUENCE", "stop"), ("MAX_TOKENS", "length"), ("SOMETHING_NEW", "stop")],
)
def test_finish_reasons(word: str, reason: str) -> None:
    message = reply(start(), content(0, text="x"), end(word)).to_message()
    assert (message.finish_reason, message.provider_finish_reason) == (reason, word)


def test_the_usage_counts_the_tokens_and_not_what_is_billed() -> None:
    usage = reply(start(), end()).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, thaw(usage.raw)) == (1394, 33, USAGE)
    billed = reply(start(), end(usage={"billed_units": {"input_tokens": 8}})).usage
    assert billed is not None
    assert (billed.input_tokens, billed.output_tokens) == (None, None)
    assert reply(start(), end(usage=None)).usage is None


def test_counts_that_are_floats_are_counts() -> None:
    usage = reply(start(), end(usage={"tokens": {"input_tokens": 3.0, "output_tokens": 1.5}})).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (3, None)


def test_the_model_is_never_named() -> None:
    assert (reply(*RICH).id, reply(*RICH).model) == ("m1", None)


def test_without_an_end_it_was_cut_off() -> None:
    assert reply(*RICH[:-1]).status == "incomplete"


def test_what_comes_after_the_end_is_passed_on_or_begins_another_message() -> None:
    whole = [start(), content(0, text="Hi"), end()]
    assert decode(*whole, end())[-1] == ProviderEvent("cohere", "message-end", end())
    assert decode(*whole, start()) == decode(*whole)
    assert [event for event in decode(*whole, start("m2")) if isinstance(event, MessageStart)] == [
        MessageStart("m1"),
        MessageStart("m2"),
    ]


# Errors.


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"finish_reason": "ERROR", "error": "Oops"}, StreamError("Oops", "ERROR")),
        ({"finish_reason": "ERROR"}, StreamError("unknown error", "ERROR")),
        ({"finish_reason": "TIMEOUT"}, StreamError("the generation timed out", "TIMEOUT")),
        ({"finish_reason": "COMPLETE", "error": "Oops"}, StreamError("Oops", "COMPLETE")),
    ],
)
def test_an_end_that_is_an_error_breaks_off(fields: Chunk, error: StreamError) -> None:
    ended = {"type": "message-end", "delta": fields}
    decoded = decode(start(), content_start(0), content(0, text="Hi"), ended, content(0, text="x"), end())
    assert decoded[2:] == [TextDelta(0, "Hi"), error]


def test_the_usage_of_what_broke_off_is_told() -> None:
    decoded = decode(start(), end("ERROR"))
    assert isinstance(decoded[-2], UsageUpdate)
    assert isinstance(decoded[-1], StreamError)


def test_the_body_of_an_answer_that_was_refused_is_an_error() -> None:
    assert decode({"id": "x", "message": "invalid api token"}) == [StreamError("invalid api token")]
    assert decode({"type": "error", "message": "overloaded"}) == [StreamError("overloaded", "error")]


def test_an_error_without_words_is_kept() -> None:
    chunk = {"type": "error", "code": 3}
    assert decode(chunk) == [ProviderEvent("cohere", "error", chunk), StreamError("unknown error", "error")]


# What isn't known.


def test_debug_and_events_of_another_make_are_passed_on() -> None:
    assert in_message({"type": "debug", "prompt": "<BOS>"}) == [
        ProviderEvent("cohere", "debug", {"type": "debug", "prompt": "<BOS>"})
    ]
    assert in_message({"type": "new", "a": 1}) == [ProviderEvent("cohere", "new", {"type": "new", "a": 1})]
    assert in_message(content(0, text="x", new=1))[-1] == ProviderEvent(
        "cohere", "content-delta", content(0, text="x", new=1)
    )


def test_another_start_amid_a_message_is_passed_on() -> None:
    assert in_message(start("m2")) == [ProviderEvent("cohere", "message-start", start("m2"))]


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({}, "type"),
        ({"type": 5}, "type"),
        ({"type": "message-start", "delta": []}, "delta"),
        ({"type": "message-start", "delta": {"message": []}}, "delta.message"),
        (plan(5), "delta.message.tool_plan"),
        (content_start(None), "index"),
        (content_start(-1), "index"),
        (content("0", text="x"), "index"),
        (content(0, text=5), "delta.message.content.text"),
        (content_start(0, text=5), "delta.message.content.text"),
        (call_start(True), "index"),
        (call_start(0, 5), "delta.message.tool_calls.id"),
        (call_start(0, arguments=5), "delta.message.tool_calls.function.arguments"),
        (end(5), "delta.finish_reason"),
        (end(usage=[]), "delta.usage"),
        ({"message": {"content": 5}, "finish_reason": "COMPLETE"}, "message.content"),
        ({"message": {"content": [5]}, "finish_reason": "COMPLETE"}, "message.content[0]"),
        ({"message": {"tool_calls": [{"function": 5}]}}, "message.tool_calls[0].function"),
        ("text", ""),
    ],
)
def test_a_malformed_chunk_is_named_by_the_path_to_its_fault(chunk: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(chunk)
    assert caught.value.path == path


def test_an_absurd_index_is_refused() -> None:
    with pytest.raises(LimitExceededError):
        decode(content(2**31, text="x"))


def test_what_came_before_the_fault_in_a_chunk_comes_out_with_the_next() -> None:
    decoder = CohereDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode({"message": {"content": ["Hi"], "tool_plan": "I will"}, "finish_reason": "COMPLETE"})
    assert fold(decoder.close()).reasoning == "I will"


# Recognising.


@pytest.mark.parametrize("chunk", [*RICH, {"type": "debug", "prompt": "x"}])
def test_every_chunk_is_recognised(chunk: Chunk) -> None:
    assert rd.providers.detect(chunk) == "cohere"


@pytest.mark.parametrize(
    "chunk",
    [
        {"is_finished": False, "event_type": "stream-start", "generation_id": "g1"},
        {"is_finished": False, "event_type": "text-generation", "text": "Hi"},
        {"type": "tool-call-delta", "toolCallId": "c1", "argsTextDelta": "{"},
        {"type": "content-end", "index": 0, "content": {}},
        {"type": "message-start"},
        {"type": "debug"},
    ],
)
def test_version_1_and_other_protocols_of_like_names_are_other_formats(chunk: Chunk) -> None:
    assert not recognises(chunk)
    with pytest.raises(rd.UnknownWireFormatError):
        rd.providers.detect(chunk)


# The SDK's objects.


def sdk(*chunks: Chunk) -> list[Any]:
    types = pytest.importorskip("cohere.v2.types.v2chat_stream_response")
    from cohere.core.unchecked_base_model import construct_type

    return [construct_type(type_=types.V2ChatStreamResponse, object_=chunk) for chunk in chunks]


def test_the_sdk_s_objects_give_the_same_events_as_dicts() -> None:
    objects = sdk(*RICH)
    assert not any(isinstance(event, dict) for event in objects)
    assert decode(*objects) == decode(*RICH)


def test_an_object_of_the_sdk_that_was_made_by_hand_has_its_type_too() -> None:
    types = pytest.importorskip("cohere.v2.types.v2chat_stream_response")
    made = types.ContentEndV2ChatStreamResponse(index=0)
    assert [*in_message(content_start(0)), BlockFinish(0)] == decode(
        start(), content_start(0), made, close=False
    )[1:]


def test_the_sdk_s_response_gives_the_same_events_as_the_body() -> None:
    types = pytest.importorskip("cohere.v2.types.v2chat_response")
    from cohere.core.unchecked_base_model import construct_type

    assert decode(construct_type(type_=types.V2ChatResponse, object_=BODY)) == decode(BODY)


# Anything at all.

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
