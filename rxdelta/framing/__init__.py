"""The framing of streams over HTTP, without I/O.

Reading: `SseParser` and `NdjsonParser` turn bytes into JSON records. Writing: `sse_frame` turns an encoder's frame
into the bytes of a server-sent event.
"""

from rxdelta.framing.ndjson import NdjsonParser
from rxdelta.framing.quick_json import check_loads as check_loads  # for other rooms
from rxdelta.framing.sse_frames import DONE, KEEP_ALIVE, SSE_HEADERS, Done, add_form, sse_frame
from rxdelta.framing.sse_parser import SseParser

__all__ = ["DONE", "KEEP_ALIVE", "SSE_HEADERS", "Done", "NdjsonParser", "SseParser", "add_form", "sse_frame"]
