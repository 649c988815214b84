"""Frames as Server-Sent Events."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.security_page import says

import rxdelta as rd

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@says("No text can end a frame early")
@given(frame=st.dictionaries(TEXT, TEXT))
def test_a_frame_is_one_event_however_its_text_is_made(frame: dict[str, str]) -> None:
    data = rd.wire.sse_frame(frame)
    assert data.startswith(b"data: ")
    assert data.endswith(b"\n\n")
    assert b"\n" not in data[:-2]
    assert b"\r" not in data
    parser = rd.providers.SseParser()
    assert parser.feed(data) == [frame]


def test_frozen_values_are_written_as_json() -> None:
    assert rd.wire.sse_frame(rd.core.FrozenDict({"a": rd.core.FrozenList([1])})) == b'data: {"a":[1]}\n\n'


def test_an_object_that_writes_itself_does_so_in_the_protocol_s_own_names() -> None:
    class Event:
        def model_dump_json(self, **how: Any) -> str:
            assert how == {"by_alias": True}
            return '{"type":"X"}'

    assert rd.wire.sse_frame(Event()) == b'data: {"type":"X"}\n\n'


class Itself:
    """A frame that writes itself."""

    def __init__(self, written: Any) -> None:
        self.written = written

    def model_dump_json(self, **_: Any) -> Any:
        if isinstance(self.written, Exception):
            raise self.written
        return self.written


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_object_that_writes_itself_on_several_lines_is_still_one_event(end: str) -> None:
    written = f'{{{end}  "type": "X",{end}{end}  "a": [1.0, "é"]{end}}}'
    assert rd.wire.sse_frame(Itself(written)) == 'data: {"type":"X","a":[1.0,"é"]}\n\n'.encode()


@pytest.mark.parametrize(
    "written",
    ["{}\n\ndata: injected", "{}\rdata: injected", "{\n", 3, None, ValueError("no"), RecursionError()],
)
def test_an_object_that_writes_something_else_than_json_cannot_add_an_event(written: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.sse_frame(Itself(written))


def test_a_frame_that_is_nested_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.sse_frame(deep)


@pytest.mark.parametrize(("text", "told"), [("\ud83d\ude00", "😀"), ("\ude00", "\ufffd")])
def test_halves_of_characters_are_joined_and_lone_ones_marked(text: str, told: str) -> None:
    assert rd.wire.sse_frame({"a": text}) == f'data: {{"a":"{told}"}}\n\n'.encode()
    assert rd.wire.sse_frame(Itself(f'{{"a":"{text}"}}')) == f'data: {{"a":"{told}"}}\n\n'.encode()


@pytest.mark.parametrize("wrong", [None, 3, "text", b"x", [], {"a": object()}, {"a": float("nan")}])
def test_what_is_no_frame_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.sse_frame(wrong)


def test_the_headers_keep_proxies_from_holding_the_stream_back() -> None:
    headers = rd.wire.SSE_HEADERS
    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache, no-transform", "no")


def test_done_stays_itself() -> None:
    assert copy.deepcopy(rd.wire.DONE) is pickle.loads(pickle.dumps(rd.wire.DONE)) is rd.wire.DONE


@pytest.mark.parametrize("named", [{}, {"type": 1}, {"type": "a\ndata: x"}], ids=repr)
def test_a_named_frame_without_a_name_is_refused(named: dict[str, Any]) -> None:
    with pytest.raises(rd.errors.InvalidValueError, match="type"):
        rd.wire.sse_frame(rd.wire.NamedFrame(named))
