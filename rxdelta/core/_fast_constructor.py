"""Making frozen attrs values at the speed of plain ones, for the few lines that run once a delta.

The `__init__` of a frozen class sets each field through `object.__setattr__`, three times the cost of an
assignment. A fold makes two values a delta and has already checked what goes in, so it fills a blank (a class
with the same slots and no lock) and then turns it into the real class:

    part = BlankPart()
    part.type, part.text = "text", text   # every slot must be set
    part.__class__ = ContentPart
"""

from __future__ import annotations

from typing import Any

__all__ = ["blank"]


def blank(cls: type[Any]) -> Any:
    """The unlocked look-alike of a slotted class. `cls` must not have a weakref slot, nor its bases slots of their own."""
    return type(f"Blank{cls.__name__}", cls.__bases__, {"__slots__": tuple(cls.__slots__)})
