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


def test_each_run_has_its_own_tags_and_repetitions() -> None:
    pieces = [("a", "<th"), ("b", "<think>x"), (None, "pl"), ("a", "ink>A</think>B"), ("b", "y</think>z"), (None, "ain")]  # fmt: skip
    events = decoded("langchain", [chunk(*piece) for piece in pieces], reasoning_tags="think")
    assert [text_of(events, run) for run in ("a", "b", None)] == ["B", "z", "plain"]

    grows = [("a", "The tide is"), ("b", "It"), ("a", "The tide is high"), ("b", "It is six")]
    events = decoded("langchain", [chunk(*piece) for piece in grows], cumulative=True)
    assert [text_of(events, run) for run in ("a", "b")] == ["The tide is high", "It is six"]


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
