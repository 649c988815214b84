"""The command: what it prints, where, and how it exits."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.security_page import says

import rxdelta as rd
from rxdelta.cli import main, picture, visible
from rxdelta.cli.view import Plain
from rxdelta.testing import SAMPLES, open_sample

SECONDS = 60  # nothing here takes time; what hangs is found


def chat(content: str, reason: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "id": "c1",
        "model": "m",
        "choices": [{"index": 0, "delta": {"content": content}, "finish_reason": reason}],
        **more,
    }


RESPONSES = [
    {"type": "response.created", "response": {"id": "r", "status": "in_progress"}},
    {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"},
    {
        "type": "response.output_item.done",
        "output_index": 0,
        "item": {"id": "m", "type": "message", "content": [{"type": "output_text", "text": "Hi"}]},
    },
    {"type": "response.completed", "response": {"id": "r", "status": "completed"}},
]


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


def test_a_pipe_gets_the_text_and_standard_error_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo"]) == 0
    said = capsys.readouterr()
    assert said.out == (
        "I'll compare the two forecasts for Saturday and Sunday.\n\n"
        "1. **Lisbon** – usually mild by now\n2. **Oslo** – may well have snow\n"
    )
    reasoning, *calls, end = said.err.splitlines()
    assert reasoning.startswith("[reasoning] Two cities")
    assert [call.partition("(")[0] for call in calls] == ["[tool_call] get_forecast"] * 2
    assert end.startswith("complete · tool_use · sample-model-1 · 412 input tokens")


@pytest.mark.parametrize(
    ("text", "said"), [("", ""), ("a", "a\n"), ("a\r\nb\n\n", "a\nb\n\n"), ("a\r", "a␍\n")]
)
def test_a_text_ends_with_a_line_end(
    text: str, said: str, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    chunks = [chat(letter) for letter in text]
    assert main(["replay", recording(lines(*chunks, chat("", "stop")))]) == 0
    assert capsys.readouterr() == (said, "complete · stop · m\n")


def test_a_text_that_is_taken_back_is_written_anew(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    events = [
        rd.events.BlockStart(0, {"type": "text"}),
        rd.events.TextDelta(0, "Helo"),
        rd.events.BlockFinish(0, {"type": "text", "text": "Hello"}),
        rd.events.MessageFinish("stop"),
    ]
    view = Plain(sys.stdout, sys.stderr)
    fold = rd.Fold()
    snapshots = [fold.step(event) for event in events]
    for snapshot in snapshots:
        view.draw([snapshot])
    view.end(snapshots[-1:])
    said = capsys.readouterr()
    assert said.out == "Helo\nHello\n"
    assert said.err == "the provider has replaced this text; it is now:\ncomplete · stop\n"


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
    assert "is no known stream" in said.err


@pytest.mark.parametrize("content", [b"x" * 1_100_000, b"[" * 200_000, b"data: " + b"[" * 200_000 + b"\n\n"])
def test_a_line_that_no_stream_has_is_refused(
    content: bytes, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(content)]) == 2
    assert "is no known stream" in capsys.readouterr().err


def test_what_is_no_chunk_is_refused(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    assert main(["replay", recording(lines(7)), "--format", "openai-chat"]) == 2
    assert "is no stream of openai-chat" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wire_format", ["anthropic-messages", "ollama", "langchain", "openai-completions", "openai-responses"]
)
def test_a_stream_of_another_format_than_asked_for_is_refused_by_both_names(
    wire_format: str, capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(lines(chat("Hi", "stop"))), "--format", wire_format]) == 2
    said = capsys.readouterr().err
    assert f"is no stream of {wire_format}: --format {wire_format} got a chunk of openai-chat" in said
    assert said.endswith("use --format openai-chat\n")


def test_a_wrapped_stream_is_replayed(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    items = [{"type": "raw_response_event", "data": chunk} for chunk in RESPONSES]
    for options in ((), ("--format", "openai-responses")):
        code, reply, _ = run_json(capsys, "replay", *options, recording(lines(*items)))
        assert (code, reply["blocks"][0]["text"]) == (0, "Hi")


def test_a_stream_of_which_nothing_is_read_is_refused(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    file = recording(lines({"type": "thread.started", "thread_id": "t"}))
    assert main(["replay", "--format", "openai-chat", file]) == 2
    assert "is no stream of openai-chat: nothing of this stream" in capsys.readouterr().err


def test_a_dialect_may_be_read_as_what_it_is_a_dialect_of(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(lines(chat("Hi", "stop"))), "--format", "mistral"]) == 0
    assert capsys.readouterr().out == "Hi\n"


def test_the_version_is_the_librarys(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (0, f"rxdelta {rd.__version__}\n")


def test_the_help_lists_each_format_once_and_sorted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["replay", "--help"])
    said = re.sub(r"-\s+|\s+", lambda gap: gap[0].rstrip() or " ", capsys.readouterr().out)
    assert ", ".join(sorted(rd.providers.FORMATS)) in said
    assert said.count("openai-completions") == 1


@pytest.mark.parametrize("speed", ["-1", "nan", "inf", "fast"])
def test_a_speed_is_a_number(speed: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", f"--speed={speed}"])
    assert f"argument --speed: must be a number, 0 or more (got '{speed}')" in capsys.readouterr().err


def test_the_command_alone_shows_how_to_begin(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    said = capsys.readouterr().out
    assert "replay a bundled sample" in said
    assert "rxdelta demo" in said


@pytest.mark.parametrize(
    ("arguments", "meant"), [(["dmo"], "demo"), (["repaly", "x"], "replay"), (["demo", "wether"], "weather")]
)
def test_a_typing_error_is_told_the_likely_word(
    arguments: list[str], meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert f"did you mean '{meant}'?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x7fELF\x02\x01\x00\x00", "it is no text"),
        (b"\x1f\x8b\x08\x08xyz", "gunzip -c FILE | rxdelta replay -"),
    ],
)
def test_what_is_no_text_is_refused_without_showing_it(
    data: bytes, said: str, recording: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", recording(data)]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert "\\x" not in err


def test_a_missing_file_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "/does/not/exist"]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["replay"], ["demo", "nothing"], ["demo", "--speed", "-1"], ["demo", "--format", "x"]]
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


def said(node: str, text: str, **more: Any) -> list[Any]:
    """A chunk as LangGraph emits it."""
    message = {"type": "AIMessageChunk", "content": text, "id": f"lc_run--{node}", **more}
    return [message, {"langgraph_node": node, "langgraph_checkpoint_ns": f"{node}:1"}]


def test_the_tuples_of_langgraph_are_not_taken_apart(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    """A list is a list of chunks, but a message goes with its metadata, which say whose it is."""
    one = [said("a", "Hi"), said("a", "", chunk_position="last")]
    for items in (
        one,
        *([[*shape, item] for item in one] for shape in ([[]], ["messages"], [["n:1"], "messages"])),
    ):
        for data in (lines(*items), lines(items)):  # also all in one list
            code, reply, _ = run_json(capsys, "replay", recording(data))
            assert (code, reply["blocks"][0]["text"], reply["run_id"]) == (0, "Hi", "a:1/lc_run--a")


TWO_AGENTS = [said("a", "Hi"), said("b", "Ho"), said("a", "!", chunk_position="last")]


def test_each_message_of_several_agents_is_shown(capsys: pytest.CaptureFixture[str], recording: Any) -> None:
    path = recording(lines(*TWO_AGENTS))
    assert main(["replay", path]) == 3
    out, err = capsys.readouterr()
    assert out == "Hi!\nHo\n"
    assert err.splitlines()[:2] == ["complete · stop · run a:1/lc_run--a", "incomplete · run b:1/lc_run--b"]
    assert main(["replay", path, "--json"]) == 3
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (rd.Message.from_dict(first).text, first["run_id"]) == ("Hi!", "a:1/lc_run--a")
    assert (rd.Snapshot.from_dict(second).text, second["error"]["type"]) == ("Ho", "IncompleteMessageError")


def test_messages_one_after_the_other_are_told_apart(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    path = recording(lines(*(said(node, node, chunk_position="last") for node in "ab")))
    assert main(["replay", path]) == 0
    assert capsys.readouterr().out == "a\nb\n"


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
        assert process.stdout.read(2) == b"Hi"
        process.stdin.write(lines(chat("", "tool_calls")))
        process.stdin.close()
        assert process.stdout.read() == b"\n"
    assert process.returncode == 0


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_who_reads_no_further_ends_it_without_a_word(more: list[str]) -> None:
    """As `| head -1` does."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        program = [sys.executable, "-m", "rxdelta", "demo", *more]
        done = subprocess.run(program, stdout=gone, stderr=subprocess.PIPE, check=False, timeout=SECONDS)
    assert done.returncode == 141
    assert b"rxdelta" not in done.stderr


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "said"),
    [
        (1, ["demo", "overloaded"], 3, b"incomplete"),
        (1, ["demo", "--json"], 0, b""),
        (0, ["replay", "-"], 2, b"rxdelta: cannot read -: Bad file descriptor\n"),
        (2, ["demo", "overloaded"], 3, b""),
    ],
)
def test_a_closed_stream_is_no_crash(closed: int, arguments: list[str], code: int, said: bytes) -> None:
    program = f"exec {shlex.quote(sys.executable)} -m rxdelta {' '.join(arguments)} {closed}>&-"
    done = subprocess.run(program, shell=True, stderr=subprocess.PIPE, check=False, timeout=SECONDS)
    assert done.returncode == code
    assert done.stderr == said or (said and done.stderr.startswith(said))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_full_disk_is_no_unreadable_file(more: list[str]) -> None:
    with open("/dev/full", "wb") as full:
        program = [sys.executable, "-m", "rxdelta", "demo", *more]
        done = subprocess.run(program, stdout=full, stderr=subprocess.PIPE, check=False, timeout=SECONDS)
    assert done.returncode == 1
    assert done.stderr.endswith(b"rxdelta: cannot write the output: No space left on device\n")


class Terminal:
    """A terminal in which the command runs."""

    def __init__(self, *arguments: str, stdin: int = subprocess.DEVNULL, **environment: str) -> None:
        self._keeper, terminal = pty.openpty()
        self._seen = b""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "rxdelta", *arguments],
            stdin=stdin,
            stdout=terminal,
            stderr=terminal,
            env=os.environ | {"TERM": "xterm-256color", "COLUMNS": "200", "LINES": "60"} | environment,
        )
        os.close(terminal)

    @property
    def seen(self) -> str:
        return self._seen.decode("utf-8", "ignore")  # a letter may have come in half

    def until(self, words: str) -> None:
        while words not in self.seen:
            assert self._read(), self.seen

    def code(self) -> int:
        while self._read():
            pass
        return self.process.wait(SECONDS)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._keeper)

    def _read(self) -> bool:
        assert select.select([self._keeper], [], [], SECONDS)[0], self.seen
        try:
            data = os.read(self._keeper, 65536)
        except OSError:  # the other end is closed
            return False
        self._seen += data
        return bool(data)


@contextmanager
def terminal(*arguments: str, **more: Any) -> Iterator[Terminal]:
    pytest.importorskip("rich")
    shown = Terminal(*arguments, **more)
    try:
        yield shown
    finally:
        shown.close()


def test_a_terminal_gets_a_live_picture() -> None:
    with terminal("demo", "--speed", "0") as shown:
        assert shown.code() == 0
        assert "╭" in shown.seen
        assert "tool_call get_forecast" in shown.seen
        assert "input tokens" in shown.seen.splitlines()[-2]
        assert "rxdelta replay FILE" in shown.seen.splitlines()[-1]


@pytest.mark.parametrize(
    "poor", [{"TERM": "dumb"}, {"PYTHONIOENCODING": "ascii"}], ids=["cannot move", "cannot write boxes"]
)
def test_a_terminal_that_cannot_show_a_picture_gets_the_text(poor: dict[str, str]) -> None:
    with terminal("demo", "--speed", "0", **poor) as shown:
        assert shown.code() == 0
        assert "\x1b" not in shown.seen
        assert "**Lisbon**" in shown.seen
        assert shown.seen.count("\n[tool_call] get_forecast(") == 2


@pytest.mark.parametrize("kind", ["text", "reasoning"])
def test_a_block_that_has_just_begun_is_drawn_empty(kind: str) -> None:
    console = pytest.importorskip("rich.console").Console(width=40)
    with console.capture() as drawn:
        console.print(picture(rd.Fold().step(rd.events.BlockStart(0, {"type": kind}))))
    assert f"{kind} …" in drawn.get()
    assert "{" not in drawn.get()


def test_a_picture_that_is_higher_than_the_terminal_is_drawn_once() -> None:
    """Only what is on the screen can be drawn anew: the rest would stay, once for each snapshot."""
    chunks = [chat(f"line{number} is here\n\n") for number in range(40)]
    ours, theirs = os.pipe()
    try:
        with terminal("replay", "-", stdin=ours, LINES="12", COLUMNS="40") as shown:
            for number in range(0, 40, 10):
                os.write(theirs, lines(*chunks[number : number + 10]))
                shown.until(f"line{number + 9} ")
            os.write(theirs, lines(chat("", "stop")))
            os.close(theirs)
            assert shown.code() == 0
            *drawn, whole = shown.seen.split("\x1b[1A\x1b[2K" * 11)
            assert len(drawn) > 2
            assert not any("line0 " in more for more in drawn[1:])
            assert [f"line{number} " in whole for number in range(40)] == [True] * 40
    finally:
        os.close(ours)


# What a model could do to whoever watches: set the title, write the clipboard, wipe the screen (twice, once in C1),
# overwrite the line, ring, turn the direction of writing.
STEERS = "\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b[2J\x9b2J\rover\x7f\u202eexe\u2066."
SHOWN = "␛]0;owned␇␛]52;c;b3duZWQ=␇␛[2J\\u009b2J␍over␡\\u202eexe\\u2066."
TERMINAL = re.compile(
    r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\"
)  # what rich writes: styles, moves, links


def hostile_reply() -> bytes:
    def calls(index: int, name: str, arguments: str) -> dict[str, Any]:
        return {
            "tool_calls": [{"index": index, "id": name, "function": {"name": name, "arguments": arguments}}]
        }

    deltas = [
        {"reasoning_content": f"reasoning{STEERS}"},
        {"content": f"text{STEERS}"},
        calls(0, f"name{STEERS}", json.dumps({"a": f"argument{STEERS}"}, ensure_ascii=False)),
        calls(1, "cut", f'{{"a": "raw{STEERS}'),
    ]
    head = {"id": "c", "model": f"model{STEERS}"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]}
    return lines(*chunks, end)


PLACES = ["reasoning", "text", "name", "raw", "model"]


@says("**Output that acts.**")
def test_a_providers_control_characters_are_symbols_in_a_pipe(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(hostile_reply())]) == 0
    out, err = capsys.readouterr()
    assert out == f"text{SHOWN}\n"
    for place in set(PLACES) - {"text"}:
        assert place + SHOWN.replace("␍", " " if place == "reasoning" else "␍") in err
    assert "argument\\u001b]0;owned\\u0007" in err
    assert visible(err) == err


@says("**Output that acts.**")
def test_a_providers_control_characters_are_symbols_on_a_terminal(recording: Any) -> None:
    with terminal("replay", recording(hostile_reply()), "--speed", "0") as shown:
        assert shown.code() == 0
        drawn = TERMINAL.sub("", shown.seen).replace("\r\n", "\n").replace("\r", "\n")
        for place in PLACES:
            assert place + SHOWN in drawn
        assert "argument\\u001b]0;owned\\u0007" in drawn
        assert visible(drawn) == drawn


@says("**Output that acts.**")
def test_a_providers_control_characters_in_its_error_are_symbols(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    error = {"error": {"message": f"error{STEERS}", "type": "server_error"}}
    assert main(["replay", recording(lines(chat("Hi"), error))]) == 3
    said = capsys.readouterr().err
    assert said.endswith(f"error{SHOWN}\n")


def test_an_address_that_is_decoded_on_a_terminal_is_shown_with_symbols(recording: Any) -> None:
    text = "<http://x/%1b[2J%07%C2%9B%E2%80%AE> and &#x202e;"
    with terminal("replay", recording(lines(chat(text, "stop"))), "--speed", "0") as shown:
        assert shown.code() == 0
        drawn = TERMINAL.sub("", shown.seen.replace("\x1b[2J", "WIPED")).replace("\r", "")
        assert "http://x/␛[2J" in drawn
        assert "and \\u202e" in drawn
        assert visible(drawn) == drawn
        assert "WIPED" not in drawn


def test_a_tools_name_is_no_markup_on_a_terminal(recording: Any) -> None:
    names = ["get[/bold]", "[@click=app.quit()]x[/]", "[red]x[/red]", ":smile:"]
    calls = [
        {"index": place, "id": f"c{place}", "function": {"name": name, "arguments": "{}"}}
        for place, name in enumerate(names)
    ]
    chunk = {
        "id": "c",
        "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}],
    }
    with terminal("replay", recording(lines(chunk)), "--speed", "0") as shown:
        assert shown.code() == 0
        drawn = TERMINAL.sub("", shown.seen)
        assert [f"tool_call {name} ─" in drawn for name in names] == [True] * len(names)


def test_json_has_no_control_characters_and_says_what_came(
    capsys: pytest.CaptureFixture[str], recording: Any
) -> None:
    assert main(["replay", recording(hostile_reply()), "--json"]) == 0
    said = capsys.readouterr().out
    assert visible(said) == said
    assert rd.Message.from_dict(json.loads(said)).text == f"text{STEERS}"


def test_lines_and_tabs_are_the_texts_own_but_nobody_elses() -> None:
    assert visible("a\tb\r\nc\n") == "a\tb\nc\n"
    assert visible("a\tb\r\nc", lines=False) == "a␉b␊c"
    assert visible("a\rb") == "a␍b"


def test_what_needs_no_symbol_stays() -> None:
    text = "Grüße, 你好, שלום, 👩‍👩‍👧, naïve, ½ \xa0 \u200d \u3000"
    assert visible(text) == visible(text, lines=False) == text


@pytest.mark.parametrize("more", [[], ["--json"]], ids=["lines", "json"])
def test_an_encoding_that_lacks_the_letters_loses_nothing(more: list[str], recording: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rxdelta", "replay", recording(lines(chat("Zürich 你 😀", "stop"))), *more],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii"},
        timeout=SECONDS,
    )
    assert (done.returncode, done.stderr) == (0, b"" if more else b"complete - stop - m\n")
    if more:
        assert json.loads(done.stdout)["blocks"][0]["text"] == "Zürich 你 😀"
    else:
        assert done.stdout == rb"Z\xfcrich \u4f60 \U0001f600" + b"\n"


STOPS = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "sigterm"]
)
STARTED = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x": 1, "y'}}
SILENT = lines(chat("Hi"), {"id": "c1", "choices": [{"index": 0, "delta": {"tool_calls": [STARTED]}}]})


@pytest.fixture
def children_heed_ctrl_c() -> Iterator[None]:
    """A shell that runs the tests in the background lets them ignore SIGINT, and a child inherits that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@STOPS
@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_a_stop_on_a_silent_pipe_prints_what_had_come(number: signal.Signals, code: int) -> None:
    program = [sys.executable, "-m", "rxdelta", "replay", "-"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(program, **pipes) as process:
        try:
            process.stdin.write(SILENT)
            process.stdin.flush()
            assert process.stdout.read(2) == b"Hi"
            process.send_signal(number)
            process.wait(SECONDS)  # while the pipe is open
            assert process.stdout.read() == b"\n"
            assert process.stderr.read().decode().splitlines() == [
                '[invalid_tool_call] f({"x": 1, "y)',
                "interrupted · m",
                "rxdelta: stopped",
            ]
        finally:
            process.kill()
    assert process.returncode == code


@STOPS
@pytest.mark.usefixtures("children_heed_ctrl_c")
def test_a_stop_on_a_terminal_leaves_it_as_it_was(number: signal.Signals, code: int) -> None:
    ours, theirs = os.pipe()
    try:
        with terminal("replay", "-", stdin=ours) as shown:
            os.write(theirs, SILENT)
            shown.until("tool_call f")
            shown.process.send_signal(number)
            assert shown.code() == code
            assert shown.seen.rindex("\x1b[?25h") > shown.seen.rindex("\x1b[?25l")  # the cursor
            assert "rxdelta: stopped" in shown.seen
            assert "interrupted · m" in TERMINAL.sub("", shown.seen)
    finally:
        os.close(ours)
        os.close(theirs)


# Where rich draws: `console.print(message)`, `Live(snapshot)`.


def test_a_reply_is_drawn_by_rich_without_a_word_of_ours() -> None:
    console_module = pytest.importorskip("rich.console")
    from rich.live import Live

    hostile = "[bold]so[/bold] \x1b[2J\u202e"
    message = rd.Message.of("assistant", [hostile, rd.ContentPart("reasoning", hostile)])
    snapshot = rd.apply_event(rd.Snapshot(), rd.events.BlockStart(0, {"type": "text", "text": hostile}))
    console = console_module.Console(file=io.StringIO(), width=60, force_terminal=True)
    console.print(message)
    with Live(snapshot, console=console, auto_refresh=False):
        pass
    drawn = console.file.getvalue()
    assert drawn.count("[bold]so[/bold]") >= 3
    assert "\x1b[2J" not in drawn
    assert "\u202e" not in drawn
    assert "complete" in drawn
