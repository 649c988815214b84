"""`rxdelta serve`: recorded replies for any client, over HTTP."""

from __future__ import annotations

import logging
import sys
from argparse import ArgumentTypeError, Namespace
from contextlib import suppress
from threading import Event as Flag
from typing import Any

from rxdelta.cli.options import FILE_HELP, Parser, add_speed, wire_format
from rxdelta.cli.output import UNWRITABLE, StoppedError, print_error, signals_handled
from rxdelta.cli.replies import provider_of
from rxdelta.core import visible
from rxdelta.providers import endpoint
from rxdelta.testing import SAMPLES, FakeServer

_ABOUT = """\
Give recorded replies to any client, as the provider would, with the recorded pauses:
a front end or an agent is built without a key.

  rxdelta serve reply.jsonl --as openai-chat
  rxdelta serve --sample weather --as ai-sdk --port 8000

The first line is the base URL for the client. Each request gets the next reply; the
first one follows the last. The server listens at 127.0.0.1 only, until Ctrl-C.

exit codes:
  130  Ctrl-C    143  SIGTERM
  1    the port can't be used, or the output can't be written
  2    a file can't be read, or is no known stream
"""


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta serve`."""
    command.description = _ABOUT
    command.words = [*SAMPLES]
    command.add_argument("files", nargs="*", metavar="FILE", help=FILE_HELP)
    command.add_argument(
        "--sample", action="append", default=[], choices=SAMPLES, help="a bundled sample, behind the files"
    )
    command.add_argument(
        "--as",
        dest="wire_format",
        type=wire_format,
        metavar="FORMAT",
        help="the format of the base URL (default: each format has one of its own, below the URL that is printed)",
    )
    command.add_argument(
        "--port", type=_port, default=0, metavar="N", help="the port (default: any that is free)"
    )
    add_speed(command, "1")
    command.set_defaults(refuse=command.error)


def run(options: Namespace) -> int:
    """Serve files until a signal stops it. Return the exit code: see `add_arguments`."""
    if not options.files and not options.sample:
        options.refuse("give a FILE, or --sample and its name")
    provider = provider_of(
        options.files, options.sample, speed=1.0 if options.speed is None else options.speed, repeat=True
    )
    _log_requests()
    try:
        server = provider.serve(options.wire_format, port=options.port)
    except OSError as error:
        print_error(f"cannot listen at port {options.port}: {error.strerror or error}")
        return UNWRITABLE
    with server, signals_handled(_stop):
        _announce(server, options.wire_format)
        Flag().wait()
    return UNWRITABLE  # nothing sets the flag


def _announce(server: FakeServer, name: str | None) -> None:
    print(server.url if name is None else server.base_url(name), flush=True)
    if name is None:
        _say(f"each format's base URL is at {server.url}")
        return
    environment = server.environment
    for variable in endpoint(name).environment:
        _say(f"  export {variable}={environment[variable]}")


def _stop(number: int, _: object) -> None:
    raise StoppedError(number)


def _log_requests() -> None:
    """Say each request on standard error, on a line."""
    log = logging.getLogger("rxdelta.testing")
    log.setLevel(logging.INFO)
    log.addHandler(_ToStandardError())
    log.propagate = False


class _ToStandardError(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        _say(record.getMessage())


def _say(line: str) -> None:
    stderr: Any = sys.stderr
    if stderr is not None:
        with suppress(OSError):  # the replies are served without it, too
            print(visible(line, lines=False), file=stderr, flush=True)


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= 65535:
        return int(text)
    raise ArgumentTypeError(f"must be a whole number from 0 to 65535 (got {text!r})")
