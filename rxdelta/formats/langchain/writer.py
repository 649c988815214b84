"""A reply in LangChain's agent protocol."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

from rxdelta.formats.encoding import Masked
from rxdelta.formats.langchain.encoder import LangChainEncoder
from rxdelta.formats.provider_reply import CREATED, REPLY_ID

__all__ = ["writer"]


class _Writer(LangChainEncoder):
    def _words_of(self, error: Exception, /) -> Mapping[str, str]:
        found = {name: getattr(error, name, None) for name in ("type", "code")}
        return {name: word for name, word in found.items() if isinstance(word, str)}


def writer(on_error: Masked) -> LangChainEncoder:
    numbers = count(1)
    return _Writer(
        now=lambda: CREATED,
        new_id=lambda: REPLY_ID if (n := next(numbers)) == 1 else f"reply-{n}",
        on_error=on_error,
    )
