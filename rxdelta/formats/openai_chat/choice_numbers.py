"""Which reply a choice belongs to: its index says so, unless what the choices say contradicts it.

    index      0 1 2 3 …, each once, one with each chunk     one reply, whose chunks are counted (Foundry Local)
    content    text, with the finish reason of calls; calls   one reply, in two choices (GitHub Copilot)

A choice of a new index waits where it may be one of these. While each chunk has the next index, the first of them that
say something wait, until an index comes again (several replies, sent in turns) or too many have come for several replies.
Beside a choice that has only text, a choice that has only calls waits for that one's finish reason; so does text beside
calls, for its own. All else is read at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from rxdelta.core import ByChoice
from rxdelta.formats.choices import meaning
from rxdelta.formats.decoding import Fields, Json
from rxdelta.formats.openai_chat.choice import Choice
from rxdelta.formats.openai_chat.tables import FORMAT, REASONS

_READ = Fields(FORMAT)


class Placed(NamedTuple):
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

    def place(self, number: int, choice: Json, path: str, *, is_alone: bool) -> list[Placed]:
        """The choices to be read now that this one has come."""
        if self._counts:
            return [Placed(self._counted(number, choice, path), choice, path)]
        if number in self._joined:
            return [Placed(self._first, choice, path, is_joined=True)]
        if not self._states:
            self._last, self._may_count = number, is_alone and not choice.get("finish_reason")
        elif number in self._states or self._over:
            self._may_count = False
        else:
            return self._wait(number, choice, path, is_alone=is_alone)
        self._note()
        return [Placed(number, choice, path)]

    def _wait(self, number: int, choice: Json, path: str, *, is_alone: bool) -> list[Placed]:
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

    def decided(self) -> list[Placed]:
        """The choices that wait no longer, since the first one has been read."""
        if self._may_count or not self._waiting:
            return []
        first = self._states[self._first]
        known = first.calls.ever, first.has_prose, first.word, first.message.finished
        if known == self._known:
            return []
        self._known = known
        return self._decide([*self._waiting.items()])

    def _decide(self, waiting: list[tuple[int, _Waiting]]) -> list[Placed]:
        first, placed = self._states[self._first], list[Placed]()
        for number, one in waiting:
            is_one = one.is_one_with(first, has_calls=first.calls.ever and not self._has_others_calls)
            if is_one is not None:
                placed += self._release(number, is_joined=is_one)
        self._note()
        return placed

    def settle(self, *, is_over: bool) -> list[Placed]:
        """The choices that wait no longer, since nothing follows. Without `is_over`, only usage has come."""
        if not self._waiting:
            return []
        if self._may_count and self._has_finish():
            return self._count()
        if not is_over:
            return []
        self._may_count, self._over = False, True
        placed = self.decided()
        for number in [*self._waiting]:
            placed += self._release(number, is_joined=False)
        self._note()
        return placed

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

    def _count(self) -> list[Placed]:
        """The indexes count chunks."""
        self._counts, self._may_count = True, False
        placed = [Placed(self._first, *each) for waiting in self._waiting.values() for each in waiting.chunks]
        self._waiting.clear()
        self._note()
        return placed

    def _counted(self, number: int, choice: Json, path: str) -> int:
        if number < self._last:
            alone = self._make()
            alone.read(choice, path)
            if alone.blocks.count or choice.get("finish_reason"):
                wanted = f"the next index, since the indexes have counted up to {self._last}"
                raise _READ.fail(f"{path}.index", wanted, number)
        self._last = max(self._last, number)
        return self._first

    def _release(self, number: int, *, is_joined: bool) -> list[Placed]:
        waiting = self._waiting.pop(number)
        if not is_joined:
            return [Placed(number, *each) for each in waiting.chunks]
        self._joined.add(number)
        self._has_others_calls |= waiting.shadow.calls.ever
        return [Placed(self._first, *each, is_joined=True) for each in waiting.chunks]


class _Waiting:
    """A choice that waits.

    Attributes:
        shadow: What it would be as a reply of its own.
        chunks: Its choices so far, each with its path.
    """

    def __init__(self, shadow: Choice) -> None:
        self.shadow = shadow
        self.chunks: list[tuple[Json, str]] = []

    def add(self, choice: Json, path: str) -> None:
        self.shadow.read(choice, path)
        self.shadow.read_finish_reason(choice, path)
        self.chunks.append((choice, path))

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
round is sent in this order."""
