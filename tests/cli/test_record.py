"""`rxdelta record`: a command as if it ran alone, and a recording of what it printed."""

from __future__ import annotations

import json
import os
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rxdelta.cli import main
from rxdelta.testing import FakeProvider

SECONDS = 60  # nothing here takes time; what hangs is found
SSE = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in FakeProvider("High water").chunks("openai-chat"))
PRINTS = "import sys; sys.stdout.buffer.write(sys.argv[1].encode('latin-1'))"


@pytest.fixture
def out(tmp_path: Path) -> str:
    return str(tmp_path / "recording.jsonl")


def printing(text: str) -> list[str]:
    """A command that prints this, a byte for a letter."""
    return [sys.executable, "-c", PRINTS, text]


def lines_of(path: str) -> list[dict[str, Any]]:
    head, *lines = map(json.loads, Path(path).read_text().splitlines())
    assert head["rxdelta"] == "recording"
    times = [line["t"] for line in lines]
    assert times == sorted(times)
    return lines


def values_of(path: str) -> list[Any]:
    return [next(value for name, value in line.items() if name != "t") for line in lines_of(path)]


def test_a_stream_is_passed_on_and_recorded_as_chunks(out: str, capfdbinary: Any) -> None:
    assert main(["record", "--out", out, "--", *printing(f"{SSE}data: [DONE]\n\n")]) == 0
    assert capfdbinary.readouterr() == (f"{SSE}data: [DONE]\n\n".encode(), b"")
    assert values_of(out) == [*FakeProvider("High water").chunks("openai-chat"), "[DONE]", True]
    assert stat.S_IMODE(os.stat(out).st_mode) == 0o600
    assert main(["replay", out]) == 0
    assert capfdbinary.readouterr().out == b"High water\n"


def test_keys_are_masked_and_what_the_model_wrote_is_not(out: str, capfdbinary: Any) -> None:
    chunk = {"id": "c", "api_key": "sk-1", "choices": [{"index": 0, "delta": {"content": "api_key"}}]}
    assert main(["record", "--out", out, *printing(json.dumps(chunk))]) == 0
    assert json.loads(capfdbinary.readouterr().out)["api_key"] == "sk-1"
    assert values_of(out)[0] == chunk | {"api_key": "[redacted]"}


@pytest.mark.parametrize(
    ("printed", "recorded"),
    [
        ("plain words\nand more", ["plain words\n", "and more"]),
        ("a \xff\n", [b"a \xff\n"]),
        ("\x01\x1f\x8b", [b"\x01\x1f\x8b"]),
        ('{"done": false}\nerror: 7\n{"done": true}\n', [{"done": False}, "error: 7\n", '{"done": true}\n']),
        ("", []),
        ('[\n {"done": true}\n]\n', [{"done": True}]),
    ],
    ids=["text", "bytes", "binary", "chunks and text", "nothing", "a document"],
)
def test_what_is_no_stream_is_passed_on_and_recorded_as_it_is(
    printed: str, recorded: list[Any], out: str, capfdbinary: Any
) -> None:
    assert main(["record", "--out", out, "--", *printing(printed)]) == 0
    assert capfdbinary.readouterr().out == printed.encode("latin-1")
    found = [line.value for line in rd_lines(out)]
    joined = [b"".join(as_bytes(one) for one in values) for values in (found, recorded)]
    assert joined[0] == joined[1]
    assert [one for one in found if isinstance(one, dict)] == [
        one for one in recorded if isinstance(one, dict)
    ]


def test_what_comes_later_stays_behind_what_came_before(out: str, capfd: Any) -> None:
    shell = "printf plain; sleep 0.05; printf ' words\\n'; sleep 0.05; printf more"
    assert main(["record", "--out", out, "--", "sh", "-c", shell]) == 0
    assert capfd.readouterr().out == "plain words\nmore"
    assert "".join(line.value for line in rd_lines(out)) == "plain words\nmore"
    assert len({line.at for line in rd_lines(out)}) == 3


def rd_lines(path: str) -> list[Any]:
    from rxdelta.recording import read_lines

    return [line for line in read_lines(path) if line.kind == "value"]


def as_bytes(value: Any) -> bytes:
    if isinstance(value, dict):
        return json.dumps(value).encode() + b"\n"
    return value.encode() if isinstance(value, str) else bytes(value)


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("exit 3", 3, "sh ended with exit code 3"),
        ("kill -TERM $$", 143, "sh was ended by SIGTERM"),
        ("kill -KILL $$", 137, "sh was ended by SIGKILL"),
    ],
)
def test_the_exit_code_is_the_commands_own(command: str, code: int, said: str, out: str, capfd: Any) -> None:
    assert (
        main(["record", "-o", out, "--", "sh", "-c", f"printf %s {shlex.quote(SSE)}; echo e >&2; {command}"])
        == code
    )
    assert capfd.readouterr() == (SSE, "e\n")
    assert values_of(out)[-1]["message"] == said
    assert main(["replay", out]) == 0 or "exit code" in capfd.readouterr().err


def test_what_cannot_be_run_leaves_a_recording_alone(out: str, tmp_path: Path, capfd: Any) -> None:
    Path(out).write_text("kept")
    plain = tmp_path / "plain"
    plain.write_text("")
    assert main(["record", "--out", out, "--", "no-such-command"]) == 127
    assert main(["record", "--out", out, "--", str(plain)]) == 126
    assert main(["record", "--out", "/nowhere/x", "--", "true"]) == 125
    assert Path(out).read_text() == "kept"
    assert [line.partition(": ")[0] for line in capfd.readouterr().err.splitlines()] == ["rxdelta"] * 3


def test_a_recording_that_cannot_go_on_does_not_stop_the_stream(out: str) -> None:
    """As on a disk that gets full: here the files of the command may have 1024 blocks, and what it prints is more."""
    chunks = SSE * 6000
    Path(f"{out}.printed").write_text(chunks)
    shell = f"ulimit -f 1024; exec {shlex.quote(sys.executable)} -m rxdelta record --out {shlex.quote(out)} -- cat {shlex.quote(out)}.printed"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout == chunks.encode()) == (0, True)
    assert done.stderr.decode() == f"rxdelta: the recording {out} broke off: File too large\n"
    assert rd_ending(out) == "error"


def test_standard_input_is_recorded_and_passed_on(out: str) -> None:
    program = [sys.executable, "-m", "rxdelta", "record", "--out", out]
    done = subprocess.run(program, input=SSE.encode(), capture_output=True, timeout=SECONDS)
    assert (done.returncode, done.stdout, done.stderr) == (0, SSE.encode(), b"")
    assert values_of(out)[-1] is True


@pytest.fixture
def children_heed_ctrl_c() -> Iterator[None]:
    """A shell that runs the tests in the background lets them ignore SIGINT, and a child inherits that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_a_signal_ends_the_command_and_the_recording_is_broken(number: int, code: int, out: str) -> None:
    shell = f"printf %s {shlex.quote(SSE[: SSE.index('data', 9)])}; exec sleep 60"
    program = [sys.executable, "-m", "rxdelta", "record", "--out", out, "--", "sh", "-c", shell]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(5) == b"data:"  # at once, while the command runs
            process.send_signal(number)
            assert process.wait(SECONDS) == code
        finally:
            process.kill()
    chunk, error = values_of(out)
    assert chunk == next(FakeProvider("High water").chunks("openai-chat"))
    assert error["message"] == f"sh was ended by {signal.Signals(number).name}"


@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_a_command_that_ends_well_when_it_is_stopped_has_a_broken_recording_too(out: str) -> None:
    shell = f"trap 'exit 0' INT; printf %s {shlex.quote(SSE)}; while :; do sleep 0.01; done"
    program = [sys.executable, "-m", "rxdelta", "record", "--out", out, "--", "sh", "-c", shell]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.read(len(SSE)) == SSE.encode()
            process.send_signal(signal.SIGINT)
            assert process.wait(SECONDS) == 0
        finally:
            process.kill()
    assert values_of(out)[-1]["message"] == "sh was told to end by SIGINT"


@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_on_windows_ctrl_c_is_left_to_the_console(out: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def as_there(_: Any, number: int) -> None:
        raise ValueError(f"Unsupported signal: {number}")

    monkeypatch.delattr(os, "tcgetpgrp")
    monkeypatch.setattr(subprocess.Popen, "send_signal", as_there)
    command = "import os, signal; os.kill(os.getppid(), signal.SIGINT); print('ended', flush=True)"
    assert main(["record", "--out", out, "--", sys.executable, "-c", command]) == 0
    assert values_of(out)[-1]["message"].endswith("was told to end by SIGINT")


def test_a_reader_that_goes_away_ends_the_command_and_the_recording_is_kept(out: str) -> None:
    """As `| head -1` does."""
    shell = f"while printf %s {shlex.quote(SSE)}; do :; done"
    program = [sys.executable, "-m", "rxdelta", "record", "--out", out, "--", "sh", "-c", shell]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(5) == b"data:"
        process.stdout.close()
        assert process.wait(SECONDS) == 141
        assert process.stderr.read() == b""
    assert values_of(out)[0] == next(FakeProvider("High water").chunks("openai-chat"))
    assert rd_ending(out) != "end"


def rd_ending(path: str) -> str:
    from rxdelta.recording import read_lines

    return [line.kind for line in read_lines(path)][-1]
