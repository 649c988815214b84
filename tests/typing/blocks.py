"""What type checkers infer of blocks' streams. Never run."""

from __future__ import annotations

from typing import assert_type

from reactivex import Observable, operators as ops
from reactivex.subject import Subject

import rxdelta as rd


def text_of(block: rd.ContentPart | rd.ToolCall) -> str:
    raise NotImplementedError


def streams(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.group_by_block()), Observable[rd.types.BlockStream])
    assert_type(
        events.pipe(rd.group_by_block(), rd.with_limits(rd.Limits(blocks=8))),
        Observable[rd.types.BlockStream],
    )
    assert_type(events.pipe(rd.group_by_choice()), Observable[rd.types.ChoiceStream])
    assert_type(events.pipe(rd.group_by_message()), Observable[rd.types.MessageStream])
    assert_type(events.pipe(rd.group_by_run()), Observable[rd.types.RunStream])
    assert_type(
        events.pipe(rd.group_by_run(), rd.with_limits(rd.Limits(runs=8))), Observable[rd.types.RunStream]
    )
    assert_type(events.pipe(rd.with_run("a")), Observable[rd.Event])
    own: Subject[rd.events.Custom] = Subject()
    assert_type(events.pipe(rd.with_custom(own)), Observable[rd.Event])
    assert_type(events.pipe(rd.with_run("a", parent="b"), rd.scan_deltas()), Observable[rd.Snapshot])


def one_run(run: rd.types.RunStream, message: rd.types.MessageStream) -> None:
    assert_type(run.run_id, str | None)
    assert_type(run.parent_run_id, str | None)
    assert_type(message.run_id, str | None)
    assert_type(message.parent_run_id, str | None)
    assert_type(run.pipe(rd.group_by_message()), Observable[rd.types.MessageStream])


def one_block(block: rd.types.BlockStream) -> None:
    assert_type(block.index, int | str)
    assert_type(block.choice, int)
    assert_type(block.kind, str)
    assert_type(block.call_id, str | None)
    assert_type(block.name, str | None)
    assert_type(block.pipe(rd.throttle_latest(0.05)), Observable[rd.ContentPart | rd.ToolCall])


def pipelines(events: Observable[rd.Event]) -> None:
    def texts(block: rd.types.BlockStream) -> Observable[str]:
        return block.pipe(ops.map(text_of))

    paced = events.pipe(rd.per_block(lambda block: block.pipe(rd.throttle_latest(0.05))))
    assert_type(paced, Observable[rd.ContentPart | rd.ToolCall])
    assert_type(events.pipe(rd.per_block(texts)), Observable[str])
    assert_type(events.pipe(rd.per_block(lambda block: block)), Observable[rd.ContentPart | rd.ToolCall])


def events_of_streams(choice: rd.types.ChoiceStream, message: rd.types.MessageStream) -> None:
    assert_type(choice.choice, int)
    assert_type(choice.pipe(rd.scan_deltas(), rd.to_message()), Observable[rd.Message])
    assert_type(message.id, str | None)
    assert_type(message.pipe(rd.per_block(lambda block: block.pipe(ops.map(text_of)))), Observable[str])


def wrong(events: Observable[rd.Event], snapshots: Observable[rd.Snapshot]) -> None:
    snapshots.pipe(rd.group_by_block())  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    events.pipe(rd.per_block(lambda block: block.name))  # type: ignore[arg-type,return-value]  # pyright: ignore[reportArgumentType]
