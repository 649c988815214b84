"""Calls of scripts on one server: all that wait go together, in one round trip."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha1
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import StreamInterrupted
from rxdelta.relay._server._lines import Away, Refusal

if TYPE_CHECKING:
    from rxdelta.relay._server._lines import Command, Line
    from rxdelta.relay._server._urls import Address

__all__ = ["Call", "Node", "Pauses", "Script", "Terms", "Word"]

Word = bytes | int | str

_LONGEST_ANSWER = 5.0
_PASSING = {  # what a server says while it can't work now
    *("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS"),
    *("NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED"),
}
_REDIRECTING = {"ASK", "MOVED"}  # in a Cluster: a slot is moving or has moved
_ELSEWHERE = {"MASTERDOWN", "READONLY"}  # a connection that was made anew may lead to the master
_MOST_CALLS, _MOST_BYTES = 1000, 1 << 20  # after an outage, a piece of what waited
_WAIT_MS = 1000
_FEW = 8
_REST_EACH, _LONGEST_REST = 0.0001, 0.010
_WINDOW = 0.1


def _sha(script: Script) -> str:
    return sha1(script.text.encode(), usedforsecurity=False).hexdigest()  # as the server computes it


@attrs.frozen
class Script:
    """A Lua script. It may run twice for one call, and then answers the same.

    Attributes:
        text: Its source.
        writes: Whether a call is answered only when the replicas have what it wrote. False for what a reader needs: it can
            read without them.
        sha: The SHA-1 of the text, in hexadecimal digits.
    """

    text: str
    writes: bool = True
    sha: str = attrs.field(init=False, repr=False, default=attrs.Factory(_sha, takes_self=True))


@attrs.define(eq=False)
class Call:
    """A call of a script that somebody waits for.

    Attributes:
        make: Makes the arguments when the call is sent for the first time: what is written may become more until then.
        size: Of the arguments, in bytes.
    """

    tag: int
    script: Script
    keys: Sequence[bytes]
    make: Callable[[], Sequence[Word]]
    until: float
    answer: asyncio.Future[Any]
    size: int = 0
    command: Command = ()

    def is_ready(self) -> bool:
        """Make the command, and return whether somebody waits for the answer."""
        if not self.command and not self.answer.done():
            try:
                args = self.make()
            except Exception as error:
                if not self.answer.done():
                    self.answer.set_exception(error)
            else:
                self.size = sum(len(arg) for arg in args if not isinstance(arg, int))
                self.command = ("EVALSHA", self.script.sha, len(self.keys), *self.keys, *args)
        return not self.answer.done()

    def succeed(self, answer: Any) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def fail(self, text: str, cause: BaseException | None) -> None:
        if not self.answer.done():
            error = StreamInterrupted(text)
            error.__cause__ = cause
            self.answer.set_exception(error)


@attrs.frozen
class Terms:
    """What all calls of a store have in common.

    Attributes:
        shown: The store's URL, for messages.
        patience: Seconds for which a call is tried.
        replicas: How many replicas must have what was written.
    """

    shown: str
    patience: float
    replicas: int
    is_cluster: bool

    @property
    def seconds(self) -> float:
        """How long a server may take to answer, before its connection is given up: several attempts must be possible."""
        return min(_LONGEST_ANSWER, self.patience / 3)

    def is_passing(self, code: str) -> bool:
        """Whether a server says with this code that it can't work now."""
        return code in _PASSING or (self.is_cluster and code in _REDIRECTING)

    def refused(self, refusal: Refusal) -> str:
        if refusal.code == "MOVED":
            return f"the store {self.shown} is a node of a Cluster: its URL begins with valkey+cluster://"
        return f"the store {self.shown} refuses: {refusal}"

    def given_up(self, why: BaseException | None) -> str:
        reason = f": {why}" if why is not None else ""
        return f"the store {self.shown} couldn't be used for {self.patience:g} seconds{reason}"


class Pauses:
    """How long to wait before the next attempt: longer each time, and never the same for two processes."""

    def __init__(self) -> None:
        self._next = 0.01

    def reset(self) -> None:
        self._next = 0.01

    def take(self) -> float:
        pause, self._next = self._next, min(2 * self._next, 0.4)
        return pause * random.uniform(0.75, 1.25)  # noqa: S311


class Node:
    """The calls to one server. They run in the order in which they are added."""

    def __init__(
        self,
        address: Address,
        line: Line | None,
        terms: Terms,
        *,
        dial: Callable[[Address, float], Awaitable[Line]],
        left: Callable[[Call], None],
        moved: Callable[[Node], Awaitable[None]],
    ) -> None:
        """Called in a task.

        Args:
            line: An open connection, if there is one.
            left: Called for each call that is no longer here.
            moved: Learns where the servers are, and adds calls elsewhere that `release` gives out.
        """
        self.address = address
        self._terms = terms
        self._dial = dial
        self._left = left
        self._moved = moved
        self._line = line
        self._waiting: deque[Call] = deque()
        self._flying: list[Call] = []
        self._news = asyncio.Event()
        self._why: BaseException | None = None
        self._pauses = Pauses()
        self._rests = _Rests()
        self._alarm: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._flying

    def add(self, call: Call) -> None:
        self._waiting.append(call)
        self._news.set()
        self._rests.count(call)
        if self._alarm is None:
            self._alarm = self._loop.call_at(call.until, self._expire)

    def release(self) -> list[Call]:
        """All calls that wait here, which are now for somebody else."""
        calls = list(self._waiting)
        self._waiting.clear()
        for call in calls:
            self._left(call)
        return [call for call in calls if not call.answer.done()]

    async def close(self) -> None:
        """End the task and the connection. All calls that are here fail."""
        while not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task], timeout=0.5)
        if self._alarm is not None:
            self._alarm.cancel()
        if self._line is not None:
            await self._line.close()
        for call in (*self._flying, *self._waiting):
            call.fail(f"the connection to the store {self._terms.shown} was closed", None)
            self._left(call)

    def _expire(self) -> None:
        """Give up the calls that were made too long ago, also those of a round trip that is under way."""
        now, first = self._loop.time(), None
        for call in (*self._flying, *self._waiting):
            if call.until <= now:
                call.fail(self._terms.given_up(self._why), self._why)
            elif not call.answer.done():
                first = call.until if first is None else min(first, call.until)
        self._alarm = self._loop.call_at(first, self._expire) if first is not None else None

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
            await self._rests.take()
            self._flying = self._piece()
            if not self._flying:
                continue
            try:
                again = await self._round_trip(self._flying)
            except Away as away:
                again, self._why = self._flying, away
            kept = set(again)
            for call in self._flying:
                if call not in kept:
                    self._left(call)
            self._waiting.extendleft(reversed(again))
            self._flying = []
            if again:
                await asyncio.sleep(self._pauses.take())
                with suppress(Away):
                    await self._moved(self)
            else:
                self._pauses.reset()

    def _piece(self) -> list[Call]:
        """The next calls, without those whose callers have left."""
        piece, size = list[Call](), 0
        while self._waiting and len(piece) < _MOST_CALLS and size < _MOST_BYTES:
            call = self._waiting.popleft()
            if call.is_ready():
                piece.append(call)
                size += call.size
            else:
                self._left(call)
        return piece

    async def _round_trip(self, calls: list[Call]) -> list[Call]:
        """Ask all at once, and answer who can be answered. Returns those that must be tried again, in their order.

        Raises:
            Away: If nobody was answered.
        """
        if self._line is None or not self._line.is_open:
            self._line = await self._dial(self.address, self._terms.seconds)
        line, terms = self._line, self._terms
        new = {call.script.sha: call.script for call in calls if call.script.sha not in line.scripts}
        loads: list[Command] = [("SCRIPT", "LOAD", script.text) for script in new.values()]
        waits = terms.replicas > 0 and any(call.script.writes for call in calls)
        wait: list[Command] = [("WAIT", terms.replicas, _WAIT_MS)] if waits else []
        much = sum(call.size for call in calls) / 1e6  # a slow line gets a second more for each megabyte
        seconds = terms.seconds + much + waits * _WAIT_MS / 1000
        answers = await line.ask([*loads, *(call.command for call in calls), *wait], seconds)
        loaded = dict(zip(new, answers, strict=False))
        line.scripts.update(sha for sha, answer in loaded.items() if not isinstance(answer, Refusal))
        reached = answers.pop() if waits else 0
        again = self._settle(line, calls, answers[len(loads) :], loaded, reached)
        if isinstance(self._why, _Refused) and self._why.code in _ELSEWHERE:
            await line.close()
        return again

    def _settle(
        self, line: Line, calls: list[Call], answers: list[Any], loaded: dict[str, Any], reached: Any
    ) -> list[Call]:
        again, keys = list[Call](), set[bytes]()
        for call, said in zip(calls, answers, strict=True):
            answer = said
            if isinstance(said, Refusal) and said.code == "NOSCRIPT":
                line.scripts.discard(call.script.sha)  # somebody made the server forget it
                answer = loaded.get(call.script.sha, said)
                answer = answer if isinstance(answer, Refusal) else said
            elif call.script.writes and self._terms.replicas:
                answer = self._acknowledged(said, reached)
            if isinstance(answer, Refusal) and self._terms.is_passing(answer.code):
                self._why = _Refused(answer)
            elif keys.isdisjoint(call.keys):  # no earlier call for one of its keys has to be tried again
                if isinstance(answer, Refusal):
                    call.fail(self._terms.refused(answer), answer.error)
                else:
                    call.succeed(answer)
                continue
            again.append(call)
            keys.update(call.keys)
        return again

    def _acknowledged(self, answer: Any, reached: Any) -> Any:
        if isinstance(answer, Refusal):
            return answer
        if isinstance(reached, Refusal):  # WAIT itself isn't allowed, or not now
            return reached
        if reached >= self._terms.replicas:
            return answer
        told = f"{reached} of {self._terms.replicas} replicas have what was written"
        return Refusal("NOREPLICAS", told, ConnectionError(told))


class _Refused(Exception):
    """Why calls are tried again: the server said so."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(str(refusal))
        self.code = refusal.code
        self.__cause__ = refusal.error


class _Rests:
    """How long a server's connection rests between two round trips.

    A round trip costs as much CPU time as about ten calls, and wakes every process that reads. For few streams there is
    no rest: what is asked during a round trip goes with the next. For many there is one, in which more calls come
    together. 10 ms halve the CPU time of 100 streams with 50 events a second each, and of their reader in the same
    process. 20 ms save nothing more.
    """

    def __init__(self) -> None:
        self._now = asyncio.get_running_loop().time
        self._last = self._begin = 0.0
        self._seen: set[bytes] = set()
        self._rest = 0.0

    def count(self, call: Call) -> None:
        """Calls for the same stream have the same first key."""
        self._seen.add(call.keys[0])

    async def take(self) -> None:
        now = self._now()
        if now - self._begin > _WINDOW:
            self._rest = min(max(len(self._seen) - _FEW, 0) * _REST_EACH, _LONGEST_REST)
            self._seen.clear()
            self._begin = now
        if (left := self._last + self._rest - now) > 0:
            await asyncio.sleep(left)
        self._last = self._now()
