"""The content of message chunks: texts, parts, calls, and what stands beside it in `additional_kwargs`."""

from __future__ import annotations

from typing import Any

from rxdelta.core import events, freeze, is_mapping, real_id
from rxdelta.formats.json_values import kept, word
from rxdelta.formats.langchain.blocks import Block, Blocks, CallBlock, Place
from rxdelta.formats.langchain.calls import Fragment, MessageCalls, call_metadata, part_fragment
from rxdelta.formats.langchain.envelope import Envelope
from rxdelta.formats.langchain.fields import READ, Json, part_type
from rxdelta.formats.langchain.parts import read_part
from rxdelta.formats.langchain.tables import ARGUMENT_FIELDS, CALL_FIELDS, CALL_TYPES, PROSE_KWARGS
from rxdelta.formats.notes import REDACTED, SIGNED_BY, SYNTHETIC_ID
from rxdelta.formats.tool_calls import call_identity

__all__ = ["ContentReader"]


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
