"""`rxdelta convert`: the same reply in another format, or a refusal and nothing written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.testing import FakeProvider

CALL = rd.ToolCall(name="tide", arguments={"port": "Brest"}, status="complete")
HEAD = {"rxdelta": "recording", "version": 1}


def recorded(tmp_path: Path, *replies: Any, end: Any = ({"t": 9.0, "end": True},)) -> str:
    """A recording with a second between two chunks."""
    path = tmp_path / "recorded.jsonl"
    chunks = FakeProvider(*replies).chunks("openai-chat")
    lines = [HEAD, *({"t": float(at), "chunk": chunk} for at, chunk in enumerate(chunks)), *end]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def converted(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[Any], str]:
    code = main(["convert", *arguments])
    said = capsys.readouterr()
    return code, [json.loads(line) for line in said.out.splitlines()], said.err


@pytest.mark.parametrize("to", ["ollama", "anthropic-messages", "gemini", "ai-sdk", "bedrock-converse"])
def test_a_reply_is_the_same_in_another_format(
    to: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, ["Höchst", "wasser 🌊", CALL])
    code, chunks, err = converted(capsys, path, "--to", to)
    assert (code, err) == (0, "")
    assert rd.providers.detect(chunks[0]) == to
    other = tmp_path / "other.jsonl"
    other.write_text("".join(json.dumps(chunk) + "\n" for chunk in chunks))
    assert main(["diff", path, str(other)]) == 0


def test_a_recording_keeps_its_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = recorded(tmp_path, ["a", "b"]), tmp_path / "out.jsonl"
    assert converted(capsys, path, "--to", "gemini", "--out", str(out)) == (0, [], "")
    head, *lines = map(json.loads, out.read_text().splitlines())
    assert head["rxdelta"] == "recording"
    texts = {line["chunk"]["candidates"][0]["content"]["parts"][0]["text"]: line["t"] for line in lines[:-1]}
    times = [line["t"] for line in map(json.loads, Path(path).read_text().splitlines()[1:])]
    assert (texts["b"] - texts["a"], lines[-1]) == (1.0, {"t": 9.0, "end": True})
    assert {line["t"] for line in lines} <= {*times}


def test_a_time_that_no_date_can_hold_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = recorded(tmp_path, "a", end=[{"t": 1e300, "end": True}]), tmp_path / "out.jsonl"
    assert converted(capsys, path, "--to", "ollama", "--out", str(out)) == (0, [], "")
    assert json.loads(out.read_text().splitlines()[-1]) == {"t": 999_999_999.0, "end": True}


def test_a_recording_may_replace_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = recorded(tmp_path, "Hi")
    assert converted(capsys, path, "--to", "cohere", "--out", path)[0] == 0
    assert '"content-delta"' in Path(path).read_text()


def test_what_a_format_cannot_carry_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = rd.Message.of("assistant", ["a", rd.ContentPart("image", None, {"url": "https://x/y.png"})])
    path, out = tmp_path / "stored.json", tmp_path / "out.jsonl"
    path.write_text(json.dumps(stored.to_dict()))
    for more in ([], ["--out", str(out)]):
        code, chunks, err = converted(capsys, str(path), "--to", "cohere", *more)
        assert (code, chunks, out.exists()) == (1, [], False)
        assert "cohere" in err
        assert "image" in err


@pytest.mark.parametrize(
    "end", [[], [{"t": 9.0, "error": {"type": "ConnectionResetError", "message": "reset"}}]]
)
def test_a_broken_reply_stays_broken(
    end: list[Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = recorded(tmp_path, ["a", rd.events.StreamError("x")], end=end), tmp_path / "out.jsonl"
    lines = Path(path).read_text().splitlines(keepends=True)
    Path(path).write_text("".join(line for line in lines if '"x"' not in line))  # no error of the provider's
    code, chunks, err = converted(capsys, path, "--to", "ollama")
    assert (code, chunks[-1]["done"]) == (0, False)
    assert "ends with an error" in err
    assert converted(capsys, path, "--to", "ollama", "--out", str(out))[0] == 0
    assert "error" in json.loads(out.read_text().splitlines()[-1])
    assert main(["replay", str(out)]) == 3


def test_the_providers_error_becomes_the_other_providers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = recorded(tmp_path, ["a", rd.events.StreamError("overloaded", "overloaded_error")])
    _, chunks, _ = converted(capsys, path, "--to", "anthropic-messages")
    assert chunks[-1] == {"type": "error", "error": {"type": "overloaded_error", "message": "overloaded"}}


def test_a_stored_message_comes_word_by_word_and_with_nothing_made_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "stored.json"
    path.write_text(json.dumps(rd.Message.of("assistant", "One two three").to_dict()))
    code, chunks, _ = converted(capsys, str(path), "--to", "gemini")
    texts = [chunk["candidates"][0]["content"]["parts"][0]["text"] for chunk in chunks]
    assert (code, texts[:3]) == (0, ["One ", "two ", "three"])
    assert "usageMetadata" not in chunks[-1]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = converted(capsys, recorded(tmp_path, "a"), "--to", "ollama", "--out", "/nowhere/x")
    assert (code, err) == (1, "rxdelta: cannot write /nowhere/x: No such file or directory\n")
