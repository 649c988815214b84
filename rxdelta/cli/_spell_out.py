"""Text in an encoding that lacks some of its characters."""

from __future__ import annotations

import codecs
from typing import Any

__all__ = ["spell_out"]

_SPELT = {"·": "-", "•": "*", "…": "..."}
"""What the command and rich write themselves, for encodings that lack it."""


def spell_out(stream: Any) -> None:
    """Let a stream write characters that its encoding lacks in others, mostly as escapes: `\\u4f60`."""
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors=_ERRORS)


def _spelt_out(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    missing = error.object[error.start : error.end]
    escaped = (_SPELT.get(one) or one.encode("ascii", "backslashreplace").decode() for one in missing)
    return "".join(escaped), error.end


_ERRORS = "rxdelta.cli"
codecs.register_error(_ERRORS, _spelt_out)
