"""`Serial`: one step at a time, in order, from any thread."""

from __future__ import annotations

import threading

import pytest

import rxdelta as rd


def test_a_step_that_is_given_during_a_step_waits_for_its_end() -> None:
    serial, got = rd.building.Serial(), list[str]()

    def step(name: str) -> None:
        got.append(name)
        if name == "a":
            serial.run(step, "b")
            serial.run(step, "c")
        got.append(name.upper())

    serial.run(step, "a")
    assert "".join(got) == "aAbBcC"


def test_a_second_thread_leaves_its_step_and_goes_on() -> None:
    serial, got = rd.building.Serial(), list[str]()
    entered, go_on = threading.Event(), threading.Event()

    def block(name: str) -> None:
        entered.set()
        assert go_on.wait(10)
        got.append(name)

    thread = threading.Thread(target=serial.run, args=(block, "a"))
    thread.start()
    assert entered.wait(10)
    serial.run(got.append, "b")
    serial.run(got.append, "c")
    assert got == []
    go_on.set()
    thread.join()
    assert got == ["a", "b", "c"]


def test_after_a_step_that_raises_the_next_call_runs_the_rest() -> None:
    serial, got = rd.building.Serial(), list[str]()

    def fail(_: str) -> None:
        serial.put(got.append, "b")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        serial.run(fail, "")
    assert got == []
    serial.run(got.append, "c")
    assert got == ["b", "c"]


def test_steps_that_are_put_wait_for_the_flush() -> None:
    serial, got = rd.building.Serial(), list[str]()
    serial.put(got.append, "a")
    assert got == []
    serial.flush()
    assert got == ["a"]


def test_an_effect_runs_when_no_step_is_running_and_is_not_nested_in_another() -> None:
    serial, got = rd.building.Serial(), list[str]()

    def second() -> None:
        got.append("second")

    def first() -> None:
        got.append("first")
        serial.run(step, "inside")  # at once
        serial.after(second)
        got.append("/first")

    def step(name: str) -> None:
        got.append(name)
        if name == "a":
            serial.after(first)
            serial.run(step, "b")
            got.append("/a")

    serial.run(step, "a")
    assert got == ["a", "/a", "b", "first", "inside", "/first", "second"]
