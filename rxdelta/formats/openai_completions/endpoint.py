"""How OpenAI's older completions are served."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.formats.endpoint import Endpoint, by_body, typed_error
from rxdelta.framing import DONE, sse_frame

__all__ = ["ENDPOINT"]


def _whole(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a reply that isn't streamed: one chunk with all of the text."""
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {"index": 0, "text": "", "finish_reason": None, "logprobs": None}
    for chunk in chunks:
        body |= chunk
        for one in chunk["choices"]:
            choice = {**one, "text": choice["text"] + one["text"]}
    return {**body, "choices": [choice]}


ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=typed_error,
    whole=_whole,
)
