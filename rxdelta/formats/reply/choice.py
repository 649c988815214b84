"""What the client has of one choice: its runs, of which one is written at a time, and their messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final, NoReturn, cast

from rxdelta.core import (
    Block,
    BlockFold,
    Change,
    Event,
    Limits,
    StreamInterrupted,
    TokenUsage,
    Walk,
    finish_reason,
)
from rxdelta.core.events import AttemptReset, MessageFinish, MessageInterrupted, MessageStart
from rxdelta.formats.reply.parts import CallPart, Part
from rxdelta.formats.reply.usage import billed, sum_of
from rxdelta.formats.reply.writer import Counts, Writer
from rxdelta.formats.run_lanes import Lanes

__all__ = ["Choice", "Run"]

_CUT: Final = "the stream went on, or ended, while the call was open"
_INTERRUPTED: Final = "The reply was interrupted."


class Choice:
    """What the client has of one choice.

    The client reads one message after the other. Of messages of several runs that overlap, the first is sent as it comes,
    and the next when that one has ended.

    Args:
        writer: Writes the frames.
        index: The number of the choice.
        limits: Bounds what is kept.

    Attributes:
        runs: The runs.
        speaker: The run whose message is being sent.
        last: The run whose message ended last.
        calls: How many calls the client has.
        has_cut_call: Whether one of them was cut by the token limit.
    """

    def __init__(self, writer: Writer, index: int, limits: Limits) -> None:
        self.writer = writer
        self.index = index
        self.calls = 0
        self.has_cut_call = False
        self.speaker: Run | None = None
        self._waiting: set[Run] = set()  # also the one whose message is being sent
        self._has_begun = False

        def make(walk: Walk, first: Run | None) -> Run:
            return Run(self, walk, first)

        self.runs = Lanes(make, index, limits)
        self.last = self.runs.first

    holds_interrupted = False
    """Whether nothing of an interrupted message is ended, since clients take what has ended for whole."""

    # What a format does at these moments.

    def open(self, run: Run, /) -> None:
        """The first message begins, which is this run's."""

    def next_message(self) -> None:
        """What follows is another message's, or another attempt at this one."""

    def forget(self, _: Sequence[Part], /) -> None:
        """Nothing more comes of these parts of the message that is being sent."""

    def end_reply(self, run: Run, reason: str, /) -> None:
        """The reply has ended, with this run's message, for this reason, one of `rd.types.FinishReason`."""

    def part_of(self, run: Run, fold: BlockFold, /) -> Part:
        """A new part for a block; by default one that the client never sees."""
        return Part(run, fold)

    def turn(self, _: Part, /) -> bool:
        """Whether this call or item may be written now. If not, it catches up when it may."""
        return True

    def release(self, _: Part, /) -> None:
        """Nothing more is written of this call or item, which had its turn."""

    # The runs.

    def begin(self, run: Run) -> None:
        """A message of the run begins, or goes on. It is sent if none of another run is being sent."""
        if not self._has_begun:
            self._has_begun = True
            self.open(run)
        self._waiting.add(run)
        if self.speaker is not None and self.speaker is not run and self.speaker.is_held:
            self.speaker.leave()  # the reply goes on behind it
        if self.speaker is None:
            self.speaker = run
            self.next_message()

    def end(self) -> None:
        """The message that was being sent has ended: send those that have waited for it."""
        self.speaker = None
        for run in sorted(self._waiting, key=lambda run: run.number):
            run.send_ended()
            if not run.is_open:
                self._waiting.discard(run)
            elif self.speaker is None:
                self.begin(run)
                run.catch_up()

    def usage(self) -> Counts:
        """The usage of all runs."""
        return sum_of(run.usage() for run in self.runs)

    def break_off(self) -> None:
        """Send everything that waits, because the stream has failed."""
        runs = [*self.runs]
        for run in sorted(runs, key=lambda run: run is not self.speaker):
            run.break_off()
        self.end()

    def finish(self) -> str | None:
        """The stream is complete: send the calls that are left to the client, and why the reply ended.

        Returns:
            Why it was interrupted, if it was.

        Raises:
            StreamInterrupted: The client has a call that must not be run.
        """
        run = self.last
        if run.interrupted is not None:
            return run.interrupted
        for one in self.runs:
            one.check_calls()
        if self.has_cut_call and run.reason != "length":  # the reply has one end, which would hide the cut
            run.take_back()
        run.send_calls()
        self.end_reply(run, finish_reason(run.reason, asked=self.calls > 0))
        return None


class Run:
    """What the client has of one run.

    Args:
        choice: The choice that the run belongs to.
        walk: Follows the run's messages.
        first: The first run of the choice; `None` if this is the first.

    Attributes:
        hidden: Whether the run works for another one, so that the client sees nothing of it.
        is_open: Whether the client is to get more of the message.
        is_held: Whether the message was interrupted, and the client gets its end only if the reply goes on.
        reason: Why the last message ended.
        interrupted: Why it was interrupted, if it was.
    """

    def __init__(self, choice: Choice, walk: Walk, first: Run | None) -> None:
        self.choice = choice
        self.walk = walk
        self.hidden = self.is_open = self.is_held = self._is_new = False
        self.reason: str | None = None
        self.interrupted: str | None = None
        self._first = first
        self.number = 0 if first is None else len(choice.runs)  # as the runs began
        self._parent: str | None = None
        self._parts: list[Part] = []  # of the message
        self._ended: list[list[Part]] = []  # the messages that have ended and wait for another run's
        self._usage: TokenUsage | None = None
        self._past_usage: Counts = {}  # of the messages and attempts before

    @property
    def speaks(self) -> bool:
        """Whether the message is being sent."""
        return self.choice.speaker is self

    def usage(self) -> Counts:
        """The usage of all messages and attempts of the run."""
        return sum_of([self._past_usage, billed(self._usage)])

    def begin(self, _: Event, /) -> None:
        """The run begins with this event."""
        self._is_new = True

    def encode(self, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        if self._is_new and not isinstance(event, AttemptReset):
            self._read_parent(event)
        if (
            isinstance(event, MessageInterrupted)
            and self.walk.over
            and any(part.is_taken for part in self._calls())
        ):
            self.interrupted = event.reason or _INTERRUPTED  # between an agent's turns
        changes = self.walk.step(event)
        if isinstance(event, MessageInterrupted) and self.choice.holds_interrupted:
            changes = [change for change in changes if change.fold is None]  # not the ends of its blocks
        for change in changes:
            self._CHANGES[change.kind](self, event, change)

    def _read_parent(self, event: Event) -> None:
        self._is_new, first = False, self._first
        self._parent = event.parent_run_id if isinstance(event, MessageStart) else None
        self.hidden = first is not None and self._parent not in (None, first._parent)

    def take_back(self) -> NoReturn:
        """The reply takes back what the client has.

        Raises:
            StreamInterrupted: Always, since the format can't.
        """
        raise StreamInterrupted("the reply took back what the client had got of it")

    # What waits.

    def catch_up(self) -> None:
        for part in self._parts:
            part.catch_up()

    def send_ended(self) -> None:
        """Send the messages that have ended and were held back."""
        ended, self._ended = self._ended, []
        for parts in ended:
            self.choice.next_message()
            for part in parts:
                part.catch_up()

    def break_off(self) -> None:
        """End the message as it is, because the stream has failed."""
        self.leave()

    def send_calls(self) -> None:
        """Send the calls of the last message that nobody has run."""
        for call in self._calls():
            call.send_whole()

    def check_calls(self) -> None:
        """Take back the reply if the client could run a call of the message by mistake."""
        for call in self._calls():
            call.check()

    def _calls(self) -> list[CallPart]:
        return [part for part in self._parts if isinstance(part, CallPart)]

    # Messages.

    def _another(self, _event: Any, _: Change) -> None:
        self.leave()
        self.check_calls()
        self._put_away()

    def leave(self) -> None:
        """Nothing more of the message comes."""
        if not self.is_open:
            return
        self.is_open = self.is_held = False
        for part in self._parts:
            part.fold.finish(cut=_CUT)
        if self.speaks:
            self.catch_up()
            self.choice.end()
        else:
            self._ended.append(self._parts)

    def _put_away(self) -> None:
        """Go on with another message, or another attempt at this one."""
        self._past_usage = self.usage()
        self._usage = self.reason = None
        self._parts = []

    def _started(self, event: Any, _: Change) -> None:
        self._usage = self._usage or event.usage
        if not self.hidden:
            self.choice.writer.know(event)
        self._begin()

    def _begin(self) -> None:
        if not self.hidden:
            self.is_open = True
            self.choice.begin(self)

    def _spent(self, event: Any, _: Change) -> None:
        self._usage = event.usage

    def _end(self, event: Any, _: Change) -> None:
        if isinstance(event, MessageInterrupted):
            self.interrupted = event.reason or _INTERRUPTED
        else:
            self.reason, self.interrupted = event.reason, None
            self._usage = event.usage or self._usage
        if not self.hidden:
            if isinstance(event, MessageFinish):
                self.choice.writer.know(event)
            self._begin()
            self.choice.last = self
            self.is_held = isinstance(event, MessageInterrupted) and self.choice.holds_interrupted
            if not self.is_held:
                self.leave()

    def _reset(self, event: Any, _: Change) -> None:
        if any(part.told for part in self._parts):
            self.take_back()
        self._usage = event.usage or self._usage
        parts = self._parts
        self._put_away()
        if self.speaks:
            self.choice.forget(parts)
            self.choice.next_message()

    # Blocks.

    def _part_of(self, fold: BlockFold) -> Part:
        return Part(self, fold) if self.hidden else self.choice.part_of(self, fold)

    def _opened(self, _event: Any, change: Change) -> None:
        self._begin_part(self._part_of(change.fold))

    def _begin_part(self, part: Part) -> None:
        part.fold.place = part
        self._parts.append(part)
        self._begin()
        if self.speaks:
            part.catch_up()

    def _restarted(self, _event: Any, change: Change) -> None:
        self._replace(change, self._part_of(change.fold))

    def _replace(self, change: Change, part: Part) -> None:
        before: Part = change.fold.place
        self._parts.remove(before)  # also in front of an error, since the block may be of another type now
        if before.told:
            self.take_back()
        before.fold = BlockFold(cast("Block", change.before))  # which the block isn't any more
        if self.speaks:
            self.choice.forget([before])
        self._begin_part(part)

    def _changed(self, _event: Any, change: Change) -> None:
        part: Part = change.fold.place
        now = self._part_of(change.fold)
        if type(now) is not type(part):
            self._replace(change, now)
            return
        part.follow(cast("Block", change.before))
        if self.speaks:
            part.catch_up()

    def _passes_by(self, _event: Any, _: Change) -> None: ...

    _CHANGES: ClassVar[dict[str, Callable[[Run, Any, Change], None]]] = {
        "another": _another,
        "started": _started,
        "usage": _spent,
        "ended": _end,
        "reset": _reset,
        "opened": _opened,
        "restarted": _restarted,
        "changed": _changed,
        "closed": _changed,
        "overruled": _changed,
        "noted": _passes_by,
    }
