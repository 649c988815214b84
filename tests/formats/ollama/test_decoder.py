"""Ollama's own API: what each line becomes, and that nothing else ever comes out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import rxdelta as rd
from rxdelta.core import Fold, MalformedChunkError, ProtocolChecker, Snapshot, ToolCall, thaw
from rxdelta.core.events import (
    BlockFinish,
    BlockStart,
    Event,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
)
from rxdelta.formats.ollama.decoder import OllamaDecoder

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


def test_a_call_without_a_name_is_no_call_to_run() -> None:
    assert (
        calls(reply(chat(tool_calls=[{"function": {"arguments": {}}}]), last()))[0][0] == "invalid_tool_call"
    )


def test_more_of_a_call_than_is_known_is_its_metadata() -> None:
    (call,) = reply(chat(tool_calls=[{"id": "c", "type": "x", "note": 1, **ROLL}]), last()).tool_calls
    assert call.metadata == {"provider_type": "x", "note": 1}


# The end.


def test_logprobs_are_joined() -> None:
    items = [{"token": "H", "logprob": -0.1}, {"token": "i", "logprob": -0.2}]
    lines = [{**chat(content="H"), "logprobs": items[:1]}, {**chat(content="i"), "logprobs": items[1:]}]
    assert thaw(reply(*lines, last()).to_message().metadata)["logprobs"] == items


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


# What isn't known.


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


# The SDK's objects.


def test_the_sdk_s_objects_give_the_same_events_as_dicts() -> None:
    ollama = pytest.importorskip("ollama")
    lines = [*RICH[:4], chat(tool_calls=[ROLL]), RICH[-1]]  # its calls have no ids
    assert decode(*[ollama.ChatResponse(**line) for line in lines]) == decode(*lines)
    lines = [generate("Hi", thinking="Hm"), last(generate(), context=[1, 2])]
    assert decode(*[ollama.GenerateResponse(**line) for line in lines]) == decode(*lines)
