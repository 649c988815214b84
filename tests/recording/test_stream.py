"""`rd.stream(…, record=path)`: the chunks as they came, whatever becomes of the reply."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from support.loops import run
from support.replies import ANTHROPIC, OPENAI, sse

import rxdelta as rd
from rxdelta.recording import read_lines
from rxdelta.testing import VirtualTime

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


def values(path: Path) -> list[Any]:
    return [line.value for line in read_lines(path) if line.kind == "value"]


def ending(path: Path) -> tuple[str, Any]:
    *_, last = read_lines(path)
    return last.kind, last.value


async def slowly(chunks: list[Any], pause: float = 1.0) -> AsyncIterator[Any]:
    for chunk in chunks:
        yield chunk
        await asyncio.sleep(pause)


@pytest.mark.parametrize("chunks", [OPENAI, ANTHROPIC], ids=["openai", "anthropic"])
def test_the_chunks_are_recorded_behind_each_door_and_replay_as_the_same_reply(
    tmp_path: Path, chunks: list[Any]
) -> None:
    with rd.stream(chunks, record=tmp_path / "sync.jsonl") as reply:
        message = reply.result()

    async def main() -> rd.Message:
        async with rd.stream(slowly(chunks, 0), record=tmp_path / "async.jsonl") as reply:
            await reply.result()
        await rd.stream(slowly(chunks, 0), record=tmp_path / "awaited.jsonl")
        return await rd.stream(rd.from_recording(tmp_path / "async.jsonl", 0))

    assert run(main) == message
    for name in ("sync", "async", "awaited"):
        assert values(tmp_path / f"{name}.jsonl") == chunks
        assert ending(tmp_path / f"{name}.jsonl") == ("end", None)
    with rd.stream(rd.from_recording(tmp_path / "sync.jsonl", 0)) as reply:
        assert reply.result() == message


def test_the_times_are_those_of_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    async def main() -> None:
        await rd.stream(slowly(OPENAI, 3600), record=path)
        await rd.stream(rd.from_recording(path), record=tmp_path / "again.jsonl")

    VirtualTime().run(main())
    assert [line.at for line in read_lines(path)] == [3600 * n for n in range(len(OPENAI) + 1)]
    assert [*read_lines(tmp_path / "again.jsonl")] == [*read_lines(path)]


def test_bytes_are_recorded_as_they_came(tmp_path: Path) -> None:
    data = sse(OPENAI)
    pieces = [data[at : at + 50] for at in range(0, len(data), 50)]
    with rd.stream(pieces, record=tmp_path / "a.jsonl") as reply:
        message = reply.result()
    assert values(tmp_path / "a.jsonl") == pieces
    with rd.stream(rd.from_recording(tmp_path / "a.jsonl", 0)) as reply:
        assert reply.result() == message


def test_events_are_recorded_by_an_operator_of_through(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    with rd.stream(OPENAI, through=[rd.record(path)]) as reply:
        message = reply.result()
    events: list[Any] = []
    rx.from_iterable(OPENAI).pipe(rd.decode("auto")).subscribe(events.append)
    assert values(path) == events
    with rd.stream(rd.from_recording(path, 0)) as reply:
        assert reply.result() == message


def test_a_reply_that_is_stopped_or_left_has_what_came_and_no_end(tmp_path: Path) -> None:
    async def main() -> None:
        async with rd.stream(slowly(OPENAI), record=tmp_path / "stopped.jsonl") as reply:
            await asyncio.sleep(1.5)
            reply.stop()
        async with rd.stream(slowly(OPENAI), record=tmp_path / "left.jsonl"):
            await asyncio.sleep(1.5)

    VirtualTime().run(main())
    for name in ("stopped", "left"):
        assert values(tmp_path / f"{name}.jsonl") == OPENAI[:2]
        kind, error = ending(tmp_path / f"{name}.jsonl")
        assert (kind, error.type) == ("error", "StreamInterrupted")


def test_a_stall_is_recorded_as_the_error_that_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"

    async def main() -> None:
        with pytest.raises(rd.errors.StallTimeoutError):
            await rd.stream(slowly(OPENAI, 60), record=path, timeout=5)
        with pytest.raises(rd.errors.StallTimeoutError) as caught:
            await rd.stream(rd.from_recording(path))
        assert (caught.value.limit, caught.value.seconds) == ("idle", 5)

    VirtualTime().run(main())
    assert [line.at for line in read_lines(path)] == [0, 5]


def test_a_malformed_chunk_is_in_the_recording_and_fails_again(tmp_path: Path) -> None:
    path, broken = tmp_path / "a.jsonl", [*OPENAI[:2], {"choices": 5}]
    for source in (broken, rd.from_recording(path, 0)):
        record = path if source is broken else tmp_path / "again.jsonl"
        with pytest.raises(rd.errors.MalformedChunkError), rd.stream(source, record=record) as reply:
            reply.result()
    assert values(path) == values(tmp_path / "again.jsonl") == broken


def test_a_file_that_cant_be_opened_is_told_on_entering_and_nothing_is_asked(tmp_path: Path) -> None:
    asked: list[int] = []

    def request() -> list[Any]:
        asked.append(1)
        return OPENAI

    path = tmp_path / "none" / "a.jsonl"
    with pytest.raises(FileNotFoundError, match=r"a\.jsonl"), rd.stream(request, record=path):
        pass

    async def main() -> None:
        with pytest.raises(FileNotFoundError):
            async with rd.stream(request, record=path):
                pass
        with pytest.raises(FileNotFoundError):
            await rd.stream(request, record=path)

    run(main)
    assert asked == []


def test_two_replies_at_once_are_two_recordings(tmp_path: Path) -> None:
    async def main() -> None:
        replies = [
            rd.stream(slowly(chunks), record=tmp_path / f"{n}.jsonl")
            for n, chunks in enumerate((OPENAI, ANTHROPIC))
        ]
        await asyncio.gather(*(_read(reply) for reply in replies))

    async def _read(reply: Any) -> None:
        await reply

    VirtualTime().run(main())
    assert [values(tmp_path / f"{n}.jsonl") for n in (0, 1)] == [OPENAI, ANTHROPIC]


def test_replies_on_threads_are_recorded_whole(tmp_path: Path) -> None:
    def read(number: int) -> None:
        with rd.stream(lambda: OPENAI, record=tmp_path / f"{number}.jsonl") as reply:
            reply.result()

    threads = [threading.Thread(target=read, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(values(tmp_path / f"{number}.jsonl") == OPENAI for number in range(6))


def test_in_a_loop_a_recording_that_breaks_off_is_told_to_the_loop(tmp_path: Path) -> None:
    reports: list[dict[str, Any]] = []

    def mask(_: object) -> Any:
        raise LookupError

    async def main() -> rd.Message:
        record = rd.record(tmp_path / "a.jsonl", mask=mask)
        return await rd.stream(
            slowly(OPENAI, 0), decode=lambda source: source.pipe(record, rd.decode("auto"))
        )

    assert run(main, reports=reports).status == "complete"
    assert [type(one["exception"]) for one in reports] == [LookupError]
