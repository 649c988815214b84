"""Writers of a message and its blocks."""

from __future__ import annotations

from typing import Any

import pytest

from rxdelta.core.events import (
    BlockDelta,
)
from rxdelta.formats.block_events import BlockWriter


def writer(choice: int = 0, message_id: str | None = "m1") -> BlockWriter:
    return BlockWriter([], choice, message_id)


class TestTheCurrentBlock:
    @pytest.mark.parametrize(
        ("known", "fields", "expected"),
        [
            ({"signature": "a"}, {"signature": "b"}, True),
            ({"signature": "a"}, {"signature": "a"}, False),
            ({"signature": "a"}, {}, False),
            ({}, {"signature": "b"}, False),
        ],
    )
    def test_two_signatures_need_two_blocks(self, known: Any, fields: Any, expected: bool) -> None:
        blocks = writer()
        blocks.begin({"type": "text", "text": "", **known}, known)
        assert blocks.is_signed_otherwise(fields) is expected


class TestCitations:
    def test_they_are_emitted_whole_when_they_have_grown_by_an_eighth(self) -> None:
        blocks = writer()
        blocks.write("text", "a")
        for number in range(1_000):
            blocks.cite([{"title": str(number)}])
        blocks.end_current()
        lists = [event.fields["citations"] for event in blocks.out if isinstance(event, BlockDelta)]
        assert [citation["title"] for citation in lists[-1]] == [str(number) for number in range(1_000)]
        assert sum(map(len, lists)) < 10 * 1_000
