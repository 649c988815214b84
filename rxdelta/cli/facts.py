"""What an inspection says of a stream and of each reply, as pairs of a name and a value in words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rxdelta.cli.account import Account, BlockAccount, Place, say_usage
from rxdelta.cli.files import error_text, name_of
from rxdelta.cli.inspected import Inspection
from rxdelta.core import ContentPart, ToolCall

Facts = list[tuple[str, str]]

_SHOWN = 12  # names of a list


def seconds(value: float) -> str:
    """A time for people: `0.412 s`, `12.41 s`, `3 min 20.5 s`; none is too long."""
    if value < 10:
        return f"{value:.3f} s"
    if value >= 1e7:
        return f"{value:.3g} s"
    if value < 100:
        return f"{value:.2f} s"
    minutes, rest = divmod(value, 60)
    hours, minutes = divmod(int(minutes), 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest:.1f} s"


def in_seconds(value: float) -> str:
    """A time for a column: `12.410`."""
    return f"{value:.3f}" if value < 1e7 else f"{value:.3g}"


def chunk_text(chunk: Any) -> str:
    """The JSON of a chunk. The text `[DONE]` stays."""
    return chunk if isinstance(chunk, str) else json.dumps(chunk, ensure_ascii=False)


def title_of(reply: Account, several: bool, number: int) -> str:
    """The name of a reply among those of a file."""
    parts = [f"reply {number}" if several else "reply"]
    parts += [f"run {reply.run_id}"] if reply.run_id else []
    parts += [f"choice {reply.choice}"] if reply.choice else []
    return ", ".join(parts)


def stream_facts(inspection: Inspection) -> Facts:
    """The facts of the whole file."""
    found = [("holds", inspection.kind), ("format", inspection.wire_format)]
    counts = [f"{inspection.events:,} events"]
    if inspection.chunks:
        counts.append(f"{inspection.chunks:,} chunks")
    if inspection.empty_chunks:
        counts.append(f"{inspection.empty_chunks:,} of them without an event")
    found.append(("size", ", ".join(counts)))
    if inspection.has_times and inspection.end is not None:
        found.append(("lasts", seconds(inspection.end.at)))
    else:
        found.append(("times", "none: the events are in order, and not in time"))
    found.append(("unread fields", _counted(inspection.fields.unread())))
    if inspection.error is not None:
        found.append(("error", error_text(inspection.error)))
    return [(name, value) for name, value in found if value]


def reply_facts(reply: Account, has_times: bool) -> Facts:
    """The facts of one reply."""
    snapshot = reply.snapshot
    reason: str | None = snapshot.finish_reason
    if reason and snapshot.provider_finish_reason not in (None, reason):
        reason += f" (the provider's word: {snapshot.provider_finish_reason})"
    found: list[tuple[str, str | None]] = [
        ("id", snapshot.id),
        ("model", snapshot.model),
        ("run", _run(reply)),
        ("choice", str(reply.choice) if reply.choice else None),
        ("status", snapshot.status),
        ("finish reason", reason),
        ("failed attempts", str(snapshot.attempt) if snapshot.attempt else None),
        ("events", f"{reply.events:,}"),
        ("blocks", f"{len(reply.blocks):,}"),
    ]
    if has_times:
        found += _times(reply)
    found += [
        ("tokens", say_usage(snapshot.usage).removeprefix("tokens: ")),
        ("of failed attempts", say_usage(snapshot.failed_usage).removeprefix("tokens: ")),
        ("provider's own", _counted(reply.own)),
        ("violations", _counted(reply.broken)),
        ("error", None if reply.error is None else error_text(reply.error)),
    ]
    return [(name, value) for name, value in found if value]


def block_facts(block: BlockAccount, has_times: bool) -> str:
    """A block's size and times on one line."""
    pieces = f" in {block.deltas:,} piece{'s' if block.deltas > 1 else ''}" if block.deltas else ""
    parts = [f"{block.size:,} character{'' if block.size == 1 else 's'}{pieces}"]
    if isinstance(block.block, ContentPart) and block.block.citations:
        count = len(block.block.citations)
        parts.append(f"{count} citation{'s' if count > 1 else ''}")
    if has_times:
        parts.append(f"{seconds(block.begin.at)} – {seconds(block.end.at)}")
    else:
        parts.append(f"events {block.begin.number:,} – {block.end.number:,}")
    status = state_of(block)
    return " · ".join([*parts, *([status] if status else [])])


def state_of(block: BlockAccount) -> str:
    """The state of a block in a word; empty if it simply ended."""
    call = block.block
    if call is None:
        return "never began"
    if not isinstance(call, ToolCall):
        return "unfinished" if call.open else ""
    words = ["unfinished"] if call.open else []
    if call.type == "invalid_tool_call":
        words.append(f"invalid: {call.error}" if call.error else "invalid")
    words += [f"tool {span.status}" for span in block.runs[-1:]]
    return ", ".join(words)


def _times(reply: Account) -> list[tuple[str, str | None]]:
    content, gap = reply.content, reply.longest_gap
    rate = reply.tokens_per_second
    return [
        ("first event", _at(reply.begin)),
        ("first content", None if content is None else _at(content[0])),
        ("first text", _at(reply.first_text)),
        ("last event", _at(reply.end)),
        (
            "longest gap",
            None
            if gap is None
            else f"{seconds(gap.seconds)}, from {seconds(gap.begin.at)} to {seconds(gap.end.at)}, before event {gap.end.number:,}",
        ),
        (
            "speed",
            None if rate is None else f"{rate:,.1f} tokens a second, from the first content to the last",
        ),
    ]


def _at(place: Place | None) -> str | None:
    return None if place is None else f"at {seconds(place.at)}"


def _run(reply: Account) -> str | None:
    parent = reply.snapshot.parent_run_id
    if reply.run_id is None:
        return None
    return reply.run_id if parent is None else f"{reply.run_id}, for {parent}"


def _counted(names: Mapping[str, int]) -> str:
    said = [f"{name} ({count:,})" if count > 1 else name for name, count in [*names.items()][:_SHOWN]]
    more = [f"and {len(names) - _SHOWN} more"] if len(names) > _SHOWN else []
    return ", ".join([*said, *more])


def fields_of(inspection: Inspection) -> dict[str, Any]:
    """The whole account for programs: JSON values."""
    return {
        "holds": inspection.kind,
        "format": inspection.wire_format,
        "event_count": inspection.events,
        "chunk_count": inspection.chunks,
        "has_times": inspection.has_times,
        "unread_fields": inspection.fields.unread(),
        "error": _error_fields(inspection.error),
        "replies": [_reply_fields(reply) for reply in inspection.replies],
    }


def _reply_fields(reply: Account) -> dict[str, Any]:
    snapshot, gap = reply.snapshot, reply.longest_gap
    usage = snapshot.usage
    return {
        "id": snapshot.id,
        "model": snapshot.model,
        "run_id": reply.run_id,
        "choice": reply.choice,
        "status": snapshot.status,
        "finish_reason": snapshot.finish_reason,
        "provider_finish_reason": snapshot.provider_finish_reason,
        "failed_attempts": snapshot.attempt,
        "event_count": reply.events,
        "first_event": None if reply.begin is None else reply.begin.at,
        "first_content": None if reply.content is None else reply.content[0].at,
        "first_text": None if reply.first_text is None else reply.first_text.at,
        "last_event": None if reply.end is None else reply.end.at,
        "longest_gap": None
        if gap is None
        else {"seconds": gap.seconds, "from": gap.begin.at, "to": gap.end.at},
        "tokens_per_second": reply.tokens_per_second,
        "usage": None if usage is None else usage.to_dict(),
        "violations": dict(reply.broken),
        "error": _error_fields(reply.error),
        "blocks": [
            {
                "index": block.index,
                "type": block.kind,
                "name": block.name or None,
                "characters": block.size,
                "pieces": block.deltas,
                "from": block.begin.at,
                "to": block.end.at,
                "attempt": block.attempt,
            }
            for block in reply.blocks
        ],
    }


def _error_fields(error: BaseException | None) -> dict[str, Any] | None:
    return None if error is None else {"type": name_of(error), "message": str(error)}
