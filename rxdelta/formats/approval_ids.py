"""The id of an approval, by which a front end's answer names a call.

A front end may know a call by another id than its provider, who began to number again with a later message. The answer
must find the call in the server's storage, which has the provider's id. So the id of the approval has both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rxdelta.core import Approval

__all__ = ["approval_id", "by_call", "ids_in"]

_FOR: Final = "~for~"


def approval_id(own_id: str, call_id: str | None) -> str:
    """The id of the approval of a call.

    Args:
        own_id: The call's id, as the client knows it.
        call_id: The id that its provider gave it.
    """
    return own_id if call_id is None or call_id == own_id else f"{own_id}{_FOR}{call_id}"


def ids_in(approval: str) -> tuple[str, str]:
    """The client's id of the call, and the provider's; twice the same if the approval names one only."""
    own_id, found, call_id = approval.partition(_FOR)
    return (own_id, call_id) if found and own_id and call_id else (approval, approval)


def by_call(answers: Iterable[tuple[str, str, Approval]]) -> dict[str, Approval]:
    """The answers by both ids of their calls, since the call may be stored, or have come from the client.

    The client's id is the one that can't be mistaken: the provider's counts only where no call has it as the client's.
    Of several answers for one id a refusal stands, whatever their order.

    Args:
        answers: The client's id, the provider's, and the answer.
    """
    known = [*answers]
    found: dict[str, Approval] = {}
    for own_id, _, answer in known:
        _add(found, own_id, answer)
    theirs: dict[str, Approval] = {}
    for own_id, call_id, _ in known:
        _add(theirs, call_id, found[own_id])
    return theirs | found


def _add(found: dict[str, Approval], name: str, answer: Approval) -> None:
    if name not in found or (found[name].approved and not answer.approved):
        found[name] = answer
