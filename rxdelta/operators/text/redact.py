"""Texts that nobody must see, replaced wherever the reply has them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rxdelta.core import Event, InvalidJson, is_list, is_mapping, parse_json
from rxdelta.operators.text.matches import Matches, Redaction, Replacement
from rxdelta.operators.text.rewriting import Rewriting, lift_rewriting
from rxdelta.operators.text.text import units_of
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def redact(
    pattern: re.Pattern[str] | str,
    replacement: Replacement = "[redacted]",
    *,
    holdback: int | None = None,
    reasoning: bool = True,
    arguments: bool = False,
    elsewhere: bool = True,
) -> Callable[[Observable[Event]], Observable[Event]]:
    """The same events, with each match of a pattern replaced, wherever an event says it.

    ::

        events  My _pin _is _12 34,   _and _now|
                redact("[0-9]{4}", "****")
        events  My _pin _is _   ****, _and _now|

    The text of each block is `pattern.sub(replacement, text)`, however it was cut into deltas, and wherever it is said: in
    a start, a delta, a `BlockDelta`, a finish, or a finish that overrules the block.

    From where a match may have begun, the text is held until that is decided. By default that takes no more than the
    pattern's greatest width. A pattern that has none (`[\\w.]+@\\w+`, `a+b`) holds until the match has ended or can't come
    any more, `(?s)BEGIN.*END` to the block's end. One that looks ahead (`\\b` does), or repeats what a group has matched,
    holds as many characters as it may look at; if that has no bound (`x(?=.*y)`), to the block's end. One that looks
    behind holds no more for that. This is exact, and slower; `holdback` bounds it. Other events don't wait.

    Held text is dropped, never shown, where the reply is cut off: at an error, an interruption, another attempt, and the
    end of a source whose block hasn't finished. It may be half of a match.

    Put it behind `retry_stream`, whose requests must continue the provider's own text, and in front of what shows, keeps
    or sends the reply: `share_events`, `scan_deltas`, encoders, a relay, logs. Operators in front of it see all. With
    `arguments` it belongs behind `run_tools`, or the tools get the replaced values. Two blocks are two texts: a match that
    begins in one and ends in the next isn't found.

    Completes with the source.

    Args:
        pattern: A regular expression of `re`, as a string or compiled. It can't match the empty text. The search takes as
            long as `pattern.sub`: a pattern that backtracks without a bound does so here, too.
        replacement: A text, in which `\\1` and `\\g<name>` are groups, as in `re.sub`; or a function of the match. The
            match's places count in a part of the text.
        holdback: How many characters from its beginning a match must show in, or it is none. A match that goes on is
            still held whole. By default there is no such limit.
        reasoning: Also in reasoning. A text may become reasoning by its end, where a provider sends `</think>` late.
        arguments: Also in all strings of the arguments of calls, keys included. A call then has no arguments until its
            end.
        elsewhere: Also in what quotes the text: citations and the provider's notes, results of tools, `Custom` data, the
            text of errors. Ranges of citations are moved, in characters. Log probabilities and numbers of tokens, which
            spell the text piece by piece, are left out. Names of tools, ids, types and signatures stay.

    Raises:
        InvalidValueError: At once, for a pattern that is none or can match the empty text, for a replacement that doesn't
            fit it, and for a `holdback` that is no number from 1.

    Errors: The source's own, with matches replaced: the error is then another object, without its causes. The exception
    of the replacement function; `InvalidValueError` if it returns no text, and for a value that is no event;
    `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "My key is s"})
        >>> deltas = [rd.events.TextDelta(0, piece) for piece in ("k-12", "34", "56. Keep it", " safe.")]
        >>> events = rx.from_iterable([start, *deltas, rd.events.BlockFinish(0)])
        >>> shown = events.pipe(rd.redact(r"sk-\\w{4,}", "[key]"), rd.text_deltas())
        >>> shown.subscribe(lambda text: print(repr(text))).dispose()
        'My key is '
        '[key]. Keep it'
        ' safe.'
    """
    redaction = Redaction(pattern, replacement, holdback)

    def in_arguments(text: str) -> str:
        try:
            value = parse_json(text)
        except InvalidJson:
            plain = _ESCAPED.sub(_unescaped, text)
            shown = redaction.all_of(plain)
            return text if shown == plain else shown
        return json.dumps(_in_strings(value, redaction.all_of), ensure_ascii=False)

    whole = units_of("block")
    return lift_rewriting(
        "redact",
        lambda sink: Rewriting(
            sink,
            lambda: Matches(redaction),
            reasoning=reasoning,
            arguments=(lambda: whole(in_arguments)) if arguments else None,
            drops=True,
            elsewhere=redaction if elsewhere else None,
        ),
    )


_ESCAPED = re.compile(r'\\(?:u[0-9a-fA-F]{4}|["\\/bfnrt])')


def _unescaped(escaped: re.Match[str]) -> str:
    return str(json.loads(f'"{escaped[0]}"'))


def _in_strings(value: Any, rewrite: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return rewrite(value)
    if is_list(value):
        return [_in_strings(item, rewrite) for item in value]
    if is_mapping(value):
        return {rewrite(name): _in_strings(item, rewrite) for name, item in value.items()}
    return value
