"""What a check of a store has found: for each law whether it holds, as a table, and as an error."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import attrs

from rxdelta.core import RxDeltaError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LawResult", "Progress", "StoreFault", "StoreReport"]

_WIDTH = 110


@attrs.frozen
class LawResult:
    """Whether one law holds.

    Attributes:
        part: Which part of a store the law is about, such as `"append"`.
        law: The law: a sentence.
        fault: What was seen if it doesn't hold, with the calls that led there; `None` if it holds, or wasn't tried.
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
        results: Of each law, in the order of the store's methods.
        seed: Of the runs: with it they are the same again, as far as the store's own time allows.
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
        report: What was found of all laws.
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
    """Says on a terminal what is being tried: one line, which is written over."""

    def __init__(self) -> None:
        self._out = sys.stderr if sys.stderr is not None and sys.stderr.isatty() else None  # pyright: ignore[reportUnnecessaryComparison]

    def say(self, text: str) -> None:
        if self._out is not None:
            print(f"\r\x1b[K{text[:_WIDTH]}", end="", file=self._out, flush=True)
