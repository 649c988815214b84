"""The frames of one reply, what each of them repeats, and the tokens of several messages together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from rxdelta.core import InvalidValueError, TokenUsage, ToolCall, clean_text
from rxdelta.core.events import MessageFinish, MessageStart
from rxdelta.formats.usage import completed

Counts: TypeAlias = Mapping[str, int]
"""Numbers of tokens, by the names of the fields of `TokenUsage`."""


class Writer:
    """Writes the frames of one reply.

    Args:
        now: The time, in seconds since 1970.
        new_id: An id for a reply that has none.
        model: The model's name for the client; `None` for the reply's own.
        tools: The names of the tools that the server runs; `None` if they aren't known.
        reasoning: Whether reasoning is sent.

    Attributes:
        out: The frames that are yet to be taken.
        reasoning: Whether reasoning is sent.
        is_provider: Whether the frames are a provider's own. They have what a client would rather not get, which is
            calls that are known to be invalid.

    Raises:
        InvalidValueError: The model or the tools make no sense.
    """

    def __init__(
        self,
        *,
        now: Callable[[], float],
        new_id: Callable[[], str],
        model: str | None,
        tools: Collection[str] | None,
        reasoning: bool,
    ) -> None:
        _check_options(model, tools)
        self.out: list[Any] = []
        self.reasoning = reasoning
        self.is_provider = False
        self._now = now
        self._new_id = new_id
        self._model = None if model is None else clean_text(model)
        self._tools = None if tools is None else frozenset(tools)
        self._id: str | None = None
        self._created: int | None = None
        self._own_model = ""

    # The start and the end of a reply of items, as a format writes them. Between them, its items write.

    def start(self, counts: Counts, /) -> None:
        """The reply begins. The counts are those that are known already."""

    def end(self, reason: str, counts: Counts, /) -> None:
        """The reply has ended for this reason, one of `rd.types.FinishReason`. The counts are those of all messages."""

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        """The stream has failed, before the start or after it: the error's text for the client, its type and its code.

        The type is the provider's word, `interrupted`, or unknown; the code is the provider's, or unknown. A provider's
        stream has both words. A client gets no word that it doesn't know.
        """

    # The calls.

    def streams(self, call: ToolCall) -> bool:
        """Whether it is certain already that the call is the client's to run."""
        return self._tools is not None and bool(call.name) and call.name not in self._tools

    def begins(self, call: ToolCall) -> bool:
        """Whether enough is known of a call to begin it. A client gets no call that is known to be invalid by then."""
        is_one = call.type == "tool_call" or (self.is_provider and call.type == "invalid_tool_call")
        return is_one and bool(call.name) and bool(call.call_id)

    def keeps(self, call: ToolCall) -> bool:
        """Whether the call is the server's, whether or not it has been run."""
        return self._tools is not None and call.name in self._tools

    # The head.

    def know(self, event: MessageStart | MessageFinish) -> None:
        """Read the facts of an event about the whole reply. The first that were given or made up count."""
        created = event.metadata.get("created")
        if event.id is not None and self._id is None:
            self._id = clean_text(event.id)
        if type(created) is int and self._created is None:
            self._created = created
        if event.model is not None and not self._own_model:
            self._own_model = clean_text(event.model)

    @property
    def id(self) -> str:
        """The reply's id; made up if it has none by the time it is first written."""
        if self._id is None:
            self._id = clean_text(self._new_id())
        return self._id

    @property
    def created(self) -> int:
        """The time of the reply, in seconds since 1970; that of the first frame if it has none."""
        if self._created is None:
            self._created = int(self._now())
        return self._created

    @property
    def model(self) -> str:
        """The model's name for the client; empty if it isn't known."""
        return self._own_model if self._model is None else self._model

    def take(self) -> Sequence[Any]:
        """The frames since this was last called."""
        out, self.out = self.out, []
        return out


def _check_options(model: object, tools: object) -> None:
    if not isinstance(model, (str, type(None))):
        raise InvalidValueError.of([("model", model, "must be a string")])
    if tools is not None and not are_names(tools):
        raise InvalidValueError.of(
            [("tools", tools, "must be the names of tools, such as those that run_tools has")]
        )


def are_names(found: object) -> bool:
    """Whether it is a collection of strings, such as a list, or a mapping by strings."""
    if isinstance(found, (str, bytes)) or not isinstance(found, Collection):
        return False
    return all(isinstance(name, str) for name in cast("Collection[object]", found))


def billed(usage: TokenUsage | None) -> Counts:
    """The counts that are billed: totals include their details."""
    return {} if usage is None else completed(usage).billed


def sum_of(all_counts: Iterable[Counts]) -> Counts:
    total: dict[str, int] = {}
    for counts in all_counts:
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    return total


def most_of(all_counts: Iterable[Counts]) -> Counts:
    """The largest of each: the usage that each choice has is the whole request's."""
    most: dict[str, int] = {}
    for counts in all_counts:
        for name, count in counts.items():
            most[name] = max(most.get(name, 0), count)
    return most
