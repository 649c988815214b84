"""The size of the front: the names on `rd`, the parameters of each public name, and where a name went.

    python tests/support/front.py                  the names and parameters of this tree, as a table
    python tests/support/front.py --before FILE    the same beside those of another tree
    python tests/support/front.py --json           as data, to be stored and given as FILE

FILE may also be a revision of git, whose tree is then measured.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import Any, TypedDict, is_typeddict

__all__ = ["BEFORE", "Front", "counted", "front", "gone", "home", "table"]

ROOT = Path(__file__).resolve().parents[2]
BEFORE = ROOT / "tests" / "front_before.json"
HOMES = "errors", "building", "types", "core", "requests"
"""The modules in which a name may stand that stood on `rd`."""
REPLACED = {
    "__version__": "`rd.__version__`, as in every package",
    "operators": "`rd`: the same names stood there once more",
    "reasoning_deltas": '`rd.text_deltas(of="reasoning")`',
    "usage_updates": "`snapshot.usage`",
}
"""What does the work of a name that is nowhere any more."""


class Front(TypedDict):
    names: list[str]
    """All names on `rd`, also modules."""
    parameters: dict[str, list[str]]
    """The parameters of each name that has a signature, exceptions aside."""


def home(name: str) -> str | None:
    """The module where a name stands now, as `rd` or `rd.errors`."""
    rd = importlib.import_module("rxdelta")
    if name in rd.__all__:
        return "rd"
    return next((f"rd.{one}" for one in HOMES if name in getattr(rd, one).__all__), None)


def front(more: Sequence[str] = ()) -> Front:
    """This tree's front. `more` are names to be measured that may stand elsewhere now."""
    rd = importlib.import_module("rxdelta")
    measured: dict[str, list[str]] = {}
    for name in sorted({*rd.__all__, *more}):
        place = home(name)
        if place is None:
            continue
        module = rd if place == "rd" else getattr(rd, place.removeprefix("rd."))
        parameters = _parameters(getattr(module, name))
        if parameters is not None:
            measured[name] = parameters
    return {"names": sorted(rd.__all__), "parameters": measured}


def _parameters(thing: Any) -> list[str] | None:
    if isinstance(thing, ModuleType) or (isinstance(thing, type) and issubclass(thing, BaseException)):
        return None
    try:
        signature = inspect.signature(thing)
    except (TypeError, ValueError):
        return None
    return [name for one in signature.parameters.values() for name in _names(thing, one)]


def _names(thing: Any, parameter: inspect.Parameter) -> Iterator[str]:
    """A parameter's name; of `**options: Unpack[Options]` the fields, which a caller writes as parameters."""
    text = parameter.annotation if isinstance(parameter.annotation, str) else ""
    options = vars(sys.modules[thing.__module__]).get(text.removeprefix("Unpack[").removesuffix("]"))
    if text.startswith("Unpack[") and is_typeddict(options):
        yield from options.__annotations__
    else:
        yield parameter.name


def counted(one: Front) -> tuple[int, int]:
    """How many names and how many parameters."""
    return len(one["names"]), sum(map(len, one["parameters"].values()))


def gone(before: Front) -> dict[str, str]:
    """The names of `before` that stand no more on `rd`, and where each is, or what replaced it."""
    places = {name: home(name) for name in before["names"]}
    return {
        name: f"`{place}.{name}`" if place else REPLACED.get(name, "")
        for name, place in places.items()
        if place != "rd"
    }


def of_revision(revision: str) -> Front:
    """The front of a revision, by this script in that revision's tree."""
    git = ["git", "-C", str(ROOT), "archive", revision, "rxdelta"]
    packed = subprocess.run(git, check=True, capture_output=True).stdout
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(fileobj=BytesIO(packed)) as archive:
            archive.extractall(place, filter="data")
        told = subprocess.run(
            [sys.executable, __file__, "--json"],
            check=True,
            capture_output=True,
            env={**os.environ, "PYTHONPATH": place},
            text=True,
        )
    made: Front = json.loads(told.stdout)
    return made


def read(source: str) -> Front:
    if not Path(source).exists():
        return of_revision(source)
    made: Front = json.loads(Path(source).read_text("utf-8"))
    return made


def table(before: Front | None) -> str:
    """Markdown: the sums, the names that went, and the parameters of each name."""
    now = front(before["names"] if before else ())
    was: Mapping[str, list[str]] = before["parameters"] if before else {}
    lines = ["| | before | now |", "| --- | --- | --- |"] if before else ["| | now |", "| --- | --- |"]
    for title, *counts in zip(
        ("names on `rd`", "parameters"), *(counted(one) for one in (before, now) if one), strict=True
    ):
        lines.append(f"| {title} | {' | '.join(map(str, counts))} |")
    if before:
        lines += ["", "| no more on `rd` | is |", "| --- | --- |"]
        lines += [f"| `{name}` | {place} |" for name, place in gone(before).items()]
        lines += ["", "| new on `rd` |", "| --- |"]
        lines += [f"| `{name}` |" for name in now["names"] if name not in before["names"]]
    lines += ["", "| name | parameters | |", "| --- | --- | --- |"]
    for name in sorted({*was, *now["parameters"]}):
        lines.append(_row(name, was.get(name), now["parameters"].get(name)))
    return "\n".join(lines)


def _row(name: str, was: list[str] | None, now: list[str] | None) -> str:
    if now is None:
        return f"| `{name}` | {len(was or ())} → 0 | gone |"
    if was is None or was == now:
        return f"| `{name}` | {len(now)} | {', '.join(f'`{one}`' for one in now)} |"
    changes = [
        *(f"−`{one}`" for one in was if one not in now),
        *(f"+`{one}`" for one in now if one not in was),
    ]
    return f"| `{name}` | {len(was)} → {len(now)} | {' '.join(changes)} |"


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    before = read(options.before) if options.before else None
    print(json.dumps(front()) if options.json else table(before))


if __name__ == "__main__":
    main(sys.argv[1:])
