"""The AI SDK's providers for OpenAI and Anthropic on every recorded reply, whole and cut: they agree with our message."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from support.clients import ask
from support.front_ends import LEAK, in_javascript, recorded_replies, sse
from support.told_clients import ENCODERS, GONE, NATIVE_CALLS, WAYS, Case, Shown, cases, cut, encoder, whole

import rxdelta as rd

Json = dict[str, Any]
REASONS = {"tool-calls": "tool_use", "content-filter": "content_filter", "stop": "stop", "length": "length"}
HAS_REASON_OF_ITS_OWN = ("local_shell_call", "shell_call")
"""Calls that the AI SDK doesn't count as calls, in OpenAI's own streams either, when it says why a reply ended."""

NOTHING_SAID = "No output generated. Check the stream for errors."


def asked(case: Case) -> Json:
    """The line that lets the clients read a reply, with the tools that it calls."""
    calls = [block for block in case.snapshot.blocks if isinstance(block, rd.ToolCall)]
    told = rd.to_events(rd.Message.of("assistant", "Done."))
    made = encoder(case.wire_format)
    then = [*(frame for event in told for frame in made.encode(event)), *made.close()]
    return {
        "format": case.wire_format,
        "frames": [],
        "ends": [[0, case.body()]],
        "tools": sorted({call.name for call in calls if call.name and call.type != "server_tool_call"}),
        "then": "".join(map(sse, then)),
    }


def shown(case: Case, told: Json) -> Shown:
    """What the provider makes of the stream."""
    finish, is_own = told["finish"] or {"unified": None}, case.wire_format == "openai-responses"
    native = {
        call.call_id
        for call in case.snapshot.tool_calls
        if is_own and call.metadata.get("provider_type") in NATIVE_CALLS
    }
    in_containers = {
        block.call_id
        for block in case.snapshot.blocks
        if isinstance(block, rd.ToolCall) and block.type == "server_tool_call" and is_own
    }  # whose shell the AI SDK takes for the client's own, unless it is told
    calls: list[Any] = []
    for call in told["calls"]:
        if call["id"] in in_containers:
            continue
        if call["ours"] and call["id"] in native:
            calls.append([call["id"]])
        elif call["ours"] and (given := readable(call["input"])) is not None:
            calls.append([call["id"], call["name"], given])
    usage = finish.get("usage") or {"inputTokens": {}, "outputTokens": {}}
    given, made = usage["inputTokens"], usage["outputTokens"]
    reason, blocks = REASONS.get(finish["unified"]), case.snapshot.blocks
    kinds = {block.metadata.get("provider_type") for block in blocks if isinstance(block, rd.ToolCall)}
    if reason and is_own and (any(b.type == "refusal" for b in blocks) or kinds & {*HAS_REASON_OF_ITS_OWN}):
        reason = case.wanted().reason
    counts = given.get("total") or 0, given.get("cacheRead") or 0, made.get("total") or 0
    return Shown(told["text"], told["reasoning"], calls, reason, counts)


def readable(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return None  # the loop of tools tells the model so, and runs nothing


def check(case: Case, answer: Json) -> None:
    model, loop = answer["model"], answer["loop"]
    assert LEAK not in json.dumps(answer)
    wanted = [] if case.error is None else [case.error]
    if case.how != GONE:  # of which a client says what it likes
        told = [error for error in loop["errors"] if error != NOTHING_SAID]
        assert (model["errors"], told) == (wanted, wanted)
    said = shown(case, model)
    case.check(said)
    if case.is_whole:
        assert model["open"] == [], "a part is left open"
    runnable = [call for call in said.calls if len(call) == 3]
    names = {call.call_id: call.metadata.get("provider_type") for call in case.snapshot.tool_calls}
    ran = [
        [call["id"], call["name"], call["input"]]
        for call in loop["ran"]
        if case.wire_format != "openai-responses" or names.get(call["id"]) not in NATIVE_CALLS
    ]
    theirs, ours = ([in_javascript(call) for call in calls] for calls in (ran, runnable))
    assert all(call in ours for call in theirs), "half a call has been run"
    assert not case.is_whole or len(theirs) == len(ours), "a call hasn't been run"
    if case.is_whole and case.snapshot.tool_calls and loop["asked"] == 2:
        sent = json.dumps(loop["back"])
        assert all(json.dumps(call[0]) in sent for call in runnable), "a call isn't sent back"


def differences(found: Sequence[Case]) -> list[str]:
    """What the clients show otherwise than our message says, one line for each reply."""
    told: list[str] = []
    for case, (answer,) in zip(found, ask("providers.mjs", map(asked, found), timeout=1500), strict=True):
        try:
            check(case, answer)
        except AssertionError as error:
            told.append(f"{case.name}: {str(error)[:400]}")
    return told


@pytest.mark.parametrize("wire_format", ENCODERS)
def test_the_ai_sdk_reads_a_recorded_reply_whole_and_cut(wire_format: str) -> None:
    assert differences(cases(wire_format, each=1, every=24)) == []


@pytest.mark.slow
@pytest.mark.parametrize("wire_format", ENCODERS)
def test_the_ai_sdk_reads_many_recorded_replies_whole_and_cut(wire_format: str) -> None:
    assert differences(cases(wire_format, each=1, every=5)) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("wire_format", ENCODERS)
def test_the_ai_sdk_never_has_more_than_was_said_wherever_a_recorded_reply_is_cut(
    wire_format: str, part: int
) -> None:
    found: list[Case] = []
    for reply in recorded_replies()[part::4]:
        found.append(whole(reply, wire_format))
        ended = [isinstance(event, rd.events.MessageFinish) for event in reply.events]
        until = ended.index(True) if any(ended) else len(ended)
        step = 1 + until // 400
        found += [cut(reply, wire_format, n, WAYS[n // step % len(WAYS)]) for n in range(0, until + 1, step)]
    assert found or pytest.skip("no recordings")
    assert differences(found) == []
