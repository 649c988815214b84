"""What holds for every projection: how it ends, what it ignores, and that its state is its subscription's."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject
from support.bounded import bounded
from support.lines import through, whole
from support.replies import ANTHROPIC, REPLIES
from support.shared import recordings

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.testing import marbles

BOOM = ValueError("boom")

USAGE, MORE_USAGE = rd.TokenUsage(3, 1), rd.TokenUsage(3, 9)
MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "R": ev.BlockStart(0, {"type": "reasoning"}),
    "r": ev.ReasoningDelta(0, "hm"),
    "T": ev.BlockStart(1, {"type": "text"}),
    "t": ev.TextDelta(1, '{"a": [7'),
    "u": ev.TextDelta(1, ", 8]}"),
    "C": ev.BlockStart(2, {"type": "tool_call_chunk", "id": "c1", "name": "f"}),
    "c": ev.ToolCallDelta(2, '{"b": ["x"'),
    "d": ev.ToolCallDelta(2, "]}"),
    "1": ev.UsageUpdate(USAGE),
    "2": ev.UsageUpdate(MORE_USAGE),
    "f": ev.BlockFinish(0),
    "g": ev.BlockFinish(1),
    "h": ev.BlockFinish(2),
    "E": ev.MessageFinish("tool_use"),
    "p": ev.ProviderEvent("someone", "ping", {}),
    "!": ev.StreamError("busy", "overloaded_error", "529"),
    "?": {"choices": []},
    "x": rd.MessageDelta(content="a small delta"),
    "A": ev.AttemptReset(1),
    "N": ev.MessageStart(id="m2"),
    "O": ev.MessageStart(),
    "I": ev.MessageInterrupted("stopped"),
}
OPERATORS: dict[str, Any] = {
    "text_deltas": rd.text_deltas,
    "text_deltas of reasoning": partial(rd.text_deltas, of="reasoning"),
    "completed_tool_calls": rd.completed_tool_calls,
    "partial_arguments": rd.partial_arguments,
    "partial_json": rd.partial_json,
    "json_items": lambda **options: rd.json_items("a", **options),
    "json_items of a call": lambda **options: rd.json_items("b", call_id="c1", **options),
}
DIAGRAMS = {  # what a whole message brings, value by value
    "source                  ": "MRrfTtugCcdh12E|",
    "text_deltas             ": "-----ab--------|",
    "text_deltas of reasoning": "--a------------|",
    "completed_tool_calls    ": "-----------a---|",
    "partial_arguments       ": "---------abc---|",
    "partial_json            ": "-----ab-------c|",
    "json_items              ": "------[ab]--------|",
    "json_items of a call    ": "---------a-----|",
}
WHOLE = DIAGRAMS.pop("source".ljust(24))
EXPECTED: dict[str, list[Any]] = {
    "text_deltas": ['{"a": [7', ", 8]}"],
    "text_deltas of reasoning": ["hm"],
    "completed_tool_calls": [{"b": ["x"]}],
    "partial_arguments": [{"b": ["x"]}, {"b": ["x"]}, {"b": ["x"]}],
    "partial_json": [{"a": []}, {"a": [7, 8]}, {"a": [7, 8]}],
    "json_items": [7, 8],
    "json_items of a call": ["x"],
}
each_operator = pytest.mark.parametrize("name", OPERATORS)


def shown(value: Any) -> Any:
    if isinstance(value, rd.types.PartialValue):
        return value.value
    return value.arguments if isinstance(value, rd.ToolCall) else value


def project(
    name: str, source: str, *, until: float | None = None, **options: Any
) -> tuple[list[tuple[float, Any]], list[Any], list[Any]]:
    """The values with their times, how it ended, and when the source was read."""
    operator = bounded(OPERATORS[name], **options)
    records, reads = through(source, operator, values=MARKS, error=BOOM, until=until)
    values = [(time, shown(value)) for time, kind, value in records if kind == "next"]
    return values, [error or "|" for _, kind, error in records if kind != "next"], reads


def values(name: str, source: str, **options: Any) -> list[Any]:
    return [value for _, value in project(name, source, **options)[0]]


@pytest.mark.parametrize(("name", "diagram"), [(name.strip(), drawn) for name, drawn in DIAGRAMS.items()])
def test_each_value_as_it_comes_and_the_end_with_the_source(name: str, diagram: str) -> None:
    times = [time for time, kind, _ in marbles.parse(diagram, values=str, frame=1) if kind == "next"]
    assert project(name, WHOLE) == ([*zip(times, EXPECTED[name], strict=True)], ["|"], [(0, 15)])


@each_operator
@pytest.mark.parametrize(
    ("source", "end"),
    [
        pytest.param("--|", "|", id="empty"),
        pytest.param("|", "|", id="nothing but the end"),
        pytest.param("Mpp|", "|", id="a message of nothing"),
        pytest.param("ME|", "|", id="a message of nothing that has finished"),
        pytest.param("#", BOOM, id="an error"),
        pytest.param("M--#", BOOM, id="an error after the start"),
        pytest.param("---", None, id="never"),
        pytest.param("rtucdfghE|", "|", id="deltas and finishes of no block"),
    ],
)
def test_nothing_comes_of(name: str, source: str, end: Any) -> None:
    assert project(name, source) == ([], [] if end is None else [end], whole(source))


@each_operator
@pytest.mark.parametrize("cut", range(len(WHOLE)))
def test_an_error_at_any_point_is_passed_on_after_what_came_before(name: str, cut: int) -> None:
    before = [value for value in project(name, WHOLE)[0] if value[0] < cut]
    assert project(name, f"{WHOLE[:cut]}#") == (before, [BOOM], [(0, cut)])


@each_operator
@pytest.mark.parametrize("cut", range(1, len(WHOLE)))
def test_disposal_at_any_point_disposes_the_source(name: str, cut: int) -> None:
    before = [value for value in project(name, WHOLE)[0] if value[0] < cut]
    assert project(name, WHOLE, until=cut) == (before, [], [(0, cut)])


@each_operator
@pytest.mark.parametrize(
    ("mark", "kind"),
    [("!", rd.ProviderError), ("?", rd.InvalidValueError), ("x", rd.InvalidValueError)],
)
def test_an_error_event_and_what_is_no_event_end_the_stream(name: str, mark: str, kind: type) -> None:
    seen, ends, reads = project(name, WHOLE.replace("h12", f"h{mark}12"))
    before = WHOLE.index("h")
    assert seen == [value for value in project(name, WHOLE)[0] if value[0] <= before]
    assert [type(end) for end in ends] == [kind]
    assert reads == [(0, 1 + before)]


def test_the_providers_error_keeps_its_words_and_a_chunk_gets_a_hint() -> None:
    (error,) = project("text_deltas", "M!")[1]
    assert (error.message, error.type, error.code) == ("busy", "overloaded_error", "529")
    (hint,) = project("text_deltas", "M?")[1]
    assert "decode()" in str(hint)


@each_operator
@pytest.mark.parametrize("mark", "?x")
def test_a_value_that_is_no_event_is_an_error_that_names_the_operator(name: str, mark: str) -> None:
    (error,) = project(name, f"M{mark}")[1]
    assert str(error).startswith(f"{name.split()[0]}() reads events, and got a")


@each_operator
def test_the_choice_that_is_asked_for_is_seen_and_no_other(name: str) -> None:
    assert values(name, WHOLE, choice=1) == []
    other = [
        ev.from_dict(event.to_dict() | {"choice": 1}) if hasattr(event, "choice") else event
        for event in (MARKS[mark] for mark in WHOLE[:-1])
    ]
    mixed = [event for pair in zip((MARKS[mark] for mark in WHOLE[:-1]), other) for event in pair]
    for choice in (0, 1):
        got = (
            rx.from_iterable(mixed)
            .pipe(bounded(OPERATORS[name], choice=choice), ops.map(shown), ops.to_list())
            .run()
        )
        assert got == EXPECTED[name]


@each_operator
def test_another_attempt_begins_anew(name: str) -> None:
    for cut in range(len(WHOLE)):
        before = values(name, WHOLE[:cut])
        assert values(name, f"{WHOLE[:cut]}A{WHOLE}") == before + EXPECTED[name]


@each_operator
@pytest.mark.parametrize(
    "event", [ev.AttemptReset(1, choice=1), ev.MessageInterrupted(choice=1)], ids=["reset", "interruption"]
)
def test_what_names_another_choice_concerns_that_choice_only(name: str, event: Any) -> None:
    events = [MARKS[mark] for mark in WHOLE[:-1]]
    for cut in range(len(events)):
        told = rx.from_iterable([*events[:cut], event, *events[cut:]])
        assert told.pipe(OPERATORS[name](), ops.map(shown), ops.to_list()).run() == EXPECTED[name]


@each_operator
def test_after_the_message_nothing_comes_but_another_message(name: str) -> None:
    again = WHOLE[1:-1]
    assert values(name, f"{WHOLE[:-1]}{again}|") == EXPECTED[name]
    assert values(name, f"{WHOLE[:-1]}M{again}|") == EXPECTED[name] * 2  # some gateways have one id for all
    assert values(name, f"{WHOLE[:-1]}N{again}M{again}|") == EXPECTED[name] * 3


@each_operator
def test_after_an_interruption_nothing_comes(name: str) -> None:
    cut = WHOLE.index("c")
    interrupted = values(name, f"{WHOLE[:cut]}I|")
    assert values(name, f"{WHOLE[:cut]}I{WHOLE[cut:]}") == interrupted


@each_operator
def test_a_start_that_repeats_the_messages_own_id_changes_nothing(name: str) -> None:
    for cut in range(1, len(WHOLE) - 1):
        assert values(name, f"{WHOLE[:cut]}M{WHOLE[cut:]}") == EXPECTED[name]
    assert values(name, f"MN{WHOLE[1:]}") == EXPECTED[name]  # nor does another before the first block


@each_operator
@pytest.mark.parametrize("start", "NO")
def test_any_other_start_behind_a_block_begins_another_message(name: str, start: str) -> None:
    for cut in range(2, len(WHOLE) - 1):
        before = values(name, f"{WHOLE[:cut]}|")
        assert values(name, f"{WHOLE[:cut]}{start}{WHOLE[1:]}") == before + EXPECTED[name]


@each_operator
def test_the_first_start_may_come_behind_blocks(name: str) -> None:
    late = WHOLE[1:]
    for cut in range(1, len(late) - 1):
        assert values(name, f"{late[:cut]}M{late[cut:]}") == EXPECTED[name]


@pytest.mark.parametrize("name", OPERATORS)
def test_what_a_stream_may_make_us_hold_is_bounded(name: str) -> None:
    tight = [rd.Limits(block_chars=1), rd.Limits(blocks=0), rd.Limits(index=0)]
    for limits in tight:
        _, ends, _ = project(name, WHOLE, limits=limits)
        assert [type(end) for end in ends] == [rd.errors.LimitExceededError]


@each_operator
@pytest.mark.parametrize("many", ["started", "finished", "came whole"])
def test_blocks_that_have_ended_count_too(name: str, many: str) -> None:
    contents: list[Any] = [
        {"type": "text", "text": "7"},
        {"type": "reasoning", "reasoning": "7"},
        {"type": "tool_call", "id": "c", "name": "f", "args": {"b": 7}},
    ]
    events: list[Any] = []
    for index in range(6):
        for kind, content in enumerate(contents):
            key = f"{kind}-{index}"
            if many != "came whole":
                events.append(ev.BlockStart(key, content))
            if many != "started":
                events.append(ev.BlockFinish(key, content if many == "came whole" else None))
    seen: list[Any] = []
    limits = rd.Limits(blocks=5)
    rx.from_iterable(events).pipe(bounded(OPERATORS[name], limits=limits)).subscribe(on_error=seen.append)
    assert [type(error) for error in seen] == [rd.errors.LimitExceededError]


@each_operator
def test_the_limits_given_at_decode_hold(name: str) -> None:
    errors: list[Any] = []
    decoded = rx.from_iterable(ANTHROPIC).pipe(
        rd.decode("anthropic-messages"), rd.with_limits(rd.Limits(blocks=0))
    )
    decoded.pipe(OPERATORS[name]()).subscribe(on_error=errors.append)
    assert [type(error) for error in errors] == [rd.errors.LimitExceededError]


OF_A_REPLY = {
    "text_deltas": ["Let me ", "look."],
    "text_deltas of reasoning": [],
    "completed_tool_calls": [{"at": "sea"}],
    "partial_arguments": [{}, {"at": "sea"}, {"at": "sea"}],
}


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_a_providers_reply(wire_format: str) -> None:
    decoded = rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format))
    for name, expected in OF_A_REPLY.items():
        assert decoded.pipe(OPERATORS[name](), ops.map(shown), ops.to_list()).run() == expected
    last = decoded.pipe(rd.partial_arguments()).run()
    assert (last.call_id, last.name, last.complete) == ("call_1", "look", True)


class Piece(str):
    __slots__ = ("__weakref__",)


@pytest.mark.parametrize(
    ("name", "start", "delta"),
    [
        ("text_deltas", "T", ev.TextDelta),
        ("text_deltas of reasoning", "R", ev.ReasoningDelta),
        ("completed_tool_calls", "C", ev.ToolCallDelta),
        ("completed_tool_calls", "T", ev.TextDelta),
        ("partial_arguments", "C", ev.ToolCallDelta),
        ("json_items of a call", "T", ev.TextDelta),
    ],
)
def test_a_block_is_not_kept_after_its_end(name: str, start: str, delta: Any) -> None:
    source = Subject[Any]()
    begin = MARKS[start]
    piece = Piece("long")
    gone = weakref.ref(piece)
    with source.pipe(OPERATORS[name]()).subscribe():
        source.on_next(begin)
        source.on_next(delta(begin.index, piece))
        source.on_next(delta(begin.index, "er"))
        del piece
        source.on_next(ev.BlockFinish(begin.index))
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(wire_format, *one.values[:1], id=f"{wire_format}/{one.id}", marks=one.marks)
        for wire_format in ("anthropic-messages", "openai-chat")
        for one in recordings(wire_format)
    ],
)
def test_of_a_recorded_stream_they_are_what_its_snapshots_say(wire_format: str, chunks: list[Any]) -> None:
    events: list[Any] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format)).subscribe(events.append, lambda _: None)
    fold = rd.Fold(choice=0)
    for event in events:
        snapshot = fold.step(event)
    got = {
        name: rx.from_iterable(events).pipe(project(), ops.to_list()).run()
        for name, project in OPERATORS.items()
        if not name.startswith(("partial_json", "json_items"))
    }
    assert "".join(got["text_deltas"]) == snapshot.text
    assert "".join(got["text_deltas of reasoning"]) == snapshot.reasoning
    calls = [*snapshot.tool_calls, *snapshot.invalid_tool_calls]
    finished = {call.key: call for call in calls if not call.open}
    assert {call.key: call for call in got["completed_tool_calls"]} == finished
    last = {one.call_id: one for one in got["partial_arguments"]}
    for call in snapshot.tool_calls:
        if not call.open:
            assert (last[call.call_id].value, last[call.call_id].complete) == (call.arguments, True)


def test_deltas_of_another_kind_are_no_pieces_of_a_projection() -> None:
    reasoning = [ev.BlockStart(1, {"type": "reasoning"}), *(ev.ReasoningDelta(1, piece) for piece in "abcd")]
    said = [ev.BlockStart(0, {"type": "text"}), *(ev.TextDelta(0, piece) for piece in "abcd")]
    events = [*said, *reasoning, *said[1:], *reasoning[1:], ev.MessageFinish("stop")]
    texts = (
        rx.from_iterable(events)
        .pipe(rd.stable_blocks(), ops.map(lambda shown: shown.text), ops.to_list())
        .run()
    )
    assert texts[-2:] == ["abcdabcd", "abcdabcd"]
    assert len(texts) == 9
