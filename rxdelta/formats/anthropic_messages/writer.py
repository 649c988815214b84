"""A reply as Anthropic's Messages API streams it."""

from __future__ import annotations

from rxdelta.core import Block, ContentPart
from rxdelta.formats.anthropic_messages.block_frames import own_block, written_citation
from rxdelta.formats.anthropic_messages.encoder import AnthropicMessagesEncoder
from rxdelta.formats.encoding import Masked
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.reply import as_provider

__all__ = ["owns", "writer"]


def writer(on_error: Masked) -> AnthropicMessagesEncoder:
    return as_provider(
        AnthropicMessagesEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )


def owns(block: Block, kind: str) -> bool:
    """Whether the block is one of Anthropic's own, or cites in its own form."""
    if isinstance(block, ContentPart) and kind == "citation_without_url":
        return all(written_citation(citation) is not None for citation in block.citations)
    return own_block(block) is not None
