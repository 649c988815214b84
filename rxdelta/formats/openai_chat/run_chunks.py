"""One choice of a chat completion: its runs, of which one is written at a time, and their messages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn, cast

from rxdelta.core import Block, Change, Event, Limits, StreamInterrupted, TokenUsage, Walk, finish_reason
from rxdelta.core.events import AttemptReset, MessageFinish, MessageInterrupted, MessageStart
from rxdelta.formats.openai_chat.block_chunks import CallPart, Part, part_of
from rxdelta.formats.openai_chat.usage import billed, sum_of
from rxdelta.formats.run_lanes import Lanes

if TYPE_CHECKING:
    from rxdelta.formats.openai_chat.encoder import Chunks

__all__ = ["ChoiceChunks", "RunChunks"]

_BLANK_LINE: Final = "\n\n"
_CUT: Final = "the stream went on, or ended, while the call was open"
_INTERRUPTED: Final = "The reply was interrupted."


class ChoiceChunks:
    """What the client has of one choice.

    The client reads one message after the other. Of messages of several runs that overlap, the first is sent as it comes,
    and the next when that one has ended.

    Args:
        chunks: Writes the chunks.
        index: The number of the choice.
        limits: Bounds what is kept.

    Attributes:
        runs: The runs.
        speaker: The run whose message is being sent.
        last: The run whose message ended last.
    """

    def __init__(self, chunks: Chunks, index: int, limits: Limits) -> None:
        self.chunks = chunks
        self.index = index
        self.speaker: RunChunks | None = None
        self._waiting: set[RunChunks] = set()  # also the one whose message is being sent
        self._has_role = False
        self._lengths: dict[str, int] = {}  # of the fields that have text
        self._breaks: set[str] = set()  # the fields whose next text is another message's
        self._calls = 0
        self._listed = Counter[str]()  # how many entries the other lists have

        def make(walk: Walk, first: RunChunks | None) -> RunChunks:
            return RunChunks(self, walk, first)

        self.runs = Lanes(make, index, limits)
        self.last = self.runs.first

    def begin(self, run: RunChunks) -> None:
        """A message of the run begins, or goes on. It is sent if none of another run is being sent."""
        if not self._has_role:
            self._has_role = True
            self.write({"role": "assistant", "content": ""})
        self._waiting.add(run)
        if self.speaker is None:
            self.speaker = run
            self.break_texts()

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
        run.send_calls()
        reason = finish_reason(run.reason, asked=self._calls > 0)
        self.write({}, "tool_calls" if reason == "tool_use" else reason)
        return None

    # Pieces of the message.

    def write(self, delta: Any, finish_reason: str | None = None) -> None:
        self.chunks.write(self.index, delta, finish_reason)

    def say(self, field: str, piece: str) -> int:
        """Send a piece of text, behind a blank line if it begins another message's. Return the field's length."""
        if field in self._breaks:
            self._breaks.remove(field)
            self._lengths[field] += len(_BLANK_LINE)
            self.write({field: _BLANK_LINE})
        end = self._lengths[field] = self._lengths.get(field, 0) + len(piece)
        self.write({field: piece})
        return end

    def length(self, field: str) -> int:
        """The length of what the client has in a field."""
        return self._lengths.get(field, 0)

    def add(self, field: str, entries: Iterable[Any]) -> None:
        """Send entries of a list with their numbers, without which OpenAI's helper for streams can't add them up."""
        numbered = [{"index": place, **entry} for place, entry in enumerate(entries, self._listed[field])]
        self._listed[field] += len(numbered)
        self.write({field: numbered})

    def break_texts(self) -> None:
        """The next text of each field is another message's."""
        self._breaks = {*self._lengths}

    def next_call(self) -> int:
        self._calls += 1
        return self._calls - 1


class RunChunks:
    """What the client has of one run.

    Args:
        choice: The choice that the run belongs to.
        walk: Follows the run's messages.
        first: The first run of the choice; `None` if this is the first.

    Attributes:
        hidden: Whether the run works for another one, so that the client sees nothing of it.
        is_open: Whether the client is to get more of the message.
        reason: Why the last message ended.
        interrupted: Why it was interrupted, if it was.
    """

    def __init__(self, choice: ChoiceChunks, walk: Walk, first: RunChunks | None) -> None:
        self.choice = choice
        self.walk = walk
        self.hidden = self.is_open = self._is_new = False
        self.reason: str | None = None
        self.interrupted: str | None = None
        self._first = first
        self.number = 0 if first is None else len(choice.runs)  # as the runs began
        self._parent: str | None = None
        self._parts: list[Part] = []  # of the message
        self._ended: list[list[Part]] = []  # the messages that have ended and wait for another run's
        self._usage: TokenUsage | None = None
        self._past_usage: Mapping[str, int] = {}  # of the messages and attempts before

    @property
    def speaks(self) -> bool:
        """Whether the message is being sent."""
        return self.choice.speaker is self

    def usage(self) -> Mapping[str, int]:
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
        for change in self.walk.step(event):
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
        raise StreamInterrupted("the reply took back what the client of a chat completion had got of it")

    # What waits.

    def catch_up(self) -> None:
        for part in self._parts:
            part.catch_up()

    def send_ended(self) -> None:
        """Send the messages that have ended and were held back."""
        ended, self._ended = self._ended, []
        for parts in ended:
            self.choice.break_texts()
            for part in parts:
                part.catch_up()

    def break_off(self) -> None:
        """End the message as it is, because the stream has failed."""
        self._leave()

    def send_calls(self) -> None:
        """Send the calls of the last message that nobody has run."""
        for call in self._calls():
            call.send_whole()

    def _calls(self) -> list[CallPart]:
        return [part for part in self._parts if isinstance(part, CallPart)]

    # Messages.

    def _another(self, _event: Any, _: Change) -> None:
        self._leave()
        self._put_away()

    def _leave(self) -> None:
        """Nothing more of the message comes."""
        if not self.is_open:
            return
        self.is_open = False
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
        self._usage = None
        self._parts = []

    def _started(self, event: Any, _: Change) -> None:
        self._usage = self._usage or event.usage
        if not self.hidden:
            self.choice.chunks.know(event)
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
                self.choice.chunks.know(event)
            self._begin()
            self.choice.last = self
            self._leave()

    def _reset(self, event: Any, _: Change) -> None:
        if any(part.told for part in self._parts):
            self.take_back()
        self._usage = event.usage or self._usage
        self._put_away()
        if self.speaks:
            self.choice.break_texts()

    # Blocks.

    def _opened(self, _event: Any, change: Change) -> None:
        self._begin_part(part_of(self, change.fold))

    def _begin_part(self, part: Part) -> None:
        part.fold.place = part
        self._parts.append(part)
        self._begin()
        if self.speaks:
            part.catch_up()

    def _restarted(self, _event: Any, change: Change) -> None:
        self._replace(change.fold.place, part_of(self, change.fold))

    def _replace(self, before: Part, part: Part) -> None:
        self._parts.remove(before)  # also in front of an error, since the block may be of another type now
        if before.told:
            self.take_back()
        self._begin_part(part)

    def _changed(self, _event: Any, change: Change) -> None:
        part: Part = change.fold.place
        now = part_of(self, change.fold)
        if type(now) is not type(part):
            self._replace(part, now)
            return
        part.follow(cast("Block", change.before))
        if self.speaks:
            part.catch_up()

    def _passes_by(self, _event: Any, _: Change) -> None: ...

    _CHANGES: ClassVar[dict[str, Callable[[RunChunks, Any, Change], None]]] = {
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
