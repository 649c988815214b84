"""Frames as lines of JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.security_page import says

import rxdelta as rd
from rxdelta.framing import NdjsonParser

any_text = st.text('ab"\\/\x00\x08\x0b\x0c\n\r\t\x1c\x1f\x7f\x85\u2028\u2029é日😀\ufeff\ufffd')


@says("No text can end a frame early")
@given(st.dictionaries(any_text, any_text | st.integers() | st.lists(any_text)))
def test_every_frame_is_one_line_for_every_reader_and_the_same_frame_again(frame: dict[str, Any]) -> None:
    line = rd.wire.ndjson_line(frame)
    assert len(line.decode().splitlines()) == 1
    assert line.endswith(b"\n")
    assert json.loads(line) == frame


def test_half_a_character_is_replaced() -> None:
    assert rd.wire.ndjson_line({"a": "\ud83d"}) == '{"a":"\ufffd"}\n'.encode()


@pytest.mark.parametrize(
    "wrong", [rd.wire.DONE, "text", None, {"a": float("nan")}, {"a": object()}, rd.events.MessageStart("m")]
)
def test_what_is_no_json_object_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.ndjson_line(wrong)


def test_a_parser_skips_the_space_of_a_silence() -> None:
    parser = NdjsonParser()
    line = rd.wire.ndjson_line({"done": True})
    assert parser.feed(3 * rd.wire.NDJSON_KEEP_ALIVE + line + rd.wire.NDJSON_KEEP_ALIVE) == [{"done": True}]
    assert parser.close() == []
