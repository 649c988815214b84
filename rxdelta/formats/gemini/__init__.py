"""Google's generateContent.

Reading: `decoder` (a response), `wire_form` (the SDK's objects), `candidate` (its parts and its end), which passes parts to
`blocks`, `calls` with `arguments`, `server_tools` and `citations`. Writing: `request`. Both sides share `tables`.
"""

from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later
from rxdelta.formats.gemini.decoder import GeminiDecoder, recognises
from rxdelta.formats.gemini.request import request, tools
from rxdelta.formats.signatures import GOOGLE

__all__ = ["FORMAT"]

FORMAT = Format(
    name="gemini",
    decoder=GeminiDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={GOOGLE},
    writer=later("gemini"),
    endpoint=endpoint_of("gemini"),
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
