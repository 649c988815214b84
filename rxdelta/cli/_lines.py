"""Lines on standard output, with colours if it is a terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from typing import Any
from unicodedata import combining, east_asian_width

from rxdelta.core import visible

__all__ = ["Lines"]


class Lines:
    """Prints lines. Colours need rich."""

    def __init__(self) -> None:
        stdout: Any = sys.stdout
        is_terminal = stdout is not None and stdout.isatty()  # `None` if the parent process has closed it
        self._width = shutil.get_terminal_size().columns if is_terminal else None
        self._console = _console() if is_terminal else None

    def say(
        self, line: str, style: str = "", *, marks: Iterable[tuple[int, int]] = (), cut: bool = False
    ) -> None:
        """Print a line.

        Args:
            line: The line; what would control a terminal is spelt out.
            style: Its style, in rich's words.
            marks: The beginnings and the ends of the words in it that stand out.
            cut: Whether a terminal gets only as much of it as fits its width.
        """
        shown = visible(line, lines=False)
        if cut and self._width is not None:
            shown = _cut(shown, self._width)
        if self._console is None:
            print(shown)
            return
        from rich.text import Text

        text = Text(shown, style=style)
        for begin, end in marks if len(shown) == len(line) else ():
            text.stylize("bold underline", begin, end)
        self._console.print(text, soft_wrap=True)


def _console() -> Any:
    try:
        from rich.console import Console
    except ImportError:
        return None
    console = Console()
    return None if console.is_dumb_terminal else console


def _cut(line: str, width: int) -> str:
    """The beginning of a line that fits a terminal's width. East Asian characters take two columns."""
    if len(line) * 2 <= width:
        return line
    columns = 0
    for place, letter in enumerate(line):
        columns += 0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1
        if columns > width:
            return f"{line[: max(place - 1, 0)]}…"
    return line
