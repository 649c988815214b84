"""`rxdelta record`: what a command prints, passed on as it comes and recorded with its times."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from argparse import REMAINDER, Namespace
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any, Self

from rxdelta.cli.options import Parser
from rxdelta.cli.output import COMPLETE, STOPPED, StoppedError, cannot_write, print_error, signals_handled
from rxdelta.core import RxDeltaError
from rxdelta.providers import AutoParser
from rxdelta.recording import Recorder

FAILED, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127
_BLOCK = 65536
_ABOUT = """\
Run a command, pass on what it prints byte by byte, and record it with its times:

  rxdelta record --out reply.jsonl -- curl -sN https://… -d @request.json
  curl -sN https://… -d @request.json | rxdelta record --out reply.jsonl

Server-sent events and lines of JSON are recorded as chunks, anything else as it is.
Keys and passwords in chunks are masked; what the model wrote is kept.

exit codes:
  the command's own, 128 and the number of the signal that ended it,
  125  the recording can't be opened    126  the command can't be run
  127  there is no such command
"""


def add_arguments(command: Parser) -> None:
    """Add the arguments of `rxdelta record`."""
    command.description = _ABOUT
    command.add_argument("--out", "-o", required=True, metavar="FILE", help="the recording")
    command.add_argument(
        "cmd",
        nargs=REMAINDER,
        metavar="-- CMD ARGUMENT …",
        help="the command; without it, standard input is recorded and passed on",
    )
    command.set_defaults(refuse=command.error)


def run(options: Namespace) -> int:
    """Record a command, or standard input. Return the exit code."""
    words = options.cmd[1:] if options.cmd[:1] == ["--"] else options.cmd
    if not words:
        return _record_input(options)
    if shutil.which(words[0]) is None:
        is_there = os.sep in words[0] and os.path.exists(words[0])
        print_error(
            f"cannot run {words[0]}: {'it is not executable' if is_there else 'there is no such command'}"
        )
        return NOT_EXECUTABLE if is_there else NOT_FOUND
    recording = _open(options.out)
    if recording is None:
        return FAILED
    with recording:
        try:
            process = subprocess.Popen(words, stdout=subprocess.PIPE)  # noqa: S603  # it is the user's own
        except OSError as error:
            print_error(f"cannot run {words[0]}: {error.strerror or error}")
            recording.fail(error)
            return NOT_EXECUTABLE
        return _record_process(process, words[0], recording)


def _record_process(process: subprocess.Popen[bytes], name: str, recording: _Recording) -> int:
    pipe: Any = process.stdout
    with process, _passed_on_to(process) as signals:
        try:
            _pass_on(pipe.fileno(), recording)
        except BrokenPipeError:  # as if the command itself had written to the pipe
            recording.close()
        finally:
            pipe.close()
        code = process.wait()
    if code < 0:
        recording.fail(ChildProcessError(f"{name} was ended by {_name_of(-code)}"))
        return STOPPED - code
    if signals:
        recording.fail(ChildProcessError(f"{name} was told to end by {_name_of(signals[0])}"))
    elif code > 0:
        recording.fail(ChildProcessError(f"{name} ended with exit code {code}"))
    else:
        recording.end()
    return code


def _record_input(options: Namespace) -> int:
    stdin: Any = sys.stdin
    if stdin is None or stdin.isatty():
        options.refuse("give a command behind --, or pipe a stream into standard input")
    recording = _open(options.out)
    if recording is None:
        return FAILED
    with recording:
        _pass_on(sys.stdin.fileno(), recording)
        recording.end()
    return COMPLETE


def _open(path: str) -> _Recording | None:
    try:
        return _Recording(path)
    except OSError as error:
        cannot_write(path, error)
        return None


def _pass_on(source: int, recording: _Recording) -> None:
    """Write what comes to standard output at once, and record it.

    Raises:
        OSError: Standard output can't be written.
    """
    stdout: Any = sys.stdout
    target = None if stdout is None else stdout.fileno()
    while data := os.read(source, _BLOCK):
        left = data if target is not None else b""
        while left:
            left = left[os.write(target or 0, left) :]
        recording.feed(data)


@contextmanager
def _passed_on_to(process: subprocess.Popen[bytes]) -> Generator[list[int]]:
    """Pass signals on to the command, which ends in its own way. A second one of a kind ends us, too.

    Yields the signals that have come.
    """
    seen: list[int] = []

    def on_signal(number: int, _usual: object) -> None:
        if number in seen:
            process.kill()
            raise StoppedError(number)
        seen.append(number)
        # In the foreground, the terminal has sent the signal to the command already.
        if number != signal.SIGINT or not _is_in_foreground():
            with suppress(OSError):
                process.send_signal(number)

    with signals_handled(on_signal):
        yield seen


def _is_in_foreground() -> bool:
    """Whether Ctrl-C on a terminal reaches this process, and with it its children."""
    if not hasattr(
        os, "tcgetpgrp"
    ):  # Windows sends Ctrl-C to all processes of a console, and lets nobody pass it on
        return True
    for stream in (0, 1, 2):
        with suppress(OSError):  # it is no terminal
            return os.tcgetpgrp(stream) == os.getpgrp()
    return False


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class _Recording:
    """Records the chunks that the bytes hold. From the first line that holds none, it records the bytes themselves.

    If the file can't be written any longer, it says so once, and the stream continues.

    Raises:
        OSError: The file can't be opened.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._at = time.monotonic()
        self._recorder = Recorder(path, lambda: self._at)
        self._parser: AutoParser | None = AutoParser()  # until it can't read what comes
        self._unread: list[tuple[float, bytes]] = []  # pieces of the next chunk, with their times
        self._is_whole = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def feed(self, data: bytes) -> None:
        """Record what has come now."""
        now = time.monotonic()
        if self._parser is None:
            self._write(now, self._recorder.value, _readable(data))
            return
        # Line by line: the chunks in front of a line that is none are recorded as chunks.
        for line in data.splitlines(keepends=True) if b"\n" in data else [data]:
            self._unread.append((now, line))
            if self._parser is not None:
                self._read(now, self._parser, line)
        if self._parser is None:
            self._write_unread()

    def _read(self, now: float, parser: AutoParser, line: bytes | None) -> None:
        try:
            chunks = parser.close() if line is None else parser.feed(line)
        except RxDeltaError:
            self._parser = None
            return
        for chunk in chunks:
            self._write(now, self._recorder.value, chunk)
        if chunks:
            self._unread.clear()

    def _write_unread(self) -> None:
        for at, piece in self._unread:
            self._write(at, self._recorder.value, _readable(piece))
        self._unread.clear()

    def end(self) -> None:
        """The stream has completed."""
        self._finish()
        self._write(time.monotonic(), self._recorder.end)
        if self._parser is None and self._is_whole:
            print_error("this is no stream of server-sent events or lines of JSON; it is recorded as it came")

    def fail(self, error: Exception) -> None:
        """The stream has broken off."""
        self._finish()
        self._write(time.monotonic(), self._recorder.error, error)

    def _finish(self) -> None:
        now = time.monotonic()
        if self._parser is not None:
            self._read(now, self._parser, None)
        if self._parser is None:
            self._write_unread()

    def close(self) -> None:
        """Close the file. Without an end before, the recording replays as a stream that broke off."""
        self._recorder.close()

    def _write(self, at: float, step: Any, *values: object) -> None:
        self._at = at
        try:
            step(*values)
        except (OSError, RxDeltaError) as error:
            if self._is_whole:
                reason = getattr(error, "strerror", None) or error
                print_error(f"the recording {self._path} broke off: {reason}")
            self._is_whole = False


def _readable(data: bytes) -> str | bytes:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
