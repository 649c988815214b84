"""How scripts write words."""

from __future__ import annotations

__all__ = ["SPACELESS"]

SPACELESS = (
    "\u0e01-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u3100-\u312f\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
)
"""The letters of scripts without spaces between words, for a pattern: Thai, Lao, Burmese, Khmer, kana, Han."""
