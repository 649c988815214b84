"""A reply as OpenAI's Responses API streams it."""

from __future__ import annotations

from rxdelta.core import Block, ContentPart
from rxdelta.formats.encoding import Masked
from rxdelta.formats.notes import ITEM_ID
from rxdelta.formats.openai_responses.encoder import OpenAiResponsesEncoder
from rxdelta.formats.openai_responses.item_frames import own_items, written_annotation
from rxdelta.formats.provider_reply import CREATED, REPLY_ID
from rxdelta.formats.reply import as_provider

__all__ = ["owns", "writer"]


def writer(on_error: Masked) -> OpenAiResponsesEncoder:
    return as_provider(
        OpenAiResponsesEncoder(now=lambda: CREATED, new_id=lambda: REPLY_ID, tools=(), on_error=on_error)
    )


def owns(block: Block, kind: str) -> bool:
    """Whether the block is an item of OpenAI's own or a part of one, or cites in OpenAI's own form."""
    if isinstance(block, ContentPart) and kind == "citation_without_url":
        return all(written_annotation(citation, block.text or "") is not None for citation in block.citations)
    if isinstance(block, ContentPart) and block.type == "server_tool_result":
        return ITEM_ID in block.options  # its call's item has it
    return bool(own_items(block))
