"""The samples that the package ships."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.testing import SAMPLES, open_sample, sample_chunks


async def all_of(name: str) -> list[Any]:
    return [chunk async for chunk in sample_chunks(name)]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_keeps_the_protocol(name: str) -> None:
    chunks = asyncio.run(all_of(name))
    decoder, lifecycle = rd.providers.decoder(rd.providers.detect(chunks[0])), rd.core.ProtocolChecker()
    events = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    broken = [violation for event in events if (violation := lifecycle.check(event))]
    assert broken == (["error_event"] if name == "overloaded" else [])


@pytest.mark.parametrize("read", [open_sample, lambda name: asyncio.run(all_of(name))])
def test_an_unknown_sample_is_refused_with_the_known_names(read: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="'weather', 'forecast', 'tides' or 'overloaded'"):
        read("nothing")
