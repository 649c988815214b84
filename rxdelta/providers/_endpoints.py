"""The endpoints of all formats: by a format's name, and by the path of a request."""

from __future__ import annotations

from rxdelta.core import InvalidValueError
from rxdelta.formats import registry
from rxdelta.formats.endpoint import Endpoint

__all__ = ["endpoint", "endpoints", "format_at"]


def endpoint(wire_format: str) -> Endpoint:
    """How a server of this format answers.

    Raises:
        InvalidValueError: The format has no endpoint, or this is no name.
        UnknownWireFormatError: There is no such format; the error lists those there are.
    """
    if not isinstance(wire_format, str):
        raise InvalidValueError.of([("wire_format", wire_format, "must be the name of a format")])
    known = registry.get(wire_format)
    if known.endpoint is None:
        raise InvalidValueError.of([("wire_format", wire_format, "must be a format that has an endpoint")])
    return known.endpoint()


def endpoints() -> dict[str, Endpoint]:
    """The endpoints by their formats' names."""
    return {known.name: known.endpoint() for known in registry.formats() if known.endpoint is not None}


def format_at(path: str) -> str | None:
    """The format to whose clients a path belongs, without a prefix that says so.

    The longest end decides. Of two formats with the same path, it is the one that is asked later whether it recognises a
    chunk: the other one is a dialect of it. An installed format never takes a path from the library's own.
    """
    found: dict[str, str] = {}
    for name, one in endpoints().items():
        for end in one.paths:
            if registry.is_own(name) or end not in found:
                found[end] = name
    matching = [end for end in found if path.endswith(end)]
    return found[max(matching, key=len)] if matching else None
