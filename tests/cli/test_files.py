"""What the commands read: recordings, events, stored messages, chunks; and what they say to anything else."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.testing import FakeProvider

CALL = rd.ToolCall(name="tide", arguments={"port": "Brest"}, status="complete")
REPLY = ["High water ", "is at six.", CALL]


def chunks(wire_format: str = "openai-chat") -> list[Any]:
    return [*FakeProvider(REPLY).chunks(wire_format)]


def jsonl(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def recording(*lines: Any) -> str:
    return jsonl({"rxdelta": "recording", "version": 1}, *lines)


def message() -> rd.Message:
    fold = rd.Fold()
    for event in FakeProvider(REPLY).events():
        fold.step(event)
    return fold.snapshot.to_message()


def half() -> rd.Snapshot:
    fold = rd.Fold()
    for event in [*FakeProvider(REPLY).events()][:3]:
        fold.step(event)
    return fold.snapshot


@pytest.fixture
def written(tmp_path: Path) -> Any:
    def write(text: str | bytes) -> str:
        path = tmp_path / "file"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return write


def replayed(path: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[dict[str, Any]]]:
    code = main(["replay", path, "--json"])
    return code, [json.loads(line) for line in capsys.readouterr().out.splitlines()]


SSE = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks())
EVENTS = [event.to_dict() for event in FakeProvider(REPLY).events()]


@pytest.mark.parametrize(
    "text",
    [
        recording(*({"t": 0.5, "chunk": chunk} for chunk in chunks()), {"t": 1, "end": True}),
        recording({"t": 0, "chunk": chunks()[0]}, *({"t": 1, "chunk": one} for one in chunks()[1:]), {"t": 2, "end": True}),
        recording(*({"t": 0.5, "event": event} for event in EVENTS), {"t": 1, "end": True}),
        recording(*({"t": 0.5, "text": SSE[at : at + 50]} for at in range(0, len(SSE), 50)), {"t": 1, "end": True}),
        jsonl(*EVENTS),
        jsonl(message().to_dict()),
        json.dumps(message().to_dict(), indent=2),
        json.dumps([rd.Message.of("user", "When?").to_dict(), message().to_dict()]),
        jsonl(half().to_dict(), message().to_dict()),
        jsonl(*chunks("anthropic-messages")),
        SSE,
    ],
    ids=[
        "recording", "recording from 0", "events recorded", "text recorded", "events", "message", "message on lines",
        "conversation", "snapshots", "chunks", "sse",
    ],
)  # fmt: skip
def test_every_kind_of_file_holds_the_same_reply(
    text: str, written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (reply,) = replayed(written(text), capsys)
    assert code == 0
    assert rd.Message.from_dict(reply).text == "High water is at six."
    (call,) = rd.Message.from_dict(reply).tool_calls
    assert (call.name, dict(call.arguments)) == ("tide", {"port": "Brest"})


def test_each_message_of_a_conversation_is_replayed(written: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stored = [rd.Message.of(role, role) for role in ("user", "assistant", "user", "assistant")]
    code, replies = replayed(written(jsonl(*(one.to_dict() for one in stored))), capsys)
    assert (code, [rd.Message.from_dict(one).text for one in replies]) == (0, ["assistant"] * 2)


def test_what_replay_prints_it_reads(written: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for stored in (message(), half()):
        code, (reply,) = replayed(written(jsonl(stored.to_dict())), capsys)
        again, (same,) = replayed(written(jsonl(reply)), capsys)
        assert (again, same["blocks"]) == (code, reply["blocks"])


def test_a_stored_snapshot_is_as_incomplete_as_it_was(
    written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    code, (reply,) = replayed(written(jsonl(half().to_dict())), capsys)
    assert (code, reply["status"], rd.Snapshot.from_dict(reply).text) == (3, "incomplete", "High water ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "StreamInterrupted: the recording ends before the stream did"),
        (
            [{"t": 1, "error": {"type": "RateLimitError", "message": "slow down", "status_code": 429}}],
            "the stream broke off: RateLimitError (HTTP 429): slow down",
        ),
        (
            [{"t": 1, "error": {"type": "ConnectionResetError", "message": "reset"}}],
            "the stream broke off: ConnectionResetError: reset",
        ),
    ],
)
@pytest.mark.parametrize("count", [0, 1])
def test_a_recorded_error_ends_the_replay_as_an_error(
    line: list[Any], said: str, count: int, written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    text = recording(*({"t": 0.1, "chunk": chunk} for chunk in chunks()[:count]), *line)
    assert main(["replay", written(text)]) == 3
    assert capsys.readouterr().err.endswith(f"{said}\n")


@pytest.mark.parametrize(("speed", "waited"), [("1", [3600, 7200]), ("2", [1800, 3600]), ("0", [])])
def test_a_recording_is_replayed_at_its_pace(
    speed: str, waited: list[float], written: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    sleep = asyncio.sleep

    async def noted(delay: float) -> None:  # no time passes, so each is the time since the beginning
        delays.append(delay)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", noted)
    first, *rest = chunks()
    lines = [{"t": 3600, "chunk": first}, *({"t": 7200, "chunk": one} for one in rest)]
    path = written(recording(*lines, {"t": 7200, "end": True}))
    assert main(["replay", path, "--json", "--speed", speed]) == 0
    hours = [delay for delay in delays if delay > 1000]
    assert hours[:2] == [pytest.approx(one, abs=100) for one in waited]


@pytest.mark.parametrize("arguments", [["replay"], ["convert", "--to", "ollama"], ["diff", "-"], ["inspect"]])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "it is empty"),
        (b"\x1f\x8b\x08\x08xyz", "gunzip -c FILE | rxdelta replay -"),
        (b"\x7fELF\x02\x01\x00\x00", "it is no text"),
        (b"<!DOCTYPE html>\n<title>502 Bad Gateway</title>\n", "it is a web page, as a gateway sends"),
        (b"HTTP/1.1 200 OK\r\n\r\ndata: {}\r\n\r\n", "without -i"),
        (b'{"role": "assistant", "status": "complete", "blocks": [7]}', "blocks: must hold parts"),
        (jsonl(rd.Message.of("user", "Hi").to_dict()).encode(), "it holds nothing of a message"),
        (b'{"rxdelta": "recording", "version": 9}\n', "a newer rxdelta has written"),
    ],
    ids=["empty", "gzip", "binary", "web page", "headers", "wrong message", "no reply", "newer"],
)
def test_every_command_says_why_a_file_cannot_be_used(
    arguments: list[str],
    content: bytes,
    said: str,
    written: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if arguments[0] == "inspect" and said in ("it is a web page, as a gateway sends", "without -i"):
        return
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(jsonl(*chunks()).encode())))
    path = written(content)
    assert main([*arguments, path]) == 2
    err = capsys.readouterr().err.splitlines()[-1]
    assert err.startswith("rxdelta: ")
    assert path in err
    assert said in err


def test_a_providers_refusal_is_shown(written: Any, capsys: pytest.CaptureFixture[str]) -> None:
    body = {"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}
    assert main(["replay", written(json.dumps(body, indent=2))]) == 3
    assert "Incorrect API key provided" in capsys.readouterr().err


def test_events_and_messages_are_read_whatever_the_format_of_chunks_is(
    written: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in (
        recording(*({"t": 0, "event": one} for one in EVENTS), {"t": 1, "end": True}),
        jsonl(message().to_dict()),
    ):
        assert main(["replay", written(text), "--format", "openai-chat"]) == 0
        assert capsys.readouterr().out == "High water is at six.\n"
