"""The list of known survivors is about code that is there, says why each survives, and doesn't grow."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter

import pytest

from mutation.live import Costs, Outcome, outcome_of
from mutation.mutants import ROOT, mutants_of
from mutation.survivors import Known

KNOWN = Known.load()


def test_each_line_names_a_mutant_that_is_there() -> None:
    # Where code has changed: `nox -s mutation -- PACKAGE --known --write`.
    assert KNOWN.missing() == []


def test_each_line_has_a_reason() -> None:
    assert [key for key, reason in KNOWN.reasons.items() if len(reason) < 10] == []


def test_the_list_only_shrinks() -> None:
    assert len(KNOWN.reasons) <= KNOWN.at_most


def changes(source: str) -> list[str]:
    return [f"{one.function}: {one.change}" for one in mutants_of("x.py", ast.parse(source))]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(a):\n  return a < 1", ["f: return a < 1 -> return None", "f: a < 1 -> a <= 1", "f: 1 -> 2"]),
        ("def f(a):\n  if not a: del a[0]", ["f: not a -> a", "f: without del a[0]", "f: 0 -> 1"]),
        (
            "def f(a, b):\n  if a and b: a.b()",
            ["f: a and b -> a or b", "f: a and b -> not (a and b)", "f: without a.b()"],
        ),
        ("def f(a=True, *, b='c'): ...", ["f: True -> False", "f: 'c' -> 'XXc'"]),
        ("def f(a):\n  raise ValueError(f'no {a}')", ["f: without raise ValueError(f'no {a}')"]),
        ("def f(a: 'B') -> 'C':\n  'text'\n  a.b = -a", ["f: without a.b = -a", "f: -a -> a"]),
        ("if TYPE_CHECKING:\n  a = 1\n__all__ = ['b']\nclass C:\n  d: int = 2", ["C: 2 -> 3"]),
        ("class C:\n  def __repr__(self): return 'C'", []),
        ("wanted = 'must be a number'; name = 'a number'", [": 'a number' -> 'XXa number'"]),
        ("for a in b:\n  if a: continue", [": a -> not a", ": without continue"]),
        (
            "a = (b is None) + 1",
            [": b is None -> b is not None", ": (b is None) + 1 -> (b is None) - 1", ": 1 -> 2"],
        ),
    ],
)
def test_the_mutants_of_a_piece_of_code(source: str, expected: list[str]) -> None:
    assert Counter(changes(source)) == Counter(expected)


def test_a_repetition_has_a_number() -> None:
    ones = mutants_of("x.py", ast.parse("def f(a):\n  a = a + 1\n  a = a + 1"))
    assert [one.number for one in ones if one.change == "1 -> 2"] == [0, 1]


@pytest.mark.slow
def test_each_change_can_be_made_and_compiled() -> None:
    path = "rxdelta/core/tool_call.py"
    text = (ROOT / path).read_text("utf-8")
    for number, _ in enumerate(mutants_of(path, ast.parse(text))):
        tree = ast.parse(text)
        mutants_of(path, tree)[number].edit()
        compile(tree, path, "exec")
        assert ast.dump(tree) != ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([{"at": 0}, {"failed": "a"}, {"ended": "exit"}], Outcome("killed", "a")),
        ([{"at": 0}, {"at": 1}, {"ended": "hang"}], Outcome("timeout", "b")),
        ([{"at": 0}, {"ended": "signal"}], Outcome("timeout", "a")),
        ([{"at": 0}, {"at": 1}, {"left": 3}, {"ended": "exit"}], Outcome("survived", left=3)),
        ([{"fresh": True}, {"ended": "exit"}], None),
    ],
)
def test_what_a_child_says_is_an_outcome(said: list[dict[str, object]], expected: Outcome | None) -> None:
    assert outcome_of(iter(said), ["a", "b"]) == expected


def test_a_child_that_sleeps_for_ever_is_ended() -> None:
    program = """
import sys, time
from mutation import forked
forked.PATIENCE = 0.3
print(list(forked.forked(lambda say: (say(at=0), time.sleep(1000)))))
"""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'tests'}"}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert run.stdout == "[{'at': 0}, {'ended': 'hang'}]\n", run.stderr


def test_tests_that_killed_a_neighbour_come_first_then_those_of_the_file() -> None:
    cost = {"t/test_b.py::x": 1.0, "t/test_a.py::y": 2.0, "t/test_b.py::z": 0.5, "t/test_c.py::k": 9.0}
    costs = Costs(cost, cost, {"p/_a.py": {3: ["t/test_b.py::x"], 4: [*cost, "unknown"]}})
    tests = costs.reaching("p/_a.py", [4])
    assert costs.in_order("p/_a.py", tests, ["t/test_c.py::k"]) == [
        "t/test_c.py::k",
        "t/test_a.py::y",
        "t/test_b.py::z",
        "t/test_b.py::x",
    ]
