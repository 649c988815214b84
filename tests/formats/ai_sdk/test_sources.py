"""The sources that texts cite, in the UI message stream."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk import OUTPUT, SERVER, START, TEXT, frames_of, of_type, read, told, types, whole

import rxdelta as rd

ev = rd.events


def test_a_source_is_told_once_and_its_citations_with_their_text() -> None:
    cited = [{"url": "https://a", "title": "A", "start_index": 0, "end_index": 2}, {"url": "https://a"}]
    named = [{"title": "B", "cited_text": "b"}, {"cited_text": "nobody's"}]
    frames = told(
        *TEXT[:2],
        ev.BlockDelta(0, {"citations": cited}),
        ev.BlockDelta(0, {"citations": [*cited, *named]}),
        TEXT[2],
        *whole({"type": "text", "text": "x", "citations": cited}),
    )
    assert [frame["url"] for frame in of_type("source-url", frames)] == ["https://a"]
    assert [frame["title"] for frame in of_type("source-document", frames)] == ["B"]
    first = of_type("text-end", frames)[0]
    assert [citation["source"]["sourceType"] for citation in first["citations"]] == ["url", "url", "document"]
    assert (first["citations"][0]["startIndex"], first["citations"][0]["endIndex"]) == (0, 2)
    assert len(first["providerMetadata"]["rxdelta"]["citations"]) == 4


def test_older_clients_have_no_citations() -> None:
    frames = told(*whole({"type": "text", "text": "x", "citations": [{"url": "https://a"}]}), sdk_version=6)
    assert "citations" not in of_type("text-end", frames)[0]


FOUND = [
    {"type": "web_search_result", "url": "https://a", "title": "A"},
    {"url": "ftp://b"},
    {"type": "image", "url": "https://i"},
]


@pytest.mark.parametrize(
    "events",
    [
        [*whole(SERVER, 0), *whole({**OUTPUT, "output": FOUND}, 1)],
        [*whole(SERVER, 0), *whole({**OUTPUT, "output": {"url": "https://a", "content": {"title": "A"}}}, 1)],
        whole({**SERVER, "args": {"action": {"type": "search", "sources": [*FOUND, *FOUND]}}}, 0),
        whole({**SERVER, "args": {}, "name": "x"}, 0),
    ],
)
def test_what_a_search_has_found_is_a_source_if_it_is_asked_for(events: list[Any]) -> None:
    metadata = {"groundingMetadata": {"groundingChunks": [{"web": {"uri": "https://a", "title": "A"}}]}}
    stop = ev.MessageFinish("stop", metadata=metadata)
    assert of_type("source-url", frames_of([START, *events, stop])) == []
    frames = frames_of([START, *events, stop], sources="results")
    read(frames)
    assert [(one["url"], one["title"]) for one in of_type("source-url", frames)] == [("https://a", "A")]
    decoder = rd.providers.decoder("ai-sdk")
    (finish,) = [
        one for frame in frames for one in decoder.decode(frame) if isinstance(one, ev.MessageFinish)
    ]
    assert "sources" not in finish.metadata


def test_a_source_that_was_found_and_is_cited_is_told_once() -> None:
    found = [*whole(SERVER, 0), *whole({**OUTPUT, "output": FOUND}, 1)]
    cited = whole({"type": "text", "text": "x", "citations": [{"url": "https://a", "title": "A"}]}, 2)
    frames = told(*found, *cited, sources="results")
    (source,) = of_type("source-url", frames)
    (end,) = of_type("text-end", frames)
    assert end["citations"][0]["source"]["id"] == source["sourceId"]


def test_sources_are_told_again_behind_a_correction() -> None:
    found = [*whole(SERVER, 0), *whole({**OUTPUT, "output": FOUND}, 1)]
    stale = [ev.BlockStart(2, {"type": "text", "text": "It was"}), ev.BlockFinish(2, {"text": "It is"})]
    frames = told(*found, *stale, sources="results")
    assert types(frames).count("reset-step") == 1
    assert len(of_type("source-url", frames[types(frames).index("reset-step") :])) == 1


def test_other_sources_are_refused() -> None:
    wrong: Any = "all"
    with pytest.raises(rd.InvalidValueError, match="sources"):
        rd.to_ai_sdk(sources=wrong)
