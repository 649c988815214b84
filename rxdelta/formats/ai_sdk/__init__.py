"""The AI SDK's UI message stream.

Reading: `decoder` (the chunks of a stream), `messages` (the messages of a request) and their `tool_parts`.
Writing: `encoder`, on a `stream` of steps, whose runs are `run_parts` of `parts` and `calls`. Parts know the steps, runs
and stream below them, never those above.
Both sides share `marks` (and which run they name) and `tables`; `chunks` has the types of the chunks.
"""

from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder
from rxdelta.formats.ai_sdk.marks import addresses
from rxdelta.formats.ai_sdk.tables import recognises
from rxdelta.formats.format import ALL_BLOCKS, Format, endpoint_of, later

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ai-sdk",
    decoder=AiSdkDecoder,
    recognises=recognises,
    address=addresses,
    carries_more=True,
    writer=later("ai_sdk", module="encoder"),
    endpoint=endpoint_of("ai_sdk", module="encoder"),
    carries=ALL_BLOCKS,
    loses={"id", "model", "metadata", "usage_details", "order", "borders"},
)
