"""A reply without the details that a format loses, so that what was written can be compared with what is read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import pairwise
from typing import Any

import rxdelta as rd
from rxdelta.formats import registry
from rxdelta.formats.conversation import medium_of

__all__ = ["overlap", "read", "told"]

Told = dict[str, Any]


def read(chunks: Iterable[Any], wire_format: str) -> list[rd.Event]:
    """The events of the chunks."""
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def overlap(events: Iterable[rd.Event]) -> bool:
    """Whether blocks are open together, or don't begin in their order, so that a format may write them in another."""
    begun: list[tuple[int, Any]] = []
    is_open = set[object]()
    for event in events:
        if isinstance(event, rd.events.BlockStart):
            begun.append((event.choice, event.index))
            is_open.add(event.index)
            if len(is_open) > 1:
                return True
        elif isinstance(event, rd.events.BlockFinish):
            is_open.discard(event.index)
    return any(a > b for a, b in pairwise(begun) if a[0] == b[0])


def told(events: Iterable[rd.Event], wire_format: str, *, sort: bool = False) -> dict[int, Told]:
    """What the events say, choice by choice, without what the format loses.

    Args:
        sort: Whether the order of the blocks doesn't count.
    """
    known = registry.get(wire_format)
    readers = {*known.vendors, known.name}
    found = [*events]
    failed = any(isinstance(event, rd.events.StreamError) for event in found)
    replies = {
        choice: _told(reply, known.loses, readers, failed, sort) for choice, reply in _replies(found).items()
    }
    return {choice: said for choice, said in replies.items() if said != {"blocks": []}}


def _replies(events: Iterable[rd.Event]) -> dict[int, rd.Snapshot]:
    folds: dict[int, rd.Fold] = {}
    found = [*events]
    choices: set[int] = {getattr(event, "choice", None) or 0 for event in found}
    for choice in sorted(choices):
        folds[choice] = rd.Fold(choice=choice)
        for event in found:
            if isinstance(event, rd.events.StreamError):
                break
            folds[choice].step(event)
    return {choice: fold.snapshot for choice, fold in folds.items()}


def _told(reply: rd.Snapshot, loses: Collection[str], readers: set[str], failed: bool, sort: bool) -> Told:
    is_broken = failed or reply.status == "incomplete"
    blocks = [_block(block, loses, readers) for block in reply.blocks]
    if "empty_blocks" in loses:
        blocks = [block for block in blocks if block.keys() - {"type", "options"}]
    if is_broken:
        blocks = [_so_far(block) for block in blocks if "text" in block or "name" in block]
    if "cut_calls" in loses and (is_broken or reply.finish_reason == "length"):
        blocks = [block for block in blocks if "name" not in block]
    if sort:
        blocks = sorted(blocks, key=str)
    if "borders" in loses:
        blocks = _joined(blocks)
        for block in blocks if sort else ():
            block |= {
                name: sorted(value, key=str)
                for name, value in block.items()
                if name in ("text", "citations", "signatures")
            }
    if is_broken:  # all else may come with the end
        return {"blocks": [block for block in blocks if "open_calls" not in loses or "name" not in block]}
    said: Told = {"blocks": blocks, "status": reply.status, "usage": _usage(reply.usage, loses)}
    said["finish_reason"] = reply.finish_reason
    if "finish_reason" in loses and reply.finish_reason in ("content_filter", "pause"):
        said["finish_reason"] = "stop"
    if "id" not in loses:
        said["id"] = reply.id or "reply-1"
    if "model" not in loses:
        said["model"] = reply.model
    if "metadata" not in loses:
        said |= {"metadata": rd.core.thaw(reply.metadata), "word": reply.provider_finish_reason}
    return said


def _so_far(block: Told) -> Told:
    """What is said of a block before it ends. An encoder may say by its end that a call was cut."""
    if "text" in block:
        return {"type": block["type"], "text": block["text"]}
    cut = block["status"] == "incomplete"
    return {**block, "type": "tool_call" if cut else block["type"], "options": None}


def _block(block: Any, loses: Collection[str], readers: set[str]) -> Told:
    fields = block.metadata if isinstance(block, rd.ToolCall) else block.options
    said: Told = {"type": block.type}
    if isinstance(block, rd.ToolCall):
        said |= {"name": block.name, "arguments": rd.core.thaw(block.arguments), "status": block.status}
        if "call_ids" not in loses:
            said["id"] = block.call_id
        if block.result is not None:
            said["result"] = (rd.core.thaw(block.result.content), block.result.is_error)
    elif (medium := medium_of(block)) is not None:
        said |= {"type": medium.kind, "data": medium.data, "url": medium.url}
        if "media_type" not in loses:
            said["mime_type"] = medium.mime_type
    elif block.type == "server_tool_result":
        said["output"] = rd.core.thaw(block.options).get("output")
    elif block.text:
        said["text"] = block.text
    if isinstance(block, rd.ContentPart) and block.citations:
        said["citations"] = [_citation(one, loses) for one in block.citations]
    by = fields.get("signed_by")
    signature = fields.get("signature")
    kind = "signatures" if block.type == "reasoning" else "other_signatures"
    if signature and kind not in loses and (by is None or not readers.isdisjoint(str(by).split(" via "))):
        said["signatures"] = [signature]
    if "block_options" not in loses:
        said["options"] = rd.core.thaw(fields)
    if fields.get("redacted"):
        said["data"] = fields.get("data")
    return said


def _citation(citation: rd.Citation, loses: Collection[str]) -> Told:
    said: Told = {"url": citation.url, "title": citation.title or citation.url}
    if "citation_details" not in loses:
        said |= {"cited_text": citation.cited_text, "start": citation.start_index, "end": citation.end_index}
    return said


def _joined(blocks: list[Told]) -> list[Told]:
    """Neighbouring texts of one type as one."""
    joined: list[Told] = []
    for block in blocks:
        if (
            joined
            and block["type"] in ("text", "reasoning", "refusal")
            and joined[-1]["type"] == block["type"]
        ):
            for name, value in block.items():
                if name != "type":
                    before = joined[-1].get(name, type(value)())
                    joined[-1][name] = before | value if isinstance(value, dict) else before + value
        else:
            joined.append({**block})
    return joined


def _usage(usage: rd.TokenUsage | None, loses: Collection[str]) -> dict[str, int]:
    billed = {} if usage is None else rd.providers.completed(usage).billed
    names = ("input_tokens", "output_tokens") if "usage_details" in loses else billed
    return {name: billed[name] for name in names if billed.get(name)}
