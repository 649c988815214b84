"""Blocks of a reply that is written to a client: what the client has of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from rxdelta.core import Block, BlockFold, InvalidJson, ToolCall, parse_arguments, parse_json, thaw
from rxdelta.formats.conversation import text_of
from rxdelta.formats.encoding import whole_characters

if TYPE_CHECKING:
    from rxdelta.formats.reply.choice import Run

__all__ = ["CallPart", "Part", "is_taken", "is_unreadable", "is_whole"]


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

    # What a format writes.

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

    # What the client has.

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
