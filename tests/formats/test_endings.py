"""The end of a reply means the same in every format."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from support.shared import RECORDED, recordings
from support.small_replies import REPLIES, Chunk, folded

import rxdelta as rd
from rxdelta.events import BlockFinish, MessageFinish, MessageStart, ProviderEvent, StreamError
from rxdelta.wire import DONE

ASSUMED = "finish_reason_assumed"
FORMATS = pytest.mark.parametrize("name", sorted(REPLIES))


def test_every_format_with_calls_is_tested() -> None:
    assert {*REPLIES} == {*rd.providers.FORMATS} - {"openai-completions"}


# Why it ended.

REASONS: dict[str, dict[str | None, str]] = {
    "ai-sdk": {
        "stop": "stop",
        "length": "length",
        "content-filter": "content_filter",
        "tool-calls": "tool_use",
        "other": "stop",
    },
    "anthropic-messages": {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "pause",
        "compaction": "pause",
        "tool_use": "stop",  # the calls decide, and there is none
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "refusal": "content_filter",
        "a_new_word": "stop",
        None: "stop",
    },
    "bedrock-converse": {
        "end_turn": "stop",
        "stop_sequence": "stop",
        "pause_turn": "pause",
        "max_tokens": "length",
        "model_context_window_exceeded": "length",
        "content_filtered": "content_filter",
        "guardrail_intervened": "content_filter",
        "something_new": "stop",
    },
    "cohere": {"COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "SOMETHING_NEW": "stop"},
    "gemini": {
        "STOP": "stop",
        "MAX_TOKENS": "length",
        **dict.fromkeys(
            ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
            "content_filter",
        ),
        **dict.fromkeys(("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"), "content_filter"),
        **dict.fromkeys(("LANGUAGE", "ESCALATION"), "content_filter"),
        "CONTINUATION": "pause",
        "NEW_REASON": "stop",
    },
    "gemini-interactions": {
        "completed": "stop",
        "requires_action": "stop",  # likewise
        "incomplete": "length",
        "budget_exceeded": "length",
        "requires_continuation": "pause",
        "brand_new": "stop",
    },
    "mistral": {"stop": "stop", "length": "length", "model_length": "length", "tool_calls": "stop"},
    "openai-chat": {
        **dict.fromkeys(("stop", "eos", "end_turn", "completed", "new_word"), "stop"),
        **dict.fromkeys(("length", "max_tokens", "MAX_TOKENS", "model_length"), "length"),
        **dict.fromkeys(("content_filter", "SAFETY", "recitation"), "content_filter"),
    },
    "ollama": {"stop": "stop", "length": "length", "new": "stop", None: "stop"},
}


@pytest.mark.parametrize(
    ("name", "word", "reason"),
    [(name, word, reason) for name, words in REASONS.items() for word, reason in words.items()],
)
def test_each_word_of_a_provider_has_a_meaning_and_is_kept_as_it_came(
    name: str, word: Any, reason: str
) -> None:
    one = REPLIES[name]
    events, snapshot = folded(name, *one.begin, *one.text, *one.end(word))
    (finish,) = (event for event in events if isinstance(event, MessageFinish))
    message = snapshot.to_message()
    assert (finish.reason, message.provider_finish_reason) == (reason, word)
    assert message.finish_reason == ("stop" if reason == "tool_use" else reason), "no call came"
    assert message.status == ("length" if reason == "length" else "complete")


# What is said at the end of a stream.


@FORMATS
def test_done_completes_a_reply_without_a_reason(name: str) -> None:
    one = REPLIES[name]
    said = [*one.begin, *one.text]
    assert folded(name, *said)[1].status == "incomplete"
    _, snapshot = folded(name, *said, DONE, DONE)
    message = snapshot.to_message()
    assert (message.text, message.finish_reason, message.provider_finish_reason) == ("Hi", "stop", None)
    assert message.metadata[ASSUMED] is True


@FORMATS
def test_the_reason_that_done_leaves_open_is_read_from_the_calls(name: str) -> None:
    one = REPLIES[name]
    events, snapshot = folded(name, *one.begin, *one.call(1), DONE)
    (finish,) = (event for event in events if isinstance(event, MessageFinish))
    assert (finish.reason, snapshot.finish_reason, snapshot.metadata[ASSUMED]) == (
        "tool_use",
        "tool_use",
        True,
    )
    assert [call.arguments for call in snapshot.to_message().tool_calls] == [{"n": 1}]


@FORMATS
def test_done_says_nothing_in_front_of_a_reply_and_behind_one(name: str) -> None:
    one = REPLIES[name]
    whole = [*one.begin, *one.text, *one.end(one.length or "stop")]
    assert folded(name, DONE, close=False)[0] == []
    expected = folded(name, *whole)
    assert name == "ai-sdk" or folded(name, DONE, *whole, DONE, DONE) == expected
    assert folded(name, *whole, DONE, DONE) == expected
    assert ASSUMED not in expected[1].metadata


@pytest.mark.parametrize("name", [name for name, one in REPLIES.items() if one.body])
def test_a_body_without_a_reason_is_complete(name: str) -> None:
    body = REPLIES[name].body
    message = folded(name, body)[1].to_message()
    assert (message.text, message.finish_reason, message.metadata[ASSUMED]) == ("Hi", "stop", True)


@pytest.mark.parametrize("name", RECORDED)
def test_done_ends_a_recorded_stream_that_was_cut_and_changes_nothing_in_a_whole_one(name: str) -> None:
    for recording in recordings(name):
        chunks, _ = recording.values
        if chunks is None or len(chunks) > LONGEST:
            continue
        whole = folded(name, *chunks)[1]
        assert whole.status == "incomplete" or folded(name, *chunks, DONE)[1] == whole, recording.id
        half = chunks[: len(chunks) // 2]
        events, cut = folded(name, *half)
        done = folded(name, *half, DONE)[1]
        has_begun = any(isinstance(event, MessageStart) for event in events)
        has_failed = any(isinstance(event, StreamError) for event in events)
        assert (done.status != "incomplete") is (has_begun and not has_failed), recording.id
        assert done.text == cut.text, recording.id


LONGEST = 60

# What comes too late.


@FORMATS
@pytest.mark.parametrize("by_done", [False, True])
def test_what_comes_behind_the_end_is_passed_on_whole(name: str, by_done: bool) -> None:
    one = REPLIES[name]
    late = one.late(1) if one.late else one.call(1)[0]
    end: list[Any] = [DONE] if by_done else [*one.end(one.stop), *([DONE] if name in ENDS_WITH_INPUT else [])]
    before, _ = folded(name, *one.begin, *one.call(1), *end, close=False)
    after, snapshot = folded(name, *one.begin, *one.call(1), *end, late)
    (passed_on,) = after[len(before) :]
    assert isinstance(passed_on, ProviderEvent)
    assert passed_on.payload == late
    assert [call.arguments for call in snapshot.to_message().tool_calls] == [{"n": 1}]


ENDS_WITH_INPUT = ("gemini", "langchain", "openai-chat", "mistral")
"""The formats whose streams may go on behind a finish reason."""


@pytest.mark.parametrize("name", [name for name, one in REPLIES.items() if one.late])
def test_arguments_behind_the_end_of_their_call_make_it_invalid(name: str) -> None:
    one = REPLIES[name]
    assert one.late
    ended = [*one.begin, *one.call(1), *one.call(2)]
    if name in ENDS_WITH_INPUT:  # what ends a call there is the finish reason
        ended += one.end(one.stop)[:1]
    events, snapshot = folded(name, *ended, *[one.late(2)] * MANY, *one.end(one.stop), DONE)
    message = snapshot.to_message()
    assert [call.call_id for call in message.tool_calls] == ["c1"]
    (wrong,) = message.invalid_tool_calls
    assert wrong.call_id == "c2"
    assert "after the call's end" in (wrong.error or "")
    assert wrong.metadata["late_arguments"]
    taken_back = [
        event for event in events if isinstance(event, BlockFinish) and "error" in (event.content or {})
    ]
    passed_on = [event for event in events if isinstance(event, ProviderEvent)]
    assert len(taken_back) == 1  # a finish for each piece would have all pieces before
    assert len(passed_on) == MANY - 1
    assert all("7" in str(event.payload) for event in passed_on)


MANY = 4


@pytest.mark.parametrize("name", ["anthropic-messages", "bedrock-converse", "cohere", "gemini-interactions"])
def test_arguments_behind_an_end_that_still_waits_for_them_are_the_calls_own(name: str) -> None:
    one = REPLIES[name]
    start, arguments, stop = one.call(1)
    _, snapshot = folded(name, *one.begin, start, stop, arguments, *one.end(one.stop))
    assert [call.arguments for call in snapshot.to_message().tool_calls] == [{"n": 1}]


@pytest.mark.parametrize("name", ["anthropic-messages", "bedrock-converse", "cohere", "gemini-interactions"])
def test_a_call_that_is_sent_again_stays_what_it_is(name: str) -> None:
    one = REPLIES[name]
    _, snapshot = folded(name, *one.begin, *one.call(1), *one.call(1), *one.end(one.stop))
    assert [call.arguments for call in snapshot.to_message().tool_calls] == [{"n": 1}]


def test_an_input_of_the_ai_sdk_that_comes_again_is_passed_on() -> None:
    one = REPLIES["ai-sdk"]
    again = {**one.call(1)[-1], "input": {"n": 9}}
    events, snapshot = folded("ai-sdk", *one.begin, *one.call(1), again, *one.end("tool-calls"))
    assert ProviderEvent("ai-sdk", "tool-input-available", again) in events
    assert [call.arguments for call in snapshot.to_message().tool_calls] == [{"n": 1}]


# The token limit.


@FORMATS
def test_under_the_token_limit_a_parallel_call_that_had_ended_stays_whole(name: str) -> None:
    one = REPLIES[name]
    last = one.call(3) if one.cut is None else one.cut(3)
    chunks = [*one.begin, *one.call(1), *one.call(2), *last, *one.end(one.length)]
    message = folded(name, *chunks)[1].to_message()
    assert message.status == "length"
    whole = [("c1", {"n": 1}), ("c2", {"n": 2}), *([] if one.cut else [("c3", {"n": 3})])]
    assert [(call.call_id, call.arguments) for call in message.tool_calls] == whole
    assert [call.call_id for call in message.invalid_tool_calls] == (["c3"] if one.cut else [])


# Words that say that the provider failed.

BROKEN: list[tuple[str, str, bool]] = [
    ("ai-sdk", "error", True),
    ("bedrock-converse", "malformed_model_output", True),
    ("bedrock-converse", "malformed_tool_use", True),
    ("cohere", "ERROR", True),
    ("cohere", "TIMEOUT", True),
    ("gemini", "MALFORMED_FUNCTION_CALL", True),
    ("gemini", "MALFORMED_RESPONSE", True),
    ("gemini", "UNEXPECTED_TOOL_CALL", True),
    ("gemini", "TOO_MANY_TOOL_CALLS", False),
    ("gemini", "MISSING_THOUGHT_SIGNATURE", False),
    ("gemini", "PUP_LIMITED_DISABLED", False),
    ("gemini", "NO_IMAGE", True),
    ("gemini", "IMAGE_OTHER", True),
    ("gemini", "OTHER", True),
    ("gemini-interactions", "failed", True),
    ("langchain", "MALFORMED_FUNCTION_CALL", True),
    ("langchain", "malformed_tool_use", True),
    ("langchain", "network_error", True),
    ("langchain", "load", False),
    ("ollama", "load", False),
    ("ollama", "unload", False),
    ("openai-responses", "failed", True),
    ("openai-responses", "incomplete", True),
]


@pytest.mark.parametrize(("name", "word", "transient"), BROKEN)
def test_a_word_that_says_that_the_provider_failed_is_an_error(name: str, word: str, transient: bool) -> None:
    one = REPLIES[name]
    cut = () if one.cut is None else one.cut(1)
    events, snapshot = folded(name, *one.begin, *one.text, *cut, *one.end(word))
    error = events[-1]
    assert isinstance(error, StreamError)
    assert error.code == word
    assert not any(isinstance(event, MessageFinish) for event in events)
    assert (
        rd.errors.is_transient(rd.ProviderError(error.message, code=error.code, transient=error.transient))
        is transient
    )
    assert snapshot.status == "incomplete"
    assert snapshot.text == "Hi"
    assert snapshot.usage is not None
    assert (snapshot.usage.input_tokens, snapshot.usage.output_tokens) in ((3, 5), (None, 5))
    assert [call.type for call in snapshot.blocks[1:]] == ["invalid_tool_call"] * bool(cut)
    assert len(error.message.split()) > 2


@pytest.mark.parametrize("name", ["auto", "gemini"])
def test_the_error_of_a_failure_that_only_the_end_of_the_input_shows_can_be_retried(name: str) -> None:
    chunks = [*REPLIES["gemini"].text, *REPLIES["gemini"].end("MALFORMED_FUNCTION_CALL")]
    errors: list[Exception] = []
    rx.from_iterable(chunks).pipe(rd.decode(name), rd.scan_deltas()).subscribe(on_error=errors.append)
    (error,) = errors
    assert isinstance(error, rd.ProviderError)
    assert error.code == "MALFORMED_FUNCTION_CALL"
    assert rd.errors.is_transient(error)
    assert error.snapshot is not None
    assert error.snapshot.text == "Hi"


def test_langchain_knows_the_words_of_the_providers_behind_it() -> None:
    for word, transient in {word: transient for _, word, transient in BROKEN}.items():
        events, _ = folded("langchain", *REPLIES["langchain"].text, *REPLIES["langchain"].end(word))
        error = events[-1]
        assert isinstance(error, StreamError), word
        assert (error.code, error.transient) == (word, transient)


def test_the_failure_of_a_choice_comes_behind_the_ends_of_the_others() -> None:
    def candidate(index: int, word: str) -> Chunk:
        return {"index": index, "content": {"parts": [{"text": str(index)}]}, "finishReason": word}

    events, _ = folded("gemini", {"candidates": [candidate(0, "OTHER"), candidate(1, "STOP")]})
    finish, error = events[-2:]
    assert (type(finish), getattr(finish, "choice", None)) == (MessageFinish, 1)
    assert (type(error), getattr(error, "choice", None)) == (StreamError, 0)


def test_what_the_provider_says_of_its_failure_is_the_errors_message() -> None:
    chunk = {
        "candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL", "finishMessage": "f(", "avgLogprobs": -1}]
    }
    *_, passed_on, error = folded("gemini", chunk)[0]
    assert isinstance(error, StreamError)
    assert error.message == "f("
    assert isinstance(passed_on, ProviderEvent)
    assert passed_on.payload == {"avgLogprobs": -1}


def test_a_failure_in_langchains_events_is_an_error() -> None:
    begin = [{"event": "message-start", "id": "m1"}, *_events_of_text("Hi")]
    finish = {
        "event": "message-finish",
        "metadata": {"finish_reason": "MALFORMED_FUNCTION_CALL", "model": "m"},
    }
    events, snapshot = folded("langchain", *begin, finish, {"event": "message-start", "id": "m2"})
    error = events[-1]
    assert isinstance(error, StreamError)
    assert (error.code, snapshot.text) == ("MALFORMED_FUNCTION_CALL", "Hi")
    assert folded("langchain", *begin, DONE)[1].to_message().metadata[ASSUMED] is True


def _events_of_text(text: str) -> list[Chunk]:
    block = {"index": 0, "content": {"type": "text", "text": text}}
    return [{"event": "content-block-start", **block}, {"event": "content-block-finish", **block}]


# A pause, and a stop by the client.

PAUSES = [
    ("anthropic-messages", "pause_turn"),
    ("anthropic-messages", "compaction"),
    ("bedrock-converse", "pause_turn"),
    ("gemini", "CONTINUATION"),
    ("gemini-interactions", "requires_continuation"),
    ("langchain", "pause_turn"),
]


@pytest.mark.parametrize(("name", "word"), PAUSES)
def test_a_reply_that_was_paused_is_complete_and_can_go_back(name: str, word: str) -> None:
    one = REPLIES[name]
    message = folded(name, *one.begin, *one.text, *one.end(word))[1].to_message()
    assert (message.status, message.finish_reason, message.provider_finish_reason) == (
        "complete",
        "pause",
        word,
    )
    assert "Hi" in str(rd.to_request([message], name))


def test_the_provider_goes_on_behind_its_own_call() -> None:
    """The reply ends with a call of the provider's whose result is yet to come. It goes back as it came."""
    call = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "tides"}}
    one = REPLIES["anthropic-messages"]
    chunks = [
        *one.begin,
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_stop", "index": 0},
        *one.end("pause_turn"),
    ]
    message = folded("anthropic-messages", *chunks)[1].to_message()
    assert message.finish_reason == "pause"
    request = rd.to_request([message], "anthropic-messages")
    assert request["messages"] == [{"role": "assistant", "content": [call]}]


@pytest.mark.parametrize("name", ["gemini-interactions", "openai-responses"])
def test_a_reply_that_the_client_has_stopped_was_interrupted(name: str) -> None:
    one = REPLIES[name]
    assert one.cut is not None
    message = folded(name, *one.begin, *one.text, *one.cut(1), *one.end("cancelled"))[1].to_message()
    assert (message.status, message.text) == ("interrupted", "Hi")
    assert [call.type for call in message.blocks[1:]] == ["invalid_tool_call"]
