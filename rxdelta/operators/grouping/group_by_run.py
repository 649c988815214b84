"""A stream of events for each run of a stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from rxdelta.core import ByRun, Event, concerns_any_run
from rxdelta.core.events import MessageStart
from rxdelta.operators.grouping.streams import EventBranch, EventSplit, Split, hold, split_by
from rxdelta.runtime import Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


class RunStream(EventBranch):
    """The events of one run, and the events that concern every run.

    Hot. A late subscriber gets `to_events` of the run's newest message so far, then live events or the end. A subscriber
    that raises is removed, as in `BlockStream`.

    Attributes:
        run_id: The run's name; `None` is the run without a name.
        parent_run_id: The run on whose behalf this one works; `None` until it has arrived.
    """

    def __init__(self, split: Split[RunStream], run_id: str | None) -> None:
        super().__init__(split)
        self.run_id = run_id
        self.parent_run_id: str | None = None

    def _deliver(self, event: Event) -> None:
        if isinstance(event, MessageStart) and self.parent_run_id is None:
            self.parent_run_id = event.parent_run_id
        super()._deliver(event)

    @property
    def _label(self) -> str:
        return "the run without a name" if self.run_id is None else f"run {self.run_id!r}"

    def __repr__(self) -> str:
        return f"<RunStream {self.run_id}>"


@operator_maker
def group_by_run() -> Callable[[Observable[Event]], Observable[RunStream]]:
    """Emit a stream for each run of a stream: for each agent, each node of a graph, each reply on one connection.

    ::

        events   (run:sea)High(run:sky)Blue(run:sea)_tide(run:sky)_noon|
                 group_by_run()
        run sea  (run:sea)High-            _tide         -             |
        run sky               (run:sky)Blue-             _noon         |

    A stream is emitted at the first event of its run, before that event. Within a run one message ends before the next
    begins; `group_by_message()` behind this operator, or in its place, splits them. Events that name no run and concern
    every run (`ToolUpdate`, `MessageInterrupted`, `AttemptReset`, `ProviderEvent`, `Custom`) go to the runs that have begun;
    before the first run begins, they wait for it. Other events without a run belong to the run without a name. Every
    other event is emitted at once. Events are never changed. Subscriptions and threads are as in `group_by_block`.

    Completes with the source, and so do the runs.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. The runs get the error first.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> def says(text):
        ...     return rx.from_iterable(rd.to_events(rd.Message.of("assistant", text)))
        >>> agents = rx.merge(says("Paris").pipe(rd.with_run("a")), says("four").pipe(rd.with_run("b")))
        >>> replies = agents.pipe(rd.group_by_run(), rx.operators.flat_map(lambda run: run.pipe(rd.scan_deltas(), rd.to_message())))
        >>> replies.subscribe(lambda message: print(message.run_id, message.text)).dispose()
        a Paris
        b four
    """

    return split_by("group_by_run", _ByRun)


class _ByRun(EventSplit[RunStream]):
    """One subscription's state."""

    def __init__(self, sink: Sink[RunStream]) -> None:
        super().__init__(sink)
        self._waiting: dict[object, Event] = {}  # events for the first run

    @cached_property
    def _runs(self) -> dict[str | None, RunStream]:
        return ByRun(self.sink.limits)  # which are known at the first event

    def _route(self, event: Event) -> None:
        if not concerns_any_run(event):
            stream = self._runs.get(event.run_id) or self._begin(event.run_id, event)
            if stream is not None:
                stream._deliver(event)
        elif self._runs:
            for stream in [*self._runs.values()]:
                stream._deliver(event)
        else:
            hold(self._waiting, event)

    def _begin(self, run_id: str | None, first: Event | None) -> RunStream | None:
        if self._outer_left:
            return None
        stream = self._runs[run_id] = RunStream(self, run_id)
        if isinstance(first, MessageStart):
            stream.parent_run_id = first.parent_run_id  # before its subscribers look at it
        self._announce(stream)
        waiting, self._waiting = self._waiting, {}
        for event in waiting.values():
            stream._deliver(event)
        return stream

    def on_error(self, error: Exception) -> None:
        self._begin_at_end()
        super().on_error(error)

    def on_completed(self) -> None:
        self._begin_at_end()
        super().on_completed()

    def _begin_at_end(self) -> None:
        """Begin the unnamed run: no queued event names a run."""
        if self._waiting:
            self._begin(None, None)

    def _forget(self) -> Iterable[RunStream]:
        streams = [*self._runs.values()]
        self._runs.clear()
        return streams
