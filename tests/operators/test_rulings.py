"""Single cells of the law of a message's and a block's life, each with a stream of a few events."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import attrs
import pytest
import reactivex as rx
from support import ag_ui, ai_sdk

import rxdelta as rd

ev = rd.events
Events: TypeAlias = Sequence[rd.Event]
RESET = ev.AttemptReset(1)
DONE = ev.MessageFinish("tool_use")


def text(word: str, index: int = 0, choice: int = 0) -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": "text", "text": word}, choice=choice),
        ev.BlockFinish(index, choice=choice),
    ]


def whole(call_id: str, number: int = 1, kind: str = "tool_call") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": "f", "args": {"n": number}}


def chunk(call_id: str, kind: str = "tool_call_chunk") -> dict[str, Any]:
    return {"type": kind, "id": call_id, "name": "f", "args": ""}


def call(call_id: str, number: int = 1, index: int = 1) -> list[rd.Event]:
    return [ev.BlockStart(index, whole(call_id, number)), ev.BlockFinish(index)]


def message(word: str, call_id: str, id: str | None = "m") -> list[rd.Event]:
    return [ev.MessageStart(id), *text(word), *call(call_id), DONE]


def values(events: Events, *operators: Any) -> list[Any]:
    """All values; an error is the last one."""
    found: list[Any] = []
    rx.from_iterable(events).pipe(*operators).subscribe(found.append, found.append)
    return found


def fold(events: Events, choice: int = 0) -> rd.Snapshot:
    return values(events, rd.scan_deltas(choice=choice))[-1]  # type: ignore[no-any-return]


def refused(events: Events) -> rd.Snapshot | None:
    """The snapshot of a fold that refuses the stream; `None` if it doesn't."""
    last = values(events, rd.scan_deltas())[-1]
    if not isinstance(last, rd.ProtocolError):
        return None
    assert "group_by_message()" in str(last)
    return last.snapshot


def messages(events: Events) -> list[rd.Snapshot]:
    found: list[list[Any]] = []

    def read(one: Any) -> None:
        found.append([])
        one.pipe(rd.scan_deltas()).subscribe(found[-1].append)

    rx.from_iterable(events).pipe(rd.group_by_message()).subscribe(read)
    return [snapshots[-1] for snapshots in found if snapshots]


def ran(events: Events, **options: Any) -> list[int]:
    """The arguments with which tools ran."""
    found: list[int] = []
    out = values(events, rd.run_tools({"f": lambda n=0: found.append(n)}, **options))
    assert not isinstance(out[-1], Exception)
    return found


def completed(events: Events) -> list[tuple[str, int]]:
    return [
        (one.call_id, one.arguments.get("n", 0))
        for one in values(events, rd.completed_tool_calls())
        if one.status == "complete"
    ]


def blocks(events: Events) -> list[Any]:
    """The last value of each stream of a block."""
    found: list[list[Any]] = []

    def read(block: Any) -> None:
        found.append([])
        block.subscribe(found[-1].append, lambda _: None)

    rx.from_iterable(events).pipe(rd.group_by_block()).subscribe(read)
    return [shown[-1] for shown in found]


def words(events: Events) -> str:
    return " ".join(values(events, rd.text_deltas()))


def ai_sdk_words(events: Events) -> list[str]:
    return [part["text"] for part in ai_sdk.read(ai_sdk.frames_of(events)).parts if part["type"] == "text"]


def ag_ui_words(events: Events) -> list[str]:
    shown = ag_ui.read(ag_ui.told(*events)).messages
    return [one["content"] for one in shown if one["role"] == "assistant" and one.get("content")]


TWO = pytest.mark.parametrize(
    "events",
    [
        pytest.param([*message("one", "c1"), *message("two", "c2")], id="after the end, with the same id"),
        pytest.param(
            [*message("one", "c1", None), *message("two", "c2", None)], id="after the end, without ids"
        ),
        pytest.param(
            [*message("one", "c1")[:-1], *message("two", "c2", "n")], id="in an open message, another id"
        ),
        pytest.param(
            [*message("one", "c1")[:-1], *message("two", "c2", None)], id="in an open message, without id"
        ),
        pytest.param(
            [*message("one", "c1", None)[:-1], *message("two", "c2", None)],
            id="in an open one, both without ids",
        ),
    ],
)


@TWO
def test_a_second_message_is_refused_or_split_but_never_lost_nor_mixed_in(events: Events) -> None:
    snapshot = refused(events)
    assert snapshot is not None
    assert snapshot.text == "one"
    assert [one.text for one in messages(events)] == ["one", "two"]
    assert words(events) == " ".join(values(events, rd.sentences())) == "one two"
    assert [call_id for call_id, _ in completed(events)] == ["c1", "c2"]
    assert len(ran(events)) == 2
    assert ai_sdk_words(events) == ["one", "two"]
    assert ag_ui_words(events) == ["one", "two"]
    assert [shown.text for shown in blocks(events) if isinstance(shown, rd.ContentPart)] == ["one", "two"]


@pytest.mark.parametrize(
    "starts",
    [
        pytest.param(
            [ev.MessageStart("m"), ev.MessageStart("n", "small")], id="another id before the first block"
        ),
        pytest.param(
            [ev.MessageStart("m"), ev.MessageStart(None, "small")], id="no id before the first block"
        ),
        pytest.param([ev.MessageStart(None), ev.MessageStart("m", "small")], id="an id that comes late"),
    ],
)
def test_a_second_start_before_the_first_block_fills_in_what_is_missing(starts: Events) -> None:
    events = [*starts, *text("one"), *call("c1"), DONE]
    snapshot = fold(events)
    assert (snapshot.id, snapshot.metadata.get("model") or snapshot.model, snapshot.text) == (
        "m",
        "small",
        "one",
    )
    assert len(messages(events)) == 1
    assert ai_sdk_words(events) == ag_ui_words(events) == ["one"]


AFTER_THE_END = [*message("one", "c1"), RESET, *message("two", "c2", "n")]


def test_a_reset_after_the_end_belongs_to_the_next_message() -> None:
    assert [one.text for one in messages(AFTER_THE_END)] == ["one", "two"]
    assert words(AFTER_THE_END) == "one two"
    assert len(ran(AFTER_THE_END)) == 2
    assert ai_sdk_words(AFTER_THE_END) == ag_ui_words(AFTER_THE_END) == ["one", "two"]


def test_a_fold_refuses_a_reset_after_the_end() -> None:
    snapshot = refused(AFTER_THE_END)
    assert snapshot is not None
    assert snapshot.text == "one"


def test_blocks_after_a_reset_after_the_end_reach_the_front_end_without_a_start() -> None:
    assert ai_sdk_words([*message("one", "c1"), RESET, *text("two"), DONE]) == ["one", "two"]


def _broken_after_one_of_two_choices() -> list[Any]:
    """The events of a request that broke while choice 1 was open, and of its repetition."""
    first = [
        ev.MessageStart("a"),
        *text("OLD"),
        ev.MessageFinish("stop"),
        ev.MessageStart("a", choice=1),
        *text("x", 0, 1),
    ]
    second = [ev.MessageStart("b"), *text("NEW"), ev.MessageFinish("stop")]
    second += [attrs.evolve(event, choice=1) for event in second]
    requests = iter(
        [rx.concat(rx.from_iterable(first), rx.throw(ConnectionError())), rx.from_iterable(second)]
    )
    attempts = rd.retry_stream(lambda: next(requests), backoff=lambda *_: 0)
    found: list[Any] = []
    attempts.subscribe(found.append, found.append)
    return found


def test_a_fold_rolls_back_a_choice_that_was_over() -> None:
    events = _broken_after_one_of_two_choices()
    assert [fold(events, choice).text for choice in (0, 1)] == ["NEW", "NEW"]
    assert [one.text for one in messages(events)] == ["NEW"]


@pytest.mark.parametrize("words", [ai_sdk_words, ag_ui_words])
def test_a_front_end_rolls_back_a_choice_that_was_over(words: Any) -> None:
    assert words(_broken_after_one_of_two_choices()) == ["NEW"]


OVERRULED = [ev.MessageStart("m"), *call("c1"), ev.BlockFinish(1, whole("c1", 2)), DONE]


def test_the_fold_marks_a_call_whose_arguments_changed_after_its_tool_ran() -> None:
    snapshot = values(OVERRULED, rd.run_tools({"f": lambda n: n}), rd.scan_deltas())[-1]
    assert snapshot.tool_calls[0].arguments == {"n": 2}
    assert snapshot.tool_calls[0].metadata.get("arguments_changed_after_run") is True


@pytest.mark.parametrize(
    "events",
    [
        pytest.param(OVERRULED, id="no tool has run"),
        pytest.param([*OVERRULED[:3], ev.ToolUpdate("c1", "completed"), DONE], id="nothing has changed"),
        pytest.param(
            [*OVERRULED[:3], ev.ToolUpdate("c1", "completed"), ev.BlockFinish(1, whole("c1", 1)), DONE],
            id="the same again",
        ),
        pytest.param(
            [*OVERRULED[:3], ev.ToolUpdate("c1", None, "Reading"), *OVERRULED[3:]], id="only a display text"
        ),
        pytest.param([*OVERRULED, ev.ToolUpdate("c1", "completed")], id="before its tool ran"),
    ],
)
def test_no_other_call_is_marked(events: Events) -> None:
    assert "arguments_changed_after_run" not in fold(events).tool_calls[0].metadata


@pytest.mark.parametrize(
    "late",
    [
        pytest.param([ev.BlockFinish(1, whole("c1", 2))], id="a finish of an ended call"),
        pytest.param([ev.BlockFinish(2, whole("c2", 2))], id="a finish of a new one"),
        pytest.param(call("c2", 2, 2), id="a start"),
        pytest.param(call("c2", 2, 1), id="a start on an ended call"),
        pytest.param([DONE, *call("c2", 2, 2)], id="a second end"),
    ],
)
def test_a_call_after_the_end_is_complete_nowhere(late: Events) -> None:
    events = [*message("one", "c1"), *late]
    assert fold(events) == fold(message("one", "c1"))
    assert completed(events) == [("c1", 1)]
    assert ran(events) == ran(events, start="message") == [1]
    assert len(blocks(events)) == 2
    assert [
        part.get("toolCallId") for part in ai_sdk.read(ai_sdk.frames_of(events)).parts if "input" in part
    ] == ["c1"]
    assert [one["toolCallId"] for one in ag_ui.told(*events) if one["type"] == "TOOL_CALL_END"] == ["c1"]


def test_a_call_that_ends_as_a_text_fails_and_ends_nothing_else() -> None:
    events = [
        ev.MessageStart("m"),
        ev.BlockStart(1, chunk("c1")),
        ev.BlockFinish(1, {"type": "text", "text": "z"}),
    ]
    events = [*events, *call("c2", 2, 2), DONE]
    assert ran(events) == [2]
    updates = [
        one for one in values(events, rd.run_tools({"f": lambda n: n})) if isinstance(one, ev.ToolUpdate)
    ]
    assert [one.execution_status for one in updates if one.call_id == "c1"] == ["identified", "failed"]
    assert fold(events).text == "z"
    assert completed(events) == [("c2", 2)]


def test_an_interruption_ends_all_choices_also_those_that_come_later() -> None:
    events = [
        ev.MessageInterrupted("stopped"),
        *call("c1"),
        *text("late"),
        *[attrs.evolve(event, choice=1) for event in call("c2")],
    ]
    assert [fold(events, choice).status for choice in (0, 1)] == ["interrupted"] * 2
    assert [fold(events, choice).blocks for choice in (0, 1)] == [()] * 2
    assert blocks(events) == completed(events) == ran(events) == []
    assert words(events) == ""
    assert ai_sdk_words(events) == ag_ui_words(events) == []


def test_an_update_reaches_its_call_when_the_next_message_has_begun() -> None:
    news = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", 7))
    asked = [
        ev.MessageStart("m"),
        ev.BlockStart(1, chunk("c1")),
        ev.ToolUpdate("c1", "executing"),
        ev.BlockFinish(1),
        DONE,
    ]
    events = [*asked, ev.MessageStart("n"), *text("two"), news]
    assert blocks(events)[0].execution_status() == "completed"


def test_an_update_reaches_all_calls_with_its_id() -> None:
    events = [
        ev.MessageStart("m"),
        *call("c1", 1, 1),
        *call("c1", 2, 2),
        ev.ToolUpdate("c1", "completed"),
        DONE,
    ]
    assert [one.execution_status() for one in fold(events).tool_calls] == ["completed"] * 2


@pytest.mark.parametrize("start", ["ready", "message"])
def test_tools_run_in_the_order_of_the_message_if_its_end_closes_their_calls(start: str) -> None:
    events = [ev.MessageStart("m"), *(ev.BlockStart(index, chunk(f"c{index}")) for index in [2, 0, 1])]
    events += [ev.ToolCallDelta(index, f'{{"n": {index}}}') for index in [2, 0, 1]]
    assert ran([*events, DONE], start=start) == [0, 1, 2]


def test_usage_after_the_end_is_passed_on_and_not_counted() -> None:
    late = ev.UsageUpdate(rd.TokenUsage(1, 2))
    events = [*message("one", "c1"), late]
    assert fold(events) == fold(message("one", "c1"))
    assert values(events, rd.share_events())[-1] == late
    assert len(messages([*events, *message("two", "c2")])) == 2


def test_an_error_of_another_choice_ends_every_reader() -> None:
    events = [ev.MessageStart("m"), *text("one"), ev.StreamError("Overloaded", choice=1)]
    for operator in (
        rd.scan_deltas(choice=0),
        rd.text_deltas(),
        rd.sentences(),
        rd.completed_tool_calls(),
        rd.group_by_block(),
    ):
        assert isinstance(values(events, operator)[-1], rd.ProviderError)


AGAIN = [ev.MessageStart("m"), ev.BlockStart(1, chunk("c1"))]


@pytest.mark.parametrize("between", [[], [RESET]], ids=["begun again", "another attempt"])
def test_ag_ui_has_one_id_for_a_call_that_begins_again(between: Events) -> None:
    shown = ag_ui.read(ag_ui.told(*AGAIN, *between, *call("c1"), DONE))
    assert (
        shown.pending
        == [one["id"] for message in shown.messages for one in message.get("toolCalls", ())][-1:]
    )


@pytest.mark.parametrize(
    "end",
    [
        pytest.param([], id="with the stream"),
        pytest.param([ev.MessageInterrupted("stopped")], id="by an interruption"),
        pytest.param([ev.MessageFinish("length")], id="by the token limit"),
        pytest.param([ev.MessageStart("n")], id="by the next message"),
        pytest.param([ev.BlockStart(1, {"type": "text"})], id="by another block"),
    ],
)
def test_langchain_gets_no_whole_call_from_one_that_was_cut_off(end: Events) -> None:
    encoder = rd.wire.LangChainEncoder(now=lambda: 0, new_id=lambda: "n")
    frames = [*(frame for event in [*AGAIN, *end] for frame in encoder.encode(event)), *encoder.close()]
    sent: list[Any] = [frame["params"]["data"] for frame in frames]
    ends = [one["content"]["type"] for one in sent if one.get("event") == "content-block-finish"]
    assert "tool_call" not in ends


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="at first"),
        pytest.param([ev.MessageStart("m"), RESET], id="after a reset"),
        pytest.param(
            [ev.MessageStart("m"), *call("c1"), RESET],
            id="after a reset of the same call",
        ),
    ],
)
def test_langchain_gets_a_call_that_has_only_an_end(before: Events) -> None:
    encoder = rd.wire.LangChainEncoder(now=lambda: 0, new_id=lambda: "n")
    events = [*before, ev.BlockFinish(1, whole("c1")), DONE]
    frames = [*(frame for event in events for frame in encoder.encode(event)), *encoder.close()]
    sent: list[Any] = [frame["params"]["data"] for frame in frames]
    ends = [one["content"]["type"] for one in sent if one.get("event") == "content-block-finish"]
    assert fold(events).tool_calls[0].status == "complete"
    assert ends == ["tool_call"] * sum(isinstance(event, ev.BlockFinish) for event in events)
