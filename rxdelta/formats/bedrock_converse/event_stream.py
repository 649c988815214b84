"""Chunks → messages of AWS's binary event stream.

message = total-length header-length crc header* payload crc         big-endian, 4 bytes each
header  = name-length name 7 value-length value                     7 is the type of a string
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["EVENT_STREAM", "event_message"]

EVENT_STREAM: Final = "application/vnd.amazon.eventstream"
"""The type of the content."""


def event_message(chunk: Mapping[str, Any]) -> bytes:
    """The bytes of a chunk, whose first key is the name of an event, or of an exception."""
    name, value = next(iter(chunk.items()))
    kind = "exception" if name.endswith("Exception") else "event"
    fields = {":message-type": kind, f":{kind}-type": name, ":content-type": "application/json"}
    headers = b"".join(_header(field, text) for field, text in fields.items())
    payload = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    message = prelude + _crc(prelude) + headers + payload
    return message + _crc(message)


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", 7, len(value)) + value.encode()


def _crc(data: bytes) -> bytes:
    return struct.pack(">I", zlib.crc32(data))
