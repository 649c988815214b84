"""The frames of a message as its whole body, for a client that doesn't stream."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from rxdelta.core import InvalidValueError
from rxdelta.formats.encoding import named_frames

__all__ = ["anthropic_message"]


def anthropic_message(frames: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the frames of `to_anthropic_messages` say together.

    A call that the token limit has cut is left out.

    Returns:
        A `message`; `{"type": "error", "error": …}` alone if the frames end with an error, for a response with the status
        500.

    Raises:
        InvalidValueError: The frames have no end, as those of a stream that is still running, or are not the operator's.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_anthropic_messages("house"), ops.to_list()).run()
        >>> body = rd.wire.anthropic_message(frames)
        >>> body["content"], body["stop_reason"]
        ([{'type': 'text', 'text': 'Hi'}], 'end_turn')
    """
    message: dict[str, Any] = {}
    pieces: dict[int, list[Any]] = {}  # what the frames of each block say, in their order
    last = None
    for frame in named_frames(frames, "to_anthropic_messages"):
        last = frame["type"]
        if last == "error":
            return {"type": "error", "error": frame["error"]}
        if last == "message_start":
            message = {**frame["message"], "content": []}
        elif last == "content_block_start":
            pieces[frame["index"]] = [frame["content_block"]]
        elif last == "content_block_delta":
            pieces[frame["index"]].append(frame["delta"])
        elif last == "content_block_stop":
            block = _block(*pieces.pop(frame["index"]))
            message["content"] += [] if block is None else [block]
        elif last == "message_delta":
            message |= frame["delta"]
            message["usage"] = {**message["usage"], **frame["usage"]}
    if last != "message_stop":
        raise InvalidValueError.of([("frames", last, "must end as a message does")])
    return message


def _block(start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> dict[str, Any] | None:
    """A block as its frames say it; `None` for a call that can't be read."""
    block = {**start}
    texts: dict[str, list[str]] = {}
    for delta in deltas:
        if delta["type"] == "citations_delta":
            block["citations"] = [*block.get("citations", ()), delta["citation"]]
        elif delta["type"] == "compaction_delta":
            block["content"] = delta["content"]
        else:
            field = _FIELDS[delta["type"]]
            texts.setdefault(field, []).append(delta[field])
    joined: dict[str, Any] = {field: "".join(said) for field, said in texts.items()}
    if "partial_json" in joined:
        try:
            joined["input"] = json.loads(joined.pop("partial_json"))
        except ValueError:
            return None
    return block | joined


_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
    "input_json_delta": "partial_json",
}
