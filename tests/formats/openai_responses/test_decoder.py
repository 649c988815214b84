"""OpenAI Responses: the beginning and end of a response, errors, bodies, and chunks of any kind."""

from __future__ import annotations

import copy
import warnings
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.openai_responses import (
    USAGE,
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
    incomplete,
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

import rxdelta as rd
from rxdelta.core import (
    LimitExceededError,
    MalformedChunkError,
    Snapshot,
    events,
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
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder, recognises


def test_usage_is_the_providers_own() -> None:
    usage = reply(created(), completed()).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, thaw(usage.raw)) == (7, 3, USAGE)
    assert reply(created(), {**completed(), "response": response("completed", usage=None)}).usage is None


def test_of_the_response_only_what_the_request_did_not_say_is_kept() -> None:
    more = {
        "service_tier": "default",
        "tools": [{"type": "web_search"}],
        "instructions": "Be brief",
        "temperature": 1,
    }
    snapshot = reply(
        created(service_tier="auto", tools=more["tools"]), completed(**more, conversation={"id": "cv"})
    )
    assert thaw(snapshot.metadata) == {
        "created_at": 5,
        "service_tier": "default",
        "conversation": {"id": "cv"},
    }


def test_a_faulty_copy_of_the_tools_in_the_end_costs_no_end() -> None:
    tools = [{"type": "function", "name": "f"}]
    assert reply(created(tools=tools), text("a"), completed(tools=3)).status == "complete"


@pytest.mark.parametrize(
    ("why", "reason", "status"),
    [
        ("max_output_tokens", "length", "length"),
        ("content_filter", "content_filter", "complete"),
        ("max_tool_calls", "stop", "complete"),
        ("steered", "stop", "complete"),
    ],
)
def test_an_incomplete_response_says_why(why: str, reason: str, status: str) -> None:
    snapshot = reply(created(), text("a"), incomplete(reason=why))
    assert (snapshot.finish_reason, snapshot.status, snapshot.provider_finish_reason) == (
        reason,
        status,
        "incomplete",
    )
    assert snapshot.to_message().text == "a"
    assert thaw(snapshot.metadata["incomplete_details"]) == {"reason": why}


def test_a_call_whose_arguments_had_ended_is_whole_though_the_end_of_its_item_was_lost() -> None:
    ended = event("function_call_arguments.done", 0, arguments='{"x": 1}')
    chunks = [added(function(call_id="c1"), 0), arguments('{"x": 1}', 0), ended]
    cut = [added(function(call_id="c2"), 1), arguments('{"x": 2}', 1)]
    snapshot = reply(created(), *chunks, *cut, incomplete(reason="max_output_tokens"))
    assert [call.call_id for call in snapshot.tool_calls] == ["c1"]
    assert [call.call_id for call in snapshot.invalid_tool_calls] == ["c2"]


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


def test_completed_may_say_that_it_is_incomplete() -> None:
    chunk = incomplete()
    assert reply(created(), {**chunk, "type": "response.completed"}).finish_reason == "length"
    assert reply(created(), {**completed(), "type": "response.done"}).finish_reason == "stop"


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


def test_a_stream_without_its_last_event_was_cut_off() -> None:
    snapshot = reply(created(), added(message()), text("a"), done(message(part("a"))))
    assert snapshot.status == "incomplete"
    with pytest.raises(rd.IncompleteMessageError):
        snapshot.to_message()


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


def test_another_response_may_follow_and_the_same_one_does_not() -> None:
    decoder = OpenAIResponsesDecoder()
    for chunk in (created(), completed()):
        decoder.decode(chunk)
    assert list(decoder.decode(created())) == []
    second = {**created(), "response": response(id="resp_2")}
    assert names(decoder.decode(second)) == ["message-start"]


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    body = completed(*WHOLE, service_tier="default")["response"]
    begins = [
        {name: [] if isinstance(value, list) else value for name, value in item.items() if name != "status"}
        for item in WHOLE
    ]
    stream = [
        created(),
        *(chunk for n, item in enumerate(WHOLE) for chunk in (added(begins[n], n), done(item, n))),
        {"type": "response.completed", "response": body},
    ]
    found = decode(body)
    assert violations(found) == []
    assert fold(found).to_message() == reply(*stream).to_message()


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


def test_a_value_that_is_nested_too_deep_costs_nothing_else() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    item = message(part("a"), extra=deep)
    assert reply(created(), done(item), completed(item)).text == "a"


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


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (created(), True),
        (text("a"), True),
        (completed(), True),
        ({"type": "response.steer.pending"}, True),
        (response("completed", output=[]), True),
        (response("failed", error={"message": "m"}), True),
        ({"type": "error", "sequence_number": 2, "error": {"message": "m"}}, True),
        ({"type": "error", "code": None, "message": "m", "param": None}, True),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, False),
        ({"type": "message_start", "message": {}}, False),
        ({"type": "message", "role": "assistant", "content": []}, False),
        ({"object": "chat.completion.chunk", "choices": []}, False),
        ({"object": "response.deleted"}, False),
        ({"type": ["response."]}, False),
        ({}, False),
    ],
)
def test_recognises_a_first_chunk(first: Chunk, known: bool) -> None:
    assert recognises(first) is known
    if known:
        assert rd.providers.detect(first) == "openai-responses"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def odd(*plausible: Any) -> st.SearchStrategy[Any]:
    """Nearly always one of these, now and then anything."""
    return st.one_of(st.sampled_from(plausible), st.sampled_from(plausible), st.sampled_from(plausible), JSON)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Chunk]:
    return st.fixed_dictionaries({}, optional=fields)


TEXTS = odd("", "a", "\ud83d", '{"x":', "1}", "{}", None)


INDEXES = odd(0, 0, 1, 2, None)


IDS = odd("a", "b", "", None)


KINDS = [
    *(
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "mcp_call",
        "shell_call",
        "apply_patch_call",
    ),
    *(
        "code_interpreter_call",
        "web_search_call",
        "file_search_call",
        "image_generation_call",
        "tool_search_call",
    ),
    *(
        "shell_call_output",
        "tool_search_output",
        "program",
        "compaction",
        "mcp_list_tools",
        "odd",
        "odd_call",
    ),
]


PART = some(
    type=odd("output_text", "refusal", "reasoning_text", "summary_text", "odd"), text=TEXTS, refusal=TEXTS,
    annotations=st.lists(some(type=odd("url_citation"), url=TEXTS, start_index=JSON), max_size=2), logprobs=odd([], [1]),
)  # fmt: skip


ITEM = some(
    type=odd(*KINDS), id=IDS, call_id=IDS, name=odd("f", "", None), status=odd("in_progress", "completed", "incomplete"),
    content=st.lists(PART, max_size=2) | TEXTS, summary=st.lists(PART, max_size=2), encrypted_content=TEXTS,
    arguments=TEXTS | st.just({"x": 1}), input=TEXTS, code=TEXTS, action=odd({"commands": ["a"]}, {}, None),
    operation=odd({"type": "update_file", "path": "a", "diff": "b"}, None), output=TEXTS, outputs=odd([], [1], None),
    result=TEXTS, error=odd(None, "e", {"message": "m"}), environment=odd(None, {"type": "local"}, {"type": "c"}),
    execution=odd("server", "client"), tools=odd([], [{}]), results=odd(None, [1]), other=JSON, index=JSON, data=JSON,
)  # fmt: skip


RESPONSE = some(
    id=IDS, object=odd("response"), model=odd("m", ""), status=odd("completed", "incomplete", "failed", "queued", None),
    output=st.lists(ITEM, max_size=3), usage=odd(None, USAGE), error=odd(None, None, {"message": "m"}), other=JSON,
    incomplete_details=odd(None, {"reason": "max_output_tokens"}), tools=odd([], [{"type": "custom", "name": "f"}], None),
)  # fmt: skip


EVENTS = [
    *("created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled", "done"),
    *("output_item.added", "output_item.added", "output_item.added", "output_item.done", "output_item.done"),
    *(
        "content_part.added",
        "content_part.done",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
    ),
    *("output_text.annotation.added", "refusal.delta", "refusal.done", "reasoning_part.added", "audio.delta"),
    *("reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
    *(
        "reasoning_text.delta",
        "reasoning_text.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
    ),
    *(
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "mcp_call_arguments.delta",
        "mcp_call.failed",
    ),
    *(
        "code_interpreter_call_code.delta",
        "shell_call_command.added",
        "shell_call_command.delta",
        "audio.done",
    ),
    *(
        "apply_patch_call_operation_diff.delta",
        "web_search_call.searching",
        "image_generation_call.partial_image",
        "shell_call_output_content.delta",
        "shell_call_output_content.done",
    ),
    *("audio.transcript.delta", "odd", "odd_call.hum"),
]


CHUNK = some(
    type=odd(*(f"response.{name}" for name in EVENTS), "keepalive", "error"), output_index=INDEXES, content_index=INDEXES,
    summary_index=INDEXES, command_index=INDEXES, annotation_index=INDEXES, item_id=IDS, text=TEXTS,
    delta=TEXTS | some(stdout=TEXTS, stderr=TEXTS), output=st.lists(JSON, max_size=2), partial_image_b64=TEXTS,
    partial_image_index=INDEXES,
    refusal=TEXTS, arguments=TEXTS, input=TEXTS, code=TEXTS, diff=TEXTS, command=TEXTS, part=PART, item=ITEM,
    response=RESPONSE, annotation=some(url=TEXTS, title=JSON), logprobs=odd([], [1], None), other=JSON,
)  # fmt: skip


@pytest.mark.slow
@given(chunks=st.lists(st.one_of(CHUNK, CHUNK, CHUNK, CHUNK, RESPONSE, JSON), max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_json_gives_lawful_events_or_a_named_error_and_nothing_else(chunks: list[Any]) -> None:
    decoder, found = OpenAIResponsesDecoder(), list[Event]()
    for one in chunks:
        with suppress(MalformedChunkError, LimitExceededError):
            found += decoder.decode(one)
        if isinstance(one, dict):
            recognises(one)
    found += decoder.close()

    starts = [n for n, one in enumerate(found) if one.event == "message-start"]
    for begin, end in zip(starts or [0], [*starts[1:], len(found)]):
        said = found[begin:end]
        assert set(violations(said)) <= {"missing_message_start", "missing_message_finish", "error_event"}
        Snapshot.from_dict(fold(said).to_dict())
    for one in found:
        events.from_dict(one.to_dict())


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
