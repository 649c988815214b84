"""Google's generateContent.

Reading: `decoder` (a response), `candidate` (its parts, the provider's tools, citations and the end), `calls` (its blocks, and
function calls with their arguments). Writing: `request`. `writer` writes and serves its replies. All share `tables` (the
format's names, and the wire's form of an SDK's object).
"""

from rxdelta.formats.format import Format, endpoint_of, later
from rxdelta.formats.gemini.decoder import GeminiDecoder, recognises
from rxdelta.formats.gemini.request import request, tools
from rxdelta.formats.notes import GOOGLE

__all__ = ["FORMAT"]

FORMAT = Format(
    name="gemini",
    decoder=GeminiDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={GOOGLE},
    writer=later("gemini"),
    endpoint=endpoint_of("gemini", module="writer"),
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
    },
    loses={
        "metadata",
        "provider_events",
        "block_options",
        "usage_details",
        "borders",
        "empty_blocks",
        "open_calls",
        "order",
        "citation_details",
    },
)
