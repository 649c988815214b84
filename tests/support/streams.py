"""Streams of events for tests of every operator: parallel calls, choices, messages, resets, cuts; drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random

import attrs

import rxdelta as rd

__all__ = ["TOOLS", "EventStream", "streams"]

ev = rd.events
Events = list[rd.Event]

TOOLS = {"add": lambda a, b: a + b, "find": lambda **query: query}
"""The tools of the calls. There is none for calls of `other`."""

ARGUMENTS = {"add": '{"a": 1, "b": 2}', "find": '{"what": {"name": "café"}, "n": [1, 2]}', "other": "{}"}


@attrs.frozen
class EventStream:
    """The events of a stream.

    Attributes:
        fails: Whether the source fails behind them.
        is_conversation: Whether they are more than one message.
        takes_back: Whether a reset without a choice comes when only one of two choices is over. It takes back the
            other one, but a message's first reader has that choice.
    """

    name: str
    events: Sequence[rd.Event]
    fails: bool = False
    is_conversation: bool = False
    takes_back: bool = False


def streams(seed: int) -> Iterator[EventStream]:
    """One stream of each kind."""
    draw = Random(seed)
    yield EventStream("calls", _reply(draw, "m1"))
    yield EventStream("two choices", _choices(draw, "m1"))
    yield EventStream(
        "three messages",
        [*_reply(draw, "m1"), *_reply(draw, "m2"), *_reply(draw, "m3")],
        is_conversation=True,
    )
    yield EventStream(
        "messages with one id",
        [*_reply(draw, "m"), *_updates(draw), *_reply(draw, "m")],
        is_conversation=True,
    )
    yield EventStream(
        "messages without ids",
        [*_reply(draw, None), *_updates(draw), *_reply(draw, None)],
        is_conversation=True,
    )
    yield EventStream(
        "messages with choices", [*_choices(draw, "m1"), *_choices(draw, "m2")], is_conversation=True
    )
    yield EventStream(
        "cut off by the next message",
        [*_cut(draw, _reply(draw, "m1")), *_reply(draw, "m2")],
        is_conversation=True,
    )
    yield EventStream("another attempt", [*_cut(draw, _reply(draw, "m1")), _reset(1), *_reply(draw, "m2")])
    yield EventStream(
        "two more attempts",
        [
            *_cut(draw, _reply(draw, "m1")),
            _reset(1),
            *_cut(draw, _reply(draw, "m1")),
            _reset(2),
            *_reply(draw, "m1"),
        ],
    )
    yield EventStream(
        "another attempt after the end",
        [*_reply(draw, "m1"), _reset(1), *_reply(draw, "m2")],
        is_conversation=True,
    )
    yield EventStream(
        "another attempt of two choices",
        [*_cut(draw, _choices(draw, "m1")), _reset(1), *_choices(draw, "m2")],
    )
    yield EventStream(
        "another attempt after one of two choices",
        [*_one_of_two(draw, "m1"), _reset(1, 0), _reset(1, 1), *_choices(draw, "m2")],
    )
    yield EventStream(
        "another attempt at the choice that is open",
        [*_one_of_two(draw, "m1"), _reset(1, 1), *_reply(draw, "m2", 1)],
    )
    yield EventStream(
        "another message, or attempt, after one of two choices",
        [*_one_of_two(draw, "m1"), _reset(1), *_choices(draw, "m2")],
        is_conversation=True,
        takes_back=True,
    )
    yield EventStream("cut", _cut(draw, _reply(draw, "m1")))
    yield EventStream("cut between choices", _cut(draw, _choices(draw, "m1")))
    yield EventStream("broken", _cut(draw, _reply(draw, "m1")), fails=True)
    yield EventStream("broken after the end", [*_reply(draw, "m1"), *_updates(draw)], fails=True)
    yield EventStream("failed", [*_cut(draw, _reply(draw, "m1")), ev.StreamError("Overloaded", "overloaded")])
    yield EventStream(
        "interrupted", [*_cut(draw, _reply(draw, "m1")), ev.MessageInterrupted("stopped"), *_updates(draw)]
    )
    yield EventStream(
        "interrupted choices", [*_cut(draw, _choices(draw, "m1")), ev.MessageInterrupted("stopped")]
    )
    yield EventStream("too long", [*_cut(draw, _reply(draw, "m1")), ev.MessageFinish("length")])
    yield EventStream("answered", [*_reply(draw, "m1"), *_updates(draw)])
    yield EventStream(
        "late start", [*_reply(draw, "m1")[1:-1], ev.MessageStart("m1"), ev.MessageFinish("tool_use")]
    )
    yield EventStream("not legal", _illegal(draw))
    yield EventStream("empty", [])
    yield EventStream("broken at once", [], fails=True)


def _reply(draw: Random, id: str | None, choice: int = 0) -> Events:
    """One whole message. Its call ids contain its own id and its choice."""
    kinds = ["reasoning", "text", "text", *draw.choices([*ARGUMENTS], k=draw.randint(1, 3))]
    blocks = [_block(draw, index, kind, f"{id}-{choice}-{index}", choice) for index, kind in enumerate(kinds)]
    usage = [ev.UsageUpdate(rd.TokenUsage(7, n), choice=choice) for n in range(2)]
    events = _woven(draw, *blocks, usage, [ev.ProviderEvent("house", "ping", {})])
    end = ev.MessageFinish("tool_use", usage=rd.TokenUsage(7, 9), choice=choice)
    return [ev.MessageStart(id, "small", choice=choice), *events, end]


def _block(draw: Random, index: int, kind: str, call_id: str, choice: int) -> Events:
    """One block. Now and then it has no finish of its own, or one that overrules its deltas."""
    finish: dict[str, object] | None = None
    if kind in ARGUMENTS:
        start = {"type": "tool_call_chunk", "id": call_id, "name": kind}
        deltas: Events = [
            ev.ToolCallDelta(index, piece, choice=choice) for piece in _pieces(draw, ARGUMENTS[kind])
        ]
        if draw.random() < 0.2:
            finish = {"type": "tool_call", "id": call_id, "name": kind, "args": {"a": 3, "b": 4}}
    elif kind == "text":
        start = {"type": "text", "text": draw.choice(["", "So: "])}
        deltas = [
            ev.TextDelta(index, piece, choice=choice)
            for piece in _pieces(draw, "Hi. **All** is well 👩‍👧.\n\n- a\n- b\n")
        ]
        if draw.random() < 0.2:
            finish = {"type": "text", "text": "Hi! All is well."}
    else:
        start = {"type": "reasoning"}
        deltas = [
            ev.ReasoningDelta(index, piece, choice=choice) for piece in _pieces(draw, "Hm, well, let me see.")
        ]
        deltas.append(ev.BlockDelta(index, {"signature": "s"}, choice=choice))
    events: Events = [ev.BlockStart(index, start, choice=choice), *deltas]
    if finish is not None or draw.random() < 0.8:
        events.append(ev.BlockFinish(index, finish, choice=choice))
    return events


def _pieces(draw: Random, text: str) -> list[str]:
    cuts = sorted(draw.sample(range(1, len(text)), k=min(len(text) - 1, draw.randint(0, 4))))
    pieces = [text[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    return [*pieces, ""] if draw.random() < 0.2 else pieces


def _woven(draw: Random, *lists: Sequence[rd.Event]) -> Events:
    """All these events in a random order, each list in its own."""
    left = [[*events] for events in lists if events]
    woven: Events = []
    while left:
        events = draw.choice(left[: draw.randint(1, len(left))])  # the first ones sooner
        woven.append(events.pop(0))
        left = [events for events in left if events]
    return woven


def _choices(draw: Random, id: str) -> Events:
    return _woven(draw, _reply(draw, id), _reply(draw, id, 1))


def _one_of_two(draw: Random, id: str) -> Events:
    """Two choices. The second is cut off when the first is over."""
    return [*_reply(draw, id), *_cut(draw, _reply(draw, id, 1), 1)]


def _cut(draw: Random, events: Events, choice: int = 0) -> Events:
    """The first part of these events, which ends within a call."""
    place = draw.randint(len(events) // 3, len(events) - 2)
    start = {"type": "tool_call_chunk", "id": "cut", "name": "find"}
    so_far = [event for event in events[:place] if not isinstance(event, ev.MessageFinish)]
    return [
        *so_far,
        ev.BlockStart(9, start, choice=choice),
        ev.ToolCallDelta(9, '{"wh', choice=choice),
    ]


def _reset(attempt: int, choice: int | None = None) -> rd.Event:
    return ev.AttemptReset(attempt, "Overloaded", rd.TokenUsage(5, 5), choice=choice)


def _updates(draw: Random) -> Events:
    """Updates of another program's tools, for some call; there may be no such call."""
    call_id = f"{draw.choice(['m', 'm1', None])}-0-{draw.randint(3, 5)}"
    return [
        ev.ToolUpdate(call_id, None, "Almost there"),
        ev.ToolUpdate(call_id, "completed", result=rd.ToolResult(call_id, "theirs")),
    ]


def _illegal(draw: Random) -> Events:
    """A message with events out of place, or repeated. A fold ignores or repairs them."""
    events = _reply(draw, "m1")
    odd: Events = [
        ev.MessageStart("m1"),
        ev.TextDelta(1, "early"),
        ev.TextDelta(3, "of another kind"),
        ev.ToolCallDelta(1, "{"),
        ev.TextDelta(9, "of no block"),
        ev.BlockFinish(9),
        ev.BlockStart(2, {"type": "text", "text": "again "}),
        ev.TextDelta(2, "and again"),
        ev.BlockFinish(2, {"type": "text", "text": "the last word"}),
        ev.BlockFinish(8, {"type": "text", "text": "only an end"}),
        ev.TextDelta(8, "after the end"),
    ]
    behind: Events = [ev.TextDelta(1, "too late"), ev.BlockFinish(1), ev.MessageFinish("stop")]
    return [events[0], *_woven(draw, events[1:-1], odd), events[-1], *behind]
