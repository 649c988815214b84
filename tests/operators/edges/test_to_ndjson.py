"""`to_ndjson`: frames as lines of JSON, and a space when there is silence."""

from __future__ import annotations

from functools import partial

import pytest
import reactivex as rx

import rxdelta as rd
from rxdelta.testing import marbles

A = {"done": False}
LINE, SPACE = b'{"done":false}\n', b" "


check = partial(marbles.check, values={"a": A, "L": LINE, "s": SPACE}, frame=1)


def test_each_frame_is_written_as_it_comes() -> None:
    check("a--a|", rd.to_ndjson(), gives="L--L|")


def test_silence_is_broken_by_a_space_which_a_json_parser_skips() -> None:
    check("-----------a|", rd.to_ndjson(4), gives="----s---s--L|")


def test_done_is_no_line() -> None:
    with pytest.raises(rd.InvalidValueError, match="frame: must be a JSON object or an AG-UI event"):
        rx.of(rd.wire.DONE).pipe(rd.to_ndjson()).run()
