"""How a reply grows by small `Snapshot`s: content by slot, calls by index and id.

A left fold. It is associative for parts, and for calls whose fragments carry one id (or none at all) and
whose name comes whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union, overload

import attrs

from rxdelta.core._blocks import Block, ContentPart, ToolCall, change, change_part, place_for, raw_arguments
from rxdelta.core._errors import MergeError
from rxdelta.core._events import Event, StreamError
from rxdelta.core._fold import apply_event
from rxdelta.core._frozen import FrozenDict, is_list, is_mapping
from rxdelta.core._snapshot import Head, Snapshot, add_usage, make_delta

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["absorb_content", "merge_delta", "merge_deltas"]

Nested: TypeAlias = Union[Snapshot, Event, "Sequence[Nested]"]


def merge_delta(primary: Snapshot | None, delta: Snapshot | Event) -> Snapshot:
    """The snapshot `primary` with one more delta merged into it.

    Content goes to the slot `delta.index` (0 if it has none): a part of the newest part's type there is
    joined to it, another type makes a new block behind it, empty text is nothing. Each call's fragment goes,
    among the calls of its index, to the one with its id; else to an open one that has no id yet; else, if the
    fragment has no id, to the newest; else it begins a new call. A delta that is itself a snapshot is merged
    block by block. Status moves only forward, usage is added, of other metadata the last wins. A delta of
    another choice changes nothing.

    Args:
        primary: The reply so far; `None` is an empty assistant message, whatever role the delta has.
        delta: A small delta, a snapshot, or an event. A `StreamError` leaves `primary` as it is; any other
            event is applied as by `apply_event`.

    Raises:
        MergeError: `primary` is not an assistant's.

    Example:
        >>> import rxdelta as rd
        >>> start = rd.Snapshot(tool_calls=[rd.ToolCall(call_id="c1", name="add", index=0)])
        >>> more = rd.Snapshot(tool_calls=[rd.ToolCall(arguments='{"a":1}', index=0)])
        >>> rd.merge_deltas([start, more]).tool_calls[0].arguments
        '{"a":1}'
    """
    if primary is None:
        primary = make_delta(Head(role="assistant", choice=getattr(delta, "choice", 0), started=False), ())
    if isinstance(delta, StreamError):
        return primary
    if not isinstance(delta, Snapshot):
        return apply_event(primary, delta)
    if delta.choice != primary.choice:
        return primary
    if primary.role != "assistant":
        raise MergeError(
            f"cannot merge into a delta whose role is {primary.role!r}; begin with merge_delta(None, …)"
        )
    base = absorb_content(primary)
    blocks = list(base.blocks)
    _merge_content(blocks, delta)
    for block in delta.blocks:
        if isinstance(block, ToolCall):
            _merge_call(blocks, block)
        else:
            _merge_part(blocks, block)
    return make_delta(_merge_head(base._head, delta._head), tuple(blocks))


def absorb_content(delta: Snapshot) -> Snapshot:
    """The delta with its own unmerged `content` merged into its blocks."""
    if delta.content is None:
        return delta
    blocks = list(delta.blocks)
    _merge_content(blocks, delta)
    return make_delta(attrs.evolve(delta._head, content=None), tuple(blocks))


def _merge_content(blocks: list[Block], delta: Snapshot) -> None:
    for part in _parts(delta.content):
        _merge_part(blocks, change_part(part, key=("part", delta.index or 0), open=False))


@overload
def merge_deltas(deltas: Sequence[Nested], /) -> Snapshot | None: ...
@overload
def merge_deltas(accumulated: Snapshot | None, deltas: Sequence[Nested], /) -> Snapshot | None: ...
def merge_deltas(*arguments: Any) -> Snapshot | None:
    """`merge_delta` over many: `merge_deltas(deltas)` or `merge_deltas(accumulated, deltas)`.

    Lists may be nested at any depth. Without a delta the result is `accumulated` as it is, `None` without
    one.

    Raises:
        MergeError: As `merge_delta`.
    """
    accumulated, deltas = arguments if len(arguments) == 2 else (None, arguments[0])
    snapshot: Snapshot | None = accumulated
    for delta in _flat(deltas):
        snapshot = merge_delta(snapshot, delta)
    return snapshot


def _flat(deltas: Iterable[Any]) -> Iterable[Snapshot | Event]:
    pending = [iter(deltas)]
    while pending:  # a loop, because the depth is the caller's to choose
        for delta in pending[-1]:
            if is_list(delta):
                pending.append(iter(delta))
                break
            yield delta
        else:
            pending.pop()


def _parts(content: object) -> list[ContentPart]:
    parts = [_part(item) for item in (content if is_list(content) else (content,))]
    return [part for part in parts if part is not None and not (part.type == "text" and part.text == "")]


def _part(item: Any) -> ContentPart | None:
    """Text and parts count; of untyped mappings only `{"type": "text", "text": …}` does."""
    if isinstance(item, str):
        return ContentPart("text", item)
    if is_mapping(item):
        typed: Mapping[str, Any] = item
        text = typed.get("text")
        return ContentPart("text", text) if typed.get("type") == "text" and isinstance(text, str) else None
    return item if isinstance(item, ContentPart) else None


def _merge_part(blocks: list[Block], part: ContentPart) -> None:
    for place in range(len(blocks) - 1, -1, -1):
        known = blocks[place]
        if known.key == part.key and isinstance(known, ContentPart):
            if known.type == part.type:
                blocks[place] = known.merge(part)
            else:
                blocks.insert(place + 1, part)
            return
    _insert(blocks, part)


def _insert(blocks: list[Block], block: Block) -> None:
    blocks.insert(place_for(blocks, block.key), block)


def _merge_call(blocks: list[Block], fragment: ToolCall) -> None:
    place = _place_of_call(blocks, fragment)
    if place is None:
        _insert(blocks, fragment)
        return
    known = blocks[place]
    if isinstance(known, ToolCall):
        again = known.status == fragment.status == "complete"  # sent again, it brings no new text
        arguments = None if again else raw_arguments(fragment)
        blocks[place] = known.merge(change(fragment, index=known.index, arguments=arguments))


def _place_of_call(blocks: list[Block], fragment: ToolCall) -> int | None:
    known = [
        (n, block)
        for n, block in enumerate(blocks)
        if isinstance(block, ToolCall) and block.key == fragment.key and block.type == fragment.type
    ]
    if not known:
        return None
    if fragment.call_id is not None:
        same = [n for n, call in known if call.call_id == fragment.call_id]
        if same:
            return same[-1]
    unnamed = [n for n, call in known if call.call_id is None and call.status == "incomplete"]
    if unnamed:
        return unnamed[-1]
    return known[-1][0] if fragment.call_id is None else None


def _merge_head(mine: Head, theirs: Head) -> Head:
    return attrs.evolve(
        mine,
        status=theirs.status if mine.status == "incomplete" else mine.status,
        index=mine.index if theirs.index is None else theirs.index,
        metadata=FrozenDict({**mine.metadata, **theirs.metadata}) if theirs.metadata else mine.metadata,
        usage=add_usage(mine.usage, theirs.usage),
        id=mine.id or theirs.id,
        model=mine.model or theirs.model,
        finish_reason=theirs.finish_reason or mine.finish_reason,
        provider_finish_reason=theirs.provider_finish_reason or mine.provider_finish_reason,
        attempt=max(mine.attempt, theirs.attempt),
        failed_usage=add_usage(mine.failed_usage, theirs.failed_usage),
    )
