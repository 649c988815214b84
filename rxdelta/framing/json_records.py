"""Lines out of bytes, and JSON out of lines: what SSE and NDJSON have in common.

Everything works on bytes until a line is whole. A line end is ASCII and no part of a multibyte UTF-8
character, so a character that was split between two reads is put together again with its line, and the limit
is counted in bytes as they came. Nothing here reads from anywhere: bytes are fed in, records come back.
"""

from __future__ import annotations

import abc
import json
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from rxdelta.core import LimitExceededError, MalformedChunkError, RxDeltaError, quote

if TYPE_CHECKING:
    from rxdelta.core import Limits

__all__ = ["LineSplitter", "RecordParser", "nesting"]

_BOM = b"\xef\xbb\xbf"
_DECODER = json.JSONDecoder()  # that of `json.loads`, which does as much around a small document as in it
# A string, closed or not, so that brackets in it are skipped; or a bracket. It cannot fail behind the first
# quote, so it never backtracks.
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


class LineSplitter:
    """Bytes in any pieces in, whole lines without their ends out.

    UTF-8, with U+FFFD for each bad byte and without a byte order mark at the start. A line longer than
    `line_bytes` sets `too_long` as soon as it is; the lines before it are still returned. Pieces of an
    unfinished line are kept in a list and joined once, so a long line in small pieces takes linear time.

    Args:
        line_bytes: Bound of a line, from `Limits`.
        carriage_returns: Whether CR and CRLF end a line beside LF. A CR ends it at once, without waiting for
            the LF that may follow in the next piece.

    Attributes:
        too_long: Whether a line was longer than allowed. Nothing can be read behind it.

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

    def _with_line_feeds(self, data: bytes) -> bytes:
        """The same lines, each with LF as its end. At the start of a piece an LF belongs to the CR before it."""
        if self._after_cr and data:
            data = data.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or data.endswith(b"\r")
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def close(self) -> list[str]:
        """The last line, if it has no end."""
        return self._take(b"") if self._size else []

    def _take(self, ended: bytes) -> list[str]:
        """The lines that what was kept and this are. They are decoded together, as none ends within a character."""
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
        self._number: int = 0

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
            splitter = self._splitter
            self._lines(splitter.feed(data if type(data) is bytes else self._bytes(data)), records)
            if splitter.too_long:
                raise LimitExceededError.of("line_bytes", self._limits.line_bytes, "a line")
            if closing:
                self._lines(splitter.close(), records)
                self._end(records)
        except RxDeltaError as error:
            self.error = error
            if not records:
                raise
        return records

    def _lines(self, lines: list[str], records: list[Any]) -> None:
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
            value, end = _DECODER.raw_decode(text)
        except (ValueError, RecursionError):
            value, end = None, -1
        if end == len(text):
            return value
        try:
            return json.loads(text)  # which takes white space around it, and says what is wrong
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
