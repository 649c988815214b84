"""The command `rxdelta`. A command's file has its arguments and what it does, and is imported when the command is named.

`files` and `replies` read what commands are given; `inspected`, `account` and `facts` are what an inspection knows; `output` is
how a command writes and ends.
"""

from __future__ import annotations

import os
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module

from rxdelta import __version__
from rxdelta.cli.options import Parser
from rxdelta.cli.output import run_to_its_end, spell_out

_COMMANDS = {
    "demo": ("rxdelta.cli.demo", "replay a bundled sample"),
    "replay": ("rxdelta.cli.replay", "replay a recording, or a live stream from a pipe"),
    "inspect": ("rxdelta.cli.inspect", "show a recording event by event, or as a page with a timeline"),
    "record": ("rxdelta.cli.record", "run a command, and record the stream that it prints"),
    "diff": ("rxdelta.cli.diff", "compare two replies, block by block"),
    "convert": ("rxdelta.cli.convert", "write a recording in another format"),
    "serve": ("rxdelta.cli.serve", "give a recording to any client, as the provider would"),
}
"""The commands: the module with `add_arguments(command)` and `run(options)`, and the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command.

    Standard output gets what was asked for: of `demo` and `replay` the reply, as a picture on a terminal, as its text
    elsewhere, or as JSON; of `convert` the chunks; of `serve` the URL; of `record` what the other command prints. The rest
    goes to standard error.

    Args:
        arguments: The arguments; by default those of the process.

    Returns:
        The exit code, one of these.

        - 0 for a message that is complete or cut by length, for replies without a difference, and for the help;
        - 1 if the output can't be written, if replies differ, or if a format can't carry a reply;
        - 2 for wrong arguments, and for input that can't be read or is no known stream;
        - 3 for an incomplete message;
        - 130 after Ctrl-C and 143 after SIGTERM, with the reply so far; 141 if the reader of the output has gone.

        `record` returns the code of the command that it runs, or 128 and the number of the signal that ended it; 125 if the
        recording can't be opened, 126 if the command can't be run, 127 if there is none of this name.

    Raises:
        SystemExit: For wrong arguments (2), `--help` and `--version` (0).
    """
    given = sys.argv[1:] if arguments is None else [*arguments]
    parser = _parser(given)
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # the parent process has closed it
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    spell_out(sys.stdout)
    spell_out(sys.stderr)
    if not given:
        parser.print_help()
        return 0
    options = parser.parse_args(given)
    return run_to_its_end(options.run, options)


def _parser(given: Sequence[str]) -> Parser:
    parser = Parser(
        prog="rxdelta",
        description="Watch, record, compare and serve a model's streamed replies.",
        epilog="To begin with: rxdelta demo",
    )
    parser.words = [*_COMMANDS]
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = next((word for word in given if not word.startswith("-")), None)
    for name, (home, says) in _COMMANDS.items():
        command = commands.add_parser(name, help=says, formatter_class=RawDescriptionHelpFormatter)
        if name == named:
            module = import_module(home)
            parser.given = command.given = given
            parser.named = command
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser
