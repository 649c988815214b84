"""The calls of the request's messages: a run may begin with what has become of them.

A person has decided about a call that an earlier run ended with, and its tool runs now. The client has the call, so only
the tool's progress and its result are sent, and nothing of a call that has its result. The call isn't of this run: its
arguments aren't repeated.
"""

# A request is JSON without types; every value is checked by hand.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import ToolCall, is_mapping, is_waiting, with_news
from rxdelta.formats.ag_ui.results import ToolNews, result_event, result_message
from rxdelta.formats.json_values import word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rxdelta.core.events import ToolUpdate
    from rxdelta.formats.ag_ui.interrupts import Answers
    from rxdelta.formats.ag_ui.run import Run

__all__ = ["EarlierCalls"]


class EarlierCalls:
    """The calls that the client has from before the run, and what it gets of their tools.

    Args:
        run: The AG-UI run.
        messages: The messages of the request, as JSON.
        answers: What the person has decided, which isn't the result of a call.

    Attributes:
        were_updated: Whether the stream has told anything of one of them.
    """

    def __init__(self, run: Run, messages: Iterable[Any], answers: Answers) -> None:
        self._run = run
        self._own_ids = answers.own_ids
        self._calls: dict[str, ToolCall] = {}  # without a result, by the client's ids
        self._news: dict[str, ToolNews] = {}
        self._held: dict[str, None] = {}  # the calls whose news wait for an open call to end
        for message in messages:
            if not is_mapping(message):
                continue
            self._calls.update((call.call_id or "", call) for call in _calls_of(message))
            own_id = word(message.get("toolCallId"))
            if own_id is not None and not answers.are_told_by(own_id, message.get("content")):
                self._calls.pop(own_id, None)

    @property
    def were_updated(self) -> bool:
        return bool(self._news)

    def update(self, event: ToolUpdate) -> None:
        """Send what is new of a call; nothing if the client doesn't have it."""
        run, own_id = self._run, event.call_id
        if own_id not in self._calls:
            own_id = self._own_ids.get(own_id, own_id)
        known = self._calls.get(own_id)
        if known is None:
            return
        self._calls[own_id] = with_news(
            attrs.evolve(known, call_id=event.call_id),  # the provider's, by which the call is stored
            execution_status=event.execution_status,
            display_text=event.display_text,
            result=event.result,
        )
        self._news.setdefault(own_id, ToolNews(run, run.send))
        self._held[own_id] = None
        self.release()

    def release(self) -> None:
        """Send what is new, unless an open call must end first."""
        while self._held and self._run.open_call is None:
            own_id = next(iter(self._held))
            del self._held[own_id]
            if not self._news[own_id].is_told(self._calls[own_id]):
                self._send(own_id)

    def _send(self, own_id: str) -> None:
        run = self._run
        run.pause_for_call()
        answer = self._news[own_id].tell(own_id, self._calls[own_id])
        if answer is not None:
            message = result_message(run, run.new_id(f"{own_id}-result", None), own_id, answer)
            run.send(result_event(run, message))
            self._remember(message)

    def waiting(self) -> Iterator[tuple[str, ToolCall]]:
        """The calls that wait for a decision again, with the client's ids."""
        for own_id in self._news:
            if is_waiting(self._calls[own_id]):
                yield own_id, self._calls[own_id]

    def _remember(self, answer: Any) -> None:
        """Put a result where the client has it: behind the message of its call, and behind the results that it has."""
        history = self._run.history
        if history is None:
            return
        place = 1
        for message in history:
            if any(call.id == answer.tool_call_id for call in getattr(message, "tool_calls", None) or ()):
                break
            place += 1
        while place < len(history) and history[place].role == "tool":
            place += 1
        history.insert(place, answer)


def _calls_of(message: Mapping[str, Any]) -> Iterator[ToolCall]:
    calls: Any = message.get("toolCalls")
    for call in calls if isinstance(calls, list) else ():
        function: Any = call.get("function") if is_mapping(call) else None
        own_id = word(call.get("id")) if is_mapping(function) else None
        if own_id is not None:
            name, arguments = word(function.get("name")), word(function.get("arguments"))
            yield ToolCall(call_id=own_id, name=name, arguments=arguments)
