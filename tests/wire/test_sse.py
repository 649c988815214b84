"""Frames as Server-Sent Events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rxdelta as rd

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


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
    assert rd.wire.sse_frame(rd.FrozenDict({"a": rd.FrozenList([1])})) == b'data: {"a":[1]}\n\n'


def test_an_object_that_writes_itself_does_so_in_the_protocol_s_own_names() -> None:
    class Event:
        def model_dump_json(self, **how: Any) -> str:
            assert how == {"by_alias": True}
            return '{"type":"X"}'

    assert rd.wire.sse_frame(Event()) == b'data: {"type":"X"}\n\n'


@pytest.mark.parametrize("wrong", [None, 3, "text", b"x", [], {"a": object()}, {"a": float("nan")}])
def test_what_is_no_frame_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.sse_frame(wrong)


def test_the_headers_keep_proxies_from_holding_the_stream_back() -> None:
    headers = rd.wire.SSE_HEADERS
    assert headers["content-type"].startswith("text/event-stream")
    assert (headers["cache-control"], headers["x-accel-buffering"]) == ("no-cache, no-transform", "no")
