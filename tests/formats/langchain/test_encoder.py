"""LangChain's agent protocol: its envelope, its messages and how they end."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import reactivex as rx
from formats.langchain.frames import (
    BOOM,
    CALL,
    TEXT,
    Rules,
    data,
    encoder,
    folded,
    names,
    read,
    sent,
    there_and_back,
)
from reactivex import compose

import rxdelta as rd
from rxdelta import events as ev

# The envelope.


@pytest.mark.parametrize(
    "options",
    [
        {"choice": -1},
        {"choice": True},
        {"first_seq": -1},
        {"first_seq": 0.5},
        {"namespace": "agent"},
        {"namespace": [1]},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(rd.InvalidValueError, match=next(iter(options))):
        encoder(**options)


# Messages and blocks.


def test_a_second_start_ends_the_block_and_begins_another() -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.BlockStart(0, TEXT)]
    events += [ev.TextDelta(0, "b"), ev.BlockFinish(0), ev.MessageFinish()]
    assert [one.get("index") for one in data(*events)] == [None, 0, 0, 0, 1, 1, 1, None]
    assert there_and_back(*events).text == "b"


def test_a_finish_without_a_start_gets_one_if_it_says_anything() -> None:
    whole = ev.BlockFinish(0, {"type": "text", "text": "Hi"})
    assert names(ev.MessageStart("m"), ev.BlockFinish(1), whole, ev.MessageFinish()) == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]


def test_a_message_without_a_start_or_an_id_gets_one() -> None:
    (start, *_), events = data(ev.BlockStart(0, TEXT)), [ev.MessageStart(), ev.MessageFinish()]
    assert (start["event"], start["id"], start["synthetic"]) == ("message-start", "made-0", True)
    assert data(*events)[0]["id"] == "made-0"
    assert there_and_back(*events).id is None


def test_metadata_that_is_not_plain_stands_beside_the_plain() -> None:
    events = [
        ev.MessageStart("m", None, None, {"a": 1, "b": {"c": 2}, "provider": ["p"]}),
        ev.MessageFinish(),
    ]
    start = data(*events)[0]
    assert (start["metadata"], start["responseMetadata"]) == ({"a": 1}, {"b": {"c": 2}, "provider": ["p"]})
    assert there_and_back(*events) == folded(events)


def test_only_the_chosen_choice_is_told_and_is_the_only_one_to_its_reader() -> None:
    events = [
        event
        for choice in (0, 1)
        for event in (
            ev.MessageStart("m", choice=choice),
            ev.BlockStart(0, {"type": "text", "text": "ab"[choice]}, choice=choice),
            ev.UsageUpdate(rd.TokenUsage(1, choice), choice=choice),
            ev.BlockFinish(0, choice=choice),
            ev.MessageFinish("stop", choice=choice),
        )
    ]
    reply = folded(read(sent(*events, choice=1)))
    assert (reply.text, reply.choice) == ("b", 0)
    assert reply.usage == rd.TokenUsage(1, 1)


def test_what_has_no_event_in_the_protocol_is_custom() -> None:
    event = ev.ProviderEvent("p", "ping", {"a": 1})
    _, frame, _ = sent(ev.MessageStart("m"), event, ev.MessageFinish())
    assert (frame["method"], frame["params"]["data"]) == (
        "custom",
        {"name": "rxdelta", "payload": event.to_dict()},
    )
    assert event in read(sent(ev.MessageStart("m"), event, ev.MessageFinish()))


def test_untrusted_names_do_not_break_the_frames() -> None:
    nasty = '"\n\r\u2028\\ud83d</script>'
    events = [ev.MessageStart(nasty), ev.BlockStart(nasty, {**CALL, "id": nasty, "name": nasty})]
    events += [ev.ToolUpdate(nasty, "executing"), ev.BlockFinish(nasty), ev.MessageFinish(nasty)]
    assert b"\n" not in b"".join(rd.wire.sse_frame(frame)[:-2] for frame in sent(*events))
    assert there_and_back(*events) == folded(events)


# Conversations, attempts, ends.


def test_a_message_that_another_interrupts_ends_with_an_error_which_ours_overlooks() -> None:
    events = [ev.MessageStart("m1"), ev.BlockStart(0, TEXT), ev.MessageStart("m2"), ev.MessageFinish("stop")]
    assert names(*events)[2:4] == ["content-block-finish", "error"]
    assert [type(event) for event in read(sent(*events))] == [type(event) for event in events]


def test_a_second_start_of_one_message_is_told_to_ours_alone() -> None:
    events = [ev.MessageStart("m"), ev.MessageStart("m", None, None, {"a": 1}), ev.MessageFinish()]
    assert names(*events) == ["message-start", "custom", "message-finish"]
    assert there_and_back(*events) == folded(events)


@pytest.mark.parametrize("reason", ["the reader left", None])
def test_a_message_that_was_stopped_is_finished_and_ours_knows_that_it_was_stopped(
    reason: str | None,
) -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, CALL), ev.ToolCallDelta(0, "{")]
    events += [ev.UsageUpdate(rd.TokenUsage(1, 2)), ev.MessageInterrupted(reason)]
    assert names(*events)[-2:] == ["content-block-finish", "message-finish"]
    assert data(*events)[-1]["usage"]["total_tokens"] == 3
    assert there_and_back(*events) == folded(events)


def test_a_source_that_fails_closes_what_is_open_and_the_error_is_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.BlockStart(1, CALL)]
    frames = sent(*events, error=BOOM)
    Rules().check(frames)
    assert [frame["params"]["data"]["event"] for frame in frames][-3:] == [
        "content-block-finish",
        "content-block-finish",
        "error",
    ]
    assert frames[-1]["params"]["data"] == {"event": "error", "message": rd.wire.MASKED}
    assert caplog.records[-1].exc_info is not None
    assert caplog.records[-1].exc_info[1] is BOOM
    *before, error = read(frames)
    assert folded(before) == folded(events), "what was open is still open to ours"
    assert error == ev.StreamError(rd.wire.MASKED)


def test_the_caller_says_what_may_be_known_of_an_error() -> None:
    assert data(ev.MessageStart("m"), error=BOOM, on_error=str)[-1]["message"] == "secret"


@pytest.mark.parametrize(
    "before", [[], [ev.MessageStart("m"), ev.MessageFinish()]], ids=["nothing", "finished"]
)
def test_an_error_where_no_message_is_open_is_that_of_an_empty_one(before: list[rd.Event]) -> None:
    frames = sent(*before, error=BOOM)
    Rules().check(frames)
    assert [frame["params"]["data"]["event"] for frame in frames][-2:] == ["message-start", "error"]
    assert read(frames) == [*before, ev.StreamError(rd.wire.MASKED)]


def test_an_error_that_the_provider_reports_is_one_of_the_stream() -> None:
    assert names(ev.MessageStart("m"), ev.StreamError("secret", choice=3), ev.MessageFinish()) == [
        "message-start",
        "error",
    ]


def test_nothing_follows_the_end() -> None:
    one = encoder()
    one.encode(ev.MessageStart("m"))
    assert one.fail(BOOM)
    assert not one.encode(ev.MessageStart("m"))
    assert not one.fail(BOOM)
    assert not one.close()


@pytest.mark.parametrize(
    ("limits", "event"),
    [
        ({"blocks": 2}, ev.BlockStart(2, TEXT)),
        ({"index": 2}, ev.BlockStart(2, TEXT)),
        ({"block_chars": 3}, ev.TextDelta(0, "there")),
        ({"block_chars": 3}, ev.BlockFinish(1, {"type": "text", "text": "there"})),
    ],
)
def test_too_much_is_refused_and_what_came_is_closed(limits: dict[str, int], event: rd.Event) -> None:
    one = encoder(limits=rd.Limits(**limits), on_error=str)
    before = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "Hi"), ev.BlockStart(1, CALL)]
    frames = [frame for told in before for frame in one.encode(told)]
    with pytest.raises(rd.errors.LimitExceededError) as caught:
        one.encode(event)
    frames += one.fail(caught.value)
    Rules().check(frames)
    assert frames[-1]["params"]["data"] == {"event": "error", "message": str(caught.value)}


def test_an_absurd_index_is_refused_by_default() -> None:
    with pytest.raises(rd.errors.LimitExceededError):
        encoder().encode(ev.BlockStart(2**31, TEXT))


def test_a_limit_of_the_pipeline_is_an_error_of_the_stream() -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "Hello")]
    encoded = compose(
        rd.to_langchain_events(on_error=lambda error: type(error).__name__),
        rd.with_limits(rd.Limits(block_chars=3)),
    )
    frames = rx.from_iterable(events).pipe(encoded, rx.operators.to_list()).run()
    assert frames[-1]["params"]["data"] == {"event": "error", "message": "LimitExceededError"}


# What is cut off, begins again or is taken back.


@pytest.mark.parametrize(
    "end", [ev.MessageStart("n"), ev.AttemptReset(1), ev.MessageInterrupted(), ev.BlockStart(0, TEXT), None]
)
def test_a_call_that_is_cut_off_is_invalid_also_if_its_arguments_are_complete(end: rd.Event | None) -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, CALL), ev.ToolCallDelta(0, '{"at": "sea"}')]
    finish = next(
        one
        for one in data(*events, *([] if end is None else [end]))
        if one["event"] == "content-block-finish"
    )
    assert (finish["synthetic"], finish["content"]["type"]) == (True, "invalid_tool_call")
    assert finish["content"]["args"] == '{"at": "sea"}'
    assert finish["content"]["error"]


def test_a_second_end_of_a_block_is_sent_to_ours_alone() -> None:
    events = [ev.MessageStart("m"), ev.BlockFinish(0, {"type": "text", "text": "Hi"})]
    events += [
        ev.BlockFinish(0, {"type": "text", "text": "Bye"}),
        ev.BlockFinish(0),
        ev.MessageFinish("stop"),
    ]
    assert names(*events)[-3:] == ["content-block-finish", "custom", "message-finish"]
    assert there_and_back(*events) == folded(events)
    assert there_and_back(*events).text == "Bye"


def test_a_reset_that_names_the_choice_takes_a_finished_message_back_for_ours() -> None:
    said = [ev.MessageStart("m"), ev.BlockFinish(0, {"type": "text", "text": "Hi"}), ev.MessageFinish("stop")]
    more = [
        ev.MessageStart("n"),
        ev.BlockFinish(0, {"type": "text", "text": "Bye"}),
        ev.MessageFinish("stop"),
    ]
    events = [*said, ev.AttemptReset(1, choice=0), *more]
    assert there_and_back(*events) == folded(events)
    assert there_and_back(*events).text == "Bye"
    moved = [attrs.evolve(event, choice=2) for event in events]
    assert folded(read(sent(*moved, choice=2))) == folded(events)


def test_a_message_that_was_stopped_before_it_began_has_ended() -> None:
    assert names(ev.MessageInterrupted("left"), ev.BlockStart(0, TEXT)) == ["custom"]
