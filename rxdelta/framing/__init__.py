"""The framing of streams over HTTP, without I/O.

Reading: `SseParser` and `NdjsonParser` turn bytes into JSON records. Writing: `sse_frame` turns an encoder's frame
into the bytes of a server-sent event, `ndjson_line` into those of a line.
"""

from rxdelta.framing.ndjson import NdjsonParser
from rxdelta.framing.ndjson_lines import NDJSON_HEADERS, NDJSON_KEEP_ALIVE, ndjson_line
from rxdelta.framing.quick_json import check_loads as check_loads  # for other rooms
from rxdelta.framing.sse_frames import DONE, KEEP_ALIVE, SSE_HEADERS, Done, NamedFrame, add_form, sse_frame
from rxdelta.framing.sse_parser import SseParser

__all__ = [
    "DONE",
    "KEEP_ALIVE",
    "NDJSON_HEADERS",
    "NDJSON_KEEP_ALIVE",
    "SSE_HEADERS",
    "Done",
    "NamedFrame",
    "NdjsonParser",
    "SseParser",
    "add_form",
    "ndjson_line",
    "sse_frame",
]
