"""Plays a world in virtual time."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
import warnings
from contextlib import AsyncExitStack
from typing import Any

import rxdelta as rd
from rxdelta.testing import VirtualTime
from simulation.blocking import BLOCKING, read_blocking
from simulation.oracle import Verdict, judge
from simulation.pipeline import Played
from simulation.readers import DOORS, Log, read
from simulation.replies import USES
from simulation.world import Reader, World

SECONDS = 30.0  # real ones, for a thread
REST = 60.0  # virtual seconds in which everything that was begun must have ended


def play(world: World, *, twice: bool = False) -> Verdict:
    """What the laws say of one run; with `twice`, of two runs, which must be the same."""
    verdict, told = _play(world)
    if twice and not _is_threaded(world):
        again = _play(world)[1]
        verdict.law("same", again == told, told, again)
    return verdict


def _is_threaded(world: World) -> bool:
    """Whether a thread is at work, for which the clock waits: it counts real seconds then."""
    return world.readers[0].door in BLOCKING or any(call.tool == "plain" for call in world.calls)


def _play(world: World) -> tuple[Verdict, str]:
    time = VirtualTime()
    logging.disable(logging.CRITICAL)  # worlds that fail say so in the log of rxdelta
    reports: list[dict[str, Any]] = []
    left: list[str] = []
    threads = {*threading.enumerate()}
    played: list[Played] = []
    logs: list[Log] = []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if world.readers[0].door in BLOCKING:
                played.append(Played(world))
                logs.append(Log(world.readers[0]))
                read_blocking(logs[0], played[0])
            else:
                time.run(_main(world, played, logs, reports, left))
        fault = None
    except rd.RxDeltaError as error:
        fault = error
    finally:
        logging.disable(logging.NOTSET)
    if fault is not None:
        verdict = Verdict()
        verdict.law("ends", False, fault)
        return verdict, repr(fault)
    verdict = judge(world, played[0], logs)
    for thread in {*threading.enumerate()} - threads:
        thread.join(SECONDS)  # it may still return from its last value
        left += [thread.name] if thread.is_alive() else []
    verdict.law("nothing left", not left, left)
    told = [f"{report.get('message')} {report.get('exception')!r}" for report in reports]
    if all(attempt.closes != "raises" for attempt in world.attempts):
        verdict.law("nothing left", not told, told)
    seen = [
        (log.reader.door, len(log.got), repr(log.end), [str(item)[:200] for item in log.got[-1:]])
        for log in logs
    ]
    return verdict, f"{seen} at {time.elapsed:.3f}"  # Rx rounds to microseconds


async def _main(
    world: World, made: list[Played], logs: list[Log], reports: list[dict[str, Any]], left: list[str]
) -> None:
    loop: Any = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reports.append(context))
    played = Played(world)
    made.append(played)
    if world.stopped:
        played.at_end.append(loop.call_later(world.stopped, played.stop.set).cancel)
    async with AsyncExitStack() as opened:
        events = snapshots = None
        if any(reader.door in DOORS for reader in world.readers):
            events = await played.events(opened)
            snapshots = played.snapshots(events)
        reading = [_reading(reader, played, events, snapshots) for reader in world.readers]
        logs += await asyncio.gather(
            *(read(reader, one) for reader, one in zip(world.readers, reading, strict=True))
        )
        await asyncio.sleep(REST)
    await asyncio.sleep(REST)
    for end in played.at_end:
        end()
    gc.collect(0)  # an error of a task that nobody has taken is reported then
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    left += [f"{task.get_coro()}" for task in tasks]
    left += [f"{timer}" for timer in loop._scheduled if not timer.cancelled()]


def _reading(reader: Reader, played: Played, events: Any, snapshots: Any) -> Any:
    if reader.door in DOORS:
        return lambda log: DOORS[reader.door](log, played, events, snapshots)
    return lambda log: USES[reader.door](log, played)
