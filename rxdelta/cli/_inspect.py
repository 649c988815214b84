"""`rxdelta inspect`: what a recording holds, as lines, as JSON, or as a page with a timeline."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections import deque
from contextlib import suppress
from pathlib import Path

from rxdelta.cli._endings import COMPLETE, INCOMPLETE, UnusableError, cannot_write
from rxdelta.cli._files import opened
from rxdelta.cli._inspect_html import page
from rxdelta.cli._inspect_text import TextPrinter, print_json
from rxdelta.cli._inspected import Inspection
from rxdelta.cli._options import FILE_HELP, Parser, add_format
from rxdelta.cli._replies import no_stream
from rxdelta.recording import read_lines

__all__ = ["add_arguments", "run"]

_ABOUT = """\
List the events of a recorded stream with their times, blocks and sizes, and what
is odd about them. Then say of each reply how it ended, how long it took and what
it used.

exit codes:
  0  all replies are complete, or were cut by their length
  1  the output can't be written
  2  the file can't be read, or is no known stream
  3  a reply is incomplete, or the stream ended with an error
"""


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta inspect`."""
    command.description = _ABOUT
    command.add_argument("file", metavar="FILE", help=FILE_HELP)
    command.add_argument(
        "--html",
        metavar="OUT",
        help="write a page with a timeline to this file instead; - is standard output",
    )
    command.add_argument(
        "--raw", action="store_true", help="show each chunk below the first event that was made of it"
    )
    command.add_argument("--json", action="store_true", help="print one object of JSON, and nothing else")
    add_format(command)


def run(options: Namespace) -> int:
    """Inspect a file. Return the exit code: see `add_arguments`."""
    if options.html is not None and _is_same(options.html, options.file):
        raise UnusableError(f"the page must not take the place of what it shows, {options.file}")
    inspection = Inspection(options.format)
    with opened(options.file) as file:
        rows = inspection.rows(read_lines(file))
        if options.html is not None:
            deque(rows, maxlen=0)
        elif options.json:
            print_json(rows, inspection, raw=options.raw)
        else:
            TextPrinter(raw=options.raw).show(rows, inspection)
    if not inspection.replies:
        raise no_stream(options.file, options.format, inspection.error)
    if options.html is not None:
        try:
            _write(page(inspection, _title(options.file)), options.html)
        except OSError as error:
            if options.html == "-":
                raise
            return cannot_write(options.html, error)
    return COMPLETE if inspection.is_whole else INCOMPLETE


def _is_same(page: str, file: str) -> bool:
    with suppress(OSError):  # one of them isn't there
        return os.path.isfile(page) and os.path.samefile(page, file)
    return False


def _title(file: str) -> str:
    return "standard input" if file == "-" else Path(file).name


def _write(text: str, path: str) -> None:
    data = text.encode()
    if path == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        Path(path).write_bytes(data)
