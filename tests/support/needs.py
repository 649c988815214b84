"""What some tests need besides Python packages. Without it they are skipped; in CI they fail, unless the run leaves it out."""

from __future__ import annotations

import os

__all__ = ["LEFT_OUT", "MATERIAL", "without"]

MATERIAL = ("recordings", "clients", "browser", "postgres")
"""What `pytest --without` takes: recorded streams and parity cases; the front ends' own clients in Node; a browser;
PostgreSQL's programs."""

LEFT_OUT: set[str] = set()
"""What this run leaves out, even where it is there. `tests/conftest.py` fills it."""


def without(material: str, missing: str) -> str:
    """The reason to skip a test that needs this material.

    Raises:
        FileNotFoundError: In CI, where nothing may be missing by accident.
    """
    if material in LEFT_OUT:
        return f"left out: {material}"
    if os.environ.get("CI") == "true":
        raise FileNotFoundError(f"CI needs {missing} (or --without {material})")
    return f"needs {material} (CONTRIBUTING.md), and {missing} is not here"
