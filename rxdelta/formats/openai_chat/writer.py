"""A reply as a provider streams a chat completion."""

from __future__ import annotations

from rxdelta.formats.encoding import Masked
from rxdelta.formats.openai_chat.encoder import OpenAiChatEncoder
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.reply import as_provider

__all__ = ["writer"]


def writer(on_error: Masked) -> OpenAiChatEncoder:
    return as_provider(
        OpenAiChatEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )
