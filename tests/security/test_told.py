"""What leaves in errors, logs, spans and frames."""

from __future__ import annotations

import json
import logging
import re
import stat
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.front_end_bodies import (
    BEGUN,
    ENCODERS,
    ENDED,
    shown,
    to_each,
)
from support.loops import run
from support.security_page import says

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

SECRET = "hunter2-and-more"


@says("The text of an error reaches no front end", "**Secrets.**")
@to_each
@pytest.mark.parametrize(
    "failure",
    [
        rx.throw(RuntimeError(SECRET)),
        rx.throw(rd.ProviderError(SECRET)),
        rx.of(ev.StreamError(SECRET, SECRET, SECRET)),
    ],
    ids=["exception", "provider", "event"],
)
def test_a_front_end_gets_no_text_of_an_error(
    failure: Any, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = shown(rx.concat(rx.from_iterable(BEGUN), failure), ENCODERS[which]())
    assert SECRET not in told
    assert "An error occurred." in told
    assert SECRET in caplog.text
    assert {record.name for record in caplog.records} == {"rxdelta.wire"}
    assert SECRET not in shown(rx.of(*BEGUN, ev.AttemptReset(1, SECRET), *BEGUN, *ENDED), ENCODERS[which]())


@says("The text of an error reaches no front end", "Your program is trusted")
def test_a_front_end_gets_the_text_that_on_error_chooses() -> None:
    for encode in ENCODERS.values():
        told = shown(
            rx.concat(rx.from_iterable(BEGUN), rx.throw(ValueError())), encode(on_error=lambda _: "Sorry!")
        )
        assert "Sorry!" in told


ASKED: list[rd.Event] = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "pay", "args": {"n": 1}}),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def failing(error: Exception) -> Callable[..., Any]:
    def fail(*_: Any, **__: Any) -> Any:
        raise error

    return fail


@says(
    "The text of a tool's exception",
    "The log `rxdelta` has the exception",
    "The text of an `approve`",
    "**Secrets.**",
)
@to_each
@pytest.mark.parametrize("where", ["tool", "approve"])
def test_the_text_of_an_exception_of_a_tool_stays_here(
    where: str, which: str, caplog: pytest.LogCaptureFixture
) -> None:
    def told_with(error: Exception) -> tuple[str, str]:
        in_tool = {"pay": failing(error)}, None
        tools, approve = in_tool if where == "tool" else ({"pay": lambda n: n}, failing(error))
        running = rx.from_iterable(ASKED).pipe(rd.run_tools(tools, approve=approve))
        message = running.pipe(rd.scan_deltas(), rd.to_message()).run()
        return shown(running, ENCODERS[which]()), json.dumps(rd.to_request([message], "openai-chat"))

    to_page, to_model = told_with(RuntimeError(SECRET))
    assert SECRET not in to_page
    assert SECRET not in to_model
    shows_results = which in ("AI SDK", "AI SDK 5", "AG-UI", "LangChain")
    if where == "tool":
        assert "The tool failed." in to_model
        assert ("The tool failed." in to_page) is shows_results
    else:
        assert "The call was not allowed." in to_model
    assert SECRET in caplog.text
    assert {record.name for record in caplog.records} == {"rxdelta"}
    to_page, to_model = told_with(rd.ToolError("no such room"))
    assert "no such room" in to_model
    assert ("no such room" in to_page) is shows_results


@says("The text of a tool's exception")
def test_the_model_gets_the_text_that_on_error_chooses() -> None:
    tools = {"pay": failing(RuntimeError(SECRET))}
    running = rx.from_iterable(ASKED).pipe(rd.run_tools(tools, on_error=lambda _call, _error: "Try later."))
    message = running.pipe(rd.scan_deltas(), rd.to_message()).run()
    for told in (shown(running, rd.to_ai_sdk()), json.dumps(rd.to_request([message], "openai-chat"))):
        assert "Try later." in told
        assert SECRET not in told


KEY = "sk-live-0123456789abcdef"


@says("An error that quotes what arrived", "characters of a value", "**Secrets.**")
def test_an_error_quotes_little_and_no_secret() -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        rd.from_ai_sdk([f"api_key={KEY} {'and more ' * 100}"])  # type: ignore[list-item]
    assert KEY not in str(caught.value)
    assert "[redacted]" in str(caught.value)
    for secret in (
        f"token={SECRET}",
        f"password: {SECRET}",
        f'{{"access_token": "{SECRET}"}}',
        f"Authorization: Bearer {SECRET}",
        f"https://ann:{SECRET}@host.test/",
        f"see {KEY}",
    ):
        with pytest.raises(rd.InvalidValueError) as quoted:
            rd.from_ai_sdk([secret])  # type: ignore[list-item]
        assert SECRET not in str(quoted.value)
        assert KEY not in str(quoted.value)
    assert len(rd.core.quote("to be " * 1_000)) == 200
    with pytest.raises(rd.errors.MalformedChunkError) as malformed:
        rx.of({"choices": KEY}).pipe(rd.decode("openai-chat")).run()
    assert KEY not in str(malformed.value)


@says("The text of a `ProviderError`")
def test_the_text_of_a_providers_error_is_its_own() -> None:
    wrong = f"the key {KEY} is wrong"
    assert KEY in str(rd.ProviderError(wrong))
    with pytest.raises(rd.ProviderError, match=wrong):
        rx.of({"error": {"message": wrong}}).pipe(rd.decode("openai-chat"), rd.scan_deltas()).run()


PRIVATE = "private-text-of-the-reply"
TALKS: list[rd.Event] = [
    ev.MessageStart("m1", "model", metadata={"note": PRIVATE}),
    ev.BlockStart(0, {"type": "reasoning", "reasoning": PRIVATE}),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "text", "text": PRIVATE}),
    ev.BlockFinish(1),
    ev.BlockStart(2, {"type": "tool_call", "id": "c1", "name": "pay", "args": {"n": PRIVATE}}),
    ev.BlockFinish(2),
    ev.BlockStart(3, {"type": "tool_call", "id": "c2", "name": "nothing", "args": {"n": PRIVATE}}),
    ev.BlockFinish(3),
    ev.MessageFinish("tool_use", usage=rd.TokenUsage(1, 1), metadata={"note": PRIVATE}),
]


@says("The logs have no text")
@to_each
def test_the_logs_have_no_text_of_the_reply(which: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    tools = {"pay": lambda n: f"{n} has been paid"}
    shown(rx.from_iterable(TALKS).pipe(rd.run_tools(tools)), ENCODERS[which]())
    shown(rx.from_iterable(TALKS[:5]), ENCODERS[which]())
    assert "nothing" in caplog.text
    assert PRIVATE not in caplog.text
    for unknown in ("unknown" * 99, KEY):
        call = {"type": "tool_call", "id": "c9", "name": "pay", "args": {"n": 1, unknown: PRIVATE}}
        asked = [
            ev.MessageStart("m1"),
            ev.BlockStart(0, call),
            ev.BlockFinish(0),
            ev.MessageFinish("tool_use"),
        ]
        caplog.clear()
        shown(rx.from_iterable(asked).pipe(rd.run_tools(tools)), ENCODERS[which]())
        assert len(caplog.messages) == 1
        assert len(caplog.messages[0]) < 300
        assert PRIVATE not in caplog.text
        assert KEY not in caplog.text


@says("The logs have no text")
def test_the_logs_have_no_text_of_a_prompt_and_the_id_of_a_stream(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    odd = {"type": "custom", "kind": "x", "providerMetadata": {"rxdelta": {"type": PRIVATE}}}
    said = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": PRIVATE}]},
        {"id": "2", "role": "assistant", "parts": [{"type": "text", "text": PRIVATE}, odd]},
    ]
    rd.to_request(rd.from_ai_sdk(said), "openai-chat")
    rd.to_request(rd.requests.from_openai_chat([{"role": "user", "content": PRIVATE}]), "gemini")

    async def main() -> None:
        failing = rx.concat(rx.from_iterable(TALKS), rx.throw(RuntimeError("the-text-of-an-error")))
        async with Relay.open() as relay:
            await relay.start("chat-of-ann", failing)
            with pytest.raises(rd.StreamInterrupted):
                await rd.for_each(relay.watch("chat-of-ann"), lambda _: None)

    run(main)
    assert "chat-of-ann" in caplog.text
    assert "the-text-of-an-error" in caplog.text
    assert PRIVATE not in caplog.text


@says("A span of `tap_otel`")
def test_a_span_has_no_text_of_the_reply() -> None:
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    spans = memory.InMemorySpanExporter()
    tracers = trace.TracerProvider()
    tracers.add_span_processor(export.SimpleSpanProcessor(spans))
    broken = rx.throw(RuntimeError(f"token={KEY}"))
    for events in (rx.from_iterable(TALKS), rx.concat(rx.from_iterable(TALKS[:4]), broken)):
        running = events.pipe(rd.run_tools({"pay": lambda n: n}))
        running.pipe(rd.tap_otel("openai", tracer_provider=tracers)).subscribe(on_error=lambda _: None)
    told = "".join(span.to_json() for span in spans.get_finished_spans())
    assert PRIVATE not in told
    assert KEY not in told
    for known in (
        "m1",
        "model",
        "tool_use",
        "execute_tool pay",
        "c1",
        "token=[redacted]",
        "gen_ai.usage.input_tokens",
    ):
        assert known in told


SIGNATURE = "signature-of-the-thought"
THOUGHT: list[rd.Event] = [
    ev.MessageStart("m1"),
    ev.BlockStart(0, {"type": "reasoning", "reasoning": PRIVATE, "signature": SIGNATURE}),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "pay", "args": {"n": "for-the-tool"}, "signature": SIGNATURE}),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
    ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "of-the-tool")),
    ev.Custom("note", "of-the-application"),
]  # fmt: skip


@says("A front end gets the reply with", "`reasoning=False` keeps")
@pytest.mark.parametrize("which", ["AI SDK", "AG-UI"])
def test_a_front_end_gets_reasoning_tools_and_your_data_unless_it_should_not(which: str) -> None:
    events = rx.from_iterable(THOUGHT)
    told, kept = shown(events, ENCODERS[which]()), shown(events, ENCODERS[which](reasoning=False))
    for text in ("for-the-tool", "of-the-tool", "of-the-application"):
        assert text in told
        assert text in kept
    for text in (PRIVATE, SIGNATURE):
        assert text in told
        assert text not in kept


@says("`reasoning=False` keeps")
@pytest.mark.parametrize(
    "which", ["AI SDK", "AI SDK 5", "AG-UI", "OpenAI", "OpenAI Responses", "Anthropic", "Ollama"]
)
def test_no_protocol_tells_of_reasoning_that_is_kept_back(which: str) -> None:
    told = shown(rx.from_iterable(THOUGHT), ENCODERS[which](reasoning=False))
    assert PRIVATE not in told
    assert SIGNATURE not in told
    assert told


@says("The metadata of a message reach")
def test_the_metadata_of_a_message_stay_here() -> None:
    said = [*BEGUN, *ENDED]
    said[0] = ev.MessageStart("m1", "model", metadata={"note": PRIVATE})
    said[-1] = ev.MessageFinish("stop", metadata={"more": PRIVATE}, usage=rd.TokenUsage(1, 1))
    for which, encode in ENCODERS.items():
        assert (PRIVATE in shown(rx.from_iterable(said), encode())) == (which == "LangChain")
    told = shown(rx.from_iterable(said), rd.to_ai_sdk())
    for known in ('"model":"model"', '"status":"complete"', '"finishReason":"stop"', '"inputTokens":1'):
        assert known in told
    told = shown(rx.from_iterable(said), ENCODERS["AG-UI"]())
    for known in ('"model":"model"', '"finishReason":"stop"', '"inputTokens":1'):
        assert known in told


@says("A provider's own events reach")
def test_a_providers_own_events_reach_only_who_asks_for_them() -> None:
    note = ev.ProviderEvent("openai", "note", {"text": PRIVATE})
    error = ev.ProviderEvent("openai", "error", {"message": SECRET})
    events = rx.from_iterable([*BEGUN, note, error, *ENDED])
    for which, encode in ENCODERS.items():
        told = shown(events, encode())
        assert (PRIVATE in told) == (which == "LangChain")
        assert SECRET not in told
    assert SECRET in shown(events, ENCODERS["AG-UI"](provider_events=True))


@says("An item that only the provider knows")
def test_an_item_that_only_the_provider_knows_reaches_only_who_asks_for_it() -> None:
    item = {"type": "non_standard", "value": {"type": "mcp_list_tools", "tools": [PRIVATE]}}
    events = rx.from_iterable([*BEGUN, ev.BlockStart(1, item), ev.BlockFinish(1), *ENDED])
    for which, encode in ENCODERS.items():
        assert (PRIVATE in shown(events, encode())) == (which == "LangChain")
    for which in ("AI SDK", "AI SDK 5", "AG-UI"):
        assert PRIVATE in shown(events, ENCODERS[which](provider_items=True))


def test_no_format_tells_a_front_end_of_an_error_by_an_event_of_its_provider() -> None:
    chunks: dict[str, list[Any]] = {
        "openai-chat": [{"error": {"message": SECRET, "failed_generation": SECRET}}],
        "openai-responses": [{"type": "error", "error": {"message": SECRET, "more": SECRET}}],
        "bedrock-converse": [{"modelStreamErrorException": {"message": SECRET, "more": SECRET}}],
        "ollama": [{"error": SECRET, "more": SECRET}],
        "gemini": [{"error": {"message": SECRET, "details": [SECRET]}}],
        "cohere": [{"type": "message-end", "delta": {"finish_reason": "ERROR", "error": SECRET}}],
        "anthropic-messages": [{"type": "error", "error": {"type": "x", "message": SECRET}, "more": SECRET}],
    }
    for wire_format, told in chunks.items():
        events = rx.from_iterable(told).pipe(rd.decode(wire_format))
        for encode in ENCODERS.values():
            assert SECRET not in shown(events, encode()), wire_format


@says("No text can end a frame early", "**Output that acts.**")
@to_each
def test_no_text_leaves_its_frame(which: str) -> None:
    hostile = "a\r\n\r\ndata: [DONE]\n\nevent: x\rid: 7\n\n\u2028\x00\ud83d"
    call = {"type": "tool_call", "id": hostile, "name": hostile, "args": {hostile: hostile}}
    told = [
        ev.MessageStart(hostile, hostile, metadata={hostile: hostile}),
        ev.Custom(hostile, {hostile: hostile}, hostile),
        ev.BlockStart(0, {"type": "text", "text": hostile}),
        ev.TextDelta(0, hostile),
        ev.BlockFinish(0),
        ev.BlockStart(1, call),
        ev.BlockFinish(1),
        ev.MessageFinish("tool_use"),
        ev.ToolUpdate(hostile, "completed", hostile, rd.ToolResult(hostile, {hostile: hostile})),
    ]
    body = shown(rx.from_iterable(told), ENCODERS[which]())
    assert "\r" not in body
    frames = body.removesuffix("\n\n").split("\n\n")
    for frame in frames:
        name, _, data = frame.partition("data: ")
        assert re.fullmatch(r"(event: [a-z_.]+\n)?", name)
        assert re.fullmatch(r".+", data)
        assert data == "[DONE]" or isinstance(json.loads(data), dict)
    assert body.count("data: [DONE]\n\n") <= 1
    if which == "Ollama":  # whose clients read lines
        lines = rx.from_iterable(told).pipe(rd.to_ollama(), rd.to_ndjson(), ops.to_list()).run()
        assert len(lines) > 1
        assert [json.loads(line) for line in lines]
        assert all(re.fullmatch(rb"[^\r\n]+\n", line) for line in lines)


def recorded(path: Path, *values: Any, error: Exception | None = None) -> str:
    """What is in the file of a recording of these values."""
    source = rx.concat(rx.of(*values), rx.throw(error) if error else rx.empty())
    source.pipe(rd.record(path)).subscribe(on_error=lambda _: None)
    return path.read_text("utf-8")


@says("A recording has all of the reply")
@pytest.mark.parametrize(
    "value",
    [
        {"message": {"tool_calls": [{"function": {"arguments": {"password": SECRET}}}]}},
        ev.BlockStart(0, {"type": "tool_call", "id": "c", "name": "f", "args": {"api_key": SECRET}}),
        ev.ToolUpdate("c", "completed", result=rd.ToolResult("c", {"cookie": SECRET})),
        f"password={SECRET}",
    ],
    ids=["a call", "an event", "a result", "a text"],
)
def test_a_recording_keeps_what_was_written_for_its_owner(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "reply.jsonl"
    assert SECRET in recorded(path, value)
    as_bytes = f"data: password={SECRET}\n\n".encode()
    assert b64encode(as_bytes).decode() in recorded(path, as_bytes)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@says("In a recording")
@pytest.mark.parametrize("name", ["api_key", "password", "cookie", "Authorization"])
def test_a_recording_masks_by_names_and_in_errors(tmp_path: Path, name: str) -> None:
    value = {
        "response": {"headers": {name: SECRET}},
        "client": {name: SECRET},
        "settings": [{name: [SECRET, SECRET]}],
    }
    error = RuntimeError(f"401 for https://api.test?api_key={SECRET}")
    text = recorded(tmp_path / "reply.jsonl", value, error=error)
    assert SECRET not in text
    assert text.count("[redacted]") >= 2
