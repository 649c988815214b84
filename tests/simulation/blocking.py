"""Readers without a loop: `with rd.stream(…)` and `to_iterable`, on the thread of a script."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import rxdelta as rd
from simulation.lane import END, Lane
from simulation.pipeline import Played
from simulation.provider import SourceError, chunks_of, units
from simulation.readers import Left, Log, note

TIMELESS = ("by_message", "by_run", "by_choice", "with_run", "validate", "on_settled", "tap_metrics")
TIMELESS += ("upper", "redact", "cut_text", "until_sequence", "refuse")
"""The operators that wait for nothing."""


def _request(played: Played, lane: Lane) -> Iterator[Any]:
    """As `provider.send`, without pauses."""
    world, attempt = played.world, played.world.attempts[0]
    lane.requests += 1
    try:
        yield from units(world, attempt, chunks_of(world, world.says, ends=attempt.ends))
        match attempt.ends:
            case "raises":
                raise ConnectionError("the line is dead")
            case "base":
                raise SourceError("of the source")
    finally:
        lane.closed += 1


def _open(played: Played) -> Any:
    lane = played.new_lane()
    source: Any = _request(played, lane)
    if played.world.cuts is not None:
        source = rd.from_iterable(source).pipe(*played.parse())
    return rd.stream(source, played.world.format, through=played.operators(lane))


def _iterated(log: Log, played: Played) -> None:
    with _open(played) as reply:
        for snapshot in reply:
            note(log, snapshot)
        if log.got and log.got[-1] != reply.snapshot:
            log.wrong.append("the last snapshot of the loop isn't that of the reply")


def _result(log: Log, played: Played) -> None:
    with _open(played) as reply:
        log.got.append(reply.result())


def _text_deltas(log: Log, played: Played) -> None:
    with _open(played) as reply:
        for text in reply.text_deltas:
            note(log, text)


def _left(log: Log, played: Played) -> None:
    with _open(played):
        raise Left


def _to_iterable(log: Log, played: Played) -> None:
    lane = played.new_lane()
    source: Any = rd.from_iterable(_request(played, lane))
    events = source.pipe(*played.parse(), rd.decode(played.world.format), *played.operators(lane))
    with rd.to_iterable(events.pipe(rd.scan_deltas())) as values:
        for snapshot in values:
            note(log, snapshot)


BLOCKING: dict[str, Callable[[Log, Played], None]] = {
    "blocking: stream": _iterated,
    "blocking: result": _result,
    "blocking: text_deltas": _text_deltas,
    "blocking: left": _left,
    "blocking: to_iterable": _to_iterable,
}


def read_blocking(log: Log, played: Played) -> None:
    try:
        BLOCKING[log.reader.door](log, played)
    except Left:
        log.end = "left"
    except BaseException as error:
        log.end = error
    else:
        log.end = END
