"""The AI SDK's UI message stream.

Reading: `decoder` (the chunks of a stream), `addresses` (which run), `messages` (the messages of a request). Writing:
`encoder`, on a `stream` of steps, whose runs are `run_parts`, of `parts` and `calls`; `sources` has what texts cite. Both sides share `marks` and `tables`, and
`chunks` has the types of the chunks.
"""

from rxdelta.formats.ai_sdk.addresses import addresses
from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder
from rxdelta.formats.ai_sdk.tables import recognises
from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ai-sdk",
    decoder=AiSdkDecoder,
    recognises=recognises,
    address=addresses,
    carries_more=True,
    writer=later("ai_sdk"),
    endpoint=endpoint_of("ai_sdk"),
    carries={
        "text",
        "reasoning",
        "redacted_reasoning",
        "refusal",
        "tool_call",
        "invalid_tool_call",
        "tool_result",
        "server_tool_call",
        "server_tool_result",
        "image",
        "image_url",
        "audio",
        "audio_url",
        "video",
        "video_url",
        "file",
        "file_url",
        "file_id",
        "unsupported",
        "citation",
        "citation_without_url",
        "doubtful_tool_call",
    },
    loses={"id", "model", "metadata", "usage_details", "order", "borders"},
)
