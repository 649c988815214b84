"""The sources that texts cite, in the UI message stream."""

from __future__ import annotations

from support.ai_sdk import (
    TEXT,
    of_type,
    told,
    whole,
)

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
