"""No name, parameter, member, word or base class of the last release is gone or changed, and the version is told once."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol, TypedDict

import attrs
import pytest
from support.api import (
    RELEASED,
    broken_since_release,
    compare,
    describe,
    describe_command,
    describe_things,
)

import rxdelta as rd

CHANGELOG = (Path(__file__).resolve().parents[1] / "CHANGELOG.md").read_text("utf-8")
HEADINGS = re.findall(r"^## (\S+)(?: – (\d{4}-\d\d-\d\d))?$", CHANGELOG, re.MULTILINE)


def test_nothing_of_the_last_release_is_broken() -> None:
    assert broken_since_release() == []


def test_version_changelog_and_the_last_release_agree() -> None:
    releases = [version for version, date in HEADINGS if date]
    assert ["Unreleased", *releases] == [version for version, _ in HEADINGS], "## 0.1.0 – 2026-01-31"
    if "dev" in rd.__version__:
        assert rd.__version__.partition(".dev")[0] not in releases
    else:
        assert rd.__version__ == releases[0]
    described = [json.loads(RELEASED.read_text("utf-8"))["version"]] if RELEASED.exists() else []
    assert described == releases[:1], "`nox -s release -- VERSION` writes the description"


def test_a_release_describes_its_names_where_all_that_they_import_is_installed() -> None:
    """Some are strategies of Hypothesis and fixtures of pytest, which no extra brings."""
    noxfile = (Path(__file__).resolve().parents[1] / "noxfile.py").read_text("utf-8")
    install, _, _ = noxfile.partition('"tests/support/api.py"')
    assert 'session.install("-e", ".[all]", *group("tests"), ' in install.rpartition("\ndef ")[2]


Speed = Literal["slow", "fast"]


class Failed(ValueError):
    """A failure.

    Attributes:
        code: The number.
    """

    def __init__(self, message: str, *, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class FailedLess(Exception):
    """A failure."""

    def __init__(self, message: str, *, code: int = 0) -> None:
        super().__init__(message)


@attrs.frozen
class Point:
    x: int = 0
    speed: Speed = "slow"

    def moved(self, by: int, *, twice: bool = False) -> Point:
        return self


@attrs.frozen
class OtherPoint:
    x: int = 1

    @property
    def moved(self) -> int:
        return 1


@attrs.frozen
class MorePoint(Point):
    y: int = 0


class Page:
    """A page.

    Attributes:
        size: How long it is.
    """

    def __init__(self) -> None:
        self.size = 1

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def load(self) -> str:
        return ""

    @classmethod
    def empty(cls) -> Page:
        return cls()


class OtherPage:
    """A page.

    Attributes:
        size: How long it was, under this name.
    """

    def __init__(self) -> None:
        self.length = 1

    async def load(self) -> str:
        return ""

    def empty(self) -> Page:
        return Page()


class Frame(TypedDict):
    seq: int
    text: str


class LooserFrame(TypedDict, total=False):
    seq: int


class Reader(Protocol):
    def read(self) -> str: ...


class ReaderWithEnd(Protocol):
    def read(self) -> str: ...
    def close(self) -> None: ...


def draw(text: str, speed: Speed = "slow", *, width: int = 80) -> None: ...
def renamed(words: str, speed: Speed = "slow", *, width: int = 80) -> None: ...
def reordered(speed: Speed = "slow", text: str = "", *, width: int = 80) -> None: ...
def slower(text: str, speed: Literal["slow"] = "slow", *, width: int = 80) -> None: ...
def wider(text: str, speed: Speed = "slow", *, width: int = 100) -> None: ...
def keyword(text: str, *, speed: Speed = "slow", width: int = 80) -> None: ...
def required(text: str, speed: Speed, *, width: int = 80) -> None: ...
def wanting(text: str, speed: Speed = "slow", *, ink: str, width: int = 80) -> None: ...
def more(
    text: str, speed: Literal["slow", "fast", "instant"] = "slow", bold: bool = False, *, width: int = 80
) -> None: ...


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param({"draw": draw}, {}, ["draw: removed"], id="name removed"),
        pytest.param({"draw": draw}, {"draw": Point}, ["draw: was function, is class"], id="other kind"),
        pytest.param(
            {"draw": draw},
            {"draw": renamed},
            ["draw(text): removed", "draw(words): new, and required"],
            id="parameter renamed",
        ),
        pytest.param(
            {"draw": draw},
            {"draw": reordered},
            ["draw(text): moved", "draw(speed): moved"],
            id="parameters reordered",
        ),
        pytest.param({"draw": draw}, {"draw": slower}, ["draw(speed): 'fast' removed"], id="literal removed"),
        pytest.param(
            {"draw": draw}, {"draw": wider}, ["draw(width): the default was 80, is 100"], id="default changed"
        ),
        pytest.param(
            {"draw": draw},
            {"draw": keyword},
            ["draw(speed): was positional or keyword, is keyword-only"],
            id="parameter's kind changed",
        ),
        pytest.param(
            {"draw": draw},
            {"draw": required},
            ["draw(speed): the default was 'slow', is missing"],
            id="default removed",
        ),
        pytest.param(
            {"draw": draw}, {"draw": wanting}, ["draw(ink): new, and required"], id="required parameter"
        ),
        pytest.param(
            {"Point": Point},
            {"Point": OtherPoint},
            [
                "Point(x): the default was 0, is 1",
                "Point(speed): removed",
                "Point.moved: was method, is attribute",
                "Point.speed: removed",
            ],
            id="members of a class",
        ),
        pytest.param(
            {"Failed": Failed},
            {"Failed": FailedLess},
            ["Failed: no longer a ValueError", "Failed.code: removed"],
            id="base and attribute of an error",
        ),
        pytest.param(
            {"Page": Page},
            {"Page": OtherPage},
            [
                "Page.__iter__: removed",
                "Page.empty: was method of the class, is method",
                "Page.load: was method, is async method",
                "Page.size: removed",
            ],
            id="attribute whose description stayed, loop, await, method of the class",
        ),
        pytest.param(
            {"Frame": Frame},
            {"Frame": LooserFrame},
            ["Frame.seq: was key, is optional key", "Frame.text: removed"],
            id="keys",
        ),
        pytest.param(
            {"Shape": Point | Page}, {"Shape": Page | Failed}, ["Shape: 'Point' removed"], id="one of several"
        ),
        pytest.param({"Speed": Speed}, {"Speed": Literal["slow"]}, ["Speed: 'fast' removed"], id="alias"),
        pytest.param({"FORMATS": ("a", "b")}, {"FORMATS": ("b",)}, ["FORMATS: 'a' removed"], id="value"),
        pytest.param(
            {"Reader": Reader}, {"Reader": ReaderWithEnd}, ["Reader.close: new"], id="more to implement"
        ),
    ],
)
def test_what_breaks_a_program_is_found(
    old: dict[str, Any], new: dict[str, Any], expected: list[str]
) -> None:
    broken, _ = compare(describe_things(old), describe_things(new))
    assert sorted(broken) == sorted(expected)


def test_a_name_must_stay_in_each_module_that_lists_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe()
    for module in (rd, rd.errors, rd.core):
        monkeypatch.setattr(
            module, "__all__", [one for one in module.__all__ if one not in ("ToolError", "core")]
        )
    assert compare(before, describe())[0] == [
        "rxdelta.ToolError: removed",
        "rxdelta: 'core' removed",
        "rxdelta.errors: 'ToolError' removed",
        "rxdelta.core: 'ToolError' removed",
    ]


def test_a_name_may_move_up_if_its_module_still_lists_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = describe()
    monkeypatch.setattr(rd, "__all__", [*rd.__all__, "Walk"])
    monkeypatch.setattr(rd, "Walk", rd.core.Walk, raising=False)
    assert compare(before, describe())[0] == []
    monkeypatch.setattr(rd.core, "__all__", [one for one in rd.core.__all__ if one != "Walk"])
    assert compare(before, describe())[0] == ["rxdelta.core.Walk: removed"]


def test_the_command_keeps_its_options_and_subcommands() -> None:
    def command(*subcommands: str, options: Sequence[str]) -> dict[str, Any]:
        parser = argparse.ArgumentParser()
        commands = parser.add_subparsers()
        for name in subcommands:
            commands.add_parser(name).add_argument("sample", choices=options)
            commands.choices[name].add_argument(*(f"--{option}" for option in options))
        return {"draw": describe_command(parser)}

    old, new = command("demo", "replay", options=["slow", "fast"]), command("demo", options=["slow"])
    assert compare(old, new)[0] == [
        "draw.demo: '--fast' removed",
        "draw.demo: 'fast' removed",
        "draw.replay: removed",
    ]


def test_other_types_are_listed_for_people_to_judge() -> None:
    def draw(text: bytes, speed: Speed = "slow", *, width: int = 80) -> str: ...

    broken, listed = compare(describe_things({"draw": globals()["draw"]}), describe_things({"draw": draw}))
    assert broken == []
    assert listed == ["draw: was None, is str", "draw(text): was str, is bytes"]


def test_additions_are_listed_and_break_nothing() -> None:
    old = {"draw": draw, "Point": Point}
    new = {"draw": more, "Point": MorePoint, "Reader": Reader}
    broken, added = compare(describe_things(old), describe_things(new))
    assert broken == []
    assert sorted(added) == [
        "Point(y): new",
        "Point.y: new",
        "Reader: new",
        "draw(bold): new",
        "draw(speed): 'instant' new",
        "draw(speed): was Speed, is Literal['slow', 'fast', 'instant']",
    ]
