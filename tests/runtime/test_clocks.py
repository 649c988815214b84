"""A scheduler's time in seconds."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from reactivex.scheduler import VirtualTimeScheduler

from rxdelta.runtime import LoopScheduler, clock, seconds
from rxdelta.runtime.session import SessionScheduler


@pytest.mark.parametrize("in_session", [False, True])
def test_it_is_that_of_a_virtual_clock(in_session: bool) -> None:
    time = VirtualTimeScheduler(5.0)
    now = seconds(SessionScheduler(None, time) if in_session else time)
    began = now()
    time.advance_to(7.5)
    assert now() - began == 2.5


@pytest.mark.parametrize("on_loop", [False, True])
def test_it_passes_as_the_dates_do_and_makes_none(on_loop: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.new_event_loop()
    time, owned = (LoopScheduler(loop), None) if on_loop else clock(None, None)
    now: Any = seconds(time)
    apart = time.now.timestamp() - now()
    assert time.now.timestamp() - now() == pytest.approx(apart, abs=0.5)

    def refuse(_: object) -> datetime:
        raise AssertionError

    monkeypatch.setattr(type(time), "now", property(refuse))
    assert now() <= now()
    loop.close()
    if owned is not None:
        owned.dispose()
