"""`completed_tool_calls`: each once, as the fold has it. What holds for each projection: `test_projection`."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, settings, strategies as st
from reactivex import operators as ops
from support.cost import lines_run

import rxdelta as rd
from rxdelta import events as ev


def start(
    index: int | str = 0, call_id: str | None = "c1", name: str | None = "f", **more: Any
) -> ev.BlockStart:
    return ev.BlockStart(index, {"type": "tool_call_chunk", "id": call_id, "name": name, **more})


def args(text: str, index: int | str = 0) -> ev.ToolCallDelta:
    return ev.ToolCallDelta(index, text)


def content(index: int | str = 0, **fields: Any) -> ev.BlockFinish:
    return ev.BlockFinish(index, {"type": "tool_call", **fields})


FINISH, END = ev.BlockFinish(0), ev.MessageFinish("tool_use")
SERVER = ev.BlockStart(0, {"type": "server_tool_call_chunk", "id": "s", "name": "search", "args": "{}"})
TEXT = ev.BlockStart(0, {"type": "text"})


def completed(*events: Any, **options: Any) -> list[Any]:
    got: list[Any] = rx.from_iterable(events).pipe(rd.completed_tool_calls(**options), ops.to_list()).run()
    return got


def short(call: rd.ToolCall) -> Any:
    """A complete call's arguments, an invalid one's raw text and error."""
    if call.type == "tool_call":
        assert (call.status, call.open, call.error) == ("complete", False, None)
        return call.arguments
    assert (call.type, call.status, call.open) == ("invalid_tool_call", "incomplete", False)
    return call.arguments, call.error


CUT = "the message was cut short by the token limit while the call was open"
INTERRUPTED = "the message was interrupted while the call was open"


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        pytest.param([start(), args('{"a"'), args(": 1}"), FINISH], [{"a": 1}], id="complete"),
        pytest.param([start(), FINISH], [{}], id="22: no arguments"),
        pytest.param([start(args={"a": 1}), FINISH], [{"a": 1}], id="22: a whole object"),
        pytest.param([start(args={"a": 1}), args("x"), FINISH], [{"a": 1}], id="which takes no more text"),
        pytest.param([start(args={}), args('{"a": 1}'), FINISH], [{"a": 1}], id="an empty one does"),
        pytest.param([start(), args('{"a": 1}'), FINISH, FINISH, END], [{"a": 1}], id="10: a second finish"),
        pytest.param([start(), FINISH, content(args={"b": 2})], [{}], id="10: a second finish with content"),
        pytest.param([start(), args('{"a": 1}'), END], [{"a": 1}], id="at the message's finish"),
        pytest.param([start(), args('{"a": 1}'), FINISH, END], [{"a": 1}], id="and not again"),
        pytest.param([start(), args('{"a": 1}')], [], id="33: never, where the stream was cut"),
        pytest.param([start(), args('{"a"'), content(args={"b": 2})], [{"b": 2}], id="a finish overrules"),
        pytest.param([start(), content(args='{"b": 2}')], [{"b": 2}], id="by text too"),
        pytest.param([content(id="c", name="f", args={})], [{}], id="a finish without a start"),
        pytest.param([content(id="c", name="f"), content(id="c", name="f")], [{}], id="and a second one"),
        pytest.param([FINISH, END], [], id="a finish of nothing"),
        pytest.param(
            [TEXT, content(id="c", name="f", args={})], [{}], id="a text that turns out to be a call"
        ),
        pytest.param(
            [start(), ev.BlockFinish(0, {"type": "text"})], [], id="a call that turns out to be text"
        ),
        pytest.param([args("[]"), start(), args("{}"), FINISH], [{}], id="7: a delta before the start"),
        pytest.param([start(), FINISH, args("x"), END], [{}], id="8: a delta after the finish"),
        pytest.param([start(), ev.TextDelta(0, "x"), FINISH], [{}], id="a delta of another kind"),
        pytest.param(
            [start(), ev.BlockDelta(0, {"args": '{"a": 1}'}), FINISH], [{"a": 1}], id="the text so far"
        ),
        pytest.param([start(), args("x"), ev.BlockDelta(0, {"args": "{}"}), FINISH], [{}], id="replaced"),
        pytest.param([start(), args("x"), start(), args("{}"), FINISH], [{}], id="9: a second start"),
        pytest.param([start(), FINISH, start(), args("x"), FINISH], [{}], id="the same call begun again"),
        pytest.param([start(), FINISH, start(0, "c2"), args("x"), FINISH], [{}, ...], id="16: another call"),
        pytest.param([start(), FINISH, TEXT, start(), FINISH], [{}], id="a block in between"),
        pytest.param(
            [start(), FINISH, TEXT, content(id="c1", name="f", args={"a": 1})],
            [{}],
            id="a block in between, no start",
        ),
        pytest.param(
            [start(), FINISH, start(call_id="c2"), FINISH, start(), FINISH],
            [{}, {}],
            id="another call in between",
        ),
        pytest.param([start(), TEXT, args("{}"), FINISH, END], [], id="begun again as text"),
        pytest.param([SERVER, FINISH, END], [], id="a call that the provider runs"),
        pytest.param([SERVER, END], [], id="also at the message's finish"),
        pytest.param([SERVER, ev.BlockFinish(0, {"type": "server_tool_call"})], [], id="also with content"),
        pytest.param([start(), ev.BlockFinish(0, {"type": "server_tool_call"})], [], id="also if late"),
        pytest.param([ev.BlockFinish(0, {"type": "server_tool_call"})], [], id="also without a start"),
        pytest.param([SERVER, content(name="f")], [{}], id="a provider's call that turns out to be ours"),
        pytest.param([SERVER, FINISH, content(id="c", name="f")], [], id="but not after its end"),
        pytest.param(
            [start(0, "c"), start(1, "c"), FINISH, ev.BlockFinish(1)], [{}, {}], id="17: one id, two calls"
        ),
    ],
)
def test_the_calls_of(events: list[Any], expected: list[Any]) -> None:
    got = [short(call) for call in completed(*events)]
    assert len(got) == len(expected)
    assert [one for one, wanted in zip(got, expected) if wanted is not ...] == [
        wanted for wanted in expected if wanted is not ...
    ]


@pytest.mark.parametrize(
    ("events", "text", "error"),
    [
        pytest.param([start(), args("{"), FINISH], "{", "not valid JSON", id="text that is cut"),
        pytest.param([start(), args("{}}"), FINISH], "{}}", "not valid JSON", id="21: text behind it"),
        pytest.param([start(), args("[1]"), FINISH], "[1]", "not a JSON object but a list", id="no object"),
        pytest.param([start(), args("{"), END], "{", "not valid JSON", id="at the message's finish"),
        pytest.param([start(), args("{}"), ev.MessageFinish("length")], "{}", CUT, id="cut by the limit"),
        pytest.param([start(), args("{}"), ev.MessageInterrupted()], "{}", INTERRUPTED, id="interrupted"),
        pytest.param([start(name=None), FINISH], None, "the call has no name", id="no name"),
        pytest.param([start(call_id=None), FINISH], None, "the call has no id", id="no id"),
        pytest.param(
            [ev.BlockFinish(0, {"type": "invalid_tool_call", "args": "{", "error": "bad"})],
            "{",
            "bad",
            id="told so",
        ),
        pytest.param([start(), content(args="oops")], "oops", "not valid JSON", id="by the finish"),
    ],
)
def test_an_invalid_call_is_a_value_that_says_why(events: list[Any], text: Any, error: str) -> None:
    ((raw, why),) = [short(call) for call in completed(*events)]
    assert raw == text
    assert why.startswith(error)


def test_what_the_message_closes_comes_in_the_order_of_its_blocks() -> None:
    events = [start(key, f"c{key}") for key in (7, "b", 2, "a", 10)]
    assert [call.key for call in completed(*events, END)] == [2, 7, 10, "b", "a"]


def test_a_delta_costs_the_same_however_many_calls_are_open() -> None:
    def cost(count: int) -> int:
        events: list[Any] = [start(index, f"c{index}") for index in range(count)]
        events += [args(text, index) for text in ("{", '"a"', ":", "1", "}") for index in range(count)]
        events += [ev.BlockFinish(index) for index in range(count)]
        got: list[Any] = []

        def read() -> None:
            got.extend(completed(*events))

        lines = lines_run(read)
        assert [call.call_id for call in got] == [f"c{index}" for index in range(count)]
        assert all(call.arguments == {"a": 1} for call in got)
        return lines

    assert cost(200) < 2.1 * cost(100)


places = st.integers(0, 2)
texts = st.sampled_from(["", "{", "}", "{}", '{"a": ', "1", "1}", "x"])
contents = st.sampled_from(
    [
        {"type": "tool_call", "id": "c", "name": "f", "args": {"x": 1}},
        {"type": "tool_call_chunk", "id": "c", "name": "f"},
        {"type": "tool_call_chunk", "name": "f", "args": "{"},
        {"type": "tool_call", "args": '{"y": 2}'},
        {"type": "server_tool_call_chunk", "id": "s", "args": "{}"},
        {"type": "invalid_tool_call", "args": "{"},
        {"type": "text", "text": "hi"},
    ]
)
events = st.lists(
    st.builds(ev.BlockStart, places, contents)
    | st.builds(ev.ToolCallDelta, places, texts)
    | st.builds(ev.BlockDelta, places, st.fixed_dictionaries({"args": texts}))
    | st.builds(ev.BlockFinish, places, st.none() | contents)
    | st.builds(ev.ToolUpdate, st.just("c"), st.sampled_from(["executing", "failed"])),
    max_size=16,
)


@settings(deadline=None)
@given(events=events, end=st.sampled_from(["stop", "length", None]))
def test_each_is_what_the_fold_gives_at_that_moment(events: list[Any], end: str | None) -> None:
    last: list[Any] = [] if end is None else [ev.MessageFinish(end)]
    source = rx.subject.Subject[Any]()
    got: list[Any] = []
    source.pipe(rd.completed_tool_calls()).subscribe(got.append)
    fold = rd.Fold()
    ended: set[Any] = set()
    for event in events + last:
        before = {block.key: block for block in fold.snapshot.blocks}
        snapshot = fold.step(event)
        source.on_next(event)
        for call in got:
            (block,) = [block for block in snapshot.blocks if block.key == call.key]
            assert call == block
        if isinstance(event, ev.BlockStart):
            ended.discard(event.index)
        newly = [
            block.key
            for block in snapshot.blocks
            if isinstance(block, rd.ToolCall)
            and block.type != "server_tool_call"
            and not block.open
            and block.key not in ended
            and (before.get(block.key) is None or before[block.key].open or before[block.key].type == "text")
        ]
        told = [call.key for call in got]
        assert set(told) <= set(newly)  # the same call begun again isn't told again
        assert len(told) == len(set(told))
        ended |= set(newly)
        got.clear()


def test_the_news_of_an_open_call_cost_the_same_however_many_are_open() -> None:
    def cost(count: int) -> int:
        chunk = {"type": "tool_call_chunk", "name": "f"}
        events: list[rd.Event] = [ev.BlockStart(n, {**chunk, "id": f"c{n}"}) for n in range(count)]
        events += [ev.ToolUpdate(f"c{n}", "executing") for n in range(count)]
        return lines_run(
            lambda: rx.from_iterable(events).pipe(rd.completed_tool_calls()).subscribe().dispose()
        )

    assert cost(200) < 2.1 * cost(100)
