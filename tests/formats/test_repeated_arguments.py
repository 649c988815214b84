"""Arguments that a server says twice, in each format whose servers are known to."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

import rxdelta as rd
from rxdelta.core import Fold, thaw
from rxdelta.core.events import BlockDelta, ToolCallDelta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rxdelta.core.events import Event


def anthropic(*pieces: str) -> Iterator[dict[str, Any]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    yield {
        "type": "message_start",
        "message": {"id": "m", "role": "assistant", "content": [], "usage": usage},
    }
    call = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    yield {"type": "content_block_start", "index": 0, "content_block": call}
    for piece in pieces:
        delta = {"type": "input_json_delta", "partial_json": piece}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": usage}
    yield {"type": "message_stop"}


def chat(*pieces: str) -> Iterator[dict[str, Any]]:
    head: dict[str, Any] = {"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}
    for entry in (head, *({"index": 0, "function": {"arguments": piece}} for piece in pieces)):
        yield {"id": "m", "choices": [{"index": 0, "delta": {"tool_calls": [entry]}}]}
    yield {"id": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}


FORMATS: dict[str, Callable[..., Iterator[dict[str, Any]]]] = {
    "anthropic-messages": anthropic,
    "openai-chat": chat,
    "mistral": chat,
}

TWICE = {
    "whole again at the end (vllm-project/vllm#51697)": ['{"a"', ": 1}", '{"a": 1}'],
    "written in another way": ['{"a"', ": 1}", ' {"a":1}\n'],
    "in pieces": ['{"a"', ": 1}", '{"a', '":', "1}"],
    "a placeholder in front (envoyproxy/ai-gateway#1465)": ["{}", '{"a"', ": 1}"],
    "a placeholder with a space": ["{ }", " ", '{"a": 1}'],
    "a placeholder behind": ['{"a": 1}', "{}"],
    "cumulative (NousResearch/hermes-agent#35592)": ['{"a"', '{"a": 1', '{"a": 1}'],
    "cumulative from the first letter": [
        "{",
        '{"',
        '{"a',
        '{"a"',
        '{"a":',
        '{"a": 1',
        '{"a": 1}',
        '{"a": 1}',
    ],
    "cumulative behind a colon": ['{"a":', '{"a": 1', '{"a": 1}'],
    "cumulative behind a colon, once": ['{"a":', '{"a": 1}'],
    "cut off, then whole": ['{"a"', '{"a": 1}'],
    "the first words again": ['{"a": 1}', '{"a"'],
    "behind the placeholder, cumulative": ["{}", '{"a"', '{"a": 1}'],
}


def read(wire_format: str, pieces: list[str], **options: Any) -> tuple[list[Event], Any]:
    decoder, fold = rd.providers.decoder(wire_format, **options), Fold()
    found = [event for one in FORMATS[wire_format](*pieces) for event in decoder.decode(one)]
    for event in [*found, *decoder.close()]:
        fold.step(event)
    return found, fold.snapshot


@pytest.mark.parametrize("cumulative", [False, True, "auto"])
@pytest.mark.parametrize("pieces", TWICE.values(), ids=TWICE)
@pytest.mark.parametrize("wire_format", FORMATS)
def test_arguments_that_come_twice_are_those_of_one_call(
    wire_format: str, pieces: list[str], cumulative: Any
) -> None:
    _, message = read(wire_format, pieces, cumulative=cumulative)
    assert [(call.call_id, thaw(call.arguments)) for call in message.tool_calls] == [("a", {"a": 1})]
    assert message.status == "complete"


@pytest.mark.parametrize(
    "pieces",
    [
        ['{"a":', '{"a":', "1}}"], ['{"a": [', '{"a": []}', ', {"a": [2]}]}'], ['{"', '{": 1}'], ['{"a": "', '{b}"}'],
        ['{"a": "\\', '"{', '"}'], ['{"a": "{\\"a\\": ', '{\\"a\\": 1"}'], ['{"a": [{"a": [', '{"a": [{}]}', "]}]}"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("wire_format", FORMATS)
def test_objects_in_objects_and_braces_in_strings_are_no_repetition(
    wire_format: str, pieces: list[str]
) -> None:
    found, message = read(wire_format, pieces)
    assert [thaw(call.arguments) for call in message.tool_calls] == [json.loads("".join(pieces))]
    assert "".join(event.args for event in found if isinstance(event, ToolCallDelta)) == "".join(pieces)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_contradiction_makes_the_call_invalid_and_both_are_kept(wire_format: str) -> None:
    for pieces in (
        ['{"a": 1}', '{"b": 2}'],
        ['{"a": 1}', '{"b"', ": 2}"],
        ['{"b": 1, "a"', '{"a": 1}'],
        ["no", '{"a": 1}'],
    ):
        _, message = read(wire_format, pieces)
        assert message.tool_calls == ()
        assert [call.arguments for call in message.invalid_tool_calls] == ["".join(pieces)]  # fmt: skip


@pytest.mark.parametrize("wire_format", FORMATS)
def test_only_what_is_new_is_told(wire_format: str) -> None:
    found, _ = read(wire_format, ['{"a"', '{"a": 1', '{"a": 1}', '{"a":1}'])
    assert [event.args for event in found if isinstance(event, ToolCallDelta)] == ['{"a"', ": 1", "}"]
    assert not any(isinstance(event, BlockDelta) for event in found)
    found, _ = read(wire_format, ["{}", '{"a"', ": 1}"])
    assert [event.fields for event in found if isinstance(event, BlockDelta)] == [{"args": '{"a"'}]


def test_the_same_arguments_behind_the_end_of_their_call_change_nothing() -> None:
    decoder, fold = rd.providers.decoder("anthropic-messages"), Fold()
    chunks = list(anthropic('{"a": 1}'))
    again = {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "input_json_delta", "partial_json": '{"a":1}'},
    }
    for event in [event for one in [*chunks[:4], again, *chunks[4:]] for event in decoder.decode(one)]:
        fold.step(event)
    assert [thaw(call.arguments) for call in fold.snapshot.tool_calls] == [{"a": 1}]


@pytest.mark.parametrize("wire_format", FORMATS)
@pytest.mark.parametrize("pieces", TWICE.values(), ids=TWICE)
def test_each_piece_says_the_same_in_a_mapping_of_another_kind(wire_format: str, pieces: list[str]) -> None:
    body = ['{"b": "{x', "y {z", " {", '}", "c": [', "{", '"d": {}}], ', '"a": 1}']
    for said in (pieces, [*body, *pieces], [*body, "".join(body)], [" ", *body], ["x{", "{"]):
        chunks = [*FORMATS[wire_format](*said)]
        quickly, slowly = (
            [event for chunk in given for event in decoder.decode(chunk)]
            for decoder, given in (
                (rd.providers.decoder(wire_format), chunks),
                (rd.providers.decoder(wire_format), map(MappingProxyType, chunks)),
            )
        )
        assert quickly == slowly
