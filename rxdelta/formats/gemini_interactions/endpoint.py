"""How Google's Interactions API is served."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.endpoint import Endpoint, by_body
from rxdelta.framing import sse_frame

__all__ = ["ENDPOINT"]

Json = dict[str, Any]


def _error(error: StreamError, status: int) -> Json:
    return {"error": {"code": error.code or error.type or str(status), "message": error.message}}


def _frame(chunk: Mapping[str, Any]) -> bytes:
    """The bytes of a chunk whose `event_type` is also the name of its event."""
    return f"event: {chunk['event_type']}\n".encode() + sse_frame(dict(chunk))


def _whole(chunks: Iterable[Mapping[str, Any]]) -> Json:
    """The body of a reply that isn't streamed. A call that the token limit has cut is left out."""
    body: Json = {}
    steps: list[Json] = []
    step: Json = {}
    deltas: list[Json] = []
    for chunk in chunks:
        kind = chunk["event_type"]
        if kind == "step.start":
            step, deltas = chunk["step"], []
        elif kind == "step.delta":
            deltas.append(chunk["delta"])
        elif kind == "step.stop":
            found = _step(step, deltas)
            steps += [] if found is None else [found]
        else:
            body |= chunk["interaction"]
    return {**body, "steps": steps}


def _step(step: Json, deltas: list[Json]) -> Json | None:
    """A step as its events say it; `None` for a call that can't be read."""
    if step["type"] == "function_call":
        try:
            return {**step, "arguments": json.loads("".join(delta["arguments"] for delta in deltas) or "{}")}
        except ValueError:
            return None
    if step["type"] == "thought":
        said = "".join(delta["content"]["text"] for delta in deltas if "content" in delta)
        signature = next((delta["signature"] for delta in deltas if "signature" in delta), None)
        signed = {} if signature is None else {"signature": signature}
        return {**step, "summary": [{"type": "text", "text": said}] if said else [], **signed}
    media = [delta for delta in deltas if delta["type"] not in ("text", "text_annotation_delta")]
    text = "".join(delta["text"] for delta in deltas if delta["type"] == "text")
    cited = [one for delta in deltas for one in delta.get("annotations", ())]
    annotated = {"annotations": cited} if cited else {}
    return {**step, "content": media or [{"type": "text", "text": text, **annotated}]}


ENDPOINT: Final = Endpoint(
    paths=["/interactions"],
    streams=by_body(),
    frame=_frame,
    error=_error,
    whole=_whole,
)
