"""Results of the provider's tools keep their places on the way through a browser."""

from __future__ import annotations

from typing import Any

import pytest
from support import ag_ui, ai_sdk

import rxdelta as rd


def body(*content: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "m",
        "model": "claude",
        "role": "assistant",
        "content": [*content],
        "stop_reason": "end_turn",
    }


def called(name: str, call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": call_id, "name": name, "input": {"x": name}, **more}


def answered(name: str, call_id: str) -> dict[str, Any]:
    output = {"type": f"{name}_result", "stdout": call_id}
    return {"type": f"{name}_tool_result", "tool_use_id": call_id, "content": output}


A, B, C = "srvtoolu_a", "srvtoolu_b", "srvtoolu_c"
BY_A = {"caller": {"type": "code_execution_20250825", "tool_id": A}}
TEXT = {"type": "text", "text": "Done."}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
CONTENTS = [
    [called("code_execution", A), called("web_fetch", B, **BY_A), answered("web_fetch", B), answered("code_execution", A), TEXT],
    [THOUGHT, called("code_execution", A), called("web_fetch", B, **BY_A), called("web_fetch", C, **BY_A),
     answered("web_fetch", B), answered("web_fetch", C), answered("code_execution", A), TEXT],
    [TEXT, called("code_execution", A), THOUGHT, TEXT, answered("code_execution", A), called("web_fetch", B), answered("web_fetch", B)],
    [called("web_fetch", A), answered("web_fetch", A), TEXT, called("web_fetch", B), answered("web_fetch", B), TEXT],
]  # fmt: skip


def events_of(content: list[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder("anthropic-messages")
    return [*decoder.decode(body(*content)), *decoder.close()]


def through_ai_sdk(events: list[rd.Event], **options: Any) -> list[rd.Message]:
    """By way of the message that the SDK's client keeps: a tool's part has the input and the output."""
    parts: list[Any] = []
    for kept in ai_sdk.read(ai_sdk.frames_of(events, **options)).parts:
        part = {**kept}
        metadata = part.pop("providerMetadata", {"rxdelta": part.pop("ours")} if "ours" in part else None)
        if "toolCallId" in part:
            part |= {"type": "dynamic-tool", "resultProviderMetadata": metadata}
        elif metadata is not None:
            part["providerMetadata"] = metadata
        parts.append(part)
    return rd.from_ai_sdk([{"id": "m", "role": "assistant", "parts": parts}])


def through_ag_ui(events: list[rd.Event], **options: Any) -> list[rd.Message]:
    return rd.from_ag_ui({"messages": ag_ui.read(ag_ui.told(*events, **options)).messages})


def shape(blocks: Any) -> list[Any]:
    return [
        (block.type, block.call_id if isinstance(block, rd.ToolCall) else block.options.get("tool_call_id"))
        for block in blocks
    ]


@pytest.mark.parametrize("through", [through_ai_sdk, through_ag_ui])
@pytest.mark.parametrize("content", CONTENTS)
def test_a_result_comes_back_at_its_place(through: Any, content: list[Any]) -> None:
    events, fold = events_of(content), rd.Fold()
    for event in events:
        fold.step(event)
    (message,) = through(events)
    assert shape(message.blocks) == shape(fold.snapshot.blocks)
    (hidden,) = through(events, reasoning=False)
    assert shape(hidden.blocks) == [one for one in shape(fold.snapshot.blocks) if one[0] != "reasoning"]


def test_what_a_browser_writes_as_a_place_may_be_anything() -> None:
    output = {
        "type": "dynamic-tool",
        "toolName": "f",
        "toolCallId": "c",
        "state": "output-available",
        "input": {},
        "output": 1,
        "providerExecuted": True,
    }
    for place in (-1, True, "3", None, 10**30):
        part = {**output, "resultProviderMetadata": {"rxdelta": {"place": place}}}
        (message,) = rd.from_ai_sdk([{"role": "assistant", "parts": [part, {"type": "text", "text": "Hi"}]}])
        assert sorted(block.type for block in message.blocks) == [
            "server_tool_call",
            "server_tool_result",
            "text",
        ]
