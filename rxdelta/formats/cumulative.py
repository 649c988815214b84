"""Gateways that send the whole text so far with every chunk, where the format wants what is new.

This stands behind a decoder and looks at its deltas, so that it serves every format. It is the one place in
this room that remembers text: what was said before is to be recognised when it is said again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from rxdelta.core import Event, InvalidValueError, reasoning_delta, text_delta, tool_call_delta
from rxdelta.core.events import BlockDelta, BlockFinish, ReasoningDelta, TextDelta, ToolCallDelta

if TYPE_CHECKING:
    from rxdelta.formats.decoding import Decoder

__all__ = ["Cumulative", "CumulativeDecoder", "check_cumulative"]

Cumulative: TypeAlias = Literal["auto"] | bool
"""Whether each delta repeats what came before: always, never, or to be found out."""

_SURE = 8
"""So many characters aren't repeated by chance; while fewer are, deltas wait for the next one to say."""


def check_cumulative(value: object) -> None:
    if value not in (True, False, "auto") or not isinstance(value, (bool, str)):
        raise InvalidValueError.of([("cumulative", value, 'must be True, False or "auto"')])


class CumulativeDecoder:
    """Another decoder's events, with each text, reasoning and argument text told once.

    Example:
        >>> import rxdelta as rd
        >>> decoder = rd.providers.decoder("openai-chat", cumulative=True)
        >>> for text in ("Hel", "Hello", "Hello!"):
        ...     for event in decoder.decode({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}):
        ...         if isinstance(event, rd.events.TextDelta):
        ...             print(event.text)
        Hel
        lo
        !
    """

    def __init__(self, decoder: Decoder, *, guess: bool) -> None:
        self._decoder = decoder
        self._guess = guess
        self._told: dict[tuple[object, ...], _Told] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        return self._all(self._decoder.decode(chunk))

    def close(self) -> Sequence[Event]:
        held = [event for told in self._told.values() for event in told.release()]
        return [*held, *self._all(self._decoder.close())]

    def _all(self, decoded: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for event in decoded:
            if isinstance(event, TextDelta):
                out += self._of(event, event.text, "text")
            elif isinstance(event, ReasoningDelta):
                out += self._of(event, event.reasoning, "reasoning")
            elif isinstance(event, ToolCallDelta):
                out += self._of(event, event.args, event.index)
            else:
                if isinstance(event, BlockFinish):
                    for told in self._told.values():
                        if (told.index, told.choice) == (event.index, event.choice):
                            out += told.release()
                out.append(event)
        return out

    def _of(self, event: TextDelta | ReasoningDelta | ToolCallDelta, text: str, which: object) -> list[Event]:
        """The texts of a choice are one, though blocks part them; the arguments of a call stand for themselves."""
        key = (event.choice, type(event), which)
        told = self._told.get(key)
        if told is None:
            told = self._told[key] = _Told(event, guess=self._guess)
        return told.next(event, text)


class _Told:
    """What has been told of one text, and whether what comes repeats it."""

    def __init__(self, event: TextDelta | ReasoningDelta | ToolCallDelta, *, guess: bool) -> None:
        self.index, self.choice = event.index, event.choice
        self._make = _MAKE[type(event)]
        self._field = _FIELD[type(event)]
        self._repeats: bool | None = None if guess else True
        self._text = ""
        self._held: list[str] = []

    def next(self, event: TextDelta | ReasoningDelta | ToolCallDelta, text: str) -> list[Event]:
        if self._repeats is False:
            return [event]
        released = self.release() if event.index != self.index else []
        another = event.index != self.index
        self.index = event.index
        if self._repeats is None:
            return released + self._find_out(text)
        return released + self._tell(text, another=another)

    def release(self) -> list[Event]:
        """What was held back, when nothing comes that would say what it is: then it is text like any other."""
        held, self._held = self._held, []
        self._text += "".join(held)
        return [self._piece(text) for text in held]

    def _find_out(self, text: str) -> list[Event]:
        before = self._held[-1] if self._held else self._text
        if not before:
            self._text = text
            return [self._piece(text)] if text else []
        if not text.startswith(before):
            released = self.release()
            self._repeats, self._text = False, ""
            return [*released, self._piece(text)]
        if len(before) < _SURE:
            self._held.append(text)
            return []
        self._repeats, self._held = True, []
        return self._tell(text, another=False)

    def _tell(self, text: str, *, another: bool) -> list[Event]:
        before = self._text
        if text.startswith(before):
            self._text = text
            return [self._piece(text[len(before) :])] if len(text) > len(before) else []
        if another or not before:
            self._text = text
            return [self._piece(text)]
        if before.startswith(text):  # one that was overtaken
            return []
        self._text = text
        return [BlockDelta(self.index, {self._field: text}, choice=self.choice)]

    def _piece(self, text: str) -> Event:
        return self._make(self.index, text, self.choice)


_MAKE: dict[type, Callable[[Any, str, int], Event]] = {
    TextDelta: text_delta,
    ReasoningDelta: reasoning_delta,
    ToolCallDelta: tool_call_delta,
}
_FIELD = {TextDelta: "text", ReasoningDelta: "reasoning", ToolCallDelta: "args"}
