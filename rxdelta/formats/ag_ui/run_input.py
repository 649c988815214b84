"""The request of an AG-UI client. It is read by hand, because as JSON it comes from a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from rxdelta.core import InvalidValueError, clean_text, freeze, is_mapping, thaw

__all__ = ["RunInput", "ids_of"]


class RunInput:
    """A `RunAgentInput`, as object or as JSON.

    Args:
        run_input: The client's request, if the run has one.

    Raises:
        InvalidValueError: It is neither an object nor a mapping.
    """

    def __init__(self, run_input: object) -> None:
        self._given: Any = run_input
        if isinstance(run_input, (str, bytes, list, tuple)):
            wanted = "must be a RunAgentInput, or the JSON object of one"
            raise InvalidValueError.of([("run_input", self._given, wanted)])

    def _get(self, name: str) -> Any:
        given = self._given
        if not is_mapping(given):
            return getattr(given, name, None)
        head, *rest = name.split("_")
        return given.get(head + "".join(map(str.capitalize, rest)))

    def id(self, name: str, instead: str | None, new_id: Callable[[], str] | None) -> str:
        """The run's or thread's id: `instead`, or the request's, or without a request a new one.

        Raises:
            InvalidValueError: There is none.
        """
        found = instead if instead is not None else self._get(name)
        if found is None and self._given is None and new_id is not None:
            found = new_id()
        if not isinstance(found, str):
            raise InvalidValueError.of([(name, found, "must be a string")])
        return clean_text(found)

    def declares_1_0(self) -> bool:
        """Whether the client declares version 1.0 of the protocol, or a later one."""
        version = self._get("protocol_version")
        return isinstance(version, str) and _from_1_0(version) is not None

    def messages(self) -> list[Any] | None:
        """The messages before the run, as JSON; `None` if they aren't known."""
        found: Any = self._get("messages")
        return [_as_json(one) for one in found] if isinstance(found, (list, tuple)) else None  # pyright: ignore[reportUnknownVariableType]


_from_1_0 = re.compile(r"[1-9][0-9]*\.[0-9]+").fullmatch


def _as_json(message: Any) -> Any:
    dump = None if isinstance(message, type) else getattr(message, "model_dump", None)
    return thaw(freeze(dump(by_alias=True, exclude_none=True) if callable(dump) else message, lenient=True))


def ids_of(message: Any) -> list[str]:
    """The ids of a message and of its calls."""
    calls: Any = message.get("toolCalls") if is_mapping(message) else None
    found: list[Any] = [message, *(calls if isinstance(calls, list) else ())]  # pyright: ignore[reportUnknownArgumentType]
    return [one["id"] for one in found if is_mapping(one) and isinstance(one.get("id"), str)]
