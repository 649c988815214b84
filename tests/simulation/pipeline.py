"""The pipeline of a world: from requests to events, and from events to snapshots."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from typing import Any

import reactivex as rx

import rxdelta as rd
from rxdelta.relay import Relay
from simulation import stages
from simulation.lane import Lane, Seen, watched
from simulation.provider import chunks_of, rest, send, units
from simulation.tools import run_tools
from simulation.world import Attempt, World

STREAM = "reply"
LONG = 100_000.0  # seconds: a relay keeps its streams longer than any world lasts


class Played:
    """A world that is being played, and what was seen of it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.stop = asyncio.Event()
        self.lanes: list[Lane] = []
        self.shown: list[Seen] = []
        """The snapshots of each fold, before the tail."""
        self.at_end: list[Callable[[], object]] = []
        self.relay: Relay | None = None

    async def events(self, open_for: AsyncExitStack) -> rx.Observable[Any]:
        """The events as its readers get them."""
        world = self.world
        events = rx.defer(lambda _: self._lane())
        if world.share == "events":
            return events.pipe(rd.share_events(grace=world.grace))
        if world.share in ("relay", "window"):
            window = 0.05 if world.share == "window" else None
            opened = Relay.open(lease=3.0, keep=LONG, window=window)
            self.relay = await open_for.enter_async_context(opened)
            await self.relay.start(STREAM, events)
            return self.relay.watch(STREAM)
        return events

    def snapshots(self, events: rx.Observable[Any]) -> rx.Observable[Any]:
        world = self.world
        out = watched(events.pipe(rd.scan_deltas()), self._shown)
        if world.tail:
            out = out.pipe(stages.TAILS[world.tail]())
        return out.pipe(rd.share_latest(grace=world.grace)) if world.share == "latest" else out

    def _shown(self) -> Seen:
        self.shown.append(Seen())
        return self.shown[-1]

    def new_lane(self) -> Lane:
        self.lanes.append(Lane())
        return self.lanes[-1]

    def _lane(self) -> rx.Observable[Any]:
        lane = self.new_lane()
        return self._requests(lane).pipe(*self.operators(lane))

    def operators(self, lane: Lane) -> list[Any]:
        """The operators on events, with the tools among them; the lane sees what comes out."""
        world = self.world
        out = [stages.STAGES[name].make(self, lane) for name in world.before]
        if world.tools is not None:
            out.append(run_tools(world.tools, lane))
        out += [stages.STAGES[name].make(self, lane) for name in world.after]
        return [*out, lambda source: watched(source, lambda: lane.events)]

    def _requests(self, lane: Lane) -> rx.Observable[Any]:
        world = self.world
        if len(world.attempts) == 1:
            return self._decoded(lane, None)
        if world.ask in ("fallback", "race"):
            sources = [lambda: self._decoded(lane, None) for _ in world.attempts]
            return rd.fallback(*sources) if world.ask == "fallback" else rd.race(*sources, after=0.2)

        def request(snapshot: rd.Snapshot | None) -> rx.Observable[Any]:
            return self._decoded(lane, snapshot)

        return rd.retry_stream(request, len(world.attempts), lambda *_: 0.5, world.ask == "resume")

    def _decoded(self, lane: Lane, snapshot: rd.Snapshot | None) -> rx.Observable[Any]:
        source = rd.from_async_iterable(lambda: self.request(lane, snapshot))
        operators = [rd.stall_timeout(idle=5.0, first=5.0), *self.parse(), rd.decode(self.world.format)]
        return source.pipe(*operators)

    def parse(self) -> list[Any]:
        if self.world.cuts is None:
            return []
        return [rd.parse_ndjson() if self.world.format == "ollama" else rd.parse_sse()]

    async def request(self, lane: Lane, snapshot: rd.Snapshot | None = None) -> AsyncIterator[Any]:
        """One request, which continues the snapshot if there is one."""
        world = self.world
        attempt: Attempt = world.attempts[min(lane.requests, len(world.attempts) - 1)]
        lane.requests += 1
        says, first = world.says, 0
        if snapshot is not None:
            says, first = rest(world, len(snapshot.text), len(snapshot.tool_calls))
        sent = units(world, attempt, chunks_of(world, says, first, attempt.ends))
        try:
            async for unit in send(attempt, sent):
                yield unit
        finally:
            lane.closed += 1
