"""The continuation of a message that broke off, as further events of the same message.

Its beginning may repeat the end of the text that broke off: the overlap, which is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from unicodedata import category

import attrs

from rxdelta.core import (
    SPACELESS,
    CallIdentity,
    ContentPart,
    Event,
    FrozenDict,
    Snapshot,
    TokenUsage,
    ToolCall,
    concerns_any_run,
    concerns_choice,
    to_events,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    Index,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ProviderEvent,
    TextDelta,
    UsageUpdate,
)

_PROSE = ("text", "reasoning", "refusal")  # blocks that are useful although they broke off
_NO_RUN: Any = object()


def can_be_continued(partial: Snapshot) -> bool:
    """Whether the reply has content, and no open block that is useless when incomplete: a call, an image."""
    has_content = any(
        not block.open or (isinstance(block, ContentPart) and block.text) for block in partial.blocks
    )
    return (
        has_content
        and partial.status == "incomplete"
        and all(
            isinstance(block, ContentPart) and block.type in _PROSE for block in partial.blocks if block.open
        )
    )


class Continuation:
    """Rewrites the events of a second request so that they continue the message of the first.

    Its blocks follow the existing ones. Its first text, if only reasoning and calls that the message has come before it,
    continues the text that broke off; what it repeats of that text is left out. Its usage is added to the message's usage.
    The run in which it begins becomes the run of the message; events of other runs and choices are left as they are. A
    call that the message has is left out.

    Args:
        partial: The message that broke off.
        min_overlap: The least number of characters that are left out.
        before: The continuation that broke off with this message, if that was one.
    """

    def __init__(self, partial: Snapshot, min_overlap: int, before: Continuation | None = None) -> None:
        last = partial.blocks[-1]
        broken = last.open and last.type == "text" and isinstance(last, ContentPart)
        self._lane: dict[str, Any] = {"choice": partial.choice, "run_id": partial.run_id}
        self._their_run: Any = _NO_RUN
        self._start: MessageStart | None = None
        self._usage = partial.usage
        self._resumed_at = len(partial.text)
        self._broken_text: str = (last.text or "") if broken and isinstance(last, ContentPart) else ""
        self._min_overlap = min_overlap
        self._overlap = Overlap(self._broken_text, min_overlap)
        self._repeated = 0 if before is None else before.repeated
        self._broken: Any = last.key if broken else None  # the text that broke off
        self._joined: Any = None  # the continuation's index of the block that continues it
        self._unfinished: list[Any] = [
            block.key for block in partial.blocks if block.open and not (broken and block is last)
        ]
        self._call_ids = {
            block.call_id
            for block in partial.blocks
            if isinstance(block, ToolCall) and block.call_id is not None
        }
        self._used_keys: set[Any] = {block.key for block in partial.blocks}
        self._offset = 1 + max((key for key in self._used_keys if isinstance(key, int)), default=-1)
        self._indexes: dict[Index, Index] = {}
        self._calls: CallIdentity = _calls_of(partial) if before is None else before._calls
        self._calls.drop_held()
        self._behind: list[Event] = []  # the application's events that came behind text that is held

    @property
    def repeated(self) -> int:
        """The number of characters that the continuations of this message have left out."""
        return self._repeated + self._overlap.length

    def first(self) -> Sequence[Event]:
        """Return the events before the continuation: they finish the blocks that it won't continue."""
        return [BlockFinish(key, **self._lane) for key in self._unfinished]

    def rewrite(self, event: Event) -> Sequence[Event]:
        return self._calls.steps(self._rewritten(event))

    def end(self) -> Sequence[Event]:
        """Return what is held, since the continuation has broken off and there is no other."""
        return [*self.held(), *self._calls.close()]

    def _rewritten(self, event: Event) -> Sequence[Event]:
        if isinstance(event, MessageInterrupted):
            return [*self.held(), event]
        if isinstance(event, Custom):
            return self._custom(event)
        if concerns_any_run(event):
            return [event]
        if self._their_run is _NO_RUN and not isinstance(event, ProviderEvent):
            self._their_run = event.run_id
        theirs = self._their_run in (_NO_RUN, event.run_id)
        if not (theirs and concerns_choice(event, self._lane["choice"])):
            return [event]
        if event.run_id != self._lane["run_id"]:
            event = attrs.evolve(event, run_id=self._lane["run_id"])
        return self._rewrite(event)

    def held(self) -> Sequence[Event]:
        """Return the text that was held, because more of it could have shown that it is an overlap."""
        return self._text(self._overlap.close())

    def behind(self) -> Sequence[Event]:
        """Return the application's events that came behind text that was held."""
        behind, self._behind = self._behind, []
        return behind

    def _custom(self, event: Custom) -> Sequence[Event]:
        if event.run_id is not None and self._their_run in (_NO_RUN, event.run_id):
            event = attrs.evolve(event, run_id=self._lane["run_id"])
        self._behind.append(event)
        return self._text("")

    def _rewrite(self, event: Event) -> Sequence[Event]:
        if isinstance(event, MessageStart):
            return self._message_start(event)
        if isinstance(event, UsageUpdate):
            return [attrs.evolve(event, usage=self._total(event.usage))]
        if isinstance(event, MessageFinish):
            return self._message_finish(event)
        if isinstance(event, BlockStart):
            return self._block_start(event)
        given: Any = event
        index = getattr(given, "index", None)
        if index is None:
            return [event]
        if index != self._joined:
            return [attrs.evolve(given, index=self._index(index))]
        if isinstance(event, TextDelta):
            return self._text(self._overlap.feed(event.text))
        if isinstance(event, BlockFinish):
            content = None if event.content is None else self._whole(event.content)
            return [*self.held(), attrs.evolve(event, index=self._index(index), content=content)]
        if isinstance(event, BlockDelta):
            whole = attrs.evolve(event, index=self._index(index), fields=self._whole(event.fields))
            return [whole, *self._text("")]
        return [attrs.evolve(given, index=self._index(index))]

    def _message_start(self, event: MessageStart) -> Sequence[Event]:
        first = self._start is None
        self._start = self._start or event
        if not first and (event.id is None or event.id != self._start.id):
            return [event]  # another message, which the fold refuses
        return [] if event.usage is None else [UsageUpdate(self._total(event.usage), **self._lane)]

    def _message_finish(self, event: MessageFinish) -> Sequence[Event]:
        before = [*self.held(), *self._close()]
        usage = None if event.usage is None else self._total(event.usage)
        joint = {"resumed_at": self._resumed_at, "overlap": self.repeated}
        return [*before, attrs.evolve(event, usage=usage, metadata=FrozenDict({**event.metadata, **joint}))]

    def _block_start(self, event: BlockStart) -> Sequence[Event]:
        kind = event.content.get("type", "text")
        if event.index == self._joined:
            return []
        if kind == "text" and self._broken is not None:
            self._joined = event.index
            self._indexes[event.index] = self._broken
            self._broken = None
            text = event.content.get("text")
            return self._text(self._overlap.feed(text)) if isinstance(text, str) else []
        # A call that the message has is left out, so it parts no texts.
        parts_texts = kind != "reasoning" and event.content.get("id") not in self._call_ids
        closed = [*self.held(), *self._close()] if parts_texts else []
        return [*closed, attrs.evolve(event, index=self._index(event.index))]

    def _text(self, text: str) -> Sequence[Event]:
        delta = [TextDelta(self._indexes[self._joined], text, **self._lane)] if text else []
        return delta if self._overlap.holds else [*delta, *self.behind()]

    def _close(self) -> Sequence[Event]:
        """Finish the text that broke off, if it was not continued."""
        key, self._broken = self._broken, None
        return [] if key is None else [BlockFinish(key, **self._lane)]

    def _whole(self, fields: Mapping[str, Any]) -> FrozenDict[Any]:
        """The fields with the text of the whole block, if they have a text: it replaces what came of it."""
        text = fields.get("text")
        if not isinstance(text, str):
            return FrozenDict(fields)
        self._overlap = Overlap(self._broken_text, self._min_overlap)
        rest = self._overlap.feed(text) + self._overlap.close()
        return FrozenDict({**fields, "text": self._broken_text + rest})

    def _index(self, index: Index) -> Index:
        known = self._indexes.get(index)
        if known is None:
            if isinstance(index, int) and index >= 0:
                # The joined block takes no index of its own.
                behind = isinstance(self._joined, int) and index > self._joined
                known = index + self._offset - behind
                while known in self._used_keys:  # e.g. by a block before the joined one
                    known += 1
            else:
                known = next(name for name in _names(str(index)) if name not in self._used_keys)
            self._used_keys.add(known)
            self._indexes[index] = known
        return known

    def _total(self, usage: TokenUsage) -> TokenUsage:
        return usage if self._usage is None else self._usage.add(attrs.evolve(usage, cumulative=False))


def _calls_of(partial: Snapshot) -> CallIdentity:
    """The calls of the message, so that its provider may say them again."""
    calls = CallIdentity()
    calls.steps(to_events(partial))
    return calls


def _names(name: str) -> Iterator[str]:
    while True:
        yield name
        name += "'"


_IN_WORD = re.compile(rf"[^\W{SPACELESS}]")


class Overlap:
    """Finds the longest overlap, and gives the text behind it.

    An overlap is the end of the broken text and the beginning of the new one. It begins where a word begins, and has
    at least one letter or digit. It ends where the text broke off, which may be within a word. The new text is held only
    while it may be the beginning of an overlap. This is the search of Knuth, Morris and Pratt for the new text in the
    broken one, so that the work is linear in both.

    Args:
        broken: The text that broke off.
        least: The least number of characters of an overlap.

    Attributes:
        length: The number of characters of the overlap; 0 if there is none, or none yet.
    """

    def __init__(self, broken: str, least: int) -> None:
        self.length = 0
        self._broken = broken
        self._at = 0  # where the overlap would begin in the broken text
        self._last = min(len(broken) - least, _last_letter(broken))  # where it may begin at the latest
        self._settled = self._last < 0
        self._new: list[str] = []  # the characters that are held
        self._matched = 0  # how many of them are those of the broken text
        # For each of them: the length of the longest end here that is a beginning of the new text, too.
        self._borders: list[int] = []

    @property
    def holds(self) -> bool:
        """Whether new text is held."""
        return bool(self._new) and not self._settled

    def feed(self, piece: str) -> str:
        """Take a piece of the new text; return what is certainly behind the overlap."""
        if self._settled:
            return piece
        room = len(self._broken) - len(self._new)
        for letter in piece[:room]:
            self._hold(letter)
        found = self._search(final=False)
        return found + piece[room:] if self._settled else ""

    def close(self) -> str:
        """The new text has ended: return what was held and is no overlap."""
        return self._search(final=True) if self._new and not self._settled else ""

    def _hold(self, letter: str) -> None:
        border = self._borders[-1] if self._borders else 0
        while border and self._new[border] != letter:
            border = self._borders[border - 1]
        if self._new and self._new[border] == letter:
            border += 1
        self._new.append(letter)
        self._borders.append(border)

    def _search(self, *, final: bool) -> str:
        broken, new = self._broken, self._new
        while self._at <= self._last:
            place = self._at + self._matched
            if place == len(broken):
                self.length = self._matched
                break
            if self._matched < len(new) and broken[place] == new[self._matched]:
                self._matched += 1
            elif self._matched == len(new) and not final:
                return ""
            else:
                self._shift()
        self._settled = True
        return "".join(new[self.length :])

    def _shift(self) -> None:
        """Go to the next place where the new text begins like this part of the broken one, and a word begins."""
        while self._at <= self._last:
            if self._matched:
                border = self._borders[self._matched - 1]
                self._at += self._matched - border
                self._matched = border
            else:
                found = self._broken.find(self._new[0], self._at + 1)
                self._at = found if found >= 0 else len(self._broken)
            if self._at <= self._last and _begins_word(self._broken, self._at):
                return


def _last_letter(text: str) -> int:
    """The place of the last letter or digit; -1 if there is none."""
    return next((at for at in range(len(text) - 1, -1, -1) if text[at].isalnum()), -1)


def _begins_word(text: str, at: int) -> bool:
    return not (_is_in_word(text[at - 1]) and _is_in_word(text[at]))


def _is_in_word(letter: str) -> bool:
    """Whether the letter and a neighbour like it are of one word. In scripts without spaces each letter is a word."""
    return _IN_WORD.match(letter) is not None or category(letter).startswith("M")
