"""The messages that `useChat` sends with each turn, as those that the next request is made of.

A UI message's parts say what the chunks of its stream said, so they are told to the stream's decoder again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias

import attrs

from rxdelta.core import (
    DEFAULT_LIMITS,
    Block,
    BlockFold,
    Event,
    Fold,
    InvalidValueError,
    LimitExceededError,
    MalformedChunkError,
    Message,
    Snapshot,
    ToolCall,
    events,
    is_mapping,
    with_news,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.ai_sdk.decoder import AiSdkDecoder, written

__all__ = ["from_ai_sdk"]

Json: TypeAlias = Mapping[str, Any]

_AS_THEY_ARE = frozenset(["file", "reasoning-file", "custom", "source-url", "source-document"])
_OURS = frozenset(["data-block", "data-tool-update", "data-attempt-reset"])
_OF_A_PERSON = frozenset(["text", "file"])
_CUT = "The message ended before the call did."
_ASKING = frozenset(["tool_call", "invalid_tool_call"])
_OF_A_BLOCK = (
    events.TextDelta,
    events.ReasoningDelta,
    events.ToolCallDelta,
    events.DataDelta,
    events.BlockDelta,
    events.BlockFinish,
)


def from_ai_sdk(
    messages: Iterable[Mapping[str, Any]], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The `messages` of a request by Vercel's AI SDK, for `to_request`.

    Each step of an assistant's message becomes a message, whose calls have their results, those too that the
    client's own tools gave. What `to_ai_sdk` couldn't tell otherwise comes back: signatures, encrypted reasoning,
    citations. A call that was cut off is an invalid one, a call that was not allowed one that has failed, and
    an attempt that failed is left out. So are `data-…` parts of your own, parts that aren't known, and all but
    text and files of those who don't answer.

    The browser says what all of them said, the assistant and the tools too. Where that matters, take only the
    last message from it and the others from where you stored them. It can't have the provider read what the
    server's key may read: an address of another scheme than `https`, `http` and `data`, or the id of a file, is
    refused in what a person or a tool says, and left out with its part in what a model is said to have said. Of a
    reply's items in the provider's own form only those come back that models make.

    Args:
        messages: UI messages, as the client's request has them.
        system: Whether to take messages of role `system`, which whoever writes requests may add.
        allow: What the browser may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the
            files that are stored with the provider; `tool_definitions`, tools of the provider's that a client's
            tool search found.

    Raises:
        InvalidValueError: Something is no UI message, names what isn't allowed, or is a system message that isn't
            allowed; names it.
        LimitExceededError: A message has too many parts.

    Example:
        >>> import rxdelta as rd
        >>> said = [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]
        >>> rd.to_request(rd.from_ai_sdk(said), "openai-chat")
        {'messages': [{'role': 'user', 'content': 'Hi'}]}
    """
    admission = Admission(allow)
    found: list[tuple[Message, str]] = []
    if is_mapping(messages) or not isinstance(messages, Iterable):
        raise InvalidValueError.of([("messages", messages, "must be a list of UI messages")])
    for place, message in enumerate(messages):
        path = f"messages[{place}]"
        if not is_mapping(message):
            raise InvalidValueError.of([(path, message, "must be a UI message")])
        role, parts = message.get("role"), message.get("parts")
        if role not in ("user", "assistant", "system"):
            raise InvalidValueError.of([(f"{path}.role", role, "must be user, assistant or system")])
        if role == "system" and not system:
            raise InvalidValueError.of(
                [(f"{path}.role", role, "is allowed with system=True only: anybody could have written it")]
            )
        if not isinstance(parts, (list, tuple)):
            raise InvalidValueError.of([(f"{path}.parts", parts, "must be a list")])
        told = [one for one in _read(message, parts, path) if one.blocks]  # pyright: ignore[reportUnknownArgumentType]
        if role != "assistant":
            told = [attrs.evolve(one, role=role, finish_reason=None) for one in told]
        found += [(one, path) for one in told]
    return admission.messages(found)


def _read(message: Json, parts: Iterable[Any], path: str) -> Iterator[Message]:
    decoder, reply = AiSdkDecoder(), _Reply()
    for place, chunk in _chunks(message, parts, path):
        try:
            told = decoder.decode(chunk)
        except MalformedChunkError as error:
            raise InvalidValueError.of([(place, chunk, f"is no part of a UI message: {error}")]) from error
        for event in told:
            if isinstance(event, events.MessageStart) and reply.over:
                yield reply.message()
                reply = _Reply()
            reply.step(event)
    yield reply.message()


class _Reply:
    """A message that is being put together: a fold for each block and one for the rest.

    A fold of the whole shows all blocks at each step and looks for the call of each piece of news, and here nobody
    looks before the end.
    """

    def __init__(self) -> None:
        self._rest = Fold()
        self._blocks: dict[int | str, BlockFold] = {}
        self._news: dict[str, list[events.ToolUpdate]] = {}

    @property
    def over(self) -> bool:
        return self._rest.snapshot.status != "incomplete"

    def step(self, event: Event) -> None:
        if isinstance(event, events.BlockStart):
            if len(self._blocks) >= DEFAULT_LIMITS.blocks:
                what = "the number of blocks in one message"
                raise LimitExceededError.of("blocks", DEFAULT_LIMITS.blocks, what)
            self._blocks[event.index] = BlockFold(event)
        elif isinstance(event, _OF_A_BLOCK):
            self._blocks[event.index].step(event)
        elif isinstance(event, events.ToolUpdate):
            self._news.setdefault(event.call_id, []).append(event)
        else:
            if isinstance(event, events.AttemptReset):
                self._blocks, self._news = {}, {}
            elif isinstance(event, events.MessageFinish):  # whose reason depends on whether there are calls
                asked = (one for one in self._finished() if isinstance(one, ToolCall) and one.type in _ASKING)
                for call in islice(asked, 1):
                    self._rest.step(Snapshot(tool_calls=[call]))
            self._rest.step(event)

    def _finished(self) -> list[Block]:
        return [fold.finish() for fold in self._blocks.values()]

    def message(self) -> Message:
        blocks = [_with(block, self._news) for block in self._finished()]
        return attrs.evolve(self._rest.snapshot.to_message(), blocks=blocks)


def _with(block: Block, news: Mapping[str, list[events.ToolUpdate]]) -> Block:
    if isinstance(block, ToolCall):
        for one in news.get(block.call_id or "", ()):
            block = with_news(
                block,
                execution_status=one.execution_status,
                display_text=one.display_text,
                result=one.result,
            )
    return block


def _chunks(message: Json, parts: Iterable[Any], path: str) -> Iterator[tuple[str, Json]]:
    """The stream that the message could have come by."""
    said = message.get("metadata")
    metadata: Json = said if is_mapping(said) else {}
    yield path, {"type": "start", "messageId": message.get("id"), "messageMetadata": metadata}
    for number, part in enumerate(parts):
        place = f"{path}.parts[{number}]"
        kind = part.get("type") if is_mapping(part) else None
        if not isinstance(kind, str):
            raise InvalidValueError.of([(place, part, "must be an object with a type")])
        if message.get("role") == "assistant" or kind in _OF_A_PERSON:
            for chunk in _chunks_of(part, kind, f"{number}"):
                yield place, chunk
    if metadata.get("status") in ("interrupted", "incomplete"):
        yield path, {"type": "abort"}
    else:
        yield path, {"type": "finish", "finishReason": metadata.get("finishReason")}


def _chunks_of(part: Json, kind: str, own_id: str) -> Iterator[Json]:
    if kind == "step-start":
        yield {"type": "start-step"}
    elif kind in ("text", "reasoning"):
        metadata = _known(providerMetadata=part.get("providerMetadata"))
        yield {"type": f"{kind}-start", "id": own_id, **metadata}
        yield {"type": f"{kind}-delta", "id": own_id, "delta": part.get("text")}
        yield {"type": f"{kind}-end", "id": own_id, **_known(citations=part.get("citations")), **metadata}
    elif kind in _AS_THEY_ARE or kind in _OURS:
        yield part
    elif kind == "dynamic-tool" or kind.startswith("tool-"):
        name = part.get("toolName") if kind == "dynamic-tool" else kind.removeprefix("tool-")
        yield from _chunks_of_tool(part, name)


def _chunks_of_tool(part: Json, name: Any) -> Iterator[Json]:
    call = {
        "toolCallId": part.get("toolCallId"),
        **_known(providerExecuted=part.get("providerExecuted"), toolMetadata=part.get("toolMetadata")),
    }
    of_call, of_result = part.get("callProviderMetadata"), part.get("resultProviderMetadata")
    about = {"toolName": name, **_known(title=part.get("title"), providerMetadata=of_call), **call}
    result = {**_known(providerMetadata=of_result), **call}
    state, given = part.get("state"), part.get("input")
    approval = part.get("approval")
    if state == "input-streaming":
        raw = part.get("rawInput")
        text = raw if isinstance(raw, str) else written(given) if given is not None else ""
        yield {"type": "tool-input-error", "input": text, "errorText": _CUT, **about}
        return
    failed = part.get("errorText") or "The tool failed."
    if state == "output-error" and (not is_mapping(given) or _is_invalid(of_result) or _is_invalid(of_call)):
        raw = part.get("rawInput") if given is None else given
        yield {"type": "tool-input-error", "input": "" if raw is None else raw, "errorText": failed, **about}
        return
    yield {"type": "tool-input-available", "input": given, **about}
    if state == "output-available":
        preliminary = _known(preliminary=part.get("preliminary"))
        yield {"type": "tool-output-available", "output": part.get("output"), **preliminary, **result}
    elif state == "output-error":
        yield {"type": "tool-output-error", "errorText": failed, **result}
    elif state == "output-denied" or (is_mapping(approval) and approval.get("approved") is False):
        reason = approval.get("reason") if is_mapping(approval) else None
        if isinstance(reason, str) and reason:
            yield {"type": "tool-output-error", "errorText": reason, **result}
        else:
            yield {"type": "tool-output-denied", **result}


def _is_invalid(metadata: Any) -> bool:
    ours = metadata.get("rxdelta") if is_mapping(metadata) else None
    return is_mapping(ours) and ours.get("type") == "invalid_tool_call"


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
