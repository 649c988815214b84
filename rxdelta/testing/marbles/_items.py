"""The items of a line of events: what each says. Nothing here changes what was told, but for the lane."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rxdelta.core import InvalidValueError, TokenUsage, ToolResult, did_you_mean, events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rxdelta.core.events import Event, Index
    from rxdelta.testing.marbles._scanner import Scanner
    from rxdelta.testing.marbles._told import Told

__all__ = ["BEGINS_A_BLOCK", "NAMES_A_BLOCK", "PART", "WORD", "read_item"]

WORD = re.compile(r'[^-|/#()\[\]<>"\s]+')
"""A text without quotes."""
PART = re.compile(r'[^,()"{}\[\]]*')
"""A text between commas, without quotes."""

_NAME = re.compile(r"(\+?)([a-z]+)(?:@(\w+))?(?=[:)])")
_CALL = re.compile(r"([^#{})\"]*)(?:#([^{})\"]*))?(?=[{)])")
_TEXT, _REASONING = {"type": "text", "text": ""}, {"type": "reasoning", "reasoning": ""}


def read_item(scanner: Scanner, told: Told) -> list[Event]:
    if scanner.next == '"':
        return _prose(told, "text", scanner.json(), None, False)
    if scanner.next != "(":
        word = scanner.match(WORD)
        if word is None:
            scanner.fail("this begins no item")
        return _prose(told, "text", word[0].replace("_", " "), None, False)
    begin = scanner.at
    scanner.at += 1
    found = [events.from_dict(scanner.json())] if scanner.next == "{" else _named(scanner, told, begin)
    if not scanner.takes(")"):
        scanner.fail("here the item should end with )")
    return found


def _named(scanner: Scanner, told: Told, begin: int) -> list[Event]:
    """The events of an item that has a name."""
    head = scanner.match(_NAME)
    if head is None:
        scanner.fail("behind ( comes a wait, such as 2s, a JSON object, or the name of an item")
    plus, name, place = head.groups()
    read = _ITEMS.get(name)
    if read is None:
        scanner.fail(
            f"there is no item {name!r}; {did_you_mean(name, _ITEMS) or 'there are ' + ', '.join(_ITEMS)}",
            begin,
        )
    if (plus and name not in BEGINS_A_BLOCK) or (place and name not in NAMES_A_BLOCK):
        scanner.fail(f"{name} takes no {'+' if plus else '@'}", begin)
    if place and plus and name != "block":
        scanner.fail("+ begins a block, and @ names one that has begun", begin)
    if place and scanner.next == ")" and name != "end":
        scanner.fail(f"({name}@{place}:…) has a text behind the colon", begin)
    index = None if place is None else int(place) if place.isdecimal() else place
    return read(_Body(scanner, told, begin, index, bool(plus)))


class _Json(NamedTuple):
    """A part of an item that is written as JSON."""

    value: Any


class _Body:
    """What stands in an item's parentheses, behind its name."""

    def __init__(self, scanner: Scanner, told: Told, begin: int, index: Index | None, beside: bool) -> None:
        self.scanner = scanner
        self.told = told
        self.begin = begin
        self.index = index
        self.beside = beside
        self.is_given = scanner.takes(":")

    def text(self) -> str:
        """A text: as it is up to the next `)`, or as JSON."""
        if not self.is_given:
            return ""
        if self.scanner.next == '"':
            return str(self.scanner.json())
        text = self.scanner.up_to(")", "the item")
        self.scanner.at -= 1
        return text

    def text_or_none(self) -> str | None:
        return self.text() if self.is_given else None

    def parts(self, most: int) -> list[str | _Json | None]:
        """Texts and JSON values between commas; `None` for those that are left out."""
        found: list[str | _Json | None] = []
        while self.is_given:
            if self.scanner.next and self.scanner.next in '"{[':
                found.append(_Json(self.scanner.json()))
            else:
                part = self.scanner.match(PART)
                found.append(part[0] if part else "")
            if not self.scanner.takes(","):
                break
            if len(found) == most:
                self.scanner.fail(f"there are at most {most} parts")
        return [*found, *[None] * (most - len(found))]

    def object(self) -> Any:
        if not self.is_given or self.scanner.next != "{":
            self.scanner.fail("here a JSON object is needed")
        return self.scanner.json()

    def block(self, *kinds: str) -> Index:
        """The block that is meant."""
        index = self.told.current(*kinds) if self.index is None else self.index
        if index is None:
            self.scanner.fail("no block is open to which this belongs; name one with @", self.begin)
        return index


def _prose(told: Told, kind: str, text: str | None, index: Index | None, beside: bool) -> list[Event]:
    before: list[Event] = []
    if index is None:
        index = None if beside or text is None else told.current(kind)
    if index is None:
        before, index = told.begin(_TEXT if kind == "text" else _REASONING, beside=beside)
    if text is None:
        return before
    delta = events.TextDelta if kind == "text" else events.ReasoningDelta
    return [*before, delta(index, text, **told.names)]


def _read_text(body: _Body) -> list[Event]:
    return _prose(body.told, "text", body.text_or_none(), body.index, body.beside)


def _read_think(body: _Body) -> list[Event]:
    return _prose(body.told, "reasoning", body.text_or_none(), body.index, body.beside)


def _read_call(body: _Body) -> list[Event]:
    head = body.scanner.match(_CALL) if body.is_given else None
    if head is None:
        body.scanner.fail("a call is (call:name), (call:name#id) or (call:name#id{arguments})")
    call_id = f"call_{body.told.next_index()}" if head[2] is None else head[2]
    content = {"type": "tool_call_chunk", "id": call_id, "name": head[1], "args": ""}
    found, index = body.told.begin(content, beside=body.beside)
    begin = body.scanner.at
    if body.scanner.next != "{":
        return found
    body.scanner.json()
    args = body.scanner.line[begin : body.scanner.at]
    names = body.told.names
    return [*found, events.ToolCallDelta(index, args, **names), events.BlockFinish(index, **names)]


def _read_args(body: _Body) -> list[Event]:
    return [
        events.ToolCallDelta(
            body.block("tool_call_chunk", "server_tool_call_chunk"), body.text(), **body.told.names
        )
    ]


def _read_image(body: _Body) -> list[Event]:
    found, index = body.told.begin({"type": "image", "mime_type": "image/png"}, beside=body.beside)
    data = body.text_or_none()
    if data is None:
        return found
    names = body.told.names
    return [*found, events.DataDelta(index, data, **names), events.BlockFinish(index, **names)]


def _read_data(body: _Body) -> list[Event]:
    return [events.DataDelta(body.block(), body.text(), **body.told.names)]


def _read_block(body: _Body) -> list[Event]:
    return body.told.begin(body.object(), beside=body.beside, index=body.index)[0]


def _read_fields(body: _Body) -> list[Event]:
    return [events.BlockDelta(body.block(), body.object(), **body.told.names)]


def _read_end(body: _Body) -> list[Event]:
    content = body.object() if body.is_given else None
    return [events.BlockFinish(body.block(), content, **body.told.names)]


def _read_start(body: _Body) -> list[Event]:
    reply_id, model = body.parts(2)
    return [events.MessageStart(_text(reply_id), _text(model), **body.told.names)]


def _read_usage(body: _Body) -> list[Event]:
    read, written = (_count(part, body) for part in body.parts(2))
    return [*body.told.start(), events.UsageUpdate(TokenUsage(read, written), **body.told.names)]


def _count(part: str | _Json | None, body: _Body) -> int | None:
    return None if part is None or part == "" else _number(part, body)


def _read_finish(body: _Body) -> list[Event]:
    reason, word = body.parts(2)
    finish = events.MessageFinish(_text(reason), _text(word), **body.told.names)
    return [*body.told.start(), *body.told.ends(), finish]


def _read_error(body: _Body) -> list[Event]:
    message, kind, code = body.parts(3)
    return [events.StreamError(_text(message) or "", _text(kind), _text(code), **body.told.names)]


def _read_tool(body: _Body) -> list[Event]:
    call, status, result = body.parts(3)
    call_id, word = _text(call) or "", cast("Any", _text(status) or None)
    given = None if result is None else ToolResult(call_id, _value(result))
    return [events.ToolUpdate(call_id, word, result=given, run_id=body.told.lane[0])]


def _read_custom(body: _Body) -> list[Event]:
    name, data = body.parts(2)
    return [events.Custom(_text(name) or "", _value(data), run_id=body.told.lane[0])]


def _read_provider(body: _Body) -> list[Event]:
    provider, name, payload = body.parts(3)
    run_id = body.told.lane[0]
    return [events.ProviderEvent(_text(provider) or "", _text(name) or "", _value(payload), run_id=run_id)]


def _read_stop(body: _Body) -> list[Event]:
    return [events.MessageInterrupted(body.text_or_none(), run_id=body.told.lane[0])]


def _read_reset(body: _Body) -> list[Event]:
    attempt, error = body.parts(2)
    number = 1 if attempt is None else _number(attempt, body)
    return [events.AttemptReset(number, _text(error), run_id=body.told.lane[0])]


def _read_choice(body: _Body) -> list[Event]:
    body.told.lane = (body.told.lane[0], _number(body.text(), body))
    return []


def _number(part: str | _Json, body: _Body) -> int:
    if isinstance(part, _Json) or not part.isdecimal():
        body.scanner.fail("here a number is needed", body.begin)
    return int(part)


def _read_run(body: _Body) -> list[Event]:
    body.told.lane = (body.text_or_none(), 0)
    return []


def _text(part: str | _Json | None) -> str | None:
    """A part as text."""
    if not isinstance(part, _Json):
        return part
    if not isinstance(part.value, str):
        raise InvalidValueError.of([("text", part.value, "must be a string")])
    return part.value


def _value(part: str | _Json | None) -> Any:
    """A part as any value; what isn't JSON is a text."""
    if isinstance(part, _Json):
        return part.value
    try:
        return None if part is None else json.loads(part)
    except ValueError:
        return part


_ITEMS: Mapping[str, Callable[[_Body], list[Event]]] = {
    "text": _read_text,
    "think": _read_think,
    "call": _read_call,
    "args": _read_args,
    "image": _read_image,
    "data": _read_data,
    "block": _read_block,
    "fields": _read_fields,
    "end": _read_end,
    "start": _read_start,
    "usage": _read_usage,
    "finish": _read_finish,
    "error": _read_error,
    "tool": _read_tool,
    "custom": _read_custom,
    "provider": _read_provider,
    "stop": _read_stop,
    "reset": _read_reset,
    "choice": _read_choice,
    "run": _read_run,
}
BEGINS_A_BLOCK = ("text", "think", "call", "image", "block")
NAMES_A_BLOCK = ("text", "think", "args", "data", "fields", "end", "block")
