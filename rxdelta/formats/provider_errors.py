"""A provider's error in a stream: where it stands, and the events that it becomes.

Some providers say that they failed by an error, and some by the reply's finish reason alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from rxdelta.core import Event
from rxdelta.core.events import ProviderEvent, StreamError
from rxdelta.formats.decoding import Chunk
from rxdelta.formats.json_values import NOTHING, kept, word

__all__ = [
    "OF_OPEN_SERVERS",
    "PROVIDER_ERROR",
    "Broken",
    "broken_off",
    "error_code",
    "error_events",
    "error_in",
]

PROVIDER_ERROR: Final = "error"
"""The name of the provider's event with the whole object of an error, in front of the `StreamError`."""


@attrs.frozen
class Broken:
    """What a finish reason means with which a provider says that it failed.

    Attributes:
        sentence: What went wrong.
        transient: Whether another try may succeed.
    """

    sentence: str
    transient: bool


OF_OPEN_SERVERS: Mapping[str, Broken] = {
    "error": Broken("the server failed while it wrote the reply", True),
    "abort": Broken("the server gave the reply up", True),
}
"""The words of vLLM and SGLang, servers of open models that speak several formats."""


def broken_off(word: str, broken: Broken, choice: int = 0) -> StreamError:
    """The end of a reply whose finish reason says that the provider failed.

    Example:
        >>> broken_off("network_error", Broken("the connection to the model broke", True))
        StreamError(message='the connection to the model broke', type=None, code='network_error', transient=True, choice=0)
    """
    return StreamError(broken.sentence, None, word, transient=broken.transient, choice=choice)


def error_in(source: object) -> Chunk | None:
    """The error that an object has, as an object; `None` if it has none."""
    if not isinstance(source, Mapping):
        return None
    error: Any = source.get("error")  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    if not error:
        return None
    if isinstance(error, Mapping):
        return error  # pyright: ignore[reportUnknownVariableType]
    return {"message": error} if isinstance(error, str) else {"error": error}


def error_code(value: object) -> str | None:
    """An error's code as text: a string, or a number that is not too large to be a code."""
    if type(value) is int:
        return str(value) if abs(value) < 2**31 else None
    return word(value)


def error_events(provider: str, error: Mapping[str, Any], kind: object, read: frozenset[str]) -> list[Event]:
    """The event of an error, with which a stream ends. If fields are not read, the provider's object goes before it."""
    message = word(error.get("message"))
    more = any(value not in NOTHING for name, value in error.items() if name not in read)
    found: list[Event] = []
    if more or message is None:  # such as Groq's `failed_generation`
        found.append(ProviderEvent(provider, PROVIDER_ERROR, kept(error)))
    return [*found, StreamError(message or "unknown error", word(kind), error_code(error.get("code")))]
