"""Lines of text → JSON records: the common part of the parsers of SSE and NDJSON."""

from __future__ import annotations

import abc
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rxdelta.core import LimitExceededError, MalformedChunkError, RxDeltaError, quote
from rxdelta.framing.lines import LineSplitter
from rxdelta.framing.quick_json import SAME_DEPTH, quick_parser

if TYPE_CHECKING:
    from rxdelta.core import Limits

__all__ = ["JsonRecordParser", "nesting"]

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
            except Exception:  # whatever it is, `json.loads` gives the value or says what is wrong
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
