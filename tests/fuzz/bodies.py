"""Readers of what a browser or a client sends: the bodies of requests, and the answers of a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from fuzz.laws import check, or_refused, survives
from fuzz.mutation import values

import rxdelta as rd

__all__ = ["body", "costs"]


def body(read: Callable[..., Any], *others: Callable[[Any], Any]) -> Callable[[bytes], None]:
    """Bodies, one a line. They become messages that every provider's request can hold or refuses; or they are refused.

    Args:
        read: The reader of the messages.
        others: What else reads the same body: answers, tools.
    """

    def act(data: bytes) -> None:
        for sent in values(data):
            before = json.dumps(sent)
            for options in ({}, {"system": True, "allow": ("s3", "file_id", "tool_definitions")}):
                found = or_refused(read, sent, **options)
                check(json.dumps(sent) == before, "a body stays as it is", before, sent)
                if isinstance(found, rd.RxDeltaError):
                    continue
                check(all(isinstance(one, rd.Message) for one in found), "a body is messages", found)
                for message in found:
                    survives(message, rd.Message.from_dict, "a message")
                    if not options:
                        check(message.role != "system", "nobody's system message comes in", message)
                for wire_format in rd.requests.REQUEST_FORMATS:
                    request = or_refused(rd.to_request, found, wire_format)
                    if not isinstance(request, rd.RxDeltaError):
                        json.dumps(request, default=_as_text)
            for other in others:
                or_refused(other, sent)

    return act


def costs(read: Callable[..., Any], *others: Callable[[Any], Any]) -> Callable[[bytes], int]:
    """The readers alone, and one request. Returns how many messages there were."""

    def act(data: bytes) -> int:
        count = 0
        for sent in values(data):
            found = or_refused(read, sent, system=True)
            if not isinstance(found, rd.RxDeltaError):
                count += len(found)
                or_refused(rd.to_request, found, "openai-responses")
            for other in others:
                or_refused(other, sent)
        return count

    return act


def _as_text(value: Any) -> Any:
    check(isinstance(value, bytes), "a request is JSON and bytes", value)
    return ""
