"""A seed becomes a world."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import attrs
from support.shared import RECORDED

from simulation.blocking import BLOCKING, TIMELESS
from simulation.provider import NO_BYTES, WIRES, recorded
from simulation.readers import DOORS
from simulation.replies import USES
from simulation.stages import STAGES, TAILS
from simulation.tools import KINDS
from simulation.world import Attempt, Call, Fault, Part, Reader, Thought, Tools, World

FREE = sorted({*STAGES} - {"stopped"})
# A person may stall the tools for ever, and `until_sequence` has its place in front of them.
BEHIND_TOOLS = sorted({*FREE} - {"stall_timeout", "until_sequence"})
PAUSES = ("none", "turns", "tenths", "uneven")


def draw(seed: int) -> World:
    """The world of this seed."""
    dice = Random(seed)
    wire = dice.choice(WIRES)
    # Without the recordings a seed's world is another one, but the worlds of other seeds are the same.
    streams = sorted(recorded(wire)) if seed % 8 == 0 and wire in RECORDED else []
    who = dice.choice(["doors"] * 8 + ["uses"] * 2 + ["blocking"])
    # One of 1,500 replies: each is written in a format only once, for all worlds that have it.
    reply = Random(f"reply {dice.randrange(1500)}")
    says, woven = _says(reply)
    world = World(
        says=says,
        letters=reply.choice([0, 0, 1, 3, 7]),
        woven=woven,
        wire=wire,
        recorded=f"{wire}/{dice.choice(streams)}" if streams else "",
        cuts=_cuts(dice) if wire not in NO_BYTES and dice.random() < 0.5 else None,
        attempts=(_attempt(dice),),
        stopped=dice.choice([0.0, 0.0, 0.0, 0.0, 0.3, 2.0]),
    )
    if who == "blocking":
        quick = tuple(dice.choice(TIMELESS) for _ in range(dice.randrange(3)))
        only = Attempt(
            dice.choice(["whole", "whole", "raises", "ends", "error", "base"]), dice.randrange(1001)
        )
        return attrs.evolve(
            world,
            attempts=(attrs.evolve(only, at=1000) if only.ends in ("whole", "error") else only,),
            before=quick,
            stopped=0.0,
            readers=(Reader(dice.choice([*BLOCKING]), leaves=dice.choice([0, 0, 1, 3])),),
        )
    world = attrs.evolve(
        world,
        before=_stages(dice, FREE, world.stopped),
        tools=_tools(dice) if dice.random() < 0.6 and not streams else None,
        after=_stages(dice, BEHIND_TOOLS),
    )
    if who == "uses":
        use = Reader(dice.choice([*USES]), leaves=dice.choice([0, 0, 1, 3]))
        return attrs.evolve(world, every=dice.choice([None, 0.1, 1.0]), readers=(use,))
    more = tuple(_failed(dice) for _ in range(dice.choice([0, 0, 0, 0, 0, 1, 2])))
    share = dice.choice(["", "", "", "events", "latest", "relay", "window"])
    asks = ["retry", "fallback", "race"] if streams else ["retry", "resume", "resume", "fallback", "race"]
    return attrs.evolve(
        world,
        attempts=more + world.attempts,
        ask=dice.choice(asks) if more else "retry",
        repeats=bool(more) and dice.random() < 0.5,
        share=share,
        grace=dice.choice([None, None, 1.0]) if share else None,
        tail=dice.choice(["", "", *TAILS]),
        readers=tuple(_reader(dice, share) for _ in range(dice.choice([1, 1, 1, 2, 3]))),
    )


def _cuts(dice: Random) -> tuple[int, ...]:
    return tuple(dice.randrange(1001) for _ in range(dice.randrange(8)))


def _says(dice: Random) -> tuple[tuple[Part, ...], bool]:
    out: list[Part] = [Thought()] if dice.random() < 0.2 else []
    word = 0
    for _ in range(dice.choice([1, 1, 2, 3])):
        if dice.random() < 0.7:
            size = dice.randrange(1, 7)
            out.append("".join(f"wörd{number} " for number in range(word, word + size)))
            word += size
        out += [Call(dice.choice(KINDS)) for _ in range(dice.choice([0, 0, 1, 1, 2]))]
    return tuple(out) or ("wörd0 ",), dice.random() < 0.3


def _tools(dice: Random) -> Tools:
    return Tools(
        most=dice.choice([None, 1, 2]),
        timeout=dice.choice([2.0, 2.0, None]),
        start=dice.choice(["ready", "message"]),
        unknown=dice.choice(["fail", "leave"]),
        approve=dice.choice([None, None, None, "yes", "no", "late", "never", "undecided", "raises"]),
    )


def _attempt(dice: Random) -> Attempt:
    if dice.random() < 0.5:
        return Attempt(pauses=dice.choice(PAUSES))
    faults = dice.choice([0, 0, 0, 1, 2])
    ends = dice.choice(["whole", "raises", "raises", "ends", "stalls", "error", "error", "cancelled", "base"])
    return Attempt(
        ends=ends,
        at=1000 if ends in ("whole", "error") else dice.randrange(1001),
        faults=tuple(
            Fault(dice.choice(["double", "drop", "swap", "garble"]), dice.randrange(1000))
            for _ in range(faults)
        ),
        pauses=dice.choice(PAUSES),
        closes=dice.choice(["at once", "at once", "at once", "slowly", "raises"]),
    )


def _failed(dice: Random) -> Attempt:
    """One behind which another is worth a try."""
    ends = dice.choice(["raises", "raises", "stalls", "error"])
    return Attempt(ends, 1000 if ends == "error" else dice.randrange(1001), pauses=dice.choice(PAUSES))


def _stages(dice: Random, names: Sequence[str], stopped: float = 0.0) -> tuple[str, ...]:
    out = [dice.choice(names) for _ in range(dice.choice([0, 0, 1, 1, 2]))]
    return tuple([*out, "stopped"] if stopped else out)


def _reader(dice: Random, share: str) -> Reader:
    doors: list[Any] = (
        [*DOORS] if share in ("relay", "window") else [*(door for door in DOORS if door != "resumes")]
    )
    return Reader(
        door=dice.choice(doors),
        joins=dice.choice([0.0, 0.0, 0.05, 1.0, 7.0]),
        leaves=dice.choice([0, 0, 0, 0, 0, 1, 3, 8]),
        naps=dice.choice([0.0, 0.0, 0.02, 1.0]),
        cancelled=dice.choice([0.0, 0.0, 0.0, 0.0, 0.0, 0.4, 6.0]),
    )
