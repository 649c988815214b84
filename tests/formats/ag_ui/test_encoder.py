"""AG-UI's rules one by one, for any events at all; and its own client on every recorded stream."""

from __future__ import annotations

import builtins
import json
from collections import Counter
from typing import Any

import pytest
from core.strategies import every_event
from hypothesis import HealthCheck, example, given, settings, strategies as st
from support.ag_ui import (
    ASKED,
    CLIENTS,
    body,
    call,
    encoder,
    frames_of,
    message,
    read,
    shown,
    text,
    thought,
    told,
    types,
    wanted,
)
from support.clients import ask
from support.shared import RECORDED, recordings

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


# The rules.


def test_g3_a_run_starts_first_with_the_requests_ids() -> None:
    (first,) = encoder().encode(ev.ProviderEvent("p", "ping"))
    assert (first.type.value, first.thread_id, first.run_id) == ("RUN_STARTED", "t1", "r1")  # type: ignore[attr-defined]


def test_g3_nothing_follows_the_end() -> None:
    for end in ("close", "fail"):
        one = encoder()
        one.encode(ev.MessageStart())
        assert one.fail(ValueError()) if end == "fail" else one.close()
        assert not one.encode(ev.MessageStart())
        assert not one.close()
        assert not one.fail(ValueError())


def test_g11_a_run_that_is_stopped_while_its_tools_run_is_cancelled_too() -> None:
    frames = told(*message(call(0, "c1"), reason="tool_use"), ev.MessageInterrupted())
    assert frames[-1]["outcome"] == {"type": "cancelled"}


def test_to_an_older_client_a_stopped_run_leaves_no_call_to_run() -> None:
    frames = told(*message(call(0, "c1", "{}"), reason="tool_use"), ev.MessageInterrupted(), version=None)
    client = read(frames)
    assert client.pending == []
    assert client.messages[1]["metadata"] == {"rxdelta": {"unrun": True}}
    assert frames[-1]["metadata"] == {"rxdelta": {"interrupted": True}}


def test_g11_a_run_that_is_stopped_before_its_message_begins_is_cancelled() -> None:
    frames = told(ev.MessageInterrupted())
    assert frames[-1]["outcome"] == {"type": "cancelled"}
    assert told(ev.MessageInterrupted(choice=1))[-1]["type"] == "RUN_ERROR"


def test_an_open_message_is_cut_off_by_the_next_one() -> None:
    first = [ev.MessageStart("m1"), *text(0, "One.")[:-1], *call(1, "c1", "{}")[:-1]]
    frames = told(*first, *message(text(0, "Two."), id="m2"))
    client = read(frames)
    assert shown(client.messages)["text"] == "One.Two."
    assert client.pending == []
    (answer,) = [one for one in client.messages if one["role"] == "tool"]
    assert answer["content"].endswith("the message broke off while the call was open")


@pytest.mark.parametrize(
    ("limits", "events"),
    [
        (rd.Limits(blocks=1), [*text(0, "Hi"), *text(1, "Ho")]),
        (rd.Limits(index=1), [*text(0, "Hi"), *text(1, "Ho")]),
        (rd.Limits(block_chars=3), text(0, "Hi", "Ho")),
        (rd.Limits(block_chars=3), [*text(0, "Hi"), ev.BlockStart(0, {"type": "text", "text": "Hello"})]),
        (rd.Limits(block_chars=3), [*text(0, "Hi"), ev.BlockFinish(0, {"type": "text", "text": "Hello"})]),
    ],
)
def test_beyond_a_limit_the_client_keeps_what_it_has(limits: rd.Limits, events: list[rd.Event]) -> None:
    seen: list[Exception] = []
    frames = told(
        ev.MessageStart("m1"), *events, limits=limits, on_error=lambda error: seen.append(error) or "x"
    )
    assert frames[-1] == {"type": "RUN_ERROR", "message": "x"}
    assert [type(error) for error in seen] == [rd.errors.LimitExceededError]
    assert shown(read(frames).messages)["text"] == "Hi"


def test_a_block_that_waits_for_a_call_is_limited_too() -> None:
    waiting = [
        *call(0, "c1")[:-1],
        ev.BlockStart(1, {"type": "text"}),
        ev.TextDelta(1, "Hi"),
        ev.TextDelta(1, "Ho"),
    ]
    one = encoder(serialize_tool_calls=True, limits=rd.Limits(block_chars=3))
    for event in waiting[:-1]:
        one.encode(event)
    with pytest.raises(rd.errors.LimitExceededError):
        one.encode(waiting[-1])


# What becomes of what.


def test_the_providers_own_events_pass_only_if_they_shall() -> None:
    native = ev.ProviderEvent("p", "ping", {"a": 1})
    assert "RAW" not in types(told(*message(), native))
    (raw,) = [f for f in told(*message(), native, provider_events=True) if f["type"] == "RAW"]
    assert (raw["source"], raw["event"]) == ("p", {"name": "ping", "payload": {"a": 1}})


def test_only_one_choice_is_told() -> None:
    other = [
        ev.MessageStart(choice=1),
        ev.BlockStart(0, {"type": "text"}, choice=1),
        ev.TextDelta(0, "no", choice=1),
    ]
    frames = told(*other, *message(text(0, "Hi")), ev.MessageFinish("stop", choice=1))
    assert shown(read(frames).messages)["text"] == "Hi"
    assert shown(read(told(*other, ev.MessageFinish("stop", choice=1), choice=1)).messages)["text"] == "no"
    assert told(*other)[-1]["type"] == "RUN_ERROR"


def test_ids_of_others_cannot_break_a_frame() -> None:
    nasty = 'a"\n\n\ud83d\r\u2028'
    frames = told(*message(text(0, "Hi"), call(1, nasty, "{}"), id=nasty))
    assert read(frames).messages[0]["id"] == 'a"\n\n\ufffd\r\u2028'


def test_an_error_is_masked_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("ERROR", "rxdelta.wire")
    assert told(error=ValueError("the key is hunter2"))[-1]["message"] == "An error occurred."
    assert "hunter2" in caplog.text
    assert told(error=ValueError("x"), on_error=lambda error: f"so: {error}")[-1]["message"] == "so: x"


def test_an_on_error_that_fails_tells_nothing() -> None:
    assert told(error=ValueError("x"), on_error=lambda error: 1 // 0)[-1]["message"] == "An error occurred."  # type: ignore[arg-type,return-value]


def test_a_stream_that_completes_too_early_was_cut_off() -> None:
    seen: list[Exception] = []
    assert (
        told(ev.MessageStart(), on_error=lambda error: seen.append(error) or "x")[-1]["type"] == "RUN_ERROR"
    )
    assert types(told()) == ["RUN_STARTED", "RUN_ERROR"]
    assert [type(error) for error in seen] == [rd.StreamInterrupted]


def test_without_the_package_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("ag_ui"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(ImportError, match=r"pip install 'rxdelta\[ag-ui\]'"):
        rd.to_ag_ui()


@pytest.mark.parametrize(
    "wrong",
    [{"thread_id": 1}, {"run_id": None}, {"choice": -1}, {"choice": True}, {"run_input": "t1"}, {"run_input": []}],
)  # fmt: skip
def test_an_argument_that_makes_no_sense_is_refused(wrong: Json) -> None:
    with pytest.raises(rd.InvalidValueError, match=next(iter(wrong))):
        rd.wire.AgUiEncoder(**{"thread_id": "t1", "run_id": "r1", **wrong})


# Any events at all.


def conversation(events: list[rd.Event]) -> list[rd.Snapshot]:
    """What the messages fold to, each ended; those that were taken back are gone."""
    folds = [rd.Fold(choice=0)]
    for event in events:
        if isinstance(event, ev.StreamError):
            break
        if isinstance(event, ev.ToolUpdate):  # a call whose tool has run keeps its arguments
            for one in folds:
                one.step(event)
            continue
        try:
            folds[-1].step(event)
        except rd.ProtocolError:  # another message begins
            folds.append(rd.Fold(choice=0))
            folds[-1].step(event)
    for one in folds:  # as the encoder ends them: the second half of a character won't come any more
        one.step(ev.MessageInterrupted(run_id=one.snapshot.run_id))
    return [one.snapshot for one in folds]


def counted(told: list[Json]) -> Json:
    """What was said, whatever its order. The output of a provider's tool may come before the call that it is of."""
    kinds = {"text": str, "reasoning": str, "calls": repr, "rest": str}
    found = {name: Counter(how(one) for each in told for one in each[name]) for name, how in kinds.items()}
    del found["rest"]["rxdelta.server_tool_result"]
    return found


lists_of_events = st.lists(every_event, max_size=25)


@example(
    [
        ev.BlockFinish("b", {"type": "tool_call_chunk", "id": "", "name": "f", "args": None}),
        ev.BlockFinish("b", {"type": "tool_call_chunk", "id": "c1", "name": "g", "args": None}),
    ],
    False,
)
@example([ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "\ud83d")], False)
@example(
    [
        *call(0, "c1", "{}"),
        ev.ToolUpdate("c1", "executing"),
        ev.BlockFinish(0, {"type": "tool_call", "args": "[1]"}),
    ],
    False,
)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(lists_of_events, st.booleans())
@pytest.mark.parametrize("version", ["1.0", None])
@pytest.mark.parametrize("history", [ASKED, None], ids=["history", "no history"])
def test_any_events_at_all_give_a_legal_run_that_says_what_they_fold_to(
    history: list[Json] | None, version: str | None, events: list[rd.Event], serialize: bool
) -> None:
    frames = told(
        *events, serialize_tool_calls=serialize, messages=history, version=version, provider_items=True
    )
    client = read(frames, ASKED)
    assert client.messages[0] == ASKED[0]
    assert counted([shown(client.messages)]) == counted([wanted(one) for one in conversation(events)])
    assert history is not None or "MESSAGES_SNAPSHOT" not in types(frames)


each_client = pytest.mark.parametrize("client", CLIENTS)


@pytest.mark.parametrize(
    "examples", [pytest.param(50, marks=pytest.mark.slow), pytest.param(500, marks=pytest.mark.soak)]
)
@each_client
@pytest.mark.parametrize("history", [ASKED, None], ids=["history", "no history"])
def test_the_real_clients_take_any_events_at_all_and_see_what_we_think_they_see(
    client: str, history: list[Json] | None, examples: int
) -> None:
    drawn: list[list[Json]] = []

    @settings(
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(lists_of_events)
    def draw(events: list[rd.Event]) -> None:
        drawn.append(told(*events, messages=history, version=CLIENTS[client]))

    draw()
    agree(drawn, client)


def in_javascript(value: Any) -> Any:
    """JavaScript has one kind of number, and writes a large one that is whole without a point."""
    return json.loads(json.dumps(value), parse_int=float)


def agree(runs: list[list[Json]], client: str, split: int | None = None) -> None:
    lines = [{"body": body(run), "messages": ASKED, "split": split, "client": client} for run in runs]
    for frames, seen in zip(runs, ask("ag_ui.mjs", lines), strict=True):
        known = read(frames, ASKED)
        assert seen["error"] is None
        assert seen["warnings"] == []
        assert in_javascript(seen["messages"]) == in_javascript(known.messages)
        if known.state == "finished" and seen["pending"] is not None:
            assert seen["pending"] == known.pending


@each_client
def test_the_real_clients_say_in_their_request_what_they_can_read(client: str) -> None:
    """A call for the client, a stop, and a retry, each encoded for the request that the client has sent."""
    asked = {"body": body(told(*message(text(0, "Hi")), version=None)), "messages": ASKED, "client": client}
    (first,) = ask("ag_ui.mjs", [asked])
    request = first["request"]
    assert request.get("protocolVersion") == CLIENTS[client]
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    runs: dict[str, list[rd.Event]] = {
        "call": message(text(0, "Hi"), call(1, "c1", "{}"), reason="tool_use"),
        "stop": [ev.MessageStart("m1"), *text(0, "Hi"), *call(1, "c1", "{}"), ev.MessageInterrupted("user")],
        "retry": [*failed, ev.AttemptReset(1), *message(text(0, "Hello"))],
    }
    inputs = [request, {**request, "messages": None}]
    told_ = [frames_of(rd.wire.AgUiEncoder(given), events) for given in inputs for events in runs.values()]
    lines = [{**asked, "body": body(frames)} for frames in told_]
    for which, frames, seen in zip([*runs, *runs], told_, ask("ag_ui.mjs", lines), strict=True):
        assert (seen["error"], seen["warnings"]) == (None, [])
        assert seen["messages"][0] == ASKED[0]
        assert seen["messages"] == read(frames, ASKED).messages
        said = shown(seen["messages"])
        assert said["text"] == {"call": "Hi", "stop": "Hi", "retry": "Hello"}[which]
        assert said["calls"] == ([] if which == "retry" else [("f", {})])


# Every recorded stream.

CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]


def decoded(wire_format: str, chunks: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


@pytest.mark.parametrize("serialize", [False, True], ids=["interleaved", "serialized"])
@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_a_recorded_stream_is_a_legal_run_that_says_its_message(
    wire_format: str, chunks: list[Any], serialize: bool
) -> None:
    events = decoded(wire_format, chunks)
    client = read(told(*events, serialize_tool_calls=serialize, provider_items=True))
    (message,) = conversation(events)
    assert shown(client.messages) == wanted(message)
    complete = message.status in ("complete", "length") and not any(
        isinstance(event, ev.StreamError) for event in events
    )
    assert client.state == ("finished" if complete else "failed")


@pytest.mark.parametrize(
    "every",
    [pytest.param(4, marks=pytest.mark.slow), pytest.param(1, marks=pytest.mark.soak, id="all")],
)
@each_client
@pytest.mark.parametrize("split", [None, 3], ids=["whole", "in three bytes"])
def test_the_real_clients_read_recorded_streams(split: int | None, client: str, every: int) -> None:
    first = [*CLIENTS].index(client) % every  # other ones for each client
    cases = [case for case in CASES if case.values[1] is not None][first::every]
    runs = [told(*decoded(*case.values), version=CLIENTS[client]) for case in cases]
    if split is not None:
        runs = [run for run in runs if len(json.dumps(run)) < 20_000]
    if not runs:
        pytest.skip("no streams here")
    agree(runs, client, split)
