"""Names of a module that are imported when they are first used: a program pays for the formats that it names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module


def lazily(module: str, places: Mapping[str, Sequence[str]]) -> Callable[[str], object]:
    """The `__getattr__` of a module.

    Type checkers read the imports under `TYPE_CHECKING` in its place, which say the same (`tests/test_imports.py`).

    Args:
        module: The module's name.
        places: The names, by the modules that have them.
    """
    homes = {name: home for home, names in places.items() for name in names}

    def find(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}", name=name)
        found: object = getattr(import_module(homes[name]), name)
        setattr(sys.modules[module], name, found)
        return found

    return find
