"""What a fake provider is asked."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Event as Flag
from typing import Any

import attrs

__all__ = ["FakeRequest"]


@attrs.frozen(kw_only=True)
class FakeRequest:
    """What a fake provider was asked.

    Attributes:
        wire_format: The format in which the answer is expected.
        path: The path of the URL; empty if the request didn't come to a server.
        body: The JSON object that was sent; empty likewise.
        headers: The headers that were sent, their names in lower case; empty likewise.
        closed: Set when the client has gone away before the end of the reply. `FakeProvider.events` has no client.
    """

    wire_format: str
    path: str = ""
    body: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    headers: Mapping[str, str] = attrs.field(factory=dict[str, str], repr=False)
    closed: Flag = attrs.field(factory=Flag, repr=False, eq=False)
