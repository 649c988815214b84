"""Formats whose chunks say to which run they belong: each run is decoded by itself, and its events name it."""

from __future__ import annotations

from typing import Any

import pytest

import rxdelta as rd


def text_of(events: list[rd.Event], run_id: str | None) -> str:
    return "".join(
        event.text for event in events if isinstance(event, rd.events.TextDelta) and event.run_id == run_id
    )


def decoded(wire_format: str, chunks: list[Any], **options: Any) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format, **options)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def chunk(run_id: str | None, content: str, **more: Any) -> dict[str, Any]:
    """A chunk of LangChain's, of a run where there is one."""
    message = {"type": "AIMessageChunk", "content": content, "id": "m", **more}
    run = {"event": "on_chat_model_stream", "run_id": run_id, "parent_ids": ["p", "q"]}
    return message if run_id is None else {**run, "data": {"chunk": message}}


def test_every_event_of_a_run_names_it_and_its_start_the_parent() -> None:
    last = {"response_metadata": {"stop_reason": "end_turn"}, "chunk_position": "last"}
    alone = decoded("langchain", [chunk(None, "Hi"), chunk(None, "", **last)])
    events = decoded("langchain", [chunk("r", "Hi"), chunk("r", "", **last)])
    assert [event.to_dict() for event in events] == [
        {**event.to_dict(), "run_id": "r", **({"parent_run_id": "p"} if not place else {})}
        for place, event in enumerate(alone)
    ]
    assert {event.run_id for event in alone} == {None}


def test_each_run_has_its_own_tags_and_repetitions() -> None:
    pieces = [("a", "<th"), ("b", "<think>x"), (None, "pl"), ("a", "ink>A</think>B"), ("b", "y</think>z"), (None, "ain")]  # fmt: skip
    events = decoded("langchain", [chunk(*piece) for piece in pieces], reasoning_tags="think")
    assert [text_of(events, run) for run in ("a", "b", None)] == ["B", "z", "plain"]

    grows = [("a", "The tide is"), ("b", "It"), ("a", "The tide is high"), ("b", "It is six")]
    events = decoded("langchain", [chunk(*piece) for piece in grows], cumulative=True)
    assert [text_of(events, run) for run in ("a", "b")] == ["The tide is high", "It is six"]


def test_what_is_open_at_the_end_is_closed_in_the_order_of_the_runs() -> None:
    reason = {"response_metadata": {"finish_reason": "stop"}}
    runs = [None, "b", "a", "c"]
    events = decoded("langchain", [chunk(run, "x", **reason) for run in ("b", "a", None, "c")])
    assert [event.run_id for event in events[-4:]] == runs
    assert all(isinstance(event, rd.events.MessageFinish) for event in events[-4:])


def test_runs_that_have_ended_are_forgotten_and_too_many_open_ones_refused() -> None:
    decoder = rd.providers.decoder("langchain")
    most = rd.Limits().runs
    for number in range(most):
        run = {"event": "on_chat_model_start", "run_id": f"open {number}", "data": {}}
        decoder.decode(run)
        if number % 2:
            decoder.decode({**run, "event": "on_chat_model_end"})
    for number in range(most // 2):
        decoder.decode({"event": "on_chat_model_start", "run_id": f"more {number}", "data": {}})
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        decoder.decode(chunk("one more", "x"))
    assert caught.value.limit == "runs"


def test_a_run_of_events_is_forgotten_with_its_message() -> None:
    decoder = rd.providers.decoder("langchain")
    for number in range(rd.Limits().runs + 1):
        for name in ("message-start", "message-finish"):
            params = {"data": ({"event": name}, {"run_id": f"r{number}"})}
            (event,) = decoder.decode({"type": "event", "method": "messages", "params": params})
            assert event.run_id == f"r{number}"


def test_a_message_ends_with_its_run() -> None:
    decoder = rd.providers.decoder("langchain")
    decoder.decode(chunk("r", "Hi", response_metadata={"finish_reason": "stop"}))
    *_, finish = decoder.decode({"event": "on_chat_model_end", "run_id": "r", "data": {}})
    assert finish == rd.events.MessageFinish("stop", "stop", run_id="r")


def test_the_error_of_a_runs_chunk_is_the_formats() -> None:
    decoder = rd.providers.decoder("langchain")
    decoder.decode(chunk("a", "x"))
    with pytest.raises(rd.errors.MalformedChunkError, match=r"data\.chunk\.tool_call_chunks"):
        decoder.decode(chunk("a", "", tool_call_chunks=1))


def test_our_own_events_keep_their_run_and_a_namespace_comes_before_it() -> None:
    start = rd.events.MessageStart("m", run_id="r", parent_run_id="p")
    text = rd.events.TextDelta(0, "Hi", run_id="r")
    assert decoded("langchain", [start.to_dict(), text.to_dict()]) == [start, text]
    params = {"namespace": ["a"]}
    frames = [
        {"type": "event", "method": "messages", "params": {**params, "data": event.to_dict()}}
        for event in (start, text)
    ]
    assert decoded("langchain", frames) == [
        rd.events.MessageStart("m", run_id="a/r", parent_run_id="a/p"),
        rd.events.TextDelta(0, "Hi", run_id="a/r"),
    ]


# Responses over a WebSocket.


def response(stream_id: str | None, response_id: str, *pieces: str) -> list[dict[str, Any]]:
    lane = {} if stream_id is None else {"stream_id": stream_id}
    item = {"id": "msg", "type": "message", "content": [{"type": "output_text", "text": "".join(pieces)}]}
    delta = {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "msg"}
    created = {"id": response_id, "model": "m", "status": "in_progress"}
    return [
        {"type": "response.created", "response": created, **lane},
        *({**delta, "delta": piece, **lane} for piece in pieces),
        {"type": "response.output_item.done", "output_index": 0, "item": item, **lane},
        {"type": "response.completed", "response": {**created, "status": "completed"}, **lane},
    ]


def test_a_stream_of_responses_is_a_run() -> None:
    lanes = [
        response("a", "r1", "Pa", "ris"),
        response("b", "r2", "Ro", "me"),
        response(None, "r3", "Ber", "lin"),
    ]
    woven = [event for events in zip(*lanes, strict=True) for event in events]
    events = decoded("openai-responses", woven)
    assert [text_of(events, run) for run in ("a", "b", None)] == ["Paris", "Rome", "Berlin"]
    starts = [event for event in events if isinstance(event, rd.events.MessageStart)]
    assert [(start.id, start.run_id) for start in starts] == [("r1", "a"), ("r2", "b"), ("r3", None)]


def test_a_stream_of_responses_has_one_after_the_other() -> None:
    woven = [
        *response("a", "r1", "Paris")[:2],
        *response("b", "r2", "Rome"),
        *response("a", "r1", "Paris")[2:],
        *response("a", "r3", "Berlin"),
    ]
    events = decoded("openai-responses", woven)
    assert [text_of(events, run) for run in ("a", "b")] == ["ParisBerlin", "Rome"]
    ends = [event.run_id for event in events if isinstance(event, rd.events.MessageFinish)]
    assert ends == ["b", "a", "a"]


def test_an_event_of_the_openai_package_has_a_run() -> None:
    types = pytest.importorskip("openai.types.responses")
    created, *_ = response("a", "r1")
    events = decoded("openai-responses", [types.ResponseCreatedEvent.construct(**created)])
    assert events == [rd.events.MessageStart("r1", "m", run_id="a")]


def test_a_run_has_a_name_that_can_be_written() -> None:
    item = {"event": "on_chat_model_stream", "run_id": "a\ud83d", "parent_ids": ["p\ud83d"]}
    chunk = {"type": "AIMessageChunk", "content": "Hi", "id": "m"}
    events = rd.providers.decoder("langchain").decode({**item, "data": {"chunk": chunk}})
    assert {event.run_id for event in events} == {"a\ufffd"}
    assert events[0].to_dict()["parent_run_id"] == "p\ufffd"


@pytest.mark.parametrize("run_id", [None, "r"])
@pytest.mark.parametrize(("again", "ids"), [('{"a":1}', ["c"]), ('{"a":2}', ["c", "c-2"])])
def test_a_call_is_known_within_its_run(run_id: str | None, again: str, ids: list[str]) -> None:
    chunks: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "m"}}]
    for place, arguments in enumerate(['{"a":1}', again]):
        call = {"type": "function_call", "id": f"f{place}", "call_id": "c", "name": "f", "arguments": ""}
        ended = {**call, "arguments": arguments}
        chunks.append({"type": "response.output_item.added", "output_index": place, "item": call})
        chunks.append({"type": "response.output_item.done", "output_index": place, "item": ended})
    run = {} if run_id is None else {"stream_id": run_id}
    events = decoded("openai-responses", [{**chunk, **run} for chunk in chunks])
    starts = [event for event in events if isinstance(event, rd.events.BlockStart)]
    assert [start.content["id"] for start in starts] == ids
    assert {event.run_id for event in events} == {run_id}
