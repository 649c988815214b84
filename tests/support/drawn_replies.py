"""Replies that a format's streams can carry, drawn by Hypothesis as events: whole, cut, failed, with blocks that overlap."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import strategies as st

import rxdelta as rd
from rxdelta.formats import registry

__all__ = ["replies"]

ev = rd.events
Events = list[rd.Event]

texts = st.text(st.sampled_from("ab é漢😀\n"), max_size=12)
some_text = st.text(st.sampled_from("ab é漢😀\n"), min_size=1, max_size=12)
data = st.binary(min_size=1, max_size=9).map(lambda found: base64.b64encode(found).decode())
arguments = st.dictionaries(
    st.text("ab", max_size=2),
    st.none() | st.integers(-9, 9) | texts | st.lists(st.booleans(), max_size=2),
    max_size=3,
)
signers = st.sampled_from(
    [None, "anthropic", "google", "mistral", "openai-responses", "google via openai-chat"]
)
links = st.sampled_from(["https://a.example/1", "https://b.example/2"])


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.sets(st.integers(0, len(text)), max_size=3)))
    return [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def _prose(draw: st.DrawFn, kind: str, index: int, choice: int) -> Events:
    content: dict[str, Any] = {"type": kind, kind if kind != "refusal" else "text": ""}
    if kind == "reasoning" and draw(st.booleans()):
        content["signature"] = draw(st.text("abc", min_size=1, max_size=3))
        signer = draw(signers)
        content |= {} if signer is None else {"signed_by": signer}
    delta = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
    said = [delta(index, piece, choice=choice) for piece in draw(pieces(draw(texts)))]
    return [ev.BlockStart(index, content, choice=choice), *said, ev.BlockFinish(index, choice=choice)]


@st.composite
def _cited(draw: st.DrawFn, index: int, choice: int) -> Events:
    text = draw(some_text)
    citations = [
        {"url": draw(links), "title": draw(st.none() | st.just("A title"))}
        for _ in range(draw(st.integers(1, 2)))
    ]
    content = {"type": "text", "text": text, "citations": citations}
    return [ev.BlockStart(index, content, choice=choice), ev.BlockFinish(index, choice=choice)]


@st.composite
def _call(draw: st.DrawFn, index: int, choice: int, args: st.SearchStrategy[str]) -> Events:
    content = {
        "type": "tool_call_chunk",
        "id": f"call_{choice}_{index}",
        "name": draw(st.sampled_from("fg")),
        "args": "",
    }
    said = [ev.ToolCallDelta(index, piece, choice=choice) for piece in draw(pieces(draw(args)))]
    return [ev.BlockStart(index, content, choice=choice), *said, ev.BlockFinish(index, choice=choice)]


@st.composite
def _medium(draw: st.DrawFn, kind: str, index: int, choice: int) -> Events:
    name, is_url = kind.removesuffix("_url"), kind.endswith("_url")
    mime_type = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}[
        name
    ]
    content = {"type": name, "mime_type": mime_type, **({"url": draw(links)} if is_url else {})}
    said = [] if is_url else [ev.DataDelta(index, draw(data), choice=choice)]
    return [ev.BlockStart(index, content, choice=choice), *said, ev.BlockFinish(index, choice=choice)]


_KINDS: dict[str, Callable[[int, int], st.SearchStrategy[Events]]] = {
    "text": lambda index, choice: _prose("text", index, choice),
    "reasoning": lambda index, choice: _prose("reasoning", index, choice),
    "refusal": lambda index, choice: _prose("refusal", index, choice),
    "citation": lambda index, choice: _cited(index, choice),
    "tool_call": lambda index, choice: _call(index, choice, arguments.map(json.dumps)),
    "invalid_tool_call": lambda index, choice: _call(
        index, choice, st.sampled_from(['{"a": ', "{a: 1}", "no JSON"])
    ),
    **{
        kind: partial(_medium, kind)
        for name in ("image", "audio", "video", "file")
        for kind in (name, f"{name}_url")
    },
}


def _woven(draw: st.DrawFn, lists: list[Events]) -> Events:
    """The lists of events, each in its order."""
    left, woven = [[*events] for events in lists if events], Events()
    while left:
        place = draw(st.integers(0, len(left) - 1))
        woven.append(left[place].pop(0))
        left = [events for events in left if events]
    return woven


@st.composite
def _message(
    draw: st.DrawFn,
    kinds: list[str],
    choice: int,
    model: str | None,
    usage: rd.TokenUsage | None,
    overlap: bool,
) -> Events:
    chosen = draw(
        st.lists(
            st.sampled_from(kinds), max_size=4, unique_by=lambda kind: kind if kind == "audio" else object()
        )
    )
    blocks = [draw(_KINDS[kind](index, choice)) for index, kind in enumerate(chosen)]
    body = _woven(draw, blocks) if overlap else [event for block in blocks for event in block]
    asks = any("tool_call" in kind for kind in chosen)
    reason = draw(
        st.sampled_from(["tool_use", "length"] if asks else ["stop", "length", "content_filter", "pause"])
    )
    head = ev.MessageStart("m1" if model else None, model, choice=choice)
    return [head, *body, ev.MessageFinish(reason, usage=usage, choice=choice)]


@st.composite
def replies(draw: st.DrawFn, wire_format: str) -> Events:
    """The events of a reply that the format's streams can carry."""
    carries = registry.get(wire_format).carries
    kinds = sorted(kind for kind in _KINDS if kind in carries)
    loses = registry.get(wire_format).loses
    choices = draw(st.integers(1, 2)) if "choices" in carries else 1
    model = draw(st.none() | st.just("model-1"))
    counts = draw(st.none() | st.tuples(st.integers(0, 99), st.integers(0, 99)))
    usage = None if counts is None else rd.TokenUsage(*counts)
    overlap = draw(st.booleans())  # what waits for another block is lost if the reply breaks off
    if overlap and "borders" in loses:
        kinds = [kind for kind in kinds if kind != "citation"]
    events = _woven(draw, [draw(_message(kinds, choice, model, usage, overlap)) for choice in range(choices)])
    if overlap or choices > 1 or draw(st.booleans()):
        return events
    events = events[: draw(st.integers(1, len(events)))]
    return events if draw(st.booleans()) else [*events, ev.StreamError("Overloaded", "overloaded_error")]
