"""Bytes as base64: boto3 has bytes where the wire and the protocol have text."""

# Chunks are untyped JSON; each value that is read from one is checked.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from rxdelta.core import DEFAULT_LIMITS
from rxdelta.formats.json_values import kept

__all__ = ["as_base64", "decoded", "joined", "readable"]

Bytes: TypeAlias = bytes | bytearray | memoryview


def as_base64(value: Any) -> Any:
    """Encode bytes as base64. Return other values unchanged."""
    return base64.b64encode(value).decode() if isinstance(value, Bytes) else value


def decoded(data: str) -> bytes | None:
    """The bytes of a base64 text; `None` if it is none."""
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None


def joined(pieces: Sequence[str]) -> str:
    """One base64 text of pieces that each have their own padding."""
    found = [decoded(piece) for piece in pieces]
    whole = [piece for piece in found if piece is not None]
    return base64.b64encode(b"".join(whole)).decode() if len(whole) == len(found) else "".join(pieces)


def readable(source: Mapping[str, Any]) -> dict[str, Any]:
    """A frozen copy in which bytes are base64."""
    return kept({str(name): _without_bytes(value, 0) for name, value in source.items()})


def _without_bytes(value: Any, depth: int) -> Any:
    if isinstance(value, (Mapping, list, tuple)):
        if depth >= DEFAULT_LIMITS.json_depth:
            return None
        if isinstance(value, Mapping):
            return {name: _without_bytes(item, depth + 1) for name, item in value.items()}
        return [_without_bytes(item, depth + 1) for item in value]
    return as_base64(value)
