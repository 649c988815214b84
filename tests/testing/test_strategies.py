"""The strategies draw what their words say, and shrink."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, get_args

import pytest
from hypothesis import Phase, find, given, settings, strategies as st
from support.written import overlap, read

import rxdelta as rd
from rxdelta.formats import registry
from rxdelta.formats.carrying import kinds_of
from rxdelta.testing.strategies import Kind, chunk_streams, event_streams, messages

ev = rd.events
KINDS: tuple[Kind, ...] = get_args(Kind)
FORMATS = [name for name in registry.names() if registry.is_own(name)]
SOME: settings = settings(max_examples=25)
FIRST = settings(max_examples=2000, phases=[Phase.generate])  # the first one found, not the smallest
KEEPING_NOTHING = settings(database=None, max_examples=2000)  # also in a brief run


def smallest(strategy: st.SearchStrategy[Any], wanted: Callable[[Any], bool]) -> Any:
    """The same in each run: from some beginnings Hypothesis has made all of its steps before it is at the end."""
    return find(strategy, wanted, settings=KEEPING_NOTHING, random=Random(0))


def broken_rules(events: Sequence[rd.Event]) -> list[str | None]:
    checker = rd.core.ProtocolChecker()
    return [rule for rule in (*map(checker.check, events), checker.close()) if rule is not None]


def whole(events: Sequence[rd.Event]) -> rd.Message:
    fold = rd.Fold(choice=0)
    for event in events:
        fold.step(event)
    return fold.snapshot.to_message()


def holds(strategy: st.SearchStrategy[Any], law: Callable[[Any], bool]) -> None:
    @given(strategy)
    @SOME
    def check(drawn: Any) -> None:
        assert law(drawn)

    check()


# Messages.


def test_messages_are_whole_replies_that_come_back_from_their_events_and_their_json() -> None:
    holds(messages(), lambda message: whole(rd.to_events(message)) == message)
    holds(
        messages(), lambda message: rd.Message.from_dict(json.loads(json.dumps(message.to_dict()))) == message
    )
    holds(
        messages(), lambda message: message.role == "assistant" and message.status in ("complete", "length")
    )


@pytest.mark.parametrize("kind", KINDS)
def test_messages_have_the_kinds_that_are_asked_for(kind: Kind) -> None:
    also = {"server_tool_result"} if kind == "server_tool_call" else set[str]()
    of_it = {"tool_call", kind} if kind == "tool_result" else {"text", kind} if "citation" in kind else {kind}

    def found(message: rd.Message) -> set[str]:
        return {word for block in message.blocks for word in kinds_of(block)}

    holds(messages(kinds={kind}), lambda message: found(message) <= of_it | also)
    assert kind in found(find(messages(kinds={kind}), lambda message: bool(message.blocks), settings=FIRST))


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        ("reasoning", lambda message: any("signature" in block.options for block in message.blocks)),
        ("tool_call", lambda message: len(message.tool_calls) == 2),
        ("text", lambda message: message.usage is not None and message.usage.reasoning_tokens),
        *(
            (kind, lambda message, reason=reason: message.finish_reason == reason)
            for kind, reasons in (
                ("text", ("stop", "content_filter", "pause", "length")),
                ("tool_call", ("length", "tool_use")),
            )
            for reason in reasons
        ),
    ],
    ids=[
        "signed",
        "two calls",
        "details of usage",
        "stop",
        "filter",
        "pause",
        "length",
        "cut call",
        "tool_use",
    ],
)
def test_messages_have(kind: Kind, wanted: Callable[[rd.Message], bool]) -> None:
    assert find(messages(kinds={kind}), wanted, settings=FIRST)


def test_messages_shrink_to_one_block_and_one_character() -> None:
    some = messages(kinds={"text", "tool_call"}, max_blocks=2)
    assert smallest(some, lambda message: bool(message.text)).blocks == (rd.ContentPart("text", "0"),)
    (call,) = smallest(some, lambda message: bool(message.tool_calls)).blocks
    assert isinstance(call, rd.ToolCall)
    assert call.arguments == {}


def test_messages_keep_to_their_sizes() -> None:
    small = messages(kinds={"text"}, max_blocks=1, max_text=2)
    holds(small, lambda message: len(message.blocks) <= 1 and len(message.text) <= 2)


# Events.


def test_event_streams_are_legal() -> None:
    holds(event_streams(choices=3), lambda events: broken_rules(events) == [])


def test_event_streams_shrink_to_one_block_without_pieces() -> None:
    some = event_streams(kinds={"text", "tool_call"}, choices=2)
    events = smallest(some, lambda events: "b" in whole(events).text)
    assert [type(event) for event in events] == [
        ev.MessageStart, ev.BlockStart, ev.TextDelta, ev.BlockFinish, ev.MessageFinish,
    ]  # fmt: skip
    assert events[2] == ev.TextDelta(0, "b")


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ({"kinds": {"tool_call"}}, overlap),
        (
            {"choices": 2, "kinds": {"text"}},
            lambda events: {0, 1} == {getattr(event, "choice", 0) for event in events},
        ),
        ({"kinds": {"text"}, "max_blocks": 1}, lambda events: len(events) == 8),
        ({"ends": {"cut"}, "kinds": {"tool_call"}}, lambda events: isinstance(events[-1], ev.ToolCallDelta)),
    ],
)
def test_event_streams_have(how: dict[str, Any], wanted: Callable[[list[rd.Event]], bool]) -> None:
    assert find(event_streams(**how), wanted, settings=FIRST)


def test_blocks_come_one_after_the_other_if_they_are_not_to_be_interleaved() -> None:
    holds(event_streams(interleaved=False), lambda events: not overlap(events))


@pytest.mark.parametrize(
    ("end", "ends"),
    [("cut", None), ("failed", ev.StreamError), ("interrupted", ev.MessageInterrupted)],
)
def test_a_stream_that_is_broken_off_has_no_end_of_its_message(end: Any, ends: type[Any] | None) -> None:
    def law(events: list[rd.Event]) -> bool:
        over = isinstance(events[-1], ev.MessageFinish)
        return not over and (ends is None or isinstance(events[-1], ends))

    holds(event_streams(ends={end}), law)
    rules = {
        "cut": {"missing_message_finish"},
        "failed": {"error_event", "missing_message_finish"},
        "interrupted": set[str](),
    }[end]
    holds(event_streams(ends={end}), lambda events: {*broken_rules(events)} <= rules)


# Chunks.


@pytest.mark.parametrize("wire_format", FORMATS)
def test_chunk_streams_are_what_the_format_s_decoder_reads(wire_format: str) -> None:
    def law(chunks: list[Any]) -> bool:
        json.dumps(chunks, allow_nan=False)
        return broken_rules(read(chunks, wire_format)) == []

    holds(chunk_streams(wire_format), law)


@pytest.mark.parametrize("wire_format", FORMATS)
def test_chunk_streams_shrink_to_one_block(wire_format: str) -> None:
    some = chunk_streams(wire_format, kinds={"text"}, max_blocks=2)
    found = smallest(some, lambda chunks: "b" in whole(read(chunks, wire_format)).text)
    assert whole(read(found, wire_format)).text == "b"


def test_chunk_streams_of_errors_have_the_provider_s_own() -> None:
    some = chunk_streams("anthropic-messages", kinds={"text"}, ends={"failed"})
    chunks = find(some, lambda _: True, settings=FIRST)
    assert chunks[-1]["type"] == "error"


# Wrong use.


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: messages(kinds={"txt"}), "kinds"),  # type: ignore[arg-type]
        (lambda: messages(kinds=[]), "must be a set of words"),
        (lambda: messages(kinds="text"), "must be a set of words"),  # type: ignore[arg-type]
        (lambda: messages(max_blocks=-1), "max_blocks"),
        (lambda: messages(max_text=0), "max_text.*1 or more"),
        (lambda: event_streams(choices=True), "choices"),
        (lambda: event_streams(ends={"end"}), "ends"),  # type: ignore[arg-type]
        (lambda: chunk_streams("cohere", kinds={"image"}), "kinds.*stream of cohere can carry"),
        (lambda: chunk_streams("cohere", choices=2), "choices.*must be 1 in a stream of cohere"),
        (lambda: chunk_streams("cohere", ends={"interrupted"}), "ends.*stream of cohere can carry"),
        (lambda: chunk_streams("coheer"), "coheer"),
    ],
)
def test_what_can_not_be_is_refused_at_once(make: Callable[[], object], says: str) -> None:
    with pytest.raises((rd.InvalidValueError, rd.errors.UnknownWireFormatError), match=says):
        make()
