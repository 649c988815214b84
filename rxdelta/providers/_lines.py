"""Lines out of bytes, and JSON out of lines: what SSE and NDJSON have in common.

Everything works on bytes until a line is whole. A line end is ASCII and no part of a multibyte UTF-8
character, so a character that was split between two reads is put together again with its line, and the limit
is counted in bytes as they came. Nothing here reads from anywhere: bytes are fed in, records come back.
"""

from __future__ import annotations

import abc
import json
import re
from typing import TYPE_CHECKING, Any

from rxdelta.core import LimitExceededError, MalformedChunkError, RxDeltaError, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rxdelta.core import Limits

__all__ = ["LineSplitter", "RecordParser", "nesting"]

_BOM = b"\xef\xbb\xbf"
# A string, closed or not, so that brackets in it are skipped; or a bracket. It cannot fail behind the first
# quote, so it never backtracks.
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


class LineSplitter:
    """Bytes in any pieces in, whole lines without their ends out.

    UTF-8, with U+FFFD for each bad byte and without a byte order mark at the start. A line longer than
    `line_bytes` raises `LimitExceededError` as soon as it is, behind the lines before it. Pieces of an
    unfinished line are kept in a list and joined once, so a long line in small pieces takes linear time.

    Args:
        line_bytes: Bound of a line, from `Limits`.
        carriage_returns: Whether CR and CRLF end a line beside LF. A CR ends it at once, without waiting for
            the LF that may follow in the next piece.

    Example:
        >>> lines = LineSplitter(100, carriage_returns=True)
        >>> list(lines.feed(b"one\\r")), list(lines.feed(b"\\ntwo")), list(lines.close())
        (['one'], [], ['two'])
    """

    def __init__(self, line_bytes: int, *, carriage_returns: bool) -> None:
        self._line_bytes = line_bytes
        self._carriage_returns = carriage_returns
        self._ends = re.compile(rb"\r\n|\r|\n" if carriage_returns else rb"\n")
        self._pieces: list[bytes] = []
        self._size = 0
        self._at_start = True
        self._after_cr = False

    def feed(self, data: bytes) -> Iterator[str]:
        """The lines that end within `data`; to be exhausted before the next call."""
        if not data:
            return
        if self._after_cr:
            data = data.removeprefix(b"\n")
        self._after_cr = self._carriage_returns and data.endswith(b"\r")
        *ended, rest = self._ends.split(data)
        for piece in ended:
            self._keep(piece)
            yield self._take()
        self._keep(rest)

    def close(self) -> Iterator[str]:
        """The last line, if it has no end."""
        if self._size:
            yield self._take()

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._line_bytes:
            raise LimitExceededError.of("line_bytes", self._line_bytes, "a line")
        if piece:
            self._pieces.append(piece)

    def _take(self) -> str:
        line = b"".join(self._pieces)
        self._pieces, self._size = [], 0
        if self._at_start:
            line = line.removeprefix(_BOM)
            self._at_start = False
        return line.decode("utf-8", "replace")


class RecordParser(abc.ABC):
    """Bytes in any pieces in, JSON records out; the part of it that does not depend on the format.

    What goes wrong ends the parser: `error` holds it, and each further call raises it again. Records that the
    same call had found before are returned first: that call does not raise then, the next one does.

    Attributes:
        error: What ended parsing; `None` as long as nothing has.
    """

    wire_format: str

    def __init__(self, limits: Limits, *, carriage_returns: bool) -> None:
        self.error: RxDeltaError | None = None
        self._limits = limits
        self._splitter = LineSplitter(limits.line_bytes, carriage_returns=carriage_returns)
        self._number = 0

    def feed(self, data: bytes | str) -> list[Any]:
        """The records that `data` completes, in order; often none.

        Raises:
            MalformedChunkError: What should be a JSON document is none.
            LimitExceededError: A line or a record is larger, or nested deeper, than `limits` allow.
        """
        return self._read(data, closing=False)

    def close(self) -> list[Any]:
        """The end of input: the records that were waiting for it. Raises as `feed` does."""
        return self._read(b"", closing=True)

    @abc.abstractmethod
    def _line(self, line: str, records: list[Any]) -> None:
        """Take the next line; put what it completes into `records`."""

    @abc.abstractmethod
    def _end(self, records: list[Any]) -> None:
        """Put what only the end of input completes into `records`."""

    def _read(self, data: bytes | str, *, closing: bool) -> list[Any]:
        if self.error is not None:
            raise self.error
        records: list[Any] = []
        try:
            self._lines(self._splitter.feed(self._bytes(data)), records)
            if closing:
                self._lines(self._splitter.close(), records)
                self._end(records)
        except RxDeltaError as error:
            self.error = error
            if not records:
                raise
        return records

    def _lines(self, lines: Iterable[str], records: list[Any]) -> None:
        for line in lines:
            self._number += 1
            self._line(line, records)

    def _bytes(self, data: bytes | str) -> bytes:
        if isinstance(data, str):
            try:
                return data.encode()
            except UnicodeEncodeError:  # surrogates: pairs become their character, lone ones U+FFFD
                return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        try:
            return bytes(memoryview(data))  # bytearray too; not an int or a list, which bytes() would take
        except TypeError as error:
            raise MalformedChunkError.at(self.wire_format, "", "bytes or str", data) from error

    def _document(self, text: str, number: int) -> Any:
        """The JSON value that `text`, starting in line `number`, has to be."""
        limit = self._limits.json_depth
        if text.count("[") + text.count("{") > limit and nesting(text)[0] > limit:
            raise LimitExceededError.of("json_depth", limit, "the nesting of a record")
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: also an integer of 5,000 digits
            raise self._malformed("one JSON document", text, number, str(error)) from error

    def _malformed(self, expected: str, text: str, number: int, reason: str = "") -> MalformedChunkError:
        found = quote(text)
        because = f" ({reason})" if reason else ""
        return MalformedChunkError(
            f"malformed {self.wire_format} stream: line {number} should hold {expected}{because}, "
            f"found {found!r}",
            wire_format=self.wire_format,
            path=f"line {number}",
            found=found,
        )


def nesting(text: str) -> tuple[int, int]:
    """How deep the brackets of JSON text nest at most, and how many of them are left open.

    Example:
        >>> nesting('{"a": [1, "]"')
        (2, 2)
    """
    deepest = depth = 0
    for match in _STRUCTURE.finditer(text):
        token = match[0]
        if token in ("{", "["):
            depth += 1
            deepest = max(deepest, depth)
        elif token in ("}", "]"):
            depth -= 1
    return deepest, depth
