"""Gateways whose chunks repeat the whole text so far, where the format wants only the new text.

This wraps a decoder and changes its deltas, so it serves every format. Here and in `repeated_arguments` text is kept: a
repetition can only be recognised by comparing it with the text before.
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
"""Whether each delta repeats the text before it: always, never, or as the deltas show."""

Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta

_SURE = 8
"""So many characters are not repeated by chance. While fewer are, deltas are held until the next one decides."""


def check_cumulative(value: object) -> None:
    if value not in (True, False, "auto") or not isinstance(value, (bool, str)):
        raise InvalidValueError.of([("cumulative", value, 'must be True, False or "auto"')])


class CumulativeDecoder:
    """Another decoder's events, with the repetitions removed from texts, reasonings and arguments.

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
        self._texts: dict[tuple[object, ...], _Text] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        return self._without_repetitions(self._decoder.decode(chunk))

    def close(self) -> Sequence[Event]:
        held = [event for text in self._texts.values() for event in text.release()]
        return [*held, *self._without_repetitions(self._decoder.close())]

    def _without_repetitions(self, decoded: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for event in decoded:
            if isinstance(event, TextDelta):
                out += self._next(event, event.text, "text")
            elif isinstance(event, ReasoningDelta):
                out += self._next(event, event.reasoning, "reasoning")
            elif isinstance(event, ToolCallDelta):
                out += self._next(event, event.args, event.index)
            else:
                if isinstance(event, BlockDelta) and "args" in event.fields:
                    # The decoder has seen a repetition itself: these are all the arguments so far.
                    self._texts.pop((event.choice, ToolCallDelta, event.index), None)
                if isinstance(event, BlockFinish):
                    for text in self._texts.values():
                        if (text.index, text.choice) == (event.index, event.choice):
                            out += text.release()
                out.append(event)
        return out

    def _next(self, event: Delta, piece: str, which: object) -> list[Event]:
        """All text blocks of a choice are one text here. So are its reasonings; each call's arguments are another."""
        key = (event.choice, type(event), which)
        text = self._texts.get(key)
        if text is None:
            text = self._texts[key] = _Text(event, guess=self._guess)
        return text.next(event, piece)


class _Text:
    """One text. `_repeats` is `None` until the deltas show whether they repeat it."""

    def __init__(self, event: Delta, *, guess: bool) -> None:
        self.index, self.choice = event.index, event.choice
        self._make = _MAKE[type(event)]
        self._field = _FIELD[type(event)]
        self._repeats: bool | None = None if guess else True
        self._text = ""
        self._held: list[str] = []

    def next(self, event: Delta, text: str) -> list[Event]:
        if self._repeats is False:
            return [event]
        released = self.release() if event.index != self.index else []
        another = event.index != self.index
        self.index = event.index
        if self._repeats is None:
            return released + self._decide(text)
        return released + self._emit(text, another=another)

    def release(self) -> list[Event]:
        """Release held deltas as ordinary text: no later delta decided whether they repeat."""
        held, self._held = self._held, []
        self._text += "".join(held)
        return [self._piece(text) for text in held]

    def _decide(self, text: str) -> list[Event]:
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
        return self._emit(text, another=False)

    def _emit(self, text: str, *, another: bool) -> list[Event]:
        before = self._text
        if text.startswith(before):
            self._text = text
            return [self._piece(text[len(before) :])] if len(text) > len(before) else []
        if another or not before:
            self._text = text
            return [self._piece(text)]
        if before.startswith(text):  # it arrived after a longer one
            return []
        if self._field == "args" and not text.lstrip().startswith("{"):
            self._text += text  # the decoder has seen that they were said again, and gives only what is new
            return [self._piece(text)]
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
