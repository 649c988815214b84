"""Events → what a front end understands. Encoders without I/O; their operators are `rxdelta.to_…`."""

from rxdelta.wire._encoder import MASKED, Encoder, Masked, masked
from rxdelta.wire._sse import DONE, KEEP_ALIVE, SSE_HEADERS, Done, sse_frame

__all__ = [
    "DONE",
    "KEEP_ALIVE",
    "MASKED",
    "SSE_HEADERS",
    "Done",
    "Encoder",
    "Masked",
    "masked",
    "sse_frame",
]
