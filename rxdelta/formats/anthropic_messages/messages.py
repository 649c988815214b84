"""The body of a request to Anthropic's Messages API → messages for the next request.

message   = user | assistant | system, whose content is a string or a list of blocks
user      = tool_result* (text | image | document)*
assistant = all blocks of a reply
"""

# Bodies are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from rxdelta.core import Block, InvalidValueError, Message, ToolResult, is_list, is_mapping, real_id
from rxdelta.formats.anthropic_messages.decoder import AnthropicMessagesDecoder
from rxdelta.formats.client_requests import (
    Conversation,
    blocks_of,
    body_of,
    items_of,
    part_of,
    parts_of,
    result_content,
)
from rxdelta.formats.conversation import anthropic_part
from rxdelta.formats.decoding import Json, word


def from_anthropic_messages(
    body: Mapping[str, Any], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The conversation in the body of a request to Anthropic's Messages API, for `to_request`.

    Replies have their reasoning with its signatures, also what is redacted, and their calls have their results. What
    Anthropic's own tools did comes back too. Images and documents in a tool's result stay what they are, for those formats
    whose results may have them. `cache_control` stays at texts, media, calls and results. The body's `system` is a
    system message, the first.

    The client sends the whole conversation, also the assistant's messages and the results, and may have changed it. Where
    that matters, take only the last message from the client and the others from your own storage. A client can't make the
    provider read what the server's key may read: an address with a scheme other than `https`, `http` and `data`, or the id
    of a file, is refused in a person's message or a tool's result; in a reply a medium with it is left out, and so is an item where
    the provider would read it.

    Args:
        body: The body of the client's request, as object.
        system: Whether to accept `system`, and messages of this role, which Claude Code sends amid the others. Anybody who
            can send a request can add them. A request to Anthropic has all of them in its `system`.
        allow: What the client may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the files that
            are stored with the provider.

    Raises:
        InvalidValueError: The body is none of such a request, names what isn't allowed, or has instructions without
            `system=True`. The error names the path.
        LimitExceededError: A reply has too many parts, or they are nested absurdly deep.

    Example:
        >>> import rxdelta as rd
        >>> body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
        >>> rd.to_request(rd.requests.from_anthropic_messages(body), "openai-responses")
        {'input': [{'role': 'user', 'content': 'Hi'}]}
    """
    given = body_of(body, "the body of a request for a message")
    said = Conversation(system, allow)
    if given.get("system") not in (None, "", []):
        said.instruct(_parts(given["system"], "body.system"), "body.system", "system")
    for message, path in items_of(given.get("messages"), "body.messages", "a message"):
        role, content, at = message.get("role"), message.get("content"), f"{path}.content"
        if role == "system":
            said.instruct(_parts(content, at), f"{path}.role", role)
        elif role == "assistant":
            said.reply(_said(content, at), path)
        elif role == "user":
            _hear(said, content, path)
        else:
            raise InvalidValueError.of([(f"{path}.role", role, "must be user, assistant or system")])
    return said.messages()


def _hear(said: Conversation, content: Any, path: str) -> None:
    """Read what a user sends: the results of calls, and what a person says."""
    if not is_list(content):
        said.ask(_parts(content, f"{path}.content"), path)
        return
    asked: list[Block] = []
    for place, part in enumerate(content):
        at = f"{path}.content[{place}]"
        if is_mapping(part) and part.get("type") == "tool_result":
            said.answer(_result(part, at), at)
        else:
            asked.append(part_of(part, at, anthropic_part, _PARTS))
    if asked:
        said.ask(asked, path)


def _result(part: Json, path: str) -> ToolResult:
    call_id, cache = part.get("tool_use_id"), part.get("cache_control")
    if not isinstance(call_id, str):
        raise InvalidValueError.of([(f"{path}.tool_use_id", call_id, "must be a string")])
    content = result_content(part.get("content"), f"{path}.content")
    metadata = {} if cache is None else {"cache_control": cache}
    return ToolResult(call_id, content, part.get("is_error") is True, metadata=metadata)


def _said(content: Any, path: str) -> list[Block]:
    """The blocks of a reply."""
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content
    blocks = items_of(given, path, "a block of a reply")
    for block, at in blocks:
        if block.get("type") == "tool_use" and real_id(word(block.get("id"))) is None:
            raise InvalidValueError.of([(f"{at}.id", block.get("id"), "must be a string")])
    if not blocks:
        return []
    body = {"type": "message", "role": "assistant", "stop_reason": "end_turn", "content": given}
    return blocks_of(AnthropicMessagesDecoder(), body, path, "is no content of a reply")


def _parts(content: Any, path: str) -> list[Block]:
    return parts_of(content, path, anthropic_part, _PARTS)


_PARTS: Final = "must be a text, image or document, with its content, or a result of a tool"
