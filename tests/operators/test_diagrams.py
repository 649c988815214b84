"""The diagrams in the operators' docstrings are true."""

from __future__ import annotations

import inspect
import re

import pytest
from support.lines import through

import rxdelta as rd
from rxdelta import operators
from rxdelta.testing import marbles

DIAGRAM = re.compile(r"^ +source  (.+)\n +output  (\S+)   (\w+\(.*\))$", re.MULTILINE)
TEXTS = {name: inspect.getdoc(getattr(operators, name)) or "" for name in operators.__all__}
FOUND = [
    pytest.param(*match.groups(), id=name) for name, text in TEXTS.items() for match in DIAGRAM.finditer(text)
]


def test_there_are_diagrams_and_all_are_read() -> None:
    drawn = sum(text.count("    source  ") for text in TEXTS.values())
    assert len(FOUND) == drawn >= 1


@pytest.mark.parametrize(("source", "output", "call"), FOUND)
def test_the_diagram_of(source: str, output: str, call: str) -> None:
    operator = eval(call, {"rd": rd}, vars(operators))
    records, _ = through(source, operator)
    errors = [error for _, kind, error in records if kind == "error"]
    assert marbles.draw(records, values=str, frame=1, error=errors[0] if errors else None) == output
