"""Provider chunks → events: a decoder for each wire format, and the framing of bytes into chunks. No I/O."""

from rxdelta.formats import registry
from rxdelta.formats.cumulative import Cumulative
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.endpoint import Endpoint
from rxdelta.formats.envelopes import as_item as as_item  # for other rooms
from rxdelta.formats.format import Format, WireFormat
from rxdelta.formats.runs import Address
from rxdelta.formats.usage import completed as completed  # for other rooms
from rxdelta.framing import NdjsonParser, SseParser
from rxdelta.providers._auto import detect
from rxdelta.providers._auto_parser import AutoParser
from rxdelta.providers._decoders import decoder, decoder_factory
from rxdelta.providers._endpoints import endpoint as endpoint  # for other rooms, as the next two
from rxdelta.providers._endpoints import endpoints as endpoints
from rxdelta.providers._endpoints import format_at as format_at
from rxdelta.providers._recorded import recorded_value as recorded_value  # for other rooms

__all__ = [
    "FORMATS",
    "Address",
    "AutoParser",
    "Cumulative",
    "Decoder",
    "Endpoint",
    "Format",
    "NdjsonParser",
    "SseParser",
    "WireFormat",
    "decoder",
    "decoder_factory",
    "detect",
]

FORMATS: tuple[str, ...]
"""The names that `decode` takes."""


def __getattr__(name: str) -> object:
    """`FORMATS` when it is first asked for: installed formats are looked up then, not at every import."""
    if name == "FORMATS":
        globals()[name] = registry.names()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]
