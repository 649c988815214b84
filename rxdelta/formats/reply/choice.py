"""One choice at the client: its runs, of which one is written at a time, their messages, and the parts of those."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NoReturn, cast

from rxdelta.core import (
    Block,
    BlockFold,
    Change,
    ChangeReader,
    Event,
    InvalidJson,
    Limits,
    StreamInterrupted,
    TokenUsage,
    ToolCall,
    Walk,
    finish_reason,
    parse_arguments,
    parse_json,
    thaw,
)
from rxdelta.core.events import MessageFinish, MessageInterrupted
from rxdelta.formats.conversation import text_of
from rxdelta.formats.encoding import whole_characters
from rxdelta.formats.reply.writer import Counts, Writer, billed, sum_of
from rxdelta.formats.runs import Lanes, RunIdentity


class Part:
    """A block and what the client has of it. This base class is a block that the client never sees.

    Args:
        run: The run that the block belongs to.
        fold: The block's content so far.

    Attributes:
        told: Whether the client has anything of it that can't be taken back, which is all but reasoning.
    """

    def __init__(self, run: Run, fold: BlockFold) -> None:
        self.run = run
        self.fold = fold
        self.told = False

    def grow(self, _piece: str, /) -> None:
        """Send the piece of a delta that continues the block, which needn't have it yet."""

    def follow(self, _before: Block, /) -> None:
        """The block has changed otherwise than by a piece."""

    def catch_up(self) -> None:
        """Send what the client lacks of the block."""


class CallPart(Part):
    """A call that the client may have to run.

    It is sent piece by piece if it is certain that the server doesn't run it; else at the end of the stream.

    Attributes:
        number: The number of the call among those that the client has.
        call_id: The id by which the client knows it.
    """

    def __init__(self, run: Run, fold: BlockFold) -> None:
        super().__init__(run, fold)
        self.number = 0
        self.call_id = ""
        self._sent = 0  # characters of the arguments that the client has
        self._half = ""  # the first half of a character

    # For a format to write.

    def write_start(self) -> None:
        """Write the call without its arguments."""

    def write_piece(self, piece: str, /) -> None:
        """Write a piece of the arguments."""

    def write_end(self) -> None:
        """The client has all that comes of the call."""

    def write_whole(self) -> None:
        """Write a call that has ended."""
        self.begin()
        self._send(self.arguments())
        self.write_end()

    def comes_whole(self) -> bool:
        """Whether the format has no pieces of such a call. Such a call is written in its place at its end."""
        return False

    def arguments(self) -> str:
        """The arguments of a call that has ended, as a text of JSON."""
        given = self.call.arguments
        return "{}" if given is None else text_of(given)

    def arguments_as_object(self) -> dict[str, Any]:
        """The arguments of such a call for a format that has only objects. A custom call's text is its `input`."""
        given: Any = thaw(self.call.arguments)
        if isinstance(given, dict):
            return cast("dict[str, Any]", given)
        return {"input": given} if given else {}

    # The state at the client.

    @property
    def call(self) -> ToolCall:
        return cast("ToolCall", self.fold.block)

    def grow(self, piece: str, /) -> None:
        if self.told:
            if self._half or not piece.isascii():
                piece, self._half = whole_characters(self._half, piece)
            self._send(piece)

    def _send(self, piece: str) -> None:
        if piece:
            self._sent += len(piece)
            self.write_piece(piece)

    def follow(self, before: Block, /) -> None:
        call, sent = self.call, cast("ToolCall", before).arguments
        if not self.told:
            return
        if call.name != cast("ToolCall", before).name:
            self.run.take_back()  # the client would run another tool
        if not isinstance(sent, str):
            return
        if isinstance(call.arguments, str):
            if not call.arguments.startswith(sent[: self._sent]):
                self.run.take_back()
        elif _parsed(sent) != call.arguments:
            whole = self.arguments()
            if not whole.startswith(sent):
                self.run.take_back()
            self._send(whole[len(sent) :])

    def catch_up(self) -> None:
        call, choice = self.call, self.run.choice
        if not choice.writer.streams(call):
            return
        if self.comes_whole():
            self._catch_up_whole()
            return
        if not (self.told or choice.writer.begins(call)) or not choice.turn(self):
            return
        if not self.told:
            self.begin()
        if isinstance(call.arguments, str):
            self._send(call.arguments[self._sent :])
            self._half = self.fold.half
        elif is_whole(call) and not self._sent:
            self._send(self.arguments())
        if not call.open:
            self.end()

    def _catch_up_whole(self) -> None:
        call, choice = self.call, self.run.choice
        if self.told:
            return
        if call.open:
            if choice.writer.begins(call):
                choice.turn(self)  # which keeps the call's place
        elif choice.turn(self):
            if is_whole(call) and not self.is_taken:
                self.write_whole()
            choice.release(self)

    def end(self) -> None:
        """The block of a call that the client has pieces of has ended."""

    @property
    def is_taken(self) -> bool:
        """Whether somebody else than the client has begun to run the call, or decides whether it runs."""
        return is_taken(self.call)

    def begin(self) -> None:
        """The client gets the call."""
        self.claim()
        self.write_start()

    def claim(self) -> None:
        """Give the call its number and its id."""
        choice = self.run.choice
        self.told, self.number = True, choice.calls
        choice.calls += 1
        self.call_id = self.call.call_id or f"call-{choice.index}-{self.number}"

    def send_whole(self) -> None:
        """Send the call at the end of the stream, unless somebody has run it, or nobody must run it."""
        call = self.call
        if self.told or self.is_taken or not is_whole(call) or self.run.choice.writer.keeps(call):
            return
        if not self.run.choice.turn(self):
            self.run.take_back()
        self.write_whole()
        self.run.choice.release(self)

    def check(self) -> None:
        """The message is over: take back a call that the client could run by mistake."""
        call, run = self.call, self.run
        if not self.told:
            return
        if is_whole(call):
            # The server runs it, although the call was said to be the client's. One that failed was of an unknown tool.
            if self.is_taken and call.metadata.get("execution_status") != "failed":
                run.take_back()
            return
        if run.reason == "length":  # by which clients know that the call may be cut
            run.choice.has_cut_call = True
        elif not is_unreadable(call):
            run.take_back()


def is_whole(call: ToolCall) -> bool:
    """Whether a client may run the call."""
    return call.type == "tool_call" and call.status == "complete" and bool(call.name)


def is_taken(call: ToolCall) -> bool:
    """Whether somebody has begun to run the call, or decides whether it runs."""
    return call.result is not None or call.metadata.get("execution_status") not in (None, "identified")


def is_unreadable(call: ToolCall) -> bool:
    """Whether a client that has got the invalid call can't take it for a whole one, and so doesn't run it."""
    text = call.arguments
    if not isinstance(text, str) or not text.strip() or not call.name:
        return False
    try:
        parse_json(text)
    except InvalidJson:
        return True
    return False


def _parsed(text: str) -> object:
    try:
        return parse_arguments(text)
    except InvalidJson:
        return None


_CUT: Final = "the stream went on, or ended, while the call was open"
_INTERRUPTED: Final = "The reply was interrupted."


class Choice:
    """One choice, and its state at the client.

    The client reads one message after the other. If messages of several runs overlap, the first is sent as it comes,
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

    # For a format to act at these moments.

    def open(self, run: Run, /) -> None:
        """The first message begins, which is this run's."""

    def next_message(self) -> None:
        """Another message follows, or another attempt at this one."""

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


class Run(ChangeReader):
    """One run of the choice, and its state at the client.

    Args:
        choice: The choice that the run belongs to.
        walk: Follows the run's messages.
        first: The first run of the choice; `None` if this is the first.

    Attributes:
        identity: Which run of the stream it is.
        is_open: Whether the client is to get more of the message.
        is_held: Whether the message was interrupted, and the client gets its end only if the reply goes on.
        reason: Why the last message ended.
        interrupted: Why it was interrupted, if it was.
    """

    def __init__(self, choice: Choice, walk: Walk, first: Run | None) -> None:
        self.choice = choice
        self.walk = walk
        self.is_open = self.is_held = False
        self.identity: RunIdentity = RunIdentity(None if first is None else first.identity)
        self.reason: str | None = None
        self.interrupted: str | None = None
        self.number = 0 if first is None else len(choice.runs)  # as the runs began
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

    @property
    def hidden(self) -> bool:
        """Whether the run works for another one, so that the client sees nothing of it."""
        return self.identity.subagent

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""
        self.identity.begin(event.run_id or "")

    def encode(self, event: Event) -> None:
        """Send what another event of this run, or of every run, changes."""
        self.identity.read_parent(event)
        if (
            isinstance(event, MessageInterrupted)
            and self.walk.over
            and any(part.is_taken for part in self._calls())
        ):
            self.interrupted = event.reason or _INTERRUPTED  # between an agent's turns
        changes = self.walk.step(event)
        if isinstance(event, MessageInterrupted) and self.choice.holds_interrupted:
            changes = [change for change in changes if change.fold is None]  # not the ends of its blocks
        self.read_changes(changes, event)

    def take_back(self) -> NoReturn:
        """The reply takes back what the client has.

        Raises:
            StreamInterrupted: Always, since the format can't.
        """
        raise StreamInterrupted("the reply took back what the client had got of it")

    # Parts that wait.

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

    def on_another(self, _change: Change, _event: Any, /) -> None:
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

    def on_started(self, _change: Change, event: Any, /) -> None:
        self._usage = self._usage or event.usage
        if not self.hidden:
            self.choice.writer.know(event)
        self._begin()

    def _begin(self) -> None:
        if not self.hidden:
            self.is_open = True
            self.choice.begin(self)

    def on_usage(self, _change: Change, event: Any, /) -> None:
        self._usage = event.usage

    def on_ended(self, _change: Change, event: Any, /) -> None:
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

    def on_reset(self, _change: Change, event: Any, /) -> None:
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

    def on_opened(self, change: Change, _event: Any, /) -> None:
        self._begin_part(self._part_of(change.fold))

    def _begin_part(self, part: Part) -> None:
        part.fold.place = part
        self._parts.append(part)
        self._begin()
        if self.speaks:
            part.catch_up()

    def on_restarted(self, change: Change, _event: Any, /) -> None:
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

    def on_changed(self, change: Change, _event: Any, /) -> None:
        part: Part = change.fold.place
        now = self._part_of(change.fold)
        if type(now) is not type(part):
            self._replace(change, now)
            return
        part.follow(cast("Block", change.before))
        if self.speaks:
            part.catch_up()

    on_closed = on_overruled = on_changed
