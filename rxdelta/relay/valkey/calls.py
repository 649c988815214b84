"""Calls of scripts on one server: all that wait go together, in one round trip."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from hashlib import sha1
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import StreamInterrupted
from rxdelta.relay.valkey.lines import Away, Command, Line, Refusal

if TYPE_CHECKING:
    from rxdelta.relay.valkey.connections import Connections
    from rxdelta.relay.valkey.urls import Address


Word = bytes | int | str

_LONGEST_ANSWER = 5.0
_PASSING = {  # what a server says while it can't work now
    *("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MISCONF", "NOREPLICAS"),
    *("NOSCRIPT", "OOM", "READONLY", "TRYAGAIN", "UNBLOCKED"),
}
_REDIRECTING = {"ASK", "MOVED"}  # in a Cluster: a slot is moving or has moved
_ONLY_WRITES = {"MISCONF", "NOREPLICAS", "OOM", "READONLY"}  # what reads is answered meanwhile
_ELSEWHERE = {"MASTERDOWN", "READONLY"}  # a connection that was made again may lead to the master
_MOST_CALLS, _MOST_SENT, _MOST_ANSWERED = 1000, 1 << 20, 4 << 20
"""What one round trip has at most, unless it is a single call: after an outage it is a piece of what waited."""
_LARGE = 1 << 16
_LONGEST_WAIT = 1.0
_FIRST_PAUSE, _LONGEST_PAUSE, _PAUSES_A_LEASE = 0.01, 0.4, 20
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
        most: About how many bytes its answer may have, if these may be many.
        sha: The SHA-1 of the text, in hexadecimal digits.
    """

    text: str
    writes: bool = True
    most: int = 0
    sha: str = attrs.field(init=False, repr=False, default=attrs.Factory(_sha, takes_self=True))


@attrs.define(eq=False)
class Call:
    """A call of a script that somebody waits for.

    Attributes:
        kind: Which connection it takes.
        make: Makes the arguments when the call is sent for the first time: more events may come until then.
        size: The size of the arguments, in bytes.
    """

    tag: int
    script: Script
    keys: Sequence[bytes]
    make: Callable[[], Sequence[Word]]
    until: float
    answer: asyncio.Future[Any]
    kind: Kind
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


class Kind(Enum):
    """The connections of a server: a short call never waits for a long one."""

    SHORT = "claims, appends, signs of life, ends and questions"
    SIGN = "signs of life of whom an append keeps waiting"
    LARGE = "appends that are long"
    READ = "pages of logs"


@attrs.frozen
class Terms:
    """What all calls of a store have in common.

    Attributes:
        shown: The store's URL, for messages.
        patience: Seconds for which a call is tried.
        replicas: How many replicas must have what was written.
        lease: Seconds in which a publisher must have given a sign, also if its connection was lost without a word.
    """

    shown: str
    patience: float
    replicas: int
    is_cluster: bool
    lease: float

    @property
    def seconds(self) -> float:
        """How long a connection may be silent before it is given up: several attempts must be possible."""
        return min(_LONGEST_ANSWER, self.patience / 3, self.lease / 3)

    @property
    def closed(self) -> str:
        return f"the connection to the store {self.shown} was closed"

    def pauses(self) -> Iterator[float]:
        """How long to wait before each next attempt: longer each time, and never the same for two processes."""
        pause = _FIRST_PAUSE
        while True:
            yield pause * random.uniform(0.75, 1.25)  # noqa: S311
            pause = min(2 * pause, _LONGEST_PAUSE, self.lease / _PAUSES_A_LEASE)

    def is_passing(self, code: str) -> bool:
        """Whether a server says with this code that it can't work now."""
        return code in _PASSING or (self.is_cluster and code in _REDIRECTING)

    def refused(self, refusal: Refusal) -> str:
        if refusal.code == "MOVED":
            how = "its URL begins with valkey+cluster://, and its client is a RedisCluster or ValkeyCluster"
            return f"the store {self.shown} is a node of a Cluster: {how}"
        return f"the store {self.shown} refuses: {refusal}"

    def given_up(self, why: BaseException | None) -> str:
        return f"the store {self.shown} couldn't be used for {self.patience:g} seconds{f': {why}' if why else ''}"


class Node:
    """The calls of one kind to one server. They run in the order in which they are added."""

    def __init__(self, owner: Connections, address: Address, kind: Kind, line: Line | None) -> None:
        """Called in a task, with an open connection if there is one."""
        self.address = address
        self.kind = kind
        self._owner = owner
        self._terms = owner.terms
        self._traffic = owner.traffic
        self._line = line
        self._waiting: deque[Call] = deque()
        self._flying: list[Call] = []
        self._news = asyncio.Event()
        self._why: Away | None = None
        self._came_on = 0.0  # the loop's time at which a call was answered
        self._pauses = self._terms.pauses()
        self._rests = _Rests()
        self._alarm: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run())

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._flying

    def holds(self, tag: int) -> bool:
        return any(call.tag == tag for call in (*self._flying, *self._waiting))

    def add(self, call: Call) -> None:
        self._waiting.append(call)
        self._news.set()
        self._rests.count(call)
        if self._alarm is None:
            self._alarm = self._loop.call_at(call.until, self._expire)

    def release(self) -> list[Call]:
        """All calls that wait here, which are now for somebody else."""
        calls, self._waiting = self._waiting, deque()
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
            call.fail(self._terms.closed, None)

    def _expire(self) -> None:
        """Give up the calls that were made too long ago, also those of a round trip that is under way.

        A long call has the time that it needs: a call that waits for it is given up when nothing has come on for so
        long.
        """
        now, untils, came_on = self._loop.time(), list[float](), -inf
        if self.kind in (Kind.LARGE, Kind.READ):
            came_on = max(self._came_on, self._line.grew if self._line is not None else -inf)
        for call in (*self._flying, *self._waiting):
            until = max(call.until, came_on + self._terms.patience)
            if until <= now:
                call.fail(self._terms.given_up(self._why), self._why)
            elif not call.answer.done():
                untils.append(until)
        self._alarm = self._loop.call_at(min(untils), self._expire) if untils else None

    async def _run(self) -> None:
        while True:
            if not self._waiting:
                self._news.clear()
                await self._news.wait()
            await self._rests.take()
            self._flying = self._piece()
            if not self._flying:
                continue
            begin = time.monotonic()
            try:
                await self._round_trip(self._flying)
            except Away as away:
                self._why = away
                self._traffic.failed(self.address, away)
            again = [call for call in self._flying if not call.answer.done()]
            # In front and in their order: calls for one stream reach the server as they were made.
            self._waiting.extendleft(reversed(again))
            flown, self._flying = self._flying, []
            if again:
                await asyncio.sleep(next(self._pauses))
                await self._owner.moved(self)
            else:
                self._pauses = self._terms.pauses()
                self._why = None
                self._traffic.worked(self.address, begin, wrote=any(call.script.writes for call in flown))

    def _piece(self) -> list[Call]:
        """The next calls, without those whose callers have left."""
        piece, sent, answered = list[Call](), 0, 0
        while self._waiting and len(piece) < _MOST_CALLS and sent < _MOST_SENT and answered < _MOST_ANSWERED:
            call = self._waiting.popleft()
            if not call.is_ready():
                continue
            if call.size > _LARGE and self.kind is Kind.SHORT:
                call.kind = Kind.LARGE
                self._owner.send(call)
            else:
                piece.append(call)
                sent += call.size
                answered += call.script.most
        return piece

    async def _round_trip(self, calls: list[Call]) -> None:
        """Ask all at once, and answer each as soon as that is possible. Those without an answer must be tried again.

        Raises:
            Away: The connection broke.
        """
        terms = self._terms
        line = self._line = await self._owner.renewed(self._line, self.address, terms.seconds)
        new = {call.script.sha: call.script for call in calls if call.script.sha not in line.scripts}
        # In the same round trip: EVALSHA is refused by a server that doesn't know the script.
        loads: list[Command] = [("SCRIPT", "LOAD", script.text) for script in new.values()]
        commands, wait = [*loads, *(call.command for call in calls)], 0.0
        if terms.replicas > 0 and any(call.script.writes for call in calls):
            wait = min(_LONGEST_WAIT, terms.seconds)
            # Behind the writes on the same connection: the server counts only what this connection has written.
            commands.append(("WAIT", terms.replicas, round(wait * 1000)))
        refused, held, answers = dict[str, Refusal](), set[bytes](), list[Any]()

        def took(place: int, answer: Any) -> None:
            if place < len(loads):
                sha = [*new][place]
                if isinstance(answer, Refusal):
                    refused[sha] = answer
                else:
                    line.scripts.add(sha)
            elif wait:
                answers.append(answer)
            else:
                self._settle(calls[place - len(loads)], answer, refused, held)

        begin = self._loop.time()
        await line.ask(commands, terms.seconds + wait, took)
        if wait:
            reached = answers.pop()
            for call, answer in zip(calls, answers, strict=True):
                known = self._acknowledged(answer, reached) if call.script.writes else answer
                self._settle(call, known, refused, held)
        self._traffic.tally.round_trip(self._loop.time() - begin)
        if held and isinstance(self._why, Refusal) and self._why.code in _ELSEWHERE:
            await line.close()

    def _settle(self, call: Call, answer: Any, refused: Mapping[str, Refusal], held: set[bytes]) -> None:
        """Give a call its answer, unless it, or an earlier one for one of its keys (`held`), has to be tried again."""
        if isinstance(answer, Refusal) and answer.code == "NOSCRIPT":
            if self._line is not None:
                self._line.scripts.discard(call.script.sha)  # somebody made the server forget it
            answer = refused.get(call.script.sha, answer)
        if isinstance(answer, Refusal) and self._terms.is_passing(answer.code):
            self._why = answer
            if answer.code not in _REDIRECTING:
                self._traffic.failed(self.address, answer, only_writes=answer.code in _ONLY_WRITES)
        elif held.isdisjoint(call.keys):
            if isinstance(answer, Refusal):
                call.fail(self._terms.refused(answer), answer.__cause__)
            else:
                call.succeed(answer)
            self._came_on = self._loop.time()
            return
        # Later calls for these keys wait, too: an append must not overtake an earlier one.
        held.update(call.keys)

    def _acknowledged(self, answer: Any, reached: Any) -> Any:
        if isinstance(answer, Refusal):
            return answer
        if isinstance(reached, Refusal):  # WAIT itself isn't allowed, or not now
            return reached
        if reached >= self._terms.replicas:
            return answer
        lacking = f"{reached} of {self._terms.replicas} replicas have what was written"
        return Refusal("NOREPLICAS", lacking, ConnectionError(lacking))


class _Rests:
    """How long a server's connection rests between two round trips.

    A round trip costs as much CPU time as about ten calls, and wakes every process that reads. For few streams there is
    no rest: calls that come during a round trip go with the next. For many there is one, in which more calls come
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
