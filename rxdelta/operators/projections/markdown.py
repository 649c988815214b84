"""Markdown cut into blocks while it grows: the blocks that later text can't change, and the open rest.

`_Structure` follows CommonMark's first phase line by line (with GFM's tables, without inline content): the open
containers (quotes and list items) and the leaf in the innermost one. It reports changes at the top level only.

| a line | begins a block, so that the one before is over | leaves nothing open, so that its block is over |
| --- | --- | --- |
| heading, `===` or `---` under a paragraph, rule | at the top level | yes |
| closing fence, end of a comment, `<pre>`, … | | at the top level |
| blank | | after a paragraph, a table, a quote, a `<div>` |
| list item | unless it continues the list | never: a list goes on over blank lines |
| indented code | after a blank line, outside of a list | never: it goes on over blank lines |
| any other | unless it continues something, if only lazily | |
"""

from __future__ import annotations

import re
from itertools import pairwise

import attrs

from rxdelta.core import GrowingText, clean_text, extend, fast_constructor, join_when_read, read_text


@attrs.frozen(weakref_slot=False)
class StableMarkdown:
    """The markdown so far: blocks that won't change any more, and the rest.

    The text so far is the blocks and the tail, concatenated. A block may be drawn once; only the tail must be
    drawn again. Blank lines between two blocks belong to the first until that is sealed, then to the second.

    Attributes:
        sealed: The finished blocks, each a complete piece of markdown.
        tail: The text that may still change; it is joined only when it is read.
    """

    sealed: tuple[str, ...] = ()
    tail: str = ""

    @property
    def text(self) -> str:
        """The whole text so far."""
        return "".join((*self.sealed, self.tail))


join_when_read(StableMarkdown, "tail")


@fast_constructor(StableMarkdown)
def _stable_markdown(sealed: tuple[str, ...], tail: GrowingText) -> StableMarkdown:
    """The markdown, made without checks. The tail becomes a string when it is read."""
    raise NotImplementedError


class MarkdownSplitter:
    """Cuts markdown that arrives in pieces. The borders of the pieces don't affect the result.

    A piece takes time in proportion to its own length; sealing a block copies the tuple.

    Attributes:
        value: The markdown so far.

    Example:
        >>> import rxdelta as rd
        >>> splitter = rd.operators.MarkdownSplitter()
        >>> splitter.feed("# Tides\\n\\nHigh wat")
        StableMarkdown(sealed=('# Tides\\n',), tail='\\nHigh wat')
        >>> splitter.feed("er.\\n\\n")
        StableMarkdown(sealed=('# Tides\\n', '\\nHigh water.\\n\\n'), tail='')
    """

    def __init__(self) -> None:
        self.value = StableMarkdown()
        self._tail: GrowingText = ""
        self._begin()

    def _begin(self) -> None:
        self._structure = _Structure()
        self._line: list[str] = []  # the pieces of the incomplete line
        self._return = ""  # a carriage return that may be half of a line end
        self._length = 0  # of the tail
        self._line_at = 0  # the position of the incomplete line in the tail
        self._filled = False  # whether the tail has more than blank lines before that line
        self._cuts: list[int] = []

    def feed(self, piece: str) -> StableMarkdown:
        """Append a piece, in which half a surrogate pair becomes U+FFFD, and return the value."""
        if not piece.isascii():
            piece = clean_text(piece)
        if piece:
            if "\n" in piece or "\r" in piece or self._return:
                self._scan(piece)
            else:
                self._line.append(piece)
            self._tail = extend(self._tail, piece)
            self._length += len(piece)
            if self._cuts:
                self._seal()
            else:
                self.value = _stable_markdown(self.value.sealed, self._tail)
        return self.value

    def finish(self) -> StableMarkdown:
        """Seal the tail as the end of this text, and return the value. Later pieces begin another text."""
        if self._length:
            if self._length > self._line_at:
                self._end_line("".join(self._line), self._length)
            if self._length not in self._cuts:
                self._cuts.append(self._length)
            self._seal()
        self._begin()
        return self.value

    def _scan(self, piece: str) -> None:
        before = self._length - len(self._return)
        piece = self._return + piece
        self._return = "\r" if piece[-1] == "\r" else ""
        at, stop = 0, len(piece) - len(self._return)
        for end in _LINE_END.finditer(piece, 0, stop):
            self._line.append(piece[at : end.start()])
            at = end.end()
            self._end_line("".join(self._line), before + at)
            self._line.clear()
        self._line.append(piece[at:stop])

    def _end_line(self, line: str, end: int) -> None:
        begins, closed = self._structure.take(line)
        if begins and self._filled:
            self._cuts.append(self._line_at)
            self._filled = False
        self._filled = self._filled or bool(line.strip(" \t"))
        if closed and self._filled:
            self._cuts.append(end)
            self._filled = False
        self._line_at = end

    def _seal(self) -> None:
        """Move the finished blocks from the tail to the sealed ones."""
        text, cut = read_text(self._tail), self._cuts[-1]
        sealed = tuple(text[start:end] for start, end in pairwise((0, *self._cuts)))
        self._tail = text[cut:]
        self._length -= cut
        self._line_at -= cut
        self._cuts.clear()
        self.value = _stable_markdown(self.value.sealed + sealed, self._tail)


_LINE_END = re.compile(r"\r\n?|\n")
_INDENT = re.compile(" *")
_HEADING = re.compile(r"#{1,6}(?: |$)")
_FENCE = re.compile(r"`{3,}+(?!.*`)|~{3,}+")
_UNDERLINE = re.compile(r"(?:=++|-++)$")
_RULE = re.compile(r"(?:(?:\* *+){3,}+|(?:- *+){3,}+|(?:_ *+){3,}+)$")
_ITEM = re.compile(r"(?:([-+*])|([0-9]{1,9})([.)]))(?= |$)")
_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITERS = re.compile(r"(?!- |-$)(?:\| *+)?:?-++:? *+(?:\| *+:?-++:? *+)*+\|?$")
_BLOCKS_OF_HTML = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt|"
    "fieldset|figcaption|figure|footer|form|frame|frameset|h[1-6]|head|header|hr|html|iframe|legend|li|link|main|menu|"
    "menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead|title|tr|"
    "track|ul"
)
_BLANK = re.compile(r"(?!)")  # never matches: HTML of this kind ends only with a blank line
_HTML = (  # the beginning and the end of each kind
    (re.compile(r"<(?:script|pre|style|textarea)(?=\s|>|$)", re.IGNORECASE), re.compile(r"</(?:script|pre|style|textarea)>", re.IGNORECASE)),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(rf"</?(?:{_BLOCKS_OF_HTML})(?=\s|/?>|$)", re.IGNORECASE), _BLANK),
)  # fmt: skip
_ATTRIBUTE = r"\s++[A-Za-z_:][A-Za-z0-9_.:-]*+(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?+"
_LONE_TAG = re.compile(
    rf"<(?:[A-Za-z][A-Za-z0-9-]*+(?:{_ATTRIBUTE})*+\s*+/?|/[A-Za-z][A-Za-z0-9-]*+\s*+)>\s*+$"
)

_NOTHING, _PARAGRAPH, _TABLE, _FENCED, _INDENTED, _RAW = range(6)
_QUOTE = 0
# Nested containers. Deeper ones are read as text, so that the time for a line is in proportion to its length.
_DEEPEST = 32


class _Structure:
    """The open containers and the open leaf between two lines."""

    __slots__ = ("_columns", "_containers", "_empty_item", "_end", "_fence", "_leaf", "_list")

    def __init__(self) -> None:
        self._containers: list[int] = []  # from the outside: `_QUOTE`, or the indentation of a list item
        self._leaf = _NOTHING  # in the innermost container
        self._list = ""  # the kind of the open list at the top level; it outlives its items
        self._empty_item = False  # the innermost container is a list item with only its marker so far
        self._fence = ""  # the opening fence of the code
        self._end = _BLANK  # the end of the HTML
        self._columns = 0  # of the paragraph's last line, if that may be the head of a table

    def take(self, line: str) -> tuple[bool, bool]:
        """Read a line. Return whether it begins a block at the top level, and whether no block is open after it."""
        line = line.expandtabs(4).rstrip(" ")
        pos, depth = self._continued(line)
        begins = self._content(line, pos, depth)
        return begins, not (self._containers or self._leaf or self._list)

    def _continued(self, line: str) -> tuple[int, int]:
        """Return where the content begins after the markers of the continued containers, and their number."""
        pos = depth = 0
        for indent in self._containers:
            at = _skip(line, pos)
            if indent == _QUOTE:
                if at - pos > 3 or not line.startswith(">", at):
                    break
                pos = _behind_quote(line, at)
            elif at == len(line):
                if self._empty_item and depth == len(self._containers) - 1:
                    break
                pos = at
            elif at - pos >= indent:
                pos += indent
            else:
                break
            depth += 1
        self._empty_item = False
        return pos, depth

    def _content(self, line: str, pos: int, depth: int) -> bool:
        at = _skip(line, pos)
        inside = depth == len(self._containers)  # all are continued, so the leaf may go on
        if inside and self._leaf in (_FENCED, _RAW):
            if self._is_last(line, pos, at):
                self._leaf = _NOTHING
            return False
        if at == len(line):
            if not inside or self._leaf != _INDENTED:
                self._close(depth)
            return False
        if inside and self._leaf == _PARAGRAPH and at - pos <= 3:
            if self._columns and self._columns == _delimiters(line, at):
                self._leaf = _TABLE
                return False
            if _UNDERLINE.match(line, at):
                self._leaf = _NOTHING
                return False
        return self._blocks(line, pos, at, depth, inside)

    def _is_last(self, line: str, pos: int, at: int) -> bool:
        """Whether this line is the last of the fenced code, or of the HTML."""
        if self._leaf == _FENCED:
            return at - pos <= 3 and line.startswith(self._fence, at) and not line[at:].strip(self._fence[0])
        return at == len(line) if self._end is _BLANK else bool(self._end.search(line, pos))

    def _blocks(self, line: str, pos: int, at: int, depth: int, inside: bool) -> bool:
        """Open the containers that this line begins, and a leaf in the innermost one."""
        begins = False
        leaf = None
        while at - pos <= 3:
            leaf = self._leaf_at(line, at, inside)
            opened = (
                None if leaf is not None or depth == _DEEPEST else self._container_at(line, pos, at, inside)
            )
            if opened is None:
                break
            indent, pos, kind = opened
            begins = self._open(depth, kind) or begins
            self._containers.append(indent)
            depth, inside = depth + 1, True
            at = _skip(line, pos)
            if at == len(line):
                self._empty_item = indent != _QUOTE
                return begins
        else:
            leaf = None if self._leaf == _PARAGRAPH else _INDENTED
        if leaf is None and self._leaf == _PARAGRAPH:  # maybe lazily: without its containers' markers
            self._columns = _columns(line, at) if inside and at - pos <= 3 else 0
        elif inside and self._leaf == (_TABLE if leaf is None else _INDENTED) and leaf in (None, _INDENTED):
            pass
        else:
            begins = self._open(depth) or begins
            self._leaf = _PARAGRAPH if leaf is None else leaf
            self._columns = _columns(line, at)
        return begins

    def _leaf_at(self, line: str, at: int, inside: bool) -> int | None:
        """The leaf that begins here, or `None` for text or a container."""
        first = line[at]
        if first == "#" and _HEADING.match(line, at):
            return _NOTHING
        if first in "`~" and (fence := _FENCE.match(line, at)):
            self._fence = fence[0]
            return _FENCED
        if first in "*-_" and _RULE.match(line, at):
            return _NOTHING
        return self._html_at(line, at, inside) if first == "<" else None

    def _html_at(self, line: str, at: int, inside: bool) -> int | None:
        for begin, end in _HTML:
            if begin.match(line, at):
                self._end = end
                return _NOTHING if end.search(line, at) else _RAW
        text = self._leaf == _PARAGRAPH or (inside and self._leaf == _TABLE)
        if not text and _LONE_TAG.match(line, at):
            self._end = _BLANK
            return _RAW
        return None

    def _container_at(self, line: str, pos: int, at: int, inside: bool) -> tuple[int, int, str] | None:
        """The quote or list item that begins here: its indentation, its content's position, and its list's kind."""
        if line[at] == ">":
            return _QUOTE, _behind_quote(line, at), ""
        item = _ITEM.match(line, at)
        if item is None:
            return None
        content = _skip(line, item.end())
        empty = content == len(line)
        if inside and self._leaf == _PARAGRAPH and (empty or int(item[2] or 1) != 1):
            return None
        if empty or content - item.end() > 4:  # indented code, or nothing, begins after one blank
            content = item.end() + 1
        return content - pos, min(content, len(line)), item[1] or item[3]

    def _open(self, depth: int, kind: str = "") -> bool:
        """Close the deeper blocks. Return whether a new block begins at the top level (not the next item of a list)."""
        self._close(depth)
        if depth:
            return False
        known, self._list = self._list, kind
        return not kind or kind != known

    def _close(self, depth: int) -> None:
        """Close the containers from this depth on, and the leaf."""
        del self._containers[depth:]
        self._leaf = _NOTHING


def _skip(line: str, pos: int) -> int:
    """The position after the blanks that begin here."""
    match = _INDENT.match(line, pos)
    return pos if match is None else match.end()


def _behind_quote(line: str, at: int) -> int:
    return at + 2 if line.startswith(" ", at + 1) else at + 1


def _columns(line: str, at: int) -> int:
    """The number of columns, if this line is the head of a table; 0 if it can't be."""
    head = line[at:].strip()
    if "|" not in head:
        return 0
    return (
        len(_PIPE.findall(head))
        + 1
        - head.startswith("|")
        - (head.endswith("|") and not head.endswith("\\|"))
    )


def _delimiters(line: str, at: int) -> int | None:
    """The number of columns, if this line can stand under the head of a table."""
    return line[at:].strip("|").count("|") + 1 if _DELIMITERS.match(line, at) else None
