"""Untrusted text made safe for a terminal, and for whatever else draws it."""

from __future__ import annotations

__all__ = ["visible"]

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
        >>> from rxdelta.core import visible
        >>> visible("\x1b[2J"), visible("a\nb"), visible("a\nb", lines=False), visible("\u202eexe.txt")
        ('␛[2J', 'a\nb', 'a␊b', '\\u202eexe.txt')
    """
    return text.replace("\r\n", "\n").translate(_SYMBOLS_IN_LINES if lines else _SYMBOLS)
