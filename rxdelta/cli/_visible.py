"""Untrusted text made safe for a terminal."""

from __future__ import annotations

import codecs
from typing import Any

__all__ = ["spell_out", "visible"]

_SPELT = {"·": "-", "•": "*", "…": "..."}
"""What the command and rich write themselves, for encodings that lack it."""

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_SYMBOLS: dict[int, int | str] = {
    **{code: 0x2400 + code for code in range(0x20)},
    0x7F: 0x2421,
    **{code: f"\\u{code:04x}" for code in (*range(0x80, 0xA0), *_BIDI)},  # Unicode has no pictures of these
}
_SYMBOLS_IN_LINES = {code: symbol for code, symbol in _SYMBOLS.items() if chr(code) not in "\t\n"}


def visible(text: str, *, lines: bool = True) -> str:
    r"""Replace each character that would control a terminal by a visible symbol.

    These are the control characters (C0, DEL, C1), with which a model could set the window's title, write to the
    clipboard or clear the screen, and the characters that change the direction of writing.

    Args:
        text: Any text of a provider or a model.
        lines: Whether to keep line ends and tabs; otherwise they become symbols, too.

    Example:
        >>> from rxdelta.cli import visible
        >>> visible("\x1b[2J"), visible("a\nb"), visible("a\nb", lines=False), visible("\u202eexe.txt")
        ('␛[2J', 'a\nb', 'a␊b', '\\u202eexe.txt')
    """
    return text.replace("\r\n", "\n").translate(_SYMBOLS_IN_LINES if lines else _SYMBOLS)


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
