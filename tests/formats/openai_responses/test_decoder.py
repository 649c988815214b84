"""OpenAI Responses: the beginning and end of a response, errors, bodies, and chunks of any kind."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress
from typing import Any

import pytest
from support.openai_responses import (
    WHOLE,
    Chunk,
    added,
    arguments,
    blocks,
    completed,
    created,
    custom,
    decode,
    done,
    event,
    fold,
    function,
    message,
    names,
    part,
    reasoning,
    reply,
    response,
    summed,
    text,
    violations,
)
from support.shared import recordings

from rxdelta.core import (
    LimitExceededError,
    MalformedChunkError,
    thaw,
)
from rxdelta.core.events import (
    BlockStart,
    Event,
    MessageFinish,
    ProviderEvent,
    StreamError,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder


def test_a_faulty_copy_of_the_tools_in_the_end_costs_no_end() -> None:
    tools = [{"type": "function", "name": "f"}]
    assert reply(created(tools=tools), text("a"), completed(tools=3)).status == "complete"


@pytest.mark.parametrize(("untold", "late"), [("", '{"x": 1}'), ('{"x": 1}', "}")])
def test_a_late_delta_is_news_only_where_the_end_of_the_item_did_not_have_it(untold: str, late: str) -> None:
    head, tail = untold[:4], untold[4:]
    chunks = [
        added(function(), 0),
        *([arguments(head, 0)] if head else []),
        done(function(untold, status="completed"), 0),
    ]
    told = reply(created(), *chunks, *([arguments(tail, 0)] if tail else []), completed())
    assert [thaw(call.arguments) for call in told.tool_calls] == [{"x": 1} if untold else {}]
    taken_back = reply(
        created(), *chunks, *([arguments(tail, 0)] if tail else []), arguments(late, 0), completed()
    )
    assert taken_back.tool_calls == ()
    assert taken_back.invalid_tool_calls[0].metadata["late_arguments"] == late


FAILED = StreamError("the response failed", None, "failed", transient=True)


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"type": "error", "code": "c", "message": "m", "param": None}, StreamError("m", None, "c")),
        ({"type": "error", "error": {"type": "t", "code": "c", "message": "m"}}, StreamError("m", "t", "c")),
        ({"type": "error", "error": "m"}, StreamError("m")),
        ({"type": "error", "error": {"code": 429}}, StreamError("unknown error", None, "429")),
        ({"type": "error"}, StreamError("unknown error")),
        ({"error": {"message": "m", "type": "t", "code": None}}, StreamError("m", "t")),
        (completed(status="failed", error={"code": "c", "message": "m"}), StreamError("m", None, "c")),
        (completed(status="failed", error=None), FAILED),
        ({"type": "response.failed", "response": response("in_progress")}, FAILED),
    ],
)
def test_an_error_has_many_forms_and_nothing_follows_it(chunk: Chunk, error: StreamError) -> None:
    found = decode(created(), text("a"), chunk, text("b"), completed(), {"type": "response.later"})
    assert [one for one in found if not isinstance(one, (UsageUpdate, ProviderEvent))][-1] == error
    assert not any(isinstance(one, MessageFinish) for one in found)
    assert fold(found).text == "a"


def test_an_error_counts_once_though_a_failed_response_follows() -> None:
    found = decode(
        created(),
        {"type": "error", "error": {"type": "t", "code": "c", "message": "first"}},
        completed(status="failed", error={"code": "c", "message": "second"}),
    )
    assert [one.message for one in found if isinstance(one, StreamError)] == ["first"]


def test_what_a_failed_response_had_cost_and_said_is_told_first() -> None:
    found = decode(completed(message(part("Hel")), status="failed", error={"message": "m"}))
    assert names(found) == ["message-start", "block-start", "block-delta", "block-finish", "usage", "error"]


def test_more_than_an_error_can_hold_is_passed_on_before_it() -> None:
    found = decode({"type": "error", "code": "c", "message": "m", "param": "input"})
    assert [type(one) for one in found] == [ProviderEvent, StreamError]
    assert found[0].payload["param"] == "input"  # type: ignore[union-attr]


def test_a_response_that_was_cancelled_was_interrupted() -> None:
    whole = response("cancelled") | {"output": [{"type": "message", "id": "i"}], "more": 1}
    found = decode(created(), text("a"), {"type": "response.cancelled", "response": whole})
    assert isinstance(found[-2], ProviderEvent)
    assert found[-2].payload == {name: value for name, value in whole.items() if name != "output"}
    assert fold(found).to_message().status == "interrupted"


def test_what_is_not_known_is_passed_on_whole() -> None:
    odd = [
        {"type": "response.steer.accepted", "steer": {"id": "s"}},
        {"type": "response.hologram.delta", "output_index": 0, "delta": "x"},
        {"type": "response.output_text.hum", "output_index": 9},
        {"type": "another.thing", "output_index": "x"},
    ]
    found = decode(created(), text("a"), *odd, completed(), odd[0])
    passed = [one for one in found if isinstance(one, ProviderEvent)]
    assert [(one.provider, one.name, thaw(one.payload)) for one in passed] == [
        ("openai", chunk["type"], chunk) for chunk in (*odd, odd[0])
    ]
    assert decode({"type": "keepalive", "sequence_number": 3}) == []


def test_what_comes_after_the_end_of_its_item_is_passed_on() -> None:
    found = decode(created(), added(message()), done(message(part("a"))), text("late"), completed())
    assert [one.payload["delta"] for one in found if isinstance(one, ProviderEvent)] == ["late"]
    assert violations(found) == []


@pytest.mark.parametrize("status", ["in_progress", "queued"])
def test_a_body_that_is_not_done_is_incomplete(status: str) -> None:
    found = decode(response(status, output=[message(part("a"), status="in_progress")]))
    assert fold(found).status == "incomplete"
    assert fold(found).text == "a"


def test_a_body_may_leave_out_its_status() -> None:
    body = completed(message(part("a")))["response"]
    del body["status"]
    assert reply(body).status == "complete"
    assert isinstance(decode({**body, "error": {"message": "m"}})[-1], StreamError)


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ([], ""),
        ("data: x", ""),
        ({}, "type"),
        ({"type": 3}, "type"),
        ({"type": "response.created"}, "response"),
        ({"type": "response.created", "response": []}, "response"),
        ({"type": "response.created", "response": {"id": 1}}, "response.id"),
        ({"type": "response.created", "response": {"model": 1}}, "response.model"),
        ({"type": "response.completed", "response": {"output": {}}}, "response.output"),
        ({"type": "response.completed", "response": {"output": [1]}}, "response.output[0]"),
        ({"type": "response.completed", "response": {"output": [{}]}}, "response.output[0].type"),
        ({"type": "response.completed", "response": {"usage": 1}}, "response.usage"),
        ({"object": "response", "output": [message(part(3))]}, "output[0].content[0].text"),  # type: ignore[arg-type]
        (added([]), "item"),  # type: ignore[arg-type]
        (added({}), "item.type"),
        ({**added(message()), "output_index": -1}, "output_index"),
        ({**text("a"), "output_index": 1.5}, "output_index"),
        ({**text("a"), "delta": 3}, "delta"),
        ({**text("a"), "content_index": "0"}, "content_index"),
        (event("content_part.added", content_index=0), "part"),
        (event("content_part.added", content_index=0, part={}), "part.type"),
        (event("output_text.done", content_index=0, text=1), "text"),
        (event("output_text.annotation.added", content_index=0, annotation=1), "annotation"),
        (summed(3), "delta"),  # type: ignore[arg-type]
        ({**summed("a"), "summary_index": "0"}, "summary_index"),
        (done(reasoning(3)), "item.summary[0].text"),  # type: ignore[arg-type]
        (done(reasoning(encrypted_content=3)), "item.encrypted_content"),
        (done(function(3)), "item.arguments"),
        (added(function(name=3)), "item.name"),  # type: ignore[arg-type]
        (event("function_call_arguments.delta", delta={}), "delta"),
        (event("shell_call_command.delta", command_index=-1, delta="x"), "command_index"),
        (done({"type": "image_generation_call", "result": 3}), "item.result"),
    ],
)
def test_a_malformed_chunk_is_named_by_its_place(bad: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(bad)
    assert (caught.value.wire_format, caught.value.path) == ("openai-responses", path)


@pytest.mark.parametrize("field", ["output_index", "content_index"])
def test_an_absurd_index_is_refused_by_the_limit(field: str) -> None:
    with pytest.raises(LimitExceededError):
        decode({**text("a"), field: 2**31})
    assert reply({**text("a"), field: 2**31 - 1}).text == "a"


def test_what_a_malformed_chunk_held_before_its_fault_comes_with_the_next() -> None:
    decoder = OpenAIResponsesDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode(completed(message(part("a")), message(part(3))))  # type: ignore[arg-type]
    found = [*decoder.decode(completed(message(part("a")))), *decoder.close()]
    assert violations(found) == []
    assert fold(found).text == "a"


def test_a_delta_after_a_malformed_end_grows_no_block_that_has_finished() -> None:
    malformed_end = completed(message(part("a")), message(part(3)))  # type: ignore[arg-type]
    decoder, found = OpenAIResponsesDecoder(), list[Event]()
    for chunk in (created(), added(message()), text("a"), malformed_end, text("b"), text("c")):
        with suppress(MalformedChunkError):
            found += decoder.decode(chunk)
    assert violations(found) == ["missing_message_finish"]
    assert [one.payload["delta"] for one in found if isinstance(one, ProviderEvent)] == ["b", "c"]


def test_an_event_of_the_sdk_gives_the_same_as_a_dict() -> None:
    types = pytest.importorskip("openai.types.responses")
    from openai._models import construct_type

    chunks = [created(), *(chunk for n, item in enumerate(WHOLE) for chunk in (added(item, n), done(item, n))), completed(*WHOLE)]  # fmt: skip
    typed = [construct_type(type_=types.ResponseStreamEvent, value=copy.deepcopy(chunk)) for chunk in chunks]
    body = construct_type(type_=types.Response, value=copy.deepcopy(completed(*WHOLE)["response"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(*typed) == decode(*chunks)
        assert decode(body) == decode(completed(*WHOLE)["response"])


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_sdks_events_of_a_recording_are_the_same_message(chunks: list[Chunk], expected: Chunk) -> None:
    types = pytest.importorskip("openai.types.responses")
    from openai._models import construct_type

    assert reply(
        *(construct_type(type_=types.ResponseStreamEvent, value=chunk) for chunk in chunks)
    ) == reply(*chunks)


def test_a_chunk_is_not_changed_and_may_be_changed_afterwards() -> None:
    chunks = [created(), *(done(item, n) for n, item in enumerate(copy.deepcopy(WHOLE))), completed()]
    before = copy.deepcopy(chunks)
    found = decode(*chunks)
    assert chunks == before
    told = fold(found).to_dict()
    for chunk in chunks:
        chunk.get("item", {}).clear()
    assert fold(found).to_dict() == told


STREAM: list[Chunk] = [
    created(),
    added(reasoning()),
    summed("One"),
    summed("Two", 1),
    done(reasoning("One", "Two")),
    added(message(id="m1"), 1),
    event("content_part.added", 1, content_index=0, part=part("")),
    text("Hel", 1),
    text("lo", 1),
    event("output_text.done", 1, content_index=0, text="Hello"),
    done(message(part("Hello"), id="m1"), 1),
    added(function(), 2),
    arguments('{"x"', 2),
    added(custom("", call_id="c2"), 3),
    event("custom_tool_call_input.delta", 3, delta="SEL"),
    arguments(": 1}", 2),
    event("function_call_arguments.done", 2, arguments='{"x": 1}'),
    done(function('{"x": 1}'), 2),
    event("custom_tool_call_input.delta", 3, delta="ECT"),
    done(custom("SELECT", call_id="c2"), 3),
    completed(reasoning("One", "Two"), message(part("Hello"), id="m1"), function('{"x": 1}'), custom("SELECT", call_id="c2")),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STREAM)))
def test_a_stream_that_lost_or_doubled_any_event_is_still_the_same(place: int) -> None:
    whole = reply(*STREAM)
    lost = reply(*STREAM[:place], *STREAM[place + 1 :])
    if place < len(STREAM) - 1:
        assert sorted(blocks(lost)) == sorted(blocks(whole))
        assert [thaw(call.arguments) for call in lost.tool_calls] == [
            thaw(call.arguments) for call in whole.tool_calls
        ]
    doubled = reply(*STREAM[: place + 1], *STREAM[place:])
    assert blocks(doubled) == blocks(whole)
    if place:
        swapped = reply(*STREAM[: place - 1], STREAM[place], STREAM[place - 1], *STREAM[place + 1 :])
        if place < len(STREAM) - 1:
            assert sorted(blocks(swapped)) == sorted(blocks(whole))


@pytest.mark.parametrize("end", range(1, len(STREAM) + 1))
def test_a_stream_that_is_cut_anywhere_calls_nothing_complete_that_is_not(end: int) -> None:
    snapshot = reply(*STREAM[:end])
    assert (snapshot.status == "complete") is (end == len(STREAM))
    ended = [chunk["item"]["call_id"] for chunk in STREAM[:end] if chunk["type"].endswith("item.done") and "call_id" in chunk["item"]]  # fmt: skip
    assert [call.call_id for call in snapshot.tool_calls if call.status == "complete"] == ended


def test_a_piece_costs_the_same_however_many_have_come() -> None:
    decoder = OpenAIResponsesDecoder()
    decoder.decode(created())
    for n in range(1000):
        (one,) = decoder.decode(arguments("1")) if n else decoder.decode(arguments("1"))[-1:]
        assert isinstance(one, ToolCallDelta)
    assert isinstance(decode(created(), arguments("1"))[1], BlockStart)
