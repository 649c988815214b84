"""What the checkers infer of operators of one's own. Never run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_type

from reactivex import Observable

import rxdelta as rd


class Machine:
    def step(self, value: str) -> Sequence[int]:
        return [len(value)]


class Mapper:
    def step(self, value: str) -> int | None:
        return len(value) or None


class State:
    def __init__(self, sink: rd.building.Sink[int]) -> None:
        self._sink = sink
        self._room = sink.room()

    def on_next(self, value: str) -> None:
        assert_type(self._sink.limits, rd.Limits)
        assert_type(self._room.is_open, bool)
        self._sink.on_next(len(value))


def machine() -> Callable[[Observable[str]], Observable[int]]:
    return rd.building.lift_machine("machine", lambda _: Machine())


def mapper() -> Callable[[Observable[str]], Observable[int]]:
    return rd.building.lift_map("mapper", lambda _: Mapper())


def operators_of_ones_own(texts: Observable[str]) -> None:
    assert_type(rd.building.lift("state", State), Callable[[Observable[str]], Observable[int]])
    assert_type(texts.pipe(rd.building.lift("state", State)), Observable[int])
    assert_type(texts.pipe(machine()), Observable[int])
    assert_type(texts.pipe(mapper()), Observable[int])
