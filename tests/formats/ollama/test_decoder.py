"""Ollama's own API: what each line becomes, and that nothing else ever comes out."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rxdelta as rd
from rxdelta.core import Fold, MalformedChunkError, ProtocolChecker, Snapshot, ToolCall, thaw
from rxdelta.core.events import (
    BlockFinish,
    BlockStart,
    DataDelta,
    Event,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
)
from rxdelta.formats.ollama.decoder import OllamaDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Iterable

Line = dict[str, Any]

MADE_AT = "2025-10-26T17:15:24.097767Z"
COUNTS: Line = {
    "total_duration": 900,
    "load_duration": 100,
    "prompt_eval_count": 12,
    "prompt_eval_duration": 200,
    "eval_count": 5,
    "eval_duration": 600,
}
ROLL: Line = {"function": {"name": "roll", "arguments": {"sides": 20}}}


def chat(**message: Any) -> Line:
    fields = {"role": "assistant", "content": "", **message}
    return {"model": "llama3", "created_at": MADE_AT, "message": fields, "done": False}


def generate(response: Any = "", **fields: Any) -> Line:
    return {"model": "llama3", "created_at": MADE_AT, "response": response, "done": False, **fields}


def last(line: Line | None = None, reason: str | None = "stop", **fields: Any) -> Line:
    said = {} if reason is None else {"done_reason": reason}
    return {**(line or chat()), "done": True, **said, **COUNTS, **fields}


def decode(*lines: Any, close: bool = True) -> list[Event]:
    decoder = OllamaDecoder()
    decoded = [event for line in lines for event in decoder.decode(line)]
    return decoded + list(decoder.close()) if close else decoded


def in_message(*lines: Line) -> list[Event]:
    return decode(*lines, close=False)[1:]


def fold(decoded: Iterable[Event]) -> Snapshot:
    folding = Fold()
    for event in decoded:
        folding.step(event)
    return folding.snapshot


def reply(*lines: Any) -> Snapshot:
    return fold(decode(*lines))


def calls(snapshot: Snapshot) -> list[tuple[str, Any, Any]]:
    return [
        (call.type, call.name, thaw(call.arguments)) for call in snapshot.blocks if isinstance(call, ToolCall)
    ]


def violations(decoded: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    found = [lifecycle.check(event) for event in decoded]
    return [violation for violation in [*found, lifecycle.close()] if violation]


RICH: list[Line] = [
    chat(thinking="Let me "),
    chat(thinking="see."),
    chat(content="I roll "),
    chat(content="two."),
    chat(tool_calls=[{"id": "call_abc", "function": {"index": 0, "name": "roll", "arguments": {}}}, ROLL]),
    last(),
]


# The whole.


def test_a_rich_stream_becomes_the_message_and_breaks_no_rule() -> None:
    decoded = decode(*RICH)
    assert violations(decoded) == []
    call = {"type": "tool_call", "name": "roll", "status": "complete"}
    assert fold(decoded).to_message().to_dict() == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "model": "llama3",
        "blocks": [
            {"type": "reasoning", "text": "Let me see."},
            {"type": "text", "text": "I roll two."},
            {**call, "call_id": "call_abc", "arguments": {}},
            {
                **call,
                "call_id": "call-20251026T171524097767Z-3",
                "arguments": {"sides": 20},
                "metadata": {"synthetic_id": True},
            },
        ],
        "finish_reason": "tool_use",
        "provider_finish_reason": "stop",
        "usage": {"input_tokens": 12, "output_tokens": 5, "raw": COUNTS},
        "metadata": {"created_at": MADE_AT},
    }


def test_after_every_line_the_snapshot_is_incomplete_and_no_call_is_called_whole_that_isn_t() -> None:
    for cut in range(len(RICH)):
        snapshot = reply(*RICH[:cut])
        assert snapshot.status == "incomplete"
        assert [call.status for call in snapshot.tool_calls] == ["complete"] * 2 * (cut > 4)


def test_a_reply_that_was_not_streamed_is_the_same_message() -> None:
    tool_calls = RICH[4]["message"]["tool_calls"]
    whole = last(chat(thinking="Let me see.", content="I roll two.", tool_calls=tool_calls))
    assert rd.providers.detect(whole) == "ollama"
    assert violations(decode(whole)) == []
    assert reply(whole).to_message() == reply(*RICH).to_message()


# Generate.


def test_generate_says_response_where_chat_has_a_message() -> None:
    lines = [generate(thinking="Hm"), generate("Hi"), generate("!")]
    snapshot = reply(*lines, last(generate(), context=[1, 2, 3]))
    assert (snapshot.reasoning, snapshot.text) == ("Hm", "Hi!")


def test_the_context_that_the_next_request_wants_is_kept() -> None:
    metadata = reply(generate("Hi"), last(generate(), context=[1, 2, 3])).to_message().metadata
    assert thaw(metadata) == {"created_at": MADE_AT, "context": [1, 2, 3]}


def test_an_image_that_was_made_and_its_progress() -> None:
    progress: Line = {"model": "flux", "created_at": MADE_AT, "completed": 1, "total": 4, "done": False}
    decoded = decode(progress, last({**progress, "completed": 4, "image": "iVBORw=="}))
    assert violations(decoded) == []
    assert [event for event in decoded if isinstance(event, ProviderEvent)] == [
        ProviderEvent("ollama", "progress", progress)
    ]
    assert [block.to_dict() for block in fold(decoded).blocks] == [
        {"key": 0, "type": "image", "text": "iVBORw=="}
    ]


def test_the_calls_of_generate() -> None:
    assert calls(reply(generate(tool_calls=[ROLL]), last(generate()))) == [
        ("tool_call", "roll", {"sides": 20})
    ]


# Blocks.


def test_a_text_ends_where_something_else_begins() -> None:
    assert in_message(chat(thinking="a"), chat(content="b"), chat(thinking="c", content="d")) == [
        BlockStart(0, {"type": "reasoning", "reasoning": ""}),
        ReasoningDelta(0, "a"),
        BlockFinish(0),
        BlockStart(1, {"type": "text", "text": ""}),
        TextDelta(1, "b"),
        BlockFinish(1),
        BlockStart(2, {"type": "reasoning", "reasoning": ""}),
        ReasoningDelta(2, "c"),
        BlockFinish(2),
        BlockStart(3, {"type": "text", "text": ""}),
        TextDelta(3, "d"),
    ]


def test_an_empty_text_is_none() -> None:
    assert in_message(chat(content=""), chat(content="", thinking="")) == []
    assert reply(chat(), last()).to_message().blocks == ()


def test_images_of_a_message_are_whole() -> None:
    assert in_message(chat(content="see", images=["YQ==", "Yg=="]))[2:] == [
        BlockFinish(0),
        BlockStart(1, {"type": "image"}),
        DataDelta(1, "YQ=="),
        BlockFinish(1),
        BlockStart(2, {"type": "image"}),
        DataDelta(2, "Yg=="),
        BlockFinish(2),
    ]


def test_a_call_is_whole_and_finished_at_once() -> None:
    assert in_message(chat(tool_calls=[{"id": "c1", **ROLL}])) == [
        BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "roll", "args": {"sides": 20}}),
        BlockFinish(0),
    ]


def test_a_call_without_arguments_has_none() -> None:
    for function in ({"name": "roll"}, {"name": "roll", "arguments": {}}, {"name": "roll", "arguments": ""}):
        assert calls(reply(chat(tool_calls=[{"function": function}]), last())) == [("tool_call", "roll", {})]


def test_arguments_that_are_text_are_parsed_and_must_be_whole() -> None:
    for text, kind in (('{"a": 1}', "tool_call"), ('{"a": ', "invalid_tool_call")):
        found = calls(reply(chat(tool_calls=[{"function": {"name": "roll", "arguments": text}}]), last()))
        assert found[0][0] == kind


def test_a_call_without_a_name_is_no_call_to_run() -> None:
    assert (
        calls(reply(chat(tool_calls=[{"function": {"arguments": {}}}]), last()))[0][0] == "invalid_tool_call"
    )


def test_more_of_a_call_than_is_known_is_its_metadata() -> None:
    (call,) = reply(chat(tool_calls=[{"id": "c", "type": "x", "note": 1, **ROLL}]), last()).tool_calls
    assert call.metadata == {"provider_type": "x", "note": 1}


def test_made_up_ids_differ_within_a_message_and_between_messages() -> None:
    lines = [chat(tool_calls=[ROLL, ROLL]), {**chat(tool_calls=[ROLL]), "created_at": "later"}]
    ids = [call.call_id for call in reply(*lines, last()).tool_calls]
    other = (
        reply({**chat(tool_calls=[ROLL]), "created_at": "2025-10-26T18:00:00Z"}, last()).tool_calls[0].call_id
    )
    assert len({*ids, other}) == 4
    assert reply({"message": {"tool_calls": [ROLL]}}).tool_calls[0].call_id == "call-0"


# The end.


def test_the_last_line_is_empty_and_has_the_counts() -> None:
    usage = reply(chat(content="Hi"), last()).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, thaw(usage.raw)) == (12, 5, COUNTS)


def test_a_count_that_is_missing_is_unknown() -> None:
    counts = {name: value for name, value in COUNTS.items() if name != "prompt_eval_count"}
    line = {**chat(), "done": True, **counts}
    usage = reply(chat(content="Hi"), line).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, thaw(usage.raw)) == (None, 5, counts)
    assert reply(chat(content="Hi"), {**chat(), "done": True}).usage is None


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("new", "stop"),
        (None, "stop"),
    ],
)
def test_finish_reasons(word: str | None, reason: str) -> None:
    message = reply(chat(content="Hi"), last(reason=word)).to_message()
    assert (message.finish_reason, message.provider_finish_reason) == (reason, word)


def test_without_a_last_line_it_was_cut_off() -> None:
    assert reply(chat(content="Hi")).status == "incomplete"


def test_logprobs_are_joined() -> None:
    items = [{"token": "H", "logprob": -0.1}, {"token": "i", "logprob": -0.2}]
    lines = [{**chat(content="H"), "logprobs": items[:1]}, {**chat(content="i"), "logprobs": items[1:]}]
    assert thaw(reply(*lines, last()).to_message().metadata)["logprobs"] == items


def test_where_a_cloud_model_ran_is_kept() -> None:
    lines = [{**chat(content="Hi"), "remote_model": "big", "remote_host": "https://ollama.com:443"}, last()]
    assert thaw(reply(*lines).to_message().metadata) == {
        "created_at": MADE_AT,
        "remote_model": "big",
        "remote_host": "https://ollama.com:443",
    }


def test_what_comes_after_the_end_is_passed_on() -> None:
    for line in (last(), {"error": "Oops"}):
        assert decode(*RICH, line)[len(decode(*RICH)) :] == [ProviderEvent("ollama", "line", line)]


# Errors.


def test_an_error_line_is_the_end() -> None:
    decoded = decode(chat(content="Hi"), {"error": "model runner has stopped"}, chat(content="x"), last())
    assert decoded[2:] == [TextDelta(0, "Hi"), StreamError("model runner has stopped")]
    assert rd.providers.detect({"error": "model runner has stopped"}) == "ollama"


def test_of_an_error_nothing_is_lost() -> None:
    line = {"error": "unauthorized", "signin_url": "https://ollama.com/connect", "status": 401}
    assert decode(line) == [ProviderEvent("ollama", "error", line), StreamError("unauthorized", None, "401")]
    line = {"error": {"message": "Oops", "type": "x"}}
    assert decode(line) == [ProviderEvent("ollama", "error", line), StreamError("Oops")]
    assert decode({"error": 5}) == [
        ProviderEvent("ollama", "error", {"error": 5}),
        StreamError("unknown error"),
    ]


def test_what_stands_beside_an_error_is_read_first() -> None:
    decoded = decode({**chat(content="Hi"), "error": "Oops", "done": True})
    assert decoded[2:] == [TextDelta(0, "Hi"), StreamError("Oops")]


# What isn't known.


def test_a_line_of_another_make_is_passed_on() -> None:
    assert decode({"status": "pulling manifest"}) == [
        ProviderEvent("ollama", "line", {"status": "pulling manifest"})
    ]


def test_more_of_a_message_than_is_known_is_its_metadata() -> None:
    metadata = reply(chat(content="Hi"), chat(tool_name="roll", content="!"), last()).to_message().metadata
    assert metadata["tool_name"] == "roll"


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (chat(content=5), "message.content"),
        (chat(thinking=5), "message.thinking"),
        (chat(images=5), "message.images"),
        (chat(images=[5]), "message.images[0]"),
        (chat(tool_calls={}), "message.tool_calls"),
        (chat(tool_calls=[5]), "message.tool_calls[0]"),
        (chat(tool_calls=[{"function": 5}]), "message.tool_calls[0].function"),
        (chat(tool_calls=[{"function": {"arguments": 5}}]), "message.tool_calls[0].function.arguments"),
        (chat(tool_calls=[{"id": 5}]), "message.tool_calls[0].id"),
        ({**chat(), "message": "x"}, "message"),
        (generate(5), "response"),
        ({**chat(), "logprobs": 5}, "logprobs"),
        (last(done_reason=5), "done_reason"),
        ("text", ""),
    ],
)
def test_a_malformed_line_is_named_by_the_path_to_its_fault(line: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(line)
    assert caught.value.path == path


def test_what_came_before_the_fault_in_a_line_comes_out_with_the_next() -> None:
    decoder = OllamaDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode(chat(content="Hi", tool_calls=5))
    assert fold([*decoder.decode(chat(content="!")), *decoder.close()]).text == "Hi!"


# Recognising.


@pytest.mark.parametrize("line", [*RICH, generate("x"), last(generate()), {"error": "Oops"}])
def test_every_line_is_recognised(line: Line) -> None:
    assert rd.providers.detect(line) == "ollama"


@pytest.mark.parametrize(
    "line",
    [
        {"model": "llama3", "embeddings": [[0.1]]},
        {"status": "pulling manifest", "total": 3},
        {"models": []},
        {"done": True},
        {"error": "Oops", "error_type": "overloaded"},
        {"message": {"role": "assistant", "content": "Hi"}},
    ],
)
def test_other_answers_are_no_reply(line: Line) -> None:
    assert not recognises(line)


# The SDK's objects.


def test_the_sdk_s_objects_give_the_same_events_as_dicts() -> None:
    ollama = pytest.importorskip("ollama")
    lines = [*RICH[:4], chat(tool_calls=[ROLL]), RICH[-1]]  # its calls have no ids
    assert decode(*[ollama.ChatResponse(**line) for line in lines]) == decode(*lines)
    lines = [generate("Hi", thinking="Hm"), last(generate(), context=[1, 2])]
    assert decode(*[ollama.GenerateResponse(**line) for line in lines]) == decode(*lines)


# Anything at all.

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**33) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def sometimes(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 11).flatmap(lambda n: json_values if n == 0 else good)


words = st.sampled_from(["", "a", '{"a"', "{}"])
found_calls = st.fixed_dictionaries(
    {},
    optional={
        "id": sometimes(words),
        "function": sometimes(
            st.fixed_dictionaries({}, optional={"name": sometimes(words), "arguments": json_values | words})
        ),
        "args": json_values,
        "error": json_values,
    },
)
says = {
    "thinking": sometimes(words),
    "content": sometimes(words),
    "response": sometimes(words),
    "images": sometimes(st.lists(words, max_size=2)),
    "tool_calls": sometimes(st.lists(found_calls, max_size=2)),
}
lines = st.fixed_dictionaries(
    {},
    optional={
        "model": sometimes(words),
        "created_at": sometimes(words),
        "message": sometimes(st.fixed_dictionaries({}, optional=says)),
        **says,
        "done": sometimes(st.booleans()),
        "done_reason": sometimes(words),
        "eval_count": json_values,
        "context": json_values,
        "logprobs": sometimes(st.lists(json_values, max_size=2)),
        "completed": json_values,
    },
) | st.dictionaries(st.sampled_from(["error", "status", "done", "x"]), json_values)


@pytest.mark.slow
@given(stream=st.lists(lines, max_size=12))
@settings(max_examples=300, deadline=None)
def test_whatever_comes_gives_events_in_legal_order_or_one_of_our_errors(stream: list[Line]) -> None:
    decoder = OllamaDecoder()
    decoded: list[Event] = []
    for line in stream:
        recognises(line)
        with suppress(MalformedChunkError):
            decoded += decoder.decode(line)
    decoded += decoder.close()
    lifecycle, folding = ProtocolChecker(), Fold()
    for event in decoded:
        json.dumps(event.to_dict()).encode()
        assert lifecycle.check(event) in (None, "error_event")
        if isinstance(event, StreamError):
            assert event is decoded[-1]
        else:
            folding.step(event)
    starts = [event for event in decoded if isinstance(event, MessageStart)]
    finishes = [event for event in decoded if isinstance(event, MessageFinish)]
    assert len(finishes) <= len(starts) <= 1


@given(stream=st.lists(json_values, max_size=4))
def test_any_json_gives_events_or_one_of_our_errors(stream: list[Any]) -> None:
    for line in stream:
        with suppress(MalformedChunkError):
            decode(line)
