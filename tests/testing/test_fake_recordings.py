"""`FakeProvider.from_recording`: recorded replies, in their own format and in others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime

if TYPE_CHECKING:
    from pathlib import Path

ev = rd.events
OTHERS = ("openai-chat", "anthropic-messages", "ollama", "gemini")


def recorded(path: Path, *parts: Any, wire_format: str = "openai-chat") -> Path:
    """The recording of a reply that is told as a list, with its pauses."""

    async def main() -> None:
        async with rd.stream(FakeProvider([*parts]).stream(wire_format), record=path) as reply:
            try:
                await reply.result()
            except rd.errors.RxDeltaError:
                """It is recorded as it ended."""

    VirtualTime().run(main())
    return path


def told(provider: FakeProvider, wire_format: str) -> tuple[float, str, str]:
    """How long a reply took, its text, and how it ended."""
    time = VirtualTime()

    async def main() -> tuple[str, str]:
        async with rd.stream(provider.stream(wire_format)) as reply:
            try:
                return (await reply.result()).text, "whole"
            except rd.errors.RxDeltaError as error:
                return reply.snapshot.text, repr(error.__cause__ or error)

    text, ending = time.run(main())
    return time.elapsed, text, ending


@pytest.mark.parametrize("wire_format", ["openai-chat", "gemini"])
@pytest.mark.parametrize(("speed", "seconds"), [(1, 60), (4, 15), (0, 0)])
def test_it_comes_at_its_times_by_the_speed(
    tmp_path: Path, wire_format: str, speed: float, seconds: float
) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hello ", 20.0, "my ", 40.0, "world")
    provider = FakeProvider.from_recording(path, speed=speed)
    assert told(provider, wire_format) == (seconds, "Hello my world", "whole")


@pytest.mark.parametrize("wire_format", ["openai-chat", "gemini"])
def test_the_error_that_ended_it_ends_it_again(tmp_path: Path, wire_format: str) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hello", 5.0, ConnectionResetError("gone"))
    _, text, ending = told(FakeProvider.from_recording(path), wire_format)
    assert (text, ending) == ("Hello", "ConnectionResetError('gone')")
    path = recorded(tmp_path / "a.jsonl", "Hello", ev.StreamError("busy", "overloaded_error"))
    _, text, ending = told(FakeProvider.from_recording(path), wire_format)
    assert text == "Hello"
    assert "ProviderError" in ending
    assert "busy" in ending
    provider = FakeProvider.from_recording(path, repeat=True)
    assert len([*provider.chunks(wire_format)]) > 1, (
        "its own error event is its end: nothing is raised behind it"
    )


def test_a_recording_without_its_last_line_breaks_off(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hello ", "world")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    for wire_format in ("openai-chat", "ollama"):
        _, _, ending = told(FakeProvider.from_recording(path), wire_format)
        assert "ends before the stream did" in ending


def test_a_chunk_that_is_malformed_breaks_it_off_in_other_formats(tmp_path: Path) -> None:
    path = recorded(tmp_path / "a.jsonl", "Hello ", "world")
    *lines, end = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([*lines[:3], json.dumps({"t": 1, "chunk": {"choices": 5}}), end, ""]), "utf-8")
    provider = FakeProvider.from_recording(path, repeat=True)
    assert [*provider.chunks("openai-chat")][-1] == {"choices": 5}
    with pytest.raises(rd.errors.MalformedChunkError):
        [*provider.chunks("ollama")]


def test_bytes_and_events_are_replies_as_chunks_are(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for values in (
        [
            json.dumps(chunk).encode() for chunk in FakeProvider("Hi").chunks("ollama")
        ],  # the last has no line end
        [*FakeProvider("Hi").events()],
    ):
        body = b"\n".join(values) if isinstance(values[0], bytes) else b""
        with rd.stream([body[:40], body[40:]] if body else values, record=path) as reply:
            assert reply.result().text == "Hi"
        for wire_format in ("ollama", "gemini", "openai-chat"):
            assert told(FakeProvider.from_recording(path, speed=0), wire_format)[1:] == ("Hi", "whole")


def folded(wire_format: str, chunks: list[Any]) -> tuple[str, list[Any], str]:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold()
    for chunk in chunks:
        for event in decoder.decode(chunk):
            fold.step(event)
    for event in decoder.close():
        fold.step(event)
    reply = fold.snapshot
    calls = [(one.name, one.arguments) for one in reply.blocks if isinstance(one, rd.ToolCall)]
    return reply.text, calls if reply.status == "complete" else [], reply.status


@pytest.mark.parametrize("wire_format", RECORDED)
def test_a_providers_streams_are_themselves_and_in_other_formats_the_same_reply(
    tmp_path: Path, wire_format: str
) -> None:
    cases = [case.values[0] for case in recordings(wire_format)][::6]
    if cases == [None]:
        pytest.skip("the recorded streams are absent")
    path, refused = tmp_path / "a.jsonl", list[str]()
    for place, chunks in enumerate(cases):
        path.write_text("".join(f"{json.dumps(chunk)}\n" for chunk in chunks), "utf-8")
        provider = FakeProvider.from_recording(path, repeat=True)
        assert [*provider.chunks(wire_format)] == chunks
        other = OTHERS[place % len(OTHERS)]
        try:
            written = [*provider.chunks(other)]
            expected = folded(wire_format, chunks)
        except rd.InvalidValueError as error:
            refused.append(str(error))
        except rd.ProviderError:
            """An error of the provider's, which breaks off both."""
        else:
            assert folded(other, written) == expected
    assert all("can't carry" in sentence for sentence in refused)
