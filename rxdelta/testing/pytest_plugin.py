"""Fixtures for pytest, which finds them where rxdelta is installed: `fake_provider` and `virtual_time`.

Nothing of the library is imported before a test uses one of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from rxdelta.testing import FakeProvider, FakeReply, VirtualTime
    from rxdelta.testing.fake_provider import Answer


class MakesFakeProvider(Protocol):
    """The type of `fake_provider`."""

    def __call__(
        self, *replies: FakeReply | Answer, repeat: bool = False, serve: bool = False
    ) -> FakeProvider: ...


@pytest.fixture
def fake_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[MakesFakeProvider]:
    """A function that makes a `FakeProvider` of these replies: `fake_provider("Hello", serve=True)`.

    With `serve=True` its server runs until the test ends. It is `fake.server`. The environment leads the providers'
    clients to it, so that the program under test stays as it is. When several are served, the environment leads to the
    last one.
    """
    from contextlib import ExitStack

    from rxdelta.testing import FakeProvider

    with ExitStack() as servers:

        def make(*replies: FakeReply | Answer, repeat: bool = False, serve: bool = False) -> FakeProvider:
            fake = FakeProvider(*replies, repeat=repeat)
            if serve:
                for name, value in servers.enter_context(fake.serve()).environment.items():
                    monkeypatch.setenv(name, value)
            return fake

        yield make


@pytest.fixture
def virtual_time() -> VirtualTime:
    """A `VirtualTime` for this test: `virtual_time.run(main())`."""
    from rxdelta.testing import VirtualTime

    return VirtualTime()
