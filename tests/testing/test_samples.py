"""The samples that the package ships."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.written import overlap, read, told

import rxdelta as rd
from rxdelta.formats import registry
from rxdelta.testing import SAMPLES, VirtualTime, open_sample, sample_chunks

FORMATS = [name for name in registry.names() if registry.is_own(name)]


async def all_of(name: str, wire_format: str | None = None) -> list[Any]:
    return [chunk async for chunk in sample_chunks(name, wire_format)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_keeps_the_protocol(name: str) -> None:
    chunks = asyncio.run(all_of(name))
    decoder, lifecycle = rd.providers.decoder(rd.providers.detect(chunks[0])), rd.core.ProtocolChecker()
    events = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    broken = [violation for event in events if (violation := lifecycle.check(event))]
    assert broken == (["error_event"] if name == "overloaded" else [])


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("wire_format", FORMATS)
def test_a_sample_says_the_same_in_each_format_that_carries_it(name: str, wire_format: str) -> None:
    recorded = asyncio.run(all_of(name))
    own = rd.providers.detect(recorded[0])
    events = read(recorded, own)
    if "tool_call" not in registry.get(wire_format).carries and name in ("weather", "tides"):
        with pytest.raises(rd.InvalidValueError, match=f"which a stream of {wire_format} can't carry"):
            asyncio.run(anext(sample_chunks(name, wire_format)))
        return
    chunks = asyncio.run(all_of(name, wire_format))
    assert (chunks == recorded) == (own == wire_format)
    assert rd.providers.detect(chunks[0]) == wire_format
    found = read(chunks, wire_format)
    if own != wire_format:
        sort = "order" in registry.get(wire_format).loses and overlap(events)
        assert told(found, wire_format, sort=sort) == told(events, wire_format, sort=sort)
    assert errors(found) == errors(events)


def errors(events: list[rd.Event]) -> list[str]:
    return [event.message for event in events if isinstance(event, rd.events.StreamError)]


def test_a_sample_in_another_format_pauses_between_its_chunks() -> None:
    async def paused() -> int:
        return len([chunk async for chunk in sample_chunks("forecast", "ollama", pause=60.0)])

    time = VirtualTime()
    assert time.run(paused()) * 60.0 == time.elapsed


def test_a_sample_in_a_format_that_does_not_exist_is_refused() -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError, match="openai-chat"):
        asyncio.run(all_of("tides", "openai"))


@pytest.mark.parametrize("ask", [open_sample, lambda name: asyncio.run(all_of(name))])
def test_an_unknown_sample_is_refused_with_the_known_names(ask: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="'weather', 'forecast', 'tides' or 'overloaded'"):
        ask("nothing")
