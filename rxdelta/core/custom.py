"""The application's own data among a reply: where it stands, and how it is stored.

A *placed* event is a pair of a `Custom` and its place: how many blocks had begun when it came, or one more than there
are if the message was over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from rxdelta.core.errors import InvalidValueError, LimitExceededError
from rxdelta.core.event_classes import Custom
from rxdelta.core.json_values import is_list, is_mapping, thaw
from rxdelta.core.values import check, index_of, items_of, whole_number, without_empty

if TYPE_CHECKING:
    from rxdelta.core.options import Limits


Placed: TypeAlias = tuple[int, Custom]


def numbers(known: Iterable[Placed]) -> dict[tuple[str, str], int]:
    """The number of each event that has an id, by its name and id."""
    return {(event.name, event.id): number for number, (_, event) in enumerate(known) if event.id is not None}


def place_custom(
    known: tuple[Placed, ...],
    event: Custom,
    place: int,
    limits: Limits | None = None,
    *,
    known_numbers: dict[tuple[str, str], int] | None = None,
) -> tuple[Placed, ...]:
    """The placed events with one more, or with its data in the place of the one that has its name and id.

    Args:
        known: The events so far.
        event: The event.
        place: Its own place.
        limits: Bounds on the size of the message.
        known_numbers: What `numbers` gave for `known`, if somebody keeps it, so that nothing is searched.

    Raises:
        LimitExceededError: There are more of them than a message may have blocks.
    """
    if event.id is not None:
        number = (numbers(known) if known_numbers is None else known_numbers).get((event.name, event.id))
        if number is not None:
            return known[:number] + ((known[number][0], event),) + known[number + 1 :]  # noqa: RUF005 — a copy less
    if limits is not None and len(known) >= limits.blocks:
        raise LimitExceededError.of("blocks", limits.blocks, "the number of custom events in one message")
    return known + ((place, event),)  # noqa: RUF005


def to_placed(value: Iterable[tuple[int, Custom]] | None) -> tuple[Placed, ...]:
    """Pairs of the application, checked.

    Raises:
        InvalidValueError: One is no pair of a whole number and a `Custom`.
    """
    pairs = items_of("custom", value)
    for pair in pairs:
        whole = is_list(pair) and len(pair) == 2 and isinstance(pair[1], Custom)
        check([None if whole else ("custom", pair, "must hold pairs of a place and a Custom")])
        check([index_of("custom", pair[0])])
    return tuple((place, event) for place, event in pairs)


def custom_to_json(placed: Sequence[Placed]) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "name": event.name,
            "data": thaw(event.data),
            **without_empty({"id": event.id, "run_id": event.run_id}),
            **thaw(event.more),
        }
        for place, event in placed
    ]


def custom_from_json(value: object) -> tuple[Placed, ...]:
    """Read what `custom_to_json` wrote, as untrusted input."""
    if value is None:
        return ()
    if not is_list(value):
        raise InvalidValueError.of([("custom", value, "must be a list")])
    return tuple(_read(item) for item in value)


def _read(item: object) -> Placed:
    if not is_mapping(item):
        raise InvalidValueError.of([("custom", item, "must hold objects")])
    more = {name: value for name, value in item.items() if name not in _FIELDS}
    name: Any = item.get("name")
    event = Custom(name, item.get("data"), item.get("id"), run_id=item.get("run_id"), more=more)
    place = whole_number(item.get("place"))
    check([index_of("custom.place", place)])
    return place, event


_FIELDS = frozenset(["place", "name", "data", "id", "run_id"])
