"""A fake provider gives what was recorded: the same chunks at the same times, or the same reply in another format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from support.written import read

import rxdelta as rd
from rxdelta.testing import FakeProvider

OWN = "openai-chat"
CUT = ConnectionResetError("cut")


def recorded(path: Path, *parts: Any) -> list[Any]:
    """Record a reply with its pauses. The chunks have a field that no writer writes."""
    scheduler, chunks = VirtualTimeScheduler(), list[Any]()
    source = FakeProvider([*parts]).observable(OWN, scheduler=scheduler)
    marked = source.pipe(ops.map(lambda chunk: {**chunk, "system_fingerprint": "fp"}))
    marked.pipe(rd.record(path, scheduler=scheduler)).subscribe(chunks.append, lambda _: None)
    scheduler.start()
    return chunks


def given(provider: FakeProvider, wire_format: str) -> tuple[list[Any], Exception | None, float]:
    scheduler, found, ends = VirtualTimeScheduler(), list[Any](), list[Exception | None]()
    chunks = provider.observable(wire_format, scheduler=scheduler)
    chunks.subscribe(found.append, ends.append, lambda: ends.append(None))
    scheduler.start()
    (end,) = ends
    return found, end, round(scheduler.clock, 6)


@pytest.mark.parametrize(("speed", "seconds"), [(1.0, 3602.0), (2.0, 1801.0), (0.0, 0.0)])
def test_recorded_chunks_come_as_they_were_at_their_times(
    tmp_path: Path, speed: float, seconds: float
) -> None:
    chunks = recorded(tmp_path / "a.jsonl", "Hel", 2.0, "lo", 3600.0, ".")
    provider = FakeProvider.from_recording(tmp_path / "a.jsonl", speed=speed)
    assert given(provider, OWN) == (chunks, None, seconds)


def test_in_another_format_the_reply_is_the_same_at_the_same_times(tmp_path: Path) -> None:
    recorded(tmp_path / "a.jsonl", "Hel", 2.0, "lo", 3600.0, ".")
    chunks, error, seconds = given(FakeProvider.from_recording(tmp_path / "a.jsonl"), "gemini")
    said = [event.text for event in read(chunks, "gemini") if isinstance(event, rd.events.TextDelta)]
    assert (said, error, seconds) == (["Hel", "lo", "."], None, 3602.0)


@pytest.mark.parametrize("wire_format", [OWN, "gemini"])
def test_a_recorded_error_ends_the_reply(tmp_path: Path, wire_format: str) -> None:
    recorded(tmp_path / "a.jsonl", "Hel", 2.0, CUT)
    chunks, error, seconds = given(FakeProvider.from_recording(tmp_path / "a.jsonl"), wire_format)
    assert (type(error), str(error), seconds) == (ConnectionResetError, "cut", 2.0)
    assert chunks


def test_a_recording_that_broke_off_breaks_off(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    recorded(path, "Hello")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    _, error, _ = given(FakeProvider.from_recording(path), OWN)
    assert isinstance(error, rd.RecordedError)


def test_each_recording_is_one_reply(tmp_path: Path) -> None:
    paths = [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]
    chunks = [recorded(path, path.stem) for path in paths]
    provider = FakeProvider.from_recording(*paths, repeat=True)
    assert [[*provider.chunks(OWN)] for _ in range(3)] == [*chunks, chunks[0]]
