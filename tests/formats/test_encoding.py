"""What holds of every encoder's frames, whatever the events say."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
import pytest
from core.strategies import event_of_any_run, every_event
from hypothesis import HealthCheck, given, settings, strategies as st

import rxdelta as rd

ev = rd.events
WIRES: dict[str, Callable[[str], rd.wire.Encoder[Any]]] = {
    "ai-sdk 7": lambda said: rd.wire.AiSdkEncoder(
        message_id=f"m{said}", metadata={said: said}, on_error=lambda _: said
    ),
    "ai-sdk 5": lambda said: rd.wire.AiSdkEncoder(sdk_version=5, on_error=lambda _: said),
    "ag-ui": lambda said: rd.wire.AgUiEncoder(
        {"threadId": said, "runId": said, "protocolVersion": "1.0", "messages": [{"id": said, "role": said}]},
        provider_events=True,
        on_error=lambda _: said,
    ),
    "langchain": lambda said: rd.wire.LangChainEncoder(
        now=lambda: 0.0, new_id=lambda: said, namespace=[said], on_error=lambda _: said
    ),
    "openai-chat": lambda said: rd.wire.OpenAiChatEncoder(
        now=lambda: 0.0, new_id=lambda: said, tools=["g"], on_error=lambda _: said
    ),
    "openai-responses": lambda said: rd.wire.OpenAiResponsesEncoder(
        now=lambda: 0.0, new_id=lambda: said, tools=["g"], on_error=lambda _: said
    ),
    "anthropic-messages": lambda said: rd.wire.AnthropicMessagesEncoder(
        now=lambda: 0.0, new_id=lambda: said, tools=["g"], on_error=lambda _: said
    ),
    "ollama": lambda said: rd.wire.OllamaEncoder(now=lambda: 0.0, tools=["g"], on_error=lambda _: said),
}
NASTY = [
    "\ud83d",
    "\ude00",
    "\ude00|\ud83d",
    "\0",
    "\x1b[2J",
    "\u2028",
    '"\r\n\r\ndata: [DONE]\n\n',
    "\\ud83d",
]
KEPT = frozenset(["type", "execution_status", "choice", "reason"])
"""What a value says, not what somebody has written."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def spoilt(value: Any, nasty: str) -> Any:
    """The same value with this at the end of each of its strings."""
    if isinstance(value, str):
        return value + nasty
    if isinstance(value, Mapping):
        return {
            (key if key in KEPT or key.isalpha() else key + nasty): one if key in KEPT else spoilt(one, nasty)
            for key, one in value.items()
        }
    return [spoilt(one, nasty) for one in value] if isinstance(value, (list, tuple)) else value


def spoilt_event(event: rd.Event, nasty: str) -> rd.Event:
    fields = {one.name: getattr(event, one.name) for one in attrs.fields(type(event))}
    more = {
        name: attrs.evolve(value, raw=spoilt(value.raw, nasty))
        if isinstance(value, rd.TokenUsage)
        else attrs.evolve(value, content=spoilt(value.content, nasty))
        if isinstance(value, rd.ToolResult)
        else spoilt(value, nasty)
        for name, value in fields.items()
        if name not in KEPT
    }
    return attrs.evolve(event, **more)


def frames_of(encoder: rd.wire.Encoder[Any], events: list[rd.Event]) -> list[Any]:
    frames: list[Any] = []
    for event in events:
        try:
            frames += encoder.encode(event)
        except rd.RxDeltaError as error:
            frames += encoder.fail(error)
    return [*frames, *encoder.close()]


def strictly(data: bytes) -> Any:
    """What one event holds: one line of UTF-8, which is JSON that every parser takes, or the end."""
    assert data.startswith(b"data: ")
    assert data.endswith(b"\n\n")
    body = data[len(b"data: ") : -2]
    assert b"\n" not in body
    assert b"\r" not in body
    if body == b"[DONE]":
        return None
    found = json.loads(body.decode("utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    json.dumps(found, ensure_ascii=False).encode("utf-8")  # an escaped lone surrogate is none either
    return found


OPEN: list[rd.Event] = [
    ev.BlockStart(0, {"type": "text"}),
    ev.BlockStart(1, {"type": "reasoning"}),
    ev.BlockStart(2, {"type": "tool_call_chunk", "id": "c1", "name": "f"}),
    ev.BlockStart(3, {"type": "image"}),
    ev.BlockStart("a", {"type": "server_tool_call_chunk", "id": "c2", "name": "g"}),
    ev.BlockStart("b", {"type": "new"}),
]


@pytest.mark.parametrize("wire", WIRES)
@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(every_event, max_size=12) | st.lists(event_of_any_run, max_size=12), st.sampled_from(NASTY))
def test_whatever_the_strings_hold_each_frame_is_one_event_of_strict_json(
    wire: str, events: list[rd.Event], nasty: str
) -> None:
    for frame in frames_of(WIRES[wire](nasty), [spoilt_event(event, nasty) for event in [*OPEN, *events]]):
        named = isinstance(frame, rd.wire.NamedFrame)
        strictly(
            rd.wire.sse_frame(frame).removeprefix(f"event: {frame['type']}\n".encode() if named else b"")
        )
        if isinstance(frame, dict):  # who sends frames otherwise sends text too
            json.dumps(frame, ensure_ascii=False).encode("utf-8")


FAILING: dict[str, Callable[[Callable[[Exception], str]], rd.wire.Encoder[Any]]] = {
    "ai-sdk": lambda on_error: rd.wire.AiSdkEncoder(on_error=on_error),
    "ag-ui": lambda on_error: rd.wire.AgUiEncoder(thread_id="t1", run_id="r1", on_error=on_error),
    "langchain": lambda on_error: rd.wire.LangChainEncoder(
        now=lambda: 0.0, new_id=lambda: "m1", on_error=on_error
    ),
    "openai-chat": lambda on_error: rd.wire.OpenAiChatEncoder(
        now=lambda: 0.0, new_id=lambda: "m1", on_error=on_error
    ),
    "openai-responses": lambda on_error: rd.wire.OpenAiResponsesEncoder(
        now=lambda: 0.0, new_id=lambda: "m1", on_error=on_error
    ),
    "anthropic-messages": lambda on_error: rd.wire.AnthropicMessagesEncoder(
        now=lambda: 0.0, new_id=lambda: "m1", on_error=on_error
    ),
    "ollama": lambda on_error: rd.wire.OllamaEncoder(now=lambda: 0.0, on_error=on_error),
}


@pytest.mark.parametrize("wire", FAILING)
def test_where_the_text_of_an_error_cannot_be_made_the_error_is_masked_and_both_are_logged(
    wire: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(error: Exception) -> str:
        raise ZeroDivisionError("in on_error")

    caplog.set_level("ERROR", "rxdelta.wire")
    frames = FAILING[wire](fail).fail(ValueError("of the stream"))
    assert rd.wire.MASKED in "".join(rd.wire.sse_frame(frame).decode() for frame in frames)
    assert len(caplog.records) == 1
    assert "in on_error" in caplog.text
    assert "of the stream" in caplog.text


TEXTS: dict[str, tuple[str, str]] = {
    "ai-sdk 7": ("text-delta", "delta"),
    "ag-ui": ("TEXT_MESSAGE_CONTENT", "delta"),
    "langchain": ("text-delta", "text"),
}


def told(frame: Mapping[str, Any], wire: str) -> str:
    """The piece of text in a frame."""
    kind, field = TEXTS[wire]
    delta: Any = frame["params"]["data"].get("delta", {}) if wire == "langchain" else frame
    return delta[field] if delta.get("type") == kind else ""


@pytest.mark.parametrize("wire", TEXTS)
@pytest.mark.parametrize("kind", ["text", "refusal"])
def test_a_character_that_comes_in_halves_is_told_whole_and_half_a_one_is_marked(
    wire: str, kind: str
) -> None:
    pieces = ["a\ud83d", "\ude00b", "\ude00", "c\ud83d"]
    events = [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": kind}),
        *(ev.TextDelta(0, piece) for piece in pieces),
        ev.BlockFinish(0),
        ev.MessageFinish("stop"),
    ]
    frames = [strictly(rd.wire.sse_frame(frame)) for frame in frames_of(WIRES[wire](""), events)]
    assert "".join(told(frame, wire) for frame in frames if frame) == "a😀b\ufffdc\ufffd"


START = ev.MessageStart
SAID = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "one")]
MORE = [ev.BlockStart(1, {"type": "text"}), ev.TextDelta(1, "two"), ev.MessageFinish("stop")]


MESSAGES: dict[str, Callable[[Any], object]] = {
    "ai-sdk 7": lambda frame: isinstance(frame, dict) and frame["type"] == "start-step" and id(frame),
    "ag-ui": lambda frame: frame.type.value == "TEXT_MESSAGE_START" and frame.message_id.partition("~")[0],
    "langchain": lambda frame: frame["params"]["data"].get("event") == "message-start" and id(frame),
}
"""What is another for each message."""


@pytest.mark.parametrize("wire", MESSAGES)
@pytest.mark.parametrize(
    ("events", "messages"),
    [
        pytest.param([START("m"), *SAID, START("m"), *MORE], 1, id="its own id again"),
        pytest.param([START("m"), *SAID, START("n"), *MORE], 2, id="another id"),
        pytest.param([START("m"), *SAID, START(), *MORE], 2, id="no id"),
        pytest.param([START(), *SAID, START(), *MORE], 2, id="neither has an id"),
        pytest.param([START("m"), START("n"), *SAID, *MORE], 1, id="before the first block"),
        pytest.param([*SAID, START("m"), *MORE], 1, id="the first one, late"),
    ],
)
def test_every_wire_begins_a_message_where_a_fold_refuses_the_start(
    wire: str, events: list[rd.Event], messages: int
) -> None:
    frames = frames_of(WIRES[wire]("x"), events)
    assert len({told for frame in frames if (told := MESSAGES[wire](frame))}) == messages
    fold = rd.Fold()
    if messages == 1:
        for event in events:
            fold.step(event)
    else:
        with pytest.raises(rd.ProtocolError, match="group_by_message"):
            for event in events:
                fold.step(event)


@pytest.mark.parametrize(
    "wrong", ["Hi", None, {"event": "message-start"}, rd.MessageDelta(content="Hi")], ids=repr
)
@pytest.mark.parametrize("wire", WIRES)
def test_what_is_no_event_is_refused(wire: str, wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match=r"events, and got|the encoder .* decode"):
        WIRES[wire]("").encode(wrong)
