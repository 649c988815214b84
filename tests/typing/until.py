"""What the checkers infer of `until_all_tools_terminal` and `stable_blocks`. Never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import reactivex as rx
from reactivex import Observable, operators as ops

import rxdelta as rd


def up_to_the_last_tool(
    events: Observable[rd.Event], updates: Observable[rd.Event], snapshots: Observable[rd.Snapshot]
) -> None:
    until = rd.until_all_tools_terminal()
    assert_type(until, Callable[[Observable[rd.Snapshot]], Observable[rd.Snapshot]])
    assert_type(snapshots.pipe(until), Observable[rd.Snapshot])
    assert_type(
        snapshots.pipe(rd.throttle_latest(0.05), until, rd.to_message()),
        Observable[rd.Message],
    )
    assert_type(
        rx.merge(events, updates).pipe(rd.run_tools({}), rd.scan_deltas(), rd.until_all_tools_terminal()),
        Observable[rd.Snapshot],
    )


def blocks_and_tail(events: Observable[rd.Event], markdown: rd.types.StableMarkdown) -> None:
    assert_type(events.pipe(rd.stable_blocks()), Observable[rd.types.StableMarkdown])
    assert_type(
        events.pipe(rd.stable_blocks(), rd.with_limits(rd.Limits())), Observable[rd.types.StableMarkdown]
    )
    assert_type(events.pipe(rd.stable_blocks(), ops.map(sealed)), Observable[tuple[str, ...]])
    assert_type(markdown.tail, str)
    assert_type(markdown.text, str)
    assert_type(rd.building.MarkdownSplitter().feed("a"), rd.types.StableMarkdown)
    assert_type(rd.building.MarkdownSplitter().finish(), rd.types.StableMarkdown)


def sealed(markdown: rd.types.StableMarkdown) -> tuple[str, ...]:
    return markdown.sealed
