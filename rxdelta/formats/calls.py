"""Rules of calls that formats share: their ids, calls that must not be run, calls and arguments that come twice.

Some servers send the arguments of a call again, where the format wants each piece once:

    whole again       `{"a"`, `: 1}`, then `{"a": 1}`           vLLM's parsers, gateways
    a placeholder     `{}`, then `{"a": 1}`
    cumulative        `{"a"`, `{"a": 1`, `{"a": 1}`

JSON itself tells most of them. A fragment that begins with `{` where the text so far can't go on with an object, behind a
whole object, a key or a number, repeats the arguments. In an open string `{` is a letter like any other, so there only a
fragment that repeats all that came is a repetition. Behind a colon, in a list, or at the start an object may begin.

A repetition must agree with the arguments so far: one of the two values has all that the other has, as far as their
members have ended. The fuller one stays. If the two contradict each other both are kept, and the call is invalid, except
under another name: then it is another call.

The text so far is kept, since a repetition is only known by comparing. It is read at most once, and only when a fragment
begins with `{`; other comparisons are no longer than what the provider repeats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from rxdelta.core import CallIdentity, Event, Limits, PartialJsonParser, is_list, is_mapping, real_id
from rxdelta.core.events import ReasoningDelta, TextDelta, ToolCallDelta
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.notes import SYNTHETIC_ID

BROKEN_OFF: Final = "broken off by an error"
CUT_OFF: Final = "cut off by the token limit"
CUT_OFF_BEFORE_ARGUMENTS: Final = f"{CUT_OFF} before its arguments came"
CUT_OFF_AMID_ARGUMENTS: Final = f"{CUT_OFF} while its arguments came"
CUT_OFF_BY_FILTER: Final = "cut off by the content filter"


def given_id(value: str) -> str | None:
    """The id unchanged, or `None` for one of the known spellings of no id."""
    return None if real_id(value.strip()) is None else value


def made_up_id(message_id: str | None, index: int) -> str:
    """An id for a call that has none. The message's id makes it unique in a conversation.

    Example:
        >>> made_up_id("m1", 2), made_up_id(None, 2)
        ('call-m1-2', 'call-2')
    """
    return "-".join(filter(None, ["call", message_id, str(index)]))


def call_identity(call_id: str | None, made_up: str) -> dict[str, Any]:
    """The fields that identify a call: the provider's id, else one that the decoder made up.

    Example:
        >>> call_identity(None, "call-0"), call_identity("c1", "call-0")
        ({'id': 'call-0', 'synthetic_id': True}, {'id': 'c1'})
    """
    return {"id": call_id} if call_id else {"id": made_up, SYNTHETIC_ID: True}


def plain_id(call_id: str | None) -> str:
    """The id for a request to an API that refuses other characters, which other providers' ids may have.

    Example:
        >>> plain_id("functions.now:0"), plain_id(None)
        ('functions_now_0', 'call')
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id or "call")


def arguments_after_end(text: str) -> dict[str, Any]:
    """The content of a second finish, for a call that had ended before this text came: it can't be run.

    A call whose tool has already run keeps its type. The text is in its metadata. A decoder takes only the first piece;
    it passes on what follows, since a finish for each would cost as much as all pieces before.
    """
    return invalid_call("arguments came after the call's end") | {"late_arguments": text}


def invalid_call(error: str) -> dict[str, Any]:
    """The content of the finish of a call that must not be run. `error` is the reason."""
    return {"type": "invalid_tool_call", "error": error}


# What a reader may hold is for the reader to bound, which knows its limits. A call that is held here never gets there.
_LIMITS = Limits(index=2**62, blocks=2**62, choices=2**62, runs=2**62)

PROSE = frozenset([TextDelta, ReasoningDelta])
"""The kinds of event of which one that comes alone needs not pass the rule: most are of these."""


def knowing_calls(decoder: Decoder) -> Decoder:
    """The decoder, which holds the rule from now on, or a decoder around it that holds the rule."""
    if not isinstance(decoder, KnowsCalls):
        return _KnownCallsDecoder(decoder)
    decoder.know_calls()
    return decoder


def _all(events: Sequence[Event]) -> Sequence[Event]:
    return events


def _piece(piece: ToolCallDelta) -> Sequence[Event]:
    return (piece,)


class KnowsCalls:
    """The base of a decoder that asks the rule itself, after `know_calls`, so that a piece of text needn't pass through it.

    `know_calls` is not for a decoder whose events another one around it changes: the rule is for the events that come out.

    Attributes:
        _checked: What to emit for these events.
        _checked_piece: What to emit for a piece of arguments that comes alone.
    """

    _calls: CallIdentity | None = None
    _checked: Callable[[Sequence[Event]], Sequence[Event]] = staticmethod(_all)
    _checked_piece: Callable[[ToolCallDelta], Sequence[Event]] = staticmethod(_piece)

    def know_calls(self) -> None:
        calls = self._calls = CallIdentity(_LIMITS, keeps_messages=True)
        self._checked, self._checked_piece = calls.steps, calls.grow

    def _checked_last(self, events: Sequence[Event]) -> Sequence[Event]:
        """What to emit at the end of input, for the events that the decoder has."""
        return events if self._calls is None else [*self._checked(events), *self._calls.close()]


class _KnownCallsDecoder(KnowsCalls):
    """A decoder around another one, which doesn't know the rule."""

    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder
        self.know_calls()

    def decode(self, chunk: object, /) -> Sequence[Event]:
        events = self._decoder.decode(chunk)
        return events if len(events) == 1 and type(events[0]) in PROSE else self._checked(events)

    def close(self) -> Sequence[Event]:
        return self._checked_last(self._decoder.close())


class Change(NamedTuple):
    """What a fragment does to the arguments so far.

    Attributes:
        more: The text to add to them.
        instead: The text that takes their place.
        another: The arguments of another call of this name.
        has_id: Whether the other call came under the id of this one.
    """

    more: str = ""
    instead: str | None = None
    another: str | None = None
    has_id: bool = False


_NOTHING: Final = Change()


class Arguments:
    """The text of one call's arguments so far.

    Attributes:
        pieces: The text so far. A piece that only goes on with it (see `goes_on`) may be added here instead of by `add`;
            `None` if none does.

    Example:
        >>> arguments = Arguments()
        >>> [arguments.add(piece).more for piece in ('{"a"', '{"a": 1', '{"a": 1}', '{"a":1}')]
        ['{"a"', ': 1', '}', '']
    """

    __slots__ = (
        "_again", "_again_text", "_mark", "_mark_size", "_pieces", "_read", "_repeats", "_size", "_text",
        "_under_id", "_under_name", "_value", "pieces",
    )  # fmt: skip

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.pieces: list[str] | None = self._pieces
        self._text = _Json()  # the pieces that have been read
        self._read = self._size = 0  # their number and their length
        self._mark = self._mark_size = 0  # where the newest piece stands that may say all before it again
        self._repeats = False  # whether a piece has said all before it again, beyond doubt
        self._again: list[str] | None = None  # what says the arguments again, until it is whole
        self._again_text = _Json()
        self._under_name = self._under_id = (
            False  # whether the name, the id came again behind whole arguments
        )
        self._value: Mapping[str, Any] | None = None  # of whole arguments, once it has been asked for

    def name_again(self, *, with_id: bool) -> None:
        """The name of the call has come again, with the call's id or without one."""
        if self.is_whole:
            self._under_name, self._under_id = True, with_id

    def add(self, piece: str) -> Change:
        """Read the next piece."""
        if self._again is not None:
            return self._add_again(self._again, piece)
        if self.pieces is None:
            return Change(piece)
        start = piece.lstrip(_SPACE)
        if not start and not self._pieces:
            return Change(piece)
        if self._pieces and start.startswith("{"):
            self._look()
            if self._text.in_string:
                if self._repeats_all(start) and (self._repeats or not self._is_json_with(start)):
                    return self._repeat(start)
            elif not self._text.can_open:
                return self._say_again(start)
            elif self._repeats_since_mark(start):
                if self._repeats:
                    return self._repeat(start)
                self._mark, self._mark_size = len(self._pieces), self._size
        self._pieces.append(piece if self._pieces else start)
        return Change(piece)

    def goes_on(self, piece: str) -> bool:
        """Whether a piece, while `pieces` isn't `None`, only goes on with the text. Without `{` it does, but for the first."""
        return piece.lstrip()[:1] != "{" if self.pieces else piece[:1] == "{"

    def end(self) -> Change:
        """Decide what is open: the arguments end here."""
        if self._again is not None:
            return self._end_again("".join(self._again))
        if self._mark and self.pieces is not None and not self.is_whole:
            newest, found = "".join(self._pieces[self._mark :]), _Json()
            found.read(newest)
            if found.is_whole:
                self._replace(newest)
                return Change(instead=newest)
        return _NOTHING

    def says(self, text: str) -> bool:
        """Whether the text is a whole object that says the same as the arguments."""
        found = _Json()
        found.read(text)
        if not (found.is_whole and self.is_whole):
            return False
        again, known = _value_of(text), self._known()
        return again is not None and known is not None and _goes_on(again, known) and _goes_on(known, again)

    @property
    def is_whole(self) -> bool:
        """Whether the text so far is a whole object."""
        if self.pieces is None:
            return False
        self._look()
        return self._text.is_whole

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    def _look(self) -> None:
        """Read the pieces that have not been read."""
        if self._read < len(self._pieces):
            unread = "".join(self._pieces[self._read :])
            self._text.read(unread)
            self._size += len(unread)
            self._read = len(self._pieces)

    def _repeats_all(self, start: str) -> bool:
        return len(start) >= self._size and start.startswith(self.text)

    def _repeats_since_mark(self, start: str) -> bool:
        """Whether it begins with all that came since the mark, which itself began with all that came before it."""
        return len(start) >= self._size - self._mark_size and start.startswith(
            "".join(self._pieces[self._mark :])
        )

    def _is_json_with(self, start: str) -> bool:
        """Whether the text could go on with this, as in a key that is `{`."""
        reader = PartialJsonParser(control_characters=True)
        reader.feed(self.text + start)
        return reader.error is None

    def _repeat(self, start: str) -> Change:
        """Read a piece that begins with all that came."""
        self._repeats = True
        if self._mark:
            self._replace(start)
            return Change(instead=start)
        more = start[self._size :]
        self._replace(start)
        return Change(more)

    def _replace(self, text: str) -> None:
        self._pieces = self.pieces = [text]
        self._text, self._value = _Json(), None
        self._read = self._size = self._mark = self._mark_size = 0

    # The arguments again.

    def _say_again(self, start: str) -> Change:
        if self._repeats_all(start) or (self._mark and self._repeats_since_mark(start)):
            return self._repeat(start)
        if self._size <= _PLACEHOLDER_SIZE and _PLACEHOLDER.fullmatch(self.text):
            self._replace(start)
            return Change(instead=start)
        self._again, self._again_text, self.pieces = [], _Json(), None
        return self._add_again(self._again, start)

    def _add_again(self, again: list[str], piece: str) -> Change:
        """Read a piece of a repetition, which is held back until the repetition is whole."""
        found, start = self._again_text, piece.lstrip(_SPACE)
        if again and start.startswith("{") and not (found.in_string or found.can_open):
            if not start.startswith("".join(again)):
                return self._give_up("".join([*again, piece]))
            again.clear()
            found = self._again_text = _Json()
        again.append(piece if again else start)
        found.read(piece)
        if found.is_broken:
            return self._give_up("".join(again))
        return self._compare("".join(again)) if found.is_whole else _NOTHING

    def _compare(self, again: str) -> Change:
        """The text that says the arguments again is whole."""
        before, now, was_whole = self._known(), _value_of(again), self._text.is_whole
        named, identified = self._under_name, self._under_id
        self._under_name = self._under_id = False
        if before is None or now is None:
            return self._give_up(again)
        has_less, has_more = _goes_on(before, now), _goes_on(now, before)
        if has_less and has_more and was_whole:
            return self._take_back()
        if was_whole and named and not (identified and (has_less or has_more)):
            return self._take_back(Change(another=again, has_id=identified))
        if has_more:
            self._again = None
            self._replace(again)
            return Change(instead=again)
        return self._take_back() if was_whole and has_less else self._give_up(again)

    def _end_again(self, again: str) -> Change:
        """Decide on a repetition that ends too early."""
        before, now = self._known(), _value_of(again)
        if self._text.is_whole and self._under_name:
            return self._take_back(Change(another=again, has_id=self._under_id))
        if self._text.is_whole and before is not None and now is not None and _goes_on(before, now):
            return self._take_back()
        return self._give_up(again)

    def _take_back(self, change: Change = _NOTHING) -> Change:
        """Go on as before the repetition."""
        self._again, self.pieces = None, self._pieces
        return change

    def _give_up(self, text: str) -> Change:
        """Keep both texts, whatever follows: the newer one is no JSON, or contradicts the older."""
        self._again = self.pieces = None
        self._pieces.append(text)
        return Change(text)

    def _known(self) -> Mapping[str, Any] | None:
        """The value of the text so far; `None` if it is no JSON object."""
        if not self._text.is_whole:
            return _value_of(self.text)
        if self._value is None:
            self._value = _value_of(self.text)
        return self._value


class _Json:
    """Where a text stands in JSON, as far as it has been read. It isn't checked.

    Attributes:
        in_string: Whether it stands in a string.
        is_whole: Whether the text is an object or a list that has ended.
        is_broken: Whether something follows such a one.
    """

    __slots__ = ("_escaped", "_last", "_open", "in_string", "is_broken", "is_whole")

    def __init__(self) -> None:
        self.in_string = self.is_whole = self.is_broken = False
        self._open: list[str] = []  # the brackets
        self._last = ""  # the last letter that is no space
        self._escaped = False

    @property
    def can_open(self) -> bool:
        """Whether an object may begin here."""
        if self._last == ",":
            return bool(self._open) and self._open[-1] == "["
        return self._last in ("", ":", "[")

    def read(self, text: str) -> None:
        at = 0
        while at < len(text):
            at = self._read_string(text, at) if self.in_string else self._read_token(text, at)

    def _read_string(self, text: str, at: int) -> int:
        if self._escaped:
            self._escaped = False
            return at + 1
        stop = _STRING.match(text, at).end()  # type: ignore[union-attr]
        if stop < len(text):
            self.in_string, self._escaped = text[stop] != '"', text[stop] == "\\"
        return stop + 1

    def _read_token(self, text: str, at: int) -> int:
        found = _TOKEN.search(text, at)
        if found is None:
            return len(text)
        self.is_broken |= self.is_whole
        self.is_whole = False
        self._last = found[0][-1]
        if self._last == '"':
            self.in_string = True
        elif self._last in "{[":
            self._open.append(self._last)
        elif self._last in "}]" and self._open:
            self._open.pop()
            self.is_whole = not (self._open or self.is_broken)
        return found.end()


def _value_of(text: str) -> Mapping[str, Any] | None:
    """The object as far as it has come; `None` if the text is no JSON object."""
    reader = PartialJsonParser(control_characters=True)
    reader.feed(text)
    value = reader.value
    return value if reader.error is None and is_mapping(value) else None


def _goes_on(value: object, start: object) -> bool:
    """Whether a value is all that another has, or more: further keys and items, and longer strings."""
    if is_mapping(start):
        return is_mapping(value) and all(
            name in value and _goes_on(value[name], start[name]) for name in start
        )
    if is_list(start):
        return is_list(value) and len(value) >= len(start) and all(map(_goes_on, value, start))
    if isinstance(start, str):
        return isinstance(value, str) and value.startswith(start)
    return type(value) is type(start) and value == start


_SPACE: Final = " \t\r\n"
_STRING: Final = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*', re.DOTALL)
_TOKEN: Final = re.compile(r'["{}\[\]:,]|[^\s"{}\[\]:,]+')

_PLACEHOLDER: Final = re.compile(r'\{\s*\}|null|""')
_PLACEHOLDER_SIZE: Final = 16
