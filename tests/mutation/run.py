"""Put small faults into the library, one at a time, and see that a test fails.

    python tests/mutation/run.py core --all
    python tests/mutation/run.py --sample 100 --seed 31 operators formats

mutmut 3.8 works here and is as quick (0.4 s of processor a mutant), but it changes no code of modules and classes (a sixth of
core's mutants), removes no statement, changes the texts of errors, and has neither samples nor reasons for what survives.
cosmic-ray 8.7 starts pytest for each mutant (3 s of processor) and selects no tests by what they reach.

Each mutant is judged by the quick tests of its package that reach it; the first that fails ends it. It needs Linux.
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import json
import math
import os
import random
import signal
import sys
import time
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

# ruff: noqa: E402 - this is a script, which finds its modules in the folder of the tests
import pytest

from mutation.forked import forked
from mutation.live import BUILT, Costs, Fresh, Live, Outcome, outcome_of, pytest_arguments
from mutation.mutants import ROOT, Mutant, mutants_of
from mutation.survivors import Known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mutation.forked import Say

TESTS = {
    "core": [
        "tests/core",
        *(f"tests/test_{name}.py" for name in ("bad_inputs", "exceptions", "misuse")),
        # Operators that only show what is in core.
        "tests/operators/sharing/test_share_events.py",
        *(f"tests/operators/{name}.py" for name in ("tools/test_approval", "tools/test_calls_once")),
        *(
            f"tests/operators/{name}.py"
            for name in ("pacing/test_compact_deltas", "resilience/test_retry_stream")
        ),
    ],
    "aio": ["tests/aio", "tests/operators/test_grammar.py"],
    "cutting": ["tests/cutting", "tests/operators/text/test_units.py", "tests/operators/text/test_laws.py"],
    "framing": ["tests/framing", "tests/formats/test_encoding.py", "tests/test_misuse.py"],
    "operators": ["tests/operators", "tests/test_misuse.py"],
    "runtime": ["tests/runtime", "tests/operators/test_grammar.py", "tests/operators/pacing"],
    "wire": [*(f"tests/formats/test_{name}.py" for name in ("encoding", "writers", "written_errors"))],
}
"""Which tests judge a package, if not those of the folder with its name."""
PACKAGES = sorted(path.parent.name for path in (ROOT / "rxdelta").glob("*/__init__.py"))


def main() -> int:
    options = _options()
    os.chdir(ROOT)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    for module in ("attrs", "reactivex", "hypothesis.strategies"):
        importlib.import_module(module)  # once for all children
    results: dict[str, list[tuple[Mutant, Outcome]]] = {}
    for package in options.packages:
        mutants = _chosen(package, options)
        print(f"{package}: {len(mutants)} mutants", flush=True)
        results[package] = list(_outcomes(package, mutants, options))
    return _judge(results, options)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("packages", nargs="+", choices=PACKAGES, metavar="PACKAGE")
    parser.add_argument("--all", action="store_true", help="every mutant, in an order that the seed decides")
    parser.add_argument("--sample", type=int, default=100, help="so many mutants of each package")
    parser.add_argument("--seed", type=int, default=31)
    parser.add_argument(
        "--skip", type=int, default=0, help="leave out so many at the beginning of that order"
    )
    parser.add_argument(
        "--minutes",
        type=float,
        default=math.inf,
        help="for each package, then stop; as much again for mutants that are imported",
    )
    parser.add_argument("--only", default="", help="mutants whose file and function contain this")
    parser.add_argument("--known", action="store_true", help="only the survivors that are in the file")
    parser.add_argument(
        "--seconds", type=float, nargs=2, default=(6, 30), help="of tests: at first, and for a survivor"
    )
    parser.add_argument(
        "--simulate", type=int, default=0, help="so many seeds of the simulator for each survivor"
    )
    parser.add_argument(
        "--write", action="store_true", help="put new survivors into the file, and take others out"
    )
    parser.add_argument(
        "--cases", type=int, default=0, help="of a test with many parameters, so many; 0 for all"
    )
    parser.add_argument(
        "--tests", action="append", help="files or folders that judge instead of the package's own"
    )
    return parser.parse_args()


def _chosen(package: str, options: argparse.Namespace) -> list[Mutant]:
    mutants: list[Mutant] = []
    for path in sorted((ROOT / "rxdelta" / package).rglob("*.py")):
        mutants += mutants_of(str(path.relative_to(ROOT)), ast.parse(path.read_text("utf-8")))
    if options.only:
        mutants = [one for one in mutants if options.only in f"{one.path} {one.function}"]
    if options.known:
        known = Known.load().reasons
        mutants = [one for one in mutants if one.key in known]
    count = len(mutants) if options.all or options.known else min(options.sample, len(mutants))
    random.Random(options.seed).shuffle(mutants)
    return mutants[options.skip : options.skip + count]


def _outcomes(
    package: str, mutants: list[Mutant], options: argparse.Namespace
) -> Iterator[tuple[Mutant, Outcome]]:
    """Mutants that stand in functions are tried in one process, the others in one process each, in turns."""
    tests = options.tests or [*TESTS.get(package, [f"tests/{package}"]), "tests/test_public_names.py"]
    live = [(index, one) for index, one in enumerate(mutants) if not one.at_import]

    def child(say: Say) -> None:
        plugin = Live(package, live, say, options.seconds, options.minutes, options.simulate, options.cases)
        code = pytest.main(pytest_arguments(tests), plugins=[plugin])
        say(code=code)

    rest = {index for index, one in enumerate(mutants) if one.at_import}
    with _log(package) as log:
        for said in forked(child, watch=False):
            if "crashed" in said:
                raise RuntimeError(said["crashed"])
            if "costs" in said:
                costs = Costs.load(said["costs"])
            if "index" in said and said["outcome"] is None:
                rest.add(said["index"])
            elif "index" in said:
                yield _told(mutants[said["index"]], Outcome(**said["outcome"]), said["seconds"], log)
        until = time.monotonic() + 60 * options.minutes
        for index in sorted(rest):
            if (begin := time.monotonic()) > until:
                break
            outcome = _try_fresh(mutants[index], costs, 2 * options.seconds[0])
            yield _told(mutants[index], outcome, time.monotonic() - begin, log)


def _log(package: str) -> Any:
    BUILT.mkdir(parents=True, exist_ok=True)
    return (BUILT / f"{package}.jsonl").open("a")


def _told(mutant: Mutant, outcome: Outcome, seconds: float, log: Any) -> tuple[Mutant, Outcome]:
    log.write(json.dumps({"key": mutant.key, **vars(outcome), "seconds": round(seconds, 2)}) + "\n")
    log.flush()
    if outcome.kind in ("survived", "unreached"):
        print(f"{outcome.kind}: {mutant}", flush=True)
    return mutant, outcome


def _try_fresh(mutant: Mutant, costs: Costs, budget: float) -> Outcome:
    tests = _for_import(mutant, costs, budget)

    def child(say: Say) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 60)
        mutant.edit()
        sys.meta_path.insert(0, _Mutated(mutant))
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        code = pytest.main(pytest_arguments(files), plugins=[Fresh(tests, costs, say, budget)])
        say(failed=f"pytest ends with {code}") if code else None

    outcome = outcome_of(forked(child), tests) or Outcome("survived")
    reached = mutant.at_import or costs.reaching(mutant.path, {*mutant.lines, *mutant.around})
    return outcome if reached or outcome.kind != "survived" else Outcome("unreached")


def _for_import(mutant: Mutant, costs: Costs, budget: float) -> list[str]:
    """First the tests that reach functions which use what the statement makes, then those that reach the file."""
    users = {
        node.lineno
        for node in ast.walk(mutant.tree)
        if isinstance(node, ast.Name) and node.id in mutant.names
    }
    if mutant.function:
        users |= set(mutant.lines)
    near = costs.reaching(mutant.path, users)
    there = costs.reaching(mutant.path, costs.reach.get(mutant.path, ())) - near
    chosen, spent = [], 0.0
    for test in (
        test
        for tests in (near, there, costs.cpu.keys() - near - there)
        for test in costs.in_order(mutant.path, tests)
    ):
        spent += costs.cpu[test] + 0.005
        if spent > budget:
            break
        chosen.append(test)
    return chosen


class _Mutated:
    """A finder that imports a module from a mutant's tree."""

    def __init__(self, mutant: Mutant) -> None:
        self.name = mutant.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        self.tree = mutant.tree

    def find_spec(self, name: str, path: Sequence[str] | None, target: Any = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name == self.name else None
        if spec is not None and spec.origin is not None:
            spec.loader = _Loader(name, spec.origin, self.tree)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, tree: ast.Module) -> None:
        super().__init__(name, path)
        self.tree = tree

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.tree, self.path, "exec", dont_inherit=True)


def _judge(results: dict[str, list[tuple[Mutant, Outcome]]], options: argparse.Namespace) -> int:
    known = Known.load()
    tried = [one for outcomes in results.values() for one in outcomes]
    survived = [mutant for mutant, outcome in tried if outcome.kind in ("survived", "unreached")]
    killed = [mutant for mutant, outcome in tried if outcome.kind in ("killed", "timeout")]
    if options.write:
        known.change(survived, killed)
        known.save()
    print(
        "| package | mutants | killed | timeouts | survivors | of these unreached | % | 95 % interval | % without equivalents |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for package, outcomes in results.items():
        print(_row(package, outcomes, known))
    if len(results) > 1:
        print(_row("all", tried, known))
    faults = known.faults(survived, killed)
    print("\n".join(faults))
    return 1 if faults else 0


def _row(package: str, outcomes: list[tuple[Mutant, Outcome]], known: Known) -> str:
    kinds = [outcome.kind for _, outcome in outcomes]
    count, late, unreached = len(kinds), kinds.count("timeout"), kinds.count("unreached")
    dead = kinds.count("killed") + late
    alike = sum(
        known.is_alike(mutant) for mutant, outcome in outcomes if outcome.kind in ("survived", "unreached")
    )
    low, high = _wilson(dead, count)
    cells = [
        package,
        count,
        dead - late,
        late,
        count - dead,
        unreached,
        _percent(dead, count),
        f"{low:.1f}–{high:.1f}",
    ]
    return f"| {' | '.join(map(str, [*cells, _percent(dead, count - alike)]))} |"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f}" if whole else "–"


def _wilson(part: int, whole: int) -> tuple[float, float]:
    if not whole:
        return 0.0, 100.0
    z, share = 1.96, part / whole
    middle = share + z * z / (2 * whole)
    spread = z * math.sqrt(share * (1 - share) / whole + z * z / (4 * whole * whole))
    return tuple(100 * (middle + side * spread) / (1 + z * z / whole) for side in (-1, 1))  # type: ignore[return-value]


if __name__ == "__main__":
    sys.exit(main())
