"""Any events at all, legal or not, to clients of providers' APIs: each frame keeps the protocol, and no client has more than was said."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import pytest
from core.strategies import event_of_any_run, events
from hypothesis import given, settings, strategies as st
from support.front_ends import ENDINGS
from support.provider_clients import WAYS, Way
from support.provider_frames import Reader, check_types
from support.streams import streams
from support.tellings import Told, tellings

import rxdelta as rd

ev = rd.events
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
splits = st.sampled_from([None, (), ("f",), ("add",)])
ERROR = "An error."


def follow(way: Way, told: Sequence[rd.Event], how: str, **options: Any) -> tuple[list[Any], Reader]:
    """The frames, each of which the reader has checked by the time the next event comes."""
    encoder, reader = way.new(on_error=lambda error: ERROR, **options), way.reader()
    frames: list[Any] = []
    for event in told:
        news = encoder.encode(event)
        reader.read(*news)
        frames += news
    last = ENDINGS[how](encoder)
    reader.read(*last)
    assert reader.over
    assert (reader.end is None) == (reader.error is not None)
    return [*frames, *last], reader


def check_runnable(way: Way, told: Sequence[rd.Event], reader: Reader) -> None:
    """A client runs a call only if it was said so, in one of the messages, or was an attempt's before a reset."""
    known: list[Any] = []
    folds: dict[object, rd.Fold] = {}
    for event in told:
        if getattr(event, "choice", 0) not in (0, None):
            continue
        fold = folds.setdefault(event.run_id, rd.Fold(choice=0))
        try:
            snapshot = fold.step(event)
        except rd.RxDeltaError:
            fold = folds[event.run_id] = rd.Fold(choice=0)
            try:
                snapshot = fold.step(event)
            except rd.RxDeltaError:
                continue
        known += [way.call(call) for call in snapshot.tool_calls if call.status == "complete"]
    for call in way.shown(reader).calls:
        assert same(call) in map(same, known)


def same(call: Any) -> str:
    return json.dumps(call, sort_keys=True)


@each_way
@settings(max_examples=25)
@given(st.data())
def test_any_events_keep_the_order_of_the_protocol(way: Way, data: st.DataObject) -> None:
    told = data.draw(st.lists(events(), max_size=25))
    how, tools = data.draw(st.sampled_from([*ENDINGS])), data.draw(splits)
    follow(way, told, how, tools=tools, reasoning=data.draw(st.booleans()))


@each_way
@settings(max_examples=15)
@given(st.data())
def test_events_of_any_run_and_choice_keep_the_order_of_the_protocol(way: Way, data: st.DataObject) -> None:
    told = data.draw(st.lists(event_of_any_run, max_size=25))
    follow(way, told, data.draw(st.sampled_from([*ENDINGS])), tools=data.draw(splits))


@each_way
@settings(max_examples=10)
@given(st.data())
def test_frames_of_any_events_are_of_the_vendors_types(way: Way, data: st.DataObject) -> None:
    told = [ev.MessageStart("m"), *data.draw(st.lists(events(), max_size=15))]
    frames, _ = follow(way, told, data.draw(st.sampled_from([*ENDINGS])), tools=data.draw(splits))
    check_types(way.wire_format, frames)
    json.dumps(frames, ensure_ascii=False, allow_nan=False).encode()


@each_way
@settings(max_examples=20)
@given(st.data())
def test_a_text_told_in_any_way_is_the_text_that_the_client_has(way: Way, data: st.DataObject) -> None:
    kinds = data.draw(st.sampled_from([("text", "refusal"), ("reasoning",)]))
    told: Told = data.draw(tellings("Well, 👩‍👧.", kinds=kinds, takes_back=False, lanes=False, strays=False))
    fold = rd.Fold(choice=0)
    for event in told.events:
        fold.step(event)
    reader = follow(way, told.events, "completes")[1]
    if fold.snapshot.status == "incomplete":
        assert reader.error == ERROR
    else:
        assert reader.error is None
        shown, wanted = way.shown(reader), way.wanted(fold.snapshot)
        assert sorted(shown.texts + shown.refusals) == sorted(wanted.texts + wanted.refusals)
        assert sorted(shown.reasoning) == sorted(wanted.reasoning)


@each_way
@pytest.mark.parametrize("tools", [None, (), ("add",)])
def test_streams_of_calls_turns_and_attempts_keep_the_order(way: Way, tools: Any) -> None:
    for seed in range(2):
        for stream in streams(seed):
            how = "source error" if stream.fails else Random(seed).choice(["completes", "completes", "stop"])
            _, reader = follow(way, stream.events, how, tools=tools)
            check_runnable(way, stream.events, reader)
