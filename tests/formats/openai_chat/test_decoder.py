"""OpenAI chat completions: the envelope, the end, choices and errors, and that no JSON gives anything else."""

from __future__ import annotations

import copy
import json
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
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
    shape,
    text,
    usage,
    violations,
)

from rxdelta.core import LimitExceededError, MalformedChunkError, Snapshot, events
from rxdelta.core.events import (
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Sequence

# The envelope.


def test_the_first_id_and_model_that_are_not_empty_count() -> None:
    azure = {
        "id": "",
        "model": "",
        "object": "",
        "created": 0,
        "choices": [],
        "prompt_filter_results": [{"prompt_index": 0}],
    }
    found = decode(
        azure, text("a") | {"id": "real"}, text("b") | {"id": "other"}, chunk({}, "stop") | {"id": "stub"}
    )
    start = found[0]
    assert start == MessageStart(
        "real", "m", None, {"prompt_filter_results": [{"prompt_index": 0}], "created": 5}
    )
    assert len(of_type(MessageStart, found)) == 1
    assert fold(found).id == "real"


def test_a_chunk_that_says_nothing_does_not_begin_the_message_before_its_id_has_come() -> None:
    message = reply(chunk({"role": "assistant", "content": ""}, id=""), text("a", id="c2"), chunk({}, "stop"))
    assert (message.id, message.text) == ("c2", "a")
    assert (reply(chunk({"role": "assistant"}, id=""), chunk({}, "stop", id="")).finish_reason) == "stop"


def test_an_id_that_is_never_sent_is_none_and_a_model_that_comes_late_is_not_lost() -> None:
    message = reply(text("a") | {"id": "", "model": ""}, chunk({}, "stop") | {"id": "", "model": "late"})
    assert (message.id, message.model) == (None, "late")


def test_a_chunk_that_is_something_else_altogether_is_passed_on() -> None:
    moderation = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "choices": [],
        "moderation": {"flagged": False},
    }
    found = decode(moderation, {"foo": 1}, {}, {"choices": None}, {"choices": [], "system_fingerprint": "fp"})
    assert found == [
        ProviderEvent("openai", "chat.completion.chunk", moderation),
        ProviderEvent("openai", "chunk", {"foo": 1}),
    ]


# The end.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("completed", "stop"), ("new_word", "stop"),
        ("length", "length"), ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("content_filter", "content_filter"), ("SAFETY", "content_filter"), ("recitation", "content_filter"),
    ],
)  # fmt: skip
def test_the_provider_keeps_its_own_word_beside_ours(word: str, reason: str) -> None:
    message = reply(text("a"), chunk({}, word))
    assert (message.finish_reason, message.provider_finish_reason) == (reason, word)


def test_blocks_end_with_the_finish_reason_and_the_message_with_the_usage() -> None:
    decoder = OpenAIChatDecoder()
    decoder.decode(call(fragment(0, "{}", "a", "f")))
    assert list(decoder.decode(chunk({}, "tool_calls"))) == [BlockFinish(0)]
    assert [type(event) for event in decoder.decode(usage())] == [UsageUpdate, MessageFinish]
    assert list(decoder.close()) == []


def test_usage_beside_a_choice_leaves_the_message_open() -> None:
    found = decode(text("a"), chunk({}, "stop", usage=USAGE), close=False)
    assert [type(event) for event in found[-2:]] == [BlockFinish, UsageUpdate]
    assert type(decode(text("a", "stop", usage=USAGE), usage(), close=False)[-1]) is MessageFinish
    assert of_type(MessageFinish, decode(text("a", "stop", usage=USAGE)))[0].usage.raw == USAGE


def test_what_comes_behind_a_chunk_with_finish_reason_and_usage_is_kept() -> None:
    end = chunk({}, "stop", usage=USAGE)
    message = reply(text("a"), end, text("b"), text("c"), chunk({}, x_groq={"service_tier": "flex"}))
    assert shape(message) == [("text", "a"), ("text", "bc")]
    assert message.metadata["x_groq"] == {"service_tier": "flex"}
    message = reply(text("a", "stop", usage=USAGE), call(fragment(0, '{"x":1}', "a", "f")), end)
    assert (message.text, calls(message), message.finish_reason) == ("a", [("a", "f", {"x": 1})], "tool_use")


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


def test_a_call_without_arguments_ends_with_the_message_and_the_others_with_the_finish_reason() -> None:
    chunks = [call(fragment(0, "{}", "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    assert of_type(BlockFinish, decode(*chunks, close=False)) == [BlockFinish(0)]
    assert calls(reply(*chunks)) == calls(reply(*chunks, usage())) == [("a", "f", {}), ("b", "g", {})]


def test_a_finish_reason_and_usage_in_every_chunk_end_nothing_but_the_first_block() -> None:
    message = reply(
        *(text(piece, "stop", usage=USAGE | {"completion_tokens": n}) for n, piece in enumerate("abc"))
    )
    assert (message.text, message.finish_reason) == ("abc", "stop")
    assert message.usage is not None
    assert message.usage.output_tokens == 2


def test_without_usage_the_message_ends_with_the_input() -> None:
    assert type(decode(text("a", "stop"), close=False)[-1]) is BlockFinish
    assert decode(text("a", "stop"))[-1] == MessageFinish("stop", "stop", None, {"created": 5})


@pytest.mark.parametrize("again", [None, "stop", "length"])
def test_a_usage_chunk_that_repeats_or_denies_the_reason_changes_nothing(again: str | None) -> None:
    message = reply(
        text("a"),
        chunk({"content": ""}, "stop"),
        chunk({"role": "assistant", "content": ""}, again, usage=USAGE),
    )
    assert (message.provider_finish_reason, message.status) == ("stop", "complete")
    assert message.usage is not None
    assert message.usage.raw == USAGE


def test_a_running_usage_is_replaced_and_never_added() -> None:
    counts = [USAGE | {"completion_tokens": n} for n in range(4)]
    chunks = [
        text("a", usage=counts[0]),
        text("b", usage=counts[1]),
        chunk({}, "stop", usage=counts[2]),
        usage(completion_tokens=9),
    ]
    found = decode(*chunks)
    assert violations(found) == []
    assert found[0].usage.output_tokens == 0  # type: ignore[union-attr]
    assert [event.usage.output_tokens for event in of_type(UsageUpdate, found)] == [1, 2, 9]
    assert fold(found).usage.output_tokens == 9  # type: ignore[union-attr]
    assert not of_type(MessageFinish, decode(*chunks[:3], close=False))
    last = decode(
        *chunks[:2], chunk({}, "stop", usage=counts[2]) | {"object": "chat.completion.done"}, close=False
    )
    assert type(last[-1]) is MessageFinish
    behind = [text("b", usage=counts[1]), text("c", usage=counts[2]) | {"object": "chat.completion.done"}]
    last = decode(text("a"), chunk({}, "stop"), *behind, close=False)
    assert type(last[-1]) is MessageFinish


def test_usage_before_any_choice_starts_the_message() -> None:
    found = decode(usage(), text("a", "stop"))
    assert found[0].usage.input_tokens == 7  # type: ignore[union-attr]
    assert of_type(UsageUpdate, found) == []


def test_null_never_wipes_a_usage() -> None:
    message = reply(text("a", usage=USAGE), text("b", usage=None), chunk({}, "stop", usage={}))
    assert message.usage is not None
    assert message.usage.raw == USAGE


def test_groq_usage_counts_once_wherever_it_stands() -> None:
    only = decode(text("a"), chunk({}, "stop", x_groq={"id": "r", "usage": USAGE}))
    both = decode(text("a"), chunk({}, "stop", x_groq={"id": "r", "usage": USAGE}, usage=USAGE))
    assert only == both
    assert len(of_type(UsageUpdate, both)) == 1


@pytest.mark.parametrize("count", [-1, 1.5, "7.5", "", "many", True, None])
def test_a_count_that_is_none_is_unknown_and_not_zero(count: Any) -> None:
    spent = reply(text("a"), chunk({}, "stop", usage=USAGE | {"prompt_tokens": count})).usage
    assert spent is not None
    assert (spent.input_tokens, spent.output_tokens) == (None, 3)


def test_without_a_finish_reason_the_message_was_cut_off() -> None:
    found = decode(usage(), text("a"), usage(), call(fragment(0, "{}", "a", "f"), usage=USAGE))
    assert of_type(MessageFinish, found) == []
    message = fold(found)
    assert message.status == "incomplete"
    assert message.tool_calls[0].status == "incomplete"


def test_text_after_the_finish_reason_is_a_new_block_that_ends_with_the_message() -> None:
    message = reply(text("a", "stop"), text("b"), text("c"), usage())
    assert shape(message) == [("text", "a"), ("text", "bc")]


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


# Choices.


def test_choices_are_kept_apart_and_numbered_each_for_itself() -> None:
    chunks = [
        text("a", index=0), chunk({"reasoning": "r"}, index=1), text("x", index=1), text("b", index=0),
        chunk({}, "stop", index=0), text("y", index=1), chunk({}, "length", index=1), usage(),
    ]  # fmt: skip
    found = decode(*chunks)
    assert violations(found) == []
    zero, one = fold(found, 0), fold(found, 1)
    assert (zero.text, zero.provider_finish_reason, zero.choice) == ("ab", "stop", 0)
    assert (one.text, one.reasoning, one.status, one.choice) == ("xy", "r", "length", 1)
    assert zero.usage == one.usage is not None
    assert [block.key for block in one.blocks] == [0, 1]


def test_a_choice_that_was_cut_off_does_not_hold_back_the_finish_of_another_for_ever() -> None:
    found = decode(text("a", "stop", index=0), text("x", index=1))
    assert [(event.choice, event.reason) for event in of_type(MessageFinish, found)] == [(0, "stop")]


def test_a_usage_is_not_the_last_while_one_choice_goes_on() -> None:
    counts = [usage(completion_tokens=n) for n in (1, 2)]
    ends = [text("a", "stop", index=0), text("x", index=1), counts[0], chunk({}, "stop", index=1), counts[1]]
    found = decode(*ends)
    assert violations(found) == []
    assert [event.usage.output_tokens for event in of_type(MessageFinish, found)] == [2, 2]


def test_several_choices_in_one_chunk_and_one_without_an_index() -> None:
    both = {"id": "c1", "choices": [{"delta": {"content": "a"}}, {"index": 3, "delta": {"content": "b"}}]}
    assert [(event.choice, event.text) for event in of_type(TextDelta, decode(both))] == [(0, "a"), (3, "b")]


# Errors.


def test_an_error_ends_the_stream_after_what_its_chunk_holds() -> None:
    broken = text("b", "error", error={"code": 429, "message": "slow down"}, usage=USAGE)
    found = decode(text("a"), broken, text("c"), usage())
    assert found[-1] == StreamError("slow down", None, "429")
    message = fold(found)
    assert (message.text, message.status) == ("ab", "incomplete")
    assert message.usage is not None


def test_the_error_of_a_choice_ends_the_stream() -> None:
    failed = chunk({}, "error", said={"error": {"code": 502, "message": "upstream"}})
    found = decode(text("a"), failed)
    assert found[-1] == StreamError("upstream", None, "502")
    assert fold(found).status == "incomplete"


def test_what_was_finished_before_the_error_stays_so() -> None:
    found = decode(text("a", "length"), chunk({}, error={"code": 400, "message": "limit"}, usage=USAGE))
    assert [type(event) for event in found[-2:]] == [MessageFinish, StreamError]
    assert violations(found) == ["error_event"]
    assert fold(found).status == "length"


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


def test_more_than_an_error_can_hold_is_passed_on_before_it() -> None:
    body = {"message": "m", "code": "tool_use_failed", "failed_generation": "{"}
    assert decode({"_event": "error", "error": body}) == [
        ProviderEvent("openai", "error", body), StreamError("m", None, "tool_use_failed"),
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", [None, {}, "", False])
def test_an_empty_error_is_none(nothing: Any) -> None:
    assert reply(text("a", "stop", error=nothing)).text == "a"


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


def test_a_sparse_index_is_fine() -> None:
    assert calls(reply(call(fragment(2**31 - 1, "{}", "a", "f")), chunk({}, "stop"))) == [("a", "f", {})]


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


def test_whole_calls_without_id_and_index_are_calls_of_their_own() -> None:
    entries = [{"function": {"name": "f", "arguments": {"x": n}}} for n in range(3)]
    body = {
        "object": "chat.completion",
        "choices": [{"message": {"tool_calls": entries}, "finish_reason": "stop"}],
    }
    assert [arguments for _, _, arguments in calls(reply(body))] == [{"x": 0}, {"x": 1}, {"x": 2}]


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


@pytest.mark.parametrize("end", range(len(RICH) + 1))
def test_a_stream_that_is_cut_anywhere_is_lawful_and_calls_nothing_complete_that_is_not(end: int) -> None:
    found = decode(*RICH[:end])
    broken = set(violations(found))
    finished = end > 12  # the last but one has the last finish reason
    assert broken <= {"missing_message_start"} | (set() if finished else {"missing_message_finish"})
    message = fold(found)
    assert (message.status == "complete") is finished
    for made in message.tool_calls:
        assert (made.status == "complete") is finished


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


# Recognition.


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (chunk({"role": "assistant"}), True), (WHOLE, True), (usage(), True), ({"choices": [{"delta": {}}]}, True),
        ({"id": "", "object": "", "choices": [], "prompt_filter_results": []}, True), ({"error": {"message": "m"}}, True),
        ({"choices": [{"delta": {"content": "a"}, "text": "a"}]}, True),
        ({"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]}, False),
        ({"choices": []}, False), ({}, False), ({"type": "error", "error": {"message": "m"}}, False),
        ({"object": "fine_tuning.job", "error": {}}, False),
        ({"message": {"content": "Hi"}, "done": False}, False), ({"choices": ["x"]}, False), ({"object": []}, False),
    ],
)  # fmt: skip
def test_recognises_a_first_chunk(first: Chunk, known: bool) -> None:
    assert recognises(first) is known


# Any JSON at all.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def odd(*plausible: Any) -> st.SearchStrategy[Any]:
    """Nearly always one of these, now and then anything."""
    return st.one_of(st.sampled_from(plausible), st.sampled_from(plausible), st.sampled_from(plausible), JSON)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Chunk]:
    return st.fixed_dictionaries({}, optional=fields)


TEXTS = odd("", "a", "\ud83d", '{"x":', "1}", "null", None)
INDEXES = odd(0, 0, 1, 2, None)
FUNCTION = some(
    name=odd("f", "g", "", None), arguments=odd("", "{", "}", None, {}, {"x": 1}), input=TEXTS, note=JSON
)
ENTRY = some(
    index=INDEXES, id=odd("a", "b", "", None), type=odd("function", "custom", None), function=FUNCTION, custom=FUNCTION,
    extra=JSON,
)  # fmt: skip
DETAIL = some(
    type=odd("reasoning.text", "reasoning.summary", "reasoning.encrypted"), text=TEXTS, summary=TEXTS, data=TEXTS,
    signature=odd("", "s", "t"), index=INDEXES, id=JSON,
)  # fmt: skip
PART = st.one_of(
    TEXTS,
    some(type=odd("text", "thinking", "image_url", "refusal", "x"), text=TEXTS, thinking=st.lists(TEXTS, max_size=2),
         image_url=odd("data:image/png;base64,AA", "https://x"), refusal=TEXTS, signature=TEXTS),
)  # fmt: skip
DELTA = some(
    role=odd("assistant"), content=TEXTS | st.lists(PART, max_size=2), refusal=TEXTS, reasoning=TEXTS, reasoning_content=TEXTS,
    reasoning_details=st.lists(DETAIL, max_size=3), tool_calls=st.lists(ENTRY, max_size=3), function_call=FUNCTION,
    audio=some(id=TEXTS, data=TEXTS, transcript=TEXTS), images=st.lists(PART, max_size=2),
    annotations=st.lists(some(type=odd("url_citation"), url_citation=some(url=TEXTS, start_index=JSON)), max_size=2),
    executed_tools=st.lists(some(index=INDEXES, type=TEXTS, arguments=TEXTS, output=JSON), max_size=2), other=JSON,
)  # fmt: skip
CHOICE = some(
    index=INDEXES, delta=DELTA | st.none(), message=DELTA, finish_reason=odd(None, None, "stop", "length", "tool_calls"),
    logprobs=odd(None) | some(content=st.lists(JSON, max_size=2)), token_ids=JSON, other=JSON,
)  # fmt: skip
CHUNK = some(
    id=odd("c", ""), model=odd("m", ""), object=odd("chat.completion.chunk", "chat.completion.done"), created=odd(0, 5),
    choices=st.lists(CHOICE, max_size=2), usage=odd(None, USAGE, {}), x_groq=some(usage=odd(USAGE), error=odd(None, "e")),
    error=odd(None, None, {"message": "m"}), other=JSON,
)  # fmt: skip


@pytest.mark.slow
@given(chunks=st.lists(st.one_of(CHUNK, CHUNK, CHUNK, CHUNK, JSON), max_size=6))
@example(chunks=[{"choices": [{"delta": {"x": [[[[]]]]}}]}, {"choices": [{"finish_reason": "stop"}]}])
@settings(max_examples=200, deadline=None)
def test_any_json_gives_lawful_events_or_a_named_error_and_nothing_else(chunks: list[Any]) -> None:
    decoder, found = OpenAIChatDecoder(), list[Event]()
    for one in chunks:
        with suppress(MalformedChunkError, LimitExceededError):
            found += decoder.decode(one)
        if isinstance(one, dict):
            recognises(one)
    found += decoder.close()

    assert set(violations(found)) <= {"missing_message_start", "missing_message_finish", "error_event"}
    for choice in {event.choice for event in found if not isinstance(event, ProviderEvent)}:
        message = fold(found, choice)
        Snapshot.from_dict(message.to_dict())
    for event in found:
        events.from_dict(event.to_dict())


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
