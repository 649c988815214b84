"""Small recorded streams, written for this project."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from importlib import resources
from typing import IO, Any

from rxdelta.core import Seconds, check_seconds, check_word
from rxdelta.providers import WireFormat, decoder, detect
from rxdelta.recording import read_lines
from rxdelta.testing._script import own_words
from rxdelta.wire import DONE, write

__all__ = ["SAMPLES", "open_sample", "sample_chunks"]

SAMPLES = {
    "weather": "weather.jsonl",
    "forecast": "forecast.jsonl",
    "tides": "tides.sse",
    "overloaded": "overloaded.jsonl",
}
"""The samples and their files. `sample_chunks` gives each of them in any format.

- `weather`: Anthropic Messages; reasoning, text and two tool calls, one after the other:
  `get_forecast(city, country, days, units)` for Lisbon and Oslo, with a list of dates as `days`.
- `forecast`: Anthropic Messages; the answer to `weather` when its tools have run. It calls none.
- `tides`: OpenAI chat as server-sent events; reasoning, text and two tool calls whose fragments interleave:
  `tide_table(port, date)` for Brest and Plymouth.
- `overloaded`: Anthropic Messages; a text that breaks off with an error. It calls no tools.
"""


def open_sample(name: str) -> IO[bytes]:
    """Open a sample's recorded bytes; close the file after reading.

    Raises:
        InvalidValueError: There is no sample of this name.
    """
    check_word("name", name, SAMPLES)
    return (resources.files("rxdelta.testing") / "samples" / SAMPLES[name]).open("rb")


async def sample_chunks(
    name: str = "weather", wire_format: WireFormat | str | None = None, *, pause: Seconds = 0.0
) -> AsyncIterator[Any]:
    """A sample's chunks, as a provider's SDK would return them: as they were recorded, or in another format.

    Two samples call tools, with these arguments. A tool of your own takes them by name, or has `**more`:

    - `weather` calls `get_forecast(city, country, days, units)` twice: `city` is "Lisbon" and "Oslo", `country` "PT" and
      "NO", `days` a list of two dates, `units` "metric".
    - `tides` calls `tide_table(port, date)` twice: `port` is "Brest" and "Plymouth", `date` "2026-11-28".

    `forecast` and `overloaded` call none. `forecast` is the answer when the tools of `weather` have run, and
    `overloaded` breaks off with an error of the provider.

    Args:
        name: One of `SAMPLES`.
        wire_format: One of `rd.providers.FORMATS`, in which `rd.wire.write` then writes the reply; by default, the
            sample's own.
        pause: Seconds, or a `timedelta`, between two chunks.

    Raises:
        InvalidValueError: There is no sample of this name, or the format can't carry it; then no chunk comes.
        UnknownWireFormatError: There is no such format.

    Example:
        >>> import asyncio
        >>> import rxdelta as rd
        >>> from rxdelta.testing import sample_chunks
        >>> chunks = rd.from_async_iterable(sample_chunks("tides", "gemini"))
        >>> message = asyncio.run(rd.last_value(chunks.pipe(rd.decode("gemini"), rd.scan_deltas(), rd.to_message())))
        >>> [call.name for call in message.tool_calls]
        ['tide_table', 'tide_table']
    """
    between = check_seconds("pause", pause) if pause else 0.0
    chunks = _recorded(name)
    if wire_format is not None and wire_format != detect(chunks[0]):
        events = decoder("auto")
        read = [*(event for chunk in chunks for event in events.decode(chunk)), *events.close()]
        chunks = write(read, wire_format, on_error=own_words)
    for chunk in chunks:
        yield chunk
        if between:
            await asyncio.sleep(between)


def _recorded(name: str) -> list[Any]:
    """The chunks of a sample, without what the SDK would end its stream at."""
    with open_sample(name) as file:
        return [line.value for line in read_lines(file) if line.kind == "value" and line.value is not DONE]
