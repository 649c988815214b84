"""`rxdelta diff`: two replies, compared block by block."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Final

import attrs

from rxdelta.cli.files import error_text
from rxdelta.cli.options import FILE_HELP, Parser, add_format
from rxdelta.cli.output import COMPLETE, DIFFERENT, Lines, UnusableError
from rxdelta.cli.replies import Replies, read_replies
from rxdelta.core import Block, ContentPart, Message, RxDeltaError, Snapshot, ToolCall, thaw
from rxdelta.providers import completed

_AROUND = 2  # equal lines that are shown around different ones
_WORDS = 400  # of a line in which different ones are marked
_TEXTS: Final = ("text", "reasoning", "refusal")

Ended = tuple[Message | Snapshot, RxDeltaError | None]


@attrs.frozen
class Line:
    """A line of a comparison.

    Attributes:
        sign: `-` if it is only in the first reply, `+` only in the second, a space in both.
        text: The line.
        marks: The beginnings and the ends of the words that differ from the line that it replaces.
    """

    sign: str
    text: str
    marks: Sequence[tuple[int, int]] = ()


@attrs.frozen
class Section:
    """The differences in one place, such as a block.

    Attributes:
        title: The place.
        lines: Its lines.
    """

    title: str
    lines: Sequence[Line]


def compared(a: Replies, b: Replies, *, everything: bool) -> list[Section]:
    """The differences between the replies of two files, in order; none if they are equal.

    Args:
        a: The replies of the first file.
        b: Those of the second.
        everything: Whether ids, models, signatures and metadata count.
    """
    sections: list[Section] = []
    pairs = list(zip_longest(a.endings(), b.endings()))
    for number, (one, other) in enumerate(pairs, 1):
        which = f"reply {number}, " if len(pairs) > 1 else ""
        places = _places(one, other, everything)
        for title, mine, theirs in places:
            if lines := _differing(mine, theirs):
                sections.append(Section(f"{which}{title}", lines))
    return sections


def _places(
    one: Ended | None, other: Ended | None, everything: bool
) -> Iterator[tuple[str, list[str], list[str]]]:
    blocks = [() if ended is None else ended[0].blocks for ended in (one, other)]
    for number, mine, theirs in _aligned(*blocks):
        shown = mine or theirs
        name = f" {shown.name}" if isinstance(shown, ToolCall) and shown.name else ""
        yield (
            f"block {number}: {shown.type if shown else ''}{name}",
            _lines(mine, everything),
            _lines(theirs, everything),
        )
    yield "end", _end(one), _end(other)
    if everything:
        yield "ids and metadata", _rest(one), _rest(other)


def _aligned(
    mine: Sequence[Block], theirs: Sequence[Block]
) -> Iterator[tuple[int, Block | None, Block | None]]:
    """The blocks that belong together, with their numbers, from 1: in the first reply, if it has the block."""
    kinds = SequenceMatcher(None, [*map(_kind, mine)], [*map(_kind, theirs)], autojunk=False)
    for kind, a, a_end, b, b_end in kinds.get_opcodes():
        if kind == "equal":
            yield from ((a + n + 1, mine[a + n], theirs[b + n]) for n in range(a_end - a))
        else:
            yield from ((n + 1, mine[n], None) for n in range(a, a_end))
            yield from ((n + 1, None, theirs[n]) for n in range(b, b_end))


def _kind(block: Block) -> tuple[str, str | None]:
    return block.type, block.name if isinstance(block, ToolCall) else None


def _end(ended: Ended | None) -> list[str]:
    if ended is None:
        return []
    reply, error = ended
    # The totals of one provider include what those of another leave out.
    counts: Mapping[str, int] = {} if reply.usage is None else completed(reply.usage).billed
    known = {
        "status": reply.status,
        "finish reason": reply.finish_reason,
        "input tokens": counts.get("input_tokens"),
        "output tokens": counts.get("output_tokens"),
        "error": error and error_text(error),
    }
    return [f"{name}: {value}" for name, value in known.items() if value is not None]


def _rest(ended: Ended | None) -> list[str]:
    """The fields that have no comparison of their own, without the blocks."""
    if ended is None:
        return []
    fields = ended[0].to_dict()
    for name in ("blocks", "status", "finish_reason", "custom", "started"):
        fields.pop(name, None)
    return _json(fields)


def _lines(block: Block | None, everything: bool) -> list[str]:
    if block is None:
        return []
    fields = block.to_dict()
    for name in ("key", "type", "name", "open"):
        fields.pop(name, None)
    text = fields.pop("text", None)
    if isinstance(block, ToolCall):
        lines = _json(thaw(block.arguments) if block.type != "invalid_tool_call" else block.arguments)
        fields.pop("arguments", None)
    else:
        lines = (text or "").split("\n")
    if not everything:
        fields = _counting(block, fields)
    return [*lines, *(_json(fields) if fields else [])]


def _counting(block: Block, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields that differ only if the reply does."""
    if isinstance(block, ContentPart):
        names = ("citations",) if block.type in _TEXTS else ("citations", "options")
        return {name: fields[name] for name in names if name in fields}
    counting = {name: fields[name] for name in ("result", "error") if name in fields}
    if isinstance(counting.get("result"), dict):
        result = counting["result"]
        counting["result"] = {name: result[name] for name in ("content", "is_error") if name in result}
    return counting | ({} if block.status == "complete" else {"status": block.status})


def _json(value: Any) -> list[str]:
    if isinstance(value, str):
        return value.split("\n")
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True).split("\n")


def _differing(mine: list[str], theirs: list[str]) -> list[Line]:
    """The lines that differ, and those around them; nothing if all are equal."""
    if mine == theirs:
        return []
    out: list[Line] = []
    for group in SequenceMatcher(None, mine, theirs).get_grouped_opcodes(_AROUND):
        if out:
            out.append(Line(" ", "…"))
        for kind, a, a_end, b, b_end in group:
            if kind == "equal":
                out += [Line(" ", text) for text in mine[a:a_end]]
            else:
                out += _replaced(mine[a:a_end], theirs[b:b_end])
    return out


def _replaced(mine: list[str], theirs: list[str]) -> list[Line]:
    paired = len(mine) == len(theirs)
    marks = [_marked(one, other) for one, other in zip(mine, theirs)] if paired else []
    removed = [found for found, _ in marks] or [[] for _ in mine]
    added = [found for _, found in marks] or [[] for _ in theirs]
    return [
        *(Line("-", text, found) for text, found in zip(mine, removed)),
        *(Line("+", text, found) for text, found in zip(theirs, added)),
    ]


def _marked(one: str, other: str) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Where the words of two lines differ."""
    words, others = _words(one), _words(other)
    if max(len(words), len(others)) > _WORDS:
        return [], []
    marks: tuple[list[tuple[int, int]], list[tuple[int, int]]] = ([], [])
    for kind, a, a_end, b, b_end in SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        if kind != "equal":
            marks[0].append((_length(words[:a]), _length(words[:a_end])))
            marks[1].append((_length(others[:b]), _length(others[:b_end])))
    return marks


def _words(line: str) -> list[str]:
    return re.findall(r"\s+|\w+|[^\w\s]", line)


def _length(words: list[str]) -> int:
    return sum(map(len, words))


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
