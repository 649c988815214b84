"""Anthropic's Messages API.

Reading: `decoder` (an event) and `blocks` (the blocks of a message, and the format's names). Writing a request: `request`. As an
endpoint: `messages` reads its requests, `encoder` writes its replies.
"""

from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder, recognises
from rxdelta.formats.anthropic_messages.request import request, tools
from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.notes import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="anthropic-messages",
    decoder=AnthropicMessagesDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
    writer=later("anthropic_messages", module="encoder"),
    endpoint=endpoint_of("anthropic_messages", module="encoder"),
    carries={"text", "reasoning", "tool_call", "invalid_tool_call", "citation"},
    owns=later("anthropic_messages", "owns", module="encoder"),
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
