"""Two replies at once, as docs/tasks shows it: what each keeps, and who is closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops

import rxdelta as rd
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from reactivex import Observable


class Model:
    """A model that says its marks, one every so often; without an id, as some providers."""

    def __init__(self, marks: str, pause: float, fails: bool = False) -> None:
        self.marks, self.pause, self.fails = marks, pause, fails
        self.closed_at: float | None = None
        self.requests = 0

    async def chunks(self) -> AsyncIterator[dict[str, Any]]:
        self.requests += 1
        try:
            for mark in self.marks:
                await asyncio.sleep(self.pause)
                yield {"message": {"role": "assistant", "content": mark}, "done": False}
            if self.fails:
                raise ConnectionResetError
            yield {"message": {"content": ""}, "done": True, "done_reason": "stop"}
        finally:
            self.closed_at = asyncio.get_running_loop().time()

    def snapshots(self) -> Observable[rd.Snapshot]:
        return rd.from_async_iterable(self.chunks).pipe(rd.decode("auto"), rd.scan_deltas())


def test_merged_and_throttled_each_keeps_its_last_state() -> None:
    first, second = Model("abcdef", 0.01), Model("xyz", 0.03)
    seen: list[rd.Snapshot] = []

    async def main() -> None:
        both = rx.merge(first.snapshots(), second.snapshots()).pipe(rd.throttle_latest(0.05))
        await rd.for_each(both, seen.append)

    VirtualTime().run(main())
    assert {one.text for one in seen if one.status == "complete"} == {"abcdef", "xyz"}
    assert len(seen) < 9


def test_merged_and_throttled_also_if_one_of_them_breaks() -> None:
    first, second = Model("abcdef", 0.01), Model("xyz", 0.01, fails=True)
    seen: list[rd.Snapshot] = []

    async def main() -> None:
        both = rx.merge(first.snapshots(), second.snapshots()).pipe(rd.throttle_latest(0.5))
        with pytest.raises(rd.StreamInterrupted):
            await rd.for_each(both, seen.append)

    VirtualTime().run(main())
    assert {one.text for one in seen[-2:]} == {"abc", "xyz"}
    assert first.closed_at is not None


def test_side_by_side_as_pairs() -> None:
    first, second = Model("abcdef", 0.01), Model("xyz", 0.03)
    seen: list[tuple[rd.Snapshot, ...]] = []

    async def main() -> None:
        pairs = rx.combine_latest(first.snapshots(), second.snapshots()).pipe(rd.throttle_latest(0.05))
        await rd.for_each(pairs, seen.append)

    VirtualTime().run(main())
    assert [one.text for one in seen[-1]] == ["abcdef", "xyz"]
    assert [one.status for one in seen[-1]] == ["complete", "complete"]


@pytest.mark.parametrize("turn", [1, -1])
def test_the_first_text_wins_and_the_loser_is_closed_at_once(turn: int) -> None:
    quick, slow = Model("abcdef", 0.01), Model("xyz", 0.5)

    async def main() -> rd.Message:
        racing = [
            one.snapshots().pipe(ops.skip_while(lambda snapshot: not snapshot.text))
            for one in (quick, slow)[::turn]
        ]
        return await rd.last_value(rx.amb(*racing).pipe(rd.to_message()))

    assert VirtualTime().run(main()).text == "abcdef"
    assert (quick.requests, slow.requests) == (1, 1)
    assert slow.closed_at is not None
    assert slow.closed_at < 0.02


def test_the_first_whole_message_wins_and_the_loser_is_closed() -> None:
    quick, slow = Model("abcdef", 0.01), Model("xyz", 0.5)

    async def main() -> rd.Message:
        messages = [one.snapshots().pipe(rd.to_message()) for one in (slow, quick)]
        return await rd.first_value(rx.merge(*messages))

    assert VirtualTime().run(main()).text == "abcdef"
    assert slow.closed_at is not None
    assert slow.closed_at < 0.1


def test_merged_events_are_refused_instead_of_woven() -> None:
    models = Model("abc", 0.01), Model("xyz", 0.01)

    async def main() -> None:
        events = [rd.from_async_iterable(one.chunks).pipe(rd.decode("auto")) for one in models]
        with pytest.raises(rd.ProtocolError, match=r"group_by_message\(\)"):
            await rd.last_value(rx.merge(*events).pipe(rd.scan_deltas()))

    VirtualTime().run(main())
