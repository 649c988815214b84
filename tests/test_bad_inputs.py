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


def fold(chunks: list[Any], wire_format: str = "openai-chat") -> rd.Snapshot:
    seen: list[rd.Snapshot] = []
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
    snapshots: list[rd.Snapshot] = []
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


def test_bad_input_29_raw_control_characters_are_read_in_strings_and_nowhere_else() -> None:
    call = called('{"a": "\x00\n"}')
    assert (call.type, call.arguments) == ("tool_call", {"a": "\x00\n"})
    call = called('{"a": \x00"\n"}')
    assert (call.type, call.arguments) == ("invalid_tool_call", '{"a": \x00"\n"}')


def test_bad_input_33_a_stream_that_ends_without_its_finish_is_incomplete() -> None:
    snapshot = fold(chat({"content": "half"}, reason=None))
    assert (snapshot.status, snapshot.text) == ("incomplete", "half")
    with pytest.raises(rd.IncompleteMessageError) as caught:
        snapshot.to_message()
    assert caught.value.snapshot is snapshot


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


@pytest.mark.parametrize("operator", [rd.throttle_latest(3600), rd.debounce_latest(3600), rd.conflate()])
def test_bad_input_53_threads_that_push_lose_nothing_at_the_end(operator: Any) -> None:
    source: Subject[tuple[int, int]] = Subject()
    seen: list[tuple[int, int]] = []
    source.pipe(operator).subscribe(seen.append)
    observer = source.observers[0]  # past the lock of the subject

    def push(name: int) -> None:
        for n in range(500):
            observer.on_next((name, n))

    threads = [threading.Thread(target=push, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    source.on_next((9, 9))
    source.on_completed()
    assert seen[-1] == (9, 9)
    for name in range(4):
        counts = [count for one, count in seen if one == name]
        assert counts == sorted({*counts})


# What providers and gateways do with ids, finish reasons, usage and several choices.


def calls(*fragments: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """(id, name, arguments) of the calls made of fragments that come one by one."""
    reply = fold(chat(*({"tool_calls": [one]} for one in fragments), reason="tool_calls"))
    return [(call.call_id, call.name, rd.core.thaw(call.arguments)) for call in reply.tool_calls]


def test_bad_input_15_an_id_repeated_with_every_fragment_counts_once() -> None:
    made = calls(
        fragment(0, '{"a"', id="x", name="f"), fragment(0, ": 1", id="x", name="f"), fragment(0, "}", id="x")
    )
    assert made == [("x", "f", {"a": 1})]


def test_bad_input_16_another_id_at_the_same_index_is_another_call() -> None:
    made = calls(fragment(0, '{"a": 1}', id="x", name="f"), fragment(0, '{"b": 2}', id="y", name="g"))
    assert made == [("x", "f", {"a": 1}), ("y", "g", {"b": 2})]


def test_bad_input_17_one_id_at_two_indexes_loses_no_arguments() -> None:
    made = calls(fragment(0, '{"a": 1}', id="x", name="f"), fragment(1, '{"b": 2}', id="x", name="g"))
    assert [arguments for *_, arguments in made] == [{"a": 1}, {"b": 2}]


def test_bad_input_18_a_name_in_pieces_is_joined_and_a_repeated_one_is_not() -> None:
    assert calls(fragment(0, None, id="x", name="get_"), fragment(0, "{}", name="tides")) == [
        ("x", "get_tides", {})
    ]
    assert calls(fragment(0, None, id="x", name="f"), fragment(0, "{}", name="f")) == [("x", "f", {})]


def test_bad_input_20_parallel_calls_that_all_have_the_index_0_are_told_apart_by_id() -> None:
    together = [fragment(0, '{"n": 1}', id="x", name="f"), fragment(0, '{"n": 2}', id="y", name="f")]
    reply = fold(chat({"tool_calls": together}, {"tool_calls": [fragment(0, None, id="z", name="f")]}))
    assert [call.call_id for call in reply.tool_calls] == ["x", "y", "z"]


DONE = b"data: [DONE]\n\n"
PIECE = b'data: {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}]}\n\n'
LAST = b'data: {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ([PIECE, LAST, DONE], "complete"),
        ([PIECE, LAST], "complete"),
        ([PIECE, LAST, DONE, DONE], "complete"),
        ([PIECE, DONE], "complete"),
        ([PIECE, DONE, LAST], "complete"),
        ([PIECE], "incomplete"),
    ],
)
def test_bad_input_34_done_may_be_missing_sent_twice_or_come_before_the_finish(
    body: list[bytes], status: str
) -> None:
    source = rx.from_iterable(body).pipe(rd.parse_sse(), rd.decode("openai-chat"), rd.scan_deltas())
    assert (source.run().text, source.run().status) == ("a", status)


ERRORS: dict[str, tuple[list[Any], tuple[Any, Any, Any]]] = {
    "openai-chat": (
        [
            *chat({"content": "a"}, reason=None),
            {"error": {"message": "no", "type": "server_error", "code": 500}},
        ],
        ("no", "server_error", "500"),
    ),
    "anthropic-messages": (
        [
            {"type": "message_start", "message": {"id": "m"}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "a"}},
            {"type": "error", "error": {"type": "overloaded_error", "message": "no"}},
        ],
        ("no", "overloaded_error", None),
    ),
    "openai-responses": (
        [
            {
                "type": "response.created",
                "response": {"id": "r", "object": "response", "status": "in_progress"},
            },
            {
                "type": "response.output_text.delta",
                "item_id": "i",
                "output_index": 0,
                "content_index": 0,
                "delta": "a",
            },
            {"type": "error", "code": "server_error", "message": "no", "param": None},
        ],
        ("no", None, "server_error"),
    ),
    "gemini": (
        [
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "a"}]}}]},
            {"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}},
        ],
        ("no", "UNAVAILABLE", "503"),
    ),
    "bedrock-converse": (
        [
            {"messageStart": {"role": "assistant"}},
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "a"}}},
            {"throttlingException": {"message": "no"}},
        ],
        ("no", "throttlingException", None),
    ),
    "ollama": (
        [
            {"model": "m", "message": {"role": "assistant", "content": "a"}, "done": False},
            {"error": "no"},
        ],
        ("no", None, None),
    ),
}


@pytest.mark.parametrize("wire_format", ERRORS)
def test_bad_input_35_an_error_in_a_stream_that_began_well_keeps_what_was_said(wire_format: str) -> None:
    chunks, said = ERRORS[wire_format]
    errors: list[Any] = []
    rx.from_iterable(chunks).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(on_error=errors.append)
    (error,) = errors
    assert isinstance(error, rd.ProviderError)
    assert (error.message, error.type, error.code) == said
    assert error.snapshot is not None
    assert (error.snapshot.text, error.snapshot.status) == ("a", "incomplete")


CODES: dict[str, Any] = {
    "openai-chat": lambda code: {"error": {"message": "no", "code": code}},
    "openai-completions": lambda code: {"object": "error", "message": "no", "code": code},
    "openai-responses": lambda code: {"type": "error", "message": "no", "code": code},
    "gemini": lambda code: {"error": {"message": "no", "code": code}},
    "gemini-interactions": lambda code: {"event_type": "error", "error": {"message": "no", "code": code}},
    "bedrock-converse": lambda code: {
        "modelStreamErrorException": {"message": "no", "originalStatusCode": code}
    },
    "ollama": lambda code: {"error": "no", "status_code": code},
}


@pytest.mark.parametrize("wire_format", CODES)
def test_bad_input_26_an_error_s_code_that_is_no_code_is_none(wire_format: str) -> None:
    for code, told in ((429, "429"), ("busy", "busy"), (10**5000, None), (True, None), ([], None)):
        events = rd.providers.decoder(wire_format).decode(CODES[wire_format](code))
        assert isinstance(events[-1], ev.StreamError)
        assert (events[-1].message, events[-1].code) == ("no", told)


def test_bad_input_42_interleaved_choices_are_kept_apart_and_end_each_for_itself() -> None:
    def piece(index: int, text: str, reason: str | None = None) -> Any:
        return {"id": "c", "choices": [{"index": index, "delta": {"content": text}, "finish_reason": reason}]}

    chunks = [piece(0, "a"), piece(1, "x"), piece(0, "b", "stop"), piece(1, "y"), piece(1, "z", "length")]
    for choice, expected in ((0, ("ab", "complete")), (1, ("xyz", "length"))):
        source = rx.from_iterable(chunks).pipe(rd.decode("openai-chat"), rd.scan_deltas(choice=choice))
        assert (source.run().text, source.run().status) == expected


def test_bad_input_43_usage_that_comes_alone_after_the_finish_is_counted() -> None:
    usage = {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    found = fold([*chat({"content": "a"}), usage]).usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (3, 4)


@pytest.mark.parametrize("wrong", [None, -1, 2.5, "7.5", True, [], {}])
def test_bad_input_44_a_count_that_is_none_is_unknown_and_not_0(wrong: Any) -> None:
    found = fold(chat({"content": "a"}, usage={"prompt_tokens": 3, "completion_tokens": wrong})).usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens, found.total()) == (3, None, 3)


def test_bad_input_44_a_running_usage_that_falls_is_the_provider_s_to_say_and_never_summed() -> None:
    running = [
        {"id": "c", "choices": [{"index": 0, "delta": {"content": "a"}}], "usage": {"prompt_tokens": n}}
        for n in (9, 5)
    ]
    end = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    found = fold([*running, end]).usage
    assert found is not None
    assert found.input_tokens == 5


def test_bad_input_45_of_two_finish_reasons_the_first_counts_and_the_other_is_passed_on() -> None:
    second = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "content_filter"}]}
    events: list[Any] = []
    rx.from_iterable([*chat({"content": "a"}, reason="length"), second]).pipe(
        rd.decode("openai-chat")
    ).subscribe(events.append)
    finish = next(event for event in events if isinstance(event, ev.MessageFinish))
    assert finish.reason == "length"
    (passed_on,) = [event for event in events if isinstance(event, ev.ProviderEvent)]
    assert passed_on.payload["choices"][0]["finish_reason"] == "content_filter"


def test_bad_input_46_the_calls_decide_between_stop_and_tool_use_and_the_word_stays() -> None:
    without = fold(chat({"content": "a"}, reason="tool_calls"))
    assert (without.finish_reason, without.provider_finish_reason) == ("stop", "tool_calls")
    beside = fold(chat({"tool_calls": [fragment(0, "{}", id="x", name="f")]}, reason="stop"))
    assert (beside.finish_reason, beside.provider_finish_reason) == ("tool_use", "stop")


def test_bad_input_47_a_second_message_in_a_stream_is_not_mixed_into_the_first() -> None:
    errors: list[Any] = []
    first = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "a"}), ev.BlockFinish(0)]
    second = [ev.MessageStart("n"), ev.BlockStart(0, {"type": "text", "text": "b"}), ev.BlockFinish(0)]
    end = ev.MessageFinish("stop")
    conversation = [*first, end, *second, end]
    rx.from_iterable(conversation).pipe(rd.scan_deltas()).subscribe(on_error=errors.append)
    assert [type(error) for error in errors] == [rd.ProtocolError]
    assert errors[0].snapshot.text == "a"
    messages: list[rd.Snapshot] = []
    rx.from_iterable(conversation).pipe(rd.group_by_message()).subscribe(
        lambda message: message.pipe(rd.scan_deltas()).subscribe(messages.append)
    )
    assert [message.text for message in messages if message.status == "complete"] == ["a", "b"]


@pytest.mark.parametrize("cut", range(1, 12))
def test_bad_input_64_base64_split_anywhere_is_joined_as_text(cut: int) -> None:
    data = "QUJDREVGRw=="
    pieces = [data[start : start + cut] for start in range(0, len(data), cut)]
    reply = fold(chat(*({"audio": {"id": "a", "data": piece}} for piece in pieces)))
    (part,) = reply.blocks
    assert isinstance(part, rd.ContentPart)
    assert (part.type, part.text) == ("audio", data)


def test_bad_input_64_what_is_no_base64_stays_as_it_came() -> None:
    (part,) = fold(chat({"audio": {"data": "not base64!"}}, {"audio": {"data": "?"}})).blocks
    assert isinstance(part, rd.ContentPart)
    assert part.text == "not base64!?"
