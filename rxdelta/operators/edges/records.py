"""The base of `parse_sse` and `parse_ndjson`: a sans-IO parser for a stream of bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.framing import check_loads
from rxdelta.runtime import lift_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from reactivex import Observable

__all__ = ["parse_records"]


class _Parser(Protocol):
    @property
    def error(self) -> Exception | None: ...

    def feed(self, data: bytes | str) -> list[Any]: ...

    def close(self) -> list[Any]: ...


def parse_records(
    name: str, parser: Callable[..., _Parser], loads: Callable[[str], Any] | None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the source's bytes into records, by a parser of this class for each subscription."""
    check_loads(loads)
    return lift_machine(
        name, lambda sink: _Reading(parser(limits=sink.limits, loads=loads)), emits="chunks", needs_all=True
    )


class _Reading:
    """One subscription's state."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def step(self, data: bytes | str) -> Iterable[Any]:
        return self._until_error(self._parser.feed(data))

    def close(self) -> Iterable[Any]:
        return self._until_error(self._parser.close())

    def _until_error(self, records: list[Any]) -> Iterable[Any]:
        error = self._parser.error
        return records if error is None else _then(records, error)

    def fail(self, error: Exception) -> tuple[list[Any], Exception]:
        records: list[Any] = []
        with suppress(Exception):  # an incomplete last record needs no error: `error` explains the cut
            records += self._parser.close()
        return records, error


def _then(records: list[Any], error: Exception) -> Iterator[Any]:
    yield from records
    raise error
