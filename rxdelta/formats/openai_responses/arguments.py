"""The arguments of a call as they stream."""

from __future__ import annotations

import json

from rxdelta.core import Event, events, thaw, tool_call_delta
from rxdelta.formats.openai_responses.items import Growing
from rxdelta.formats.openai_responses.reading import READ, Json, Out, delta_of, optional_text

__all__ = ["TEXT_OF", "Arguments"]

TEXT_OF = {"arguments": "arguments", "input": "input", "code": "code", "operation_diff": "diff"}
"""The arguments that stream, by the end of their chunks' type: the field with the whole text in the last chunk."""


class Arguments:
    """Arguments that are JSON text already, or a text or commands that are written into JSON."""

    def __init__(self, block: int, operation: Json) -> None:
        self.growing = Growing("", None, block, tool_call_delta)
        self._block = block
        self._operation = operation  # of a patch: the fields beside its diff
        self._command: int = -1
        self._close = ""  # ends the JSON that has begun

    @property
    def begun(self) -> bool:
        return self.growing.length > 0 or self._close != ""

    def add_json(self, out: Out, piece: str) -> None:
        if piece:
            self.growing.length += len(piece)
            out.append(self.growing.delta(self._block, piece))

    def add_text(self, out: Out, kind: str, piece: str) -> None:
        """Add to the text of a field."""
        self.growing.delta = _escaped
        if not self._close:
            if kind == "operation_diff":
                known = {name: value for name, value in self._operation.items() if name != "diff"}
                head = json.dumps({"operation": {**thaw(known), "diff": ""}}, ensure_ascii=False)[:-3]
                self._close = '"}}'
            else:
                head, self._close = f'{{"{kind}": "', '"}'
            out.append(tool_call_delta(self._block, head))
        self.add_json(out, piece)

    def add_command(self, out: Out, step: str, chunk: Json) -> bool:
        """Add to a command. One out of turn is left to the whole item."""
        at = READ.index(chunk.get("command_index", 0), "command_index")
        piece = delta_of(chunk) if step == "delta" else optional_text(chunk, "command", "")
        if at < self._command or at > self._command + 1 or step not in ("added", "delta", "done"):
            return False
        growing = self.growing
        if piece is None and step == "done":
            if at == self._command:
                return self.lacks("command")
            raise READ.fail("command", "a string", None)
        if at == self._command + 1:
            head = '{"action": {"commands": ["' if at == 0 else '", "'
            self._command, self._close, growing.length = at, '"]}}', 0
            out.append(tool_call_delta(self._block, head))
        if piece and (step == "delta" or growing.length == 0):
            growing.length += len(piece)
            out.append(_escaped(self._block, piece))
        return True

    def lacks(self, field: str) -> bool:
        """The last chunk has no text. False if the deltas had one.

        Raises:
            MalformedChunkError: Nothing has come before either.
        """
        if self.growing.length:
            return False
        raise READ.fail(field, "a string", None)

    def replace(self, out: Out, whole: str) -> None:
        """Take the whole text where it differs in length from its deltas, because some were lost."""
        if whole and len(whole) != self.growing.length:
            self.growing.length = len(whole)
            out.append(events.BlockDelta(self._block, {"args": whole}))

    def close(self, out: Out) -> None:
        """End the JSON that has begun."""
        if self._close:
            out.append(tool_call_delta(self._block, self._close))


def _escaped(block: int, piece: str) -> Event:
    """A piece of a text as a piece of a JSON string."""
    return tool_call_delta(block, json.dumps(piece, ensure_ascii=False)[1:-1])
