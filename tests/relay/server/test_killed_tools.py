"""Workers whose processes are killed while they run a reply's tools: no tool runs twice."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from relay.reading import until
from relay.server.tool_workers import CALLS, Job, Mother
from support.cutting_proxy import CuttingProxy
from support.valkey_servers import ValkeyServer

pytest.importorskip("redis")
pytest.importorskip("msgspec")

MOMENTS = [f"{when} {call}" for call in CALLS for when in ("begin", "end")]


class Reply:
    """One reply: its first worker dies, then perhaps the second, and two go on."""

    def __init__(self, mother: Mother, url: str, folder: Path, number: int, **first: Any) -> None:
        self.name = f"reply-{number}"
        self.file = folder / str(number)
        self.first = first
        self._job = {"url": url, "reply": self.name, "file": str(self.file)}
        self._mother = mother
        self._start(begins=True, **first)

    def _start(self, **more: Any) -> None:
        self._mother.start(Job(**self._job, **more))

    def go_on(self, dies: float | None) -> None:
        if dies is not None:
            self._start(dies=dies)
        for _ in range(2):
            self._start()

    def lines(self) -> list[str]:
        return self.file.read_text().splitlines() if self.file.exists() else []

    def told(self) -> list[str]:
        return [line for line in self.lines() if line.startswith(("told", "error"))]

    def check(self) -> None:
        lines = self.lines()
        assert not [line for line in lines if line.startswith("error")], lines
        began = Counter(line.removeprefix("begin ") for line in lines if line.startswith("begin "))
        assert max(began.values(), default=0) <= 1, (self.first, lines)
        for name in {line for line in lines if line.startswith("won")}:
            first, last = lines.index(name), len(lines) - 1 - lines[::-1].index(name)
            # Who died before the first event had begun nothing: the name is free again.
            assert not any(line.startswith("begin") for line in lines[first:last]), lines
        ends = {line for line in lines if line.startswith("told")}
        assert len(ends) == 1, lines  # all learn the same
        calls = json.loads(next(iter(ends)).split(" ", 2)[2])
        for call, status in calls.items():
            assert status in ("completed", "failed")
            assert status == "failed" or began[call] == 1
        moment = self.first["dies"]
        if isinstance(moment, str):  # the tool had begun, and nobody knows what it has done
            assert calls[moment.split()[1]] == "failed"
            assert f"told {self.name}.1 " not in next(iter(ends))


@pytest.mark.parametrize(
    ("seed", "more"),
    [
        pytest.param(7, 1, marks=pytest.mark.slow),
        *(pytest.param(seed, 8, marks=pytest.mark.soak) for seed in range(8, 12)),
    ],
)
def test_no_tool_runs_twice_when_workers_are_killed(
    server: ValkeyServer, tmp_path: Path, seed: int, more: int
) -> None:
    """At each moment of a tool, and at `more` others."""
    chance = Random(seed)
    firsts: list[dict[str, Any]] = [
        {"dies": moment, "how": how, "concurrency": concurrency}
        for moment in MOMENTS
        for how, concurrency in (("pipeline", None), ("generator", 1))
    ]
    firsts += [{"dies": chance.uniform(0, 0.3), "how": "generator"} for _ in range(more)]

    async def main() -> list[Reply]:
        # What a dead worker had sent a moment ago hasn't arrived, as if its machine had died.
        async with CuttingProxy(server.port, chance=lambda: "late") as proxy:
            proxy.delay = 0.03
            with Mother.open() as mother:
                url = f"valkey://127.0.0.1:{proxy.port}"
                replies = [Reply(mother, url, tmp_path, n, **first) for n, first in enumerate(firsts)]
                await until(
                    lambda: all(reply.lines() or "generator" in str(reply.first) for reply in replies), 0.02
                )
                for reply in replies:
                    reply.go_on(chance.choice((None, chance.uniform(0.3, 1.5))))
                await until(lambda: all(len(reply.told()) >= 2 for reply in replies), 0.02)
                await asyncio.to_thread(mother.close)
        return replies

    replies = asyncio.run(main())
    for reply in replies:
        reply.check()
