"""Tests with a fake provider, a mock without a network: no key, and no waiting."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime


async def answer(chunks: AsyncIterator[Any]) -> str:
    """The program under test: it waits ten seconds for a chunk at most."""
    return (await rd.stream(chunks, timeout=10)).text


def test_a_slow_reply_is_whole() -> None:
    provider = FakeProvider(["High water ", 9.0, "is at six."])
    time = VirtualTime()
    assert time.run(answer(provider.stream("openai-chat"))) == "High water is at six."
    assert time.elapsed == 9.0


def test_a_silent_provider_is_given_up() -> None:
    provider = FakeProvider(["High water ", 60.0, "is at six."])
    with pytest.raises(rd.errors.StallTimeoutError) as caught:
        VirtualTime().run(answer(provider.stream("openai-chat")))
    assert caught.value.snapshot is not None
    assert caught.value.snapshot.text == "High water "


if __name__ == "__main__":  # or: pytest test_without_network.py
    test_a_slow_reply_is_whole()
    test_a_silent_provider_is_given_up()
    print("passed")
