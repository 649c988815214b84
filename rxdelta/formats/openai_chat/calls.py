"""Tool calls, which of them each fragment continues, and the indexes that vendors give to calls and choices."""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Set
from typing import Any, Final, TypeAlias

from rxdelta.core import freeze, thaw, tool_call_delta
from rxdelta.core.events import ToolCallDelta
from rxdelta.formats.block_events import BlockWriter
from rxdelta.formats.calls import CUT_OFF, Arguments, Change, arguments_after_end, given_id, invalid_call
from rxdelta.formats.decoding import NOTHING, Fields, Json, others, word
from rxdelta.formats.notes import PROVIDER_TYPE, SIGNED_BY, SYNTHETIC_ID
from rxdelta.formats.openai_chat.tables import CUSTOM_CALL, FORMAT

_READ = Fields(FORMAT)


def index_of(value: object, path: str) -> int | None:
    """The index; `None` if there is none, also in the form of a number that can be none: `-1`.

    A whole number may come as a text or as a float.

    Raises:
        MalformedChunkError: It is something else.
        LimitExceededError: It is absurd.

    Example:
        >>> index_of("1", "index"), index_of(1.0, "index"), index_of(-1, "index")
        (1, 1, None)
    """
    if value is None:
        return None
    number = value
    if isinstance(value, float) and value.is_integer():
        number = int(value)
    elif isinstance(value, str) and _NUMBER.fullmatch(value):
        number = int(value[:_DIGITS])
    if type(number) is int and number < 0:
        return None
    return _READ.index(number, path)


_DIGITS: Final = 40
"""More of them are as absurd, and cost time."""

_NUMBER: Final = re.compile("-?[0-9]+")


Index: TypeAlias = "int | str | None"

_LEGACY: Final = "function_call"
"""The place of the one call that has its own field, and so no index."""


class Calls:
    """Reads the calls of one choice. Each is a block that stays open until the finish reason.

    Attributes:
        open: The calls that have not finished, by their blocks.
        count: How many calls there have been.
        late: Whether a fragment came for a call that had finished, beyond the first arguments that make it invalid. The
            choice takes it back when it has read it.
    """

    __slots__ = ("_blocks", "_matcher", "count", "late", "open")

    def __init__(self, blocks: BlockWriter) -> None:
        self.open: dict[int, _Call] = {}
        self.count = 0
        self.late = False
        self._blocks = blocks
        self._matcher = _CallMatcher()

    @property
    def ever(self) -> bool:
        """Whether there has been a call."""
        return self.count > 0

    def plain_arguments(self, delta: dict[str, Any]) -> ToolCallDelta | None:
        """The event of a plain delta: more arguments of an open call. `tests/formats/test_plain_chunks.py` tests it."""
        if len(delta) > 1:
            for name, value in delta.items():
                if name not in _PLAIN_ARGUMENTS and value not in NOTHING:
                    return None
        entries: Any = delta["tool_calls"]
        entry: Any = entries[0] if type(entries) is list and len(entries) == 1 else None
        if type(entry) is not dict or not _PLAIN_ENTRY.issuperset(entry) or entry.get("id"):
            return None
        try:
            function, index = entry["function"], entry["index"]
            if type(function) is not dict or type(index) is not int:
                return None
            call, arguments = self._matcher.newest_at[index], function["arguments"]
        except KeyError:
            return None
        kind = entry.get("type")
        if type(arguments) is not str or not arguments or (kind is not None and kind != "function"):
            return None
        if len(function) > 1 and (len(function) > 2 or function.get("name", True)):
            return None
        pieces = call.said.pieces
        if not pieces or ("{" in arguments and not call.said.goes_on(arguments)):
            return None
        pieces.append(arguments)
        return tool_call_delta(call.block, arguments, self._blocks.choice)

    def read(self, entries: object, path: str) -> None:
        self._matcher.delta += 1
        for place, entry in enumerate(_READ.items(entries, path)):
            at = f"{path}[{place}]"
            fragment = _READ.mapping(entry, at)
            index = index_of(fragment.get("index"), f"{at}.index")
            is_whole = index is None and path.endswith(".message.tool_calls")
            self._read_fragment(fragment, place if is_whole else index, at, is_whole=is_whole)

    def read_function_call(self, function: object, path: str) -> None:
        """Read the field that came before `tool_calls`: one call, without an id."""
        self._read_fragment({"function": function}, _LEGACY, path)

    def end_fragments(self) -> Set[int]:
        """Let no fragment continue a call that has arguments. Return the blocks of the calls that have none.

        The arguments of those may come behind the finish reason.
        """
        self.settle()
        return {call.block for call in self._matcher.end_those_with_arguments()}

    def settle(self) -> None:
        """Let the open calls have what of their arguments waits for more."""
        for call in [*self.open.values()]:
            self._tell(call, call.said.end())

    def end(self) -> None:
        """Let no fragment continue a call: the message is over."""
        self._matcher.newest_at.clear()

    def finish(self, block: int, cut: str | None) -> None:
        """Finish a call. One that was cut off, or has no name, must not look as if it could be run.

        The token limit cuts off the newest call. Those before it had ended, unless their arguments are yet to come.
        """
        if cut == CUT_OFF and block != max(self.open) and self.open[block].has_arguments:
            cut = None
        call = self.open.pop(block)
        wrong = cut or (None if call.name.strip() else "the call has no name")
        if wrong is None and call.is_custom:
            self._blocks.add_arguments(call.block, '"}')
        self._blocks.finish(block, None if wrong is None else invalid_call(wrong))

    def _read_fragment(self, entry: Json, index: Index, path: str, *, is_whole: bool = False) -> None:
        # Snowflake has an empty `custom` beside each function.
        is_custom = entry.get("type") == CUSTOM_CALL or bool(
            entry.get("custom") and not entry.get("function")
        )
        kind, field = ("custom", "input") if is_custom else ("function", "arguments")
        function = _READ.mapping(entry.get(kind), f"{path}.{kind}")
        call_id = given_id(_READ.text_of(entry, "id", path))
        name = _READ.text_of(function, "name", f"{path}.{kind}")
        found = function.get(field)
        if found is None and not is_custom:
            found = _renamed(function, entry)
        arguments = _arguments(found, f"{path}.{kind}.{field}")
        fields = _fields(entry, function)
        ended = None if is_whole else self._matcher.find_ended(index, call_id, name)
        if ended is not None:
            if arguments:
                self._add_late_arguments(ended, arguments)
            else:
                self.late = True
            return
        call = None if is_whole else self._matcher.find(index, call_id, name, has_arguments=bool(arguments))
        if call is not None:
            if call_id or name or fields:
                self._change(call, call_id, name, fields)
            if name:
                call.said.name_again(with_id=call_id is not None)
        elif call_id or name or arguments or fields:
            call = self._begin(_Call(self._blocks.count, index, call_id, name, fields, is_custom))
        if call is not None:
            call.newest_delta = self._matcher.delta
            if arguments:
                self._add_arguments(call, arguments)

    def _begin(self, call: _Call) -> _Call:
        self.count += 1
        self.open[call.block] = call
        self._matcher.add(call)
        known = self._blocks.call_identity(call.call_id)
        content = {**call.fields, "type": "tool_call_chunk", "name": call.name or None, "args": "", **known}
        self._blocks.start(content)
        if call.is_custom:
            self._blocks.add_arguments(call.block, '{"input": "')
        return call

    def _change(self, call: _Call, call_id: str | None, name: str, fields: Json) -> None:
        new = {field: value for field, value in fields.items() if call.fields.get(field) != value}
        call.fields.update(new)
        if call_id is not None and call.call_id is None:
            self._matcher.identify(call, call_id)
            new |= {"id": call_id, SYNTHETIC_ID: False}
        if name and name != call.name and not (call.name and call.has_arguments):
            call.name += name
            new["name"] = call.name
        if new:
            self._blocks.change(call.block, new)

    def _add_arguments(self, call: _Call, arguments: str | Json) -> None:
        is_first, call.has_arguments = not call.has_arguments, True
        if not isinstance(arguments, str):
            self._add_object(call, arguments, is_first=is_first)
        elif call.is_custom:
            # A free-form text becomes a JSON string piece by piece.
            self._blocks.add_arguments(call.block, json.dumps(arguments, ensure_ascii=False)[1:-1])
        else:
            self._tell(call, call.said.add(arguments))

    def _add_object(self, call: _Call, arguments: Json, *, is_first: bool) -> None:
        """Add an object of arguments, as some gateways send. The text of the object is compared with what came."""
        text = json.dumps(thaw(arguments))
        if call.is_custom or is_first:
            call.is_custom, call.is_object = False, True
            call.said.add(text)
            self._blocks.change(call.block, {"args": arguments})
        else:
            self._tell(call, call.said.add(text))

    def _tell(self, call: _Call, change: Change) -> None:
        """Write what a fragment does to a call's arguments."""
        if change.instead is not None or (change.more and call.is_object):
            call.is_object = False
            self._blocks.change(call.block, {"args": call.said.text})
        else:
            self._blocks.add_arguments(call.block, change.more)
        if change.another is not None:
            call_id = call.call_id if change.has_id else None
            call = self._begin(_Call(self._blocks.count, call.index, call_id, call.name, {}, False))
            call.newest_delta = self._matcher.delta
            self._add_arguments(call, change.another)

    def _add_late_arguments(self, call: _Call, arguments: str | Json) -> None:
        text = arguments if isinstance(arguments, str) else json.dumps(thaw(arguments))
        if not text.strip() or call.said.says(text):
            return
        if call.late_is_known:
            self.late = True
            return
        call.late_is_known = True
        self._blocks.finish(call.block, arguments_after_end(text))


class _Call:
    """A call, with the fields by which its fragments are distinguished from another call's."""

    __slots__ = (
        "block",
        "call_id",
        "fields",
        "has_arguments",
        "index",
        "is_custom",
        "is_object",
        "late_is_known",
        "name",
        "newest_delta",
        "said",
    )

    def __init__(
        self,
        block: int,
        index: Index,
        call_id: str | None,
        name: str,
        fields: dict[str, Any],
        is_custom: bool,
    ) -> None:
        self.block = block
        self.index = index
        self.call_id = call_id
        self.name = name
        self.fields = fields
        self.is_custom = is_custom
        self.has_arguments = False
        self.said = Arguments()
        self.is_object = False  # whether the arguments came as an object, and nothing has followed
        self.late_is_known = False  # arguments came when the call had ended
        self.newest_delta = -1  # the number of the newest delta that had a fragment of it


class _CallMatcher:
    """The calls of one choice that fragments can continue, by index and id.

    Attributes:
        delta: The number of the delta being read.
        newest_at: The newest call at each index.
    """

    __slots__ = ("_by_id", "_ended", "_ended_at", "_newest", "_newest_ended", "delta", "newest_at")

    def __init__(self) -> None:
        self.delta = 0
        self.newest_at: dict[Index, _Call] = {}
        self._by_id: dict[tuple[Index, str], _Call] = {}  # at the index None: at whichever index it is
        self._newest: _Call | None = None
        # The calls that no fragment continues any more.
        self._ended: dict[str, _Call] = {}
        self._ended_at: dict[Index, _Call] = {}
        self._newest_ended: _Call | None = None

    def find(self, index: Index, call_id: str | None, name: str, *, has_arguments: bool) -> _Call | None:
        """The call that a fragment continues; `None` if it begins one."""
        newest = self._newest if index is None else self.newest_at.get(index)
        if call_id is not None:
            known = self._by_id.get((index, call_id))
            # DeepSeek and GLM are reported to give several calls one id: another name behind arguments is another call's.
            if known is not None and (known.name in ("", name) or not (name and known.has_arguments)):
                return known
            if index is not None and newest is not None and newest.call_id is None and not name:
                return newest  # a call gets its id late, although another call has the same id
            known = self._by_id.get((None, call_id))
            if known is not None and self._can_continue(known, index, name, is_new_index=newest is None):
                self.newest_at.setdefault(index, known)
                return known
            # Poolside has two ids for each call, OCI a new one in every chunk: an id alone begins no call.
            if not name:
                return self._named_before(index, call_id, newest, has_arguments)
            # Some gateways give all parallel calls the index 0: a name and another real id begin a call.
            if index is None or newest is None or newest.call_id is not None:
                return None
        elif newest is None and not name:
            # Nebius increases the index with every chunk: arguments without a name are those of the newest call.
            return None if index in self._ended_at else self._newest
        return newest if newest is not None and self._can_continue(newest, index, name) else None

    def _named_before(
        self, index: Index, call_id: str, newest: _Call | None, has_arguments: bool
    ) -> _Call | None:
        """The call of a fragment that has no name, and an id that no call has: a call begins with its name.

        At an index without a call only arguments continue another call, if that isn't whole.
        """
        if newest is None and has_arguments and self._newest is not None and not self._newest.said.is_whole:
            newest = self._newest
        if newest is not None and newest.call_id is not None:
            self._by_id[index, call_id] = newest
            self._by_id.setdefault((None, call_id), newest)
        return newest

    def find_ended(self, index: Index, call_id: str | None, name: str) -> _Call | None:
        """The ended call to which a fragment belongs, if it continues no other and can't begin one."""
        if call_id is not None and (call_id in self._ended or (None, call_id) in self._by_id):
            ended = self._ended.get(call_id)
            is_another = name and index is not None and self._ended_at.get(index) is not ended
            return None if is_another else ended
        if name or index in self.newest_at:
            return None
        if call_id is not None:
            return self._ended_at.get(index)
        return self._ended_at.get(index, self._newest_ended if self._newest is None else None)

    def _can_continue(self, call: _Call, index: Index, name: str, *, is_new_index: bool = False) -> bool:
        """Whether a fragment with this name, or with none, can belong to the call."""
        if not name:
            return True
        is_in_this_delta = call.newest_delta == self.delta
        if is_new_index and (call.name != name or call.has_arguments or is_in_this_delta):
            return False
        if call.name not in ("", name):
            return not call.has_arguments
        # No delta has two fragments of one call: a name that comes again in it is another call's (Mistral).
        is_again = is_in_this_delta and call.name == name
        return not (is_again and (call.has_arguments or index is None))

    def add(self, call: _Call) -> None:
        self._newest = self.newest_at[call.index] = call
        if call.call_id is not None:
            self._by_id[call.index, call.call_id] = self._by_id[None, call.call_id] = call

    def identify(self, call: _Call, call_id: str) -> None:
        """Note the id of a call that began without one."""
        call.call_id = call_id
        for index, newest in self.newest_at.items():
            if newest is call:
                self._by_id[index, call_id] = call
        self._by_id[None, call_id] = call

    def end_those_with_arguments(self) -> list[_Call]:
        """Forget the calls that have arguments. Return the others in their order."""
        self._ended |= {call_id: call for (_, call_id), call in self._by_id.items() if call.has_arguments}
        self._ended_at |= {index: call for index, call in self.newest_at.items() if call.has_arguments}
        self._newest_ended = max(self._ended_at.values(), key=lambda call: call.block, default=None)
        self._by_id = {key: call for key, call in self._by_id.items() if not call.has_arguments}
        self.newest_at = {index: call for index, call in self.newest_at.items() if not call.has_arguments}
        bare = sorted({*self._by_id.values(), *self.newest_at.values()}, key=lambda call: call.block)
        self._newest = bare[-1] if bare else None
        return bare


def _arguments(value: object, path: str) -> str | Json | None:
    """A call's arguments: a text, or from some gateways the object itself."""
    if value is None or type(value) is str:
        return value
    if isinstance(value, Mapping):
        value = freeze(value, lenient=True)
    if value is None or isinstance(value, (str, Mapping)):
        return value
    raise _READ.fail(path, "a string or an object", value)


def _fields(entry: Json, function: Json) -> dict[str, Any]:
    """A call's fields beyond the format, such as Gemini's `extra_content` with the signature of a thought."""
    fields = others(entry, _FRAGMENT)
    fields |= others(function, _FUNCTION)
    if word(entry.get("type")) not in (None, "function"):
        fields[PROVIDER_TYPE] = entry["type"]
    if "extra_content" in fields:
        fields[SIGNED_BY] = FORMAT
    return fields


def _renamed(*sources: Json) -> object:
    """Arguments under another name or in another place. A call that lost them would run without them."""
    return next(
        (found for one in sources for name in _ARGUMENTS if (found := one.get(name)) not in NOTHING), None
    )


_ARGUMENTS = ("arguments", "args", "input", "parameters")
_FRAGMENT = frozenset(["index", "id", "type", "function", "custom", *_ARGUMENTS])
_FUNCTION = frozenset(["name", *_ARGUMENTS])

# A delta of no more than these is a piece of arguments.
_PLAIN_ARGUMENTS = frozenset(["role", "tool_calls"])
_PLAIN_ENTRY = frozenset(["index", "id", "type", "function"])
