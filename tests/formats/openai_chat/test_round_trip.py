"""Each recorded reply as a chat completion, and read back: nothing is lost but what the format has no place for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from support.clients import ask
from support.front_ends import recorded_replies, sse
from support.shared import RECORDED, recordings

import rxdelta as rd
from rxdelta.formats.usage import completed

CASES = [
    pytest.param(wire_format, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]
COUNTS = frozenset(
    [
        "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "output_reasoning_tokens",
        "input_audio_tokens", "output_audio_tokens",
    ]
)  # fmt: skip
"""The counts that OpenAI has names for."""


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def decoded(wire_format: str, chunks: Iterable[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


def encoded(events: Iterable[rd.Event], **options: Any) -> list[Any]:
    encoder = rd.wire.OpenAiChatEncoder(now=lambda: 7.0, new_id=lambda: "made", **options)
    return [*(frame for event in events for frame in encoder.encode(event)), *encoder.close()]


def folded(events: Iterable[rd.Event], choice: int) -> tuple[rd.Snapshot, bool]:
    """The reply, and whether it ended with an error."""
    fold = rd.Fold(choice=choice)
    for event in events:
        try:
            fold.step(event)
        except rd.ProviderError:
            return fold.snapshot, True
    return fold.snapshot, False


def prose(reply: rd.Snapshot) -> list[list[Any]]:
    """What is said, shown and cited. Neighbours of one type are one, since a completion has no marks between them."""
    said: list[list[Any]] = []
    for block in reply.blocks:
        if isinstance(block, rd.ToolCall):
            continue
        if block.type in ("text", "reasoning", "refusal") and (block.text or block.citations):
            if not said or said[-1][0] != block.type:
                said.append([block.type, "", []])
            start = sum(len(text) for kind, text, _ in said if kind == "text")
            said[-1][1] += block.text or ""
            for one in block.citations if block.type == "text" else ():
                if one.url:
                    length = len(block.text or "")  # the range of a citation without one of its own
                    end = length if one.end_index is None else min(length, one.end_index)
                    where = [start + min(one.start_index or 0, end), start + end]
                    said[-1][2].append([one.url, one.title or one.url, one.cited_text or None, where])
        elif block.type in ("image", "image_url", "audio"):
            said.append([block.type, block.text, block.options.get("url")])
    return said


def calls(reply: rd.Snapshot, *, streamed: bool) -> list[Any]:
    """The calls for the client. One that is known to be invalid isn't sent; streamed, it has been sent before."""
    asked = [
        call for call in reply.blocks if isinstance(call, rd.ToolCall) and call.type != "server_tool_call"
    ]
    return [
        (call.type, call.call_id, call.name, call.arguments)
        for call in asked
        if call.type == "tool_call" or (streamed and call.arguments not in (None, "", "{}"))
    ]


def choices(events: Iterable[rd.Event]) -> Sequence[int]:
    return sorted({event.choice for event in events if isinstance(event, rd.events.MessageStart)})


@pytest.mark.parametrize(("wire_format", "chunks"), CASES)
@pytest.mark.parametrize(
    "tools", [pytest.param(None, id="held"), pytest.param((), id="streamed", marks=pytest.mark.slow)]
)
def test_a_recorded_reply_comes_back_without_what_the_format_lacks(
    wire_format: str, chunks: list[Any], tools: Any
) -> None:
    streamed = tools is not None
    events = decoded(wire_format, chunks)
    frames = encoded(events, tools=tools)
    back = decoded("openai-chat", frames)
    assert frames[-1] is rd.wire.DONE
    assert choices(back) == choices(events)
    whole = all(folded(events, choice)[0].status != "incomplete" for choice in choices(events))
    for choice in choices(events):
        reply, failed = folded(events, choice)
        told, told_failed = folded(back, choice)
        assert prose(told) == prose(reply)
        assert (told.model, told.id) == (reply.model, reply.id or "made")
        if failed or reply.status == "incomplete" or not whole:
            assert told_failed
            assert told.finish_reason is None
            assert told.usage is None
            assert streamed or not calls(told, streamed=False)
            continue
        assert not told_failed
        assert calls(told, streamed=streamed) == calls(reply, streamed=streamed)
        asked = {"tool_use": "tool_use" if calls(reply, streamed=streamed) else "stop"}
        assert told.status == reply.status
        assert told.finish_reason == asked.get(str(reply.finish_reason), reply.finish_reason)
        spent = {} if reply.usage is None else completed(reply.usage).billed
        known = {name: count for name, count in spent.items() if name in COUNTS}
        totals = (
            {"input_tokens": 0, "output_tokens": 0} if {"input_tokens", "output_tokens"} & {*known} else {}
        )
        assert dict(told.usage.billed if told.usage else {}) == ({**totals, **known} if totals else {})


def addresses(reply: rd.Snapshot) -> list[str]:
    """The addresses that the reply cites, each once."""
    texts = (block for block in reply.blocks if isinstance(block, rd.ContentPart) and block.type == "text")
    return sorted({one.url for block in texts for one in block.citations if one.url})


def test_the_ai_sdks_own_openai_client_reads_the_citations_of_every_recorded_reply() -> None:
    replies = [reply for reply in recorded_replies() if addresses(reply.folded(len(reply.events), cut=False))]
    if not replies:
        pytest.skip("no recordings")
    bodies = ["".join(map(sse, encoded(reply.events, tools=()))) for reply in replies]
    asked = [{"format": "openai-chat", "body": body, "tools": {}} for body in bodies]
    for reply, body, told in zip(replies, bodies, ask("ai_server.mjs", asked), strict=True):
        message = reply.folded(len(reply.events), cut=False)
        if message.status == "incomplete":
            continue
        assert told["error"] is None, reply.name
        parts = told["message"]["parts"]
        assert sorted({one["url"] for one in parts if one["type"] == "source-url"}) == addresses(message)
        check_ranges(body)


def check_ranges(body: str) -> None:
    said = 0
    for line in body.splitlines():
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line.removeprefix("data: "))["choices"]:
            said += len(choice["delta"].get("content") or "")
            for one in choice["delta"].get("annotations") or ():
                where = one["url_citation"]
                assert 0 <= where["start_index"] <= where["end_index"] <= said
