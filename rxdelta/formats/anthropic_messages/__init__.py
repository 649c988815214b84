"""Anthropic's Messages API."""

from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder, recognises
from rxdelta.formats.anthropic_messages.request import request, tools
from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.signatures import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="anthropic-messages",
    decoder=AnthropicMessagesDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
    writer=later("anthropic_messages"),
    endpoint=endpoint_of("anthropic_messages"),
    carries={"text", "reasoning", "tool_call", "invalid_tool_call", "citation"},
    owns=later("anthropic_messages", "owns"),
    loses={
        "metadata",
        "provider_events",
        "block_options",
        "empty_blocks",
        "order",
        "other_signatures",
        "usage_details",
        "citation_details",
    },
)
