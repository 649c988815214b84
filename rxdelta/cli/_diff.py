"""`rxdelta diff`: two replies, compared block by block."""

from __future__ import annotations

from argparse import Namespace

from rxdelta.cli._compared import compared
from rxdelta.cli._endings import COMPLETE, DIFFERENT, UnusableError
from rxdelta.cli._lines import Lines
from rxdelta.cli._options import FILE_HELP, Parser, add_format
from rxdelta.cli._replies import read_replies

__all__ = ["add_arguments", "run"]

_ABOUT = """\
Compare two replies block by block: text by lines, arguments by their JSON, and how
each ended, with its usage. Times aren't compared, nor are ids, models, signatures
and metadata, which differ whenever a provider is asked twice; --all compares these.
So a recording and the same reply in another format are equal.

exit codes:
  0  the replies are equal
  1  they differ
  2  a file can't be read, or is no known stream
"""
_STYLES = {"-": "red", "+": "green", "@": "cyan"}


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta diff`."""
    command.description = _ABOUT
    command.add_argument("a", metavar="A", help=FILE_HELP)
    command.add_argument("b", metavar="B", help="the other one")
    command.add_argument(
        "--all", action="store_true", help="compare ids, models, signatures and metadata, too"
    )
    add_format(command)


def run(options: Namespace) -> int:
    """Compare two files. Return the exit code: see `add_arguments`."""
    if options.a == options.b == "-":
        raise UnusableError("standard input can be read only once: give the name of one of the files")
    a, b = (read_replies(file, options.format) for file in (options.a, options.b))
    sections = compared(a, b, everything=options.all)
    if not sections:
        return COMPLETE
    lines = Lines()
    lines.say(f"--- {options.a}", _STYLES["-"])
    lines.say(f"+++ {options.b}", _STYLES["+"])
    for section in sections:
        lines.say(f"@@ {section.title} @@", _STYLES["@"])
        for line in section.lines:
            marks = [(begin + 1, end + 1) for begin, end in line.marks]
            lines.say(f"{line.sign}{line.text}", _STYLES.get(line.sign, ""), marks=marks)
    return DIFFERENT
