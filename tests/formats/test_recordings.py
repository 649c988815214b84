"""Every recorded stream of a format folds to what it must, whole and in any pieces."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
import reactivex as rx
from reactivex.subject import Subject
from support.expectation import expected_of, in_order, order_of, told_by
from support.rechunk import as_sse, single_characters
from support.shared import recordings

import rxdelta as rd

FORMATS = (
    "anthropic-messages",
    "openai-chat",
    "openai-responses",
    "bedrock-converse",
    "cohere",
    "ollama",
    "gemini",
    "gemini-interactions",
    "mistral",
    "openai-completions",
)
CASES = [
    pytest.param(wire_format, *case.values, id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in FORMATS
    for case in recordings(wire_format)
]
BLOCK_PROTOCOLS = ("anthropic-messages", "bedrock-converse")


def fold(source: rx.Observable[Any], wire_format: str, choice: int = 0) -> list[rd.Snapshot]:
    """All snapshots; those before the error, if the stream has one."""
    snapshots: list[rd.Snapshot] = []
    errors: list[Exception] = []
    source.pipe(rd.decode(wire_format), rd.scan_deltas(choice=choice)).subscribe(
        snapshots.append, errors.append
    )
    for error in errors:
        assert isinstance(error, rd.ProviderError), repr(error)
        if not snapshots:  # an error and nothing else
            return [rd.Snapshot()]
        assert error.snapshot is snapshots[-1]
    return snapshots


def last(chunks: Iterable[Any], wire_format: str, choice: int = 0) -> rd.Snapshot:
    return fold(rx.from_iterable(list(chunks)), wire_format, choice)[-1]


def whole(chunks: list[Any], wire_format: str, expected: dict[str, Any]) -> dict[int, dict[str, Any]]:
    choices = sorted(int(index) for index in expected.get("choices", {0: 0}))
    return {choice: last(chunks, wire_format, choice).to_dict() for choice in choices}


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_folds_to_the_expectation(wire_format: str, chunks: list[Any], expected: dict[str, Any]) -> None:
    reply = last(chunks, wire_format)

    told, wanted = told_by(reply), expected_of(expected)
    if wire_format not in BLOCK_PROTOCOLS:  # of which the reference reads no server tools
        told["server_tool_calls"] = wanted["server_tool_calls"] = []
    assert told == wanted
    assert (reply.id, reply.model) == (expected["response_id"] or None, expected["model"] or None)
    usage = reply.usage
    figures = None if usage is None else (usage.input_tokens, usage.output_tokens, rd.core.thaw(usage.raw))
    spent = expected["usage"]
    assert figures == (None if spent is None else (spent["input"], spent["output"], spent["raw"]))
    if wire_format in BLOCK_PROTOCOLS:
        assert order_of(reply) == in_order(expected)
    for index, choice in expected.get("choices", {}).items():
        other = last(chunks, wire_format, int(index))
        assert (other.choice, other.text) == (int(index), choice["text"])
        assert other.provider_finish_reason == choice["finish_reason"]


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_a_finished_stream_is_a_message(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    reply = last(chunks, wire_format)
    failed = expected["finish_reason"] == "failed"  # the reference takes it for an end, we for an error
    # A prompt that was refused has no finish reason, to the reference no end; to us that is a whole reply.
    blocked = "blockReason" in expected.get("prompt_feedback", ())
    # Nor has a reply to which only the closing usage says that it is whole.
    closed = wire_format == "openai-chat" and chunks[-1].get("usage") and not chunks[-1].get("choices")
    ended = expected["finish_reason"] is not None or expected.get("complete") or blocked or closed
    if failed or not ended:
        assert reply.status == "incomplete"
        with pytest.raises(rd.IncompleteMessageError):
            reply.to_message()
        return
    message = reply.to_message()
    assert message.violations == {}
    assert message.finish_reason in ("stop", "length", "tool_use", "content_filter")
    assert message.status == ("length" if message.finish_reason == "length" else "complete")
    assert rd.Message.from_dict(message.to_dict()) == message
    assert not any(block.open for block in reply.blocks)


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_a_hot_source_gives_the_same(wire_format: str, chunks: list[Any], expected: dict[str, Any]) -> None:
    hot: Subject[Any] = Subject()
    snapshots: list[rd.Snapshot] = []
    hot.pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(snapshots.append, lambda error: None)
    for chunk in chunks:
        hot.on_next(chunk)
    hot.on_completed()
    assert (snapshots or [rd.Snapshot()])[-1] == last(chunks, wire_format)


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_single_characters_give_the_same(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    pieces = single_characters(wire_format, chunks)
    assert whole(pieces, wire_format, expected) == whole(chunks, wire_format, expected)


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_sse_cut_at_every_byte_gives_the_same(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    body = as_sse(chunks)  # which ends with [DONE]
    source = rx.from_iterable([body[n : n + 1] for n in range(len(body))])
    assert fold(source.pipe(rd.parse_sse()), wire_format)[-1] == last([*chunks, rd.wire.DONE], wire_format)


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_every_prefix_is_a_valid_incomplete_snapshot(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    """Cut after any chunk: nothing is called complete that isn't, and what had come stays."""
    snapshots = fold(rx.from_iterable(chunks), wire_format)
    finished = [snapshot for snapshot in snapshots if snapshot.status != "incomplete"]
    assert len({snapshot.status for snapshot in finished}) <= 1
    for snapshot, later in pairwise(snapshots):
        for block, after in zip(snapshot.blocks, later.blocks):
            if isinstance(block, rd.ContentPart) and isinstance(after, rd.ContentPart):
                assert (after.text or "").startswith(block.text or "")
            if (
                isinstance(block, rd.ToolCall)
                and isinstance(after, rd.ToolCall)
                and block.status == "complete"
            ):
                assert after.status == "complete"
                assert after.arguments == block.arguments


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_the_events_keep_the_protocol(wire_format: str, chunks: list[Any], expected: dict[str, Any]) -> None:
    broken: list[tuple[str, object]] = []
    rx.from_iterable(chunks).pipe(
        rd.decode(wire_format), rd.validate(lambda violation, event: broken.append((violation, event)))
    ).subscribe(on_error=lambda error: None)
    assert [violation for violation, _ in broken if violation != "missing_message_finish"] == []


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_events_survive_their_wire_form(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    decoder = rd.providers.decoder(wire_format)
    for event in [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]:
        assert rd.events.from_dict(event.to_dict()) == event


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_the_first_chunk_tells_the_format(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    assert rd.providers.detect(chunks[0]) == wire_format


@pytest.mark.parametrize(("wire_format", "chunks", "expected"), CASES)
def test_a_half_built_snapshot_can_be_stored_and_continued(
    wire_format: str, chunks: list[Any], expected: dict[str, Any]
) -> None:
    decoder = rd.providers.decoder(wire_format)
    events = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    events = [event for event in events if not isinstance(event, rd.events.StreamError)]
    whole = rd.Fold(choice=0)
    for event in events:
        whole.step(event)
    half = rd.Fold(choice=0)
    for event in events[: len(events) // 2]:
        half.step(event)
    resumed = rd.Fold(rd.Snapshot.from_dict(half.snapshot.to_dict()))
    told = rd.Fold(choice=0)
    for event in rd.to_events(half.snapshot):
        told.step(event)
    assert told.snapshot == half.snapshot
    for event in events[len(events) // 2 :]:
        resumed.step(event)
    assert resumed.snapshot == whole.snapshot
