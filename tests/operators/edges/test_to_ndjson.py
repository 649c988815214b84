"""`to_ndjson`: frames as lines of JSON, and a space when there is silence."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from support.marbles import BOOM, marbles, run

import rxdelta as rd

A = {"done": False}
LINE, SPACE = b'{"done":false}\n', b" "


def told(diagram: str, keep_alive: float | None = None) -> list[tuple[float, Any]]:
    """(tick, what) for a source of `A`s."""
    messages, _ = run(marbles(diagram, {"a": A}, start=0), rd.to_ndjson(keep_alive))
    return [(one.time - 200, getattr(one.value, "value", one.value.kind)) for one in messages]


def test_each_frame_is_written_as_it_comes() -> None:
    assert told("a--a|") == [(0, LINE), (3, LINE), (4, "C")]


def test_silence_is_broken_by_a_space_which_a_json_parser_skips() -> None:
    assert told("-----------a|", 4) == [(4, SPACE), (8, SPACE), (11, LINE), (12, "C")]


def test_an_error_is_passed_on() -> None:
    messages, _ = run(marbles("a#", {"a": A}, start=0), rd.to_ndjson())
    assert messages[-1].value.exception is BOOM


def test_done_is_no_line() -> None:
    with pytest.raises(rd.InvalidValueError, match="frame: must be a JSON object or an AG-UI event"):
        rx.of(rd.wire.DONE).pipe(rd.to_ndjson()).run()
