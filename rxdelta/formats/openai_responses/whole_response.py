"""The frames of a response as its whole body, for a client that doesn't stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rxdelta.core import InvalidValueError
from rxdelta.formats.encoding import named_frames

__all__ = ["openai_response"]


def openai_response(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the frames of `to_openai_responses` say together.

    Returns:
        A `response`; `{"error": …}` alone if the frames end with an error, for a response with the status 500.

    Raises:
        InvalidValueError: The frames have no end, as those of a stream that is still running, or are not the operator's.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_openai_responses("house"), ops.to_list()).run()
        >>> body = rd.wire.openai_response(frames)
        >>> body["status"], body["output"][0]["content"][0]["text"]
        ('completed', 'Hi')
    """
    last: Mapping[str, Any] = {}
    for last in named_frames(frames, "to_openai_responses"):
        if last["type"] == "error":
            error = {name: last[name] for name in ("message", "code", "param")}
            return {"error": {"type": last["code"], **error}}
    if last.get("type") not in ("response.completed", "response.incomplete"):
        raise InvalidValueError.of([("frames", last.get("type"), "must end as a response does")])
    return {**last["response"]}
