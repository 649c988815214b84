"""The check of a store: all its laws and the runs with faults, and the report of what was found."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from random import randrange
from typing import TYPE_CHECKING, TypeAlias

import attrs

from rxdelta.core import InvalidValueError, RxDeltaError, check_function
from rxdelta.runtime import running_loop
from rxdelta.testing.stores import lasting, reading, writing
from rxdelta.testing.stores.bench import LAWS, Bench, Law, function_of, made, play_killed
from rxdelta.testing.stores.relay_runs import RelayRun, open_relays
from rxdelta.testing.stores.store_runs import StoreRun
from rxdelta.testing.stores.traced import Broken, TooSlow, as_broken

if TYPE_CHECKING:
    from rxdelta.relay import Store

_WIDTH = 110


@attrs.frozen
class LawResult:
    """Whether one law holds.

    Attributes:
        part: Which part of a store the law is about, such as `"append"`.
        law: The law: a sentence.
        fault: The finding if it doesn't hold, with the calls that led there; `None` if it holds, or wasn't tried.
        left_out: Why it wasn't tried; `None` if it was.
        seconds: How long that took.
    """

    part: str
    law: str
    fault: str | None = None
    left_out: str | None = None
    seconds: float = 0.0

    def __str__(self) -> str:
        mark = "FAILED" if self.fault else "-" if self.left_out else "ok"
        return f"{mark:6} {self.seconds:6.2f} s  {self.part}: {self.law}" + f" ({self.left_out})" * bool(
            self.left_out
        )


@attrs.frozen
class StoreReport:
    """What `check_store` has found. As a string it's a table, a line for each law.

    Attributes:
        results: The result of each law, in the order of the store's methods.
        seed: The seed of the runs: with it they are the same again, as far as the store's own time allows.
    """

    results: Sequence[LawResult]
    seed: int

    @property
    def failed(self) -> Sequence[LawResult]:
        """The results of the laws that don't hold."""
        return tuple(result for result in self.results if result.fault)

    def __str__(self) -> str:
        return "\n".join(map(str, self.results))


class StoreFault(RxDeltaError, AssertionError):
    """A store breaks laws of `rxdelta.relay.Store`. The text says which ones, and what was seen.

    Attributes:
        report: The findings for all laws.
    """

    def __init__(self, message: str, *, report: StoreReport) -> None:
        super().__init__(message)
        self.report = report

    def __reduce__(self) -> tuple[object, ...]:
        return StoreFault.of, (self.report,)

    @classmethod
    def of(cls, report: StoreReport) -> StoreFault:
        """The error for all laws that don't hold."""
        failed = report.failed
        faults = "\n\n".join(
            f"{result.part}: {result.law}\n{_indented(result.fault or '')}" for result in failed
        )
        tried = sum(result.left_out is None for result in report.results)
        return cls(f"{len(failed)} of {tried} laws of a store don't hold:\n\n{faults}\n", report=report)


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())


class Progress:
    """Shows the current law on a terminal: one line, which is written over."""

    def __init__(self) -> None:
        self._out = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None  # pyright: ignore[reportUnnecessaryComparison]

    def say(self, text: str) -> None:
        if self._out is not None:
            print(f"\r\x1b[K{text[:_WIDTH]}", end="", file=self._out, flush=True)


if TYPE_CHECKING:
    Make: TypeAlias = Callable[[], Store]
    Play: TypeAlias = Callable[[int], Awaitable[None]]


_SUBJECTS = writing, reading, lasting  # importing them has listed their laws
_PARTS = [
    "begin", "append", "bury", "read", "stop", "free", "names", "follow", "total", "probe", "expiry", "calls", "close", "reopen",
    "runs", "relays", "processes",
]  # fmt: skip
_RUNS: Mapping[str, tuple[str, int, int]] = {
    "runs": (
        "who publishes, reads, stops, frees and buries over bad lines, where calls come late, twice or not at all, agrees",
        10,
        1,
    ),
    "relays": (
        "relays over bad lines keep their promises: publishers complete, fail, are stopped, held up, closed, or die",
        16,
        1,
    ),
    "processes": (
        "of processes that begin at once one wins, and when it's killed all that was acknowledged is there",
        2,
        10,
    ),
}
"""The laws that are tried by runs, how many are played at a time, and of how many that are asked for one is played."""
_SECONDS = 60.0
"""For a law: what hangs is a fault."""
_SHOWN = 3
_TRIES = 5


def check_store(
    make: Callable[[], Store] | str,
    *,
    runs: int = 100,
    seed: int | None = None,
    only: Collection[str] | None = None,
    skip: Collection[str] = (),
) -> StoreReport:
    """Check whether a relay's store of your own is right. One line is a test.

    Each sentence of `rxdelta.relay.Store` is tried with two stores on one place, as two processes have them. Then streams are
    published and read at random, first over stores and then over relays, where calls are lost, late, or come twice, and
    publishers die. Names and tenants are new in each check, so the place may have logs before, and may be used again. On
    a terminal, stderr shows how far it is.

    It takes about a minute, and some seconds without runs. It runs an asyncio loop of its own: in a coroutine, await
    `asyncio.to_thread(check_store, make)`.

    Args:
        make: Makes a store that isn't open yet, on one and the same place each time. It's called on the loop. As a
            string, `"module:function"`, it can be called in other processes, too; then publishers are processes that are
            killed.
        runs: How many runs are played of each kind; a tenth of them of processes.
        seed: Decides what happens in the runs. By default another one each time; a fault tells it.
        only: Which parts are tried: `"begin"`, `"append"`, `"bury"`, `"read"`, `"stop"`, `"free"`, `"names"`,
            `"follow"`, `"total"`, `"probe"`, `"expiry"`, `"calls"`, `"close"`, `"reopen"`, and the runs `"runs"`, `"relays"` and
            `"processes"`. By default all. What a store doesn't have, such as `total`, is left out.
        skip: Which of them aren't, such as `["reopen"]` for a store that forgets all when it's closed.

    Returns:
        For each law that it holds, or why it wasn't tried; print it to see a table.

    Raises:
        StoreFault: Laws don't hold. It's an `AssertionError`; its text has each of them, with what was seen and the calls that led
            there.
        InvalidValueError: For a wrong argument, and where a loop is running.

    Example:
        >>> from rxdelta.testing import MemoryStore, check_store
        >>> place = MemoryStore().place
        >>> def test_my_store():
        ...     check_store(lambda: MemoryStore(place), only=["begin", "append"])
        >>> test_my_store()
    """
    if isinstance(make, str):
        function, path = function_of(make), make
    else:
        function, path = make, None
        check_function("make", make, "a function that makes a store, or where one is: module:function")
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 0:
        raise InvalidValueError.of([("runs", runs, "must be a whole number from 0")])
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int)):
        raise InvalidValueError.of([("seed", seed, "must be a whole number, or None")])
    for name, parts in (("only", only or ()), ("skip", skip)):
        for part in [parts] if isinstance(parts, str) else parts:
            if part not in _PARTS or isinstance(parts, str):
                raise InvalidValueError.of([(name, parts, f"must be a list of some of {', '.join(_PARTS)}")])
    if running_loop() is not None:
        raise InvalidValueError(
            "a loop is running: call check_store in a sync function, or await asyncio.to_thread(check_store, make)"
        )
    tried = [part for part in _PARTS if (only is None or part in only) and part not in skip]
    check = _Check(function, path, runs, randrange(10**6) if seed is None else seed)  # noqa: S311
    report = asyncio.run(check.report(tried))
    if report.failed:
        raise StoreFault.of(report)
    return report


class _Check:
    """The check of one store.

    Args:
        path: The path of `make` for other processes; `None` if they can't import it.
    """

    def __init__(self, make: Make, path: str | None, runs: int, seed: int) -> None:
        self._make = make
        self._path = path
        self._runs = runs
        self._seed = seed
        self._progress = Progress()

    async def report(self, parts: Collection[str]) -> StoreReport:
        made(self._make)
        laws = [law for part in _PARTS for law in LAWS if law.part == part and part in parts]
        results: dict[str, LawResult] = {}
        for law in laws:
            if not law.waits:
                self._progress.say(f"{len(results)} of {len(laws)} laws tried; {law.part}: {law.says}")
                results[law.says] = await self._law(law)
        self._progress.say(f"{len(results)} of {len(laws)} laws tried; the others wait for the store's time")
        for result in await asyncio.gather(*(self._law(law) for law in laws if law.waits)):
            results[result.law] = result
        runs = [await self._played(part) for part in _RUNS if part in parts]
        self._progress.say("")
        return StoreReport((*(results[law.says] for law in laws), *runs), self._seed)

    async def _law(self, law: Law) -> LawResult:
        """Whether a law holds. Any exception is the store's fault."""
        begin = time.monotonic()
        fault, left_out = None, None
        for _ in range(_TRIES):
            bench, left_out = Bench(self._make), None
            try:
                async with as_broken(bench.trace, _SECONDS), bench:
                    await law.check(bench)
            except NotImplementedError:
                left_out = f"the store has no `{law.part}`"
            except Broken as broken:
                fault = f"{broken}"
            except TooSlow as slow:
                left_out = f"{slow}"
                continue
            break
        return LawResult(law.part, law.says, fault, left_out, time.monotonic() - begin)

    async def _played(self, part: str) -> LawResult:
        """Whether what runs show holds in each of them."""
        says, at_once, share = _RUNS[part]
        begin, faults, left_out = time.monotonic(), list[str](), None
        if not self._runs:
            left_out = "no runs were asked for"
        elif part == "processes" and self._path is None:
            left_out = "other processes can't call `make`: give it as module:function"
        else:
            async with self._stage(part) as play:
                await self._play_all(part, play, faults, at_once, -(-self._runs // share))
        return LawResult(part, says, "\n\n".join(faults) or None, left_out, time.monotonic() - begin)

    async def _play_all(self, part: str, play: Play, faults: list[str], at_once: int, count: int) -> None:
        seeds = iter(range(self._seed, self._seed + count))

        async def play_some() -> None:
            for seed in seeds:
                if len(faults) >= _SHOWN:
                    return
                self._progress.say(f"{seed - self._seed} of {count} {part} played: {_RUNS[part][0]}")
                try:
                    await play(seed)
                except Broken as broken:
                    faults.append(f'{broken}\nagain: check_store(…, only=["{part}"], runs=1, seed={seed})')

        await asyncio.gather(*(play_some() for _ in range(at_once)))

    @asynccontextmanager
    async def _stage(self, part: str) -> AsyncGenerator[Play]:
        """The function that plays the run of a seed."""
        if part == "relays":
            async with open_relays(self._make, self._seed) as relays:
                yield lambda seed: RelayRun(self._make, relays, seed).play()
            return
        async with Bench(self._make) as bench:
            if self._path is None or part == "runs":
                yield lambda seed: StoreRun(bench, seed).play()
            else:
                path = self._path
                yield lambda seed: play_killed(path, bench, seed)
