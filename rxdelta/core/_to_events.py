"""The way back through the door: a snapshot as events, for a reader who comes late."""

from __future__ import annotations

from rxdelta.core._block_wire import block_to_wire
from rxdelta.core._blocks import TERMINAL, ToolCall
from rxdelta.core.events import (
    AttemptReset,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolUpdate,
)
from rxdelta.core._merge import absorb_content
from rxdelta.core._snapshot import MessageDelta

__all__ = ["to_events"]


def to_events(snapshot: MessageDelta) -> list[Event]:
    """The shortest legal list of events that folds to this snapshot.

    A block's start carries all of its text so far, so a block is one event, or two if it has ended. Blocks that came
    by events keep their index; in a snapshot merged from small deltas, whose keys are no indexes, they are numbered.

    Example:
        >>> import rxdelta as rd
        >>> snapshot = rd.apply_event(None, rd.events.BlockStart(0, {"type": "text", "text": "Hi"}))
        >>> [event.event for event in rd.to_events(snapshot)]
        ['message-start', 'content-block-start']
    """
    snapshot = absorb_content(snapshot)
    head = snapshot._head
    choice = head.choice
    found: list[Event] = []
    if head.attempt:
        found.append(AttemptReset(head.attempt, usage=head.failed_usage))
    metadata = {name: value for name, value in head.metadata.items() if name != "interrupted"}
    found.append(MessageStart(head.id, head.model, head.usage, metadata, choice=choice))
    keep = all(isinstance(block.key, (int, str)) for block in snapshot.blocks)
    open_at_end = snapshot.status == "incomplete"
    for place, block in enumerate(snapshot.blocks):
        index = block.key if keep and isinstance(block.key, (int, str)) else place
        found.append(BlockStart(index, block_to_wire(block), choice=choice))
        unfinished = open_at_end and (block.open or (isinstance(block, ToolCall) and block.status == "incomplete"))
        if not unfinished or getattr(block, "type", "") == "invalid_tool_call":
            found.append(BlockFinish(index, choice=choice))
        if isinstance(block, ToolCall) and block.call_id is not None and block.type == "tool_call":
            found += _tool_updates(block, block.call_id)
    if snapshot.status == "interrupted":
        why = head.metadata.get("interrupted")
        found.append(MessageInterrupted(why if isinstance(why, str) else None))
    elif not open_at_end:
        reason = head.finish_reason or ("length" if snapshot.status == "length" else None)
        found.append(MessageFinish(reason, head.provider_finish_reason, choice=choice))
    return found


def _tool_updates(call: ToolCall, call_id: str) -> list[Event]:
    status = call.metadata.get("execution_status")
    if status is None and call.display_text is None and call.result is None:
        return []
    known = status if isinstance(status, str) else None
    result = call.result
    if status in TERMINAL and result is None:
        return [ToolUpdate(call_id, known, call.display_text)]
    return [ToolUpdate(call_id, known, call.display_text, result)]
