"""The fold of events into snapshots."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rxdelta.core import Event, Fold, InvalidValueError, Snapshot, is_over, with_snapshot
from rxdelta.runtime import Sink, all_events, lift_map, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


_LOG = logging.getLogger("rxdelta")
_LINE = (
    "the reply%s has ended with events that break the protocol's rules (%s), so it may lack something: an operator "
    "in front, such as ops.skip or ops.filter, or a gateway has dropped or repeated events; see Snapshot.violations"
)


@operator_maker
def scan_deltas(
    seed: Snapshot | None = None, choice: int | None = None
) -> Callable[[Observable[Event | Snapshot]], Observable[Snapshot]]:
    """Emit the reply so far, as a `Snapshot`, after each event or small delta that changes it.

    ::

        events     The  _tide     -_is          -_high             |
                   scan_deltas()
        snapshots  <The><The tide>-<The tide is>-<The tide is high>[<The tide is high><The tide is high ✓>|]

    Events are folded as by `apply_event`, `MessageDelta`s as by `merge_delta`. Snapshots share their unchanged
    parts and may all be kept. An event that changes nothing (a ping, an empty delta) emits nothing. As everywhere in
    Rx, a source that emits on several threads must serialise its emissions.

    An event that breaks a rule of the protocol is counted in `Snapshot.violations`. A reply that ends with violations is
    a warning in the log `rxdelta`, one line for each subscription: something in front has dropped or repeated events.

    Completes with the source; a stream that was cut off leaves the last snapshot `incomplete`.

    Args:
        seed: A snapshot to start from, e.g. a stored half of the reply; it is not emitted itself.
        choice: Which of several alternative replies to fold; by default the seed's, else that of `only_choice`.

    Raises:
        InvalidValueError: At once, for an invalid argument. When the pipeline is built, for an operator directly in
            front that drops events: a newest-value operator, or `ops.sample`, `debounce`, `throttle_first`, `distinct`,
            `skip`, `take_last` and their kin. With a `seed`, `skip` is allowed.

    Errors: Every error behind this operator has `.snapshot`, the newest of this fold. `ProviderError` for a
    `StreamError`; `LimitExceededError`; `ProtocolError` if another message begins (two merged replies, or a
    conversation, which `group_by_message()` splits); `InvalidValueError` for a value that is neither event nor delta.
    Errors of rxdelta from upstream are passed on; any other becomes the `__cause__` of a `StreamInterrupted`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> pieces = rx.of(rd.MessageDelta(content="Hel"), rd.MessageDelta(content="lo"))
        >>> pieces.pipe(rd.scan_deltas()).subscribe(lambda snapshot: print(snapshot.text)).dispose()
        Hel
        Hello
    """
    if seed is not None and not isinstance(seed, Snapshot):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidValueError.of([("seed", seed, "must be a Snapshot")])
    if choice is None and seed is not None:
        choice = seed.choice

    def begin(sink: Sink[Snapshot]) -> Scan:
        return Scan(Fold(seed, choice=sink.choice if choice is None else choice, limits=sink.limits))

    scan: Callable[[Observable[Event | Snapshot]], Observable[Snapshot]] = lift_map(
        "scan_deltas",
        begin,
        reads="events or snapshots",
        emits="snapshots",
        needs_all=True,
    )
    return all_events("scan_deltas", scan, goes_on=seed is not None)


class Scan:
    """One subscription's state."""

    def __init__(self, fold: Fold) -> None:
        self._fold = fold
        self._step = fold.step
        self._latest = fold.snapshot
        self._head = fold.snapshot._head
        self._is_logged = False  # whether the log has the violations

    def step(self, event: Event | Snapshot) -> Snapshot | None:
        snapshot = self._step(event)
        if snapshot is self._latest:
            return None
        self._latest = snapshot
        if snapshot._head is not self._head:
            self._head = snapshot._head
            if is_over(snapshot):  # whoever waits for that may leave now
                self._tell()
        return snapshot

    def _tell(self) -> None:
        """Log once that the reply has violations, if it has."""
        snapshot = self._fold.snapshot
        if snapshot.violations and not self._is_logged:
            self._is_logged = True
            counts = ", ".join(f"{name} {count}" for name, count in snapshot.violations.items())
            _LOG.warning(_LINE, "" if snapshot.id is None else f" {snapshot.id!r:.80}", counts)

    def close(self) -> Sequence[Snapshot]:
        self._tell()
        return ()

    def fail(self, error: Exception) -> tuple[Sequence[Snapshot], Exception]:
        self._tell()
        return (), with_snapshot(error, self._fold.snapshot)
