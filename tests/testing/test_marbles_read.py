"""When the source of a line is read, and what comes as records."""

from __future__ import annotations

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler

import rxdelta as rd
from rxdelta.testing import marbles


def test_a_check_may_say_when_the_source_is_read() -> None:
    marbles.check("a-b-c|", ops.take(2), gives="a-[b|]", values=str, reads=[(0, 0.2)])
    marbles.check("-a#", ops.retry(2), gives="-a-a#", values=str, reads=[(0, 0.2), (0.2, 0.4)])
    marbles.check("-a", values=str, until=3, reads=[(0, 3)])


@pytest.mark.parametrize("reads", [[], [(0, 0.3)], [(0.1, 0.2)], [(0, 0.2), (0.2, 0.4)]])
def test_a_source_that_is_read_at_other_times_fails_the_check(reads: list[tuple[float, float]]) -> None:
    with pytest.raises(AssertionError, match=r"the source was read at \[\(0\.0, 0\.2\)\], not at \["):
        marbles.check("a-b-c|", ops.take(2), gives="a-[b|]", values=str, reads=reads)


def test_what_comes_is_noted_with_its_time_since_the_subscription_and_as_it_is() -> None:
    time, error, value = VirtualTimeScheduler(), ValueError("boom"), object()
    source = rx.concat(rx.timer(2), rx.of(value), rx.throw(error))
    time.advance_to(5)
    records = marbles.records(source, time)
    assert records == [(2, "next", 0), (2, "next", value), (2, "error", error)]
    assert records[-1][2] is error


def test_what_never_ends_is_noted_until_then() -> None:
    assert marbles.records(rx.timer(1, 1), VirtualTimeScheduler(), until=3) == [
        (1, "next", 0),
        (2, "next", 1),
    ]
    with pytest.raises(rd.InvalidValueError, match="say with until="):
        marbles.records(rx.timer(0.1, 0.1), VirtualTimeScheduler())
