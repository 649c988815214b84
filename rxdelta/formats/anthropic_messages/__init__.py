"""Anthropic's Messages API."""

from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder, recognises
from rxdelta.formats.anthropic_messages.request import request, tools
from rxdelta.formats.format import Format
from rxdelta.formats.signatures import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="anthropic-messages",
    decoder=AnthropicMessagesDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
)
