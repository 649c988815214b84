"""The rules of the AI SDK's UI message stream, and the message that a client makes of one.

Written from the schema and the reading code of `ai` 7; `tests/clients/ai_sdk.mjs` is the client itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import rxdelta as rd

__all__ = [
    "CALL",
    "DONE",
    "OUTPUT",
    "REQUIRED",
    "SERVER",
    "START",
    "STOP",
    "TEXT",
    "Client",
    "frames_of",
    "of_type",
    "read",
    "said_by",
    "said_in",
    "told",
    "types",
    "whole",
]

ev = rd.events

Json = dict[str, Any]
REASONS = {"stop", "length", "content-filter", "tool-calls", "error", "other"}
REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "start": {},
    "start-step": {},
    "finish-step": {},
    "reset-step": {},
    "text-start": {"id": str},
    "text-delta": {"id": str, "delta": str},
    "text-end": {"id": str},
    "reasoning-start": {"id": str},
    "reasoning-delta": {"id": str, "delta": str},
    "reasoning-end": {"id": str},
    "tool-input-start": {"toolCallId": str, "toolName": str},
    "tool-input-delta": {"toolCallId": str, "inputTextDelta": str},
    "tool-input-available": {"toolCallId": str, "toolName": str, "input": dict},
    "tool-input-error": {"toolCallId": str, "toolName": str, "input": (str, dict), "errorText": str},
    "tool-approval-request": {"approvalId": str, "toolCallId": str},
    "tool-approval-response": {"approvalId": str, "approved": bool},
    "tool-output-denied": {"toolCallId": str},
    "tool-output-available": {"toolCallId": str, "output": object},
    "tool-output-error": {"toolCallId": str, "errorText": str},
    "source-url": {"sourceId": str, "url": str},
    "source-document": {"sourceId": str, "mediaType": str, "title": str},
    "file": {"url": str, "mediaType": str},
    "custom": {"kind": str, "providerMetadata": dict},
    "data-block": {"id": str, "data": dict},
    "data-tool-update": {"id": str, "data": dict},
    "data-attempt-reset": {"id": str, "data": dict},
    "data-run": {"id": str, "data": dict},
    "message-metadata": {"messageMetadata": dict},
    "error": {"errorText": str},
    "finish": {"finishReason": str, "messageMetadata": dict},
    "abort": {},
}
SINCE_7 = {"reset-step", "custom", "tool-approval-response"}
SINCE_6 = {"tool-approval-request", "tool-output-denied"}
MARKED_SINCE_6 = {"tool-input-start", "tool-output-available", "tool-output-error"}
READY = {"input-available", "approval-requested", "approval-responded"}
OUTSIDE = {"start", "start-step", "reset-step", "message-metadata", "error", "finish", "abort"}
OUTSIDE |= {"data-tool-update", "data-attempt-reset", "data-run"}


class Client:
    """Takes frames, fails at the first that breaks a rule, and keeps the message."""

    def __init__(self, sdk_version: int = 7) -> None:
        self._sdk_version = sdk_version
        self.parts: list[Json] = []
        self.metadata: Json = {}
        self.ended: str | None = None
        self.done = False
        self._started = False
        self._in_step = False
        self._open: dict[tuple[str, str], Json] = {}
        self._calls: dict[str, Json] = {}

    def take(self, frame: Any) -> None:
        assert not self.done, "something behind DONE"
        if frame is rd.wire.DONE:
            assert self.ended, "DONE without an end"
            self.done = True
            return
        rd.wire.sse_frame(frame)
        kind = frame["type"]
        is_said = kind.startswith("data-") and kind not in REQUIRED  # by the application
        required = {"data": object} if is_said else REQUIRED[kind]
        for name, wanted in required.items():
            assert name in frame, frame
            assert isinstance(frame[name], wanted), frame
        for name, value in frame.items():
            assert value is not None or name in ("output", "data"), f"null in {frame}"
        assert self._sdk_version >= 7 or (kind not in SINCE_7 and "citations" not in frame), frame
        assert self._sdk_version >= 6 or kind not in SINCE_6, frame
        if self._sdk_version < 6:  # its client refuses a field that it doesn't know
            assert frame.keys().isdisjoint(
                {"title", "reason"} if kind.startswith(("tool", "abort")) else ()
            ), frame
            assert kind not in MARKED_SINCE_6 or "providerMetadata" not in frame, frame
        assert self.ended is None, f"{kind} behind {self.ended}"
        assert self._started or kind == "start", f"{kind} is first"
        assert (
            self._in_step or is_said or kind in OUTSIDE or kind.startswith(("tool-output", "tool-approval"))
        ), f"{kind} outside of a step"
        if is_said:
            assert self._sdk_version >= 7 or frame.keys() <= {"type", "id", "data", "transient"}, frame
            if frame.get("transient"):
                return
        step: Callable[[str, Json], None] = getattr(self, f"_{kind.replace('-', '_')}", self._part)
        step(kind, frame)

    def _start(self, _: str, frame: Json) -> None:
        assert not self._started, "U1: a second start"
        self._started = True
        self.metadata.update(frame.get("messageMetadata", {}))

    def _start_step(self, _: str, frame: Json) -> None:
        assert not self._in_step, "a step in a step"
        self._in_step = True
        self.parts.append({"type": "step-start"})

    def _finish_step(self, _: str, frame: Json) -> None:
        self._nothing_open()
        self._in_step = False

    def _nothing_open(self) -> None:
        assert not self._open, f"U2: {self._open} are open"
        streaming = [key for key, call in self._calls.items() if call["state"] == "input-streaming"]
        assert not streaming, f"U2: {streaming} are open"

    def _reset_step(self, _: str, frame: Json) -> None:
        self._in_step = True  # the client goes on in its last step, also if that has been finished
        while self.parts[-1]["type"] != "step-start":
            part = self.parts.pop()
            self._calls.pop(part.get("toolCallId", ""), None)
        self._open.clear()

    def _text_start(self, kind: str, frame: Json) -> None:
        key = kind.removesuffix("-start"), frame["id"]
        assert key not in self._open, f"U2: {key} is open already"
        self._open[key] = part = {"type": key[0], "text": "", **_metadata(frame)}
        self.parts.append(part)

    def _text_delta(self, kind: str, frame: Json) -> None:
        assert frame["delta"], "U12: an empty delta"
        self._open[kind.removesuffix("-delta"), frame["id"]]["text"] += frame["delta"]

    def _text_end(self, kind: str, frame: Json) -> None:
        self._open.pop((kind.removesuffix("-end"), frame["id"])).update(_metadata(frame))

    _reasoning_start, _reasoning_delta, _reasoning_end = _text_start, _text_delta, _text_end

    def _tool_input_start(self, _: str, frame: Json) -> None:
        assert frame["toolCallId"] not in self._calls, "U3: the call has begun already"
        self._calls[frame["toolCallId"]] = call = {**frame, "state": "input-streaming", "text": ""}
        self.parts.append(call)

    def _tool_input_delta(self, _: str, frame: Json) -> None:
        assert frame["inputTextDelta"], "U12: an empty delta"
        call = self._calls[frame["toolCallId"]]
        assert call["state"] == "input-streaming", "U3: the input has ended"
        call["text"] += frame["inputTextDelta"]

    def _tool_input_available(self, kind: str, frame: Json) -> None:
        call = self._calls.get(frame["toolCallId"])
        if call is None:
            self._calls[frame["toolCallId"]] = call = {}
            self.parts.append(call)
        else:
            taken_back = kind == "tool-input-error" and (call["state"] in READY or call.get("preliminary"))
            assert taken_back or call["state"] == "input-streaming", "U3: the input has ended"
        state = "input-available" if kind == "tool-input-available" else "output-error"
        call.update({**frame, "state": state})

    _tool_input_error = _tool_input_available

    def _tool_output_available(self, kind: str, frame: Json) -> None:
        call = self._calls[frame["toolCallId"]]
        going_on = call["state"] == "output-available" and call.get("preliminary")
        assert call["state"] in READY or going_on, f"U3: {kind} in state {call['state']}"
        call.pop("preliminary", None)
        call.update({**frame, "state": "output-error" if kind == "tool-output-error" else "output-available"})

    _tool_output_error = _tool_output_available

    def _tool_output_denied(self, kind: str, frame: Json) -> None:
        call = self._calls[frame["toolCallId"]]
        assert call["state"] in READY - {"input-available"}, f"U3: {kind} in state {call['state']}"
        assert "providerMetadata" not in frame, frame
        call["state"] = "output-denied"

    def _tool_approval_request(self, kind: str, frame: Json) -> None:
        call = self._calls[frame["toolCallId"]]
        early = call["state"] == "input-available" or call.get("preliminary")
        assert early, f"U3: {kind} in state {call['state']}"
        call.update(state="approval-requested", approval={"id": frame["approvalId"]})

    def _tool_approval_response(self, kind: str, frame: Json) -> None:
        (call,) = [
            one for one in self._calls.values() if one.get("approval", {}).get("id") == frame["approvalId"]
        ]
        call["state"], call["approval"] = "approval-responded", {**frame, "id": frame["approvalId"]}

    def _part(self, _: str, frame: Json) -> None:
        for known in self.parts:
            if known["type"] == frame["type"] and known.get("id") == frame.get("id") is not None:
                known["data"] = frame["data"]
                return
        self.parts.append(dict(frame))

    def _message_metadata(self, _: str, frame: Json) -> None:
        self.metadata.update(frame["messageMetadata"])

    def _finish(self, kind: str, frame: Json) -> None:
        self._nothing_open()
        assert not self._in_step, f"{kind} in a step"
        self.ended = kind
        assert frame.get("finishReason", "stop") in REASONS, "U7"
        self.metadata.update(frame.get("messageMetadata", {}))

    _abort = _error = _finish


def _metadata(frame: Json) -> Json:
    return {"ours": frame["providerMetadata"]["rxdelta"]} if "providerMetadata" in frame else {}


def read(frames: Iterable[Any], sdk_version: int = 7) -> Client:
    """A client that has read them all, to the end."""
    client = Client(sdk_version)
    for frame in frames:
        client.take(frame)
    assert client.done, "U8: no DONE"
    return client


def frames_of(events: Iterable[Any], error: Exception | None = None, **options: Any) -> list[Any]:
    """The frames of these events, and of how they end."""
    encoder = rd.wire.AiSdkEncoder(**options)
    frames = [frame for event in events for frame in encoder.encode(event)]
    frames += encoder.close() if error is None else encoder.fail(error)
    assert not encoder.close()
    assert not encoder.fail(ValueError())
    return frames


def said_in(message: rd.Message | rd.Snapshot) -> Json:
    """What a message says, as far as a UI message can say it, for comparing with `said_by`."""
    told = message.to_dict()
    blocks = _joined([_plain(block) for block in told.get("blocks", ())])
    known = {block.get("call_id") for block in blocks}
    outputs = [block for block in blocks if block["type"] == "server_tool_result"]
    attached = {
        block["options"]["tool_call_id"]: block
        for block in outputs
        if block["options"].get("tool_call_id") in known
    }
    streamed: list[Json] = []
    whole: list[Json] = []
    for block in blocks:  # what is told when it is whole may come in another order
        if block["type"] == "server_tool_result":
            if block not in attached.values():
                whole.append(block)
        elif block["type"] in ("text", "refusal", "reasoning") or "call_id" in block:
            streamed.append(block)
            if block["type"] == "server_tool_call" and block["call_id"] in attached:
                streamed.append(attached[block["call_id"]])
        else:
            whole.append(block)
    whole.sort(key=json.dumps)
    usage = {name: told.get("usage", {}).get(name) for name in ("input_tokens", "output_tokens")}
    return {name: told.get(name) for name in ("status", "model", "finish_reason")} | {
        "usage": usage,
        "streamed": streamed,
        "whole": whole,
    }


def said_by(ui_message: Json) -> Json:
    """What a UI message says once it is read for the next request."""
    (message,) = rd.from_ai_sdk([ui_message])
    return said_in(message)


def _joined(blocks: list[Json]) -> list[Json]:
    """The blocks, where neighbouring texts that carry nothing but text are one: the client has one part of them."""
    found: list[Json] = []
    for block in blocks:
        if found and all(
            one["type"] == "text" and one.keys() <= {"type", "text"} for one in (found[-1], block)
        ):
            text = found[-1].get("text", "") + block.get("text", "")
            found[-1] = {"type": "text", **({"text": text} if text else {})}
        else:
            found.append(block)
    return found


def _plain(block: Json) -> Json:
    block = {name: value for name, value in block.items() if name not in ("key", "index", "duration")}
    if block.get("text") == "":
        del block["text"]  # which says no more than none
    return block


# Events, and their frames.

DONE = rd.wire.DONE
START = ev.MessageStart("m1", "small")
STOP = ev.MessageFinish("stop")
TEXT = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi"), ev.BlockFinish(0)]
CALL = [
    ev.BlockStart(1, {"type": "tool_call", "id": "c1", "name": "look"}),
    ev.ToolCallDelta(1, '{"at": '),
    ev.ToolCallDelta(1, '"sea"}'),
    ev.BlockFinish(1),
]
SERVER = {"type": "server_tool_call", "id": "s1", "name": "web", "args": {"q": "x"}}
OUTPUT = {"type": "server_tool_result", "tool_call_id": "s1", "output": [1], "status": "success"}


def types(frames: list[Any]) -> list[str]:
    return ["DONE" if frame is DONE else frame["type"] for frame in frames]


def told(*events: Any, **options: Any) -> list[Any]:
    """The frames of a message with these events, without those of every message; rules held."""
    frames = frames_of([START, *events, STOP], **options)
    read(frames, options.get("sdk_version", 7))
    return frames[2:-3]


def of_type(kind: str, frames: list[Any]) -> list[Any]:
    return [frame for frame in frames if frame is not DONE and frame["type"] == kind]


def whole(content: Any, index: int = 1) -> list[Any]:
    return [ev.BlockStart(index, content), ev.BlockFinish(index)]
