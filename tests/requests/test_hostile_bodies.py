"""Bodies of requests that no honest client sends: our error, or messages that every format can write or refuse."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from formats.anthropic_messages.test_messages import CLAUDE_CODE, SYSTEM
from formats.openai_responses.test_messages import CODEX, PATCH, PATCHED
from support.security_page import says

import rxdelta as rd

Json = dict[str, Any]
SECRET = "not-yours"
"""What no request may hold."""

RESPONSES: Json = {"model": "m", "instructions": "Hi.", "input": [*CODEX, PATCH, PATCHED]}
MESSAGES: Json = {"model": "m", "system": SYSTEM, "messages": CLAUDE_CODE}
CHAT: Json = {
    "model": "m",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {
            "role": "assistant",
            "content": "Hm.",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "x"}]},
    ],
}

OLLAMA: Json = {
    "model": "m",
    "messages": [
        {"role": "user", "content": "Hi", "images": ["iVBORw0KGgo="]},
        {"role": "assistant", "content": "Hm.", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
        {"role": "tool", "tool_name": "f", "content": "x"},
    ],
}


def from_ollama(body: Any, **options: Any) -> list[rd.Message]:
    return rd.requests.from_ollama(body.get("messages"), **options)


def from_chat(body: Any, **options: Any) -> list[rd.Message]:
    return rd.requests.from_openai_chat(body.get("messages"), **options)


READERS: dict[str, tuple[Callable[..., list[rd.Message]], Json]] = {
    "responses": (rd.requests.from_openai_responses, RESPONSES),
    "anthropic": (rd.requests.from_anthropic_messages, MESSAGES),
    "chat": (from_chat, CHAT),
    "ollama": (from_ollama, OLLAMA),
}

VALUES: list[Any] = [
    None, True, 0, -1, 1e400, "", "x", "null", "\ud800", [], {}, [[]], [None], {"type": None}, {"type": "text"},
    {"type": ["x"]}, "system", "assistant", "user", "developer", "tool", "message", "item_reference",
    "function_call", "function_call_output", "tool_use", "tool_result", "call_a", "toolu_a", "c1",
    {"type": "input_file", "file_id": SECRET}, {"type": "input_image", "image_url": f"s3://{SECRET}"},
    {"type": "image", "source": {"type": "file", "file_id": SECRET}},
    {"type": "image", "source": {"type": "url", "url": f"gs://{SECRET}"}},
    {"type": "document", "uri": f"gs://{SECRET}"}, {"type": "container_upload", "file_id": SECRET},
    {"s3Location": {"uri": f"s3://{SECRET}"}}, {"fileUri": f"gs://{SECRET}", "type": "fileData"},
    [{"type": "image", "source": {"type": "file", "file_id": SECRET}}],
    [{"type": "input_image", "file_id": SECRET}, {"type": "text", "text": "x"}],
    {"type": "item_reference", "id": SECRET}, {"id": SECRET},
]  # fmt: skip


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in a value: the object or list, and the name or index."""
    for name in [*value] if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, name
        yield from places(value[name])


def mutated(body: Json, chance: random.Random) -> Json:
    changed = copy.deepcopy(body)
    for _ in range(chance.choice([1, 1, 2, 4])):
        found = [*places(changed)]
        if not found:
            break
        where, name = chance.choice(found)
        other, another = chance.choice(found)
        how = chance.randrange(5)
        if how == 0:
            where[name] = copy.deepcopy(chance.choice(VALUES))
        elif how == 1:
            where[name] = copy.deepcopy(other[another])
        elif how == 2 and isinstance(where, list):
            where.insert(name, copy.deepcopy(chance.choice([where[name], chance.choice(VALUES)])))
        elif how == 3 and isinstance(where, dict):
            where[chance.choice(NAMES)] = copy.deepcopy(chance.choice(VALUES))
        else:
            where.pop(name, None) if isinstance(where, dict) else where.pop(name)
    return changed


NAMES = [
    "type", "role", "id", "call_id", "content", "source", "file_id", "url", "cache_control", "environment", "status",
    "item_id", "signed_by", "provider_type", "encrypted_content", "signature", "is_error", "tools", "output",
    "execution_status", "metadata", "namespace", "caller",
]  # fmt: skip


def written(messages: list[rd.Message]) -> str:
    """What all formats make of them; one that has no place for a thing refuses it."""
    told: list[Any] = []
    for wire_format in rd.requests.REQUEST_FORMATS:
        try:
            told.append(rd.to_request(messages, wire_format))
        except rd.RxDeltaError:
            continue
    return json.dumps(told, default=str)


@says("Nothing that arrives")
@pytest.mark.parametrize("reader", READERS)
def test_any_body_is_read_or_refused(reader: str) -> None:
    read, body = READERS[reader]
    chance = random.Random(f"{reader} 1")
    refused = 0
    for _ in range(400):
        try:
            messages = read(mutated(body, chance), system=True)
        except rd.RxDeltaError:
            refused += 1
            continue
        for message in messages:
            assert message == rd.Message.from_dict(message.to_dict())
        written(messages)
    assert 0 < refused < 400


_FREE = ("input", "arguments", "args", "json", "response")
"""The arguments and results of the application's tools, which are any JSON."""


def followed(value: Any) -> Iterator[Any]:
    """The names in a request that a provider would follow."""
    if isinstance(value, dict):
        yield from (
            value[name]
            for name in ("file_id", "url", "image_url", "file_url", "uri", "fileUri")
            if name in value
        )
        for name, one in value.items():
            if name not in _FREE or isinstance(one, list):
                yield from followed(one)
    elif isinstance(value, list):
        for one in value:
            yield from followed(one)


@says("The rules hold for")
@pytest.mark.parametrize("reader", READERS)
def test_no_body_makes_a_provider_read_what_only_the_server_may(reader: str) -> None:
    read, body = READERS[reader]
    chance = random.Random(f"{reader} 2")
    secrets = [one for one in VALUES if SECRET in str(one)]
    seen = 0
    for _ in range(400):
        changed = copy.deepcopy(body)
        where, name = chance.choice([*places(changed)])
        where[name] = copy.deepcopy(chance.choice(secrets))
        try:
            messages = read(changed, system=True)
        except rd.RxDeltaError:
            continue
        for wire_format in (
            "openai-responses",
            "anthropic-messages",
            "openai-chat",
            "gemini",
            "bedrock-converse",
            "gemini-interactions",
        ):
            try:
                request = rd.to_request(messages, wire_format)
            except rd.RxDeltaError:
                continue
            seen += 1
            items = request.get("input", ())
            assert not [
                item for item in items if item.keys() == {"id"} or item.get("type") == "item_reference"
            ]
            assert not [one for one in followed(request) if SECRET in str(one)], (where, name, wire_format)
    assert seen > 100


@pytest.mark.parametrize("reader", READERS)
def test_a_body_that_is_nested_deep_is_refused(reader: str) -> None:
    read, body = READERS[reader]
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    for where in ("messages", "input"):
        for place in range(len(body.get(where, ()))):
            changed = copy.deepcopy(body)
            for name in ("content", "output", "arguments", "summary", "cache_control"):
                if name in changed[where][place]:
                    changed[where][place][name] = deep
            changed[where][place]["more"] = deep
            try:
                written(read(changed, system=True))
            except rd.RxDeltaError:
                continue
