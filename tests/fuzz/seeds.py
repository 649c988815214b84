"""What the fuzzing begins with: made at run time from the samples, the written formats, and the recordings where they are."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from formats.anthropic_messages.test_messages import CLAUDE_CODE, SYSTEM
from formats.openai_responses.test_messages import CODEX, PATCH, PATCHED
from fuzz.mutation import lines
from support import front_end_bodies as front
from support.needs import LEFT_OUT
from support.shared import SHARED
from support.small_replies import REPLIES

import rxdelta as rd
from rxdelta.testing import SAMPLES, marbles, open_sample, sample_chunks

__all__ = [
    "BODIES",
    "as_bytes",
    "auto",
    "chunks",
    "events",
    "json_texts",
    "marble_lines",
    "parts",
    "recordings",
    "replies",
    "stored_in_relay",
    "urls",
]

_TESTS = Path(__file__).parent.parent
LONGEST = 3_000
"""Bytes of one seed. Short ones are tried more often, and longer ones have little that is new."""
MOST_RECORDINGS = 24
TELLING = [
    '(think:Let me see)(usage:3,5)(text) Hello_world (call:pay{"n": 1}) (image:aGk=) (custom:note,{"a": 1}) (finish:stop,end_turn)|',
    'Hi (fields:{"citations": [{"type": "url", "url": "https://x/y", "title": "X"}]}) (end) (provider:house,ping,{}) |',
    '(call:add#c1)(args:{"a":)(args:1})(end)(finish:tool_use)(tool:c1,executing)(tool:c1,completed,"ok") |',
    "Hi (error:busy,overloaded_error,529) |",
    "(choice:1)Hi(choice:0)Ho (stop:stopped)/",
    "(run:a/1)Hi (reset:1,busy) Ho |",
    '(call:f{"a": [1, {"b": null}]})(+call:g)(args@1:{})|',
]


@cache
def events() -> tuple[tuple[rd.Event, ...], ...]:
    """Replies as events: those of the lines above, and of the samples."""
    told = [tuple(value for _, kind, value in marbles.parse(line) if kind == "next") for line in TELLING]
    for name in SAMPLES:
        decoder = rd.providers.decoder("auto")
        found = [event for chunk in _sample(name) for event in decoder.decode(chunk)]
        told.append((*found, *decoder.close()))
    return tuple(told)


@cache
def _sample(name: str) -> list[Any]:
    async def read() -> list[Any]:
        return [chunk async for chunk in sample_chunks(name)]

    return asyncio.run(read())


@cache
def chunks(wire_format: str) -> tuple[bytes, ...]:
    """Streams of a format: small ones, what its writer makes, and recordings."""
    found: list[list[Any]] = []
    small = REPLIES.get(wire_format)
    if small is not None:
        ends = small.end(small.stop)
        found += [
            [*small.begin, *small.text, *ends],
            [*small.begin, *small.text, *small.call(1), *small.call(2), *ends],
        ]
        found += [[small.body]] * (small.body is not None)
    for told in events():
        try:
            found.append(rd.wire.write(told, wire_format))
        except rd.RxDeltaError:  # the format can't carry it
            continue
    found += _recorded(wire_format) or [_written_again(one, wire_format) for one in _some_events()]
    return tuple({_short(one): None for one in found if one})


def _short(stream: list[Any]) -> bytes:
    """Its beginning and its end, if it is long: what is between repeats itself."""
    first, last = [*stream], list[Any]()
    made = lines(first)
    while len(made) > LONGEST and len(first) > 1:
        last = [first.pop(), *last][-3:]
        first = first[: max(1, len(first) * 3 // 4)]
        made = lines([*first, *last])
    return made[:LONGEST] if len(made) > 4 * LONGEST else made


def _recorded(wire_format: str) -> list[list[Any]]:
    if "recordings" in LEFT_OUT:
        return []
    paths = sorted((SHARED / "corpus" / "streams" / wire_format).glob("*.jsonl"))
    some = paths[:: max(1, len(paths) // MOST_RECORDINGS)]
    return [[json.loads(line) for line in path.read_text("utf-8").splitlines() if line] for path in some]


@cache
def _some_events() -> tuple[list[rd.Event], ...]:
    found = []
    for wire_format in ("anthropic-messages", "openai-responses"):
        for stream in _recorded(wire_format)[::4]:
            decoder = rd.providers.decoder(wire_format)
            try:
                found.append(
                    [event for chunk in stream for event in decoder.decode(chunk)] + [*decoder.close()]
                )
            except rd.RxDeltaError:
                continue
    return tuple(found)


def _written_again(told: list[rd.Event], wire_format: str) -> list[Any]:
    try:
        return rd.wire.write(told, wire_format)
    except rd.RxDeltaError:
        return []


def _sse(stream: bytes, ends: str = "\n") -> bytes:
    body = b"".join(b"data: " + line + b"\n\n" for line in stream.split(b"\n"))
    return (b": hi\n\nevent: x\nid: 1\n" + body + b"data: [DONE]\n\n").replace(b"\n", ends.encode())


@cache
def as_bytes(framing: str, *, named: bool = False) -> tuple[bytes, ...]:
    """Streams as their bytes, behind the number of their format if that is `named`."""
    found: dict[bytes, None] = {}
    for number, wire_format in enumerate(rd.providers.FORMATS):
        for place, stream in enumerate(chunks(wire_format)[:6]):
            if len(stream) < LONGEST / 2:
                body = _sse(stream, ["\n", "\r\n", "\r"][place % 3]) if framing == "sse" else stream + b"\n"
                found[bytes([number]) * named + body] = None
    extra = [
        b"\xef\xbb\xbfdata: 1\n\n",
        b"data: [DONE]",
        b'{\n"error": {"message": "x"}\n}\n\n',
        b"<html>",
        b"Unauthorized",
        b'[{"a": 1}]\n',
    ]
    return (*found, *(b"\0" * named + one for one in extra))


@cache
def auto() -> tuple[bytes, ...]:
    return (*as_bytes("sse")[::3], *as_bytes("ndjson")[::3], *recordings()[:4])


@cache
def json_texts() -> tuple[bytes, ...]:
    own = [
        '{"city": "Oslo", "days": [1, 2.5e3, -0.0], "a": {"b": [true, false, null, ""]}}',
        '"\\ud83d\\ude00\\u00e9\\n"',
        " [ 1 , { } ] ",
    ]
    own += [
        "1E400",
        "12345678901234567890",
        '{"a": 1, "a": {"b": 2}}',
        '"a\nb"',
        "[" * 210,
        '{"a":' * 12,
        "-",
        "[1,]",
        '"\\u12',
    ]
    return (
        *(one.encode() for one in own),
        *(line for one in chunks("openai-chat")[:4] for line in one.split(b"\n")[:2]),
    )


@cache
def replies() -> tuple[bytes, ...]:
    """Stored replies: at several places of each reply, and at its end."""
    found: dict[bytes, None] = {}
    for told in events():
        fold = rd.Fold(choice=0)
        for place, event in enumerate(told):
            try:
                fold.step(event)
            except rd.RxDeltaError:
                break
            if place % 7 == 3 or place == len(told) - 1:
                found[lines([fold.snapshot.to_dict()])] = None
        try:
            found[lines([fold.snapshot.to_message().to_dict()])] = None
        except rd.RxDeltaError:
            continue
    delta = rd.MessageDelta(
        "Hi",
        [rd.ContentPart("text", "a"), None],
        [rd.ToolCall(call_id="c", name="f", arguments="{")],
        "assistant",
        index=1,
    )
    return (*found, lines([delta.to_dict()]), *_stored("snapshot"), *_stored("message"))


def _stored(kind: str) -> Iterator[bytes]:
    path = _TESTS / "core" / "stored" / "format_1.jsonl"
    for line in path.read_text("utf-8").splitlines():
        found = json.loads(line)
        if found["kind"] == kind:
            yield lines([found["stored"]])


@cache
def stored_events() -> tuple[bytes, ...]:
    own = [lines(event.to_dict() for event in told[:25]) for told in events()]
    return (*own, b"\n".join(_stored("event")))


@cache
def parts() -> tuple[bytes, ...]:
    """The values in replies, and small deltas that go on with one another."""
    blocks: list[Any] = []
    for stored in replies():
        for value in map(json.loads, stored.split(b"\n")):
            blocks += value.get("blocks", [])
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "raw": {"a": {"b": 1}}}
    result = {"content": [{"type": "text", "text": "ok"}], "is_error": True, "metadata": {"a": 1}}
    deltas = [
        {"content": "Hel", "role": "assistant"},
        {"content": [{"type": "text", "text": "lo"}], "index": 1, "usage": usage},
    ]
    calls = [
        {"tool_calls": [{"index": 0, "call_id": "c", "name": "f", "arguments": piece}]}
        for piece in ('{"a"', ": 1}")
    ]
    cited = {"type": "url", "url": "https://x/y", "title": "X", "start_index": 1}
    some = [lines(blocks[at : at + 3]) for at in range(0, len(blocks), 3)]
    return (*dict.fromkeys(some), lines([usage, result, cited]), lines([*deltas, *calls]))


@cache
def recordings() -> tuple[bytes, ...]:
    head = {"rxdelta": "recording", "version": 1}
    end: dict[str, Any] = {"t": 2.5, "end": True}
    ours = {
        "type": "ProviderError",
        "module": "rxdelta",
        "message": "busy",
        "fields": {"code": "529", "transient": True},
    }
    cause = {
        "type": "ConnectionResetError",
        "message": "x",
        "errno": 104,
        "cause": {"type": "ValueError", "message": "y"},
    }
    sdk = {
        "type": "RateLimitError",
        "module": "openai",
        "message": "slow",
        "status_code": 429,
        "headers": {"retry-after": "2"},
    }
    found = [
        lines([head, *({"t": 0.1 * at, "event": event.to_dict()} for at, event in enumerate(told[:12])), end])
        for told in events()[:6]
    ]
    some = [
        {"t": at, "chunk": json.loads(line)} for at, line in enumerate(chunks("openai-chat")[0].split(b"\n"))
    ]
    endings = (end, *({"t": 3, "error": error} for error in (ours, cause, sdk)))
    found += [lines([head, *some, last]) for last in endings]
    mixed = [
        {"t": 0, "text": "Hi"},
        {"t": 1, "bytes": base64.b64encode(b"data: 1\n\n").decode()},
        {"t": 2, "chunk": "[DONE]"},
    ]
    found += [
        lines([head, *mixed, end]) + b"\n",
        lines([head, *mixed]),
        lines([{"rxdelta": "recording", "version": 2}]),
    ]
    for name in SAMPLES:
        with open_sample(name) as file:
            found.append(file.read(LONGEST // 2))
    return tuple(found)


@cache
def stored_in_relay() -> tuple[bytes, ...]:
    pieces = [[0, 0, "Hel"], "lo", [2, 1, "{"], "}", [3, 2, "aGk="], [1, 0, "why"]]
    ours = {
        "error": "ProviderError",
        "text": "busy",
        "fields": {"message": "busy", "code": "529", "transient": True, "type": None},
    }
    own = [
        {"events": pieces, "end": {}},
        {"events": pieces[:1], "count": 1, "end": ours},
        {"events": [], "count": 0, "end": ours, "dead": 2},
    ]
    told = [{"events": [event.to_dict() for event in some[:9]]} for some in events()]
    return (
        lines(own),
        *(lines([one]) for one in told),
        lines([{"events": ["piece"], "end": {**ours, "error": "Unknown"}}]),
    )


@cache
def relay_bytes() -> tuple[bytes, ...]:
    import msgspec

    documents = [json.loads(line)["events"] for one in stored_in_relay() for line in one.split(b"\n")]
    return (
        *(msgspec.msgpack.encode(one) for one in documents),
        *(json.dumps(one).encode() for one in documents[:3]),
        b"\xc1sealed",
        b"{}",
    )


@cache
def marble_lines() -> tuple[bytes, ...]:
    own = [
        "-a--[bc]-|",
        'Hi_there - (2s)[(40ms)Hi (custom:n)]#ValueError("x")',
        "<'text'> <3> (300ms)/",
        "a(1s)b#",
        '("event": 1})',
    ]
    own += ['({"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "x"}})']
    own += [
        '(block@2:{"type": "text"}) (data:aGk=) (end:{"type": "text", "text": "x"}) (start:id,model) "a/b_c"'
    ]
    return tuple(one.encode() for one in (*TELLING, *own))


@cache
def header_texts() -> tuple[bytes, ...]:
    return (
        b"",
        b"@0",
        b"@1",
        b"@3",
        b"@2 ",
        b"0123456789abcdef-1",
        b"0123456789abcdef-0",
        b"x",
        b"@0,@1",
        b"-1",
        b"@09",
        b"\xff",
    )


@cache
def urls() -> tuple[bytes, ...]:
    login = "user:hunter2@"
    own = [
        "sqlite:////tmp/a.db",
        "sqlite:///a%20b.db",
        "sqlite://host/a",
        "sqlite:///:memory:",
        "sqlite:////a?mode=ro",
        "x",
        "://",
        "redis:",
    ]
    own += [
        f"postgresql://{login}host:5432/db?sslmode=require&connect_timeout=3",
        "postgres:///db",
        "postgresql://h1,h2:5433/db",
    ]
    own += [
        f"valkey://{login}host:6379/0",
        f"rediss://{login}[::1]:6380?protocol=3&ssl_cert_reqs=none",
        "valkey+unix:///run/v.sock?db=1",
    ]
    own += [
        f"valkey+sentinel://{login}a,b:26379/main?sentinel_password=x",
        f"redis+cluster://{login}a:1,b:2",
        "valkey+embedded:///x",
    ]
    return tuple(one.encode() for one in own)


_CHAT_BODY = {
    "model": "m",
    "messages": front.CHAT,
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
}
_OLLAMA = [
    {"role": "user", "content": "Hi", "images": ["iVBORw0KGgo="]},
    {"role": "assistant", "content": "Hm.", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
    {"role": "tool", "tool_name": "f", "content": "x"},
]
_CUSTOM = [
    {"type": "custom", "name": "g", "format": {"type": "grammar", "syntax": "lark", "definition": "x"}}
]
BODIES: dict[str, list[Any]] = {
    "ai-sdk": [
        front.UI,
        front.UI[:1],
        [{**front.UI[0], "parts": [front.call_part("input-available", "c9")]}, *front.UI],
    ],
    "ag-ui": [front.RUN, front.RUN["messages"]],
    "openai-chat": [
        front.CHAT,
        _CHAT_BODY,
        [{"role": "system", "content": "x"}, {"role": "user", "content": "Hi", "name": "n"}],
    ],
    "openai-responses": [
        {"model": "m", "instructions": "Hi.", "input": [*CODEX, PATCH, PATCHED], "tools": _CUSTOM},
        {"input": "Hi"},
    ],
    "anthropic-messages": [
        {
            "model": "m",
            "system": SYSTEM,
            "messages": CLAUDE_CODE,
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
        }
    ],
    "ollama": [_OLLAMA],
}
