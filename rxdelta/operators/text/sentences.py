"""The text of a reply as whole sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from rxdelta.core import Event, ProviderError, another_run, concerns_any_run
from rxdelta.core.events import EVENT_TYPES, Custom, StreamError
from rxdelta.operators.text.rewriting import Rewriting, Step
from rxdelta.operators.text.text import units_of
from rxdelta.runtime import Sink, all_events, lift_machine, operator_maker

if TYPE_CHECKING:
    from reactivex import Observable


@operator_maker
def sentences() -> Callable[[Observable[Event]], Observable[str]]:
    """Emit the reply's text a whole sentence at a time, for speech or translation. Joined, they are the text.

    ::

        events  It _is _high. _It           _falls.|
                sentences()
        text    -  -   -      <It is high. >-      [<It falls.>|]

    A sentence is emitted as soon as its end is certain: for `.`, `!`, `?` and `…` when the next word has begun, and it
    doesn't with a small letter; at once for the marks that end every sentence (`。`, `？`, `।`, `؟`, …). Abbreviations,
    numbers, addresses, initials and the numbers of list items end none. Closing quotes and brackets belong to the
    sentence, and so does the white space behind it. A line break ends one, unless the next line begins with a small
    letter. Where the rule can't know (`in the U.S. The`), two sentences are one. After 600 characters a sentence is cut.

    An unfinished sentence is emitted at the block's end, and where the reply is cut off. The sentences of all text blocks are
    emitted, not those of reasoning. If a finish contradicts what was emitted, which can't be taken back, its text is
    not emitted; another attempt, or another message, emits its own.

    Put it last, behind `redact`, `guard` and `share_events`: what it emits are no events any more. `cut_text` cuts in the
    same way and emits events.

    Completes with the source.

    Errors: The source's own; `ProviderError` for a `StreamError`. `InvalidValueError` for a value that is no event;
    `ProtocolError` for a second run; `LimitExceededError`.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text", "text": "Dr. No paid 3"})
        >>> events = rx.of(start, rd.events.TextDelta(0, ".50. 你好。再"), rd.events.TextDelta(0, "见"), rd.events.BlockFinish(0))
        >>> events.pipe(rd.sentences()).subscribe(lambda text: print(repr(text))).dispose()
        'Dr. No paid 3.50. '
        '你好。'
        '再见'
    """
    speaking: Callable[[Observable[Event]], Observable[str]]
    speaking = lift_machine("sentences", _Sentences, emits="texts", needs_all=True)
    return all_events("sentences", speaking)


_UNITS = units_of("sentence")


class _Sentences:
    """One subscription's state."""

    def __init__(self, sink: Sink[str]) -> None:
        self._rewriting = Rewriting(sink, lambda: _UNITS(None), reasoning=False, apart=True)
        self._choice = sink.choice
        self._run: Any = _NO_RUN

    def step(self, event: Event) -> Sequence[str]:
        if type(event) is StreamError:
            raise ProviderError.by(event)
        kind = type(event)
        is_event = kind in EVENT_TYPES  # else the rewriting refuses it
        if is_event and event.run_id != self._run and kind is not Custom and not concerns_any_run(event):
            if self._run is not _NO_RUN:
                raise another_run(event.run_id, self._run)
            self._run = event.run_id
        return self._said(self._rewriting.steps(event))

    def close(self) -> Sequence[str]:
        return self._said(self._rewriting.cut_off())

    def fail(self, error: Exception) -> tuple[Sequence[str], Exception]:
        return self.close(), error

    def _said(self, steps: Sequence[Step]) -> Sequence[str]:
        said: list[str] = []
        for step in steps:
            text = step.text
            if text is None or text.kind != "text" or text.lane[1] != self._choice:
                continue
            if not (step.inside and text.contradicts):
                said += filter(None, step.pieces)
        return said


_NO_RUN: Any = object()
