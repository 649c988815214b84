"""The reply's text as markdown blocks that never need to be drawn again, and the open rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reactivex import Observable, abc

from rxdelta.core import DEFAULT_LIMITS, Event, Limits
from rxdelta.core.events import AttemptReset, Index
from rxdelta.operators.projections.markdown import MarkdownSplitter, StableMarkdown
from rxdelta.operators.projections.projection import Projection
from rxdelta.operators.projections.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["stable_blocks"]


def stable_blocks(
    *, choice: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Callable[[Observable[Event]], Observable[StableMarkdown]]:
    """Emit the reply's text as markdown: the blocks that later text can't change, and the open tail.

    A sealed block is a whole paragraph, heading, list, fenced code, table, quote, … of CommonMark with GFM's tables,
    and may be drawn for good. It is sealed as soon as a complete line shows its end: a blank line after a
    paragraph, the closing line of a fence, the first line after a list. An open fence is never sealed. Rendering the
    blocks one by one gives the same result as rendering the whole text, except for links whose definition is in
    another block.

    Emits when the text has changed. The parts of a reply's text (before and after a tool call) are separate documents.
    The tail is sealed, and this is emitted first, when a part ends or another one begins, when the message finishes or
    is interrupted, and when the stream ends. `sealed` only grows, with three exceptions: an `AttemptReset` or another
    message begins with nothing, and text that the provider replaces is cut again. Interleaved parts are read in the
    order of arrival.

    A piece takes time in proportion to its own length; sealing a block copies the tuple (in all a third of a second
    for 10,000 blocks). Completes with the source.

    Args:
        choice: Which of several alternative replies.
        limits: The most that the stream may make us hold.

    Errors: The source's own; `ProviderError` for a `StreamError`; `LimitExceededError`; `InvalidValueError` for a
    value that is no event. All come after the sealed tail.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> start = rd.events.BlockStart(0, {"type": "text"})
        >>> pieces = [rd.events.TextDelta(0, piece) for piece in ["# Ti", "des\\n", "\\nHigh", " at noon."]]
        >>> rx.of(start, *pieces).pipe(rd.stable_blocks()).subscribe(print).dispose()
        StableMarkdown(sealed=(), tail='# Ti')
        StableMarkdown(sealed=('# Tides\\n',), tail='')
        StableMarkdown(sealed=('# Tides\\n',), tail='\\nHigh')
        StableMarkdown(sealed=('# Tides\\n',), tail='\\nHigh at noon.')
        StableMarkdown(sealed=('# Tides\\n', '\\nHigh at noon.'), tail='')
    """

    def apply(source: Observable[Event]) -> Observable[StableMarkdown]:
        def subscribe(
            observer: abc.ObserverBase[StableMarkdown], scheduler: abc.SchedulerBase | None = None
        ) -> abc.DisposableBase:
            blocks = _Blocks(observer, choice, limits)
            return source.subscribe(blocks.on_next, blocks.on_error, blocks.on_completed, scheduler=scheduler)

        return Observable(subscribe)

    return apply


class _Blocks(Projection[StableMarkdown]):
    """One subscription's state."""

    def __init__(self, observer: abc.ObserverBase[StableMarkdown], choice: int, limits: Limits) -> None:
        self._limits = limits
        super().__init__(observer, choice)

    def begin(self) -> None:
        self._prose = Prose("text", self._limits)
        self._pieces: dict[Index, list[str]] = {}  # the whole text, by block
        self._current: Index | None = None  # the block of the tail
        self._splitter = MarkdownSplitter()
        self._shown = self._splitter.value

    def _take(self, event: Event, emit: Callable[[StableMarkdown], None]) -> None:
        before = self._shown
        try:
            super()._take(event, emit)
        except Exception:
            self._seal()
            self._show(emit)
            raise
        if isinstance(event, AttemptReset) and before.text:
            emit(self._shown)

    def on_error(self, error: Exception) -> None:
        self._seal()
        self._show(self._observer.on_next)
        self._observer.on_error(error)

    def on_completed(self) -> None:
        self._seal()
        self._show(self._observer.on_next)
        self._observer.on_completed()

    def step(self, event: Event, emit: Callable[[StableMarkdown], None]) -> None:
        for index, how, text in self._prose.step(event):
            if how == "more":
                self._pieces[index].append(text)
                self._write(index, text)
                continue
            known = self._pieces.get(index)
            self._pieces[index] = [text]
            if known is None:
                self._seal()
                self._write(index, text)
            elif text or any(known):
                self._begin_anew()
        if self._current is not None and not self._prose.is_open(self._current):
            self._seal()
        self._show(emit)

    def _write(self, index: Index, text: str) -> None:
        if not text:
            return
        if index != self._current:
            self._seal()
            self._current = index
        self._splitter.feed(text)

    def _begin_anew(self) -> None:
        """Split the whole text again, because a block's text was replaced."""
        self._splitter, self._current = MarkdownSplitter(), None
        for index, pieces in self._pieces.items():
            self._write(index, "".join(pieces))

    def _seal(self) -> None:
        self._splitter.finish()
        self._current = None

    def _show(self, emit: Callable[[StableMarkdown], None]) -> None:
        if self._splitter.value is not self._shown:
            self._shown = self._splitter.value
            emit(self._shown)
