"""Words that decoder and request share."""

from typing import Final

__all__ = ["REFERENCE", "TOOL_REFERENCE"]

REFERENCE: Final = "reference"
TOOL_REFERENCE: Final = "tool_reference"
