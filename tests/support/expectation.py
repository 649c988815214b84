"""What a recorded stream must fold to, and whether a reply is that."""

from __future__ import annotations

import hashlib
from typing import Any

import rxdelta as rd

Told = dict[str, Any]


def expected_of(expectation: Told) -> Told:
    """The expectation of one choice in the form of `told_by`."""
    blocks = expectation["blocks"]
    return {
        "text": expectation["text"],
        "reasoning": "".join(_reasoning(block) for block in blocks),
        "signatures": [block["signature"] for block in blocks if block.get("signature")],
        "redacted": [_digest(block["data"]) for block in blocks if block.get("redacted")]
        + [block["raw"]["data_sha"] for block in blocks if "data_sha" in block.get("raw", ())],
        "refusal": "".join(block["text"] for block in blocks if block["type"] == "refusal"),
        "tool_calls": [
            _call(block) for block in blocks if block["type"] == "tool_call" or _responses_call(block)
        ],
        "server_tool_calls": [_call(block) for block in blocks if block["type"] == "server_tool_call"],
        "citations": [citation for block in blocks for citation in block.get("citations", ())]
        + _cohere_citations(expectation)
        + _gemini_citations(expectation),
        "others": [
            block["raw"]
            for block in blocks
            if block["type"] == "other" and "tool_result" in block["provider_type"]
        ]
        + [_bedrock_result(**block["raw"]) for block in blocks if block.get("provider_type") == "toolResult"]
        + [
            {block["provider_type"]: block["raw"]}
            for block in blocks
            if block.get("provider_type") in _GEMINI_PARTS
        ],
        "finish_reason": None if expectation["finish_reason"] == "failed" else expectation["finish_reason"],
    }


def _reasoning(block: Told) -> str:
    """Cohere's plan for its calls, which the reference keeps apart, is reasoning to us.

    The parts of a Responses summary are joined with a blank line, where the reference has nothing.
    """
    if block.get("summary_parts"):
        return "\n\n".join(block["summary_parts"])
    text: str = block["text"] if block["type"] == "thinking" else ""
    return str(block["raw"]) if block.get("provider_type") == "tool_plan" else text


def _cohere_citations(expectation: Told) -> list[Any]:
    """The reference gives those that number their citations to the message, not to a block."""
    return [
        found
        for found in expectation.get("citations", ())
        if "sources" in found or found.get("type") == "url_citation"
    ]


def _gemini_citations(expectation: Told) -> list[Any]:
    """Gemini's are of the candidate, not of a block; what the text rests on is a citation to us, too."""
    found = [
        citation
        for metadata in expectation.get("citations", ())
        for name in ("citations", "citationSources")
        for citation in metadata.get(name, ())
    ]
    grounding = expectation.get("grounding") or {}
    return found + [
        {**support, "groundingChunk": grounding["groundingChunks"][index]}
        for support in grounding.get("groundingSupports", ())
        for index in support.get("groundingChunkIndices", ())
    ]


def _bedrock_result(start: Told, deltas: list[Told]) -> Told:
    content = [item for delta in deltas for item in delta["toolResult"]]
    return {"type": start["type"], "tool_use_id": start["toolUseId"], "content": content}


def _responses_call(block: Told) -> bool:
    """The reference takes only functions for calls; these too are for the client to run."""
    if block.get("provider_type") not in (
        "local_shell_call",
        "shell_call",
        "apply_patch_call",
        "computer_call",
    ):
        return False
    environment = block["raw"].get("environment") or {"type": "local"}
    return bool(environment["type"] == "local")


def _call(block: Told) -> tuple[Any, ...]:
    raw = block.get("raw_arguments")
    if block.get("custom"):
        return (block["id"], block["name"], {"input": raw})
    if _responses_call(block):
        arguments = {n: block["raw"][n] for n in ("action", "operation") if n in block["raw"]}
        return (block["raw"]["call_id"], block["provider_type"].removesuffix("_call"), arguments)
    arguments = block["arguments"]
    if arguments is None:  # an OpenAI-like dialect has null for none, and anyone for what cannot be parsed
        arguments = raw or {}
    return (block["id"], block["name"], arguments)


def _digest(data: str) -> str:
    """The reference keeps long opaque data by the beginning of its hash."""
    return hashlib.sha256(data.encode()).hexdigest()[:16]


def told_by(reply: rd.Snapshot | rd.Message) -> Told:
    calls = [block for block in reply.blocks if isinstance(block, rd.ToolCall)]
    parts = [block for block in reply.blocks if isinstance(block, rd.ContentPart)]
    return {
        "text": reply.text,
        "reasoning": reply.reasoning,
        "signatures": [
            fields["signature"]
            for fields in (
                block.options if isinstance(block, rd.ContentPart) else block.metadata
                for block in reply.blocks
            )
            if isinstance(fields.get("signature"), str)
        ],
        "redacted": [_digest(part.options["data"]) for part in parts if part.options.get("redacted")],
        "refusal": "".join(part.text or "" for part in parts if part.type == "refusal"),
        "tool_calls": [_told_call(call) for call in calls if call.type != "server_tool_call"],
        "server_tool_calls": [_told_call(call) for call in calls if call.type == "server_tool_call"],
        "citations": [rd.core.thaw(citation.raw) for part in parts for citation in part.citations],
        "others": [
            _other(part) for part in parts if part.options.get("provider_type", "").endswith("_result")
        ]
        + [part for block in reply.blocks for part in _gemini_part(block)],
        "finish_reason": reply.provider_finish_reason,
    }


def _told_call(call: rd.ToolCall) -> tuple[Any, ...]:
    arguments = call.arguments_so_far if call.open and call.is_final() else call.arguments
    call_id = None if call.metadata.get("synthetic_id") is True else call.call_id
    return (call_id, call.name, {} if arguments in (None, "") else rd.core.thaw(arguments))


_GEMINI_PARTS = ("executableCode", "codeExecutionResult", "toolCall", "toolResponse")


def _gemini_part(block: rd.ContentPart | rd.ToolCall) -> list[Told]:
    """The provider's own part again: nothing of it may be lost."""
    if isinstance(block, rd.ToolCall):
        kind, call_id = block.metadata.get("provider_type"), _told_call(block)[0]
        fields = rd.core.thaw(block.arguments)
        if kind == "toolCall":
            fields = {"toolType": block.name} | ({"args": fields} if fields else {})
    else:
        kind, call_id = block.options.get("provider_type"), block.options.get("tool_call_id")
        fields = rd.core.thaw(block.options.get("output")) or {}
        if kind == "toolResponse":
            fields = {"toolType": block.options["toolType"]} | ({"response": fields} if fields else {})
    if kind not in _GEMINI_PARTS:
        return []
    return [{kind: fields | ({"id": call_id} if call_id else {})}]


def _other(part: rd.ContentPart) -> Told:
    """The provider's own block again: nothing of it may be lost."""
    whole = rd.core.thaw(part.options)
    kind = whole.pop("provider_type")
    whole.pop("status", None)
    return {"type": kind, "tool_use_id": whole.pop("tool_call_id"), "content": whole.pop("output"), **whole}


def in_order(expectation: Told) -> list[str]:
    """The kinds of the blocks in their order, without empty texts (of which the reference keeps some)."""
    kinds = {"thinking": "reasoning", "other": "other"}
    return [
        kinds.get(block["type"], block["type"])
        for block in expectation["blocks"]
        if not (block["type"] == "text" and not block["text"] and not block.get("citations"))
    ]


def order_of(reply: rd.Snapshot | rd.Message) -> list[str]:
    kinds = {"unsupported": "other", "server_tool_result": "other", "invalid_tool_call": "tool_call"}
    return [
        kinds.get(block.type, block.type)
        for block in reply.blocks
        if not (
            isinstance(block, rd.ContentPart)
            and block.type == "text"
            and not block.text
            and not block.citations
        )
    ]
