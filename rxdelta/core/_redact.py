"""Removing apparent secrets from a text that an error quotes.

Errors are logged, traced and shown by people who don't know the text that is quoted. No rule can find every secret.
These are removed: values whose name says that they are secret (`token=`, `"api_key": "…"`, `Bearer …`,
`https://user:password@…`), values in the form of a known kind of key, and strings too long and too mixed to be words.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["redact"]

_GONE: Final = "[redacted]"
_LOOKS = 4  # what stands between two secrets may look like a part of one, once they are gone
_NAMES = (
    r"pass(?:word|wd|phrase|code)|pwd|secret|credentials?|token|signature"
    r"|(?:api|access|secret|private|account|shared|master|auth|session|subscription)[-_ ]?key|(?<![a-z])(?:key|sig|auth)"
)
_BETWEEN = r"""(?:\\{0,6}["'])?(?:\s|\\[nrt]){0,8}[:=](?:\s|\\[nrt]|[(\[{]){0,8}+"""
_STILL_THERE = r"(?!\[?redacted\])"
# The work grows in proportion to the text: repeats are bounded or possessive, so that no alternative backtracks over a
# long stretch; lookaheads span a few characters; and a name is found by its end.
_SECRET = re.compile(
    rf"""
      (?P<line> (?:set-)?cookie {_BETWEEN} ["']? ) {_STILL_THERE} [^"'\r\n]++
    | (?P<name> (?:{_NAMES}|authorization) {_BETWEEN} ) {_STILL_THERE}
      (?:
          (?P<quote> " ) (?: [^"\\] | \\++"? )*+
        | (?P<single> ' ) (?: [^'\\] | \\++'? )*+
        | (?P<escaped> (?P<slashes>\\{{1,6}}) (?P<mark>["']) )
          (?: (?!(?P=mark))[^\\] | \\++(?!(?P=mark)) | (?P=slashes)\\++(?P=mark) )*+
        | (?: (?:bearer|basic|digest|token) \s{{1,8}} )? [^\s"'\\,;&)\]}}]++
      )
    | (?P<scheme> \bbearer \s{{1,8}} ) {_STILL_THERE} [^\s"'\\,;)\]}}]++
    | (?P<url> :// ) (?: [^\s"'/@]{{1,256}}+ @ )++
    | -----BEGIN[A-Z\ ]{{0,40}}PRIVATE\ KEY-----(?:(?!-----END).)*+
    | (?<![a-z0-9]) (?:
          (?:sk|pk|rk|gsk|csk|hf|r8|xai|pplx|tvly|nvapi|gh[opsur]|github_pat|glpat|xox[a-z]|ya29)[-_.][\w.-]{{6,}}+
        | (?-i: AIza[\w-]{{10,}}+ | A[KS]IA[A-Z0-9]{{12,}}+ | eyJ[\w-]{{6,}}+(?:\.[\w-]*+){{0,4}} )
      )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL | re.ASCII,
)
_OPAQUE = re.compile(r"[A-Za-z0-9+/_=-]{32,}+")
_KEPT = ("line", "name", "scheme", "url")
_QUOTES = ("quote", "single", "escaped")
_STRETCH = re.compile(r"[A-Za-z0-9]{16,}+")


def redact(text: str) -> str:
    """The text with apparent secrets replaced by `[redacted]`. The name before a secret stays.

    Takes time in proportion to the text's length. Long random strings are replaced too, although some are ids: a lost
    clue is better than a leak.

    Example:
        >>> redact('{"error": "bad key", "api_key": "sk-abc123def456"}')
        '{"error": "bad key", "api_key": "[redacted]"}'
        >>> redact("GET /?token=abc&page=2 with Bearer abc.def")
        'GET /?token=[redacted]&page=2 with Bearer [redacted]'
    """
    for _ in range(_LOOKS):
        # Names first: a long run of letters may end with a name, and the secret follows it.
        seen, text = text, _OPAQUE.sub(_unless_words, _SECRET.sub(_without, text))
        if text == seen:
            break
    return text


def _unless_words(match: re.Match[str]) -> str:
    run = match[0]
    return _GONE if any(_is_mixed(stretch[0]) for stretch in _STRETCH.finditer(run)) else run


def _without(match: re.Match[str]) -> str:
    kept = "".join(match[group] or "" for group in (*_KEPT, *_QUOTES))
    return f"{kept}{_GONE}{'@' if match['url'] else ''}"


def _is_mixed(text: str) -> bool:
    """Whether the text has both letters and digits, as no word has."""
    return not text.isalpha() and not text.isdigit()
