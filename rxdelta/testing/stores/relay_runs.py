"""Runs of real relays over a store and bad lines to it: a stream that is published, read, stopped, or whose publisher dies."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from random import Random
from secrets import token_hex
from time import monotonic
from typing import Any

import attrs

from rxdelta.aio import from_async_iterable, to_async_iterable
from rxdelta.core import (
    EmptyStreamError,
    Event,
    InvalidValueError,
    ProviderError,
    StreamInterrupted,
    events as ev,
)
from rxdelta.relay import Entry, Relay, Store
from rxdelta.testing.stores.bench import broken_unless, expect, gathered, made
from rxdelta.testing.stores.traced import Broken, Faulty, as_broken

LEASE = 1.0
_PATIENCE = 10.0
SLACK = 15.0
"""Seconds that are added to what must happen in time: a slow machine is no fault, and what never happens is found all the same."""
EXCUSED = LEASE / 4
"""Seconds for which the loop or the store must have stood still, to excuse a publisher's death."""
_RATE, _SECONDS = 0.05, 90.0
_LEFT = "publisher left"

ENDS = {
    "completes": "completed",
    "fails": "ProviderError",
    "is cancelled": "enough",
    "is deleted": "deleted",
    "leaves": _LEFT,
    "dies": "StreamInterrupted",
    "is held up": "completed",
    "closes": "the relay was closed",
    "drains": "stopping",
}
"""What a run may be about, and how the stream ends for its readers then."""
OWN = ("dies", "is held up", "closes", "drains")
"""What happens to a process, so that the publisher has one of its own."""
WAITING = ("is cancelled", "is deleted", "dies", "closes", "drains")
"""What happens to a source that would continue."""


@asynccontextmanager
async def _opened(store: Store, patience: float = _PATIENCE) -> AsyncGenerator[Relay]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a lease this short is for tests
        opened = Relay.open(store, lease=LEASE, patience=patience)
    async with opened as relay:
        yield relay


@asynccontextmanager
async def open_relays(make: Callable[[], Store], seed: int) -> AsyncGenerator[Sequence[tuple[Relay, Faulty]]]:
    """Two relays for all runs, each over a bad line. What they log of that isn't worth a word."""
    log = logging.getLogger("rxdelta")
    level = log.level
    log.setLevel(logging.CRITICAL + 1)
    async with AsyncExitStack() as stack:
        stack.callback(log.setLevel, level)
        chance = Random(seed)  # noqa: S311
        lines = [Faulty(made(make), chance, lambda _: None, _RATE, owns=True) for _ in range(2)]
        yield [(await stack.enter_async_context(_opened(line)), line) for line in lines]


@attrs.define(eq=False)
class _Reading:
    """What a reader has, over all of its returns.

    Attributes:
        text: The text of all deltas.
        ids: The ids of the entries.
        end: How the stream ended for it; empty if it hasn't.
        ended: When.
    """

    text: str = ""
    ids: list[str] = attrs.Factory(list[str])
    end: str = ""
    ended: float = 0.0


class RelayRun:
    """One stream: a publisher that ends in one of many ways, and readers that come, leave and return, on any relay.

    Args:
        make: Makes a store for a process of its own.
        relays: Open ones with their lines, for what stays alive.
        seed: Decides what each one does.
    """

    def __init__(self, make: Callable[[], Store], relays: Sequence[tuple[Relay, Faulty]], seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311
        self.kind = self.chance.choice([*ENDS])
        self._make = make
        self._relays = [relay for relay, _ in relays]
        self._lines = [line for _, line in relays]
        self._played = monotonic()
        self._id = f"run-{token_hex(6)}"
        self._count = self.chance.randrange(3, 60)
        self._behind = self.chance.randrange(0, self._count)  # this delta happens what the run is about
        self._due, self._begun = asyncio.Event(), asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._died = 0.0
        self._stall = 0.0
        self._own = _Reading()
        self._readings = [_Reading() for _ in range(self.chance.randrange(1, 4))]

    async def play(self) -> None:
        """Play it, and compare.

        Raises:
            Broken: Something doesn't hold.
        """
        about, beats = f"a publisher that {self.kind}: ", asyncio.ensure_future(self._beat())
        try:
            async with as_broken((), _SECONDS, about):
                async with AsyncExitStack() as stack:
                    relay, line = self._relays[0], None
                    if self.kind in OWN:
                        line = Faulty(made(self._make), self.chance, lambda _: None, _RATE, owns=True)
                        self._lines.append(line)
                        relay = await stack.enter_async_context(
                            _opened(line, 1.0 if self.kind == "dies" else _PATIENCE)
                        )
                    await gathered(
                        [
                            self._publish(relay),
                            self._act(relay, line, stack),
                            *map(self._read, self._readings),
                        ]
                    )
                await self._compare()
                await self._publish_again()
        finally:
            beats.cancel()

    async def _beat(self) -> None:
        """Note how long the loop was busy otherwise: a publisher that can't give signs may be taken for dead."""
        while True:
            begin = self._loop.time()
            await asyncio.sleep(0.05)
            self._stall = max(self._stall, self._loop.time() - begin - 0.05)

    def _was_slow(self) -> bool:
        """Whether the machine was too busy for signs that come in time."""
        calls = (seconds for line in self._lines for ended, seconds in line.slow if ended >= self._played)
        return max(self._stall, *calls, 0.0) > EXCUSED

    def _any(self) -> Relay:
        return self.chance.choice(self._relays)

    async def _events(self, count: int) -> AsyncIterator[Event]:
        yield ev.MessageStart("m")
        yield ev.BlockStart(0, {"type": "text", "text": ""})
        for number in range(count):
            if number == self._behind:
                self._due.set()
                if self.kind in WAITING:
                    await asyncio.Event().wait()
            await asyncio.sleep(self.chance.choice((0, 0, 0.001, 0.01, 0.03)))
            yield ev.TextDelta(0, f"{number} ")
        if self.kind == "fails":
            raise ProviderError("busy")
        yield ev.BlockFinish(0)
        yield ev.MessageFinish("stop")

    async def _publish(self, relay: Relay) -> None:
        """Publish, and note what has been emitted, which is in the log."""
        await self._take(
            from_async_iterable(self._events(self._count)).pipe(relay.publish(self._id)), self._own
        )
        self._due.set()

    async def _act(self, relay: Relay, line: Faulty | None, stack: AsyncExitStack) -> None:
        """Let happen what the run is about."""
        await self._begun.wait()
        await self._due.wait()
        match self.kind:
            case "is cancelled":
                stopped = await self._any().cancel(self._id, "enough")
                broken_unless(stopped or self._was_slow(), "a stream that is live couldn't be cancelled")
            case "is deleted":
                expect("delete of a live stream", await self._any().delete(self._id), True)
            case "dies" if line is not None:
                self._died = self._loop.time()
                line.die()
            case "is held up" if line is not None:
                line.hold()
                await asyncio.sleep(LEASE * self.chance.choice((0.5, 3)))
                line.go()
            case "closes":
                await stack.aclose()
            case "drains":
                await relay.drain(0.05, "stopping")
            case _:
                await self._is_refused()

    async def _is_refused(self) -> None:
        """Another publisher of the same id must be refused."""
        with suppress(InvalidValueError):
            await self._take(
                from_async_iterable(self._events(1)).pipe(self._any().publish(self._id)), _Reading()
            )
            raise Broken("a stream that is live or kept was published again")

    async def _read(self, reading: _Reading) -> None:
        """Read the stream, with some returns, until it ends."""
        chance, returns = self.chance, self.chance.choice((0, 0, 1, 2, 4))
        slow = chance.choice((0, 0, 0.005))
        await asyncio.sleep(chance.choice((0, chance.uniform(0, 0.5))))
        while not reading.end:
            most, returns = chance.choice((1, 3, 10)) if returns else None, max(0, returns - 1)
            after = reading.ids[-1] if reading.ids else None
            await self._take(self._any().entries(self._id, after), reading, most, slow)

    async def _take(self, source: Any, reading: _Reading, most: int | None = None, slow: float = 0.0) -> None:
        """Read events or entries to the end, or so many of them."""
        try:
            async with to_async_iterable(source) as items:
                async for item in items:
                    self._note(item, reading)
                    if reading is self._own and self.kind == "leaves" and self._due.is_set():
                        reading.end = _LEFT
                    most = most and most - 1
                    if most == 0 or reading.end == _LEFT:
                        return
                    await asyncio.sleep(slow)
            reading.end = reading.end or "completed"
        except (StreamInterrupted, ProviderError, EmptyStreamError) as error:
            reading.end = type(error).__name__
        reading.ended = self._loop.time()

    def _note(self, item: Any, reading: _Reading) -> None:
        if reading is self._own:
            self._begun.set()
        event = item
        if isinstance(item, Entry):
            broken_unless(item.id not in reading.ids, "a reader got an entry twice")
            reading.ids.append(item.id)
            event = item.event
        if isinstance(event, ev.TextDelta):
            reading.text += event.text
            broken_unless(
                _text(self._count).startswith(reading.text),
                f"a reader's text has a gap, or something twice: {reading.text}",
            )
        elif isinstance(event, ev.MessageInterrupted):
            reading.end = f"{event.reason}"

    async def _compare(self) -> None:
        """All readers must have the same, and one that comes now, too."""
        late = _Reading()
        if self.kind != "is deleted":
            await self._read(late)
            self._readings.append(late)
        allowed = {ENDS[self.kind]}
        if self.kind == "leaves":  # the source may have completed before
            allowed.add("completed")
        if self.kind == "is held up" or self._was_slow():
            allowed |= {"completed", "StreamInterrupted"}
        if self.kind == "is deleted":
            allowed.add("EmptyStreamError")
        ends = {reading.end for reading in self._readings}
        broken_unless(
            ends <= allowed, f"the stream ended with {ends} for its readers, and should with {allowed}"
        )
        texts = {reading.text for reading in self._readings if reading.end != "EmptyStreamError"}
        broken_unless(
            len(ends - {"EmptyStreamError"}) < 2 and len(texts) < 2,
            f"readers got different ends: {ends} behind {texts}",
        )
        for text in texts:
            broken_unless(
                text.startswith(self._own.text),
                f"readers lack what was acknowledged: {self._own.text} and not {text}",
            )
        if self.kind == "dies":
            took = max(reading.ended for reading in self._readings[:-1]) - self._died
            broken_unless(
                took < 1.25 * LEASE + SLACK,
                f"readers heard of a death {took:.1f} seconds later, with a lease of {LEASE:g}",
            )

    async def _publish_again(self) -> None:
        """The id must be free behind a `delete`, and not before."""
        relay = self._any()
        if self.kind != "is deleted":
            await self._is_refused()
            # A refused `begin` that is carried out later would take the name, for a lease.
            await asyncio.gather(*(line.settle() for line in self._lines), return_exceptions=True)
            expect("delete of a stream that is kept", await relay.delete(self._id), True)
        self.kind = "completes"
        again, read = _Reading(), _Reading()
        await self._take(from_async_iterable(self._events(self._count)).pipe(relay.publish(self._id)), again)
        await self._read(read)
        for reading in (again, read):
            end = reading.end, reading.text
            if not self._was_slow():
                expect("a stream that was published again", end, ("completed", _text(self._count)))


def _text(count: int) -> str:
    return "".join(f"{number} " for number in range(count))
