"""What stands in the file of a recording."""

from __future__ import annotations

import json
import logging
import os
import stat
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import attrs
import pytest
import reactivex as rx
from reactivex.disposable import SerialDisposable
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.security_page import says

import rxdelta as rd
from rxdelta.recording import Recorder, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ev = rd.events
SECRET = "hunter2-planted"


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def written(path: Path, *values: Any, mask: Any = None) -> list[dict[str, Any]]:
    """The lines of a stream of these values, without the first and the last."""
    rx.of(*values).pipe(rd.record(path, mask=mask)).subscribe(on_error=print)
    return lines(path)[1:-1]


def test_each_line_is_one_of_the_documented_fields(tmp_path: Path) -> None:
    scheduler, path = TestScheduler(), tmp_path / "a.jsonl"
    source = scheduler.create_cold_observable(
        *(
            rx.testing.ReactiveTest.on_next(at, value)
            for at, value in [
                (1, {"id": "c"}),
                (2.5, ev.TextDelta(0, "é")),
                (3, "text"),
                (4, b"\xff"),
                (5, rd.wire.DONE),
            ]
        ),
        rx.testing.ReactiveTest.on_completed(6),
    )
    source.pipe(rd.record(path)).subscribe(scheduler=scheduler)
    scheduler.start()
    head, *rest = lines(path)
    assert (head["rxdelta"], head["version"]) == ("recording", 1)
    assert rest == [
        {"t": 1, "chunk": {"id": "c"}},
        {"t": 2.5, "event": ev.TextDelta(0, "é").to_dict()},
        {"t": 3, "text": "text"},
        {"t": 4, "bytes": "/w=="},
        {"t": 5, "chunk": "[DONE]"},
        {"t": 6, "end": True},
    ]
    assert '"é"' in path.read_text("utf-8"), "people read it"


def test_a_line_is_in_the_file_when_its_value_is_passed_on(tmp_path: Path) -> None:
    path, seen, source = tmp_path / "a.jsonl", list[int](), Subject[Any]()
    source.pipe(rd.record(path)).subscribe(lambda _: seen.append(len(lines(path))))
    source.on_next("a")
    source.on_next("b")
    assert seen == [2, 3]
    source.on_completed()


@says("A recording has all")
@pytest.mark.skipif(os.name != "posix", reason="file modes")
def test_only_the_owner_may_read_it_also_where_another_file_was(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    written(path, "a")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_each_subscription_writes_the_file_anew_or_one_of_its_own_by_its_number(tmp_path: Path) -> None:
    one, many = rd.record(tmp_path / "a.jsonl"), rd.record(str(tmp_path / "run-{n}.jsonl"))
    for text in ("a", "b", "c"):
        rx.of(text).pipe(one, many).subscribe()
    assert lines(tmp_path / "a.jsonl")[1]["text"] == "c"
    assert [lines(tmp_path / f"run-{n}.jsonl")[1]["text"] for n in (1, 2, 3)] == ["a", "b", "c"]


def test_two_replies_at_once_of_one_name_are_never_mixed(tmp_path: Path) -> None:
    path, first, second = tmp_path / "a.jsonl", Subject[str](), Subject[str]()
    operator = rd.record(path)
    first.pipe(operator).subscribe()
    first.on_next("first")
    second.pipe(operator).subscribe()
    for source in (second, first, second):
        source.on_next("first" if source is first else "second")
    first.on_completed()
    second.on_completed()
    assert [line.get("text") for line in lines(path)[1:]] == ["second", "second", None]


def test_a_recorder_that_makes_the_file_meanwhile_is_replaced_and_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, theirs, unlink = tmp_path / "a.jsonl", Subject[str](), os.unlink
    path.write_text("old")

    def unlink_slowly(name: Any) -> None:
        monkeypatch.undo()
        unlink(name)
        theirs.pipe(rd.record(path)).subscribe()

    monkeypatch.setattr(os, "unlink", unlink_slowly)
    ours = Subject[str]()
    ours.pipe(rd.record(path)).subscribe()
    theirs.on_next("theirs" * 99)
    ours.on_next("ours")
    theirs.on_completed()
    ours.on_completed()
    assert [line.get("text") for line in lines(path)[1:]] == ["ours", None]


def test_the_times_are_those_of_the_argument(tmp_path: Path) -> None:
    clock, source = TestScheduler(), Subject[str]()
    source.pipe(rd.record(tmp_path / "a.jsonl", scheduler=clock)).subscribe(scheduler=TestScheduler())
    clock.advance_to(7)
    source.on_next("a")
    assert [line["t"] for line in lines(tmp_path / "a.jsonl")[1:]] == [7]
    source.on_completed()


def test_many_threads_number_their_files_without_a_gap(tmp_path: Path) -> None:
    operator, begin = rd.record(tmp_path / "{n}.jsonl"), threading.Barrier(8)

    def subscribe() -> None:
        begin.wait()
        for _ in range(5):
            rx.of("a").pipe(operator).subscribe()

    threads = [threading.Thread(target=subscribe) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {path.name for path in tmp_path.iterdir()} == {f"{n}.jsonl" for n in range(1, 41)}
    assert all(len(lines(path)) == 3 for path in tmp_path.iterdir())


def test_threads_that_record_under_one_name_leave_a_whole_recording(tmp_path: Path) -> None:
    path, begin = tmp_path / "a.jsonl", threading.Barrier(8)

    def subscribe() -> None:
        begin.wait()
        for _ in range(5):
            rx.of("a").pipe(rd.record(path)).subscribe()

    threads = [threading.Thread(target=subscribe) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines(path)) == 3


# Objects.


@dataclass
class Data:
    name: str
    inside: Any = None


@attrs.frozen
class Attrs:
    name: str


class Pydantic:
    type = "kind"

    def model_dump(self, **_: Any) -> dict[str, Any]:
        return {"when": b"\x01", "tags": {"a"}}


@pytest.mark.parametrize(
    ("value", "chunk"),
    [
        (Data("a", Attrs("b")), {"name": "a", "inside": {"name": "b"}}),
        (Pydantic(), {"type": "kind", "when": "AQ==", "tags": ["a"]}),
        ({"chunk": {"bytes": b"{}"}}, {"chunk": {"bytes": "e30="}}),
        (("messages", [Data("a"), {"langgraph_node": "n"}]), ["messages", [{"name": "a", "inside": None}, {"langgraph_node": "n"}]]),
        (None, None),
        ([1, 2.5], [1, 2.5]),
    ],
    ids=["data", "pydantic", "bytes within", "tuple", "null", "list"],
)  # fmt: skip
def test_an_object_is_written_as_its_fields(tmp_path: Path, value: Any, chunk: Any) -> None:
    assert [line["chunk"] for line in written(tmp_path / "a.jsonl", value)] == [chunk]


def test_half_a_surrogate_pair_is_written_and_read(tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", "\ud83d", {"a": "\ude00"})
    assert [line.value for line in read_lines(tmp_path / "a.jsonl")][:2] == ["\ud83d", {"a": "\ude00"}]


# Masks.

MASKED: dict[str, Any] = {
    "a request's header": {"headers": {"Authorization": f"Bearer {SECRET}", "x-any-token": SECRET}},
    "a list of headers": {"headers": [["set-cookie", SECRET], ["content-type", "text/plain"]]},
    "boto3": {"ResponseMetadata": {"HTTPHeaders": {"x-amz-security-token": SECRET}}},
    "a tool of the response": {"response": {"tools": [{"type": "mcp", "headers": {"api-key": SECRET}}]}},
    "an authorization beside": {"response": {"tools": [{"type": "mcp", "authorization": SECRET}]}},
    "metadata": {"metadata": {"api_key": SECRET, "clientSecret": SECRET, "note": "kept"}},
    "a name of the environment": {"config": {"OPENAI_API_KEY": SECRET, "db_password": SECRET}},
    "cookies": {"meta": {"cookie": [SECRET, SECRET]}},
    "an object": {"config": Data("a", {"access_token": SECRET})},
    "an event": ev.ProviderEvent("p", "n", {"headers": {"Cookie": SECRET}}),
    "an event's metadata": ev.MessageStart(metadata={"refresh_token": SECRET}),
}


@says("In a recording")
@pytest.mark.parametrize("value", MASKED.values(), ids=MASKED)
def test_a_secret_is_masked_by_its_place(tmp_path: Path, value: Any) -> None:
    (line,) = written(tmp_path / "a.jsonl", value)
    assert SECRET not in str(line)
    assert "[redacted]" in str(line)


KEPT: dict[str, Any] = {
    "gemini": {"candidates": [{"content": {"parts": [{"functionCall": {"name": "f", "args": {"password": SECRET}}}]}}]},
    "anthropic": {"type": "content_block_start", "content_block": {"type": "tool_use", "input": {"api_key": SECRET}}},
    "cohere": {"delta": {"message": {"tool_calls": {"function": {"arguments": {"cookie": SECRET}}}}}},
    "ollama": {"message": {"tool_calls": [{"function": {"arguments": {"headers": {"authorization": SECRET}}}}]}},
    "a result": ev.ToolUpdate("c", "completed", result=rd.ToolResult("c", {"access_token": SECRET})),
    "a block": ev.BlockStart(0, {"type": "tool_call", "id": "c", "name": "f", "args": {"password": SECRET}}),
    "counts": {"usage": {"tokens": 3, "prompt_tokens": 5}, "logprobs": [{"token": "Hi"}]},
    "rates": {"headers": {"x-ratelimit-remaining-tokens": "5", "content-type": "text/plain"}},
    "a schema": {"response": {"tools": [{"parameters": {"properties": {"password": {"type": "string"}}}}]}},
    "no text": {"metadata": {"api_key": None, "password": "", "authorization": True}},
}  # fmt: skip


@says("A recording has all")
@pytest.mark.parametrize("value", KEPT.values(), ids=KEPT)
def test_what_the_model_wrote_replays_equal_whatever_its_name_is(tmp_path: Path, value: Any) -> None:
    written(tmp_path / "a.jsonl", value)
    assert next(read_lines(tmp_path / "a.jsonl")).value == value


def test_a_mask_leaves_the_stream_as_it_is_and_sees_what_is_masked_already(tmp_path: Path) -> None:
    chunks, got = [{"user": "me"}, {"user": "me", "headers": {"cookie": SECRET}}], list[Any]()

    def mask(line: dict[str, Any]) -> dict[str, Any]:
        assert SECRET not in str(line)
        if "chunk" in line:
            line["chunk"]["user"] = "someone"
        return line

    rx.from_iterable(chunks).pipe(rd.record(tmp_path / "a.jsonl", mask=mask)).subscribe(got.append)
    assert got == [{"user": "me"}, {"user": "me", "headers": {"cookie": SECRET}}]
    assert [line["chunk"]["user"] for line in lines(tmp_path / "a.jsonl")[1:-1]] == ["someone"] * 2


def test_a_mask_gets_each_line_also_that_of_an_error(tmp_path: Path) -> None:
    def mask(line: dict[str, Any]) -> dict[str, Any]:
        return json.loads(json.dumps(line).replace("Erika", "N.N."))  # type: ignore[no-any-return]

    source = rx.concat(rx.of("Erika"), rx.throw(ValueError("no Erika here")))
    source.pipe(rd.record(tmp_path / "a.jsonl", mask=mask)).subscribe(on_error=lambda _: None)
    _, text, error = lines(tmp_path / "a.jsonl")
    assert (text["text"], error["error"]["message"]) == ("N.N.", "no N.N. here")


@says("In a recording")
def test_a_secret_in_the_text_of_an_error_is_removed(tmp_path: Path) -> None:
    failed = rx.throw(RuntimeError("401 for https://api.test?api_key=sk-abc123def456"))
    failed.pipe(rd.record(tmp_path / "a.jsonl")).subscribe(on_error=lambda _: None)
    assert "sk-abc" not in (tmp_path / "a.jsonl").read_text("utf-8")


# What goes wrong.


def test_a_mask_may_end_the_stream(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path, source, reading = tmp_path / "a.jsonl", Subject[str](), SerialDisposable()

    def mask(line: dict[str, Any]) -> dict[str, Any]:
        reading.dispose()
        return line

    reading.disposable = source.pipe(rd.record(path, mask=mask)).subscribe()
    source.on_next("a")
    source.on_next("b")
    assert (lines(path)[1:], caplog.records) == ([], [])


def raises(_: Any) -> Any:
    raise LookupError(SECRET[:4])


class Unknown:
    pass


FAULTS: dict[str, tuple[Any, Callable[..., Any] | None]] = {
    "a mask that raises": ("b", lambda line: line if line.get("text") != "b" else raises(line)),
    "a mask that returns nothing": ("b", lambda line: line if line.get("text") != "b" else None),
    "an unknown object": (Unknown(), None),
    "an unknown object within": ({"a": [Unknown()]}, None),
    "a snapshot": (rd.Snapshot(), None),
    "a key that JSON hasn't": ({(1, 2): "a"}, None),
}


@pytest.mark.parametrize(("fault", "mask"), FAULTS.values(), ids=FAULTS)
def test_what_cant_be_written_ends_the_recording_and_not_the_stream(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: Any, mask: Any
) -> None:
    got: list[Any] = []
    values = ["a", fault, "c"]
    rx.of(*values).pipe(rd.record(tmp_path / "a.jsonl", mask=mask)).subscribe(
        got.append, got.append, lambda: got.append("|")
    )
    assert got == [*values, "|"]
    assert [line.get("text") for line in lines(tmp_path / "a.jsonl")] == [None, "a"], "it has no hole"
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("rxdelta", logging.ERROR)
    *_, last = read_lines(tmp_path / "a.jsonl")
    assert isinstance(last.value, rd.RecordedError)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full")
def test_a_disk_that_is_full_already_is_the_streams_error(tmp_path: Path) -> None:
    errors: list[Exception] = []
    full = tmp_path / "full"  # so that no fault of ours replaces the device itself
    full.symlink_to("/dev/full")
    rx.of("a").pipe(rd.record(full)).subscribe(on_error=errors.append)
    assert full.is_symlink()
    assert [type(error) for error in errors] == [OSError]


class Filling:
    """A file on a disk that takes only so many bytes, some of them of a line."""

    def __init__(self, room: int) -> None:
        self.data, self.room, self.closed = b"", room, False

    def write(self, data: bytes) -> int:
        if not self.room:
            raise OSError(28, "No space left on device")
        taken = data[: min(self.room, 7)]
        self.data, self.room = self.data + taken, self.room - len(taken)
        return len(taken)

    def close(self) -> None:
        self.closed = True


def test_a_disk_that_fills_up_leaves_all_whole_lines(tmp_path: Path) -> None:
    file: Any = Filling(110)
    recorder = Recorder(file, lambda: 0.0)
    with pytest.raises(OSError, match="No space"):
        for _ in range(9):
            recorder.value("ab")
    recorder.value("more")
    recorder.end()
    assert file.closed
    path = tmp_path / "a.jsonl"
    path.write_bytes(file.data)
    found = [*read_lines(path)]
    assert {line.value for line in found[:-1]} == {"ab"}
    assert found[-1].kind == "error"


def test_a_directory_that_is_missing_is_the_streams_error_and_nothing_is_subscribed(tmp_path: Path) -> None:
    subscribed, errors = list[int](), list[Exception]()
    source = rx.defer(lambda _: subscribed.append(1) or rx.of("a"))
    source.pipe(rd.record(tmp_path / "none" / "a.jsonl")).subscribe(on_error=errors.append)
    assert subscribed == []
    (error,) = errors
    assert isinstance(error, FileNotFoundError)
    assert "a.jsonl" in str(error)


@pytest.mark.parametrize("path", [None, 5, "", "a\0b", b"a", True], ids=repr)
def test_what_is_no_path_is_refused_at_once(path: Any) -> None:
    for make in (rd.record, rd.from_recording, lambda path: rd.stream([], record=path or 0)):
        with pytest.raises(rd.InvalidValueError, match="path of a file"):
            make(path)


def test_a_mask_that_cant_be_called_and_snapshots_are_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(rd.InvalidValueError, match="mask"):
        rd.record("a", mask=5)  # type: ignore[arg-type]
    with pytest.raises(rd.InvalidValueError, match=r"scan_deltas\(\) emits snapshots: put it in front"):
        rx.of(ev.TextDelta(0, "a")).pipe(rd.scan_deltas(), rd.record(tmp_path / "a"))


def test_a_reader_that_leaves_early_leaves_a_recording_without_an_end(tmp_path: Path) -> None:
    path, source = tmp_path / "a.jsonl", Subject[str]()
    reading = source.pipe(rd.record(path)).subscribe()
    source.on_next("a")
    reading.dispose()
    source.on_next("b")
    *values, last = read_lines(path)
    assert [line.value for line in values] == ["a"]
    assert (last.kind, last.value.type) == ("error", "StreamInterrupted")
