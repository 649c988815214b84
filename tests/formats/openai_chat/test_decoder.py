"""OpenAI chat completions: the envelope, the end, choices and errors, and that no JSON gives anything else."""

from __future__ import annotations

import copy
import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings, strategies as st
from support.openai_chat import (
    USAGE,
    Chunk,
    annotation,
    call,
    calls,
    chunk,
    decode,
    detail,
    fold,
    fragment,
    of_type,
    parts_of,
    reply,
    text,
    usage,
    violations,
)

from rxdelta.core import LimitExceededError, MalformedChunkError
from rxdelta.core.events import (
    BlockStart,
    Event,
    MessageFinish,
    ProviderEvent,
    StreamError,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder

if TYPE_CHECKING:
    from collections.abc import Sequence

# The envelope.


def test_a_chunk_that_says_nothing_does_not_begin_the_message_before_its_id_has_come() -> None:
    message = reply(chunk({"role": "assistant", "content": ""}, id=""), text("a", id="c2"), chunk({}, "stop"))
    assert (message.id, message.text) == ("c2", "a")
    assert (reply(chunk({"role": "assistant"}, id=""), chunk({}, "stop", id="")).finish_reason) == "stop"


# The end.


def test_arguments_behind_the_finish_reason_are_those_of_the_call_that_had_none() -> None:
    begun = [call(fragment(0, '{"x":1}', "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    for rest in (
        [fragment(1, '{"y":'), fragment(1, "2}")],
        [fragment(7, '{"y":2}')],
        [fragment(0, '{"y":2}', "b")],
    ):
        message = reply(*begun, *map(call, rest), usage())
        assert (calls(message), message.invalid_tool_calls) == (
            [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
            (),
        )
    all_along = [fragment(0, "", "a", "f"), fragment(0, '{"x":'), fragment(0, "1}")]
    assert calls(reply(*(call(each, finish="stop", usage=USAGE) for each in all_along))) == [
        ("a", "f", {"x": 1})
    ]


@pytest.mark.parametrize("names", ["ff", "fg"])
@pytest.mark.parametrize("first", ["", '{"x":1}'])
def test_two_calls_to_which_a_provider_gives_one_id_are_told_apart_by_their_indexes(
    names: str, first: str
) -> None:
    one, two = names
    heads = [fragment(0, "", "a", one), fragment(0, first), fragment(1, "", "a", two), fragment(1, '{"x":2}')]
    whole = [fragment(0, first or "{}", "a", one), fragment(1, '{"x":2}', "a", two)]
    wanted = [("a", one, {"x": 1} if first else {}), ("a-2", two, {"x": 2})]
    assert calls(reply(call(*whole), chunk({}, "tool_calls"))) == wanted
    assert calls(reply(*map(call, whole), chunk({}, "tool_calls"))) == wanted
    if first or one != two:  # else the second head may be the first once more
        assert calls(reply(*map(call, heads), chunk({}, "tool_calls"))) == wanted


def test_usage_before_any_choice_starts_the_message() -> None:
    found = decode(usage(), text("a", "stop"))
    assert found[0].usage.input_tokens == 7  # type: ignore[union-attr]
    assert of_type(UsageUpdate, found) == []


def test_what_comes_after_the_end_of_its_call_or_message_is_passed_on() -> None:
    again = call(fragment(0, "", "a", "f"))
    found = decode(call(fragment(0, "{}", "a", "f")), chunk({}, "tool_calls"), again, usage())
    assert violations(found) == []
    assert [event.payload for event in of_type(ProviderEvent, found)] == [again]
    late, spent, empty = text("b"), usage(cost=1), chunk({"role": "assistant", "content": ""}, usage=USAGE)
    found = decode(text("a"), chunk({}, "stop"), usage(), empty, late, spent, usage())
    assert violations(found) == []
    assert [event.payload for event in of_type(ProviderEvent, found)] == [late, spent, usage()]


def test_fragments_of_a_call_that_has_ended_are_not_those_of_another_without_arguments() -> None:
    ended = [call(fragment(0, "{}", "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    message = reply(*ended, call(fragment(0, " ")), usage())
    assert calls(message) == [("a", "f", {}), ("b", "g", {})]


# Errors.


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c", "param": None}}, StreamError("m", "t", "c")),
        ({"error": "m"}, StreamError("m")),
        ({"object": "error", "message": "m", "type": "t", "code": 400}, StreamError("m", "t", "400")),
        ({"x_groq": {"error": "m"}, "choices": []}, StreamError("m")),
        ({"error": {"message": 5, "code": True}}, StreamError("unknown error")),
        ({"error": [1]}, StreamError("unknown error")),
    ],
)
def test_an_error_has_many_forms(body: Chunk, error: StreamError) -> None:
    assert decode(body)[-1] == error


MALFORMED = [
    ([], ""), (None, ""), ("data", ""), (b"{}", ""), (5, ""),
    ({"choices": {}}, "choices"), ({"choices": "x"}, "choices"), ({"choices": [5]}, "choices[0]"),
    ({"choices": [{}, {"index": 1.5}]}, "choices[1].index"), (chunk() | {"usage": 5}, "usage"),
    ({"x_groq": {"usage": "x"}}, "x_groq.usage"),
    ({"choices": [{"delta": []}]}, "choices[0].delta"), ({"choices": [{"message": 1}]}, "choices[0].message"),
    ({"choices": [{"finish_reason": 1}]}, "choices[0].finish_reason"),
    (chunk({"content": 5}), "choices[0].delta.content"), (chunk({"content": {}}), "choices[0].delta.content"),
    (chunk({"content": [5]}), "choices[0].delta.content[0]"),
    (chunk({"content": [{"type": "text", "text": 1}]}), "choices[0].delta.content[0].text"),
    (chunk({"reasoning": ["x"]}), "choices[0].delta.reasoning"),
    (chunk({"reasoning_details": {}}), "choices[0].delta.reasoning_details"),
    (chunk({"reasoning_details": [{"signature": 1}]}), "choices[0].delta.reasoning_details[0].signature"),
    (chunk({"refusal": 1}), "choices[0].delta.refusal"), (chunk({"audio": "x"}), "choices[0].delta.audio"),
    (chunk({"images": [{"image_url": 1}]}), "choices[0].delta.images[0].image_url"),
    (chunk({"annotations": [1]}), "choices[0].delta.annotations[0]"),
    (chunk({"executed_tools": [1]}), "choices[0].delta.executed_tools[0]"),
    (chunk({"tool_calls": {}}), "choices[0].delta.tool_calls"),
    (call(fragment(0, "{}", "a", "f"), fragment(True)), "choices[0].delta.tool_calls[1].index"),
    (call(fragment(1.5)), "choices[0].delta.tool_calls[0].index"),
    (call(fragment("x")), "choices[0].delta.tool_calls[0].index"),
    (call(fragment(0, 5)), "choices[0].delta.tool_calls[0].function.arguments"),
    (call({"index": 0, "function": "f"}), "choices[0].delta.tool_calls[0].function"),
    (call({"index": 0, "custom": {"input": 1}}), "choices[0].delta.tool_calls[0].custom.input"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "path"), MALFORMED, ids=[path or repr(bad) for bad, path in MALFORMED])
def test_a_malformed_chunk_is_named_by_its_place(bad: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        OpenAIChatDecoder().decode(bad)
    assert (caught.value.wire_format, caught.value.path) == ("openai-chat", path)


@pytest.mark.parametrize("bad", [call(fragment(2**31, "")), text("a", index=10**400)])
def test_an_absurd_index_is_refused_by_the_limit(bad: Chunk) -> None:
    with pytest.raises(LimitExceededError):
        OpenAIChatDecoder().decode(bad)


def test_what_a_malformed_chunk_held_before_its_fault_comes_with_the_next() -> None:
    decoder = OpenAIChatDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode(chunk({"content": "a", "refusal": 1}))
    found = [*decoder.decode(text("b")), *decoder.decode(chunk({}, "stop")), *decoder.close()]
    assert violations(found) == []
    assert fold(found).text == "ab"


# Bodies that were not streamed, and the SDK's objects.

WHOLE: Chunk = {
    "id": "c1", "object": "chat.completion", "created": 5, "model": "m", "usage": USAGE, "system_fingerprint": "fp",
    "choices": [
        {
            "index": 0, "finish_reason": "tool_calls", "logprobs": None,
            "message": {
                "role": "assistant", "content": "Hi", "refusal": None, "reasoning_content": "hm",
                "annotations": [annotation(0)],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                    {"id": "b", "type": "custom", "custom": {"name": "g", "input": "raw"}},
                ],
            },
        }
    ],
}  # fmt: skip


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    streamed = [
        chunk({"reasoning_content": "h"}, system_fingerprint="fp"), chunk({"reasoning_content": "m"}),
        chunk({"content": "H"}), chunk({"content": "i", "annotations": [annotation(0)]}),
        call(fragment(0, '{"x"', "a", "f"), {"index": 1, "id": "b", "type": "custom", "custom": {"name": "g", "input": "r"}}),
        call(fragment(0, ": 1}"), {"index": 1, "custom": {"input": "aw"}}), chunk({}, "tool_calls"), usage(),
    ]  # fmt: skip
    whole = decode(WHOLE, close=False)
    assert type(whole[-1]) is MessageFinish
    assert fold(whole).to_message() == reply(*streamed).to_message()


RICH: Sequence[Chunk] = (
    {"id": "", "model": "", "choices": [], "prompt_filter_results": []},
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning": "hm", "reasoning_details": [detail("hm")]}),
    chunk({"reasoning_details": [detail(signature="s")]}),
    text("Look"),
    chunk({"content": "ing", "annotations": [annotation(0)]}),
    call(fragment(0, "", "a", "search", type="function")),
    call(fragment(0, '{"q": "é'), fragment(1, '{"n"', "b", "count")),
    call(fragment(1, ": 2}"), fragment(0, '"}')),
    text("x", index=1),
    chunk({"refusal": "no"}, "stop", index=1),
    chunk({"audio": {"id": "au", "data": "AA", "transcript": "t"}}),
    chunk({"content": None}, "tool_calls", said={"native_finish_reason": "tool_use"}),
    chunk({"role": "assistant", "content": ""}, None, usage=USAGE),
)


def test_a_chunk_of_the_sdk_gives_the_same_events_as_a_dict() -> None:
    types = pytest.importorskip("openai.types.chat")
    for one in RICH[1:]:
        assert decode(types.ChatCompletionChunk.construct(**copy.deepcopy(one))) == decode(one)
    typed = [
        chunk({"role": "assistant", "content": "a"}),
        call(fragment(0, "{}", "a", "f")),
        chunk({}, "tool_calls"),
        usage(),
    ]
    typed[-1]["created"] = 5
    assert decode(*map(types.ChatCompletionChunk.model_validate, typed)) == decode(*typed)
    assert decode(types.ChatCompletion.model_validate(WHOLE)) == decode(WHOLE)


def test_a_chunk_is_not_changed_and_may_be_changed_afterwards() -> None:
    mine = copy.deepcopy(list(RICH))
    decoder, found = OpenAIChatDecoder(), list[Event]()
    for one in mine:
        found += decoder.decode(one)
    assert mine == list(RICH)
    assert found + list(decoder.close()) == decode(*RICH)


# The SDK's own accumulator as an independent judge.


def judged(*chunks: Chunk) -> tuple[Any, ...]:
    chat = pytest.importorskip("openai.lib.streaming.chat")
    types = pytest.importorskip("openai.types.chat")
    state = chat.ChatCompletionStreamState()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in chunks:
            state.handle_chunk(types.ChatCompletionChunk.model_validate({"created": 5, **one}))
    choice = state.current_completion_snapshot.choices[0]
    made = [
        (each.id, each.function.name, each.function.arguments) for each in choice.message.tool_calls or ()
    ]
    return (choice.message.content or "", choice.message.refusal or "", made, choice.finish_reason)


def ours(*chunks: Chunk) -> tuple[Any, ...]:
    found = decode(*chunks)
    message = fold(found)
    refusal = "".join(part.text or "" for part in parts_of(message) if part.type == "refusal")
    starts = {event.index: event.content for event in of_type(BlockStart, found) if event.choice == 0}
    said = {index: "" for index, content in starts.items() if content["type"] == "tool_call_chunk"}
    for event in of_type(ToolCallDelta, found):
        said[event.index] += event.args
    made = [(starts[index]["id"], starts[index]["name"], arguments) for index, arguments in said.items()]
    return (message.text, refusal, made, message.provider_finish_reason)


CLEAN = {
    "text": [chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), chunk({}, "stop"), usage()],
    "refusal": [chunk({"refusal": "I "}), chunk({"refusal": "won't"}), chunk({}, "stop")],
    "calls": [
        text("Look: "), call(fragment(0, "", "a", "f", type="function")), call(fragment(0, '{"x":')),
        call(fragment(0, "1}")), call(fragment(1, "", "b", "g", type="function")), call(fragment(1, "{}")),
        chunk({}, "tool_calls"), usage(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("chunks", CLEAN.values(), ids=CLEAN)
def test_agrees_with_the_sdk_on_clean_streams(chunks: list[Chunk]) -> None:
    assert ours(*chunks) == judged(*chunks)


def test_is_right_where_the_sdk_joins_repeated_ids_and_names() -> None:
    chunks = [call(fragment(0, piece, "a", "f", type="function")) for piece in ("{", "}")]
    assert judged(*chunks)[2] == [("aa", "ff", "{}")]
    assert ours(*chunks)[2] == [("a", "f", "{}")]


def test_is_right_where_the_sdk_merges_two_calls_of_one_index() -> None:
    chunks = [call(fragment(0, "{}", call_id, "f", type="function")) for call_id in "ab"]
    assert judged(*chunks)[2] == [("ab", "ff", "{}{}")]
    assert ours(*chunks)[2] == [("a", "f", "{}"), ("b", "f", "{}")]


def test_is_right_where_the_sdk_keeps_the_empty_id_of_a_first_chunk() -> None:
    types, chat = pytest.importorskip("openai.types.chat"), pytest.importorskip("openai.lib.streaming.chat")
    state = chat.ChatCompletionStreamState()
    azure = {"id": "", "model": "", "object": "chat.completion.chunk", "created": 0, "choices": []}
    for one in (azure, text("a")):
        state.handle_chunk(types.ChatCompletionChunk.model_validate(one))
    assert state.current_completion_snapshot.id == ""
    assert fold(decode(azure, text("a"))).id == "c1"


def test_is_right_where_the_sdk_fails_on_a_list_without_indexes() -> None:
    chunks = [chunk({"content": "a", "annotations": [annotation(n)]}) for n in range(2)]
    with pytest.raises(RuntimeError, match="index"):
        judged(*chunks)
    assert len(parts_of(fold(decode(*chunks)))[0].citations) == 2


@given(pieces=st.lists(st.sampled_from(["a", "b", "r", "[", "]", "t0", "t1", "x1"]), max_size=12))
@settings(max_examples=200, deadline=None)
def test_no_text_is_lost_or_moved_whatever_the_order(pieces: list[str]) -> None:
    def one(piece: str) -> Chunk:
        if piece in "ab":
            return text(piece)
        if piece == "r":
            return chunk({"reasoning": piece})
        if piece in "[]":
            return call(fragment(0, piece, "a", "f"))
        return call(fragment(int(piece[1]), piece[0], "c" + piece[1], "g"))

    message = fold(decode(*map(one, pieces)))
    assert message.text == "".join(piece for piece in pieces if piece in "ab")
    assert message.reasoning == "r" * pieces.count("r")
    said = {each.call_id: each.arguments or "" for each in message.tool_calls}
    assert sorted("".join(str(value) for value in said.values())) == sorted(
        piece[0] for piece in pieces if piece not in ("a", "b", "r")
    )


@pytest.mark.parametrize("depth", [100, 198, 199, 200, 900])
def test_a_value_that_is_nested_too_deep_costs_nothing_else(depth: int) -> None:
    deep = json.loads("[" * depth + "]" * depth)
    hostile = [
        chunk({"odd": deep}),
        chunk(said={"odd": deep}),
        chunk(said={"logprobs": {"content": deep}}),
        chunk(odd=deep),
        call(fragment(1, "{}", "b", "g", odd=deep)),
        call(fragment(1, {"x": deep}, "b", "g")),
        chunk({"reasoning_details": [detail("r", odd=deep)]}),
        chunk({"annotations": [{"url": deep}]}),
        chunk({"content": [{"type": "odd", "odd": deep}]}),
        chunk({"executed_tools": [{"type": "odd", "output": deep}]}),
        chunk(usage={"odd": deep}),
        {"odd": deep},
        {"error": {"message": deep}, "choices": []},
    ]
    for bad in hostile:
        found = decode(text("a"), bad, text("b"), chunk({}, "stop"))
        assert set(violations(found)) <= (
            {"error_event", "missing_message_finish"} if "error" in bad else set()
        )
        assert fold(found).text == ("a" if "error" in bad else "ab")
