"""Several runs in one stream: a decoder for each, and a lane of an encoder for each.

A decoder reads one message after the other and knows no runs. Where a format's chunks say to which run they belong
(`Format.address`), `RunsDecoder` wraps its decoders. It is the outermost wrapper.

`Lanes` keeps the runs of a stream apart for an encoder; `RunIdentity` is what a client learns of one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

from rxdelta.core import (
    BlockFold,
    ByRun,
    Event,
    Limits,
    Tail,
    Walk,
    clean_text,
    concerns_any_run,
    concerns_choice,
    in_run,
)
from rxdelta.core.events import (
    AttemptReset,
    MessageStart,
    ProviderEvent,
    StreamError,
    ToolUpdate,
    UsageUpdate,
)
from rxdelta.formats.calls import PROSE, KnowsCalls
from rxdelta.framing import DONE

if TYPE_CHECKING:
    from rxdelta.formats.decoding import Decoder


class Address(NamedTuple):
    """To which run a chunk belongs.

    Attributes:
        run_id: The run.
        parent_run_id: The run that started it, if the chunk says so.
        last: Whether the chunk ends the message of the run. The run's next chunk, if there is one, begins another.
        repeated: Whether the chunk has nothing but what the run's chunks have said before. It is left out.
    """

    run_id: str
    parent_run_id: str | None = None
    last: bool = False
    repeated: bool = False


class RunsDecoder(KnowsCalls):
    """A decoder for each run. A chunk without a run goes to one more decoder, and its events stay as they are.

    Args:
        make: Makes a decoder of the format.
        address: Says to which run a chunk belongs; `None` if to none.

    Raises:
        LimitExceededError: More runs are open than `Limits.runs`.
    """

    def __init__(self, make: Callable[[], Decoder], address: Callable[[object], Address | None]) -> None:
        self._make = make
        self._address = address
        self._without_run = make()
        self._runs: ByRun[tuple[Decoder, Address]] = ByRun()  # in the order of their beginning

    def decode(self, chunk: object, /) -> Sequence[Event]:
        if chunk is DONE:  # it concerns all runs
            return self._checked(self._of_all(lambda decoder: decoder.decode(DONE)))
        address = self._address(chunk)
        if address is None:
            events = self._without_run.decode(chunk)
            return events if len(events) == 1 and type(events[0]) in PROSE else self._checked(events)
        if address.repeated:
            return ()
        known = self._runs.get(address.run_id)
        if known is None:
            known = self._runs[address.run_id] = self._make(), address
        decoder, _ = known
        events = decoder.decode(chunk)
        if address.last:
            events = [*events, *decoder.close()]
            del self._runs[address.run_id]
        return self._checked(_named(events, address))

    def close(self) -> Sequence[Event]:
        events = self._of_all(lambda decoder: decoder.close())
        self._runs.clear()
        return self._checked_last(events)

    def _of_all(self, decode: Callable[[Decoder], Sequence[Event]]) -> Sequence[Event]:
        events = [*decode(self._without_run)]
        for decoder, address in self._runs.values():
            events += _named(decode(decoder), address)
        return events


def _named(events: Sequence[Event], address: Address) -> Sequence[Event]:
    """The events with the run. They are fresh, so most are changed in place, which costs a tenth of a copy."""
    run_id, parent = clean_text(address.run_id), address.parent_run_id
    named = None
    for place, event in enumerate(events):
        if event.run_id is not None or (type(event) is MessageStart and event.parent_run_id != parent):
            named = [*events] if named is None else named
            named[place] = in_run(event, run_id, parent)
        else:
            object.__setattr__(event, "run_id", run_id)
    return events if named is None else named


class RunIdentity:
    """Which run of its stream a lane is, and which run it works for.

    Args:
        first: The identity of the stream's first run, which is the agent's own; `None` if this is the first.

    Attributes:
        name: A name that no other run of the stream has; empty until the run begins.
        parent: The run's parent.
        subagent: Whether the run works for another one: it has a parent, and not the same as the first run.
        noted: Whether the client is told which messages the run has, since there are several runs.
    """

    def __init__(self, first: RunIdentity | None) -> None:
        self.first = first
        self.name = ""
        self.parent: str | None = None
        self.subagent = self.noted = self._lacks_parent = False

    def begin(self, name: str) -> None:
        """The run begins, and has this name."""
        self.name, self.noted, self._lacks_parent = name, self.first is not None, True

    def read_parent(self, event: Event) -> bool:
        """Read the run's parent from its first event that shows the client anything. Return whether this event was the first."""
        # A reset names the run, not its parent: the start of the next attempt does.
        if not self._lacks_parent or isinstance(event, AttemptReset):
            return False
        self._lacks_parent = False
        self.parent = event.parent_run_id if isinstance(event, MessageStart) else None
        self.subagent = self.first is not None and self.parent not in (None, self.first.parent)
        return True

    def facts(self, run_id: str, first: str, parent_run_id: str) -> dict[str, Any]:
        """What the client is told of the run, under these names."""
        known: dict[str, Any] = {run_id: self.name}
        if self.first is None:
            known[first] = True
        if self.parent is not None:
            known[parent_run_id] = self.parent
        return known


class Lane(Protocol):
    """What an encoder has of one run."""

    @property
    def walk(self) -> Walk: ...

    def begin(self, event: Event, /) -> None:
        """The run begins with this event."""


L = TypeVar("L", bound=Lane)

_BEGIN_NO_RUN = (ToolUpdate, ProviderEvent)
"""The events that begin no run: they tell of something that has begun, or are of no message."""


class Lanes(Generic[L]):
    """The runs of a stream, each with what an encoder has of it.

    The first lane exists from the beginning, for events that concern whichever run there is. It is taken by the first
    run that comes, so a stream of one run, with or without a name, is encoded in one lane.

    Args:
        make: Makes a lane, of the walk that follows its run, and of the first lane; `None` for the first lane itself.
        choice: The choice that the encoder shows. Events of another choice begin no run.
        limits: Bounds the number of runs.

    Attributes:
        first: The first lane.
        newest: The lane that an encoder has turned to, so that it needn't look up the run of each delta.
        newest_id: The run of this lane; no name at all before the first turn.
    """

    def __init__(self, make: Callable[[Walk, L | None], L], choice: int, limits: Limits) -> None:
        self._make = make
        self._choice = choice
        self._limits = limits
        self._lanes: dict[str | None, L] = ByRun(limits)
        self.first = self.newest = self._new(None)
        self.newest_id: object = self  # which no run is named
        self._tails: dict[BlockFold | None, Tail] = {}  # each of a block that has grown since `settle`

    def _new(self, first: L | None) -> L:
        return self._make(Walk(self._choice, limits=self._limits, keep_calls=True), first)

    def __iter__(self) -> Iterator[L]:
        """The lanes, in the order in which their runs began. Their blocks have all pieces."""
        self.settle()
        return iter(self._lanes.values() or (self.first,))

    def __len__(self) -> int:
        return len(self._lanes)

    @property
    def over(self) -> bool:
        """Whether the last message of each run has ended."""
        return all(lane.walk.over for lane in self)

    def find(self, run_id: str | None) -> L | None:
        """The lane of a run that has begun."""
        return self._lanes.get(run_id)

    def turn_to(self, run_id: str | None) -> bool:
        """Make the lane of a run the newest; `False` if the run hasn't begun."""
        lane = self._lanes.get(run_id)
        if lane is None:
            return False
        self.newest, self.newest_id = lane, run_id
        return True

    def grow(self, delta: Any) -> BlockFold | None:
        """Take a delta of the newest lane, and return the block that it continues.

        An encoder sends the piece. It looks at the block when something else comes, so the block has the piece only then.

        Raises:
            LimitExceededError: The block has become too large.
        """
        walk = self.newest.walk
        fold = walk.blocks.get(delta.index)
        tail = self._tails.get(fold)
        if tail is None:
            fold = walk.grow(delta)
            if fold is not None:
                self._tails[fold] = Tail(walk.grow, lambda _: walk)
        elif not tail.take(delta):
            tail.follow(delta)
            fold = walk.grow(delta)
        return fold

    def settle(self) -> None:
        """Give the blocks their pieces, before somebody looks at them."""
        for tail in self._tails.values():
            tail.settle()
        self._tails.clear()

    def of(self, event: Event) -> Sequence[L]:
        """The lanes that an event concerns; none for a run that hasn't begun, unless the event begins it.

        Raises:
            ProviderError: The event is a `StreamError`, of any run and choice.
            LimitExceededError: There are too many runs.
        """
        if not isinstance(event, UsageUpdate):  # some providers send one with each chunk
            self.settle()
        if isinstance(event, StreamError):
            self.first.walk.step(event)
        if concerns_any_run(event):
            return self._of_any_run(event)
        lane = self._lanes.get(event.run_id)
        if lane is not None:
            return (lane,)
        if isinstance(event, _BEGIN_NO_RUN) or not concerns_choice(event, self._choice):
            return ()
        lane = self._new(self.first) if self._lanes else self.first
        self._lanes[event.run_id] = lane
        lane.walk.run_id = event.run_id
        lane.begin(event)
        return (lane,)

    def _of_any_run(self, event: Event) -> Sequence[L]:
        lanes = tuple(self)
        if isinstance(event, ToolUpdate) and len(lanes) > 1:
            return [lane for lane in lanes if lane.walk.has_call(event.call_id)] or lanes[:1]
        return lanes
