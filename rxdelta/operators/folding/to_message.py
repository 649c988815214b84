"""The finished message at the end of the stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rxdelta.core import IncompleteMessageError, Message, Snapshot, wrong_value
from rxdelta.runtime import lift_map, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def to_message() -> Callable[[Observable[Snapshot]], Observable[Message]]:
    """Emit the finished message: an operator. For one snapshot there is `snapshot.to_message()`.

    ::

        events   The _tide-_is _high|
                 scan_deltas(), to_message()
        message  -   -    --   -    [<The tide is high>|]

    Emits once, when the source completes, and completes. After an error of the source it emits nothing.

    Errors: The source's own. `IncompleteMessageError` if the stream ended before the message did;
    `InvalidToolCallError` for a call that was left open. Both have the `.snapshot`, or `None` for an empty stream.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> finished = rd.MessageDelta(content="Hi", role="assistant", status="complete")
        >>> rx.of(finished).pipe(rd.to_message()).run()
        <Message complete; text 'Hi'>
    """

    return lift_map("to_message", lambda _: _Last())


class _Last:
    """One subscription's state."""

    def __init__(self) -> None:
        self._snapshot: Snapshot | None = None

    def step(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, Snapshot):
            raise wrong_value("to_message", snapshot, "snapshots")
        self._snapshot = snapshot

    def close(self) -> Sequence[Message]:
        if self._snapshot is None:
            raise IncompleteMessageError("the stream ended before anything of a message came")
        return (self._snapshot.to_message(),)
