"""Events as the stream of a message, rule by rule. `test_provider_clients` has every recorded reply."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.provider_clients import WAYS
from support.runs import call, text, thought, turn

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
WAY = WAYS["anthropic-messages"]
START, CALLS = ev.MessageStart("m1", "small"), ev.MessageFinish("tool_use")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def frames_of(*events: rd.Event, **options: Any) -> list[Json]:
    frames = WAY.frames(events, **options)
    WAY.reader(frames)
    return [{**frame} for frame in frames]


def content(*events: rd.Event, **options: Any) -> list[Json]:
    found: list[Json] = rd.wire.anthropic_message(WAY.frames(events, **options))["content"]
    return found


def written(*pieces: str, name: str = "look") -> list[rd.Event]:
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": name})
    return [start, *(ev.ToolCallDelta(0, piece) for piece in pieces), ev.BlockFinish(0)]


def test_a_message_with_a_text() -> None:
    spent = rd.TokenUsage(10, 5, cache_read_tokens=2, cache_write_tokens=3, reasoning_tokens=1)
    frames = frames_of(START, *text(0, "Hi"), ev.MessageFinish("stop", usage=spent))
    message = {"id": "m1", "type": "message", "role": "assistant", "model": "small", "content": []}
    nothing = {"stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0}}
    usage = {
        "input_tokens": 5,
        "output_tokens": 5,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 3,
        "output_tokens_details": {"thinking_tokens": 1},
    }
    assert frames == [
        {"type": "message_start", "message": {**message, **nothing}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "H"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "i"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": usage,
        },
        {"type": "message_stop"},
    ]


def test_a_refusal_is_a_text() -> None:
    refusal = [ev.BlockStart(0, {"type": "refusal"}), ev.TextDelta(0, "No."), ev.BlockFinish(0)]
    assert content(*turn(refusal)) == [{"type": "text", "text": "No."}]


def test_a_text_that_its_end_corrects_stays_as_it_was_said() -> None:
    corrected = [*text(0, "Hi")[:-1], ev.BlockFinish(0, {"type": "text", "text": "Hello"})]
    assert content(*turn(corrected)) == [{"type": "text", "text": "Hi"}]


def test_thinking_without_a_signature_has_an_empty_one() -> None:
    assert content(*turn(thought(0, "Hm."))) == [{"type": "thinking", "thinking": "Hm.", "signature": ""}]


@pytest.mark.parametrize(
    ("signed_by", "kept"),
    [
        ("anthropic", True),
        ("anthropic via openai-chat", True),
        ("openai-responses", False),
        ("google", False),
    ],
)
def test_a_signature_goes_to_its_own_vendors_clients_only(signed_by: str, kept: bool) -> None:
    more = ev.BlockDelta(0, {"signature": "sig", "signed_by": signed_by})
    (block,) = content(*turn([*thought(0, "Hm.")[:-1], more, ev.BlockFinish(0)]))
    assert (block["thinking"], block["signature"]) == ("Hm.", "sig" if kept else "")


def test_a_signature_without_a_thought_is_a_block() -> None:
    signed = {"type": "reasoning", "signature": "sig", "signed_by": "anthropic"}
    assert content(*turn([ev.BlockFinish(0, signed)]))[0]["signature"] == "sig"
    signed["signed_by"] = "google"
    assert not content(*turn([ev.BlockFinish(0, signed)]))


@pytest.mark.parametrize("reason", ["tool_use", "stop"])
def test_arguments_that_cannot_be_read_end_the_message_with_an_error(reason: str) -> None:
    """Some clients repair them, and run the call; others raise an error of their own."""
    broken = [START, *written('{"at": '), ev.MessageFinish(reason)]
    frames = frames_of(*broken, tools=())
    assert frames[-1] == {"type": "error", "error": {"type": "api_error", "message": rd.wire.MASKED}}
    assert "content_block_stop" not in [frame["type"] for frame in frames]


def test_arguments_that_the_limit_has_cut_end_with_its_reason() -> None:
    frames = frames_of(START, *written('{"at": '), ev.MessageFinish("length"), tools=())
    assert [frame["type"] for frame in frames[-3:]] == ["content_block_stop", "message_delta", "message_stop"]
    assert frames[-2]["delta"]["stop_reason"] == "max_tokens"
    assert not content(START, *written('{"at": '), ev.MessageFinish("length"), tools=())


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal"), ("pause", "pause_turn")],
)
def test_the_reason_is_in_their_words(ours: str, theirs: str) -> None:
    frames = frames_of(START, *text(0, "Hi"), ev.MessageFinish(ours))
    assert frames[-2]["delta"]["stop_reason"] == theirs


def test_citations_follow_the_text() -> None:
    own = {
        "type": "char_location", "cited_text": "x", "document_index": 0, "document_title": "D",
        "start_char_index": 0, "end_char_index": 1, "file_id": None,
    }  # fmt: skip
    message = {"type": "message", "id": "m", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    decoder = rd.providers.decoder("anthropic-messages")
    said = {**message, "content": [{"type": "text", "text": "Hi", "citations": [own]}]}
    (block,) = content(*decoder.decode(said), *decoder.close())
    assert block["citations"] == [own]
    cited = [{"url": "https://x.test", "title": "X"}, {"title": "a document"}]
    (block,) = content(
        *turn([*text(0, "Hi")[:-1], ev.BlockDelta(0, {"citations": cited}), ev.BlockFinish(0)])
    )
    (citation,) = block["citations"]
    assert (citation["type"], citation["url"]) == ("web_search_result_location", "https://x.test")


def test_what_anthropic_itself_ran_is_passed_on_in_its_place() -> None:
    said: list[Json] = [
        {"type": "text", "text": "So."},
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
        {"type": "redacted_thinking", "data": "ZGF0YQ=="},
        {"type": "text", "text": "Done."},
    ]
    message = {"type": "message", "id": "m", "role": "assistant", "model": "c", "stop_reason": "end_turn"}
    decoder = rd.providers.decoder("anthropic-messages")
    events = [*decoder.decode({**message, "content": said}), *decoder.close()]
    assert content(*events) == said
    assert [item["type"] for item in WAYS["openai-responses"].frames(events)[-1]["response"]["output"]] == [
        "message",
        "message",
    ]


@pytest.mark.parametrize("call_id", ["srvtoolu_1", "tooluse_1"])
def test_a_result_goes_with_its_call_or_not_at_all(call_id: str) -> None:
    """Another server's calls have this type, too, and other ids. The API refuses a result whose call isn't there."""
    use = {"type": "server_tool_call", "id": call_id, "name": "web_search", "args": {"query": "x"}}
    result = {"type": "server_tool_result", "tool_call_id": call_id, "output": []}
    found = content(
        ev.MessageStart("m"),
        ev.BlockFinish(0, {**use, "provider_type": "server_tool_use"}),
        ev.BlockFinish(1, {**result, "provider_type": "web_search_tool_result"}),
        *turn(text(2, "So."))[1:],
    )
    own = ["server_tool_use", "web_search_tool_result"] if call_id.startswith("srvtoolu_") else []
    assert [block["type"] for block in found] == [*own, "text"]


def test_the_whole_body_adds_the_frames_up() -> None:
    frames = WAY.frames(turn(thought(0, "Hm."), text(1, "Hi"), call(2, "c1", "sea"), reason="tool_use"))
    body = rd.wire.anthropic_message(frames)
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use"]
    assert (body["stop_reason"], body["usage"]["output_tokens"]) == ("tool_use", 1)
    json.dumps(body)
    failed = rd.wire.anthropic_message(WAY.frames([START], ValueError("hunter2")))
    assert failed == {"type": "error", "error": {"type": "api_error", "message": rd.wire.MASKED}}
    for some in (frames[:-1], []):
        with pytest.raises(rd.errors.InvalidValueError):
            rd.wire.anthropic_message(some)
