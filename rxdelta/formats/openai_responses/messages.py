"""The body of a request to OpenAI's Responses API → messages for the next request.

input  = text | item*
item   = message of a person, or with instructions
       | message of the assistant, reasoning, call, the provider's own items       neighbours are one reply
       | <the call's type>_output                                                  a result
       | mcp_approval_response                                                     a decision
"""

# Bodies are untyped JSON: each value is checked where it is read.
# pyright: reportUnknownArgumentType=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import attrs

from rxdelta.core import (
    Approval,
    Block,
    ContentPart,
    InvalidValueError,
    Message,
    ToolResult,
    freeze,
    is_list,
    is_mapping,
)
from rxdelta.formats.client_requests import (
    STRING_OR_PARTS,
    Conversation,
    blocks_of,
    body_of,
    items_of,
    parts_of,
    result_content,
)
from rxdelta.formats.conversation import response_part
from rxdelta.formats.decoding import Json, word
from rxdelta.formats.notes import ITEM_ID, PROVIDER_TYPE
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder
from rxdelta.formats.openai_responses.notes import REASONING, is_made


def from_openai_responses(
    body: Mapping[str, Any], *, system: bool = False, allow: Collection[str] = ()
) -> list[Message]:
    """The conversation in the body of a request to OpenAI's Responses API, for `to_request`.

    Neighbouring items of a reply are one message, with its reasoning, also encrypted, and its calls have their results.
    What OpenAI's own tools did comes back too. A call whose arguments can't be read is an invalid call. Images and files
    in a tool's result stay what they are, for those formats whose results may have them. The body's `instructions` are a
    system message, the first. A call of an MCP server that a person has allowed waits still: whether it runs is the word of
    `approve` in `run_tools`. Items with tools (`additional_tools`) are no part of the conversation:
    `tools_from_openai_responses` reads them.

    The client sends the whole conversation, also the assistant's and the tools' items, and may have changed it. Where that
    matters, take only the last message from the client and the others from your own storage. A client can't make the
    provider read what the server's key may read: an address with a scheme other than `https`, `http` and `data`, or the id
    of a file, is refused in a person's message or a tool's result; in a reply a medium with it is left out, and so is an item where
    the provider would read it. A
    reference to data that is stored with the provider is refused: `previous_response_id`, `conversation`, a `prompt`, an
    `item_reference`. So is a `background` response, which would have to be stored.

    Args:
        body: The body of the client's request, as object.
        system: Whether to accept `instructions`, and messages of the roles `system` and `developer`. Anybody who can send
            a request can add them. Codex sends such messages.
        allow: What the client may name nevertheless: schemes of addresses, such as `s3` and `gs`; `file_id`, the files that
            are stored with the provider; `tool_definitions`, the provider's tools that a client's tool search found.

    Raises:
        InvalidValueError: The body is none of such a request, names what isn't allowed, or has instructions without
            `system=True`. The error names the path.
        LimitExceededError: A reply has too many parts, or they are nested absurdly deep.

    Example:
        >>> import rxdelta as rd
        >>> body = {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}]}
        >>> rd.to_request(rd.requests.from_openai_responses(body), "anthropic-messages")
        {'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hi'}]}]}
    """
    given = body_of(body, "the body of a request for a response")
    said = _Input(system, allow)
    for name in _STORED:
        if given.get(name) not in (None, False):
            wanted = "names what is stored with the provider; the whole conversation must be in the request"
            raise InvalidValueError.of([(f"body.{name}", given[name], wanted)])
    instructions, items = given.get("instructions"), given.get("input")
    if instructions is not None and not isinstance(instructions, str):
        raise InvalidValueError.of([("body.instructions", instructions, "must be a string")])
    if instructions:
        said.conversation.instruct([ContentPart("text", instructions)], "body.instructions", instructions)
    if isinstance(items, str):
        said.conversation.ask([ContentPart("text", items)], "body.input")
    else:
        for item, path in items_of(items, "body.input", "an item of a response"):
            said.add(item, path)
    return said.messages()


class _Input:
    """The items so far. Those of the newest reply wait, since they are read together."""

    def __init__(self, system: bool, allow: Collection[str]) -> None:
        self.conversation = Conversation(system, allow)
        self._reply: list[Json] = []
        self._path = ""  # of its first item
        self._run: set[str] = set()  # the ids of its calls that the provider has run

    def add(self, item: Json, path: str) -> None:
        kind, role = item.get("type") or "message", item.get("role")
        if kind == _TOOLS:
            return
        if kind == "message" and role in ("user", "system", "developer"):
            self._end_reply()
            blocks = parts_of(item.get("content"), f"{path}.content", response_part, _PARTS)
            if role == "user":
                self.conversation.ask(blocks, path)
            else:
                self.conversation.instruct(blocks, f"{path}.role", role)
        elif kind == "message" and role != "assistant":
            raise InvalidValueError.of(
                [(f"{path}.role", role, "must be user, assistant, system or developer")]
            )
        elif kind == "mcp_approval_response":
            self._end_reply()
            self._decide(item, path)
        elif kind == "item_reference":
            advice = "the AI SDK sends it with providerOptions: {openai: {store: false}}"
            raise InvalidValueError.of([(path, item, "must be the item itself, and not its name", advice)])
        elif not isinstance(kind, str):
            wanted = "must be a message, a call, a result or another item of a reply"
            raise InvalidValueError.of([(path, item, wanted)])
        elif self._is_answer(kind, item):
            self._end_reply()
            self._answer(kind, item, path)
        else:
            self._continue(kind, item, path)

    def _is_answer(self, kind: str, item: Json) -> bool:
        """Whether the item is the result of a call that the client has run."""
        if kind == "tool_search_output":
            return item.get("execution") == "client"
        return kind in _ANSWERS and word(item.get("call_id")) not in self._run

    def _continue(self, kind: str, item: Json, path: str) -> None:
        if not isinstance(item.get("id"), (str, type(None))):
            raise InvalidValueError.of([(f"{path}.id", item["id"], "must be a string")])
        if kind in _CALLS and word(item.get("call_id")) is None:
            raise InvalidValueError.of([(f"{path}.call_id", item.get("call_id"), "must be a string")])
        place = item.get("environment")
        if is_mapping(place) and place.get("type") not in (None, "local"):
            self._run.add(str(item.get("call_id")))
        if not self._reply:
            self._path = path
        if is_made(item.get("id")):  # by our own encoder: OpenAI doesn't know it
            item = {name: value for name, value in item.items() if name != "id"}
        self._reply.append(_message(item, path) if kind == "message" else item)

    def _end_reply(self) -> None:
        if not self._reply:
            return
        body = {"object": "response", "status": "completed", "output": self._reply}
        wanted = "begins a reply that can't be read"
        blocks = blocks_of(OpenAIResponsesDecoder(), body, self._path, wanted)
        self._reply, self._run = [], set()
        self.conversation.reply([_known(block) for block in blocks], self._path)

    def _answer(self, kind: str, item: Json, path: str) -> None:
        call_id = item.get("call_id") or (item.get("id") if kind == "local_shell_call_output" else None)
        if not isinstance(call_id, str):
            raise InvalidValueError.of([(f"{path}.call_id", call_id, "must be a string")])
        if kind in _PLAIN:
            content = result_content(item.get("output"), f"{path}.output")
        else:
            content = freeze(item, lenient=True)
        self.conversation.answer(ToolResult(call_id, content), path)

    def _decide(self, item: Json, path: str) -> None:
        request_id, approved, reason = (
            item.get(name) for name in ("approval_request_id", "approve", "reason")
        )
        if not isinstance(approved, bool) or not isinstance(request_id, str):
            wanted = "must say what it decides (approval_request_id) and how (approve)"
            raise InvalidValueError.of([(path, item, wanted)])
        self.conversation.decide(request_id, Approval(approved, word(reason)), f"{path}.approval_request_id")

    def messages(self) -> list[Message]:
        self._end_reply()
        return self.conversation.messages()


def _message(item: Json, path: str) -> Json:
    """A message of the assistant as a reply has it. Some clients send a text alone, or parts that only persons have."""
    content = item.get("content")
    if isinstance(content, str):
        content = [{"type": "output_text", "text": content}]
    if not is_list(content):
        raise InvalidValueError.of([(f"{path}.content", content, STRING_OR_PARTS)])
    parts = [
        {**part, "type": "output_text"}
        if is_mapping(part) and part.get("type") in ("input_text", "text")
        else part
        for part in content
    ]
    return {**item, "type": "message", "status": item.get("status") or "completed", "content": parts}


def _known(block: Block) -> Block:
    """The block as OpenAI knows it. Reasoning without an id is OpenAI's if it is encrypted, as Codex sends it.

    Such a reasoning gets a note of its type. Without the note it would count as another provider's, which OpenAI refuses.
    """
    if not isinstance(block, ContentPart) or ITEM_ID in block.options:
        return block
    if block.type == "image":
        kept = {name: value for name, value in block.options.items() if name != PROVIDER_TYPE}
        return attrs.evolve(block, options=kept)
    if block.type != "reasoning":
        return block
    if "signature" not in block.options:
        return ContentPart("reasoning", block.text)
    return attrs.evolve(block, options={PROVIDER_TYPE: REASONING, **block.options})


_STORED: Final = ("previous_response_id", "conversation", "prompt", "background")
_TOOLS: Final = "additional_tools"
_PARTS: Final = "must be an input_text, input_image, input_file or input_audio, with its content"
_CALLS: Final = frozenset(["function_call", "custom_tool_call"])
_PLAIN: Final = frozenset(["function_call_output", "custom_tool_call_output"])
"""Results that are a text or parts. All others are objects of their own."""

_ANSWERS: Final = _PLAIN | frozenset(
    ["apply_patch_call_output", "computer_call_output", "local_shell_call_output", "shell_call_output"]
)
"""The results of calls that a client runs; those of a shell in a container are the provider's."""
