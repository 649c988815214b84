"""A stream of events for each message of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rxdelta.core.events import AttemptReset, MessageStart
from rxdelta.operators.grouping.streams import EventBranch, EventSplit, split_by
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from reactivex import Observable

    from rxdelta.core import Event, Limits
    from rxdelta.operators.grouping.streams import Split
    from rxdelta.runtime import Sink

__all__ = ["MessageStream", "group_by_message"]


class MessageStream(EventBranch):
    """The events of one message of a conversation, for all its choices.

    Hot. A late subscriber gets `to_events` of the message so far, one choice after another, then live events or the
    end. A subscriber that raises is removed, as in `BlockStream`.

    Attributes:
        id: The provider's id of the message; `None` until it has arrived.
    """

    def __init__(self, split: Split[MessageStream]) -> None:
        super().__init__(split)
        self.id: str | None = None

    @property
    def _label(self) -> str:
        return "a message" if self.id is None else f"message {self.id!r}"

    def __repr__(self) -> str:
        return f"<MessageStream {self.id}>"


@operator_maker
def group_by_message(
    *, limits: Limits | None = None
) -> Callable[[Observable[Event]], Observable[MessageStream]]:
    """Emit a stream for each message of a conversation, which is `rx.concat` of messages' events.

    A stream is emitted at the message's first event, before that event. The next message begins with a `MessageStart`
    of a choice that has finished. After a block of an unfinished choice, a `MessageStart` begins the next message too,
    unless it repeats the id. So does an `AttemptReset` that names no choice after a choice has finished, because it
    belongs to the next request. Other events between two messages (mostly `ToolUpdate`s, usage) belong to the earlier one. Every event is
    emitted at once and unchanged. Subscriptions and threads are as in `group_by_block`.

    Completes with the source; a message's stream completes when the next message begins.

    Args:
        limits: The most that is held for late subscribers; by default the pipeline's, see `decode`.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. The open message gets the error first.

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

    return split_by("group_by_message", _ByMessage, limits)


class _ByMessage(EventSplit[MessageStream]):
    """One subscription's state."""

    def __init__(self, sink: Sink[MessageStream]) -> None:
        super().__init__(sink)
        self._current: MessageStream | None = None

    def _route(self, event: Event) -> None:
        stream = self._current
        may_begin = isinstance(event, (MessageStart, AttemptReset))
        if stream is not None and may_begin and stream._replay.begins_another(event):
            self._current = None
            stream._end(None)
            stream = None
        is_new = stream is None
        if stream is None:
            if self._outer_left:
                return
            self._current = stream = MessageStream(self)
        if isinstance(event, MessageStart) and stream.id is None:
            stream.id = event.id
        if is_new:
            self._announce(stream)
        stream._deliver(event)

    def _forget(self) -> Iterable[MessageStream]:
        stream, self._current = self._current, None
        return () if stream is None else (stream,)
