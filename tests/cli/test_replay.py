"""The command: what it prints, where, and how it exits."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.testing import SAMPLES, open_sample


def chat(content: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": reason}],
        **more,
    }


def lines(*chunks: Any) -> bytes:
    return b"".join(json.dumps(chunk).encode() + b"\n" for chunk in chunks)


@pytest.fixture
def recording(tmp_path: Path) -> Any:
    def write(data: bytes) -> str:
        path = tmp_path / "recording"
        path.write_bytes(data)
        return str(path)

    return write


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = main([*arguments, "--json"])
    said = capsys.readouterr()
    return code, json.loads(said.out), said.err


def test_the_demo_ends_as_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    said = capsys.readouterr()
    assert "[reasoning] Two cities" in said.out
    assert said.out.count("[tool_call] get_forecast(") == 2
    assert said.out.splitlines()[-1].startswith("complete · tool_use · sample-model-1 · 412 input tokens")
    assert said.err == ""


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_sample_is_what_its_name_says(sample: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, reply, _ = run_json(capsys, "demo", sample)
    assert code == (3 if sample == "overloaded" else 0)
    kinds = [block["type"] for block in reply["blocks"]]
    only_text = sample in ("overloaded", "forecast")
    assert kinds == (["text"] if only_text else ["reasoning", "text", "tool_call", "tool_call"])


def test_json_is_the_message_and_nothing_else(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    code, reply, complaints = run_json(capsys, "replay", recording(lines(chat("Hi"), chat("", "stop"))))
    assert (code, complaints) == (0, "")
    assert rd.Message.from_dict(reply).text == "Hi"
    assert "error" not in reply


def test_a_message_cut_by_length_is_no_failure(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    code, reply, _ = run_json(capsys, "replay", recording(lines(chat("Hi", "length"))))
    assert (code, reply["status"]) == (0, "length")


def test_an_invalid_call_is_no_failure(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": '}}
    delta = {"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    code, reply, _ = run_json(capsys, "replay", recording(lines({"id": "c", "choices": [delta]})))
    assert (code, reply["status"]) == (0, "complete")
    assert reply["blocks"][0]["type"] == "invalid_tool_call"


def test_an_error_in_mid_stream_keeps_the_snapshot(capsys: pytest.CaptureFixture[str]) -> None:
    code, reply, complaints = run_json(capsys, "demo", "overloaded")
    assert code == 3
    assert (reply["status"], reply["error"]["type"]) == ("incomplete", "ProviderError")
    assert reply["blocks"][0]["text"].endswith("because the Moon")
    assert "Overloaded" in complaints


def test_a_cut_stream_is_incomplete(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    code, reply, _ = run_json(capsys, "replay", recording(lines(chat("Hi"))))
    assert code == 3
    assert (reply["blocks"][0]["text"], reply["error"]["type"]) == ("Hi", "IncompleteMessageError")


@pytest.mark.parametrize(
    "rest",
    [b"{not json}\n", lines({"id": "c1", "choices": [{"index": 0, "delta": {"content": 7}}]}), lines([1])],
)
def test_a_malformed_chunk_in_mid_stream_keeps_the_snapshot(
    rest: bytes, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    code, reply, _ = run_json(capsys, "replay", recording(lines(chat("Hi")) + rest))
    assert code == 3
    assert (reply["blocks"][0]["text"], reply["error"]["type"]) == ("Hi", "MalformedChunkError")


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n\n",
        b"<html>502 Bad Gateway</html>",
        b"plain words\n",
        b"[1, 2]",
        b'{"hello": "world"}\n',
        b"data: [DONE]\n\n",
    ],
    ids=["empty", "blank", "html", "words", "numbers", "another object", "only the end"],
)
def test_what_is_no_known_stream_is_refused(
    data: bytes, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(data), "--json"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "is not a known stream" in said.err


def test_a_stream_of_another_format_than_asked_for_is_refused(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(lines(7)), "--format", "openai-chat"]) == 2
    assert "is not a known stream" in capsys.readouterr().err


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "/does/not/exist"]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [[], ["replay"], ["demo", "nothing"], ["demo", "--speed", "-1"], ["demo", "--format", "x"]]
)
def test_a_wrong_call_exits_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2


@pytest.mark.parametrize(
    "data",
    [
        lines(chat("Hi", "stop")),
        b"data: " + lines(chat("Hi", "stop")) + b"\ndata: [DONE]\n\n",
        b"\xef\xbb\xbf: ping\r\n\r\ndata: " + lines(chat("Hi", "stop")),
        json.dumps([chat("Hi"), chat("", "stop")], indent=2).encode(),
        json.dumps({"id": "c1", "object": "chat.completion", "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}, indent=1).encode(),
        lines(chat("Hi", "stop")).strip(),
    ],
    ids=["lines", "sse", "sse with a mark and comments", "one list", "a whole body", "no last line end"],
)  # fmt: skip
def test_lines_captures_and_bodies_are_told_apart(
    data: bytes, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    code, reply, _ = run_json(capsys, "replay", recording(data))
    assert (code, reply["blocks"][0]["text"]) == (0, "Hi")


def test_standard_input_is_read(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with open_sample("tides") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read())))
    code, reply, _ = run_json(capsys, "replay", "-")
    assert (code, reply["finish_reason"]) == (0, "tool_use")


def test_the_module_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rxdelta", "demo", "--json"], capture_output=True, check=True
    )
    assert json.loads(done.stdout)["status"] == "complete"


def test_a_pipe_that_is_still_open_is_drawn_as_it_comes() -> None:
    """A live stream: the first block shows before the last chunk has been sent."""
    program = [sys.executable, "-u", "-m", "rxdelta", "replay", "-"]
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(
            lines(chat("Hi"), {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
        )
        process.stdin.flush()
        assert process.stdout.readline() == b"[text] Hi\n"
        process.stdin.write(lines(chat("", "tool_calls")))
        process.stdin.close()
        assert b"[tool_call] f({})" in process.stdout.read()
    assert process.returncode == 0


def test_a_terminal_gets_a_live_picture() -> None:
    pytest.importorskip("rich")
    keeper, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "rxdelta", "demo", "--speed", "0"],
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "60"},
    )
    os.close(terminal)
    seen = b""
    while True:
        try:
            data = os.read(keeper, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        seen += data
    os.close(keeper)
    assert process.wait() == 0
    told = seen.decode()
    assert "╭" in told
    assert "tool_call get_forecast" in told
    assert "\x1b[1mMessage\x1b[0m" in told
