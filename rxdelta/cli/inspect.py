"""`rxdelta inspect`: what a recording holds, as lines, as JSON, or as a page with a timeline."""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import Any

from rxdelta.cli.account import Row
from rxdelta.cli.facts import (
    Facts,
    block_facts,
    chunk_text,
    fields_of,
    in_seconds,
    reply_facts,
    stream_facts,
    title_of,
)
from rxdelta.cli.files import opened
from rxdelta.cli.inspect_html import page
from rxdelta.cli.inspected import Inspection
from rxdelta.cli.options import FILE_HELP, Parser, add_format
from rxdelta.cli.output import COMPLETE, INCOMPLETE, Lines, UnusableError, cannot_write
from rxdelta.cli.replies import no_stream
from rxdelta.recording import read_lines

_LOOK_AT = 200  # rows, by which it is decided whether the recording has times
_LANE = 24  # characters of a run's name
_NAME = 16  # the column of the names in the summary
_MOST_BLOCKS = 200  # lines of a reply

_STYLES = (
    ("error", "bold red"),
    ("broken off", "bold red"),
    ("malformed", "bold red"),
    ("no event", "yellow"),
    ("reasoning", "dim italic"),
    ("arguments", "cyan"),
    ("tool", "cyan"),
    ("text", "default"),
)


class TextPrinter:
    """Lines for people.

    Args:
        raw: Whether each chunk is shown below its first event.
    """

    def __init__(self, *, raw: bool = False) -> None:
        self._raw = raw
        self._lines = Lines()
        self._has_times = False

    def show(self, rows: Iterable[Row], inspection: Inspection) -> None:
        """Print the rows as they are read, and the summary when all are."""
        remaining = iter(rows)
        first = list(islice(remaining, _LOOK_AT))
        self._has_times = any(row.at.at > 0 for row in first) or len(first) == _LOOK_AT
        if not first:
            return
        head = self._columns("event", "seconds", "gap", "block", "what", "size", "says")
        self._lines.say(head, "bold", cut=True)
        for row in chain(first, remaining):
            self._lines.say(self._line(row), _style(row), cut=True)
            if self._raw and row.chunk is not None:
                self._lines.say(f"      {chunk_text(row.chunk)}", "dim")
        for line, style in _summary(inspection):
            self._lines.say(line, style)

    def _line(self, row: Row) -> str:
        lane = f"{row.lane[:_LANE]} " if row.lane else ""
        index = "" if row.index is None else str(row.index)[:_LANE]
        broken = f"!! {row.broken} " if row.broken not in (None, "error_event") else ""
        return self._columns(
            str(row.at.number) if row.is_event else "-",
            in_seconds(row.at.at),
            "" if row.gap is None else f"+{in_seconds(row.gap)}",
            f"{lane}{index}".strip(),
            row.what,
            str(row.size) if row.size else "",
            f"{broken}{row.says}",
        )

    def _columns(self, number: str, at: str, gap: str, block: str, what: str, size: str, says: str) -> str:
        times = f"{at:>10} {gap:>9} " if self._has_times else ""
        return f"{number:>6} {times} {block:<5} {what:<18} {size:>6}  {says}".rstrip()


def print_json(rows: Iterable[Row], inspection: Inspection, *, raw: bool = False) -> None:
    """Print one object for programs: `events`, a list with an object for each row, and what `fields_of` has."""
    separator = '{"events": [\n'
    for row in rows:
        print(separator + json.dumps(_row_fields(row, raw)), end="")
        separator = ",\n"
    if separator == ",\n":
        print(f"\n], {json.dumps(fields_of(inspection))[1:]}")


def _row_fields(row: Row, raw: bool) -> dict[str, Any]:
    found: dict[str, Any] = {
        "number": row.at.number if row.is_event else None,
        "at": row.at.at,
        "gap": row.gap,
        "lane": row.lane or None,
        "block": row.index,
        "what": row.what,
        "size": row.size,
        "says": row.says,
        "violation": row.broken,
    }
    return found | {"chunk": row.chunk} if raw else found


def _summary(inspection: Inspection) -> Iterator[tuple[str, str]]:
    """The lines below the events, with their styles."""
    yield "", ""
    yield from _facts(stream_facts(inspection))
    several = len(inspection.replies) > 1
    for number, reply in enumerate(inspection.replies, 1):
        yield "", ""
        yield title_of(reply, several, number), "bold"
        yield from _facts(reply_facts(reply, inspection.has_times))
        for block in reply.blocks[:_MOST_BLOCKS]:
            attempt = f" of attempt {block.attempt + 1}" if reply.snapshot.attempt else ""
            name = f" {block.name}" if block.name else ""
            said = block_facts(block, inspection.has_times)
            yield f"  {f'block {block.index}{attempt}':<{_NAME}}{block.kind}{name} · {said}", ""
        if len(reply.blocks) > _MOST_BLOCKS:
            yield f"  and {len(reply.blocks) - _MOST_BLOCKS:,} more blocks", ""


def _facts(facts: Facts) -> Iterator[tuple[str, str]]:
    for name, value in facts:
        style = "bold red" if name in ("error", "violations") else "yellow" if name == "unread fields" else ""
        yield f"  {name:<{_NAME}}{value}", style


def _style(row: Row) -> str:
    if row.broken:
        return "bold red"
    return next((style for word, style in _STYLES if row.what.startswith(word)), "")


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
