"""The pieces of a reply's text, or of its reasoning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from rxdelta.core import BlockFold, Change, Event, Walk, check_word
from rxdelta.core.events import ReasoningDelta, TextDelta
from rxdelta.operators.projections.projection import Projection, Prose, project
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def text_deltas(
    *, of: Literal["text", "reasoning"] = "text"
) -> Callable[[Observable[Event]], Observable[str]]:
    """Emit the pieces of the reply's text, or of its reasoning, from all blocks of that type, as they arrive.

    ::

        events  (think:Hm.)The  _tide  (call:look{"at": "sea"})|
                text_deltas()
        text    -          <The>< tide>-                       |

    The text of a block's start is its first piece. If a finish has more text than arrived before, the missing end is a
    piece too. If a finish contradicts the emitted text, which can't be taken back, the block emits no more. Deltas of
    blocks that haven't started, have ended or are of another type are ignored. No piece is empty, and no surrogate
    pair is split.

    Completes with the source. Another attempt, or another message, emits its own pieces.

    Args:
        of: The type of the blocks: `text`, or `reasoning`.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for
    a value that is no event, and for another `of`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "He"})
        >>> events = rx.of(start, rd.events.TextDelta(0, "llo"), rd.events.BlockFinish(0))
        >>> events.pipe(rd.text_deltas()).subscribe(print).dispose()
        He
        llo
    """
    check_word("of", of, ("text", "reasoning"))
    return project("text_deltas", lambda name, walk: _Pieces(name, walk, of), emits="texts")


class _Pieces(Projection[str]):
    """One subscription's state."""

    def __init__(self, name: str, walk: Walk, type: Literal["text", "reasoning"]) -> None:
        self._type: Literal["text", "reasoning"] = type
        super().__init__(name, walk, TextDelta if type == "text" else ReasoningDelta)

    def begin(self) -> None:
        self._prose = Prose(self._type)

    def lane(self, delta: Any) -> Walk | None:
        fold = self._blocks.get(delta.index)
        return self.walk if fold is not None and self._prose.owns(fold.block) else None

    def step(self, event: Event) -> Iterable[str]:
        if self._tail.take(event):
            given: Any = event
            piece: str = given.text if self._type == "text" else given.reasoning
            if piece.isascii() and not self._prose.halves:  # as in `Prose.grown`, which would cost a call
                return (piece,) if piece else ()
            return self.grown(self._blocks[given.index], piece) if piece else ()
        return self.step_alone(event)

    def grown(self, fold: BlockFold, piece: str) -> Sequence[str]:
        piece = self._prose.grown(fold, piece)
        return (piece,) if piece else ()

    def changed(self, changes: Sequence[Change], _: Event) -> Iterator[str]:
        for change in changes:
            how, text = self._prose.changed(change) or ("more", "")
            if text and how != "replaced":
                yield text
