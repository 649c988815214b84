"""Bytes → lines of text.

The splitter works on bytes until a line is complete. A line end is ASCII and never part of a multibyte UTF-8
character, so a character that was split between two pieces is whole again in its line, and the limit counts bytes as
they were received.
"""

from __future__ import annotations

from itertools import takewhile

__all__ = ["LineSplitter"]

_BOM = b"\xef\xbb\xbf"


class LineSplitter:
    """Split bytes, cut anywhere, into complete lines without their ends.

    Lines are decoded as UTF-8, with U+FFFD for each bad byte; a byte order mark at the start is dropped. A line
    longer than `line_bytes` sets `too_long` at once; the lines before it are still returned. The pieces of an
    unfinished line are kept in a list and joined once, so a long line in small pieces takes linear time.

    Args:
        line_bytes: The largest length of a line, from `Limits`.
        carriage_returns: Whether CR and CRLF end a line, as LF does. A CR ends the line at once, without waiting
            for an LF in the next piece.

    Attributes:
        too_long: Whether a line exceeded the limit. Nothing can be read after it.

    Example:
        >>> lines = LineSplitter(100, carriage_returns=True)
        >>> lines.feed(b"one\\r"), lines.feed(b"\\ntwo"), lines.close()
        (['one'], [], ['two'])
    """

    def __init__(self, line_bytes: int, *, carriage_returns: bool) -> None:
        self.too_long = False
        self._line_bytes = line_bytes
        self._carriage_returns = carriage_returns
        self._pieces: list[bytes] = []
        self._size = 0
        self._at_start = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[str]:
        """The lines that end within `data`."""
        if self._carriage_returns and (self._after_cr or b"\r" in data):
            data = self._with_line_feeds(data)
        ended, end, rest = data.rpartition(b"\n")
        lines = self._take(ended) if end else []
        if rest:
            self._pieces.append(rest)
            self._size += len(rest)
            self.too_long = self.too_long or self._size > self._line_bytes
        return lines

    @property
    def is_amid_line(self) -> bool:
        """Whether the end of a line that has begun is yet to come."""
        return self._size > 0

    def close(self) -> list[str]:
        """The last line, if it has no end."""
        return self._take(b"") if self._size else []

    def _with_line_feeds(self, data: bytes) -> bytes:
        """Replace every line end by LF. An LF at the start of a piece belongs to a CR at the end of the last one."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _take(self, ended: bytes) -> list[str]:
        """Split the kept pieces and `ended` into lines. One decoding is enough: no line ends within a character."""
        found = ended
        if self._pieces:
            found = b"".join([*self._pieces, ended])
            self._pieces, self._size = [], 0
        if len(found) > self._line_bytes:
            lines = found.split(b"\n")
            short = [*takewhile(lambda line: len(line) <= self._line_bytes, lines)]
            if not short:
                self.too_long = True
                return []
            self.too_long, found = len(short) < len(lines), b"\n".join(short)
        if self._at_start:
            self._at_start = False
            found = found.removeprefix(_BOM)
        return found.decode("utf-8", "replace").split("\n")
