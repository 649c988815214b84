"""The frames of a response that belong to no item, and what all frames have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rxdelta.formats.openai_responses.notes import made_id
from rxdelta.formats.reply import Counts, Writer
from rxdelta.framing import NamedFrame

__all__ = ["ResponseFrames"]


class ResponseFrames(Writer):
    """Writes the frames of one response.

    Attributes:
        custom: The client's tools that aren't plain functions, by their names.
        output: The items that have ended.
    """

    def __init__(self, custom: Mapping[str, Mapping[str, str]], **options: Any) -> None:
        super().__init__(**options)
        self.custom = custom
        self.output: list[Mapping[str, Any]] = []
        self._ids: set[str] = set()
        self._number = 0
        self._has_begun = False

    def next_number(self) -> int:
        """The number of the next frame."""
        self._number += 1
        return self._number - 1

    def emit(self, kind: str, /, **fields: Any) -> None:
        self.out.append(NamedFrame(type=kind, sequence_number=self.next_number(), **fields))

    def start(self, _: Counts, /) -> None:
        self._has_begun = True
        self.emit("response.created", response=self._response("in_progress"))
        self.emit("response.in_progress", response=self._response("in_progress"))

    def end(self, reason: str, counts: Counts, /) -> None:
        cut = _CUT.get(reason)
        status, details = ("completed", None) if cut is None else ("incomplete", {"reason": cut})
        self.emit(
            f"response.{status}",
            response=self._response(status, incomplete_details=details, usage=_usage(counts)),
        )

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        """Write both of the API's ways to say it: of these, some clients read `error`, and others `response.failed`."""
        known = kind if kind in _ERRORS else "server_error"
        if not self._has_begun:
            self.start({})
        self.emit("error", code=(code or kind) if self.is_provider else known, message=message, param=None)
        self.emit(
            "response.failed", response=self._response("failed", error={"code": known, "message": message})
        )

    def own_id(self, found: object, prefix: str, place: int) -> str:
        """The id of an item: its own, if no other item has it; else one by its place."""
        own = found if isinstance(found, str) and found else made_id(prefix, self.id, place)
        if own in self._ids:
            own = made_id(prefix, self.id, place)
        while own in self._ids:  # a gateway's own items may have such ids, too
            own += "_"
        self._ids.add(own)
        return own

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self.model,
            "output": [*self.output],
            "parallel_tool_calls": True,
            "temperature": None,
            "tool_choice": "auto",
            "tools": [],
            "top_p": None,
            "usage": None,
            **more,
        }


def _usage(counts: Counts) -> dict[str, Any] | None:
    """The counts as the API's object, all of whose fields are required; `None` if no total is known."""
    if counts.keys().isdisjoint(("input_tokens", "output_tokens")):
        return None
    given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
    return {
        "input_tokens": given,
        "input_tokens_details": {
            "cached_tokens": counts.get("cache_read_tokens", 0),
            "cache_write_tokens": counts.get("cache_write_tokens", 0),
        },
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": counts.get("output_reasoning_tokens", 0)},
        "total_tokens": given + made,
    }


_CUT: Final[Mapping[str, str]] = {"length": "max_output_tokens", "content_filter": "content_filter"}
"""Why a response is incomplete, by our reason."""

_ERRORS: Final = frozenset(["server_error", "rate_limit_exceeded"])
"""The API's own words that say something of a stream. OpenAI's types know others, which are about a request."""
