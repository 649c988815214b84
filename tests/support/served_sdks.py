"""The official SDKs, as a program would use them, against a server: what each of them says that the reply is."""

# The SDKs are no dependencies, and each has its own types.
# mypy: disable-error-code="no-any-return"

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from typing import Any, TypeAlias
from unittest import mock

import attrs
import pytest

import rxdelta as rd

__all__ = ["SURFACES", "Said", "Surface"]

QUESTION: Any = [{"role": "user", "content": "Hi"}]


@attrs.frozen
class Said:
    """What a client has of a reply."""

    text: str = ""
    calls: list[tuple[str, Any]] = attrs.field(factory=list)
    usage: tuple[int, int] | None = None


Ask: TypeAlias = Callable[[str, bool, float], Said]
"""Asks the server at a base URL for a stream or a whole body, with a limit in seconds."""


@attrs.frozen
class Surface:
    """An SDK's way to ask.

    Attributes:
        wire_format: The format that it reads.
        package: The package, which may be missing.
        ask: Asks.
        helper: Whether it asks for streams only.
    """

    wire_format: str
    package: str
    ask: Ask
    helper: bool = False

    def __call__(self, base_url: str, *, streams: bool = True, timeout: float = 10.0) -> Said:
        pytest.importorskip(self.package)
        return self.ask(base_url, streams, timeout)


def _openai(url: str, timeout: float) -> Any:
    import openai

    return closing(openai.OpenAI(base_url=url, api_key="fake", max_retries=0, timeout=timeout))


def _completion(found: Any) -> Said:
    message = found.choices[0].message
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
    return Said(message.content or "", calls, (found.usage.prompt_tokens, found.usage.completion_tokens))


def chat(url: str, streams: bool, timeout: float) -> Said:
    with _openai(url, timeout) as client:
        if not streams:
            return _completion(client.chat.completions.create(model="m", messages=QUESTION))
        text, usage = "", None
        calls: dict[int, list[Any]] = {}
        for chunk in client.chat.completions.create(model="m", messages=QUESTION, stream=True):
            usage = chunk.usage or usage
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    call = calls.setdefault(piece.index, ["", ""])
                    call[0] += piece.function.name or ""
                    call[1] += piece.function.arguments or ""
        made = [(name, json.loads(written)) for name, written in calls.values()]
        return Said(text, made, usage and (usage.prompt_tokens, usage.completion_tokens))


def chat_helper(url: str, _: bool, timeout: float) -> Said:
    with _openai(url, timeout) as client:
        options: Any = {"stream_options": {"include_usage": True}}
        with client.chat.completions.stream(model="m", messages=QUESTION, **options) as stream:
            return _completion(stream.get_final_completion())


def _response(found: Any) -> Said:
    calls = [(item.name, json.loads(item.arguments)) for item in found.output if item.type == "function_call"]
    return Said(found.output_text, calls, (found.usage.input_tokens, found.usage.output_tokens))


def responses(url: str, streams: bool, timeout: float) -> Said:
    import openai

    with _openai(url, timeout) as client:
        if not streams:
            return _response(client.responses.create(model="m", input="Hi"))
        for event in client.responses.create(model="m", input="Hi", stream=True):
            if event.type == "error":  # which the SDK passes on
                raise openai.APIError(event.message, request=mock.Mock(), body=None)
            if event.type == "response.completed":
                return _response(event.response)
        raise AssertionError("the stream has no end")


def responses_helper(url: str, _: bool, timeout: float) -> Said:
    with _openai(url, timeout) as client, client.responses.stream(model="m", input="Hi") as stream:
        return _response(stream.get_final_response())


def completions(url: str, streams: bool, timeout: float) -> Said:
    with _openai(url, timeout) as client:
        asked = client.completions.create(model="m", prompt="Hi", stream=streams)
        text, usage = "", None
        for chunk in asked if streams else [asked]:
            usage = chunk.usage or usage
            text += "".join(choice.text for choice in chunk.choices)
        return Said(text, [], usage and (usage.prompt_tokens, usage.completion_tokens))


def anthropic(url: str, streams: bool, timeout: float) -> Said:
    import anthropic

    with closing(anthropic.Anthropic(base_url=url, api_key="f", max_retries=0, timeout=timeout)) as client:
        asked: Any = {"model": "m", "max_tokens": 100, "messages": QUESTION}
        if streams:
            with client.messages.stream(**asked) as stream:
                found = stream.get_final_message()
        else:
            found = client.messages.create(**asked)
    text = "".join(block.text for block in found.content if block.type == "text")
    calls = [(block.name, block.input) for block in found.content if block.type == "tool_use"]
    return Said(text, calls, (found.usage.input_tokens, found.usage.output_tokens))


def gemini(url: str, streams: bool, timeout: float) -> Said:
    from google import genai
    from google.genai import types

    options = types.HttpOptions(base_url=url, timeout=int(timeout * 1000))
    with closing(genai.Client(api_key="fake", http_options=options)) as client:
        asked: Any = {"model": "m", "contents": "Hi"}
        models = client.models
        found = models.generate_content_stream(**asked) if streams else [models.generate_content(**asked)]
        text, usage = "", None
        calls: list[tuple[str, Any]] = []
        for one in found:
            usage = one.usage_metadata or usage
            for part in one.candidates[0].content.parts or ():
                text += part.text or ""
                if part.function_call:
                    calls.append((part.function_call.name, part.function_call.args))
        return Said(text, calls, usage and (usage.prompt_token_count, usage.candidates_token_count))


def ollama(url: str, streams: bool, timeout: float) -> Said:
    import ollama

    client = ollama.Client(host=url, timeout=timeout)
    with closing(client._client):
        asked = client.chat(model="m", messages=QUESTION, stream=streams)  # type: ignore[call-overload]
        text, usage = "", None
        calls: list[tuple[str, Any]] = []
        for line in asked if streams else [asked]:
            text += line.message.content or ""
            calls += [
                (call.function.name, dict(call.function.arguments)) for call in line.message.tool_calls or ()
            ]
            usage = (line.prompt_eval_count, line.eval_count) if line.done else usage
        return Said(text, calls, usage)


def mistral(url: str, streams: bool, timeout: float) -> Said:
    from mistralai.client import Mistral

    with Mistral(api_key="fake", server_url=url, timeout_ms=int(timeout * 1000)) as client:
        if not streams:
            return _completion(client.chat.complete(model="m", messages=QUESTION))
        text, usage = "", None
        calls: list[tuple[str, Any]] = []
        with client.chat.stream(model="m", messages=QUESTION) as stream:
            for event in stream:
                usage = event.data.usage or usage
                for choice in event.data.choices:
                    text += choice.delta.content or ""
                    calls += [
                        (call.function.name, json.loads(call.function.arguments))
                        for call in choice.delta.tool_calls or ()
                    ]
        return Said(text, calls, usage and (usage.prompt_tokens, usage.completion_tokens))


def cohere(url: str, streams: bool, timeout: float) -> Said:
    import cohere

    client = cohere.ClientV2(api_key="fake", base_url=url, timeout=timeout)
    once: Any = {"max_retries": 0}
    with closing(client._client_wrapper.httpx_client.httpx_client):
        if not streams:
            found = client.chat(model="m", messages=QUESTION, request_options=once)
            message = found.message
            calls = [
                (call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()
            ]
            text = "".join(part.text for part in message.content or ())
            return Said(text, calls, _cohere_usage(found.usage))
        text, usage = "", None
        pieces: list[list[str]] = []
        for event in client.chat_stream(model="m", messages=QUESTION, request_options=once):
            delta: Any = getattr(event, "delta", None)
            if event.type == "content-delta":
                text += delta.message.content.text or ""
            elif event.type == "tool-call-start":
                pieces.append([delta.message.tool_calls.function.name, ""])
            elif event.type == "tool-call-delta":
                pieces[event.index or 0][1] += delta.message.tool_calls.function.arguments
            elif event.type == "message-end":
                if delta.finish_reason == "ERROR":  # which the SDK passes on
                    raise cohere.core.ApiError(body=delta.error)
                usage = _cohere_usage(delta.usage)
        return Said(text, [(name, json.loads(written)) for name, written in pieces], usage)


def _cohere_usage(usage: Any) -> tuple[int, int]:
    return (int(usage.tokens.input_tokens), int(usage.tokens.output_tokens))


def bedrock(url: str, streams: bool, timeout: float) -> Said:
    import botocore.session
    from botocore.config import Config

    keys = {"AWS_ACCESS_KEY_ID": "fake", "AWS_SECRET_ACCESS_KEY": "fake"}
    with mock.patch.dict(os.environ, keys):
        limits: Any = {"read_timeout": timeout, "connect_timeout": timeout, "retries": {"max_attempts": 0}}
        client = botocore.session.get_session().create_client(
            "bedrock-runtime", region_name="us-east-1", endpoint_url=url, config=Config(**limits)
        )
        with closing(client):
            asked: Any = {"modelId": "m", "messages": [{"role": "user", "content": [{"text": "Hi"}]}]}
            if not streams:
                found = client.converse(**asked)
                content = found["output"]["message"]["content"]
                calls = [
                    (block["toolUse"]["name"], block["toolUse"]["input"])
                    for block in content
                    if "toolUse" in block
                ]
                text = "".join(block.get("text", "") for block in content)
                return Said(text, calls, _bedrock_usage(found))
            return _converse_stream(client.converse_stream(**asked)["stream"])


def _converse_stream(stream: Any) -> Said:
    text, usage = "", None
    pieces: dict[int, list[str]] = {}
    with closing(stream):
        for event in stream:
            start = event.get("contentBlockStart", {})
            delta = event.get("contentBlockDelta", {}).get("delta", {})
            text += delta.get("text", "")
            if "toolUse" in start.get("start", {}):
                pieces[start["contentBlockIndex"]] = [start["start"]["toolUse"]["name"], ""]
            if "toolUse" in delta:
                pieces[event["contentBlockDelta"]["contentBlockIndex"]][1] += delta["toolUse"]["input"]
            usage = _bedrock_usage(event["metadata"]) if "metadata" in event else usage
    return Said(text, [(name, json.loads(written)) for name, written in pieces.values()], usage)


def _bedrock_usage(found: Any) -> tuple[int, int]:
    return (found["usage"]["inputTokens"], found["usage"]["outputTokens"])


SURFACES = {
    "openai-chat": Surface("openai-chat", "openai", chat),
    "openai-chat-helper": Surface("openai-chat", "openai", chat_helper, helper=True),
    "openai-responses": Surface("openai-responses", "openai", responses),
    "openai-responses-helper": Surface("openai-responses", "openai", responses_helper, helper=True),
    "openai-completions": Surface("openai-completions", "openai", completions),
    "anthropic": Surface("anthropic-messages", "anthropic", anthropic),
    "google-genai": Surface("gemini", "google.genai", gemini),
    "ollama": Surface("ollama", "ollama", ollama),
    "mistralai": Surface("mistral", "mistralai.client", mistral),
    "cohere": Surface("cohere", "cohere", cohere),
    "botocore": Surface("bedrock-converse", "botocore", bedrock),
}
assert {surface.wire_format for surface in SURFACES.values()} <= {*rd.providers.FORMATS}
