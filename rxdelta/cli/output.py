"""What a command writes, also where an encoding lacks characters, and how it ends: its exit code, and its words for an error."""

from __future__ import annotations

import codecs
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any
from unicodedata import combining, east_asian_width

from rxdelta.core import visible

_SPELT = {"·": "-", "•": "*", "…": "..."}
"""What the command and rich write themselves, for encodings that lack it."""


def spell_out(stream: Any) -> None:
    """Let a stream write characters that its encoding lacks in others, mostly as escapes: `\\u4f60`."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=_ERRORS)


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    escaped = (_SPELT.get(one) or one.encode("ascii", "backslashreplace").decode() for one in missing)
    return "".join(escaped), error.end


_ERRORS = "rxdelta.cli"
codecs.register_error(_ERRORS, _spelt_out)


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


COMPLETE, UNWRITABLE, UNUSABLE, INCOMPLETE = 0, 1, 2, 3
DIFFERENT = 1
STOPPED = 128  # and the number of the signal
BROKEN_PIPE = STOPPED + 13  # SIGPIPE has no name on Windows


class UnusableError(Exception):
    """The input can't be read, or is nothing that the command can use."""


class StoppedError(Exception):
    """A signal has stopped the command.

    Attributes:
        signal: Its number.
    """

    def __init__(self, number: int) -> None:
        super().__init__("stopped")
        self.signal = number


def run_to_its_end(run: Callable[[Any], int], options: Any) -> int:
    """Run a command. Return the exit code, see `main`."""
    try:
        code = run(options)
        print(end="", flush=True)
        return code
    except UnusableError as error:
        print_error(str(error))
        return UNUSABLE
    except OSError as error:
        # The exit flushes the buffer once more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):  # the reader has closed the pipe, as `head` does
            return BROKEN_PIPE
        print_error(f"cannot write the output: {error.strerror or error}")
        return UNWRITABLE
    except StoppedError as error:
        print_error("stopped")
        return STOPPED + error.signal
    except KeyboardInterrupt:
        print_error("stopped")
        return STOPPED + signal.SIGINT


@contextmanager
def signals_handled(handler: Callable[[int, Any], None]) -> Generator[None]:
    """Handle Ctrl-C and SIGTERM, but for one that is ignored, as by a background job.

    Outside of the main thread, which gets no signals, nothing is handled.

    Args:
        handler: Called with the signal, and with what handled it before.
    """
    before: dict[int, Any] = {}

    def handle(number: int, _frame: object) -> None:
        handler(number, before[number])

    with suppress(ValueError):
        for number in (signal.SIGINT, signal.SIGTERM):
            usual = signal.getsignal(number)
            if usual is not signal.SIG_IGN:
                before[number] = usual
                signal.signal(number, handle)
    try:
        yield
    finally:
        for handled, usual in before.items():
            with suppress(ValueError):
                signal.signal(handled, usual)


def print_error(message: str) -> None:
    """Say something on standard error, on one line."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        with suppress(OSError):  # no other stream could report it
            print(visible(f"rxdelta: {message}", lines=False), file=sys.stderr, flush=True)


def cannot_write(path: str, error: OSError) -> int:
    """Say that a file can't be written. Return the exit code."""
    print_error(f"cannot write {path}: {error.strerror or error}")
    return UNWRITABLE
