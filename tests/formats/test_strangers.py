"""Streams that look like a known format's and are none."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from support.shared import RECORDED, recordings

import rxdelta as rd


def decoded(name: str, chunks: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(name)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def event(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "event_id": "event_1", **fields}


REALTIME = [
    event("session.created", session={"object": "realtime.session", "id": "sess_1"}),
    event("conversation.item.added", item={"object": "realtime.item", "id": "item_1"}),
    event("response.created", response={"object": "realtime.response", "id": "resp_1", "output": []}),
    {"type": "response.created", "response": {"object": "realtime.response", "id": "resp_1", "output": []}},
    event("response.output_item.added", response_id="resp_1", output_index=0, item={"type": "message"}),
    event("response.output_text.delta", response_id="resp_1", output_index=0, content_index=0, delta="Hi"),
    {"type": "response.output_audio.delta", "response_id": "resp_1", "output_index": 0, "delta": "AAAA"},
    event("response.output_audio_transcript.delta", output_index=0, delta="Hi"),
    event("response.done", response={"object": "realtime.response", "status": "cancelled"}),
    event("input_audio_buffer.speech_started", item_id="item_1"),
    event("rate_limits.updated", rate_limits=[]),
    {"object": "realtime.response", "id": "resp_1", "output": []},
]


@pytest.mark.parametrize("first", range(len(REALTIME)))
def test_realtime_is_refused_whatever_comes_first(first: int) -> None:
    with pytest.raises(rd.MalformedChunkError, match="OpenAI Realtime"):
        rd.providers.detect(REALTIME[first])
    for name in ("auto", "openai-responses", "openai-chat"):
        with pytest.raises(rd.MalformedChunkError, match=r"OpenAI Realtime.*Responses API"):
            decoded(name, REALTIME[first:])


def test_an_error_of_realtime_is_an_error() -> None:
    error = event("error", error={"type": "invalid_request_error", "message": "No", "event_id": "x"})
    assert isinstance(decoded("openai-responses", [error])[-1], rd.events.StreamError)


@pytest.mark.parametrize("wire_format", RECORDED)
def test_no_recorded_stream_is_refused(wire_format: str) -> None:
    for case in recordings(wire_format):
        if not case.marks:
            for chunk in case.values[0]:
                with suppress(rd.UnknownWireFormatError):
                    rd.providers.detect(chunk)
