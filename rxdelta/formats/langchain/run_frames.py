"""The frames of one run: its messages, one after the other, and the calls that run beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from rxdelta.core import Block, BlockFold, Change, Event, TokenUsage, Walk, clean_text
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.langchain.block_frames import DELTAS, BlockFrames
from rxdelta.formats.langchain.fields import Index
from rxdelta.formats.langchain.frames import FrameWriter, LangChainFrame, without_lane
from rxdelta.formats.langchain.marks import ATTEMPT_RESET, INTERRUPTED, PARENT_RUN_ID, SYNTHETIC
from rxdelta.formats.langchain.protocol_content import write_usage
from rxdelta.formats.langchain.tool_runs import ToolRuns
from rxdelta.formats.notes import SYNTHETIC_ID

__all__ = ["RunFrames"]

Frames: TypeAlias = Iterator[LangChainFrame]
Changes: TypeAlias = Sequence[Change]

_NEW_ATTEMPT: Final = "The attempt failed, and another one begins."
_ANOTHER: Final = "Another message began before this one had ended."


class RunFrames:
    """Writes the frames of one run.

    Args:
        frames: Writes the frames of the run's namespace.
        walk: Follows the run's messages.
        new_id: An id for a message that has none.

    Attributes:
        blocks: Writes the frames of the message's blocks.
    """

    def __init__(self, frames: FrameWriter, walk: Walk, new_id: Callable[[], str]) -> None:
        self.walk = walk
        self._frames = frames
        self._new_id = new_id
        self._tools = ToolRuns(frames)
        self._open = False  # whether the client is in a message
        self._usage: TokenUsage | None = None  # of the message
        self.blocks = BlockFrames(frames, self._tools)

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        self._frames.enter(event.run_id)

    def encode(self, event: Event) -> Frames:
        """The frames of another event of this run, or of every run."""
        given: Any = event
        kind: Any = type(event)
        if kind in DELTAS or getattr(given, "choice", None) not in (None, self.walk.choice):
            return
        if kind is ToolUpdate:  # a block's content doesn't repeat what the frames of its tool have
            yield from self._tools.update(given)
        else:
            yield from self._STEPS[kind](self, given, self.walk.step(event))

    # The end of the stream.

    def close(self) -> Frames:
        """End what is open within the message, and the tools that run."""
        yield from self.blocks.close()
        yield from self._tools.close()

    def fail(self, message: str, words: Mapping[str, str]) -> Frames:
        """End the message with an error. Only a message can end with one, so an empty one begins if none is open."""
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield self._frames.message("error", message=message, **words)

    @property
    def is_open(self) -> bool:
        """Whether the client is in a message."""
        return self._open

    # The message.

    def _begin(self, event: MessageStart, *, synthetic: bool = False) -> Frames:
        self._open = True
        self._usage = self._usage or event.usage
        data = without_lane(event)
        metadata: dict[str, Any] = data.pop("metadata", {})
        plain = {name: value for name, value in metadata.items() if _is_plain(name, value)}
        more = {name: value for name, value in metadata.items() if name not in plain}
        if event.id is None:
            data |= {"id": clean_text(self._new_id()), SYNTHETIC_ID: True}
        data |= {"metadata": plain} if plain else {}
        data |= {"responseMetadata": more} if more else {}
        data |= {SYNTHETIC: True} if synthetic else {}
        if self.walk.run_id is not None:
            data[PARENT_RUN_ID] = (
                event.parent_run_id
            )  # None, too: else the namespace above would be the parent
        yield self._frames.frame("messages", data)

    def _message_start(self, event: MessageStart, changes: Changes) -> Frames:
        if changes[0].kind == "another":
            if self._open:
                yield from self.blocks.close()
                yield self._frames.message("error", message=_ANOTHER, **{SYNTHETIC: True})
            self._put_away()
        if self._open:
            self._usage = self._usage or event.usage
            yield self._frames.custom(event)
        else:
            yield from self._begin(event)

    def _put_away(self) -> None:
        """Go on with another message, or another attempt at this one."""
        self._open, self._usage = False, None
        self.blocks = BlockFrames(self._frames, self._tools)

    def _message_finish(self, event: MessageFinish, changes: Changes) -> Frames:
        if not changes:
            yield self._frames.custom(event)
            return
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self._close_blocks(changes)
        data = without_lane(event)
        yield self._frames.frame("messages", data | write_usage(event.usage or self._usage))

    def _message_interrupted(self, event: MessageInterrupted, changes: Changes) -> Frames:
        if changes and self._open:
            yield from self._close_blocks(changes)
            mark = {INTERRUPTED: True if event.reason is None else event.reason}
            yield self._frames.message("message-finish", **mark, **write_usage(self._usage))
        else:
            yield self._frames.custom(event)

    def _close_blocks(self, changes: Changes) -> Frames:
        """Finish the blocks that the end of the message closes. To our reader, that end finishes them."""
        self._open = False
        for change in changes:
            if change.kind == "closed":
                yield from self.blocks.finish(change.fold, change.fold.block, synthetic=True)

    def _attempt_reset(self, event: AttemptReset, changes: Changes) -> Frames:
        """End the attempt's message. Its error stays here: `on_error` is not asked what may be shown of it."""
        event = AttemptReset(event.attempt, usage=event.usage, choice=event.choice)
        if changes[0].kind == "reset":
            yield from self.blocks.close()
            yield from self._tools.close(self.blocks)
        if self._open:
            fields = without_lane(event)
            del fields["event"]
            yield self._frames.message("error", message=_NEW_ATTEMPT, **{ATTEMPT_RESET: fields})
        else:
            yield self._frames.custom(event)
        self._put_away()

    def _usage_update(self, event: UsageUpdate, changes: Changes) -> Frames:
        if changes:
            self._usage = event.usage
        yield self._frames.custom(event)

    # Blocks.

    def _block_start(self, event: BlockStart, changes: Changes) -> Frames:
        for change in changes:
            fold, before = change.fold, change.before
            if before is not None:
                yield from self.blocks.cut(fold, before)
            yield from self._start_block(event.index, fold, fold.block)

    def _start_block(self, key: Index, fold: BlockFold, begun: Block) -> Frames:
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self.blocks.start(key, fold, begun)

    def _block_delta(self, event: BlockDelta, changes: Changes) -> Frames:
        for change in changes:
            yield from self.blocks.change(change.fold, event)

    def _block_finish(self, event: BlockFinish, changes: Changes) -> Frames:
        for change in changes:
            if change.kind == "overruled":  # other readers keep the first finish
                yield self._frames.custom(event)
            elif change.kind == "closed":
                fold, before = change.fold, change.before
                if len(changes) > 1 and before is not None:  # the block had no start
                    yield from self._start_block(event.index, fold, before)
                yield from self.blocks.finish(fold, fold.block, as_folded=event.content is None)

    _STEPS: ClassVar[Mapping[type, Callable[..., Iterable[LangChainFrame]]]] = {
        MessageStart: _message_start,
        BlockStart: _block_start,
        BlockDelta: _block_delta,
        BlockFinish: _block_finish,
        UsageUpdate: _usage_update,
        MessageFinish: _message_finish,
        MessageInterrupted: _message_interrupted,
        AttemptReset: _attempt_reset,
    }


def _is_plain(name: str, value: object) -> bool:
    """Whether the protocol allows this in the metadata of a message's start."""
    if name in _STRING_METADATA:
        return isinstance(value, str)
    return value is None or isinstance(value, (bool, int, float, str))


_STRING_METADATA = frozenset(
    ["provider", "model", "model_type", "run_id", "thread_id", "system_fingerprint", "service_tier"]
)
