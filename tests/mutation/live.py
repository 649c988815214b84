"""Mutants in a process that has imported the package and collected its tests: each is a fork in which the code of
functions is another.
"""

from __future__ import annotations

import ast
import gc
import importlib
import json
import resource
import signal
import sys
import time
import traceback
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, settings

from mutation.forked import forked
from mutation.mutants import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mutation.forked import Say
    from mutation.mutants import Default, Mutant

__all__ = ["Costs", "Fresh", "Live", "Outcome", "outcome_of", "pytest_arguments"]

EXAMPLES = 40
QUICK = 5.0  # seconds of processor that a test may take while its lines are noted
MEMORY = 3 * 2**30  # bytes more than a child begins with
BUILT = ROOT / "build" / "mutation"


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: "killed", "timeout", "survived" or "unreached", and by which test."""

    kind: str
    by: str = ""
    left: int = 0
    """How many tests were left when the time was up, for one that survived."""


@dataclass
class Costs:
    """For each test that passes: seconds of processor and of the clock; and the tests that reach a line of a file."""

    cpu: dict[str, float]
    wall: dict[str, float]
    reach: dict[str, dict[int, list[str]]]

    def in_order(self, path: str, tests: Iterable[str], first: Iterable[str] = ()) -> list[str]:
        """Those that killed neighbours, then those of the file with the same name, then the quickest."""
        name = f"test_{Path(path).stem.lstrip('_')}.py"
        known, killers = set(tests) & self.cpu.keys(), {test: at for at, test in enumerate(first)}
        return sorted(
            known,
            key=lambda test: (
                killers.get(test, len(killers)),
                f"/{name}::" not in test,
                self.cpu[test],
                test,
            ),
        )

    def reaching(self, path: str, lines: Iterable[int]) -> set[str]:
        known = self.reach.get(path, {})
        return {test for line in lines for test in known.get(line, ())}

    def as_json(self) -> dict[str, Any]:
        tests = list(self.cpu)
        numbers = {test: number for number, test in enumerate(tests)}
        reach = {
            path: {
                line: [numbers[test] for test in found if test in numbers] for line, found in lines.items()
            }
            for path, lines in self.reach.items()
        }
        return {"costs": [(test, self.cpu[test], self.wall[test]) for test in tests], "reach": reach}

    @classmethod
    def load(cls, places: Iterable[str]) -> Costs:
        whole = cls({}, {}, {})
        for place in places:
            data = json.loads(Path(place).read_text())
            tests = [test for test, _, _ in data["costs"]]
            for test, cpu, wall in data["costs"]:
                whole.cpu[test], whole.wall[test] = cpu, wall
            for path, lines in data["reach"].items():
                known = whole.reach.setdefault(path, {})
                for line, found in lines.items():
                    known.setdefault(int(line), []).extend(tests[number] for number in found)
        return whole


def pytest_arguments(tests: Iterable[str]) -> list[str]:
    leave_out = [f"--without={material}" for material in ("recordings", "clients", "browser", "postgres")]
    plugins = ["no:cacheprovider", "no:timeout", "no:xdist", "no:cov", "no:randomly"]
    return [
        *tests,
        *leave_out,
        *(f"-p{plugin}" for plugin in plugins),
        "-q",
        "-s",
        "-Wignore::pytest.PytestAssertRewriteWarning",
    ]


def outcome_of(said: Iterator[dict[str, Any]], tests: list[str]) -> Outcome | None:
    """Of what a child says that runs these tests; None if it couldn't put the mutant in."""
    at, last = "", {}
    for one in said:
        at = tests[one["at"]] if "at" in one else at
        if "ended" not in one and "at" not in one:
            last = one
        if "ended" in one and not last:
            return Outcome("timeout", at)  # by a signal, or asleep
    if "fresh" in last:
        return None
    if "failed" in last:
        return Outcome("killed", last["failed"])
    if "crashed" in last:
        return Outcome("killed", f"{at} {last['crashed'].strip().splitlines()[-1]}")
    return Outcome("survived", left=last["left"])


class Runner:
    """A plugin of pytest that runs its tests in another order, and stops at the first that fails."""

    def __init__(self, costs: Costs) -> None:
        self.costs = costs
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        """Tests that start servers aren't quick: they are skipped as where there is none."""
        vars(importlib.import_module("support.valkey_servers")).update(binary=lambda: None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def run(self, items: list[pytest.Item], say: Say, budget: float) -> None:
        begin = time.process_time()
        for at, item in enumerate(items):
            say(at=at, wall=self.costs.wall[item.nodeid])
            signal.setitimer(signal.ITIMER_VIRTUAL, max(1.0, 5 * self.costs.cpu[item.nodeid]))
            _run(item, items[(at + 1) % len(items)] if len(items) > 1 else None)
            if self.failed:
                say(failed=self.failed)
                return
            if time.process_time() - begin > budget:
                break
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        say(left=len(items) - at - 1)


def _run(item: pytest.Item, following: pytest.Item | None) -> None:
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _draw_few(items: Iterable[pytest.Item]) -> None:
    """Each property draws the same few examples each time, and doesn't look for a smaller one that fails."""
    tests = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for test in tests:
        if hasattr(test, "hypothesis"):
            known = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(
                known,
                max_examples=min(known.max_examples, EXAMPLES),
                derandomize=True,
                database=None,
                deadline=None,
                phases=[Phase.explicit, Phase.generate],
                report_multiple_bugs=False,
                suppress_health_check=list(HealthCheck),
            )


class Live(Runner):
    """In the process that forks for each mutant of a package."""

    def __init__(
        self,
        package: str,
        mutants: list[tuple[int, Mutant]],
        say: Say,
        budgets: tuple[float, float],
        minutes: float,
        seeds: int,
        cases: int,
    ) -> None:
        super().__init__(Costs({}, {}, {}))
        self.package, self.mutants, self.say = package, mutants, say
        self.budgets, self.minutes, self.seeds, self.cases = budgets, minutes, seeds, cases
        self.killers: dict[str, list[str]] = {}
        self.proved: set[str] = set()
        self.items: dict[str, pytest.Item] = {}
        self.functions: dict[CodeType, list[FunctionType]] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self.cases:
            items[:] = _some_cases(items, self.cases)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            self._try_all(session)
        except BaseException:  # pytest would tell nobody
            self.say(crashed=traceback.format_exc())
        return True

    def _try_all(self, session: pytest.Session) -> None:
        _draw_few(session.items)
        if self.failed:
            raise RuntimeError(f"{self.failed} can't be collected")
        self._measure(session.items)
        self.items = {item.nodeid: item for item in session.items}
        gc.unfreeze()
        self.functions = _functions()
        gc.freeze()
        until = time.monotonic() + 60 * self.minutes
        for index, mutant in self.mutants:
            if (begin := time.monotonic()) > until:
                break
            outcome = self._try(mutant)
            self.say(index=index, outcome=outcome and vars(outcome), seconds=time.monotonic() - begin)

    def _try(self, mutant: Mutant) -> Outcome | None:
        """What becomes of it; None if it must be imported anew."""
        place = f"{mutant.path} {mutant.function}"
        killers = self.killers.setdefault(place, [])
        reaching = self.costs.reaching(mutant.path, mutant.lines) or self.costs.reaching(
            mutant.path, mutant.around
        )
        while tests := self.costs.in_order(mutant.path, reaching, killers):
            outcome = self._judged(mutant, tests)
            if outcome and outcome.by in tests:
                before = tests[: tests.index(outcome.by) + 1]
                if outcome.by not in self.proved and self._judged(None, before) != Outcome("survived"):
                    del self.costs.cpu[outcome.by]  # it fails without a mutant, too
                    continue
                self.proved.add(outcome.by)
                self.killers[place] = [outcome.by, *(test for test in killers if test != outcome.by)][:6]
            return outcome
        return None  # perhaps the code runs while the package is imported

    def _judged(self, mutant: Mutant | None, tests: list[str]) -> Outcome | None:
        outcome: Outcome | None = Outcome("survived", left=len(tests))
        for budget in self.budgets:
            if outcome and outcome.kind == "survived" and outcome.left:
                rest = tests[-outcome.left :]

                def child(say: Say, rest: list[str] = rest, budget: float = budget) -> None:
                    _bound_memory()
                    if mutant is None or self._put_in(mutant):
                        self.run([self.items[test] for test in rest], say, budget)
                    else:
                        say(fresh=True)

                outcome = outcome_of(forked(child), rest)
        if mutant is not None and outcome and outcome.kind == "survived" and self.seeds:
            outcome = self._simulated(mutant) or outcome
        return outcome

    def _simulated(self, mutant: Mutant) -> Outcome | None:
        """The one place where a survivor meets the simulator."""

        def child(say: Say) -> None:
            self._put_in(mutant)
            _, found = importlib.import_module("simulation.seeds").play_seeds(range(self.seeds))
            say(failed=f"simulation: {found[0]}") if found else say(left=0)

        outcome = outcome_of(forked(child), [])
        return outcome if outcome and outcome.kind != "survived" else None

    def _put_in(self, mutant: Mutant) -> bool:
        """Give the live functions the mutant's code; False if that isn't enough."""
        code = _code(mutant.path, ast.parse((ROOT / mutant.path).read_text("utf-8")))
        if mutant.default is not None:
            return _put_default_in(mutant.default, self.functions, code)
        mutant.edit()
        mutated, changed = _codes(_code(mutant.path, mutant.tree)), False
        for key, original in _codes(code).items():
            new = mutated.get(key)
            if new is not None and new != original:
                for function in _of(self.functions, original):
                    if len(function.__code__.co_freevars) != len(new.co_freevars):
                        return False
                    function.__code__ = new
                    changed = True
        return changed

    def _measure(self, items: list[pytest.Item]) -> None:
        """What each test costs and reaches. Of a file and a library that haven't changed it is known from an earlier run."""
        library, places = _state(), []
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        for path, tests in files.items():
            state = sha256(path.read_bytes() + "".join(test.nodeid for test in tests).encode()).hexdigest()
            place = BUILT / self.package / library / f"{path.stem}-{state[:12]}.json"
            places.append(str(place))
            if not place.exists():
                for said in forked(lambda say: _measure(tests, self.package, place), watch=False):  # noqa: B023
                    if "crashed" in said:
                        raise RuntimeError(said["crashed"])
        self.costs = Costs.load(places)
        for module in {
            module for place in places for module in json.loads(Path(place).read_text())["modules"]
        }:
            importlib.import_module(module)
        self.say(costs=places)


def _some_cases(items: list[pytest.Item], most: int) -> list[pytest.Item]:
    """Of a test with many parameters, so many cases, spread over all."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    kept: set[pytest.Item] = set()
    for cases in tests.values():
        kept.update(cases[:: -(-len(cases) // most)])
    return [item for item in items if item in kept]


def _state() -> str:
    """A word that changes with the library, and with what the tests share."""
    known = sha256()
    shared = [ROOT / "tests" / "conftest.py", *(ROOT / "tests" / "support").glob("*.py")]
    for path in sorted([*(ROOT / "rxdelta").rglob("*.py"), *shared]):
        known.update(path.read_bytes())
    return known.hexdigest()[:12]


def _measure(items: list[pytest.Item], package: str, place: Path) -> None:
    import coverage

    begin, failed = set(sys.modules), _Failed()
    items[0].config.pluginmanager.register(failed)
    measure = coverage.Coverage(data_file=None, include=[f"{ROOT}/rxdelta/{package}/*"], config_file=False)
    measure.set_option("run:disable_warnings", ["no-data-collected"])
    cpu, wall = {}, {}
    measure.start()
    for item, following in zip(items, [*items[1:], None]):
        measure.switch_context(item.nodeid)
        cpu[item.nodeid], wall[item.nodeid] = _timed(item, following)
    measure.stop()
    for test in failed.tests | {test for test in cpu if cpu[test] > QUICK}:
        del cpu[test]
    data, reach = measure.get_data(), {}
    for name in data.measured_files():
        lines = data.contexts_by_lineno(name).items()
        reach[str(Path(name).relative_to(ROOT))] = {
            line: [test for test in tests if test in cpu] for line, tests in lines
        }
    known = [name for name in sys.modules if name not in begin and _is_found_again(name)]
    place.parent.mkdir(parents=True, exist_ok=True)
    told = {**Costs(cpu, wall, reach).as_json(), "failed": sorted(failed.tests), "modules": known}
    place.write_text(json.dumps(told))


def _is_found_again(name: str) -> bool:
    return name.startswith("rxdelta.") and sys.modules[name].__spec__ is not None


class _Failed:
    def __init__(self) -> None:
        self.tests: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.tests.add(report.nodeid)


def _timed(item: pytest.Item, following: pytest.Item | None) -> tuple[float, float]:
    cpu, wall = time.process_time(), time.monotonic()
    _run(item, following)
    return time.process_time() - cpu, time.monotonic() - wall


def _bound_memory() -> None:
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, resource.RLIM_INFINITY))


def _code(path: str, tree: ast.Module) -> CodeType:
    return compile(tree, str(ROOT / path), "exec", dont_inherit=True)


def _functions() -> dict[CodeType, list[FunctionType]]:
    """All functions of the library, by their code."""
    found: dict[CodeType, list[FunctionType]] = {}
    inside = str(ROOT / "rxdelta")
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(inside):
            found.setdefault(one.__code__, []).append(one)
    return found


def _of(functions: dict[CodeType, list[FunctionType]], code: CodeType) -> list[FunctionType]:
    name = code.co_filename  # two files may have equal code
    return [one for one in functions.get(code, ()) if one.__code__.co_filename == name]


def _codes(code: CodeType) -> dict[tuple[str, int, int], CodeType]:
    """A code object and those inside it, by qualified name, first line and number."""
    found: dict[tuple[str, int, int], CodeType] = {}

    def add(one: CodeType) -> None:
        number = 0
        while (one.co_qualname, one.co_firstlineno, number) in found:
            number += 1
        found[one.co_qualname, one.co_firstlineno, number] = one
        for constant in one.co_consts:
            if isinstance(constant, CodeType):
                add(constant)

    add(code)
    return found


def _put_default_in(default: Default, functions: dict[CodeType, list[FunctionType]], code: CodeType) -> bool:
    changed = False
    for (_, line, _), original in _codes(code).items():
        if line == default.function.lineno and original.co_name == default.function.name:
            for function in _of(functions, original):
                if default.parameter in (function.__kwdefaults__ or {}):
                    function.__kwdefaults__ = {
                        **(function.__kwdefaults__ or {}),
                        default.parameter: default.value,
                    }
                else:
                    names = original.co_varnames[: original.co_argcount]
                    known = list(function.__defaults__ or ())
                    known[names.index(default.parameter) - len(names)] = default.value
                    function.__defaults__ = tuple(known)
                changed = True
    return changed


class Fresh(Runner):
    """In a process that imports the mutant: the tests that this knows, in their order."""

    def __init__(self, tests: list[str], costs: Costs, say: Say, budget: float) -> None:
        super().__init__(costs)
        self.tests, self.say, self.budget = tests, say, budget

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if self.failed:
            self.say(failed=self.failed)
            return True
        items = {item.nodeid: item for item in session.items}
        chosen = [items[test] for test in self.tests if test in items]
        _draw_few(chosen)
        self.run(chosen, self.say, self.budget)
        return True
