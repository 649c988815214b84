"""All readers agree on which calls are complete, and on their arguments.

Three differences have names, because time forces them: a reader that has acted can't take it back.

T1: an ended call is overruled by a second finish. The fold has the last content, who acted has the first.
T2: an ended block begins anew. Who acts does so twice if the call's id differs, and once if it repeats.
T3: `run_tools(start="ready")` began a call before its end, and it then changed.
"""

# Two readers don't get all streams, because an open call may change its id:
# - `run_tools(start="ready")`, if it may have begun that call (T3): it has one outcome, under either id;
# - an AI SDK client, which finds a call by its id: the call keeps the id with which it began.

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, TypeAlias

import attrs
import pytest
import reactivex as rx
from hypothesis import assume, given, settings, strategies as st
from support import ag_ui, ai_sdk
from support.call_judge import Judge, Life

import rxdelta as rd

ev = rd.events
Events: TypeAlias = Sequence[rd.Event]
Calls: TypeAlias = "Counter[tuple[str, str]]"

# Events of any order. The calls of a block have one of two ids, so that they repeat, or change.

indexes = st.integers(0, 1)
ids = st.sampled_from("cd")
TEXT = {"type": "text", "text": "z"}


def chunk(index: int, name: str) -> dict[str, Any]:
    return {"type": "tool_call_chunk", "id": f"{name}{index}", "name": "f", "args": ""}


def whole(index: int, name: str, number: int) -> dict[str, Any]:
    return {"type": "tool_call", "id": f"{name}{index}", "name": "f", "args": {"n": number}}


numbers = st.integers(1, 3)
of_blocks = st.one_of(
    st.builds(lambda index: ev.BlockStart(index, TEXT), indexes),
    st.builds(lambda index, name: ev.BlockStart(index, chunk(index, name)), indexes, ids),
    st.builds(lambda index, name: ev.BlockStart(index, chunk(index, name)), indexes, ids),
    st.builds(
        lambda index, name, number: ev.BlockStart(index, whole(index, name, number)), indexes, ids, numbers
    ),
    st.builds(ev.TextDelta, indexes, st.just("a")),
    st.builds(ev.ToolCallDelta, indexes, st.sampled_from(["{", "}", '"n":4', "{}", '{"n":5}', ""])),
    st.builds(ev.BlockFinish, indexes),
    st.builds(ev.BlockFinish, indexes),
    st.builds(lambda index: ev.BlockFinish(index, TEXT), indexes),
    st.builds(
        lambda index, name, number: ev.BlockFinish(index, whole(index, name, number)), indexes, ids, numbers
    ),
    st.builds(lambda index: ev.BlockDelta(index, {"args": '{"n":6}'}), indexes),
    st.builds(lambda index, name: ev.BlockDelta(index, {"id": f"{name}{index}"}), indexes, ids),
)
ends = st.one_of(
    st.builds(ev.MessageFinish, st.sampled_from(["tool_use", "length"])),
    st.builds(ev.MessageFinish, st.just("tool_use")),
    st.just(ev.MessageInterrupted("x")),
)
updates = st.builds(
    ev.ToolUpdate,
    st.sampled_from(["c0", "d1", "nobody"]),
    st.sampled_from(["executing", "completed"]),
    st.none(),
)
starts = st.builds(ev.MessageStart, st.sampled_from([None, "m", "m", "n"]))
anything = st.lists(
    st.one_of(of_blocks, of_blocks, of_blocks, ends, updates, starts, st.just(ev.AttemptReset(1))),
    max_size=12,
).map(lambda events: [ev.MessageStart("m"), *events])


def as_calls(values: Sequence[Any]) -> Calls:
    return Counter(
        (call.call_id, json.dumps(rd.core.thaw(call.arguments)))
        for call in values
        if isinstance(call, rd.ToolCall) and call.status == "complete"
    )


def values_of(events: Events, *operators: Any) -> list[Any]:
    values: list[Any] = []
    rx.from_iterable(events).pipe(*operators).subscribe(values.append, values.append)
    return values


# Each reader's calls, as (got, wanted).


def fold(events: Events) -> tuple[Any, Any]:
    """A fold of each message. The judge splits the messages."""
    got: list[Calls] = []
    messages = Judge(events).messages()
    for message in messages:
        one = rd.Fold()
        for event in message.events:
            one.step(event)
        got.append(as_calls(one.snapshot.tool_calls))
    return got, [Counter(message.complete()) for message in messages]


def fold_of_the_whole(events: Events) -> tuple[Any, Any]:
    """A fold refuses the second message, with the first as its snapshot."""
    messages = Judge(events).messages()
    one = rd.Fold()
    refused = False
    for event in events:
        try:
            one.step(event)
        except rd.ProtocolError as error:
            refused = error.snapshot == one.snapshot
            break
    got = as_calls(one.snapshot.tool_calls), refused
    return got, (Counter(messages[0].complete()), len(messages) > 1)


def group_by_message(events: Events) -> tuple[Any, Any]:
    got: list[Any] = []

    def read(message: Any) -> None:
        snapshots: list[Any] = []
        got.append(snapshots)
        message.pipe(rd.scan_deltas()).subscribe(snapshots.append, snapshots.append)

    rx.from_iterable(events).pipe(rd.group_by_message()).subscribe(read)
    return (
        [as_calls(snapshots[-1].tool_calls if snapshots else ()) for snapshots in got],
        [Counter(message.complete()) for message in Judge(events).messages()],
    )


def completed_tool_calls(events: Events) -> tuple[Any, Any]:
    acted = [block.first for life in Judge(events).lives for block in life.acted()]
    return as_calls(values_of(events, rd.completed_tool_calls())), Counter(acted)


def completed_behind_a_guard(events: Events) -> tuple[Any, Any]:
    """A guard, and a redaction of arguments, hold a call's arguments until its end."""
    held = rd.guard(lambda _: True), rd.redact("never", arguments=True)
    acted = [block.first for life in Judge(events).lives for block in life.acted()]
    return as_calls(values_of(events, *held, rd.completed_tool_calls())), Counter(acted)


def group_by_block(events: Events) -> tuple[Any, Any]:
    """A stream shows its block up to its end, or its tool's. No tool runs here."""
    events = [event for event in events if not isinstance(event, ev.ToolUpdate)]
    last: dict[Any, Any] = {}

    def read(block: Any) -> None:
        block.subscribe(lambda value: last.__setitem__(block, value), lambda _: None)

    rx.from_iterable(events).pipe(rd.group_by_block()).subscribe(read)
    return as_calls([*last.values()]), Counter(block.first for block in Judge(events).blocks() if block.first)


def _ran(events: Events, start: Any) -> Counter[tuple[str, str]]:
    """The calls that ran, with the arguments that their tools got."""
    arguments: list[str] = []

    def f(**given: Any) -> int:
        arguments.append(json.dumps(given))
        return 1

    values = values_of(events, rd.run_tools({"f": f}, start=start))
    theirs = {id(event) for event in events}
    began = [
        value.call_id
        for value in values
        if isinstance(value, ev.ToolUpdate)
        and value.execution_status == "executing"
        and id(value) not in theirs
    ]
    assert not [value for value in values if isinstance(value, Exception)]
    return Counter(zip(began, arguments, strict=True))


def run_tools_with_the_message(events: Events) -> tuple[Any, Any]:
    lives = [life for life in Judge(events).lives if life.ended_by == "finish"]
    return _ran(events, "message"), Counter(block.first for life in lives for block in life.acted())


def run_tools_when_ready(events: Events) -> tuple[Any, Any]:
    """A call that was whole early has run at most once: with these arguments, or with those of its end."""
    assume(not any(block.renamed and block.early for block in Judge(events).blocks()))
    ran = _ran(events, "ready")
    blocks = [
        (block, block.first if not block.repeats else None)
        for life in Judge(events).lives
        for block in life.all
    ]
    wanted = Counter(acts for block, acts in blocks if acts and not block.early)
    for block, acts in sorted(blocks, key=lambda one: one[1] is None):  # first those that must have run
        if block.early:
            done = next((call for call in [*block.early, acts] if call and ran[call] > wanted[call]), None)
            assert done or acts is None, f"{acts} wasn't run for {events}"
            wanted.update([done] if done else [])
    return ran, wanted


# Encoders: the calls of their clients at the end.


def distinct(events: Events) -> Events:
    """The same events without `ToolUpdate`s. No two messages share a call's id, because clients find calls by it."""
    renamed: list[rd.Event] = []
    for number, message in enumerate(Judge(events).messages()):
        for event in message.events:
            content = getattr(event, "content", None)
            if content is not None and "id" in content:
                renamed.append(attrs.evolve(event, content={**content, "id": f"{content['id']}.{number}"}))
            elif isinstance(event, ev.BlockDelta) and "id" in event.fields:
                renamed.append(attrs.evolve(event, fields={"id": f"{event.fields['id']}.{number}"}))
            elif not isinstance(event, ev.ToolUpdate):
                renamed.append(event)
    return renamed


def encoded(
    read: Callable[[Events], Calls], events: Events, calls: Callable[[Life], Iterable[Any]]
) -> tuple[Any, Any]:
    events = distinct(events)
    return read(events), Counter(call for message in Judge(events).messages() for call in calls(message))


def ai_sdk_client(events: Events) -> tuple[Any, Any]:
    def read(events: Events) -> Calls:
        parts = ai_sdk.read(ai_sdk.frames_of(events)).parts
        return Counter(
            (
                part["toolCallId"].split("-")[0],
                json.dumps(part["input"]),
            )  # one that begins again gets a suffix
            for part in parts
            if part.get("state") == "input-available"
        )

    assume(not any(block.renamed for block in Judge(events).blocks()))
    return encoded(read, events, lambda message: (block.first for block in message.acted()))


def ag_ui_client(events: Events) -> tuple[Any, Any]:
    def read(events: Events) -> Calls:
        frames = ag_ui.frames_of(ag_ui.encoder(new_id=map(str, count()).__next__), events)
        return Counter(
            (call["id"].split("-")[0], json.dumps(json.loads(call["function"]["arguments"] or "{}")))
            for message in ag_ui.read(frames).messages
            for call in message.get("toolCalls", ())
            if call.get("metadata", {}).get("rxdelta", {}).get("type") != "invalid_tool_call"
        )

    return encoded(read, events, Life.complete)


def langchain_client(events: Events) -> tuple[Any, Any]:
    def read(events: Events) -> Calls:
        encoder = rd.wire.LangChainEncoder(now=lambda: 0, new_id=map(str, count()).__next__)
        frames = [*(frame for event in events for frame in encoder.encode(event)), *encoder.close()]
        found: list[list[tuple[str, str]]] = [[]]
        for frame in frames:
            data: Any = frame["params"]["data"]
            if data.get("event") == "message-start":
                found.append([])
            elif data.get("event") == "error" and "attempt_reset" in str(data):
                found[-1].clear()
            elif data.get("event") == "content-block-finish" and data["content"]["type"] == "tool_call":
                found[-1].append((data["content"]["id"], json.dumps(data["content"]["args"])))
        return Counter(call for message in found for call in message)

    return encoded(read, events, lambda message: (block.first for block in message.all if block.first))


Reader: TypeAlias = Callable[[Events], tuple[Any, Any]]


def holds(reader: Reader, events: Events) -> None:
    got, wanted = reader(events)
    assert got == wanted, f"{reader.__name__}: {got} instead of {wanted} for {events}"


READERS: list[Reader] = [
    fold,
    fold_of_the_whole,
    group_by_message,
    completed_tool_calls,
    completed_behind_a_guard,
    group_by_block,
    run_tools_with_the_message,
    run_tools_when_ready,
    ai_sdk_client,
    ag_ui_client,
    langchain_client,
]


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@settings(derandomize=True, max_examples=150)
@given(events=anything)
def test_all_readers_agree_on_the_complete_calls(reader: Reader, events: Events) -> None:
    holds(reader, events)
