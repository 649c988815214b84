"""Provider chunks → events: a decoder for each wire format, and the framing of bytes into chunks. No I/O."""

from rxdelta.formats import registry
from rxdelta.formats.decoding import Decoder
from rxdelta.formats.format import Endpoint, Format, WireFormat
from rxdelta.formats.gateways import (
    Cumulative,
    as_item as as_item,  # for other packages
)
from rxdelta.formats.runs import Address
from rxdelta.formats.usage import completed as completed  # for other packages
from rxdelta.framing import NdjsonParser, SseParser
from rxdelta.providers.auto import (
    AutoParser,
    detect,
    recorded_value as recorded_value,  # for other packages
)
from rxdelta.providers.decoders import (
    decoder,
    decoder_factory,
    endpoint as endpoint,  # for other packages, as the next two
    endpoints as endpoints,
    format_at as format_at,
)

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
