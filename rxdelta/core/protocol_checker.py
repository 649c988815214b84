"""The rules of the event protocol: a start, then deltas, then a finish; and all blocks finish before the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core.block_fold import PIECE_FIELDS, BlockFold
from rxdelta.core.event_classes import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.core.options import DEFAULT_LIMITS, Limits
from rxdelta.core.tool_call import ToolCall
from rxdelta.core.walk import Walk, Walks

if TYPE_CHECKING:
    from rxdelta.core.blocks import Block


_Lane: TypeAlias = tuple[str | None, int | None]

_LEGAL_ANYWHERE = frozenset([ToolUpdate, Custom, MessageInterrupted, AttemptReset, StreamError])


class ProtocolChecker:
    """Checks the events of one message against the rules of the protocol. `Walk` says what such events change.

    Each run and each choice is checked by itself. An empty piece breaks no rule.

    | violation | what happened |
    | --- | --- |
    | `missing_message_start` | an event of the message before its start, or no event at all |
    | `duplicate_message_start` | a second start, also one that begins another message |
    | `duplicate_block_start` | a start for a block that has started |
    | `delta_before_start`, `finish_without_start` | an event for a block that has not started |
    | `delta_after_finish` | a delta for a block that has finished |
    | `duplicate_block_finish` | a second finish, unless it takes a call back: arguments that come too late make it invalid |
    | `delta_type_mismatch` | e.g. a text delta for a reasoning, or one for a call with whole arguments |
    | `unknown_delta_type` | a delta that the protocol does not define |
    | `block_not_finished` | the message finished with a block open |
    | `event_after_message_finish`, `duplicate_message_finish` | an event after the message's finish or interruption |
    | `missing_message_finish` | the stream completed without a finish |
    | `error_event` | the provider reported an error |

    Args:
        limits: Bounds on the number of choices and on the size of each message.

    Example:
        >>> import rxdelta as rd
        >>> rd.core.ProtocolChecker().check(rd.events.TextDelta(0, "Hi"))
        'missing_message_start'
    """

    def __init__(self, *, limits: Limits = DEFAULT_LIMITS) -> None:
        self._walks = Walks(limits)
        self._begun: dict[_Lane, Walk] = {}  # also without a start, so that a missing one is named once

    def check(self, event: Event) -> str | None:
        """The first rule that this event breaks, if any. The event counts even if it breaks a rule.

        Raises:
            LimitExceededError: There are too many choices or blocks, or an index or a block is too large.
        """
        given: Any = event
        kind: type = type(event)
        if kind in PIECE_FIELDS and (known := self._begun.get((given.run_id, given.choice))) is not None:
            fold = known.blocks.get(given.index)  # the hot path; a fold that has ended doesn't grow
            if fold is not None and fold.grows is kind:
                return None
        if kind is StreamError:
            return "error_event"
        if kind is ProviderEvent:
            return _unknown_delta(given)
        if kind is ToolUpdate or kind is Custom:
            return None
        broken = None
        for walk in self._walks.of(event):
            if kind is AttemptReset:
                self._begun.pop((walk.run_id, walk.choice), None)
            elif kind is not MessageInterrupted:
                broken = broken_rule(walk, event)
                self._begun[walk.run_id, walk.choice] = walk
            if kind not in PIECE_FIELDS:  # pieces change nothing that a rule names
                walk.step(event)
            if broken is not None:
                walk.count_violation(broken)
        return broken

    def close(self) -> str | None:
        """The rule that the stream breaks by ending here, if any."""
        if not self._begun:
            return None if self._walks.interrupted else "missing_message_start"
        return None if all(walk.over for walk in self._begun.values()) else "missing_message_finish"


def broken_rule(walk: Walk, event: Event) -> str | None:
    """The rule that an event of the walk's run breaks, if any. Ask before the step."""
    given: Any = event
    kind: type = type(event)
    if kind is ProviderEvent:
        return _unknown_delta(given)
    if kind in _LEGAL_ANYWHERE or walk.choice not in (None, given.choice):
        return None
    if kind in PIECE_FIELDS and not getattr(given, PIECE_FIELDS[kind]):
        return None
    if kind is MessageStart:
        return "duplicate_message_start" if walk.started or walk.over else None
    if walk.over:
        return "duplicate_message_finish" if kind is MessageFinish else "event_after_message_finish"
    if walk.lacks_start():
        return "missing_message_start"
    if kind is MessageFinish:
        is_open = any(fold.block.open for fold in walk.blocks.values())
        return "block_not_finished" if is_open else None
    return None if kind is UsageUpdate else _broken_by_block(walk.blocks.get(given.index), event, kind)


def _unknown_delta(event: ProviderEvent) -> str | None:
    unknown = event.name == "content-block-delta" and not event.provider
    return "unknown_delta_type" if unknown else None


def _broken_by_block(fold: BlockFold | None, event: Any, kind: type) -> str | None:
    if kind is BlockStart:
        return None if fold is None else "duplicate_block_start"
    if kind is BlockFinish:
        if fold is None:
            return "finish_without_start"
        return None if fold.block.open or _takes_back(fold.block, event) else "duplicate_block_finish"
    if fold is None:
        return "delta_before_start"
    if not fold.block.open:
        return "delta_after_finish"
    return None if kind is BlockDelta or kind is fold.grows else "delta_type_mismatch"


def _takes_back(block: Block, event: BlockFinish) -> bool:
    kind = None if event.content is None else event.content.get("type")
    return isinstance(block, ToolCall) and kind == "invalid_tool_call"
