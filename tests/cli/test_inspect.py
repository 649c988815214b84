"""`rxdelta inspect`: a line for each event, and an account of each reply."""

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
from support.shared import RECORDED, recordings
from support.timed_recordings import HEAD, agents, reply, timed, write

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.events import (
    AttemptReset,
    BlockFinish,
    BlockStart,
    Custom,
    MessageFinish,
    MessageStart,
    StreamError,
    TextDelta,
)
from rxdelta.testing import SAMPLES, FakeProvider, open_sample


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


class Said:
    """What the command printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        listed, _, accounts = out.partition("\n\n")
        self.head, *self.events = listed.splitlines() or [""]
        stream, *replies = accounts.split("\n\n")
        self.stream, self.replies = _facts(stream), [_facts(one) for one in replies]

    @property
    def reply(self) -> dict[str, str]:
        (only,) = self.replies
        return only


def _facts(lines: str) -> dict[str, str]:
    return {line[:18].strip(): line[18:] for line in lines.splitlines() if line.startswith("  ")}


@pytest.fixture
def inspect(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> Said:
        code = main(["inspect", *map(str, arguments)])
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return run


@pytest.fixture
def inspect_json(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> dict[str, Any]:
        main(["inspect", "--json", *map(str, arguments)])
        found: dict[str, Any] = json.loads(capsys.readouterr().out)
        return found

    return run


def test_each_event_is_a_line_with_its_number_time_gap_block_size_and_words(path: Path, inspect: Any) -> None:
    said = inspect(write(path, timed(reply("Hello there"))))
    assert said.head.split() == ["event", "seconds", "gap", "block", "what", "size", "says"]
    assert [line.split() for line in said.events] == [
        ["1", "0.500", "message", "start", "m1", "·", "model-1"],
        ["2", "0.600", "+0.100", "0", "reasoning", "start"],
        ["3", "0.700", "+0.100", "0", "reasoning", "3", '"Hm."'],
        ["4", "0.800", "+0.100", "0", "reasoning", "finish"],
        ["5", "0.900", "+0.100", "1", "text", "start"],
        ["6", "1.000", "+0.100", "1", "text", "6", '"Hello', '"'],
        ["7", "1.100", "+0.100", "1", "text", "6", '"there', '"'],
        ["8", "1.200", "+0.100", "1", "text", "finish"],
        [
            "9",
            "1.300",
            "+0.100",
            "usage",
            *[
                "tokens:",
                "20",
                "input,",
                "10",
                "output,",
                "7",
                "read",
                "from",
                "cache,",
                "3",
                "of",
                "reasoning",
            ],
        ],
        ["10", "1.400", "+0.100", *["message", "finish", "stop", "(the", "provider's", "word:", "end_turn)"]],
    ]


def test_the_account_says_what_the_reply_is_how_it_ended_and_how_fast_it_came(
    path: Path, inspect: Any
) -> None:
    said = inspect(write(path, timed(reply("Hello there"))))
    assert said.code == 0
    assert said.err == ""
    assert said.stream == {"holds": "events", "size": "10 events", "lasts": "1.400 s"}
    assert said.reply == {
        "id": "m1",
        "model": "model-1",
        "status": "complete",
        "finish reason": "stop (the provider's word: end_turn)",
        "events": "10",
        "blocks": "2",
        "first event": "at 0.500 s",
        "first content": "at 0.700 s",
        "first text": "at 1.000 s",
        "last event": "at 1.400 s",
        "longest gap": said.reply["longest gap"],
        "speed": "25.0 tokens a second, from the first content to the last",
        "tokens": "20 input, 10 output, 7 read from cache, 3 of reasoning",
        "block 0": "reasoning · 3 characters in 1 piece · 0.600 s – 0.800 s",
        "block 1": "text · 12 characters in 2 pieces · 0.900 s – 1.200 s",
    }


def test_the_longest_gap_is_named_with_its_place(path: Path, inspect: Any) -> None:
    events = timed(reply("one two three"))
    events = [(at if place < 6 else at + 2.5, event) for place, (at, event) in enumerate(events)]
    said = inspect(write(path, events))
    assert said.reply["longest gap"] == "2.600 s, from 1.000 s to 3.600 s, before event 7"


@pytest.mark.parametrize("sample", SAMPLES)
def test_a_capture_without_times_is_listed_without_them(sample: str, inspect: Any, path: Path) -> None:
    with open_sample(sample) as file:
        path.write_bytes(file.read())
    said = inspect(path)
    assert "seconds" not in said.head
    assert said.stream["times"] == "none: the events are in order, and not in time"
    assert said.stream["format"] == ("openai-chat" if sample == "tides" else "anthropic-messages")
    assert not {"speed", "first text", "longest gap"} & set(said.reply)
    assert said.code == (3 if sample == "overloaded" else 0)


def test_standard_input_is_read_too(inspect: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_sample("tides") as file:
        data = file.read()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert inspect("-").reply["finish reason"] == "tool_use (the provider's word: tool_calls)"


def test_bytes_and_text_that_were_cut_anywhere_hold_the_same_chunks(path: Path, inspect: Any) -> None:
    import base64

    with open_sample("tides") as file:
        data = file.read()
    pieces = [data[at : at + 97] for at in range(0, len(data), 97)]
    lines = [HEAD, *({"t": 0.5, "bytes": base64.b64encode(piece).decode()} for piece in pieces)]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, {"t": 0.5, "end": True}]))
    said = inspect(path)
    assert said.stream["holds"] == "bytes"
    assert said.stream["size"] == "50 events, 45 chunks"
    assert said.reply["status"] == "complete"


def test_a_stored_message_is_called_one(path: Path, inspect: Any) -> None:
    fold = rd.Fold()
    *_, last = [fold.step(event) for event in reply("Hello there")]
    path.write_text(json.dumps(last.to_message().to_dict(), indent=2))
    said = inspect(path)
    assert said.code == 0
    assert said.stream["holds"] == "stored messages"
    assert said.reply["model"] == "model-1"


def test_a_chunk_of_which_nothing_is_made_has_a_line(path: Path, inspect: Any) -> None:
    with open_sample("weather") as file:
        path.write_bytes(file.read())
    said = inspect(path)
    empty = [line for line in said.events if line.split()[:3] == ["-", "no", "event"]]
    assert any(line.endswith('{"type": "ping"}') for line in empty)
    assert said.stream["size"].endswith(f"{len(empty)} of them without an event")


def test_fields_that_nothing_reads_are_named_with_how_often_they_came(path: Path, inspect: Any) -> None:
    def chunk(text: str, **more: Any) -> dict[str, Any]:
        choice = {"index": 0, "delta": {"content": text}, "text": text or "-", "logprobs": None}
        return {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}

    last = chunk("")
    last["choices"][0]["finish_reason"] = "stop"
    said = inspect(write(path, timed([chunk("Hi"), chunk(" you", colour={"red": 1}), last])))
    assert said.stream["unread fields"] == "choices[].text (3)", "what is kept among the metadata was read"


@pytest.mark.parametrize(
    "chunks",
    [
        pytest.param(one.values[0], id=name, marks=one.marks)
        for name in RECORDED
        for one in recordings(name)[:6:2]
    ],
)
def test_the_account_is_that_of_the_decoders_own_events(chunks: Any, path: Path, inspect_json: Any) -> None:
    """The inspection watches which fields are read, and that changes nothing of what is read."""
    fold, decoder = rd.Fold(), rd.providers.decoder("auto")
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    snapshots = [
        fold.step(event) for event in [*events, *decoder.close()] if not isinstance(event, StreamError)
    ]
    found = inspect_json(write(path, timed(chunks)))
    account = found["replies"][0]
    if not snapshots:
        assert (account["error"] or {}).get("type") == "ProviderError"
        return
    blocks = snapshots[-1].blocks
    assert account["usage"] == (None if snapshots[-1].usage is None else snapshots[-1].usage.to_dict())
    assert account["status"] == snapshots[-1].status
    assert [one["type"] for one in account["blocks"]] == [block.type for block in blocks]


@pytest.mark.parametrize("wire_format", sorted(set(rd.providers.FORMATS) - {"openai-completions"}))
def test_a_call_has_its_size_and_its_name_in_every_format(
    wire_format: str, path: Path, inspect_json: Any
) -> None:
    call = rd.ToolCall(call_id="c1", name="look", arguments={"q": "x"})
    found = inspect_json(write(path, timed(FakeProvider(["Hello ", "there", call]).chunks(wire_format))))
    (account,) = found["replies"]
    assert found["format"] == wire_format
    assert account["violations"] == {}
    assert [(one["type"], one["name"]) for one in account["blocks"]] == [
        ("text", None),
        ("tool_call", "look"),
    ]
    text, arguments = (one["characters"] for one in account["blocks"])
    assert text == len("Hello there")
    assert len('{"q":"x"}') <= arguments <= len('{"q": "x"}')


def test_a_broken_rule_is_marked_at_its_event_and_counted(path: Path, inspect: Any) -> None:
    events = reply()
    events.insert(5, TextDelta(9, "lost"))
    events.append(TextDelta(1, "late"))
    said = inspect(write(path, timed(events)))
    assert "9     block                   4  !! delta_before_start" in said.events[5]
    assert "!! event_after_message_finish" in said.events[-1]
    assert said.reply["violations"] == "delta_before_start, event_after_message_finish"
    assert said.reply["block 9"].endswith("never began")


def test_the_providers_error_and_how_the_recording_broke_off_are_told(path: Path, inspect: Any) -> None:
    events = [*reply()[:6], StreamError("come back later", "overloaded_error")]
    said = inspect(write(path, timed(events)))
    assert said.code == 3
    assert said.events[-1].split()[2:] == ["+0.100", "error", "overloaded_error:", "come", "back", "later"]
    assert said.reply["error"].startswith("ProviderError: ")
    assert said.reply["status"] == "incomplete"
    cut = inspect(write(path, timed(reply()[:6]), end=False))
    assert cut.code == 3
    assert "broken off" in cut.events[-1]
    assert cut.stream["error"] == "StreamInterrupted: the recording ends before the stream did"


def test_a_block_of_an_unknown_type_is_named_by_it(path: Path, inspect: Any) -> None:
    block = BlockStart(0, {"type": "hologram", "depth": 3})
    said = inspect(write(path, timed([MessageStart("m"), block, BlockFinish(0), MessageFinish("stop")])))
    assert said.reply["block 0"].startswith("unsupported hologram · ")


def test_a_chunk_that_is_malformed_is_shown_with_what_is_wrong(path: Path, inspect: Any) -> None:
    with open_sample("forecast") as file:
        chunks = [json.loads(line) for line in file.read().splitlines()]
    chunks[5] = {"type": "content_block_delta", "index": "five", "delta": {"type": "text_delta", "text": "x"}}
    said = inspect(write(path, timed(chunks)))
    assert said.code == 3
    assert "malformed chunk" in said.events[-2]
    assert '"index": "five"' in said.events[-2]
    assert said.stream["error"].startswith(
        "MalformedChunkError: malformed anthropic-messages chunk: at index"
    )
    assert said.reply["status"] == "incomplete"


def test_a_reply_after_an_error_has_its_account(path: Path, inspect: Any) -> None:
    events = [*reply()[:6], StreamError("come back later"), *reply()]
    failed, whole = inspect(write(path, timed(events))).replies
    assert "come back later" in failed["error"]
    assert whole["status"] == "complete"
    assert "error" not in whole


def test_a_recorded_error_has_the_name_and_the_status_that_it_had(path: Path, inspect: Any) -> None:
    error = {"type": "RateLimitError", "module": "sdk", "message": "slow down", "status_code": 429}
    lines = [HEAD, *({"t": at, "event": event.to_dict()} for at, event in timed(reply()[:6]))]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, {"t": 9, "error": error}]))
    said = inspect(path)
    assert said.stream["error"] == "RateLimitError (HTTP 429): slow down"


def test_each_run_and_each_choice_has_its_own_account(path: Path, inspect: Any) -> None:
    said = inspect(write(path, agents()))
    planner, helper = said.replies
    assert (planner["run"], planner["finish reason"]) == ("planner", "tool_use")
    assert planner["block 0"].endswith("tool completed")
    assert (helper["run"], helper["model"]) == ("helper, for planner", "model-2")
    assert said.events[0].split()[2] == "planner"
    choices = [*reply(), *reply(choice=1)]
    assert [one.get("choice") for one in inspect(write(path, timed(choices))).replies] == [None, "1"]
    turns = inspect(write(path, timed([*reply(), MessageStart("m2", "model-1"), *reply()[1:]])))
    assert [one["id"] for one in turns.replies] == ["m1", "m2"]


def test_a_failed_attempt_and_the_applications_events_are_listed(path: Path, inspect: Any) -> None:
    events = [*reply()[:6], AttemptReset(1, "cut off"), Custom("status", {"step": 2}), *reply()]
    said = inspect(write(path, timed(events)))
    assert said.reply["failed attempts"] == "1"
    assert "block 1 of attempt 1" in said.out
    assert "block 1 of attempt 2" in said.out
    assert [line for line in said.events if "custom             " in line and 'status {"step": 2}' in line]


def test_control_characters_of_a_model_are_spelt_out(path: Path, inspect: Any) -> None:
    evil = "\x1b[2J\u202eexe\x00"
    events = [
        MessageStart(evil, evil),
        BlockStart(0, {"type": "text"}),
        TextDelta(0, evil),
        MessageFinish("stop"),
    ]
    said = inspect(write(path, timed(events)))
    assert not set(said.out) & set("\x1b\u202e\x00")
    assert "\\u202eexe" in said.out


def test_raw_shows_each_chunk_below_its_first_event(path: Path, inspect: Any) -> None:
    with open_sample("forecast") as file:
        chunks = [json.loads(line) for line in file.read().splitlines()]
    said = inspect("--raw", write(path, timed(chunks)))
    assert json.loads(said.events[1]) == chunks[0]
    assert sum(line.startswith("      {") for line in said.events) == len(chunks)


def test_json_is_one_object_of_all_events_and_accounts(path: Path, inspect_json: Any) -> None:
    found = inspect_json(write(path, timed(reply("Hello there"))))
    assert found["events"][5] == {
        "number": 6,
        "at": 1.0,
        "gap": pytest.approx(0.1),
        "lane": None,
        "block": 1,
        "what": "text",
        "size": 6,
        "says": '"Hello "',
        "violation": None,
    }
    (account,) = found["replies"]
    assert account["tokens_per_second"] == pytest.approx(25)
    assert account["usage"]["cache_read_tokens"] == 7
    assert account["blocks"][1] | {"from": 0, "to": 0} == {
        "index": 1, "type": "text", "name": None, "characters": 12, "pieces": 2, "from": 0, "to": 0, "attempt": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (b"", "it is empty"),
        (b"<html><body>502 Bad Gateway</body></html>", "it is a web page"),
        (b'{"hello": "world"}\n', "no known wire format begins so"),
        (b"\x1f\x8b\x08", "gunzip -c FILE"),
        (b"a\0b", "it is no text"),
        (b"[" * 100_000, "no known stream"),
        (b'{"rxdelta": "recording", "version": 99}\n', "newer rxdelta"),
        (json.dumps(HEAD).encode() + b'\n{"t": -1, "end": true}\n', "line 2"),
    ],
)
def test_what_is_no_stream_is_refused_in_words(data: bytes, wrong: str, path: Path, inspect: Any) -> None:
    path.write_bytes(data)
    said = inspect(path)
    assert said.code == 2
    assert wrong in said.err
    assert "Traceback" not in said.err
    assert said.err.count("\n") == 1


def test_absurd_times_numbers_and_surrogates_are_shown(path: Path, inspect: Any) -> None:
    events = [
        (0.1, MessageStart("m")),
        (1e300, BlockStart(0, {"type": "text"})),
        (1e308, MessageFinish("stop")),
    ]
    said = inspect(write(path, events))
    assert said.reply["last event"] == "at 1e+308 s"
    chunk = {
        "id": "c",
        "choices": [{"index": 0, "delta": {"content": "\ud800"}, "finish_reason": "stop"}],
        "n": 10**400,
    }
    assert inspect("--raw", write(path, timed([chunk]))).code == 0


def test_a_terminal_cuts_lines_at_its_width_and_a_pipe_does_not(path: Path) -> None:
    write(path, timed(reply("word " * 3 + "x" * 300)))
    command = [sys.executable, "-m", "rxdelta", "inspect", str(path)]
    piped = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert max(map(len, piped.splitlines())) > 200
    leader, follower = pty.openpty()
    environment = {**os.environ, "COLUMNS": "70", "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=follower, stderr=follower, env=environment) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            if not data:
                break
            shown += data
    os.close(leader)
    assert process.returncode == 0
    listed = shown.decode().split("\r\n\r\n")[0]
    plain = "".join(
        part.partition("m")[2] if place else part for place, part in enumerate(listed.split("\x1b["))
    )
    assert max(map(len, plain.splitlines())) <= 70
    assert "…" in plain


def test_a_long_stream_is_not_kept(path: Path, inspect: Any) -> None:
    import tracemalloc

    def peak(count: int) -> int:
        events = [MessageStart("m"), BlockStart(0, {"type": "text"}), *[TextDelta(0, "")] * count]
        write(path, timed(events, 0.001))
        tracemalloc.start()
        try:
            with open(os.devnull, "w") as nowhere, pytest.MonkeyPatch.context() as patched:
                patched.setattr(sys, "stdout", nowhere)
                main(["inspect", str(path)])
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(100)  # what is imported
    assert peak(3000) < 1.5 * peak(1000)


@pytest.mark.parametrize("command", ["inspect", "diff"])
def test_an_output_that_is_closed_or_full_is_no_unreadable_file(command: str, path: Path) -> None:
    other = write(path.with_name("other.jsonl"), timed(reply("Something else")))
    files = [write(path, timed(reply()))] if command == "inspect" else [write(path, timed(reply())), other]
    program = [sys.executable, "-m", "rxdelta", command, *files]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as gone:
        done = subprocess.run(program, stdout=gone, stderr=subprocess.PIPE, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (141, b"")
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *program]
    done = subprocess.run(closed, stderr=subprocess.PIPE, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (int(command == "diff"), b"")
