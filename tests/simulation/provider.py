"""The provider: what it says in a wire format, as chunks or as bytes cut anywhere, with what goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from functools import cache, lru_cache
from typing import Any

from support.expectation import expected_of
from support.shared import recordings

import rxdelta as rd
from rxdelta.testing import FakeProvider
from simulation.world import Attempt, Call, Part, Thought, World

USAGE = (7, 5)
OVERLAP = 12  # the default of `retry_stream`
WIRES = tuple(name for name in rd.providers.FORMATS if name != "openai-completions")  # which has no calls
NO_BYTES = ("bedrock-converse",)  # whose bytes are no text


class SourceError(BaseException):
    """What no library may swallow."""


def arguments_of(number: int) -> dict[str, Any]:
    """Long enough to come in pieces."""
    return {"n": number, "note": f"nöte {number}"}


def parts_of(says: Sequence[Part], letters: int, woven: bool, first: int, ends: str) -> list[Any]:
    """For `FakeProvider`; the calls are numbered from `first`."""
    out: list[Any] = []
    number = first
    row: list[rd.ToolCall[Any, Any]] = []
    for part in [*says, None]:
        if isinstance(part, Call):
            row.append(rd.ToolCall(call_id=f"c{number}", name=part.tool, arguments=arguments_of(number)))
            number += 1
            continue
        out += [tuple(row)] if woven and len(row) > 1 else row
        row = []
        if isinstance(part, Thought):
            out.append(rd.ContentPart("reasoning", part.text))
        elif part is not None:
            size = letters or len(part)
            out += [part[at : at + size] for at in range(0, len(part), size)]
    if ends == "error":
        return [*out, rd.events.StreamError("too much to do", "overloaded_error")]
    reason = "tool_use" if number > first else "stop"
    return [*out, rd.events.MessageFinish(reason, usage=rd.TokenUsage(*USAGE))]


@lru_cache(20_000)
def _chunks(
    says: tuple[Part, ...], letters: int, woven: bool, wire: str, first: int, ends: str
) -> tuple[dict[str, Any], ...]:
    return tuple(FakeProvider(parts_of(says, letters, woven, first, ends)).chunks(wire))


@cache
def recorded(wire: str) -> dict[str, tuple[list[Any], Any]]:
    """The short recorded streams of a format by their names, with what they must fold to; none where there are none."""
    known = {str(each.id): each.values for each in recordings(wire) if not each.marks}
    return {
        name: (chunks, expected_of(told))
        for name, (chunks, told) in known.items()
        if len(chunks) < 60 and told is not None and "choices" not in told
    }


def recording(name: str) -> tuple[list[Any], Any]:
    """The chunks of `format/name`, and what they must fold to."""
    wire, _, stream = name.partition("/")
    return recorded(wire)[stream]


def chunks_of(
    world: World, says: tuple[Part, ...], first: int = 0, ends: str = "whole"
) -> list[dict[str, Any]]:
    if world.recorded:
        return [*recording(world.recorded)[0]]
    ends = "error" if ends == "error" else ""
    return [*_chunks(says, world.letters, world.woven, world.format, first, ends)]


def bytes_of(wire: str, chunks: Sequence[dict[str, Any]]) -> bytes:
    """The stream as this provider frames it: lines of JSON from Ollama, else events of SSE."""
    texts = [json.dumps(chunk, ensure_ascii=False) for chunk in chunks]
    if wire == "ollama":
        return "".join(f"{text}\n" for text in texts).encode()
    return "".join(f"data: {text}\n\n" for text in texts).encode()


def units(world: World, attempt: Attempt, chunks: list[dict[str, Any]]) -> list[Any]:
    """The chunks, or pieces of bytes, that this attempt sends, up to its end."""
    sent: list[Any] = chunks
    if world.cuts is not None:
        whole = bytes_of(world.format, chunks)
        places = sorted(len(whole) * cut // 1000 for cut in world.cuts)
        sent = [whole[start:end] for start, end in zip([0, *places], [*places, len(whole)], strict=True)]
    for fault in attempt.faults:
        at = min(len(sent) * fault.at // 1000, len(sent) - 1)
        if at < 0:
            break
        match fault.how:
            case "double":
                sent.insert(at, sent[at])
            case "drop":
                del sent[at]
            case "swap":
                sent[at : at + 2] = sent[at : at + 2][::-1]
            case "garble":
                sent[at] = {"nonsense": [1]} if world.cuts is None else b"\xff\x00data: {nonsense\n\n"
    return sent if attempt.ends in ("whole", "error") else sent[: len(sent) * attempt.at // 1000]


def _choice(chunk: Any) -> str:
    content = ((chunk.get("choices") or [{}])[0].get("delta") or {}).get("content") or ""
    if isinstance(content, str):
        return content
    return "".join(each.get("text", "") for each in content)  # beside reasoning, from Mistral


PLAIN: dict[str, Any] = {
    "openai-chat": _choice,
    "mistral": _choice,
    "ollama": lambda chunk: chunk.get("message", {}).get("content") or "",
    "anthropic-messages": lambda chunk: chunk.get("delta", {}).get("text") or "",
    "gemini": lambda chunk: "".join(
        part.get("text", "")
        for each in chunk.get("candidates", ())
        for part in each.get("content", {}).get("parts", ())
        if not part.get("thought")
    ),
}
"""The text of one chunk, in formats where that needs no context."""


def heard(world: World) -> list[str] | None:
    """The text at each chunk of the one request, whose chunks are doubled, dropped or swapped; `None` if it can't be told."""
    only = world.attempts[0]
    hows = {fault.how for fault in only.faults}
    if len(world.attempts) > 1 or world.cuts is not None or world.recorded or "garble" in hows:
        return None
    if world.wire not in PLAIN:
        return None
    sent = units(world, only, chunks_of(world, world.says, ends=only.ends))
    texts = [""]
    for unit in sent:
        texts.append(texts[-1] + PLAIN[world.format](unit))
    return texts


async def send(attempt: Attempt, sent: Sequence[Any]) -> AsyncIterator[Any]:
    """The request's stream, as an SDK gives it."""
    try:
        for number, unit in enumerate(sent):
            match attempt.pauses:
                case "turns":
                    await asyncio.sleep(0)
                case "tenths":
                    await asyncio.sleep(0.1)
                case "uneven":
                    await asyncio.sleep((0, 0, 0.01, 0.5, 2)[number * 7 % 5])
            yield unit
        match attempt.ends:
            case "raises":
                raise ConnectionError("the line is dead")
            case "base":
                raise SourceError("of the source")
            case "cancelled":
                raise asyncio.CancelledError
            case "stalls":
                await asyncio.Event().wait()
    finally:
        if attempt.closes == "slowly":
            await asyncio.sleep(0.3)
            await asyncio.sleep(0)
        elif attempt.closes == "raises":
            raise OSError("it can't be closed")


def rest(world: World, text: int, calls: int) -> tuple[tuple[Part, ...], int]:
    """What a provider says that continues a reply with so many characters and complete calls; and its first call's number."""
    out: list[Part] = []
    number = 0
    for part in world.says:
        if isinstance(part, Call):
            number += 1
            if number > calls:
                out.append(part)
        elif isinstance(part, Thought):
            if text == 0:
                out.append(part)
        elif text >= len(part):
            text -= len(part)
        else:
            # Enough words to be told from words that are new; fewer would be a part of the reply.
            begin = part.rfind(" ", 0, max(0, text - OVERLAP)) + 1
            out.append(part[begin if world.repeats and text - begin >= OVERLAP else text :])
            text = 0
    first = calls
    if world.repeats and calls and world.calls:
        out.insert(0, world.calls[calls - 1])
        first = calls - 1
    return tuple(out), first
