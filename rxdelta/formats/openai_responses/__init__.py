"""OpenAI's Responses API.

Reading: `decoder` (an event), `addresses` (its run), `numbering` (whether it has come before), `output` (the items by
their places), `items` (what all items share), and for each kind of item `message`, `reasoning`, `tools`, `media`;
`arguments` has those of a call, `reading` the fields of a chunk. Writing: `request`, with `results` of tools. As an
endpoint: `messages` reads its requests, `encoder` writes its events (`response_frames` the response's, `item_frames` an item's),
`whole_response` joins these to one body, `writer` writes as a provider. All share `calls` (the types of calls) and `notes`.
"""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.openai_responses.addresses import address
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder, recognises
from rxdelta.formats.openai_responses.request import request, tools

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-responses",
    decoder=OpenAIResponsesDecoder,
    recognises=recognises,
    address=lambda: address,
    request=request,
    tools=tools,
    writer=later("openai_responses"),
    endpoint=endpoint_of("openai_responses"),
    carries={"text", "reasoning", "refusal", "tool_call", "image", "citation", "invalid_tool_call"},
    owns=later("openai_responses", "owns"),
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
