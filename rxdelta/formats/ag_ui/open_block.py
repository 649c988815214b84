"""A block of a run that is being read."""

from __future__ import annotations

from rxdelta.formats.ag_ui.marks import SIGNATURE

__all__ = ["OpenBlock"]


class OpenBlock:
    """A block that has started."""

    __slots__ = ("encrypted_option", "error", "index", "is_clients", "key")

    def __init__(self, key: tuple[str, str], index: int) -> None:
        self.key, self.index = key, index
        self.is_clients = False  # a call that the client runs
        self.error: str | None = None  # why a call is invalid
        self.encrypted_option = SIGNATURE  # the name of the option that is the encrypted value
