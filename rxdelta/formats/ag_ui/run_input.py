"""The request of an AG-UI client. It is read by hand, because as JSON it comes from a browser.

Calls may wait for a person. Then a run ends with the outcome `interrupt`, with an interrupt for each call that waits. Its id names the call. The next request
of the thread answers each of them in `resume`: `resolved` with a payload that says whether the call is allowed, or
`cancelled`, when the person has turned to something else. The protocol counts a cancelled call as one that isn't run.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from rxdelta.core import (
    Approval,
    InvalidJson,
    InvalidValueError,
    ToolCall,
    clean_text,
    freeze,
    is_mapping,
    parse_json,
    thaw,
)
from rxdelta.formats.front_ends import approval_id, by_call, ids_in


class RunInput:
    """A `RunAgentInput`, as object or as JSON.

    Args:
        run_input: The client's request, if the run has one.

    Raises:
        InvalidValueError: It is neither an object nor a mapping.
    """

    def __init__(self, run_input: object) -> None:
        self._given: Any = run_input
        if isinstance(run_input, (str, bytes, list, tuple)):
            wanted = "must be a RunAgentInput, or the JSON object of one"
            raise InvalidValueError.of([("run_input", self._given, wanted)])

    def _get(self, name: str) -> Any:
        given = self._given
        if not is_mapping(given):
            return getattr(given, name, None)
        head, *rest = name.split("_")
        return given.get(head + "".join(map(str.capitalize, rest)))

    def id(self, name: str, instead: str | None, new_id: Callable[[], str] | None) -> str:
        """The run's or thread's id: `instead`, or the request's, or without a request a new one.

        Raises:
            InvalidValueError: There is none.
        """
        found = instead if instead is not None else self._get(name)
        if found is None and self._given is None and new_id is not None:
            found = new_id()
        if not isinstance(found, str):
            raise InvalidValueError.of([(name, found, "must be a string")])
        return clean_text(found)

    def declares_1_0(self) -> bool:
        """Whether the client declares version 1.0 of the protocol, or a later one."""
        version = self._get("protocol_version")
        return isinstance(version, str) and _from_1_0(version) is not None

    def messages(self) -> list[Any] | None:
        """The messages before the run, as JSON; `None` if they aren't known."""
        found: Any = self._get("messages")
        return [_message_as_json(one) for one in found] if isinstance(found, (list, tuple)) else None  # pyright: ignore[reportUnknownVariableType]


_from_1_0 = re.compile(r"[1-9][0-9]*\.[0-9]+").fullmatch


def _message_as_json(message: Any) -> Any:
    dump = None if isinstance(message, type) else getattr(message, "model_dump", None)
    return thaw(freeze(dump(by_alias=True, exclude_none=True) if callable(dump) else message, lenient=True))


def ids_of(message: Any) -> list[str]:
    """The ids of a message and of its calls."""
    calls: Any = message.get("toolCalls") if is_mapping(message) else None
    found: list[Any] = [message, *(calls if isinstance(calls, list) else ())]  # pyright: ignore[reportUnknownArgumentType]
    return [one["id"] for one in found if is_mapping(one) and isinstance(one.get("id"), str)]


# A request is JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false


REASON: Final = "tool_call"
"""The reason of an interrupt that belongs to a call."""

_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "reason": {"type": "string"}},
    "required": ["approved"],
}
"""The answer that a front end gives. `editedArgs` isn't in it, so no front end lets a person change the arguments."""

_WORDS: Final = ("approved", "accepted", "confirmed")
_NOTES: Final = ({"status": "cancelled"}, {"status": "resolved"})


def interrupt_of(ag: Any, own_id: str, call: ToolCall, subagent: str | None = None) -> Any:
    """The interrupt that asks for a decision about a call.

    Args:
        ag: The module `ag_ui.core`.
        own_id: The call's id, as the client knows it.
        call: The call.
        subagent: The sub-agent that the call is of.
    """
    arguments = call.arguments
    text = json.dumps(thaw(arguments), ensure_ascii=False) if is_mapping(arguments) else arguments or ""
    return ag.Interrupt(
        id=approval_id(own_id, call.call_id),
        reason=REASON,
        message=f"Allow {call.name}({text})?",
        tool_call_id=own_id,
        response_schema=dict(_SCHEMA),
        subagent_run_id=subagent,
    )


def approvals_from_ag_ui(run_input: object) -> dict[str, Approval]:
    """A person's decisions about the calls that waited, by the calls' ids: the `resume` of an AG-UI request.

    A call that is missing has no decision yet. A payload says it as `{"approved": true}`, `{"approved": false, "reason": "…"}`
    (also `accepted`, `confirmed`), or as `true` or `false` alone. `cancelled` is a refusal: the person has left the question,
    and the protocol has the call not run. No decision is guessed: any other payload raises an error, and so does a changed
    set of arguments (`editedArgs`), because a tool runs with those that the model gave. If a call has several answers, a
    refusal stands.

    The answers are the browser's. Take the calls from your own storage, so that nobody approves a call that the model never
    made.

    Args:
        run_input: The `RunAgentInput`, as object or as JSON.

    Raises:
        InvalidValueError: The request has no valid `resume`; the error names the entry.

    Example:
        >>> import rxdelta as rd
        >>> resume = [{"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}]
        >>> rd.requests.approvals_from_ag_ui({"threadId": "t", "runId": "r", "messages": [], "resume": resume})
        {'call_1': Approval(approved=True, reason=None)}
    """
    return Answers(run_input).approvals


class Answers:
    """The answers in a request.

    Args:
        run_input: The `RunAgentInput`, as object or as JSON. Anything else has none.

    Attributes:
        approvals: The decisions, by the ids of the calls.
        own_ids: The client's ids of the calls, by the provider's.

    Raises:
        InvalidValueError: There is an answer that can't be read.
    """

    def __init__(self, run_input: object) -> None:
        given: Any = run_input
        resume = given.get("resume") if is_mapping(given) else getattr(given, "resume", None)
        if not isinstance(resume, (list, tuple, type(None))):
            raise InvalidValueError.of([("resume", resume, "must be a list")])
        self._answers: list[tuple[str, str, Approval]] = []
        self._payloads: dict[str, list[Any]] = {}  # by the client's ids of the calls
        for place, found in enumerate(resume or ()):
            self._add(_as_json(found, f"resume[{place}]"), f"resume[{place}]")
        self.approvals = by_call(self._answers)
        self.own_ids = {call_id: own_id for own_id, call_id, _ in reversed(self._answers)}

    def _add(self, entry: Mapping[str, Any], path: str) -> None:
        name, status, payload = entry.get("interruptId"), entry.get("status"), entry.get("payload")
        own_id, call_id = ids_in(name) if isinstance(name, str) else ("", "")
        if not own_id:
            raise InvalidValueError.of([(f"{path}.interruptId", name, "must be the id of an interrupt")])
        if status == "cancelled":
            decision = Approval(False)
        elif status == "resolved":
            decision = _decision(payload, f"{path}.payload")
        else:
            raise InvalidValueError.of([(f"{path}.status", status, "must be `resolved` or `cancelled`")])
        self._payloads.setdefault(own_id, []).append(payload)
        self._answers.append((own_id, call_id, decision))

    def are_repeated_by(self, call_id: str, content: object) -> bool:
        """Whether a tool's message only repeats the answer: CopilotKit keeps the answer as the call's result."""
        if call_id not in self._payloads or not isinstance(content, str):
            return False
        try:
            said = parse_json(content)
        except InvalidJson:
            return False
        return said in self._payloads[call_id] or said in _NOTES


def _decision(payload: object, path: str) -> Approval:
    if isinstance(payload, bool):
        return Approval(payload)
    found: Any = payload
    if is_mapping(found):
        said = [found[word] for word in _WORDS if word in found]
        reason = found.get("reason")
        known = len(said) == 1 and isinstance(said[0], bool) and isinstance(reason, (str, type(None)))
        if known and found.get("editedArgs") is None:
            return Approval(said[0], reason or None)
    wanted = "must be true, false, or an object with `approved` and perhaps a `reason`, without `editedArgs`"
    raise InvalidValueError.of([(path, found, wanted)])


def _as_json(entry: Any, path: str) -> Mapping[str, Any]:
    dump = None if isinstance(entry, type) else getattr(entry, "model_dump", None)
    found = dump(by_alias=True) if callable(dump) else entry
    if is_mapping(found):
        return found
    raise InvalidValueError.of([(path, entry, "must be an object")])
