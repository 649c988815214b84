"""The chunks of a chat completion as its whole body, for a client that doesn't stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rxdelta.formats.openai_chat.chunks import OpenAiChatFrame
from rxdelta.framing import Done

__all__ = ["openai_chat_completion"]

_CALL: Final = frozenset(["index", "function"])


def openai_chat_completion(frames: Iterable[OpenAiChatFrame | Done]) -> dict[str, Any]:
    """The body of a response to a request without `stream`: what the chunks of `to_openai_chat` say together.

    Returns:
        A `chat.completion`; `{"error": …}` alone if the chunks end with an error, for a response with the status 500.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> from reactivex import operators as ops
        >>> reply = rd.to_events(rd.Message.of("assistant", "Hi"))
        >>> frames = rx.from_iterable(reply).pipe(rd.to_openai_chat("house"), ops.to_list()).run()
        >>> rd.wire.openai_chat_completion(frames)["choices"]
        [{'index': 0, 'message': {'role': 'assistant', 'content': 'Hi', 'refusal': None}, 'finish_reason': 'stop'}]
    """
    body: dict[str, Any] = {}
    pieces: dict[int, list[Any]] = {}  # the deltas of each choice
    reasons: dict[int, Any] = {}
    known: Iterable[Any] = (frame for frame in frames if not isinstance(frame, Done))
    for frame in known:
        if "error" in frame:
            return {"error": frame["error"]}
        body |= {**frame, "object": "chat.completion"}
        for choice in frame["choices"]:
            pieces.setdefault(choice["index"], []).append(choice["delta"])
            reasons[choice["index"]] = choice["finish_reason"]
    body["choices"] = [
        {"index": index, "message": _message(pieces[index]), "finish_reason": reasons[index]}
        for index in sorted(pieces)
    ]
    return body


def _message(deltas: Iterable[Any]) -> dict[str, Any]:
    texts: dict[str, list[str]] = {}
    more: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for delta in deltas:
        for field, value in delta.items():
            if isinstance(value, str):
                texts.setdefault(field, []).append(value)
            elif field == "tool_calls":
                for piece in value:
                    _add(calls.setdefault(piece["index"], {}), piece)
            elif isinstance(value, list):
                more.setdefault(field, []).extend(value)
            else:
                more[field] = value
    said = {field: "".join(pieces) for field, pieces in texts.items()}
    message = {
        **said,
        "role": "assistant",
        "content": said.get("content") or None,
        "refusal": said.get("refusal"),
    }
    return message | more | ({"tool_calls": [*calls.values()]} if calls else {})


def _add(call: dict[str, Any], piece: Any) -> None:
    """Add a piece of a call to what has come of it."""
    call |= {name: value for name, value in piece.items() if name not in _CALL}
    for name, text in piece.get("function", {}).items():
        function = call.setdefault("function", {})
        function[name] = function.get(name, "") + text
