"""What functions that make operators check, whatever their signature."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta.runtime import operator_maker

Operator = Callable[[rx.Observable[Any]], rx.Observable[Any]]


@operator_maker
def without(*words: str, limits: rd.Limits | None = None, call_id: str | None = None) -> Operator:
    return ops.filter(lambda word: word not in words)


@operator_maker
def behind_one(first: str, *more: str, choice: int = 0) -> Operator:
    return ops.map(lambda word: (first, *more, word, choice))


@operator_maker
def named(choice: int, /, **limits: object) -> Operator:
    return ops.map(lambda _: (choice, limits))


def through(operator: Operator, *values: str) -> list[Any]:
    got: list[Any] = rx.from_iterable(values).pipe(operator, ops.to_list()).run()
    return got


def test_any_number_of_arguments_is_taken() -> None:
    assert through(without("a", "b", limits=rd.Limits()), "a", "b", "c") == ["c"]
    assert through(without(), "a") == ["a"]
    assert through(behind_one("a", "b", "c", choice=1), "d") == [("a", "b", "c", "d", 1)]
    assert through(named(3, limits=5, call_id=6), "d") == [(3, {"limits": 5, "call_id": 6})]


@pytest.mark.parametrize(
    ("make", "field"),
    [
        (lambda: without("a", limits=3), "limits"),
        (lambda: without("a", "b", call_id=3), "call_id"),
        (lambda: behind_one("a", "b", choice=-1), "choice"),
        (lambda: named(-1), "choice"),
    ],
)
def test_a_wrong_option_is_refused_behind_any_number_of_arguments(
    make: Callable[[], object], field: str
) -> None:
    with pytest.raises(rd.InvalidValueError) as raised:
        make()
    assert raised.value.field == field


def test_a_source_in_place_of_the_arguments_is_refused() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"source\.pipe\(without\("):
        without(rx.of("a"))  # type: ignore[arg-type]


def test_arguments_that_do_not_fit_are_pythons_own_error() -> None:
    with pytest.raises(TypeError, match=r"behind_one\(\) missing 1 required positional argument"):
        behind_one()  # type: ignore[call-arg]


# What operators and pipelines say that they are.


@pytest.mark.parametrize(
    ("operator", "shown"),
    [
        (rd.throttle_latest(0.1), "<rd.throttle_latest(0.1)>"),
        (
            rd.decode("openai-chat", reasoning_tags="think"),
            "<rd.decode('openai-chat', reasoning_tags='think')>",
        ),
        (rd.per_block(through), "<rd.per_block(through)>"),
        (rd.until_stopped(rx.never()), "<rd.until_stopped(…)>"),
    ],
)
def test_an_operator_says_what_it_is(operator: object, shown: str) -> None:
    assert repr(operator) == shown


def test_an_operator_shows_no_secret_and_nothing_large() -> None:
    shown = repr(rd.until_stopped(rx.never(), reason="sk-proj-abc123def456ghi789jkl012" + "x" * 1000))
    assert "abc123def456" not in shown
    assert len(shown) < 150


def test_a_pipeline_names_its_steps() -> None:
    events = rd.from_async_iterable(lambda: None).pipe(rd.decode("auto"))  # type: ignore[arg-type, return-value]
    assert repr(events) == "<Observable of rd.from_async_iterable(…) | rd.decode('auto')>"
    paced = events.pipe(rd.scan_deltas(), rd.throttle_latest(1))
    assert repr(paced) == repr(events)[:-1] + " | rd.scan_deltas() | rd.throttle_latest(1)>"
    mapped = events.pipe(ops.map(str), rd.text_deltas())
    assert repr(mapped) == "<Observable of … | ops.map(…) | rd.text_deltas()>"
    assert repr(rx.never().pipe(rd.scan_deltas())) == "<Observable of … | rd.scan_deltas()>"


def test_the_same_operator_in_two_pipelines_names_each_source() -> None:
    fold = rd.scan_deltas()
    one, other = rx.never().pipe(rd.decode("gemini"), fold), rx.never().pipe(rd.decode("cohere"), fold)
    assert "gemini" in repr(one)
    assert "cohere" in repr(other)
