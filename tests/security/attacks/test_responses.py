"""Attacks on responses and on what a program says of what came: ids of other streams, keys in errors, lines of the log."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from typing import Any

import pytest
import reactivex as rx
from support.attacks import STEERING, each
from support.front_end_bodies import BEGUN, CHAT, ENDED, RUN, UI, call_part
from support.loops import run

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

IDS: dict[str, bytes] = {
    "nothing that is one": b"x",
    "zero": b"0",
    "nought of nought": b"0-0",
    "a sign": b"-1",
    "plus": b"+1-1",
    "the newest, in Redis' words": b"$",
    "all, in Redis' words": b"-",
    "the last, in Redis' words": b"+",
    "new ones, in Redis' words": b">",
    "a star": b"*",
    "an open interval": b"(1-1",
    "a path": b"../yours",
    "an encoded path": b"..%2fyours",
    "an SQL statement": b"' OR 1=1 --",
    "a command": b"1-1\tFLUSHALL",
    "NUL": b"1-1\0",
    "ESC": b"\x1b[2J",
    "C1 and letters of Latin-1": b"\x9b2J\xff\xfe",
    "a number of 5,000 digits": b"9" * 5_000,
    "a number of 5,000 digits behind a hyphen": b"1-" + b"9" * 5_000,
    "a megabyte": b"a" * 1_000_000,
    "2^64": b"18446744073709551616-0",
    "a point": b"1.0-1",
    "an exponent": b"1e3-1",
    "hexadecimal": b"0x1-0x1",
    "an underscore": b"1_0-1",
    "other digits": "\u0661-\u0661".encode(),
    "None": b"None",
    "JSON": b'{"id":"1-1"}',
    "a space in front": b" 1-1",
}


async def got(relay: Relay, last: list[bytes], method: str = "GET") -> tuple[int, bytes, dict[bytes, bytes]]:
    from rxdelta.asgi import RelayResponse

    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    headers = [(b"last-event-id", one) for one in last]
    scope = {"type": "http", "method": method, "headers": headers}
    await RelayResponse(relay, "mine", rd.to_ai_sdk())(scope, asyncio.Event().wait, send)
    body = b"".join(message.get("body", b"") for message in messages)
    return messages[0]["status"], body, dict(messages[0]["headers"])


@each(IDS)
def test_an_id_that_is_none_of_this_stream_is_refused_and_not_repeated(row: bytes) -> None:
    pytest.importorskip("starlette")

    async def main() -> None:
        async with Relay.open() as relay:
            for name in ("mine", "yours"):
                await relay.start(name, rx.from_iterable([*BEGUN, ev.TextDelta(0, name), *ENDED]))
            for method in ("GET", "HEAD"):
                status, body, headers = await got(relay, [row], method)
                assert status == 400
                assert row not in body or len(row) == 1
                assert row not in str(headers).encode() or len(row) < 3
                assert b"yours" not in body
            status, body, _ = await got(relay, [])
            assert (status, b"mine" in body) == (200, True)

    run(main)


CHANGED = {
    "in capitals": lambda own: own.upper() if own.upper() != own else f"{own}A",
    "a nought in front": lambda own: f"0{own}",
    "a nought behind": lambda own: f"{own}0",
    "a space behind": lambda own: f"{own} ",
    "a tab in front": lambda own: f"\t{own}",
    "a half of it": lambda own: own[: len(own) // 2],
    "twice": lambda own: f"{own},{own}",
    "in quotes": lambda own: f'"{own}"',
    "of a later entry that isn't": lambda own: f"{own.rpartition('-')[0]}-999999",
    "encoded": lambda own: own.replace("-", "%2d"),
    "with NUL": lambda own: f"{own}\0",
}


@each(CHANGED)
def test_an_id_that_is_nearly_one_is_none(row: Any) -> None:
    pytest.importorskip("starlette")

    async def main() -> None:
        async with Relay.open() as relay:
            await relay.start("mine", rx.from_iterable([*BEGUN, ev.TextDelta(0, "mine"), *ENDED]))
            ids = [entry.id async for entry in rd.iterate(relay.entries("mine"))]
            status, _, _ = await got(relay, [row(ids[0]).encode()])
            assert status == 400

    run(main)


# Keys in what an error quotes: the shapes of tests/core/test_redact.py are others.

KEY = "sk-proj-0123456789abcdef0123456789abcdef"
WORD = "hunter2"
QUOTED: dict[str, Any] = {
    "a header in a list": [["authorization", f"Bearer {KEY}"]],
    "a header in bytes": {"headers": {"Authorization": f"Bearer {KEY}".encode()}},
    "a URL with a key": f"https://api.example/v1?key={WORD}&alt=sse",
    "a URL with a password": f"postgres://user:{WORD}@db.example/x",
    "a URL with a token behind #": f"https://x.example/#access_token={WORD}",
    "an encoded URL": f"https://x.example/?api_key%3D{KEY}",
    "a key in JSON in JSON": json.dumps({"body": json.dumps({"api_key": WORD})}),
    "a key three deep in JSON": json.dumps(json.dumps(json.dumps({"api_key": WORD}))),
    "a key in Base64": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "a key in Base64 of URLs": base64.urlsafe_b64encode(f'{{"key": "{KEY}"}}'.encode()).decode(),
    "a key in hexadecimal": KEY.encode().hex(),
    "Basic": f"Authorization: Basic {base64.b64encode(b'user:hunter2').decode()}",
    "a cookie": {"headers": {"cookie": f"session={WORD}; a={WORD}"}},
    "a form": f"grant_type=x&client_secret={WORD}&code=1",
    "a command": f"curl -H 'X-Api-Key: {WORD}' https://x.example",
    "an environment": f"OPENAI_API_KEY={KEY}\nHOME=/root",
    "a YAML": f"api_key: {WORD}\nmodel: x",
    "a traceback": f"headers={{'x-api-key': '{WORD}'}}",
    "a key at the cut": "a" * 185 + f" {KEY}",
    "a key behind the cut": "a" * 250 + f" {KEY}",
    "a key with ESC in front": f"\x1b[31m{KEY}",
}


@each(QUOTED)
def test_an_error_that_quotes_it_keeps_the_key_back(row: Any) -> None:
    readers: list[Any] = [
        lambda: rd.from_ai_sdk([row]),
        lambda: rd.from_ag_ui({**RUN, "messages": row}),
        lambda: rd.requests.from_openai_chat([{"role": row, "content": "x"}]),
        lambda: rd.requests.from_openai_responses({"input": [{"type": row}]}),
        lambda: rd.requests.from_anthropic_messages({"messages": [{"role": row, "content": "x"}]}),
        lambda: rd.requests.from_ollama([{"role": row, "content": "x"}]),
        lambda: rd.Message.from_dict({"role": row}),
        lambda: rx.of({"choices": row}).pipe(rd.decode("openai-chat")).run(),
        lambda: rx.of({"type": "message_start", "message": row}).pipe(rd.decode("anthropic-messages")).run(),
        lambda: rx.of(f"data: {row!r} no JSON\n\n".encode()).pipe(rd.parse_sse()).run(),
        lambda: rx.of(f"{{{row!r} no JSON\n".encode()).pipe(rd.parse_ndjson()).run(),
    ]
    errors: list[str] = []
    for read in readers:
        try:
            read()
        except rd.RxDeltaError as error:
            errors.append(str(error))
    assert len(errors) >= 8  # a text may be a type or a value that is read
    for said in errors:
        assert WORD not in said
        assert KEY[8:24] not in said
        assert base64.b64encode(KEY.encode()).decode()[6:20] not in said
        assert KEY.encode().hex()[16:40] not in said
        assert not STEERING.search(said)
        assert "\n" not in said


@each({name: row for name, row in QUOTED.items() if isinstance(row, str)})
def test_an_error_of_chunks_that_come_letter_by_letter_keeps_the_key_back(row: str) -> None:
    bytes_of = f"data: {row!r} no JSON\n\n".encode()
    with pytest.raises(rd.RxDeltaError) as caught:
        rx.from_iterable([bytes([one]) for one in bytes_of]).pipe(rd.parse_sse()).run()
    assert WORD not in str(caught.value)
    assert KEY[8:24] not in str(caught.value)


# Lines of the log.

STEERS: dict[str, str] = {
    "a line of its own": "pay\nERROR root:owned",
    "CR": "pay\rowned",
    "ESC": "\x1b[2J\x1b]0;owned\x07",
    "C1": "\x9b2J",
    "backspaces": "pay\x08\x08\x08",
    "the direction": "\u202eyap",
    "a line of Unicode's": "pay\u2028owned\x85owned",
    "a format": "%s %n %(owned)s {0}",
    "NUL": "pay\0",
    "half a pair": "pay\ud83d",
    "long": "p" * 100_000,
}


def asked(name: str, call_id: str, arguments: Any) -> list[rd.Event]:
    call = {"type": "tool_call", "id": call_id, "name": name, "args": arguments}
    return [ev.MessageStart(call_id), ev.BlockStart(0, call), ev.BlockFinish(0), ev.MessageFinish("tool_use")]


@each(STEERS)
def test_a_name_of_a_model_s_or_a_tool_s_is_one_line_of_the_log(
    row: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    def pay(n: int) -> Any:
        return {n}  # no JSON

    def fail(**_: Any) -> Any:
        raise RuntimeError("no")

    def ask(call: Any, **more: Any) -> Any:
        raise RuntimeError("no")

    told = [
        (asked("nothing" + row, row, {}), {"pay": pay}, None),
        (asked(row, row, {"n": 1}), {row: pay}, None),
        (asked(row, row, {row: 1}), {row: pay}, None),
        (asked(row, row, {"n": 1}), {row: fail}, None),
        (asked(row, row, {"n": 1}), {row: pay}, ask),
        (asked(row, row, {"n": 1})[1:], {}, None),
    ]
    for events, tools, approve in told:
        pipeline = rx.from_iterable(events).pipe(rd.run_tools(tools, approve=approve), rd.scan_deltas())
        pipeline.subscribe(on_error=lambda _: None)
    assert caplog.records
    for record in caplog.records:
        line = record.getMessage()
        assert not STEERING.search(line)
        assert "\n" not in line


# Answers for calls: only the id itself is the id.

ALIKE: dict[str, str] = {
    "in capitals": "C1",
    "a space behind": "c1 ",
    "a space in front": " c1",
    "a line end": "c1\n",
    "NUL": "c1\0",
    "a wide letter": "\uff431",
    "a letter of Cyrillic": "\u04411",
    "nothing wide in it": "c\u200b1",
    "a hyphen that is soft": "c\u00ad1",
    "another digit": "c\u0661",
    "a combining mark": "c1\u0301",
    "a slash": "c1/",
    "the id of its second": "c1-2",
    "a name of Python's": "__class__",
    "nothing": "",
    "half a pair": "c1\ud83d",
}


@each(ALIKE)
def test_an_answer_for_an_id_that_looks_alike_allows_nothing(row: str) -> None:
    paid: list[int] = []
    (stored,) = rd.from_ai_sdk([{"id": "m", "role": "assistant", "parts": [call_part("input-available")]}])
    waiting = rx.from_iterable(rd.to_events(stored)).pipe(
        rd.run_tools({"pay": paid.append}, approve=lambda _: None), rd.scan_deltas(), rd.to_message()
    )
    message = waiting.run()
    part = call_part("approval-responded", row, approval={"id": row, "approved": True})
    resume = [{"interruptId": row, "status": "resolved", "payload": {"approved": True}}]
    for read in (
        lambda: rd.requests.approvals_from_ai_sdk([{"id": "m", "role": "assistant", "parts": [part]}]),
        lambda: rd.requests.approvals_from_ag_ui({**RUN, "resume": resume}),
    ):
        try:
            answers = read()
        except rd.InvalidValueError:
            continue
        rx.from_iterable(rd.to_events(message)).pipe(
            rd.run_tools({"pay": paid.append}, approve=answers)
        ).subscribe()
    assert paid == []


KEYS = [
    "__proto__",
    "__class__",
    "constructor",
    "self",
    "\0",
    "\ud83d",
    "a" * 100_000,
    "type\n",
    "\x1b[2J\u202e",
]


@each({"UI messages": UI, "a run": RUN, "chat messages": CHAT})
def test_keys_that_nobody_knows_do_nothing(row: Any) -> None:
    """They stand in every object of a browser's body, and change nothing of what is read of it."""

    def spoilt(value: Any) -> Any:
        if isinstance(value, list):
            return [spoilt(one) for one in value]
        if not isinstance(value, dict) or "n" in value:  # arguments, which are the tool's
            return value
        return {
            **{name: spoilt(one) for name, one in value.items()},
            **{key: {"type": "owned"} for key in KEYS},
        }

    read: Any = {id(UI): rd.from_ai_sdk, id(RUN): rd.from_ag_ui}.get(id(row), rd.requests.from_openai_chat)
    for one, other in zip(read(row), read(spoilt(row)), strict=True):
        assert (one.role, one.text) == (other.role, other.text)
        calls, others = (
            [(c.call_id, c.name, c.arguments, c.result) for c in m.tool_calls] for m in (one, other)
        )
        assert calls == others


@each(STEERS)
def test_an_error_names_what_is_there_on_one_line(row: str) -> None:
    readers: list[Any] = [
        lambda: (
            rx.of({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", row: 1}).pipe(rd.decode("ag-ui")).run()
        ),
        lambda: rx.of({row: row, f"{row}2": 1}).pipe(rd.decode("auto")).run(),
        lambda: rx.of({"type": row, row: 1}).pipe(rd.decode("auto")).run(),
        lambda: rx.of({"message": {"tool_calls": [{"function": {row: 1}}]}}).pipe(rd.decode("ollama")).run(),
        lambda: rd.from_ai_sdk(
            [{"id": "1", "role": "user", "parts": [{"type": "file", "mediaType": "a/b", row: 1}]}]
        ),
        lambda: rd.decode(row),
        lambda: rd.run_tools({row: 3}),  # type: ignore[dict-item]
    ]
    for read in readers:
        with pytest.raises(rd.RxDeltaError) as caught:
            read()
        said = str(caught.value)
        assert not STEERING.search(said)
        assert "\n" not in said
        assert len(said) < 3_000
