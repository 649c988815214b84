"""OpenAI's Chat Completions, and its many dialects.

Reading: `decoder` (a chunk), `choice_numbers` (which reply a choice belongs to), `choice` (a choice and its content), which
passes the other fields of a delta to `calls` and to `fields` (reasoning, media, the provider's tools). Writing a request:
`request`. As an endpoint: `messages` reads its requests, `encoder` writes its replies. All share `tables`.
"""

from rxdelta.formats.conversation import functions
from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder, recognises
from rxdelta.formats.openai_chat.request import request

__all__ = ["FORMAT"]

FORMAT = Format(
    name="openai-chat",
    decoder=OpenAIChatDecoder,
    recognises=recognises,
    request=request,
    tools=functions,
    writer=later("openai_chat", module="encoder"),
    endpoint=endpoint_of("openai_chat", module="encoder"),
    carries={
        "text",
        "reasoning",
        "refusal",
        "tool_call",
        "image",
        "image_url",
        "audio",
        "citation",
        "choices",
        "invalid_tool_call",
    },
    loses={
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "signatures",
        "citation_details",
        "media_type",
        "borders",
        "empty_blocks",
        "cut_calls",
        "order",
        "other_signatures",
    },
)
