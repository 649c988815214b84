"""Amazon Bedrock's Converse API.

Reading: `decoder` (an event) and `blocks` (the blocks of a message, and the format's names). Writing: `request`. `writer` writes
and serves its replies.
"""

from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder, recognises
from rxdelta.formats.bedrock_converse.request import request, tools
from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.notes import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="bedrock-converse",
    decoder=BedrockConverseDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
    writer=later("bedrock_converse"),
    endpoint=endpoint_of("bedrock_converse", module="writer"),
    carries={"text", "reasoning", "tool_call", "image", "citation", "invalid_tool_call"},
    owns=later("bedrock_converse", "owns"),
    loses={
        "id",
        "model",
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "empty_blocks",
        "order",
        "other_signatures",
        "citation_details",
    },
)
