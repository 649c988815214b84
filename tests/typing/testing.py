"""What type checkers infer of what tests use. Never run."""

from __future__ import annotations

from typing import assert_type

from reactivex.scheduler import VirtualTimeScheduler

import rxdelta as rd
from rxdelta.testing import FakeProvider, VirtualTime
from rxdelta.testing.pytest_plugin import MakesFakeProvider


async def answer() -> rd.Message:
    raise NotImplementedError


def times(time: VirtualTime) -> None:
    assert_type(time.run(answer()), rd.Message)
    assert_type(time.elapsed, float)
    assert_type(time.scheduler, VirtualTimeScheduler)
    time.run(answer)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def fixtures(fake_provider: MakesFakeProvider, virtual_time: VirtualTime) -> None:
    assert_type(fake_provider("Hi", ["Ho", 2.0], serve=True), FakeProvider)
