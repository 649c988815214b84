"""A delta on its way to a front end: cheap, and in the same bytes as the slow way writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ag_ui.core as ag
import attrs
import pytest
from hypothesis import example, given, strategies as st
from pydantic import BaseModel
from support.cost import lines_run
from support.front_ends import ENDINGS, recorded_replies
from support.runs import Events, call, text, thought, turn, within, woven

import rxdelta as rd
from rxdelta.core import PIECE_FIELDS, BlockFold, Tail, clean_text

ev = rd.events
CALL = {"type": "tool_call_chunk", "id": "c", "name": "look"}
STARTS = {"text": {"type": "text"}, "reasoning": {"type": "reasoning"}, "call": CALL}
DELTAS = {"text": ev.TextDelta, "reasoning": ev.ReasoningDelta, "call": ev.ToolCallDelta}
MAKERS = {"now": lambda: 1.5, "new_id": lambda: "i"}
RUN_INPUT = {
    "threadId": "t", "runId": "r", "state": {}, "messages": [], "tools": [], "context": [], "forwardedProps": {},
    "protocolVersion": "1.0",
}  # fmt: skip
IDS = {"thread_id": "t", "run_id": "r"}
ENCODERS: dict[str, Callable[..., Any]] = {
    "ai-sdk": rd.wire.AiSdkEncoder,
    "ai-sdk-5": lambda **more: rd.wire.AiSdkEncoder(sdk_version=5, **more),
    "ai-sdk-all": lambda **more: rd.wire.AiSdkEncoder(
        message_id="x", provider_items=True, sources="results", metadata={"a": 1}, **more
    ),
    "ai-sdk-no-reasoning": lambda **more: rd.wire.AiSdkEncoder(reasoning=False, **more),
    "ag-ui": lambda **more: rd.wire.AgUiEncoder(**IDS, **more),
    "ag-ui-serial": lambda **more: rd.wire.AgUiEncoder(serialize_tool_calls=True, reasoning=False, **IDS, **more),
    "ag-ui-all": lambda **more: rd.wire.AgUiEncoder(RUN_INPUT, provider_events=True, provider_items=True, **more),
    "langchain": lambda **more: rd.wire.LangChainEncoder(**MAKERS, **more),
    "langchain-within": lambda **more: rd.wire.LangChainEncoder(namespace=["a"], first_seq=7, **MAKERS, **more),
    "openai-chat": lambda **more: rd.wire.OpenAiChatEncoder(**MAKERS, **more),
    "openai-responses": lambda **more: rd.wire.OpenAiResponsesEncoder(**MAKERS, **more),
    "anthropic-messages": lambda **more: rd.wire.AnthropicMessagesEncoder(**MAKERS, **more),
    "ollama": lambda **more: rd.wire.OllamaEncoder(now=lambda: 1.5, **more),
    "openai-chat-tools": lambda **more: rd.wire.OpenAiChatEncoder(
        tools=["now"], reasoning=False, include_usage=False, model="m", **MAKERS, **more
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


# The frames.


def slowly(frame: Any) -> bytes:
    """The bytes of a frame by the writer of its protocol's own package, or by `json`."""
    if frame is rd.wire.DONE:
        return b"data: [DONE]\n\n"
    if isinstance(frame, BaseModel):
        return f"data: {on_one_line(frame.model_dump_json(by_alias=True))}\n\n".encode()
    written = json.dumps(frame, ensure_ascii=False, separators=(",", ":"))
    name = f"event: {frame['type']}\n" if isinstance(frame, rd.wire.NamedFrame) else ""
    return f"{name}data: {on_one_line(clean_text(written))}\n\n".encode()


def on_one_line(written: str) -> str:
    """JSON as it is to clients that take these characters for the end of a line."""
    return written.replace("\x85", "\\u0085").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


any_text = st.one_of(st.text(), st.text('ab"\\/\x00\x08\x0c\n\r\t\x1f\x7f\x85\u2028\u2029é日😀\ufeff\ufffd'))
with_halves = st.one_of(any_text, st.text("a\ud83d\ude00\udfff\u2028"))


@example(own_id="\ud83d", piece="\ude00")
@given(own_id=with_halves, piece=with_halves)
def test_the_frames_of_the_ai_sdk_are_what_json_writes(own_id: str, piece: str) -> None:
    for kind in ("text-delta", "reasoning-delta"):
        frame: dict[str, Any] = {"type": kind, "id": own_id, "delta": piece}
        assert rd.wire.sse_frame(frame) == slowly(frame)
    frame = {"type": "tool-input-delta", "toolCallId": own_id, "inputTextDelta": piece}
    assert rd.wire.sse_frame(frame, "7-0") == b"id: 7-0\n" + slowly(frame)


@given(own_id=any_text, piece=any_text, more=st.booleans())
def test_the_events_of_ag_ui_are_what_their_own_class_writes(own_id: str, piece: str, more: bool) -> None:
    ENCODERS["ag-ui"]()
    said: dict[str, Any] = {"timestamp": 1, "metadata": {"a": piece}, "x": own_id} if more else {}
    for frame in (
        ag.TextMessageContentEvent(message_id=own_id, delta=piece, **said),
        ag.ReasoningMessageContentEvent(message_id=own_id, delta=piece, **said),
        ag.ToolCallArgsEvent(tool_call_id=own_id, delta=piece, **said),
    ):
        assert rd.wire.sse_frame(frame) == slowly(frame)


class Word(str):
    __slots__ = ()


class Shown(dict[str, Any]):
    """An object that shows something else than it holds."""

    def items(self) -> Any:
        return {"type": "other"}.items()


@pytest.mark.parametrize(
    "frame",
    [
        {"delta": "a", "id": "1", "type": "text-delta"},
        {"type": "text-delta", "id": "1", "delta": "a", "more": 1},
        {"type": "text-delta", "id": "1"},
        {"type": "text-delta", "id": 1, "delta": "a"},
        {"type": "text-delta", "id": "1", "delta": None},
        {"type": "text-delta", "id": "1", "delta": ["a"]},
        {"type": Word("text-delta"), "id": Word("1"), "delta": Word("ä")},
        {"type": ["text-delta"], "id": "1", "delta": "a"},
        {"type": "tool-input-delta", "id": "1", "delta": "a"},
        rd.core.FrozenDict({"type": "text-delta", "id": "1", "delta": "a"}),
        Shown({"type": "text-delta", "id": "1", "delta": "a"}),
        {},
    ],
    ids=repr,
)
def test_a_frame_that_differs_in_more_is_written_as_ever(frame: Any) -> None:
    assert rd.wire.sse_frame(frame) == slowly(frame)


def ag_ui_event(**more: Any) -> ag.TextMessageContentEvent:
    event = ag.TextMessageContentEvent(message_id="1", delta="a")
    for name, value in more.items():
        setattr(event, name, value)
    return event


def test_what_an_event_refuses_to_write_is_refused() -> None:
    ENCODERS["ag-ui"]()
    with pytest.raises(rd.InvalidValueError, match="frame"):
        rd.wire.sse_frame(ag_ui_event(delta="\ud83d"))


# The encoders.


def written(
    encoder: Any, events: Sequence[rd.Event], end: Callable[[Any], list[Any]], write: Any
) -> list[Any]:
    """What an encoder gives for each event, up to an error of its own."""
    told: list[Any] = []
    for event in events:
        try:
            told.append([*map(write, encoder.encode(event))])
        except rd.errors.RxDeltaError as error:
            return [*told, repr(error), [*map(write, encoder.fail(error))]]
    return [*told, [*map(write, end(encoder))]]


def same_as_slowly(name: str, events: Sequence[rd.Event], end: str = "completes", **more: Any) -> None:
    """The bytes are those of encoders whose blocks grow by each delta, written the slow way."""
    make, patch = ENCODERS[name], pytest.MonkeyPatch()
    quick = written(make(**more), events, ENDINGS[end], rd.wire.sse_frame)
    with patch.context() as patched:
        patched.setattr(Tail, "take", lambda *_: False)
        patched.setattr(Tail, "follow", lambda *_: None)
        assert quick == written(make(**more), events, ENDINGS[end], slowly)


def units(events: Sequence[rd.Event]) -> Iterator[rd.Event]:
    """The events with each delta cut into UTF-16's units, so that characters come in halves."""
    for event in events:
        field = PIECE_FIELDS.get(type(event))
        if field is None or len(getattr(event, field)) > 60:
            yield event
            continue
        data = getattr(event, field).encode("utf-16-le", "surrogatepass")
        for at in range(0, len(data), 2):
            yield attrs.evolve(event, **{field: chr(int.from_bytes(data[at : at + 2], "little"))})


@pytest.mark.parametrize("name", ENCODERS)
def test_every_recorded_reply_is_written_in_the_same_bytes(name: str) -> None:
    replies = recorded_replies() or pytest.skip("no recordings")
    for number, reply in enumerate(replies):
        same_as_slowly(name, reply.events)
        if number % 4 == 0:
            end = [*ENDINGS][number % len(ENDINGS)]
            same_as_slowly(name, [*units(reply.events[: 7 + 11 * number % 300])], end)


pieces = st.one_of(st.sampled_from(["a", '"', "\n", "", "\ud83d", "\ude00", "é", " {"]), st.text(max_size=4))
indexes, choices, runs = st.integers(0, 2), st.integers(0, 1), st.sampled_from([None, "a", "b"])
anything = st.one_of(
    *(
        st.builds(kind, indexes, pieces, choice=st.sampled_from([0, 0, 0, 1]), run_id=runs)
        for kind in DELTAS.values()
        for _ in range(3)
    ),
    st.builds(ev.DataDelta, indexes, st.just("QUJD"), run_id=runs),
    st.builds(ev.BlockStart, indexes, st.sampled_from([*STARTS.values(), {"type": "file", "data": "QQ=="}]), run_id=runs),
    st.builds(ev.BlockDelta, indexes, st.sampled_from([{"text": "new"}, {"id": "d"}, {"args": "{"}]), run_id=runs),
    st.builds(ev.BlockFinish, indexes, st.sampled_from([None, {"type": "text", "text": "end"}]), run_id=runs),
    st.builds(ev.UsageUpdate, st.builds(rd.TokenUsage, st.integers(0, 9)), choice=choices, run_id=runs),
    st.builds(ev.Custom, st.just("note"), st.just({}), id=st.just("1"), run_id=runs),
    st.builds(ev.ToolUpdate, st.sampled_from("cd"), st.just("executing"), run_id=runs),
    st.builds(ev.MessageStart, st.just("m"), run_id=runs),
    st.builds(ev.MessageFinish, st.sampled_from(["stop", "tool_use"]), run_id=runs),
    st.builds(ev.AttemptReset, st.just(1), run_id=runs),
)  # fmt: skip


groups = st.one_of(
    anything.map(lambda event: [event]),
    st.tuples(anything, st.integers(3, 6)).map(lambda group: [group[0]] * group[1]),
    st.tuples(st.integers(0, 2), pieces, st.integers(3, 6), runs).map(
        lambda group: [[*DELTAS.values()][group[0]](group[0], group[1], run_id=group[3])] * group[2]
    ),
)
FEW = [ev.TextDelta(0, "a")] * 5


@example("ai-sdk", [FEW, [ev.BlockFinish(0)], FEW], None, "completes", 1000)
@example("ai-sdk", [FEW, [ev.BlockDelta(0, {"text": "a" * 990})], FEW * 3], None, "completes", 1000)
@example("langchain", [FEW, [ev.AttemptReset(1), ev.BlockStart(0, CALL)], FEW], None, "stop", 1000)
@example("openai-chat", [FEW, [ev.MessageFinish("stop"), ev.MessageStart("n")], FEW], None, "stop", 1000)
@given(
    name=st.sampled_from([*ENCODERS]),
    events=st.lists(groups, max_size=20),
    begun=st.sampled_from([None, "a"]),
    end=st.sampled_from([*ENDINGS]),
    room=st.sampled_from([3, 12, 1000]),
)
def test_any_stream_is_written_in_the_same_bytes(
    name: str, events: list[Events], begun: str | None, end: str, room: int
) -> None:
    begin: Events = [ev.MessageStart("m", run_id=begun)]
    begin += [ev.BlockStart(index, content, run_id=begun) for index, content in enumerate(STARTS.values())]
    rest = [event for group in events for event in group]
    same_as_slowly(name, [*begin, *rest], end, limits=rd.Limits(block_chars=room))


@pytest.mark.parametrize("name", ENCODERS)
def test_an_empty_delta_is_none(name: str) -> None:
    two = [
        ev.BlockStart(0, {"type": "text"}),
        *FEW,
        ev.BlockStart(2, {"type": "refusal"}),
        ev.TextDelta(2, "no"),
    ]
    inside = [ev.ToolCallDelta(1, "{"), ev.TextDelta(0, ""), ev.TextDelta(2, "x"), ev.TextDelta(0, "y")]
    events = [ev.MessageStart("m"), *two, ev.BlockStart(1, CALL), *inside, ev.ToolCallDelta(1, "}")]
    events += [ev.BlockFinish(1), ev.ToolCallDelta(1, ""), ev.MessageFinish("tool_use")]
    without = [event for event in events if getattr(event, PIECE_FIELDS.get(type(event), ""), "more") != ""]
    make, end = ENCODERS[name], ENDINGS["completes"]
    told, wanted = (
        [data for one in written(make(), given, end, slowly) for data in one] for given in (events, without)
    )
    assert told == wanted


@pytest.mark.parametrize("name", ENCODERS)
def test_runs_that_overlap_are_written_in_the_same_bytes(name: str) -> None:
    one = within(
        "a", turn(thought(0, "so"), text(1, "Grüße 😀" * 5), call(2, "c1", "here"), reason="tool_use")
    )
    other = within("b", turn(text(0, "meanwhile " * 5), call(1, "c2", "there"), id="m2"), "a")
    for seed in range(5):
        same_as_slowly(name, woven(one, other, seed=seed))


# What it costs.

MANY = 256


def deltas_for(name: str, kind: str) -> tuple[Any, Events]:
    """An encoder that knows a block of this kind, and many deltas of it."""
    encoder, delta = ENCODERS[name](), DELTAS[kind]
    for event in (ev.MessageStart("m"), ev.BlockStart(0, STARTS[kind]), *[delta(0, "a")] * 3):
        encoder.encode(event)
    return encoder, [delta(0, "a")] * MANY


@pytest.mark.parametrize("kind", DELTAS)
@pytest.mark.parametrize("name", ["ai-sdk", "ag-ui", "langchain", "openai-chat"])
def test_deltas_make_no_block_until_somebody_looks(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder, deltas = deltas_for(name, kind)
    made: list[int] = []
    grow = BlockFold.grow

    def counted(self: BlockFold, piece: str) -> Any:
        made.append(len(piece))
        return grow(self, piece)

    monkeypatch.setattr(BlockFold, "grow", counted)
    for number, event in enumerate(deltas):
        encoder.encode(event)
        encoder.encode(ev.UsageUpdate(rd.TokenUsage(1, number)))  # which some providers send with each chunk
    assert not made
    encoder.encode(ev.BlockFinish(0))
    assert made == [MANY]


@pytest.mark.parametrize("kind", DELTAS)
@pytest.mark.parametrize(("name", "most"), [("ai-sdk", 60), ("ag-ui", 100)])
def test_a_delta_to_a_browser_costs_few_lines_of_python(name: str, most: int, kind: str) -> None:
    encoder, deltas = deltas_for(name, kind)

    def send() -> None:
        for event in deltas:
            for frame in encoder.encode(event):
                rd.wire.sse_frame(frame)

    assert lines_run(send) <= most * MANY
