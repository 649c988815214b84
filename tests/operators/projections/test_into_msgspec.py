"""JSON made into msgspec's Structs, alone and within other classes."""

from __future__ import annotations

import dataclasses
import datetime as dt  # the classes' annotations are read at run time
from typing import Any, TypedDict

import pytest
import reactivex as rx

import rxdelta as rd

msgspec: Any = pytest.importorskip("msgspec")
ev = rd.events


class Leg(msgspec.Struct, frozen=True):
    to: str
    km: float = 0.0


class Trip(msgspec.Struct, forbid_unknown_fields=True):
    title: str = msgspec.field(name="tripTitle")
    on: dt.date | None = None
    legs: list[Leg] = []


@dataclasses.dataclass
class Holder:
    trip: Trip


class Keys(TypedDict):
    legs: list[Leg]


TRIP = (
    '{"tripTitle": "North", "on": "2026-11-22", "legs": [{"to": "Oslo"}, {"to": "Bodø", "km": 12, "x": 1}]}'
)


def last(cls: type, text: str) -> rd.types.PartialValue[Any]:
    events = [
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, text),
        ev.BlockFinish(0),
        ev.MessageFinish("stop"),
    ]
    found: rd.types.PartialValue[Any] = rx.from_iterable(events).pipe(rd.partial_json(cls)).run()
    return found


def test_a_struct_is_decoded_from_the_whole_document() -> None:
    trip = Trip("North", dt.date(2026, 11, 22), [Leg("Oslo"), Leg("Bodø", 12)])
    assert last(Trip, TRIP).value == trip
    assert last(Holder, f'{{"trip": {TRIP}}}').value == Holder(trip)
    assert last(Keys, '{"legs": [{"to": "Oslo"}]}').value == {"legs": [Leg("Oslo")]}


@pytest.mark.parametrize(
    ("cls", "text", "why"),
    [
        (Trip, "{}", "missing required field `tripTitle`"),
        (Trip, '{"tripTitle": 3}', "Expected `str`, got `int`"),
        (Trip, '{"tripTitle": "a", "more": 1}', "unknown field `more`"),
        (Holder, '{"trip": {"tripTitle": "a", "legs": [{}]}}', "missing required field `to`"),
    ],
)
def test_what_a_struct_refuses_is_never_complete_and_has_no_value(cls: type, text: str, why: str) -> None:
    refused = last(cls, text)
    assert (refused.complete, refused.value) == (False, None)
    assert refused.error is not None
    assert refused.error.startswith(f"not a {cls.__name__}: ")
    assert why in refused.error
