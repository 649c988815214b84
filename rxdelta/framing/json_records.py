"""Bytes → lines → JSON records: the common part of the parsers of SSE and NDJSON.

A quick parser of JSON is tried in front of `json.loads`, which has the last word.

What the quick parser refuses, `json.loads` reads: NaN and infinities, a number beyond a float, half a surrogate pair. It also
reads what a quick parser reads otherwise: some round integers of more than 64 bits, or floats of a thousand digits.

The splitter works on bytes until a line is complete. A line end is ASCII and never part of a multibyte UTF-8
character, so a character that was split between two pieces is whole again in its line, and the limit counts bytes as
they were received.
"""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from itertools import takewhile
from typing import Any, Final

from rxdelta.core import LimitExceededError, Limits, MalformedChunkError, RxDeltaError, check_function, quote

SAME_DEPTH: Final = 200
"""A nesting that every parser follows. Where one gives up, `json.loads` may continue, or have given up already."""

_DECODER = json.JSONDecoder()  # that of `json.loads`, whose own work around a small document costs as much
_TO_ZERO = bytes(0x30 if 0x30 <= code <= 0x39 else 0x20 for code in range(256))  # digits, and all else
_MANY_DIGITS = "0" * 19  # 18 digits are always an integer of 64 bits


def check_loads(loads: object) -> None:
    """Check an option that is a function of JSON text; raises `InvalidValueError` if it is neither that nor `None`."""
    if loads is not None:
        check_function("loads", loads, "a function of JSON text, such as orjson.loads")


def quick_parser(loads: Callable[[str], Any] | None) -> Callable[[str], Any]:
    """The function to ask before `json.loads`: its value is the same, or it raises. By default msgspec's, if installed."""
    check_loads(loads)
    if loads is None:
        return _by_default()
    return _standard if loads is json.loads else _but_for_long_numbers(loads)


@cache
def _by_default() -> Callable[[str], Any]:
    try:
        msgspec: Any = import_module("msgspec")
        if [*map(int, msgspec.__version__.split(".")[:2])] >= [0, 18]:  # before, a large exponent overflows
            return _but_for_long_numbers(msgspec.json.Decoder().decode)
    except Exception:  # not installed, or not as we know it
        pass
    return _standard


def _standard(text: str) -> Any:
    value, end = _DECODER.raw_decode(text)
    if end < len(text):  # white space, or an error that `json.loads` explains
        raise ValueError
    return value


def _but_for_long_numbers(loads: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        some = text[::9].encode().translate(_TO_ZERO).decode()  # a cheap look: of 19 digits two are here
        if "00" in some and _MANY_DIGITS in text.encode().translate(_TO_ZERO).decode():
            return _standard(text)
        return loads(text)

    return read


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


# A string, closed or not, so that brackets inside are skipped; or a bracket. The pattern cannot fail after the first
# quote, so it never backtracks.
_STRUCTURE = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)


class JsonRecordParser(abc.ABC):
    """Bytes, cut anywhere, in; JSON records out. A subclass knows how lines form a record.

    An error ends the parser: `error` holds it and every later call raises it again. If the same call has found
    records before the error, it returns them, and the next call raises.

    Attributes:
        error: The error that ended parsing; `None` until then.
    """

    wire_format: str

    def __init__(self, limits: Limits, loads: Callable[[str], Any] | None, *, carriage_returns: bool) -> None:
        self.error: RxDeltaError | None = None
        self._limits = limits
        self._quick = quick_parser(loads)
        self._shallow = 2 * min(limits.json_depth, SAME_DEPTH) + 1
        self._splitter = LineSplitter(limits.line_bytes, carriage_returns=carriage_returns)
        self._number: int = 0

    def feed(self, data: bytes | str) -> list[Any]:
        """The records that `data` completes, in order; often none.

        Raises:
            MalformedChunkError: The data of a record is not a JSON document.
            LimitExceededError: A line or a record is larger, or nested deeper, than `limits` allow.
        """
        return self._read(data, closing=False)

    def close(self) -> list[Any]:
        """End the input: the records that were still incomplete. Raises as `feed` does."""
        return self._read(b"", closing=True)

    @abc.abstractmethod
    def _line(self, line: str, records: list[Any]) -> None:
        """Read the next line; append a record that it completes to `records`."""

    @abc.abstractmethod
    def _end(self, records: list[Any]) -> None:
        """Append to `records` the record that only the end of input completes."""

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
            except UnicodeEncodeError:  # surrogates: a pair becomes its character, a lone one U+FFFD
                return data.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        try:
            return bytes(
                memoryview(data)
            )  # accepts a bytearray; refuses an int or a list, which bytes() would accept
        except TypeError as error:
            raise MalformedChunkError.at(self.wire_format, "", "bytes or str", data) from error

    def _document(self, text: str, number: int) -> Any:
        """Parse `text`, which starts in line `number`, as one JSON document."""
        # A level takes two brackets, so a short document isn't deep. Text that is no document is measured below.
        if len(text) <= self._shallow or self._depth(text) <= SAME_DEPTH:
            try:
                return self._quick(text)
            except Exception:  # in any case `json.loads` gives the value or the error
                pass
        self._depth(text)
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError also for an integer of 5,000 digits
            raise self._malformed("one JSON document", text, number, str(error)) from error

    def _depth(self, text: str) -> int:
        """How deep a record is nested, at most."""
        limit = self._limits.json_depth
        depth = text.count("[") + text.count("{")
        if depth > limit and (depth := nesting(text)[0]) > limit:
            raise LimitExceededError.of("json_depth", limit, "the nesting of a record")
        return depth

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
    """The greatest depth of the brackets in JSON text, and the number of brackets left open.

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
