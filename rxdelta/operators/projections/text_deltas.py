"""The pieces of a reply's text and of its reasoning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rxdelta.core import DEFAULT_LIMITS, Event, Limits
from rxdelta.operators.projections.projection import Projection, project
from rxdelta.operators.projections.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable, abc

__all__ = ["reasoning_deltas", "text_deltas"]


def text_deltas(
    *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[str]]:
    """Emit the pieces of the reply's text, from all its text blocks, as they arrive.

    The text of a block's start is its first piece. If a finish has more text than arrived before, the missing end is a
    piece too. If a finish contradicts the emitted text, which can't be taken back, the block emits no more. Deltas of
    blocks that haven't started, have ended or are of another type are ignored. No piece is empty, and no surrogate
    pair is split.

    Completes with the source. Another attempt, or another message, emits its own pieces.

    Args:
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "He"})
        >>> events = rx.of(start, rd.events.TextDelta(0, "llo"), rd.events.BlockFinish(0))
        >>> events.pipe(rd.text_deltas()).subscribe(print).dispose()
        He
        llo
    """
    return project(lambda observer: _Pieces(observer, "text", choice, limits))


def reasoning_deltas(
    *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[str]]:
    """Emit the pieces of the reply's reasoning, from all its reasoning blocks, as they arrive.

    Otherwise the same as `text_deltas`.

    Args:
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.

    Errors: As `text_deltas`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "reasoning"})
        >>> events = rx.of(start, rd.events.ReasoningDelta(0, "Tides "), rd.events.ReasoningDelta(0, "turn."))
        >>> events.pipe(rd.reasoning_deltas()).subscribe(print).dispose()
        Tides
        turn.
    """
    return project(lambda observer: _Pieces(observer, "reasoning", choice, limits))


class _Pieces(Projection[str]):
    """One subscription's state."""

    def __init__(
        self,
        observer: abc.ObserverBase[str],
        type: Literal["text", "reasoning"],
        choice: int,
        limits: Limits,
    ) -> None:
        self._type: Literal["text", "reasoning"] = type
        self._limits = limits
        super().__init__(observer, choice)

    def begin(self) -> None:
        self._prose = Prose(self._type, self._limits)

    def step(self, event: Event, emit: Callable[[str], None]) -> None:
        for _, how, text in self._prose.step(event):
            if text and how != "replaced":
                emit(text)
