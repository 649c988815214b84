"""The rules of AG-UI as its own clients hold them, and what these clients end up with.

Written from the client's `verifyEvents` and `defaultApplyEvents`; `tests/clients/ag_ui.mjs` is the client itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import rxdelta as rd

__all__ = [
    "ASKED",
    "CLIENTS",
    "AgUiClient",
    "body",
    "call",
    "encoder",
    "frames_of",
    "is_turn",
    "message",
    "read",
    "shown",
    "text",
    "thought",
    "told",
    "types",
    "wanted",
]

ev = rd.events
Json = dict[str, Any]
ASKED: list[Json] = [{"id": "u1", "role": "user", "content": "Well?"}]
CLIENTS = {"1.0.0": "1.0", "0.0.59": None}
"""The real clients, and the version of the protocol that each declares."""


class AgUiClient:
    """Takes frames as JSON, fails at the first that breaks a rule, and keeps the messages."""

    def __init__(self, messages: Iterable[Json] = ()) -> None:
        self.messages: list[Json] = json.loads(json.dumps([*messages]))
        self.state = "new"
        self.open: dict[str, set[str]] = {"text": set(), "call": set(), "span": set(), "reasoning": set()}
        self.started: list[str] = []
        self.answered: set[str] = set()
        self.frames: list[Json] = []
        self.subagents: dict[str, str] = {}  # `open` or how they ended
        self.owners: dict[tuple[str, str], str | None] = {}
        self.steps: set[tuple[str | None, str]] = set()
        self.said: list[tuple[str, Any]] = []

    def take(self, frame: Json) -> None:
        kind = frame["type"]
        nulls = [name for name, value in frame.items() if value is None]
        assert not set(nulls) - {"value", "snapshot"}, f"G9: null in {frame}"
        if self.state == "new":
            assert kind == "RUN_STARTED", f"G3: {kind} is first"
        else:
            assert self.state == "running", f"G3: {kind} after the end"
        self.frames.append(frame)
        self._check_owner(frame)
        step: Callable[[Json], None] = getattr(self, f"_{kind.lower()}")
        step(frame)

    def _check_owner(self, frame: Json) -> None:
        """G10: what an event continues belongs to the sub-agent, or to none, that opened it."""
        kind = frame["type"]
        if kind.startswith(("TEXT_MESSAGE", "REASONING", "TOOL_CALL")) and kind != "TOOL_CALL_RESULT":
            of_call = kind.startswith("TOOL_CALL") or frame.get("subtype") == "tool-call"
            own_id = frame.get("toolCallId" if of_call else "messageId", frame.get("entityId"))
            space = "call" if of_call else kind.partition("_")[0]
            owner = self.owners.setdefault((space, own_id), frame.get("subagentRunId"))
            assert owner == frame.get("subagentRunId"), f"G10: {frame} of {owner}"
            if kind == "TOOL_CALL_START":
                parent = self._message(frame["parentMessageId"])
                assert parent is None or parent.get("subagentRunId") == owner, "G10"

    def _subagent_started(self, frame: Json) -> None:
        assert frame["subagentRunId"] not in self.subagents
        assert frame.get("parentSubagentRunId", frame["subagentRunId"]) in {
            *self.subagents,
            frame["subagentRunId"],
        }
        self.subagents[frame["subagentRunId"]] = "open"

    def _subagent_finished(self, frame: Json) -> None:
        assert self.subagents[frame["subagentRunId"]] == "open"
        self.subagents[frame["subagentRunId"]] = frame["type"]

    _subagent_error = _subagent_finished

    def _message(self, id: str) -> Json | None:
        return next((message for message in self.messages if message["id"] == id), None)

    def _call(self, id: str) -> tuple[int, Json] | None:
        for place, message in enumerate(self.messages):
            for call in message.get("toolCalls", ()):
                if call["id"] == id:
                    return place, call
        return None

    @staticmethod
    def _keep(target: Json | None, frame: Json) -> None:
        if target is not None and "subagentRunId" in frame and "role" in target:
            target["subagentRunId"] = frame["subagentRunId"]
        if target is not None and "metadata" in frame:
            target["metadata"] = {**target.get("metadata", {}), **frame["metadata"]}

    def _enter(self, space: str, id: str) -> None:
        assert id not in self.open[space], f"{space} {id!r} is open already"
        self.open[space].add(id)

    def _leave(self, space: str, id: str) -> None:
        assert id in self.open[space], f"{space} {id!r} isn't open"
        self.open[space].remove(id)

    def _run_started(self, frame: Json) -> None:
        assert frame["threadId"]
        assert frame["runId"]
        assert frame.get("protocolVersion", "1.0") == "1.0"
        self.newer = "protocolVersion" in frame  # than 0.x
        self.state = "running"

    def _run_finished(self, frame: Json) -> None:
        assert not any(self.open.values()), f"G4: still open: {self.open}"
        assert "open" not in self.subagents.values(), f"G4: still open: {self.subagents}"
        assert not self.steps, f"G4: still open: {self.steps}"
        self.state = "finished"
        outcome = frame.get("outcome", {"type": "success"})
        assert self.newer or "outcome" not in frame or outcome["type"] == "interrupt", "fatal before 1.0"
        self.interrupts: list[Json] = outcome.get("interrupts", [])
        if outcome["type"] == "success":
            mine = [known for known in self.started if known not in self.answered]
            named = outcome.get("pendingToolCallIds", [])
            assert set(named) <= set(mine)
            self.pending = named or mine
        elif outcome["type"] == "interrupt":
            assert self.interrupts
            assert all(one["toolCallId"] not in self.answered for one in self.interrupts)
            assert len({one["id"] for one in self.interrupts}) == len(self.interrupts)
        else:
            assert outcome == {"type": "cancelled"}

    def _run_error(self, frame: Json) -> None:
        assert not any(self.open.values()), f"still open at the error: {self.open}"
        self.state = "failed"

    def _text_message_start(self, frame: Json) -> None:
        self._enter("text", frame["messageId"])
        known = self._message(frame["messageId"])
        if known is None:
            known = {"id": frame["messageId"], "role": frame.get("role", "assistant"), "content": ""}
            self.messages.append(known)
        assert known["role"] == "assistant"
        self._keep(known, frame)

    def _text_message_content(self, frame: Json) -> None:
        assert frame["messageId"] in self.open["text"], "G5"
        assert frame["delta"]
        known = self._message(frame["messageId"])
        assert known is not None
        known["content"] = known.get("content", "") + frame["delta"]

    def _text_message_end(self, frame: Json) -> None:
        self._leave("text", frame["messageId"])
        self._keep(self._message(frame["messageId"]), frame)

    def _reasoning_start(self, frame: Json) -> None:
        self._enter("span", frame["messageId"])

    def _reasoning_message_start(self, frame: Json) -> None:
        assert frame["messageId"] in self.open["span"], "G8"
        self._enter("reasoning", frame["messageId"])
        known = self._message(frame["messageId"])
        if known is None:
            known = {"id": frame["messageId"], "role": "reasoning", "content": ""}
            self.messages.append(known)
            self._keep(known, frame)
        assert known["role"] == "reasoning"

    def _reasoning_message_content(self, frame: Json) -> None:
        assert frame["messageId"] in self.open["reasoning"], "G8"
        assert frame["delta"]
        known = self._message(frame["messageId"])
        assert known is not None
        known["content"] += frame["delta"]

    def _reasoning_message_end(self, frame: Json) -> None:
        self._leave("reasoning", frame["messageId"])
        self._keep(self._message(frame["messageId"]), frame)

    def _reasoning_end(self, frame: Json) -> None:
        assert frame["messageId"] not in self.open["reasoning"], "G8"
        self._leave("span", frame["messageId"])

    def _reasoning_encrypted_value(self, frame: Json) -> None:
        entity = frame["entityId"]
        found = self._call(entity) if frame["subtype"] == "tool-call" else None
        target = found[1] if found is not None else self._message(entity)
        assert target is not None
        target["encryptedValue"] = frame["encryptedValue"]

    def _tool_call_start(self, frame: Json) -> None:
        call_id, parent_id = frame["toolCallId"], frame["parentMessageId"]
        self._enter("call", call_id)
        self.started += [] if call_id in self.started else [call_id]
        if self.newer:  # its server counts which calls wait for the client
            self.answered.discard(call_id)
        assert self._call(call_id) is None, "an call_id that the client has already"
        parent = self._message(parent_id)
        if parent is None:
            parent = {"id": parent_id, "role": "assistant", "toolCalls": []}
            self.messages.append(parent)
            self._keep(parent, {name: value for name, value in frame.items() if name == "subagentRunId"})
        assert parent["role"] == "assistant", "G6"
        call: Json = {"id": call_id, "type": "function"}
        call["function"] = {"name": frame["toolCallName"], "arguments": ""}
        self._keep(call, frame)
        parent.setdefault("toolCalls", []).append(call)

    def _tool_call_args(self, frame: Json) -> None:
        assert frame["toolCallId"] in self.open["call"], "G6"
        assert frame["delta"]
        found = self._call(frame["toolCallId"])
        assert found is not None
        found[1]["function"]["arguments"] += frame["delta"]

    def _tool_call_end(self, frame: Json) -> None:
        self._leave("call", frame["toolCallId"])
        found = self._call(frame["toolCallId"])
        assert found is not None
        self._keep(found[1], frame)

    def _tool_call_result(self, frame: Json) -> None:
        assert frame["toolCallId"] not in self.open["call"], "G7"
        assert self._message(frame["messageId"]) is None, "G7: a new id"
        self.answered.add(frame["toolCallId"])
        message = {"id": frame["messageId"], "role": "tool", "toolCallId": frame["toolCallId"]}
        message["content"] = frame["content"]
        self._keep(message, frame)
        found = self._call(frame["toolCallId"])
        assert found is not None
        place = found[0] + 1
        while place < len(self.messages) and self.messages[place]["role"] == "tool":
            place += 1
        self.messages.insert(place, message)

    def _activity_snapshot(self, frame: Json) -> None:
        message = {name: frame[name] for name in ("activityType", "content")}
        message |= {"id": frame["messageId"], "role": "activity"}
        message |= {name: frame[name] for name in ("metadata", "subagentRunId") if name in frame}
        for place, known in enumerate(self.messages):
            if known["id"] == frame["messageId"]:
                assert known["role"] == "activity" or frame["activityType"] == "rxdelta.discarded"
                self.messages[place] = message
                return
        self.messages.append(message)

    def _messages_snapshot(self, frame: Json) -> None:
        new = {message["id"]: message for message in json.loads(json.dumps(frame["messages"]))}
        assert len(new) == len(frame["messages"]), "G12: an id twice"
        no_reasoning = not any(message["role"] == "reasoning" for message in frame["messages"])
        self.messages = [
            new.pop(known["id"], known)
            for known in self.messages
            if known["id"] in new
            or known["role"] == "activity"
            or (known["role"] == "reasoning" and no_reasoning)
        ]
        self.messages += new.values()

    def _custom(self, frame: Json) -> None:
        if frame["name"].startswith("rxdelta."):
            assert frame["value"]
        else:
            self.said.append((frame["name"], frame["value"]))

    def _state_snapshot(self, frame: Json) -> None:
        self.said.append((frame["type"], frame["snapshot"]))

    def _state_delta(self, frame: Json) -> None:
        assert all(one["op"] and one["path"].startswith(("/", "")) for one in frame["delta"])
        self.said.append((frame["type"], frame["delta"]))

    def _step_started(self, frame: Json) -> None:
        step = frame.get("subagentRunId"), frame["stepName"]
        assert step not in self.steps, f"{step} is open already"
        self.steps.add(step)
        if not is_turn(frame):
            self.said.append((frame["type"], frame["stepName"]))

    def _step_finished(self, frame: Json) -> None:
        self.steps.remove((frame.get("subagentRunId"), frame["stepName"]))
        if not is_turn(frame):
            self.said.append((frame["type"], frame["stepName"]))

    def _raw(self, frame: Json) -> None:
        assert frame["event"]


def frames_of(encoder: rd.wire.AgUiEncoder, events: Iterable[rd.Event], *, error: Any = None) -> list[Json]:
    """The frames of a whole stream, as JSON."""
    made: list[Any] = []
    for event in events:
        try:
            made += encoder.encode(event)
        except rd.RxDeltaError as fault:
            made += encoder.fail(fault)
    made += encoder.close() if error is None else encoder.fail(error)
    return [json.loads(rd.wire.sse_frame(frame)[len(b"data: ") :]) for frame in made]


def read(frames: Iterable[Json], messages: Iterable[Json] = ()) -> AgUiClient:
    """A client that has read these frames, which must be a whole run."""
    client = AgUiClient(messages)
    for frame in frames:
        client.take(frame)
    assert client.state in ("finished", "failed"), "G4: no end"
    return client


def body(frames: Iterable[Json]) -> str:
    """The frames as the real clients read them."""
    return "".join(f"data: {json.dumps(frame)}\n\n" for frame in frames)


def shown(messages: Iterable[Json]) -> Json:
    """What a client's messages say, however they are cut: texts, reasoning, and calls in their order."""
    told: Json = {"text": "", "reasoning": [], "calls": [], "rest": []}
    for message in messages:
        if message["role"] == "assistant":
            told["text"] += message.get("content") or ""
            for call in message.get("toolCalls", ()):
                text = call["function"]["arguments"]
                told["calls"].append((call["function"]["name"], _parsed(text)))
        elif message["role"] == "reasoning":
            told["reasoning"] += [message["content"]] if message["content"] else []
        elif message["role"] == "activity" and message["activityType"] != "rxdelta.discarded":
            told["rest"].append(message["activityType"])
    return told


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def wanted(message: rd.Snapshot | rd.Message) -> Json:
    """The same of one of our messages."""
    told: Json = {"text": "", "reasoning": [], "calls": [], "rest": []}
    known = {block.call_id for block in message.blocks if isinstance(block, rd.ToolCall)} - {None}
    for block in message.blocks:
        if isinstance(block, rd.ToolCall):
            arguments = rd.core.thaw(block.arguments)
            said = arguments if isinstance(arguments, dict) else _parsed(arguments or "")
            told["calls"].append((block.name or "", said))
        elif block.type in ("text", "refusal"):
            told["text"] += block.text or ""
        elif block.type == "reasoning":
            told["reasoning"] += [block.text] if block.text else []
        elif block.type != "server_tool_result" or block.options.get("tool_call_id") not in known:
            told["rest"].append(f"rxdelta.{block.type}")
    return told


# Events, and their frames.


def encoder(
    *, messages: list[Json] | None = None, version: str | None = "1.0", **options: Any
) -> rd.wire.AgUiEncoder:
    request = {"threadId": "t1", "runId": "r1", "messages": messages, "protocolVersion": version}
    return rd.wire.AgUiEncoder(
        {name: value for name, value in request.items() if value is not None}, **options
    )


def told(*events: rd.Event, error: Any = None, **options: Any) -> list[Json]:
    return frames_of(encoder(**options), events, error=error)


def types(frames: list[Json]) -> list[str]:
    """The types of the frames, without the steps that the model's turns are."""
    return [frame["type"] for frame in frames if not is_turn(frame)]


def is_turn(frame: Json) -> bool:
    """Whether the frame begins or ends the step of a model's turn."""
    return frame.get("stepName", "").startswith("model-turn-") and "metadata" in frame


def text(index: int | str, *pieces: str, kind: str = "text") -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": kind}),
        *(ev.TextDelta(index, piece) for piece in pieces),
        ev.BlockFinish(index),
    ]


def thought(index: int, *pieces: str, **options: Any) -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": "reasoning"}),
        *(ev.ReasoningDelta(index, piece) for piece in pieces),
        ev.BlockDelta(index, options),
        ev.BlockFinish(index),
    ]


def call(index: int, call_id: str | None, *pieces: str, kind: str = "tool_call_chunk") -> list[rd.Event]:
    return [
        ev.BlockStart(index, {"type": kind, "id": call_id, "name": "f", "args": ""}),
        *(ev.ToolCallDelta(index, piece) for piece in pieces),
        ev.BlockFinish(index),
    ]


def message(*blocks: list[rd.Event], id: str | None = "m1", reason: str = "stop") -> list[rd.Event]:
    return [ev.MessageStart(id), *(event for block in blocks for event in block), ev.MessageFinish(reason)]
