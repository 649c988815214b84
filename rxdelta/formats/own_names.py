"""The application's names on a wire where an encoder of ours has names of its own.

An application may choose one of them, too. Its name then travels behind a prefix, so that nobody mistakes its data for
ours. A name that is one of ours behind such prefixes gets another one. So each name comes back as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

__all__ = ["OwnNames"]

_PREFIX: Final = "custom-"


class OwnNames:
    """The names of an encoder of ours.

    Example:
        >>> ours = OwnNames(["run", "block"])
        >>> [ours.write(name) for name in ("status", "run", "custom-run")]
        ['status', 'custom-run', 'custom-custom-run']
        >>> [ours.read(name) for name in ("status", "custom-run", "custom-custom-run")]
        ['status', 'run', 'custom-run']
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._is_taken = re.compile(f"(?:{_PREFIX})*(?:{'|'.join(map(re.escape, names))})").fullmatch

    def write(self, name: str) -> str:
        """What is written for a name of the application."""
        return _PREFIX + name if self._is_taken(name) else name

    def read(self, name: str) -> str:
        """The application's name of what is written."""
        return name.removeprefix(_PREFIX) if self._is_taken(name) else name
