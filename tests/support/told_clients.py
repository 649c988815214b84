"""Recorded replies as bodies for the clients of providers' APIs, whole and cut, and what these must show of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final, TypeAlias

import attrs
import pytest

import rxdelta as rd
from rxdelta.formats.usage import completed
from support.front_ends import ENDINGS, Reply, recorded_replies, sse

__all__ = [
    "ENCODERS",
    "ERROR",
    "GONE",
    "NATIVE_CALLS",
    "WAYS",
    "Case",
    "Shown",
    "cases",
    "cut",
    "encoder",
    "whole",
]

Json: TypeAlias = dict[str, Any]
ERROR: Final = "An error."
GONE: Final = "goes away"
"""The server goes away without a word."""

WAYS: Final = (*ENDINGS, GONE)
NATIVE_CALLS: Final = frozenset(
    ["custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call"]
)
"""Calls whose names and arguments clients show in their own way."""

ENCODERS: Final[Mapping[str, Callable[..., Any]]] = {
    "openai-responses": rd.wire.OpenAiResponsesEncoder,
    "anthropic-messages": rd.wire.AnthropicMessagesEncoder,
}


def encoder(wire_format: str) -> Any:
    return ENCODERS[wire_format](
        now=lambda: 7.0, new_id=lambda: "made", tools=(), on_error=lambda error: ERROR
    )


@attrs.define
class Shown:
    """What a client has of a reply, in our words.

    Attributes:
        text: All texts; a refusal is one.
        reasoning: All thoughts.
        calls: The calls that the client has to run: id, name and arguments. Of those whose form is the client's, only the id.
        reason: Why the reply ended, one of `rd.types.FinishReason`; `None` if it didn't.
        usage: The tokens: input, read from a cache, output; `None` if the client knows none.
    """

    text: str
    reasoning: str
    calls: list[Any]
    reason: str | None = None
    usage: tuple[int, int, int] | None = None


@attrs.frozen(eq=False)
class Case:
    """A reply that ends behind so many of its events.

    Attributes:
        how: One of `ENDINGS`, or `goes away`.
        snapshot: What the events say.
        is_whole: Whether the client has the whole reply.
    """

    reply: Reply
    wire_format: str
    count: int
    how: str
    snapshot: rd.Snapshot
    is_whole: bool

    @property
    def name(self) -> str:
        return f"{self.reply.name}, {self.count} of {len(self.reply.events)} events, {self.how}"

    @property
    def error(self) -> str | None:
        """What the server says of its failure."""
        if self.is_whole or self.how == GONE:
            return None
        return "user" if self.how == "stop" else ERROR

    def frames(self) -> list[Json]:
        made = encoder(self.wire_format)
        frames = [frame for event in self.reply.events[: self.count] for frame in made.encode(event)]
        return frames if self.how == GONE else [*frames, *ENDINGS[self.how](made)]

    def body(self) -> str:
        return "".join(map(sse, self.frames()))

    def wanted(self) -> Shown:
        """What a client has if it has everything."""
        reply = self.snapshot
        parts = [block for block in reply.blocks if isinstance(block, rd.ContentPart)]
        thoughts = [part for part in parts if part.type == "reasoning" and not part.options.get("redacted")]
        reason = reply.finish_reason
        reason = "stop" if reason == "tool_use" and not reply.tool_calls else reason
        counts = {} if reply.usage is None else completed(reply.usage).billed
        usage = tuple(counts.get(name, 0) for name in ("input_tokens", "cache_read_tokens", "output_tokens"))
        return Shown(
            text="".join(part.text or "" for part in parts if part.type in ("text", "refusal")),
            reasoning="".join(part.text or "" for part in thoughts),
            calls=[self._call(call) for call in reply.tool_calls],
            reason="stop" if reason == "pause" else reason,
            usage=usage,  # type: ignore[arg-type]
        )

    def _call(self, call: rd.ToolCall) -> Any:
        if call.metadata.get("provider_type") in NATIVE_CALLS and self.wire_format == "openai-responses":
            return [call.call_id]
        given = rd.core.thaw(call.arguments)
        if self.wire_format == "anthropic-messages" and not isinstance(given, dict):
            given = {"input": given} if given else {}
        return [call.call_id, call.name, {} if given is None else given]

    def check(self, shown: Shown) -> None:
        """The client agrees.

        Raises:
            AssertionError: It shows what wasn't said, or not all of a whole reply.
        """
        wanted = self.wanted()
        if self.is_whole:
            wanted.calls.sort(key=json.dumps)
            shown.calls.sort(key=json.dumps)
            assert shown == wanted, f"{shown} is not {wanted}"
            return
        assert shown.reason is None, "half a reply has ended"
        assert wanted.text.startswith(shown.text)
        assert wanted.reasoning.startswith(shown.reasoning)
        for call in shown.calls:
            assert call in wanted.calls, "half a call may be run"


def whole(reply: Reply, wire_format: str) -> Case:
    snapshot = reply.folded(len(reply.events), cut=False)
    is_whole = snapshot.status != "incomplete"
    return Case(reply, wire_format, len(reply.events), "completes", snapshot, is_whole)


def cut(reply: Reply, wire_format: str, count: int, how: str) -> Case:
    """The reply cut behind so many of its events, in one of `WAYS`."""
    snapshot = reply.folded(count)
    return Case(reply, wire_format, count, how, snapshot, False)


def cases(wire_format: str, *, each: int, every: int = 1, seed: int = 17) -> list[Case]:
    """Of every so many recorded replies, the whole one, its half, and so many cuts by chance in the ways by turns."""
    draw = Random(seed)
    found: list[Case] = []
    for place, reply in enumerate(recorded_replies()[::every]):
        counts = [len(reply.events) // 2, *(draw.randrange(len(reply.events) + 1) for _ in range(each))]
        found.append(whole(reply, wire_format))
        for turn, count in enumerate(counts):
            how = WAYS[(place + turn) % len(WAYS)]
            if how not in ("completes", "stop") or not _has_ended(reply, count):
                found.append(cut(reply, wire_format, count, how))
    return found or pytest.skip("no recordings")


def _has_ended(reply: Reply, count: int) -> bool:
    ends = rd.events.MessageFinish, rd.events.MessageInterrupted
    return any(isinstance(event, ends) for event in reply.events[:count])
