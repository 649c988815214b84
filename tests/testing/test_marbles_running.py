"""Marble lines in virtual time: sources of lines, what is drawn of a stream, and the check of operators."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.scheduler import VirtualTimeScheduler
from reactivex.testing import TestScheduler

import rxdelta as rd
from rxdelta.testing import marbles

if TYPE_CHECKING:
    from reactivex import Observable

schedulers = pytest.mark.parametrize("make", [TestScheduler, VirtualTimeScheduler])


# Sources.


@schedulers
@pytest.mark.parametrize("line", ["a-b--[cd]|", "|", "#", "--", "-a(40ms)b(7200s)#", "[ab(50ms)c|]"])
def test_a_source_tells_its_line(make: Any, line: str) -> None:
    time = make()
    assert marbles.drawn(marbles.cold(line, time, values=str), time, values=str) == marbles.draw(
        marbles.parse(line, values=str), values=str
    )


def test_a_source_tells_each_subscriber_the_line_from_its_beginning() -> None:
    time = VirtualTimeScheduler()
    source = marbles.cold("ab|", time, values=str)
    assert marbles.drawn(rx.concat(source, source), time, values=str) == "abab|"
    assert source.subscriptions == [(0.0, 0.2), (0.2, 0.4)]


def test_a_source_that_is_left_stops() -> None:
    time = VirtualTimeScheduler()
    source, got = marbles.cold("a-b-c|", time, values=str), list[Any]()
    subscription = source.subscribe(got.append)
    assert got == []  # nothing comes before time passes
    time.advance_by(0.25)
    subscription.dispose()
    assert source.subscriptions == [(0.0, 0.25)]
    time.advance_by(1)
    assert got == ["a", "b"]


def test_a_reader_that_leaves_within_a_moment_is_told_nothing_more_of_it() -> None:
    time = VirtualTimeScheduler()
    source, got = marbles.cold("[abc]|", time, values=str), list[Any]()

    def leave(value: Any) -> None:
        got.append(value)
        subscription.dispose()

    subscription = source.subscribe(leave)
    time.start()
    assert got == ["a"]


def test_a_source_is_left_by_an_operator_within_a_moment() -> None:
    time = VirtualTimeScheduler()
    source = marbles.cold("[abc]|", time, values=str)
    assert marbles.drawn(source.pipe(ops.take(2)), time, values=str) == "[ab|]"
    assert source.subscriptions == [(0.0, 0.0)]


def test_many_values_at_once_dont_move_the_clock() -> None:
    line = f"[{'a' * 1000}]b|"
    marbles.check(line, values=str)


def test_a_source_may_be_records() -> None:
    time = TestScheduler()
    records: list[marbles.Record] = [(0.3, "next", 1), (0.3, "completed", None)]
    assert marbles.drawn(marbles.cold(records, time), time) == "---[<1>|]"


def test_a_source_of_events_is_marked_as_one_and_a_source_of_values_isnt() -> None:
    time = TestScheduler()
    with pytest.raises(rd.InvalidValueError, match=r"events of marbles\.cold"):
        marbles.cold("a|", time).pipe(rd.throttle_latest(1))
    marbles.cold("a|", time, values=str).pipe(rd.throttle_latest(1))
    marbles.cold("|", time).pipe(rd.throttle_latest(1))


@pytest.mark.parametrize("scheduler", [None, 3, rx.scheduler.ImmediateScheduler()])
def test_a_line_needs_virtual_time(scheduler: Any) -> None:
    for use in (lambda: marbles.cold("a|", scheduler), lambda: marbles.drawn(rx.never(), scheduler)):
        with pytest.raises(rd.InvalidValueError, match="virtual time"):
            use()


# What is drawn.


@schedulers
def test_operators_have_the_time_of_the_scheduler_to_the_microsecond(make: Any) -> None:
    def slow(text: str) -> Observable[str]:
        return rx.timer(0.123456).pipe(ops.map(lambda _: text.upper()))

    time = make()
    source = marbles.cold("a-b|", time, values=str)
    assert marbles.drawn(source.pipe(ops.flat_map(slow)), time, values=str) == "(123.456ms)A-[B|]"


def test_a_second_drawing_begins_when_the_first_has_ended() -> None:
    time = TestScheduler()
    assert [marbles.drawn(rx.timer(0.7), time, values=int) for _ in range(3)] == ["-------[0|]"] * 3


def test_a_source_without_an_end_is_drawn_without_one() -> None:
    assert marbles.drawn(marbles.cold("a-b", time := TestScheduler(), values=str), time, values=str) == "a-b"
    assert marbles.drawn(rx.never(), TestScheduler()) == ""


def test_a_source_is_left_after_the_seconds_that_are_said() -> None:
    time = TestScheduler()
    source = marbles.cold("a-b-c|", time, values=str)
    assert marbles.drawn(source, time, values=str, until=0.4) == "a-b"  # not what comes at that moment
    assert source.subscriptions == [(0.0, 0.4)]
    assert marbles.drawn(rx.interval(0.1), TestScheduler(), values=int, until=0.5) == "-0123"


def test_a_source_that_emits_for_ever_needs_a_time() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"more than 10,000 values came in \d+ s; say with until="):
        marbles.drawn(rx.interval(1), TestScheduler())


def test_a_silent_source_ends_after_a_day() -> None:
    source = rx.timer(86_399).pipe(ops.concat(rx.timer(2)))
    assert marbles.drawn(source, TestScheduler(), values=int) == "(86399s)0"
    time = TestScheduler()
    silent = marbles.cold("a", time)
    assert marbles.drawn(silent, time) == "a"
    assert silent.subscriptions == [(0.0, 86_400.0)]


def test_time_passes_only_in_one_place() -> None:
    time, caught = TestScheduler(), list[Exception]()

    def draw(*_: object) -> None:
        try:
            marbles.drawn(rx.never(), time)
        except rd.InvalidValueError as error:
            caught.append(error)

    time.schedule_relative(1, draw)
    time.advance_by(2)
    assert "must not run yet" in str(caught[0])


def test_streams_of_blocks_are_drawn_one_by_one() -> None:
    time = VirtualTimeScheduler()
    source = marbles.cold("(think:Hm)a b|", time)
    lines: dict[Any, Any] = {}

    def note(block: Any) -> Observable[Any]:
        texts: Observable[Any] = block.pipe(ops.map(lambda one: one.text), ops.to_list())
        return texts.pipe(ops.do_action(lambda got: lines.update({block.index: got})))

    assert (
        marbles.drawn(source.pipe(rd.group_by_block(), ops.flat_map(note), ops.ignore_elements()), time)
        == "---|"
    )
    assert lines == {0: ["", "Hm", "Hm"], 1: ["", "a", "ab", "ab"]}


# The check.


@pytest.mark.parametrize(
    ("line", "operators", "gives", "options"),
    [
        pytest.param("a-b|", [], None, {}, id="unchanged"),
        pytest.param("ab-----c|", [rd.throttle_latest(0.3)], "a--b---c|", {"values": str}, id="letters"),
        pytest.param(
            "12|",
            [ops.map(lambda n: n + 1), ops.filter(lambda n: n > 2)],
            "-3|",
            {"values": int},
            id="numbers",
        ),
        pytest.param(
            "a b#", [rd.scan_deltas(), ops.ignore_elements()], "--#StreamInterrupted", {}, id="any text"
        ),
        pytest.param("a#", [], "a#", {"error": ConnectionError("no")}, id="the error"),
        pytest.param("a---b|", [], "a-", {"until": 0.4}, id="a part"),
        pytest.param("a-b|", [ops.delay(1)], "-a-b|", {"frame": 1, "values": str}, id="seconds"),
        pytest.param("a-----", [rd.stall_timeout(idle=0.5)], "a----#StallTimeoutError", {}, id="a limit"),
    ],
)
def test_a_check_passes(line: str, operators: list[Any], gives: str | None, options: dict[str, Any]) -> None:
    marbles.check(line, *operators, gives=gives, **options)


def test_events_may_become_any_values() -> None:
    marbles.check(
        marbles.parse("-Hel _lo--|"), rd.text_deltas(), gives="-Hl--|", values={"H": "Hel", "l": " lo"}
    )
    marbles.check("-Hel _lo--|", rd.text_deltas(), gives="-<'Hel'><' lo'>--|")


@pytest.mark.parametrize(
    ("gives", "options", "message"),
    [
        (
            "a-b/",
            {},
            "the marbles differ\n  from  a - b |\n  came  a-b|\n  not   a-b/",
        ),
        (
            "a-c|",
            {"values": str},
            "the marbles differ\n  from  a - b |\n  came  a-b|\n  not   a-c|",
        ),
        ("a-b#", {}, "the marbles differ\n  from  a - b |\n  came  a-b|\n  not   a-b#"),
    ],
)
def test_a_check_that_fails_shows_what_came(gives: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(AssertionError) as caught:
        marbles.check("a - b |", gives=gives, **options)
    assert str(caught.value) == message


def test_errors_of_the_same_name_differ_by_their_text_if_one_is_said() -> None:
    marbles.check('a#ValueError("no")', gives="a#ValueError")
    for gives in ('a#ValueError("not")', "a#KeyError", "a#"):
        with pytest.raises(AssertionError, match=r'came  a#ValueError\("no"\)'):
            marbles.check('a#ValueError("no")', gives=gives)


def test_a_check_says_of_records_what_they_are() -> None:
    with pytest.raises(AssertionError, match=r"from  a\|\n  came  a\|\n  not   b\|"):
        marbles.check(marbles.parse("a|"), gives=marbles.parse("b|"))


def test_a_check_needs_no_pytest() -> None:
    code = "import sys; from rxdelta.testing import marbles; marbles.check('a|'); print({'pytest', 'hypothesis'} & {*sys.modules})"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "set()\n"


def test_what_an_operator_raises_when_it_is_applied_is_raised() -> None:
    def fails(_: Any) -> Any:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        marbles.check("a|", fails)


def test_all_of_them_take_the_same_options() -> None:
    for name in ("parse", "draw", "cold", "drawn", "check"):
        parameters = inspect.signature(getattr(marbles, name)).parameters
        assert {"values", "frame", "error"} <= {*parameters}, name


def test_a_check_shows_events_as_events_where_other_values_come_of_them() -> None:
    with pytest.raises(AssertionError, match=r"from  a\|\n  came  A\|\n  not   B\|"):
        marbles.check(marbles.parse("a|"), rd.text_deltas(), gives="B|", values={"A": "a", "B": "b"})
