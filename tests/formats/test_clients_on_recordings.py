"""The front ends' own clients on every recorded reply, whole and cut behind each event: they agree with our message."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Any

import pytest
from support import ag_ui
from support.ai_sdk import said_by, said_in
from support.clients import ask
from support.front_ends import (
    LEAK,
    Ending,
    Reply,
    endings,
    in_javascript,
    read_by_lines,
    recorded_replies,
    sse,
)

import rxdelta as rd

Json = dict[str, Any]
ERROR = "An error."
SDKS = (5, 6, 7)
AG_UI = {"1.0.0": "1.0", "0.0.59": None}
"""AG-UI's clients, each with the version that its requests declare."""


# The AI SDK.


def ai_sdk(sdk_version: int) -> rd.wire.AiSdkEncoder:
    return rd.wire.AiSdkEncoder(sdk_version=sdk_version, provider_items=True, on_error=lambda error: ERROR)


def check_ai_sdk(end: Ending, shown: Json) -> None:
    wanted = end.snapshot
    assert shown["invalid"] is None
    assert shown["streaming"] == 0, "a part is left streaming"
    assert LEAK not in json.dumps(shown)
    failed = end.how not in ("completes", "stop") or (end.how == "completes" and not end.finished)
    assert shown["error"] == (f"Error: {ERROR}" if failed else None)
    assert shown["status"] == ("error" if failed else "ready")
    if wanted.blocks and not end.finished:  # what a page shows beside half a reply
        assert shown["ended"] == ("interrupted" if end.how == "stop" else "incomplete")
    said = [block.text or "" for block in wanted.blocks if block.type in ("text", "refusal")]
    assert shown["text"] == "".join(said)
    assert shown["reasoning"] == wanted.reasoning
    ours = [call for call in shown["calls"] if call["ours"]]
    runnable = [call for call in ours if call["state"] != "output-error"]
    assert calls([call["name"], call["input"]] for call in runnable) == calls(
        [call.name, rd.core.thaw(call.arguments)] for call in wanted.tool_calls
    )
    assert sorted(shown["toolCalls"]) == sorted(call["id"] for call in runnable), (
        "each call once, and no other"
    )


@pytest.mark.slow
@pytest.mark.parametrize("sdk_version", SDKS)
def test_the_ai_sdks_client_ends_up_with_every_recorded_reply(sdk_version: int) -> None:
    replies = recorded_replies() or pytest.skip("no recordings")
    lines = (
        {"body": whole(reply, ai_sdk(sdk_version)), "split": 1000 + 7 * n, "sdk": sdk_version}
        for n, reply in enumerate(replies)
    )
    for reply, answer in zip(replies, ask("ai_sdk.mjs", lines), strict=True):
        message = reply.folded(len(reply.events), cut=False)
        assert answer["invalid"] is None, reply.name
        if message.status == "incomplete":
            assert answer["error"] == f"Error: {ERROR}", reply.name
            continue
        assert (answer["error"], answer["status"]) == (None, "ready"), reply.name
        if message.blocks:
            ours, theirs = said_in(message), said_by(answer["message"])
            if sdk_version == 5:  # has no place for the metadata of a result or a file
                ours, theirs = without_metadata(ours), without_metadata(theirs)
            assert theirs == ours, reply.name
            assert sources(answer["message"]) == cited(message), reply.name


def without_metadata(said: Json) -> Json:
    """What is said, of a provider's result only its output, and of a file only the file."""
    results = [block for block in said["streamed"] if block["type"] == "server_tool_result"]
    outputs = [block["options"].get("output") for block in results]
    rest = [block for block in said["streamed"] if block not in results]
    files = [[block["type"], block.get("text")] for block in said["whole"]]
    return said | {
        "streamed": rest,
        "whole": files,
        "outputs": [output for output in outputs if output is not None],
    }


def whole(reply: Reply, encoder: Any) -> str:
    frames = [frame for event in reply.events for frame in encoder.encode(event)]
    return "".join(map(sse, [*frames, *encoder.close()]))


def sources(message: Json) -> set[str]:
    return {
        part.get("url") or part["title"] for part in message["parts"] if part["type"].startswith("source-")
    }


def cited(message: rd.Snapshot) -> set[str]:
    citations = (
        one for block in message.blocks if isinstance(block, rd.ContentPart) for one in block.citations
    )
    return {one.url or one.title for one in citations if one.url or one.title}


def calls(told: Iterable[Any]) -> list[str]:
    return sorted(json.dumps(in_javascript(one), sort_keys=True) for one in told)


# AG-UI.


def agent(version: str | None) -> Callable[[], rd.wire.AgUiEncoder]:
    run = {"threadId": "t1", "runId": "r1", "messages": ag_ui.ASKED}
    run |= {"protocolVersion": version} if version else {}
    return lambda: rd.wire.AgUiEncoder(run, on_error=lambda error: ERROR)


def check_ag_ui(end: Ending, shown: Json) -> None:
    wanted = end.snapshot
    assert shown["warnings"] == []
    assert LEAK not in json.dumps(shown)
    failed = end.how not in ("completes", "stop") or (end.how == "completes" and not end.finished)
    assert (shown["runError"] or {}).get("message") == (ERROR if failed else None)
    assert shown["error"] is None
    assert shown["finished"] is not failed
    assert shown["messages"][0] == ag_ui.ASKED[0]
    said = ag_ui.shown(shown["messages"])
    ours = ag_ui.wanted(wanted)
    assert {name: said[name] for name in ("text", "reasoning")} == {
        name: ours[name] for name in ("text", "reasoning")
    }
    assert calls(said["calls"]) == calls(ours["calls"])
    asked = [call for message in shown["messages"] for call in message.get("toolCalls") or ()]
    answered = {message["toolCallId"] for message in shown["messages"] if message["role"] == "tool"}
    left = [{"role": "assistant", "toolCalls": [call]} for call in asked if call["id"] not in answered]
    waiting = ag_ui.shown(left)["calls"]
    complete = [[call.name, rd.core.thaw(call.arguments)] for call in wanted.tool_calls]
    assert {*calls(waiting)} <= {*calls(complete)}, "half a call may be run"


# Both.

READERS: dict[str, tuple[str, Json, Callable[[], Any], Callable[[Ending, Json], None]]] = {
    **{
        f"ai {version}": (
            "ai_sdk.mjs",
            {"sdk": version},
            (lambda version=version: ai_sdk(version)),
            check_ai_sdk,
        )
        for version in SDKS
    },
    **{
        f"@ag-ui/client {client}": (
            "ag_ui.mjs",
            {"client": client, "messages": ag_ui.ASKED},
            agent(version),
            check_ag_ui,
        )
        for client, version in AG_UI.items()
    },
}


def differences(reader: str, cases: Sequence[tuple[Reply, Sequence[Ending]]]) -> list[str]:
    """What a client shows otherwise than our message says, one line for each ending."""
    script, options, new, check = READERS[reader]
    lines = ({**read_by_lines(reply, ends, new), **options} for reply, ends in cases)
    found: list[str] = []
    for (reply, ends), answer in zip(cases, ask(script, lines, timeout=1500), strict=True):
        for end, shown in zip(ends, answer, strict=True):
            try:
                check(end, shown)
            except AssertionError as error:
                found.append(f"{reply.name}, {end.count} events, {end.how}: {str(error)[:300]}")
    return found


def sample(each: int, seed: int = 17) -> list[tuple[Reply, Sequence[Ending]]]:
    """So many endings of each reply, by chance."""
    draw = Random(seed)
    every = ((reply, list(endings(reply))) for reply in recorded_replies())
    return [(reply, draw.sample(ends, min(each, len(ends)))) for reply, ends in every] or pytest.skip(
        "no recordings"
    )


@pytest.mark.parametrize("reader", READERS)
def test_a_client_agrees_wherever_a_recorded_reply_ends(reader: str) -> None:
    assert differences(reader, sample(1)[::6]) == []


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("reader", READERS)
def test_a_client_agrees_behind_every_event_of_every_recorded_reply(reader: str, part: int) -> None:
    cases = [(reply, list(endings(reply))) for reply in recorded_replies()[part::4]] or pytest.skip(
        "no recordings"
    )
    assert differences(reader, cases) == []
