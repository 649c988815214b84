"""`from_recording`: what was recorded comes again, when it came."""

from __future__ import annotations

import asyncio
import io
import json
import os
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex.disposable import SerialDisposable
from reactivex.testing import TestScheduler
from support.loops import run
from support.replies import OPENAI, sse
from support.sdk_objects import SDK_FORMATS, sdk_objects
from support.shared import RECORDED, recordings
from support.streams import streams

import rxdelta as rd
from rxdelta.recording import Line, Recorder, read_lines
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from pathlib import Path

    from reactivex import Observable

ev = rd.events
HEAD = b'{"rxdelta": "recording", "version": 1}\n'


def played(source: Observable[Any], scheduler: TestScheduler | None = None) -> list[tuple[float, Any]]:
    """The notifications of a stream, with their times since the subscription."""
    got: list[tuple[float, Any]] = []
    clock = scheduler or TestScheduler()

    def at() -> float:
        return round(clock._clock, 6)

    source.subscribe(
        lambda value: got.append((at(), value)),
        lambda error: got.append((at(), repr(error))),
        lambda: got.append((at(), "|")),
        scheduler=clock,
    )
    clock.start()
    return got


def kept(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_bytes(HEAD + b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    return path


@pytest.fixture
def three(tmp_path: Path) -> Path:
    values = [{"t": at, "text": text} for at, text in ((0, "a"), (0.1, "b"), (7200.3, "c"))]
    return kept(tmp_path / "a.jsonl", *values, {"t": 7200.4, "end": True})


# Time.


@pytest.mark.parametrize(
    ("speed", "times"),
    [(1, [0, 0.1, 7200.3, 7200.4]), (2, [0, 0.05, 3600.15, 3600.2]), (0.5, [0, 0.2, 14400.6, 14400.8]), (0, [0] * 4)],
)  # fmt: skip
def test_each_value_comes_at_its_time_by_the_speed(three: Path, speed: float, times: list[float]) -> None:
    assert played(rd.from_recording(three, speed)) == list(zip(times, ["a", "b", "c", "|"]))


def test_the_times_dont_drift(tmp_path: Path) -> None:
    path = kept(
        tmp_path / "a.jsonl", *({"t": n / 10, "text": "x"} for n in range(5000)), {"t": 500, "end": True}
    )
    assert [at for at, _ in played(rd.from_recording(path))] == [n / 10 for n in range(5001)]


def test_a_slow_reader_delays_no_later_value(three: Path) -> None:
    clock, got = TestScheduler(), list[float]()

    def slow(_: str) -> None:
        got.append(clock._clock)
        if len(got) == 1:
            clock.sleep(5)  # so the second comes late, and the third in time

    rd.from_recording(three).subscribe(slow, scheduler=clock)
    clock.start()
    assert got == pytest.approx([0, 5, 7200.3])


def test_the_time_is_that_of_the_argument_of_the_subscriber_or_of_the_loop(three: Path) -> None:
    clock = TestScheduler()
    got = list[Any]()
    rd.from_recording(three, scheduler=clock).subscribe(got.append)
    clock.advance_to(10)
    assert got == ["a", "b"]

    async def in_a_loop() -> list[tuple[float, str]]:
        loop, found = asyncio.get_running_loop(), list[tuple[float, str]]()
        begin = loop.time()
        await rd.for_each(
            rd.from_recording(three), lambda text: found.append((round(loop.time() - begin, 6), text))
        )
        return found

    assert VirtualTime().run(in_a_loop()) == [(0, "a"), (0.1, "b"), (7200.3, "c")]


def test_without_a_loop_it_is_a_thread_that_waits_and_ends(three: Path) -> None:
    got, done = list[tuple[str, str]](), threading.Event()
    rd.from_recording(three, 1e5).subscribe(
        lambda text: got.append((text, threading.current_thread().name)), on_completed=done.set
    )
    assert done.wait(10)
    assert [text for text, _ in got] == ["a", "b", "c"]
    assert got[-1][1] == "rxdelta-timer"


@pytest.mark.parametrize("speed", [-1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_a_bad_speed_is_refused_at_once(speed: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="speed"):
        rd.from_recording("a", speed)


def test_recorded_again_it_is_the_same_recording(three: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.jsonl"
    played(rd.from_recording(three).pipe(rd.record(again)))
    assert [*read_lines(again)] == [*read_lines(three)]


# Values.


def values_of(path: Any) -> list[Any]:
    return [line.value for line in read_lines(path) if line.kind == "value"]


def replayed(tmp_path: Path, values: list[Any]) -> list[Any]:
    """What comes of values that were recorded."""
    path = tmp_path / "recorded.jsonl"
    rx.from_iterable(values).pipe(rd.record(path)).subscribe()
    got: list[Any] = []
    rd.from_recording(path, speed=0).subscribe(got.append, got.append, lambda: got.append("|"))
    return got


@pytest.mark.parametrize("wire_format", RECORDED)
def test_recorded_streams_of_every_format_replay_equal(tmp_path: Path, wire_format: str) -> None:
    cases = [case.values[0] for case in recordings(wire_format)]
    if cases == [None]:
        pytest.skip("the recorded streams are absent")
    for chunks in cases:
        assert replayed(tmp_path, chunks) == [*chunks, "|"]


def folded(wire_format: str, chunks: list[Any]) -> rd.Snapshot:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold()
    for chunk in chunks:
        for event in decoder.decode(chunk):
            fold.step(event)
    for event in decoder.close():
        fold.step(event)
    return fold.snapshot


@pytest.mark.parametrize("wire_format", SDK_FORMATS)
def test_an_sdks_objects_replay_as_the_same_reply(tmp_path: Path, wire_format: str) -> None:
    cases = [case.values[0] for case in recordings(wire_format)][:2]
    if cases == [None]:
        pytest.skip("the recorded streams are absent")
    for chunks in cases:
        objects = sdk_objects(wire_format, chunks)
        *replay, end = replayed(tmp_path, objects)
        assert end == "|"
        assert folded(wire_format, replay) == folded(wire_format, objects)


def test_what_an_sdk_adds_to_its_objects_is_not_the_replys(tmp_path: Path) -> None:
    types = pytest.importorskip("google.genai.types")
    candidate = {"content": {"parts": [{"text": "Hi"}]}, "finishReason": "STOP", "index": 0}
    chunk = {"candidates": [candidate], "createTime": "2025-01-01T00:00:00.5Z", "responseId": "r"}
    sent = types.GenerateContentResponse._from_response(response=chunk, kwargs={})
    sent.sdk_http_response = types.HttpResponse(headers={"server": "x"})
    replay, _ = replayed(tmp_path, [sent])
    assert folded("gemini", [replay]) == folded("gemini", [sent])


@pytest.mark.parametrize("seed", range(3))
def test_events_of_any_stream_replay_equal(tmp_path: Path, seed: int) -> None:
    for stream in streams(seed):
        events = [*stream.events]
        assert replayed(tmp_path, events) == [*events, "|"]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
VALUES = st.one_of(
    st.dictionaries(st.text(max_size=8), JSON, max_size=4),
    st.text(max_size=9),
    st.binary(max_size=9),
    st.just(rd.wire.DONE),
    st.builds(ev.TextDelta, st.integers(0, 9), st.text(max_size=9)),
    st.builds(ev.Custom, st.text(min_size=1, max_size=9), JSON),
)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.floats(0, 1e6), VALUES), max_size=6))
def test_any_values_with_any_times_are_read_back(timed: list[tuple[float, Any]]) -> None:
    file: Any = Kept()
    now = 0.0
    recorder = Recorder(file, lambda: now)
    timed = sorted(timed, key=lambda one: one[0])
    for now, value in timed:
        recorder.value(value)
    recorder.end()
    *lines, end = read_lines(io.BytesIO(file.getvalue()))
    assert [(line.at, line.value) for line in lines] == [(round(at, 6), value) for at, value in timed]
    assert [type(line.value) for line in lines] == [type(value) for _, value in timed]
    assert (end.kind, end.at) == ("end", round(now, 6))


class Kept(io.BytesIO):
    """A file whose bytes can be read after its end."""

    def close(self) -> None:
        pass


# Ends.


def test_a_recording_without_its_last_line_is_never_complete(tmp_path: Path) -> None:
    path = kept(tmp_path / "a.jsonl", {"t": 0, "text": "a"}, {"t": 2, "text": "b"})
    *values, (at, error) = played(rd.from_recording(path))
    assert values == [(0, "a"), (2, "b")]
    assert (at, error) == (2, "RecordedError('the recording ends before the stream did')")


@pytest.mark.parametrize("cut", range(1, 25))
def test_half_a_line_at_the_end_is_dropped(tmp_path: Path, cut: int) -> None:
    path = kept(tmp_path / "a.jsonl", {"t": 0, "text": "a"})
    path.write_bytes(path.read_bytes() + '{"t": 1, "text": "{é}"}'.encode()[:cut])
    *values, last = read_lines(path)
    assert [line.value for line in values] == (["a"] if cut < 24 else ["a", "{é}"])
    assert (last.kind, last.value.type) == ("error", "StreamInterrupted")


MALFORMED = {
    "no JSON": b"{nope}\n",
    "no object": b"[1]\n",
    "no time": b'{"text": "a"}\n',
    "no number": b'{"t": "1", "text": "a"}\n',
    "a negative time": b'{"t": -1, "text": "a"}\n',
    "no finite time": b'{"t": Infinity, "text": "a"}\n',
    "no value": b'{"t": 1}\n',
    "another kind": b'{"t": 1, "video": "a"}\n',
    "no text": b'{"t": 1, "text": 5}\n',
    "no base64": b'{"t": 1, "bytes": "%"}\n',
    "no event": b'{"t": 1, "event": 5}\n',
    "a wrong event": b'{"t": 1, "event": {"event": "content-block-start", "index": null}}\n',
}


@pytest.mark.parametrize("line", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_line_in_the_middle_is_named_by_its_number(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(HEAD + b'{"t": 0, "text": "a"}\n\n' + line + b'{"t": 0, "end": true}\n')
    got: list[Any] = []
    rd.from_recording(path, 0).subscribe(got.append, got.append)
    assert got[0] == "a"
    assert isinstance(got[1], rd.errors.MalformedChunkError)
    assert "line 4" in str(got[1])


def test_a_recording_of_a_newer_version_is_refused_in_words(tmp_path: Path) -> None:
    path, got = tmp_path / "a.jsonl", list[Any]()
    path.write_bytes(HEAD.replace(b"1", b"2"))
    rd.from_recording(path).subscribe(got.append, got.append)
    assert isinstance(got[0], rd.InvalidValueError)
    assert "version 2" in str(got[0])


def test_a_missing_file_is_the_streams_error(tmp_path: Path) -> None:
    got: list[Any] = []
    rd.from_recording(tmp_path / "none.jsonl").subscribe(got.append, got.append)
    assert [type(error) for error in got] == [FileNotFoundError]


# Other captures.


@pytest.mark.parametrize(
    "data",
    [
        b"".join(json.dumps(chunk).encode() + b"\n" for chunk in OPENAI),
        sse(OPENAI),
        json.dumps(OPENAI).encode(),
        b"\xef\xbb\xbf" + sse(OPENAI),
        json.dumps(OPENAI, indent=1).encode(),
    ],
    ids=["lines", "sse", "list", "mark", "indented"],
)
def test_a_plain_capture_is_read_at_once(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(data)
    got = [(at, value) for at, value in played(rd.from_recording(path)) if value is not rd.wire.DONE]
    assert got == [(0, value) for value in (*OPENAI, "|")]


def test_a_pipe_is_read_lazily() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        sink.write(HEAD + b'{"t": 1, "text": "a"}\n')
        lines = read_lines(source)
        assert next(lines) == Line(1, "value", "a")
        sink.write(b'{"t": 2, "text": "b"}\n')
        assert next(lines) == Line(2, "value", "b")
        lines.close()
        assert not source.closed


@pytest.mark.timeout(20)
def test_a_pipe_of_a_plain_capture_is_read_lazily_too() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:
        lines = read_lines(source)
        for number in range(3):
            sink.write(json.dumps({"n": number}).encode() + b"\n")
            assert next(lines) == Line(0, "value", {"n": number})


# The subscription.


def is_open(path: Path) -> bool:
    """Whether the process has the file open."""
    if not os.path.exists("/proc/self/fd"):
        pytest.skip("the open files aren't told")
    for number in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            if os.readlink(f"/proc/self/fd/{number}") == str(path.resolve()):
                return True
    return False


def test_each_subscription_reads_the_file_as_it_is_then(tmp_path: Path) -> None:
    path = kept(tmp_path / "a.jsonl", {"t": 0, "text": "a"}, {"t": 0, "end": True})
    source, got = rd.from_recording(path, 0), list[Any]()
    source.subscribe(got.append)
    kept(path, {"t": 0, "text": "b"}, {"t": 0, "end": True})
    source.subscribe(got.append)
    assert got == ["a", "b"]


def test_disposing_ends_it_and_closes_the_file(three: Path) -> None:
    clock, got = TestScheduler(), list[Any]()
    reading = rd.from_recording(three).subscribe(got.append, scheduler=clock)
    clock.advance_to(1)
    assert is_open(three)
    reading.dispose()
    clock.start()
    assert (got, is_open(three)) == (["a", "b"], False)


def test_a_reader_that_takes_the_first_ends_it(three: Path) -> None:
    got: list[Any] = []
    source = rd.from_recording(three, 0).pipe(rx.operators.take(1))
    reading = source.subscribe(got.append, on_completed=lambda: got.append("|"))
    assert (got, is_open(three)) == (["a", "|"], False)
    reading.dispose()


def test_a_reader_that_raises_gets_its_exception_and_the_file_is_closed(three: Path) -> None:
    def fail(_: object) -> None:
        assert is_open(three)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        rd.from_recording(three, 0).subscribe(fail)
    assert not is_open(three)


def test_it_may_be_disposed_while_it_emits_from_any_thread(three: Path) -> None:
    got: list[Any] = []
    reading = SerialDisposable()

    def leave(value: str) -> None:
        got.append(value)
        thread = threading.Thread(target=reading.dispose)
        thread.start()
        thread.join()

    reading.disposable = rd.from_recording(three, 1e5).subscribe(leave)
    clock = TestScheduler()
    again = SerialDisposable()
    again.disposable = rd.from_recording(three).subscribe(lambda _: again.dispose(), scheduler=clock)
    clock.start()
    assert not is_open(three)


def test_it_is_read_as_far_as_its_reader_has_room(tmp_path: Path) -> None:
    path = kept(tmp_path / "a.jsonl", *({"t": 0, "text": str(n)} for n in range(300)), {"t": 0, "end": True})
    emitted: list[str] = []

    async def main() -> None:
        source = rd.from_recording(path, 0).pipe(rx.operators.do_action(emitted.append))
        async with rd.to_async_iterable(source, maxsize=4, overflow="block") as values:
            got = [await anext(values) for _ in range(3)]
            for _ in range(20):
                await asyncio.sleep(0)
            assert (got, len(emitted) < 20) == (["0", "1", "2"], True)
            got += [value async for value in values]
            assert got == [str(n) for n in range(300)]

    run(main)


def test_without_a_loop_it_waits_for_its_reader_too(tmp_path: Path) -> None:
    path = kept(tmp_path / "a.jsonl", *({"t": 0, "text": str(n)} for n in range(300)), {"t": 0, "end": True})
    with rd.to_iterable(rd.from_recording(path, 0)) as values:
        assert [*values] == [str(n) for n in range(300)]


def test_other_tasks_have_their_turns(tmp_path: Path) -> None:
    path = kept(tmp_path / "a.jsonl", *({"t": 0, "text": str(n)} for n in range(1000)), {"t": 0, "end": True})
    got: list[str] = []

    async def main() -> int:
        rd.from_recording(path, 0).subscribe(got.append)
        turns = 0
        while len(got) < 1000:
            await asyncio.sleep(0)
            turns += 1
        return turns

    assert run(main) > 5


def test_a_loop_over_it_is_refused_with_the_right_one(three: Path) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"rd\.to_iterable"):
        next(iter(rd.from_recording(three)))
    assert repr(rd.from_recording(three)) == "<Observable of rd.from_recording(…)>"


# Lines by hand.


def test_decode_reads_the_lines_of_a_recording(tmp_path: Path) -> None:
    path, events = tmp_path / "a.jsonl", list[Any]()
    rx.from_iterable(OPENAI).pipe(rd.record(path), rd.decode("auto")).subscribe(events.append)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    for source in (
        rx.from_iterable(lines),
        rx.of(path.read_bytes()),
        rx.from_iterable(path.read_text("utf-8").splitlines(keepends=True)),
    ):
        got: list[Any] = []
        source.pipe(rd.decode("auto")).subscribe(got.append, got.append)
        assert got == events


@pytest.mark.parametrize(
    "values",
    [[ev.TextDelta(0, "a"), ev.BlockFinish(0)], [sse(OPENAI)[:99], sse(OPENAI)[99:]]],
    ids=["events", "bytes"],
)
def test_decode_reads_lines_of_events_and_bytes(tmp_path: Path, values: list[Any]) -> None:
    path, events = tmp_path / "a.jsonl", list[Any]()
    rx.from_iterable(values).pipe(rd.record(path), rd.decode("auto")).subscribe(events.append)
    got: list[Any] = []
    rx.from_iterable(path.read_text("utf-8").splitlines()).pipe(
        rx.operators.map(json.loads), rd.decode("auto")
    ).subscribe(got.append, got.append)
    assert got == events
    assert got


def test_the_line_of_an_error_is_the_replys_error(tmp_path: Path) -> None:
    path, got = tmp_path / "a.jsonl", list[Any]()
    rx.concat(rx.of(OPENAI[0]), rx.throw(TimeoutError("too slow"))).pipe(rd.record(path)).subscribe(
        on_error=print
    )
    rx.of(path.read_bytes()).pipe(rd.decode("auto")).subscribe(got.append, got.append)
    assert isinstance(got[-1], rd.ProviderError)
    assert (got[-1].message, got[-1].type) == ("too slow", "TimeoutError")


def test_the_line_of_an_error_says_whether_another_try_may_succeed() -> None:
    decoder = rd.providers.decoder("auto")
    assert [*decoder.decode(json.loads(HEAD))] == []
    for transient in (True, False, None):
        error = {"type": "Odd", "message": "no", "status_code": 418, "transient": transient}
        (told,) = decoder.decode({"t": 1, "error": error})
        assert told == ev.StreamError("no", "Odd", "418", transient=transient)


def test_lines_decode_as_their_chunks_do_up_to_the_events_of_the_end(tmp_path: Path) -> None:
    ends_at_close = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}
    ]
    for chunks in (OPENAI, ends_at_close):
        path = kept(
            tmp_path / "a.jsonl", *({"t": 0, "chunk": chunk} for chunk in chunks), {"t": 1, "end": True}
        )
        lines = [json.loads(line) for line in path.read_bytes().splitlines()]
        reply = folded("auto", [*lines, rd.wire.DONE])
        assert reply == folded("auto", chunks)
        assert reply.status == "complete"


def test_what_only_looks_like_a_line_is_none_and_a_malformed_one_is_told() -> None:
    assert [*rd.providers.decoder("auto").decode({"t": 1, "chunk": OPENAI[0], "more": 1})] == []
    for line in ({"t": 1, "bytes": "%"}, {"t": 1, "text": 5}, {"t": 1, "event": 5}):
        with pytest.raises(rd.errors.MalformedChunkError, match="malformed recording"):
            rd.providers.decoder("auto").decode(line)
