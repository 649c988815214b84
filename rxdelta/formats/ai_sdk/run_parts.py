"""One run of a UI message stream: its messages, one after the other, and their parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from rxdelta.core import (
    Block,
    BlockFold,
    Change,
    ChangeReader,
    Event,
    ToolCall,
    Walk,
    finish_reason,
    is_mapping,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    MessageFinish,
    UsageUpdate,
)
from rxdelta.formats.ai_sdk.calls import CallIds, CallPart, OutputPart
from rxdelta.formats.ai_sdk.marks import (
    ATTEMPT,
    ATTEMPT_RESET,
    FINISH_REASON,
    FIRST,
    MESSAGE_ID,
    MODEL,
    PARENT_RUN_ID,
    REASON,
    RUN,
    RUN_ID,
    STATUS,
    SUBAGENT,
    USAGE,
)
from rxdelta.formats.ai_sdk.parts import RunTexts, TextPart, WholePart, kind_of
from rxdelta.formats.ai_sdk.stream import DataPart, Part, Run, Step, Stream
from rxdelta.formats.ai_sdk.tables import CUT_OFF, TO_FINISH_REASON, add_usage, written_usage

_ATTEMPT_FAILED: Final = "The attempt failed before the call ended."


class RunParts(Run, ChangeReader):
    """One run of the stream, and its state at the client.

    Args:
        stream: The stream that the run belongs to.
        walk: Follows the run's messages.
        first: The first run of the stream, whose parts have no marks; `None` if this is the first.

    Attributes:
        step: The message that the walk is in.
    """

    def __init__(self, stream: Stream, walk: Walk, first: RunParts | None) -> None:
        super().__init__(stream, walk, first)
        self.step = Step(self)
        self._first = first
        self._texts = RunTexts()
        self._calls = CallIds(stream)
        self._past_usage: dict[str, int] = {}  # of the messages and attempts that have ended

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        self.identity.begin(self.stream.run_name(event.run_id))
        if self._first is not None and not self._first.identity.noted:
            self._first.note()  # in front of all frames of the second run, whose readers need the first one by name

    def encode(self, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        identity = self.identity
        if identity.read_parent(event) and identity.first is not None:
            self.marks = {RUN_ID: identity.name} | ({SUBAGENT: True} if identity.subagent else {})
        if self._texts.waiting is not None and not self._may_go_on_with_text(event):
            self.end_text()
        self.read_changes(self.walk.step(event), event)

    def _may_go_on_with_text(self, event: Event) -> bool:
        """Whether the part of a text that has ended may wait behind this event."""
        if not isinstance(event, (BlockStart, BlockDelta, BlockFinish)):
            return isinstance(event, UsageUpdate)
        fold = self.walk.blocks.get(event.index)
        if fold is not None:
            return isinstance(fold.place, TextPart) and not fold.place.has_begun
        content = None if isinstance(event, BlockDelta) else event.content
        return is_mapping(content) and content.get("type", "text") == "text"

    def end_text(self) -> None:
        """End the part of a text that waits: something else comes."""
        self._texts.end()

    def break_off(self) -> None:
        """The stream has failed: end what is open."""
        if not self.walk.over:
            self.step.status = "incomplete"
        self.finish_step(CUT_OFF)

    def usage(self) -> dict[str, int]:
        """The usage of all messages and attempts of the run."""
        return add_usage(self._past_usage, self.step.figures)

    # Messages.

    def note(self) -> None:
        """From now on, send notes of the run's messages, beginning with the one that it is in."""
        self.identity.noted = True
        if self.step.open or self.step.status is not None:
            self._send_note()

    def _send_note(self) -> None:
        """Send the note of the message, with all that is known of it."""
        if not self.identity.noted:
            return
        step = self.step
        step.note = step.note or self.stream.new_id()
        stopped = step.status == "interrupted"
        known = {
            **self.marks,
            **self.identity.facts(RUN_ID, FIRST, PARENT_RUN_ID),
            MESSAGE_ID: step.id,
            MODEL: step.model,
            STATUS: step.status,
            FINISH_REASON: None if stopped else step.reason,
            REASON: step.reason if stopped else None,
            USAGE: written_usage(step.figures) if step.status is not None else None,
        }
        data = {name: value for name, value in known.items() if value is not None}
        self.stream.out.append({"type": RUN, "id": step.note, "data": data})

    def _open_step(self, model: str | None = None) -> Step:
        """The step of the message, which begins now if it hasn't."""
        step = self.step
        if not step.open:
            self.stream.start(model)
            self._send_note()  # in front of a step of its own, so that our reader knows whose the step is
            self.stream.enter(step)
        return step

    def finish_step(self, cut: str | None, *, is_last: bool = False) -> None:
        """End the parts of the message, and the message in its step.

        Args:
            cut: Why the parts that are open were cut off; `None` if they have ended.
            is_last: Whether no output of the provider's tools can come any more.
        """
        step = self.step
        for part in step.parts:
            part.end(cut)
            self.end_text()
        step.conclude(is_last=is_last)
        if step.open:
            self._send_note()
            self.stream.leave(step)

    def _put_away(self, *, open: bool) -> Step:
        """Go on with another message, or another attempt at this one."""
        before = self.step
        self._past_usage = add_usage(self._past_usage, before.figures)
        self.step = Step(self, open=open)
        self.step.pending = [call for call in before.pending if not open or call.step is not before]
        if open:
            self.stream.replace(before, self.step)
        return before

    def on_another(self, _change: Change, _event: Any, /) -> None:
        if self.step.status is None:
            self.step.status = "incomplete"
        self.finish_step(CUT_OFF)
        self._put_away(open=False)

    def on_started(self, _change: Change, event: Any, /) -> None:
        step = self.step
        step.start(event)
        if step.open:
            self._send_note()
        self._open_step(event.model)

    def on_usage(self, _change: Change, event: Any, /) -> None:
        self._open_step().usage = event.usage

    def on_ended(self, _change: Change, event: Any, /) -> None:
        step = self._open_step()
        is_last = False
        if isinstance(event, MessageFinish):
            step.finish(event)
            self.sources.send_found(step, event.metadata)
            calls = (fold.block for fold in self.walk.blocks.values() if isinstance(fold.block, ToolCall))
            asked = any(call.type != "server_tool_call" for call in calls)
            reason = finish_reason(event.reason, asked=asked)
            step.status = "length" if reason == "length" else "complete"
            step.reason = TO_FINISH_REASON[reason]
            is_last = reason not in ("pause", "tool_use")  # the provider goes on with its tools behind these
        else:
            step.status, step.reason = "interrupted", event.reason
        self.finish_step(None, is_last=is_last)

    def on_reset(self, _change: Change, event: Any, /) -> None:
        step = self.step
        if event.usage is not None:
            step.usage = event.usage
        said = [part for part in step.parts if isinstance(part, DataPart)]
        shown = len(step.parts) > len(said)
        if shown and self.stream.resets(step):
            self._drop_parts(step)
            self.stream.out.append({"type": "reset-step", **self.marked({})})
            self._put_away(open=True)
            self.step.note = step.note
            for own in said:
                own.send_again()
            self.step.parts.update(dict.fromkeys(said))
            return
        if shown:
            for part in step.parts:
                part.end(_ATTEMPT_FAILED)
            data = {ATTEMPT: event.attempt, **self.marks}
            self.stream.out.append({"type": ATTEMPT_RESET, "id": self.stream.new_id(), "data": data})
            self.finish_step(_ATTEMPT_FAILED)
        before = self._put_away(open=step.open)
        self.step.note = before.note
        if step.open and not shown:
            self.step.parts.update(dict.fromkeys(said))

    def _drop_parts(self, step: Step) -> None:
        """The client drops the parts of the step, so their ids can be used again."""
        for part in step.parts:
            part.release_id()
        self._calls.forget(step)
        self.sources.forget(step)

    # Blocks.

    def on_opened(self, change: Change, _event: Any, /) -> None:
        self._begin_part(change.fold)

    def on_restarted(self, change: Change, _event: Any, /) -> None:
        self._leave_part(change.fold.place)
        self._begin_part(change.fold)

    def _begin_part(self, fold: BlockFold) -> None:
        step = self._open_step()
        fold.place = part = self._new_part(step, fold)
        step.parts[part] = None
        step.count += type(part) is not Part
        if isinstance(part, TextPart):
            step.conclude(is_last=False)  # the model goes on, so it has what the provider found
        part.begin()

    def _leave_part(self, part: Part) -> None:
        """The block is not this part any more."""
        part.abandon()
        if not part.must_stay:
            part.step.parts.pop(part, None)

    def _new_part(self, step: Step, fold: BlockFold) -> Part:
        kind, shown = kind_of(fold.block), self.stream.shown
        if (kind == "reasoning" and not shown.reasoning) or (
            fold.block.type == "unsupported" and not shown.provider_items
        ):
            return Part(step, fold)
        if kind == "text" or kind == "reasoning":
            return TextPart(step, fold, kind, self._texts)
        if kind == "whole":
            return WholePart(step, fold)
        return (CallPart if kind == "call" else OutputPart)(step, fold, self._calls)

    def on_changed(self, change: Change, event: Any, /) -> None:
        self._follow(change, event.fields)

    def _follow(self, change: Change, fields: Mapping[str, Any]) -> None:
        """Send a change of the block by an event whose fields may replace text that the client has."""
        fold, before = change.fold, cast("Block", change.before)
        part: Part = fold.place
        kinds = (kind_of(before), kind_of(fold.block))
        if kinds[0] == kinds[1] and part.follow(before, fields):
            return
        step = part.step
        may_reset = self.stream.resets(step) and not any(one.is_acted_on for one in step.parts)
        if may_reset and (kinds[0] == kinds[1] or kinds == ("text", "reasoning")):
            if kinds[0] != kinds[1]:
                del step.parts[part]
                fold.place = part = self._new_part(step, fold)
                step.parts[part] = None
            self.stream.out.append({"type": "reset-step", **self.marked({})})
            self.sources.forget(step)
            self._send_note()
            for one in step.parts:
                if not isinstance(one, TextPart):
                    self.end_text()
                one.send_again()
        elif kinds[0] == kinds[1]:
            part.restart()
        else:
            self._leave_part(part)
            self._begin_part(fold)

    def on_closed(self, change: Change, event: Any, /) -> None:
        finish = isinstance(event, BlockFinish)
        if finish and event.content is not None:
            self._follow(change, event.content)
        part: Part = change.fold.place
        if change.repeated:
            self._leave_part(part)
        else:
            whole = finish or (isinstance(event, MessageFinish) and event.reason != "length")
            part.end(None if whole else CUT_OFF)
        if not finish:
            self.end_text()  # with its message

    def on_overruled(self, change: Change, event: Any, /) -> None:
        """The client may be running the call already, so it learns only that the call is now invalid."""
        part: Part = change.fold.place
        if isinstance(change.fold.block, ToolCall):
            part.take_back()
            if not isinstance(change.before, ToolCall):  # no tool runs for such a call
                self._leave_part(part)
        elif event.content is not None:
            self._follow(change, event.content)
            change.fold.place.end(None)

    def on_noted(self, _change: Change, event: Any, /) -> None:
        for call in self._calls.named(event.call_id):
            call.update()
