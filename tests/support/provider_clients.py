"""What clients of OpenAI's Responses API and of Anthropic's Messages API must show of a reply, and what they do show."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import attrs

import rxdelta as rd
from rxdelta.formats.usage import completed
from support.provider_frames import OWN_CALLS, MessageReader, Reader, ResponseReader, is_local

__all__ = ["WAYS", "Said", "Way", "said_by_message", "said_by_response"]

Json: TypeAlias = Mapping[str, Any]


@attrs.define
class Said:
    """What a client has of a whole reply, or of half a one.

    Attributes:
        texts: The texts, without empty ones. A refusal is a text to Anthropic's clients.
        refusals: The refusals.
        reasoning: The thoughts, without empty ones.
        signatures: What the client's own vendor has signed, or encrypted.
        calls: The calls that the client has to run: id, name and arguments.
        cited: The addresses of sources.
        reason: Why the reply ended, in the protocol's words.
        usage: The tokens: input, read from a cache, written to one, output, and reasoning.
    """

    texts: list[str] = attrs.Factory(list)
    refusals: list[str] = attrs.Factory(list)
    reasoning: list[str] = attrs.Factory(list)
    signatures: list[str] = attrs.Factory(list)
    calls: list[Any] = attrs.Factory(list)
    cited: list[str] = attrs.Factory(list)
    reason: str | None = None
    usage: tuple[int, ...] | None = None


@attrs.frozen
class Way:
    """One of the two protocols.

    Attributes:
        wire_format: The format that reads it.
        encoder: Makes an encoder, with `tools`, `reasoning` and so on.
        reader: Reads the frames as the protocol has them.
        vendors: By whom a signature is one that the client's own vendor can read.
        reasons: The protocol's words for ours.
    """

    wire_format: str
    encoder: Callable[..., Any]
    reader: Callable[..., Reader]
    vendors: frozenset[str]
    reasons: Mapping[str, str]

    def frames(
        self, events: Iterable[rd.Event], fails: Exception | None = None, **options: Any
    ) -> list[dict[str, Any]]:
        """The frames of a stream that completes, or fails, behind these events."""
        encoder = self.new(**options)
        frames = [frame for event in events for frame in encoder.encode(event)]
        return [*frames, *(encoder.close() if fails is None else encoder.fail(fails))]

    def new(self, **options: Any) -> Any:
        return self.encoder(**{"now": lambda: 7.9, "new_id": lambda: "made", **options})

    def read(self, events: Iterable[rd.Event], fails: Exception | None = None, **options: Any) -> Reader:
        """What a client has of them."""
        return self.reader(self.frames(events, fails, **options))

    def back(self, frames: Iterable[Json]) -> rd.Snapshot:
        """What our own decoder makes of the frames."""
        decoder, fold = rd.providers.decoder(self.wire_format), rd.Fold(choice=0)
        for event in [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]:
            fold.step(event)
        return fold.snapshot

    def wanted(self, reply: rd.Snapshot, *, reasoning: bool = True) -> Said:
        """What a client must have of a reply of any provider."""
        said = Said(calls=[self.call(call) for call in reply.tool_calls])
        for block in reply.blocks:
            if isinstance(block, rd.ToolCall):
                continue
            text = block.text or ""
            if block.type == "reasoning" and reasoning and not block.options.get("redacted"):
                said.reasoning += [text] if text else []
                said.signatures += self.signature(block)
            elif block.type == "refusal" and self is not WAYS["anthropic-messages"]:
                said.refusals += [text] if text else []
            elif block.type in ("text", "refusal"):
                said.texts += [text] if text else []
                said.cited += [one.url for one in block.citations if one.url] if text else []
        reason = reply.finish_reason
        if reason == "tool_use" and not said.calls:
            reason = "stop"
        said.reason = None if reason is None else self.reasons[reason]
        said.usage = self.usage({} if reply.usage is None else completed(reply.usage).billed)
        return said

    def signature(self, block: rd.ContentPart) -> list[str]:
        found, by = block.options.get("signature"), block.options.get("signed_by")
        mine = by is None or not self.vendors.isdisjoint(str(by).split(" via "))
        return [found] if isinstance(found, str) and found and mine else []

    def call(self, call: rd.ToolCall) -> Any:
        kind, given = call.metadata.get("provider_type"), rd.core.thaw(call.arguments)
        is_own = self is WAYS["openai-responses"]
        if is_own and kind in OWN_CALLS:
            return [call.call_id, kind]
        if is_own and kind == "custom_tool_call" and isinstance(given, dict):
            given = given["input"]
        return [call.call_id, call.name, {} if given is None else given]

    def usage(self, counts: Mapping[str, int]) -> tuple[int, ...] | None:
        count = counts.get
        given, made = count("input_tokens", 0), count("output_tokens", 0)
        read, wrote = count("cache_read_tokens", 0), count("cache_write_tokens", 0)
        if self is WAYS["openai-responses"]:
            known = {"input_tokens", "output_tokens"} & {*counts}
            return (given, read, wrote, made, count("output_reasoning_tokens", 0)) if known else None
        return max(0, given - read - wrote), read, wrote, made, count("output_reasoning_tokens", 0)

    def shown(self, reader: Reader) -> Said:
        """What a client has of the frames that it has read."""
        usage = None
        if reader.usage is not None:
            usage = (
                _responses_usage(reader.usage)
                if self is WAYS["openai-responses"]
                else _messages_usage(reader.usage)
            )
        return Said(
            texts=reader.texts("output_text", "text"),
            refusals=reader.texts("refusal"),
            reasoning=[said for said in reader.texts("reasoning", "thinking") if said],
            signatures=[item.signature for item in reader.items if item.signature],
            calls=[_read_call(*call) for call in reader.runnable()],
            cited=[one["url"] for item in reader.items for one in item.cited if one.get("url")],
            reason=reader.end,
            usage=usage,
        )


def _read_call(call_id: str, name: str, arguments: Any) -> Any:
    if name in OWN_CALLS:
        return [call_id, name]
    return [call_id, name, _value(arguments)]


def _value(arguments: str) -> Any:
    """The arguments of a function, or the text of a custom call."""
    try:
        return json.loads(arguments or "{}")
    except ValueError:
        return arguments


def _responses_usage(usage: Json) -> tuple[int, ...]:
    given, made = usage["input_tokens_details"], usage["output_tokens_details"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    return (
        usage["input_tokens"],
        given["cached_tokens"],
        given["cache_write_tokens"],
        usage["output_tokens"],
        made["reasoning_tokens"],
    )


def _messages_usage(usage: Json) -> tuple[int, ...]:
    return (
        usage["input_tokens"],
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
        usage["output_tokens"],
        (usage.get("output_tokens_details") or {}).get("thinking_tokens") or 0,
    )


def said_by_response(response: Json) -> Said:
    """What the body of a response says."""
    said, output = Said(), response["output"]
    parts = [part for item in output if item["type"] == "message" for part in item["content"]]
    said.texts = [part["text"] for part in parts if part["type"] == "output_text"]
    said.refusals = [part["refusal"] for part in parts if part["type"] == "refusal"]
    said.cited = [one["url"] for part in parts for one in part.get("annotations", ()) if one.get("url")]
    thoughts = [item for item in output if item["type"] == "reasoning"]
    said.reasoning = [part["text"] for item in thoughts for part in item["summary"]]
    said.signatures = [item["encrypted_content"] for item in thoughts if item.get("encrypted_content")]
    for item in output:
        if item["type"] in ("function_call", "custom_tool_call") and item.get("status") != "incomplete":
            said.calls.append(
                _read_call(item["call_id"], item["name"], item.get("arguments", item.get("input")))
            )
        elif item["type"] in OWN_CALLS and is_local(item):
            said.calls.append([item["call_id"], item["type"]])
    details = response.get("incomplete_details")
    said.reason = response["status"] if details is None else f"{response['status']}/{details['reason']}"
    said.usage = None if response.get("usage") is None else _responses_usage(response["usage"])
    return said


def said_by_message(message: Json) -> Said:
    """What the body of a message says."""
    said, content = Said(), message["content"]
    texts = [block for block in content if block["type"] == "text"]
    said.texts = [block["text"] for block in texts]
    said.cited = [one["url"] for block in texts for one in block.get("citations") or () if one.get("url")]
    thoughts = [block for block in content if block["type"] == "thinking"]
    said.reasoning = [block["thinking"] for block in thoughts if block["thinking"]]
    said.signatures = [block["signature"] for block in thoughts if block["signature"]]
    said.calls = [
        [block["id"], block["name"], block["input"]] for block in content if block["type"] == "tool_use"
    ]
    said.reason, said.usage = message["stop_reason"], _messages_usage(message["usage"])
    return said


def _ways() -> Sequence[Way]:
    cut = {"length": "incomplete/max_output_tokens", "content_filter": "incomplete/content_filter"}
    ended = {"stop": "end_turn", "tool_use": "tool_use", "length": "max_tokens"}
    return [
        Way(
            "openai-responses",
            rd.wire.OpenAiResponsesEncoder,
            ResponseReader,
            frozenset(["openai-responses"]),
            {"stop": "completed", "tool_use": "completed", "pause": "completed", **cut},
        ),
        Way(
            "anthropic-messages",
            rd.wire.AnthropicMessagesEncoder,
            MessageReader,
            frozenset(["anthropic", "anthropic-messages"]),
            {**ended, "content_filter": "refusal", "pause": "pause_turn"},
        ),
    ]


WAYS: Final[Mapping[str, Way]] = {way.wire_format: way for way in _ways()}
"""Both protocols, by the name of the format."""
