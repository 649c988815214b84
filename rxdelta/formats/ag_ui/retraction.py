"""Take back what the client has been sent: nothing can be taken back piece by piece.

Where the request's messages are known, one MESSAGES_SNAPSHOT repeats all messages that hold; the client drops the rest.
Where they are not known, a snapshot would drop them too. So the messages of the run are replaced one by one: an
activity takes the place of any message with its id, a front end doesn't show an activity of an unknown type, and no
client sends one back. The messages that still hold follow again, under other ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.formats.ag_ui.marks import AGAIN, RUN_ID, with_marks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.formats.ag_ui.run import Run

__all__ = ["correct_client"]


def correct_client(run: Run, name: str | None) -> None:
    """The client has seen what no longer holds: send it the messages that do.

    Args:
        run: The AG-UI run.
        name: The run of the stream that something was taken back of; `None` for the first.
    """
    if run.history is None:
        _replace_messages(run, name)
    else:
        _send_snapshot(run, run.history, name)


def _send_snapshot(run: Run, history: Sequence[Any], name: str | None) -> None:
    """Repeat all messages of the request and of the run."""
    ag = run.ag
    run.stale_ids.clear()
    messages = [*history]
    for reply in run.replies:
        found = [message for entry in reply.entries for message in entry.messages()]
        messages += [reply.lane.signed(message) for message in found]
    if not run.speaks_1_0:  # an activity among the messages would make older clients drop their own
        messages = [message for message in messages if message.role != "activity"]
    if any(message.role == "reasoning" for message in messages):
        _reuse_no_id(run)
    # Without any reasoning, clients keep what they have.
    for reply in run.replies:
        if reply.reusable_reasoning_id is not None:
            empty = ag.ReasoningMessage(id=reply.reusable_reasoning_id, content="")
            messages.append(reply.lane.signed(empty))
    # A client may have activities of its own: those that are not among the messages stay.
    metadata: dict[str, Any] = {"@ag-ui/client": {"authoritativeActivityTypes": []}}
    if name is not None:
        metadata = with_marks(metadata, {RUN_ID: name})
    run.send(ag.MessagesSnapshotEvent(messages=messages, metadata=metadata))


def _replace_messages(run: Run, name: str | None) -> None:
    """Discard the run's messages one by one, and send those that hold again, in their order."""
    stale_ids, run.stale_ids = run.stale_ids, []
    _reuse_no_id(run)
    marks = {AGAIN: True} if name is None else {AGAIN: True, RUN_ID: name}
    entries = [(reply, entry) for reply in run.replies for entry in reply.entries]
    for _, entry in entries:
        stale_ids += entry.pause()
    for message_id in stale_ids:
        run.discard_message(message_id, **marks)
    for reply, entry in entries:
        entry.id = reply.ids.next()
        entry.send_again()


def _reuse_no_id(run: Run) -> None:
    for reply in run.replies:
        reply.reusable_reasoning_id = None
