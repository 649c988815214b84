"""How Cohere's chat API, version 2, is served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.endpoint import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, named_sse_frame

__all__ = ["ENDPOINT"]

Json = dict[str, Any]


def _error(error: StreamError, _: int) -> Json:
    return {"message": error.message}


def _whole(chunks: Iterable[Mapping[str, Any]]) -> Json:
    """The body of a reply that isn't streamed."""
    body: Json = {}
    message: Json = {"role": "assistant"}
    content: list[Json] = []
    calls: list[Json] = []
    citations: list[Json] = []
    plan: list[str] = []
    for chunk in chunks:
        kind, delta = chunk["type"], chunk.get("delta", {})
        said = delta.get("message", {})
        if kind == "message-start":
            body["id"] = chunk["id"]
        elif kind == "content-start":
            content.append(said["content"])
        elif kind == "content-delta":
            for field, text in said["content"].items():
                content[-1] |= {field: content[-1][field] + text}
        elif kind == "tool-plan-delta":
            plan.append(said["tool_plan"])
        elif kind == "tool-call-start":
            calls.append({**said["tool_calls"], "function": {**said["tool_calls"]["function"]}})
        elif kind == "tool-call-delta":
            calls[chunk["index"]]["function"]["arguments"] += said["tool_calls"]["function"]["arguments"]
        elif kind == "citation-start":
            citations.append(said["citations"])
        elif kind == "message-end":
            body |= delta
    lists = {"content": content, "tool_calls": calls, "citations": citations, "tool_plan": "".join(plan)}
    return {**body, "message": message | {field: value for field, value in lists.items() if value}}


_MODEL: Final = {"name": FAKE_MODEL, "endpoints": ["chat"]}

ENDPOINT: Final = Endpoint(
    paths=["/v2/chat"],
    streams=by_body(),
    frame=named_sse_frame,
    error=_error,
    whole=_whole,
    lookups={"/v1/models": {"models": [_MODEL]}},
    environment={"CO_API_URL": "{url}", "CO_API_KEY": FAKE_KEY},
)
