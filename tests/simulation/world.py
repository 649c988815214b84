"""What is simulated, as plain values: their defaults are the plainest, and they print without them, as a program does."""

from __future__ import annotations

from typing import Any, TypeAlias, dataclass_transform

import attrs


@dataclass_transform(frozen_default=True)
def value(cls: type) -> Any:
    return attrs.frozen(cls, repr=False)


class _Written:
    """Prints as the call that makes it."""

    def __repr__(self) -> str:
        said = []
        for place, field in enumerate(attrs.fields(type(self))):
            mine = getattr(self, field.name)
            if field.default is attrs.NOTHING and place == len(said):
                said.append(repr(mine))
            elif mine != field.default:
                said.append(f"{field.name}={mine!r}")
        return f"{type(self).__name__}({', '.join(said)})"


@value
class Thought(_Written):
    """Reasoning of the model."""

    text: str = "hm "


@value
class Call(_Written):
    """A call of a tool: `tool` is one of `tools.KINDS`. The call's number is its place among the calls."""

    tool: str = "ok"


Part: TypeAlias = "str | Thought | Call"


@value
class Fault(_Written):
    """What happens to one chunk, or one piece of bytes: it is doubled, dropped, swapped with the next, or garbled."""

    how: str
    at: int = 0
    """The place, in thousandths of the stream."""


@value
class Attempt(_Written):
    """What becomes of one request."""

    ends: str = "whole"
    """`whole`, or how it is cut: `raises`, `ends`, `stalls`, `cancelled`, `base`; or `error`, which the provider
    says in the place of the end."""
    at: int = 1000
    """Where it is cut, in thousandths."""
    faults: tuple[Fault, ...] = ()
    pauses: str = "none"
    """Between chunks: `none`, `turns`, `tenths`, `uneven`."""
    closes: str = "at once"
    """`at once`, `slowly`, or `raises`."""


@value
class Tools(_Written):
    """How `run_tools` runs the calls."""

    most: int | None = None
    timeout: float | None = 2.0
    start: str = "ready"
    unknown: str = "fail"
    approve: str | None = None
    """`yes`, `no`, `late`, `never`, `undecided`, `raises`; `None` asks nobody."""


@value
class Reader(_Written):
    """Who reads, through which door of `readers.DOORS`, or `replies.USES` for `rd.stream`."""

    door: str = "for_each"
    joins: float = 0.0
    leaves: int = 0
    """After so many values; 0 is never."""
    naps: float = 0.0
    cancelled: float = 0.0
    """After so many seconds; 0 is never."""


@value
class World(_Written):
    """One run."""

    says: tuple[Part, ...] = ("word0 word1 word2 ",)
    letters: int = 0
    """How many characters a piece of text has; 0 is all of them."""
    woven: bool = False
    """Whether neighbouring calls come at a time, a piece of each in turn."""
    wire: str = "openai-chat"
    cuts: tuple[int, ...] | None = None
    """Where the bytes are cut, in thousandths; `None` sends chunks and no bytes."""
    recorded: str = ""
    """The recorded stream that comes instead, as `format/name`."""
    attempts: tuple[Attempt, ...] = (Attempt(),)
    ask: str = "retry"
    """What makes more than one request: `retry`, `resume`, `fallback`, `race`."""
    repeats: bool = False
    """Whether a provider that continues says its last words, and its last call, once more."""
    before: tuple[str, ...] = ()
    """Operators of `stages.STAGES` in front of the tools."""
    tools: Tools | None = None
    after: tuple[str, ...] = ()
    share: str = ""
    """`events`, `latest`, `relay` or `window` (a relay that joins deltas)."""
    grace: float | None = None
    tail: str = ""
    """An operator of `stages.TAILS` behind the snapshots."""
    stopped: float = 0.0
    """When the stop button is pressed, for the operator `stopped`; 0 is never."""
    every: float | None = None
    """Of `rd.stream`."""
    readers: tuple[Reader, ...] = (Reader(),)

    @property
    def format(self) -> str:
        """The wire format in which the provider sends."""
        return self.recorded.partition("/")[0] or self.wire

    @property
    def calls(self) -> list[Call]:
        return [part for part in self.says if isinstance(part, Call)]

    @property
    def is_asked_again(self) -> bool:
        """Whether a failed reply may begin anew behind what was shown of it."""
        return len(self.attempts) > 1 and self.ask in ("retry", "resume")

    @property
    def is_garbled(self) -> bool:
        """Whether chunks are other than the provider made them."""
        return any(attempt.faults for attempt in self.attempts)
