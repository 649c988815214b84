"""The tool parts of a UI message, as `useChat` sends it with a request: what the browser has of each call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rxdelta.core import Approval, InvalidValueError, is_list, is_mapping
from rxdelta.formats.decoding import Json
from rxdelta.formats.front_ends import by_call, ids_in

_SETTLED = ("output-available", "output-error", "output-denied")  # a browser's value may have no hash


class ToolPart(NamedTuple):
    """A tool part.

    Attributes:
        call_id: The client's id of the call.
        name: The name of the tool.
        state: The state of the part.
        part: The part itself.
    """

    call_id: str
    name: Any
    state: object
    part: Json

    @property
    def at_provider(self) -> bool:
        """Whether the provider runs the tool."""
        return self.part.get("providerExecuted") is True

    @property
    def settled(self) -> bool:
        """Whether the part has the call's outcome."""
        return self.state in _SETTLED and self.part.get("preliminary") is not True

    @property
    def approval_id(self) -> str:
        """The id of the approval; where nobody was asked, the call's."""
        approval = self.part.get("approval")
        own_id = approval.get("id") if is_mapping(approval) else None
        return own_id if isinstance(own_id, str) and ids_in(own_id)[0] == self.call_id else self.call_id

    @property
    def asked(self) -> bool:
        """Whether a person was asked, who may have answered."""
        return is_mapping(self.part.get("approval"))

    @property
    def is_answered(self) -> bool:
        """Whether the person has answered, and the server hasn't done anything yet."""
        return self.state == "approval-responded"

    @property
    def answer(self) -> Approval | None:
        """The person's answer, if it can be read."""
        approval = self.part.get("approval")
        if not self.is_answered or not is_mapping(approval):
            return None
        approved, reason = approval.get("approved"), approval.get("reason")
        if not isinstance(approved, bool):
            return None
        return Approval(approved, reason if isinstance(reason, str) and reason else None)


def tool_parts(parts: Iterable[Any]) -> Iterator[ToolPart]:
    """The tool parts among the parts of a UI message; what isn't one is passed over."""
    for part in parts:
        kind = part.get("type") if is_mapping(part) else None
        if isinstance(kind, str) and (kind == "dynamic-tool" or kind.startswith("tool-")):
            call_id = part.get("toolCallId")
            name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
            if isinstance(call_id, str) and call_id:
                yield ToolPart(call_id, name, part.get("state"), part)


def last_reply(messages: Iterable[Json]) -> Json | None:
    """The last of the UI messages, if it is an assistant's: the reply to the request goes on with it.

    Raises:
        InvalidValueError: They are no UI messages.
    """
    if is_mapping(messages) or isinstance(messages, str) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of UI messages")])
    last: Any = None
    for place, message in enumerate(messages):
        last = message
        if not is_mapping(message):
            raise InvalidValueError.of([(f"messages[{place}]", message, "must be a UI message")])
    return last if last is not None and last.get("role") == "assistant" else None


def parts_of(message: Json | None) -> Sequence[Any]:
    parts = message.get("parts") if message is not None else None
    return parts if is_list(parts) else ()


def approvals_from_ai_sdk(messages: Iterable[Json]) -> dict[str, Approval]:
    """A person's answers, by call id, in a request by Vercel's AI SDK, as `useChat` sends them.

    They are in the last message, if it is the assistant's. An answer allows nothing by itself: `run_tools` asks for those
    calls that wait. If a call has several answers, a refusal stands, and one that can't be read allows nothing. Take the
    calls from the server's own storage and only the answers from the browser, which may have changed everything else, and
    may answer for calls that it has made up.

    Args:
        messages: The UI messages of the client's request.

    Raises:
        InvalidValueError: They are no UI messages.

    Example:
        >>> import rxdelta as rd
        >>> approval = {"id": "c1", "approved": True}
        >>> part = {"type": "tool-pay", "toolCallId": "c1", "state": "approval-responded", "input": {}, "approval": approval}
        >>> answers = rd.requests.approvals_from_ai_sdk([{"id": "m1", "role": "assistant", "parts": [part]}])
        >>> answers["c1"].approved
        True
    """
    parts: dict[str, list[ToolPart]] = {}
    for found in tool_parts(parts_of(last_reply(messages))):
        parts.setdefault(found.call_id, []).append(found)
    return by_call(answer for found in parts.values() for answer in _answers(found))


def _answers(parts: Sequence[ToolPart]) -> Iterator[tuple[str, str, Approval]]:
    """The answers of one call's parts. The last part says how far the call is, but no part takes a refusal back."""
    answered = [found for found in parts if found.is_answered]
    answers = [found.answer for found in answered]
    refusals = [answer for answer in answers if answer is not None and not answer.approved]
    decision = next(iter(refusals), None if None in answers else parts[-1].answer)
    for found in answered:
        if decision is not None:
            yield *ids_in(found.approval_id), decision
