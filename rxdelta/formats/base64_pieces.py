"""Base64 in pieces that each have their own padding, as media are streamed."""

from __future__ import annotations

import base64

__all__ = ["Base64Pieces"]


class Base64Pieces:
    """Joins the pieces of one block to a single base64 text. Holds two bytes at most.

    Example:
        >>> pieces = Base64Pieces()
        >>> pieces.add("aA=="), pieces.add("aWo="), pieces.rest()
        ('', 'aGlq', '')
    """

    def __init__(self) -> None:
        self._carry = b""  # bytes that don't fill a group of three yet

    def add(self, data: str) -> str:
        """The next part of the text. A piece that is no base64 is part of it unchanged."""
        if not self._carry and not data.endswith("="):
            return data
        try:
            found = self._carry + base64.b64decode(data, validate=True)
        except ValueError:
            return self.rest() + data
        whole = len(found) - len(found) % 3
        self._carry = found[whole:]
        return base64.b64encode(found[:whole]).decode()

    def rest(self) -> str:
        """The end of the text, with its padding."""
        found, self._carry = self._carry, b""
        return base64.b64encode(found).decode()
