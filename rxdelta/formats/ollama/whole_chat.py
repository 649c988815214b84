"""The lines of a reply as its whole body, for a client that doesn't stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rxdelta.core import InvalidValueError

__all__ = ["ollama_chat"]


def ollama_chat(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request with `stream: false`: what the lines of `to_ollama` say together.

    Returns:
        One line that is the last; `{"error": …}` alone if the lines end with an error, for a response with the status 500.

    Raises:
        InvalidValueError: The lines have no end, as those of a stream that is still running.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_ollama("house"), ops.to_list()).run()
        >>> body = rd.wire.ollama_chat(frames)
        >>> body["message"], body["done"], body["done_reason"]
        ({'role': 'assistant', 'content': 'Hi'}, True, 'stop')
    """
    texts: dict[str, list[str]] = {"content": [], "thinking": []}
    lists: dict[str, list[Any]] = {"images": [], "tool_calls": []}
    last: Mapping[str, Any] = {}
    for last in frames:
        if "error" in last:
            return {"error": last["error"]}
        for field, said in last["message"].items():
            if field in texts:
                texts[field].append(said)
            elif field in lists:
                lists[field] += said
    if last.get("done") is not True:
        raise InvalidValueError.of([("frames", last or None, "must end as a reply does")])
    joined = {field: "".join(said) for field, said in texts.items()}
    more = {field: value for field, value in {**joined, **lists}.items() if value}
    return {**last, "message": {"role": "assistant", "content": "", **more}}
