"""To which run a chunk belongs, in a stream of `to_ai_sdk` with several runs.

The marks (`marks.py`) are on the chunk that begins a part or holds it whole; the chunks that continue it have its id. A
step belongs to the run whose `data-run` is directly in front of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rxdelta.core import is_mapping
from rxdelta.formats.ai_sdk.marks import DATA, FIRST, OWN_DATA, PARENT_RUN_ID, RUN, RUN_ID, marks_of
from rxdelta.formats.approval_ids import ids_in
from rxdelta.formats.decoding import as_mapping
from rxdelta.formats.json_values import word
from rxdelta.formats.runs import Address

__all__ = ["addresses"]

_IDS = ("toolCallId", "id")


def addresses() -> Callable[[Any], Address | None]:
    """The addresses of one stream."""
    return _Addresses().of


class _Addresses:
    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], Address] = {}  # by the field of the id and the id
        self._announced: Address | None = None  # by the chunk before

    def of(self, chunk: Any) -> Address | None:
        found = as_mapping(chunk, "ai-sdk")
        kind = found.get("type")
        announced, self._announced = self._announced, None
        if kind == "start-step":
            return announced
        if kind == "tool-approval-response":
            return self._parts.get(("toolCallId", ids_in(str(found.get("approvalId")))[0]))
        address = self._named(found)
        if kind == RUN:
            self._announced = address
            return address
        if isinstance(kind, str) and kind.startswith(DATA):  # whole, and the application may use any id
            return address
        for name in _IDS:
            own_id = found.get(name)
            if isinstance(own_id, str):
                if address is None:
                    return self._parts.get((name, own_id))
                self._parts[name, own_id] = address
                break
        return address

    @staticmethod
    def _named(chunk: Mapping[str, Any]) -> Address | None:
        """The run that the chunk itself names."""
        data = chunk.get("data")
        marks = data if is_mapping(data) and chunk.get("type") in OWN_DATA else marks_of(chunk)
        run_id = word(marks.get(RUN_ID))
        if run_id is None or marks.get(FIRST) is True:
            return None
        return Address(run_id, word(marks.get(PARENT_RUN_ID)))
