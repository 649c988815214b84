"""What the commands' arguments share: a parser that asks for the likely word, and options that several commands have."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from rxdelta.core import UnknownWireFormatError, did_you_mean, visible
from rxdelta.providers import FORMATS, decoder

FILE_HELP = (
    "a recording, an SSE capture, or a JSONL file of chunks, events or stored messages; - is standard input"
)

_SAME = ("--format", "--to", "--as")
"""Options that mean a format. Each command has one of them, and the others are taken for it."""


class Parser(argparse.ArgumentParser):
    """A parser that asks for the likely word.

    Attributes:
        given: The arguments of the command, to look for the typing error that made another argument missing.
        words: The words that may stand where only one of a few may.
        named: The parser of the command that is named, if this is the one above it: it reports unknown options.
    """

    given: Sequence[str] = ()
    words: Sequence[str] = ()
    named: Parser | None = None

    def error(self, message: str) -> NoReturn:
        meant = self._meant(message)
        # An argument may be the name of a file that somebody else has given it.
        super().error(visible(f"{message}; {meant}" if meant else message, lines=False))

    def _meant(self, message: str) -> str:
        wrong_choice = re.search(r"invalid choice: '(.*?)'", message)
        if wrong_choice:
            return did_you_mean(wrong_choice[1], self.words)
        if "unrecognized arguments" not in message and "are required" not in message:
            return ""
        known = [*(self.named or self)._option_string_actions]
        for word in self.given:
            if word == "--":
                break
            name = word.partition("=")[0]
            if name.startswith("--") and not any(option.startswith(name) for option in known):
                likely = [option for option in known if option in _SAME] if name in _SAME else known
                return did_you_mean(name, likely) or (f"did you mean {likely[0]!r}?" if name in _SAME else "")
        return ""


def add_format(command: Parser) -> None:
    """Add `--format`, the format in which files are read."""
    command.add_argument(
        "--format",
        default="auto",
        type=_readable_format,
        metavar="NAME",
        help=f"the wire format (default: by the first chunk): {', '.join(sorted(FORMATS))}",
    )


def add_speed(command: Parser, default: str) -> None:
    """Add `--speed`, whose default depends on the command."""
    command.add_argument(
        "--speed", type=_speed, metavar="X", help=f"how fast; 0 doesn't wait (default: {default})"
    )


def _readable_format(name: str) -> str:
    """The name of a format, or `auto`."""
    return name if name == "auto" else wire_format(name)


def wire_format(name: str) -> str:
    """The name of a format."""
    try:
        decoder(name)
    except UnknownWireFormatError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return name


def _speed(text: str) -> float:
    """A speed: 1 is the pace of the recording, 0 doesn't wait."""
    with suppress(ValueError):
        number = float(text)
        if 0 <= number < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"must be a number, 0 or more (got {text!r})")
