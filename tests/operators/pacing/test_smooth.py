"""`smooth` in virtual time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import regex
from hypothesis import given, strategies as st
from reactivex import abc
from reactivex.subject import Subject
from reactivex.testing import TestScheduler
from support.lines import through

import rxdelta as rd
from rxdelta.operators.pacing import smooth as _smooth
from rxdelta.testing import marbles

BOOM = ValueError("boom")

ev = rd.events
PING = ev.ProviderEvent("p", "ping")
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"


def text(piece: str) -> rd.Event:
    return ev.TextDelta(0, piece)


LETTERS: dict[str, Any] = {mark: text(mark) for mark in "abcdefghijklmnopqrstuvwxyz"} | {"!": PING}


def smoothed(
    source: Sequence[tuple[float, Any]], *arguments: Any, end: float | None = None
) -> list[tuple[float, Any]]:
    """(time, event) for (time, event or text), with a completion at `end`."""
    records: list[marbles.Record] = [
        (time, "next", text(event) if isinstance(event, str) else event) for time, event in source
    ]
    if end is not None:
        records.append((end, "completed", None))
    came, _ = through(records, rd.smooth(*arguments))
    return [(time, kind if kind == "completed" else _shown(event)) for time, kind, event in came]


def _shown(event: Any) -> Any:
    return event.text if isinstance(event, ev.TextDelta) else event


@pytest.mark.parametrize(
    ("source", "expected", "words"),
    [
        pytest.param(
            "-a-----b----c|", "-------a----b-[c|]", {}, id="a slow source: each as soon as the next has come"
        ),
        pytest.param("-[abcd]---------|", "-a-b-c-----[d|]", {}, id="a burst is spread"),
        pytest.param("-[abcd]-----|", "-a-b-c-[d|]", {}, id="completion waits for the rest"),
        pytest.param("-[abcd]-----#", "-a-b-c-[d#]", {}, id="an error after a burst"),
        pytest.param("[abcd#]", "[aR#]", {"R": "bcd"}, id="an error flushes at once"),
        pytest.param("-[ab]----|", "-a----[b|]", {}, id="completion with one piece left"),
        pytest.param(
            "-[abc]",
            "-a-b-----------------c",
            {},
            id="silence: the last one waits no longer than the lag",
        ),
        pytest.param("ab-c|", "-a-b-[c|]", {}, id="a piece on the edge of a turn"),
        pytest.param("[abc!]", "a-b-[c!]", {}, id="another event waits for the text before it"),
        pytest.param("!--[a!]", "!--[a!]", {}, id="the end of a piece is certain when another event comes"),
        pytest.param("-!--!!-|", "-!--!!-|", {}, id="no text at all"),
        pytest.param("--|", "--|", {}, id="empty"),
        pytest.param("#", "#", {}, id="only an error"),
        pytest.param("------", "------", {}, id="never"),
    ],
)
def test_a_letter_every_two_ticks_and_none_later_than_twenty(
    source: str, expected: str, words: dict[str, str]
) -> None:
    values = LETTERS | {capital: text(word) for capital, word in words.items()}
    marbles.check(source, rd.smooth("char", 0.5, 20), gives=expected, values=values, frame=1)


def test_a_burst_goes_evenly_and_is_out_in_time() -> None:
    got = smoothed([(0, "x" * 1000)], "char", 1, 100)
    sizes = [len(piece) for _, piece in got]
    assert [time for time, _ in got] == [0, *range(1, 101)]
    assert sizes[0] == 1
    assert set(sizes[1:]) <= {9, 10}


def test_a_source_faster_than_the_rate_gets_an_even_flow_too() -> None:
    got = smoothed([(time, "x" * 10) for time in range(200)], "char", 1, 20, end=200)
    sizes = [len(piece) for time, piece in got if 30 <= time < 190]
    assert len(sizes) == 160
    assert max(sizes) - min(sizes) <= 2
    assert got[-1][0] <= 220


def test_several_pieces_of_one_turn_are_one_delta_and_a_thousand_turns_a_second_are_enough() -> None:
    got = smoothed([(1, "a b c d e f g ")], "word", 4000, 10, end=1)
    assert [piece for _, piece in got] == ["a ", "b c d e ", "f g ", "completed"]


@pytest.mark.parametrize("lag", [0.5, 3])
def test_what_has_no_end_waits_no_longer_than_the_lag(lag: float) -> None:
    assert smoothed([(1, "Hel"), (10, "lo wor")], "word", 1, lag) == [
        (1 + lag, "Hel"),
        (10, "lo "),
        (10 + lag, "wor"),
    ]


def test_the_lag_holds_between_two_turns_as_well() -> None:
    assert smoothed([(1, "a "), (1.5, "b c")], "word", 0.1, 2) == [(1.5, "a "), (3, "b c")]


@pytest.mark.parametrize(
    "fragments", [["Let me look. It"], ["Let ", "me look", ". It"], list("Let me look. It")]
)
@pytest.mark.parametrize(
    "arguments", [("word", 1, 99), ("char", 1, 4), ("line", 1, 2), (re.compile(r"\w\s"), 3, 5)]
)
def test_the_result_does_not_depend_on_how_the_source_was_split(fragments: list[str], arguments: Any) -> None:
    whole = smoothed([(1, "Let me look. It"), (3, PING), (3, " is\nhere"), (40, PING)], *arguments, end=90)
    parts = [(1, fragment) for fragment in fragments]
    assert (
        smoothed([*parts, (3, PING), *((3, one) for one in " is\nhere"), (40, PING)], *arguments, end=90)
        == whole
    )


def test_what_comes_just_as_something_must_go_may_come_in_pieces_too() -> None:
    whole = smoothed([(0, "a"), (1, "\nb")], "line", 1, 1, end=9)
    assert (
        smoothed([(0, "a"), (1, "\n"), (1, "b")], "line", 1, 1, end=9)
        == whole
        == [(1, "a\n"), (2, "b"), (9, "completed")]
    )


def test_kinds_blocks_and_choices_are_kept_apart_and_in_order() -> None:
    deltas = [
        ev.ReasoningDelta(0, "hm "),
        ev.TextDelta(1, "a b"),
        ev.TextDelta(2, "c"),
        ev.TextDelta(2, "d", choice=1),
        ev.TextDelta("2", "e"),
        ev.ReasoningDelta("2", "f"),
    ]
    got = smoothed([(0, delta) for delta in deltas], "word", 1, 99, end=0)
    shown = [ev.TextDelta(2 if one == "c" else "2", one) if one in ("c", "e") else one for _, one in got]
    assert [time for time, _ in got] == [0, 1, 2, 3, 4, 5, 6, 6]
    assert shown[0] == deltas[0]
    assert [getattr(one, "reasoning", getattr(one, "text", one)) for one in shown] == [
        "hm ", "a ", "b", "c", "d", "e", "f", "completed",
    ]  # fmt: skip


def test_a_tool_call_is_not_shown_before_the_end_of_the_text_in_front_of_it() -> None:
    start = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "f"})
    args = ev.ToolCallDelta(1, "{}")
    source = [(0, "Let me look."), (0, ev.BlockFinish(0)), (0, start), (0, args), (1, ev.TextDelta(2, "So"))]
    got = smoothed(source, "word", 0.5, 99, end=1)
    assert got == [
        (0, "Let "), (2, "me "), (4, "look."), (4, ev.BlockFinish(0)), (4, start), (4, args), (6, "So"), (6, "completed"),
    ]  # fmt: skip


def test_an_interruption_shows_at_once_what_came_and_later_text_is_paced_again() -> None:
    stopped = ev.MessageInterrupted("stopped")
    got = smoothed([(0, "abcd"), (1, stopped), (11, "efg")], "char", 0.5, 20, end=30)
    assert got == [(0, "a"), (1, "bcd"), (1, stopped), (11, "e"), (13, "f"), (30, "g"), (30, "completed")]


def test_empty_deltas_are_nothing() -> None:
    assert smoothed([(0, ""), (1, "a"), (1, ""), (1, "b"), (2, "")], "char", 1, 9, end=3) == [
        (1, "a"),
        (3, "b"),
        (3, "completed"),
    ]


@pytest.mark.parametrize(
    "grapheme",
    [
        FAMILY,
        "e\u0301\u0323",
        "\U0001f1e9\U0001f1ea",
        "\u1112\u1161\u11ab",
        "\r\n",
        "\u0915\u094d\u0937\u093f",
    ],
    ids=ascii,
)
@pytest.mark.parametrize("chunking", ["char", "word", re.compile("."), lambda text: text[:1]])
def test_48_a_grapheme_split_over_chunks_is_never_cut(grapheme: str, chunking: Any) -> None:
    source = [(time, part) for time, part in enumerate(f"a{grapheme}{grapheme}b ")]
    pieces = [piece for _, piece in smoothed(source, chunking, 1, 50, end=20)[:-1]]
    assert "".join(pieces) == f"a{grapheme}{grapheme}b "
    clusters = [cluster for piece in pieces for cluster in regex.findall(r"\X", piece)]
    assert clusters == regex.findall(r"\X", f"a{grapheme}{grapheme}b ")


def test_48_what_makes_no_sense_alone_waits_beyond_the_lag_and_the_rest_does_not() -> None:
    source = [(0, "ab \U0001f468\u200d"), (10, "\U0001f469")]
    assert smoothed(source, "word", 1, 2) == [(0, "ab "), (12, "\U0001f468\u200d\U0001f469")]
    assert smoothed([(0, "e"), (10, "\u0301")], "word", 1, 2) == [(2, "e"), (12, "\u0301")]


def test_48_right_to_left_text_comes_as_it_is() -> None:
    hebrew = "שָׁלוֹם עוֹלָם!"
    got = smoothed([(0, one) for one in hebrew], "word", 1, 9, end=0)
    assert [piece for _, piece in got] == ["שָׁלוֹם ", "עוֹלָם!", "completed"]


@pytest.mark.slow
@pytest.mark.parametrize("sign", ["x", "漢", "é", "e\u0301"])
@pytest.mark.parametrize("chunking", ["word", "line", "char"])
def test_49_a_megabyte_without_a_space_arrives_whole_and_in_time(sign: str, chunking: Any) -> None:
    size = 1_000_000 // len(sign.encode())
    fragment = sign * 50
    scheduler = TestScheduler()
    got: list[tuple[float, str]] = []
    source = Subject[rd.Event]()
    source.pipe(rd.smooth(chunking, 100, 0.4)).subscribe(
        lambda event: got.append((scheduler.clock, _shown(event))), scheduler=scheduler
    )
    for _ in range(size // 50):
        source.on_next(text(fragment))
    scheduler.advance_to(0.4)
    assert "".join(piece for _, piece in got) == sign * (size // 50 * 50)
    assert len(got) <= 42


def test_a_turn_costs_the_same_however_much_there_is_and_however_long_the_lag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares: list[int] = []  # worked out, one for each deadline at each turn
    ceil = _smooth.ceil
    monkeypatch.setattr(_smooth, "ceil", lambda number: shares.append(ceil(number)) or shares[-1])
    turns = len(smoothed([(time, "two words ") for time in range(2000)], "word", 0.5, 5000, end=2000))
    assert len(shares) < 150 * turns


def test_50_a_catastrophic_pattern_does_not_hold_the_stream_up() -> None:
    got = smoothed([(0, "a" * 5000 + "!")], re.compile(r"(a+)+$"), 100, 3, end=0)
    assert "".join(piece for _, piece in got[:-1]) == "a" * 5000 + "!"
    assert got[-1][1] == "completed"
    assert got[-1][0] <= 3


def test_what_is_no_event_is_refused_after_what_was_pending() -> None:
    *events, (_, end) = smoothed([(1, "a b"), (1, {"n": 1})], "word", 1, 9)
    assert [piece for _, piece in events] == ["a ", "b"]
    assert type(end) is rd.InvalidValueError


@pytest.mark.parametrize(("answer", "error"), [("?", "InvalidValueError"), (BOOM, "ValueError")])
def test_what_a_function_does_wrong_ends_the_stream_after_what_was_pending(answer: Any, error: str) -> None:
    def chunking(so_far: str) -> str | None:
        if so_far == "a":
            return "a"
        if isinstance(answer, Exception):
            raise answer
        return str(answer)

    values = LETTERS | {"A": text("abc"), "B": text("bc")}
    marbles.check(
        "-[A!]-------d",
        rd.smooth(chunking, 1, 9),
        gives=f"-a[B!#{error}]",
        values=values,
        frame=1,
        reads=[(0, 2)],
    )


def test_an_observer_may_emit_and_end_inside_on_next() -> None:
    scheduler = TestScheduler()
    source = Subject[Any]()
    got: list[Any] = []

    def draw(event: Any) -> None:
        got.append((scheduler.clock, _shown(event)))
        if event == text("a "):
            source.on_next(text(" c d"))
            source.on_next(PING)
            source.on_completed()
            source.on_next(text("late"))
            assert len(got) == 1

    source.pipe(rd.smooth("word", 1, 99)).subscribe(
        draw, on_completed=lambda: got.append((scheduler.clock, "|")), scheduler=scheduler
    )
    source.on_next(text("a b"))
    scheduler.advance_to(100)
    assert got == [(0, "a "), (1, "b "), (2, "c "), (3, "d"), (3, PING), (3, "|")]


def test_no_timer_runs_in_silence() -> None:
    class Counting(TestScheduler):
        timers = 0

        def schedule_relative(self, duetime: Any, action: Any, state: Any = None) -> abc.DisposableBase:
            self.timers += 1
            return super().schedule_relative(duetime, action, state)

    scheduler = Counting()
    source = Subject[Any]()
    source.pipe(rd.smooth("line", 1, 9)).subscribe(lambda _: None, scheduler=scheduler)
    for _ in range(1000):
        source.on_next(text("x"))
    assert scheduler.timers == 1  # for the lag, and not moved with each delta
    scheduler.advance_to(1000)
    assert scheduler.timers <= 3


PIECES = st.lists(
    st.sampled_from([*"ab .\n漢", "\u0301", "👨", "\u200d", "🇩", "one two three "]), max_size=6
).map("".join)
CHUNKINGS: list[Any] = [
    "word",
    "line",
    "char",
    re.compile(r"[.]\s*"),
    lambda so_far: so_far[:4] if len(so_far) > 3 else None,
]


@given(
    stream=st.lists(st.tuples(st.integers(0, 9), st.one_of(PIECES, st.just(PING))), max_size=30),
    chunking=st.sampled_from(CHUNKINGS),
    rate=st.sampled_from([0.3, 0.5, 1, 4]),
    lag=st.integers(1, 30),
    error=st.booleans(),
    data=st.data(),
)
def test_everything_arrives_in_order_in_time_before_the_end_and_however_it_was_split(
    stream: list[tuple[int, Any]], chunking: Any, rate: float, lag: int, error: bool, data: st.DataObject
) -> None:
    times = [sum(gap for gap, _ in stream[: count + 1]) for count in range(len(stream))]
    end = (times[-1] if times else 0) + 1
    last: marbles.Record = (end, "error", BOOM) if error else (end, "completed", None)

    def records(split: Callable[[str], list[str]]) -> list[marbles.Record]:
        source: list[marbles.Record] = []
        for time, (_, event) in zip(times, stream):
            events = [PING] if event is PING else [text(part) for part in split(event)]
            source += [(time, "next", event) for event in events]
        return through([*source, last], rd.smooth(chunking, rate, lag))[0]

    whole = records(lambda piece: [piece])
    assert records(list) == whole
    at = data.draw(st.integers(0, 5))
    assert records(lambda piece: [piece[:at], piece[at:]]) == whole

    assert whole[-1][1:] == last[1:]
    came = [unit for time, (_, event) in zip(times, stream) for unit in _units(event, time)]
    left = [unit for time, _, event in whole[:-1] for unit in _units(_shown(event), time)]
    assert [unit for unit, _ in came] == [unit for unit, _ in left]
    assert whole[-1][0] <= end + lag
    for (unit, before), (_, after), (following, _) in zip(came, left, [*came[1:], (PING, 0.0)]):
        assert after >= before
        if unit not in (PING, "\u200d", "🇩") and following != "\u200d":  # these may wait for what they need
            assert after - before <= lag + 0.01 or _waits(came, left, before, lag)


def _waits(came: list[Any], left: list[Any], before: float, lag: int) -> bool:
    """Whether it stands behind something that makes no sense alone."""
    return any(unit in ("\u200d", "🇩") for unit, time in came if time <= before + lag)


def _units(event: Any, time: float) -> list[tuple[Any, float]]:
    return [(PING, time)] if event is PING else [(one, time) for one in event]
