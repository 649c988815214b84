"""The operators that a pipeline may have, each with what it makes of the reply's text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import attrs
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject

import rxdelta as rd
from simulation.lane import Lane

if TYPE_CHECKING:
    from simulation.pipeline import Played

ev = rd.events


def same(text: str) -> str:
    return text


@attrs.frozen
class Stage:
    """An operator on events.

    Attributes:
        make: Makes it for one subscription.
        text: The text of the whole reply behind it.
        ends: Whether it may end the reply early, with a beginning of this text and fewer calls.
    """

    make: Callable[[Played, Lane], Any]
    text: Callable[[str], str] = same
    ends: bool = False


def merged(split: Any) -> Any:
    return lambda source: source.pipe(split, ops.merge_all())


def nothing(*_: Any) -> None:
    pass


def settled(lane: Lane) -> Any:
    def count(*_: Any) -> None:
        lane.settled += 1

    def subscribed(source: Any) -> Any:
        lane.to_settle += 1
        return source.pipe(rd.on_settled(count))

    return lambda source: rx.defer(lambda _: subscribed(source))


def said(played: Played) -> Any:
    """What the application says meanwhile."""
    notes: Subject[Any] = Subject()
    loop = asyncio.get_running_loop()
    timer = loop.call_later(0.2, lambda: notes.on_next(ev.Custom("note", {"n": 1})))
    played.at_end.append(timer.cancel)
    return rd.with_custom(notes)


async def allows(_: str) -> bool:
    await asyncio.sleep(0.01)
    return True


def until_word(text: str) -> str:
    return text.partition("wörd3")[0]


STAGES: dict[str, Stage] = {
    "compact_deltas": Stage(lambda *_: rd.compact_deltas(0.2)),
    "smooth": Stage(lambda *_: rd.smooth("word", rate=50.0)),
    "tap_metrics": Stage(lambda *_: rd.tap_metrics(nothing)),
    "on_settled": Stage(lambda _, lane: settled(lane)),
    "by_message": Stage(lambda *_: merged(rd.group_by_message())),
    "by_run": Stage(lambda *_: merged(rd.group_by_run())),
    "by_choice": Stage(lambda *_: merged(rd.group_by_choice())),
    "with_run": Stage(lambda *_: rd.with_run("r")),
    "validate": Stage(lambda *_: rd.validate(nothing)),
    "with_custom": Stage(lambda played, _: said(played)),
    "stall_timeout": Stage(lambda *_: rd.stall_timeout(idle=200.0)),
    "share_events": Stage(lambda *_: rd.share_events()),
    "upper": Stage(lambda *_: rd.map_text(str.upper), str.upper),
    "redact": Stage(lambda *_: rd.redact("wörd1"), lambda text: text.replace("wörd1", "[redacted]")),
    "cut_text": Stage(lambda *_: rd.cut_text("word")),
    "until_sequence": Stage(lambda *_: rd.until_sequence("wörd3"), until_word, ends=True),
    "guard": Stage(lambda *_: rd.guard(allows, "word")),
    "refuse": Stage(lambda *_: rd.guard(lambda text: "wörd2" not in text, "word"), ends=True),
    "stopped": Stage(lambda played, _: rd.until_stopped(played.stop), ends=True),
}

TAILS: dict[str, Callable[[], Any]] = {
    "throttle_latest": lambda: rd.throttle_latest(0.15),
    "debounce_latest": lambda: rd.debounce_latest(0.2, 1.0),
    "conflate": rd.conflate,
    "until_all_tools_terminal": rd.until_all_tools_terminal,
}
"""On snapshots."""
