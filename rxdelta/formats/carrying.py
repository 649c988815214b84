"""What the streams of a format can carry, and the check of a reply in front of its writer.

A format declares two sets of these words beside its writer. Everything that `Format.carries` lacks is refused by name, so
nothing is dropped. A detail in `Format.loses` doesn't come back, though the reply is written. The table in docs/reference/written-formats.md is
made of both sets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    ByChoice,
    ContentPart,
    Event,
    InvalidValueError,
    ProviderError,
    ToolCall,
    Walk,
    wrong_value,
)
from rxdelta.core.events import EVENT_TYPES, Custom, MessageInterrupted, ProviderEvent
from rxdelta.formats.conversation import medium_of, text_of
from rxdelta.formats.format import Format
from rxdelta.formats.notes import REDACTED
from rxdelta.formats.reply.choice import is_taken, is_unreadable
from rxdelta.formats.runs import Lanes

CONTENT: Final[Mapping[str, str]] = {
    "text": "a text",
    "reasoning": "a reasoning",
    "redacted_reasoning": "an encrypted reasoning",
    "refusal": "a refusal",
    "tool_call": "a call",
    "invalid_tool_call": "an invalid call, whose arguments can't be read",
    "doubtful_tool_call": "an invalid call whose arguments could be read",
    "unnamed_tool_call": "a call without a name",
    "tool_result": "a call that has a result, or has begun to run",
    "server_tool_call": "a call that the provider ran",
    "server_tool_result": "a result of the provider's own tool",
    "image": "an image",
    "image_url": "the address of an image",
    "audio": "a sound",
    "audio_url": "the address of a sound",
    "video": "a video",
    "video_url": "the address of a video",
    "file": "a file",
    "file_url": "the address of a file",
    "file_id": "a medium that only its provider has",
    "unsupported": "a block of a kind that only its provider knows",
    "citation": "a citation",
    "citation_without_url": "a citation without an address",
    "choices": "another choice than the first",
    "runs": "another run",
    "messages": "another message",
    "attempts": "another attempt after a part of the reply",
    "corrections": "a block that takes back what has been said of it",
    "interruption": "an interruption",
    "custom": "an event of the application",
}
"""What a reply may have, by its name in `Format.carries`."""

DETAILS: Final[Mapping[str, str]] = {
    "id": "the message's id",
    "model": "the model's name",
    "finish_reason": "the difference between some finish reasons",
    "metadata": "the message's `metadata`, and the provider's word for its finish reason",
    "usage_details": "counts beside those of input and output",
    "provider_events": "the provider's own events",
    "call_ids": "the ids of calls",
    "signatures": "signatures of reasoning",
    "other_signatures": "signatures of texts and calls",
    "block_options": "the other `options` and `metadata` of blocks and calls",
    "citation_details": "what a citation has beside its address and title",
    "media_type": "the type of a medium",
    "borders": "where a text or a sound ends, if another follows",
    "order": "of blocks that were open together, which began first, and in chat completions what a text cites",
    "empty_blocks": "blocks without content",
    "cut_calls": "that a call is whole, if the token limit or an error ended the reply behind it",
    "open_calls": "what has come of a call, if the reply broke off before it was whole",
}
"""What a reply may lose, by its name in `Format.loses`."""


def kinds_of(block: Block) -> Iterator[str]:
    """What a stream must be able to carry for this block, in the words of `CONTENT`."""
    if isinstance(block, ToolCall):
        yield (
            block.type if block.type != "invalid_tool_call" or is_unreadable(block) else "doubtful_tool_call"
        )
        if not (block.name or block.open):
            yield "unnamed_tool_call"
        if is_taken(block):
            yield "tool_result"
        return
    medium = medium_of(block)
    if medium is None:
        yield "redacted_reasoning" if block.options.get(REDACTED) is True else block.type
    elif medium.data is None and medium.url is None and medium.file_id is not None:
        yield "file_id"
    else:
        yield medium.kind if medium.url is None else f"{medium.kind}_url"
    for citation in block.citations:
        yield "citation" if citation.url else "citation_without_url"


class _Lane:
    """One run of a choice: its blocks, also those of messages that are over."""

    def __init__(self, walk: Walk, _: _Lane | None) -> None:
        self.walk = walk
        self.blocks: dict[BlockFold, None] = {}

    def begin(self, event: Event, /) -> None: ...

    def read(self, event: Event) -> str | None:
        """Read an event. Return the word for what it makes of the reply, if that isn't a matter of course."""
        found = None
        for change in self.walk.step(event):
            if change.kind == "opened":
                self.blocks[change.fold] = None
            elif change.kind == "another":
                found = "messages"
            elif change.kind == "reset" and self.blocks:
                found = "attempts"
            elif change.before is not None and _takes_back(change.before, change.fold.block):
                found = "corrections"
        return found


def _takes_back(before: Block, block: Block) -> bool:
    """Whether the block doesn't go on from what it was."""
    if isinstance(before, ContentPart) and isinstance(block, ContentPart):
        return before.type != block.type or not (block.text or "").startswith(before.text or "")
    if not isinstance(before, ToolCall) or not isinstance(block, ToolCall):
        return True
    said, now = before.arguments, block.arguments
    if not isinstance(said, str):
        return said is not None and said != now
    if isinstance(now, str):
        return not now.startswith(said)
    return before.arguments_as_map() != now and not text_of(now).startswith(said)


class _Reading:
    """What a reply consists of."""

    def __init__(self) -> None:
        self.choices: dict[int, Lanes[_Lane]] = ByChoice(DEFAULT_LIMITS)
        self.found: dict[str, object] = {}
        self.failed = False

    def read(self, event: Any) -> None:
        if type(event) not in EVENT_TYPES:
            raise wrong_value("write", event)
        if isinstance(event, Custom):
            self.found.setdefault("custom", event)
        if isinstance(event, (Custom, ProviderEvent)) or self.failed:
            return
        if isinstance(event, MessageInterrupted):
            self.found.setdefault("interruption", event)
        index = getattr(event, "choice", None)
        if index is None and not self.choices:
            index = 0
        if index is not None and index not in self.choices:
            self.choices[index] = Lanes(_Lane, index, DEFAULT_LIMITS)
            if index:
                self.found.setdefault("choices", event)
        try:
            for lanes in self.choices.values() if index is None else (self.choices[index],):
                self._read(event, lanes)
        except ProviderError:
            self.failed = True

    def _read(self, event: Event, lanes: Lanes[_Lane]) -> None:
        for lane in lanes.of(event):
            if (found := lane.read(event)) is not None:
                self.found.setdefault(found, event)
        if len(lanes) > 1:
            self.found.setdefault("runs", event)

    def blocks(self) -> Iterator[Block]:
        for lanes in self.choices.values():
            for lane in lanes:
                yield from (fold.block for fold in lane.blocks)

    @property
    def ended(self) -> bool:
        """Whether the reply is over, whole or with an error."""
        return self.failed or (bool(self.choices) and all(lanes.over for lanes in self.choices.values()))


def read_carried(events: Sequence[Event], known: Format) -> bool:
    """Refuse a reply that the streams of a format can't carry.

    Returns:
        Whether the reply is over.

    Raises:
        InvalidValueError: Names the format, and each detail that it can't carry.
    """
    reading = _Reading()
    for event in events:
        reading.read(event)
    problems: list[tuple[str, object, str]] = [
        ("events", event, _wrong(known.name, kind))
        for kind, event in reading.found.items()
        if kind not in known.carries
    ]
    problems += [
        (f"block {block.key!r}", block, _wrong(known.name, kind))
        for block in reading.blocks()
        for kind in dict.fromkeys(kinds_of(block))
        if kind not in known.carries and not (known.owns is not None and known.owns(block, kind))
    ]
    if problems:
        raise InvalidValueError.of(problems)
    return reading.ended


def _wrong(wire_format: str, kind: str) -> str:
    return f"must not be {CONTENT[kind]} ({kind}), which a stream of {wire_format} can't carry"
