"""Lines of any values: each character that is no notation is the mark of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core import InvalidValueError, is_mapping
from rxdelta.testing.marbles._scanner import shown_literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rxdelta.testing.marbles._scanner import Scanner

__all__ = ["ValueNotation", "Values"]

Values: TypeAlias = Mapping[str, Any] | Callable[[str], Any]
"""The values of marks: a mapping, or a function that makes the value of a mark."""

_NO_MARKS = "-|#[]()<>"
_ASCII = [chr(code) for code in range(0x21, 0x7F) if chr(code) not in _NO_MARKS]


class ValueNotation:
    """The notation of values that have marks.

    Raises:
        InvalidValueError: A mark is not one character, or is notation; or `values` is neither a mapping nor a function.
    """

    has_words = False

    def __init__(self, values: Values) -> None:
        self._made: Callable[[str], Any] | None = None
        if is_mapping(values):
            self._values: dict[str, Any] = dict(values)
            for mark in self._values:
                if not isinstance(mark, str) or len(mark) != 1 or mark in _NO_MARKS or mark.isspace():
                    fault = f"must be one character, no blank and none of {_NO_MARKS}"
                    raise InvalidValueError.of([("values", mark, fault)])
        elif callable(values):
            self._made, self._values = values, {}
        else:
            raise InvalidValueError.of(
                [("values", values, "must be a mapping of marks, or a function of a mark")]
            )

    def read(self, scanner: Scanner) -> list[Any]:
        mark = scanner.next
        if mark not in self._values:
            if self._made is None or mark in _NO_MARKS:
                scanner.fail(f"values= has no mark {mark!r}")
            try:
                self._values[mark] = self._made(mark)
            except Exception as error:
                scanner.fail(f"values= made no value of the mark {mark!r}: {type(error).__name__}: {error}")
        scanner.at += 1
        return [self._values[mark]]

    def finish(self) -> list[Any]:
        return []

    def drawn(self, values: Sequence[Any], completes: bool) -> tuple[list[str], bool]:
        return [self._mark(value) for value in values], completes

    def _mark(self, value: Any) -> str:
        candidates = [*self._values] if self._made is None else [str(value), *_ASCII]
        return next((mark for mark in candidates if self._is_mark_of(mark, value)), shown_literal(value))

    def _is_mark_of(self, mark: str, value: Any) -> bool:
        if mark not in self._values:
            if self._made is None or len(mark) != 1 or mark in _NO_MARKS or mark.isspace():
                return False
            try:
                self._values[mark] = self._made(mark)
            except Exception:  # it makes no values of other marks than the lines have
                return False
        known = self._values[mark]
        return known is value or (type(known) is type(value) and bool(known == value))
