"""Frames → server-sent events, in UTF-8. Lines end with LF alone, the only line end that AG-UI's client accepts."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from json.encoder import encode_basestring as _text
from typing import Any, Final

from rxdelta.core import InvalidValueError, Snapshot, clean_text, is_mapping, parse_json
from rxdelta.core.events import EVENT_TYPES

__all__ = [
    "DONE",
    "KEEP_ALIVE",
    "LINE_ENDS",
    "SSE_HEADERS",
    "Done",
    "NamedFrame",
    "add_form",
    "frame_json",
    "refuse_frame",
    "sse_frame",
]


class NamedFrame(dict[str, Any]):
    """A frame whose `type` is also the name of its event: `to_sse` writes `event: <type>` in front of the data.

    Anthropic's and OpenAI's clients read the event by that name. Front ends that listen to an `EventSource`'s messages would
    miss an event with a name, so other frames have none.
    """

    __slots__ = ()


class Done:
    """The type of `DONE`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "DONE"

    def __reduce__(self) -> str:
        return "DONE"  # a copy is the same object, also behind a pickle


DONE: Final = Done()
"""The end of a stream, as an item: `[DONE]`.

`to_ai_sdk` emits it last, and `to_sse` writes it as `data: [DONE]`. `parse_sse` emits it for a `[DONE]` that was read, and
every decoder takes it: the provider has said that the reply is whole.
"""

KEEP_ALIVE: Final = b": keep-alive\n\n"
"""A comment: every client skips it, and proxies see that the connection is alive."""

SSE_HEADERS: Final[Mapping[str, str]] = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
"""Headers of a response that streams events, also through proxies."""

LINE_ENDS: Final = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Characters that end a line to some clients, as to `httpx`, with which clients in Python read lines; and how JSON escapes them."""

_ends_a_line = re.compile("[\x85\u2028\u2029]").search

_FORBIDDEN = frozenset("\r\n\0")
"""Characters that would end the field of an id, or void it."""


def sse_frame(frame: object, id: str | None = None) -> bytes:
    """Write a frame as one event. A frame is a JSON object, an `ag_ui.core` event, or `DONE`.

    Args:
        frame: What the event's data is.
        id: The event's id, from which a reader can go on: an `EventSource` sends it back as `Last-Event-ID`.

    Raises:
        InvalidValueError: The frame is none of these, or not JSON; or the id has a line end or a NUL.

    Example:
        >>> sse_frame({"type": "text-delta", "id": "0", "delta": "é\\n"})
        b'data: {"type":"text-delta","id":"0","delta":"\\xc3\\xa9\\\\n"}\\n\\n'
        >>> sse_frame(DONE)
        b'data: [DONE]\\n\\n'
        >>> sse_frame({"type": "text-end"}, id="7-0")
        b'id: 7-0\\ndata: {"type":"text-end"}\\n\\n'
    """
    if id is not None and not _FORBIDDEN.isdisjoint(id):
        raise InvalidValueError.of([("id", id, "must be on one line, without NUL")])
    field = "" if id is None else f"id: {id}\n"
    if type(frame) is NamedFrame:
        name = frame.get("type")
        if not isinstance(name, str) or not _FORBIDDEN.isdisjoint(name):
            raise InvalidValueError.of([("frame", frame, "must have a `type` that is a string on one line")])
        field += f"event: {name}\n"
    try:
        return f"{field}data: {_on_each_clients_line(_by_form(frame) or _data(frame))}\n\n".encode()
    except UnicodeEncodeError:  # half a surrogate pair, which an object that writes itself may refuse
        return f"{field}data: {_on_each_clients_line(clean_text(_data(frame)))}\n\n".encode()


def _on_each_clients_line(data: str) -> str:
    """JSON without the characters that end a line to some clients only."""
    return data if data.isascii() or _ends_a_line(data) is None else data.translate(LINE_ENDS)


_FORMS: Final[dict[object, tuple[object, str, str, str, str, str]]] = {}


def add_form(frame: object, first: str, second: str) -> None:
    """Make frames of this one's kind cheap to write if they differ from it in two texts only: most frames do.

    The form is what the frame's own writer puts around the texts, so the bytes are the same.

    Args:
        frame: A frame whose two texts are `"1"` and `"2"`.
        first, second: Their names, in the order in which they are written.
    """
    kind, names = (frame["type"], (*frame,)) if is_mapping(frame) else (type(frame), {first, second})
    if (around := re.fullmatch('(.*)"1"(.*)"2"(.*)', _data(frame))) is not None:
        _FORMS[kind] = (names, first, second, around[1], around[2], around[3])


def _by_form(frame: object) -> str | None:
    """The data of a frame that has a form; `None` for any other frame."""
    given: Any = frame
    kind: Any = type(frame)
    try:
        form = _FORMS.get(given.get("type") if kind is dict else kind)
        if form is None:
            return None
        names, first, second, head, middle, tail = form
        if kind is dict:
            texts, same = given, (*given,) == names
        else:
            texts, same = given.__dict__, given.model_fields_set == names and not given.model_extra
        return f"{head}{_text(texts[first])}{middle}{_text(texts[second])}{tail}" if same else None
    except (KeyError, TypeError):  # something else than a text
        return None


def _data(frame: Any) -> str:
    return "[DONE]" if frame is DONE else frame_json(frame)


def frame_json(frame: Any) -> str:
    """The JSON of a frame, on one line.

    Raises:
        InvalidValueError: It is no frame, or not JSON.
    """
    dump = getattr(frame, "model_dump_json", None)
    try:
        if isinstance(frame, dict):
            return _write(frame)
        if callable(dump):
            return _on_one_line(dump(by_alias=True))
    except Exception as error:  # RecursionError, and anything that an object's own method raises
        raise InvalidValueError(f"a frame must be JSON: {error}", field="frame", value=frame) from error  # pyright: ignore[reportUnknownArgumentType]
    raise refuse_frame(frame, "must be a JSON object, an AG-UI event, or DONE")


def refuse_frame(frame: object, wanted: str) -> InvalidValueError:
    """The error of a value that is no frame."""
    makers = "to_ai_sdk(), to_ag_ui(), to_langchain_events() or to_openai_chat() makes frames of events"
    is_ours = type(frame) in EVENT_TYPES or isinstance(frame, Snapshot)
    return InvalidValueError.of([("frame", frame, wanted, makers if is_ours else "")])


def _on_one_line(written: Any) -> str:
    """The JSON that an object wrote. A line end in it would end the event, and could begin another."""
    if not isinstance(written, str):
        raise TypeError(f"it wrote itself as {type(written).__name__}")
    return _write(parse_json(written)) if "\n" in written or "\r" in written else written


_write = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
