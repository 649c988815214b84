"""A store of the relay that answers when it is told to, on any thread, or that fails: memory behind a wire of one's own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Any

from reactivex.disposable import SerialDisposable

import rxdelta as rd
from rxdelta.relay.logs import End, News
from rxdelta.relay.memory import Memory

if TYPE_CHECKING:
    import asyncio

    from reactivex import abc

    from rxdelta.relay.logs import Log, Name, Publisher, Seeker, Writer

__all__ = ["Later"]

DEAD = "the publisher gave no sign for a lease"


class Later:
    """Keeps logs as `Memory` does. What it is asked waits until `answer` is called, in the order of the questions.

    An event that wasn't answered isn't in the log. `asked` are the kinds of the questions that wait.

    Args:
        loop: The loop of the memory's timers.
        holds: The kinds of question that wait for `answer`: `claim`, `find`, `read`, `append`, `end`. Others are answered
            in the call.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        holds: Sequence[str] = ("claim", "find", "read", "append", "end"),
    ) -> None:
        self.memory = Memory(3600.0, loop)
        self.holds = set(holds)
        self.writers: dict[Name, Writer] = {}
        self.failure: rd.RxDeltaError | None = None
        self.given_up = False  # nothing is answered any more
        self.left = 0  # logs, by their readers
        self.live: list[_Publisher] = []
        self._questions: deque[
            tuple[str, Callable[[], object], Callable[[rd.RxDeltaError], object] | None]
        ] = deque()
        self._lock = RLock()

    @property
    def asked(self) -> list[str]:
        return [kind for kind, _, _ in self._questions]

    def answer(self, count: int | None = None) -> int:
        """Answer the first questions that wait, or all, also those that come of the answers. Return how many."""
        answered = 0
        while (count is None or answered < count) and not self.given_up:
            with self._lock:
                if not self._questions:
                    break
                _, ask, _ = self._questions.popleft()
            ask()
            answered += 1
        return answered

    def fail(self, error: rd.RxDeltaError) -> None:
        """Answer what waits, and what comes, with an error, and tell all publishers."""
        self.failure = error
        with self._lock:
            questions, self._questions = self._questions, deque()
        for _, _, failed in questions:
            if failed is not None:
                failed(error)
        for publisher in [*self.live]:
            publisher.failed(error)

    def die(self, name: Name) -> None:
        """The publisher's process dies: nothing more of it is written, and the store takes it for dead."""
        self.given_up = True
        self._questions.clear()
        self.writers[name].end((), End(rd.StreamInterrupted(DEAD)), lambda: None)

    def ask(
        self,
        kind: str,
        question: Callable[[], object],
        failed: Callable[[rd.RxDeltaError], object] | None = None,
    ) -> None:
        if self.given_up:
            return
        if self.failure is not None:
            if failed is not None:
                failed(self.failure)
        elif kind in self.holds:
            self._questions.append((kind, question, failed))
        else:
            question()

    # The store.

    def claim(self, name: Name, publisher: Publisher) -> None:
        late = _Publisher(self, name, publisher)
        self.ask("claim", partial(self.memory.claim, name, late), publisher.failed)

    def find(self, name: Name, seeker: Seeker) -> abc.DisposableBase:
        finding = SerialDisposable()

        def find() -> None:
            if not finding.is_disposed:
                finding.disposable = self.memory.find(name, _Seeker(self, seeker))

        self.ask("find", find, seeker.failed)
        return finding

    async def tell(self, name: Name, reason: str | None) -> bool:
        return await self.memory.tell(name, reason)

    async def is_live(self, name: Name) -> bool:
        return await self.memory.is_live(name)

    async def names(self, tenant: str) -> list[str]:
        return await self.memory.names(tenant)

    async def delete(self, name: Name) -> bool:
        return await self.memory.delete(name)

    async def close(self) -> None:
        await self.memory.close()
        self.holds.clear()
        self.answer()


class _Publisher:
    def __init__(self, store: Later, name: Name, publisher: Publisher) -> None:
        self._store = store
        self._name = name
        self._publisher = publisher
        self._failed = False

    def claimed(self, writer: Writer) -> None:
        self._store.writers[self._name] = writer
        self._store.live.append(self)
        self._publisher.claimed(_Writer(self._store, writer, self))

    def refused(self, why: str, *, taken: bool) -> None:
        self._publisher.refused(why, taken=taken)

    def failed(self, error: rd.RxDeltaError) -> None:
        if not self._failed:
            self._failed = True
            self.over()
            self._publisher.failed(error)

    def over(self) -> None:
        if self in self._store.live:
            self._store.live.remove(self)

    def written(self, events: Sequence[rd.Event]) -> None:
        if not self._store.given_up:
            self._publisher.written(events)

    def tell(self, reason: str | None) -> bool:
        return not self._store.given_up and self._publisher.tell(reason)


class _Writer:
    def __init__(self, store: Later, writer: Writer, publisher: _Publisher) -> None:
        self._store = store
        self._writer = writer
        self._publisher = publisher

    def take(self, size: int) -> rd.errors.LimitExceededError | None:
        return self._writer.take(size)

    def append(self, events: Sequence[rd.Event]) -> None:
        self._store.ask("append", partial(self._writer.append, events), self._publisher.failed)

    def end(self, events: Sequence[rd.Event], end: End, then: Callable[[], None]) -> None:
        def finish() -> None:
            self._publisher.over()
            self._writer.end(events, end, then)

        self._store.ask("end", finish, self._publisher.failed)


class _Seeker:
    def __init__(self, store: Later, seeker: Seeker) -> None:
        self._store = store
        self._seeker = seeker

    def found(self, log: Log, news: News) -> None:
        self._seeker.found(_Log(self._store, log), news)

    def awaits(self) -> None:
        self._seeker.awaits()

    def failed(self, error: rd.RxDeltaError) -> None:
        self._seeker.failed(error)


def _cut(news: News, after: int, error: rd.RxDeltaError) -> News:
    """What a store says that knows no more: to a reader that asks for all, what it has."""
    return News(() if after else news.events, after or news.newest, End(error, is_cut=True))


class _Log:
    def __init__(self, store: Later, log: Log) -> None:
        self._store = store
        self._log = log
        self._asked: Callable[[News], Any] | None = None

    @property
    def epoch(self) -> str:
        return self._log.epoch

    def read(self, after: int, take: Callable[[News], Any]) -> None:
        self._asked = take

        def read() -> None:
            if self._asked is take:
                self._log.read(after, take)

        def cut(error: rd.RxDeltaError) -> None:
            if self._asked is take:
                self._log.read(0, lambda news: take(_cut(news, after, error)))

        self._store.ask("read", read, cut)

    def forget(self, take: Callable[[News], Any]) -> None:
        self._asked = None
        self._log.forget(take)

    def leave(self) -> None:
        self._store.left += 1
        self._log.leave()
