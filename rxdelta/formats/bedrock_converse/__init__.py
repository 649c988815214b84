"""Amazon Bedrock's Converse API."""

from rxdelta.formats.bedrock_converse.decoder import BedrockConverseDecoder, recognises
from rxdelta.formats.bedrock_converse.request import request, tools
from rxdelta.formats.format import Format
from rxdelta.formats.signatures import ANTHROPIC

__all__ = ["FORMAT"]

FORMAT = Format(
    name="bedrock-converse",
    decoder=BedrockConverseDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={ANTHROPIC},
)
