"""A snapshot as events, for a late subscriber."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from rxdelta.core._block_fold import grows_by
from rxdelta.core._block_wire import block_to_wire, has_text_field
from rxdelta.core._blocks import Block
from rxdelta.core._content_part import change_part
from rxdelta.core._event_fields import Index
from rxdelta.core._events import (
    AttemptReset,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolUpdate,
)
from rxdelta.core._fast_constructor import set_field
from rxdelta.core._message import Message
from rxdelta.core._message_delta import as_snapshot
from rxdelta.core._snapshot import Head, make_snapshot
from rxdelta.core._tool_call import ToolCall
from rxdelta.core._values import check, one_of

if TYPE_CHECKING:
    from rxdelta.core._snapshot import Snapshot

__all__ = ["to_events"]


def to_events(snapshot: Snapshot | Message) -> list[Event]:
    """The shortest legal list of events that folds to this snapshot, or to a finished message.

    The start of a block carries all of its text so far. So a block is one event, or two if it has ended, and one more
    if a tool has news. Blocks that were folded from events keep their index. Blocks of a snapshot that was merged from
    small deltas have no index and are numbered, as are those of a message.

    `run_tools` goes on with the calls of a reply that was stored: those that wait for approval are decided, and those
    that have an outcome or had been started are not run again.

    Raises:
        InvalidValueError: A message of another role than `assistant`.

    Example:
        >>> import rxdelta as rd
        >>> snapshot = rd.apply_event(None, rd.events.BlockStart(0, {"type": "text", "text": "Hi"}))
        >>> [event.event for event in rd.to_events(snapshot)]
        ['message-start', 'content-block-start']
    """
    snapshot = _of_message(snapshot) if isinstance(snapshot, Message) else as_snapshot(snapshot)
    choice, metadata = snapshot.choice, dict(snapshot.metadata)
    interrupted, ended = snapshot.status == "interrupted", snapshot.status != "incomplete"
    why = metadata.get("interrupted")
    if interrupted and isinstance(why, str):
        del metadata["interrupted"]
    found: list[Event] = []
    if snapshot.attempt or snapshot.failed_usage:
        found.append(AttemptReset(snapshot.attempt, usage=snapshot.failed_usage))
    start = MessageStart(
        snapshot.id,
        snapshot.model,
        snapshot.usage,
        metadata,
        choice=choice,
        parent_run_id=snapshot.parent_run_id,
        violations=snapshot.violations,
        assumed=_lacks_start(snapshot),
    )
    found.append(start)
    own: list[tuple[int, Event]] = []  # of the application, each with its place among the others
    custom = deque(snapshot._custom)
    for number, (index, block) in enumerate(_indexed(snapshot.blocks)):
        while custom and custom[0][0] <= number:
            own.append((len(found), custom.popleft()[1]))
        found += _block_events(index, block, choice, ended)
    while custom and custom[0][0] <= len(snapshot.blocks):
        own.append((len(found), custom.popleft()[1]))
    if interrupted:
        found.append(MessageInterrupted(why if isinstance(why, str) else None))
    elif ended:
        reason = snapshot.finish_reason or ("length" if snapshot.status == "length" else None)
        found.append(MessageFinish(reason, snapshot.provider_finish_reason, choice=choice))
    if snapshot.run_id is not None:
        for event in found:
            set_field(event, "run_id", snapshot.run_id)
    for place, event in reversed(own):
        found.insert(place, event)
    return [*found, *(event for _, event in custom)]


def _of_message(message: Message) -> Snapshot:
    check([one_of("role", message.role, ("assistant",))])
    head = Head(
        role="assistant",
        status=message.status,
        metadata=message.metadata,
        usage=message.usage,
        choice=message.choice,
        id=message.id,
        model=message.model,
        finish_reason=message.finish_reason,
        provider_finish_reason=message.provider_finish_reason,
        attempt=message.attempt,
        failed_usage=message.failed_usage,
        run_id=message.run_id,
        parent_run_id=message.parent_run_id,
        custom=message._custom,
        violations=message.violations,
    )
    return make_snapshot(head, message.blocks)


def _lacks_start(snapshot: Snapshot) -> bool:
    """Whether the message's start may still come. Blocks that broke no rule were merged, and have no start."""
    return not snapshot._head.started and (bool(snapshot.violations) or not snapshot.blocks)


def _indexed(blocks: tuple[Block, ...]) -> list[tuple[Index, Block]]:
    """The blocks with their own indexes, or numbered if those would not give the same order again."""
    kept = [(block.key, block) for block in blocks if isinstance(block.key, (int, str))]
    numbers = [index for index, _ in kept if isinstance(index, int)]
    if len({index for index, _ in kept}) == len(blocks) and numbers == sorted(numbers):
        return kept
    return list(enumerate(blocks))


def _block_events(index: Index, block: Block, choice: int, ended: bool) -> list[Event]:
    if not isinstance(block, ToolCall):
        finish = [] if block.open and not ended else [BlockFinish(index, choice=choice)]
        if block.text is None or has_text_field(block):
            return [BlockStart(index, block_to_wire(block), choice=choice), *finish]
        start = BlockStart(index, block_to_wire(change_part(block, text=None)), choice=choice)
        return [start, grows_by(block)(index, block.text, choice=choice), *finish]
    unparsed = block.open or (block.type == "tool_call" and block.status == "incomplete")
    finish = [] if unparsed and not ended else [BlockFinish(index, choice=choice)]
    # News come before the finish: a reader of single blocks takes a call without news to be over at its finish.
    return [BlockStart(index, block_to_wire(block), choice=choice), *_news(block), *finish]


def _news(call: ToolCall) -> list[Event]:
    known: Any = call.metadata.get("execution_status")
    status: Any = known if isinstance(known, str) else None
    if call.call_id is None or (status, call.display_text, call.result) == (None, None, None):
        return []
    return [ToolUpdate(call.call_id, status, call.display_text, call.result)]
