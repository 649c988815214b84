"""Which reply a choice belongs to: its index says so, unless what the choices say contradicts it.

    index      0 1 2 3 …, each once, one with each chunk     one reply, whose chunks are counted (Foundry Local)
    content    text, with the finish reason of calls; calls   one reply, in two choices (GitHub Copilot)

A choice of a new index waits where it may be one of these. While each chunk has the next index, the first of them that
say something wait, until an index comes again (several replies, told in turns) or too many have come for several replies.
Beside a choice that has only text, a choice that has only calls waits for that one's finish reason; so does text beside
calls, for its own. All else is read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from rxdelta.core import ByChoice
from rxdelta.formats.decoding import Fields
from rxdelta.formats.openai_chat.choice import Choice
from rxdelta.formats.openai_chat.tables import FORMAT, REASONS, meaning

__all__ = ["ChoiceNumbers", "Told"]

Json: TypeAlias = Mapping[str, Any]
_READ = Fields(FORMAT)


class Told(NamedTuple):
    """A choice to be read now.

    Attributes:
        number: The number of its reply.
        choice: The choice.
        path: Its path in its chunk.
        is_joined: Whether it is another choice of the reply.
    """

    number: int
    choice: Json
    path: str
    is_joined: bool = False


class ChoiceNumbers:
    """The numbers of the replies of one stream.

    Args:
        states: The replies that have begun, by their numbers, the first one first.
        make: Makes a reader of a choice, to look at one that waits.

    Attributes:
        undecided: Whether a choice waits, or the next may have to.
        are_right: Whether a known index says which reply a choice belongs to.
    """

    def __init__(self, states: Mapping[int, Choice], make: Callable[[], Choice]) -> None:
        self.undecided = True
        self.are_right = False
        self._states = states
        self._make = make
        self._may_count, self._counts = True, False
        self._last = -1  # the newest index of those that count up
        self._waiting: dict[int, _Waiting] = ByChoice()
        self._known: object = None  # of the first choice, when those that wait were last compared with it
        self._joined: set[int] = set()  # the numbers of choices that are the first one's
        self._has_others_calls = False  # whether the first one's calls came in these
        self._over = False

    def place(self, number: int, choice: Json, path: str, *, is_alone: bool) -> list[Told]:
        """The choices to be read now that this one has come."""
        if self._counts:
            return [Told(self._counted(number, choice, path), choice, path)]
        if number in self._joined:
            return [Told(self._first, choice, path, is_joined=True)]
        if not self._states:
            self._last, self._may_count = number, is_alone and not choice.get("finish_reason")
        elif number in self._states or self._over:
            self._may_count = False
        else:
            return self._wait(number, choice, path, is_alone=is_alone)
        self._note()
        return [Told(number, choice, path)]

    def _wait(self, number: int, choice: Json, path: str, *, is_alone: bool) -> list[Told]:
        counts_up = is_alone and number == self._last + 1 and self._may_count and not self._has_finish()
        waiting = self._waiting.get(number) or _Waiting(self._make())
        waiting.add(choice, path)
        self._waiting[number], self._last = waiting, number
        if counts_up:
            return self._count() if self._said() > _REPLIES else []
        if self._may_count:
            self._may_count = False
            return self.decided()
        return self._decide([(number, waiting)])

    def decided(self) -> list[Told]:
        """The choices that wait no longer, since the first one has been read."""
        if self._may_count or not self._waiting:
            return []
        first = self._states[self._first]
        known = first.calls.ever, first.has_prose, first.word, first.message.finished
        if known == self._known:
            return []
        self._known = known
        return self._decide([*self._waiting.items()])

    def _decide(self, waiting: list[tuple[int, _Waiting]]) -> list[Told]:
        first, told = self._states[self._first], list[Told]()
        for number, one in waiting:
            is_one = one.is_one_with(first, has_calls=first.calls.ever and not self._has_others_calls)
            if is_one is not None:
                told += self._release(number, is_joined=is_one)
        self._note()
        return told

    def settle(self, *, is_over: bool) -> list[Told]:
        """The choices that wait no longer, since nothing follows. Without `is_over`, only usage has come."""
        if not self._waiting:
            return []
        if self._may_count and self._has_finish():
            return self._count()
        if not is_over:
            return []
        self._may_count, self._over = False, True
        told = self.decided()
        for number in [*self._waiting]:
            told += self._release(number, is_joined=False)
        self._note()
        return told

    @property
    def _first(self) -> int:
        return next(iter(self._states))

    def _note(self) -> None:
        self.undecided = self._may_count or bool(self._waiting)
        self.are_right = not (self.undecided or self._counts or self._joined)

    def _has_finish(self) -> bool:
        return any(waiting.shadow.word for waiting in self._waiting.values())

    def _said(self) -> int:
        return sum(waiting.shadow.blocks.count > 0 for waiting in self._waiting.values())

    def _count(self) -> list[Told]:
        """The indexes count chunks."""
        self._counts, self._may_count = True, False
        told = [Told(self._first, *each) for waiting in self._waiting.values() for each in waiting.told]
        self._waiting.clear()
        self._note()
        return told

    def _counted(self, number: int, choice: Json, path: str) -> int:
        if number < self._last:
            alone = self._make()
            alone.read(choice, path)
            if alone.blocks.count or choice.get("finish_reason"):
                wanted = f"the next index, since the indexes have counted up to {self._last}"
                raise _READ.fail(f"{path}.index", wanted, number)
        self._last = max(self._last, number)
        return self._first

    def _release(self, number: int, *, is_joined: bool) -> list[Told]:
        waiting = self._waiting.pop(number)
        if not is_joined:
            return [Told(number, *each) for each in waiting.told]
        self._joined.add(number)
        self._has_others_calls |= waiting.shadow.calls.ever
        return [Told(self._first, *each, is_joined=True) for each in waiting.told]


class _Waiting:
    """A choice that waits.

    Attributes:
        shadow: What it would be as a reply of its own.
        told: What has come of it.
    """

    def __init__(self, shadow: Choice) -> None:
        self.shadow = shadow
        self.told: list[tuple[Json, str]] = []

    def add(self, choice: Json, path: str) -> None:
        self.shadow.read(choice, path)
        self.shadow.read_finish_reason(choice, path)
        self.told.append((choice, path))

    def is_one_with(self, first: Choice, *, has_calls: bool) -> bool | None:
        """Whether it is one reply with the first choice; `None` if that isn't known yet.

        Args:
            first: The first choice.
            has_calls: Whether that has calls of its own.
        """
        ours = self.shadow
        if first.message.finished or (has_calls and ours.calls.ever) or (first.has_prose and ours.has_prose):
            return False
        if (has_calls and first.has_prose) or (ours.calls.ever and ours.has_prose):
            return False
        text = ours if has_calls else first  # the one that has no calls
        if not text.word:
            return None
        if meaning(REASONS, text.word) != "tool_use":
            return False
        return has_calls or ours.calls.ever or (False if ours.has_prose else None)


_REPLIES: Final = 8
"""A stream whose indexes count up so far is one reply. Few requests ask for more replies, and of these only the first
round is told in this order."""
