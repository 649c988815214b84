"""The application's own data (`Custom`) in a UI message stream: `data-…` parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rxdelta.core import thaw
from rxdelta.core.events import Custom
from rxdelta.formats.ai_sdk.marks import AGAIN, DATA, OWN_DATA, marked, marks_of
from rxdelta.formats.ai_sdk.parts import Out, Part
from rxdelta.formats.json_values import kept
from rxdelta.formats.own_names import OwnNames

__all__ = ["DataPart", "is_data", "is_repeated", "read_data"]

_names: Final = OwnNames(kind.removeprefix(DATA) for kind in OWN_DATA)


class DataPart(Part):
    """Data of the application in the client's step. They are no block, and no reset takes them back.

    Args:
        marks: What says whose the data are.
    """

    def __init__(self, marks: Mapping[str, Any]) -> None:
        self._marks = marks
        self.ended = True

    def send(self, out: Out, event: Custom) -> None:
        """Send the data, or newer ones in their place."""
        self._frame = _write(event)
        out.append({**self._frame, **marked(self._marks)})

    def send_again(self, out: Out, /) -> None:
        out.append({**self._frame, **marked({**self._marks, AGAIN: True})})


def is_data(kind: str) -> bool:
    """Whether this is the type of the application's data."""
    return kind.startswith(DATA) and kind not in OWN_DATA


def _write(event: Custom) -> dict[str, Any]:
    """The chunk of an event."""
    known = {"id": event.id, "transient": event.transient or None}
    return {
        "type": DATA + _names.write(event.name),
        **{name: value for name, value in known.items() if value is not None},
        "data": thaw(event.data),
    }


def is_repeated(found: Mapping[str, Any]) -> bool:
    """Whether these data have come before, and the client alone needs them again."""
    return marks_of(found).get(AGAIN) is True


def read_data(found: Mapping[str, Any]) -> Custom | None:
    """The event of a chunk; `None` if its type has no name, or if it has something else than data."""
    name = _names.read(found["type"].removeprefix(DATA))
    if not name or ("data" not in found and not _FIELDS.issuperset(found)):
        return None
    own_id, data = found.get("id"), kept({"": found.get("data")})[""]
    return Custom(name, data, own_id if isinstance(own_id, str) else None, found.get("transient") is True)


_FIELDS = frozenset(["type", "id", "transient", "providerMetadata"])
