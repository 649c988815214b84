"""Events as a reply of Ollama's `/api/chat`, rule by rule, and over every recorded reply."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.encoded import encoded
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.formats.usage import completed

ev = rd.events
Json = dict[str, Any]
CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def lines_of(events: Iterable[rd.Event], fails: Exception | None = None, **options: Any) -> list[Any]:
    source = rx.from_iterable([*events])
    if fails is not None:
        source = rx.concat(source, rx.throw(fails))
    options = {"now": lambda: 7.9, **options}
    return source.pipe(encoded(lambda: rd.wire.OllamaEncoder(**options)), ops.to_list()).run()


def said(lines: Iterable[Json]) -> list[Json]:
    """What the messages of the lines have, without what all have."""
    messages = [line["message"] for line in lines if not line["done"]]
    assert all(message["role"] == "assistant" and "content" in message for message in messages)
    return [
        {name: value for name, value in message.items() if name != "role" and value} for message in messages
    ]


def broken(lines: list[Json]) -> list[Json]:
    """What was said in front of an error, and the error."""
    *before, last = lines
    assert not any(line["done"] for line in before)
    assert rd.wire.ollama_chat(lines) == last
    return [*said(before), last]


def text(index: int, *pieces: str, kind: str = "text") -> list[rd.Event]:
    delta = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
    return [
        ev.BlockStart(index, {"type": kind}),
        *(delta(index, one) for one in pieces),
        ev.BlockFinish(index),
    ]


def call(index: int, call_id: str, *pieces: str, name: str = "look") -> list[rd.Event]:
    start = {"type": "tool_call_chunk", "id": call_id, "name": name, "args": ""}
    return [
        ev.BlockStart(index, start),
        *(ev.ToolCallDelta(index, one) for one in pieces),
        ev.BlockFinish(index),
    ]


def asked(number: int, call_id: str, arguments: Json, name: str = "look") -> Json:
    function = {"index": number, "name": name, "arguments": arguments}
    return {"tool_calls": [{"id": call_id, "function": function}]}


START = ev.MessageStart("m1", "small")
SPENT = rd.TokenUsage(3, 5, cache_read_tokens=2, reasoning_tokens=1)
STOP = ev.MessageFinish("stop", usage=SPENT)
CALLS = ev.MessageFinish("tool_use", usage=SPENT)
MASKED = {"error": rd.wire.MASKED}


# The lines.


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("pause", "stop")],
)
def test_the_reason_is_in_ollama_s_words(ours: str, theirs: str) -> None:
    assert lines_of([START, *text(0, "Hi"), ev.MessageFinish(ours)])[-1]["done_reason"] == theirs


def test_model_and_time_are_the_reply_s_own_unless_the_application_names_the_model() -> None:
    own = ev.MessageStart("m1", "small", metadata={"created": 60})
    (line,) = lines_of([own, STOP], model="house")
    assert (line["model"], line["created_at"]) == ("house", "1970-01-01T00:01:00Z")


def test_a_time_that_is_no_date_is_replaced() -> None:
    (line,) = lines_of([ev.MessageStart(metadata={"created": 10**20}), STOP])
    assert (line["model"], line["created_at"]) == ("", "1970-01-01T00:00:07Z")


def test_reasoning_that_is_not_wanted_is_left_out() -> None:
    reply = [START, *text(0, "Hm.", kind="reasoning"), *text(1, "Hi"), STOP]
    assert said(lines_of(reply, reasoning=False)) == [{"content": "Hi"}]


def test_texts_follow_one_another_though_they_overlap() -> None:
    woven: list[rd.Event] = [
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "one "),
        ev.BlockStart(1, {"type": "text"}),
    ]
    more: list[rd.Event] = [
        ev.TextDelta(1, "three"),
        ev.TextDelta(0, "two "),
        ev.BlockFinish(0),
        ev.BlockFinish(1),
    ]
    body = rd.wire.ollama_chat(lines_of([START, *woven, *more, STOP]))
    assert body["message"]["content"] == "one two three"


def test_a_blank_line_separates_the_texts_of_two_messages() -> None:
    first = [START, *text(0, "Hm.", kind="reasoning"), *text(1, "I look."), *call(2, "c1", "{}"), CALLS]
    ran = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "found"))
    second = [ev.MessageStart("m2"), *text(0, "So."), STOP]
    lines = lines_of([*first, ran, *second])
    assert rd.wire.ollama_chat(lines)["message"] == {
        "role": "assistant", "content": "I look.\n\nSo.", "thinking": "Hm."
    }  # fmt: skip
    assert (lines[-1]["prompt_eval_count"], lines[-1]["eval_count"]) == (6, 10)


def test_what_the_format_has_no_place_for_is_left_out() -> None:
    server = {"type": "server_tool_call", "id": "s1", "name": "web_search", "args": {"q": "x"}}
    events: list[rd.Event] = [
        START,
        ev.Custom("status", {"step": 1}),
        ev.ProviderEvent("house", "ping", {}),
        ev.BlockFinish(0, server),
        ev.BlockFinish(1, {"type": "server_tool_result", "tool_call_id": "s1", "output": "found"}),
        ev.BlockFinish(2, {"type": "non_standard", "value": {"type": "new"}}),
        ev.BlockFinish(3, {"type": "video", "url": "https://x.test/a.mp4"}),
        *text(4, "Hi"),
        STOP,
    ]
    assert said(lines_of(events)) == [{"content": "Hi"}]


# Calls.


@pytest.mark.parametrize("arguments", ['{"at": ', "[1, 2", "at=1"])
def test_a_reply_ends_with_an_error_if_a_call_of_the_client_s_can_not_be_read(arguments: str) -> None:
    events = [START, *text(0, "I look."), *call(1, "c1", arguments), CALLS]
    assert broken(lines_of(events, tools=())) == [{"content": "I look."}, MASKED]


def test_a_call_that_the_token_limit_has_cut_is_left_out_and_the_reason_says_so() -> None:
    for tools in (None, ()):
        lines = lines_of([START, *call(1, "c1", '{"at": '), ev.MessageFinish("length")], tools=tools)
        assert said(lines) == []
        assert lines[-1]["done_reason"] == "length"


# Failures.


def test_a_text_that_is_taken_back_breaks_the_reply_off() -> None:
    assert broken(lines_of([START, *text(0, "Hi"), ev.AttemptReset(), START, STOP])) == [
        {"content": "Hi"},
        MASKED,
    ]


def test_a_reply_without_an_end_has_no_whole_body() -> None:
    encoder = rd.wire.OllamaEncoder(now=lambda: 7.0)
    lines = [line for event in [START, *text(0, "Hi")] for line in encoder.encode(event)]
    for unfinished in (lines, []):
        with pytest.raises(rd.InvalidValueError, match="frames: must end as a reply does"):
            rd.wire.ollama_chat(unfinished)


def test_the_whole_body_is_one_last_line() -> None:
    events = [START, *text(0, "Hm.", kind="reasoning"), *text(1, "Hel", "lo"), *call(2, "c1", "{}"), CALLS]
    lines = lines_of(events)
    message = {"role": "assistant", "content": "Hello", "thinking": "Hm.", **asked(0, "c1", {})}
    assert rd.wire.ollama_chat(iter(lines)) == {**lines[-1], "message": message}


# Every recorded reply.


def decoded(wire_format: str, chunks: Iterable[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def folded(events: Iterable[rd.Event]) -> tuple[rd.Snapshot, bool]:
    """The first choice, and whether it ended with an error."""
    fold = rd.Fold(choice=0)
    for event in events:
        try:
            fold.step(event)
        except rd.ProviderError:
            return fold.snapshot, True
    return fold.snapshot, False


def written(events: Sequence[rd.Event], tools: Any) -> list[Json]:
    encoder = rd.wire.OllamaEncoder(now=lambda: 7.0, tools=tools)
    return [*(line for event in events for line in encoder.encode(event)), *encoder.close()]


def carried(reply: rd.Snapshot) -> list[Any]:
    """What Ollama's protocol has a place for."""
    parts = [block for block in reply.blocks if isinstance(block, rd.ContentPart)]
    calls = [block for block in reply.blocks if isinstance(block, rd.ToolCall) and block.type == "tool_call"]
    return [
        "".join(part.text or "" for part in parts if part.type in ("text", "refusal")),
        "".join(part.text or "" for part in parts if part.type == "reasoning"),
        [part.text for part in parts if part.type == "image" and part.text],
        [(one.call_id, one.name, arguments(one)) for one in calls],
    ]


def arguments(call: rd.ToolCall) -> Any:
    given = rd.core.thaw(call.arguments)
    return given if isinstance(given, dict) else {"input": given} if given else {}


@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
@pytest.mark.parametrize(
    "tools", [pytest.param(None, id="held"), pytest.param((), id="streamed", marks=pytest.mark.slow)]
)
def test_a_recorded_reply_comes_back_without_what_the_format_lacks(
    wire_format: str, chunks: list[Any], tools: Any
) -> None:
    events = decoded(wire_format, chunks)
    reply, failed = folded(events)
    lines = written(events, tools)
    assert all(json.loads(rd.wire.ndjson_line(line)) == line for line in lines)
    told, told_failed = folded(decoded("ollama", lines))
    unread = (
        tools is not None
        and reply.finish_reason != "length"
        and any(block.type == "invalid_tool_call" for block in reply.blocks)
    )
    if failed or reply.status == "incomplete" or unread:
        assert told_failed
        assert carried(told)[:2] == carried(reply)[:2]
        return
    assert not told_failed
    assert carried(told) == carried(reply)
    assert told.status == reply.status
    asks, reason = bool(carried(reply)[3]), reply.finish_reason
    told_as = ("tool_use" if asks else "stop") if reason in ("stop", "tool_use", "pause") else reason
    assert told.finish_reason == told_as
    spent = {} if reply.usage is None else completed(reply.usage).billed
    back = {} if told.usage is None else told.usage.billed
    assert all(
        back.get(name) == spent.get(name) for name in ("input_tokens", "output_tokens") if spent.get(name)
    )


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_a_recorded_reply_that_is_cut_anywhere_has_no_end_and_no_call_that_was_open(
    wire_format: str, chunks: list[Any]
) -> None:
    events = [event for event in decoded(wire_format, chunks) if getattr(event, "choice", 0) == 0]
    ends = [at for at, event in enumerate(events) if isinstance(event, (ev.MessageFinish, ev.StreamError))]
    last = min(ends, default=len(events))
    for cut in range(0, last, 1 + last // 20):
        lines = written(events[:cut], ())
        assert "error" in lines[-1]
        assert not any(line["done"] for line in lines[:-1])
        whole = {
            one.call_id
            for one in folded(events[:cut])[0].blocks
            if isinstance(one, rd.ToolCall) and one.type == "tool_call" and not one.open
        }
        told = [one["id"] for line in lines[:-1] for one in line["message"].get("tool_calls", ())]
        assert {*told} <= whole
