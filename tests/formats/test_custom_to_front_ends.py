"""An application's own data (`Custom`) at every place of a reply: to each front end, and back."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from random import Random
from typing import Any

import attrs
import pytest
import reactivex as rx
from formats.langchain import frames as langchain
from support import ag_ui, ai_sdk
from support.clients import ask
from support.runs import Events, call, text, turn, within
from support.shared import recordings

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]

AGENT = [
    *turn(text(0, "Let me see."), call(1, "c1", "sea")),
    ev.ToolUpdate("c1", "executing", "looking"),
    ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "blue")),
    *[ev.MessageStart("m2", "small"), *text(0, "no"), ev.AttemptReset(1)],
    *turn(text(0, "It is blue."), id="m2"),
]
"""Two turns, with a tool, and an attempt of the second one that fails."""

OTHERS = [
    *turn(text(0, "One."), id="a"),
    *within("side", turn(text(0, "Another."), id="b")),
    *within("sub", turn(text(0, "For one."), id="c"), parent="side"),
]
REPLIES: dict[str, Events] = {"agent": AGENT, "several runs": OTHERS}
VALUES = (None, 0, "ä\n", [1, {"a": None}], {"runId": "x", "run_id": "x", "toolCallId": "c1"}, True)
NAMES = (
    "status", "run", "block", "custom-run", "rxdelta.run", "rxdelta.tool-update", "rxdelta", "__proto__", "a b/é",
    "STEP_STARTED", "STEP_FINISHED", "STATE_DELTA", "STATE_SNAPSHOT",
)  # fmt: skip


def notes(draw: Random) -> Iterator[ev.Custom]:
    """The application's data, one after the other, all different."""
    for number in count():
        name, data = draw.choice(NAMES), draw.choice(VALUES)
        if name.startswith("STEP") and draw.random() < 0.7:
            data = draw.choice("ab")
        elif name == "STATE_DELTA" and draw.random() < 0.7:
            data = [{"op": "add", "path": "/n", "value": number}]
        elif name == "STATE_SNAPSHOT":
            data = {"n": number}
        own_id = draw.choice([None, "1", f"own {number}"])
        yield ev.Custom(name, data, own_id, draw.random() < 0.2)


def everywhere(events: Events, draw: Random) -> list[rd.Event]:
    """The events with data of the application at every place: of the event's run, or of none."""
    said = notes(draw)
    told: list[rd.Event] = [next(said)]
    for event in events:
        run_id = draw.choice([None, event.run_id])
        told += [event, attrs.evolve(next(said), run_id=run_id)]
    return told


def said_in(events: Iterable[rd.Event]) -> list[ev.Custom]:
    return [event for event in events if isinstance(event, ev.Custom)]


def transcript(events: Iterable[rd.Event]) -> list[Any]:
    """The order of texts and data."""
    told: list[Any] = []
    for event in events:
        if isinstance(event, ev.Custom):
            told.append(event)
        elif isinstance(event, ev.TextDelta) and event.choice == 0:
            if told and isinstance(told[-1], str):
                told[-1] += event.text
            else:
                told.append(event.text)
    return told


def without_runs(events: Iterable[rd.Event]) -> list[rd.Event]:
    return [rd.events.from_dict({**event.to_dict(), "run_id": None}) for event in events]


def to_ai_sdk(events: Events) -> list[Any]:
    frames = ai_sdk.frames_of(events)
    ai_sdk.read(frames)
    return frames


def to_ai_sdk_5(events: Events) -> list[Any]:
    frames = ai_sdk.frames_of(events, sdk_version=5)
    ai_sdk.read(frames, 5)
    return frames


def to_ag_ui(events: Events, **options: Any) -> list[Any]:
    frames = ag_ui.told(*events, **options)
    ag_ui.read(frames)
    return frames


def to_langchain(events: Events) -> list[Any]:
    frames = langchain.sent(*events)
    return [*frames]


ENCODERS: dict[str, tuple[str, Callable[[Events], list[Any]]]] = {
    "ai-sdk": ("ai-sdk", to_ai_sdk),
    "ai-sdk 5": ("ai-sdk", to_ai_sdk_5),
    "ag-ui": ("ag-ui", to_ag_ui),
    "langchain": ("langchain", to_langchain),
}
each_encoder = pytest.mark.parametrize(("wire_format", "encode"), ENCODERS.values(), ids=ENCODERS)


def decoded(wire_format: str, frames: Iterable[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]


@functools.cache
def recorded() -> list[Events]:
    """The events of a recorded stream of each format, drawn from a seed. The clients are slow where there are many."""
    draw, found = Random(16), []
    for wire_format in sorted(set(rd.providers.FORMATS) - {"langchain", "ai-sdk", "ag-ui"}):
        cases = [case for case in recordings(wire_format) if not case.marks]
        draw.shuffle(cases)
        events = ([*decoded(wire_format, case.values[0])] for case in cases)
        short = (one for one in events if len(one) <= 80)
        found += [[one for one in few if not isinstance(one, ev.StreamError)] for few in islice(short, 1)]
    return found


# Every place.


@each_encoder
@pytest.mark.parametrize("reply", REPLIES)
def test_each_place_alone(wire_format: str, encode: Callable[[Events], list[Any]], reply: str) -> None:
    """Nothing of the reply changes, and the data come back from where they were."""
    events = REPLIES[reply]
    plain = decoded(wire_format, encode(events))
    for place in range(len(events) + 1):
        for note in (
            ev.Custom("status", {"runId": "x"}, "1"),
            ev.Custom("status", None, transient=True),
            ev.Custom("run", 1),
        ):
            frames = encode([*events[:place], note, *events[place:]])
            back = decoded(wire_format, frames)
            assert said_in(back) == [note]
            rest = [event for event in back if event != note]
            model = [event for event in rest if not isinstance(event, ev.MessageStart)]
            assert model == [event for event in plain if not isinstance(event, ev.MessageStart)]
            assert len(rest) == len(plain)
            text = [event for event in transcript(back) if isinstance(event, str)]
            assert "".join(text) == "".join(transcript(plain))


@each_encoder
def test_every_place_at_once(wire_format: str, encode: Callable[[Events], list[Any]]) -> None:
    for seed, events in enumerate([*REPLIES.values(), *recorded()]):
        told = everywhere(events, Random(seed))
        back = decoded(wire_format, encode(told))
        assert said_in(without_runs(back)) == said_in(without_runs(told))
        said_again = wire_format == "ag-ui" and events is AGENT  # after the attempt that failed
        if events is not OTHERS and not said_again:
            assert transcript(without_runs(back)) == transcript(without_runs(told))


# The AI SDK.


def data_of(frames: Iterable[Any]) -> list[Json]:
    return [one for one in frames if one is not rd.wire.DONE and one["type"].startswith("data-")]


def test_a_reset_of_the_step_takes_no_data_back() -> None:
    docs = [ev.Custom("docs", [1], "d"), ev.Custom("docs", [1, 2], "d")]
    start, status = ev.MessageStart("m1"), ev.Custom("status", 1)
    events = [start, status, *text(0, "no"), docs[0], ev.AttemptReset(1), docs[1], *turn(text(0, "yes"))]
    frames = to_ai_sdk(events)
    client = ai_sdk.read(frames)
    shown = [(part["type"], part.get("data", part.get("text"))) for part in client.parts[1:]]
    assert shown == [("data-status", 1), ("data-docs", [1, 2]), ("text", "yes")]
    assert said_in(decoded("ai-sdk", frames)) == [status, *docs]


def test_nothing_is_reset_where_the_application_alone_has_spoken() -> None:
    for version in (5, 7):
        events = [ev.MessageStart(), ev.Custom("a", 1), ev.AttemptReset(1), *turn(text(0, "Hi"))]
        frames = ai_sdk.frames_of(events, sdk_version=version)
        ai_sdk.read(frames, version)
        assert not {"reset-step", "data-attempt-reset"} & {*ai_sdk.types(frames)}
        assert len(data_of(frames)) == 1
    wrong = [*text(0, "no"), ev.AttemptReset(2)]
    frames = to_ai_sdk(
        [ev.MessageStart(), ev.Custom("a", 1), ev.AttemptReset(1), *wrong, *turn(text(0, "Hi"))]
    )
    assert [part["type"] for part in ai_sdk.read(frames).parts[1:]] == ["data-a", "text"]


def test_data_stay_through_several_attempts() -> None:
    note, wrong, right = ev.Custom("a", 1), text(0, "no"), turn(text(0, "yes"))
    again = [ev.AttemptReset(1, choice=0), *wrong, ev.AttemptReset(2), *right]
    for events in (
        [ev.MessageStart(), note, *wrong, *again],
        [ev.MessageStart(), note, *again],
        [ev.MessageStart(), note, ev.MessageFinish(), *again],
        [note, *wrong, *again],
    ):
        parts = ai_sdk.read(to_ai_sdk(events)).parts
        shown = [part["type"] for part in parts if part["type"] != "step-start"]
        assert shown == ["data-a", "text"]


def test_data_that_are_kept_for_a_reset_are_bounded() -> None:
    encoder = rd.wire.AiSdkEncoder(limits=rd.Limits(blocks=3))
    for event in [ev.MessageStart(), *(ev.Custom("a", 1, "same") for _ in range(9))]:
        encoder.encode(event)
    encoder.encode(ev.Custom("a", 1))
    encoder.encode(ev.Custom("a", 1, transient=True))
    encoder.encode(ev.Custom("a", 1))
    with pytest.raises(rd.errors.LimitExceededError, match="parts"):
        encoder.encode(ev.Custom("a", 1))


def test_a_servers_own_data_are_the_applications() -> None:
    chunks = [
        {"type": "data-run", "data": {"km": 5}},
        {"type": "data-block", "data": [1]},
        {"type": "data-tool-update", "id": 3},
        {"type": "data-", "data": 1},
        {"type": "start"},
        {"type": "finish"},
        {"type": "data-late", "data": 2, "id": "x", "transient": True},
    ]
    back = decoded("ai-sdk", chunks)
    wanted = [ev.Custom("run", {"km": 5}), ev.Custom("block", [1]), ev.Custom("tool-update", None)]
    assert said_in(back) == [*wanted, ev.Custom("late", 2, "x", True)]
    assert [event.name for event in back if isinstance(event, ev.ProviderEvent)] == ["data-"]


# AG-UI.


@pytest.mark.parametrize(
    ("before", "note"),
    [
        ([], ev.Custom("STATE_DELTA", {"a": 1})),
        ([], ev.Custom("STATE_DELTA", [{"op": "add", "path": "a", "value": 1}])),
        ([], ev.Custom("STATE_DELTA", [{"op": "add", "path": "/a"}])),
        ([], ev.Custom("STATE_DELTA", None)),
        ([], ev.Custom("STEP_STARTED", {"stepName": "a"})),
        ([], ev.Custom("STEP_FINISHED", "a")),
        ([ev.Custom("STEP_STARTED", "a")], ev.Custom("STEP_STARTED", "a")),
        ([ev.Custom("STEP_STARTED", "a")], ev.Custom("STEP_FINISHED", "b")),
    ],
)
def test_what_the_protocol_would_not_allow_is_custom(before: Events, note: ev.Custom) -> None:
    frames = to_ag_ui([*before, note, *turn(text(0, "Hi"))])
    assert frames[1 + len(before)] == {"type": "CUSTOM", "name": note.name, "value": rd.core.thaw(note.data)}
    assert said_in(decoded("ag-ui", frames)) == [*before, note]


@pytest.mark.parametrize("error", [None, ValueError()])
def test_a_step_that_is_open_at_the_end_is_finished(error: Exception | None) -> None:
    begun = [ev.Custom("STEP_STARTED", "a"), ev.Custom("STEP_STARTED", "b"), ev.Custom("STEP_FINISHED", "a")]
    frames = to_ag_ui([*begun, *turn(text(0, "Hi"))], error=error)
    *_, last, _ = frames
    assert (last["type"], last["stepName"]) == ("STEP_FINISHED", "b")
    assert said_in(decoded("ag-ui", frames)) == begun


def test_the_state_of_another_run_comes_back_as_its_own() -> None:
    told = [
        *turn(text(0, "One.")),
        *within("side", [*turn(text(0, "Two.")), ev.Custom("STATE_SNAPSHOT", {})]),
    ]
    (back,) = said_in(decoded("ag-ui", to_ag_ui(told)))
    assert (back.name, back.run_id) == ("STATE_SNAPSHOT", "side")


def test_another_servers_events_are_the_applications_also_behind_the_end() -> None:
    start, end = [{"type": kind, "threadId": "t", "runId": "r"} for kind in ("RUN_STARTED", "RUN_FINISHED")]
    late = {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}
    odd = {"type": "CUSTOM", "name": "rxdelta.run", "value": {"km": 5}}
    blank = {"type": "CUSTOM", "name": "", "value": 1}
    back = decoded("ag-ui", [start, odd, blank, end, late, odd])
    notes = [ev.Custom("rxdelta.run", {"km": 5}), ev.Custom("STATE_SNAPSHOT", {"a": 1})]
    assert said_in(back) == [*notes, notes[0]]
    assert [event.name for event in back if isinstance(event, ev.ProviderEvent)] == ["CUSTOM"]


# LangChain.


def test_a_stream_may_begin_with_the_applications_data() -> None:
    chunks = langchain.sent(*turn(text(0, "Hi")))
    native = [event.to_dict() for event in [ev.Custom("a", 1), *turn(text(0, "Hi"))]]
    for first in ([{"event": "on_custom_event", "name": "a", "data": 1}, *chunks], native):
        back: list[rd.Event] = []
        rx.from_iterable(first).pipe(rd.decode("auto")).subscribe(back.append)
        assert rd.providers.detect(first[0]) == "langchain"
        assert said_in(back) == [ev.Custom("a", 1)]


def test_a_graphs_custom_data_are_the_applications() -> None:
    run = {"event": "on_custom_event", "name": "docs", "data": [1], "run_id": "r", "tags": [], "metadata": {}}
    params = {"namespace": ["outer:1"], "timestamp": 1, "data": {"payload": {"a": (1,)}}}
    items: list[Any] = [
        ("custom", {"status": "searching"}),
        (("outer:1",), "custom", "plain"),
        {"type": "custom", "ns": ["outer:1"], "data": {"name": "docs", "payload": 1}},
        {"type": "event", "method": "custom", "seq": 1, "params": params},
        ("custom", {"name": "docs", "payload": 1, "id": 5}),
        {**run, "parent_ids": []},
    ]
    assert said_in(decoded("langchain", items)) == [
        ev.Custom("custom", {"status": "searching"}),
        ev.Custom("custom", "plain"),
        ev.Custom("docs", 1),
        ev.Custom("custom", {"a": [1]}),
        ev.Custom("custom", {"name": "docs", "payload": 1, "id": 5}),
        ev.Custom("docs", [1]),
    ]


def test_langchains_own_reader_takes_the_data_by_their_name() -> None:
    decoders = pytest.importorskip("langgraph_sdk.stream.decoders")
    reader, told = decoders.ExtensionsDecoder("docs"), [ev.Custom("docs", [1], "d"), ev.Custom("other", 2)]
    seen = [one for frame in to_langchain([*turn(text(0, "Hi")), *told]) for one in reader.feed(frame)]
    assert seen == [{"name": "docs", "payload": [1], "id": "d"}]


# Our own form, requests, and messages from the browser.


def test_no_request_has_the_applications_data() -> None:
    blocks = [rd.ContentPart("text", "Let me see."), rd.ToolCall(call_id="c1", name="look", arguments={})]
    blocks[1] = attrs.evolve(blocks[1], result=rd.ToolResult("c1", "blue"))
    plain = rd.Message(role="assistant", blocks=blocks)
    said = attrs.evolve(plain, custom=[(n, ev.Custom("secret", "secret", str(n))) for n in range(4)])
    alone = rd.Message(role="assistant", custom=[(0, ev.Custom("secret", "secret"))])
    asked = rd.Message.of("user", "Well?")
    for wire_format in rd.requests.REQUEST_FORMATS:
        request = rd.to_request([asked, said, asked], wire_format)
        assert request == rd.to_request([asked, plain, asked], wire_format)
        assert "secret" not in json.dumps(rd.to_request([asked, alone], wire_format), default=repr)


def ui_message(*parts: Json, role: str = "assistant", **more: Any) -> Json:
    return {"id": "m1", "role": role, "parts": [*parts], **more}


def data_part(name: str, data: Any, own_id: str | None = None, **more: Any) -> Json:
    known = {} if own_id is None else {"id": own_id}
    return {"type": f"data-{name}", "data": data, **known, **more}


STEP: Json = {"type": "step-start"}
PROSE: Json = {"type": "text", "text": "Hi"}


def test_what_a_browser_sends_back_is_beside_the_content() -> None:
    run = {"type": "data-run", "id": "1", "data": {"runId": "main", "first": True}}
    first = [data_part("early", 1), STEP, data_part("a", 1, "x"), PROSE, data_part("custom-run", 2), run]
    second = [data_part("a", 2, "x"), STEP, PROSE, data_part("b", {"runId": "q", "subagent": True})]
    one, two = rd.from_ai_sdk([ui_message(*first, *second)])
    assert (one.text, two.text) == ("Hi", "Hi")
    assert one.custom_events == (ev.Custom("early", 1), ev.Custom("a", 2, "x"), ev.Custom("run", 2))
    assert two.custom_events == (ev.Custom("b", {"runId": "q", "subagent": True}),)
    assert [place["place"] for place in one.to_dict()["custom"]] == [0, 0, 1]


def test_a_failed_attempt_takes_no_data_with_it() -> None:
    reset = {"type": "data-attempt-reset", "id": "1", "data": {"attempt": 1}}
    (message,) = rd.from_ai_sdk([ui_message(STEP, PROSE, data_part("a", 1), reset, STEP, PROSE)])
    assert (message.text, message.custom_events) == ("Hi", (ev.Custom("a", 1),))
    assert message.to_dict()["custom"][0]["place"] == 0


def test_data_move_no_result_from_its_place() -> None:
    tool = {
        "type": "tool-web",
        "state": "output-available",
        "input": {},
        "output": 1,
        "providerExecuted": True,
    }
    late = {**tool, "toolCallId": "a", "resultProviderMetadata": {"rxdelta": {"place": 3}}}
    parts = [late, data_part("x", 1), {**tool, "toolCallId": "b"}, data_part("y", 2), PROSE]
    (message,) = rd.from_ai_sdk([ui_message(*parts)])
    (plain,) = rd.from_ai_sdk([ui_message(parts[0], parts[2], parts[4])])
    assert message.blocks == plain.blocks
    assert message.custom_events == (ev.Custom("x", 1), ev.Custom("y", 2))


def test_what_is_said_behind_the_last_text_is_behind_the_message() -> None:
    (message,) = rd.from_ai_sdk([ui_message(STEP, PROSE, STEP, data_part("a", 1))])
    assert (message.text, message.custom_events) == ("Hi", (ev.Custom("a", 1),))
    assert rd.from_ai_sdk([ui_message(STEP, data_part("a", 1))]) == []


@pytest.mark.slow
def test_the_data_of_a_browser_are_bounded() -> None:
    parts = [data_part("a", n) for n in range(rd.Limits().blocks)]
    assert len(rd.from_ai_sdk([ui_message(PROSE, *parts)])[0].custom_events) == len(parts)
    with pytest.raises(rd.errors.LimitExceededError, match="custom events"):
        rd.from_ai_sdk([ui_message(PROSE, *parts, PROSE, data_part("b", 1))])


# The clients.


def body(frames: Iterable[Any]) -> str:
    return "".join(rd.wire.sse_frame(frame).decode() for frame in frames)


def told_everywhere() -> list[list[rd.Event]]:
    replies = [*REPLIES.values(), *recorded(), [*AGENT[:-3]]]
    found = [everywhere(events, Random(seed)) for seed, events in enumerate(replies)]
    note = ev.Custom("status", [1], "1")
    return [*found, *([*AGENT[:place], note, *AGENT[place:]] for place in range(len(AGENT) + 1))]


@pytest.mark.slow
def test_the_ai_sdks_client_reads_data_at_every_place_and_sends_them_back() -> None:
    replies = told_everywhere()
    frames = [ai_sdk.frames_of(events) for events in replies]
    lines = [{"body": body(one), "split": 900 + n} for n, one in enumerate(frames)]
    for events, sent, seen in zip(replies, frames, ask("ai_sdk.mjs", lines), strict=True):
        ours = ai_sdk.read(sent)
        assert seen["invalid"] is None
        assert (seen["error"] is None) == (ours.ended != "error")
        assert seen["data"] == data_of(sent)
        kept = [part for part in seen["message"]["parts"] if part["type"].startswith("data-")]
        assert kept == [part for part in ours.parts if part["type"].startswith("data-")]
        back = [note for message in rd.from_ai_sdk([seen["message"]]) for note in message.custom_events]
        stored = [note for note in said_in(events) if not note.transient and note.run_id != "sub"]
        newest = {(note.name, note.id): note for note in stored if note.id is not None}
        wanted = without_runs([*newest.values(), *(note for note in stored if note.id is None)])
        assert sorted(map(repr, back)) == sorted(map(repr, wanted))


@pytest.mark.slow
@pytest.mark.parametrize(("client", "version"), [("1.0.0", "1.0"), ("0.0.59", None)])
def test_the_ag_ui_clients_read_data_at_every_place(client: str, version: str | None) -> None:
    replies = told_everywhere()
    options = [{"serialize_tool_calls": bool(n % 2), "version": version} for n in range(len(replies))]
    frames = [ag_ui.told(*events, **more) for events, more in zip(replies, options)]
    lines = [{"body": body_of_json(one), "client": client, "split": 900 + n} for n, one in enumerate(frames)]
    for events, sent, seen in zip(replies, frames, ask("ag_ui.mjs", lines), strict=True):
        ag_ui.read(sent)
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["custom"] == [frame for frame in sent if frame["type"] == "CUSTOM"]
        assert seen["state"] == state_after(said_in(events))


def body_of_json(frames: Iterable[Json]) -> str:
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)


def state_after(notes: Iterable[ev.Custom]) -> Json:
    state: Json = {}
    for note in notes:
        if note.name == "STATE_SNAPSHOT":
            state = {**note.data}
        elif note.name == "STATE_DELTA" and note.data and note.data not in VALUES:
            state["n"] = note.data[0]["value"]
    return state
