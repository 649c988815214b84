"""OpenAI Responses, streamed or whole, as OpenAI, Azure, xAI, OpenRouter, LM Studio and others send it.

    stream   = begin item* end                 begin: response.created, .queued, .in_progress
    item     = output_item.added part* output_item.done
    part     = content_part.added (delta* done | annotation)* content_part.done
             | reasoning_summary_part.added delta* done reasoning_summary_part.done
             | delta* done                     a call's arguments, input, code, diff or command
             | <item type>.<status>            searching, generating, completed, …
    end      = response.completed | response.incomplete | response.failed | error

An item has its place, the `output_index`, and that is what tells items apart, for GitHub Copilot gives the
same item another id in every event. Items interleave (OpenRouter ends its reasoning after the text). Within
an item `content_index` and `summary_index` tell the parts apart; some begin with 1. Blocks are numbered as
they appear. A message is a block a part, any other item one block, and one more for the results of a tool
that the provider ran. They end with `output_item.done`, which has the item whole: what it holds wins over the
pieces, since pieces get lost, and encrypted content, annotations, log probabilities and the status are right
only there. An empty text in it says nothing. What is said of an item and has no place of its own is kept
beside it, under its own name, or as `item_…` where that name means something else here (`item_id` above all).

**Reasoning** is a summary, whose parts are joined with a blank line, or the raw chain of thought, or neither:
even then it is a block, as its id or encrypted content must be sent back.

**Calls**: those that the client must run are `tool_call`s, whoever names them: functions, custom tools,
`local_shell`, `shell` outside a container, `apply_patch`, `computer`, and `tool_search` where it says so. All
others have been run by the provider. `call_id` is what a result must name; some of the provider's own have
only an id. The arguments are JSON text, or else the item's fields that say what is to be done, and these are
written as JSON while they stream: `{"input": "SEL…`. xAI sends its own searches as custom calls, of tools
that the request didn't have. A call that the token limit cut off is invalid; one that ends without arguments
and without a word on whether it is complete waits for the end, which tells.

What goes beyond it, because of what is really sent:

- A stream may begin anywhere (a background response that is resumed), lack `.added`, `.done` or the places
  (llama.cpp), or hold no items but those of its last event. What has not come by then is read from there.
- `error` may be nested, and `response.failed` follows it: the first counts.
- What the response repeats of the request (tools, instructions, temperature, …) is no part of the message.
- The frames of an image that is still being made replace one another: they are passed on, not put together.
"""

# Chunks are JSON that nobody has typed; what is taken from one is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

from rxdelta.core import (
    Event,
    TokenUsage,
    events,
    freeze,
    real_id,
    reasoning_delta,
    text_delta,
    thaw,
    tool_call_delta,
)
from rxdelta.formats.decoding import NOTHING, Fields, as_mapping, due, error_code, kept, usage_of, word
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, SYNTHETIC_ID, call_identity

__all__ = ["OpenAIResponsesDecoder", "recognises"]

Json: TypeAlias = Mapping[str, Any]
Content: TypeAlias = dict[str, Any]
Out: TypeAlias = list[Event]

_FORMAT = "openai-responses"
_READ = Fields(_FORMAT)


class OpenAIResponsesDecoder:
    """Responses stream events in, events of the chat stream protocol out.

    Blocks are numbered as they appear. A message that is cut off gets no `MessageFinish`.

    Example:
        >>> decoder = OpenAIResponsesDecoder()
        >>> item = {"id": "msg_1", "type": "message", "content": [{"type": "output_text", "text": "Hi"}]}
        >>> chunks = [
        ...     {"type": "response.created", "response": {"id": "resp_1", "model": "m"}},
        ...     {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hi"},
        ...     {"type": "response.output_item.done", "output_index": 0, "item": item},
        ...     {"type": "response.completed", "response": {"id": "resp_1", "status": "completed"}},
        ... ]
        >>> [event.event.removeprefix("content-") for chunk in chunks for event in decoder.decode(chunk)]
        ['message-start', 'block-start', 'block-delta', 'block-finish', 'message-finish']
    """

    def __init__(self) -> None:
        self._response = _Response()

    def decode(self, chunk: object, /) -> Sequence[Event]:
        """The events of one chunk: a mapping, or an event or `Response` of the `openai` package.

        Raises:
            MalformedChunkError: The chunk is not what the format says; names the path and what stood there.
            LimitExceededError: An index is absurd.

        Example:
            >>> error = {"type": "error", "code": "server_error", "message": "Try again", "param": None}
            >>> OpenAIResponsesDecoder().decode(error)
            [StreamError(message='Try again', type=None, code='server_error', choice=0)]
        """
        response = self._response
        event = response.plain(chunk) if type(chunk) is dict else None
        if event is not None:
            return (event,)
        fields: Json = freeze(as_mapping(chunk, _FORMAT), lenient=True)
        if response.ended and _begins_another(response, fields):
            response = self._response = _Response()
        return response.read(fields)

    def close(self) -> Sequence[Event]:
        """End of input. The format leaves nothing open: a message without its last event was cut off."""
        out, self._response.out = self._response.out, []
        self._response.tell(out)
        self._response.end()
        return out


class _Response:
    """What is to be remembered of one response: which items are where, and what they are."""

    def __init__(self) -> None:
        self.out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self.started = self.ended = self.failed = False
        self.id: str | None = None
        self.model: str | None = None
        self.tools: Sequence[Any] = ()  # of the request, as the response repeats them
        self.asked = False  # the client, to run a tool
        self.searched: _Item | None = None  # the newest tool search, which its results don't name
        self.growing: dict[int, _Growing] = {}  # by output index: what the next piece is likely to be of
        self.audio: _Audio | None = None
        self._blocks = 0
        self._items: dict[int, _Item] = {}  # the newest at each output index
        self._all: list[_Item] = []
        self._places: dict[str, int] = {}  # by item id, for those who send no index
        self._newest = -1

    def plain(self, chunk: dict[str, Any]) -> Event | None:
        """The event of a chunk that is nothing but one more piece, as nearly all are."""
        place: Any = chunk.get("output_index")
        piece: Any = chunk.get("delta")
        if type(place) is not int or type(piece) is not str or not piece or self.out:
            return None
        growing = self.growing.get(place)
        if growing is None or chunk.get("type") != growing.takes or chunk.get("logprobs"):
            return None
        if growing.part is not None:
            part: Any = chunk.get(growing.part)
            if type(part) is not int or part != growing.at:
                return None
        growing.length += len(piece)
        return growing.grow(growing.block, piece)

    def read(self, chunk: Json) -> Sequence[Event]:
        if self.failed:
            return ()
        out, kind = self.out, chunk.get("type")
        if kind is None:
            self._read_untyped(out, chunk)
        elif not isinstance(kind, str):
            raise _READ.fail("type", "the type of an event", kind)
        elif self.ended:
            if kind not in _ON_EVENT and kind not in _IMPLIES:
                self.pass_on(out, chunk)
        elif kind in _ON_EVENT:
            _ON_EVENT[kind](self, out, chunk)
        else:
            self._read_part(out, kind, chunk)
        self.out = []
        return out

    def _read_untyped(self, out: Out, chunk: Json) -> None:
        if chunk.get("object") == "response" and not self.started:
            self._read_end(out, chunk, "")
        elif chunk.get("object") == "response" or self.ended:
            self.pass_on(out, chunk)
        elif chunk.get("error"):
            self.read_error(out, chunk)
        else:
            raise _READ.fail("type", "the type of an event", None)

    def pass_on(self, out: Out, chunk: Json) -> None:
        name = word(chunk.get("type")) or word(chunk.get("object")) or "event"
        out.append(events.ProviderEvent("openai", name, chunk))

    def nothing(self, out: Out, chunk: Json) -> None:
        """A sign of life."""

    # The beginning.

    def read_begin(self, out: Out, chunk: Json) -> None:
        response = _object(chunk, "response")
        tools = _READ.items(response.get("tools"), "response.tools")
        self.tools = self.tools or tools
        self._begin(out, response, "response.")

    def _begin(self, out: Out, response: Json, path: str) -> None:
        if self.started:
            return
        self.id = real_id(_READ.text(response.get("id"), f"{path}id"))
        self.model = _READ.text(response.get("model"), f"{path}model") or None
        self.started = True
        out.append(events.MessageStart(self.id, self.model, None, _of_the_message(response)))

    def start(self, out: Out, content: Content) -> int:
        """A new block, of a message that has begun, though its beginning may be lost."""
        self._begin(out, {}, "")
        number = self._blocks
        self._blocks += 1
        out.append(events.BlockStart(number, content))
        return number

    # Its items.

    def read_item_added(self, out: Out, chunk: Json) -> None:
        item = _object(chunk, "item")
        place = self._place(chunk, item)
        known = self._items.get(place)
        if known is None or known.is_another(item):
            self._add(out, place, item, "item")

    def read_item_done(self, out: Out, chunk: Json) -> None:
        item = _object(chunk, "item")
        place = self._place(chunk, item)
        known = self._items.get(place)
        if known is None or known.is_another(item):
            known = self._add(out, place, item, "item")
        if not known.done:
            known.learn(item)
            if not known.waits(item):
                known.finish(out, item, "item")
                self.growing.pop(place, None)

    def _place(self, chunk: Json, item: Json | None = None) -> int:
        """Where it belongs. Without an index the id tells; one that is new is behind all others."""
        found = chunk.get("output_index")
        if found is not None:
            return _READ.index(found, "output_index")
        item_id = word(chunk.get("item_id")) if item is None else word(item.get("id"))
        known = self._places.get(item_id or "")
        if known is not None:
            return known
        newest = self._items.get(self._newest)
        same = newest is not None and not newest.done and (item is None or not newest.is_another(item))
        return self._newest if same else self._newest + 1

    def _add(self, out: Out, place: int, item: Json, path: str) -> _Item:
        kind = _word(item, "type", f"{path}.type")
        added = _item_of(kind)(self, place, kind, item)
        added.begin(out, item, path)
        self._items[place] = added
        self._all.append(added)
        self._newest = max(self._newest, place)
        if added.id is not None:
            self._places.setdefault(added.id, place)
        self.growing.pop(place, None)
        return added

    def _read_part(self, out: Out, kind: str, chunk: Json) -> None:
        """An event of one item; it begins the item where that has been lost."""
        implied = _IMPLIES.get(kind)
        if implied is None and type(chunk.get("output_index")) is not int:
            self.pass_on(out, chunk)
            return
        place = self._place(chunk)
        item = self._items.get(place)
        if item is None and implied is not None:
            part = chunk.get("part")
            if isinstance(part, Mapping) and part.get("type") == "reasoning_text":
                implied = "reasoning"
            item = self._add(out, place, {"type": implied, "id": chunk.get("item_id")}, "")
        if item is None or item.done or not item.read(out, kind, chunk):
            self.pass_on(out, chunk)

    def read_audio(self, out: Out, chunk: Json) -> None:
        if self.audio is None:
            self.audio = _Audio(self.start(out, {"type": "audio"}))
        self.audio.read(out, chunk)

    # The end.

    def read_end(self, out: Out, chunk: Json) -> None:
        said = str(chunk["type"]).removeprefix("response.")
        self._read_end(out, _object(chunk, "response"), "response.", said)

    def _read_end(self, out: Out, response: Json, path: str, said: str = "") -> None:
        """The last event's response, or a body, which is one that was not streamed."""
        self.tools = self.tools or _READ.items(response.get("tools"), f"{path}tools")
        output = _READ.items(response.get("output"), f"{path}output")
        details = _READ.mapping(response.get("incomplete_details"), f"{path}incomplete_details")
        usage = _usage(response, f"{path}usage")
        status = _status(response, said)
        reason, wrong = "stop", None
        if status == "incomplete":
            reason = _REASONS.get(word(details.get("reason")) or "", "stop")
            wrong = _WRONG.get(reason, _WRONG["incomplete"])
        late = _of_the_message(response)
        if self.started and self.id is None and real_id(word(response.get("id"))):
            late["id"] = response["id"]
        if self.started and self.model is None and word(response.get("model")):
            late["model"] = response["model"]
        self._begin(out, response, path)
        self._read_output(out, output, f"{path}output", wrong)
        if status == "failed":
            self._fail(out, response, usage)
        elif status not in _ENDS:  # in progress, queued or cancelled: it isn't done
            self._leave(out, response, status, usage)
        else:
            self._finish_items(out, wrong)
            reason = "tool_use" if reason == "stop" and self.asked else reason
            out.append(events.MessageFinish(reason, status, usage, late))
            self.end()

    def _leave(self, out: Out, response: Json, status: str, usage: TokenUsage | None) -> None:
        if usage is not None:
            out.append(events.UsageUpdate(usage))
        self.tell(out)
        rest = {name: value for name, value in response.items() if name != "output"}
        out.append(events.ProviderEvent("openai", f"response.{status}", rest))
        self.end()

    def _read_output(self, out: Out, output: Sequence[Any], path: str, wrong: str | None) -> None:
        """Finish what is open and add what has never come. Ids and places may differ from those so far."""
        missing = _Unmatched(self._all)
        found = [_READ.mapping(item, f"{path}[{n}]") for n, item in enumerate(output)]
        known = [missing.same(item) for item in found]
        for n, item in enumerate(found):
            at = f"{path}[{n}]"
            match = known[n] or missing.next_like(item)
            if match is None:
                match = self._add(out, self._newest + 1, item, at)
            if match.done:
                continue
            match.learn(item)
            if not match.waits(item):
                # Only the last can have been cut, and only if it doesn't say that it is whole.
                whole = item.get("status") == "completed" or (n + 1 < len(found) and not match.pending)
                match.finish(out, item, at, None if whole else wrong)

    def _finish_items(self, out: Out, wrong: str | None) -> None:
        for item in self._all:
            if not item.done:
                item.finish(out, item.pending, "item", wrong)
        if self.audio is not None:
            self.audio.finish(out)

    def _fail(self, out: Out, response: Json, usage: TokenUsage | None) -> None:
        if usage is not None:
            out.append(events.UsageUpdate(usage))
        error = response.get("error")
        self._break_off(out, error if isinstance(error, Mapping) else {"message": word(error)})

    def read_error(self, out: Out, chunk: Json) -> None:
        error = chunk.get("error")
        if isinstance(error, Mapping):
            self._break_off(out, error)
        elif error:
            self._break_off(out, {"message": word(error), "error": error})
        else:
            self._break_off(out, {name: value for name, value in chunk.items() if name != "type"})

    def _break_off(self, out: Out, error: Json) -> None:
        self.tell(out)
        message, code = word(error.get("message")), error.get("code")
        if any(value not in NOTHING and name not in _ERROR for name, value in error.items()):
            out.append(events.ProviderEvent("openai", "error", kept(error)))
        code = error_code(code)
        out.append(events.StreamError(message or "unknown error", word(error.get("type")), code))
        self.failed = True
        self.end()

    def tell(self, out: Out) -> None:
        """What had come and was held back, before a stream is broken off."""
        for item in self._all:
            if not item.done:
                item.tell(out)
        if self.audio is not None:
            self.audio.tell(out)

    def end(self) -> None:
        self.ended = True
        self.growing, self._items, self._all, self._places, self.audio = {}, {}, [], {}, None


class _Growing:
    """A text that comes in pieces: which they are, and where they go."""

    __slots__ = ("at", "block", "grow", "length", "part", "takes")

    def __init__(self, takes: str, part: str | None, block: int, grow: Callable[[int, str], Event]) -> None:
        self.takes = takes
        self.part = part  # the name of the index that tells it from others of its item
        self.at = -1
        self.block = block
        self.grow = grow
        self.length = 0


class _Unmatched:
    """The items that a response's `output` has not named yet."""

    def __init__(self, items: Sequence[_Item]) -> None:
        self._by_type: dict[str, deque[_Item]] = {}
        self._by_id: dict[tuple[str, str], _Item] = {}
        self._taken: set[int] = set()
        for item in items:
            self._by_type.setdefault(item.type, deque()).append(item)
            for name in (item.call_id, item.id):
                if name is not None:
                    self._by_id.setdefault((item.type, name), item)

    def same(self, item: Json) -> _Item | None:
        """The one with this id."""
        kind = str(item.get("type"))
        for name in (word(item.get("call_id")), word(item.get("id"))):
            known = self._by_id.get((kind, name or ""))
            if known is not None and id(known) not in self._taken:
                self._taken.add(id(known))
                return known
        return None

    def next_like(self, item: Json) -> _Item | None:
        """Else the first of this type: the same under another id, since nobody sends half of a kind."""
        waiting = self._by_type.get(str(item.get("type")), deque())
        while waiting:
            known = waiting.popleft()
            if id(known) not in self._taken:
                return known
        return None


# -- the items


class _Item:
    """An item of the output: its blocks, and what it takes. This one is none that is known, and kept whole."""

    READS: ClassVar[Mapping[str, Callable[[Any, Out, Json], bool]]] = {}

    def __init__(self, response: _Response, place: int, kind: str, item: Json) -> None:
        self.response = response
        self.place = place
        self.type = kind
        self.id = word(item.get("id"))
        self.call_id = _id(item.get("call_id"))
        self.done = False
        self.pending: Json | None = None  # the item, if it has come whole but may be cut off
        self.block = -1

    def is_another(self, item: Json) -> bool:
        """Whether this is not the item that is known at the place.

        While that is open, its own id says that it is the same, whatever call it is now, and another says nothing.
        """
        kind, call_id, item_id = item.get("type"), _id(item.get("call_id")), word(item.get("id"))
        if kind != self.type:
            return True
        if call_id is not None and self.call_id is not None:
            same_item = item_id is not None and item_id == self.id
            return call_id != self.call_id and (self.done or not same_item)
        return self.done and item_id is not None and item_id != self.id

    def waits(self, _item: Json, /) -> bool:
        """Whether only the end tells what this item is worth."""
        return False

    def learn(self, item: Json) -> None:
        """What names it: the first item id, which its pieces name, and the last call id, which the provider stores."""
        self.id = self.id or word(item.get("id"))
        self.call_id = _id(item.get("call_id")) or self.call_id

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        self.block = self.response.start(out, {"type": "non_standard", "value": item})

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        """Whether an event of the item could be read."""
        on = self.READS.get(kind)
        if on is not None:
            return on(self, out, chunk)
        status = kind.removeprefix(f"response.{self.type}.")
        if status == kind or "." in status or self.block < 0 or not _STATUS_EVENT.issuperset(chunk):
            return False
        self.change(out, {"status": status})
        return True

    def finish(self, out: Out, item: Json | None, _path: str, _wrong: str | None = None, /) -> None:
        self.done = True
        out.append(
            events.BlockFinish(self.block, None if item is None else {"type": "non_standard", "value": item})
        )

    def tell(self, _out: Out, /) -> None:
        """What is told now and then only, up to now."""

    def change(self, out: Out, fields: Content) -> None:
        out.append(events.BlockDelta(self.block, fields))

    def grows(self, growing: _Growing) -> None:
        self.response.growing[self.place] = growing


class _Message(_Item):
    """A message: a block for each of its parts."""

    def __init__(self, response: _Response, place: int, kind: str, item: Json) -> None:
        super().__init__(response, place, kind, item)
        self._parts: dict[int, _Part] = {}
        self._fields: Content = {}

    def begin(self, _out: Out, item: Json, _path: str, /) -> None:
        self._fields = _rest(item, "type", "role", "content", "status")

    def _part(self, out: Out, chunk: Json, part: Json, path: str) -> _Part:
        found = chunk.get("content_index")
        at = next(reversed(self._parts), 0) if found is None else _READ.index(found, "content_index")
        known = self._parts.get(at)
        return self._start(out, at, part, path) if known is None else known

    def _start(self, out: Out, at: int, part: Json, path: str) -> _Part:
        kind = _PARTS.get(str(part.get("type")))
        content = _part_content(kind, part, path) | self._fields
        if kind is None:
            content["value"] = {**part, **self._fields}
        else:
            content[kind] = ""
        number = self.response.start(out, content)
        started = self._parts[at] = _Part(number, kind)
        started.growing.at = at
        self._write(out, started, _READ.text_of(part, _TEXT_OF[kind], path) if kind else "")
        return started

    def _write(self, out: Out, part: _Part, piece: str) -> None:
        if piece:
            part.growing.length += len(piece)
            out.append(text_delta(part.block, piece))

    def part_added(self, out: Out, chunk: Json) -> bool:
        part = _object(chunk, "part")
        _word(part, "type", "part.type")
        self._part(out, chunk, part, "part")
        return True

    def part_done(self, out: Out, chunk: Json) -> bool:
        part = _object(chunk, "part")
        known = self._part(out, chunk, part, "part")
        if known.kind is not None:
            self._settle(out, known, _READ.text_of(part, _TEXT_OF[known.kind], "part"))
        return True

    def text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "output_text")

    def refusal(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "refusal")

    def _piece(self, out: Out, chunk: Json, kind: str) -> bool:
        piece = _READ.text_of(chunk, "delta", "")
        logprobs = _READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _PARTS[kind]:
            return not piece
        self._write(out, part, piece)
        part.logprobs.extend(logprobs)
        self.grows(part.growing)
        return True

    def text_done(self, out: Out, chunk: Json) -> bool:
        return self._done(out, chunk, "output_text", _READ.text_of(chunk, "text", ""))

    def refusal_done(self, out: Out, chunk: Json) -> bool:
        return self._done(out, chunk, "refusal", _READ.text_of(chunk, "refusal", ""))

    def _done(self, out: Out, chunk: Json, kind: str, whole: str) -> bool:
        logprobs = _READ.items(chunk.get("logprobs"), "logprobs")
        part = self._part(out, chunk, {"type": kind}, "")
        if part.kind != _PARTS[kind]:
            return not whole
        self._settle(out, part, whole)
        if logprobs:
            part.logprobs = list(logprobs)
        return True

    def _settle(self, out: Out, part: _Part, whole: str) -> None:
        """The text is told whole. Where its pieces are of another length, some were lost."""
        if part.growing.length == 0:
            self._write(out, part, whole)
        elif whole and len(whole) != part.growing.length:
            part.growing.length = len(whole)
            out.append(events.BlockDelta(part.block, {part.kind or "text": whole}))

    def annotation(self, out: Out, chunk: Json) -> bool:
        annotation = _READ.mapping(chunk.get("annotation"), "annotation")
        if not annotation:
            return True
        part = self._part(out, chunk, {"type": "output_text"}, "")
        if part.kind != "text":
            return False
        at = chunk.get("annotation_index")
        part.citations[at if type(at) is int else len(part.citations)] = _citation(annotation)
        if due(len(part.citations), part.told):
            self._tell_citations(out, part)
        return True

    def tell(self, out: Out, /) -> None:
        for part in self._parts.values():
            self._tell_citations(out, part)

    def _tell_citations(self, out: Out, part: _Part) -> None:
        if len(part.citations) > part.told:
            part.told = len(part.citations)
            out.append(events.BlockDelta(part.block, {"citations": list(part.citations.values())}))

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        if item is not None:
            self._fields = _rest(item, "type", "role", "content")
        found = [] if item is None else list(_parts_of(item, path))
        waiting = deque(self._parts[at] for at in sorted(self._parts))
        for part, kind, content in found:
            if waiting and waiting[0].kind == kind:
                known = waiting.popleft()
            else:
                known = self._start(out, max(self._parts, default=-1) + 1, part, path)
            if kind is None:
                content["value"] = {**part, **self._fields}
            self._finish_part(out, known, {**self._fields, **content})
        for known in waiting:
            kind = known.kind
            self._finish_part(out, known, None if kind is None else {**self._fields, "type": kind})
        self.done = True

    def _finish_part(self, out: Out, part: _Part, content: Content | None) -> None:
        if content is not None and part.kind is not None:
            if part.logprobs and "logprobs" not in content:
                content["logprobs"] = part.logprobs
            if part.citations and "citations" not in content:
                self._tell_citations(out, part)
        out.append(events.BlockFinish(part.block, content))

    READS = {
        "response.content_part.added": part_added,
        "response.content_part.done": part_done,
        "response.output_text.delta": text,
        "response.output_text.done": text_done,
        "response.output_text.annotation.added": annotation,
        "response.output_text_annotation.added": annotation,
        "response.refusal.delta": refusal,
        "response.refusal.done": refusal_done,
    }


class _Part:
    """A part of a message that has begun. Of a kind that isn't known (`None`), it is kept whole."""

    __slots__ = ("block", "citations", "growing", "kind", "logprobs", "told")

    def __init__(self, block: int, kind: str | None) -> None:
        takes = "response.refusal.delta" if kind == "refusal" else "response.output_text.delta"
        self.block = block
        self.kind = kind
        self.growing = _Growing(takes, "content_index", block, text_delta)
        self.citations: dict[int, Content] = {}  # the first `told` have been told
        self.told = 0
        self.logprobs: list[Any] = []


class _Reasoning(_Item):
    """A reasoning: of its summary and its raw text the one that comes, or comes first."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        fields = _rest(item, "type", "summary", "content", "status", "encrypted_content")
        fields |= _signature(item, path)
        self.block = self.response.start(out, {**fields, "type": "reasoning", "reasoning": ""})
        self._writes: _Growing | None = None

    def _piece(self, out: Out, chunk: Json, kind: str, piece: str) -> bool:
        """More of a part. Only of a summary are parts set apart; a chain of thought is one text."""
        part = "summary_index" if kind == "summary" else "content_index"
        found = chunk.get(part)
        if found is not None:
            found = _READ.index(found, part)
        if not piece:
            return True
        growing = self._writes
        if growing is None:
            takes = f"response.reasoning{'_summary' if kind == 'summary' else ''}_text.delta"
            growing = self._writes = _Growing(takes, part, self.block, reasoning_delta)
            growing.at = 0 if found is None else found
        elif growing.part != part:
            return False
        if found is not None and found != growing.at:
            growing.at, growing.length = found, 0
            if kind == "summary":
                out.append(reasoning_delta(self.block, _BETWEEN))
        growing.length += len(piece)
        out.append(reasoning_delta(self.block, piece))
        self.grows(growing)
        return True

    def _whole(self, out: Out, chunk: Json, kind: str, whole: str) -> bool:
        """The end of a part. Its text counts only if no piece of it has come."""
        growing = self._writes
        part = "summary_index" if kind == "summary" else "content_index"
        at = chunk.get(part)
        if growing is None:
            return self._piece(out, chunk, kind, whole)
        if growing.part != part:
            return not whole
        begun = at is None or (type(at) is int and at <= growing.at)
        return begun or self._piece(out, chunk, kind, whole)

    def summary_text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "summary", _READ.text_of(chunk, "delta", ""))

    def summary_done(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "summary", _READ.text_of(chunk, "text", ""))

    def summary_part(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "summary", _READ.text_of(_object(chunk, "part"), "text", "part"))

    def content_text(self, out: Out, chunk: Json) -> bool:
        return self._piece(out, chunk, "content", _READ.text_of(chunk, "delta", ""))

    def content_done(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "content", _READ.text_of(chunk, "text", ""))

    def content_part(self, out: Out, chunk: Json) -> bool:
        return self._whole(out, chunk, "content", _READ.text_of(_object(chunk, "part"), "text", "part"))

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        content: Content = {"type": "reasoning"}
        writes = self._writes
        if item is not None:
            summary = list(_texts(item, "summary", path))
            thought = list(_texts(item, "content", path))
            content |= _rest(item, "type", "summary", "content", "encrypted_content") | _signature(item, path)
            if any(summary) and any(thought):
                content["content"] = item["content"]
            parts, between = (summary, _BETWEEN) if any(summary) else (thought, "")
            text = between.join(part for part in parts if part)
            if text:
                content["reasoning"] = text
            if len(parts) > 1:
                content["part_lengths"] = [len(part) for part in parts if part]
            raw = bool(text) and parts is thought
        else:
            raw = False
        if raw or (writes is not None and writes.part == "content_index" and "reasoning" not in content):
            content[PROVIDER_TYPE] = "reasoning_text"
        out.append(events.BlockFinish(self.block, content))
        self.done = True

    READS = {
        "response.reasoning_summary_part.added": summary_part,
        "response.reasoning_summary_part.done": summary_part,
        "response.reasoning_summary_text.delta": summary_text,
        "response.reasoning_summary_text.done": summary_done,
        "response.reasoning_part.added": content_part,
        "response.reasoning_part.done": content_part,
        "response.content_part.added": content_part,
        "response.content_part.done": content_part,
        "response.reasoning_text.delta": content_text,
        "response.reasoning_text.done": content_done,
    }


class _Tool(_Item):
    """A call of a tool, the client's to run or run by the provider, then with its results behind it."""

    def begin(self, out: Out, item: Json, path: str, /) -> None:
        self._said = {name: item.get(name) for name in ("name", "environment", "execution")}
        self._close = ""  # what ends the JSON that is being written
        self._command = -1
        self._operation: Json = _mapping_or_none(item.get("operation")) or {}
        name = _READ.text(item.get("name"), f"{path}.name") or None
        spec, ours = self._read_spec(item)
        if self.type == "tool_search_call":
            self.response.searched = self
        content = {
            **self._fields(item, spec),
            "type": "tool_call_chunk" if ours else "server_tool_call_chunk",
            "id": self.call_id or (None if self.type in _NAMED_BY_CALL_ID else self.id),
            "name": name or _tool_name(self.type),
            "args": "",
        }
        content.pop("status", None)
        self.block = self.response.start(out, content)
        self._growing = _Growing("", None, self.block, tool_call_delta)

    def _read_spec(self, item: Json) -> tuple[_Spec, bool]:
        """How to read the call, and whether it is the client's."""
        spec = _TOOLS.get(self.type) or _unknown_tool(item)
        said = {name: value for name, value in item.items() if value is not None}
        return spec, spec.ours(self.response, {**self._said, **said})

    def _fields(self, item: Json, spec: _Spec) -> Content:
        """What is said of the call, but not what it is to do."""
        payload = spec.payload or ("arguments",)
        fields = _rest(item, "type", "name", "call_id", spec.result, spec.result and "error", *payload)
        return fields if self.type == "function_call" else {**fields, PROVIDER_TYPE: self.type}

    # Pieces of its arguments.

    def read(self, out: Out, kind: str, chunk: Json) -> bool:
        what, _, step = kind.removeprefix(f"response.{self.type}_").rpartition(".")
        if what == "command":
            return self._shell(out, step, chunk)
        if what not in _WRITTEN or step not in ("delta", "done"):
            return super().read(out, kind, chunk)
        raw = what == "arguments"
        if raw != (_TOOLS.get(self.type, _RAW).payload is None):
            return False
        piece = _READ.text_of(chunk, "delta" if step == "delta" else _WRITTEN[what], "")
        growing = self._growing
        if step == "delta" or growing.length == 0:
            growing.takes = f"response.{self.type}_{what}.delta"
            if not raw:
                growing.grow = _escaped
                self._open(out, what)
            if piece:
                growing.length += len(piece)
                out.append(growing.grow(self.block, piece))
            self.grows(growing)
        elif raw and piece and len(piece) != growing.length:
            growing.length = len(piece)
            self.change(out, {"args": piece})
        return True

    def _open(self, out: Out, what: str) -> None:
        """The JSON that a text is written into begins."""
        if self._close:
            return
        if what == "operation_diff":
            known = {name: value for name, value in self._operation.items() if name != "diff"}
            head = json.dumps({"operation": {**thaw(known), "diff": ""}}, ensure_ascii=False)[:-3]
            self._close = '"}}'
        else:
            head, self._close = f'{{"{what}": "', '"}'
        out.append(tool_call_delta(self.block, head))

    def _shell(self, out: Out, step: str, chunk: Json) -> bool:
        """Commands come one after another; one that is out of turn is known when all are."""
        at = _READ.index(chunk.get("command_index", 0), "command_index")
        piece = _READ.text_of(chunk, "delta" if step == "delta" else "command", "")
        if at < self._command or at > self._command + 1 or step not in ("added", "delta", "done"):
            return False
        growing = self._growing
        if at == self._command + 1:
            head = '{"action": {"commands": ["' if at == 0 else '", "'
            self._command, self._close, growing.length = at, '"]}}', 0
            out.append(tool_call_delta(self.block, head))
        if piece and (step == "delta" or growing.length == 0):
            growing.length += len(piece)
            out.append(_escaped(self.block, piece))
        return True

    # Its end.

    def waits(self, item: Json, /) -> bool:
        """A call without arguments is one that needs none, or was cut off before they came."""
        if self.type not in _NAMED_BY_CALL_ID or self.pending is not None or self._fed():
            return False
        if item.get("arguments") or item.get("input") or item.get("status") in ("completed", "incomplete"):
            return False
        self.pending = item
        return True

    def _fed(self) -> bool:
        return self._growing.length > 0 or self._close != ""

    def finish(self, out: Out, item: Json | None, path: str, wrong: str | None = None, /) -> None:
        if item is None:
            self._finish_as_folded(out, wrong)
            return
        spec, ours = self._read_spec(item)
        name = _READ.text(item.get("name"), f"{path}.name")
        args = self._payload(item, spec, path)
        call_id = self.call_id or self.id
        known = call_identity(call_id, self._made_up_id())
        content: Content = {**self._fields(item, spec), **known}
        content["type"] = "tool_call" if ours else "server_tool_call"
        if name:
            content["name"] = name
        if item.get("status") == "incomplete":
            wrong = wrong or _WRONG["incomplete"]
        if ours and wrong is not None:
            content |= {"type": "invalid_tool_call", "error": wrong}
            if isinstance(args, Mapping):
                args = None if self._fed() else json.dumps(thaw(args), ensure_ascii=False)
        elif args is None and self._close:
            out.append(tool_call_delta(self.block, self._close))
        if args is not None:
            content["args"] = args
        self._end(out, ours, content)
        result = None if spec.result is None or ours else item.get(spec.result)
        failed = item.get("error") if spec.result and not ours else None
        if result is not None or failed is not None:
            self._add_result(out, item, content["id"], failed if result is None else result)

    def _payload(self, item: Json, spec: _Spec, path: str) -> str | Json | None:
        """What the call is to do: JSON text, or the fields of the item. `None` if that's in the pieces."""
        if spec.payload is None:
            found = item.get("arguments")
            if isinstance(found, Mapping):
                return found
            return _READ.text(found, f"{path}.arguments") or (None if self._fed() else "")
        found = {name: item[name] for name in spec.payload if item.get(name) is not None}
        empty = all(value in NOTHING for value in found.values())
        return None if empty and self._fed() else found

    def _finish_as_folded(self, out: Out, wrong: str | None) -> None:
        content: Content | None = None
        _, ours = self._read_spec({})
        if wrong is not None and ours:
            content = {"type": "invalid_tool_call", "error": wrong}
        elif self._close:
            out.append(tool_call_delta(self.block, self._close))
        self._end(out, ours, content)

    def _end(self, out: Out, ours: bool, content: Content | None) -> None:
        self.response.asked |= ours
        out.append(events.BlockFinish(self.block, content))
        self.done = True

    def _made_up_id(self) -> str:
        return "-".join(filter(None, ["call", self.response.id, str(self.block)]))

    def _add_result(self, out: Out, item: Json, call_id: str, result: object) -> None:
        failed = item.get("status") in ("failed", "incomplete") or item.get("error") not in NOTHING
        fields = {"tool_call_id": call_id, "output": result, PROVIDER_TYPE: self.type}
        error = {} if item.get("error") in NOTHING else {"item_error": item["error"]}
        if self.id is not None:
            fields[ITEM_ID] = self.id
        status = "error" if failed else "success"
        number = self.response.start(out, {**fields, **error, "type": "server_tool_result", "status": status})
        out.append(events.BlockFinish(number))


class _Result(_Item):
    """What a tool that the provider ran gave back, where that is an item of its own."""

    def _content(self, item: Json) -> Content:
        source = _RESULTS.get(self.type, "output")
        output = item.get(source)
        search = self.response.searched if self.type == "tool_search_output" else None
        searched = None if search is None else search.call_id or search.id
        call_id = _id(item.get("call_id")) or searched or _id(item.get("id"))
        failed = item.get("status") in ("failed", "incomplete")
        content = _rest(item, "type", "call_id", source)
        if "status" in content:
            content["item_status"] = content["status"]
        content |= {"type": "server_tool_result", "tool_call_id": call_id, "output": output}
        return content | {PROVIDER_TYPE: self.type, "status": "error" if failed else "success"}

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        content = self._content(item)
        content.pop("item_status", None)
        content["output"] = content["output"] or None
        self.block = self.response.start(out, content)

    def finish(self, out: Out, item: Json | None, _path: str, _wrong: str | None = None, /) -> None:
        out.append(events.BlockFinish(self.block, None if item is None else self._content(item)))
        self.done = True


class _Image(_Item):
    """A picture that the provider made. Its `result` is the data."""

    def begin(self, out: Out, item: Json, _path: str, /) -> None:
        fields = _rest(item, "type", "result", "status")
        self.block = self.response.start(out, {**fields, "type": "image", PROVIDER_TYPE: self.type})

    def finish(self, out: Out, item: Json | None, path: str, _wrong: str | None = None, /) -> None:
        content: Content = {"type": "image"}
        if item is not None:
            data = _READ.text_of(item, "result", path)
            made = word(item.get("output_format"))
            content |= _rest(item, "type", "result")
            content |= {"data": data} if data else {}
            content |= {"mime_type": f"image/{_MIME.get(made, made)}"} if made else {}
        out.append(events.BlockFinish(self.block, content))
        self.done = True


class _Audio:
    """The audio of a response, which belongs to no item."""

    def __init__(self, block: int) -> None:
        self.block = block
        self.open = True
        self._transcript: list[str] = []  # the protocol has no delta for it, only the whole again
        self._length = self._told = 0

    def read(self, out: Out, chunk: Json) -> None:
        piece = _READ.text_of(chunk, "delta", "")
        if not piece or not self.open:
            return
        if "transcript" not in chunk["type"]:
            out.append(events.DataDelta(self.block, piece))
            return
        self._transcript.append(piece)
        self._length += len(piece)
        if due(self._length, self._told):
            self.tell(out)

    def tell(self, out: Out) -> None:
        if self._length > self._told:
            self._told = self._length
            self._transcript = ["".join(self._transcript)]
            out.append(events.BlockDelta(self.block, {"transcript": self._transcript[0]}))

    def finish(self, out: Out, /) -> None:
        if self.open:
            self.tell(out)
            out.append(events.BlockFinish(self.block))
        self.open = False


# -- which tools are the client's to run


class _Spec(NamedTuple):
    """How a call is read: whose it is, which fields say what to do (`None`: `arguments`), and its results."""

    ours: Callable[[_Response, Json], bool]
    payload: tuple[str, ...] | None = None
    result: str | None = None


def _always(_response: _Response, _item: Json, /) -> bool:
    return True


def _never(_response: _Response, _item: Json, /) -> bool:
    return False


def _outside_a_container(_response: _Response, item: Json) -> bool:
    environment = _mapping_or_none(item.get("environment"))
    return environment is None or environment.get("type") in (None, "local")


def _if_it_says_client(_response: _Response, item: Json) -> bool:
    return item.get("execution") == "client"


def _if_the_request_had_it(response: _Response, item: Json) -> bool:
    """Not if the request's tools are known and this is none of them, nor can have been found later."""
    name = item.get("name")
    known = list(_tools_in(response.tools))
    if not known or name is None:
        return True
    return any(tool.get("type") in _FINDS or tool.get("name") == name for tool in known)


def _tools_in(tools: Sequence[Any]) -> Iterator[Json]:
    for tool in tools:
        if isinstance(tool, Mapping):
            yield tool
            inner = tool.get("tools")
            if isinstance(inner, (list, tuple)):
                yield from (found for found in inner if isinstance(found, Mapping))


def _unknown_tool(item: Json) -> _Spec:
    """A call of a kind that isn't known was not asked of the client. What it was to do is in one of these."""
    payload = tuple(name for name in ("input", "action", "queries", "code", "query") if name in item)
    return _Spec(_never, None if "arguments" in item else payload, "output")


# -- reading


def _item_of(kind: str) -> type[_Item]:
    known = _ITEMS.get(kind)
    if known is not None:
        return known
    if kind in _TOOLS or kind.endswith("_call"):
        return _Tool
    return _Result if kind.endswith("_output") else _Item


def _tool_name(kind: str) -> str | None:
    return None if kind in _NAMED else kind.removesuffix("_call")


def _rest(item: Json, *read: str | None) -> Content:
    """What an object says beyond the fields that are read, each under a name that is free."""
    return {
        (f"item_{name}" if name in _TAKEN else name): value
        for name, value in item.items()
        if name not in read and value not in NOTHING
    }


def _status(response: Json, said: str) -> str:
    """How it ended, or that it hasn't: as it says, else as its event is called."""
    status = word(response.get("status"))
    if said == "failed" or (said in _ENDS and status not in _ENDS):
        return said
    if status is None:
        status = "failed" if response.get("error") else "completed"
        return said if said == "cancelled" else status
    return status


def _of_the_message(response: Json) -> Content:
    return {name: value for name, value in response.items() if name not in _RESPONSE and value not in NOTHING}


def _part_content(kind: str | None, part: Json, path: str) -> Content:
    """A message's part in the protocol's words, but for its text."""
    if kind is None:
        return {"type": "non_standard"}
    content = _rest(part, "type", _TEXT_OF[kind], "annotations", "logprobs")
    content["type"] = kind
    citations = [
        _citation(_READ.mapping(entry, f"{path}.annotations[{n}]"))
        for n, entry in enumerate(_READ.items(part.get("annotations"), f"{path}.annotations"))
    ]
    logprobs = _READ.items(part.get("logprobs"), f"{path}.logprobs")
    return (
        content
        | ({"citations": citations} if citations else {})
        | ({"logprobs": logprobs} if logprobs else {})
    )


def _parts_of(item: Json, path: str) -> Iterator[tuple[Json, str | None, Content]]:
    """The parts of a message that is whole, in their own words and in ours."""
    found: Any = item.get("content")
    if isinstance(found, str):
        found = [{"type": "output_text", "text": found}]
    for n, entry in enumerate(_READ.items(found, f"{path}.content")):
        at = f"{path}.content[{n}]"
        part = _READ.mapping(entry, at)
        kind = _PARTS.get(str(part.get("type")))
        content = _part_content(kind, part, at)
        text = _READ.text_of(part, _TEXT_OF[kind], at) if kind else ""
        yield part, kind, content | ({kind: text} if kind and text else {})


def _citation(annotation: Json) -> Content:
    """An annotation in our words; a file is called by its name."""
    found = {name: annotation.get(name) for name in ("url", "start_index", "end_index")}
    found["title"] = annotation.get("title") or annotation.get("filename")
    return {name: value for name, value in found.items() if value is not None} | {"raw": annotation}


def _signature(item: Json, path: str) -> Content:
    """The encrypted content, which stands for the whole reasoning when it is sent back."""
    encrypted = _READ.text_of(item, "encrypted_content", path)
    return {"signature": encrypted} if encrypted else {}


def _texts(item: Json, field: str, path: str) -> Iterator[str]:
    found = item.get(field)
    if isinstance(found, str):
        yield found
        return
    for n, part in enumerate(_READ.items(found, f"{path}.{field}")):
        at = f"{path}.{field}[{n}]"
        yield _READ.text_of(_READ.mapping(part, at), "text", at)


def _usage(response: Json, path: str) -> TokenUsage | None:
    usage = _READ.mapping(response.get("usage"), path)
    return usage_of(usage, usage.get("input_tokens"), usage.get("output_tokens")) if usage else None


def _escaped(block: int, piece: str) -> Event:
    """A piece of a text that is written into JSON."""
    return tool_call_delta(block, json.dumps(piece, ensure_ascii=False)[1:-1])


def _id(value: object) -> str | None:
    return real_id(value.strip()) and value if isinstance(value, str) else None


def _mapping_or_none(value: object) -> Json | None:
    return value if isinstance(value, Mapping) else None


def _object(fields: Json, name: str) -> Json:
    """An object that has to be there."""
    value = fields.get(name)
    if value is None:
        raise _READ.fail(name, "an object", None)
    return _READ.mapping(value, name)


def _word(fields: Json, name: str, path: str) -> str:
    value = _READ.text(fields.get(name), path)
    if not value:
        raise _READ.fail(path, "a word", fields.get(name))
    return value


def _begins_another(response: _Response, chunk: Json) -> bool:
    """Whether another response begins after the end of this one, as it does where a client steers."""
    if chunk.get("type") != "response.created" or response.failed:
        return False
    another = _mapping_or_none(chunk.get("response")) or {}
    return word(another.get("id")) not in (None, response.id)


def recognises(chunk: Json) -> bool:
    """Whether a stream, or a body that was not streamed, of this format can begin with this chunk.

    Example:
        >>> recognises({"type": "response.created", "response": {"id": "resp_1"}})
        True
        >>> recognises({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
        False
    """
    kind = chunk.get("type")
    if isinstance(kind, str) and kind.startswith("response."):
        return True
    if kind == "error":  # Anthropic numbers no events, and has the error in an object
        return "sequence_number" in chunk or ("code" in chunk and "message" in chunk)
    return kind is None and chunk.get("object") == "response"


# -- the format, as on the API's pages

_ON_EVENT: Mapping[str, Callable[[_Response, Out, Json], None]] = {
    "response.created": _Response.read_begin,
    "response.queued": _Response.read_begin,
    "response.in_progress": _Response.read_begin,
    "response.output_item.added": _Response.read_item_added,
    "response.output_item.done": _Response.read_item_done,
    "response.audio.delta": _Response.read_audio,
    "response.audio.done": _Response.read_audio,
    "response.audio.transcript.delta": _Response.read_audio,
    "response.audio.transcript.done": _Response.read_audio,
    "response.completed": _Response.read_end,
    "response.incomplete": _Response.read_end,
    "response.failed": _Response.read_end,
    "response.cancelled": _Response.read_end,
    "response.done": _Response.read_end,
    "error": _Response.read_error,
    "keepalive": _Response.nothing,
    "ping": _Response.nothing,
}

_IMPLIES: Mapping[str, str] = {
    # an event of a part: the type of its item, where that has not been told
    "response.content_part.added": "message",
    "response.content_part.done": "message",
    "response.output_text.delta": "message",
    "response.output_text.done": "message",
    "response.output_text.annotation.added": "message",
    "response.output_text_annotation.added": "message",
    "response.refusal.delta": "message",
    "response.refusal.done": "message",
    "response.reasoning_summary_part.added": "reasoning",
    "response.reasoning_summary_part.done": "reasoning",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_summary_text.done": "reasoning",
    "response.reasoning_part.added": "reasoning",
    "response.reasoning_part.done": "reasoning",
    "response.reasoning_text.delta": "reasoning",
    "response.reasoning_text.done": "reasoning",
    "response.function_call_arguments.delta": "function_call",
    "response.function_call_arguments.done": "function_call",
    "response.custom_tool_call_input.delta": "custom_tool_call",
    "response.custom_tool_call_input.done": "custom_tool_call",
    "response.mcp_call_arguments.delta": "mcp_call",
    "response.mcp_call_arguments.done": "mcp_call",
    "response.code_interpreter_call_code.delta": "code_interpreter_call",
    "response.code_interpreter_call_code.done": "code_interpreter_call",
    "response.apply_patch_call_operation_diff.delta": "apply_patch_call",
    "response.apply_patch_call_operation_diff.done": "apply_patch_call",
    "response.shell_call_command.added": "shell_call",
    "response.shell_call_command.delta": "shell_call",
    "response.shell_call_command.done": "shell_call",
}

_ITEMS: Mapping[str, type[_Item]] = {
    "message": _Message,
    "reasoning": _Reasoning,
    "image_generation_call": _Image,
    # *_call and those in _TOOLS: _Tool, *_output: _Result; any other is kept whole
}

_TOOLS: Mapping[str, _Spec] = {
    "function_call": _Spec(_always),
    "custom_tool_call": _Spec(_if_the_request_had_it, ("input",)),
    "local_shell_call": _Spec(_always, ("action",)),
    "shell_call": _Spec(_outside_a_container, ("action",)),
    "apply_patch_call": _Spec(_always, ("operation",)),
    "computer_call": _Spec(_always, ("action", "actions")),
    "tool_search_call": _Spec(_if_it_says_client),
    "mcp_call": _Spec(_never, None, "output"),
    "mcp_approval_request": _Spec(_never),
    "web_search_call": _Spec(_never, ("action",)),
    "file_search_call": _Spec(_never, ("queries",), "results"),
    "code_interpreter_call": _Spec(_never, ("code",), "outputs"),
    "program": _Spec(_never, ("code",)),
}
_RAW = _Spec(_never)
_NAMED_BY_CALL_ID = frozenset(["function_call", "custom_tool_call"])
_NAMED = frozenset(["function_call", "custom_tool_call", "mcp_call", "mcp_approval_request"])
_FINDS = frozenset(["tool_search", "namespace"])
_RESULTS: Mapping[str, str] = {"tool_search_output": "tools", "program_output": "result"}
_WRITTEN: Mapping[str, str] = {
    "arguments": "arguments",
    "input": "input",
    "code": "code",
    "operation_diff": "diff",
}

_PARTS: Mapping[str, str] = {"output_text": "text", "text": "text", "refusal": "refusal"}
_TEXT_OF: Mapping[str, str] = {"text": "text", "refusal": "refusal"}
_BETWEEN = "\n\n"
_MIME: Mapping[str | None, str] = {"jpg": "jpeg", "svg": "svg+xml"}

_ENDS = frozenset(["completed", "incomplete", "failed"])
_REASONS: Mapping[str, str] = {
    "": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
    # any other is the provider's own limit, or the client's wish: stop
}
_WRONG: Mapping[str, str] = {
    "length": "cut off by the token limit",
    "content_filter": "cut off by the content filter",
    "incomplete": "left incomplete by the provider",
}

# Names that mean something in the protocol, and would be read as that.
_TAKEN = frozenset([
    "id", "type", "index", "name", "call_id", "args", "arguments", "input", "error", "execution_status",
    "tool_call_id", "output", PROVIDER_TYPE, ITEM_ID, "citations", "data", "text", "thinking",
    "refusal", "reasoning", "signature", "mime_type", "part_lengths", SYNTHETIC_ID,
])  # fmt: skip
_STATUS_EVENT = frozenset(["type", "item_id", "output_index", "sequence_number", "obfuscation"])
_ERROR = frozenset(["message", "type", "code", "sequence_number"])

# What has its place in the events, and what merely repeats the request.
_RESPONSE = frozenset([
    "id", "object", "model", "output", "output_text", "usage", "status", "error", "tools", "tool_choice",
    "instructions", "text", "temperature", "top_p", "parallel_tool_calls", "truncation",
    "max_output_tokens", "max_tool_calls", "reasoning", "store", "user", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "top_logprobs",
    "frequency_penalty", "presence_penalty", "background",
])  # fmt: skip
