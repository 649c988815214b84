"""What is bounded, by which numbers, and what is not."""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from typing import Any

import attrs
import pytest
import reactivex as rx
from support.cost import lines_run
from support.front_end_bodies import (
    BEGUN,
    ENDED,
    call_part,
    deep,
)
from support.loops import run
from support.security_page import says, sentences

import rxdelta as rd
from rxdelta.relay import Relay

ev = rd.events

NUMBER = re.compile(r"\d[\d,]*")


def row(beginning: str) -> list[int]:
    """The numbers of a row's second cell."""
    (found,) = [one for one in sentences() if one.startswith(beginning)]
    return [int(number.replace(",", "")) for number in NUMBER.findall(found.split("|")[1])]


LIMITS = {
    "index": "a block's index",
    "blocks": "blocks of a message",
    "choices": "choices of a stream",
    "runs": "runs of a stream",
    "block_chars": "characters of a block",
    "json_depth": "nesting of JSON",
    "line_bytes": "bytes of a line",
    "members": "members of usage",
}


@says(
    "a block's index",
    "blocks of a message",
    "choices of a stream",
    "runs of a stream",
    "characters of a block",
    "nesting of JSON",
    "bytes of a line",
    "members of usage",
    "The first eight are fields",
    "They bound each of these",
)
def test_the_limits_are_those_of_the_page() -> None:
    assert {name: [value] for name, value in attrs.asdict(rd.Limits()).items()} == {
        name: row(beginning) for name, beginning in LIMITS.items()
    }
    fold = rd.Fold(limits=rd.Limits(block_chars=3))
    for index in range(9):  # each by itself
        fold.step(ev.BlockStart(index, {"type": "text", "text": "abc"}))
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        fold.step(ev.TextDelta(0, "d"))
    assert caught.value.snapshot is fold.snapshot
    with pytest.raises(rd.errors.LimitExceededError, match="line_bytes"):
        rx.of(b"data: " + b"x" * 20).pipe(rd.parse_sse(), rd.with_limits(rd.Limits(line_bytes=20))).run()
    for lines in (2, 3):  # of one event, each within its bound
        bounds = rd.with_limits(rd.Limits(line_bytes=20, block_chars=20))
        event = rx.from_iterable([*[b'data: "0123456"\n'] * 2, *[b"data:\n"] * (lines - 2), b"\n"])
        with pytest.raises(rd.RxDeltaError, match="block_chars" if lines == 3 else "JSON"):
            event.pipe(rd.parse_sse(), bounds).run()
    for depth, kind in ((99, "tool_call"), (101, "invalid_tool_call")):
        call = {"type": "tool_call_chunk", "id": "c", "name": "f", "args": json.dumps(deep(depth))}
        done = rx.of(ev.BlockStart(0, call), ev.BlockFinish(0)).pipe(rd.scan_deltas()).run()
        assert done.blocks[0].type == kind
    nested = f"data: {json.dumps(deep(101))}\n\n".encode()
    with pytest.raises(rd.errors.LimitExceededError, match="json_depth"):
        rx.of(nested).pipe(rd.parse_sse()).run()


GROWING: dict[str, tuple[str, Callable[[int], list[Any]]]] = {
    "usage": ("anthropic-messages", lambda n: [{"type": "message_delta", "delta": {}, "usage": {f"k{i}": 1}} for i in range(n)]),
    "usage within": ("anthropic-messages", lambda n: [{"type": "message_delta", "delta": {}, "usage": {"a": {f"k{i}": 1}}} for i in range(n)]),
    "usage of Gemini": ("gemini", lambda n: [{"candidates": [{"content": {"parts": [{"text": "Hi"}]}}], "usageMetadata": {f"k{i}": 1}} for i in range(n)]),
    "usage of LangChain": ("langchain", lambda n: [{"type": "AIMessageChunk", "id": "m", "content": "Hi", "usage_metadata": {"input_tokens": 1, f"k{i}": 1}} for i in range(n)]),
    "metadata": ("anthropic-messages", lambda n: [{"type": "message_delta", "delta": {f"k{i}": 1}} for i in range(n)]),
    "metadata of a chat": ("openai-chat", lambda n: [{"id": "c", "choices": [{"index": 0, "delta": {"content": "Hi"}}], f"k{i}": 1} for i in range(n)]),
}  # fmt: skip


@says("**Resources.**", "members of usage")
@pytest.mark.parametrize("which", GROWING)
def test_what_grows_by_keys_ends(which: str) -> None:
    wire_format, chunks = GROWING[which]
    errors: list[Exception] = []
    rx.from_iterable(chunks(5_000)).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(
        on_error=errors.append
    )
    (error,) = errors
    assert isinstance(error, rd.errors.LimitExceededError)
    assert error.limit == "members"
    assert error.snapshot is not None


@pytest.mark.parametrize(
    "event",
    [
        ev.MessageStart("m", metadata={"a": 1, "b": 2, "c": 3}),
        ev.UsageUpdate(rd.TokenUsage(1, 1, {"a": 1, "b": 2, "c": 3})),
        ev.AttemptReset(2, usage=rd.TokenUsage(1, 1, {"a": 1, "b": 2, "c": 3})),
        ev.BlockDelta(0, {"a": 1, "b": 2, "c": 3}),
        ev.BlockDelta(1, {"a": 1, "b": 2, "c": 3}),
        ev.MessageFinish("stop", metadata={"a": 1, "b": 2, "c": 3}),
    ],
)
def test_a_fold_takes_no_more_keys_than_its_limit(event: rd.Event) -> None:
    fold = rd.Fold(limits=rd.Limits(members=2))
    fold.step(ev.BlockStart(0, {"type": "text", "text": "Hi"}))
    before = fold.step(ev.BlockStart(1, {"type": "tool_call", "id": "c", "name": "f"}))
    with pytest.raises(rd.errors.LimitExceededError, match="members") as caught:
        fold.step(event)
    assert caught.value.snapshot is before is fold.snapshot
    enough = rd.Fold(before, limits=rd.Limits(members=3))
    enough.step(event)


@says("**Resources.**")
def test_a_chunk_s_usage_costs_what_changed_in_it() -> None:
    def cost(count: int) -> int:
        start = {
            "type": "message_start",
            "message": {"id": "m", "content": [], "usage": {f"k{i}": 1 for i in range(count)}},
        }
        more = [{"type": "message_delta", "delta": {}, "usage": {"output_tokens": i}} for i in range(count)]
        return lines_run(lambda: rx.of(start, *more).pipe(rd.decode("anthropic-messages")).run())

    assert cost(400) < 3 * cost(200)


@says("characters of the data of one SSE event")
def test_the_data_of_an_event_is_bounded_as_a_block_is() -> None:
    assert row("characters of the data of one SSE event") == [rd.Limits().block_chars]
    lines = b"data: [\ndata: 1,\ndata: 2]\n\n"
    for most, fits in ((8, True), (7, False)):  # each line counts with its end
        parsed = rx.of(lines).pipe(rd.parse_sse(), rd.with_limits(rd.Limits(block_chars=most)))
        if fits:
            assert parsed.run() == [1, 2]
        else:
            with pytest.raises(rd.errors.LimitExceededError, match="block_chars"):
                parsed.run()


@says("digits of a whole number")
def test_a_longer_number_is_refused() -> None:
    (most,) = row("digits of a whole number")
    for digits, kind in ((most, "tool_call"), (most + 1, "invalid_tool_call")):
        call = {"type": "tool_call_chunk", "id": "c", "name": "f", "args": f'{{"n": {"9" * digits}}}'}
        done = rx.of(ev.BlockStart(0, call), ev.BlockFinish(0)).pipe(rd.scan_deltas()).run()
        assert done.blocks[0].type == kind
    assert rx.of(b"data: " + b"9" * most + b"\n\n").pipe(rd.parse_sse()).run() == 10**most - 1
    with pytest.raises(rd.RxDeltaError):
        rx.of(b"data: " + b"9" * (most + 1) + b"\n\n").pipe(rd.parse_sse()).run()


@says("values that wait for a reader", "text that waits", "values by which a reader")
def test_the_queues_are_those_of_the_page() -> None:
    (most,) = row("values that wait for a reader")
    for door in (rd.for_each, rd.iterate, rd.to_async_iterable, rd.to_iterable):
        assert inspect.signature(door).parameters["maxsize"].default == most
    from rxdelta.aio import reading  # whose tests show that a reader ends there

    lag_mib = reading._MAX_LAG_TEXT_BYTES // 2**20
    assert [*reading._MAX_LAG.values(), lag_mib] == row("values by which a reader")
    assert row("text that waits") == [reading._TEXT_BYTES // 2**20]


@says(
    "events of a stream in a relay",
    "bytes of a stream in a relay",
    "time for which a relay",
    "characters of a stream id",
)
def test_a_relays_bounds_are_those_of_the_page() -> None:
    defaults = {name: one.default for name, one in inspect.signature(Relay.open).parameters.items()}
    assert [defaults["max_events"]] == row("events of a stream in a relay")
    assert [defaults["max_bytes"] / 2**20] == row("bytes of a stream in a relay")
    assert [int(defaults["keep"])] == row("time for which a relay")
    (longest,) = row("characters of a stream id")

    async def main() -> None:
        async with Relay.open(max_events=3) as relay:
            relay.watch("x" * longest)
            with pytest.raises(rd.InvalidValueError):
                relay.watch("x" * (longest + 1))
            relay.scope("x" * longest)
            with pytest.raises(rd.InvalidValueError):
                relay.scope("x" * (longest + 1))
            await relay.start("s", rx.from_iterable([*BEGUN, ev.TextDelta(0, "a"), *ENDED]))
            with pytest.raises(rd.errors.LimitExceededError):
                await rd.for_each(relay.watch("s"), lambda _: None)
        async with Relay.open(keep=0.01) as relay:
            await relay.start("s", rx.from_iterable([*BEGUN, *ENDED]))
            while await relay.streams():  # pytest-timeout ends it
                await asyncio.sleep(0.01)

    run(main)


@says("attempts of `retry_stream`")
def test_retries_end() -> None:
    asked: list[int] = []

    def ask() -> rx.Observable[rd.Event]:
        asked.append(1)
        return rx.throw(rd.ProviderError("busy", transient=True))

    async def main() -> None:
        with pytest.raises(rd.ProviderError):
            await rd.for_each(rd.retry_stream(ask, backoff=lambda *_: 0.0), lambda _: None)

    run(main)
    assert [len(asked)] == row("attempts of `retry_stream`")


MANY: dict[str, Callable[[int], Any]] = {
    "texts": lambda n: [{"type": "text", "text": "a"}] * n,
    "calls": lambda n: [call_part(call_id=f"c{i}") for i in range(n)],
    "calls of one id": lambda n: [call_part()] * n,
    "steps": lambda n: [{"type": "step-start"}, call_part()] * n,
    "attempts": lambda n: [{"type": "data-x", "data": 1}, {"type": "data-attempt-reset", "data": {}}] * n,
    "answers": lambda n: [call_part("approval-responded", f"c{i}", approval={"approved": True}) for i in range(n)],
}  # fmt: skip


@says("**Resources.**", "Reading a browser's messages takes time", "The length of a request's body")
@pytest.mark.parametrize("which", MANY)
def test_twice_as_much_takes_twice_as_long(which: str) -> None:
    def cost(count: int) -> int:
        said = [{"id": "1", "role": "assistant", "parts": MANY[which](count)}]
        return lines_run(lambda: [rd.from_ai_sdk(said), rd.requests.approvals_from_ai_sdk(said)])

    assert cost(300) < 3.6 * cost(100)


@says("how long a stream takes", "how many tools run at once", "how many streams a relay has")
def test_what_is_not_bounded_by_itself() -> None:
    limits = inspect.signature(rd.stall_timeout).parameters
    assert {"first", "idle", "total"} <= limits.keys()
    with pytest.raises(rd.RxDeltaError):
        rx.never().pipe(rd.stall_timeout(total=0.01)).run()
    defaults = inspect.signature(rd.run_tools).parameters
    assert (defaults["max_concurrency"].default, defaults["timeout"].default) == (None, None)

    async def main() -> int:
        async with Relay.open() as relay:
            for number in range(50):
                await relay.start(f"s{number}", rx.never())
            return len(await relay.streams())

    found: list[int] = []

    async def note() -> None:
        found.append(await main())

    run(note)
    assert found == [50]
