"""Messages: how their chunks begin, continue and end them.

The content of a chunk has texts, parts of the standard's making or a provider's, and fragments of calls. Beside it stand
other fragments, in `tool_call_chunks`, `tool_calls` and `invalid_tool_calls`, and more text in `additional_kwargs`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from rxdelta.core import Event, events, freeze, is_list, is_mapping, real_id, text_delta
from rxdelta.formats.calls import call_identity
from rxdelta.formats.decoding import NOTHING, Json, kept, word
from rxdelta.formats.langchain.blocks import Block, Blocks, CallBlock, Place
from rxdelta.formats.langchain.envelope import Envelope, id_rank
from rxdelta.formats.langchain.forms import message_in, update_of_message
from rxdelta.formats.langchain.tables import (
    ARGUMENT_FIELDS,
    CALL_FIELDS,
    CALL_TYPES,
    CONTENT_FIELDS,
    FRAGMENT_FIELDS,
    MESSAGE_FIELDS,
    MESSAGE_TYPES,
    PROSE_KWARGS,
    READ,
    RESERVED_CALL_FIELDS,
    TEXT_CHUNK_FIELDS,
    WHOLE_MESSAGE_TYPES,
    extras_of,
    fragment_index,
    other_fields,
    part_type,
)
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SIGNED_BY, SYNTHETIC_ID


@attrs.define
class Fragment:
    """A chunk's fragment of a call.

    Attributes:
        entry: Its `id`, `name`, `args` and `error`, not checked yet.
        more: Its further fields.
        path: Its path in the chunk, for errors.
        arguments_field: The field in which its arguments came.
        family: `tool_call` or `server_tool_call`; empty if the call that it continues decides.
    """

    place: Place
    entry: Json
    more: Json
    path: str
    arguments_field: str = "args"
    family: str = "tool_call"

    @property
    def is_invalid(self) -> bool:
        return self.entry.get("type") == "invalid_tool_call"

    def is_same(self, part: Fragment) -> bool:
        """Whether a call in the content is this one."""
        own_id, part_id = self.entry.get("id") or None, part.entry.get("id") or None
        if own_id is not None and part_id is not None:
            return bool(own_id == part_id)
        return part.place.lc_index in (self.place.lc_index, None) or isinstance(part.place.lc_index, str)

    def join(self, part: Fragment) -> None:
        """Add what the same call in the content gives beyond this."""
        self.entry = {**self.entry, "id": self.entry.get("id") or part.entry.get("id")}
        self.more = {**part.more, **self.more}


class MessageCalls:
    """The calls that a chunk has outside of its content, each until it is read.

    `tool_calls` count only where there are no `tool_call_chunks`: LangChain makes them of half fragments.
    """

    def __init__(self, message: Json, path: str) -> None:
        if message.get("tool_call_chunks"):
            self.unread = _fragments(message, "tool_call_chunks", path)
        else:
            self.unread = _fragments(message, "tool_calls", path)
            self.unread += _fragments(message, "invalid_tool_calls", path)
        self.any = bool(self.unread)

    def take(self, part: Fragment) -> Fragment | None:
        """Remove and return the call that is the same as this one in the content."""
        same = next((call for call in self.unread if call.is_same(part)), None)
        if same is not None:
            self.unread.remove(same)
        return same


def _fragments(message: Json, name: str, path: str) -> list[Fragment]:
    found: list[Fragment] = []
    for place, item in enumerate(READ.items(message.get(name), f"{path}{name}")):
        at = f"{path}{name}[{place}]"
        entry = READ.mapping(item, at)
        if name == "tool_calls" or not FRAGMENT_FIELDS.issuperset(entry):
            READ.require(entry, ("args",), at)
        index = fragment_index(entry.get("index"), at) if name == "tool_call_chunks" else None
        more = {key: value for key, value in entry.items() if key not in FRAGMENT_FIELDS}
        if name == "invalid_tool_calls":
            entry = {**entry, "type": "invalid_tool_call"}
        found.append(Fragment(Place("call", index), entry, call_metadata(more), at))
    return found


def part_fragment(part: Json, path: str) -> Fragment:
    """A call in the content, of any provider's making."""
    place = Place.of_part(part.get("index"), path)
    kind = part_type(part)
    # Whole arguments are named first: a part that LangChain has added up has an empty `input` beside the text.
    name = next((name for name in ARGUMENT_FIELDS if part.get(name) not in NOTHING), "args")
    args = part.get(name)
    if kind == "custom_tool_call" and isinstance(args, str):
        args = {"input": args}
    call_id = part.get("call_id") or part.get("id")
    entry = {"type": kind, "id": call_id, "name": part.get("name"), "args": args, "error": part.get("error")}
    more = other_fields(part, "id", "call_id", "name", "error", *ARGUMENT_FIELDS)
    if part.get("call_id") and part.get("id"):
        more[ITEM_ID] = part["id"]
    metadata = call_metadata(more)
    if kind in ("server_tool_use", "mcp_tool_use"):
        metadata[PROVIDER_TYPE] = kind
    return Fragment(place, entry, metadata, path, name, CALL_TYPES[kind])


def call_metadata(fields: Json) -> dict[str, Any]:
    """A provider's further fields of a call; a name that our protocol reserves gets the prefix `provider_`."""
    if not fields:
        return {}
    own = {name: value for name, value in fields.items() if name != "extras"}
    return {
        f"provider_{name}" if name in RESERVED_CALL_FIELDS else name: value
        for name, value in {**own, **extras_of(fields.get("extras"))}.items()
        if value is not None
    }


@attrs.define
class Piece:
    """The content that one part adds to a block.

    Attributes:
        family: Which kind of block it belongs to: `text`, `refusal`, `reasoning`, `data` or `other`.
        text: The text that it appends.
        content: The content with which it would begin a block.
        summary_part: Which part of a summary it ends in; parts are separated by a blank line.
    """

    family: str
    text: str
    content: Json
    citations: Sequence[Json] = ()
    summary_part: object = None


def read_part(part: Json, kind: str, path: str) -> Piece:
    read = _READERS.get(kind) or (_result if kind.endswith("_tool_result") else _other)
    return read(part, kind, path)


def _text(part: Json, _: str, path: str) -> Piece:
    text = READ.text_of(part, "text", path)
    more = other_fields(part, "text", "annotations", "citations", "extras") | extras_of(part.get("extras"))
    citations = [
        _citation(READ.mapping(annotation, f"{path}.{name}[{place}]"))
        for name in ("annotations", "citations")
        for place, annotation in enumerate(READ.items(part.get(name), f"{path}.{name}"))
    ]
    return Piece("text", text, {"type": "text", "text": "", **more}, citations)


def _citation(annotation: Json) -> Json:
    known = {name: annotation.get(name) for name in ("cited_text", "title", "url")}
    found: dict[str, Any] = {name: value for name, value in known.items() if isinstance(value, str)}
    for name in ("start_index", "end_index"):
        value = annotation.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
            found[name] = value
    return found | {"raw": kept(annotation)}


def _reasoning(part: Json, _: str, path: str) -> Piece:
    """The standard's `reasoning`, Anthropic's `thinking`, Bedrock's `reasoning_content` or OpenAI's summary."""
    nested = part.get("reasoning_content")
    if is_mapping(nested):
        part = {**nested, **other_fields(part, "reasoning_content")}
        path = f"{path}.reasoning_content"
    name = next(
        (one for one in ("reasoning", "thinking", "text") if isinstance(part.get(one), str)), "reasoning"
    )
    text, summary_part = READ.text_of(part, name, path), None
    read = ["reasoning", "thinking", name, "extras"]
    summary = part.get("summary")
    if is_list(summary):
        read.append("summary")
        for place, found in enumerate(summary):
            at = f"{path}.summary[{place}]"
            entry = READ.mapping(found, at)
            more = READ.text_of(entry, "text", at)
            text += ("\n\n" if text and more else "") + more
            summary_part = entry.get("index", place)
    content = {"type": "reasoning", "reasoning": "", **other_fields(part, *read)}
    return Piece("reasoning", text, content | extras_of(part.get("extras")), summary_part=summary_part)


def _redacted(part: Json, *_: str) -> Piece:
    content = {"type": "reasoning", "reasoning": "", REDACTED: True, **other_fields(part)}
    return Piece("reasoning", "", content)


def _refusal(part: Json, _: str, path: str) -> Piece:
    content = {"type": "refusal", "refusal": "", **other_fields(part, "refusal", "text")}
    return Piece("refusal", READ.text_of(part, "refusal", path), content)


def _media(part: Json, kind: str, path: str) -> Piece:
    """The standard calls the data `base64`; the protocol and older standards call it `data`."""
    name = "base64" if isinstance(part.get("base64"), str) else "data"
    if not isinstance(part.get(name, ""), str):
        return _other(part, kind, path)
    return Piece("data", part.get(name, ""), {"type": kind, **other_fields(part, name, "data")})


def _image_url(part: Json, kind: str, path: str) -> Piece:
    found = part.get("image_url")
    url = found if isinstance(found, str) else found.get("url") if is_mapping(found) else None
    if not isinstance(url, str):
        return _other(part, kind, path)
    head, comma, data = url.partition(",")
    more = other_fields(part, "image_url")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        mime_type = head[len("data:") : -len(";base64")].partition(";")[0] or None
        return Piece("data", data, {"type": "image", "mime_type": mime_type, **more})
    return Piece("data", "", {"type": "image", "url": url, **more})


def _result(part: Json, kind: str, _: str) -> Piece:
    """The result of a tool that the provider ran, in the standard's fields or in Anthropic's."""
    standard = kind in ("server_tool_result", "server_tool_call_result")
    output, id_field = ("output", "tool_call_id") if standard else ("content", "tool_use_id")
    call_id = part.get(id_field, part.get("toolCallId"))
    content = {
        **other_fields(part, output, id_field, "toolCallId"),
        "type": "server_tool_result",
        "tool_call_id": call_id if isinstance(call_id, str) else None,
        "output": part.get(output),
        **({} if standard else {PROVIDER_TYPE: kind, "status": _status(part)}),
    }
    return Piece("data", "", content)


def _status(result: Json) -> str:
    output = result.get("content")
    failed = is_mapping(output) and str(output.get("type")).endswith("_error")
    return "error" if failed or result.get("is_error") is True else "success"


def _other(part: Json, kind: str, _: str) -> Piece:
    """Keep any other part unchanged but for its index, the part's place."""
    if kind == "non_standard" and is_mapping(part.get("value")) and not other_fields(part, "value"):
        value = part["value"]
        if value.get("type") == "redacted_thinking":  # the standard has no type for it
            return _redacted(value)
        return Piece("other", "", {"type": "non_standard", "value": kept(value)})
    typed = {"type": kind} if kind else {}
    return Piece("other", "", {"type": "non_standard", "value": kept(other_fields(part)) | typed})


_READERS: Mapping[str, Callable[[Json, str, str], Piece]] = {
    "text": _text,
    "reasoning": _reasoning,
    "thinking": _reasoning,
    "reasoning_content": _reasoning,
    "redacted_thinking": _redacted,
    "refusal": _refusal,
    "image": _media,
    "audio": _media,
    "video": _media,
    "file": _media,
    "image_url": _image_url,
    "server_tool_result": _result,
    "server_tool_call_result": _result,
}
"""By the part's type. Any `…_tool_result` is read as a result too."""


class ContentReader:
    """Turns the content of one message's chunks into blocks."""

    def __init__(self, envelope: Envelope, blocks: Blocks) -> None:
        self._envelope = envelope
        self._blocks = blocks

    def read(self, message: Json, path: str) -> None:
        calls = MessageCalls(message, path)
        self._read_kwargs(message, calls, f"{path}additional_kwargs")
        content = message.get("content")
        if isinstance(content, str):
            if content:
                prose = self._blocks.prose  # after a string in a list, this is more of it
                space = "item" if prose is not None and prose.space == "item" else "text"
                self._blocks.write_prose(space, "text", content)
        else:
            for place, item in enumerate(READ.items(content, f"{path}content")):
                self._read_item(item, calls, f"{path}content[{place}]")
        for call in calls.unread:
            self._read_call(call)

    def _read_kwargs(self, message: Json, calls: MessageCalls, path: str) -> None:
        kwargs = READ.mapping(message.get("additional_kwargs"), path)
        rest: dict[str, Any] = {}
        for name, value in kwargs.items():
            at = f"{path}.{name}"
            if name in PROSE_KWARGS and isinstance(value, str):
                if value:
                    self._blocks.write_prose(f"kwargs:{name}", PROSE_KWARGS[name], value)
            elif name == "function_call" and is_mapping(value):
                entry = {"name": value.get("name"), "args": value.get("arguments")}
                more = {key: one for key, one in value.items() if key not in ("name", "arguments")}
                place = Place("kwargs:function_call", 0)
                self._read_call(Fragment(place, entry, call_metadata(more), at, "arguments"))
            elif name == "audio" and is_mapping(value):
                self._read_part(Place("kwargs:audio", 0), {**value, "type": "audio"}, at)
            elif not (name == "tool_calls" and calls.any):
                rest[name] = value
        self._envelope.read_kwargs(rest, path)

    def _read_item(self, item: object, calls: MessageCalls, path: str) -> None:
        if isinstance(item, str):
            self._blocks.end_prose()
            if item:
                self._blocks.write_prose("item", "text", item)
            return
        part = READ.mapping(item, path)
        if part_type(part) in CALL_TYPES:
            if not CALL_FIELDS.issuperset(part) and not any(name in part for name in ARGUMENT_FIELDS):
                self._blocks.events.append(events.ProviderEvent("langchain", part_type(part), kept(part)))
            self._read_call_part(part_fragment(part, path), calls)
        else:
            self._read_part(Place.of_part(part.get("index"), path), part, path)

    # Parts.

    def _read_part(self, place: Place, part: Json, path: str) -> None:
        part_id = word(part.get("id"))
        kind = part_type(part)
        block = self._blocks.find(place, part_id)
        if block is not None and kind == "non_standard" and block.part_type != "non_standard":
            value = part.get("value")
            extras = {name: one for name, one in value.items() if name != "type"} if is_mapping(value) else {}
            self._blocks.merge(block, {"extras": extras}, path)
            return
        piece = read_part(part, kind, path)
        content = self._signed(piece.content)
        if block is None or (part.get("type") is not None and block.family != piece.family):
            self._blocks.end_prose()
            block = self._blocks.begin(Block, place, piece.family, part_id, content)
            block.part_type = kind
        else:
            if block.id is None:
                block.id = part_id
            self._blocks.merge(block, content, path)
        if piece.citations:
            self._blocks.cite(block, piece.citations)
        if piece.text:
            is_next = piece.summary_part is not None and block.summary_part not in (None, piece.summary_part)
            self._blocks.append(block, f"\n\n{piece.text}" if is_next else piece.text)
        if piece.summary_part is not None:
            block.summary_part = piece.summary_part
        if place.lc_index is None:
            self._blocks.finish(block)

    def _signed(self, content: Json) -> Json:
        """The content with a note of whose signature or encryption it has, if it has any."""
        extras = content.get("extras")
        names = {*content, *(extras if is_mapping(extras) else ())}
        if names.isdisjoint(_SIGNED):
            return content
        return {**content, SIGNED_BY: self._envelope.signed_by if "signature" in names else "langchain"}

    # Calls.

    def _read_call_part(self, part: Fragment, calls: MessageCalls) -> None:
        """A call in the content, which most chunks have beside it too: read it once."""
        same = None if part.family == "server_tool_call" else calls.take(part)
        if same is not None:
            same.join(part)
            self._read_call(same)
        elif part.entry.get("id") or not calls.any:
            self._read_call(part)

    def _read_call(self, call: Fragment) -> None:
        path = call.path
        call_id = real_id(READ.text_of(call.entry, "id", path).strip())
        name = READ.text_of(call.entry, "name", path)
        args = call.entry.get("args")
        if is_mapping(args):
            args = freeze(args, lenient=True)
        elif args is not None and not isinstance(args, str):
            raise READ.fail(f"{path}.{call.arguments_field}", "a string or an object", args)
        block = self._blocks.find(call.place, call_id)
        if block is None and isinstance(args, str) and args and (call_id is not None or not name):
            ended = self._blocks.find_ended(call.place, call_id)
            if ended is not None:
                self._blocks.add_late_arguments(ended, args)
                return
        if not isinstance(block, CallBlock) or (call.family and block.family != call.family):
            block = self._begin_call(call, call_id, name, with_text=isinstance(args, str))
        else:
            self._continue_call(block, call, call_id, name)
        self._add_arguments(block, args)
        if (
            call.place.lc_index is None and self._envelope.fault is None
        ):  # else it matters which call is the last
            self._blocks.finish(block)

    def _begin_call(self, call: Fragment, call_id: str | None, name: str, *, with_text: bool) -> CallBlock:
        self._blocks.end_prose()
        family = call.family or "tool_call"
        made_up = f"{self._envelope.start_id or 'call'}-{self._blocks.count}"
        content: dict[str, Any] = {
            **self._signed(call.more),
            "type": f"{family}_chunk",
            "name": call.entry.get("name"),
        }
        content |= call_identity(call_id, made_up)
        if with_text:
            content["args"] = ""
        block = self._blocks.begin(CallBlock, call.place, family, call_id, content)
        block.name = name
        if call.is_invalid:
            block.error = READ.text_of(call.entry, "error", call.path) or "marked invalid by its source"
        return block

    def _continue_call(self, block: CallBlock, call: Fragment, call_id: str | None, name: str) -> None:
        changed: dict[str, Any] = {}
        if call_id is not None and block.id is None:
            block.id = call_id
            changed |= {"id": call_id, SYNTHETIC_ID: False}
        if name and name != block.name:
            block.name += name
            changed["name"] = block.name
        if call.more:
            self._blocks.merge(block, self._signed(call.more), call.path)
        if changed:
            self._blocks.change(block, changed)

    def _add_arguments(self, block: CallBlock, args: Any) -> None:
        if isinstance(args, str):
            if args or not block.has_arguments:
                self._blocks.add_arguments(block, args)
            block.has_arguments = True
            if args and not args.isspace():
                block.expects_more = not args.rstrip().endswith(("}", "null"))
        elif args is not None:
            block.has_arguments, block.expects_more = True, False
            if args:
                self._blocks.change(block, {"args": args})


_SIGNED = frozenset(["signature", "encrypted_content", REDACTED])


class MessageReader:
    """The events of a message's chunks, or of a message that is whole; then of the next message."""

    def __init__(self) -> None:
        self._reset()

    def _reset(self) -> None:
        self._envelope = Envelope()
        self._blocks = Blocks()
        self._content = ContentReader(self._envelope, self._blocks)
        self._finished = False
        self._failed = False  # the message's reason said that the provider failed: the stream is over

    @property
    def started(self) -> bool:
        """Whether the message has begun."""
        return self._envelope.started

    def read(self, found: Json, path: str = "") -> Sequence[Event]:
        """The events of a chunk or a whole message, in any form. One that belongs to no reply of the model is passed on."""
        more_text = self._more_text(found)
        return self._read(*message_in(found, path)) if more_text is None else (more_text,)

    def _more_text(self, chunk: Json) -> Event | None:
        """The event of a chunk that is nothing but more of the current text, as nearly all are; else `None`."""
        text, prose = chunk.get("content"), self._blocks.prose
        if type(text) is not str or not text or prose is None or prose.space not in ("text", "item"):
            return None
        for name, value in chunk.items():
            if value and name not in TEXT_CHUNK_FIELDS:
                return None
        kind, chunk_id, envelope = chunk.get("type", "AIMessageChunk"), chunk.get("id"), self._envelope
        if kind != "AIMessageChunk" or self._blocks.events:
            return None
        if chunk_id and chunk_id != envelope.own_id and chunk_id != envelope.provider_id:
            return None
        return text_delta(prose.key, text)

    def _read(self, message: Json, path: str) -> Sequence[Event]:
        if self._failed:
            return ()
        kind = word(message.get("type"))
        update = update_of_message(message)
        if update is not None:
            return (update,)
        if self._begins_another(message, kind, path):
            return [*self._end(), *self._read(message, path)]
        if (kind is not None and kind not in MESSAGE_TYPES) or self._finished:
            return _pass_on(message)
        if kind is None and MESSAGE_FIELDS.isdisjoint(message):  # a graph's state
            return _pass_on(message)
        whole = kind in WHOLE_MESSAGE_TYPES and "tool_call_chunks" not in message
        if whole and self._envelope.started:  # the end of a run repeats the message
            return _pass_on(message)
        last = whole or message.get("chunk_position") == "last"
        ended = self._envelope.read(message, path) or last
        if not self._envelope.started and (ended or _begins_message(message)):
            self._blocks.events.append(self._envelope.begin())
        if self._envelope.started:
            self._content.read(message, path)
            self._read_usage(message, path)
            if _brings_nothing(message):
                self._blocks.events += _pass_on(message)
            if ended or self._envelope.finish_reason is not None:
                self._blocks.finish_all(self._envelope.fault)
            if last:
                self._finish(assumed=whole)
        return self._blocks.take_events()

    def _begins_another(self, message: Json, kind: str | None, path: str) -> bool:
        """Whether a chunk is of another message than the one before, which has ended.

        Raises:
            MalformedChunkError: The one before has not ended. Without their metadata the two would be woven.
        """
        message_id, envelope = word(message.get("id")), self._envelope
        if message_id is None or not envelope.started or (kind is not None and kind not in MESSAGE_TYPES):
            return False
        ended = self._finished or envelope.finish_reason is not None
        if not envelope.is_of_another(message_id, ended=ended) or not _has_content(message):
            return False
        if not ended:
            wanted = "the id of the message that is still open (of several at a time keep LangGraph's tuples)"
            raise READ.fail(f"{path}id", wanted, message_id)
        return True

    def _end(self) -> Sequence[Event]:
        """The end of the message, for which nothing more comes. The next one begins."""
        self._finish(assumed=False)
        out = self._blocks.take_events()
        if not self._failed:
            self._reset()
        return out

    def close(self, *, whole: bool) -> Sequence[Event]:
        """End of input: the finish, if the provider gave a reason, or if the message is whole without one."""
        if self._envelope.started and (whole or self._envelope.finish_reason is not None):
            self._finish(assumed=whole)
        return self._blocks.take_events()

    def _read_usage(self, message: Json, path: str) -> None:
        usage = message.get("usage_metadata")
        if usage is not None:
            update = self._envelope.read_usage(READ.mapping(usage, f"{path}usage_metadata"))
            if update is not None:
                self._blocks.events.append(update)

    def _finish(self, *, assumed: bool) -> None:
        if not self._finished:
            envelope = self._envelope
            self._blocks.finish_all(envelope.fault)
            self._finished, self._failed = True, envelope.broken is not None
            self._blocks.events += envelope.finish(assumed=assumed, asked=self._blocks.calls_client)


def _begins_message(message: Json) -> bool:
    """Whether a chunk begins the message.

    A chunk without content whose id is LangChain's own doesn't: the next one may have the provider's.
    """
    return id_rank(message.get("id")) == 3 or any(message.get(name) for name in CONTENT_FIELDS)


def _has_content(message: Json) -> bool:
    return any(message.get(name) for name in _CONTENT)


def _brings_nothing(message: Json) -> bool:
    """Whether a chunk has no content, but fields that no message has: the content may be among them."""
    if _has_content(message) or message.get("usage_metadata"):
        return False
    return any(value not in NOTHING for name, value in message.items() if name not in _KNOWN)


def _pass_on(message: Json) -> Sequence[Event]:
    if all(
        value in NOTHING for name, value in message.items() if name not in ("type", "id", "chunk_position")
    ):
        return ()
    return (events.ProviderEvent("langchain", word(message.get("type")) or "message", kept(message)),)


_CONTENT = ("content", "tool_call_chunks", "tool_calls", "additional_kwargs")
_KNOWN = MESSAGE_FIELDS | {"name"}
