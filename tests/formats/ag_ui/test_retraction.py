"""What an AG-UI client is sent when something it has no longer holds."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.ag_ui import ASKED, call, frames_of, message, read, shown, text, thought, told, types

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


def test_g12_a_failed_attempt_is_taken_back() -> None:
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    events = [*failed, ev.AttemptReset(1, "overloaded"), *message(text(0, "Hello"), id="m2")]
    client = read(told(*events, messages=ASKED), ASKED)
    assert client.messages[0] == ASKED[0]
    assert shown(client.messages) == {"text": "Hello", "reasoning": [], "calls": [], "rest": []}
    assert client.pending == []


@pytest.mark.parametrize("history", [ASKED, None])
def test_g12_a_reply_whose_first_attempt_failed_comes_back_as_one_message(history: Any) -> None:
    failed = [ev.MessageStart("m1"), *text(0, "Oh"), *thought(1, "x")[:2], ev.AttemptReset(1)]
    whole = message(text(0, "Hello"), thought(1, "hm"), text(2, "again"))
    client = read(told(*failed, *whole, messages=history), ASKED)
    (reply,) = rd.from_ag_ui(client.messages)[1:]
    assert (reply.text, reply.reasoning) == ("Helloagain", "hm")


def test_g12_a_snapshot_keeps_the_runs_earlier_messages_and_their_results() -> None:
    first = message(
        thought(0, "hm", signature="s"), text(1, "Let me see."), call(2, "c1", "{}"), reason="tool_use"
    )
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    before = read(told(*first, done, messages=ASKED), ASKED).messages
    failed = [ev.MessageStart("m2"), *text(0, "Oo")[:-1], ev.AttemptReset(1)]
    after = read(
        told(*first, done, *failed, *message(text(0, "Done."), id="m3"), messages=ASKED), ASKED
    ).messages
    assert after[: len(before)] == before
    done_now = {"id": "m3", "role": "assistant", "content": "Done.", "metadata": {"finishReason": "stop"}}
    assert after[len(before) :] == [done_now]


def test_g12_an_attempt_that_asks_for_the_same_call_leaves_it_to_the_client() -> None:
    events = [ev.MessageStart("m1"), *call(0, "c1", "{}"), ev.AttemptReset(1), *message(call(0, "c1", "{}"))]
    assert read(told(*events, messages=ASKED), ASKED).pending == ["c1"]


def test_g12_without_the_requests_messages_an_attempt_does_not_get_the_id_of_a_discarded_message() -> None:
    wrong = [*text(0, "Hexe")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    events = [ev.MessageStart("m1"), *wrong, ev.AttemptReset(1), *message(call(0, "c1", "{}"), id="m1")]
    assert shown(read(told(*events)).messages)["calls"] == [("f", {})]


def test_g12_only_another_reasoning_gets_the_id_of_one_that_was_taken_back() -> None:
    failed = [ev.MessageStart("m1"), *thought(0, "hm")[:-1], ev.AttemptReset(1)]
    picture = [ev.BlockStart(0, {"type": "image"}), ev.BlockFinish(0)]
    client = read(told(*failed, *message(picture, thought(1, "ah")), messages=ASKED), ASKED)
    assert [one["content"] for one in client.messages if one["role"] == "reasoning"] == ["ah"]


def test_g12_without_the_requests_messages_nothing_else_of_the_conversation_is_lost() -> None:
    failed = [ev.MessageStart("m1"), *thought(0, "hm"), *text(1, "Hel")[:-1], *call(2, "c1", "{")[:-1]]
    frames = told(*failed, ev.AttemptReset(1, "overloaded"), *message(text(0, "Hello"), id="m1"))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    client = read(frames, ASKED)
    assert client.messages[0] == ASKED[0]
    assert shown(client.messages) == {"text": "Hello", "reasoning": [], "calls": [], "rest": []}
    assert client.pending == []


def test_g12_without_the_requests_messages_what_still_holds_of_the_reply_is_told_again_in_its_order() -> None:
    done = ev.ToolUpdate("c1", "completed", result=rd.ToolResult("c1", "ok"))
    wrong = [*text(3, "Hexe")[:-1], ev.BlockFinish(3, {"type": "text", "text": "Hello"})]
    first = message(text(0, "Before."), call(1, "c0", "{}"), id="m0", reason="tool_use")
    first.append(ev.ToolUpdate("c0", "completed", result=rd.ToolResult("c0", "0")))
    picture = [ev.BlockStart(2, {"type": "image", "url": "https://x/y.png"}), ev.BlockFinish(2)]
    blocks = [
        thought(0, "hm", signature="s"),
        call(1, "c1", "{}"),
        [done],
        picture,
        wrong,
        call(4, "c2", "{}"),
    ]
    frames = told(*first, *message(*blocks))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    said = [one for one in read(frames, ASKED).messages if one.get("activityType") != "rxdelta.discarded"]
    assert [one.get("content") for one in said] == ["Well?", "Before.", "0", "hm", None, "ok", {"type": "image", "url": "https://x/y.png"}, "Hello"]  # fmt: skip
    assert [one.get("encryptedValue") for one in said if one["role"] == "reasoning"] == ["s"]
    assert [one["id"] for each in said for one in each.get("toolCalls", ())] == ["c0", "c1", "c2"]
    assert [one.id for one in rd.from_ag_ui(said)] == [*(one["id"] for one in ASKED), "m0", "m1"]


def test_g12_without_the_requests_messages_what_is_open_goes_on_behind_a_correction() -> None:
    begun = [ev.BlockStart(1, {"type": "text"}), ev.TextDelta(1, "Hel"), *call(2, "c1", '{"a"')[:-1]]
    thinks = [ev.BlockStart(3, {"type": "reasoning"}), ev.ReasoningDelta(3, "h")]
    wrong = [*text(0, "Hexe")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Oh. "})]
    rest = [ev.TextDelta(1, "lo"), ev.ToolCallDelta(2, ": 1}"), ev.ReasoningDelta(3, "m")]
    client = read(told(*message(begun, thinks, wrong, rest)))
    assert shown(client.messages) == {
        "text": "HelloOh. ",
        "reasoning": ["hm"],
        "calls": [("f", {"a": 1})],
        "rest": [],
    }
    assert client.pending == ["c1"]


@pytest.mark.parametrize("messages", [None, 3, [1], [{"role": "nobody"}]])
def test_g12_messages_that_nobody_could_tell_again_are_not_told_again(messages: Any) -> None:
    request = {"threadId": "t1", "runId": "r1", "messages": messages, "protocolVersion": "1.0"}
    events = [ev.MessageStart(), *text(0, "Hi"), ev.AttemptReset(1), *message(text(0, "Hello"))]
    frames = frames_of(rd.wire.AgUiEncoder(request), events)
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    assert shown(read(frames).messages)["text"] == "Hello"


def test_g12_a_snapshot_can_be_written_whatever_the_request_said() -> None:
    asked: list[Json] = [
        {"id": "u1\ud83d", "role": "user", "content": "\ud83d", "metadata": {"a": ["\ude00"]}}
    ]
    events = [ev.MessageStart(), *text(0, "Hi"), ev.AttemptReset(1), *message(text(0, "Hello"))]
    assert "MESSAGES_SNAPSHOT" in types(told(*events, messages=asked))


def test_g12_a_finish_that_says_the_same_or_more_needs_no_snapshot() -> None:
    more = [*text(0, "Hel")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    same = [*call(1, "c1", '{"a":1}')[:-1], ev.BlockFinish(1, {"type": "tool_call", "args": {"a": 1}})]
    frames = told(*message(more, same))
    assert "MESSAGES_SNAPSHOT" not in types(frames)
    assert shown(read(frames).messages)["text"] == "Hello"


def test_g12_a_block_that_begins_again_loses_what_it_said() -> None:
    client = read(told(*message(text(0, "Hexe"), text(0, "Hello")), messages=ASKED), ASKED)
    assert [one["content"] for one in client.messages] == ["Well?", "Hello"]


def test_an_older_client_keeps_its_own_activities_through_a_snapshot() -> None:
    picture = [ev.BlockStart(0, {"type": "image", "url": "https://x/y.png"}), ev.BlockFinish(0)]
    wrong = [*text(1, "Hexe")[:-1], ev.BlockFinish(1, {"type": "text", "text": "Hello"})]
    frames = told(*message(picture, wrong), messages=ASKED, version=None)
    (snapshot,) = [frame for frame in frames if frame["type"] == "MESSAGES_SNAPSHOT"]
    assert [one["role"] for one in snapshot["messages"]] == ["user", "assistant"]
    assert shown(read(frames, ASKED).messages) == {
        "text": "Hello",
        "reasoning": [],
        "calls": [],
        "rest": ["rxdelta.image"],
    }


def test_reasoning_of_an_earlier_reply_is_shown_once_however_often_a_later_reply_is_corrected() -> None:
    wrong = [
        *text(0, "Hexe")[:-1],
        ev.BlockFinish(0, {"type": "text", "text": "Hello"}),
        *text(1, " Wolrd")[:-1],
        ev.BlockFinish(1, {"type": "text", "text": " World"}),
    ]
    client = read(told(*message(thought(0, "hm")), *message(wrong, id="m2")))
    assert shown(client.messages) == {"text": "Hello World", "reasoning": ["hm"], "calls": [], "rest": []}


def test_g12_a_call_that_a_failed_attempt_left_open_is_not_complete_for_our_reader() -> None:
    attempt = [ev.MessageStart("m1"), *call(0, "c1", "{}")[:2], ev.AttemptReset(1)]
    frames = told(*attempt, *message(call(0, "c1", "{}"), id="m2"))
    calls = rx.from_iterable(frames).pipe(rd.decode("ag-ui"), rd.completed_tool_calls(), ops.to_list()).run()
    assert [each.status for each in calls] == ["incomplete", "complete"]
