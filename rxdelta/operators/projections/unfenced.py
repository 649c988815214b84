"""A document without the markdown fence around it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

__all__ = ["Unfenced"]


class Unfenced:
    """A document without the markdown fence that models often put around it.

    The opening fence and the rest of its line become spaces, so that characters keep their positions. The closing
    fence and all text after it are left out.
    """

    def __init__(self) -> None:
        self._read: Callable[[str, Callable[[], bool]], Iterable[str]] = self._read_start
        self._ticks = ""

    def pieces(self, text: str, is_whole: Callable[[], bool]) -> Iterable[str]:
        """Split the text into pieces. Each must be parsed before the next is requested.

        Args:
            text: The new text.
            is_whole: Whether the parsed pieces are a whole document: then a backtick ends it.
        """
        return self._read(text, is_whole)

    def rest(self) -> str:
        """The held text, at the end of the text."""
        return self._ticks

    def _read_start(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        if not self._ticks:
            rest = text.lstrip(" \t\r\n")
            yield text[: len(text) - len(rest)]
            text = rest
        text = self._ticks + text
        if len(text) < 3 and text == "`" * len(text):
            self._ticks = text
            return
        self._ticks = ""
        fenced = text.startswith("```")
        self._read = self._read_first_line if fenced else self._read_plain
        yield from self._read(text, is_whole)

    def _read_first_line(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        line, end, rest = text.partition("\n")
        yield " " * len(line) + end
        if end:
            self._read = self._read_fenced
            yield from self._read(rest, is_whole)

    def _read_fenced(self, text: str, is_whole: Callable[[], bool]) -> Iterator[str]:
        """Pass backticks on until the document is whole: before that they can only be part of a string."""
        at = 0
        while (tick := text.find("`", at)) >= 0:
            yield text[at:tick]
            if is_whole():
                self._read = self._read_nothing
                return
            yield "`"
            at = tick + 1
        yield text[at:]

    def _read_plain(self, text: str, _: Callable[[], bool]) -> Iterable[str]:
        return (text,)

    def _read_nothing(self, _: str, __: Callable[[], bool]) -> Iterable[str]:
        return ()
