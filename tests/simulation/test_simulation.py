"""Thousands of worlds, and faults that were planted to see that the simulator finds them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from simulation.draw import draw
from simulation.seeds import explained, play_seeds
from simulation.shrink import program
from simulation.world import Attempt, Call, Reader, World

PROJECT = Path(__file__).parents[2]
PLANTED = sorted((Path(__file__).parent / "faults").glob("*.patch"))
WITHIN = 20_000  # seeds in which a planted fault is found

QUICK, SLOW, PART = 1_000, 3_000, 250
LONG, LONG_PART = 100_000, 5_000


def play_part(part: range) -> None:
    found = play_seeds(part)[1]
    assert not found, "\n".join(explained(each) for each in found[:3])


PARTS = [pytest.param(first, marks=[pytest.mark.slow] * (first >= QUICK)) for first in range(0, SLOW, PART)]


@pytest.mark.parametrize("first", PARTS)
def test_no_world_breaks_a_law(first: int) -> None:
    play_part(range(first, first + PART))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("first", range(SLOW, SLOW + LONG, LONG_PART))
def test_no_world_of_many_breaks_a_law(first: int) -> None:
    play_part(range(first, first + LONG_PART))


def test_every_law_is_judged() -> None:
    judged, _ = play_seeds(range(400))

    from simulation.oracle import LAWS

    assert {*judged} == {*LAWS}


def test_a_seed_is_one_world() -> None:
    assert [draw(seed) for seed in range(50)] == [draw(seed) for seed in range(50)]


def test_a_world_prints_as_a_program_that_plays_it() -> None:
    world = World(
        says=("word0 ", Call("fail")), attempts=(Attempt("raises", 500),), readers=(Reader("texts"),)
    )
    printed: list[object] = []

    exec(program(world).replace("print(", "printed.append("), {"printed": printed})

    assert printed == [[]]
    assert len(program(world).splitlines()) <= 5


@pytest.fixture(params=PLANTED, ids=lambda patch: patch.stem)
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the package with one fault in it."""
    if shutil.which("git") is None:
        pytest.skip("git, which applies the patch, is missing")
    files = re.findall(r"^\+\+\+ b/(.+)$", request.param.read_text("utf-8"), re.MULTILINE)
    for file in files:
        place = tmp_path / file
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / file, place)
    subprocess.run(["git", "apply", request.param], cwd=tmp_path, check=True)
    return tmp_path


def test_a_planted_fault_fits_the_code(planted: Path) -> None:
    changed = list(planted.rglob("*.py"))
    assert all(path.read_bytes() != (PROJECT / path.relative_to(planted)).read_bytes() for path in changed)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_planted_fault_is_found(planted: Path) -> None:
    for path in (PROJECT / "rxdelta").rglob("*"):
        place = planted / path.relative_to(PROJECT)
        if path.is_file() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
    seeds = [sys.executable, "-m", "simulation", "0", str(WITHIN), "--until-broken"]
    paths = os.pathsep.join([str(planted), str(PROJECT / "tests")])
    run = subprocess.run(
        seeds, cwd=planted, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True
    )
    found = re.search(r"^seed (\d+) breaks", run.stdout, re.MULTILINE)
    assert found is not None, run.stderr[-2000:]
    assert play_seeds([int(found[1])])[1] == []  # the fault alone breaks it
    print(run.stdout)
