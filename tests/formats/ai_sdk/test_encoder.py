"""The UI message stream of the AI SDK: its rules one by one, over anything, over every recorded reply, and its client.

`tests/formats/test_clients_on_recordings.py` has what the clients show of every recorded reply.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
import reactivex as rx
from core.strategies import event_of_any_run, events as any_event, every_event, fold
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from reactivex import compose
from support.ai_sdk import (
    CALL,
    DONE,
    START,
    STOP,
    TEXT,
    Client,
    frames_of,
    of_type,
    read,
    said_in,
    told,
    types,
    whole,
)
from support.clients import ask
from support.shared import recordings

import rxdelta as rd

ev = rd.events


# Rule by rule.


def test_u1_it_starts_once_with_the_id_that_is_given_and_a_conversation_is_of_steps() -> None:
    two = [START, *TEXT, STOP, ev.MessageStart("m2"), *TEXT, STOP]
    frames = frames_of(two, message_id="ui")
    assert frames[0] == {"type": "start", "messageId": "ui", "messageMetadata": {"model": "small"}}
    step = ["start-step", "text-start", "text-delta", "text-end", "finish-step"]
    assert types(frames) == ["start", *step, *step, "finish", "DONE"]


@pytest.mark.parametrize("id", ["m1", None])
def test_u1_a_start_after_the_end_is_another_message_whatever_its_id(id: str | None) -> None:
    def turn(said: str) -> list[Any]:
        text = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, said), ev.BlockFinish(0)]
        return [ev.MessageStart(id), *text, STOP]

    client = read(frames_of([*turn("first"), *turn("second")]))
    assert [part["text"] for part in client.parts if part["type"] == "text"] == ["first", "second"]


def test_u1_a_start_after_the_end_without_one_of_its_own_was_cut_off() -> None:
    assert types(frames_of([START, STOP, START]))[-2:] == ["error", "DONE"]


def test_u1_without_an_id_the_client_keeps_its_own() -> None:
    assert "messageId" not in frames_of([START, STOP])[0]


def test_u2_parts_have_ids_of_their_own_and_may_overlap() -> None:
    blocks = [ev.BlockStart(n, {"type": kind}) for n, kind in enumerate(["text", "reasoning", "text"])]
    deltas = [ev.TextDelta(2, "c"), ev.ReasoningDelta(1, "b"), ev.TextDelta(0, "a")]
    client = read(frames_of([START, *blocks, *deltas, STOP]))
    assert [(part["type"], part["text"]) for part in client.parts[1:]] == [
        ("text", "a"),
        ("reasoning", "b"),
        ("text", "c"),
    ]


def test_u2_what_is_open_is_closed_before_its_step() -> None:
    frames = told(ev.BlockStart(0, {"type": "text", "text": "Hi"}), CALL[0])
    assert (
        types(frames)
        == [
            "text-start",
            "text-delta",
            "tool-input-start",
            "text-end",
            "tool-input-available",
            "finish-step",
        ][:5]
    )


@pytest.mark.parametrize(
    ("reason", "more", "word"),
    [
        ("stop", [], "stop"),
        ("end_turn", [], "stop"),
        (None, [], "stop"),
        ("tool_use", [], "stop"),
        ("stop", CALL, "tool-calls"),
        ("length", CALL, "length"),
        ("content_filter", [], "content-filter"),
    ],
)
def test_u7_the_reason_is_one_that_the_client_knows(reason: str | None, more: list[Any], word: str) -> None:
    frames = frames_of([START, *more, ev.MessageFinish(reason)])
    assert frames[-2]["finishReason"] == frames[-2]["messageMetadata"]["finishReason"] == word


def test_u8_an_error_closes_what_is_open_and_says_nothing_by_itself(caplog: pytest.LogCaptureFixture) -> None:
    secret = ValueError("sk-secret")
    frames = frames_of([START, *TEXT[:2], *CALL[:2]], secret)
    assert types(frames)[-6:] == [
        "text-end",
        "tool-input-error",
        "finish-step",
        "message-metadata",
        "error",
        "DONE",
    ]
    assert "sk-secret" not in repr(frames)
    assert of_type("error", frames)[0]["errorText"] == rd.wire.MASKED
    assert of_type("message-metadata", frames)[0]["messageMetadata"]["status"] == "incomplete"
    assert [record.exc_info[1] for record in caplog.records if record.exc_info] == [secret]
    assert {record.name for record in caplog.records} == {"rxdelta.wire"}


def test_u8_an_error_behind_the_message_leaves_it_complete() -> None:
    frames = frames_of([START, *CALL, STOP], ValueError("tools"))
    assert types(frames)[-3:] == ["message-metadata", "error", "DONE"]
    assert frames[-3]["messageMetadata"]["status"] == "complete"


def test_u8_the_caller_says_what_may_be_known() -> None:
    frames = frames_of([START, *TEXT[:2]], ValueError("busy"), on_error=lambda error: f"sorry: {error}")
    assert frames[-2] == {"type": "error", "errorText": "sorry: busy"}


def test_u8_a_function_that_fails_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def fail(error: Exception) -> str:
        raise ZeroDivisionError

    assert frames_of([START], ValueError("x"), on_error=fail)[-2]["errorText"] == rd.wire.MASKED
    assert len(caplog.records) == 1


def test_u8_an_error_of_the_provider_is_one_too() -> None:
    seen: list[Exception] = []
    frames = frames_of(
        [START, ev.StreamError("full", "overloaded"), *TEXT],
        on_error=lambda error: seen.append(error) or "no",
    )
    assert types(frames)[-2:] == ["error", "DONE"]
    assert [(type(error), str(error)) for error in seen] == [(rd.ProviderError, str(seen[0]))]


@pytest.mark.parametrize("events", [[], [START], [START, *TEXT], [START, *TEXT, STOP, ev.MessageStart("m2")]])
def test_u8_a_stream_that_ends_too_early_was_cut_off(events: list[Any]) -> None:
    seen: list[Exception] = []
    frames = frames_of(events, on_error=lambda error: seen.append(error) or "cut")
    read(frames)
    assert types(frames)[-2:] == ["error", "DONE"]
    assert isinstance(seen[0], rd.StreamInterrupted)


def test_u9_a_stop_is_an_abort_and_what_came_is_kept() -> None:
    late = ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", "stopped", is_error=True))
    frames = frames_of([START, *CALL, *TEXT[:2], ev.MessageInterrupted("user"), late, *TEXT])
    client = read(frames)
    assert types(frames)[-5:] == ["finish-step", "tool-output-error", "message-metadata", "abort", "DONE"]
    assert frames[-2] == {"type": "abort", "reason": "user"}
    assert client.metadata["status"] == "interrupted"


def test_u10_an_attempt_that_failed_is_taken_back() -> None:
    usage = rd.TokenUsage(3, 2)
    frames = frames_of(
        [
            START,
            *TEXT,
            *CALL,
            ev.AttemptReset(1, "busy", usage),
            ev.MessageStart("m2", "large"),
            *TEXT,
            *CALL,
            STOP,
        ]
    )
    client = read(frames)
    assert types(frames).count("reset-step") == 1
    assert [part["type"] for part in client.parts] == ["step-start", "text", "tool-input-available"]
    assert client.metadata["model"] == "large"
    assert client.metadata["usage"] == {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}


@pytest.mark.parametrize("version", [5, 6])
def test_u10_an_older_client_is_told_to_hide_it(version: int) -> None:
    reset = [START, *TEXT[:2], CALL[0], ev.AttemptReset(1), ev.MessageStart("m2"), *TEXT, STOP]
    frames = frames_of(reset, sdk_version=version)
    client = read(frames, version)
    assert [part["type"] for part in client.parts] == [
        "step-start",
        "text",
        "tool-input-error",
        "data-attempt-reset",
        "step-start",
        "text",
    ]
    assert client.parts[3]["data"] == {"attempt": 1}


@pytest.mark.parametrize("version", [5, 6, 7])
def test_u10_there_is_nothing_to_take_back_where_nothing_was_told(version: int) -> None:
    frames = frames_of([START, ev.AttemptReset(1), START, STOP], sdk_version=version)
    assert types(frames) == ["start", "start-step", "finish-step", "finish", "DONE"]


def test_u10_a_failed_attempt_of_the_next_request_leaves_the_message_before_it() -> None:
    frames = frames_of([START, *TEXT, STOP, ev.AttemptReset(1, None, rd.TokenUsage(1, 1)), START])
    assert "reset-step" not in types(frames)
    failed = [START, *TEXT, STOP, ev.MessageStart("m2"), *TEXT, ev.AttemptReset(1), START, *TEXT, STOP]
    assert [part["type"] for part in read(frames_of(failed)).parts] == ["step-start", "text"] * 2


@pytest.mark.parametrize(("version", "texts"), [(7, ["new"]), (6, ["Hi", "new"])])
def test_u10_a_reset_that_names_the_choice_takes_a_finished_step_back(version: int, texts: list[str]) -> None:
    reset, told = ev.AttemptReset(1, None, rd.TokenUsage(3, 2), choice=0), ev.BlockFinish(0, {"text": "new"})
    frames = frames_of([START, *TEXT, *CALL, STOP, reset, START, told, STOP], sdk_version=version)
    client = read(frames, version)
    assert [part["text"] for part in client.parts if part["type"] == "text"] == texts
    assert ("data-attempt-reset" in types(frames)) is (version == 6)
    assert client.metadata["finishReason"] == "stop"
    assert client.metadata["usage"]["totalTokens"] == 5


def test_u10_a_reset_of_the_next_attempt_by_its_choice_leaves_the_message_before_it() -> None:
    failed = [ev.AttemptReset(1), ev.AttemptReset(2, choice=0)]
    client = read(frames_of([START, *TEXT, STOP, *failed, START, *TEXT, STOP]))
    assert [part["type"] for part in client.parts] == ["step-start", "text"] * 2


def test_u10_a_message_of_which_only_a_failed_attempt_has_come_was_cut_off() -> None:
    assert types(frames_of([START, *TEXT, STOP, ev.AttemptReset(1)]))[-2:] == ["error", "DONE"]


def test_u9_a_stop_before_anything_ends_the_message() -> None:
    frames = frames_of([ev.MessageInterrupted("user"), *TEXT])
    assert types(frames) == ["start", "start-step", "finish-step", "message-metadata", "abort", "DONE"]


def test_nothing_begins_in_a_message_that_has_ended() -> None:
    frames = frames_of([START, STOP, *TEXT, ev.BlockFinish(1, {"text": "late"}), *CALL])
    assert types(frames) == ["start", "start-step", "finish-step", "finish", "DONE"]


def test_u11_a_message_that_was_cut_off_ends_its_step_where_another_begins() -> None:
    frames = frames_of([START, *TEXT[:2], ev.MessageStart("m2"), *TEXT, STOP])
    assert [part["text"] for part in read(frames).parts if part["type"] == "text"] == ["Hi", "Hi"]


def test_u13_usage_is_of_all_messages_and_nothing_is_made_up() -> None:
    usage = ev.UsageUpdate(rd.TokenUsage(2, 3))
    frames = frames_of([START, usage, STOP, ev.MessageStart("m2"), usage, STOP])
    assert frames[-2]["messageMetadata"] == {
        "status": "complete",
        "finishReason": "stop",
        "usage": {"inputTokens": 4, "outputTokens": 6, "totalTokens": 10},
    }
    assert "usage" not in frames_of([START, STOP])[-2]["messageMetadata"]
    only = frames_of([START, ev.UsageUpdate(rd.TokenUsage(2, None)), STOP])[-2]["messageMetadata"]
    assert only["usage"] == {"inputTokens": 2}


@pytest.mark.parametrize("version", [5, 7])
def test_u13_usage_counts_as_the_sdk_does_and_comes_back_as_the_provider_does(version: int) -> None:
    billed = {"input_tokens": 99, "output_tokens": 4, "cache_read_tokens": 90, "output_reasoning_tokens": 0}
    usage = rd.TokenUsage(9, 4, cache_read_tokens=90, reasoning_tokens=0, billed=billed)
    other = rd.TokenUsage(1, 1, cache_write_tokens=1)
    events = [START, ev.UsageUpdate(usage), STOP, ev.MessageStart("m2"), ev.UsageUpdate(other), STOP]
    frames = frames_of(events, sdk_version=version)
    told = frames[-2]["messageMetadata"]["usage"]
    assert told == {
        "inputTokens": 100,
        "outputTokens": 5,
        "totalTokens": 105,
        "inputTokenDetails": {"cacheReadTokens": 90, "cacheWriteTokens": 1},
        "outputTokenDetails": {"reasoningTokens": 0},
        "cachedInputTokens": 90,
        "reasoningTokens": 0,
        "raw": {"inputTokens": 10, "outputTokens": 5},
    }
    decoder = rd.providers.decoder("ai-sdk")
    read_back = [event for frame in frames[:-1] for event in decoder.decode(frame)]
    (back,) = (event.usage for event in read_back if isinstance(event, ev.UsageUpdate))
    assert (back.input_tokens, back.output_tokens, back.cache_read_tokens) == (10, 5, 90)
    assert back.billed == usage.add(other).billed


def test_u13_metadata_of_your_own_come_with_the_start() -> None:
    assert frames_of([START, STOP], metadata={"at": 1})[0]["messageMetadata"] == {"at": 1, "model": "small"}


# What becomes of each kind of block.


def test_events_of_other_choices_and_of_the_provider_are_not_told() -> None:
    other = [ev.BlockStart(0, {"type": "text"}, choice=1), ev.TextDelta(0, "no", choice=1)]
    assert told(*other, ev.ProviderEvent("x", "y", {})) == []
    frames = frames_of([ev.MessageStart(choice=1), *other, ev.MessageFinish("stop", choice=1)], choice=1)
    assert read(frames).parts[-1]["text"] == "no"


@pytest.mark.parametrize(
    ("limits", "event"),
    [
        ({"blocks": 2}, ev.BlockStart(2, {"type": "text"})),
        ({"index": 2}, ev.BlockStart(2, {"type": "text"})),
        ({"block_chars": 3}, ev.TextDelta(0, "there")),
        ({"block_chars": 3}, ev.BlockFinish(1, {"type": "text", "text": "there"})),
    ],
)
def test_too_much_is_refused_and_what_came_is_closed(limits: dict[str, int], event: rd.Event) -> None:
    encoder = rd.wire.AiSdkEncoder(limits=rd.Limits(**limits), on_error=str)
    frames = [frame for one in [START, *TEXT[:2], CALL[0]] for frame in encoder.encode(one)]
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        encoder.encode(event)
    frames += encoder.fail(caught.value)
    assert "text-end" in types(frames)
    assert of_type("error", frames)[0]["errorText"] == str(caught.value)
    read(frames)


def test_a_limit_of_the_pipeline_is_an_error_of_the_stream() -> None:
    encoded = compose(
        rd.to_ai_sdk(on_error=lambda error: type(error).__name__), rd.with_limits(rd.Limits(block_chars=1))
    )
    frames = rx.from_iterable([START, *TEXT, STOP]).pipe(encoded, rx.operators.to_list()).run()
    assert frames[-2:] == [{"type": "error", "errorText": "LimitExceededError"}, DONE]


def test_the_headers_are_those_of_the_reference() -> None:
    headers = rd.wire.AI_SDK_HEADERS
    assert headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert headers["content-type"].startswith("text/event-stream")


# Over anything, and over every recorded reply.

streams = st.lists(st.one_of(any_event(), any_event(), every_event), max_size=25)


def frames_of_anything(events: list[Any], error: Exception | None, **options: Any) -> list[Any]:
    return frames_of(events, error, on_error=lambda error: "An error.", **options)


@pytest.mark.slow
@given(
    streams | st.lists(event_of_any_run, max_size=25),
    st.sampled_from([5, 6, 7]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([None, ValueError("x")]),
)
def test_no_order_of_events_breaks_a_rule(
    events: list[Any], version: int, reasoning: bool, more: bool, error: Exception | None
) -> None:
    options = {"provider_items": more, "sources": "results" if more else "cited"}
    read(frames_of_anything(events, error, sdk_version=version, reasoning=reasoning, **options), version)


@pytest.mark.slow
@given(streams)
def test_what_the_client_reads_keeps_the_events_promise_when_decoded(events: list[Any]) -> None:
    decoder, promise = rd.providers.decoder("ai-sdk"), rd.core.ProtocolChecker()
    for frame in frames_of_anything(events, None)[:-1]:
        for event in decoder.decode(frame):
            if isinstance(event, ev.MessageStart) and promise.close() is None:
                promise = rd.core.ProtocolChecker()  # the next message
            assert promise.check(event) in (None, "error_event"), event


def recorded() -> list[Any]:
    return [
        pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in rd.providers.FORMATS
        if wire_format not in ("ag-ui", "ai-sdk", "langchain")  # of which none was recorded
        for case in recordings(wire_format)
    ]


@cache
def _events(wire_format: str, chunks: str) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    events = [event for chunk in json.loads(chunks) for event in decoder.decode(chunk)]
    return [*events, *decoder.close()]


def events_of(wire_format: str, chunks: list[Any]) -> list[rd.Event]:
    """The events of a recorded reply, up to an error."""
    events = _events(wire_format, json.dumps(chunks))
    ends = [place for place, event in enumerate(events) if isinstance(event, ev.StreamError)]
    return events[: ends[0]] if ends else events


@pytest.mark.parametrize(("wire_format", "chunks"), recorded())
@pytest.mark.parametrize("version", [6, 7])
def test_a_recorded_reply_keeps_the_rules_and_comes_back(
    wire_format: str, chunks: list[Any], version: int
) -> None:
    events = events_of(wire_format, chunks)
    frames = frames_of_anything(events, None, sdk_version=version, provider_items=True)
    read(frames, version)
    reply = rd.core.thaw(fold(*[event for event in events if getattr(event, "choice", 0) == 0]).to_dict())
    snapshot = rd.Snapshot.from_dict(reply)
    if snapshot.status == "incomplete":
        return
    decoder = rd.providers.decoder("ai-sdk")
    back = fold(*[event for frame in frames[:-1] for event in decoder.decode(frame)])
    assert said_in(back) == said_in(snapshot)


@pytest.mark.parametrize(("wire_format", "chunks"), recorded())
def test_a_recorded_reply_that_is_cut_anywhere_shows_what_came(wire_format: str, chunks: list[Any]) -> None:
    events = [one for one in events_of(wire_format, chunks) if getattr(one, "choice", 0) == 0]
    for end in {1, 2, len(events) // 3, len(events) // 2, len(events) - 1}:
        client = read(frames_of_anything(events[:end], ValueError()))
        snapshot = fold(*events[:end])
        shown = "".join(part["text"] for part in client.parts if part["type"] == "reasoning")
        assert shown == snapshot.reasoning
        refusals = [block.text or "" for block in snapshot.blocks if block.type == "refusal"]
        texts = "".join(part["text"] for part in client.parts if part["type"] == "text")
        assert sorted(texts) == sorted(snapshot.text + "".join(refusals))


# The client itself.


def body(frames: list[Any]) -> str:
    return b"".join(rd.wire.sse_frame(frame) for frame in frames).decode()


@pytest.mark.slow
def test_the_client_takes_whatever_order_the_events_came_in() -> None:
    bodies: list[tuple[str, bool]] = []

    @settings(
        max_examples=150,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
        deadline=None,
    )
    @given(streams)
    def collect(events: list[Any]) -> None:
        frames = frames_of_anything(events, None)
        bodies.append((body(frames), "error" in types(frames)))

    collect()
    for answer, (_, failed) in zip(ask("ai_sdk.mjs", [{"body": one} for one, _ in bodies]), bodies):
        assert answer["error"] == ("Error: An error." if failed else None)
        assert answer["invalid"] is None


def test_the_client_reads_it_in_any_pieces_and_runs_each_call_once() -> None:
    text = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "é漢😀"), ev.BlockFinish(0)]
    frames = frames_of([START, *text, *CALL, STOP])
    answers = ask("ai_sdk.mjs", [{"body": body(frames), "split": split} for split in (1, 2, 3, 5)])
    for answer in answers:
        assert answer["message"]["parts"][1]["text"] == "é漢😀"
        assert answer["toolCalls"] == ["c1"]
        assert answer["finishReason"] == "tool-calls"


def test_the_client_runs_a_call_that_begins_again_once() -> None:
    result = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    (answer,) = ask("ai_sdk.mjs", [{"body": body(frames_of([START, *CALL, *CALL, result, STOP]))}])
    assert answer["toolCalls"] == ["c1"]
    assert [part.get("output") for part in answer["message"]["parts"]] == [None, "sea"]


def test_the_client_shows_a_call_that_is_taken_back_as_an_error() -> None:
    late = ev.BlockFinish(1, {"type": "invalid_tool_call", "error": "too late"})
    (answer,) = ask("ai_sdk.mjs", [{"body": body(frames_of([START, *CALL, late, STOP]))}])
    (part,) = [part for part in answer["message"]["parts"] if "toolCallId" in part]
    assert (part["state"], part["errorText"]) == ("output-error", "too late")
    assert (answer["error"], answer["invalid"]) == (None, None)
    (message,) = rd.from_ai_sdk([answer["message"]])
    assert [call.error for call in message.invalid_tool_calls] == ["too late"]


def test_the_client_drops_a_finished_step_that_is_taken_back() -> None:
    events = [START, *TEXT, *CALL, STOP, ev.AttemptReset(1, choice=0), ev.MessageStart("m2"), *TEXT, STOP]
    (answer,) = ask("ai_sdk.mjs", [{"body": body(frames_of(events))}])
    assert [part["type"] for part in answer["message"]["parts"]] == ["step-start", "text"]
    assert (answer["error"], answer["finishReason"]) == (None, "stop")


def test_the_client_drops_an_attempt_that_failed() -> None:
    frames = frames_of([START, *TEXT, *CALL[:2], ev.AttemptReset(1), ev.MessageStart("m2"), *TEXT, STOP])
    (answer,) = ask("ai_sdk.mjs", [{"body": body(frames)}])
    assert [part["type"] for part in answer["message"]["parts"]] == ["step-start", "text"]


def test_the_client_sends_back_what_the_next_request_needs() -> None:
    result = ev.ToolUpdate("c1", "completed", "Looked", rd.ToolResult("c1", {"seen": 1}))
    thought = whole({"type": "reasoning", "reasoning": "Hm.", "signature": "s"}, 0)
    turn = [START, *thought, *CALL, STOP, result, ev.MessageStart("m2"), *TEXT, STOP]
    (answer,) = ask("ai_sdk.mjs", [{"body": body(frames_of(turn))}])
    request = rd.to_request(rd.from_ai_sdk(answer["messages"]), "anthropic-messages")
    assert request["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "Well?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "s"},
                {"type": "tool_use", "id": "c1", "name": "look", "input": {"at": "sea"}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": '{"seen": 1}'}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Hi"}]},
    ]


def test_the_checker_bites() -> None:
    for wrong in (
        [{"type": "text-delta", "id": "1", "delta": "x"}],
        [{"type": "start"}, {"type": "start"}],
        [
            {"type": "start"},
            {"type": "start-step"},
            {"type": "text-start", "id": "1"},
            {"type": "finish-step"},
        ],
        [{"type": "start"}, {"type": "new"}],
        [{"type": "start", "messageId": None}],
        [{"type": "start"}, DONE],
    ):
        client = Client()
        with pytest.raises((AssertionError, KeyError)):
            for frame in wrong:
                client.take(frame)
