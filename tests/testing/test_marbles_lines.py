"""The notation of marble lines: what each sign says, and what a line that can't be read is told."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.testing import marbles

ev = rd.events
START, FINISH = ev.MessageStart(), ev.MessageFinish("stop")
TEXT, THINK = {"type": "text", "text": ""}, {"type": "reasoning", "reasoning": ""}


def call(name: str, call_id: str) -> dict[str, Any]:
    return {"type": "tool_call_chunk", "id": call_id, "name": name, "args": ""}


def events(line: str) -> list[Any]:
    """The events of a line in the order in which they come."""
    return [value for _, kind, value in marbles.parse(line) if kind == "next"]


def times(line: str, **options: Any) -> list[tuple[float, Any]]:
    return [(time, value if kind == "next" else kind) for time, kind, value in marbles.parse(line, **options)]


# Time.


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("ab|", [(0, "a"), (0.1, "b"), (0.2, "completed")], id="a mark takes a frame"),
        pytest.param("-a--b", [(0.1, "a"), (0.4, "b")], id="so does a dash"),
        pytest.param(" a  b ", [(0, "a"), (0.1, "b")], id="a blank takes none"),
        pytest.param("[ab]c", [(0, "a"), (0, "b"), (0.1, "c")], id="brackets take one together"),
        pytest.param("[a|]", [(0, "a"), (0, "completed")], id="also with the end"),
        pytest.param("a[b#]", [(0, "a"), (0.1, "b"), (0.1, "error")], id="whatever the end is"),
        pytest.param("a(2s)b", [(0, "a"), (2.1, "b")], id="a wait comes on top of the frame"),
        pytest.param(
            "(300ms)a(0.5s)b", [(0.3, "a"), (0.9, "b")], id="of milliseconds, or a part of a second"
        ),
        pytest.param("[a(40ms)b]c", [(0, "a"), (0.04, "b"), (0.14, "c")], id="a wait in brackets"),
        pytest.param("[]a", [(0.1, "a")], id="empty brackets"),
        pytest.param("----", [], id="never"),
        pytest.param("", [], id="an empty line"),
        pytest.param("|", [(0, "completed")], id="empty"),
    ],
)
def test_time(line: str, expected: list[tuple[float, Any]]) -> None:
    assert times(line, values=str) == expected


def test_a_frame_may_have_another_length() -> None:
    assert times("a-b|", values=str, frame=1) == [(0, "a"), (2, "b"), (3, "completed")]
    assert times("[a (1.5s) b]", values=str, frame=1) == [(0, "a"), (1.5, "b")]


@pytest.mark.parametrize(
    ("records", "line"),
    [
        ([(0.0, "a"), (0.1, "b")], "ab"),
        ([(0.0, "a"), (0.0, "b")], "[ab]"),
        ([(0.05, "a"), (0.1, "b")], "(50ms)[a(50ms)b]"),
        ([(0.0, "a"), (0.09, "b"), (0.18, "c"), (0.28, "d")], "[a(90ms)b(90ms)c]d"),
        ([(0.0, "a"), (2.1, "b")], "a" + "-" * 20 + "b"),
        ([(0.0, "a"), (2.2, "b")], "a(2.1s)b"),
        ([(0.0, "a"), (0.1000004, "b")], "ab"),
        ([(0.0, "a"), (0.100002, "b")], "a(0.002ms)b"),
        ([(7200.000001, "a")], "(7200.000001s)a"),
    ],
)
def test_times_are_drawn_to_the_microsecond(records: list[tuple[float, Any]], line: str) -> None:
    assert marbles.draw([(time, "next", value) for time, value in records], values=str) == line


# Events.


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            "Hel lo|",
            [START, ev.BlockStart(0, TEXT), ev.TextDelta(0, "Hel"), ev.TextDelta(0, "lo"), ev.BlockFinish(0), FINISH],
            id="a text",
        ),
        pytest.param("Hel/", [START, ev.BlockStart(0, TEXT), ev.TextDelta(0, "Hel")], id="cut off"),
        pytest.param("Hel#", [START, ev.BlockStart(0, TEXT), ev.TextDelta(0, "Hel")], id="broken"),
        pytest.param("--|", [], id="nothing"),
        pytest.param("(start)|", [START, FINISH], id="a message of nothing"),
        pytest.param("(start:m1,small)/", [ev.MessageStart("m1", "small")], id="a start that says more"),
        pytest.param(
            '(think:Hm, well)a"b c"|',
            [
                START,
                ev.BlockStart(0, THINK),
                ev.ReasoningDelta(0, "Hm, well"),
                ev.BlockFinish(0),
                ev.BlockStart(1, TEXT),
                ev.TextDelta(1, "a"),
                ev.TextDelta(1, "b c"),
                ev.BlockFinish(1),
                FINISH,
            ],
            id="a reasoning and a text",
        ),
        pytest.param(
            '(call:look{"at": ")"})(call:find#c2)|',
            [
                START,
                ev.BlockStart(0, call("look", "call_0")),
                ev.ToolCallDelta(0, '{"at": ")"}'),
                ev.BlockFinish(0),
                ev.BlockStart(1, call("find", "c2")),
                ev.BlockFinish(1),
                ev.MessageFinish("tool_use"),
            ],
            id="calls, for which a message finishes",
        ),
        pytest.param(
            "(call:add)(+call:find)(args@0:{)(args@1:{)(args:})(end)(args@0:})/",
            [
                START,
                ev.BlockStart(0, call("add", "call_0")),
                ev.BlockStart(1, call("find", "call_1")),
                ev.ToolCallDelta(0, "{"),
                ev.ToolCallDelta(1, "{"),
                ev.ToolCallDelta(1, "}"),
                ev.BlockFinish(1),
                ev.ToolCallDelta(0, "}"),
            ],
            id="calls whose pieces interleave",
        ),
        pytest.param(
            "a(choice:1)b(run:x)c(run)d|",
            [
                START,
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, "a"),
                ev.MessageStart(choice=1),
                ev.BlockStart(0, TEXT, choice=1),
                ev.TextDelta(0, "b", choice=1),
                ev.MessageStart(run_id="x"),
                ev.BlockStart(0, TEXT, run_id="x"),
                ev.TextDelta(0, "c", run_id="x"),
                ev.TextDelta(0, "d"),
                ev.BlockFinish(0),
                FINISH,
                ev.BlockFinish(0, choice=1),
                ev.MessageFinish("stop", choice=1),
                ev.BlockFinish(0, run_id="x"),
                ev.MessageFinish("stop", run_id="x"),
            ],
            id="choices and runs",
        ),
        pytest.param(
            "a(finish:length,max)b/",
            [
                START,
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, "a"),
                ev.BlockFinish(0),
                ev.MessageFinish("length", "max"),
                START,
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, "b"),
            ],
            id="a second message",
        ),
        pytest.param(
            "a(reset:1,Overloaded)b(stop:enough)|",
            [
                START,
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, "a"),
                ev.AttemptReset(1, "Overloaded"),
                START,
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, "b"),
                ev.MessageInterrupted("enough"),
            ],
            id="another attempt, and a stop",
        ),
        pytest.param(
            "a(stop)b/",
            [
                *[START, ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.MessageInterrupted()],
                *[START, ev.BlockStart(0, TEXT), ev.TextDelta(0, "b")],
            ],
            id="a message behind one that was stopped",
        ),
        pytest.param(
            '(block@2:{"n": 2})(+block@1:{"n": 1})|',
            [
                START,
                *[ev.BlockStart(2, {"n": 2}), ev.BlockStart(1, {"n": 1})],
                *[ev.BlockFinish(1), ev.BlockFinish(2)],
                FINISH,
            ],
            id="blocks end in the order of their indexes",
        ),
        pytest.param(
            "(error:Overloaded,overloaded_error,529)|",
            [ev.StreamError("Overloaded", "overloaded_error", "529")],
            id="an error event begins no message and is its end",
        ),
        pytest.param(
            '(tool:c1,executing)(tool:c1,completed,{"n": 1})(custom:note,[1])(custom:title,Tides)(provider:house,ping)',
            [
                ev.ToolUpdate("c1", "executing"),
                ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", {"n": 1})),
                ev.Custom("note", [1]),
                ev.Custom("title", "Tides"),
                ev.ProviderEvent("house", "ping"),
            ],
            id="events that change no block",
        ),
        pytest.param(
            '(usage:3,5)(text)(text:)(fields:{"id": "b"})(end:{"type": "text", "text": "a"})(finish)',
            [
                START,
                ev.UsageUpdate(rd.TokenUsage(3, 5)),
                ev.BlockStart(0, TEXT),
                ev.TextDelta(0, ""),
                ev.BlockDelta(0, {"id": "b"}),
                ev.BlockFinish(0, {"type": "text", "text": "a"}),
                ev.MessageFinish(),
            ],
            id="each event by itself",
        ),
        pytest.param(
            '(image:aGk=)(block:{"type": "audio"})(data:aGk=)/',
            [
                START,
                ev.BlockStart(0, {"type": "image", "mime_type": "image/png"}),
                ev.DataDelta(0, "aGk="),
                ev.BlockFinish(0),
                ev.BlockStart(1, {"type": "audio"}),
                ev.DataDelta(1, "aGk="),
            ],
            id="data",
        ),
        pytest.param('({"event": "message-interrupted", "choice": 1})', [ev.MessageInterrupted(choice=1)], id="any event"),
        pytest.param("<3><'a>b'>", [3, "a>b"], id="what is no event"),
    ],
)  # fmt: skip
def test_the_events_of(line: str, expected: list[Any]) -> None:
    assert events(line) == expected


@pytest.mark.parametrize(
    ("text", "drawn"),
    [
        ("Hello", "Hello"),
        (" world", "_world"),
        ("a_b", '"a_b"'),
        ("a-b", '"a-b"'),
        ("<b>", '"<b>"'),
        ("", '""'),
        ('say "hi"\n', r'"say \"hi\"\n"'),
        ("é😀", "é😀"),
        ("\u200d\u202e", r'"\u200d\u202e"'),
        ("\ud83d", r'"\ud83d"'),
        ("\ude00", r'"\ude00"'),
        ("\ud83d" + "\ude00", '"\\ud83d\ude00"'),
    ],
)
def test_a_text_is_drawn_as_short_as_it_can_be_and_nothing_in_it_is_invisible(text: str, drawn: str) -> None:
    records: list[Any] = [
        (0.0, "next", event) for event in [START, ev.BlockStart(0, TEXT), ev.TextDelta(0, text)]
    ]
    assert marbles.draw(records) == drawn
    assert marbles.parse(drawn) == records


def test_what_a_later_version_has_written_into_an_event_is_kept() -> None:
    wire = {"event": "message-interrupted", "reason": "x", "later": [1]}
    line = marbles.draw([(0.0, "next", ev.from_dict(wire))])
    assert [event.to_dict() for event in events(line)] == [wire]


@pytest.mark.parametrize(
    "line",
    [
        "Hel _lo,_you.--[(think:Hm)(call:look#c1{})]|",
        "(start:m1,small)(text)Hel lo(end)(usage:3,5)(finish:stop,end_turn)|",
        "(call:add)(+call:find)(args@0:{)(args@1:{)(args@0:})(args@1:})|",
        "a(choice:1)b(choice:0)c(2.5s)/",
        'a#ProviderError("Overloaded")',
        "a[b(50ms)#]",
    ],
)
def test_a_line_in_its_one_form_is_drawn_as_it_is(line: str) -> None:
    assert marbles.draw(marbles.parse(line)) == line


@pytest.mark.parametrize(
    ("line", "drawn"),
    [
        ("  a -- b |", "a--b|"),
        ('"a" "b"|', "a b|"),
        ("[a]b", "a b"),
        ("a(200ms)b---", "a--b"),
        ('a(end)(finish:stop)/', "a(end)(finish:stop)|"),
        ("[a(end)(finish:stop)|]", "[a|]"),
        ('({"event": "message-start"})a/', "(start)a/"),
    ],
)  # fmt: skip
def test_other_forms_are_drawn_in_the_one(line: str, drawn: str) -> None:
    assert marbles.draw(marbles.parse(line)) == drawn


# Errors.


@pytest.mark.parametrize(
    ("line", "kind", "text"),
    [
        ("#", ConnectionError, "the connection broke"),
        ("#ConnectionResetError", ConnectionResetError, ""),
        ('#ValueError("no (x)")', ValueError, "no (x)"),
        ('#KeyError("x")', KeyError, "'x'"),
        ("#StallTimeoutError", rd.errors.StallTimeoutError, ""),
        ('#RecordedError("slow down")', rd.RecordedError, "slow down"),
        (
            '#ProviderError("Overloaded")',
            rd.ProviderError,
            "the provider ended the stream with an error: Overloaded",
        ),
    ],
)
def test_the_error_of(line: str, kind: type, text: str) -> None:
    ((_, _, error),) = marbles.parse(line)
    assert (type(error), str(error)) == (kind, text)
    assert marbles.draw(marbles.parse(line)) == line


def test_an_error_of_an_unknown_name_is_a_runtime_error_of_that_name() -> None:
    (_, _, error), (_, _, again) = (
        *marbles.parse('#RateLimitError("slow")'),
        *marbles.parse("#RateLimitError"),
    )
    assert (type(error).__name__, str(error)) == ("RateLimitError", "slow")
    assert isinstance(error, RuntimeError)
    assert type(again) is type(error)


@pytest.mark.parametrize("module", [builtins, rd.errors])
@pytest.mark.parametrize("text", ["", '("x")'])
def test_every_error_is_read_back(module: Any, text: str) -> None:
    for name, kind in vars(module).items():
        if (
            isinstance(kind, type)
            and issubclass(kind, Exception)
            and name not in ("EnvironmentError", "IOError")
        ):
            ((_, _, error),) = marbles.parse(f"#{name}{text}")
            assert marbles.draw([(0.0, "error", error)]) == f"#{name}{text}"
            odd = name.startswith("Unicode") or name == "ExceptionGroup"
            assert isinstance(error, kind) or odd, name


@pytest.mark.parametrize(
    "name", ["KeyboardInterrupt", "SystemExit", "print", "UnicodeDecodeError", "ExceptionGroup"]
)
def test_a_name_that_makes_no_error_is_a_runtime_error_too(name: str) -> None:
    ((_, kind, error),) = marbles.parse(f'#{name}("x")')
    assert kind == "error"
    assert isinstance(error, RuntimeError)
    assert (type(error).__name__, str(error)) == (name, "x")


def test_the_error_of_a_line_may_be_given() -> None:
    error = ValueError("boom")
    assert marbles.parse("a#", values=str, error=error)[-1] == (0.1, "error", error)
    assert marbles.draw([(0.0, "error", error)], error=error) == "#"
    assert marbles.draw([(0.0, "error", ConnectionError("no"))], error=error) == '#ConnectionError("no")'


# Values.


def test_values_have_marks() -> None:
    values = {"a": {"n": 1}, "b": None, "/": 3}
    records: list[Any] = [
        (0.0, "next", {"n": 1}),
        (0.1, "next", None),
        (0.2, "next", 3),
        (0.3, "completed", None),
    ]
    assert marbles.parse("ab/|", values=values) == records
    assert marbles.draw(records, values=values) == "ab/|"


def test_a_function_makes_the_value_of_a_mark() -> None:
    assert times("a1", values=ord) == [(0, 97), (0.1, 49)]
    assert marbles.draw(marbles.parse("a1", values=ord), values=ord) == "a1"
    assert marbles.draw(marbles.parse("1é", values=str), values=str) == "1é"


def test_a_value_without_a_mark_is_drawn_as_it_shows_itself() -> None:
    records: list[Any] = [(0.0, "next", 1), (0.1, "next", True), (0.2, "next", "a\n>"), (0.3, "next", 1.0)]
    assert marbles.draw(records, values={"a": 1}) == r"a<True><'a\\n>'><1.0>".replace(r"\\n", r"\n")
    assert marbles.parse(marbles.draw(records, values={"a": 1}), values={"a": 1}) == records
    assert marbles.draw([(0.0, "next", rd.ContentPart("text", "a"))]).startswith("<ContentPart(")


# What can't be read.


@pytest.mark.parametrize(
    ("line", "at", "said"),
    [
        ("a-(call:look", 8, "a call is"),
        ("a(think:x", 8, "no ) at its end"),
        ("a(tihnk:x)", 1, "did you mean 'think'?"),
        ("a(x)", 1, "there are text, think, call"),
        ("a(3)", 2, "the name of an item"),
        ("(call:look{1})", 11, "JSON"),
        ('"abc', 0, "JSON"),
        ("[a", 0, "no ] is behind it"),
        ("a]", 1, "no ["),
        ("[a[b]]", 2, "no brackets in brackets"),
        ("[a-b]", 2, "waits"),
        ("a|b", 2, "behind the end"),
        ("[a|b]", 3, "behind the end"),
        ("a#-", 2, "behind the end"),
        ("a)", 1, "begins no item"),
        ("(args:x)", 0, "no block is open"),
        ("a(end)(end)", 6, "no block is open"),
        ("(0.0000001s)", 0, "whole microseconds"),
        ("a(999999999.9s)b", 15, "later than 1e9"),
        ("(9999999999999s)", 1, "the name of an item"),
        ("<Snapshot()>", 0, "literal of Python"),
        ('({"event": "content-block-finish"})', 0, "index"),
        ("(usage:a,b)", 0, "number"),
        ("(choice:x)", 0, "number"),
        ("(+end)", 0, "takes no +"),
        ("(call@1:x)", 0, "takes no @"),
        ("(+text@1:x)", 0, "has begun"),
        ('(think:"a"b)', 10, "end with )"),
        ("#ValueError(3)", 12, "#Name"),
    ],
)
def test_a_line_that_cant_be_read_shows_the_place(line: str, at: int, said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        marbles.parse(line)
    first, shown, caret = str(caught.value).split("\n")
    assert (shown, caret) == (f"  {line}", f"  {' ' * at}^")
    assert f"can't be read at {at}: " in first
    assert said in first
    assert (caught.value.field, caught.value.value) == ("line", line)


def test_of_a_long_line_the_part_round_the_place_is_shown() -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        marbles.parse("ab " * 1000 + ")" + " cd" * 1000)
    _, shown, caret = str(caught.value).split("\n")
    assert len(shown) < 150
    assert shown[caret.index("^")] == ")"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"ab": 1}, "one character"),
        ({"-": 1}, "one character"),
        ({" ": 1}, "one character"),
        (3, "a mapping"),
    ],
)
def test_marks_are_characters_that_are_no_notation(values: Any, said: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=said):
        marbles.parse("", values=values)


@pytest.mark.parametrize(("line", "values"), [("ab", {"a": 1}), ("1b", int)])
def test_a_mark_without_a_value_is_refused(line: str, values: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"can't be read at 1.*mark 'b'"):
        marbles.parse(line, values=values)


@pytest.mark.parametrize(
    ("records", "said"),
    [
        ([(0.1, "next", 1), (0.0, "next", 2)], "earlier"),
        ([(-1, "next", 1)], "earlier"),
        ([(0, "completed", None), (1, "next", 2)], "behind the end"),
        ([(1e10, "next", 1)], "later than 1e9"),
        ([(0, "next")], "seconds, kind, value"),
        ([3], "seconds, kind, value"),
        ([(float("inf"), "next", 2)], "seconds, kind, value"),
        ([(0, "nxt", 2)], "of the kind"),
        ([(0, "error", "no")], "exception"),
    ],
)
def test_records_are_checked(records: Any, said: str) -> None:
    with pytest.raises(rd.InvalidValueError, match=said):
        marbles.draw(records)


@pytest.mark.parametrize("frame", [0, -1, 1e-7, "1s"])
def test_a_frame_is_a_length_of_time(frame: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="frame"):
        marbles.parse("a", frame=frame)
