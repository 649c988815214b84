"""Amazon Bedrock's Converse API."""

from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder, recognises
from rxdelta.formats.bedrock_converse.request import request, tools
from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.signatures import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="bedrock-converse",
    decoder=BedrockConverseDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
    writer=later("bedrock_converse"),
    endpoint=endpoint_of("bedrock_converse"),
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
