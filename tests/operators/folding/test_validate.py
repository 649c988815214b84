"""`validate` in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import Observable, abc, operators as ops
from reactivex.disposable import Disposable
from support.lines import through, whole
from support.replies import REPLIES

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")

MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "S": ev.BlockStart(0, {"type": "text"}),
    "a": ev.TextDelta(0, "a"),
    "F": ev.BlockFinish(0),
    "E": ev.MessageFinish("stop"),
    "p": ev.ProviderEvent("anthropic", "ping", {}),
    "!": ev.StreamError("overloaded"),
}


def check(source: str, *arguments: Any, until: float | None = None) -> tuple[str, list[Any], list[Any]]:
    records, reads = through(source, rd.validate(*arguments), values=MARKS, error=BOOM, until=until)
    names = {id(event): mark for mark, event in MARKS.items()}
    passed = "".join(names[id(event)] for _, kind, event in records if kind == "next")
    return passed, [error or "|" for _, kind, error in records if kind != "next"], reads


@pytest.mark.parametrize("source", ["MSaaFE|", "MpSapFE|", "ME|", "M-S-a-F-E-|"])
def test_what_keeps_the_protocol_is_untouched(source: str) -> None:
    assert check(source) == (source.replace("-", "")[:-1], ["|"], whole(source))
    marbles.check(source, rd.validate(), values=MARKS, frame=1)


@pytest.mark.parametrize(
    ("source", "passed", "violation"),
    [
        ("Sa|", "", "missing_message_start"),
        ("|", "", "missing_message_start"),
        ("Ma|", "M", "delta_before_start"),
        ("MSFa|", "MSF", "delta_after_finish"),
        ("MSE|", "MS", "block_not_finished"),
        ("MSaF|", "MSaF", "missing_message_finish"),
        ("ME!|", "ME", "error_event"),
        ("MEE|", "ME", "duplicate_message_finish"),
    ],
)
def test_the_first_violation_is_the_end(source: str, passed: str, violation: str) -> None:
    got, ends, reads = check(source)
    assert got == passed
    assert [(type(end), end.violation) for end in ends] == [(rd.ProtocolError, violation)]
    assert reads == [(0, len(passed))]


@pytest.mark.parametrize("source", ["Sa-a", "MSa#", "#", "MSaFE#"])
def test_an_error_of_the_source_is_passed_on_and_is_no_violation(source: str) -> None:
    if source[0] == "S":
        assert check("MSa--", until=3) == ("MSa", [], [(0, 3)])
    else:
        assert check(source)[:2] == (source[:-1], [BOOM])


def test_violations_are_reported_and_passed_on() -> None:
    reports: list[Any] = []
    passed, ends, _ = check("aMSaF|", lambda name, event: reports.append((name, event)))
    assert (passed, ends) == ("aMSaF", ["|"])
    assert reports[0] == ("missing_message_start", MARKS["a"])
    assert reports[-1] == ("missing_message_finish", None)


def test_a_report_that_raises_is_the_end_and_is_not_called_again() -> None:
    calls: list[str] = []

    def report(name: str, event: Any) -> None:
        calls.append(name)
        raise BOOM

    def subscribe(observer: abc.ObserverBase[Any], _: abc.SchedulerBase | None = None) -> Disposable:
        for mark in "aaa":
            observer.on_next(MARKS[mark])
        observer.on_completed()
        return Disposable()

    got: list[Any] = []
    Observable(subscribe).pipe(rd.validate(report)).subscribe(got.append, got.append, lambda: got.append("|"))
    assert got == [BOOM]
    assert calls == ["missing_message_start"]


def test_what_is_no_event_is_an_error_of_the_stream() -> None:
    got: list[Any] = []
    rx.of({"choices": []}).pipe(rd.validate()).subscribe(got.append, got.append)
    assert [str(one) for one in got] == [
        "validate() reads events, and got a dict; decode() makes events of chunks"
    ]


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_decoders_keep_it(wire_format: str) -> None:
    decoded = rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format))
    assert decoded.pipe(rd.validate(), ops.to_list()).run() == decoded.pipe(ops.to_list()).run()
