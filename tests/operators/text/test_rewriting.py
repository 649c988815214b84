"""What holds for each operator on a reply's text, because one machine feeds their filters."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any, TypeAlias

import pytest
import reactivex as rx
from support.shared import RECORDED, recordings
from support.streams import EventStream, streams

import rxdelta as rd

ev = rd.events

# Operators that find nothing to do change nothing: not the reply, and none of the snapshots on the way.

IDLE: dict[str, Callable[[], Any]] = {
    "redact": lambda: rd.redact("\0never", elsewhere=False),
    "until_sequence": lambda: rd.until_sequence("\0never"),
}
"""These hold no text that can't be what they look for."""
JOINING: dict[str, Callable[[], Any]] = {
    "map_text": lambda: rd.map_text(lambda unit: unit),
    "cut_text": lambda: rd.cut_text("word"),
    "redact(arguments)": lambda: rd.redact("\0never", arguments=True, elsewhere=False),
}
"""These give the text in other pieces; the last one gives a call no arguments until it has ended."""

OPERATORS = IDLE | JOINING


def through(events: Iterable[rd.Event], *operators: Any) -> list[rd.Event]:
    told: list[rd.Event] = []
    errors: list[Exception] = []
    rx.from_iterable(events).pipe(*operators).subscribe(told.append, errors.append)
    assert not errors
    return told


State: TypeAlias = dict[str, Any]


def states(events: Iterable[rd.Event]) -> list[list[State]]:
    """The distinct states of each message of each choice."""
    found: list[list[State]] = []
    for choice in (0, 1):
        fold = rd.Fold(choice=choice)
        found.append([])
        for event in events:
            try:
                fold.step(event)
            except rd.ProviderError:
                break
            except rd.ProtocolError:  # another message begins
                fold = rd.Fold(choice=choice)
                found.append([])
                fold.step(event)
            state = fold.snapshot.to_dict()
            if found[-1][-1:] != [state]:
                found[-1].append(state)
    return found


def last(told: list[list[State]]) -> list[list[State]]:
    return [one[-1:] for one in told]


def no_change(events: Sequence[rd.Event]) -> None:
    wanted = states(events)
    for name, make in IDLE.items():
        assert states(through(events, make())) == wanted, name
    ends = [state for one in last(wanted) for state in one if "blocks" in state]
    is_whole = all(state["status"] == "complete" and "violations" not in state for state in ends)
    for name, make in JOINING.items():
        if name != "redact(arguments)" or is_whole:
            assert last(states(through(events, make()))) == last(wanted), name


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 6))])
@pytest.mark.parametrize("stream", range(len([*streams(0)])))
def test_idle_operators_change_no_stream(stream: int, seed: int) -> None:
    given: EventStream = [*streams(seed)][stream]
    no_change(given.events)


@pytest.mark.parametrize(
    ("chunks", "wire_format"),
    [
        pytest.param(one.values[0], wire_format, id=f"{wire_format}-{one.id}", marks=one.marks)
        for wire_format in RECORDED
        for one in recordings(wire_format)
    ],
)
def test_idle_operators_change_no_recorded_stream(chunks: list[Any], wire_format: Any) -> None:
    events: list[rd.Event] = []
    rx.from_iterable(chunks[:300]).pipe(rd.decode(wire_format)).subscribe(events.append, lambda _: None)
    no_change(events)


@pytest.mark.parametrize("operator", [rd.cut_text(), rd.map_text(str), rd.until_sequence("Dux")])
def test_the_text_of_all_choices_comes_before_another_message(operator: Any) -> None:
    begun = [
        ev.BlockStart(0, {"type": "text", "text": text}, choice=choice)
        for choice, text in enumerate(("One", "Du"))
    ]
    told = through([*begun, ev.MessageFinish("stop"), ev.MessageStart("n")], operator)
    assert told[-1] == ev.MessageStart("n")
    assert last(states(told[:-1])) == last(states([*begun, ev.MessageFinish("stop")]))


@pytest.mark.parametrize("operator", [*OPERATORS])
def test_half_of_a_character_is_shown_as_a_fold_shows_it(operator: str) -> None:
    begun: list[rd.Event] = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "a \ud83d")]
    for end in ([ev.BlockFinish(0)], [ev.MessageFinish("stop")], []):
        events = [*begun, *end]
        assert last(states(through(events, OPERATORS[operator]()))) == last(states(events))


# No piece passes by its filter.

KINDS: dict[str, tuple[dict[str, Any], Callable[[int, str], rd.Event]]] = {
    "text": ({"type": "text"}, ev.TextDelta),
    "reasoning": ({"type": "reasoning"}, ev.ReasoningDelta),
    "arguments": ({"type": "tool_call_chunk", "id": "c", "name": "f", "args": ""}, ev.ToolCallDelta),
}
HIDE: dict[str, Callable[[], Any]] = {
    "redact": lambda: rd.redact("secret", arguments=True),
    "guard": lambda: rd.guard(lambda text: "secret" not in text, on_hit="…"),
}


@pytest.mark.parametrize("pieces", [*product(("", "ab"), ("", "cd"), ("", "ef")), ("", "", "", "", "")])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", HIDE)
def test_no_empty_delta_lets_the_next_one_pass(name: str, kind: str, pieces: tuple[str, ...]) -> None:
    content, delta = KINDS[kind]
    quoted = [*pieces, '"se', "", "cret", '" '] if kind == "arguments" else [*pieces, "se", "", "cret "]
    deltas = [delta(0, piece) for piece in quoted]
    seen: list[Any] = []
    events = [ev.BlockStart(0, content), *deltas, ev.BlockFinish(0), ev.MessageFinish("stop")]
    rx.from_iterable(events).pipe(HIDE[name]()).subscribe(seen.append)
    assert [event for event in seen if "cret" in str(event)] == []
    assert isinstance(seen[-1], ev.MessageFinish)
