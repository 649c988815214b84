"""The events of AG-UI that are known by their names alone, and token counts in its form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from rxdelta.core import TokenUsage, is_mapping
from rxdelta.formats.ag_ui.marks import DATA_EVENTS, SIGNATURE
from rxdelta.formats.decoding import word
from rxdelta.formats.usage import AG_UI, completed, usage_of

OTHERS = frozenset(["ACTIVITY_DELTA", "SUBAGENT_ERROR", "SUBAGENT_STARTED"])
"""The events that are passed on."""

CHUNKS = frozenset(["TEXT_MESSAGE_CHUNK", "REASONING_MESSAGE_CHUNK", "TOOL_CALL_CHUNK"])
"""The events that stand for start, content and end."""

OPENERS = frozenset([
    "TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START", "TOOL_CALL_START", *CHUNKS,
])  # fmt: skip
"""The events with which a message may begin."""

AFTER_A_MESSAGE = frozenset(["TOOL_CALL_RESULT", "RUN_ERROR", "RUN_FINISHED", *DATA_EVENTS])
"""The events that concern a run, its calls or the application, after the end of a message."""

SHOWN_BY: Mapping[str, str] = {
    **dict.fromkeys(["RUN_STARTED", "RUN_FINISHED"], "runId"),
    **dict.fromkeys(["TEXT_MESSAGE_START", "REASONING_START", "REASONING_MESSAGE_START"], "messageId"),
    **dict.fromkeys(["TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT", "TOOL_CALL_ARGS"], "delta"),
    **dict.fromkeys(["TOOL_CALL_START", "TOOL_CALL_RESULT"], "toolCallId"),
    "THINKING_TEXT_MESSAGE_CONTENT": "delta",
    "MESSAGES_SNAPSHOT": "messages",
    "RUN_ERROR": "message",
}
"""The field that distinguishes an event from those of other protocols."""

_OF_CHUNKS = frozenset([
    "type", "messageId", "role", "name", "toolCallId", "toolCallName", "parentMessageId", "delta", "metadata",
    "subagentRunId", "timestamp", "rawEvent", "_event",
])  # fmt: skip
"""The fields of the events that stand for start, content and end."""


def may_begin(chunk: Mapping[str, Any]) -> bool:
    """Whether such an event without content only begins something. One with unknown fields may have the content there."""
    return _OF_CHUNKS.issuperset(chunk)


_NAMES: Final = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_tokens": "cached_input_tokens",
    "cache_write_tokens": "cache_write_input_tokens",
    "output_reasoning_tokens": "reasoning_tokens",
}
"""The billed counts, and AG-UI's names for them."""

_MOST: Final = 2**53 - 1
"""The largest count that survives JSON in every language."""


def counts_of(usage: TokenUsage) -> dict[str, int]:
    """The known counts of a usage, under the names of `ag_ui.core.TokenUsage`."""
    billed = completed(usage).billed
    counts = {theirs: billed[ours] for ours, theirs in _NAMES.items() if ours in billed}
    if "input_tokens" in counts and "output_tokens" in counts:
        counts["total_tokens"] = counts["input_tokens"] + counts["output_tokens"]
    return {name: count for name, count in counts.items() if count <= _MOST}


class UsageByModel:
    """The usage of several messages, by their models."""

    def __init__(self, counts: Mapping[str | None, Mapping[str, int]] | None = None) -> None:
        self._counts = {model: dict(known) for model, known in (counts or {}).items()}

    def copy(self) -> UsageByModel:
        return UsageByModel(self._counts)

    def add(self, model: str | None, usage: TokenUsage | None) -> None:
        """Add the usage of a message. A count that was never reported stays unknown."""
        if usage is not None and (counts := counts_of(usage)):
            known = self._counts.setdefault(model, {})
            for name, count in counts.items():
                known[name] = min(known.get(name, 0) + count, _MOST)

    def items(self) -> Iterable[tuple[str | None, Mapping[str, int]]]:
        return self._counts.items()


def total_usage(entries: Sequence[Mapping[str, Any]]) -> TokenUsage | None:
    """The usage that entries of the protocol have together: a single entry unchanged, several summed up."""
    if not entries:
        return None
    if len(entries) == 1:
        return usage_of(entries[0], AG_UI)
    names = {name for one in entries for name in one}
    total = usage_of({name: _sum(one.get(name) for one in entries) for name in names}, AG_UI)
    return attrs.evolve(total, raw={"usage": entries})


def _sum(counts: Iterable[Any]) -> int | None:
    known = [count for count in counts if isinstance(count, int) and not isinstance(count, bool)]
    return sum(known) if known else None


def model_of(event: Mapping[str, Any]) -> str | None:
    """The model, if the whole run used one."""
    usage: Any = event.get("usage")
    listed: Any = usage if isinstance(usage, list) else ()  # pyright: ignore[reportUnknownVariableType]
    names = {word(one.get("model")) for one in listed if is_mapping(one)}
    return names.pop() if len(names) == 1 else None


class OpenBlock:
    """A block that has started."""

    __slots__ = ("encrypted_option", "error", "index", "is_clients", "key")

    def __init__(self, key: tuple[str, str], index: int) -> None:
        self.key, self.index = key, index
        self.is_clients = False  # a call that the client runs
        self.error: str | None = None  # why a call is invalid
        self.encrypted_option = SIGNATURE  # the name of the option that is the encrypted value
