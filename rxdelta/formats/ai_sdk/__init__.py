"""The AI SDK's UI message stream.

Reading: `decoder` (the chunks of a stream), `addresses` (which run), `messages` (the messages of a request). Writing:
`encoder`, on a `stream` of steps, whose runs are `run_parts`, of `parts` and `calls`; `sources` has what texts cite. Both sides share `marks` and `tables`, and
`chunks` has the types of the chunks.
"""

from rxdelta.formats.ai_sdk.addresses import addresses
from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder
from rxdelta.formats.ai_sdk.tables import recognises
from rxdelta.formats.format import Format

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ai-sdk", decoder=AiSdkDecoder, recognises=recognises, address=addresses, carries_more=True
)
