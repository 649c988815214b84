"""Hostile inputs by their number, those that no test of a single room bears the number of."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject

import rxdelta as rd

ev = rd.events


def chat(*deltas: Any, reason: str | None = "stop", **more: Any) -> list[Any]:
    chunks = [{"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": reason}], **more}
    return [*chunks, end] if reason else chunks


def fold(chunks: list[Any], wire_format: str = "openai-chat") -> rd.MessageDelta:
    seen: list[rd.MessageDelta] = []
    errors: list[Exception] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(
        seen.append, errors.append
    )
    assert errors == []
    return seen[-1]


def fragment(index: int, args: str | None = None, **more: Any) -> dict[str, Any]:
    return {"index": index, "function": {"name": more.pop("name", None), "arguments": args}, **more}


def called(args: str) -> rd.ToolCall:
    (block,) = fold(chat({"tool_calls": [fragment(0, args, id="a", name="f")]}, reason="tool_calls")).blocks
    assert isinstance(block, rd.ToolCall)
    return block


def test_bad_input_10_a_second_finish_that_says_the_same_changes_nothing() -> None:
    start = [
        ev.MessageStart("m"),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "a"),
        ev.BlockFinish(0),
    ]
    once, twice = rd.Fold(), rd.Fold()
    for event in start:
        once.step(event)
    for event in [*start, ev.BlockFinish(0), ev.BlockFinish(0, {"type": "text", "text": "a"})]:
        twice.step(event)
    assert twice.snapshot == once.snapshot


@pytest.mark.parametrize("again", [0, 1, 2])
def test_bad_inputs_11_and_12_a_start_sent_again_or_late_does_no_harm(again: int) -> None:
    stream = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
        {"type": "message_stop"},
    ]
    late = [*stream[:3], stream[min(again, 1)], *stream[3:]]
    assert fold(late, "anthropic-messages").text == "a"


def test_bad_input_14_a_call_without_an_id_gets_one_that_stays() -> None:
    chunks = chat(
        {"tool_calls": [fragment(0, "{", name="f")]}, {"tool_calls": [fragment(0, "}")]}, reason="tool_calls"
    )
    snapshots: list[rd.MessageDelta] = []
    rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas()).subscribe(snapshots.append)
    ids = {call.call_id for snapshot in snapshots for call in snapshot.tool_calls}
    assert len(ids) == 1
    assert None not in ids
    assert snapshots[-1].tool_calls[0].metadata["synthetic_id"] is True


def test_bad_input_19_many_fragments_of_one_call_in_one_chunk_are_joined_in_order() -> None:
    entries = [fragment(0, '{"a"', id="x", name="f"), fragment(0, ": "), fragment(0, "1}")]
    assert fold(chat({"tool_calls": entries}, reason="tool_calls")).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_bad_input_25_what_json_cannot_express_makes_a_call_invalid(word: str) -> None:
    call = called(f'{{"a": {word}}}')
    assert (call.type, call.arguments) == ("invalid_tool_call", f'{{"a": {word}}}')


def test_bad_input_26_a_number_of_five_thousand_digits_makes_a_call_invalid() -> None:
    assert called(f'{{"a": {"9" * 5_000}}}').type == "invalid_tool_call"


def test_bad_input_29_raw_control_characters_make_a_call_invalid_and_are_kept() -> None:
    call = called('{"a": "\x00\n"}')
    assert (call.type, call.arguments) == ("invalid_tool_call", '{"a": "\x00\n"}')


def test_bad_input_33_a_stream_that_ends_without_its_finish_is_incomplete() -> None:
    snapshot = fold(chat({"content": "half"}, reason=None))
    assert (snapshot.status, snapshot.text) == ("incomplete", "half")
    with pytest.raises(rd.IncompleteMessageError) as caught:
        snapshot.to_message()
    assert caught.value.snapshot is snapshot


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_bad_input_37_marks_comments_and_any_line_end_are_sse(end: str) -> None:
    lines = ["\ufeff: hello", "event: message", 'data: {"a":', "data: 1}", "id: 7", "", "data: [DONE]"]
    seen: list[Any] = []
    rx.of(end.join(lines).encode()).pipe(rd.parse_sse()).subscribe(seen.append)
    assert seen == [{"a": 1}]


def test_bad_input_41_unknown_events_blocks_and_deltas_pass_through() -> None:
    stream = [
        {"type": "message_start", "message": {"id": "m", "content": []}},
        {"type": "news", "x": 1},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "hologram", "y": [2]}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "hologram_delta", "z": 3}},
        {"type": "content_block_stop", "index": 0},
    ]
    events: list[rd.Event] = []
    rx.from_iterable(stream).pipe(rd.decode("anthropic-messages")).subscribe(events.append)
    assert [event.name for event in events if isinstance(event, ev.ProviderEvent)] == [
        "news",
        "content_block_delta",
    ]
    (block,) = fold(stream, "anthropic-messages").blocks
    assert (block.type, dict(block.options)) == ("unsupported", {"type": "hologram", "y": [2]})


def test_bad_input_51_an_observer_that_raises_closes_the_source_and_is_heard_of_once() -> None:
    async def main() -> tuple[list[str], list[Any]]:
        log: list[str] = []
        heard: list[Any] = []

        async def chunks() -> AsyncIterator[int]:
            try:
                yield 1
                yield 2
            finally:
                log.append("closed")

        def draw(value: int) -> None:
            raise ZeroDivisionError

        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: heard.append(context["exception"])
        )
        rd.from_async_iterable(chunks).subscribe(draw)
        while not log:
            await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await rd.for_each(rd.from_async_iterable(chunks), draw)
        return log, heard

    log, heard = asyncio.run(main())
    assert log == ["closed", "closed"]
    assert [type(error) for error in heard] == [ZeroDivisionError]


def test_bad_input_52_disposing_within_an_emission_stops_everything_behind_it() -> None:
    source: Subject[Any] = Subject()
    seen: list[str] = []
    subscription = rx.disposable.SerialDisposable()

    def leave(snapshot: rd.MessageDelta) -> None:
        seen.append(snapshot.text)
        if snapshot.text:
            subscription.dispose()

    subscription.disposable = source.pipe(rd.decode("openai-chat"), rd.scan_deltas()).subscribe(leave)
    for chunk in chat({"content": "a"}, {"content": "b"}):
        source.on_next(chunk)
    assert seen[-1] == "a"
    assert source.observers == []


def test_bad_input_53_two_threads_that_push_lose_nothing_at_the_end() -> None:
    source: Subject[int] = Subject()
    seen: list[int] = []
    source.pipe(rd.throttle_latest(3600)).subscribe(seen.append)

    def push(first: int) -> None:
        for n in range(first, first + 500):
            source.on_next(n)

    threads = [threading.Thread(target=push, args=(first,)) for first in (0, 1000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.on_next(9999)
    source.on_completed()
    assert len(seen) == 2
    assert seen[-1] == 9999


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "1", True])
def test_bad_input_57_a_period_that_is_none_is_refused_when_the_pipeline_is_built(seconds: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="seconds"):
        rd.throttle_latest(seconds)
