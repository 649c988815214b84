"""Tools that are agents themselves: the model gets the text, the result's metadata show the messages as they grow."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import attrs
import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.testing import ReactiveTest, TestScheduler
from support.bounded import bounded
from support.cost import lines_run
from support.loops import run as loops_run, turns

import rxdelta as rd
from rxdelta.requests import REQUEST_FORMATS

ev = rd.events
on_next, on_completed = ReactiveTest.on_next, ReactiveTest.on_completed

ASKED: list[rd.Event] = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "tool_call", "id": "c1", "name": "ask", "args": {}}),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def says(*pieces: str, id: str = "s", end: rd.Event | None = None) -> list[rd.Event]:
    end = ev.MessageFinish("stop") if end is None else end
    deltas = [ev.TextDelta(0, piece) for piece in pieces]
    return [ev.MessageStart(id), ev.BlockStart(0, {"type": "text"}), *deltas, ev.BlockFinish(0), end]


def snapshots(events: Iterable[rd.Event]) -> list[rd.Snapshot]:
    fold = rd.Fold()
    return [fold.step(event) for event in events]


ANSWER = says("The tide ", "is high.")
SNAPSHOTS = snapshots(ANSWER)
LAST = SNAPSHOTS[-1]


def run(tool: Callable[[], Any], events: list[rd.Event] = ASKED, **options: Any) -> list[ev.ToolUpdate]:
    """The news of the calls, from a tool that answers where it is called."""
    out: list[rd.Event] = []
    options.setdefault("scheduler", TestScheduler())  # whose timers never fire
    tools = bounded(rd.run_tools, {"ask": tool, "look": lambda: "seen"}, **options)
    rx.from_iterable(events).pipe(tools).subscribe(out.append)
    return [event for event in out if isinstance(event, ev.ToolUpdate)]


def emits(*values: Any) -> Callable[[], Any]:
    return lambda: rx.from_iterable(values)


def messages_of(update: ev.ToolUpdate) -> list[rd.Snapshot]:
    assert update.result is not None
    return [rd.Snapshot.from_dict(message) for message in update.result.metadata.get("messages", ())]


async def in_turns(values: Iterable[Any]) -> AsyncIterator[Any]:
    for value in values:
        await asyncio.sleep(0)
        yield value


async def later(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


@pytest.mark.parametrize(
    "tool",
    [
        pytest.param(lambda: LAST.to_message(), id="a function, a message"),
        pytest.param(lambda: LAST, id="a function, a snapshot"),
        pytest.param(lambda: later(LAST.to_message()), id="a coroutine, a message"),
        pytest.param(lambda: in_turns(ANSWER), id="an async iterator of events"),
        pytest.param(lambda: in_turns(SNAPSHOTS), id="an async iterator of snapshots"),
        pytest.param(lambda: later(in_turns(ANSWER)), id="a coroutine, an async iterator"),
        pytest.param(lambda: rx.from_iterable(ANSWER), id="an Observable of events"),
        pytest.param(lambda: rx.from_iterable(SNAPSHOTS), id="an Observable of snapshots"),
        pytest.param(lambda: later(rx.from_iterable(ANSWER)), id="a coroutine, an Observable"),
        pytest.param(lambda: in_turns([*SNAPSHOTS, LAST.to_message()]), id="snapshots, then the message"),
        pytest.param(lambda: in_turns([*ANSWER, LAST.to_message()]), id="events, then the message"),
        pytest.param(lambda: in_turns(rd.ToolProgress(result=value) for value in ANSWER), id="as progress"),
    ],
)
def test_the_result_is_the_text_and_the_message_is_in_the_metadata(tool: Callable[[], Any]) -> None:
    async def main() -> rd.Snapshot:
        pipeline = rx.from_iterable(ASKED).pipe(rd.run_tools({"ask": tool}), rd.scan_deltas())
        return await rd.last_value(pipeline)

    (call,) = loops_run(main).tool_calls
    assert call.execution_status() == "completed"
    assert call.result is not None
    assert call.result.content == "The tide is high."
    (message,) = call.result.metadata["messages"]
    assert rd.Message.from_dict(message) == LAST.to_message()


@pytest.mark.parametrize("format", REQUEST_FORMATS)
def test_no_request_has_more_of_it_than_the_text(format: str) -> None:
    thought = [
        ev.MessageStart("s"),
        ev.BlockStart(0, {"type": "reasoning"}),
        ev.ReasoningDelta(0, "PRIVATE"),
        ev.BlockFinish(0),
        *(attrs.evolve(event, index=1) for event in says("high")[1:-1]),
        ev.MessageFinish("stop"),
    ]
    events = rx.from_iterable(ASKED).pipe(rd.run_tools({"ask": emits(*thought)}), rd.scan_deltas())
    message = events.pipe(ops.last()).run().to_message()
    assert "PRIVATE" in json.dumps(message.to_dict())
    request = json.dumps(rd.to_request(["Is it high?", message], format))
    assert "high" in request
    assert "PRIVATE" not in request


def test_the_messages_grow_inside_the_call_and_read_back() -> None:
    out = snapshots([*ASKED, *run(emits(*ANSWER))])
    results = [snapshot.tool_calls[0].result for snapshot in out if snapshot.tool_calls]
    shown = [result.metadata["messages"] for result in results if result is not None]
    assert [message["status"] for (message,) in shown] == ["incomplete", "complete"]
    assert rd.Snapshot.from_dict(json.loads(json.dumps(out[-1].to_dict()))) == out[-1]


# Time.


def virtual(tool: Callable[[TestScheduler], Any], disposed: float = 100, **options: Any) -> list[Any]:
    """(time, status, text so far) of each update. The call is complete at 10."""
    scheduler = TestScheduler()
    source = scheduler.create_hot_observable([*(on_next(10, event) for event in ASKED), on_completed(11)])
    tools = rd.run_tools({"ask": lambda: tool(scheduler)}, **options)
    seen = scheduler.start(lambda: source.pipe(tools), created=1, subscribed=2, disposed=disposed)
    values = [(round(one.time, 3), one.value.value) for one in seen.messages if one.value.kind == "N"]
    return [
        (time, update.execution_status, update.result.content)
        for time, update in values
        if isinstance(update, ev.ToolUpdate) and update.result is not None
    ]


def timed(events: Iterable[rd.Event], step: float, end: float) -> Callable[[TestScheduler], Any]:
    marks = [on_next(round(step * (place + 1), 3), event) for place, event in enumerate(events)]
    return lambda scheduler: scheduler.create_cold_observable([*marks, on_completed(end)])


def test_an_agent_is_shown_at_once_then_ten_times_a_second_and_at_its_end() -> None:
    assert virtual(timed(says(*"abcdefghij"), step=0.031, end=0.44)) == [
        (10.031, None, ""),
        (10.131, None, "ab"),
        (10.231, None, "abcde"),
        (10.331, None, "abcdefgh"),
        (10.431, None, "abcdefghij"),
        (10.44, "completed", "abcdefghij"),
    ]


def test_an_agent_that_stalls_is_shown_up_to_its_last_word() -> None:
    events = [*says("a", "b", "c")[:-2], ev.ProviderEvent("test", "ping")]
    assert virtual(timed(events, step=0.03, end=30))[:-1] == [
        (10.03, None, ""),
        (10.13, None, "ab"),
        (10.23, None, "abc"),
    ]


def test_an_agent_that_pauses_for_long_is_shown_at_once_when_it_goes_on() -> None:
    assert virtual(timed(ANSWER[:3], step=1, end=4))[:-1] == [
        (11, None, ""),
        (12, None, ""),
        (13, None, "The tide "),
    ]


def test_long_messages_are_shown_more_rarely() -> None:
    shown = virtual(timed(says(*["word " * 2_000] * 200), step=0.01, end=2.1))
    assert 1_500_000 > sum(len(text) for _, status, text in shown if status is None) > 500_000


def test_what_changes_nothing_is_not_shown() -> None:
    ping = ev.ProviderEvent("test", "ping")
    assert len(virtual(timed([ANSWER[0], ping, ping, ping], step=1, end=5))) == 2


def test_nothing_is_shown_after_the_end_of_the_call() -> None:
    shown = virtual(timed(says(*"abc"), step=0.03, end=30), timeout=0.1)
    assert shown[-1] == (10.1, "failed", "the tool did not end within 0.1 seconds")


def test_a_long_answer_costs_in_proportion() -> None:
    def costs(count: int) -> int:
        tool = emits(*says(*["word "] * count))
        return lines_run(lambda: run(tool))

    costs(10)
    first, second = costs(200), costs(800)
    assert second < first * 5


# Ends that are none.


def broken(error: Exception) -> Callable[[], Any]:
    return lambda: rx.concat(rx.from_iterable(ANSWER[:3]), rx.throw(error))


def asking(*, answered: bool) -> list[rd.Event]:
    update = [ev.ToolUpdate("x", "completed", result=rd.ToolResult("x", "seen"))] if answered else []
    return [
        ev.MessageStart("s"),
        ev.BlockStart(0, {"type": "text", "text": "I look."}),
        ev.BlockFinish(0),
        ev.BlockStart(1, {"type": "tool_call", "id": "x", "name": "look", "args": {}}),
        ev.BlockFinish(1),
        *update,
        ev.MessageFinish("tool_use"),
    ]


@pytest.mark.parametrize(
    ("tool", "why", "shown"),
    [
        pytest.param(broken(ValueError("secret")), "The tool failed.", "The tide ", id="an exception"),
        pytest.param(broken(rd.ToolError("no tide")), "no tide", "The tide ", id="an error with a text"),
        pytest.param(
            emits(*ANSWER[:3], ev.StreamError("overloaded")),
            "The tool failed.",
            "The tide ",
            id="StreamError",
        ),
        pytest.param(emits(*ANSWER[:3]), "the agent's reply broke off", "The tide ", id="cut"),
        pytest.param(emits(SNAPSHOTS[2]), "the agent's reply broke off", "The tide ", id="a cut snapshot"),
        pytest.param(
            emits(*ANSWER[:3], ev.MessageInterrupted("by the user")),
            "the agent's reply was interrupted",
            "The tide ",
            id="interrupted",
        ),
        pytest.param(
            emits(*asking(answered=False)),
            "the agent asked for tools that were not run: look",
            "I look.",
            id="unanswered",
        ),
        pytest.param(
            emits(ev.ProviderEvent("test", "ping")), "the agent did not reply", None, id="no message"
        ),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_reply_without_an_end_fails_and_stays_in_the_picture(
    tool: Callable[[], Any], why: str, shown: str | None
) -> None:
    last = run(tool)[-1]
    assert last.execution_status == "failed"
    assert last.result is not None
    assert last.result.is_error
    assert last.result.content == why
    assert [message.text for message in messages_of(last)] == ([] if shown is None else [shown])


@pytest.mark.parametrize(
    ("events", "text"),
    [
        pytest.param(
            says("so ", "far", end=ev.MessageFinish("length")), "so far", id="cut by the token limit"
        ),
        pytest.param(asking(answered=True), "I look.", id="its tools have run"),
        pytest.param(
            [
                ev.MessageStart("s"),
                ev.BlockStart(0, {"type": "refusal", "refusal": "I won't."}),
                ev.BlockFinish(0),
                ev.MessageFinish("stop"),
            ],
            "I won't.",
            id="a refusal",
        ),
        pytest.param(says(), "", id="nothing said"),
    ],
)
def test_an_ended_reply_is_a_result(events: list[rd.Event], text: str) -> None:
    last = run(emits(*events))[-1]
    assert last.execution_status == "completed"
    assert last.result is not None
    assert last.result.content == text


def test_the_limits_hold_for_an_agent_too() -> None:
    last = run(emits(*ANSWER), limits=rd.Limits(block_chars=12))[-1]
    assert last.execution_status == "failed"
    assert [message.text for message in messages_of(last)] == ["The tide "]


def test_on_error_explains_an_agents_failure_too() -> None:
    tool = emits(*ANSWER[:3], ev.StreamError("overloaded"))
    last = run(tool, on_error=lambda call, error: f"{call.name}: {error}")[-1]
    assert last.result is not None
    assert last.result.content.endswith("overloaded")


# Several messages.


def test_an_agent_with_tools_of_its_own_shows_all_its_messages_and_answers_with_the_last() -> None:
    first = asking(answered=False)
    tools = rd.run_tools({"look": lambda: "seen"})
    turns = rx.from_iterable([*first, *says("It is high.", id="t")])
    last = run(lambda: turns.pipe(tools))[-1]
    assert last.result is not None
    assert last.result.content == "It is high."
    one, two = messages_of(last)
    assert [one.text, two.text] == ["I look.", "It is high."]
    assert one.tool_calls[0].execution_status() == "completed"
    assert one.tool_calls[0].result is not None
    assert one.tool_calls[0].result.content == "seen"


def test_a_result_that_comes_late_reaches_the_message_with_the_call() -> None:
    late = ev.ToolUpdate("x", "completed", result=rd.ToolResult("x", "seen"))
    one, two = messages_of(run(emits(*asking(answered=False), *says("High.", id="t"), late))[-1])
    assert one.tool_calls[0].result == late.result
    assert two.text == "High."


def test_of_two_messages_with_a_call_of_one_id_the_later_gets_the_result() -> None:
    asked = asking(answered=False)
    one, two = messages_of(run(emits(*asked, *asked, ev.ToolUpdate("x", "completed")))[-1])
    assert [message.tool_calls[0].execution_status() for message in (one, two)] == ["identified", "completed"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        pytest.param(
            [*SNAPSHOTS, *snapshots(says("x", id="t"))], ["The tide is high.", "x"], id="two messages"
        ),
        pytest.param(
            [*snapshots(says("a", id=None)), *snapshots(says("b", id=None))],  # type: ignore[arg-type]
            ["a", "b"],
            id="without ids",
        ),
        pytest.param(
            [snapshots(says(text, id=None))[-1].to_message() for text in "ab"],  # type: ignore[arg-type]
            ["a", "b"],
            id="whole messages without ids",
        ),
        pytest.param(
            snapshots([*says("a")[:3], ev.AttemptReset(1), *says("b", id="t")]), ["b"], id="another attempt"
        ),
        pytest.param(
            [SNAPSHOTS[2], snapshots([ev.AttemptReset(1), *says("b", id="t")])[-1]],
            ["b"],
            id="another attempt, whose beginning was not shown",
        ),
    ],
)
def test_snapshots_of_another_message_are_added(
    values: list[rd.Snapshot | rd.Message], texts: list[str]
) -> None:
    last = run(emits(*values))[-1]
    assert [message.text for message in messages_of(last)] == texts
    assert last.result is not None
    assert last.result.content == texts[-1]


def test_another_attempt_replaces_the_one_that_failed() -> None:
    (message,) = messages_of(run(emits(*ANSWER[:3], ev.AttemptReset(1), *says("Again", id="t")))[-1])
    assert (message.text, message.attempt) == ("Again", 1)


def test_only_the_first_choice_counts() -> None:
    second = [attrs.evolve(event, choice=1) for event in says("B", id="b")]
    last = run(emits(*woven(second, says("A", id="a"))))[-1]
    assert last.result is not None
    assert last.result.content == "A"
    assert len(messages_of(last)) == 1


def in_run(run_id: str, events: Iterable[rd.Event]) -> list[rd.Event]:
    return [attrs.evolve(event, run_id=run_id) for event in events]


def woven(*streams: Iterable[rd.Event]) -> list[rd.Event]:
    return [event for events in zip(*streams) for event in events]


def test_the_runs_of_an_agent_stay_apart_and_the_message_that_began_last_is_the_answer() -> None:
    out = run(emits(*woven(in_run("a", says("A", "a", id="m")), in_run("b", says("B", "b", id="m")))))
    assert out[-1].result is not None
    assert out[-1].result.content == "Bb"
    assert [(message.run_id, message.text) for message in messages_of(out[-1])] == [("a", "Aa"), ("b", "Bb")]
    assert {update.run_id for update in out} == {None}


def test_the_snapshots_of_several_runs_stay_apart() -> None:
    streams = [snapshots(in_run(name, says(name, id="m"))) for name in ("a", "b")]
    last = run(emits(*[snapshot for pair in zip(*streams) for snapshot in pair]))[-1]
    assert [message.text for message in messages_of(last)] == ["a", "b"]


def test_a_result_reaches_the_call_of_its_own_run() -> None:
    late = ev.ToolUpdate("x", "completed", result=rd.ToolResult("x", "seen"), run_id="a")
    asked = woven(in_run("a", asking(answered=False)), in_run("b", asking(answered=False)))
    one, two, _ = messages_of(run(emits(*asked, late, *in_run("c", says("High."))))[-1])
    assert [message.tool_calls[0].execution_status() for message in (one, two)] == ["completed", "identified"]


@pytest.mark.parametrize("event", [ev.MessageInterrupted(), ev.AttemptReset(1)], ids=repr)
def test_an_event_without_a_run_concerns_every_run_of_the_agent(event: rd.Event) -> None:
    streams = woven(in_run("a", says("A")[:3]), in_run("b", says("B")[:3]))
    messages = messages_of(run(emits(*streams, event))[-1])
    assert len({(message.status, message.attempt) for message in messages}) == 1
    assert (messages[0].status, messages[0].attempt) != ("incomplete", 0)


def test_an_attempt_after_the_end_belongs_to_the_same_run() -> None:
    messages = messages_of(run(emits(*in_run("a", ANSWER), ev.AttemptReset(1)))[-1])
    assert [(message.run_id, message.attempt) for message in messages] == [("a", 0), ("a", 1)]


def test_events_that_say_nothing_of_a_message_begin_none() -> None:
    ping = ev.ProviderEvent("test", "ping", run_id="graph")
    unknown = ev.ToolUpdate("x", "completed", run_id="graph")
    last = run(emits(ping, unknown, *ANSWER, ping, unknown))[-1]
    assert last.execution_status == "completed"
    assert len(messages_of(last)) == 1


# With other values.


def test_a_value_after_the_messages_is_the_result_and_the_messages_stay() -> None:
    last = run(emits(*ANSWER, {"height": 3}))[-1]
    assert last.result is not None
    assert last.result.content == {"height": 3}
    assert messages_of(last)[0].text == "The tide is high."


def test_a_tools_own_result_keeps_its_metadata() -> None:
    own = rd.ToolResult(content="3 m", metadata={"rows": [3]}, is_error=True)
    last = run(emits(*ANSWER, own))[-1]
    assert last.execution_status == "failed"
    assert last.result is not None
    assert last.result.metadata["rows"] == [3]
    assert len(messages_of(last)) == 1


def test_an_agent_may_update_its_line_for_people() -> None:
    out = run(emits(rd.ToolProgress("Looking", ANSWER[0]), *ANSWER[1:], rd.ToolProgress("Looked")))
    assert [update.display_text for update in out if update.display_text] == ["Looking", "Looked"]
    assert out[-1].result is not None
    assert out[-1].result.content == "The tide is high."


@attrs.frozen
class Report:
    best: rd.Message
    all: list[rd.Snapshot]


def test_a_record_with_messages_has_their_public_form() -> None:
    last = run(lambda: Report(LAST.to_message(), [LAST]))[-1]
    assert last.result is not None
    assert last.result.content == {"best": LAST.to_message().to_dict(), "all": [LAST.to_dict()]}


def test_an_agent_in_an_agents_tool_is_inside_its_call() -> None:
    inner = rd.run_tools({"ask": emits(*ANSWER)})
    outer = run(lambda: rx.from_iterable([*ASKED, *says("Done.", id="t")]).pipe(inner))[-1]
    asked, _ = messages_of(outer)
    assert asked.tool_calls[0].result is not None
    (nested,) = asked.tool_calls[0].result.metadata["messages"]
    assert rd.Snapshot.from_dict(nested).text == "The tide is high."


def test_agents_nested_without_end_are_cut_where_json_ends() -> None:
    metadata: Any = {}
    for _ in range(60):
        result = rd.ToolResult("x", "seen", metadata=metadata)
        call = rd.ToolCall(call_id="x", name="look", arguments={}, status="complete", result=result)
        call = call.merge(rd.ToolCall(metadata={"execution_status": "completed"}))
        last = run(lambda call=call: rd.Message(blocks=[rd.ContentPart("text", "Hi"), call]))[-1]  # type: ignore[misc]
        assert last.result is not None
        assert last.result.content == "Hi"
        metadata = last.result.metadata


# Whoever leaves closes the agent's stream.


class Agent:
    """A tool that emits the beginning of an answer, then waits, and knows how it ended."""

    def __init__(self) -> None:
        self.closed = 0

    async def ask(self) -> AsyncIterator[rd.Event]:
        try:
            for event in ANSWER[:3]:
                yield event
            await asyncio.Event().wait()
        finally:
            self.closed += 1

    def observe(self) -> Any:
        def close() -> None:
            self.closed += 1

        return rx.concat(rx.from_iterable(ANSWER[:3]), rx.never()).pipe(ops.finally_action(close))


@pytest.mark.parametrize("kind", ["ask", "observe"])
@pytest.mark.parametrize("end", ["timeout", "dispose", "interruption", "another attempt"])
def test_a_call_that_ends_closes_the_agents_stream(kind: str, end: str) -> None:
    async def main() -> None:
        agent, time = Agent(), TestScheduler()
        source: rx.subject.Subject[rd.Event] = rx.subject.Subject()
        out: list[Any] = []
        tools = rd.run_tools({"ask": getattr(agent, kind)}, timeout=5, scheduler=time)
        reading = source.pipe(tools).subscribe(out.append)
        for event in ASKED[:3]:
            source.on_next(event)
        while not isinstance(out[-1], ev.ToolUpdate) or out[-1].result is None:
            await asyncio.sleep(0)
        await turns()  # the rest of what the agent says, which is shown at the end
        assert agent.closed == 0
        if end == "timeout":
            time.advance_by(5)
        elif end == "dispose":
            reading.dispose()
        else:
            source.on_next(ev.MessageInterrupted() if end == "interruption" else ev.AttemptReset(1))
        await turns()
        assert agent.closed == 1
        if end in ("timeout", "interruption"):
            assert out[-1].execution_status == "failed"
            assert messages_of(out[-1])[0].text == "The tide "
        reading.dispose()

    loops_run(main)
