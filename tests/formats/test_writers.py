"""What is written in a format is read by its decoder as the same reply, but for what the format says that it loses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.carried import table
from support.sdks_say import SAYS, ours
from support.shared import RECORDED, recordings
from support.written import overlap, read, told

import rxdelta as rd
from rxdelta.formats import registry
from rxdelta.testing.strategies import event_streams

ev = rd.events

WRITTEN = tuple(
    name for name in registry.names() if registry.is_own(name) and registry.get(name).writer is not None
)

CALL = rd.ToolCall(call_id="call_1", name="add", arguments={"a": 1, "b": [2, "é"]})
MESSAGE = rd.Message(
    id="m1",
    model="model-1",
    blocks=[rd.ContentPart("reasoning", "Hm."), rd.ContentPart("text", "Let me add."), CALL],
    finish_reason="tool_use",
    usage=rd.TokenUsage(3, 5),
)
TEXT = rd.Message(
    id="m1",
    model="model-1",
    blocks=[rd.ContentPart("text", "Hi.")],
    finish_reason="stop",
    usage=rd.TokenUsage(3, 5),
)


def small(wire_format: str) -> list[rd.Event]:
    """A reply that the format can carry."""
    return rd.to_events(MESSAGE if "tool_call" in registry.get(wire_format).carries else TEXT)


def same(events: list[rd.Event], wire_format: str) -> None:
    """Check that the events, once written, are read as the same reply."""
    chunks = rd.wire.write(events, wire_format, on_error=lambda _: "It failed.")
    back = read(json.loads(json.dumps(chunks, allow_nan=False)), wire_format)
    sort = "order" in registry.get(wire_format).loses and overlap(events)
    assert told(back, wire_format, sort=sort) == told(events, wire_format, sort=sort)
    failed = any(isinstance(event, ev.StreamError) for event in events)
    errors = [event.message for event in back if isinstance(event, ev.StreamError)]
    assert errors == ["It failed."] * failed


def is_carried(events: list[rd.Event], wire_format: str) -> bool:
    """Check the same, unless the format says that it can't carry the events."""
    refused = None
    try:
        same(events, wire_format)
    except rd.InvalidValueError as error:
        refused = str(error)
    assert refused is None or f"which a stream of {wire_format} can't carry" in refused
    return refused is None


# The law.


def replies(wire_format: str) -> st.SearchStrategy[list[rd.Event]]:
    """What can be compared: what waits for another block is lost if the reply breaks off, and so are some borders."""
    known = registry.get(wire_format)
    choices = 2 if "choices" in known.carries else 1
    together = event_streams(wire_format=wire_format, choices=choices)
    apart = event_streams(wire_format=wire_format, interleaved=False, ends={"whole", "cut", "failed"})
    return together.filter(lambda events: "borders" not in known.loses or not overlap(events)) | apart


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_what_is_written_is_read_as_the_same_reply(wire_format: str) -> None:
    @given(replies(wire_format))
    @settings(max_examples=25)
    def law(events: list[rd.Event]) -> None:
        same(events, wire_format)

    law()


@pytest.mark.parametrize(
    ("wire_format", "chunks"),
    [
        pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
        for wire_format in RECORDED
        if wire_format in WRITTEN
        for case in recordings(wire_format)
    ],
)
def test_a_recorded_stream_is_written_again_in_its_own_format(wire_format: str, chunks: list[Any]) -> None:
    is_carried(read(chunks, wire_format), wire_format)


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", RECORDED)
def test_recorded_streams_are_written_in_every_format_that_carries_them(wire_format: str) -> None:
    written = dict.fromkeys(WRITTEN, 0)
    for case in recordings(wire_format)[::5]:
        if case.marks:
            pytest.skip("the recordings are missing")
        events = read(case.values[0], wire_format)
        for other in WRITTEN:
            written[other] += is_carried(events, other)
    assert sum(written.values()) > 0


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_the_same_reply_becomes_the_same_chunks(wire_format: str) -> None:
    assert rd.wire.write(small(wire_format), wire_format) == rd.wire.write(
        iter(small(wire_format)), wire_format
    )


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_auto_recognises_what_is_written_by_its_first_chunk(wire_format: str) -> None:
    first = rd.wire.write(small(wire_format), wire_format)[0]
    assert rd.providers.detect(first) == wire_format


def numbered(chunk: Any, wire_format: str) -> tuple[str, Any]:
    """The kind of a chunk, and the number that it gives."""
    if wire_format == "bedrock-converse":
        ((kind, body),) = chunk.items()
        return kind, body.get("contentBlockIndex")
    return str(chunk.get("type", chunk.get("event_type"))), chunk.get("index")


@pytest.mark.parametrize(
    ("wire_format", "starts", "ends"),
    [
        ("anthropic-messages", ("content_block_start",), ("content_block_stop",)),
        ("bedrock-converse", (), ("contentBlockStop",)),
        (
            "cohere",
            ("content-start", "tool-call-start", "citation-start"),
            ("content-end", "tool-call-end", "citation-end"),
        ),
        ("gemini-interactions", ("step.start",), ("step.stop",)),
    ],
)
def test_what_begins_ends_and_is_counted_from_0(
    wire_format: str, starts: tuple[str, ...], ends: tuple[str, ...]
) -> None:
    links = [rd.Citation(url="https://a.example/1"), rd.Citation(url="https://b.example/2")]
    blocks = [*MESSAGE.blocks, rd.ContentPart("text", "So.", citations=links)]
    chunks = rd.wire.write(rd.to_events(rd.Message(blocks=blocks)), wire_format)
    found = [numbered(chunk, wire_format) for chunk in chunks]
    numbers = {kind: [number for name, number in found if name == kind] for kind in (*starts, *ends)}
    assert all(counted == [*range(len(counted))] and counted for counted in numbers.values())
    assert [len(numbers[kind]) for kind in starts] == [len(numbers[kind]) for kind in ends][: len(starts)]
    if len(ends) == 1:
        assert len(numbers[ends[0]]) == len(blocks)


# What can't be carried.


def with_block(block: rd.ContentPart | rd.ToolCall) -> list[rd.Event]:
    return rd.to_events(rd.Message(blocks=[block]))


_MIME_TYPES = {"image": "image/png", "audio": "audio/wav", "video": "video/mp4", "file": "application/pdf"}
HOLDS: dict[str, list[rd.Event]] = {
    "text": with_block(rd.ContentPart("text", "Hi")),
    "reasoning": with_block(rd.ContentPart("reasoning", "Hm")),
    "redacted_reasoning": with_block(
        rd.ContentPart("reasoning", None, {"redacted": True, "data": "QQ==", "signed_by": "another"})
    ),
    "refusal": with_block(rd.ContentPart("refusal", "No.")),
    "tool_call": with_block(CALL),
    "invalid_tool_call": with_block(
        rd.ToolCall(call_id="c", name="f", arguments="{a", type="invalid_tool_call", error="bad")
    ),
    "doubtful_tool_call": with_block(
        rd.ToolCall(call_id="c", name="f", arguments="[1]", type="invalid_tool_call", error="bad")
    ),
    "unnamed_tool_call": with_block(rd.ToolCall(call_id="c", arguments={})),
    "tool_result": with_block(
        rd.ToolCall(
            call_id="c",
            name="f",
            arguments={},
            result=rd.ToolResult("c", "3"),
            metadata={"execution_status": "completed"},
        )
    ),
    "server_tool_call": with_block(rd.ToolCall(call_id="c", name="f", arguments={}, type="server_tool_call")),
    "server_tool_result": with_block(
        rd.ContentPart("server_tool_result", None, {"tool_call_id": "c", "output": 3})
    ),
    **{
        kind: with_block(rd.ContentPart(kind, "QQ==", {"mime_type": mime_type}))
        for kind, mime_type in _MIME_TYPES.items()
    },
    **{
        f"{kind}_url": with_block(
            rd.ContentPart(kind, None, {"url": "https://a.example/1", "mime_type": mime_type})
        )
        for kind, mime_type in _MIME_TYPES.items()
    },
    "file_id": with_block(rd.ContentPart("file", None, {"file_id": "f1"})),
    "unsupported": with_block(rd.ContentPart("unsupported", None, {"type": "new"})),
    "citation": with_block(rd.ContentPart("text", "Hi", citations=[rd.Citation(url="https://a.example/1")])),
    "citation_without_url": with_block(rd.ContentPart("text", "Hi", citations=[rd.Citation(title="A book")])),
    "choices": [
        *rd.to_events(TEXT),
        *rd.to_events(rd.Message(choice=1, blocks=TEXT.blocks, usage=TEXT.usage, id="m1", model="model-1")),
    ],
    "runs": [
        ev.MessageStart(run_id="a"),
        ev.MessageFinish("stop", run_id="a"),
        ev.MessageStart(run_id="b"),
        ev.MessageFinish("stop", run_id="b"),
    ],
    "messages": [*rd.to_events(TEXT), *rd.to_events(TEXT)],
    "attempts": [*rd.to_events(TEXT)[:2], ev.AttemptReset(1), *rd.to_events(TEXT)],
    "corrections": [
        ev.MessageStart(),
        ev.BlockStart(0, {"type": "text", "text": "Hi"}),
        ev.BlockFinish(0, {"type": "text", "text": "No"}),
        ev.MessageFinish("stop"),
    ],
    "interruption": [ev.MessageStart(), ev.MessageInterrupted("stopped")],
    "custom": [ev.MessageStart(), ev.Custom("progress", {"done": 1}), ev.MessageFinish("stop")],
}


OF_THE_STREAM = ("choices", "corrections", "runs", "messages", "attempts", "interruption", "custom")


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_what_a_format_cannot_carry_is_refused_by_name(wire_format: str) -> None:
    carries = registry.get(wire_format).carries
    for kind, events in HOLDS.items():
        if kind in carries:
            assert rd.wire.write(events, wire_format)
            continue
        with pytest.raises(rd.InvalidValueError) as raised:
            rd.wire.write(events, wire_format)
        assert f"({kind}), which a stream of {wire_format} can't carry" in str(raised.value)
        assert ("events: " if kind in OF_THE_STREAM else "block 0: ") in str(raised.value)


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_what_a_format_carries_is_not_dropped(wire_format: str) -> None:
    known = registry.get(wire_format)
    for kind, events in HOLDS.items():
        if kind in known.carries and kind not in OF_THE_STREAM[2:]:
            same(events, wire_format)


@pytest.mark.parametrize(
    "wire_format", [name for name in WRITTEN if "corrections" not in registry.get(name).carries]
)
def test_a_call_whose_end_has_other_arguments_is_refused(wire_format: str) -> None:
    started = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": '{"a": 1}'})
    ended = ev.BlockFinish(0, {"type": "tool_call", "id": "c", "name": "f", "args": {"a": 2}})
    with pytest.raises(rd.InvalidValueError, match="corrections"):
        rd.wire.write([ev.MessageStart(), started, ended, ev.MessageFinish("tool_use")], wire_format)


def test_each_block_that_is_refused_is_named() -> None:
    message = rd.Message(
        blocks=[
            rd.ContentPart("text", "Hi"),
            rd.ContentPart("image", "QQ=="),
            rd.ContentPart("refusal", "No"),
        ]
    )
    with pytest.raises(rd.InvalidValueError, match=r"block 1: .*image.*; block 2: .*refusal"):
        rd.wire.write(rd.to_events(message), "cohere")


def test_what_the_provider_itself_ran_is_carried_by_its_own_format_only() -> None:
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    body = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude",
        "content": [call, result],
        "stop_reason": "end_turn",
    }
    events = read([body], "anthropic-messages")
    same(events, "anthropic-messages")
    with pytest.raises(rd.InvalidValueError, match="server_tool_call"):
        rd.wire.write(events, "openai-responses")


# Ends.


@pytest.mark.parametrize("wire_format", WRITTEN)
def test_a_reply_without_its_end_is_a_stream_without_its_end(wire_format: str) -> None:
    events: list[rd.Event] = [
        ev.MessageStart("m1"),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, "Hi"),
    ]
    cut = rd.wire.write(events, wire_format)
    whole = rd.wire.write([*events, ev.BlockFinish(0), ev.MessageFinish("stop")], wire_format)
    assert whole[: len(cut)] == cut
    assert len(whole) > len(cut)
    fold = rd.Fold()
    for event in read(cut, wire_format):
        fold.step(event)
    assert (fold.snapshot.status, fold.snapshot.text) == ("incomplete", "Hi")


@pytest.mark.parametrize("wire_format", WRITTEN)
@pytest.mark.parametrize("first", [True, False])
def test_a_provider_s_error_is_the_format_s_own_and_masked(wire_format: str, first: bool) -> None:
    before: list[rd.Event] = (
        [] if first else [ev.MessageStart("m1"), ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hi")]
    )
    for on_error, said in (({}, rd.wire.MASKED), ({"on_error": lambda _: "Too many."}, "Too many.")):
        chunks = rd.wire.write(
            [*before, ev.StreamError("key sk-1", "rate_limit_error")], wire_format, **on_error
        )
        assert "sk-1" not in json.dumps(chunks)
        *_, last = read(chunks, wire_format)
        assert isinstance(last, ev.StreamError)
        assert last.message == said


# The official SDKs as judges.


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", [name for name in SAYS if name in WRITTEN])
def test_the_official_sdk_reads_what_is_written(wire_format: str) -> None:
    chunks = rd.wire.write(small(wire_format), wire_format)
    said = SAYS[wire_format](chunks)
    assert said == ours(wire_format, chunks)
    assert said["text"]
    assert said["calls"] or wire_format == "openai-completions"


@pytest.mark.slow
def test_google_s_types_of_interactions_know_what_is_written() -> None:
    events = pytest.importorskip("google.genai._gaos.types.interactions.interactionsseevent")
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(events.InteractionSSEEvent)
    image = rd.ContentPart("image", "QQ==", {"mime_type": "image/png"})
    signed = rd.ContentPart("reasoning", "Hm.", {"signature": "c2ln", "signed_by": "google"})
    message = rd.Message(
        id="m1", model="gemini", blocks=[signed, *TEXT.blocks, image, CALL], usage=rd.TokenUsage(1, 2)
    )
    failed: list[rd.Event] = [ev.MessageStart("m1"), ev.StreamError("no")]
    for reply in (rd.to_events(message), failed):
        for chunk in rd.wire.write(reply, "gemini-interactions"):
            found = adapter.validate_python(chunk)
            assert not getattr(found, "is_unknown", False), chunk
            assert not getattr(getattr(found, "delta", None), "is_unknown", False), chunk


# Wrong use.


def test_a_format_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(rd.errors.UnknownWireFormatError, match="openai-chat"):
        rd.wire.write([], "openai")


def test_a_format_without_a_writer_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = rd.providers.Format(
        name="harbour", decoder=registry.get("cohere").decoder, recognises=lambda _: False
    )
    monkeypatch.setattr(registry, "_installed", lambda: {"harbour": ()})
    monkeypatch.setattr(registry, "_load", lambda _: bare)
    with pytest.raises(rd.InvalidValueError, match="must be a format that has a writer"):
        rd.wire.write([], "harbour")


@pytest.mark.parametrize("wrong", [None, 3, lambda: None])
def test_a_format_that_is_no_name_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="wire_format"):
        rd.wire.write([], wrong)


# The docs.


def test_the_docs_have_the_table_of_what_is_carried_and_lost() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "written-formats.md").read_text(
        "utf-8"
    )
    assert table() in page, "python tests/support/carried.py writes it"
