"""Function calls, whole or with arguments that are streamed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from rxdelta.core import events, freeze, thaw
from rxdelta.formats.decoding import Fields
from rxdelta.formats.gemini.arguments import Arguments, read_argument
from rxdelta.formats.gemini.blocks import Blocks
from rxdelta.formats.gemini.tables import FORMAT
from rxdelta.formats.json_values import kept, others
from rxdelta.formats.notes import SYNTHETIC_ID
from rxdelta.formats.tool_calls import arguments_after_end, given_id, invalid_call

__all__ = ["Calls"]

Json: TypeAlias = Mapping[str, Any]

_READ = Fields(FORMAT)


class Calls:
    """Reads the function calls of one candidate. At most one is open: its arguments are being streamed.

    Attributes:
        ever: Whether there has been a call.
        will_continue: Whether the response being read says that the open call continues.
    """

    __slots__ = ("_blocks", "_ended", "_open", "ever", "will_continue")

    def __init__(self, blocks: Blocks) -> None:
        self.ever = self.will_continue = False
        self._blocks = blocks
        self._open: _Call | None = None
        self._ended: _Call | None = None  # the newest that has ended

    def read(self, found: Json, fields: Json, path: str) -> None:
        """Read a `functionCall`, with the fields of its part."""
        name, call_id = _READ.text_of(found, "name", path), given_id(_READ.text_of(found, "id", path))
        args = None if found.get("args") is None else _READ.mapping(found["args"], f"{path}.args")
        pieces = _READ.items(found.get("partialArgs"), f"{path}.partialArgs")
        will_continue = found.get("willContinue") is True
        own = others(found, _CALL)
        if own and args is None and not pieces:  # the arguments may be among them
            self._blocks.out.append(events.ProviderEvent("google", "functionCall", kept(found)))
        fields = {**fields, **own}
        is_streamed = will_continue or bool(pieces)
        call = self._open
        if call is not None and call.continues_with(name, call_id):
            if fields or (call_id and call.call_id is None):
                self._change(call, call_id, fields)
            if args:
                call.arguments.take(args)
        elif (
            not name
            and (args or pieces)
            and self._ended is not None
            and call_id in (None, self._ended.call_id)
        ):
            self._read_late(self._ended, found)
            return
        elif name or call_id or args is not None or is_streamed:
            call = self._begin(name, call_id, args, fields, is_streamed=is_streamed)
        else:  # the end of a call that has ended already
            self._blocks.sign("text", fields)
            return
        if call is None:
            return
        for place, piece in enumerate(pieces):
            at = f"{path}.partialArgs[{place}]"
            self._add_argument(call, _READ.mapping(piece, at), at)
        self.will_continue = will_continue
        if not will_continue:
            self.end()

    def end(self, cut: str | None = None) -> None:
        """Finish the open call. One that was cut off must not look as if it could be run."""
        call, self._open = self._open, None
        if call is None:
            return
        self._ended = call
        if cut is not None:
            self._blocks.finish(call.block, invalid_call(cut))
            return
        if call.arguments.in_order:
            self._blocks.add_arguments(call.block, call.arguments.rest())
        else:
            self._blocks.change(call.block, {"args": call.arguments.whole()})
        self._blocks.finish(call.block)

    def flush(self) -> None:
        """Emit what is held back of the open call."""
        call = self._open
        if call is not None and not call.arguments.in_order:
            self._blocks.change(call.block, {"args": call.arguments.whole()})

    def _begin(
        self, name: str, call_id: str | None, args: Json | None, fields: Json, *, is_streamed: bool
    ) -> _Call | None:
        """Start a call. Return it if its arguments are streamed; else it is finished too."""
        self._blocks.end_current()
        self.end()
        self.ever = True
        known = self._blocks.call_identity(call_id)
        if args or not is_streamed:
            known["args"] = freeze(args or {}, "args", lenient=True)
        content = {**fields, "type": "tool_call_chunk", "name": name or None, "args": "", **known}
        if not is_streamed:
            self._ended = _Call(self._blocks.count, call_id, name)
            self._blocks.whole(content)
            return None
        call = self._open = _Call(self._blocks.start(content), call_id, name)
        if args:
            call.arguments.take(args)
        return call

    def _read_late(self, call: _Call, found: Json) -> None:
        """Make a call invalid whose arguments go on after its end."""
        if call.is_late:
            self._blocks.out.append(events.ProviderEvent("google", "functionCall", kept(found)))
            return
        call.is_late = True
        self._blocks.finish(call.block, arguments_after_end(json.dumps(thaw(kept(found)))))

    def _change(self, call: _Call, call_id: str | None, fields: Json) -> None:
        new = dict(fields)
        if call_id is not None and call.call_id is None:
            call.call_id = call_id
            new |= {"id": call_id, SYNTHETIC_ID: False}
        self._blocks.change(call.block, new)

    def _add_argument(self, call: _Call, piece: Json, path: str) -> None:
        argument = read_argument(piece, path)
        if argument is None:
            return
        steps, value = argument
        text = call.arguments.add(steps, value, is_open=piece.get("willContinue") is True)
        if text is not None:
            self._blocks.add_arguments(call.block, text)
        elif (args := call.arguments.whole_if_due()) is not None:
            self._blocks.change(call.block, {"args": args})


class _Call:
    """A call, whose arguments may be streamed."""

    __slots__ = ("arguments", "block", "call_id", "is_late", "name")

    def __init__(self, block: int, call_id: str | None, name: str) -> None:
        self.block = block
        self.call_id = call_id
        self.name = name
        self.is_late = False  # arguments came after its end
        self.arguments = Arguments()

    def continues_with(self, name: str, call_id: str | None) -> bool:
        """Whether a fragment belongs to this call. One with a name begins a call, unless it repeats name and id."""
        if name and name != self.name:
            return False
        if call_id is None:
            return not name
        return call_id == self.call_id or (self.call_id is None and not name)


_CALL = frozenset(["id", "name", "args", "partialArgs", "willContinue"])
