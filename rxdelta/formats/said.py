"""A conversation as a client of a provider's API sends it back, with each request: what all of these APIs share.

Replies are read as the bodies of replies, by the decoder of the format, so there is one reading of both. A result belongs
to the newest call with its id. One whose call isn't there stays a message of its own.
"""

# Bodies are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final, Protocol

import attrs

from rxdelta.core import (
    Approval,
    Block,
    ContentPart,
    Event,
    InvalidValueError,
    MalformedChunkError,
    Message,
    MessageRole,
    ToolCall,
    ToolResult,
    Walk,
    denied_result,
    freeze,
    is_list,
    is_mapping,
    thaw,
)
from rxdelta.formats.admission import Admission
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE, REDACTED, SENT_AS

__all__ = [
    "STRING_OR_PARTS",
    "Conversation",
    "blocks_of",
    "body_of",
    "items_of",
    "part_of",
    "parts_of",
    "result_content",
]

STRING_OR_PARTS: Final = "must be a string or a list of parts"


@attrs.define
class _Turn:
    """A message of ours, of which a later message may answer the calls."""

    role: MessageRole
    blocks: list[Block]
    path: str
    metadata: Mapping[str, Any] | None = None


class Conversation:
    """The messages so far.

    Args:
        system: Whether instructions are admitted.
        allow: What the client may name, see `Admission`.
    """

    def __init__(self, system: bool, allow: Collection[str]) -> None:
        self._system = system
        self._admission = Admission(allow)
        self._turns: list[_Turn] = []
        self._calls: dict[str, tuple[list[Block], int]] = {}  # by id: where the newest call stands
        self._requests: dict[str, tuple[list[Block], int]] = {}  # for approval, by the ids of their items

    def instruct(self, blocks: Sequence[Block], path: str, role: object) -> None:
        """Add instructions.

        Raises:
            InvalidValueError: They aren't admitted.
        """
        if not self._system:
            wanted = "is allowed with system=True only: anybody could have written it"
            raise InvalidValueError.of([(path, role, wanted)])
        self._turns.append(_Turn("system", [*blocks], path))

    def ask(self, blocks: Sequence[Block], path: str) -> None:
        """Add a message of a person."""
        self._turns.append(_Turn("user", [*blocks], path))

    def reply(self, blocks: Sequence[Block], path: str) -> None:
        """Add a reply."""
        found = [one for block in blocks if (one := _as_spoken(block)) is not None]
        for place, block in enumerate(found):
            if not isinstance(block, ToolCall):
                continue
            item_id = block.metadata.get(ITEM_ID)
            if block.type != "server_tool_call":
                self._calls[block.call_id or ""] = found, place
            elif isinstance(item_id, str) and block.metadata.get(PROVIDER_TYPE) == "mcp_approval_request":
                self._requests[item_id] = found, place
        self._turns.append(_Turn("assistant", found, path))

    def answer(self, result: ToolResult, path: str) -> None:
        """Give a call its result."""
        call_id = result.call_id or ""
        if call_id in self._calls:
            self._settle(*self._calls[call_id], result)
            return
        parts = result.content
        text = parts if isinstance(parts, str) else json.dumps(thaw(parts), ensure_ascii=False)
        metadata = {"tool_call_id": result.call_id} | ({"is_error": True} if result.is_error else {})
        self._turns.append(_Turn("tool", [ContentPart("text", text)], path, metadata))

    def decide(self, request_id: str, decision: Approval, path: str) -> None:
        """Give a call that the provider asked for a person's decision. If that allows it, the call waits still.

        Raises:
            InvalidValueError: The provider hasn't asked for it.
        """
        if request_id not in self._requests:
            raise InvalidValueError.of([(path, request_id, "must name a request for approval before it")])
        if not decision.approved:
            self._settle(*self._requests[request_id], denied_result(request_id, decision.reason))

    @staticmethod
    def _settle(blocks: list[Block], place: int, result: ToolResult) -> None:
        call = blocks[place]
        if isinstance(call, ToolCall):
            metadata = {**call.metadata, "execution_status": "failed" if result.is_error else "completed"}
            blocks[place] = attrs.evolve(call, result=result, metadata=metadata)

    def messages(self) -> list[Message]:
        """The admitted part of the conversation.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        return self._admission.messages(
            (Message(role=turn.role, blocks=turn.blocks, metadata=turn.metadata), turn.path)
            for turn in self._turns
        )


def _as_spoken(block: Block) -> Block | None:
    """The block; of reasoning that nobody has signed or named the text alone, as of a provider that signs nothing."""
    if block.type != "reasoning" or not isinstance(block, ContentPart):
        return block
    if not block.options.keys().isdisjoint(("signature", ITEM_ID, REDACTED, SENT_AS)):
        return block
    return ContentPart("reasoning", block.text, {SENT_AS: "reasoning"}) if block.text else None


class _Decoder(Protocol):
    def decode(self, chunk: object, /) -> Sequence[Event]: ...

    def close(self) -> Sequence[Event]: ...


def blocks_of(decoder: _Decoder, body: Mapping[str, Any], path: str, wanted: str) -> list[Block]:
    """The blocks of a reply's body.

    Args:
        decoder: That of the format.
        body: The body.
        path: Where it stands in the request.
        wanted: What it isn't, if the decoder can't read it.

    Raises:
        InvalidValueError: The decoder can't read it.
        LimitExceededError: It has too many parts, or they are nested absurdly deep.
    """
    walk = Walk()
    try:
        for event in [*decoder.decode(body), *decoder.close()]:
            walk.step(event)
    except MalformedChunkError as error:
        raise InvalidValueError.of([(path, body, f"{wanted}: {error}")]) from error
    return [fold.block for fold in walk.blocks.values()]


def body_of(body: Any, wanted: str) -> Mapping[str, Any]:
    """The body of a request.

    Raises:
        InvalidValueError: It is no object.
    """
    if not is_mapping(body):
        raise InvalidValueError.of([("body", body, f"must be {wanted}, as an object")])
    return body


def items_of(found: Any, path: str, wanted: str) -> list[tuple[Mapping[str, Any], str]]:
    """The objects of a list, each with its path.

    Raises:
        InvalidValueError: It is no list of objects.
    """
    if not is_list(found):
        raise InvalidValueError.of([(path, found, f"must be a list, each {wanted}")])
    for place, item in enumerate(found):
        if not is_mapping(item):
            raise InvalidValueError.of([(f"{path}[{place}]", item, f"must be {wanted}")])
    return [(item, f"{path}[{place}]") for place, item in enumerate(found)]


def parts_of(content: Any, path: str, read: Callable[[Any], ContentPart | None], wanted: str) -> list[Block]:
    """The content of a person's message, or of the system's.

    Raises:
        InvalidValueError: It is neither a string nor a list of parts that `read` knows.
    """
    if isinstance(content, str):
        return [ContentPart("text", content)]
    if not is_list(content):
        raise InvalidValueError.of([(path, content, STRING_OR_PARTS)])
    return [part_of(part, f"{path}[{place}]", read, wanted) for place, part in enumerate(content)]


def part_of(part: Any, path: str, read: Callable[[Any], ContentPart | None], wanted: str) -> Block:
    """A part of it.

    Raises:
        InvalidValueError: `read` doesn't know the part.
    """
    block = read(part)
    if block is None:
        raise InvalidValueError.of([(path, part, wanted)])
    return block


def result_content(content: Any, path: str) -> Any:
    """The content of a tool's result.

    Raises:
        InvalidValueError: It is neither a string nor a list.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not is_list(content):
        raise InvalidValueError.of([(path, content, STRING_OR_PARTS)])
    return freeze(content, lenient=True)
