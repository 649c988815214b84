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

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import Event, TokenUsage, events, freeze, real_id
from rxdelta.formats.decoding import NOTHING, as_mapping, error_code, kept, usage_of, word
from rxdelta.formats.openai_responses.items import Growing, Item
from rxdelta.formats.openai_responses.media import Audio, Image
from rxdelta.formats.openai_responses.message import Message
from rxdelta.formats.openai_responses.reading import (
    FORMAT,
    READ,
    Content,
    Json,
    Out,
    mapping_or_none,
    object_at,
    word_at,
)
from rxdelta.formats.openai_responses.reasoning import Reasoning
from rxdelta.formats.openai_responses.tools import CALLS, CUT_OFF, Call, Result

__all__ = ["OpenAIResponsesDecoder", "recognises"]


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
        self._response = Response()

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
        fields: Json = freeze(as_mapping(chunk, FORMAT), lenient=True)
        if response.ended and _begins_another(response, fields):
            response = self._response = Response()
        return response.read(fields)

    def close(self) -> Sequence[Event]:
        """End of input. The format leaves nothing open: a message without its last event was cut off."""
        out, self._response.out = self._response.out, []
        self._response.tell(out)
        self._response.end()
        return out


class Response:
    """What is to be remembered of one response: which items are where, and what they are."""

    def __init__(self) -> None:
        self.out: Out = []  # what a malformed chunk held before its fault comes out with the next
        self.started = self.ended = self.failed = False
        self.id: str | None = None
        self.model: str | None = None
        self.tools: Sequence[Any] = ()  # of the request, as the response repeats them
        self.asked = False  # the client, to run a tool
        self.searched: Item | None = None  # the newest tool search, which its results don't name
        self.growing: dict[int, Growing] = {}  # by output index: what the next piece is likely to be of
        self.audio: Audio | None = None
        self._blocks = 0
        self._items: dict[int, Item] = {}  # the newest at each output index
        self._all: list[Item] = []
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
            raise READ.fail("type", "the type of an event", kind)
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
            raise READ.fail("type", "the type of an event", None)

    def pass_on(self, out: Out, chunk: Json) -> None:
        name = word(chunk.get("type")) or word(chunk.get("object")) or "event"
        out.append(events.ProviderEvent("openai", name, chunk))

    def nothing(self, out: Out, chunk: Json) -> None:
        """A sign of life."""

    # The beginning.

    def read_begin(self, out: Out, chunk: Json) -> None:
        response = object_at(chunk, "response")
        tools = READ.items(response.get("tools"), "response.tools")
        self.tools = self.tools or tools
        self._begin(out, response, "response.")

    def _begin(self, out: Out, response: Json, path: str) -> None:
        if self.started:
            return
        self.id = real_id(READ.text(response.get("id"), f"{path}id"))
        self.model = READ.text(response.get("model"), f"{path}model") or None
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
        item = object_at(chunk, "item")
        place = self._place(chunk, item)
        known = self._items.get(place)
        if known is None or known.is_another(item):
            self._add(out, place, item, "item")

    def read_item_done(self, out: Out, chunk: Json) -> None:
        item = object_at(chunk, "item")
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
            return READ.index(found, "output_index")
        item_id = word(chunk.get("item_id")) if item is None else word(item.get("id"))
        known = self._places.get(item_id or "")
        if known is not None:
            return known
        newest = self._items.get(self._newest)
        same = newest is not None and not newest.done and (item is None or not newest.is_another(item))
        return self._newest if same else self._newest + 1

    def _add(self, out: Out, place: int, item: Json, path: str) -> Item:
        kind = word_at(item, "type", f"{path}.type")
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
            self.audio = Audio(self.start(out, {"type": "audio"}))
        self.audio.read(out, chunk)

    # The end.

    def read_end(self, out: Out, chunk: Json) -> None:
        said = str(chunk["type"]).removeprefix("response.")
        self._read_end(out, object_at(chunk, "response"), "response.", said)

    def _read_end(self, out: Out, response: Json, path: str, said: str = "") -> None:
        """The last event's response, or a body, which is one that was not streamed."""
        self.tools = self.tools or READ.items(response.get("tools"), f"{path}tools")
        output = READ.items(response.get("output"), f"{path}output")
        details = READ.mapping(response.get("incomplete_details"), f"{path}incomplete_details")
        usage = _usage(response, f"{path}usage")
        status = _status(response, said)
        reason, wrong = "stop", None
        if status == "incomplete":
            reason = _REASONS.get(word(details.get("reason")) or "", "stop")
            wrong = CUT_OFF.get(reason, CUT_OFF["incomplete"])
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
        missing = Unmatched(self._all)
        found = [READ.mapping(item, f"{path}[{n}]") for n, item in enumerate(output)]
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


class Unmatched:
    """The items that a response's `output` has not named yet."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._by_type: dict[str, deque[Item]] = {}
        self._by_id: dict[tuple[str, str], Item] = {}
        self._taken: set[int] = set()
        for item in items:
            self._by_type.setdefault(item.type, deque()).append(item)
            for name in (item.call_id, item.id):
                if name is not None:
                    self._by_id.setdefault((item.type, name), item)

    def same(self, item: Json) -> Item | None:
        """The one with this id."""
        kind = str(item.get("type"))
        for name in (word(item.get("call_id")), word(item.get("id"))):
            known = self._by_id.get((kind, name or ""))
            if known is not None and id(known) not in self._taken:
                self._taken.add(id(known))
                return known
        return None

    def next_like(self, item: Json) -> Item | None:
        """Else the first of this type: the same under another id, since nobody sends half of a kind."""
        waiting = self._by_type.get(str(item.get("type")), deque())
        while waiting:
            known = waiting.popleft()
            if id(known) not in self._taken:
                return known
        return None


def _item_of(kind: str) -> type[Item]:
    known = _ITEMS.get(kind)
    if known is not None:
        return known
    if kind in CALLS or kind.endswith("_call"):
        return Call
    return Result if kind.endswith("_output") else Item


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


def _usage(response: Json, path: str) -> TokenUsage | None:
    usage = READ.mapping(response.get("usage"), path)
    return usage_of(usage, usage.get("input_tokens"), usage.get("output_tokens")) if usage else None


def _begins_another(response: Response, chunk: Json) -> bool:
    """Whether another response begins after the end of this one, as it does where a client steers."""
    if chunk.get("type") != "response.created" or response.failed:
        return False
    another = mapping_or_none(chunk.get("response")) or {}
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

_ON_EVENT: Mapping[str, Callable[[Response, Out, Json], None]] = {
    "response.created": Response.read_begin,
    "response.queued": Response.read_begin,
    "response.in_progress": Response.read_begin,
    "response.output_item.added": Response.read_item_added,
    "response.output_item.done": Response.read_item_done,
    "response.audio.delta": Response.read_audio,
    "response.audio.done": Response.read_audio,
    "response.audio.transcript.delta": Response.read_audio,
    "response.audio.transcript.done": Response.read_audio,
    "response.completed": Response.read_end,
    "response.incomplete": Response.read_end,
    "response.failed": Response.read_end,
    "response.cancelled": Response.read_end,
    "response.done": Response.read_end,
    "error": Response.read_error,
    "keepalive": Response.nothing,
    "ping": Response.nothing,
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

_ITEMS: Mapping[str, type[Item]] = {
    "message": Message,
    "reasoning": Reasoning,
    "image_generation_call": Image,
    # *_call and those in CALLS: Call, *_output: Result; any other is kept whole
}


_ENDS = frozenset(["completed", "incomplete", "failed"])
_REASONS: Mapping[str, str] = {
    "": "length",
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
    # any other is the provider's own limit, or the client's wish: stop
}

_ERROR = frozenset(["message", "type", "code", "sequence_number"])

# What has its place in the events, and what merely repeats the request.
_RESPONSE = frozenset([
    "id", "object", "model", "output", "output_text", "usage", "status", "error", "tools", "tool_choice",
    "instructions", "text", "temperature", "top_p", "parallel_tool_calls", "truncation",
    "max_output_tokens", "max_tool_calls", "reasoning", "store", "user", "prompt", "prompt_cache_key",
    "prompt_cache_retention", "prompt_cache_options", "safety_identifier", "top_logprobs",
    "frequency_penalty", "presence_penalty", "background",
])  # fmt: skip
