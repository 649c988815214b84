"""OpenAI's older completions: texts that go on, and the ways in which they end."""

from __future__ import annotations

from typing import Any

import pytest

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


def test_usage_null_says_nothing() -> None:
    assert folded(chunk(choice("a", "stop"), usage=None)).usage is None


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


def test_a_stream_without_a_finish_reason_is_incomplete() -> None:
    assert (
        folded(chunk(usage=USAGE), chunk(choice("a")), chunk(usage=USAGE), chunk(choice("b"))).status
        == "incomplete"
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
