"""OpenAI Responses, streamed or whole, as OpenAI, Azure, xAI, OpenRouter, LM Studio and others send it.

    stream   = begin item* end                 begin: response.created, .queued, .in_progress
    item     = output_item.added part* output_item.done
    part     = content_part.added (delta* done | annotation)* content_part.done
             | reasoning_summary_part.added delta* done reasoning_summary_part.done
             | delta* done                     a call's arguments, input, code, diff or command
             | <item type>.<status>            searching, generating, completed, …
    end      = response.completed | response.incomplete | response.failed | error

The place of an item, its `output_index`, tells items apart, for GitHub Copilot gives the same item another id in
every event. Where the content contradicts the place, the content decides (`output`). Items interleave (OpenRouter ends
its reasoning after the text). Within an item `content_index` and `summary_index` tell the announced parts apart; some
providers begin with 1, vLLM counts its events (`message`). Blocks are numbered as they appear. A message has a
block for each part, any other item has one block, and a second one for the results of a tool that the provider ran.
Blocks end with `output_item.done`, which has the whole item. Its values win over the deltas, since deltas get lost,
and encrypted content, annotations, log probabilities and the status are right only there. An empty text in it says
nothing; a missing text is malformed, unless its deltas have come. A field of the item that no event has a place for is kept in the block (`notes`).

**Reasoning** is a summary, whose parts are joined with a blank line, or the raw chain of thought, or neither:
even then it is a block, as its id or encrypted content must be sent back.

**Calls** that the client must run are `tool_call`s, whatever their type: functions, custom tools, `local_shell`,
`shell` outside a container, `apply_patch`, `computer`, and `tool_search` where it says so (`calls`). The provider has
run all others. A result must name the `call_id`; some of the provider's own calls have only an id. The arguments are
JSON text, or the fields of the item that say what to do, which are written as JSON while they stream:
`{"input": "SEL…`. xAI sends its own searches as custom calls, of tools that the request did not have. A call that the
token limit cut off is invalid. One that ends without arguments and without a status waits for the end of the
response, which shows whether it is complete.

Real streams go beyond this grammar:

- A stream may begin anywhere (a background response that is resumed), lack `.added`, `.done` or the places
  (llama.cpp), or hold no items but those of its last event. The items that are missing by then are read from there.
- A transport may deliver chunks twice. Those with the number and the content of an earlier one are dropped
  (`Numbering`). Another response on the same connection counts anew.
- Over one WebSocket, each `stream_id` is a lane of responses, one after the other (`address`).
- `error` may be nested, and `response.failed` follows it: the first counts.
- The response repeats the request (tools, instructions, temperature, …). This is no part of the message.
- The frames of an unfinished image replace one another, and the image replaces the last. Without an image no frame is left.
"""

# Chunks are untyped JSON, so the checkers can't know the types of their values. The code checks them itself.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rxdelta.core import Event, TokenUsage, events, finish_reason, freeze, is_mapping, real_id
from rxdelta.formats.block_events import take_all
from rxdelta.formats.calls import BROKEN_OFF, CUT_OFF, CUT_OFF_BY_FILTER
from rxdelta.formats.decoding import NOTHING, Json, as_mapping, kept, word
from rxdelta.formats.endings import PROVIDER_ERROR, assumed_finish, broken_events, error_code
from rxdelta.formats.openai_responses.items import Audio, Response, message_fields
from rxdelta.formats.openai_responses.notes import (
    BROKEN,
    CANCELLED,
    ENDS,
    FORMAT,
    READ,
    REASONING_TEXT,
    REASONS,
    Content,
    Out,
    mapping_or_none,
    object_of,
)
from rxdelta.formats.openai_responses.output import Output
from rxdelta.formats.openai_responses.tools import INCOMPLETE
from rxdelta.formats.runs import Address
from rxdelta.formats.usage import RESPONSES, usage_of
from rxdelta.framing import DONE

_GAP = 4_096  # numbers that lie further apart do not count
_MOST = 1 << 20  # numbers that may come with gaps; each has eight bytes


class Numbering:
    """Stores a mark of each chunk of a response by its number, to recognise a chunk that comes again.

    A transport that delivers at least once repeats a chunk, or all chunks from an earlier one on. A `sequence_number` shows
    it, if it counts. Not every gateway counts: some write 0 or -1 everywhere, count each item or each kind of event anew,
    or number an error of their own 0. So a number alone proves nothing. A chunk is a repetition if its number and its
    content are those of a chunk that has come, and a number with two contents shows that the provider doesn't count: from
    then on nothing in this response is a repetition. A response in which only 0 and 1 have come may be numbered by such a
    constant, and is not judged yet; the events of a response that have these numbers may come twice without harm.

    Numbers may be missing, begin anywhere, leave gaps, and come out of order.

    Attributes:
        counts: Whether the numbers are believed to count. If they don't, no chunk is a repetition.
        next: The number of the next chunk, if it is new and none is missing; `None` before the first number.
        note: Notes the mark of the chunk that has this number. For a piece of text, as nearly all chunks are, the mark is
            its hash and the place of its item, by `^`; the decoder writes this out, since a call would cost it a tenth more.
    """

    __slots__ = ("_first", "_marks", "counts", "next", "note")

    def __init__(self) -> None:
        self.counts = True
        self.next: int | None = None
        self._first = 0
        self._marks = array("q")  # by number, from the first on; 0 for those that have not come
        self.note = self._marks.append

    def repeats(self, chunk: Mapping[str, Any], frozen: Mapping[str, Any]) -> bool:
        """Whether the chunk has come before. Note it if it has not.

        Args:
            chunk: The chunk as it came.
            frozen: The same, hashable.
        """
        number = frozen.get("sequence_number")
        if type(number) is not int or not self.counts:
            return False
        if self.next is None:
            self._first = self.next = number
        marks, mark, at = self._marks, _mark(chunk, frozen), number - self._first
        if at < 0:  # nothing is known of the numbers before the first
            return False
        if at > len(marks) + _GAP or at >= _MOST:
            self.counts = False
            return False
        if at >= len(marks):
            marks.extend([0] * (at + 1 - len(marks)))
            self.next = number + 1
        elif marks[at]:
            self.counts = marks[at] == mark
            return self.counts and self.next > 2
        marks[at] = mark
        return False


def _mark(chunk: Mapping[str, Any], frozen: Mapping[str, Any]) -> int:
    """A number for the content of a chunk."""
    place, piece = chunk.get("output_index"), chunk.get("delta")
    if type(place) is int and 0 <= place < 1 << 32 and type(piece) is str:
        return hash(piece) ^ place  # as the decoder makes it
    if "obfuscation" not in frozen:
        return hash(frozenset(frozen.items()))
    return hash(frozenset(item for item in frozen.items() if item[0] != "obfuscation"))


def address(chunk: Any) -> Address | None:
    """The run of an event: a mapping, or an object of the `openai` package.

    Example:
        >>> address({"type": "response.created", "stream_id": "s1"})
        Address(run_id='s1', parent_run_id=None, last=False, repeated=False)
    """
    if type(chunk) is dict and "stream_id" not in chunk:  # as nearly always
        return None
    found = chunk.get("stream_id") if is_mapping(chunk) else getattr(chunk, "stream_id", None)
    return Address(found) if found and isinstance(found, str) else None


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
        self._reader = _Reader()

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
        reader = self._reader
        event = reader.plain(chunk) if type(chunk) is dict else None
        if event is not None:
            return (event,)
        if chunk is DONE:
            return reader.close(whole=True)
        given = as_mapping(chunk, FORMAT)
        fields: Json = freeze(given, lenient=True)
        if reader.is_followed_by(fields):
            reader = self._reader = _Reader(reader.left)
        return () if reader.numbering.repeats(given, fields) else reader.read(fields)

    def close(self) -> Sequence[Event]:
        """End of input. The format leaves nothing open: a message without its last event was cut off."""
        return self._reader.close(whole=False)


class _Reader:
    """Reads the events of one response.

    Attributes:
        left: The events that end a message still running when its response ended; none for any other.
    """

    def __init__(self, before: Sequence[Event] = ()) -> None:
        self.numbering = Numbering()
        self.left: Sequence[Event] = ()
        # Events that come out with the next chunk: those of a malformed chunk before its fault, too.
        self._out: Out = [*before]
        self._response = Response()
        self._growing = self._response.growing
        self._output = Output(self._response)
        self._audio: Audio | None = None
        self._ended = self._failed = False

    def plain(self, chunk: dict[str, Any]) -> Event | None:
        """The event of a chunk that only continues a text, as nearly all chunks do.

        It is that of `read`: `tests/formats/test_plain_chunks.py` compares the two.
        """
        try:
            place, piece = chunk["output_index"], chunk["delta"]
            if type(place) is not int or type(piece) is not str or not piece or self._out:
                return None
            growing = self._growing[place]
            if chunk["type"] != growing.takes or chunk.get("logprobs"):
                return None
            if growing.index is not None:
                at = chunk[growing.index]
                if type(at) is not int or at != growing.at:
                    return None
        except KeyError:
            return None
        number: Any = chunk.get("sequence_number")
        if number is not None:
            numbering = self.numbering
            if number == numbering.next:
                numbering.next = number + 1
                numbering.note(hash(piece) ^ place)
            elif numbering.counts:
                return None
        growing.length += len(piece)
        growing.newest = piece
        return growing.delta(growing.block, piece)

    def is_followed_by(self, chunk: Json) -> bool:
        """Whether this response has ended and another begins, as happens where a client steers."""
        if not self._ended or self._failed or chunk.get("type") != "response.created":
            return False
        another = mapping_or_none(chunk.get("response")) or {}
        return word(another.get("id")) not in (None, self._response.id)

    def read(self, chunk: Json) -> Sequence[Event]:
        if self._failed:
            return ()
        out, kind = self._out, chunk.get("type")
        if kind is None:
            self._read_untyped(out, chunk)
        elif not isinstance(kind, str):
            raise READ.fail("type", "the type of an event", kind)
        elif self._ended:
            if _EVENTS.get(kind) is not _Reader.ignore:
                self._pass_on(out, chunk)
        elif kind in _EVENTS:
            _EVENTS[kind](self, out, chunk)
        else:
            self._read_part(out, kind, chunk)
        return take_all(out)

    def close(self, *, whole: bool) -> Sequence[Event]:
        """End of input, or of a response that is `whole` then, also without its last event."""
        out = take_all(self._out)
        if whole and self._response.started and not self._ended:
            self._finish(out, None)
            out.append(assumed_finish(None, {}, asked=self._response.calls_client))
        self._flush(out)
        self._end()
        return out

    def _read_untyped(self, out: Out, chunk: Json) -> None:
        if chunk.get("object") == "response" and not self._response.started:
            self._read_whole(out, chunk, "")
        elif chunk.get("object") == "response" or self._ended:
            self._pass_on(out, chunk)
        elif chunk.get("error"):
            self.read_error(out, chunk)
        else:
            raise READ.fail("type", "the type of an event", None)

    def _pass_on(self, out: Out, chunk: Json) -> None:
        name = word(chunk.get("type")) or word(chunk.get("object")) or "event"
        out.append(events.ProviderEvent("openai", name, chunk))

    def ignore(self, out: Out, chunk: Json) -> None:
        """Emit nothing for a sign of life."""

    # The beginning and the items.

    def read_begin(self, out: Out, chunk: Json) -> None:
        response = object_of(chunk, "response")
        self._read_tools(response, "response.")
        self._response.begin(out, response, "response.")

    def _read_tools(self, response: Json, path: str) -> None:
        """Read the tools where they first come. Nothing depends on the copies behind that."""
        if not self._response.tools:
            self._response.tools = READ.items(response.get("tools"), f"{path}tools")

    def read_item_added(self, out: Out, chunk: Json) -> None:
        self._output.begin(out, chunk, object_of(chunk, "item"))

    def read_item_done(self, out: Out, chunk: Json) -> None:
        self._output.end(out, chunk, object_of(chunk, "item"))

    def _read_part(self, out: Out, kind: str, chunk: Json) -> None:
        """Read an event of an item. Begin the item if its beginning was lost."""
        implied = _ITEM_OF.get(kind)
        if implied is None and type(chunk.get("output_index")) is not int:
            self._pass_on(out, chunk)
            return
        part = chunk.get("part")
        if implied == "message" and isinstance(part, Mapping) and part.get("type") == REASONING_TEXT:
            implied = "reasoning"
        item = self._output.of_event(chunk, kind, implied)
        if item is None and implied is not None:
            place = self._output.place_of(chunk)
            item = self._output.add(out, place, {"type": implied, "id": chunk.get("item_id")}, "")
        if item is None or not (item.read_late if item.done else item.read)(out, kind, chunk):
            self._pass_on(out, chunk)
        else:
            self._output.fed(item)

    def read_audio(self, out: Out, chunk: Json) -> None:
        if self._audio is None:
            self._audio = Audio(self._response.start_block(out, {"type": "audio"}))
        self._audio.read(out, chunk)

    # The end.

    def read_end(self, out: Out, chunk: Json) -> None:
        status = str(chunk["type"]).removeprefix("response.")
        self._read_whole(out, object_of(chunk, "response"), "response.", status)

    def _read_whole(self, out: Out, response: Json, path: str, event_status: str = "") -> None:
        """Read the response of the last event, or one that was not streamed."""
        self._read_tools(response, path)
        output = READ.items(response.get("output"), f"{path}output")
        details = READ.mapping(response.get("incomplete_details"), f"{path}incomplete_details")
        usage = _usage(response, f"{path}usage")
        status = _status(response, event_status)
        said = word(details.get("reason"))
        reason, wrong = "stop", None
        if status == "incomplete":
            reason = REASONS.get(said or "", "stop")
            wrong = BROKEN_OFF if said is None else _CUT_OFF.get(reason, INCOMPLETE)
        metadata = message_fields(response) | self._late_names(response)
        self._response.begin(out, response, path)
        self._output.complete(out, output, f"{path}output", wrong)
        if status == "failed" and response.get("error"):
            self._fail(out, response, usage)
        elif status == "failed" or (status == "incomplete" and said is None):
            self._finish(out, BROKEN_OFF)
            out += broken_events("openai", status, BROKEN[status], usage, metadata)
            self._failed = True
            self._end()
        elif status is not None and status not in ENDS:  # in progress, queued or cancelled
            self._leave(out, response, status, usage)
        else:
            self._finish(out, wrong)
            asked = self._response.calls_client
            if status is None:
                out.append(assumed_finish(usage, metadata, asked=asked))
            else:
                ours = finish_reason(reason, asked=asked)
                out.append(events.MessageFinish(ours, status, usage, metadata))
            self._end()

    def _finish(self, out: Out, wrong: str | None) -> None:
        """Finish all blocks. `wrong` is why a call may be cut off."""
        self._output.finish(out, wrong)
        if self._audio is not None:
            self._audio.finish(out)

    def _late_names(self, response: Json) -> Content:
        """The id and the model, if the beginning of the message had none."""
        late: Content = {}
        if self._response.started and self._response.id is None and real_id(word(response.get("id"))):
            late["id"] = response["id"]
        if self._response.started and self._response.model is None and word(response.get("model")):
            late["model"] = response["model"]
        return late

    def _leave(self, out: Out, response: Json, status: str, usage: TokenUsage | None) -> None:
        """End a message that is not complete, without an error: it still runs, or the client has stopped it."""
        if usage is not None:
            out.append(events.UsageUpdate(usage))
        self._flush(out)
        rest = {name: value for name, value in response.items() if name != "output"}
        out.append(events.ProviderEvent("openai", f"response.{status}", rest))
        if status == CANCELLED:
            out.append(events.MessageInterrupted(status, choice=0))
        else:
            self.left = (events.MessageInterrupted(status, choice=0),)
        self._end()

    def _fail(self, out: Out, response: Json, usage: TokenUsage | None) -> None:
        if usage is not None:
            out.append(events.UsageUpdate(usage))
        error = response.get("error")
        self._emit_error(out, error if isinstance(error, Mapping) else {"message": word(error)})

    def read_error(self, out: Out, chunk: Json) -> None:
        error = chunk.get("error")
        if isinstance(error, Mapping):
            self._emit_error(out, error)
        elif error:
            self._emit_error(out, {"message": word(error), "error": error})
        else:
            self._emit_error(out, {name: value for name, value in chunk.items() if name != "type"})

    def _emit_error(self, out: Out, error: Json) -> None:
        self._flush(out)
        if any(value not in NOTHING and name not in _ERROR for name, value in error.items()):
            out.append(events.ProviderEvent("openai", PROVIDER_ERROR, kept(error)))
        message, code = word(error.get("message")), error_code(error.get("code"))
        out.append(events.StreamError(message or "unknown error", word(error.get("type")), code))
        self._failed = True
        self._end()

    def _flush(self, out: Out) -> None:
        self._output.flush(out)
        if self._audio is not None:
            self._audio.flush(out)

    def _end(self) -> None:
        self._ended = True
        self._output, self._audio = Output(self._response), None
        self._growing.clear()


def _status(response: Json, event_status: str) -> str | None:
    """The status in the response, unless it is missing or the event contradicts it. `None` if neither has one."""
    status = word(response.get("status"))
    if event_status == "failed" or (event_status in ENDS and status not in ENDS):
        return event_status
    if status is None and event_status != CANCELLED:
        return "failed" if response.get("error") else "completed" if event_status else None
    return status or event_status


def _usage(response: Json, path: str) -> TokenUsage | None:
    usage = READ.mapping(response.get("usage"), path)
    return usage_of(usage, RESPONSES) if usage else None


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


_EVENTS: Mapping[str, Callable[[_Reader, Out, Json], None]] = {
    "response.created": _Reader.read_begin,
    "response.queued": _Reader.read_begin,
    "response.in_progress": _Reader.read_begin,
    "response.output_item.added": _Reader.read_item_added,
    "response.output_item.done": _Reader.read_item_done,
    "response.audio.delta": _Reader.read_audio,
    "response.audio.done": _Reader.read_audio,
    "response.audio.transcript.delta": _Reader.read_audio,
    "response.audio.transcript.done": _Reader.read_audio,
    "response.completed": _Reader.read_end,
    "response.incomplete": _Reader.read_end,
    "response.failed": _Reader.read_end,
    "response.cancelled": _Reader.read_end,
    "response.done": _Reader.read_end,
    "error": _Reader.read_error,
    "keepalive": _Reader.ignore,
    "ping": _Reader.ignore,
}

_ITEM_OF: Mapping[str, str] = {
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
    "response.shell_call_output_content.delta": "shell_call_output",
    "response.shell_call_output_content.done": "shell_call_output",
    "response.image_generation_call.partial_image": "image_generation_call",
}
"""The events of items: the type of the item, for one whose beginning was lost."""

_CUT_OFF: Mapping[str, str] = {"length": CUT_OFF, "content_filter": CUT_OFF_BY_FILTER}
_ERROR = frozenset(["message", "type", "code", "sequence_number"])
