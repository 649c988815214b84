"""The number of the form in which events and replies are stored, and the fields that this version doesn't know.

A stored value has the key `format`, which is left out where it is 1. A reader of format 1 reads every file of format 1:
fields may be added within a format, and a reader that doesn't know a field keeps it and writes it back. So two versions
of the library can share a log while one replaces the other. A change that an older reader would misread gets a new
number, which that reader refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core._errors import InvalidValueError
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze_mapping, is_mapping

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["check_format", "check_mapping", "to_more", "unknown_fields"]

_FORMAT = 1


def check_format(data: Mapping[str, Any]) -> None:
    """Check that this version can read the stored value.

    Raises:
        InvalidValueError: The value has a newer format, or a format that is no number.
    """
    number = data.get("format", _FORMAT)
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InvalidValueError.of([("format", number, "must be a whole number from 1")])
    if number > _FORMAT:
        what = f"is {number}, but this version of rxdelta reads format {_FORMAT} only: a newer one wrote the value"
        raise InvalidValueError.of([("format", number, what)])


def check_mapping(what: str, data: object) -> None:
    """Check that stored data is an object. `what` names it in the error.

    Raises:
        InvalidValueError: It isn't one.
    """
    if not is_mapping(data):
        raise InvalidValueError.of([(what, data, "must be a mapping")])


def unknown_fields(data: Mapping[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """The fields that this version doesn't know."""
    return {name: value for name, value in data.items() if name not in known}


def to_more(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    """Unknown fields as the field `more` of a value."""
    return EMPTY if not value else freeze_mapping(value, "more", lenient=True)
