"""One run of a UI message stream: its messages, one after the other, and their parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from rxdelta.core import Block, BlockFold, Change, Event, ToolCall, Walk, finish_reason, is_mapping
from rxdelta.core.events import (
    AttemptReset,
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    MessageStart,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.ai_sdk.calls import CallIds, CallPart, OutputPart
from rxdelta.formats.ai_sdk.data import DataPart
from rxdelta.formats.ai_sdk.marks import (
    ATTEMPT,
    ATTEMPT_RESET,
    CUSTOM_KIND,
    FINISH_REASON,
    FIRST,
    MESSAGE_ID,
    METADATA,
    MODEL,
    OPTIONS,
    PARENT_RUN_ID,
    REASON,
    RUN,
    RUN_ID,
    STATUS,
    SUBAGENT,
    USAGE,
    WHOLE_BLOCK,
    marked,
)
from rxdelta.formats.ai_sdk.parts import Out, Part, TextPart, WholePart, kind_of
from rxdelta.formats.ai_sdk.sources import Sources
from rxdelta.formats.ai_sdk.stream import Step
from rxdelta.formats.ai_sdk.tables import CUT_OFF, TO_FINISH_REASON
from rxdelta.formats.ai_sdk.usage import add_usage, written_usage
from rxdelta.formats.signatures import without_signatures

if TYPE_CHECKING:
    from rxdelta.formats.ai_sdk.chunks import ProviderMetadata
    from rxdelta.formats.ai_sdk.stream import Stream

__all__ = ["RunParts"]

_ATTEMPT_FAILED: Final = "The attempt failed before the call ended."


class RunParts:
    """What the client has of one run.

    Args:
        stream: What the runs of the stream share.
        walk: Follows the run's messages.
        first: The first run of the stream, whose parts have no marks; `None` if this is the first.

    Attributes:
        step: The message that the walk is in.
        blocks: Its blocks.
        newest_text: The text whose part began last.
        waiting: This text, if it has ended, and its part waits for a text that goes on with it.
        calls: The calls of the run by their ids.
        sources: The sources that the client has.
        marks: What each part of the run is marked with.
        noted: Whether the client is told which messages the run has, since there are several runs.
        parent: The run's parent.
        subagent: Whether the run works for another one: it has a parent, and not the same as the first run.
    """

    def __init__(self, stream: Stream, walk: Walk, first: RunParts | None) -> None:
        self.stream = stream
        self.walk = walk
        self.step = Step(self)
        self.newest_text: TextPart | None = None
        self.waiting: TextPart | None = None
        self.calls = CallIds(stream)
        self.sources = Sources(stream.new_id, wants_found=stream.shown.found_sources)
        self.marks: dict[str, Any] = {}
        self.parent: str | None = None
        self.noted = self.subagent = self._is_new = False
        self._first = first
        self._facts: dict[str, Any] = {}
        self.blocks = walk.blocks
        self._past_usage: dict[str, int] = {}  # of the messages and attempts that have ended

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        name = self.stream.run_name(event.run_id)
        self._facts = {RUN_ID: name, FIRST: True} if self._first is None else {RUN_ID: name}
        self.noted = self._first is not None
        self._is_new = True

    def _read_parent(self, event: Event) -> None:
        """Read whose the run is, of the first event that the client can see something of."""
        self._is_new, first = False, self._first
        self.parent = event.parent_run_id if isinstance(event, MessageStart) else None
        self.subagent = first is not None and self.parent not in (None, first.parent)
        if self.subagent:
            self._facts[SUBAGENT] = True
        if first is not None:
            self.marks = {**self._facts}
        if self.parent is not None:
            self._facts[PARENT_RUN_ID] = self.parent

    def encode(self, out: Out, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        if self._is_new and not isinstance(event, AttemptReset):
            self._read_parent(event)
        if self.waiting is not None and not self._may_go_on_with_text(event):
            self.end_text(out)
        for change in self.walk.step(event):
            self._CHANGES[change.kind](self, out, event, change)

    def _may_go_on_with_text(self, event: Event) -> bool:
        """Whether the part of a text that has ended may wait behind this event."""
        if not isinstance(event, (BlockStart, BlockDelta, BlockFinish)):
            return isinstance(event, UsageUpdate)
        fold = self.blocks.get(event.index)
        if fold is not None:
            return isinstance(fold.place, TextPart) and not fold.place.has_begun
        content = None if isinstance(event, BlockDelta) else event.content
        return is_mapping(content) and content.get("type", "text") == "text"

    def end_text(self, out: Out) -> None:
        """End the part of a text that waits: something else comes."""
        if self.waiting is not None:
            waiting, self.waiting = self.waiting, None
            waiting.send_end(out)

    def break_off(self, out: Out) -> None:
        """The stream has failed: end what is open."""
        if not self.walk.over:
            self.step.status = "incomplete"
        self.finish_step(out, CUT_OFF)

    def usage(self) -> dict[str, int]:
        """The usage of all messages and attempts of the run."""
        return add_usage(self._past_usage, self.step.figures)

    def marked(self, marks: Mapping[str, Any]) -> dict[str, ProviderMetadata]:
        """The field of a chunk that holds these marks and the run's."""
        return marked({**self._shown(marks), **self.marks})

    def whole_block(self, marks: dict[str, Any]) -> dict[str, Any]:
        """The frame of a block that no chunk of the protocol fits."""
        if self.stream.has_custom:
            return {"type": "custom", "kind": CUSTOM_KIND, **self.marked(marks)}
        return {"type": WHOLE_BLOCK, "id": self.stream.new_id(), "data": {**self._shown(marks), **self.marks}}

    def _shown(self, marks: Mapping[str, Any]) -> Mapping[str, Any]:
        """The marks without signatures, if reasoning stays on the server."""
        if self.stream.shown.reasoning:
            return marks
        signed = (OPTIONS, METADATA)
        return {
            name: rest
            for name, found in marks.items()
            if (rest := without_signatures(found) if name in signed else found)
        }

    # Messages.

    def note(self, out: Out) -> None:
        """From now on, tell the client which messages the run has, beginning with the one that it is in."""
        self.noted = True
        if self.step.open or self.step.status is not None:
            self._send_note(out)

    def _send_note(self, out: Out) -> None:
        """Tell the client what is known of the message."""
        if not self.noted:
            return
        step = self.step
        step.note = step.note or self.stream.new_id()
        stopped = step.status == "interrupted"
        known = {
            **self._facts,
            MESSAGE_ID: step.id,
            MODEL: step.model,
            STATUS: step.status,
            FINISH_REASON: None if stopped else step.reason,
            REASON: step.reason if stopped else None,
            USAGE: written_usage(step.figures) if step.status is not None else None,
        }
        data = {name: value for name, value in known.items() if value is not None}
        out.append({"type": RUN, "id": step.note, "data": data})

    def _open_step(self, out: Out, model: str | None = None) -> Step:
        """The step of the message, which begins now if it hasn't."""
        step = self.step
        if not step.open:
            self.stream.start(out, model)
            self._send_note(out)  # in front of a step of its own, so that our reader knows whose the step is
            self.stream.enter(out, step)
        return step

    def finish_step(self, out: Out, cut: str | None, *, is_last: bool = False) -> None:
        """End the parts of the message, and the message in its step.

        Args:
            out: Where to append the frames.
            cut: Why the parts that are open were cut off; `None` if they have ended.
            is_last: Whether no output of the provider's tools can come any more.
        """
        step = self.step
        for part in step.parts:
            part.end(out, cut)
            self.end_text(out)
        step.conclude(out, is_last=is_last)
        if step.open:
            self._send_note(out)
            self.stream.leave(out, step)

    def _put_away(self, *, open: bool) -> Step:
        """Go on with another message, or another attempt at this one."""
        before = self.step
        self._past_usage = add_usage(self._past_usage, before.figures)
        self.step = Step(self, open=open)
        self.step.pending = [call for call in before.pending if not open or call.step is not before]
        if open:
            self.stream.replace(before, self.step)
        return before

    def _another(self, out: Out, _event: Any, _: Change) -> None:
        if self.step.status is None:
            self.step.status = "incomplete"
        self.finish_step(out, CUT_OFF)
        self._put_away(open=False)

    def _message_started(self, out: Out, event: Any, _: Change) -> None:
        step = self.step
        step.start(event)
        if step.open:
            self._send_note(out)
        self._open_step(out, event.model)

    def _usage(self, out: Out, event: Any, _: Change) -> None:
        self._open_step(out).usage = event.usage

    def _ended(self, out: Out, event: Any, _: Change) -> None:
        step = self._open_step(out)
        is_last = False
        if isinstance(event, MessageFinish):
            step.finish(event)
            self.sources.send_found(out, step, event.metadata)
            calls = (fold.block for fold in self.blocks.values() if isinstance(fold.block, ToolCall))
            asked = any(call.type != "server_tool_call" for call in calls)
            reason = finish_reason(event.reason, asked=asked)
            step.status = "length" if reason == "length" else "complete"
            step.reason = TO_FINISH_REASON[reason]
            is_last = reason not in ("pause", "tool_use")  # the provider goes on with its tools behind these
        else:
            step.status, step.reason = "interrupted", event.reason
        self.finish_step(out, None, is_last=is_last)

    def _reset(self, out: Out, event: Any, _: Change) -> None:
        step = self.step
        if event.usage is not None:
            step.usage = event.usage
        said = [part for part in step.parts if isinstance(part, DataPart)]
        told = len(step.parts) > len(said)
        if told and self.stream.resets(step):
            self._drop_parts(step)
            out.append({"type": "reset-step", **self.marked({})})
            self._put_away(open=True)
            self.step.note = step.note
            for own in said:
                own.send_again(out)
            self.step.parts.update(dict.fromkeys(said))
            return
        if told:
            for part in step.parts:
                part.end(out, _ATTEMPT_FAILED)
            data = {ATTEMPT: event.attempt, **self.marks}
            out.append({"type": ATTEMPT_RESET, "id": self.stream.new_id(), "data": data})
            self.finish_step(out, _ATTEMPT_FAILED)
        before = self._put_away(open=step.open)
        self.step.note = before.note
        if step.open and not told:
            self.step.parts.update(dict.fromkeys(said))

    def _drop_parts(self, step: Step) -> None:
        """The client drops the parts of the step, so their ids can be used again."""
        for part in step.parts:
            part.release_id()
        self.calls.forget(step)
        self.sources.forget(step)

    # Blocks.

    def _opened(self, out: Out, _event: Any, change: Change) -> None:
        self._begin_part(out, change.fold)

    def _restarted(self, out: Out, _event: Any, change: Change) -> None:
        self._leave_part(out, change.fold.place)
        self._begin_part(out, change.fold)

    def _begin_part(self, out: Out, fold: BlockFold) -> None:
        step = self._open_step(out)
        fold.place = part = self._new_part(step, fold)
        step.parts[part] = None
        step.count += type(part) is not Part
        if isinstance(part, TextPart):
            step.conclude(out, is_last=False)  # the model goes on, so it has what the provider found
        part.begin(out)

    def _leave_part(self, out: Out, part: Part) -> None:
        """The block is not this part any more."""
        part.abandon(out)
        if not part.must_stay:
            part.step.parts.pop(part, None)

    def _new_part(self, step: Step, fold: BlockFold) -> Part:
        kind, shown = kind_of(fold.block), self.stream.shown
        if (kind == "reasoning" and not shown.reasoning) or (
            fold.block.type == "unsupported" and not shown.provider_items
        ):
            return Part(step, fold)
        if kind == "text" or kind == "reasoning":
            return TextPart(step, fold, kind)
        part_class = CallPart if kind == "call" else OutputPart if kind == "output" else WholePart
        return part_class(step, fold)

    def _changed(self, out: Out, event: BlockDelta, change: Change) -> None:
        self._follow(out, change, event.fields)

    def _follow(self, out: Out, change: Change, fields: Mapping[str, Any]) -> None:
        """Send a change of the block by an event whose fields may replace text that the client has."""
        fold, before = change.fold, cast("Block", change.before)
        part: Part = fold.place
        kinds = (kind_of(before), kind_of(fold.block))
        if kinds[0] == kinds[1] and part.follow(out, before, fields):
            return
        step = part.step
        may_reset = self.stream.resets(step) and not any(one.is_acted_on for one in step.parts)
        if may_reset and (kinds[0] == kinds[1] or kinds == ("text", "reasoning")):
            if kinds[0] != kinds[1]:
                del step.parts[part]
                fold.place = part = self._new_part(step, fold)
                step.parts[part] = None
            out.append({"type": "reset-step", **self.marked({})})
            self.sources.forget(step)
            self._send_note(out)
            for one in step.parts:
                if not isinstance(one, TextPart):
                    self.end_text(out)
                one.send_again(out)
        elif kinds[0] == kinds[1]:
            part.restart(out)
        else:
            self._leave_part(out, part)
            self._begin_part(out, fold)

    def _closed(self, out: Out, event: Any, change: Change) -> None:
        finish = isinstance(event, BlockFinish)
        if finish and event.content is not None:
            self._follow(out, change, event.content)
        part: Part = change.fold.place
        if change.repeated:
            self._leave_part(out, part)
        else:
            whole = finish or (isinstance(event, MessageFinish) and event.reason != "length")
            part.end(out, None if whole else CUT_OFF)
        if not finish:
            self.end_text(out)  # with its message

    def _overruled(self, out: Out, event: BlockFinish, change: Change) -> None:
        """Of a call, which the client may be running, it learns only that the call is invalid now."""
        part: Part = change.fold.place
        if isinstance(change.fold.block, ToolCall):
            part.take_back(out)
            if not isinstance(change.before, ToolCall):  # no tool runs for such a call
                self._leave_part(out, part)
        elif event.content is not None:
            self._follow(out, change, event.content)
            change.fold.place.end(out, None)

    def _noted(self, out: Out, event: ToolUpdate, _: Change) -> None:
        for call in self.calls.named(event.call_id):
            call.update(out)

    _CHANGES: ClassVar[dict[str, Callable[[RunParts, Out, Any, Change], None]]] = {
        "another": _another,
        "started": _message_started,
        "usage": _usage,
        "ended": _ended,
        "reset": _reset,
        "opened": _opened,
        "restarted": _restarted,
        "changed": _changed,
        "closed": _closed,
        "overruled": _overruled,
        "noted": _noted,
    }
