"""`rd.stream`: what each reader gets, and what becomes of the source."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import os
import signal
import threading
from typing import TYPE_CHECKING, Any, Self

import pytest
from reactivex.subject import Subject
from support.loops import Stream, run, turns
from support.replies import OPENAI

import rxdelta as rd
from rxdelta.testing import sample_chunks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

WHOLE = ["Let me ", "look."]
WORDS = [f"{n} " for n in range(300)]


def chunk(text: str, *, last: bool = False) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": "stop" if last else None}
    return {"id": "c1", "object": "chat.completion.chunk", "choices": [choice]}


def held(*texts: str) -> Stream[Any]:
    """A stream that waits behind these texts."""
    return Stream(*map(chunk, texts), hold=True)


def worded() -> Stream[Any]:
    return Stream(*map(chunk, WORDS), chunk("end", last=True))


async def shown(reply: rd.types.Reply, text: str) -> None:
    """Wait until the reply has this text."""
    while reply.snapshot.text != text:
        await asyncio.sleep(0)


def test_ten_lines_give_the_newest_snapshot_and_then_the_message() -> None:
    async def main() -> None:
        texts: list[str] = []
        async with rd.stream(Stream(*OPENAI)) as reply:
            async for snapshot in reply:
                texts += [snapshot.text]
        assert texts[-1] == reply.message.text == "".join(WHOLE)
        assert reply.message.tool_calls[0].arguments == {"at": "sea"}
        assert reply.snapshot.to_message() == reply.message

    run(main)


def test_the_same_in_synchronous_code() -> None:
    source = Stream(*OPENAI)
    before = set(threading.enumerate())
    with rd.stream(source) as reply:
        texts = [snapshot.text for snapshot in reply]
        assert reply.result() == reply.message
    assert texts[-1] == reply.message.text == "".join(WHOLE)
    assert "".join(reply.text_deltas) == reply.message.text
    assert source.closed == 1
    assert set(threading.enumerate()) <= before


def test_await_gives_only_the_message() -> None:
    source = Stream(*OPENAI)

    async def main() -> rd.Message:
        return await rd.stream(source)

    assert run(main).text == "".join(WHOLE)
    assert source.closed == 1


def test_a_slow_loop_skips_snapshots_and_gets_the_last_at_once() -> None:
    async def main() -> None:
        count = 0
        async with rd.stream(worded()) as reply:
            async for snapshot in reply:
                count += 1
                if count == 1:
                    await reply.result()
        assert count == 2
        assert snapshot.status == "complete"

    run(main)


def test_text_and_snapshots_and_events_at_once_are_all_whole_and_the_request_is_made_once() -> None:
    opened = 0

    def create() -> Stream[Any]:
        nonlocal opened
        opened += 1
        return worded()

    async def main() -> None:
        async with rd.stream(lambda: create()) as reply:

            async def text() -> str:
                return "".join([piece async for piece in reply.text_deltas])

            async def last() -> str:
                return [snapshot async for snapshot in reply][-1].text

            folded = rd.last_value(reply.events.pipe(rd.scan_deltas()))
            texts = await asyncio.gather(text(), last(), last(), folded)
            assert [*texts[:3], texts[3].text] == ["".join([*WORDS, "end"])] * 4

    asyncio.run(main())
    assert opened == 1


def test_who_begins_late_starts_with_the_reply_so_far() -> None:
    async def main() -> None:
        source = held("Hel", "lo")
        async with rd.stream(source) as reply:
            await shown(reply, "Hello")
            pieces, snapshots = reply.text_deltas, aiter(reply)
            assert await anext(pieces) == "Hello"
            assert (await anext(snapshots)).text == "Hello"
            reply.stop()
            assert [piece async for piece in pieces] == []

    run(main)


def test_a_reply_is_iterated_in_turn_also_when_it_has_ended() -> None:
    async def main() -> None:
        async with rd.stream(Stream(*OPENAI)) as reply:
            async for _ in reply:
                pass
            assert [snapshot async for snapshot in reply] == [reply.snapshot]
        assert [snapshot async for snapshot in reply] == [reply.snapshot]
        assert [piece async for piece in reply.text_deltas] == ["".join(WHOLE)]
        assert await reply.result() == reply.message

    run(main)


def test_a_pace_lets_few_snapshots_through_and_the_last() -> None:
    async def main() -> None:
        async with rd.stream(worded(), every=3600) as reply:
            texts = [snapshot.text async for snapshot in reply]
        assert len(texts) == 2
        assert texts[-1] == reply.message.text

    run(main)


# Leaving.


@pytest.mark.parametrize("how", ["break", "raise", "at once", "return"])
def test_leaving_early_closes_the_request_before_the_block_is_left(how: str) -> None:
    source = held("Hel", "lo")

    async def left() -> rd.types.Reply:
        async with rd.stream(source) as reply:
            if how == "at once":
                return reply
            async for snapshot in reply:
                if snapshot.text == "Hello":
                    if how == "raise":
                        raise KeyError(how)
                    if how == "return":
                        return reply
                    break
        return reply

    async def main() -> None:
        if how == "raise":
            with pytest.raises(KeyError):
                await left()
            assert source.closed == 1
            return
        reply = await left()
        assert source.closed == 1
        with pytest.raises(rd.IncompleteMessageError, match="left before its end") as caught:
            _ = reply.message
        assert caught.value.snapshot is reply.snapshot
        assert reply.snapshot.text == ("" if how == "at once" else "Hello")
        with pytest.raises(rd.IncompleteMessageError):
            await reply.result()

    run(main)


def test_readers_in_other_tasks_are_told_that_the_block_was_left() -> None:
    async def main() -> None:
        async with rd.stream(held("Hel")) as reply:

            async def pieces() -> list[str]:
                return [piece async for piece in reply.text_deltas]

            readers = [asyncio.create_task(pieces()), asyncio.create_task(reply.result())]
            await shown(reply, "Hel")
        for reader, error in zip(readers, [rd.StreamInterrupted, rd.IncompleteMessageError], strict=True):
            with pytest.raises(error) as caught:
                await reader
            assert caught.value.snapshot is not None
            assert caught.value.snapshot.text == "Hel"

    run(main)


def test_a_source_that_hangs_on_closing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rxdelta.aio.reading.CLOSE_SECONDS", 0.05)

    async def main() -> None:
        gave_up = False

        async def source() -> AsyncIterator[Any]:
            nonlocal gave_up
            try:
                yield chunk("Hel")
                await asyncio.sleep(3600)
            finally:
                try:
                    await asyncio.sleep(3600)
                except asyncio.CancelledError:
                    gave_up = True
                    raise

        async with rd.stream(source) as reply:
            await shown(reply, "Hel")
        await turns()
        assert gave_up

    run(main)


# Stopping.


def test_stop_keeps_what_came() -> None:
    async def main() -> None:
        source = held("Hel", "lo")
        async with rd.stream(source) as reply:

            async def press() -> None:
                await shown(reply, "Hello")
                reply.stop("enough")

            task = asyncio.create_task(press())
            statuses = [snapshot.status async for snapshot in reply]
            assert statuses[-1] == "interrupted"
            await task
        assert source.closed == 1
        with pytest.raises(rd.IncompleteMessageError, match="stopped") as caught:
            _ = reply.message
        assert caught.value.snapshot is reply.snapshot
        assert reply.snapshot.text == "Hello"
        assert reply.snapshot.to_message().status == "interrupted"
        with pytest.raises(rd.IncompleteMessageError):
            await reply.result()

    run(main)


def test_stop_from_another_thread() -> None:
    with rd.stream(held("Hel", "lo")) as reply:
        stopping = threading.Thread(target=lambda: reply.stop("enough"))
        for snapshot in reply:
            if snapshot.text == "Hello" and not stopping.ident:
                stopping.start()
        stopping.join(30)
    assert snapshot.status == "interrupted"
    assert snapshot.text == "Hello"


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="there are no such signals")
def test_stop_in_a_signals_handler_wakes_the_loop() -> None:
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("signals are for the main thread")

    async def main() -> None:
        source = held("Hello")
        async with rd.stream(source) as reply:
            await shown(reply, "Hello")

            def press(_: int, __: object) -> None:
                reply.stop("enough")

            signal.signal(signal.SIGUSR1, press)
            asleep = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR1))
            asleep.start()
            assert [snapshot.status async for snapshot in reply][-1] == "interrupted"
            asleep.join()
        assert source.closed == 1

    before = signal.getsignal(signal.SIGUSR1)
    try:
        run(main)
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_stop_changes_nothing_once_the_reply_has_ended() -> None:
    async def main() -> None:
        async with rd.stream(Stream(*OPENAI)) as reply:
            await reply.result()
            reply.stop()
        assert reply.message.status == "complete"

    run(main)


# Tools.


def test_the_reply_ends_with_its_tools() -> None:
    async def look(at: str) -> str:
        await turns(3)
        return f"blue {at}"

    async def main() -> None:
        async with rd.stream(Stream(*OPENAI), tools={"look": look}) as reply:
            message = await reply.result()
        assert message.tool_calls[0].result.content == "blue sea"  # type: ignore[union-attr]

    run(main)


@pytest.mark.parametrize("provider", ["has ended", "goes on"])
@pytest.mark.parametrize("how", ["stop", "leave"])
def test_stopping_and_leaving_cancel_the_tools(provider: str, how: str) -> None:
    async def main() -> None:
        cancelled = 0
        started = asyncio.Event()

        async def look(at: str) -> None:
            nonlocal cancelled
            started.set()
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                cancelled += 1
                raise

        source = Stream(*OPENAI, hold=provider == "goes on")
        async with rd.stream(source, tools={"look": look}) as reply:
            await started.wait()
            while source.given < len(OPENAI):
                await asyncio.sleep(0)
            await turns()
            with pytest.raises(rd.IncompleteMessageError, match="coming"):
                _ = reply.message
            if how == "stop":
                reply.stop()
                with pytest.raises(rd.IncompleteMessageError, match="stopped"):
                    await reply.result()
        await turns()
        assert cancelled == 1
        assert source.closed == 1
        with pytest.raises(rd.IncompleteMessageError):
            _ = reply.message

    run(main)


# Failing.


def test_an_error_in_mid_stream_reaches_every_reader_with_the_reply_so_far() -> None:
    async def main() -> None:
        source = Stream(*map(chunk, ["Hel", "lo"]), end=ConnectionResetError("gone"))
        errors: list[rd.RxDeltaError] = []
        async with rd.stream(source) as reply:
            for read in (aiter(reply), reply.text_deltas):
                with pytest.raises(rd.StreamInterrupted) as caught:
                    async for _ in read:
                        pass
                errors.append(caught.value)
            with pytest.raises(rd.StreamInterrupted) as caught:
                await reply.result()
            errors.append(caught.value)
        with pytest.raises(rd.StreamInterrupted) as caught:
            _ = reply.message
        errors.append(caught.value)
        assert [error.snapshot.text for error in errors if error.snapshot] == ["Hello"] * 4
        assert all(isinstance(error.__cause__, ConnectionResetError) for error in errors)
        assert source.closed == 1

    run(main)


@pytest.mark.parametrize("asked", [False, True])
def test_an_error_that_nobody_reads_is_logged_and_kept(asked: bool, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        source = Stream(chunk("Hel"), end=ConnectionResetError("gone"))
        async with rd.stream(source) as reply:
            while not source.closed:
                await asyncio.sleep(0)
            if asked:
                with pytest.raises(rd.StreamInterrupted):
                    _ = reply.message
        with pytest.raises(rd.StreamInterrupted):
            _ = reply.message

    with caplog.at_level(logging.WARNING, "rxdelta"):
        run(main)
    assert len(caplog.records) == (0 if asked else 1)


@pytest.mark.parametrize("source", [[], b"", [b"", b"\n"]])
def test_an_empty_stream_gives_no_snapshot_and_no_message(source: Any) -> None:
    with rd.stream(source) as reply:
        assert [*reply] == []
        assert [*reply.text_deltas] == []
        with pytest.raises(rd.IncompleteMessageError):
            reply.result()


def test_silence_is_an_error_before_the_first_chunk_and_between_two() -> None:
    async def main(*texts: str) -> None:
        async with rd.stream(held(*texts), timeout=0.02) as reply:
            with pytest.raises(rd.errors.StallTimeoutError) as caught:
                await reply.result()
            assert caught.value.snapshot is not None
            assert caught.value.snapshot.text == "".join(texts)

    run(main)
    run(lambda: main("Hel"))


# Misuse.


@pytest.mark.parametrize(
    "source", [5, None, "Hello", {"id": "c1"}, rd.MessageDelta(content="Hi"), object(), dict, 1.5, True]
)
def test_what_is_no_stream_is_refused_at_once(source: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="source"):
        rd.stream(source)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("given", [5, "Hello", {"id": "c1", "choices": []}])
def test_what_opens_no_stream_is_refused_when_it_was_opened(given: Any, asynchronous: bool) -> None:
    async def create() -> Any:
        return given

    with (
        rd.stream(create if asynchronous else lambda: given) as reply,
        pytest.raises(rd.InvalidValueError, match="source"),
    ):
        reply.result()


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"every": 0}, "every"),
        ({"every": "1"}, "every"),
        ({"timeout": -1}, "timeout"),
        ({"tools": [len]}, "tools"),
        ({"wire_format": "morse"}, "morse"),
        ({"wire_format": 3}, "wire_format"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_at_once(keywords: Any, error: str) -> None:
    with pytest.raises((rd.InvalidValueError, rd.errors.UnknownWireFormatError), match=error):
        rd.stream([], **keywords)


def test_a_reply_is_opened_once() -> None:
    async def main() -> None:
        opener = rd.stream(Stream(*OPENAI))
        await opener
        with pytest.raises(rd.InvalidValueError, match="once"):
            await opener
        with pytest.raises(rd.InvalidValueError, match="once"):
            async with opener:
                pass

    run(main)


def test_the_wrong_kind_of_block_or_loop_says_the_right_one() -> None:
    async def main() -> None:
        with pytest.raises(rd.InvalidValueError, match="async with"), rd.stream([]):  # type: ignore[unused-ignore]
            pass
        opener: Any = rd.stream([])
        with pytest.raises(rd.InvalidValueError, match="async with"):
            async for _ in opener:
                pass
        with pytest.raises(rd.InvalidValueError, match="with rd"):
            list(opener)
        with pytest.raises(AttributeError, match="enter it first"):
            _ = opener.text_deltas
        async with opener as reply:
            with pytest.raises(rd.InvalidValueError, match="async for"):
                list(reply)  # type: ignore[call-overload]

    run(main)
    with rd.stream([]) as reply:
        anything: Any = reply
        with pytest.raises(rd.InvalidValueError, match="`for`"):
            aiter(anything)


def test_a_coroutine_that_was_never_started_is_no_warning_of_python_s() -> None:
    async def create() -> Stream[Any]:
        raise AssertionError

    async def main() -> None:
        async with rd.stream(create()):
            pass

    run(main)


def test_two_replies_at_once() -> None:
    async def main() -> None:
        async with rd.stream(worded()) as one, rd.stream(Stream(*OPENAI)) as other:
            texts = await asyncio.gather(one.result(), other.result())
        assert [len(message.text) for message in texts] == [len("".join([*WORDS, "end"])), 12]

    run(main)


def test_a_reply_is_read_by_a_pipeline_in_synchronous_code() -> None:
    with (
        rd.stream(worded()) as reply,
        rd.to_iterable(reply.events.pipe(rd.to_ai_sdk())) as frames,
    ):
        deltas = [frame.get("delta", "") for frame in frames if isinstance(frame, dict)]
    assert "".join(deltas) == "".join([*WORDS, "end"])


def test_nothing_keeps_a_reply_alive() -> None:
    async def main() -> None:
        async with rd.stream(Stream(*OPENAI)) as reply:
            async for _ in reply:
                break
        snapshot = reply.snapshot
        del reply
        gc.collect()
        assert not [one for one in gc.get_objects() if isinstance(one, rd.types.Reply)], snapshot

    run(main)


# What a source may be.


def sse(chunks: list[Any]) -> bytes:
    return b"".join(f"data: {json.dumps(one)}\n\n".encode() for one in chunks) + b"data: [DONE]\n\n"


def ndjson(chunks: list[Any]) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in chunks)


async def pieces(items: list[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item


def blocking(items: list[Any]) -> Iterator[Any]:
    yield from items


class Manager:
    """A stream manager of an SDK: asynchronous and synchronous."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.left = 0

    async def __aenter__(self) -> Any:
        return self.source

    async def __aexit__(self, *_: object) -> None:
        self.left += 1


class BlockingManager:
    def __init__(self, source: Any) -> None:
        self.source = source
        self.left = 0

    def __enter__(self) -> Any:
        return self.source

    def __exit__(self, *_: object) -> None:
        self.left += 1


async def awaited(value: Any) -> Any:
    return value


CUT = [sse(OPENAI)[at : at + 7] for at in range(0, len(sse(OPENAI)), 7)]
SOURCES: dict[str, Any] = {
    "a list": lambda: OPENAI,
    "a generator": lambda: blocking(OPENAI),
    "an async generator": lambda: pieces(OPENAI),
    "an async generator function": lambda: lambda: pieces(OPENAI),
    "an awaitable": lambda: awaited(pieces(OPENAI)),
    "an awaitable of a list": lambda: awaited(OPENAI),
    "an awaitable of an awaitable": lambda: awaited(awaited(pieces(OPENAI))),
    "an awaitable of a manager": lambda: awaited(Manager(pieces(OPENAI))),
    "a function that gives an awaitable": lambda: lambda: awaited(pieces(OPENAI)),
    "a function that gives a list": lambda: lambda: OPENAI,
    "a function that gives bytes": lambda: lambda: sse(OPENAI),
    "a function that gives an Observable": lambda: lambda: rd.from_iterable(OPENAI),
    "a coroutine function": lambda: lambda: awaited(OPENAI),
    "a manager": lambda: Manager(pieces(OPENAI)),
    "a manager of a list": lambda: Manager(OPENAI),
    "a blocking manager": lambda: BlockingManager(blocking(OPENAI)),
    "a function that gives a blocking manager": lambda: lambda: BlockingManager(blocking(OPENAI)),
    "an Observable": lambda: rd.from_iterable(OPENAI),
    "events": lambda: rd.from_iterable(OPENAI).pipe(rd.decode("openai-chat")),
    "a list of events": lambda: rd.to_events(rd.merge_deltas([rd.MessageDelta(content="".join(WHOLE))])),
    "bytes": lambda: sse(OPENAI),
    "bytes of NDJSON": lambda: ndjson(OPENAI),
    "cut bytes": lambda: CUT,
    "cut text": lambda: pieces([one.decode() for one in CUT]),
    "lines": lambda: sse(OPENAI).decode().splitlines(),
    "lines with their ends": lambda: sse(OPENAI).splitlines(keepends=True),
    "lines of NDJSON": lambda: ndjson(OPENAI).splitlines(),
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_may_be(name: str) -> None:
    async def main() -> str:
        async with rd.stream(SOURCES[name]()) as reply:
            async for _ in reply:
                pass
        return reply.snapshot.text

    assert run(main) == "".join(WHOLE)
    with rd.stream(SOURCES[name]()) as reply:
        assert "".join(reply.text_deltas) == "".join(WHOLE)


@pytest.mark.parametrize("manager", [Manager, BlockingManager])
def test_a_manager_is_left_with_the_reply(manager: Any) -> None:
    made = manager(blocking(OPENAI) if manager is BlockingManager else pieces(OPENAI))
    with rd.stream(lambda: made) as reply:
        next(iter(reply))
    assert made.left == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_blocking_manager_of_an_asynchronous_stream_is_left_behind_its_chunks(whole: bool) -> None:
    async def main() -> None:
        left: list[int] = []

        async def slowly() -> AsyncIterator[Any]:
            try:
                for one in OPENAI:
                    await asyncio.sleep(0.01)  # in which a thread would have left the manager
                    left.append(made.left)
                    yield one
            finally:
                left.append(made.left)

        made = BlockingManager(slowly())
        async with rd.stream(made) as reply:
            if whole:
                await reply.result()
            else:
                await anext(aiter(reply))
        assert set(left) == {0}
        assert made.left == 1

    run(main)


class Client:
    """A manager that gives no stream, but itself."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class AsyncClient:
    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("client", [Client(), AsyncClient()])
def test_a_client_in_place_of_its_stream_is_refused(client: Any) -> None:
    with rd.stream(client) as reply, pytest.raises(rd.InvalidValueError, match="must be an iterable"):
        reply.result()


@pytest.mark.parametrize("name", ["stream", "body"])
def test_a_response_of_boto3_says_where_its_stream_is(name: str) -> None:
    response: Any = {"ResponseMetadata": {}, name: blocking([])}
    with pytest.raises(rd.InvalidValueError, match=rf"inside.*\['{name}'\]"):
        rd.stream(response)


def test_a_plain_function_and_a_blocking_source_leave_the_loop_free() -> None:
    async def main() -> None:
        opened, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def create() -> Iterator[Any]:
            loop.call_soon_threadsafe(opened.set)
            assert go_on.wait(30)  # the loop could not answer if this stood on it
            return blocking(OPENAI)

        async with rd.stream(create) as reply:
            await opened.wait()
            go_on.set()
            assert (await reply.result()).text == "".join(WHOLE)

    run(main)


def test_a_reply_that_was_stopped_is_interrupted_also_if_a_reader_was_busy() -> None:
    """The caller's thread can't end the reply while another thread emits an event of it."""
    source, inside, go_on = Subject[rd.Event](), threading.Event(), threading.Event()

    def slow(_: str) -> None:
        inside.set()
        go_on.wait(30)

    with rd.stream(source) as reply:
        reply.events.pipe(rd.text_deltas()).subscribe(slow)
        start = rd.events.BlockStart(0, {"type": "text", "text": "Hel"})
        emitting = threading.Thread(target=source.on_next, args=(start,))
        emitting.start()
        assert inside.wait(30)
        threading.Timer(0.1, go_on.set).start()
        reply.stop("enough")
        assert (reply.snapshot.text, reply.snapshot.status) == ("Hel", "interrupted")
        emitting.join()
    assert reply.snapshot.metadata["interrupted"] == "enough"


# What a reply says that it is.


def test_a_reply_says_what_it_is_and_how_far() -> None:
    async def main() -> list[str]:
        opener = rd.stream(sample_chunks("tides"))
        shown = [repr(opener)]
        async with opener as reply:
            shown.append(repr(reply))
            await reply.result()
            shown.append(repr(reply))
        return [*shown, repr(opener)]

    new, coming, ended, opened = asyncio.run(main())
    assert "not opened yet" in new
    assert coming == "<rd.types.Reply is coming; <Snapshot incomplete>>"
    assert ended.startswith("<rd.types.Reply has ended; <Snapshot complete; ")
    assert "opened" in opened


def test_text_deltas_can_be_closed_and_taken_one_by_one() -> None:
    async def main() -> str:
        async with rd.stream(sample_chunks("tides")) as reply:
            pieces: Any = reply.text_deltas
            first: str = await anext(pieces)
            await pieces.aclose()
            return first

    assert asyncio.run(main())
    with rd.stream(sample_chunks("tides")) as reply:
        pieces: Any = reply.text_deltas
        assert next(pieces)
        pieces.close()
        assert list(pieces) == []
