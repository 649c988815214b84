"""No name, parameter, member, word or base class of the last release is gone or changed, and the version is told once."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal, Protocol

import attrs
import pytest
from support.api import RELEASED, broken_since_release, compare, describe_things

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
        pytest.param({"draw": draw}, {"draw": Point}, ["draw: was a function, is a class"], id="other kind"),
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
                "Point.moved: was a method, is a attribute",
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
    ]
