"""The frames of the agent protocol: each event in its envelope, with its number, its namespace and the time.

A run has the frames of its messages, one after the other, of their blocks, and of the calls that run beside them, in the
channel `tools`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias, TypedDict

import attrs

from rxdelta.core import (
    TERMINAL,
    Block,
    BlockFold,
    Change,
    ChangeReader,
    ContentPart,
    Event,
    TokenUsage,
    ToolCall,
    ToolResult,
    Walk,
    clean_text,
    concerns_choice,
    grows_by,
    thaw,
)
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    DataDelta,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.langchain.protocol_content import as_json, write_content, write_fields, write_usage
from rxdelta.formats.langchain.tables import (
    ATTEMPT_RESET,
    CUSTOM_NAME,
    DISPLAY_TEXT,
    FOLDED,
    IN_RUN,
    INTERRUPTED,
    PARENT_RUN_ID,
    RESULT,
    SEPARATOR,
    SOURCE_INDEX,
    SYNTHETIC,
    Index,
)
from rxdelta.formats.notes import SYNTHETIC_ID

Method: TypeAlias = Literal["messages", "tools", "custom"]


class LangChainParams(TypedDict):
    """The subject of a frame, and when it was written, in milliseconds since 1970."""

    namespace: list[str]
    timestamp: int
    data: dict[str, Any]


class LangChainFrame(TypedDict):
    """One event of the protocol in its envelope."""

    type: Literal["event"]
    seq: int
    method: Method
    params: LangChainParams


class FrameWriter:
    """Numbers and dates the frames of one stream, in one namespace.

    Args:
        now: The time, in seconds since 1970.
        namespace: The path of what the frames are about.
        numbers: Numbers the frames of all namespaces of the stream.
    """

    def __init__(self, now: Callable[[], float], namespace: Sequence[str], numbers: Iterator[int]) -> None:
        self._now = now
        self._namespace = tuple(map(clean_text, namespace))
        self._numbers = numbers
        self._in_run = False

    def of_run(self, run_id: str | None) -> FrameWriter:
        """Writes the frames of a run, whose namespace is within this one."""
        within = () if run_id is None else run_id.split(SEPARATOR)
        return FrameWriter(self._now, [*self._namespace, *within], self._numbers)

    def enter(self, run_id: str | None) -> None:
        """Go on with the frames of this run."""
        self._in_run = run_id is not None
        self._namespace = self.of_run(run_id)._namespace

    def frame(self, method: Method, data: dict[str, Any]) -> LangChainFrame:
        time = int(self._now() * 1000)
        params: LangChainParams = {"namespace": [*self._namespace], "timestamp": time, "data": data}
        return {"type": "event", "seq": next(self._numbers), "method": method, "params": params}

    def message(self, event: str, **data: Any) -> LangChainFrame:
        return self.frame("messages", {"event": event, **data})

    def tool(self, event: str, call_id: str, **data: Any) -> LangChainFrame:
        mark = {IN_RUN: True} if self._in_run else {}
        return self.frame("tools", {"event": event, "tool_call_id": call_id, **data, **mark})

    def application(self, event: Custom) -> LangChainFrame:
        """The application's own data, in the words of the protocol."""
        if event.name == CUSTOM_NAME:
            return self.custom(event)
        known = {
            "id": event.id,
            "transient": event.transient or None,
            IN_RUN: event.run_id is not None or None,
        }
        more = {name: value for name, value in known.items() if value is not None}
        return self.frame("custom", {"name": event.name, "payload": thaw(event.data), **more})

    def custom(self, event: Event) -> LangChainFrame:
        """One of our events, whole. Other readers skip it."""
        payload = without_lane(event)
        if isinstance(event, AttemptReset) and event.choice is not None:
            payload["choice"] = 0  # a stream of frames has one choice only; but this event may name none
        return self.frame("custom", {"name": CUSTOM_NAME, "payload": payload})


def without_lane(event: Event) -> dict[str, Any]:
    """The event's wire form, without the run and the choice: the namespace names the run, and there is one choice."""
    data = event.to_dict()
    data.pop("run_id", None)
    data.pop("choice", None)
    return data


_ENDED_EARLY = "The stream ended before the tool did."


class ToolRuns:
    """Writes the frames of the calls of all messages, and ends all that it starts."""

    def __init__(self, frames: FrameWriter) -> None:
        self._frames = frames
        self._runs: dict[str, _Run] = {}  # by the call's id

    def note(self, block: Block, message: object) -> None:
        """Remember what a frame has to give of a call of this message when it runs."""
        if not isinstance(block, ToolCall) or block.call_id is None:
            return
        run = self._runs.setdefault(block.call_id, _Run())
        run.name = block.name or run.name
        if not block.open:
            run.arguments = block.arguments
        run.message = message

    def update(self, event: ToolUpdate) -> Iterator[LangChainFrame]:
        run, status = self._runs.get(event.call_id), event.execution_status
        ended = status in TERMINAL
        if run is None or run.ended or not (ended or status == "executing"):
            yield self._frames.custom(event)
        elif ended:
            if not run.started:
                yield self._started(event.call_id, run, **{SYNTHETIC: True})
            run.ended = True
            yield self._ended(event)
        elif not run.started:
            result = {} if event.result is None else {RESULT: event.result.to_dict()}
            yield self._started(event.call_id, run, **_display_text(event), **result)
        else:
            delta = run.more_output(event)
            if delta is None:
                yield self._frames.custom(event)
            else:
                yield self._frames.tool("tool-output-delta", event.call_id, delta=delta)

    def _started(self, call_id: str, run: _Run, **marks: Any) -> LangChainFrame:
        run.started = True
        given = {} if run.arguments is None else {"input": thaw(run.arguments)}
        return self._frames.tool("tool-started", call_id, tool_name=run.name, **given, **marks)

    def _ended(self, event: ToolUpdate) -> LangChainFrame:
        """The result's content is the output; a result that has more is added as a mark."""
        result = event.result
        marks = _display_text(event)
        content = None if result is None else thaw(result.content)
        failed = event.execution_status == "failed"
        if result is None:
            marks[RESULT] = None
        elif result != ToolResult(event.call_id, content, failed) or (
            failed and not isinstance(content, str)
        ):
            marks[RESULT] = result.to_dict()
        if failed:
            message = content if isinstance(content, str) else "" if content is None else as_json(content)
            return self._frames.tool("tool-error", event.call_id, message=message, **marks)
        return self._frames.tool("tool-finished", event.call_id, output=content, **marks)

    def close(self, message: object = None) -> Iterator[LangChainFrame]:
        """End the runs of this message, or all: no more events of them will come."""
        for call_id, run in self._runs.items():
            if run.started and not run.ended and message in (None, run.message):
                run.ended = True
                yield self._frames.tool("tool-error", call_id, message=_ENDED_EARLY, **{SYNTHETIC: True})


def _display_text(event: ToolUpdate) -> dict[str, Any]:
    return {} if event.display_text is None else {DISPLAY_TEXT: event.display_text}


class _Run:
    """A call and its run. The output is the text of its partial results so far."""

    __slots__ = ("arguments", "ended", "message", "name", "output", "started")

    def __init__(self) -> None:
        self.name = ""
        self.arguments: Any = None
        self.message: object = None
        self.started = False
        self.ended = False
        self.output = ""

    def more_output(self, event: ToolUpdate) -> str | None:
        """The text that a partial result appends to the output, if the event says no more."""
        result = event.result
        if result is None or event.display_text is not None or not isinstance(result.content, str):
            return None
        if result != ToolResult(event.call_id, result.content) or not result.content.startswith(self.output):
            return None
        delta = result.content[len(self.output) :]
        self.output = result.content
        return delta or None


Frames: TypeAlias = Sequence[LangChainFrame]
Growth: TypeAlias = TextDelta | ReasoningDelta | DataDelta | ToolCallDelta

_CUT = "The call was cut off before it ended."

DELTAS: Mapping[type, tuple[str, str, Mapping[str, str]]] = {
    TextDelta: ("text", "text-delta", {}),
    ReasoningDelta: ("reasoning", "reasoning-delta", {}),
    DataDelta: ("data", "data-delta", {"encoding": "base64"}),
    ToolCallDelta: ("args", "tool-call-delta", {}),
}
"""By the event: the field of its text, which the protocol names alike, the protocol's type and further fields."""


class BlockFrames:
    """Writes the blocks of one message, and finishes all that it starts."""

    def __init__(self, frames: FrameWriter, tools: ToolRuns) -> None:
        self._frames = frames
        self._tools = tools
        self._started: dict[BlockFold, None] = {}  # and not finished
        self._indexes: set[int] = set()
        self._free = 0  # no index from here on is taken

    def start(self, key: Index, fold: BlockFold, begun: Block) -> Iterator[LangChainFrame]:
        block = fold.place = _Block(self._new_index(key))
        self._started[fold] = None
        self._tools.note(begun, self)
        content, block.has_a_form = write_content(begun, with_text=False)
        mark = {} if block.index == key else {SOURCE_INDEX: key}
        yield self._frames.message("content-block-start", index=block.index, content=content, **mark)
        text = begun.text if isinstance(begun, ContentPart) else begun.arguments if block.has_a_form else None
        if text and isinstance(text, str):  # readers look for text only in deltas
            yield from self._write_text(block, grows_by(begun)(key, text), text)

    def _new_index(self, wanted: Index) -> int:
        """The source's own index, by which readers sort the blocks, or the next one if that is not allowed."""
        index = (
            wanted if isinstance(wanted, int) and wanted >= 0 and wanted not in self._indexes else self._free
        )
        self._indexes.add(index)
        self._free = max(self._free, index + 1)
        return index

    def grow(self, fold: BlockFold, event: Growth) -> Frames:
        piece: str = getattr(event, DELTAS[type(event)][0])
        if not piece:
            return ()
        if type(event) is DataDelta and fold.block.type == "server_tool_result":
            fold.place.has_a_form = False  # a result of the protocol's has no text
        return self._write_text(fold.place, event, piece)

    def _write_text(self, block: _Block, event: Any, piece: str) -> Frames:
        if block.half or not piece.isascii():
            piece, block.half = whole_characters(block.half, piece)
        block.delta = type(event)
        if not piece:
            return ()
        field, kind, more = DELTAS[block.delta]
        if not block.has_a_form:
            return (self._frames.custom(attrs.evolve(event, **{field: piece})),)
        delta = {"type": kind, field: piece, **more}
        data = {"event": "content-block-delta", "index": block.index, "delta": delta}
        return (self._frames.frame("messages", data),)

    def change(self, fold: BlockFold, event: BlockDelta) -> Iterator[LangChainFrame]:
        block: _Block = fold.place
        self._tools.note(fold.block, self)
        fields = write_fields(fold.block, event) if block.has_a_form else None
        if fields is None:
            yield self._frames.custom(event)
        else:
            delta = {"type": "block-delta", "fields": fields}
            yield self._frames.message("content-block-delta", index=block.index, delta=delta)

    def finish(
        self, fold: BlockFold, finished: Block, *, as_folded: bool = False, synthetic: bool = False
    ) -> Iterator[LangChainFrame]:
        """Finish a block.

        Args:
            fold: The block.
            finished: The content that it ends with.
            as_folded: Whether the source's finish had no content.
            synthetic: Whether there is no finish of the source.
        """
        block: _Block = fold.place
        content, has_a_form = write_content(finished)
        if block.half and block.has_a_form:  # the other half of the character never came
            block.half = ""
            yield from self._write_text(block, block.delta(block.index, "\ufffd"), "\ufffd")
        mark: dict[str, Any] = {}
        if synthetic:
            mark[SYNTHETIC] = True
        elif as_folded and not has_a_form and not block.half:
            mark[FOLDED] = True
        self._tools.note(finished, self)
        del self._started[fold]
        yield self._frames.message("content-block-finish", index=block.index, content=content, **mark)

    def cut(self, fold: BlockFold, block: Block) -> Iterator[LangChainFrame]:
        """Finish a block that has not ended. To our reader, what follows finishes it."""
        if fold in self._started:
            cut: dict[str, Any] = {"_open": False}
            if isinstance(block, ToolCall):
                kind = "invalid_tool_call" if block.type == "tool_call" else block.type
                cut |= {"type": kind, "error": _CUT}
            yield from self.finish(fold, attrs.evolve(block, **cut), synthetic=True)

    def close(self) -> Iterator[LangChainFrame]:
        """Cut the blocks that are open."""
        for fold in tuple(self._started):
            yield from self.cut(fold, fold.block)


class _Block:
    """A block at the client.

    Attributes:
        delta: The type of its last delta.
        half: The first half of a character with which its text ends so far.
        has_a_form: Whether the protocol has a form for it.
    """

    __slots__ = ("delta", "half", "has_a_form", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.delta: type[Growth] = TextDelta
        self.half = ""
        self.has_a_form = True


FrameIterator: TypeAlias = Iterator[LangChainFrame]

_NEW_ATTEMPT: Final = "The attempt failed, and another one begins."
_ANOTHER: Final = "Another message began before this one had ended."

_PASSED_ON: Final = (UsageUpdate, MessageFinish, MessageInterrupted)
"""The events that a reader of ours gets also if they change nothing."""


class RunFrames(ChangeReader):
    """Writes the frames of one run.

    Args:
        frames: Writes the frames of the run's namespace.
        walk: Follows the run's messages.
        new_id: An id for a message that has none.

    Attributes:
        blocks: Writes the frames of the message's blocks.
    """

    def __init__(self, frames: FrameWriter, walk: Walk, new_id: Callable[[], str]) -> None:
        self.walk = walk
        self._frames = frames
        self._new_id = new_id
        self._tools = ToolRuns(frames)
        self._open = False  # whether the client is in a message
        self._usage: TokenUsage | None = None  # of the message
        self.blocks = BlockFrames(frames, self._tools)

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        self._frames.enter(event.run_id)

    def encode(self, event: Event) -> FrameIterator:
        """The frames of another event of this run, or of every run."""
        given: Any = event
        kind: Any = type(event)
        if kind in DELTAS or not concerns_choice(event, self.walk.choice):
            return
        if kind is ToolUpdate:  # a block's content doesn't repeat what the frames of its tool have
            yield from self._tools.update(given)
            return
        changes = self.walk.step(event)
        for frames in self.read_changes(changes, event):
            yield from frames
        if not changes and isinstance(event, _PASSED_ON):
            yield self._frames.custom(event)

    # The end of the stream.

    def close(self) -> FrameIterator:
        """End what is open within the message, and the tools that run."""
        yield from self.blocks.close()
        yield from self._tools.close()

    def fail(self, message: str, words: Mapping[str, str]) -> FrameIterator:
        """End the message with an error. Only a message can end with one, so an empty one begins if none is open."""
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield self._frames.message("error", message=message, **words)

    @property
    def is_open(self) -> bool:
        """Whether the client is in a message."""
        return self._open

    # The message.

    def _begin(self, event: MessageStart, *, synthetic: bool = False) -> FrameIterator:
        self._open = True
        self._usage = self._usage or event.usage
        data = without_lane(event)
        metadata: dict[str, Any] = data.pop("metadata", {})
        plain = {name: value for name, value in metadata.items() if _is_plain(name, value)}
        more = {name: value for name, value in metadata.items() if name not in plain}
        if event.id is None:
            data |= {"id": clean_text(self._new_id()), SYNTHETIC_ID: True}
        data |= {"metadata": plain} if plain else {}
        data |= {"responseMetadata": more} if more else {}
        data |= {SYNTHETIC: True} if synthetic else {}
        if self.walk.run_id is not None:
            data[PARENT_RUN_ID] = (
                event.parent_run_id
            )  # None, too: otherwise a reader takes the enclosing namespace for the parent
        yield self._frames.frame("messages", data)

    def on_another(self, _change: Change, _event: Any, /) -> FrameIterator:
        if self._open:
            yield from self.blocks.close()
            yield self._frames.message("error", message=_ANOTHER, **{SYNTHETIC: True})
        self._put_away()

    def on_started(self, _change: Change, event: Any, /) -> FrameIterator:
        if self._open:
            self._usage = self._usage or event.usage
            yield self._frames.custom(event)
        else:
            yield from self._begin(event)

    def _put_away(self) -> None:
        """Go on with another message, or another attempt at this one."""
        self._open, self._usage = False, None
        self.blocks = BlockFrames(self._frames, self._tools)

    def on_ended(self, _change: Change, event: Any, /) -> FrameIterator:
        if isinstance(event, MessageFinish):
            if not self._open:
                yield from self._begin(MessageStart(), synthetic=True)
            yield self._frames.frame(
                "messages", without_lane(event) | write_usage(event.usage or self._usage)
            )
        elif self._open:
            mark = {INTERRUPTED: True if event.reason is None else event.reason}
            yield self._frames.message("message-finish", **mark, **write_usage(self._usage))
        else:
            yield self._frames.custom(event)
        self._open = False

    def on_reset(self, _change: Change, event: Any, /) -> FrameIterator:
        """End the attempt's message. Its error stays here: `on_error` is not asked what may be shown of it."""
        event = AttemptReset(event.attempt, usage=event.usage, choice=event.choice)
        yield from self.blocks.close()
        yield from self._tools.close(self.blocks)
        if self._open:
            fields = without_lane(event)
            del fields["event"]
            yield self._frames.message("error", message=_NEW_ATTEMPT, **{ATTEMPT_RESET: fields})
        else:
            yield self._frames.custom(event)
        self._put_away()

    def on_usage(self, _change: Change, event: Any, /) -> FrameIterator:
        self._usage = event.usage
        yield self._frames.custom(event)

    # Blocks.

    def on_opened(self, change: Change, event: Any, /) -> FrameIterator:
        if isinstance(event, BlockStart):  # else the block's end is the next change, which knows how it began
            yield from self._start_block(event.index, change.fold, change.fold.block)

    def on_restarted(self, change: Change, event: Any, /) -> FrameIterator:
        fold, before = change.fold, change.before
        if before is not None:
            yield from self.blocks.cut(fold, before)
        yield from self._start_block(event.index, fold, fold.block)

    def _start_block(self, key: Index, fold: BlockFold, begun: Block) -> FrameIterator:
        if not self._open:
            yield from self._begin(MessageStart(), synthetic=True)
        yield from self.blocks.start(key, fold, begun)

    def on_changed(self, change: Change, event: Any, /) -> FrameIterator:
        yield from self.blocks.change(change.fold, event)

    def on_closed(self, change: Change, event: Any, /) -> FrameIterator:
        fold, before = change.fold, change.before
        if not isinstance(
            event, BlockFinish
        ):  # by the end of its message, which finishes it to our reader, too
            yield from self.blocks.finish(fold, fold.block, synthetic=True)
            return
        if fold.place is None and before is not None:  # the block had no start
            yield from self._start_block(event.index, fold, before)
        yield from self.blocks.finish(fold, fold.block, as_folded=event.content is None)

    def on_overruled(self, _change: Change, event: Any, /) -> FrameIterator:
        yield self._frames.custom(event)  # other readers keep the first finish


def _is_plain(name: str, value: object) -> bool:
    """Whether the protocol allows this in the metadata of a message's start."""
    if name in _STRING_METADATA:
        return isinstance(value, str)
    return value is None or isinstance(value, (bool, int, float, str))


_STRING_METADATA = frozenset(
    ["provider", "model", "model_type", "run_id", "thread_id", "system_fingerprint", "service_tier"]
)
