"""OpenAI's Responses API.

Reading: `decoder` (an event, its run, and whether it has come before), `output` (the items by their places), `items` (the base
of all items; images and audio), `message` (messages and reasoning), `tools` (calls, their arguments and results). Writing a
request: `request`. As an endpoint: `messages` reads its requests, `encoder` writes its replies. All share `calls` (the types of
calls, and results as items) and `notes` (the format's names, access to fields, notes in blocks).
"""

from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder, address, recognises
from rxdelta.formats.openai_responses.request import request, tools

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-responses",
    decoder=OpenAIResponsesDecoder,
    recognises=recognises,
    address=lambda: address,
    request=request,
    tools=tools,
    writer=later("openai_responses", module="encoder"),
    endpoint=endpoint_of("openai_responses", module="encoder"),
    carries={"text", "reasoning", "refusal", "tool_call", "image", "citation", "invalid_tool_call"},
    owns=later("openai_responses", "owns", module="encoder"),
    loses={
        "finish_reason",
        "metadata",
        "provider_events",
        "usage_details",
        "other_signatures",
        "block_options",
        "citation_details",
        "media_type",
        "empty_blocks",
        "order",
    },
)
