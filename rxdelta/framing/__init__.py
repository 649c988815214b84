"""The framing of streams over HTTP, without I/O.

Reading: `SseParser` and `NdjsonParser` turn bytes into JSON records. Writing: `sse_frame` turns an encoder's frame
into the bytes of a server-sent event, `ndjson_line` into those of a line.
"""

from rxdelta.framing.json_records import check_loads as check_loads  # for other packages
from rxdelta.framing.ndjson import NDJSON_HEADERS, NDJSON_KEEP_ALIVE, NdjsonParser, ndjson_line
from rxdelta.framing.sse import (
    DONE,
    KEEP_ALIVE,
    SSE_HEADERS,
    Done,
    NamedFrame,
    SseParser,
    add_form,
    sse_frame,
)

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
