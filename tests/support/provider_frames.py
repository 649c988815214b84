"""What a client of OpenAI's Responses API, or of Anthropic's Messages API, has after each frame; no frame may break the order.

These are the protocols' own rules, and know nothing of an encoder:

    response = created in_progress item* (completed | incomplete | error failed)
    item     = output_item.added part* output_item.done
    message  = message_start block* (message_delta message_stop | error)
    block    = content_block_start content_block_delta* content_block_stop

Each frame may also be the last one that comes. A reader then has what it has, and nothing of it may be done that isn't.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, get_args

import attrs
import pytest

import rxdelta as rd

__all__ = ["OWN_CALLS", "MessageReader", "Reader", "ResponseReader", "Shown", "check_types", "is_local"]

Json: TypeAlias = Mapping[str, Any]
IN_PIECES: Final = {
    "message": "content",
    "reasoning": "summary",
    "function_call": "arguments",
    "custom_tool_call": "input",
}
"""Items that come piece by piece, each with the field that is empty at first."""
OWN_CALLS: Final = ("local_shell_call", "shell_call", "apply_patch_call", "computer_call")
"""Calls of tools that OpenAI has trained its models for, and that the client runs."""


@attrs.define(eq=False)
class Shown:
    """An item, or a block, as far as a client has it.

    Attributes:
        kind: Its type, in the protocol's words; that of the part for an item that is a message.
        start: How it began.
        said: The pieces of it so far.
        whole: The item as it ended; `None` until then.
        signature: What has been signed, or encrypted.
        cited: Its citations.
    """

    kind: str
    start: Json
    said: str = ""
    whole: Json | None = None
    signature: str | None = None
    cited: list[Any] = attrs.Factory(list)

    @property
    def done(self) -> bool:
        return self.whole is not None


class Reader(ABC):
    """Reads frames and notes what a client has.

    Attributes:
        items: What has come, in order. Only the last may be open.
        head: What the first frame says of the reply.
        end: Why the reply ended, in the protocol's words; `None` until then, or if it failed.
        error: The text of the error that ended it.
        usage: The usage at the end.
        over: Whether nothing may follow.
        count: How many frames came.
    """

    def __init__(self, frames: Iterable[Json] = ()) -> None:
        self.items: list[Shown] = []
        self.head: Json | None = None
        self.end: str | None = None
        self.error: str | None = None
        self.usage: Json | None = None
        self.over = False
        self.count = 0
        self.read(*frames)

    def read(self, *frames: Json) -> None:
        """Read further frames.

        Raises:
            AssertionError: One that the protocol doesn't allow there.
        """
        for frame in frames:
            assert not self.over, f"{frame['type']} behind the end"
            assert type(frame) is rd.wire.NamedFrame, "to_sse wouldn't name the event"
            self._read(frame)
            self.count += 1

    @abstractmethod
    def _read(self, frame: Json) -> None: ...

    @property
    def open(self) -> Shown | None:
        """What has begun and not ended."""
        return self.items[-1] if self.items and not self.items[-1].done else None

    def texts(self, *kinds: str) -> list[str]:
        """What is said so far in items of these types."""
        return [item.said for item in self.items if item.kind in kinds]

    def _check_nothing_open(self, was_cut: bool, call: str) -> None:
        """A call that the limit has cut may stay open, so that nobody runs it."""
        assert self.open is None or (was_cut and self.open.kind == call), (
            f"{self.items[-1].kind} is still open"
        )

    @abstractmethod
    def runnable(self) -> list[tuple[str, str, Any]]:
        """The calls that a client runs by now: id, name and arguments of each."""

    def opened(self) -> Shown:
        assert self.open is not None, "nothing is open"
        return self.open


class ResponseReader(Reader):
    """Reads the frames of a response."""

    _part: Json | None = None  # the part that is open
    _parts: list[Any]  # those of the open item that have ended
    _steps: tuple[str, ...] = ()  # what must come next before the item ends

    def _read(self, frame: Json) -> None:
        assert frame["sequence_number"] == self.count
        kind = frame["type"]
        if self.error is not None:
            assert kind == "response.failed", "only response.failed stands behind an error"
            self._fail(frame["response"])
            return
        if kind == "error":
            assert self.count >= 2, "a response fails only once it has been created"
            self.error = frame["message"]
            self._code = frame["code"]
            return
        if self.count < 2:
            assert kind == ("response.created", "response.in_progress")[self.count]
            self._check_head(frame["response"], "in_progress", [])
            return
        name = kind.removeprefix("response.")
        step = {
            "output_item.added": self._added,
            "output_item.done": self._done,
            "completed": self._ended,
            "incomplete": self._ended,
        }.get(name)
        if step is not None:
            step(frame)
            return
        self._check_place(frame)
        getattr(self, "_on_" + name.replace(".", "_"), self._unknown)(frame)

    def _unknown(self, frame: Json) -> None:
        raise AssertionError(f"no rule knows {frame['type']}")

    # The response.

    def _check_head(self, response: Json, status: str, output: list[Any]) -> None:
        head = {name: response[name] for name in ("id", "object", "created_at")}
        assert head == (self.head or head), "another response"
        self.head = head
        assert response["id"]
        assert response["status"] == status
        assert response["output"] == output
        if status == "in_progress":
            assert response["usage"] is response["error"] is response["incomplete_details"] is None

    def _output(self) -> list[Any]:
        return [item.whole for item in self.items if item.done]

    def _ended(self, frame: Json) -> None:
        response, status = frame["response"], frame["type"].removeprefix("response.")
        self._check_nothing_open(status == "incomplete", "function_call")
        self._check_head(response, status, self._output())
        assert response["error"] is None
        details = response["incomplete_details"]
        assert (details is None) == (status == "completed")
        cut = [item for item in self.items if item.whole and item.whole.get("status") == "incomplete"]
        assert all(item.kind == "function_call" for item in cut)
        self.end = status if details is None else f"{status}/{details['reason']}"
        self.usage, self.over = response["usage"], True

    def _fail(self, response: Json) -> None:
        self._check_head(response, "failed", self._output())
        assert response["error"] == {"code": self._code, "message": self.error}
        assert response["incomplete_details"] is None
        self.over = True

    # Items.

    def _added(self, frame: Json) -> None:
        item = frame["item"]
        assert self.open is None, f"{self.items[-1].kind} is still open"
        assert frame["output_index"] == len(self.items)
        assert item["id"], "an item without an id"
        assert item["id"] not in [one.start["id"] for one in self.items], "an id of another item"
        field = IN_PIECES.get(item["type"])
        if field is not None:
            assert not item[field], "an item begins with content"
        if item["type"] in ("message", "function_call"):
            assert item["status"] == "in_progress"
        if item["type"] in IN_PIECES and "call_id" in item:
            assert item["call_id"]
        self.items.append(Shown(item["type"], item))
        self._part, self._parts, self._steps = None, [], ()

    def _check_place(self, frame: Json) -> None:
        item = self.opened()
        assert frame["item_id"] == item.start["id"]
        assert frame["output_index"] == len(self.items) - 1

    def _done(self, frame: Json) -> None:
        shown, item = self.opened(), frame["item"]
        assert frame["output_index"] == len(self.items) - 1
        assert self._part is None, "a part is still open"
        kept = ("id", "type", "call_id", "name", "role", "phase")
        assert {name: item.get(name) for name in kept} == {name: shown.start.get(name) for name in kept}
        if item["type"] == "message":
            assert item["status"] == "completed"
            assert item["content"] == self._parts
            assert len(self._parts) == 1, "a text is an item"
        elif item["type"] == "reasoning":
            assert item["summary"] == self._parts
            shown.signature = item.get("encrypted_content")
            assert shown.said or shown.signature or "_made_" not in shown.start["id"], "an empty thought"
        elif item["type"] == "function_call":
            assert self._steps == ("done",), "arguments aren't done"
            assert item["arguments"] == shown.said
            assert item["status"] in ("completed", "incomplete")
            if item["status"] == "completed":
                assert isinstance(json.loads(item["arguments"] or "{}"), object)
        elif item["type"] == "custom_tool_call":
            assert self._steps == ("done",), "the input isn't done"
            assert item["input"] == shown.said
        else:
            assert item == shown.start, "an item that comes whole changes"
        shown.whole = item

    # Parts of messages.

    def _on_content_part_added(self, frame: Json) -> None:
        item, part = self.opened(), frame["part"]
        assert item.start["type"] == "message"
        assert self._part is None
        assert frame["content_index"] == len(self._parts)
        field = {"output_text": "text", "refusal": "refusal"}[part["type"]]
        assert part[field] == ""
        assert not part.get("annotations")
        self._part, item.kind, self._steps = part, part["type"], ()

    def _on_output_text_delta(self, frame: Json) -> None:
        self._grow(frame, "output_text")
        assert frame["logprobs"] == []

    def _on_refusal_delta(self, frame: Json) -> None:
        self._grow(frame, "refusal")

    def _grow(self, frame: Json, kind: str) -> None:
        item = self._open_part(frame, kind)
        assert not self._steps, "a piece behind the whole text"
        assert frame["delta"], "an empty piece"
        item.said += frame["delta"]

    def _open_part(self, frame: Json, kind: str) -> Shown:
        assert self._part is not None, "no part is open"
        assert self._part["type"] == kind
        index = "summary_index" if kind == "summary_text" else "content_index"
        assert frame[index] == len(self._parts)
        return self.opened()

    def _on_output_text_annotation_added(self, frame: Json) -> None:
        item = self._open_part(frame, "output_text")
        assert not self._steps
        assert frame["annotation_index"] == len(item.cited)
        item.cited.append(frame["annotation"])

    def _on_output_text_done(self, frame: Json) -> None:
        self._text_done(frame, "output_text", frame["text"])

    def _on_refusal_done(self, frame: Json) -> None:
        self._text_done(frame, "refusal", frame["refusal"])

    def _text_done(self, frame: Json, kind: str, text: str) -> None:
        item = self._open_part(frame, kind)
        assert not self._steps
        assert text, "an empty text"
        item.said = text  # the end may correct what was said
        self._steps = ("done",)

    def _on_content_part_done(self, frame: Json) -> None:
        item, part = self._open_part(frame, frame["part"]["type"]), frame["part"]
        assert self._steps == ("done",), "the text isn't done"
        assert part.get("text", part.get("refusal")) == item.said
        assert part.get("annotations", []) == item.cited
        self._parts.append(part)
        self._part, self._steps = None, ()

    # Parts of reasoning.

    def _on_reasoning_summary_part_added(self, frame: Json) -> None:
        assert self.opened().kind == "reasoning"
        assert self._part is None
        assert frame["summary_index"] == len(self._parts)
        assert frame["part"] == {"type": "summary_text", "text": ""}
        self._part, self._steps = frame["part"], ()

    def _on_reasoning_summary_text_delta(self, frame: Json) -> None:
        self._grow(frame, "summary_text")

    def _on_reasoning_summary_text_done(self, frame: Json) -> None:
        self._text_done(frame, "summary_text", frame["text"])

    def _on_reasoning_summary_part_done(self, frame: Json) -> None:
        item = self._open_part(frame, "summary_text")
        assert self._steps == ("done",)
        assert frame["part"] == {"type": "summary_text", "text": item.said}
        self._parts.append(frame["part"])
        self._part, self._steps = None, ()

    # Calls.

    def _on_function_call_arguments_delta(self, frame: Json) -> None:
        self._argue(frame, "function_call")

    def _on_custom_tool_call_input_delta(self, frame: Json) -> None:
        self._argue(frame, "custom_tool_call")

    def _argue(self, frame: Json, kind: str) -> None:
        item = self.opened()
        assert item.kind == kind
        assert not self._steps
        assert frame["delta"] or kind == "custom_tool_call", "an empty piece"
        item.said += frame["delta"]

    def _on_function_call_arguments_done(self, frame: Json) -> None:
        item = self.opened()
        assert item.kind == "function_call"
        assert not self._steps
        assert (frame["arguments"], frame["name"]) == (item.said, item.start["name"])
        self._steps = ("done",)

    def _on_custom_tool_call_input_done(self, frame: Json) -> None:
        item = self.opened()
        assert item.kind == "custom_tool_call"
        assert not self._steps
        assert frame["input"] == item.said
        self._steps = ("done",)

    # OpenAI's own.

    def _on_code_interpreter_call_code_delta(self, frame: Json) -> None:
        item = self.opened()
        assert item.kind == "code_interpreter_call"
        assert not self._steps
        item.said += frame["delta"]

    def _on_code_interpreter_call_code_done(self, frame: Json) -> None:
        item = self.opened()
        assert item.kind == "code_interpreter_call"
        assert not self._steps
        assert frame["code"] == item.said
        self._steps = ("done",)

    def runnable(self) -> list[tuple[str, str, Any]]:
        """Codex and the AI SDK run a call as soon as its item is done, whether or not it can be read."""
        kinds = ("function_call", "custom_tool_call", *OWN_CALLS)
        done = (item.whole for item in self.items if item.whole and item.kind in kinds)
        return [
            (item["call_id"], item.get("name") or item["type"], item.get("arguments", item.get("input")))
            for item in done
            if item.get("status") != "incomplete" and is_local(item)
        ]


def is_local(item: Json) -> bool:
    """Whether the client runs the call, and not OpenAI in a container of its own."""
    return (item.get("environment") or {}).get("type") in (None, "local")


class MessageReader(Reader):
    """Reads the frames of a message."""

    _signed = False

    def _read(self, frame: Json) -> None:
        kind = frame["type"]
        if kind == "error":
            self.error, self.over = frame["error"]["message"], True
            assert frame["error"]["type"].endswith("_error")
            return
        assert (kind == "message_start") == (self.count == 0), "message_start is first, and only there"
        if self.end is not None:
            assert kind == "message_stop", "only message_stop stands behind message_delta"
            self.over = True
            return
        getattr(self, f"_on_{kind}", self._unknown)(frame)

    def _unknown(self, frame: Json) -> None:
        raise AssertionError(f"no rule knows {frame['type']} here")

    def _on_message_start(self, frame: Json) -> None:
        self.head = message = frame["message"]
        assert message["id"]
        assert (message["type"], message["role"], message["content"]) == ("message", "assistant", [])
        assert message["stop_reason"] is message["stop_sequence"] is None

    def _on_content_block_start(self, frame: Json) -> None:
        assert self.open is None, f"{self.items[-1].kind} is still open"
        assert frame["index"] == len(self.items), "clients append blocks, and then look them up by index"
        block = frame["content_block"]
        empty = {
            "text": {"text": ""},
            "thinking": {"thinking": "", "signature": ""},
            "tool_use": {"input": {}},
            "server_tool_use": {"input": {}},
            "mcp_tool_use": {"input": {}},
        }.get(block["type"], {})
        assert {name: block[name] for name in empty} == empty, "a block begins with content"
        if block["type"].endswith("_use"):
            assert block["id"]
            assert block["name"]
        self.items.append(Shown(block["type"], block))
        self._signed = False

    def _on_content_block_delta(self, frame: Json) -> None:
        item, delta = self._place(frame), frame["delta"]
        assert not self._signed, "a piece behind the signature"
        kind = delta["type"]
        if kind == "compaction_delta":
            assert (item.kind, item.said, item.start["content"]) == ("compaction", "", None)
            item.said = delta["content"]
            return
        if kind == "citations_delta":
            assert item.kind == "text"
            item.cited.append(delta["citation"])
            return
        if kind == "signature_delta":
            assert item.kind == "thinking"
            assert delta["signature"]
            item.signature, self._signed = delta["signature"], True
            return
        field, kinds = {
            "text_delta": ("text", ["text"]),
            "thinking_delta": ("thinking", ["thinking"]),
            "input_json_delta": ("partial_json", ["tool_use", "server_tool_use", "mcp_tool_use"]),
        }[kind]
        assert item.kind in kinds, f"{kind} for a {item.kind}"
        assert delta[field], "an empty piece"
        assert not item.cited, "a piece behind the citations"
        item.said += delta[field]

    def _place(self, frame: Json) -> Shown:
        item = self.opened()
        assert frame["index"] == len(self.items) - 1
        return item

    def _on_content_block_stop(self, frame: Json) -> None:
        item = self._place(frame)
        if item.kind in ("text", "thinking"):  # the API refuses a request with an empty one
            assert item.said or item.signature, "an empty block"
        item.whole = item.start

    def _on_message_delta(self, frame: Json) -> None:
        delta = frame["delta"]
        self.end = delta["stop_reason"]
        assert self.end
        self._check_nothing_open(self.end == "max_tokens", "tool_use")
        asked = [item for item in self.items if item.kind == "tool_use"]
        if self.end != "max_tokens":
            assert all(is_object(item.said) for item in asked), "arguments that no client can read"
        assert (self.end == "tool_use") <= bool(asked), "tool_use without a call"
        assert self.head is not None
        self.usage = {**self.head["usage"], **frame["usage"]}

    def runnable(self) -> list[tuple[str, str, Any]]:
        """The AI SDK runs a call as soon as its block has stopped."""
        return [
            (item.start["id"], item.start["name"], item.said or "{}")
            for item in self.items
            if item.kind == "tool_use" and item.done and is_object(item.said)
        ]


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text or "{}"), dict)
    except ValueError:
        return False


# The vendors' own types.


@cache
def _types(wire_format: str) -> list[dict[str, Any]]:
    """The types of frames, by what their `type` says: those of stable packages, and those of beta ones."""
    pydantic = pytest.importorskip("pydantic")
    if wire_format == "openai-responses":
        unions = [pytest.importorskip("openai.types.responses").ResponseStreamEvent]
    else:
        stable = pytest.importorskip("anthropic.types").RawMessageStreamEvent
        unions = [stable, pytest.importorskip("anthropic.types.beta").BetaRawMessageStreamEvent]
    found: list[dict[str, Any]] = []
    for union in unions:
        members = get_args(get_args(union)[0])
        found.append(
            {
                name: pydantic.TypeAdapter(member)
                for member in members
                for name in get_args(member.model_fields["type"].annotation)
            }
        )
    return found


def check_types(wire_format: str, frames: Iterable[Json], sent: Sequence[Json] = ()) -> None:
    """Each frame is one that the vendor's package knows, with no field missing or of another type.

    A block that only Anthropic's beta types know may be one of those.

    Args:
        sent: Items that the vendor itself has sent, some of which its types don't know. They are passed on as they came.
    """
    stable, *others = _types(wire_format)
    for frame in frames:
        if frame["type"] == "error" and wire_format == "anthropic-messages":
            assert frame["error"].keys() == {"type", "message"}
            continue  # the package reads it by the event's name, in front of its types
        try:
            stable[frame["type"]].validate_python({**frame}, strict=True)
        except ValueError:
            known = _without(frame, sent)
            if known is not None:
                [stable, *others][-1][frame["type"]].validate_python(known, strict=True)


def _without(frame: Json, sent: Sequence[Json]) -> Json | None:
    """The frame without these items; `None` if it is of one of them."""
    if frame.get("item", frame.get("content_block")) in sent:
        return None
    if "response" not in frame:
        return {**frame}
    output = [item for item in frame["response"]["output"] if item not in sent]
    return {**frame, "response": {**frame["response"], "output": output}}
