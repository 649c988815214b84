"""Numbers that lie, and fields under other names: one row for each form that a vendor is known to send."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, strategies as st
from support.openai_chat import (
    Chunk,
    call,
    calls,
    chunk,
    decode,
    fold,
    fragment,
    of_type,
    reply,
    shape,
    text,
    usage,
    violations,
)

import rxdelta as rd
from rxdelta.core import MalformedChunkError
from rxdelta.core.events import BlockDelta, ProviderEvent, TextDelta
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder

END = chunk({}, "tool_calls")
F = [("a", "f", {"x": 1})]
BOTH = [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]


def entries(*fragments: Chunk) -> list[Chunk]:
    return [*map(call, fragments), END]


CALLS: dict[str, tuple[list[Chunk], list[Any]]] = {
    # Ids: a fragment without a name begins no call where one is open.
    "two ids for each call (poolsideai/pool#9)": (
        entries(fragment(0, "", "a", "f"), fragment(0, '{"x"', "A"), fragment(0, ":1}", "A")),
        F,
    ),
    "a new id in each chunk (BerriAI/litellm#28223, OCI)": (
        entries(fragment(0, "", "a", "f"), fragment(0, '{"x"', "i2"), fragment(0, ":1}", "i3")),
        F,
    ),
    "the same, without an index": (
        entries(fragment(None, "", "a", "f"), fragment(None, '{"x"', "i2"), fragment(None, ":1}", "i3")),
        F,
    ),
    "the same, at indexes that count up": (
        entries(fragment(0, "", "a", "f"), fragment(1, '{"x"', "i2"), fragment(2, ":1}", "i3")),
        F,
    ),
    "the same, of two calls in turns": (
        entries(
            fragment(0, "", "a", "f"), fragment(1, "", "b", "g"), fragment(0, '{"x"', "i2"),
            fragment(1, '{"y"', "i3"), fragment(0, ":1}", "i4"), fragment(1, ":2}", "i5"),
        ),
        BOTH,
    ),
    "two ids for each call, of two calls at one index in turns": (
        entries(
            fragment(0, "", "a", "f"), fragment(0, '{"x"', "A"), fragment(0, "", "b", "g"),
            fragment(0, '{"y"', "B"), fragment(0, ":1}", "A"), fragment(0, ":2}", "B"),
        ),
        BOTH,
    ),
    "a new id behind the finish reason, of a call without arguments": (
        [call(fragment(0, "", "a", "f")), END, call(fragment(0, '{"x":1}', "A"))],
        F,
    ),
    # Indexes: an impossible one is none, and a whole number is one.
    "an index of -1 (zai-org/GLM-4.5#17)": (
        entries(fragment(-1, '{"x"', "a", "f"), fragment(-1, ":1}"), fragment(-1, '{"y":2}', "b", "g")),
        BOTH,
    ),
    "an index as a text": (
        entries(fragment("0", '{"x"', "a", "f"), fragment("1", '{"y"', "b", "g"), fragment("0", ":1}"), fragment(1, ":2}")),
        BOTH,
    ),
    "an index of -1 as a text": (entries(fragment("-1", '{"x"', "a", "f"), fragment("-1", ":1}")), F),
    "an index as a float": (
        entries(fragment(0.0, '{"x"', "a", "f"), fragment(1.0, '{"y":2}', "b", "g"), fragment(0, ":1}")),
        BOTH,
    ),
    # Arguments that come twice.
    "whole again at the end (vllm-project/vllm#51697)": (
        entries(fragment(0, "", "a", "f"), fragment(0, '{"x"'), fragment(0, ":1}"), fragment(0, '{"x": 1}', "a", "f")),
        F,
    ),
    "whole again at the end, in two pieces (sst/opencodex#361)": (
        entries(fragment(0, '{"x": 1', "a", "f"), fragment(0, "}"), fragment(0, '{"x"'), fragment(0, ":1}")),
        F,
    ),
    "whole again with the finish reason": ([call(fragment(0, '{"x":1}', "a", "f")), call(fragment(0, '{"x":1}'), finish="tool_calls")], F),
    "whole again behind the finish reason": ([*entries(fragment(0, '{"x":1}', "a", "f")), call(fragment(0, '{"x": 1}', "a"))], F),
    "a placeholder in front (envoyproxy/ai-gateway#1465)": (
        entries(fragment(0, "{}", "a", "f"), fragment(0, '{"x"'), fragment(0, ":1}")),
        F,
    ),
    "a placeholder in front, with the name again": (entries(fragment(0, "{}", "a", "f"), fragment(0, '{"x":1}', "a", "f")), F),
    "null in front": (entries(fragment(0, "null", "a", "f"), fragment(0, '{"x":1}')), F),
    "a placeholder behind": (entries(fragment(0, '{"x":1}', "a", "f"), fragment(0, "{}")), F),
    "cumulative (NousResearch/hermes-agent#35592)": (
        entries(fragment(0, '{"x"', "a", "f"), fragment(0, '{"x":1', "a", "f"), fragment(0, '{"x":1}', "a", "f")),
        F,
    ),
    "cumulative, cut where an object may begin": (entries(fragment(0, '{"x":', "a", "f"), fragment(0, '{"x":1}')), F),
    "cumulative, of two calls in turns": (
        entries(fragment(0, '{"x"', "a", "f"), fragment(1, '{"y":', "b", "g"), fragment(0, '{"x":1}'), fragment(1, '{"y":2}')),
        BOTH,
    ),
    "cumulative, closed each time": (
        entries(fragment(0, "{}", "a", "f"), fragment(0, '{"x":"p"}'), fragment(0, '{"x":"pq"}'), fragment(0, '{"x":"pq","y":[1]}')),
        [("a", "f", {"x": "pq", "y": [1]})],
    ),
    "cumulative objects": (entries(fragment(0, {"w": 0}, "a", "f"), fragment(0, {"w": 0, "x": 1}, "a", "f")), [("a", "f", {"w": 0, "x": 1})]),
    "an object, then its text": (entries(fragment(0, {"x": 1}, "a", "f"), fragment(0, '{"x":1}')), F),
    # Another whole object under a name is another call.
    "two calls without ids at index 0 (su-kaka/gcli2api#406, NousResearch/hermes-agent#62937)": (
        entries(fragment(0, '{"x":1}', None, "f"), fragment(0, '{"x":2}', None, "f"), fragment(0, '{"x":2,"y":3}', None, "f")),
        [("c1-0-0", "f", {"x": 1}), ("c1-0-1", "f", {"x": 2}), ("c1-0-2", "f", {"x": 2, "y": 3})],
    ),
    "the same, in pieces": (
        entries(
            fragment(0, "", None, "f"), fragment(0, '{"x":'), fragment(0, "1}"),
            fragment(0, "", None, "f"), fragment(0, '{"x":'), fragment(0, "2}"),
        ),
        [("c1-0-0", "f", {"x": 1}), ("c1-0-1", "f", {"x": 2})],
    ),
    "the same, as objects without an index": (
        entries(fragment(None, {"x": 1}, None, "f"), fragment(None, {"x": 2}, None, "f")),
        [("c1-0-0", "f", {"x": 1}), ("c1-0-1", "f", {"x": 2})],
    ),
    "one id for two calls": (entries(fragment(0, '{"x":1}', "a", "f"), fragment(0, '{"x":2}', "a", "f")), [*F, ("a-2", "f", {"x": 2})]),
    "one id for two tools": (entries(fragment(0, '{"x":1}', "a", "f"), fragment(0, '{"y":2}', "a", "g")), [*F, ("a-2", "g", {"y": 2})]),
}  # fmt: skip


@pytest.mark.parametrize(
    ("wire_format", "options"),
    [("openai-chat", {}), ("mistral", {}), ("openai-chat", {"cumulative": "auto"})],
)
@pytest.mark.parametrize(("chunks", "meant"), CALLS.values(), ids=CALLS)
def test_the_calls_that_are_meant_are_read(
    chunks: list[Chunk], meant: list[Any], wire_format: str, options: dict[str, Any]
) -> None:
    decoder = rd.providers.decoder(wire_format, **options)
    found = [event for one in chunks for event in decoder.decode(one)] + [*decoder.close()]
    message = fold(found)
    assert (violations(found), calls(message), message.invalid_tool_calls) == ([], meant, ())
    assert message.finish_reason == "tool_use"


def test_arguments_that_contradict_each_other_are_kept_and_the_call_is_invalid() -> None:
    for again in ([fragment(0, '{"y":2}')], [fragment(0, '{"y"', "B"), fragment(0, ":2}", "C")]):
        message = reply(*entries(fragment(0, '{"x":1}', "a", "f"), *again))
        assert message.tool_calls == ()
        assert [bad.arguments for bad in message.invalid_tool_calls] == ['{"x":1}{"y":2}']


def test_a_second_call_that_is_cut_off_leaves_the_first_one_whole() -> None:
    message = reply(
        call(fragment(0, '{"x":1}', None, "f")), call(fragment(0, '{"x":', None, "f")), chunk({}, "length")
    )
    assert [each.arguments for each in message.tool_calls] == [{"x": 1}]
    assert [bad.arguments for bad in message.invalid_tool_calls] == ['{"x":']


@pytest.mark.parametrize("index", [2**31, "9" * 5000, 1e300])
def test_a_huge_index_is_refused_by_the_limit(index: Any) -> None:
    for bad in (call(fragment(index)), text("a", index=index)):
        with pytest.raises(rd.errors.LimitExceededError):
            OpenAIChatDecoder().decode(bad)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["{", '{"', '{"a":']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3) | st.just("{"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
OBJECT = st.dictionaries(st.sampled_from(["a", "{", "b", ""]) | st.text(max_size=3), JSON, max_size=4)


def cut(said: str, places: list[int]) -> list[str]:
    ends = [0, *sorted(place % (len(said) + 1) for place in places), len(said)]
    return [said[start:end] for start, end in pairwise(ends)]


def arguments_of(pieces: list[str]) -> Any:
    (one,) = reply(
        call(fragment(0, "", "a", "f")), *(call(fragment(0, piece)) for piece in pieces), END
    ).tool_calls
    return one.arguments  # fmt: skip


@given(said=OBJECT, places=st.lists(st.integers(0, 99), max_size=8), indent=st.sampled_from([None, 1]))
@example(said={"{": 1}, places=[2], indent=None)
@example(said={"a": {"a": {"a": 1}}}, places=[6, 12], indent=None)
@example(said={"a": [{"a": [{}]}]}, places=[7, 14], indent=None)
@example(said={"code": '{"code": "x"}'}, places=[10, 11], indent=None)
def test_arguments_are_read_however_they_are_cut_and_whether_or_not_they_come_twice(
    said: dict[str, Any], places: list[int], indent: int | None
) -> None:
    whole = json.dumps(said, ensure_ascii=False)
    pieces = cut(whole, places)
    assert arguments_of(pieces) == said
    assert arguments_of([*pieces, json.dumps(said, indent=indent)]) == said
    assert arguments_of([*pieces, *cut(json.dumps(said, indent=indent), places[::2])]) == said
    assert arguments_of(["{}", *pieces]) == said


@given(said=OBJECT, places=st.lists(st.integers(1, 99), min_size=1, max_size=8))
def test_cumulative_arguments_are_read_once(said: dict[str, Any], places: list[int]) -> None:
    whole = json.dumps(said, ensure_ascii=False)
    ends = sorted({1 + place % len(whole) for place in places})
    assert arguments_of([whole[:1], *(whole[:end] for end in ends), whole]) == said


def test_what_is_said_twice_costs_in_proportion_to_what_is_sent() -> None:
    for pieces in (
        ['{"x": "' + "y" * 2000, *['{"x": "'] * 2000],
        ['{"x": "' + "y" * 2000 + '"}', *["{}", " "] * 2000],
        ['{"x":'] * 4000,
        ['{"x":[', *["{", "}", ","] * 2000],
    ):
        found = decode(*(call(fragment(0, piece, "a", "f")) for piece in pieces))
        told = sum(len(str(event.fields)) for event in of_type(BlockDelta, found))
        assert told <= 2 * sum(map(len, pieces))


# Choices.


def told(*pieces: tuple[int, str], finish: int) -> list[Chunk]:
    return [*(text(piece, index=index) for index, piece in pieces), chunk({}, "stop", index=finish)]


def body(*choices: Chunk) -> list[Chunk]:
    return [{"id": "c1", "object": "chat.completion", "choices": list(choices)}]


def say(
    index: int | None, content: str | None, reason: str | None, *found: Chunk, key: str = "message"
) -> Chunk:
    said = {"role": "assistant", "content": content, **({"tool_calls": list(found)} if found else {})}
    return {"finish_reason": reason, key: said, **({} if index is None else {"index": index})}


CALL = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":1}'}}
HEAD, TAIL = call(fragment(0, '{"x"', "a", "f"), index=1), call(fragment(0, ":1}"), index=1)
FIRST, REST = call(fragment(0, '{"x"', "a", "f")), call(fragment(0, ":1}"))
ENDS = chunk({}, "tool_calls"), chunk({}, "tool_calls", index=1)

CHOICES: dict[str, tuple[list[Chunk], dict[int, tuple[str, int]]]] = {
    # chunks, and for each reply its text and the number of its calls
    "counted chunks (microsoft/foundry-local#144, #221, #263)": (told((0, "a"), (1, "b"), (2, "c"), finish=3), {0: ("abc", 0)}),
    "counted chunks, two": ([text("a"), text("b", "stop", index=1)], {0: ("ab", 0)}),
    "counted chunks, many": (told(*((n, "ab"[n % 2]) for n in range(30)), finish=30), {0: ("ab" * 15, 0)}),
    "counted chunks, the last index twice": (told((0, "a"), *((n, "b") for n in range(1, 12)), finish=11), {0: ("a" + "b" * 11, 0)}),
    "counted chunks, then usage": ([*told((0, "a"), (1, "b"), finish=2), usage()], {0: ("ab", 0)}),
    "counted chunks of a call": (
        [call(fragment(0, '{"x"', "a", "f")), call(fragment(0, ":"), index=1), call(fragment(0, "1}"), index=2), chunk({}, "stop", index=3)],
        {0: ("", 1)},
    ),
    "in turns": ([text("a"), text("x", index=1), text("b"), text("y", index=1), chunk({}, "stop"), chunk({}, "stop", index=1)], {0: ("ab", 0), 1: ("xy", 0)}),
    "three in turns": ([text("a"), text("x", index=1), text("p", index=2), *told((0, "b"), finish=0), *told((1, "y"), finish=1), *told((2, "q"), finish=2)],
                       {0: ("ab", 0), 1: ("xy", 0), 2: ("pq", 0)}),
    "one after the other": ([*told((0, "a"), (0, "b"), finish=0), *told((1, "x"), (1, "y"), finish=1)], {0: ("ab", 0), 1: ("xy", 0)}),
    "one after the other, of one chunk each": ([*told((0, "a"), finish=0), *told((1, "x"), finish=1)], {0: ("a", 0), 1: ("x", 0)}),
    "whole in a chunk each": ([text("a", "stop"), text("x", "stop", index=1), text("p", "stop", index=2)], {0: ("a", 0), 1: ("x", 0), 2: ("p", 0)}),
    "together": ([{"id": "c1", "choices": [say(0, "a", None, key="delta"), say(1, "x", None, key="delta")]},
                  {"id": "c1", "choices": [say(0, "b", "stop", key="delta"), say(1, "y", "stop", key="delta")]}], {0: ("ab", 0), 1: ("xy", 0)}),
    "a body": (body(say(0, "a", "stop"), say(1, "x", "stop")), {0: ("a", 0), 1: ("x", 0)}),
    # Text and calls in two choices.
    "text, then calls (HKUDS/nanobot#1555, ericc-ch/copilot-api#81)": (body(say(0, "t", "tool_calls"), say(1, None, "tool_calls", CALL)), {0: ("t", 1)}),
    "calls, then text": (body(say(0, None, "tool_calls", CALL), say(1, "t", "tool_calls")), {0: ("t", 1)}),
    "calls under the higher index first": (body(say(1, None, "tool_calls", CALL), say(0, "t", "tool_calls")), {0: ("t", 1)}),
    "text under the higher index first": (body(say(1, "t", "tool_calls"), say(0, None, "tool_calls", CALL)), {0: ("t", 1)}),
    "text and calls under one index": (body(say(0, "t", "tool_calls"), say(0, None, "tool_calls", CALL)), {0: ("t", 1)}),
    "text and calls without an index": (body(say(None, "t", "tool_calls"), say(None, None, "tool_calls", CALL)), {0: ("t", 1)}),
    "text, then two choices of calls": (
        body(say(0, "t", "tool_calls"), say(1, None, "tool_calls", CALL), say(2, None, "tool_calls", CALL | {"id": "b"})), {0: ("t", 2)}),
    "text and calls in two bodies' choices that are streamed": ([text("t"), ENDS[0], HEAD, TAIL, ENDS[1]], {0: ("t", 1)}),
    "text and calls in turns": ([text("t"), HEAD, text("u"), TAIL, *ENDS, usage()], {0: ("tu", 1)}),
    "text and calls in turns, behind their roles": ([chunk({"role": "assistant"}), chunk({"role": "assistant"}, index=1), text("t"), HEAD, TAIL, *ENDS], {0: ("t", 1)}),
    "calls, then text, streamed": ([FIRST, REST, ENDS[0], text("t", index=1), text("u", index=1), ENDS[1]], {0: ("tu", 1)}),
    "calls and text in turns": ([FIRST, text("t", index=1), REST, text("u", index=1), ENDS[1], ENDS[0]], {0: ("tu", 1)}),
    "two replies, text and calls": ([text("t"), HEAD, text("u"), TAIL, chunk({}, "stop"), ENDS[1]], {0: ("tu", 0), 1: ("", 1)}),
    "two replies, calls and text": ([FIRST, text("t", index=1), REST, ENDS[0], chunk({}, "stop", index=1)], {0: ("", 1), 1: ("t", 0)}),
    "two replies, calls and calls": ([FIRST, HEAD, REST, TAIL, *ENDS], {0: ("", 1), 1: ("", 1)}),
    "two replies, text and text with calls": (body(say(0, "t", "tool_calls"), say(1, "u", "tool_calls", CALL)), {0: ("t", 0), 1: ("u", 1)}),
    "two replies, text that stops and calls": (body(say(0, "t", "stop"), say(1, None, "tool_calls", CALL)), {0: ("t", 0), 1: ("", 1)}),
    # Indexes.
    "an index as a text or a float (a choice's)": ([text("a", index="0"), text("b", index=0.0), text("c", index=0), chunk({}, "stop", index="0")], {0: ("abc", 0)}),
    "an index of -1 (a choice's)": ([text("a", index=-1), text("b", index="-1"), chunk({}, "stop", index=-1)], {0: ("ab", 0)}),
}  # fmt: skip


@pytest.mark.parametrize(("chunks", "meant"), CHOICES.values(), ids=CHOICES)
def test_the_replies_that_are_meant_are_read(chunks: list[Chunk], meant: dict[int, tuple[str, int]]) -> None:
    found = decode(*chunks)
    assert violations(found) == []
    numbers = {event.choice for event in found if not isinstance(event, ProviderEvent)}
    messages = {number: fold(found, number) for number in sorted(numbers)}
    assert {number: (one.text, len(one.tool_calls)) for number, one in messages.items()} == meant
    assert {one.status for one in messages.values()} == {"complete"}
    assert of_type(ProviderEvent, found) == []


def test_an_index_that_comes_back_behind_counted_chunks_is_an_error() -> None:
    decoder = OpenAIChatDecoder()
    for n in range(20):
        decoder.decode(text("a", index=n))
    with pytest.raises(MalformedChunkError, match="counted up"):
        decoder.decode(text("b", index=3))


def test_a_choice_that_waits_is_checked_when_it_comes_and_is_not_lost_when_the_stream_breaks() -> None:
    decoder = OpenAIChatDecoder()
    decoder.decode(text("a"))
    with pytest.raises(MalformedChunkError):
        decoder.decode(chunk({"content": 5}, index=1))
    assert decoder.close() == []
    found = decode(text("a"), text("x", index=1), chunk({}, error={"message": "m"}))
    assert [(event.choice, event.text) for event in of_type(TextDelta, found)] == [(0, "a"), (1, "x")]


# Fields under other names.


def test_reasoning_of_github_copilot_is_reasoning_and_goes_back() -> None:  # BerriAI/litellm#35021
    message = reply(
        chunk({"reasoning_text": "Let ", "content": None}), chunk({"reasoning_text": "me"}), text("Hi"),
        chunk({"reasoning_opaque": "o1", "content": ""}), text("!", "stop"),
    )  # fmt: skip
    assert (message.reasoning, message.text) == ("Let me", "Hi!")
    request = rd.to_request([message.to_message()], "openai-chat")
    assert request["messages"] == [
        {"role": "assistant", "content": "Hi!", "reasoning_text": "Let me", "reasoning_opaque": "o1"}
    ]
    assert rd.to_request([message.to_message()], "anthropic-messages")["messages"][0]["content"] == [
        {"type": "text", "text": "Hi!"}
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk({"reasoning_text": "r", "reasoning_opaque": "o"}), *entries(fragment(0, '{"x":1}', "a", "f"))],
        [chunk({"reasoning_text": "r"}), call(fragment(0, '{"x":1}', "a", "f"), said={}), chunk({"reasoning_opaque": "o"}, "tool_calls")],
        body({"index": 0, "finish_reason": "tool_calls", "message": {"reasoning_text": "r", "reasoning_opaque": "o", "tool_calls": [CALL]}}),
    ],
)  # fmt: skip
def test_what_signs_the_reasoning_goes_back_wherever_it_came(chunks: list[Chunk]) -> None:
    (sent,) = rd.to_request([reply(*chunks).to_message()], "openai-chat")["messages"]
    assert (sent["reasoning_text"], sent["reasoning_opaque"], len(sent["tool_calls"])) == ("r", "o", 1)
    alone = reply(chunk({"reasoning_opaque": "o"}), chunk({"reasoning_opaque": "o", "content": "Hi"}, "stop"))
    assert shape(alone) == [("reasoning", ""), ("text", "Hi")]
    assert "reasoning_text" not in rd.to_request([alone.to_message()], "openai-chat")["messages"][0]


def test_a_reply_that_stands_in_unknown_fields_alone_is_passed_on() -> None:
    found = decode(chunk({"text": "Hel"}), chunk({"text": "lo"}), chunk({}, "stop"))
    assert [(one.provider, one.payload) for one in of_type(ProviderEvent, found)] == [
        ("openai", {"text": "Hello"})
    ]
    assert fold(found).metadata["text"] == "Hello"
    assert of_type(ProviderEvent, decode(chunk({"text": "a", "content": "a"}, "stop"))) == []


@pytest.mark.parametrize(
    "part",
    [
        {"type": "text", "content": "Hello"}, {"type": "output_text"}, {"type": "refusal", "text": "no"},
        {"type": "thinking", "content": "Hm"}, {"type": "thinking", "thinking": [{"type": "text", "content": "Hm"}]},
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["openai-chat", "mistral"])
def test_a_part_whose_text_has_another_name_is_malformed(part: Chunk, name: str) -> None:
    with pytest.raises(MalformedChunkError, match="content"):
        rd.providers.decoder(name).decode(chunk({"content": [part]}))


def test_an_entry_of_reasoning_whose_text_has_another_name_is_passed_on() -> None:
    entry = {"type": "reasoning.text", "content": "Hm"}
    (one,) = of_type(ProviderEvent, decode(chunk({"reasoning_details": [entry], "content": "a"}, "stop")))
    assert (one.name, one.payload) == ("reasoning_details", entry)


@pytest.mark.parametrize("name", ["args", "input", "parameters"])
@pytest.mark.parametrize("flat", [False, True])
def test_a_call_doesn_t_lose_arguments_under_another_name(name: str, flat: bool) -> None:
    said = {name: '{"x":1}'}
    entry = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", **({} if flat else said)}}
    assert calls(reply(call({**entry, **(said if flat else {})}), END)) == F


def test_a_text_beside_an_empty_delta_is_passed_on() -> None:
    found = decode({"id": "c", "choices": [{"index": 0, "text": "hello", "delta": {}}]}, chunk({}, "stop"))
    (passed,) = of_type(ProviderEvent, found)
    assert passed.payload["choices"][0]["text"] == "hello"


def test_many_replies_in_turns_are_never_taken_for_one_in_silence() -> None:
    said = [{"id": "c", "choices": [{"index": n, "delta": {"content": str(n)}}]} for n in range(12)]
    ends = [{"id": "c", "choices": [{"index": n, "delta": {}, "finish_reason": "stop"}]} for n in range(12)]
    with pytest.raises(MalformedChunkError, match="counted up"):
        decode(*said, *ends)


@pytest.mark.parametrize(("said", "meant"), [('{"x":2}', [*F, ("a-2", "f", {"x": 2})]), ('{"x":1}', F)])
def test_an_id_that_comes_late_takes_no_arguments_to_another_call(said: str, meant: list[Any]) -> None:
    late = [fragment(0, '{"x":1}', "a", "f"), fragment(1, "", None, "f"), fragment(1, said, "a")]
    found = calls(reply(*entries(*late)))
    assert [one[1:] for one in found][: len(meant)] == [one[1:] for one in meant]
    assert {call_id for call_id, *_ in meant} <= {call_id for call_id, *_ in found}
