"""The merge rules of the systems that we follow, case by case, through public names only.

`parity_deviations.json` lists each case that differs on purpose, with the letter of the reason (docs/design.md) and
what ours gives instead. A deviation that no longer deviates fails too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.parity import same
from support.shared import parity

import rxdelta as rd

DEVIATIONS: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("parity_deviations.json").read_text("utf-8")
)


def check(case: dict[str, Any], got: Any, expected: Any) -> None:
    deviation = DEVIATIONS.get(case["id"])
    if deviation is None:
        assert same(expected, got), f"{case['about']}\nexpected {expected}\ngot      {got}"
        return
    assert not same(expected, got), (
        f"{case['id']} is listed as a deviation ({deviation['letter']}) but doesn't deviate"
    )
    assert same(deviation["ours"], got), f"{case['about']}\nours     {deviation['ours']}\ngot      {got}"


# From the parity vocabulary to ours.


def part(data: dict[str, Any] | None) -> rd.ContentPart | None:
    return data if data is None else rd.ContentPart.from_dict(data)


def item(data: Any) -> Any:
    if isinstance(data, dict):
        return data["raw"] if "raw" in data else part(data)
    return data


def call(data: dict[str, Any] | None) -> rd.ToolCall | None:
    return data if data is None else rd.ToolCall(**{"status": "incomplete", **data})


def usage(data: dict[str, Any] | None) -> rd.TokenUsage | None:
    if data is None:
        return None
    return rd.TokenUsage(
        data.get("input"), data.get("output"), data.get("raw"), data.get("cumulative", False)
    )


def delta(data: Any) -> Any:
    if isinstance(data, list):
        return [delta(one) for one in data]
    if data is None:
        return None
    if "error" in data:
        return rd.events.StreamError(data["error"])
    fields = dict(data)
    metadata = dict(fields.pop("metadata", None) or {})
    content = fields.pop("content", None)
    merged = fields.pop("merged_content", None)
    return rd.MessageDelta(
        content=[item(one) for one in content] if isinstance(content, list) else item(content),
        merged_content=part(merged) if isinstance(merged, dict) else [part(one) for one in merged or []],
        tool_calls=[call(one) for one in fields.pop("tool_calls", None) or []],
        usage=usage(metadata.pop("usage", None)),
        metadata=metadata,
        **fields,
    )


# And back.


def show_part(value: rd.ContentPart) -> dict[str, Any]:
    kind = {"reasoning": "thinking"}.get(value.type, value.type)
    citations = [rd.core.thaw(one.raw) | one.to_dict() for one in value.citations]
    return {"type": kind, "text": value.text, "options": rd.core.thaw(value.options), "citations": citations}


def show_call(value: rd.ToolCall) -> dict[str, Any]:
    names = ("status", "call_id", "name", "arguments", "index", "display_text", "metadata")
    return {name: rd.core.thaw(getattr(value, name)) for name in names}


def show_usage(value: rd.TokenUsage | None) -> Any:
    if value is None:
        return None
    return {
        "input": value.input_tokens,
        "output": value.output_tokens,
        "raw": rd.core.thaw(value.raw),
        "cumulative": value.cumulative,
    }


def show_content(value: Any) -> Any:
    if isinstance(value, tuple):
        return [show_content(one) for one in value]
    return show_part(value) if isinstance(value, rd.ContentPart) else value


def show_reply(value: rd.Snapshot | rd.Message) -> dict[str, Any]:
    metadata = rd.core.thaw(value.metadata)
    if value.usage is not None:
        metadata["usage"] = show_usage(value.usage)
    return {
        "role": value.role,
        "status": value.status,
        "tool_calls": [show_call(one) for one in value.tool_calls],
        "metadata": metadata or None,
    }


def show_delta(value: rd.Snapshot) -> dict[str, Any]:
    return show_reply(value) | {
        "content": show_content(value.content),
        "merged_content": [show_part(one) for one in value.merged_content],
        "index": value.index,
    }


def show_message(value: rd.Message, index: int | None) -> dict[str, Any]:
    parts = [show_part(block) for block in value.blocks if isinstance(block, rd.ContentPart)]
    return show_reply(value) | {
        "content": parts,
        "index": index,
    }  # a slot's number has no meaning in our message


def new_delta(attrs: dict[str, Any]) -> dict[str, Any]:
    fields = dict(attrs)
    metadata = dict(fields.pop("metadata", None) or {})
    spent = usage(metadata.pop("usage", None))
    made = rd.MessageDelta.from_dict(fields | {"metadata": metadata, "usage": spent and spent.to_dict()})
    return show_delta(made)


def new_usage(attrs: dict[str, Any]) -> dict[str, Any]:
    names = {"input": "input_tokens", "output": "output_tokens"}
    return show_usage(
        rd.TokenUsage.from_dict({names.get(name, name): value for name, value in attrs.items()})
    )


def scan(deltas: list[Any]) -> dict[str, Any]:
    snapshot, seen = None, []
    for one in deltas:
        snapshot = rd.merge_delta(snapshot, delta(one))
        seen.append(show_delta(snapshot))
    return {"snapshots": seen}


def to_message(given: dict[str, Any]) -> dict[str, Any]:
    value = delta(given)
    shown = show_message(value.to_message(), value.index)
    if given.get("merged_content", ()) is None:  # null and [] are one thing to us
        shown["content"] = shown["content"] or None
    return shown


def older(shown: Any) -> Any:
    """0.3 kept text as one string; where a part stands today makes no difference to it."""
    if isinstance(shown, dict) and "status" in shown:
        parts = shown.get("merged_content") or shown["content"]
        if isinstance(parts, list):
            shown["content"] = "".join(part["text"] for part in parts) or None
    return shown


def merged_many(deltas: list[Any], accumulated: Any) -> dict[str, Any]:
    merged = rd.merge_deltas(delta(accumulated), delta(deltas))
    return {"value": None} if merged is None else show_delta(merged)


OPERATIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "new_delta": lambda given: new_delta(given["attrs"]),
    "merge_delta": lambda given: show_delta(rd.merge_delta(delta(given["primary"]), delta(given["delta"]))),
    "merge_deltas": lambda given: merged_many(given["deltas"], given.get("accumulated")),
    "scan": lambda given: scan(given["deltas"]),
    "content_to_string": lambda given: {
        "value": given["delta"] and delta(given["delta"]).content_to_string(given.get("type", "text"))
    },
    "parts_to_string": lambda given: {
        "value": rd.MessageDelta(merged_content=[part(one) for one in given["parts"]]).content_to_string(
            given.get("type", "text")
        )
    },
    "to_message": lambda given: to_message(given["delta"]),
    "migrate": lambda given: show_delta(delta(given["delta"]).migrate_to_content_parts()),
    "accumulate_token_usage": lambda given: show_delta(
        delta(given["primary"]).accumulate_token_usage(delta(given["delta"]))
    ),
    "upsert_tool_call": lambda given: show_delta(delta(given["delta"]).upsert_tool_call(call(given["call"]))),
    "set_tool_execution_status": lambda given: show_delta(
        delta(given["delta"]).set_tool_execution_status(given["call_id"], given["status"])
    ),
    "set_tool_display_text": lambda given: show_delta(
        delta(given["delta"]).set_tool_display_text(given["call_id"], given["text"])
    ),
    "all_tools_terminal": lambda given: {"value": delta(given["delta"]).all_tools_terminal()},
    "tool_call_new": lambda given: show_call(
        rd.ToolCall.from_dict({name: value for name, value in given["attrs"].items() if name != "type"})
    ),
    "tool_call_complete": lambda given: show_call(call(given["call"]).complete()),
    "tool_call_merge": lambda given: show_call(
        call(given["part"]) if given["primary"] is None else call(given["primary"]).merge(call(given["part"]))
    ),
    "tool_call_arguments_as_map": lambda given: {
        "value": rd.core.thaw(call(given["call"]).arguments_as_map())
    },
    "tool_call_execution_status": lambda given: {
        "value": call(given["call"]).execution_status(
            *[given[name] for name in ("default",) if name in given]
        )
    },
    "part_new": lambda given: show_part(rd.ContentPart.from_dict(given["attrs"])),
    "part_merge": lambda given: show_part(
        part(given["part"]) if given["primary"] is None else part(given["primary"]).merge(part(given["part"]))
    ),
    "usage_new": lambda given: new_usage(given["attrs"]),
    "usage_add": lambda given: (
        show_usage(
            usage(given["left"]).add(usage(given["right"])) if given["left"] else usage(given["right"])
        )
        or {"value": None}
    ),
    "usage_total": lambda given: {"value": usage(given["usage"]).total()},
}


@pytest.mark.parametrize("case", [*parity("message_delta.json"), *parity("legacy_0_3.json")])
def test_merging_by_deltas(case: dict[str, Any]) -> None:
    try:
        got = OPERATIONS[case["op"]](case["input"])
    except rd.RxDeltaError as error:
        got = {"error": str(error)}
    if case["system"].startswith("elixir-0.3"):
        got = older(got)
    expected = case["expect"]
    if isinstance(expected, dict) and "error" in expected:
        said = isinstance(got, dict) and expected["error"].get("contains", "") in str(got.get("error", ""))
        failed = isinstance(got, dict) and "error" in got
        got, expected = {"error": failed and said, "said": got}, {"error": True}
    check(case, got, expected)


def show_block(block: rd.ContentPart | rd.ToolCall) -> dict[str, Any]:
    return {name: value for name, value in rd.core.block_to_wire(block).items() if name != "index"}


def assemble(raw: list[dict[str, Any]]) -> rd.Snapshot:
    snapshot = None
    for one in raw:
        snapshot = rd.apply_event(snapshot, rd.events.from_dict(one))
    return snapshot or rd.Snapshot()


# What RULES §3 rules where the two implementations differ, or where it overrules what they agree on.
RULED = {
    "pe-double-start-unfinished": {"blocks": [{"type": "text", "text": "b"}]},
    "pe-data-open": {"blocks": [{"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAA"}]},
    "pe-no-message-finish": {"blocks": [{"type": "text", "text": "a"}], "id": "m", "status": "incomplete"},
    "pe-empty-stream": {"blocks": [], "status": "incomplete"},
    "pe-tcd": {"blocks": [{"type": "tool_call", "id": "c", "name": "f", "args": {"a": 1}}]},
    "pe-invalid-tool": {"invalid_tool_calls": [{"id": "c", "name": "f", "args": '{"a":', "error": "bad"}]},
    "pe-invalid-and-valid": {"invalid_tool_calls": [{"id": "c", "name": "f", "args": "x", "error": "bad"}]},
    "pe-tool-use-string": {"blocks": [{"type": "tool_call", "id": "tu", "name": "calc", "args": {"x": 1}}]},
    "pe-usage-snapshots": {"usage": {"input_tokens": 10, "output_tokens": 9, "total_tokens": 19}},
    "pe-usage-start-only": {"usage": {"input_tokens": 7, "output_tokens": 0, "total_tokens": 7}},
    "pe-usage-partial": {"usage": {"input_tokens": 5}},
    "pe-usage-shrinks": {"usage": {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14}},
    "pe-error-then-more": {"error": "hiccup", "blocks": [{"type": "text", "text": "a"}]},
    "pe-error-first": {"error": "denied", "blocks": []},
}


@pytest.mark.parametrize("case", parity("protocol_events.json"))
def test_assembling_by_events(case: dict[str, Any]) -> None:
    got: dict[str, Any] = {}
    try:
        snapshot = assemble(case["input"]["events"])
    except rd.ProviderError as error:
        snapshot, got["error"] = error.snapshot, error.message
    assert snapshot is not None
    calls = {"tool_calls": snapshot.tool_calls, "invalid_tool_calls": snapshot.invalid_tool_calls}
    got |= {
        "id": snapshot.id,
        "status": snapshot.status,
        "usage": snapshot.usage and rd.core.thaw(snapshot.usage.raw),
        "blocks": [show_block(block) for block in snapshot.blocks],
        **{name: [show_block(one) for one in some] for name, some in calls.items()},
    }
    agreed = {
        name: value for name, value in (case.get("agreed") or {}).items() if name not in ("text", "reasoning")
    }
    agreed.pop("reason", None)
    check(case, got, agreed | RULED.get(case["id"], {}))


@pytest.mark.parametrize("case", parity("protocol_events.json"))
def test_naming_the_first_violation(case: dict[str, Any]) -> None:
    lifecycle = rd.core.ProtocolChecker()
    broken = [lifecycle.check(rd.events.from_dict(one)) for one in case["input"]["events"]]
    raises = case["input"].get("source_raises_after_events")
    broken.append("source_error" if raises else lifecycle.close())
    first = next((violation for violation in broken if violation), None)
    if "strict" in case:
        assert first == case["strict"]["violation"]
    elif case["id"] in (
        "pe-text",
        "pe-complex",
        "pe-interleaved",
        "pe-reasoning",
        "pe-server-tool",
        "pe-data",
    ):
        assert first is None
