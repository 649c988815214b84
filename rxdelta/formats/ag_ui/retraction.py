"""Take back what the client has been sent: nothing can be taken back piece by piece.

Where the request's messages are known, one MESSAGES_SNAPSHOT repeats all messages that hold; the client drops the rest.
Where they are not known, a snapshot would drop them too. So the messages of the run are replaced one by one: an
activity takes the place of any message with its id, a front end doesn't show an activity of an unknown type, and no
client sends one back. The messages that still hold follow again, under other ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.formats.ag_ui.reply import EncodedReply
    from rxdelta.formats.ag_ui.run import Run

__all__ = ["replace_messages", "send_snapshot"]


def send_snapshot(run: Run, history: Sequence[Any], replies: Sequence[EncodedReply]) -> None:
    """Repeat all messages of the request and of the run.

    Args:
        run: The run.
        history: The messages of the request.
        replies: The replies of the run. The last reply is current.
    """
    ag, current = run.ag, replies[-1]
    run.stale_ids.clear()
    messages = [*history]
    for reply in replies:
        messages += [message for entry in reply.entries for message in entry.messages()]
    if not run.speaks_1_0:  # an activity among the messages would make older clients drop their own
        messages = [message for message in messages if message.role != "activity"]
    if any(message.role == "reasoning" for message in messages):
        current.reusable_reasoning_id = None
    elif current.reusable_reasoning_id is not None:  # without any reasoning, clients keep what they have
        messages.append(ag.ReasoningMessage(id=current.reusable_reasoning_id, content=""))
    # A client may have activities of its own: those that are not among the messages stay.
    metadata: dict[str, Any] = {"@ag-ui/client": {"authoritativeActivityTypes": []}}
    run.send(ag.MessagesSnapshotEvent(messages=messages, metadata=metadata))


def replace_messages(run: Run, replies: Sequence[EncodedReply]) -> None:
    """Discard the run's messages one by one, and send those that hold again, in their order."""
    stale_ids, run.stale_ids = run.stale_ids, []
    replies[-1].reusable_reasoning_id = None
    entries = [(reply, entry) for reply in replies for entry in reply.entries]
    for _, entry in entries:
        stale_ids += entry.pause()
    for message_id in stale_ids:
        run.discard_message(message_id, again=True)
    for reply, entry in entries:
        entry.id = reply.ids.next()
        entry.send_again()
