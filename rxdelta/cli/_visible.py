"""What others wrote, fit for a terminal."""

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
    r"""The same text, with each character that would steer a terminal shown as a symbol.

    Those are the control characters (C0, DEL, C1), with which a model could set the window's title, write into the
    clipboard or wipe the screen, and the ones that turn the direction of writing.

    Args:
        text: Whatever a provider or a model wrote.
        lines: Whether the text has lines of its own; else its line ends and tabs are shown as symbols, too.

    Example:
        >>> from rxdelta.cli import visible
        >>> visible("\x1b[2J"), visible("a\nb"), visible("a\nb", lines=False), visible("\u202eexe.txt")
        ('␛[2J', 'a\nb', 'a␊b', '\\u202eexe.txt')
    """
    return text.replace("\r\n", "\n").translate(_SYMBOLS_IN_LINES if lines else _SYMBOLS)
