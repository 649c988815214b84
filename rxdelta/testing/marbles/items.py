"""The items of a line of model events: what each says, and in which form it says it.

Nothing here changes what the line has said so far, but for the lane.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from rxdelta.core import InvalidValueError, RxDeltaError, TokenUsage, ToolResult, did_you_mean, events
from rxdelta.testing.marbles.line_state import Lane, LineState
from rxdelta.testing.marbles.scanner import Scanner, quoted, shown_literal

if TYPE_CHECKING:
    from rxdelta.core.events import Event, Index

_LOOKED_AHEAD = 64
"""How many events an item may imply."""


def forms(left: Sequence[Any], state: LineState) -> Iterator[str]:
    """The forms that may say the next events, the preferred one first among those that say as many."""
    is_open = state.has_open_blocks
    for place, event in enumerate(left[:_LOOKED_AHEAD]):
        write = _FORMS.get(event.__class__)
        if write is not None:
            for form in write(event, left[place + 1 : place + 2]):
                yield form
                if form.startswith("("):
                    name = form[1:].partition(":")[0].rstrip(")")
                    if name in BEGINS_A_BLOCK and is_open:
                        yield f"(+{form[1:]}"
                    if name in NAMES_A_BLOCK:
                        yield f"({name}@{event.index}{form[1 + len(name) :]}"
        if event.__class__ not in STRUCTURE:
            return


def _word(text: str) -> str:
    spelt = text.replace(" ", "_")
    return spelt if "_" not in text and spelt.isprintable() and WORD.fullmatch(spelt) else quoted(text)


def _free(text: str) -> str:
    """A text as the body of an item."""
    return text if text.isprintable() and ")" not in text and not text.startswith('"') else quoted(text)


def _parts(*texts: str | None) -> str:
    """Parts as the body of an item, without `None` at the end."""
    said = [*texts]
    while said and said[-1] is None:
        said.pop()
    spelt = [
        "" if text is None else text if text and text.isprintable() and PART.fullmatch(text) else quoted(text)
        for text in said
    ]
    return f":{','.join(spelt)}" if spelt else ""


def _digits(count: int | None) -> str | None:
    return None if count is None else str(count)


def _text_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return [_word(event.text), f"(text:{_free(event.text)})"]


def _block_forms(event: Any, behind: Sequence[Any]) -> list[str]:
    content = event.content
    kind, piece = content.get("type"), behind[0] if behind else None
    forms = ["(text)", "(think)"]
    if kind == "tool_call_chunk":
        name = f"(call:{content.get('name')}"
        for head in (name, f"{name}#{content.get('id')}"):
            if isinstance(piece, events.ToolCallDelta) and piece.args.isprintable():
                forms.append(f"{head}{piece.args})")
            forms.append(f"{head})")
    elif kind == "image":
        if isinstance(piece, events.DataDelta):
            forms.append(f"(image:{_free(piece.data)})")
        forms.append("(image)")
    spelt = quoted(event.to_dict()["content"])
    return [*forms, f"(block:{spelt})", f"(+block@{event.index}:{spelt})"]


def _end_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return ["(end)" if event.content is None else f"(end:{quoted(event.to_dict()['content'])})"]


def _tool_forms(event: Any, _: Sequence[Any]) -> list[str]:
    result = "" if event.result is None else f",{quoted(event.result.to_dict().get('content'))}"
    return [f"(tool{_parts(event.call_id, event.execution_status or '')}{result})"]


def _custom_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return [f"(custom{_parts(event.name)},{quoted(event.to_dict()['data'])})"]


def _provider_forms(event: Any, _: Sequence[Any]) -> list[str]:
    payload = f",{quoted(event.to_dict().get('payload'))}" if event.payload else ""
    return [f"(provider{_parts(event.provider, event.name)}{payload})"]


_FORMS: Mapping[type, Callable[[Any, Sequence[Any]], list[str]]] = {
    events.TextDelta: _text_forms,
    events.ReasoningDelta: lambda event, _: [f"(think:{_free(event.reasoning)})"],
    events.ToolCallDelta: lambda event, _: [f"(args:{_free(event.args)})"],
    events.DataDelta: lambda event, _: [f"(data:{_free(event.data)})"],
    events.BlockStart: _block_forms,
    events.BlockDelta: lambda event, _: [f"(fields:{quoted(event.to_dict()['delta']['fields'])})"],
    events.BlockFinish: _end_forms,
    events.MessageStart: lambda event, _: [f"(start{_parts(event.id, event.model)})"],
    events.UsageUpdate: lambda event, _: [
        f"(usage{_parts(_digits(event.usage.input_tokens), _digits(event.usage.output_tokens))})"
    ],
    events.MessageFinish: lambda event, _: [
        f"(finish{_parts(event.reason)})",
        f"(finish{_parts(event.reason, event.provider_reason)})",
    ],
    events.StreamError: lambda event, _: [f"(error{_parts(event.message, event.type, event.code)})"],
    events.ToolUpdate: _tool_forms,
    events.Custom: _custom_forms,
    events.ProviderEvent: _provider_forms,
    events.MessageInterrupted: lambda event, _: [
        "(stop)" if event.reason is None else f"(stop:{_free(event.reason)})"
    ],
    events.AttemptReset: lambda event, _: [f"(reset{_parts(str(event.attempt), event.error)})"],
}
STRUCTURE = (events.MessageStart, events.BlockStart, events.BlockFinish)


def lane_of(event: Any, here: Lane) -> Lane:
    choice = getattr(event, "choice", None)
    return event.run_id, choice if choice is not None else here[1] if event.run_id == here[0] else 0


def switch(here: Lane, there: Lane) -> str:
    run = "" if here[0] == there[0] else "(run)" if there[0] is None else f"(run:{_free(there[0])})"
    return run + (f"(choice:{there[1]})" if there[1] != (0 if run else here[1]) else "")


WORD = re.compile(r'[^-|/#()\[\]<>"\s]+')
"""A text without quotes."""
PART = re.compile(r'[^,()"{}\[\]]*')
"""A text between commas, without quotes."""

_NAME = re.compile(r"(\+?)([a-z]+)(?:@(\w+))?(?=[:)])")
_CALL = re.compile(r"([^#{})\"]*)(?:#([^{})\"]*))?(?=[{)])")
_TEXT, _REASONING = {"type": "text", "text": ""}, {"type": "reasoning", "reasoning": ""}


def read_item(scanner: Scanner, state: LineState) -> list[Event]:
    if scanner.next == '"':
        return _prose(state, "text", scanner.json(), None, False)
    if scanner.next != "(":
        word = scanner.match(WORD)
        if word is None:
            scanner.fail("this begins no item")
        return _prose(state, "text", word[0].replace("_", " "), None, False)
    begin = scanner.at
    scanner.at += 1
    found = [events.from_dict(scanner.json())] if scanner.next == "{" else _named(scanner, state, begin)
    if not scanner.takes(")"):
        scanner.fail("here the item should end with )")
    return found


def _named(scanner: Scanner, state: LineState, begin: int) -> list[Event]:
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
    return read(_Body(scanner, state, begin, index, bool(plus)))


class _Json(NamedTuple):
    """A part of an item that is written as JSON."""

    value: Any


class _Body:
    """The text in an item's parentheses, behind its name."""

    def __init__(
        self, scanner: Scanner, state: LineState, begin: int, index: Index | None, beside: bool
    ) -> None:
        self.scanner = scanner
        self.state = state
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
        index = self.state.current(*kinds) if self.index is None else self.index
        if index is None:
            self.scanner.fail("no block is open to which this belongs; name one with @", self.begin)
        return index


def _prose(state: LineState, kind: str, text: str | None, index: Index | None, beside: bool) -> list[Event]:
    before: list[Event] = []
    if index is None:
        index = None if beside or text is None else state.current(kind)
    if index is None:
        before, index = state.begin(_TEXT if kind == "text" else _REASONING, beside=beside)
    if text is None:
        return before
    delta = events.TextDelta if kind == "text" else events.ReasoningDelta
    return [*before, delta(index, text, **state.names)]


def _read_text(body: _Body) -> list[Event]:
    return _prose(body.state, "text", body.text_or_none(), body.index, body.beside)


def _read_think(body: _Body) -> list[Event]:
    return _prose(body.state, "reasoning", body.text_or_none(), body.index, body.beside)


def _read_call(body: _Body) -> list[Event]:
    head = body.scanner.match(_CALL) if body.is_given else None
    if head is None:
        body.scanner.fail("a call is (call:name), (call:name#id) or (call:name#id{arguments})")
    call_id = f"call_{body.state.next_index()}" if head[2] is None else head[2]
    content = {"type": "tool_call_chunk", "id": call_id, "name": head[1], "args": ""}
    found, index = body.state.begin(content, beside=body.beside)
    begin = body.scanner.at
    if body.scanner.next != "{":
        return found
    body.scanner.json()
    args = body.scanner.line[begin : body.scanner.at]
    names = body.state.names
    return [*found, events.ToolCallDelta(index, args, **names), events.BlockFinish(index, **names)]


def _read_args(body: _Body) -> list[Event]:
    return [
        events.ToolCallDelta(
            body.block("tool_call_chunk", "server_tool_call_chunk"), body.text(), **body.state.names
        )
    ]


def _read_image(body: _Body) -> list[Event]:
    found, index = body.state.begin({"type": "image", "mime_type": "image/png"}, beside=body.beside)
    data = body.text_or_none()
    if data is None:
        return found
    names = body.state.names
    return [*found, events.DataDelta(index, data, **names), events.BlockFinish(index, **names)]


def _read_data(body: _Body) -> list[Event]:
    return [events.DataDelta(body.block(), body.text(), **body.state.names)]


def _read_block(body: _Body) -> list[Event]:
    return body.state.begin(body.object(), beside=body.beside, index=body.index)[0]


def _read_fields(body: _Body) -> list[Event]:
    return [events.BlockDelta(body.block(), body.object(), **body.state.names)]


def _read_end(body: _Body) -> list[Event]:
    content = body.object() if body.is_given else None
    return [events.BlockFinish(body.block(), content, **body.state.names)]


def _read_start(body: _Body) -> list[Event]:
    reply_id, model = body.parts(2)
    return [events.MessageStart(_text(reply_id), _text(model), **body.state.names)]


def _read_usage(body: _Body) -> list[Event]:
    read, written = (_count(part, body) for part in body.parts(2))
    return [*body.state.start(), events.UsageUpdate(TokenUsage(read, written), **body.state.names)]


def _count(part: str | _Json | None, body: _Body) -> int | None:
    return None if part is None or part == "" else _number(part, body)


def _read_finish(body: _Body) -> list[Event]:
    reason, word = body.parts(2)
    finish = events.MessageFinish(_text(reason), _text(word), **body.state.names)
    return [*body.state.start(), *body.state.ends(), finish]


def _read_error(body: _Body) -> list[Event]:
    message, kind, code = body.parts(3)
    return [events.StreamError(_text(message) or "", _text(kind), _text(code), **body.state.names)]


def _read_tool(body: _Body) -> list[Event]:
    call, status, result = body.parts(3)
    call_id, word = _text(call) or "", cast("Any", _text(status) or None)
    given = None if result is None else ToolResult(call_id, _value(result))
    return [events.ToolUpdate(call_id, word, result=given, run_id=body.state.lane[0])]


def _read_custom(body: _Body) -> list[Event]:
    name, data = body.parts(2)
    return [events.Custom(_text(name) or "", _value(data), run_id=body.state.lane[0])]


def _read_provider(body: _Body) -> list[Event]:
    provider, name, payload = body.parts(3)
    run_id = body.state.lane[0]
    return [events.ProviderEvent(_text(provider) or "", _text(name) or "", _value(payload), run_id=run_id)]


def _read_stop(body: _Body) -> list[Event]:
    return [events.MessageInterrupted(body.text_or_none(), run_id=body.state.lane[0])]


def _read_reset(body: _Body) -> list[Event]:
    attempt, error = body.parts(2)
    number = 1 if attempt is None else _number(attempt, body)
    return [events.AttemptReset(number, _text(error), run_id=body.state.lane[0])]


def _read_choice(body: _Body) -> list[Event]:
    body.state.lane = (body.state.lane[0], _number(body.text(), body))
    return []


def _number(part: str | _Json, body: _Body) -> int:
    if isinstance(part, _Json) or not part.isdecimal():
        body.scanner.fail("here a number is needed", body.begin)
    return int(part)


def _read_run(body: _Body) -> list[Event]:
    body.state.lane = (body.text_or_none(), 0)
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


class EventNotation:
    """The notation of model events, and the state of the line so far."""

    has_words = True

    def __init__(self) -> None:
        self._state = LineState()

    def read(self, scanner: Scanner) -> list[Any]:
        """The events of the item that comes next; a change of the lane has none."""
        begin = scanner.at
        try:
            found = read_item(scanner, self._state)
        except (RxDeltaError, ValueError) as error:
            if isinstance(error, InvalidValueError) and error.field == "line":
                raise
            scanner.fail(str(error), begin)
        self._state.note(found)
        return found

    def finish(self) -> list[Any]:
        found = self._state.finish()
        self._state.note(found)
        return found

    def drawn(self, values: Sequence[Any], completes: bool) -> tuple[list[str], bool]:
        """The items that say these values, which come at one time, and whether `|` completes them.

        Args:
            values: The values.
            completes: Whether the stream completes at this time.
        """
        left = [*values]
        items: list[str] = []
        while left:
            if completes and _are_same(self._state.finish(), left):
                return items, True
            item, said = self._item(left)
            items.append(item)
            left = left[said:]
        return items, completes and not self._state.finish()

    def _item(self, left: Sequence[Any]) -> tuple[str, int]:
        """The shortest form of the next item, and how many of the values it says."""
        first, state = left[0], self._state
        if type(first) not in events.EVENT_TYPES:
            return shown_literal(first), 1
        here = state.lane
        state.lane = lane = lane_of(first, here)
        best, most = "", 0
        for item in forms(left, state):
            said = _said(item, state)
            if len(said) > most and _are_same(said, left[: len(said)]):
                best, most = item, len(said)
                if most == len(left) or type(left[most - 1]) not in STRUCTURE:
                    break
        if most:
            state.note(left[:most])
            return switch(here, lane) + best, most
        state.lane = here
        item = f"({quoted(first.to_dict())})"
        state.note([first])
        return item if _are_same(_said(item, state), [first]) else shown_literal(first), 1


def _are_same(said: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Whether these are the same events, in the fields too that aren't compared."""
    return len(said) == len(wanted) and all(
        type(one) is type(other) and one == other and one.to_dict() == other.to_dict()
        for one, other in zip(said, wanted, strict=True)
    )


def _said(item: str, state: LineState) -> Sequence[Any]:
    scanner = Scanner(item)
    try:
        found = read_item(scanner, state)
    except (RxDeltaError, ValueError):
        return ()
    return found if scanner.at == len(item) else ()
