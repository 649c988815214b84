"""Events as a streamed chat completion, rule by rule. `test_round_trip` has every recorded reply."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.encoded import encoded

import rxdelta as rd

ev = rd.events
DONE = rd.wire.DONE
MASKED = {"message": rd.wire.MASKED, "type": "server_error"}


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def frames_of(events: Iterable[rd.Event], fails: Exception | None = None, **options: Any) -> list[Any]:
    source = rx.from_iterable([*events])
    if fails is not None:
        source = rx.concat(source, rx.throw(fails))
    options = {"now": lambda: 7.9, "new_id": lambda: "made", **options}
    frames: list[Any] = source.pipe(
        encoded(lambda: rd.wire.OpenAiChatEncoder(**options)), ops.to_list()
    ).run()
    assert frames[-1] is DONE
    assert DONE not in frames[:-1]
    return frames[:-1]


def deltas(frames: Iterable[Any], choice: int = 0) -> list[Any]:
    """What a choice's chunks say behind its beginning."""
    own = [one for frame in frames for one in frame.get("choices", ()) if one["index"] == choice]
    assert own[0] == {"index": choice, "delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    return [one["delta"] or one["finish_reason"] for one in own[1:]]


def body_of(frames: Iterable[Any]) -> dict[str, Any]:
    return rd.wire.openai_chat_completion([*frames, DONE])


def message_of(events: Iterable[rd.Event], **options: Any) -> dict[str, Any]:
    """The whole message, and its finish reason."""
    (choice,) = body_of(frames_of(events, **options))["choices"]
    return {name: value for name, value in choice["message"].items() if value is not None} | {
        "finish_reason": choice["finish_reason"]
    }


def error_of(frames: list[Any]) -> Any:
    """The error at the end of a stream that has no finish reason and no usage."""
    *before, last = frames
    assert all(one["finish_reason"] is None for frame in before for one in frame["choices"])
    assert not any("usage" in frame or "error" in frame for frame in before)
    assert body_of(frames) == last
    return last["error"]


def text(index: int, *pieces: str, kind: str = "text") -> list[rd.Event]:
    delta = ev.ReasoningDelta if kind == "reasoning" else ev.TextDelta
    return [
        ev.BlockStart(index, {"type": kind}),
        *(delta(index, one) for one in pieces),
        ev.BlockFinish(index),
    ]


def call(index: int, call_id: str, *pieces: str, name: str = "look") -> list[rd.Event]:
    start = {"type": "tool_call_chunk", "id": call_id, "name": name, "args": ""}
    return [
        ev.BlockStart(index, start),
        *(ev.ToolCallDelta(index, one) for one in pieces),
        ev.BlockFinish(index),
    ]


def ran(call_id: str) -> list[rd.Event]:
    result = rd.ToolResult(call_id, "found")
    return [ev.ToolUpdate(call_id, "executing"), ev.ToolUpdate(call_id, "completed", result=result)]


def asked(index: int, call_id: str, arguments: str = '{"at": 1}', name: str = "look") -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}


START = ev.MessageStart("m1", "small")
SPENT = rd.TokenUsage(3, 5, cache_read_tokens=2, reasoning_tokens=1)
STOP = ev.MessageFinish("stop", usage=SPENT)
CALLS = ev.MessageFinish("tool_use", usage=SPENT)
USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 5,
    "total_tokens": 8,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}


# The chunks.


def test_each_piece_is_sent_at_once() -> None:
    encoder = rd.wire.OpenAiChatEncoder(now=lambda: 7.0, new_id=lambda: "made")
    sent = [len(encoder.encode(event)) for event in [START, *text(0, "Hel", "lo"), STOP]]
    assert sent == [1, 0, 1, 1, 0, 0]
    assert len(encoder.close()) == 3
    assert not [*encoder.encode(START), *encoder.close(), *encoder.fail(ValueError())]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "content_filter"), ("pause", "pause")],
)
def test_the_finish_reason_is_in_their_words(ours: str, theirs: str) -> None:
    assert message_of([START, *text(0, "Hi"), ev.MessageFinish(ours)])["finish_reason"] == theirs


def test_what_is_not_wanted_is_left_out() -> None:
    reply = [START, *text(0, "Hm.", kind="reasoning"), *text(1, "Hi"), STOP]
    frames = frames_of(reply, reasoning=False, include_usage=False)
    assert deltas(frames) == [{"content": "Hi"}, "stop"]
    assert "usage" not in body_of(frames)


def test_choices_are_told_by_their_index_and_have_one_usage() -> None:
    def choice(number: int, said: str) -> list[rd.Event]:
        return [
            ev.MessageStart("m1", choice=number),
            ev.BlockStart(0, {"type": "text"}, choice=number),
            ev.TextDelta(0, said, choice=number),
            ev.MessageFinish("stop", usage=SPENT, choice=number),
        ]

    woven = [event for pair in zip(choice(1, "one"), choice(0, "none"), strict=True) for event in pair]
    frames = frames_of(woven)
    assert deltas(frames, 0) == [{"content": "none"}, "stop"]
    assert deltas(frames, 1) == [{"content": "one"}, "stop"]
    assert frames[-1]["usage"] == USAGE
    assert [one["message"]["content"] for one in body_of(frames)["choices"]] == ["none", "one"]


def test_media_are_sent_when_they_are_complete() -> None:
    image = {"type": "image", "mime_type": "image/webp", "data": "aGk="}
    events = [
        START,
        ev.BlockFinish(0, image),
        ev.BlockFinish(1, {"type": "image", "url": "https://x.test/a.png"}),
        ev.BlockStart(2, {"type": "audio", "id": "a1", "transcript": "Hi"}),
        ev.DataDelta(2, "aGk="),
        STOP,
    ]
    urls = ["data:image/webp;base64,aGk=", "https://x.test/a.png"]
    images = [
        {"images": [{"index": place, "type": "image_url", "image_url": {"url": url}}]}
        for place, url in enumerate(urls)
    ]
    audio = {"audio": {"id": "a1", "transcript": "Hi", "data": "aGk="}}
    assert deltas(frames_of(events)) == [*images, audio, "stop"]
    assert [image["image_url"]["url"] for image in message_of(events)["images"]] == urls


def test_citations_of_addresses_are_annotations_of_the_whole_content() -> None:
    cited = {"url": "https://x.test", "title": "X", "cited_text": "Y", "start_index": 0, "end_index": 2}
    citations = [cited, {"url": "https://y.test"}, {"title": "a document of the request"}]
    more = ev.BlockDelta(1, {"citations": citations})
    events = [START, *text(0, "So: "), *text(1, "Hi")[:-1], more, ev.BlockFinish(1), STOP]
    where = {"url": "https://x.test", "title": "X", "content": "Y", "start_index": 4, "end_index": 6}
    annotations = [
        {"index": 0, "type": "url_citation", "url_citation": where},
        {
            "index": 1,
            "type": "url_citation",
            "url_citation": {
                "url": "https://y.test",
                "title": "https://y.test",
                "start_index": 4,
                "end_index": 6,
            },
        },
    ]
    assert deltas(frames_of(events))[-2:] == [{"annotations": annotations}, "stop"]


# Calls.


def test_the_calls_that_are_left_are_the_clients() -> None:
    events = [START, *call(0, "c1", "{}"), *call(1, "c2", '{"at"', ": 1}"), *call(2, "c3", '{"at": 1}')]
    frames = frames_of([*events, CALLS, *ran("c1")])
    assert deltas(frames) == [asked(0, "c2"), asked(1, "c3"), "tool_calls"]


def test_a_call_of_an_earlier_turn_is_not_the_clients() -> None:
    turns = [START, *call(0, "c1", "{}"), CALLS, ev.MessageStart("m2"), *text(0, "Well."), STOP]
    assert deltas(frames_of(turns)) == [{"content": "Well."}, "stop"]


def test_with_the_names_of_the_servers_tools_other_calls_are_sent_as_they_come() -> None:
    both = [*call(0, "c1", '{"at"', ": 1}"), *call(1, "c2", "{}", name="mine")]
    encoder = rd.wire.OpenAiChatEncoder(now=lambda: 7.0, new_id=lambda: "made", tools={"mine": print})
    sent = [frame for event in [START, *both] for frame in encoder.encode(event)]
    pieces = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in ('{"at"', ": 1}")]
    assert deltas(sent) == [asked(0, "c1", ""), *pieces]
    assert deltas([*sent, *encoder.encode(CALLS), *encoder.close()][:-2])[3:] == ["tool_calls"]


@pytest.mark.parametrize("tools", [None, ()])
def test_the_signature_of_a_call_goes_along_unless_reasoning_is_kept_back(tools: Any) -> None:
    signed = {"google": {"thought_signature": "s"}}
    begun = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": "{}", "extra_content": signed}
    events = [START, ev.BlockStart(0, begun), CALLS]
    (call,) = message_of(events, tools=tools)["tool_calls"]
    assert call["extra_content"] == signed
    (call,) = message_of(events, tools=tools, reasoning=False)["tool_calls"]
    assert "extra_content" not in call


def test_a_call_that_has_been_sent_and_must_not_be_run_ends_the_stream() -> None:
    invalid = ev.BlockFinish(0, {"type": "invalid_tool_call", "id": "c1", "name": "look", "error": "refused"})
    events = [START, *call(0, "c1", '{"at": 1}')[:-1], invalid]
    assert frames_of([*events, CALLS], tools=())[-1] == {"error": MASKED}
    assert message_of([*events, ev.MessageFinish("length")], tools=())["finish_reason"] == "length"


def test_arguments_that_the_client_has_are_not_replaced() -> None:
    other = ev.BlockFinish(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": 2}})
    events = [START, *call(0, "c1", '{"at": 1}')[:-1], other, CALLS]
    assert error_of(frames_of(events, tools=())) == MASKED
    assert deltas(frames_of(events)) == [asked(0, "c1", '{"at": 2}'), "tool_calls"]
    text_of_another = [*events[:-2], ev.BlockDelta(0, {"args": '{"at": 2}'}), ev.BlockFinish(0), CALLS]
    assert error_of(frames_of(text_of_another, tools=())) == MASKED
    same = ev.BlockFinish(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": 1}})
    assert message_of([*events[:-2], same, CALLS], tools=())["finish_reason"] == "tool_calls"


# The turns of an agent.


def test_a_citation_of_a_later_turn_counts_from_the_beginning() -> None:
    cited = {
        "type": "text",
        "text": "Hi",
        "citations": [{"url": "https://x.test", "start_index": 0, "end_index": 2}],
    }
    events = [START, *text(0, "So."), STOP, ev.MessageStart("m2"), ev.BlockFinish(0, cited), STOP]
    message = message_of(events)
    (annotation,) = message["annotations"]
    begin, end = (annotation["url_citation"][name] for name in ("start_index", "end_index"))
    assert message["content"][begin:end] == "Hi"


# Ends.


@pytest.mark.parametrize(
    ("events", "fails"),
    [
        pytest.param([], None, id="nothing"),
        pytest.param([START, *text(0, "Hi")], None, id="cut off"),
        pytest.param([START, *text(0, "Hi")], ValueError("secret"), id="the source fails"),
        pytest.param(
            [START, *text(0, "Hi"), STOP], ValueError("secret"), id="the source fails behind the end"
        ),
        pytest.param(
            [START, *text(0, "Hi"), ev.StreamError("secret", "overloaded")], None, id="the provider fails"
        ),
        pytest.param([START, STOP, ev.MessageStart("m2")], None, id="cut off in the second turn"),
        pytest.param([START, *call(0, "c1", "{}")], None, id="cut off behind a call"),
    ],
)
def test_a_reply_that_broke_off_ends_with_the_masked_error(
    events: list[rd.Event], fails: Exception | None
) -> None:
    frames = frames_of(events, fails)
    assert error_of(frames) == MASKED
    assert "secret" not in str(frames)
    assert "tool_calls" not in str(frames)


@pytest.mark.parametrize(
    ("reason", "said"), [("the server stops", "the server stops"), (None, "The reply was interrupted.")]
)
def test_an_interruption_is_an_error_that_says_why(reason: str | None, said: str) -> None:
    frames = frames_of([START, *text(0, "Hel")[:-1], ev.MessageInterrupted(reason)])
    assert error_of(frames) == {"message": said, "type": "interrupted"}
    assert deltas(frames) == [{"content": "Hel"}]


def test_an_agent_that_is_stopped_between_its_turns_was_interrupted_and_a_whole_reply_was_not() -> None:
    stop = ev.MessageInterrupted("stopped")
    turn = [START, *call(0, "c1", "{}"), CALLS, ev.ToolUpdate("c1", "executing"), stop]
    assert error_of(frames_of(turn))["type"] == "interrupted"
    assert message_of([START, *text(0, "Hi"), STOP, stop])["finish_reason"] == "stop"
    assert message_of([*turn, ev.MessageStart("m2"), *text(0, "Hi"), STOP])["finish_reason"] == "stop"


# What can't be taken back.

AGAIN = ev.AttemptReset(1, usage=SPENT)


def test_another_attempt_is_not_told_where_the_client_has_nothing_of_the_first() -> None:
    frames = frames_of([START, *call(0, "c0", "{}"), AGAIN, START, *call(0, "c1", '{"at": 1}'), CALLS])
    assert deltas(frames) == [asked(0, "c1"), "tool_calls"]
    assert frames[-1]["usage"]["total_tokens"] == 16


def test_an_attempt_that_failed_before_a_later_turn_had_text_is_not_told() -> None:
    turns = [START, *text(0, "One."), STOP, AGAIN, ev.MessageStart("m2"), *text(0, "Two."), STOP]
    assert message_of(turns)["content"] == "One.\n\nTwo."


def test_a_block_that_begins_again_ends_the_stream_where_the_client_has_it() -> None:
    assert error_of(frames_of([START, *text(0, "Hel")[:-1], *text(0, "Hello"), STOP])) == MASKED
    assert (
        message_of([START, ev.BlockStart(0, {"type": "text"}), *text(0, "Hello"), STOP])["content"] == "Hello"
    )


def test_a_block_that_becomes_another_is_the_other_unless_the_client_has_it() -> None:
    begun, now = ev.BlockStart(0, {"type": "text"}), ev.BlockFinish(0, {"type": "refusal", "text": "No."})
    finish = ev.BlockFinish(0, {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": 1}})
    assert message_of([START, begun, finish, CALLS])["finish_reason"] == "tool_calls"
    assert error_of(frames_of([START, begun, ev.TextDelta(0, "Hel"), finish, CALLS])) == MASKED
    assert message_of([START, begun, now, STOP])["refusal"] == "No."
    assert message_of([START, begun, ev.TextDelta(0, "No"), now, STOP])["content"] == "No."


@pytest.mark.parametrize(("whole", "said"), [("Hello", "Hello"), ("Good day", "Hel")])
def test_a_text_that_its_end_corrects_gets_what_is_missing_or_stays(whole: str, said: str) -> None:
    finish = ev.BlockFinish(0, {"type": "text", "text": whole})
    assert message_of([START, *text(0, "Hel")[:-1], finish, STOP])["content"] == said


# Runs.


def in_run(run: str, events: Iterable[rd.Event], parent: str | None = None) -> list[rd.Event]:
    return rx.from_iterable([*events]).pipe(rd.with_run(run, parent=parent), ops.to_list()).run()


def test_runs_that_overlap_follow_one_another() -> None:
    one, two = (
        in_run("a", [START, *text(0, "o", "ne"), STOP]),
        in_run("b", [START, *text(0, "t", "wo"), STOP]),
    )
    three = in_run("c", [START, *text(0, "thr", "ee"), STOP])
    woven = [event for group in zip(one, two, three, strict=True) for event in group]
    frames = frames_of(woven)
    assert "".join(delta["content"] for delta in deltas(frames)[:-1]) == "one\n\ntwo\n\nthree"
    assert deltas(frames)[0] == {"content": "o"}
    assert frames[-1]["usage"]["total_tokens"] == 24


def test_a_run_that_waited_goes_on_live_and_what_waits_is_sent_before_an_error() -> None:
    one, two = (
        in_run("a", [START, *text(0, "one"), STOP]),
        in_run("b", [START, *text(0, "t", "w", "o"), STOP]),
    )
    frames = frames_of([*one[:2], *two[:3], *one[2:], *two[3:]])
    assert deltas(frames) == [
        {"content": "one"},
        {"content": "\n\n"},
        {"content": "t"},
        {"content": "w"},
        {"content": "o"},
        "stop",
    ]
    frames = frames_of([*one[:3], *two[:4]])
    assert "".join(delta["content"] for delta in deltas(frames)) == "one\n\ntw"
    assert error_of(frames) == MASKED


def test_messages_that_end_while_another_runs_is_sent_follow_it() -> None:
    one = in_run("a", [START, *text(0, "o", "ne"), STOP])
    two = in_run("b", [START, *text(0, "two"), STOP, ev.MessageStart("m2"), *text(0, "three"), STOP])
    said = [delta.get("content") for delta in deltas(frames_of([*one[:3], *two, *one[3:]]))[:-1]]
    assert said == ["o", "ne", "\n\n", "two", "\n\n", "three"]


def test_thousands_of_custom_calls_may_wait_for_the_first() -> None:
    n = 1500
    calls = [
        [
            ev.BlockStart(
                i, {"type": "tool_call_chunk", "id": f"c{i}", "name": "run", "provider_type": "custom"}
            ),
            ev.ToolCallDelta(i, '{"input": "x"}'),
            ev.BlockFinish(i),
        ]
        for i in range(n)
    ]
    behind = [event for one in reversed(calls) for event in one[1:]]
    events = [START, *(one[0] for one in calls), *behind, CALLS]
    asked = message_of(events, tools=())["tool_calls"]
    assert [one["id"] for one in asked] == [f"c{i}" for i in range(n)]
