"""`to_sse`: frames as bytes, and a comment when there is silence."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from reactivex.testing import TestScheduler

import rxdelta as rd
from rxdelta.testing import marbles

A = {"type": "a"}
DATA, PING = b'data: {"type":"a"}\n\n', rd.wire.KEEP_ALIVE


check = partial(marbles.check, values={"a": A, "D": DATA, "p": PING}, frame=1)


def test_each_frame_is_written_as_it_comes() -> None:
    check("a--a|", rd.to_sse(), gives="D--D|")


def test_done_is_written_as_the_ai_sdk_wants_it() -> None:
    assert rx.of(rd.wire.DONE).pipe(rd.to_sse()).run() == b"data: [DONE]\n\n"


def test_silence_is_broken_by_a_comment() -> None:
    check("-----------a|", rd.to_sse(4), gives="----p---p--D|")


def test_at_most_twice_the_time_passes_in_silence() -> None:
    check("-a-----------|", rd.to_sse(4), gives="-D------p---p|")


def test_a_stream_that_is_never_silent_has_no_comment() -> None:
    check("-a-a-a-a-a-a|", rd.to_sse(4), gives="-D-D-D-D-D-D|")


def test_a_silent_source_is_kept_alive_until_its_reader_leaves() -> None:
    check("-", rd.to_sse(4), gives="----p---p", until=9)


def test_what_is_no_frame_ends_it_and_leaves_the_source() -> None:
    source: Subject[Any] = Subject()
    seen: list[Any] = []
    errors: list[Exception] = []
    source.pipe(rd.to_sse()).subscribe(seen.append, errors.append)
    source.on_next(A)
    source.on_next("no frame")
    assert seen == [DATA]
    assert [type(error) for error in errors] == [rd.InvalidValueError]
    assert not source.observers


def test_its_own_scheduler_comes_first() -> None:
    mine, theirs = TestScheduler(), TestScheduler()
    seen: list[Any] = []
    rx.never().pipe(rd.to_sse(3, scheduler=mine)).subscribe(seen.append, scheduler=theirs)
    theirs.advance_to(10)
    assert seen == []
    mine.advance_to(4)
    assert seen == [PING]


@pytest.mark.parametrize("wrong", [0, -1, True, "1", float("nan"), float("inf")])
def test_a_time_that_is_none_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="keep_alive"):
        rd.to_sse(wrong)
