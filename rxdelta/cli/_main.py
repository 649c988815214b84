"""The arguments of the command `rxdelta`. What replays a stream is imported when they are read: help needs none of it."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from rxdelta import __version__
from rxdelta.cli._spell_out import spell_out
from rxdelta.core import UnknownWireFormatError, did_you_mean
from rxdelta.providers import FORMATS, decoder
from rxdelta.testing import SAMPLES

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Standard output gets the reply: a picture on a terminal, its text elsewhere, or JSON. The rest goes to standard error.

    Returns:
        0 for a message that is complete or cut by length, and for the help; 3 for an incomplete one; 2 for input that is no
        known stream; 1 if the output can't be written; 130 after Ctrl-C and 143 after SIGTERM, with the reply so far; 141 if
        the reader of the output has gone.
    """
    parser = _parser()
    spell_out(sys.stdout)
    spell_out(sys.stderr)
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    from rxdelta.cli._replay import run

    return run(options)


class _Parser(argparse.ArgumentParser):
    """A parser that asks for the likely word."""

    def error(self, message: str) -> NoReturn:
        given = re.search(r"invalid choice: '(.*?)'", message)
        meant = did_you_mean(given[1], [*_COMMANDS, *SAMPLES]) if given else ""
        super().error(f"{message}; {meant}" if meant else message)


_COMMANDS = ("demo", "replay")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="rxdelta",
        description="Watch a model's streamed reply grow into snapshots and end as a message.",
        epilog="To begin with: rxdelta demo",
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="replay a bundled sample")
    demo.add_argument(
        "sample",
        nargs="?",
        choices=SAMPLES,
        default="weather",
        help="weather (Anthropic: reasoning, text, two tool calls), forecast (its answer), "
        "tides (OpenAI chat, as SSE), overloaded (ends in an error)",
    )
    replay = commands.add_parser("replay", help="replay a recording, or a live stream from a pipe")
    replay.add_argument(
        "file", metavar="FILE", help="a JSONL file of chunks or an SSE capture; - is standard input"
    )
    for command in (demo, replay):
        command.add_argument(
            "--format",
            default="auto",
            type=_wire_format,
            metavar="NAME",
            help=f"the wire format (default: by the first chunk): {', '.join(sorted(FORMATS))}",
        )
        command.add_argument(
            "--speed",
            type=_speed,
            metavar="X",
            help="how fast; 0 doesn't wait (default: 1 on a terminal, 0 elsewhere)",
        )
        command.add_argument(
            "--json",
            action="store_true",
            help="print the message (or snapshot) as one line of JSON, and nothing else",
        )
    return parser


def _wire_format(name: str) -> str:
    try:
        if name != "auto":
            decoder(name)
    except UnknownWireFormatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def _speed(text: str) -> float:
    with suppress(ValueError):
        speed = float(text)
        if 0 <= speed < float("inf"):
            return speed
    raise argparse.ArgumentTypeError(f"must be a number, 0 or more (got {text!r})")
