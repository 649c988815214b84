"""Which of several alternative replies is read."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta import events as ev


def reply(choice: int) -> list[Any]:
    return [
        ev.MessageStart("m", choice=choice),
        ev.BlockStart(0, {"type": "text", "text": f"text {choice}"}, choice=choice),
        ev.MessageFinish("stop", choice=choice),
    ]


def values(*operators: Any, order: tuple[int, ...] = (1, 0)) -> list[Any]:
    events = [event for events in zip(*map(reply, order), strict=True) for event in events]
    return rx.from_iterable(events).pipe(*operators, ops.to_list()).run()  # type: ignore[no-any-return]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_is_behind_reads_that_reply(order: tuple[int, ...]) -> None:
    for number in (0, 1):
        only = rd.only_choice(number)
        assert values(only, rd.text_deltas(), order=order) == [f"text {number}"]
        last = values(only, ops.map(lambda event: event), rd.scan_deltas(), order=order)[-1]
        assert (last.text, last.choice, last.status) == (f"text {number}", number, "complete")
        assert values(only, rd.share_events(), rd.text_deltas(), order=order) == [f"text {number}"]
        assert values(only, rd.group_by_message(), ops.flat_map(lambda one: one.pipe(rd.text_deltas()))) == [
            f"text {number}"
        ]
        frames = values(only, rd.to_ai_sdk(), order=order)
        assert [one["delta"] for one in frames if getattr(one, "get", {}.get)("type") == "text-delta"] == [
            f"text {number}"
        ]


def test_without_it_the_first_reply_is_read_whichever_comes_first() -> None:
    assert values(rd.text_deltas()) == ["text 0"]
    assert values(rd.scan_deltas())[-1].text == "text 0"


def test_a_stream_of_one_choice_is_read_as_that() -> None:
    split = rd.group_by_choice()
    assert sorted(values(split, ops.flat_map(lambda one: one.pipe(rd.text_deltas())))) == ["text 0", "text 1"]


def test_the_nearest_one_in_front_counts() -> None:
    assert values(rd.only_choice(0), rd.only_choice(1), rd.text_deltas()) == []
    branches = rx.merge(*(rx.from_iterable(reply(n)).pipe(rd.only_choice(n)) for n in (1, 0)))
    assert branches.pipe(rd.only_choice(1), rd.text_deltas(), ops.to_list()).run() == ["text 1"]


def test_what_concerns_all_replies_passes_and_so_does_an_error() -> None:
    shared = [
        ev.AttemptReset(1),
        ev.MessageInterrupted(),
        ev.ProviderEvent("x", "ping"),
        ev.StreamError("broken"),
    ]
    assert rx.from_iterable([*shared, *reply(0)]).pipe(rd.only_choice(1), ops.to_list()).run() == shared


@pytest.mark.parametrize("wrong", [-1, True, None, "1"])
def test_a_wrong_number_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="n: must be a whole number"):
        rd.only_choice(wrong)
