"""Provider chunks → events: one file a wire format, and the framing of bytes into chunks. No I/O."""

from rxdelta.providers._cumulative import Cumulative
from rxdelta.providers._decoder import Decoder
from rxdelta.providers._from_ag_ui import from_ag_ui
from rxdelta.providers._from_ai_sdk import from_ai_sdk
from rxdelta.providers._ndjson import NdjsonParser
from rxdelta.providers._registry import FORMATS, decoder, decoder_factory, detect
from rxdelta.providers._sse import SseParser

__all__ = [
    "FORMATS",
    "Cumulative",
    "Decoder",
    "NdjsonParser",
    "SseParser",
    "decoder",
    "decoder_factory",
    "detect",
    "from_ag_ui",
    "from_ai_sdk",
]
