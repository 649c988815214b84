"""LangChain's decoder as a whole: what is malformed, and anything at all."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.chunks import STREAM, chunk, decoded, folded

import rxdelta as rd


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (None, ""),
        ([], ""),
        ("x", ""),
        (b"x", ""),
        ({"content": 1}, "content"),
        ({"content": [1]}, "content[0]"),
        ({"content": [{"type": "text", "text": 1}]}, "content[0].text"),
        ({"content": [{"type": "text", "text": "", "annotations": 1}]}, "content[0].annotations"),
        ({"content": "", "tool_call_chunks": 1}, "tool_call_chunks"),
        ({"content": "", "tool_call_chunks": [1]}, "tool_call_chunks[0]"),
        ({"content": "", "tool_call_chunks": [{"name": 1}]}, "tool_call_chunks[0].name"),
        ({"content": "", "tool_call_chunks": [{"args": 1}]}, "tool_call_chunks[0].args"),
        ({"content": "", "usage_metadata": 1}, "usage_metadata"),
        ({"content": "", "response_metadata": 1}, "response_metadata"),
        ({"content": "", "additional_kwargs": 1}, "additional_kwargs"),
        ({"content": "", "id": 1}, "id"),
        ({"lc": 1, "type": "constructor", "kwargs": {"content": 1}}, "kwargs.content"),
    ],
)
def test_what_is_malformed_is_named_by_its_path(found: Any, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decoded(found)
    assert (caught.value.wire_format, caught.value.path) == ("langchain", path)


def test_what_came_before_the_fault_is_not_lost() -> None:
    decoder = rd.providers.decoder("langchain")
    with pytest.raises(rd.errors.MalformedChunkError):
        decoder.decode(chunk(["a", 1]))
    assert decoder.decode(chunk("b"))[0].event == "message-start"


@pytest.mark.parametrize("place", range(len(STREAM)))
def test_a_stream_with_a_chunk_lost_doubled_or_swapped(place: int) -> None:
    for mangled in (
        [*STREAM[:place], *STREAM[place + 1 :]],
        [*STREAM[: place + 1], *STREAM[place:]],
        [*STREAM[:place], *reversed(STREAM[place : place + 2]), *STREAM[place + 2 :]],
        STREAM[:place],
    ):
        reply = folded(*mangled)
        for one in reply.tool_calls:
            assert one.status == "incomplete" or rd.core.thaw(one.arguments) in ({"at": "sea"}, {})
