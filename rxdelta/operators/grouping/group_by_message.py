"""A stream of events for each message of a conversation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from rxdelta.core import PIECE_FIELDS, ByRun, Event, concerns_any_run
from rxdelta.core.events import (
    AttemptReset,
    Custom,
    MessageFinish,
    MessageInterrupted,
    MessageStart,
    ToolUpdate,
)
from rxdelta.operators.grouping.streams import EventBranch, EventSplit, Split, split_by
from rxdelta.runtime import Sink, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


class MessageStream(EventBranch):
    """The events of one message of a conversation, for all its choices; not the `MessageStream` of an SDK.

    Hot. A late subscriber gets `to_events` of the message so far, one choice after another, then live events or the
    end. A subscriber that raises is removed, as in `BlockStream`.

    Attributes:
        id: The provider's id of the message; `None` until it has arrived.
        run_id: The run that the message belongs to; `None` is the run without a name.
        parent_run_id: The run on whose behalf that one works; `None` until it has arrived.
    """

    def __init__(self, split: Split[MessageStream], run_id: str | None) -> None:
        super().__init__(split)
        self.id: str | None = None
        self.run_id = run_id
        self.parent_run_id: str | None = None

    @property
    def _label(self) -> str:
        return "a message" if self.id is None else f"message {self.id!r}"

    def __repr__(self) -> str:
        return f"<MessageStream {self.id}>"

    def _note(self, event: Event) -> None:
        if isinstance(event, MessageStart):
            self.id = event.id if self.id is None else self.id
            self.parent_run_id = event.parent_run_id if self.parent_run_id is None else self.parent_run_id

    def _deliver(self, event: Event) -> None:
        self._note(event)
        super()._deliver(event)


@operator_maker
def group_by_message() -> Callable[[Observable[Event]], Observable[MessageStream]]:
    """Emit a stream for each message of a conversation, or of several: `rx.concat` or `rx.merge` of messages' events.

    ::

        events   One _tide(finish)-(start)Two _tides|
                 group_by_message()
        message  One _tide(finish)-|
        message                    (start)Two _tides|

    A stream is emitted at the message's first event, before that event. Each run has its own messages, so streams of
    several runs may be open at once. In a run, the next message begins with a `MessageStart` of a choice that has
    finished. After a block of an unfinished choice, a `MessageStart` begins the next message too, unless it repeats the
    id. So does an `AttemptReset` that names no choice after a choice has finished, because it belongs to the next
    request. Other events between two messages (mostly `ToolUpdate`s, usage, `Custom`) belong to the earlier one. Events
    that name no run go to the open messages that they concern; a `Custom` before the first message begins it, and one
    whose message has completed goes to the message that began last. Every event is emitted at once and unchanged.
    Subscriptions and threads are as in `group_by_block`.

    Completes with the source. A message's stream completes when the next message of its run begins. It also completes
    when a message of another run begins, if its choices have finished and all its calls have ended.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. The open messages get the error first.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> turn = [rd.events.MessageStart(), rd.events.BlockStart(0, {"text": "Hi"}), rd.events.MessageFinish("stop")]
        >>> messages = rx.from_iterable([*turn, *turn]).pipe(rd.group_by_message())
        >>> snapshots = messages.subscribe(
        ...     lambda one: one.pipe(rd.scan_deltas(), rd.to_message()).subscribe(lambda message: print(message.text))
        ... )
        Hi
        Hi
    """

    return split_by("group_by_message", _ByMessage)


_SETTLING = (MessageFinish, MessageInterrupted, ToolUpdate)
"""The events after which a message may be over, or all its calls."""


class _ByMessage(EventSplit[MessageStream]):
    """One subscription's state."""

    def __init__(self, sink: Sink[MessageStream]) -> None:
        super().__init__(sink)
        # Begun by events of no run, before any; the first run continues it.
        self._early: MessageStream | None = None
        self._streams: dict[str | None, MessageStream] = {}  # those that are open, by run
        self._news: dict[MessageStream, None] = {}  # those that may have settled since a message began

    @cached_property
    def _begun(self) -> dict[str | None, None]:
        """The runs that have begun."""
        return ByRun(self.sink.limits)  # which are known at the first event

    def on_next(self, event: Event) -> None:
        stream = self._streams.get(event.run_id) if type(event) in PIECE_FIELDS else None
        if stream is not None and stream._replay.keeps(event):
            stream._emit(event)  # one more delta of an open message
        else:
            super().on_next(event)

    def _route(self, event: Event) -> None:
        if concerns_any_run(event):
            for concerned in self._concerned(event):
                self._deliver(concerned, event)
            return
        stream, begins = self._streams.get(event.run_id), isinstance(event, (MessageStart, AttemptReset))
        if stream is not None and begins and stream._replay.begins_another(event):
            self._end(stream)
            stream = None
        if stream is None:
            if event.run_id in self._begun and not begins and self._early is None:
                newest = [*self._streams.values()][-1:] if isinstance(event, Custom) else ()
                for other in newest:
                    self._deliver(other, event)
                return  # its message has completed, and any other event would change nothing
            stream = self._begin(event)
        if stream is not None:
            self._deliver(stream, event)

    def _deliver(self, stream: MessageStream, event: Event) -> None:
        if isinstance(event, _SETTLING):
            self._news[stream] = None
        stream._deliver(event)

    def _concerned(self, event: Event) -> Sequence[MessageStream]:
        """The messages that an event of no run concerns."""
        streams = self._open()
        if isinstance(event, ToolUpdate):
            streams = [stream for stream in streams if stream._replay.has_call(event)] or streams
        elif isinstance(event, AttemptReset):
            streams = [stream for stream in streams if not stream._replay.begins_another(event)]
            if not streams:
                for stream in self._open():
                    self._end(stream)
        if streams or self._outer_left:
            return streams
        self._early = MessageStream(self, None)
        self._announce(self._early)
        return (self._early,)

    def _begin(self, event: Event) -> MessageStream | None:
        news, self._news = self._news, {}
        for other in news:
            if other._replay.is_settled():
                self._end(other)
        early, self._early = self._early, None
        if early is None and self._outer_left:
            return None
        stream = MessageStream(self, event.run_id) if early is None else early
        stream.run_id = event.run_id
        self._begun[event.run_id] = None
        self._streams[event.run_id] = stream
        if early is None:
            stream._note(event)  # before its subscribers look at it
            self._announce(stream)
        return stream

    def _open(self) -> list[MessageStream]:
        early = () if self._early is None else (self._early,)
        return [*self._streams.values(), *early]

    def _end(self, stream: MessageStream) -> None:
        if stream is self._early:
            self._early = None
        else:
            del self._streams[stream.run_id]
        self._news.pop(stream, None)
        stream._end(None)

    def _forget(self) -> Iterable[MessageStream]:
        streams = self._open()
        self._streams.clear()
        self._news.clear()
        self._early = None
        return streams
