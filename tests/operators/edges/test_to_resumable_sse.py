"""A log as frames with ids: what follows an id is what the first connection would have got."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.encoded import encoded
from support.security_page import says
from support.shared import recordings
from support.streams import streams

import rxdelta as rd
from rxdelta.operators.edges.encode import made_id

ev = rd.events
Encode = Callable[[Any], Any]
RUN = {"threadId": "t", "runId": "r", "messages": [], "tools": [], "context": [], "forwardedProps": {}}
ENCODERS: dict[str, Callable[[], Encode]] = {
    "ai-sdk 7": rd.to_ai_sdk,
    "ai-sdk 5": lambda: rd.to_ai_sdk(sdk_version=5),
    "ag-ui, with ids of its own": rd.to_ag_ui,
    "ag-ui": lambda: rd.to_ag_ui({**RUN, "protocolVersion": "1.0"}, provider_events=True),
    "ag-ui, one after the other": lambda: rd.to_ag_ui(RUN, serialize_tool_calls=True),
    "langchain": lambda: encoded(lambda: rd.wire.LangChainEncoder(now=lambda: 0.0, new_id=made_id)),
    "openai-chat": lambda: encoded(lambda: rd.wire.OpenAiChatEncoder(now=lambda: 0.0, new_id=made_id)),
    "wire": lambda: ops.map(lambda event: event.to_dict()),
    "text": lambda: lambda events: events.pipe(rd.text_deltas(), ops.map(lambda text: {"text": text})),
}
REPLY = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    ev.TextDelta(0, "Hel"),
    ev.TextDelta(0, "lo"),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]
every_encoder = pytest.mark.parametrize(
    "encode", [pytest.param(one, id=name) for name, one in ENCODERS.items()]
)


def log(events: Iterable[rd.Event]) -> list[Any]:
    return [SimpleNamespace(id=f"e{number}", event=event) for number, event in enumerate(events, 1)]


def written(
    entries: Sequence[Any], encode: Encode, after: str | None = None, fails: Exception | None = None
) -> tuple[list[bytes], list[Any]]:
    """The pieces, and how it ended."""
    source = (
        rx.from_iterable(entries) if fails is None else rx.concat(rx.from_iterable(entries), rx.throw(fails))
    )
    pieces: list[bytes] = []
    ends: list[Any] = []
    source.pipe(rd.to_resumable_sse(encode, after)).subscribe(
        pieces.append, ends.append, lambda: ends.append(".")
    )
    return pieces, ends


def ids(piece: bytes) -> list[str]:
    return re.findall(r"^id: (.*)$", piece.decode(), re.MULTILINE)


def check_every_id(
    entries: list[Any], encode: Callable[[], Encode], fails: Exception | None, step: int
) -> None:
    (prologue, *whole), end = written(entries, encode(), fails=fails)
    assert prologue == b"retry: 1000\n"
    for piece in whole:
        *head, last = piece.removesuffix(b"\n\n").split(b"\n\n")
        assert not any(ids(frame) for frame in head)
        assert len(ids(last)) < 2
    of = [int(ids(piece)[0][1:]) if ids(piece) else 0 for piece in whole]
    assert all(first < second for first, second in pairwise(filter(None, of)))
    for number in range(1, len(entries) + 1, step):
        had = max((at for at, own in enumerate(of, 1) if 0 < own <= number), default=0)
        rest, ended = written(entries, encode(), f"e{number}", fails)
        assert (rest, list(map(type, ended))) == ([prologue, *whole[had:]], list(map(type, end)))


@pytest.mark.parametrize(
    ("step", "every"),
    [pytest.param(1, 1, marks=pytest.mark.soak), pytest.param(1, 4, marks=pytest.mark.slow), (7, 5)],
)
@every_encoder
def test_behind_every_id_comes_byte_for_byte_what_the_first_connection_would_have_got(
    encode: Callable[[], Encode], step: int, every: int, caplog: pytest.LogCaptureFixture
) -> None:
    for stream in [*streams(seed=step)][::every]:
        fails = rd.StreamInterrupted("broken") if stream.fails else None
        check_every_id(log(stream.events), encode, fails, step)


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", ["anthropic-messages", "openai-responses", "gemini"])
@every_encoder
def test_behind_ids_of_recorded_streams(
    encode: Callable[[], Encode], wire_format: str, caplog: pytest.LogCaptureFixture
) -> None:
    for recording in recordings(wire_format)[:12]:
        chunks = recording.values[0]
        if chunks is None:
            pytest.skip("the recordings are not here")
        events: list[rd.Event] = []
        rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(events.append, lambda _: None)
        check_every_id(log(events), encode, None, max(1, len(events) // 12))


def greeting(events: Any) -> Any:
    """An encoder that says something as soon as it is subscribed, such as what came before this log."""

    def subscribe(observer: Any, scheduler: Any = None) -> Any:
        observer.on_next({"type": "hello"})
        return events.pipe(rd.to_ai_sdk()).subscribe(observer, scheduler=scheduler)

    return rx.create(subscribe)


def test_what_an_encoder_says_before_the_first_event_comes_with_it() -> None:
    pieces, end = written(log(REPLY), greeting)
    assert pieces[1].startswith(b'data: {"type":"hello"}\n\ndata: {"type":"start"')
    assert ids(pieces[1]) == ["e1"]
    check_every_id(log(REPLY), lambda: greeting, None, 1)
    assert end == ["."]


def test_only_the_last_frame_of_an_event_has_its_id_and_the_end_has_none() -> None:
    pieces, end = written(log(REPLY), rd.to_ai_sdk())
    assert [
        re.findall(r'^(?:id: .*|data: (?:\{"type":"[a-z-]*|\[DONE))', piece.decode(), re.MULTILINE)
        for piece in pieces
    ] == [
        [],
        ['data: {"type":"start', "id: e1", 'data: {"type":"start-step'],
        ["id: e2", 'data: {"type":"text-start'],
        ["id: e3", 'data: {"type":"text-delta'],
        ["id: e4", 'data: {"type":"text-delta'],
        ['data: {"type":"text-end', "id: e6", 'data: {"type":"finish-step'],
        ['data: {"type":"finish', "data: [DONE"],
    ]
    assert end == ["."]


def test_an_id_behind_which_nothing_comes() -> None:
    assert written(log(REPLY), ENCODERS["wire"](), "e6") == ([b"retry: 1000\n"], ["."])


def test_an_id_that_the_log_does_not_have_is_an_error_and_never_the_beginning() -> None:
    for fails in (None, RuntimeError("broken")):
        pieces, (error,) = written(log(REPLY), rd.to_ai_sdk(), "e7", fails)
        assert pieces == []
        assert (type(error), error.field, error.value) == (rd.InvalidValueError, "after", "e7")


NO_SUCH = [
    rd.InvalidValueError("no id", field="split_at"),
    rd.errors.EmptyStreamError("no stream"),
    rd.errors.AccessDeniedError("not yours"),
]


def test_what_is_wrong_with_the_request_is_no_frame_and_what_is_wrong_with_the_log_is(
    caplog: pytest.LogCaptureFixture,
) -> None:
    for error in NO_SUCH:
        assert written([], rd.to_ai_sdk(), fails=error) == ([], [error])
    for entries, error in [
        *((log(REPLY[:2]), error) for error in NO_SUCH),
        ([], rd.InvalidValueError("no event", field="event")),
    ]:
        pieces, end = written(entries, rd.to_ai_sdk(), fails=error)
        assert b'"errorText":"An error occurred."' in pieces[-1]
        assert end == ["."]


def test_an_error_that_the_encoder_does_not_write_ends_the_stream() -> None:
    error = rd.StreamInterrupted("broken")
    pieces, end = written(log(REPLY[:2]), ENCODERS["wire"](), fails=error)
    assert (len(pieces), end) == (3, [error])


def test_the_frames_of_an_encoders_timer_have_no_id_and_are_not_told_twice() -> None:
    time = TestScheduler()
    entries = Subject[Any]()
    slow = ops.compose(ops.map(lambda event: event.to_dict()), ops.delay(1.0, time))
    first: list[bytes] = []
    rest: list[bytes] = []
    entries.pipe(rd.to_resumable_sse(slow)).subscribe(first.append)
    entries.pipe(rd.to_resumable_sse(slow, "e2")).subscribe(rest.append)
    for entry in log(REPLY):
        entries.on_next(entry)
        time.advance_by(2)
    assert len(first) == 7
    assert [ids(piece) for piece in first] == [[]] * 7
    assert rest == [first[0], *first[2:]]


def test_an_encoder_that_ends_early_ends_the_stream() -> None:
    encode = ops.compose(ENCODERS["wire"](), ops.take(2))
    entries = Subject[Any]()
    pieces: list[bytes] = []
    ends: list[str] = []
    entries.pipe(rd.to_resumable_sse(encode)).subscribe(pieces.append, on_completed=lambda: ends.append("."))
    for entry in log(REPLY[:2]):
        entries.on_next(entry)
    assert (len(pieces), ends, len(entries.observers)) == (3, ["."], 0)


def test_a_reader_that_leaves_leaves_the_encoder() -> None:
    left: list[str] = []
    encode = ops.compose(ENCODERS["wire"](), ops.finally_action(lambda: left.append("left")))
    rx.concat(rx.from_iterable(log(REPLY)), rx.never()).pipe(
        rd.to_resumable_sse(encode)
    ).subscribe().dispose()
    assert left == ["left"]


def test_wrong_arguments_are_refused_at_once() -> None:
    with pytest.raises(rd.InvalidValueError, match="retry"):
        rd.to_resumable_sse(rd.to_ai_sdk(), retry=0)
    wrong: Any = "ai-sdk"
    with pytest.raises(rd.InvalidValueError, match="encode: must be an operator"):
        rd.to_resumable_sse(wrong)


@pytest.mark.parametrize("value", [ev.MessageStart("m"), {"id": "1", "event": "message-start"}, None])
def test_what_is_no_entry_is_an_error_that_says_what_is(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    pieces, (error,) = written([value], ENCODERS["wire"]())
    assert (pieces[1:], type(error)) == ([], rd.InvalidValueError)
    assert "relay.entries(…) emits such entries" in str(error)
    assert b'"type":"error"' in written([value], rd.to_ai_sdk())[0][-1]
    assert "relay.entries(…) emits such entries" in caplog.text


def test_behind_a_transient_event_nobody_can_go_on() -> None:
    said = [ev.Custom("step", 1, transient=True), ev.Custom("step", 2)]
    pieces, _ = written(log([REPLY[0], *said, *REPLY[1:]]), ENCODERS["wire"]())
    assert [ids(piece) for piece in pieces[1:5]] == [["e1"], [], ["e3"], ["e4"]]


@pytest.mark.parametrize("name", ["ag-ui", "langchain"])
def test_ids_are_made_up_the_same_where_the_log_has_not_kept_what_the_first_reader_got(name: str) -> None:
    nameless = [ev.MessageStart(), *REPLY[1:], ev.MessageStart(), *REPLY[1:]]
    passing = [ev.Custom("step", 1, transient=True), ev.ProviderEvent("house", "ping", {})]
    entries = log([*passing, *nameless])
    whole, _ = written(entries, ENCODERS[name]())
    rest, _ = written(entries[2:], ENCODERS[name](), "e8")
    place = next(at for at, piece in enumerate(whole) if ids(piece) and int(ids(piece)[0][1:]) > 8)
    unnumbered = [re.sub(rb'"seq":[0-9]+', b"", piece) for piece in (*rest[1:], *whole[place:])]
    assert unnumbered[: len(rest) - 1] == unnumbered[len(rest) - 1 :]


@says("No text can end a frame early")
@pytest.mark.parametrize("id", ["a\nb", "a\rb", "a\0b"])
def test_an_id_that_would_break_the_frame_is_refused(id: str) -> None:
    with pytest.raises(rd.InvalidValueError, match="id: must be on one line"):
        rd.wire.sse_frame({}, id)
