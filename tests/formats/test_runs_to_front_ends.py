"""Several runs to a front end and back: whatever the order of their events, each run says what it says alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support import ag_ui, ai_sdk
from support.runs import Events, answer, call, messages, said, text, thought, turn, within, woven
from support.shared import recordings

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


@st.composite
def runs(draw: st.DrawFn, *, resets: bool = True) -> Events:
    """One to three messages. The ids of messages, blocks and calls are those of every other run."""
    letters = st.text("abé😀", min_size=1, max_size=4)
    events: Events = []
    for number in range(draw(st.integers(1, 3))):
        blocks: list[Events] = []
        calls: list[str] = []
        for index in range(draw(st.integers(1, 3))):
            kind = draw(st.sampled_from(["text", "reasoning", "call"]))
            if kind == "call":
                calls.append(f"call_{number}_{index}")
                blocks.append(call(index, calls[-1], draw(letters)))
            else:
                blocks.append((text if kind == "text" else thought)(index, draw(letters)))
        whole = turn(
            *blocks,
            id=draw(st.sampled_from(["m1", f"m{number}", None])),
            reason="tool_use" if calls else "stop",
        )
        if resets and draw(st.integers(0, 3)) == 0:
            tried = whole[: draw(st.integers(0, len(whole) - 1))]
            events += [*tried, ev.AttemptReset(1, usage=rd.TokenUsage(1, 1), choice=0)]
        events += whole
        events += [answer(one, draw(letters)) for one in calls if draw(st.booleans())]
    return events


@st.composite
def streams(draw: st.DrawFn, *, resets: bool = True) -> tuple[dict[str, Events], Events]:
    """Two to five runs, by name, and their events in any order. The first event is of the run `first`."""
    names = ["first", "b", "c", "d/e", "f|g"][: draw(st.integers(2, 5))]
    found: dict[str, Events] = {}
    for name in names:
        parent = draw(st.sampled_from([None, *found])) if found else None
        found[name] = within(name, draw(runs(resets=resets and name != "first")), parent)
    head, *rest = found["first"]
    return found, [head, *woven(rest, *[found[name] for name in names[1:]], seed=draw(st.integers(0, 999)))]


# Encoded, and read back.


def to_ai_sdk(events: Iterable[rd.Event], **options: Any) -> list[Any]:
    frames = ai_sdk.frames_of(events, **options)
    ai_sdk.read(frames, options.get("sdk_version", 7))
    return [frame for frame in frames if frame is not rd.wire.DONE]


def to_ag_ui(events: Iterable[rd.Event], **options: Any) -> list[Json]:
    frames = ag_ui.told(*events, **options)
    ag_ui.read(frames)
    return frames


def to_langchain(events: Iterable[rd.Event]) -> list[Any]:
    encoder = rd.wire.LangChainEncoder(now=lambda: 1.5, new_id=lambda: "made")
    return [*(frame for event in events for frame in encoder.encode(event)), *encoder.close()]


def decoded(wire_format: str, frames: Iterable[Any]) -> Events:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]


Way: TypeAlias = Callable[[Iterable[rd.Event]], Events]
WAYS: dict[str, Way] = {
    "ai-sdk 7": lambda events: decoded("ai-sdk", to_ai_sdk(events)),
    "ai-sdk 5": lambda events: decoded("ai-sdk", to_ai_sdk(events, sdk_version=5)),
    "ag-ui 1.0": lambda events: decoded("ag-ui", to_ag_ui(events, messages=ag_ui.ASKED)),
    "ag-ui before": lambda events: decoded("ag-ui", to_ag_ui(events, messages=ag_ui.ASKED, version=None)),
    "ag-ui serialized": lambda events: decoded(
        "ag-ui", to_ag_ui(events, messages=ag_ui.ASKED, serialize_tool_calls=True)
    ),
    "langchain": lambda events: decoded("langchain", to_langchain(events)),
}
each_way = pytest.mark.parametrize("there_and_back", WAYS.values(), ids=WAYS)


def of_run(events: Iterable[rd.Event], name: str) -> list[Any]:
    """What the run of this name says. The protocols of front ends have no name for the first."""
    listed = [*events]
    known = {event.run_id for event in listed}
    return said(messages(listed, name if name in known else None))


def check_one_by_one(there_and_back: Way, drawn: tuple[dict[str, Events], Events]) -> None:
    alone, events = drawn
    back = there_and_back(events)
    for name, own in alone.items():
        assert of_run(back, name) == said(messages(own, name)), name


few = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
many = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@each_way
@few
@given(streams())
def test_each_run_says_what_it_says_alone(
    there_and_back: Way, drawn: tuple[dict[str, Events], Events]
) -> None:
    check_one_by_one(there_and_back, drawn)


@pytest.mark.slow
@each_way
@many
@given(streams())
def test_each_run_says_what_it_says_alone_in_many_orders(
    there_and_back: Way, drawn: tuple[dict[str, Events], Events]
) -> None:
    check_one_by_one(there_and_back, drawn)


@few
@given(streams())
def test_langchains_protocol_gives_each_run_back_whole(drawn: tuple[dict[str, Events], Events]) -> None:
    alone, events = drawn
    back = decoded("langchain", to_langchain(events))
    assert {event.run_id for event in back} == set(alone)
    for name, own in alone.items():
        assert [*messages(back, name)] == [*messages(own, name)], name


# One run is encoded as ever, whatever its name.


def is_whole(events: Events) -> bool:
    kinds = {type(event) for event in events if getattr(event, "choice", 0) in (0, None)}
    return ev.MessageFinish in kinds and ev.StreamError not in kinds


def recorded() -> list[Any]:
    """Recorded replies of each provider, the short ones."""
    formats = sorted(set(rd.providers.FORMATS) - {"langchain", "ai-sdk", "ag-ui"})
    known = [(one, *case.values) for one in formats for case in recordings(one) if not case.marks]
    return [(one, chunks) for one, chunks, _ in known if len(json.dumps(chunks)) < 9_000]


def test_a_name_changes_nothing_where_there_is_one_run() -> None:
    cases = recorded()
    if not cases:
        pytest.skip("no streams are here")
    for wire_format, chunks in cases[::8]:
        events = decoded(wire_format, chunks)
        if not is_whole(events):
            continue
        named = within("agent", events, "caller")
        assert ai_sdk.frames_of(named) == ai_sdk.frames_of(events)
        assert ag_ui.told(*named, messages=ag_ui.ASKED) == ag_ui.told(*events, messages=ag_ui.ASKED)
        for frame, other in zip(to_langchain(named), to_langchain(events), strict=True):
            assert frame["params"].pop("namespace") == ["agent"]
            for mark in ("in_run", "parent_run_id"):
                frame["params"]["data"].pop(mark, None)
            assert frame["params"]["data"] == other["params"]["data"]


@pytest.mark.slow
@each_way
def test_recorded_replies_of_several_runs_stay_apart(there_and_back: Way) -> None:
    cases = recorded()
    if not cases:
        pytest.skip("no streams are here")
    replies = [decoded(*case) for case in cases]
    whole = [one for one in replies if is_whole(one)]
    for place in range(0, len(whole) - 3, 9):
        own = {name: within(name, one) for name, one in zip("abc", whole[place : place + 3])}
        back = there_and_back(woven(*own.values(), seed=place))
        for name, events in own.items():
            assert of_run(back, name) == of_run(there_and_back(events), name), (place, name)
