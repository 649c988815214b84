"""How a command ends: its exit code, and what it says of an error."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any

from rxdelta.core import visible

__all__ = [
    "BROKEN_PIPE",
    "COMPLETE",
    "DIFFERENT",
    "INCOMPLETE",
    "STOPPED",
    "StoppedError",
    "UNUSABLE",
    "UNWRITABLE",
    "UnusableError",
    "cannot_write",
    "print_error",
    "signals_handled",
    "run_to_its_end",
]

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
