"""Bytes → records, and frames → bytes: server-sent events both ways, newline-delimited JSON. No I/O."""

from rxdelta.framing.ndjson import NdjsonParser
from rxdelta.framing.sse_frames import DONE, KEEP_ALIVE, SSE_HEADERS, Done, sse_frame
from rxdelta.framing.sse_parser import SseParser

__all__ = ["DONE", "KEEP_ALIVE", "SSE_HEADERS", "Done", "NdjsonParser", "SseParser", "sse_frame"]
