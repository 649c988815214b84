"""Several runs in one stream of chunks: a decoder for each, and their events with the run's name.

A decoder reads one message after the other and knows no runs. Where a format's chunks say to which run they belong
(`Format.address`), this wraps its decoders, outside of all else that wraps one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rxdelta.core import ByRun, Event, clean_text, in_run
from rxdelta.core.events import MessageStart
from rxdelta.formats.known_calls import PROSE, KnowsCalls
from rxdelta.framing import DONE

if TYPE_CHECKING:
    from rxdelta.formats.decoding import Decoder

__all__ = ["Address", "RunsDecoder"]


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
            return self._told(self._of_all(lambda decoder: decoder.decode(DONE)))
        address = self._address(chunk)
        if address is None:
            events = self._without_run.decode(chunk)
            return events if len(events) == 1 and type(events[0]) in PROSE else self._told(events)
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
        return self._told(_named(events, address))

    def close(self) -> Sequence[Event]:
        events = self._of_all(lambda decoder: decoder.close())
        self._runs.clear()
        return self._told_last(events)

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
