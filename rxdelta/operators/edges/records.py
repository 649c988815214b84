"""The base of `parse_sse` and `parse_ndjson`: a sans-IO parser for a stream of bytes."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from rxdelta.runtime import lift_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from reactivex import Observable

    from rxdelta.core import Limits

__all__ = ["parse_records"]


class _Parser(Protocol):
    @property
    def error(self) -> Exception | None: ...

    def feed(self, data: bytes | str) -> list[Any]: ...

    def close(self) -> list[Any]: ...


def parse_records(
    name: str, parser: Callable[[Limits], _Parser]
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the source's bytes into records, by a parser that `parser()` returns for each subscription."""
    return lift_machine(name, lambda sink: _Reading(parser(sink.limits)), emits="chunks", needs_all=True)


class _Reading:
    """One subscription's state."""

    def __init__(self, parser: _Parser) -> None:
        self._parser = parser

    def step(self, data: bytes | str) -> Iterator[Any]:
        yield from self._parser.feed(data)
        if self._parser.error is not None:
            raise self._parser.error

    def close(self) -> Iterator[Any]:
        yield from self._parser.close()
        if self._parser.error is not None:
            raise self._parser.error

    def fail(self, error: Exception) -> tuple[list[Any], Exception]:
        records: list[Any] = []
        with suppress(Exception):  # an incomplete last record needs no error: `error` explains the cut
            records += self._parser.close()
        return records, error
