"""`rxdelta convert`: a reply as another provider would stream it."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Sequence

from rxdelta.cli.options import FILE_HELP, Parser, wire_format
from rxdelta.cli.output import COMPLETE, UNWRITABLE, cannot_write, print_error
from rxdelta.cli.replies import provider_of
from rxdelta.core import InvalidValueError
from rxdelta.recording import LONGEST_WAIT, Recorder
from rxdelta.testing import VirtualTime, marbles

_ABOUT = """\
Write a reply as another provider would stream it: as lines of JSON, one a chunk; or
to a file as a recording, with the times of the one that it is made of. A reply that
is incomplete, or ended with an error, stays so.

  rxdelta convert reply.jsonl --to ollama | rxdelta replay -

exit codes:
  0  the reply is written
  1  the format can't carry it, and then nothing is written; or the output can't be written
  2  the file can't be read, or is no known stream
"""


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta convert`."""
    command.description = _ABOUT
    command.add_argument("file", metavar="FILE", help=FILE_HELP)
    command.add_argument(
        "--to",
        required=True,
        type=wire_format,
        metavar="FORMAT",
        help="the name of the format, see rxdelta replay --help",
    )
    command.add_argument("--out", "-o", metavar="OUT", help="write a recording with its times to this file")


def run(options: Namespace) -> int:
    """Convert a file. Return the exit code: see `add_arguments`."""
    provider, time = provider_of([options.file]), VirtualTime().scheduler
    chunks = provider.observable(options.to, scheduler=time)
    *records, (end, _, error) = marbles.records(chunks, time, until=LONGEST_WAIT + 1)
    if isinstance(error, InvalidValueError) and not records:
        print_error(f"{options.file} can't be converted: {error}")
        return UNWRITABLE
    if options.out is not None:
        return _record(records, end, error, options.out)
    for _, _, chunk in records:
        print(json.dumps(chunk))  # ASCII, because it is the same in every encoding
    if error is not None:
        print_error(f"the reply ends with an error, which is in no chunk: {error}")
    return COMPLETE


def _record(records: Sequence[marbles.Record], end: float, error: Exception | None, path: str) -> int:
    now = 0.0
    try:
        recorder = Recorder(path, lambda: now)
        for at, _, chunk in records:
            now = at
            recorder.value(chunk)
        now = end
        if error is None:
            recorder.end()
        else:
            recorder.error(error)
    except OSError as failure:
        return cannot_write(path, failure)
    return COMPLETE
