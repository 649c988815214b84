"""Google's Interactions API.

Reading: `decoder` (an event), `interaction` (the message, and the base of its steps), `steps` (each kind of step, and the steps
by their places). Writing: `request`. `writer` writes and serves its replies. All share `tables`.
"""

from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.gemini_interactions.decoder import GeminiInteractionsDecoder, recognises
from rxdelta.formats.gemini_interactions.request import request, tools
from rxdelta.formats.notes import GOOGLE

__all__ = ["FORMAT"]

FORMAT = Format(
    name="gemini-interactions",
    decoder=GeminiInteractionsDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={GOOGLE},
    writer=later("gemini_interactions"),
    endpoint=endpoint_of("gemini_interactions", module="writer"),
    carries={
        "text",
        "reasoning",
        "tool_call",
        "image",
        "image_url",
        "audio",
        "audio_url",
        "video",
        "video_url",
        "file",
        "file_url",
        "citation",
        "invalid_tool_call",
    },
    loses={
        "finish_reason",
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
