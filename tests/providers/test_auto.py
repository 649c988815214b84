"""What a stream is made of, by its first chunks; and a named format that doesn't fit."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from support.replies import ANTHROPIC, OPENAI
from support.shared import RECORDED, recordings

import rxdelta as rd


def decoded(decoder: rd.providers.Decoder, chunks: list[Any]) -> list[rd.Event]:
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def auto(chunks: list[Any], **options: Any) -> list[rd.Event]:
    return decoded(rd.providers.decoder("auto", **options), chunks)


def named(name: str, chunks: list[Any], **options: Any) -> list[rd.Event]:
    return decoded(rd.providers.decoder(name, **options), chunks)


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(name, case.values[0], id=f"{name}/{case.id}", marks=case.marks)
        for name in RECORDED
        for case in recordings(name)[:2]
    ],
)
def test_a_recording_is_decoded_as_by_its_name(wire_format: str, chunks: list[Any]) -> None:
    assert auto(chunks) == named(wire_format, chunks)


def test_options_go_to_the_format() -> None:
    think = {"id": "c", "choices": [{"index": 0, "delta": {"content": "<think>Hm</think>Hi"}}]}
    events = auto([think], reasoning_tags="think")
    assert events == named("openai-chat", [think], reasoning_tags="think")
    assert any(isinstance(event, rd.events.ReasoningDelta) for event in events)
    whole = [{"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Hel", "Hello")]
    assert auto(whole, cumulative=True) == named("openai-chat", whole, cumulative=True)
    with pytest.raises(rd.InvalidValueError):
        rd.decode("auto", reasoning_tags=[""])
    with pytest.raises(rd.InvalidValueError, match="no option 'speed'"):
        auto(OPENAI, speed=2)


@pytest.mark.parametrize("only", ["openai-chat", lambda: rd.providers.decoder("openai-chat")])
def test_a_format_may_be_known(only: Any) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in OPENAI)
    assert auto([body], only=only) == auto(OPENAI, only=only) == named("openai-chat", OPENAI)
    with pytest.raises(rd.errors.UnknownWireFormatError, match="morse"):
        rd.decode("auto", only="morse")


def test_limits_are_those_of_the_parser_too() -> None:
    body = rx.of(b'data: {"id": "c", "choices": []}\n\n')
    with pytest.raises(rd.errors.LimitExceededError, match="line_bytes"):
        body.pipe(rd.decode("auto"), rd.with_limits(rd.Limits(line_bytes=9))).run()


# A name that doesn't fit.

FIRST = {
    name: next((case.values[0] for case in recordings(name) if not case.marks), None) for name in RECORDED
}
FITS = {  # one is a dialect of the other
    ("openai-chat", "mistral"),
    ("mistral", "openai-chat"),
}


@pytest.mark.parametrize("name", rd.providers.FORMATS)
def test_a_name_that_does_not_fit_says_which_one_does(name: str) -> None:
    for other, chunks in FIRST.items():
        if other == name or chunks is None or _has_error(chunks):
            continue
        if (name, other) in FITS:
            assert named(name, chunks)
            continue
        with pytest.raises(rd.errors.MalformedChunkError) as caught:
            named(name, chunks)
        assert f"decode({name!r}) got a chunk of {other}: use decode({other!r})" in str(caught.value)
        assert caught.value.wire_format == name


def _has_error(chunks: list[Any]) -> bool:
    """Every decoder reports an error that it finds in a chunk, and that explains more."""
    return any("error" in chunk for chunk in chunks)


@pytest.mark.parametrize("name", ["openai-chat", "gemini", "cohere"])
def test_what_comes_before_the_first_chunk_of_the_named_format_is_no_misfit(name: str) -> None:
    chunks = FIRST[name]
    if chunks is None:
        pytest.skip("there is no recording")
    ping = {"type": "ping"}
    events = named(name, [ping] * 3 + chunks)
    assert [event for event in events if not isinstance(event, rd.events.ProviderEvent)] == [
        event for event in named(name, chunks) if not isinstance(event, rd.events.ProviderEvent)
    ]


@pytest.mark.parametrize("name", ["openai-chat", "gemini", "cohere", "anthropic-messages"])
def test_pings_show_no_format_however_many_come(name: str) -> None:
    chunks = FIRST[name]
    if chunks is None:
        pytest.skip("there is no recording")
    events = auto([{"type": "ping"}] * 30 + chunks)
    assert events == auto(chunks)
    assert named(name, [{"type": "ping"}] * 30 + chunks)[-len(events) :] == events


@pytest.mark.parametrize(
    ("chunk", "type_", "message"),
    [
        ({"error": {"message": "Slow down", "type": "rate_limit_error"}}, "rate_limit_error", "Slow down"),
        ({"error": "model not found"}, None, "model not found"),
        ({"throttlingException": {"message": "Slow down"}}, "throttlingException", "Slow down"),
    ],
)
@pytest.mark.parametrize(
    "name", ["anthropic-messages", "cohere", "bedrock-converse", "langchain", "ag-ui", "ai-sdk"]
)
def test_an_error_in_the_form_of_a_gateway_is_that_error(
    name: str, chunk: Any, type_: str | None, message: str
) -> None:
    assert named(name, [chunk]) == [rd.events.StreamError(message, type_)]


STRANGE: dict[str, list[Any]] = {
    "pydantic-ai": [
        {"event_kind": "part_start", "index": 0, "part": {"content": "Hi", "part_kind": "text"}},
        {"event_kind": "part_delta", "index": 0, "delta": {"content_delta": "Hi", "part_delta_kind": "text"}},
    ],
    "opencode": [{"type": "message.part.updated", "properties": {"part": {"type": "text", "text": "Hi"}}}],
    "Codex": [
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "i", "type": "agent_message", "text": "Hi"}},
    ],
    "A2A": [{"jsonrpc": "2.0", "id": "1", "result": {"kind": "status-update", "taskId": "t"}}],
    "ACP": [{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": {}}}],
    "an API's gateway": [{"detail": "Not authenticated"}],
}


@pytest.mark.parametrize("name", rd.providers.FORMATS)
@pytest.mark.parametrize("strange", STRANGE)
def test_a_stream_of_which_nothing_can_be_read_is_an_error(name: str, strange: str) -> None:
    if strange == "an API's gateway" and name in ("anthropic-messages", "mistral", "openai-chat"):
        assert isinstance(named(name, STRANGE[strange])[-1], rd.events.StreamError)
        return
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        named(name, STRANGE[strange])
    first, said = STRANGE[strange][0], str(caught.value)
    assert caught.value.wire_format == name
    assert "known: ag-ui, " in said
    assert strange != "an API's gateway" or "detail='Not authenticated'" in said
    assert all(field in said.partition("seen: ")[2] for field in first)
    if strange == "an API's gateway":
        return
    with pytest.raises(rd.errors.UnknownWireFormatError, match="seen: "):
        auto(STRANGE[strange])


@pytest.mark.parametrize(
    ("name", "chunk"),
    [
        ("openai-responses", {"type": "response.tomorrow"}),
        (
            "anthropic-messages",
            {"type": "content_block_delta", "index": 0, "delta": {"type": "of.tomorrow", "text": "Hi"}},
        ),
    ],
)
def test_chunks_of_a_format_that_begin_no_reply_are_an_error(name: str, chunk: Any) -> None:
    for decode in (auto, partial(named, name)):
        with pytest.raises(
            rd.errors.MalformedChunkError, match=f"as {name}: no chunk begins a reply .seen: .*type="
        ):
            decode([chunk])


def test_a_long_stream_of_another_format_is_refused_before_its_end() -> None:
    decoder = rd.providers.decoder("openai-chat")
    with pytest.raises(rd.errors.MalformedChunkError, match="anthropic-messages"):
        for _ in range(30):
            decoder.decode(ANTHROPIC[0])


# Bytes.

RECORDS: list[Any] = [{"a": 1, "text": "é\n"}, {"b": [2]}, {"c": None}]
SSE = "".join(f"data: {json.dumps(record)}\r\n\r\n" for record in RECORDS)
NDJSON = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in RECORDS)


def parsed(pieces: list[Any]) -> list[Any]:
    parser = rd.providers.AutoParser()
    return [*(chunk for piece in pieces for chunk in parser.feed(piece)), *parser.close()]


@pytest.mark.parametrize(
    "body", [SSE, NDJSON, "\ufeff" + SSE, "\n\n" + NDJSON, ": hi\n\n" + SSE, NDJSON[:-1]]
)
@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_bytes_are_cut_anywhere(body: str, size: int) -> None:
    data = body.encode()
    assert parsed([data[at : at + size] for at in range(0, len(data), size)]) == RECORDS
    assert parsed([body[at : at + size] for at in range(0, len(body), size)]) == RECORDS


@pytest.mark.parametrize("kind", [str, str.encode])
@pytest.mark.parametrize(
    "body",
    [
        SSE.replace("\r", ""),
        NDJSON,
        "event: hi\nid: 3\n" + SSE.replace("\r", ""),
        ": hi\n\n" + SSE.replace("\r", ""),
    ],
)
def test_lines_may_come_without_their_ends(body: str, kind: Any) -> None:
    found = parsed([kind(line) for line in body.split("\n")])
    assert [{name: value for name, value in one.items() if name != "_event"} for one in found] == RECORDS


def test_a_document_of_several_lines_and_a_list_of_chunks() -> None:
    assert parsed([json.dumps(RECORDS, indent=2)]) == RECORDS
    assert parsed([json.dumps(RECORDS)]) == RECORDS
    assert parsed([json.dumps(RECORDS[0], indent=2)]) == RECORDS[:1]
    assert parsed([]) == []


def test_a_record_comes_with_its_last_byte() -> None:
    parser = rd.providers.AutoParser()
    assert parser.feed(b'data: {"a": 1}\n') == []
    assert parser.feed(b"\n") == [{"a": 1}]


@pytest.mark.parametrize("body", ["<html>\n<body>", "Unauthorized", "Hello, you"])
def test_what_is_neither_is_an_error_that_quotes_it(body: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        parsed([body])
    assert body.split("\n")[0] in str(caught.value)


def test_an_object_among_bytes_is_malformed() -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="bytes or text, as before"):
        auto(["{", {"choices": []}])
