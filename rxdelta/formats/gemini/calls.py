"""The blocks of one candidate, and its function calls, whole or with streamed arguments.

Streamed arguments are values that come one by one, each with its path: `Arguments` makes a JSON text of them.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from rxdelta.core import DEFAULT_LIMITS, Event, LimitExceededError, events, freeze, thaw
from rxdelta.formats.block_events import BlockWriter
from rxdelta.formats.calls import arguments_after_end, given_id, invalid_call
from rxdelta.formats.decoding import Base64Pieces, Fields, Json, due, kept, others
from rxdelta.formats.gemini.tables import FORMAT
from rxdelta.formats.notes import SYNTHETIC_ID

Step: TypeAlias = str | int

_READ = Fields(FORMAT)


class Blocks(BlockWriter):
    """Writes the blocks of one candidate. The current one is a text, a thought or an audio."""

    __slots__ = ("_audio",)

    def __init__(self, out: list[Event], choice: int, message_id: str | None) -> None:
        super().__init__(out, choice, message_id)
        self._audio = Base64Pieces()

    def write_text(self, type: str, text: str, fields: Json) -> None:
        if not text:
            self.sign(type, fields)
            return
        if self.type != type or self.is_signed_otherwise(fields):
            self.begin({**fields, "type": type, type: ""}, fields)
        elif fields:
            self.describe(fields)
        self.write(type, text)

    def sign(self, type: str, fields: Json) -> None:
        """Write the fields of an empty part: to the current block that they belong to, else in one of their own."""
        if not fields:
            return
        belongs = self.type == type or (self.type is not None and type == "text")
        if belongs and not self.is_signed_otherwise(fields):
            self.describe(fields)
        else:
            self.whole({**fields, "type": type, type: ""})

    def write_audio(self, data: str, mime_type: str, fields: Json) -> None:
        """Write a piece of audio: to the current block if that has the same type, as no piece says that it begins."""
        is_same = self.type == "audio" and self.known.get("mime_type") == (mime_type or None)
        if not is_same or self.is_signed_otherwise(fields):
            self.begin({**fields, "type": "audio"}, fields)
        else:
            self.describe(fields)
        self.add_data(self.current, self._audio.add(data))

    def end_current(self) -> None:
        if self.type == "audio":
            self.add_data(self.current, self._audio.rest())
        super().end_current()


def read_argument(piece: Json, path: str) -> tuple[tuple[Step, ...], str | float | None] | None:
    """The path and the value of one of the `partialArgs`; `None` if it has no value."""
    kinds = [name for name in _VALUES if piece.get(name) is not None]
    if not kinds and piece.keys() - {"jsonPath", "willContinue"} != {"nullValue"}:
        if not _PIECE.issuperset(piece):
            raise _READ.fail(path, "a value by one of its names", piece)
        return None
    json_path = _READ.text_of(piece, "jsonPath", path)
    steps = _steps(json_path)
    if steps is None:
        raise _READ.fail(f"{path}.jsonPath", "a path from $ to a value in an object", json_path)
    kind = kinds[0] if kinds else "nullValue"
    return steps, _VALUES[kind](piece.get(kind), f"{path}.{kind}")


class _Array(dict[Step, Any]):
    """The items of an array by their index, so that an absurd index costs no memory."""


class Arguments:
    """The arguments of a call, written as JSON text that grows with each value.

    A path may lead anywhere, also to a place that the text has passed. Then the text can't be continued, and the
    arguments have to be emitted whole instead. Therefore all values are kept until the call ends, strings in pieces.

    Attributes:
        in_order: Whether the text has all values so far.
    """

    __slots__ = ("_at", "_emitted", "_open_string", "_size", "_values", "in_order")

    def __init__(self) -> None:
        self.in_order = True
        self._values: dict[Step, Any] = {}
        self._at: tuple[Step, ...] = ()  # where the text ends
        self._open_string = False
        self._size = self._emitted = 0

    def take(self, args: Json) -> None:
        """Add the arguments that came whole, before the streamed arguments."""
        self.in_order = False
        self._values.update(_opened(thaw(freeze(args, lenient=True))))

    def add(self, steps: tuple[Step, ...], value: str | float | None, *, is_open: bool) -> str | None:
        """Add a value. Return the text that it adds, or `None` if the arguments have to be emitted whole."""
        self._size += len(value) if isinstance(value, str) else 1
        node, fresh, replaced = self._values, len(steps) - 1, False
        for place, step in enumerate(steps[:-1]):
            kind = _Array if isinstance(steps[place + 1], int) else dict
            within: Any = node.get(step)
            if type(within) is not kind:
                replaced |= step in node
                fresh = min(fresh, place)
                within = node[step] = kind()
            node = within
        last, known = steps[-1], node.get(steps[-1])
        is_open = is_open and isinstance(value, str)
        if isinstance(value, str) and isinstance(known, list):
            known.append(value)
            self.in_order &= self._open_string and steps == self._at
            if self.in_order:
                self._open_string = is_open
                return _escaped(value) + ("" if is_open else '"')
            return None
        replaced |= last in node
        node[last] = [value] if isinstance(value, str) else value
        self.in_order &= not replaced and self._follows(steps, fresh)
        if not self.in_order:
            return None
        text = self._lead(steps, fresh)
        self._at, self._open_string = steps, is_open
        if isinstance(value, str):
            return f'{text}"{_escaped(value)}' + ("" if is_open else '"')
        return text + json.dumps(value)

    def _follows(self, steps: tuple[Step, ...], fresh: int) -> bool:
        """Whether the value can follow in the text: its place is still open there, and in an array the next one."""
        if steps[:fresh] != self._at[:fresh] or (self._at and len(self._at) <= fresh):
            return False
        node: Any = self._values
        for place, step in enumerate(steps):
            if place >= fresh and isinstance(step, int) and step != len(node) - 1:
                return False
            node = node[step]
        return True

    def _lead(self, steps: tuple[Step, ...], fresh: int) -> str:
        """The text between the newest value and the next: what has to be closed and opened."""
        text = self._closed(fresh) + ("," if self._at else "{")
        for place in range(fresh, len(steps)):
            step = steps[place]
            if isinstance(step, str):
                text += json.dumps(step, ensure_ascii=False) + ":"
            if place + 1 < len(steps):
                text += "[" if isinstance(steps[place + 1], int) else "{"
        return text

    def _closed(self, depth: int) -> str:
        closing = ["]" if isinstance(step, int) else "}" for step in reversed(self._at[depth + 1 :])]
        return ('"' if self._open_string else "") + "".join(closing)

    def rest(self) -> str:
        """The text that completes the JSON."""
        return self._closed(0) + "}" if self._at else ""

    def whole(self) -> Json:
        found: Json = _closed(self._values)
        return found

    def whole_if_due(self) -> Json | None:
        """The arguments, if they have grown by an eighth since they were last emitted whole."""
        if not due(self._size, self._emitted):
            return None
        self._emitted = self._size
        return self.whole()


def _opened(value: Any) -> Any:
    """A JSON value in the form in which it can grow: arrays by index, strings in pieces."""
    if isinstance(value, dict):
        return {name: _opened(item) for name, item in value.items()}
    if isinstance(value, list):
        return _Array({place: _opened(item) for place, item in enumerate(value)})
    return [value] if isinstance(value, str) else value


def _closed(value: Any) -> Any:
    """A value that could grow as a JSON value."""
    if isinstance(value, _Array):
        return [_closed(value[index]) for index in sorted(value)]  # pyright: ignore[reportArgumentType]
    if isinstance(value, dict):
        return {name: _closed(item) for name, item in value.items()}
    return "".join(value) if isinstance(value, list) else value


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]]+)|\[(?P<index>[0-9]+)\]|\[(?P<quoted>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""
)


def _steps(json_path: str) -> tuple[Step, ...] | None:
    """The steps of a path, `$.a[0].b` or `$['a'][0]['b']`; `None` if it leads to no value in an object."""
    if len(json_path) > 4 * DEFAULT_LIMITS.line_bytes or not json_path.startswith("$"):
        return None
    steps: list[Step] = []
    at = 1
    while at < len(json_path):
        found = _STEP.match(json_path, at)
        if found is None:
            return None
        name, index, quoted = found.group("name", "index", "quoted")
        if index is not None:
            steps.append(_READ.index(int(index[:20]), "jsonPath"))
        else:
            steps.append(name if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1:-1]))
        at = found.end()
        if len(steps) > DEFAULT_LIMITS.json_depth:
            raise LimitExceededError.of("json_depth", DEFAULT_LIMITS.json_depth, "the path of an argument")
    return tuple(steps) if steps and isinstance(steps[0], str) else None


def _nothing(_: object, __: str) -> None:
    """A null has no value to be read."""


def _number(value: object, path: str) -> float:
    """A number as JSON would have it: the SDK makes every number a float."""
    known = (
        None
        if isinstance(value, bool) or not isinstance(value, (int, float))
        else freeze(value, lenient=True)
    )
    if known is None:
        raise _READ.fail(path, "a number", value)
    return int(known) if isinstance(known, float) and known.is_integer() and abs(known) < 2**53 else known


def _flag(value: object, path: str) -> bool:
    if not isinstance(value, bool):
        raise _READ.fail(path, "true or false", value)
    return value


_VALUES: Mapping[str, Callable[[object, str], Any]] = {
    "stringValue": _READ.text,
    "numberValue": _number,
    "boolValue": _flag,
    "nullValue": _nothing,
}
"""The readers of the fields of which one has the value."""

_PIECE = frozenset(["jsonPath", "willContinue", *_VALUES])


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
