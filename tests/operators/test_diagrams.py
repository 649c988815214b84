"""The marble diagrams in the operators' docstrings say what the operators do. About 0.4 s of CPU."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import pytest
from support.diagrams import diagram_in, diagram_of, ran, written

import rxdelta as rd
from rxdelta import operators

sys.path.append(str(Path(__file__).parents[2] / "docs"))

WITHOUT = {
    "exponential_backoff": "no operator: it makes a function for `retry_stream`",
    "with_limits": "every value is emitted unchanged, at once",
    "with_run": "it changes a name in each event; only events that name no run may wait",
    "tap_otel": "every value is emitted unchanged, at once, and the spans have their own pictures elsewhere",
    "to_langchain_events": "each event is encoded at once",
    "to_resumable_sse": "each entry of a log becomes one piece of bytes, at once",
}
"""The operators without a diagram, with the reason."""

OPERATORS = [
    name
    for name in rd.__all__
    if name in operators.__all__ and not isinstance(getattr(operators, name), type)
]
DRAWN = [name for name in OPERATORS if diagram_of(name) is not None]


def test_each_operator_has_a_diagram_or_a_reason_not_to() -> None:
    assert set(DRAWN) | set(WITHOUT) == set(OPERATORS)
    assert not set(DRAWN) & set(WITHOUT)


@pytest.mark.parametrize("name", DRAWN)
def test_the_diagram_is_what_happens(name: str) -> None:
    if name == "to_ag_ui":
        pytest.importorskip("ag_ui")
    diagram = diagram_of(name)
    assert diagram is not None
    text = (getattr(operators, name).__doc__ or "").split("::\n\n")[1].split("\n\n")[0]
    assert textwrap.dedent(text) == written(diagram)


@pytest.mark.parametrize("name", DRAWN)
def test_the_picture_is_drawn_from_what_happens(name: str) -> None:
    if name == "to_ag_ui":
        pytest.importorskip("ag_ui")
    from marble_svg import picture

    diagram = diagram_of(name)
    assert diagram is not None
    svg = picture(diagram)
    assert svg.count("<title>") >= sum(len(lane.records) > 0 for lanes in ran(diagram) for lane in lanes)


def test_a_diagram_that_is_wrong_is_found() -> None:
    diagram = diagram_in(
        "Emit.\n\n::\n\n    values  ab-|\n            throttle_latest(0.4)\n    values  ab-|\n"
    )
    assert diagram is not None
    assert written(diagram).splitlines()[-1] == "values  a--[b|]"


def test_a_line_that_is_no_row_is_refused() -> None:
    with pytest.raises(ValueError, match="no row and no call"):
        diagram_in("Emit.\n\n::\n\n    values ab\n")
