"""A reply up to a stop sequence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import InvalidValueError, TokenUsage, is_list
from rxdelta.core.events import (
    AttemptReset,
    Event,
    MessageFinish,
    MessageInterrupted,
    StreamError,
    UsageUpdate,
)
from rxdelta.operators.text.matches import unfinished
from rxdelta.operators.text.rewriting import Rewriting
from rxdelta.operators.text.text import Lane, Lanes
from rxdelta.runtime import Sink, all_events, lift, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def until_sequence(*sequences: str, drain: bool = False) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events up to the first of some sequences in the text; then the end of the message, and completion.

    ::

        events  The _tide. _E ND                            _of _it|
                until_sequence("END")
        events  The _tide. _  [(finish:stop,stop_sequence)|]

    Nothing of the sequence is emitted, nor of what comes behind it. The message is `complete` with the finish reason
    `stop`, as if the provider had been given the sequence: `provider_finish_reason` is `stop_sequence`, and the metadata
    have the sequence itself as `stop_sequence`. A block's text ends before the first sequence in it, however the text was
    cut; of two that begin at one place the shorter counts. A text that may be the beginning of a sequence is held, and
    emitted as soon as it is none, at the block's end, and where the reply is cut off. Reasoning and arguments pass.

    The source is disposed at once. It then sends no usage, which most providers tell last; with `drain` the source is
    read to its end unseen, and the message ends then, with the usage. A failure meanwhile is ignored: the reply is whole.

    Each of several replies (choices, runs) ends by itself. The stream completes when all that have begun are over, so a
    choice that would begin later is lost; `only_choice` in front leaves one. Calls that are open then are invalid. Put it
    behind `retry_stream`, and in front of `run_tools`, `share_events`, `scan_deltas` and encoders.

    Completes with the source, or at the sequence.

    Args:
        sequences: One or more texts.
        drain: Whether to read on, for the usage.

    Raises:
        InvalidValueError: At once, without a sequence, and for one that is no text or empty.

    Errors: The source's own. `InvalidValueError` for a value that is no event; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": ""})
        >>> deltas = [rd.events.TextDelta(0, piece) for piece in ("Blue.\\n", "\\nQues", "tion: why?")]
        >>> reply = rx.from_iterable([start, *deltas]).pipe(rd.until_sequence("\\n\\nQuestion:"), rd.scan_deltas()).run()
        >>> reply.text, reply.finish_reason
        ('Blue.', 'stop')
    """
    wanted = Sequences(sequences)
    until: Callable[[Observable[Event]], Observable[Event]]
    until = lift("until_sequence", lambda sink: _Until(sink, wanted, drain), emits="events")
    return all_events("until_sequence", until, needs_all=True)


class _Until:
    """One subscription's state."""

    def __init__(self, sink: Sink[Event], sequences: Sequences, drain: bool) -> None:
        self._sink = sink
        self._drain = drain
        self._rewriting = Rewriting(sink, lambda: Stops(sequences), reasoning=False)
        self._lanes = Lanes()
        self._ends: dict[Lane, MessageFinish] = {}  # that wait for the usage

    def on_next(self, event: Event) -> None:
        if type(event) in _BREAKS_OFF and self._ends and self._lanes.all_over():
            self.on_completed()
            return
        lane = self._lanes.begin(event)
        if type(event) is AttemptReset:
            self._ends = {lane: end for lane, end in self._ends.items() if lane in self._lanes.ended}
        if lane is not None and lane in self._lanes.ended:
            self._read_on(lane, event)
            return
        hit = self._pass(event)
        if hit is not None and lane is not None:
            self._stop(lane, hit, event)

    def _pass(self, event: Event) -> str | None:
        """Emit the event up to a sequence that its text reaches, and return the sequence."""
        for step in self._rewriting.steps(event):
            for one in self._rewriting.events(step, step.pieces):
                self._sink.on_next(one)
            stops: Any = None if step.text is None else step.text.filter
            if isinstance(stops, Stops) and stops.hit is not None:
                return stops.hit
        return None

    def _stop(self, lane: Lane, hit: str, event: Event) -> None:
        run_id, choice = lane
        for one in self._rewriting.ending(lane, "the reply reached a stop sequence while the call was open"):
            self._sink.on_next(one)
        self._lanes.end(lane)
        self._ends[lane] = MessageFinish(
            "stop", "stop_sequence", None, {"stop_sequence": hit}, choice=choice, run_id=run_id
        )
        if isinstance(event, MessageFinish) or not self._drain:
            self._end(lane, getattr(event, "usage", None))

    def _read_on(self, lane: Lane, event: Event) -> None:
        """Take the usage of a reply that a sequence has ended."""
        if lane in self._ends:
            if isinstance(event, UsageUpdate):
                self._sink.on_next(event)
            elif isinstance(event, MessageFinish):
                self._end(lane, event.usage)

    def _end(self, lane: Lane, usage: TokenUsage | None = None) -> None:
        end = self._ends.pop(lane)
        self._sink.on_next(end if usage is None else attrs.evolve(end, usage=usage))
        if self._lanes.all_over() and not self._ends:
            self._sink.on_completed()

    def on_error(self, error: Exception) -> None:
        if self._ends and self._lanes.all_over():
            self.on_completed()
        else:
            self._flush()
            self._sink.on_error(error)

    def on_completed(self) -> None:
        self._flush()
        self._sink.on_completed()

    def _flush(self) -> None:
        for lane in list(self._ends):
            self._end(lane)
        for event in self._rewriting.close():
            self._sink.on_next(event)


_BREAKS_OFF = frozenset([StreamError, MessageInterrupted, AttemptReset])
"""Events that would take a whole reply back, or say that it is cut, while the source is only read for the usage."""


class Sequences:
    """The sequences, checked. Where two begin at one place, the shorter one is found.

    Raises:
        InvalidValueError: There are none, or one is no text or empty.
    """

    def __init__(self, sequences: Sequence[Any]) -> None:
        wrong = next((one for one in sequences if not isinstance(one, str) or not one), None)
        if not sequences or wrong is not None or any(one == "" for one in sequences):
            advice = "write until_sequence(*sequences)" if is_list(wrong) else ""
            wanted = "must be one or more texts that aren't empty"
            raise InvalidValueError.of([("sequences", sequences if wrong is None else wrong, wanted, advice)])
        self.pattern = re.compile("|".join(map(re.escape, sorted(sequences, key=len))))
        self.waiting, _ = unfinished(self.pattern)


class Stops:
    """One block's text up to the first sequence. It holds only what may be the beginning of one.

    Attributes:
        hit: The sequence that has been found; the text ends before it.
    """

    __slots__ = ("_held", "_sequences", "hit")

    @property
    def changes(self) -> Sequence[tuple[int, int, int]]:
        return ()  # no part has another length

    def __init__(self, sequences: Sequences) -> None:
        self._sequences = sequences
        self._held = ""
        self.hit: str | None = None

    def feed(self, text: str) -> Sequence[str]:
        """Take more of the text, and return what is certain."""
        if self.hit is not None:
            return ()
        whole = self._held + text if self._held else text
        found = self._sequences.waiting.search(whole)
        if found is None or found.start() == len(whole):
            self._held = ""
            return (whole,)
        return self._until(whole, found.start())

    def close(self) -> Sequence[str]:
        """Return the rest: the text has ended."""
        whole, self._held = self._held, ""
        found = self._sequences.pattern.search(whole)
        if found is not None:
            return self._until(whole, found.start())
        return (whole,) if whole else ()

    def _until(self, text: str, place: int) -> Sequence[str]:
        """The text up to where a sequence begins, or may have begun."""
        found = self._sequences.pattern.match(text, place)
        self.hit = None if found is None else found[0]
        self._held = text[place:] if found is None else ""
        return (text[:place],) if place else ()
