"""Readers of what was stored, recorded or written down: events, replies, recordings, a relay's records, lines of marbles."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import re
import tempfile
from collections.abc import Callable
from functools import cache
from typing import Any

import reactivex as rx
from fuzz.laws import check, or_refused, survives, written
from fuzz.mutation import values

import rxdelta as rd
from rxdelta.asgi import RelayResponse
from rxdelta.recording import read_lines
from rxdelta.relay import Relay
from rxdelta.relay.places import store_at
from rxdelta.relay.shared.records import DIED, DIED_UNUSED, Form, Plain
from rxdelta.relay.store import LogKey, Record
from rxdelta.testing import marbles
from rxdelta.wire import DONE

__all__ = [
    "cost_of_replies",
    "events",
    "line_of_marbles",
    "parts",
    "records",
    "recording",
    "relay_ids",
    "relay_values",
    "replies",
    "store_url",
]

ev = rd.events
KEY = LogKey("", "s", "0123456789abcdef")


def events(data: bytes) -> None:
    """What an event was read from says the same when it is written and read again; a fold takes the events or refuses one."""
    found = []
    for stored in values(data):
        event = or_refused(ev.from_dict, stored)
        if not isinstance(event, rd.RxDeltaError):
            survives(event, ev.from_dict, "an event")
            repr(event)
            found.append(event)
    fold = rd.Fold()
    for event in found:
        or_refused(fold.step, event)
    survives(fold.snapshot, rd.Snapshot.from_dict, "a snapshot")
    or_refused(fold.snapshot.to_message)
    for operator in (rd.validate(), rd.compact_deltas(1.0), rd.only_choice(0)):
        failed: list[Exception] = []
        rx.from_iterable(found).pipe(operator).subscribe(on_error=failed.append)
        check(
            all(isinstance(one, rd.RxDeltaError) for one in failed),
            "errors of rxdelta come out of a pipe",
            failed,
        )


def replies(data: bytes) -> None:
    """Snapshots, small deltas and messages."""
    for stored in values(data):
        for kind in (rd.Snapshot, rd.MessageDelta, rd.Message):
            read: Callable[[Any], Any] = kind.from_dict
            found = or_refused(read, stored)
            if isinstance(found, rd.RxDeltaError):
                continue
            survives(found, read, f"a {kind.__name__}")
            repr(found)
            if kind is not rd.Message or found.role == "assistant":
                fold = rd.Fold(choice=found.choice)
                for event in rd.to_events(found):
                    fold.step(event)
                if kind is not rd.MessageDelta:  # whose own content isn't in its text yet
                    check(
                        fold.snapshot.text == found.text,
                        "to_events folds to the same text",
                        fold.snapshot.text,
                        found.text,
                    )
            if kind is not rd.Message:
                or_refused(found.to_message)
                or_refused(rd.merge_delta, None, found)


def cost_of_replies(data: bytes) -> int:
    """Reads and writes the same, each once."""
    documents = values(data)
    for stored in documents:
        for kind in (rd.Snapshot, rd.MessageDelta, rd.Message):
            found = or_refused(kind.from_dict, stored)
            if not isinstance(found, rd.RxDeltaError):
                found.to_dict()
    return len(documents)


def parts(data: bytes) -> None:
    """The values in a reply, and how a stored reply goes on."""
    before = None
    for stored in values(data):
        for kind in (rd.ContentPart, rd.ToolCall, rd.ToolResult, rd.TokenUsage, rd.Citation):
            read: Callable[[Any], Any] = kind.from_dict  # type: ignore[attr-defined]
            found = or_refused(read, stored)
            if not isinstance(found, rd.RxDeltaError):
                survives(found, read, f"a {kind.__name__}")
                repr(found)
        delta = or_refused(rd.MessageDelta.from_dict, stored)
        if not isinstance(delta, rd.RxDeltaError):
            merged = or_refused(rd.merge_delta, before, delta)
            if not isinstance(merged, rd.RxDeltaError):
                before = merged
    if before is not None:
        survives(before, type(before).from_dict, "a merged delta")


@cache
def _scratch() -> str:
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    kept = _KEPT.setdefault("folder", tempfile.TemporaryDirectory(dir=place))
    return kept.name


_KEPT: dict[str, Any] = {}


def recording(data: bytes) -> None:
    """A file that a recording may be: its values and one end, or our error. What was read is recorded as the same values."""
    lines = or_refused(lambda: [*read_lines(io.BytesIO(data))])
    path = os.path.join(_scratch(), "a.jsonl")
    with open(path, "wb") as file:
        file.write(data)
    seen: list[Any] = []
    failed: list[Exception] = []
    rd.from_recording(path, speed=0).subscribe(seen.append, failed.append)
    if isinstance(lines, rd.RxDeltaError):
        check(
            failed and type(failed[0]) is type(lines), "a file that can't be read is an error", lines, failed
        )
        return
    check(lines and lines[-1].kind != "value", "the last line is the end", lines)
    said = [line.value for line in lines if line.kind == "value"]
    check(_shown(said) == _shown(seen), "a replay has what the file has", said, seen)
    if lines[-1].kind == "error":
        told = failed[0]
        check((type(told), str(told)) == (type(lines[-1].value), str(lines[-1].value)), "its error", told)
        or_refused(rd.errors.is_transient, told)
    known = [one for one in said if one is DONE or isinstance(one, (dict, str, bytes, rd.Event))]
    once = _recorded(known)  # with masks in the place of what may be secret
    check(len(once) == len(known), "what was read can be recorded", known, once)
    check(_shown(once) == _shown(_recorded(once)), "a recording survives", once)


def _recorded(said: list[Any]) -> list[Any]:
    path = os.path.join(_scratch(), "b.jsonl")
    rx.from_iterable(said).pipe(rd.record(path)).subscribe()
    return [line.value for line in read_lines(path) if line.kind == "value"]


def _shown(found: list[Any]) -> str:
    return json.dumps([_plain(one) for one in found])


def _plain(value: Any) -> Any:
    if value is DONE:
        return "[DONE]"
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    return value.to_dict() if isinstance(value, rd.Event) else value


def records(data: bytes) -> None:
    """A record of a relay's log that anybody wrote there: its events, or the error that says it can't be read."""
    for number, stored in enumerate(values(data)):
        fields = stored if isinstance(stored, dict) else {"events": stored}
        told = fields.get("events")
        plain = Plain(packs=number % 2 == 1)
        count = fields.get("count", len(told) if isinstance(told, list) else 1)
        end = None if "end" not in fields else plain.dump(fields["end"], None)  # type: ignore[arg-type]
        dead = fields.get("dead")
        record = Record(
            number=5,
            count=count if type(count) is int else 1,
            events=plain.dump(told, None),  # type: ignore[arg-type]
            end=end,
            dead=dead if dead in (DIED, DIED_UNUSED) else 0,
        )
        _said(plain, record)


def relay_values(data: bytes) -> None:
    """The same, of any bytes."""
    plain = Plain()
    for at in (0, 1, len(data) // 2):
        _said(plain, Record(5, 1 + at % 2, data[at:], data[:at] or None))


def _said(values_in: Plain, record: Record) -> None:
    form = Form(values_in, KEY)
    said = or_refused(form.read, record)
    if isinstance(said, rd.RxDeltaError):
        check(isinstance(said, rd.StreamInterrupted), "what can't be read interrupts the stream", said)
        return
    check(len(said.events) == record.count, "a record has as many events as it says", said.events)
    again = form.read(form.written(said.first - 1, said.events, said.end))
    now, then = ([written(event.to_dict()) for event in one.events] for one in (again, said))
    check(now == then, "a record survives", now, then)
    if said.end is not None and said.end.error is not None:
        check(isinstance(said.end.error, rd.RxDeltaError), "readers get an error of ours", said.end.error)
        repr(said.end.error)
        str(said.end.error)


class _Kept:
    """A relay with a stream that has ended, on a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.ids: list[str] = []
        self.loop.run_until_complete(self._begin())

    async def _begin(self) -> None:
        self._opened = Relay.open(lease=1, keep=10_000_000)
        self.relay = await self._opened.__aenter__()
        told = [
            ev.MessageStart("m"),
            ev.BlockStart(0, {"type": "text", "text": "Hi"}),
            ev.BlockFinish(0),
            ev.MessageFinish("stop"),
        ]
        await self.relay.start("s", rx.from_iterable(told))
        async for entry in rd.iterate(self.relay.entries("s")):
            self.ids.append(entry.id)

    def status(self, stream_id: str, header: bytes) -> int:
        return self.loop.run_until_complete(self._status(stream_id, header))

    async def _status(self, stream_id: str, header: bytes) -> int:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        request = {
            "type": "http",
            "method": "GET",
            "headers": [(b"last-event-id", header), (b"accept", b"text/event-stream")],
        }
        response = RelayResponse(self.relay, stream_id, rd.to_ai_sdk())
        await response(request, asyncio.Event().wait, send)  # type: ignore[arg-type]
        return int(sent[0]["status"])


@cache
def _kept() -> _Kept:
    return _Kept()


def relay_ids(data: bytes) -> None:
    """The header of a reader that comes back: the rest of the stream, or 400. `@n` stands for the id of the nth entry."""
    kept = _kept()
    text = data.decode("latin-1")
    for number, own in enumerate(kept.ids):
        text = text.replace(f"@{number}", own)
    found = kept.status("s", text.encode("latin-1"))
    known = (200, 204) if text in ("", *kept.ids) else (400,)
    check(found in known, "only ids of the stream's own entries are taken", text, found)
    for after in (text, data.decode("utf-8", "surrogateescape")):
        watched = or_refused(kept.relay.watch, "s", after)
        if after not in kept.ids and not isinstance(watched, rd.RxDeltaError):
            failed: list[Exception] = []
            kept.loop.run_until_complete(_watched(watched, failed))
            check(
                failed and isinstance(failed[0], rd.InvalidValueError),
                "another stream's id is refused",
                after,
                failed,
            )
        scope = or_refused(kept.relay.scope, after)
        check(isinstance(scope, (rd.InvalidValueError, Relay)), "a tenant", after)


async def _watched(watched: Any, failed: list[Exception]) -> None:
    try:
        async for _ in rd.iterate(watched):
            pass
    except Exception as error:
        failed.append(error)


def line_of_marbles(data: bytes) -> None:
    """A line is read or refused. What was read is drawn as a line that says the same, in one form."""
    line = data.decode("utf-8", "surrogateescape")
    for given in (None, str):
        found = or_refused(marbles.parse, line, values=given)
        if isinstance(found, rd.RxDeltaError):
            check(isinstance(found, rd.InvalidValueError), "a line that can't be read", found)
            continue
        drawn = or_refused(marbles.draw, found, values=given)
        if isinstance(drawn, rd.RxDeltaError):
            continue  # what a line can't say, such as an event between two messages
        again = marbles.parse(drawn, values=given)
        check(_told_in(again) == _told_in(found), "a drawn line says the same", line, drawn)
        check(marbles.draw(again, values=given) == drawn, "a line has one form", drawn)


def _told_in(found: list[Any]) -> list[Any]:
    return [(time, kind, str(value) if kind == "error" else _event_in(value)) for time, kind, value in found]


def _event_in(value: Any) -> Any:
    return written(value.to_dict()) if isinstance(value, rd.Event) else repr(value)


_SECRET = re.compile(r"[a-z+]{3,30}://[^/?#@]{0,60}:hunter2@[^@]*", re.ASCII)


def store_url(data: bytes) -> None:
    """The URL of a store is taken or refused, and no error shows its password."""
    url = data.decode("utf-8", "surrogateescape")
    for replicas in (0, 1):
        found = or_refused(store_at, url, prefix="rxdelta", replicas=replicas)
        if isinstance(found, rd.RxDeltaError):
            check(isinstance(found, rd.InvalidValueError), "a URL that can't be taken", found)
        if url.count("hunter2") == 1 and _SECRET.fullmatch(url):
            check("hunter2" not in f"{found!s} {found!r}", "no error shows a password", url, found)
