"""To which run an event belongs: over one WebSocket, each `stream_id` is a lane of responses, one after the other."""

# A chunk is untyped: the value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import Any

from rxdelta.core import is_mapping
from rxdelta.formats.runs import Address

__all__ = ["address"]


def address(chunk: Any) -> Address | None:
    """The run of an event: a mapping, or an object of the `openai` package.

    Example:
        >>> address({"type": "response.created", "stream_id": "s1"})
        Address(run_id='s1', parent_run_id=None, last=False, repeated=False)
    """
    if type(chunk) is dict and "stream_id" not in chunk:  # as nearly always
        return None
    found = chunk.get("stream_id") if is_mapping(chunk) else getattr(chunk, "stream_id", None)
    return Address(found) if found and isinstance(found, str) else None
