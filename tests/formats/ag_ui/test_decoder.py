"""AG-UI's runs: what becomes of what, and that what `to_ag_ui` writes comes back."""

from __future__ import annotations

from typing import Any

import pytest
from support.ag_ui import frames_of
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.core import events as ev

Json = dict[str, Any]
START: Json = {"type": "RUN_STARTED", "threadId": "t1", "runId": "r1"}
END: Json = {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"}


def text(id: str, *pieces: str, **start: Any) -> list[Json]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, **start},
        *({"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": piece} for piece in pieces),
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def call(id: str, *pieces: str, **start: Any) -> list[Json]:
    return [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "f", **start},
        *({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": piece} for piece in pieces),
        {"type": "TOOL_CALL_END", "toolCallId": id},
    ]


def decoded(*chunks: Any) -> list[rd.Event]:
    """The events, which keep the protocol."""
    decoder, lifecycle = rd.providers.decoder("ag-ui"), rd.core.ProtocolChecker()
    made = [event for chunk in chunks for event in decoder.decode(chunk)]
    made += decoder.close()
    for event in made:
        assert lifecycle.check(event) in (None, "error_event"), event
    return made


def folded(*chunks: Any) -> rd.Snapshot:
    fold = rd.Fold()
    for event in decoded(*chunks):
        fold.step(event)
    return fold.snapshot


def blocks(*chunks: Any) -> list[Any]:
    return [(block.type, getattr(block, "text", None)) for block in folded(*chunks).blocks]


def test_chunks_begin_and_end_by_themselves() -> None:
    def chunk(kind: str, **fields: Any) -> Json:
        return {"type": f"{kind}_CHUNK", **fields}

    chunks = [
        chunk("REASONING_MESSAGE", messageId="r", delta="hm"),
        chunk("TEXT_MESSAGE", messageId="m1", delta="a"),
        chunk("TEXT_MESSAGE", delta="b"),
        chunk("TEXT_MESSAGE", messageId="m2", delta="c"),
        chunk("TOOL_CALL", toolCallId="c1", toolCallName="f", delta="{"),
        chunk("TOOL_CALL", delta="}"),
    ]
    snapshot = folded(START, *chunks, END)
    assert [(one.type, getattr(one, "text", None)) for one in snapshot.blocks] == [
        ("reasoning", "hm"),
        ("text", "ab"),
        ("text", "c"),
        ("tool_call", None),
    ]
    assert snapshot.tool_calls[0].status == "complete"


def test_reasoning_gets_what_only_its_provider_can_read() -> None:
    chunks = [
        {"type": "REASONING_START", "messageId": "s"},
        {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "hm"},
        {"type": "REASONING_MESSAGE_END", "messageId": "r"},
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "x"},
        {"type": "REASONING_END", "messageId": "s"},
        *call("c1", "{}"),
        {
            "type": "REASONING_ENCRYPTED_VALUE",
            "subtype": "tool-call",
            "entityId": "c1",
            "encryptedValue": "y",
        },
    ]
    thought, asked = folded(START, *chunks, END).blocks
    assert thought == rd.ContentPart("reasoning", "hm", {"signature": "x"})
    assert isinstance(asked, rd.ToolCall)
    assert asked.metadata == {"signature": "y"}


def test_a_snapshot_in_the_midst_of_a_run_replaces_what_it_said() -> None:
    snapshot = {
        "type": "MESSAGES_SNAPSHOT",
        "messages": [
            {"id": "u1", "role": "user", "content": "Well?"},
            {"id": "m1", "role": "assistant", "content": "Hello", "toolCalls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
            {"id": "t", "role": "tool", "toolCallId": "c1", "content": "ok"},
        ],
    }  # fmt: skip
    result = {"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c1", "content": "ok"}
    wrong = [*text("m1", "Hexe"), *call("c1", "{}", parentMessageId="m1"), result]
    message = folded(START, *wrong, snapshot, *text("m2", "Done."), END).to_message()
    assert message.text == "HelloDone."
    assert message.attempt == 1
    assert message.tool_calls[0].result == rd.ToolResult("c1", "ok")


def test_a_snapshot_before_a_run_has_said_anything_is_its_history() -> None:
    history = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "a", "role": "assistant", "content": "x"}]}
    events = decoded(START, history, *text("m1", "Hi"), END)
    assert isinstance(events[0], ev.ProviderEvent)
    assert not any(isinstance(event, ev.AttemptReset) for event in events)


def test_what_somebody_else_says_is_not_the_agents() -> None:
    assert blocks(START, *text("u1", "Well?", role="user"), *text("m1", "Hi"), END) == [("text", "Hi")]


def test_a_cancelled_run_is_an_interrupted_message() -> None:
    snapshot = folded(START, *text("m1", "Hi"), {**END, "outcome": {"type": "cancelled"}})
    assert snapshot.status == "interrupted"


def test_a_failed_run_is_the_providers_error() -> None:
    error = {"type": "RUN_ERROR", "message": "Oops", "code": "E1"}
    assert decoded(START, *text("m1", "Hi"), error, *text("m2", "no"))[-1] == ev.StreamError(
        "Oops", None, "E1"
    )


def test_usage_of_several_models_is_added_up() -> None:
    entries = [{"model": "a", "inputTokens": 1, "outputTokens": 2}, {"model": "b", "inputTokens": 3}]
    message = folded(START, *text("m1", "Hi"), {**END, "usage": entries}).to_message()
    assert message.usage == rd.TokenUsage(4, 2, {"usage": entries})
    assert message.model is None


def test_several_runs_are_a_conversation() -> None:
    events = decoded_runs(START, *text("m1", "a"), END, {**START, "runId": "r2"}, *text("m2", "b"), END)
    assert [event.id for event in events if isinstance(event, ev.MessageStart)] == ["m1", "m2"]


def decoded_runs(*chunks: Any) -> list[rd.Event]:
    decoder = rd.providers.decoder("ag-ui")
    return [event for chunk in chunks for event in decoder.decode(chunk)]


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ({"messageId": "m1"}, "type"),
        ({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m1", "delta": 1}, "delta"),
        ({"type": "TOOL_CALL_START", "toolCallId": ["c"]}, "toolCallId"),
        ({"type": "RUN_FINISHED", "outcome": "success"}, "outcome"),
        ({"type": "RUN_FINISHED", "usage": [1]}, "usage[0]"),
        ("RUN_STARTED", ""),
    ],
)
def test_a_malformed_chunk_is_named(chunk: Any, path: str) -> None:
    decoder = rd.providers.decoder("ag-ui")
    decoder.decode(START)
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decoder.decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("ag-ui", path)


def test_a_run_that_was_stopped_is_an_interrupted_message_whatever_version_tells_it() -> None:
    cancelled = {**END, "outcome": {"type": "cancelled"}}
    told = {**END, "metadata": {"rxdelta": {"interrupted": True}}}
    for end in (cancelled, told):
        assert decoded(START, *text("m1", "Hi"), end)[-1] == ev.MessageInterrupted()


@pytest.mark.parametrize("history", [None, []], ids=["no history", "history"])
def test_what_to_ag_ui_takes_back_is_taken_back(history: list[Json] | None) -> None:
    def part(index: int, *pieces: str) -> list[rd.Event]:
        deltas = [ev.TextDelta(index, piece) for piece in pieces]
        return [ev.BlockStart(index, {"type": "text"}), *deltas, ev.BlockFinish(index)]

    request = {"threadId": "t1", "runId": "r1", "messages": history}
    call = [
        ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "f", "args": {}}),
        ev.BlockFinish(1),
        ev.MessageFinish("tool_use"),
        ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok")),
    ]
    failed = [ev.MessageStart("m2"), *part(0, "Hel"), *part(1, "x"), ev.AttemptReset(1)]
    wrong = [*part(0, "Hexe")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    events = [ev.MessageStart("m1"), *part(0, "One moment."), *call, *failed]
    events += [ev.MessageStart("m2"), *wrong, *part(1, "!"), ev.MessageFinish("stop")]
    back = folded(*frames_of(rd.wire.AgUiEncoder(request), events)).to_message()
    assert back.text == "One moment.Hello!"
    (call_,) = back.tool_calls
    assert call_.result == rd.ToolResult("c1", "ok")


CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]


@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
def test_what_to_ag_ui_writes_of_a_recorded_stream_comes_back(wire_format: str, chunks: list[Any]) -> None:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
    events = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    for event in events:
        if isinstance(event, ev.StreamError):
            return
        fold.step(event)
    if fold.snapshot.status == "incomplete":
        return
    message = fold.snapshot.to_message()
    encoder = rd.wire.AgUiEncoder(thread_id="t1", run_id="r1", provider_items=True)
    back = folded(*frames_of(encoder, events)).to_message()
    assert (back.text, back.reasoning) == (message.text, message.reasoning)
    assert (back.status, back.finish_reason) == (message.status, message.finish_reason)
    assert [one for one in back.blocks if isinstance(one, rd.ToolCall)] == [
        one for one in message.blocks if isinstance(one, rd.ToolCall)
    ]
    assert signatures(back) == signatures(message)


def signatures(message: rd.Message) -> list[Any]:
    """What providers want back, in its place."""
    return [
        (part.type, part.options.get("signature"), part.options.get("encrypted_content"), part.options.get("data"))
        for part in message.blocks
        if isinstance(part, rd.ContentPart) and part.options.keys() & {"signature", "encrypted_content", "data"}
    ]  # fmt: skip
