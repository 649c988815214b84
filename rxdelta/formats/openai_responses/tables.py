"""The statuses and reasons with which a response ends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rxdelta.formats.provider_errors import Broken

__all__ = ["BROKEN", "CANCELLED", "ENDS", "REASONS"]

REASONS: Mapping[str, str] = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "content_filter": "content_filter",
    # any other is the provider's own limit, or the client's wish: stop
}
"""Why a response is incomplete, by its `incomplete_details`."""

CANCELLED: Final = "cancelled"
"""The status of a response that the client has stopped."""

BROKEN: Mapping[str, Broken] = {
    "failed": Broken("the response failed", True),
    "incomplete": Broken("the response is incomplete, and nothing says why", True),  # without details
}
"""The statuses that say that the provider failed. An error of the response's own wins.

https://platform.openai.com/docs/api-reference/responses/object
"""

ENDS = frozenset(["completed", *BROKEN])
"""The statuses of a response that is over, but for `cancelled`."""
