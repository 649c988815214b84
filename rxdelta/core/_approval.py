"""A person's decision about a call, and how a call holds it.

A call waits while its execution status is `awaiting_approval`. A refused call has `failed`, with a result that the model
gets; `denied` in the result's metadata tells a refusal from a failure. A call that the provider runs itself isn't run by us:
an allowed one has `completed`, with a result without content, and the next request tells the provider the decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from rxdelta.core._values import ToolResult, check, clean, text_or_none

if TYPE_CHECKING:
    from rxdelta.core._tool_call import ToolCall

__all__ = ["DENIED", "Approval", "approved_result", "decision_of", "denied_result", "is_asked", "is_waiting"]

DENIED = "The call was not allowed."
"""What the model reads of a refusal."""


@attrs.frozen
class Approval:
    """A decision about a call.

    Attributes:
        approved: Whether the tool may run.
        reason: Why, in the person's words. The model reads the reason of a refusal.

    Raises:
        InvalidValueError: `approved` is not a bool, or the reason not text.

    Example:
        >>> import rxdelta as rd
        >>> rd.Approval(False, "Ask me again tomorrow.").approved
        False
    """

    approved: bool
    reason: str | None = attrs.field(default=None, converter=clean)

    def __attrs_post_init__(self) -> None:
        given: object = self.approved
        check(
            [
                None if isinstance(given, bool) else ("approved", given, "must be True or False"),
                text_or_none("reason", self.reason),
            ]
        )


def is_waiting(call: ToolCall) -> bool:
    """Whether the call waits for a decision."""
    return call.type != "invalid_tool_call" and call.metadata.get("execution_status") == "awaiting_approval"


def is_asked(call: ToolCall) -> bool:
    """Whether the call waits for a decision, or has got one."""
    return is_waiting(call) or decision_of(call.result) is not None


def denied_result(call_id: str | None, reason: str | None = None) -> ToolResult:
    """The result of a call that was refused."""
    content = f"{DENIED} {reason}" if reason else DENIED
    metadata = {"denied": True, **({"reason": reason} if reason else {})}
    return ToolResult(call_id, content, is_error=True, metadata=metadata)


def approved_result(call_id: str | None, reason: str | None = None) -> ToolResult:
    """The outcome of the provider's own call that was allowed: the provider runs it at the next request."""
    return ToolResult(call_id, metadata={"approved": True, **({"reason": reason} if reason else {})})


def decision_of(result: ToolResult | None) -> Approval | None:
    """The decision that a result tells of; `None` for any other result."""
    if result is None:
        return None
    reason = result.metadata.get("reason")
    reason = reason if isinstance(reason, str) else None
    if result.metadata.get("denied") is True:
        return Approval(False, reason)
    return Approval(True, reason) if result.metadata.get("approved") is True else None
