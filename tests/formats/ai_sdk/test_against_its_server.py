"""What the AI SDK's client shows of a recorded reply: written by our encoder, and by the SDK's own server and providers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
from support.clients import ask
from support.front_ends import Reply, in_javascript, recorded_replies, sse

import rxdelta as rd

Json = dict[str, Any]

EVENTS_HAVE_NAMES = {"anthropic-messages", "openai-responses"}
END_WITH_DONE = {"mistral", "openai-chat", "openai-completions"}
SERVED = {"gemini", *EVENTS_HAVE_NAMES, *END_WITH_DONE}
"""The formats of the providers' packages that are installed."""
# Where they differ by design; docs/reference/frames-ai-sdk.md lists each.
NAMES = "a provider's tool has the provider's name for it, not the SDK's"
INPUT = "arguments are what the provider sent, as an object, not the SDK's form of them"
IMAGE = "a picture is a file, not the output of a tool"
SUMMARY = "the provider's summary of an earlier conversation is a block of its own, not text of the reply"
PARAGRAPHS = "the parts of one reasoning are its paragraphs, not parts of the message"
WAITING = "calls that wait for the page are the finish reason, also where the provider says stop"
REFUSAL = "a refusal has the provider's finish reason, not content-filter"
UNFINISHED = (
    "a reply without a finish reason was cut off, where the provider always sends one, and only there"
)
NO_RESULT = "a provider's tool ends with the reply, also without a result or with an unfinished status"
CITED = "a page that the text cites is a source"
FETCHED = "a page that a tool fetched is a source"
NAMELESS = "a source without an address or a name isn't shown"

# What the SDK's server or provider loses.
HALF = "it repairs half a call and offers it as a whole one"
ALONE = "it fails at the result of a call of an earlier response"
CHOICES = "it mixes several choices"
WHOLE_TEXT = "it takes no text that comes without deltas"
RAW_REASONING = "it knows only summaries of reasoning"
GROQ = "it knows neither Groq's own tools nor its older usage"
XAI = "it takes xAI's output tokens for a total that includes reasoning"

LEFT_OUT = {"fails": ALONE, "text": ALONE, "usage": ALONE, "finish reason": ALONE}
DIFFERENT: dict[str, dict[str, str]] = {
    "anthropic-messages/anthsdk-compaction-response": {"text": SUMMARY},
    "anthropic-messages/anthsdk-incomplete-partial-json-response": {"calls": HALF},
    "anthropic-messages/pai-test-anthropic-web-fetch-tool-stream": {"sources": FETCHED},
    "anthropic-messages/vercel-anthropic-code-execution-20250825-pptx-skill": {"provider's tools": NAMES},
    "anthropic-messages/vercel-anthropic-code-execution-20260120-prompt-cache-1": {"provider's tools": NAMES},
    "anthropic-messages/vercel-anthropic-code-execution-file-upload-1": {"provider's tools": NAMES},
    "anthropic-messages/vercel-anthropic-compaction-1": {"text": SUMMARY},
    "anthropic-messages/vercel-anthropic-programmatic-tool-calling-1--part15": LEFT_OUT,
    "anthropic-messages/vercel-anthropic-tool-search-deferred-bm25--part2": LEFT_OUT | {"calls": ALONE},
    "anthropic-messages/vercel-anthropic-web-fetch-tool-1": {"sources": FETCHED},
    "gemini/fb-vertexai-streaming-failure-empty-content": {"fails": UNFINISHED, "finish reason": UNFINISHED},
    "gemini/fb-vertexai-streaming-failure-recitation-no-content": {"sources": CITED},
    "gemini/fb-vertexai-streaming-success-citations": {"sources": CITED},
    "gemini/gjs-streaming-success-citations": {"sources": CITED},
    "gemini/pai-test-google-model-file-search-grounding-gemini-3-true--3": {
        "provider's tools": NAMES,
        "sources": NAMELESS,
    },
    "gemini/pai-test-google-model-file-search-tool-stream--3": {
        "provider's tools": NO_RESULT,
        "sources": NAMELESS,
    },
    "openai-chat/mira-openai-gpt-4o-completions-async-stream-v2": {"finish reason": REFUSAL},
    "openai-chat/oi-streaming": {"finish reason": WAITING},
    "openai-chat/otel-test-async-chat-completion-multiple-choices-streaming": {"text": CHOICES},
    "openai-chat/pai-test-groq-model-web-search-tool-stream": {"provider's tools": GROQ, "usage": GROQ},
    "openai-chat/pai-test-snowflake-model-streaming": {"fails": UNFINISHED, "finish reason": UNFINISHED},
    "openai-chat/rubyoai-groq-llama3-8b-8192-streamed-chat": {"usage": GROQ},
    "openai-chat/tl-test-writer-async-streaming-chat-multiple-choices-legacy": {"text": CHOICES},
    "openai-chat/vercel-xai-text": {"usage": XAI},
    "openai-responses/pai-test-deepseek-responses-function-tool-stream": {"reasoning": RAW_REASONING},
    "openai-responses/pai-test-openai-responses-raw-cot-stream-openrouter": {"reasoning": RAW_REASONING},
    "openai-responses/pai-test-openai-responses-thinking-part-iter": {"reasoning": PARAGRAPHS},
    "openai-responses/vercel-azure-web-search-preview-tool-1": {"provider's tools": NO_RESULT},
    "openai-responses/vercel-lmstudio-tool-call-1": {"reasoning": RAW_REASONING},
    "openai-responses/vercel-openai-apply-patch-tool-delete-1": {"calls": INPUT},
    "openai-responses/vercel-openai-custom-tool-1": {"calls": INPUT},
    "openai-responses/vercel-openai-image-generation-tool-1": {"provider's tools": IMAGE, "files": IMAGE},
    "openai-responses/vercel-openai-local-shell-tool-1": {"finish reason": WAITING},
    "openai-responses/vercel-openai-mcp-tool-1": {"provider's tools": NAMES},
    "openai-responses/vercel-openai-phase-1": {"text": WHOLE_TEXT},
    "openai-responses/vercel-openai-shell-tool-1--part1": {"calls": INPUT, "finish reason": WAITING},
    "openai-responses/vercel-openai-web-search-tool-1": {"sources": CITED},
    "openai-responses/vercel-xai-image-generation-tool-1": {"provider's tools": IMAGE, "files": IMAGE},
}
"""The only differences, by recorded reply and field."""


def line(reply: Reply) -> Json:
    """What asks the SDK's server about a reply: what the provider sent, and the tools that were called."""
    body = "".join(
        f"event: {chunk.get('type', 'error')}\n" * (reply.wire_format in EVENTS_HAVE_NAMES)
        + f"data: {json.dumps(chunk)}\n\n"
        for chunk in reply.chunks
    )
    called = reply.folded(len(reply.events), cut=False)
    names = [block.name for block in called.blocks if isinstance(block, rd.ToolCall) and block.name]
    done = "data: [DONE]\n\n" * (reply.wire_format in END_WITH_DONE)
    return {"format": provider(reply), "body": body + done, "tools": {name: {} for name in names}}


def provider(reply: Reply) -> str:
    """The SDK has one package for OpenAI's chat completions and one for everybody else's."""
    models = {str(chunk.get("model")) for chunk in reply.chunks}
    others = reply.wire_format == "openai-chat" and not any(
        re.match(r"gpt-\d|o\d", model) for model in models
    )
    return "openai-compatible" if others else reply.wire_format


def frames(reply: Reply) -> str:
    encoder = rd.wire.AiSdkEncoder(sources="results", on_error=lambda error: "An error.")
    decoder = rd.providers.decoder(reply.wire_format)
    events = [*(event for chunk in reply.chunks for event in decoder.decode(chunk)), *decoder.close()]
    return "".join(sse(frame) for event in events for frame in encoder.encode(event)) + "".join(
        map(sse, encoder.close())
    )


def said(message: Json | None, error: str | None) -> Json:
    """What a person sees of it, and what the page would run."""
    parts = (message or {}).get("parts", [])
    metadata = (message or {}).get("metadata") or {}
    calls = [part for part in parts if "toolCallId" in part]
    name = {part["toolCallId"]: part.get("toolName") or part["type"].removeprefix("tool-") for part in calls}
    own = [part for part in calls if not part.get("providerExecuted")]
    usage = metadata.get("usage") or {}
    figures = {
        **{count: usage.get(count) for count in ("inputTokens", "outputTokens", "totalTokens")},
        **{count: value for details in _DETAILS for count, value in (usage.get(details) or {}).items()},
    }
    return {
        "fails": error is not None,
        "text": "".join(part["text"] for part in parts if part["type"] == "text"),
        "reasoning": "".join(part["text"] for part in parts if part["type"] == "reasoning"),
        "calls": [
            [name[part["toolCallId"]], part.get("input")] for part in own if part["state"] != "output-error"
        ],
        "provider's tools": [[name[part["toolCallId"]], part["state"]] for part in calls if part not in own],
        "sources": sorted(
            {part.get("url") or part["title"] for part in parts if part["type"].startswith("source-")}
        ),
        "files": [part["mediaType"] for part in parts if part["type"] == "file"],
        "usage": {count: figures[count] for count in _COUNTS if figures.get(count)},
        "finish reason": metadata.get("finishReason"),
    }


_DETAILS = "inputTokenDetails", "outputTokenDetails"
_COUNTS = (
    "inputTokens",
    "outputTokens",
    "totalTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
    "reasoningTokens",
)


@cache
def compared() -> dict[str, tuple[Json, Json]]:
    """What the SDK's server and what our encoder makes of each reply."""
    replies = [reply for reply in recorded_replies() if reply.wire_format in SERVED]
    if not replies:
        pytest.skip("no recordings")
    theirs = ask("ai_server.mjs", map(line, replies))
    ours = ask("ai_sdk.mjs", [{"body": frames(reply)} for reply in replies])
    return {
        reply.name: (said(one["message"], one["error"]), said(other["message"], other["error"]))
        for reply, one, other in zip(replies, theirs, ours, strict=True)
    }


def differences() -> Iterator[tuple[str, str, Any, Any]]:
    for name, (theirs, ours) in compared().items():
        if theirs["fails"] and ours["fails"]:
            continue  # neither has a whole reply
        for field, value in theirs.items():
            if in_javascript(value) != in_javascript(ours[field]):
                yield name, field, value, ours[field]


@pytest.mark.slow
def test_the_client_shows_what_it_shows_of_the_sdks_own_server() -> None:
    found = {(name, field) for name, field, _, _ in differences()}
    assert found == {(name, field) for name, fields in DIFFERENT.items() for field in fields}
