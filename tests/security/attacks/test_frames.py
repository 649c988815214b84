"""Attacks on the frames of a response: texts that would end a frame, begin another, or be read as something else.

Each row is a text that stands in every place of a reply. Every protocol's body is read in the ways in which clients read
it, and must be the frames of a harmless reply: as many of the same kinds, in the same order, each with its text.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import reactivex as rx
from support.attacks import TEXTS, each
from support.front_end_bodies import ENCODERS, shown, to_each

import rxdelta as rd
from rxdelta.core import clean_text as clean

ev = rd.events

Pairs = list[tuple[str, str]]


def told(text: str) -> list[rd.Event]:
    """A reply that has a text in every place that a model, a tool or an application decides."""
    name = text or "x"
    call = {"type": "tool_call", "id": f"c{text}", "name": name, "args": {name: text}}
    chunk = {"type": "tool_call_chunk", "id": f"d{text}", "name": name}
    source = {"type": "url_citation", "title": text, "url": text, "cited_text": text}
    return [
        ev.MessageStart(text, text, metadata={name: text}),
        ev.Custom(name, {name: text}, text),
        ev.BlockStart(0, {"type": "reasoning", "reasoning": f"a{text}", "signature": text}),
        ev.ReasoningDelta(0, text),
        ev.BlockFinish(0),
        ev.BlockStart(1, {"type": "text", "text": f"b{text}"}),
        ev.TextDelta(1, f"{text}z"),
        ev.BlockDelta(1, {"citations": [source]}),
        ev.BlockFinish(1),
        ev.BlockStart(2, call),
        ev.BlockFinish(2),
        ev.BlockStart(3, chunk),
        ev.ToolCallDelta(3, json.dumps({name: text}, ensure_ascii=False)),
        ev.BlockFinish(3),
        ev.ProviderEvent(name, name, {name: text}),
        ev.UsageUpdate(rd.TokenUsage(1, 2, {f"k{text}": 3})),
        ev.MessageFinish("tool_use", text),
        ev.ToolUpdate(f"c{text}", "completed", text, rd.ToolResult(f"c{text}", {name: text})),
    ]


def by_the_standard(body: str) -> Iterator[Pairs]:
    """The events of a body as a browser's `EventSource` takes it apart."""
    event: Pairs = []
    for line in re.split("\r\n|\n|\r", body.removeprefix("\ufeff")):
        if not line:
            yield event
            event = []
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            event.append((name, value.removeprefix(" ")))


def by_every_line_end(body: str) -> Iterator[Pairs]:
    """The events as clients in Python read them that take a body's lines from `httpx`, or by `splitlines`."""
    event: Pairs = []
    for line in body.splitlines():
        if not line:
            yield event
            event = []
        else:
            name, _, value = line.partition(":")
            event.append((name, value.removeprefix(" ")))


def by_empty_lines(body: str) -> Iterator[Pairs]:
    """The events as the shortest clients read them: between empty lines, whatever stands in front of `data: `."""
    for frame in re.split("\r\r|\n\n|\r\n\r\n", body):
        name, _, data = frame.partition("data: ")
        yield [*([("event", name[7:].strip())] if name else []), ("data", data)] if frame else []


READERS: dict[str, Callable[[str], Iterator[Pairs]]] = {
    "standard": by_the_standard,
    "every line end": by_every_line_end,
    "empty lines": by_empty_lines,
}


def outlines(body: str, read: Callable[[str], Iterator[Pairs]]) -> list[Any]:
    """Of each event its fields, and of its data the type."""
    found: list[Any] = []
    for event in filter(None, read(body)):
        fields = dict(event)
        data = fields["data"]
        value = data if data == "[DONE]" else json.loads(data)
        kind = (
            value
            if isinstance(value, str)
            else value.get("type") or value.get("object") or value.get("method")
        )
        kind = (
            "data-" if str(kind).startswith("data-") else kind
        )  # by which the AI SDK names an application's data
        found.append(([name for name, _ in event], fields.get("event"), kind))
    return found


HARMLESS = "harmless"
_known: dict[tuple[str, str], list[Any]] = {}


def expected(which: str, reader: str) -> list[Any]:
    if (which, reader) not in _known:
        body = shown(rx.from_iterable(told(HARMLESS)), ENCODERS[which]())
        _known[which, reader] = outlines(body, READERS[reader])
    return _known[which, reader]


def is_as_harmless(found: list[Any], wanted: list[Any], text: str) -> bool:
    """Whether the frames are those of the harmless reply.

    Half a pair waits for its other half, so its frames come later; a blank name is none, so such a call is invalid.
    """
    if text.strip() and text == clean(text):
        return found == wanted
    fields = [one[0] for one in wanted]
    return all(one[0] in fields and one[2] not in ("error", "RUN_ERROR") for one in found)


@each(TEXTS)
@to_each
def test_a_text_stays_in_its_frame_however_the_frames_are_read(which: str, row: str) -> None:
    body = shown(rx.from_iterable(told(row)), ENCODERS[which]())
    assert body.startswith(("data: ", "event: "))
    for reader, read in READERS.items():
        found = outlines(body, read)
        assert is_as_harmless(found, expected(which, reader), row), reader
    if row.strip() and which != "Ollama":
        values = [
            json.loads(dict(event)["data"])
            for event in filter(None, by_the_standard(body))
            if ("data", "[DONE]") not in event
        ]
        text = clean(row)
        assert any(text in one for one in strings(values))


@each(TEXTS)
def test_a_text_stays_in_its_line_of_json(row: str) -> None:
    def lines(text: str) -> list[bytes]:
        pieces: list[bytes] = []
        rx.from_iterable(told(text)).pipe(rd.to_ollama(), rd.to_ndjson()).subscribe(pieces.append)
        return pieces

    body = b"".join(lines(row)).decode()
    kept = [json.loads(line) for line in body.splitlines()]
    assert all(isinstance(one, dict) for one in kept)
    assert [one["done"] for one in kept].count(True) == 1
    if row.strip() and row == clean(row):
        assert len(kept) == len(lines(HARMLESS))
    assert "".join(one["message"].get("content", "") for one in kept) == clean(f"b{row}") + clean(f"{row}z")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        if value[:1] == "{":  # arguments
            try:
                yield from strings(json.loads(value))
            except ValueError:
                return
    elif isinstance(value, dict):
        for name, inside in value.items():
            yield name
            yield from strings(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from strings(inside)


@each(TEXTS)
def test_a_plain_text_is_the_text_and_never_markup(row: str) -> None:
    pytest.importorskip("starlette")
    from rxdelta.asgi import TextResponse

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    response = TextResponse(rx.from_iterable(told(row)))
    asyncio.run(response({"type": "http", "method": "GET", "headers": []}, asyncio.Event().wait, send))
    headers = dict(messages[0]["headers"])
    assert headers[b"content-type"] == b"text/plain; charset=utf-8"
    assert headers[b"x-content-type-options"] == b"nosniff"
    body = b"".join(message.get("body", b"") for message in messages).decode()
    assert body == clean(f"b{row}") + clean(f"{row}z")


MODELS: dict[str, Any] = {
    **{name: text for name, text in TEXTS.items() if name != "long"},
    "a number": 1,
    "a list": ["a"],
    "an object": {"type": "error"},
}
NAMED: dict[str, Callable[[Any], Any]] = {
    "OpenAI": rd.to_openai_chat,
    "OpenAI Responses": rd.to_openai_responses,
    "Anthropic": rd.to_anthropic_messages,
    "Ollama": rd.to_ollama,
}


@each(MODELS)
@pytest.mark.parametrize("which", NAMED)
def test_a_model_that_a_client_names_is_a_text_in_the_frame_or_refused(which: str, row: Any) -> None:
    """A gateway names the model that its client has named."""
    try:
        encode = NAMED[which](row)
    except rd.InvalidValueError:
        assert not isinstance(row, str)
        return
    body = shown(rx.from_iterable(told(HARMLESS)), encode)
    for reader, read in READERS.items():
        assert outlines(body, read) == expected(which, reader), reader
    values = [
        json.loads(dict(event)["data"])
        for event in filter(None, by_the_standard(body))
        if ("data", "[DONE]") not in event
    ]
    assert not any(json.dumps(value).startswith('{"type": "error"') for value in values)


IDS: dict[str, str] = {
    "LF": "7-0\ndata: x",
    "CRLF": "7-0\r\ndata: x",
    "CR": "7-0\rdata: x",
    "NUL": "7-0\0",
    "an empty line": "7-0\n\ndata: x\n\n",
}


@each(IDS)
def test_an_id_that_is_several_lines_is_no_id(row: str) -> None:
    with pytest.raises(rd.InvalidValueError, match="id: must be on one line"):
        rd.wire.sse_frame({"type": "x"}, row)


@each(IDS)
def test_the_name_of_a_frame_is_on_one_line(row: str) -> None:
    with pytest.raises(rd.InvalidValueError, match="on one line"):
        rd.wire.sse_frame(rd.wire.NamedFrame(type=row))
