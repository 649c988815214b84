"""OpenAI's older completions: texts that go on, and the ways in which they end."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rxdelta as rd

Chunk = dict[str, Any]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def choice(text: Any = "", finish: str | None = None, index: Any = 0, **extras: Any) -> Chunk:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish, **extras}


def chunk(*choices: Chunk, **extras: Any) -> Chunk:
    return {
        "id": "c1",
        "object": "text_completion",
        "created": 1,
        "model": "m",
        "choices": [*choices],
        **extras,
    }


def decoded(*chunks: Any, close: bool = True) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("openai-completions")
    events = [event for one in chunks for event in decoder.decode(one)]
    return [*events, *(decoder.close() if close else ())]


def folded(*chunks: Any, number: int = 0) -> rd.Snapshot:
    fold, lifecycle = rd.Fold(choice=number), rd.core.ProtocolChecker()
    for event in decoded(*chunks):
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot


def names(*chunks: Any) -> list[str]:
    return [event.event for event in decoded(*chunks, close=False)]


def test_a_text_in_pieces() -> None:
    told = folded(chunk(choice("a")), chunk(choice("b")), chunk(choice("c", "stop"))).to_message().to_dict()
    assert told == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "c1",
        "model": "m",
        "blocks": [{"type": "text", "text": "abc"}],
        "finish_reason": "stop",
        "provider_finish_reason": "stop",
        "metadata": {"created": 1},
    }


def test_a_chunk_of_plain_text_is_one_event() -> None:
    decoder = rd.providers.decoder("openai-completions")
    decoder.decode(chunk(choice("a")))
    assert tuple(decoder.decode(chunk(choice("b"), usage=None))) == (rd.events.TextDelta(0, "b"),)


def test_the_block_ends_with_the_finish_reason_and_the_message_with_the_usage() -> None:
    first = chunk(choice("a", "stop"), usage=None)
    assert names(first)[-1] == "content-block-finish"
    assert names(first, chunk(usage=USAGE))[-1] == "message-finish"
    reply = folded(first, chunk(usage=USAGE))
    assert reply.usage == rd.TokenUsage(7, 3, USAGE)


def test_text_behind_the_finish_reason_and_a_usage_beside_it_is_a_new_block() -> None:
    reply = folded(
        chunk(choice("a", "stop"), usage=USAGE), chunk(choice("b", "stop"), usage=USAGE), chunk(choice("c"))
    )
    assert [block.text for block in reply.blocks] == ["a", "bc"]  # type: ignore[union-attr]
    assert reply.usage == rd.TokenUsage(7, 3, USAGE)


@pytest.mark.parametrize("end", [rd.wire.DONE, chunk(usage=USAGE)])
def test_what_says_that_nothing_follows_completes_a_reply_without_a_reason(end: Any) -> None:
    message = folded(chunk(choice("a")), end).to_message()
    assert (message.finish_reason, message.metadata["finish_reason_assumed"]) == ("stop", True)


def test_what_comes_behind_done_is_passed_on() -> None:
    decoder = rd.providers.decoder("openai-completions")
    decoder.decode(chunk(choice("a", "stop")))
    assert [event.event for event in decoder.decode(rd.wire.DONE)] == ["message-finish"]
    assert [event.event for event in decoder.decode(chunk(choice("late")))] == ["provider"]
    assert [*decoder.decode(rd.wire.DONE), *decoder.decode(chunk(choice(""))), *decoder.close()] == []


@pytest.mark.parametrize("word", ["error", "abort"])
def test_a_reason_that_says_that_the_server_failed_is_an_error_behind_the_usage(word: str) -> None:
    *_, usage, _, error = decoded(chunk(choice("a", word)), chunk(usage=USAGE))
    assert isinstance(usage, rd.events.UsageUpdate)
    assert isinstance(error, rd.events.StreamError)
    assert (error.code, error.transient) == (word, True)


def test_a_running_usage_may_be_followed_by_the_last() -> None:
    running = {**USAGE, "completion_tokens": 1}
    chunks = [
        chunk(choice("a"), usage=running),
        chunk(choice("b", "stop"), usage=running),
        chunk(usage=USAGE),
    ]
    assert names(*chunks[:2])[-1] != "message-finish"
    assert folded(*chunks).usage == rd.TokenUsage(7, 3, USAGE)


def test_usage_null_says_nothing() -> None:
    assert folded(chunk(choice("a", "stop"), usage=None)).usage is None


def test_several_choices_end_together() -> None:
    chunks = [
        chunk(choice("a", index=1)),
        chunk(choice("b", index=0), choice("c", index=1)),
        chunk(choice("", "length", 1)),
        chunk(choice("", "stop", 0)),
        chunk(usage=USAGE),
    ]
    assert [(folded(*chunks, number=n).text, folded(*chunks, number=n).finish_reason) for n in (0, 1)] == [
        ("b", "stop"),
        ("ac", "length"),
    ]
    assert names(*chunks).count("message-finish") == 2


def test_lists_of_logprobs_go_on() -> None:
    def logprobs(token: str, offset: int) -> Chunk:
        return {"tokens": [token], "token_logprobs": [-1], "top_logprobs": None, "text_offset": [offset]}

    reply = folded(
        chunk(choice("a", logprobs=logprobs("a", 0), token_ids=[1])),
        chunk(choice("b", "stop", logprobs=logprobs("b", 1), token_ids=[2])),
    )
    assert rd.core.thaw(reply.metadata["logprobs"]) == {
        "tokens": ["a", "b"],
        "token_logprobs": [-1, -1],
        "text_offset": [0, 1],
    }
    assert rd.core.thaw(reply.metadata["token_ids"]) == [1, 2]


def test_what_a_vendor_adds_stays_with_the_message() -> None:
    reply = folded(
        {"id": "", "model": "", "object": "", "choices": [], "prompt_filter_results": [{"a": 1}]},
        chunk(choice("a"), system_fingerprint="fp", service_tier="x"),
        chunk(choice("", "stop", stop_reason="END", content_filter_results={"hate": 1})),
    )
    assert (reply.id, reply.model) == ("c1", "m")
    assert rd.core.thaw(reply.metadata) == {
        "created": 1,
        "prompt_filter_results": [{"a": 1}],
        "system_fingerprint": "fp",
        "service_tier": "x",
        "stop_reason": "END",
        "content_filter_results": {"hate": 1},
    }


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("content_filter", "content_filter"),
        ("eos_token", "stop"),
        ("x", "stop"),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    reply = folded(chunk(choice("a", word)))
    assert (reply.finish_reason, reply.provider_finish_reason) == (reason, word)


def test_no_text_at_all_is_a_message_without_blocks() -> None:
    assert folded(chunk(choice("", "stop"))).to_message().blocks == ()


def test_a_stream_without_a_finish_reason_is_incomplete() -> None:
    assert (
        folded(chunk(usage=USAGE), chunk(choice("a")), chunk(usage=USAGE), chunk(choice("b"))).status
        == "incomplete"
    )


def test_a_body_that_was_not_streamed_is_the_same() -> None:
    body = chunk(choice("ab", "stop"), usage=USAGE)
    assert (
        folded(body).to_message()
        == folded(
            chunk(choice("a")), chunk(choice("b")), chunk(choice("", "stop")), chunk(usage=USAGE)
        ).to_message()
    )


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        ({"error": {"message": "No", "type": "server_error", "code": 500}}, ("No", "server_error", "500")),
        ({"object": "error", "message": "No", "type": "Bad", "code": "x", "param": None}, ("No", "Bad", "x")),
        ({"error": "No"}, ("No", None, None)),
        ({"error": {"a": 1}}, ("unknown error", None, None)),
    ],
)
def test_an_error_ends_the_stream(error: Chunk, wanted: tuple[Any, ...]) -> None:
    last = decoded(chunk(choice("a")), error, chunk(choice("b")))[-1]
    assert isinstance(last, rd.events.StreamError)
    assert (last.message, last.type, last.code) == wanted


def test_what_comes_too_late_or_is_unknown_passes_on() -> None:
    for found in (chunk(choice("late")), {"something": "else"}):
        event = decoded(chunk(choice("a", "stop")), chunk(usage=USAGE), found)[-1]
        assert isinstance(event, rd.events.ProviderEvent)
        assert event.payload == found


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (None, ""),
        ([], ""),
        ({"choices": 1}, "choices"),
        ({"choices": [1]}, "choices[0]"),
        (chunk(choice(1)), "choices[0].text"),
        (chunk(choice("a"), choice("a", 1)), "choices[1].finish_reason"),  # type: ignore[arg-type]
        (chunk(choice("a", index=True)), "choices[0].index"),
        (chunk(choice("a", index=-1)), "choices[0].index"),
        (chunk(choice("a"), usage=1), "usage"),
    ],
)
def test_what_is_malformed_is_named_by_its_path(found: Any, path: str) -> None:
    with pytest.raises(rd.errors.MalformedChunkError) as caught:
        decoded(found)
    assert (caught.value.wire_format, caught.value.path) == ("openai-completions", path)


def test_an_absurd_index_is_refused() -> None:
    with pytest.raises(rd.errors.LimitExceededError):
        decoded(chunk(choice("a", index=2**31)))


@pytest.mark.parametrize(
    "found",
    [
        chunk(choice("a")),
        chunk(),
        {"choices": [{"index": 0, "text": ""}]},
        chunk(choice("a", "stop"), usage=USAGE),
    ],
)
def test_the_format_is_told_by_its_chunks(found: Chunk) -> None:
    assert rd.providers.detect(found) == "openai-completions"


def test_a_chat_that_repeats_its_text_is_a_chat() -> None:
    assert (
        rd.providers.detect({"choices": [{"index": 0, "text": "a", "delta": {"content": "a"}}]})
        == "openai-chat"
    )


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "text", "index", "logprobs", "usage", "error", "finish_reason", "tokens", "id"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
chunks = st.builds(
    lambda said, usage: chunk(*said, usage=usage),
    st.lists(
        st.builds(
            choice,
            st.sampled_from(["", "a"]),
            st.sampled_from([None, None, "stop"]),
            st.sampled_from([0, 1]),
            logprobs=st.none() | json_values,
        ),
        max_size=2,
    ),
    st.sampled_from([None, USAGE]),
)


@given(st.lists(json_values | chunks, max_size=6))
@settings(max_examples=300)
def test_anything_gives_events_that_keep_the_protocol_or_our_errors(found: list[Any]) -> None:
    decoder, lifecycle = rd.providers.decoder("openai-completions"), rd.core.ProtocolChecker()
    for one in [*found, None]:
        told: Any = ()
        with suppress(rd.RxDeltaError):
            told = decoder.close() if one is None else decoder.decode(one)
        for event in told:
            json.dumps(event.to_dict())
            if not isinstance(event, rd.events.StreamError):
                assert lifecycle.check(event) is None
