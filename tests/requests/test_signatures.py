"""To whom a signature goes back: only to the vendor that gave it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support import ag_ui, ai_sdk
from support.conversations import call, recorded, reply, text, thought, whole, without_signers

import rxdelta as rd

SAME_VENDOR = {
    ("anthropic-messages", "bedrock-converse"),
    ("bedrock-converse", "anthropic-messages"),
    ("gemini", "gemini-interactions"),
    ("gemini-interactions", "gemini"),
}


def decoded(wire_format: str, *chunks: Any) -> rd.Message:
    decoder, fold = rd.providers.decoder(wire_format), rd.Fold()
    for event in [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]:
        fold.step(event)
    return fold.snapshot.to_message()


def signatures(found: Any) -> set[str]:
    """All that is signed or encrypted in JSON of any make."""
    if isinstance(found, list):
        return set[str]().union(*map(signatures, found))
    if not isinstance(found, dict):
        return set()
    hidden = (
        "data"
        if found.get("redacted") or found.get("type") in ("redacted_thinking", "reasoning.encrypted")
        else ""
    )
    own = {
        str(value)
        for name, value in found.items()
        if name in ("signature", "thoughtSignature", "thought_signature", hidden)
        or (name == "encrypted_content" and found.get("type") == "reasoning")
    }
    return {one for one in own if len(one) > 7}.union(*map(signatures, found.values()))


def written(message: rd.Message, wire_format: str) -> str:
    return json.dumps(rd.to_request(whole(message), wire_format), default=lambda found: found.hex())


@pytest.mark.parametrize("wire_format", rd.requests.REQUEST_FORMATS)
def test_no_request_has_another_vendors_signature(wire_format: str) -> None:
    seen = 0
    for case in recorded():
        (message,), source = case.values, str(case.id).partition("/")[0]
        if message is None:
            pytest.skip("there are no recordings")
        request = written(message, wire_format)
        assert "signed_by" not in request
        if source == wire_format or (source, wire_format) in SAME_VENDOR:
            continue
        found = signatures(message.to_dict())
        seen += len(found)
        passed = {one for one in found if one in request}
        if passed and wire_format in ("anthropic-messages", "bedrock-converse"):
            assert {block.options.get("format") for block in message.blocks if block.type == "reasoning"} == {
                "anthropic-claude-v1"
            }
        else:
            assert not passed, case.id
    assert seen > 20


def test_claudes_signature_is_good_at_anthropic_and_at_bedrock() -> None:
    start = {"type": "message_start", "message": {"id": "m", "model": "claude-opus-4-8", "role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"}, {"type": "redacted_thinking", "data": "b3BhcXVl"},
        {"type": "text", "text": "Hi"},
    ]}}  # fmt: skip
    of_anthropic = decoded("anthropic-messages", start, {"type": "message_stop"})
    assert (
        rd.to_request([of_anthropic], "anthropic-messages")["messages"][0]["content"]
        == start["message"]["content"]
    )
    signed = {"text": "Hm.", "signature": "c2lnbmVk"}
    at_bedrock = [
        {"reasoningContent": {"reasoningText": signed}},
        {"text": "Hi"},
    ]  # encrypted bytes differ there
    assert rd.to_request([of_anthropic], "bedrock-converse")["messages"][0]["content"] == at_bedrock
    body = {"output": {"message": {"content": at_bedrock}}, "stopReason": "end_turn"}
    of_bedrock = decoded("bedrock-converse", body)
    assert rd.to_request([of_bedrock], "anthropic-messages")["messages"][0]["content"] == [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2lnbmVk"},
        {"type": "text", "text": "Hi"},
    ]


def test_another_vendor_behind_anthropics_format_is_another_vendor() -> None:
    content = [{"type": "thinking", "thinking": "Hm.", "signature": "hash"}, {"type": "text", "text": "Hi"}]
    found = decoded(
        "anthropic-messages",
        {"type": "message", "model": "MiniMax-M2", "content": content, "stop_reason": "end_turn"},
    )
    assert rd.to_request([found], "anthropic-messages")["messages"][0]["content"] == content
    assert rd.to_request([found], "bedrock-converse")["messages"][0]["content"] == [{"text": "Hi"}]


def test_a_gateway_that_names_the_vendor_lets_the_signature_go_to_either() -> None:
    def routed(format: str) -> rd.Message:
        detail = {"type": "reasoning.text", "text": "Hm.", "signature": "c2ln", "format": format}
        message = {"role": "assistant", "content": "Hi", "reasoning_details": [detail]}
        return decoded(
            "openai-chat", {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        )

    claude, other = routed("anthropic-claude-v1"), routed("acme-v1")
    for message in (claude, other):
        (told,) = rd.to_request([message], "openai-chat")["messages"]
        assert told["reasoning_details"][0]["signature"] == "c2ln"
    assert signatures(rd.to_request([claude], "anthropic-messages")) == set()  # a short one isn't counted
    assert rd.to_request([claude], "anthropic-messages")["messages"][0]["content"][0]["signature"] == "c2ln"
    assert len(rd.to_request([other], "anthropic-messages")["messages"][0]["content"]) == 1


SIGNED = reply(
    thought("Hm.", signature="s1", signed_by="anthropic"),
    thought("", redacted=True, data="d", signed_by="anthropic-messages"),
    text("Hi", signature="s2", signed_by="google"),
    call("c", metadata={"signature": "s3", "signed_by": "google"}),
    call("d", metadata={"extra_content": {"google": {"thought_signature": "s4"}}, "signed_by": "openai-chat"}),
)  # fmt: skip


def test_the_text_of_a_reasoning_is_left_where_a_vendor_takes_it_unsigned() -> None:
    (chat, *_) = rd.to_request([SIGNED], "openai-chat")["messages"]
    assert (chat["reasoning"], "reasoning_details" in chat) == ("Hm.", False)
    assert [each.get("extra_content") for each in chat["tool_calls"]] == [
        None,
        {"google": {"thought_signature": "s4"}},
    ]
    (cohere, *_) = rd.to_request([SIGNED], "cohere")["messages"]
    assert cohere["content"][0] == {"type": "thinking", "thinking": "Hm."}
    gemini = rd.to_request([SIGNED], "gemini")["contents"][0]["parts"]
    assert [part.get("thoughtSignature") for part in gemini] == ["s2", "s3", None]


def test_a_signature_without_a_note_goes_where_it_went_before() -> None:
    unmarked = rd.to_request([without_signers(SIGNED)], "anthropic-messages")["messages"][0]["content"]
    assert [block["type"] for block in unmarked] == [
        "thinking",
        "redacted_thinking",
        "text",
        "tool_use",
        "tool_use",
    ]
    assert "thinking" not in [
        block["type"]
        for block in rd.to_request([SIGNED], "anthropic-messages", reasoning=False)["messages"][0]["content"]
    ]


EVENTS = [
    rd.events.MessageStart(id="m"),
    rd.events.BlockStart(0, {"type": "reasoning", "reasoning": ""}),
    rd.events.ReasoningDelta(0, "Hm."),
    rd.events.BlockDelta(0, {"signature": "s1", "signed_by": "anthropic"}),
    rd.events.BlockFinish(0),
    rd.events.BlockStart(1, {"type": "reasoning", "reasoning": "", "redacted": True, "data": "d", "signed_by": "openai-chat"}),
    rd.events.BlockFinish(1),
    rd.events.BlockStart(2, {"type": "tool_call_chunk", "id": "c", "name": "f", "args": "{}", "signature": "s2", "signed_by": "google"}),
    rd.events.BlockFinish(2),
    rd.events.MessageFinish("tool_use"),
]  # fmt: skip


def signers(*messages: rd.Message) -> list[Any]:
    blocks = [block for message in messages for block in message.blocks]
    return [
        (block.metadata if isinstance(block, rd.ToolCall) else block.options).get("signed_by")
        for block in blocks
    ]


def test_the_note_survives_storing_merging_and_a_browser() -> None:
    fold = rd.Fold()
    for event in EVENTS:
        fold.step(event)
    snapshot, everyone = fold.snapshot, ["anthropic", "openai-chat", "google"]
    assert signers(snapshot.to_message()) == everyone
    assert signers(rd.Message.from_dict(json.loads(json.dumps(snapshot.to_message().to_dict())))) == everyone
    assert signers((rd.Snapshot() + snapshot).to_message()) == everyone

    *frames, _ = ai_sdk.frames_of(EVENTS)
    assert signers(decoded("ai-sdk", *frames)) == everyone
    kept = [frame["providerMetadata"] for frame in frames if frame["type"] == "reasoning-end"]
    parts = [{"type": "reasoning", "text": "Hm.", "providerMetadata": metadata} for metadata in kept]
    returned = rd.from_ai_sdk([{"id": "m", "role": "assistant", "parts": parts}])
    assert signers(*returned) == everyone[:2]
    shown = ag_ui.read(ag_ui.told(*EVENTS)).messages
    assert signers(*rd.from_ag_ui({"messages": shown})) == everyone


def test_an_encrypted_item_of_an_unknown_kind_goes_back_to_its_own_format_alone() -> None:
    """Anthropic has a block of this name as well."""
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "c2VjcmV0"}
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": "Hi", "annotations": []}]}  # fmt: skip
    body = {"id": "r1", "object": "response", "status": "completed", "model": "m", "output": [item, said]}
    message = decoded("openai-responses", body)
    assert item in rd.to_request([message], "openai-responses")["input"]
    for other in {*rd.requests.REQUEST_FORMATS} - {"openai-responses"}:
        assert "c2VjcmV0" not in json.dumps(rd.to_request([message], other), default=str)
