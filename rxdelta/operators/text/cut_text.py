"""The text of a reply, cut into whole units."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rxdelta.operators.text.rewriting import Rewriting, lift_rewriting
from rxdelta.operators.text.text import units_of
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.core import Event
    from rxdelta.cutting import By


@operator_maker
def cut_text(
    by: By = "sentence", *, reasoning: bool = True
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with the text in deltas of one whole unit each.

    ::

        events  It    _is _high. _It         _falls.|
                cut_text()
        events  (text)-   -      It_is_high._-      [It_falls.|]

    Each unit is emitted when the text shows its end. The text of a start comes in deltas behind it. The rest of the text is
    emitted at the block's end, and where the reply is cut off. The reply is the same.

    Put it last among the operators on events: `compact_deltas` behind it joins units again, `smooth` cuts them. Behind
    `guard` or `map_text` with the same units it isn't needed: each unit would come one later. For strings in place of
    events use `sentences`.

    Completes with the source.

    Args:
        by: The kind of units, as in `map_text`.
        reasoning: Also in reasoning.

    Raises:
        InvalidValueError: At once, for other units.

    Errors: The source's own. `InvalidValueError` for a value that is no event; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "It is cold. It "})
        >>> events = rx.of(start, rd.events.TextDelta(0, "snows, I see. "), rd.events.BlockFinish(0))
        >>> events.pipe(rd.cut_text(), rd.text_deltas()).subscribe(lambda text: print(repr(text))).dispose()
        'It is cold. '
        'It snows, I see. '
    """
    units = units_of(by)
    return lift_rewriting(
        "cut_text", lambda sink: Rewriting(sink, lambda: units(None), reasoning=reasoning, apart=True)
    )
