"""The survivors that are known, each with the reason why no test fails: `tests/mutation/survivors.json`."""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mutation.mutants import ROOT, mutants_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutation.mutants import Mutant

    Key = tuple[str, str, str, str, int]

__all__ = ["PLACE", "Known"]

PLACE = ROOT / "tests" / "mutation" / "survivors.json"
FIELDS = ("file", "function", "source", "change", "number")
ALIKE = (
    "equivalent",
    "slower",
)  # how the reason begins for a mutant that no test could tell from the library


@dataclass
class Known:
    """Keys of mutants, with reasons."""

    at_most: int
    reasons: dict[Key, str]

    @classmethod
    def load(cls) -> Known:
        data = json.loads(PLACE.read_text("utf-8"))
        reasons = {
            (one["file"], one["function"], one["source"], one["change"], one.get("number", 0)): one["reason"]
            for one in data["survivors"]
        }
        return cls(data["at_most"], reasons)

    def save(self) -> None:
        lines = [_line(key, reason) for key, reason in sorted(self.reasons.items())]
        body = ",\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
        PLACE.write_text(f'{{"at_most": {len(lines)}, "survivors": [\n{body}\n]}}\n', "utf-8")

    def is_alike(self, mutant: Mutant) -> bool:
        return self.reasons.get(mutant.key, "").startswith(ALIKE)

    def faults(self, survived: Iterable[Mutant], killed: Iterable[Mutant]) -> list[str]:
        """What a run has against the file."""
        new = [f"not known: {mutant}" for mutant in survived if mutant.key not in self.reasons]
        return new + [f"killed now: {mutant}" for mutant in killed if mutant.key in self.reasons]

    def missing(self) -> list[Key]:
        """The lines whose code is gone."""
        there: set[Key] = set()
        for path in {key[0] for key in self.reasons}:
            if (ROOT / path).exists():
                tree = ast.parse((ROOT / path).read_text("utf-8"))
                there |= {mutant.key for mutant in mutants_of(path, tree)}
        return sorted(self.reasons.keys() - there)

    def change(self, survived: Iterable[Mutant], killed: Iterable[Mutant]) -> None:
        for key in (*self.missing(), *(mutant.key for mutant in killed)):
            self.reasons.pop(key, None)
        for mutant in survived:
            self.reasons.setdefault(mutant.key, "")


def _line(key: Key, reason: str) -> dict[str, Any]:
    line: dict[str, Any] = {**dict(zip(FIELDS, key)), "reason": reason}
    if not line["number"]:
        del line["number"]
    return line
