"""The text of a reply, rewritten unit by unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rxdelta.core import Event, InvalidValueError
from rxdelta.operators.text.rewriting import Rewriting, lift_rewriting
from rxdelta.operators.text.text import units_of
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable

    from rxdelta.cutting import By


@operator_maker
def map_text(
    fn: Callable[[str], str], by: By = "word", *, reasoning: bool = True
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with `fn(unit)` in place of each unit of text, wherever an event says it.

    ::

        events  The   _ti de _is   _high.|
                map_text(str.upper)
        events  (text)THE_-  TIDE_ IS_   [HIGH.|]

    Units depend on the text alone. So for any pure `fn` a block's text is `"".join(map(fn, units))`, however it was cut
    into deltas, and whatever start, finish or `BlockDelta` says it again. A unit is held until its end is certain: a word
    until the next one begins. A held unit is emitted at the block's end, and where the reply is cut off.

    Only text is mapped. Log probabilities and other notes still quote what came; to hide something use `redact`. Put it
    behind `retry_stream`, and in front of `share_events`, `scan_deltas` and encoders. Arguments of calls pass.

    Completes with the source.

    Args:
        fn: Returns the text that stands in the unit's place; it may be empty.
        by: The kind of units. `word`: a word and the white space behind it. `line`: a line and its end. `sentence`: a
            sentence and the white space behind it, see `sentences`. `char`: a character as a reader sees it. A number: so
            many characters. `block`: the whole text, at its end. A compiled pattern: the text up to the end of its next
            match. A function: it is called with the text since the last unit, one more character each time, and returns
            `None` until it returns the unit at the beginning of that text. A word is cut after 256 characters, a line
            after 4,096, a sentence after 600, what a pattern or function doesn't end after 256 (20 if the pattern has
            nested repetition). No grapheme, such as a letter with its marks, is cut.
        reasoning: Also in reasoning.

    Raises:
        InvalidValueError: At once, if `fn` is no function, and for other units.

    Errors: The source's own; the exception of `fn`. `InvalidValueError` if `fn` returns no text, and for a value that is
    no event; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": ""})
        >>> deltas = [rd.events.TextDelta(0, piece) for piece in ("It is co", "ld in O", "slo.")]
        >>> events = rx.from_iterable([start, *deltas, rd.events.BlockFinish(0)])
        >>> events.pipe(rd.map_text(str.title), rd.text_deltas()).subscribe(lambda text: print(repr(text))).dispose()
        'It Is '
        'Cold In '
        'Oslo.'
    """
    given: Any = fn
    if not callable(given):
        raise InvalidValueError.of([("fn", fn, "must be a function of a text")])
    units = units_of(by)
    return lift_rewriting("map_text", lambda sink: Rewriting(sink, lambda: units(fn), reasoning=reasoning))
