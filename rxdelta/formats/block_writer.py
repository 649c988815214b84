"""The events of one message and its blocks, for decoders of formats that don't number or delimit their blocks.

    decoder ─┬─ MessageWriter   message-start, usage, message-finish          one of each for every choice
             └─ BlockWriter     content-block-start, -delta, -finish

Writers append to a list of events that their decoder owns and empties with `take_all`. If a chunk is malformed, the
events before the fault stay in the list until the next chunk.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from rxdelta.core import (
    Event,
    TokenUsage,
    events,
    freeze,
    is_mapping,
    reasoning_delta,
    text_delta,
    tool_call_delta,
    usage_update,
)
from rxdelta.formats.growing_list import GrowingList
from rxdelta.formats.json_values import NOTHING, kept
from rxdelta.formats.tool_calls import call_identity

__all__ = ["BlockWriter", "MessageWriter", "take_all"]

Json: TypeAlias = Mapping[str, Any]

_NO_FIELDS: Json = {}


def take_all(out: list[Event]) -> list[Event]:
    """The events in the list, which is emptied."""
    taken = out.copy()
    out.clear()
    return taken


class BlockWriter:
    """Writes the blocks of one choice, and numbers them in the order in which they start.

    At most one block is *current*: the text, reasoning or other prose that is being written. The start of another
    block finishes it, unless that block starts `beside` it. Other blocks can stay open together, such as calls with
    interleaved arguments: they are started with `start`, and changed and finished by their numbers.

    Args:
        out: The decoder's list of events.
        choice: The index of the choice.
        message_id: The provider's id of the message, of which ids of calls are made up.

    Attributes:
        count: How many blocks have started, which is the number of the next.
        type: The type of the current block, `None` if there is none.
        current: The number of the current block; without one, that of the last.
        known: The fields of the current block that have been emitted and may be given again.

    Example:
        >>> out: list[Event] = []
        >>> blocks = BlockWriter(out, 0, "m1")
        >>> blocks.write("reasoning", "Hm.")
        >>> blocks.write("text", "Hi")
        >>> blocks.write("text", "!")
        >>> blocks.end_current()
        >>> for event in out:
        ...     print(event.index, event.event)
        0 content-block-start
        0 content-block-delta
        0 content-block-finish
        1 content-block-start
        1 content-block-delta
        1 content-block-delta
        1 content-block-finish
    """

    __slots__ = ("_citations", "_message_id", "choice", "count", "current", "known", "out", "type")

    def __init__(self, out: list[Event], choice: int, message_id: str | None = None) -> None:
        self.out = out
        self.choice = choice
        self.count = 0
        self.type: str | None = None
        self.current = -1
        self.known: dict[str, Any] = {}
        self._message_id = message_id
        self._citations = GrowingList()

    # Any block.

    def start(self, content: Json, *, beside: bool = False) -> int:
        """Start a block and return its number."""
        if not beside:
            self.end_current()
        number = self.count
        self.count += 1
        self.out.append(events.BlockStart(number, content, choice=self.choice))
        return number

    def change(self, block: int, fields: Json) -> None:
        self.out.append(events.BlockDelta(block, fields, choice=self.choice))

    def add_data(self, block: int, data: str) -> None:
        if data:
            self.out.append(events.DataDelta(block, data, choice=self.choice))

    def add_arguments(self, block: int, text: str) -> None:
        if text:
            self.out.append(tool_call_delta(block, text, self.choice))

    def finish(self, block: int, content: Json | None = None) -> None:
        self.out.append(events.BlockFinish(block, content, choice=self.choice))

    def whole(self, content: Json, data: str = "", *, beside: bool = False) -> None:
        """Write a block that came in one piece."""
        number = self.start(content, beside=beside)
        self.add_data(number, data)
        self.finish(number)

    def pass_on(self, part: Json) -> None:
        """Write a part of an unknown kind as a block that has it unchanged."""
        self.whole({"type": "non_standard", "value": kept(part)})

    def call_identity(self, call_id: str | None) -> dict[str, Any]:
        """The fields that identify the call that starts next: the provider's id, else a made-up one."""
        return call_identity(call_id, self.made_up_id())

    def made_up_id(self) -> str:
        """An id for the next block if the provider gives none."""
        return f"{self._message_id or 'call'}-{self.choice}-{self.count}"

    # The current block.

    def begin(self, content: Json, known: Json = _NO_FIELDS) -> None:
        """Start a block and make it the current one. `known` are those of its fields that may be given again."""
        self.current = self.start(content)
        self.type, self.known = content["type"], {**known}

    def write(self, type: str, text: str, fields: Json = _NO_FIELDS) -> None:
        """Add a piece of prose to the current block if that is of this type, else to a new one with these fields."""
        if self.type != type:
            self.begin({"type": type, type: "", **fields})
        delta = reasoning_delta if type == "reasoning" else text_delta
        self.out.append(delta(self.current, text, self.choice))

    def describe(self, fields: Json) -> None:
        """Change those fields of the current block that are new or have another value."""
        new = {name: value for name, value in fields.items() if self.known.get(name) != value}
        if new:
            self.known.update(new)
            self.change(self.current, new)

    def is_signed_otherwise(self, fields: Json) -> bool:
        """Whether the current block has another signature than these fields. Then each needs its own block."""
        before, now = self.known.get("signature"), fields.get("signature")
        return before is not None and now is not None and before != now

    def cite(self, citations: Iterable[Json]) -> None:
        """Add citations to the current block. They are emitted when they are due, at the latest at its end."""
        for citation in citations:
            self._citations.add(citation)
        self._emit_citations(at_end=False)

    def flush(self) -> None:
        """Emit what is held back of the current block."""
        self._emit_citations(at_end=True)

    def end_current(self) -> None:
        """Finish the current block if there is one."""
        if self.type is None:
            return
        self.flush()
        self.finish(self.current)
        self.type, self.known, self._citations = None, {}, GrowingList()

    def _emit_citations(self, *, at_end: bool) -> None:
        citations = self._citations.take(at_end=at_end)
        if citations is not None:
            self.change(self.current, {"citations": citations})


class MessageWriter:
    """Writes the start of one message, its usage when that has changed, and its finish.

    Args:
        out: The decoder's list of events.
        choice: The index of the choice.
        message_id: The provider's id of the message, as far as it is known at its start.
        model: The model, likewise.
        usage: The usage, likewise.

    Attributes:
        metadata: What the choice has beyond the format's fields. It is emitted with the finish.
        finished: Whether the message has finished.
    """

    __slots__ = ("_choice", "_id", "_lists", "_model", "_out", "_usage", "finished", "metadata")

    def __init__(
        self,
        out: list[Event],
        choice: int,
        message_id: str | None,
        model: str | None,
        usage: TokenUsage | None,
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self.finished = False
        self._out = out
        self._choice = choice
        self._id = message_id
        self._model = model
        self._usage = usage
        self._lists: dict[str, dict[str, Any]] = {}

    def start(self, metadata: Json) -> None:
        start = events.MessageStart(self._id, self._model, self._usage, metadata, choice=self._choice)
        self._out.append(start)

    def show_usage(self, usage: TokenUsage | None) -> bool:
        """Emit the usage if it has changed. `False` if it changed after the finish."""
        if usage is None or usage is self._usage or usage == self._usage:
            return True
        self._usage = usage
        if not self.finished:
            self._out.append(usage_update(usage, self._choice))
        return not self.finished

    def append(self, name: str, found: Any) -> None:
        """Add to a list in the metadata that continues with every chunk, or to an object of such lists.

        Example:
            >>> out: list[Event] = []
            >>> message = MessageWriter(out, 0, "m1", "m", None)
            >>> message.append("logprobs", {"content": [-0.1]})
            >>> message.append("logprobs", {"content": [-0.2]})
            >>> message.finish("stop", "stop", {}, "m")
            >>> out[0].metadata
            {'logprobs': {'content': [-0.1, -0.2]}}
        """
        found = freeze(found, lenient=True)
        for key, items in (found if is_mapping(found) else {"": found}).items():
            if items not in NOTHING:
                known = self._lists.setdefault(name, {}).setdefault(key, [])
                known.extend(items if isinstance(items, (list, tuple)) else [items])

    def finish(
        self,
        reason: str | None,
        word: str | None,
        metadata: Json,
        model: str | None,
        message_id: str | None = None,
    ) -> None:
        """Emit the finish.

        Args:
            reason: Why the message ended, in the protocol's words.
            word: The same in the provider's.
            metadata: What the stream has beyond the format's fields.
            model: The model. It is emitted if it was not yet known at the start.
            message_id: The message's id, likewise.
        """
        self.finished = True
        late: dict[str, Any] = {}
        if message_id is not None and message_id != self._id:
            late["id"] = message_id
        if model != self._model:
            late["model"] = model
        lists = {name: found[""] if [*found] == [""] else found for name, found in self._lists.items()}
        metadata = {**late, **metadata, **self.metadata, **lists}
        finish = events.MessageFinish(reason, word, self._usage, metadata, choice=self._choice)
        self._out.append(finish)
