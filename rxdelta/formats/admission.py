"""What a browser may bring into the next request.

A request is made with the server's key, so what a request only names (a file in a bucket, one that is stored with the
provider) the provider reads for whoever sent the name. A browser sends whole conversations, and may write into them
what it likes. Therefore:

* an address is one that everybody may read: `https:`, `http:`, `data:`, and what else the application allows by its
  scheme; an id of a file, or an address of the provider's own store of files, only if it allows `file_id`;
* a person says texts and media, with those fields that say what they are;
* of a reply's items in the provider's own form those come back that a model makes. A list says which, since formats
  use the same words for what is asked and what is answered.

What a person or a tool may not name is refused, because leaving it out would change what was asked. What is said to
be the model's own, and can't be, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote, urlsplit

import attrs

from rxdelta.core import Block, ContentPart, InvalidValueError, Message, ToolCall, is_mapping
from rxdelta.formats.notes import PROVIDER_TYPE

__all__ = ["Admission"]

Json: TypeAlias = Mapping[str, Any]

_PUBLIC: Final = frozenset(["https", "http", "data"])
_FILE, _TOOLS = "file_id", "tool_definitions"
_name = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):").match
_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_STORES: Final = ("generativelanguage.googleapis.com",)
"""Hosts whose addresses are those of files that are stored with the provider."""


class _Fault(NamedTuple):
    """What is wrong with something that is named, and by which word it could be allowed."""

    value: Any
    wrong: str
    word: str | None = None

    def error(self, path: str) -> InvalidValueError:
        unless = f"; allow=({self.word!r},) would allow it" if self.word else ""
        return InvalidValueError.of([(path, self.value, f"{self.wrong}{unless}")])


class Admission:
    """What an application admits of a browser's messages.

    Args:
        allow: Schemes of addresses beside `https`, `http` and `data`; `file_id`; `tool_definitions`.

    Raises:
        InvalidValueError: `allow` is no collection of such words.

    Example:
        >>> import rxdelta as rd
        >>> part = rd.ContentPart("file", None, {"url": "s3://bucket/a.pdf"})
        >>> said = rd.Message(role="user", blocks=[part])
        >>> Admission(["s3"]).message(said, "messages[0]") == said
        True
        >>> Admission([]).message(said, "messages[0]")
        Traceback (most recent call last):
            ...
        rxdelta.core._errors.InvalidValueError: messages[0]: ...
    """

    def __init__(self, allow: Collection[str]) -> None:
        given: Any = allow
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        words: list[Any] = [*given] if several else []  # pyright: ignore[reportUnknownArgumentType]
        if not several or not all(map(_is_word, words)):
            wanted = f"must be schemes of addresses such as 's3', or {_FILE!r}, or {_TOOLS!r}"
            raise InvalidValueError.of([("allow", given, wanted)])  # pyright: ignore[reportUnknownArgumentType]
        self._allow = frozenset(words) | _PUBLIC
        self._in_words: frozenset[str] = frozenset()

    def messages(self, told: Iterable[tuple[Message, str]]) -> list[Message]:
        """What of a conversation is admitted, each message with its path; those of which nothing is, are left out.

        A request finds a result's call by its id alone, so one call that has its result in a provider's words tells
        how all results under its id are read.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        told = [*told]
        calls = (call for message, _ in told for call in message.blocks if isinstance(call, ToolCall))
        self._in_words = frozenset(call.call_id or "" for call in calls if _has_its_words(call))
        admitted = [self.message(message, path) for message, path in told]
        return [message for message in admitted if message.blocks]

    def message(self, message: Message, path: str) -> Message:
        """The message with what of it is admitted.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        if message.role != "assistant":
            return attrs.evolve(message, blocks=[self._said(block, path) for block in message.blocks])
        admitted: list[Block] = []
        broken: set[str | None] = set()  # the calls of which a part is left out
        for block in message.blocks:
            if self._admits(block):
                admitted.append(block)
            else:
                broken.add(_run(block))
        blocks = [block for block in admitted if _run(block) is None or _run(block) not in broken]
        for block in blocks:
            if isinstance(block, ToolCall) and (fault := self._in_result(block)) is not None:
                raise fault.error(path)
        metadata = {name: value for name, value in message.metadata.items() if name not in _NOT_ITS_METADATA}
        return attrs.evolve(message, blocks=blocks, metadata=metadata)

    # What a person says.

    def _said(self, block: Block, path: str) -> Block:
        if not isinstance(block, ContentPart):
            raise _Fault(block, "must be a text, an image, a sound, a film or a file").error(path)
        if (fault := self._in_medium(block)) is not None:
            raise fault.error(path)
        known = _OF_A_PERSONS if block.type in _MEDIA else ()
        options = {name: value for name, value in block.options.items() if name in known}
        return attrs.evolve(block, options=options, citations=())

    def _in_medium(self, part: ContentPart) -> _Fault | None:
        options = part.options
        if part.type not in _MEDIA:
            return None
        if _FILE in options and _FILE not in self._allow:
            return _Fault(options[_FILE], "names a file that is stored with the provider", _FILE)
        addresses = [options["url"]] if "url" in options else []
        addresses += [part.text] if part.type.endswith("_url") and part.text else []
        return self._first(map(self._in_address, addresses))

    def _in_address(self, address: Any) -> _Fault | None:
        scheme = _scheme(address) if isinstance(address, str) and not _has_control(address) else None
        if scheme is None:
            wanted = "must be an address that begins with its scheme, such as https:, and has no control characters"
            return _Fault(address, wanted)
        word = scheme[1].lower()
        if word not in self._allow:
            return _Fault(
                address, f"has the scheme {word}, by which the server may read more than others", word
            )
        if word not in ("https", "http"):
            return None
        try:
            host = unquote(urlsplit(address).hostname or "").lower().rstrip(".")
        except ValueError:
            host = ""
        if not host or "\\" in address or _has_control(host):  # which some read as the end of the host
            return _Fault(address, "must name a host")
        if host.endswith(_STORES) and _FILE not in self._allow:
            return _Fault(address, "is that of a file that is stored with the provider", _FILE)
        return None

    @staticmethod
    def _first(faults: Iterable[_Fault | None]) -> _Fault | None:
        return next((fault for fault in faults if fault is not None), None)

    # What is said to be the model's.

    def _admits(self, block: Block) -> bool:
        if isinstance(block, ToolCall):
            kind = block.metadata.get(PROVIDER_TYPE)
            own = block.type == "server_tool_call"
            said: list[Any] = [block.arguments, block.metadata]
            return not own or (_is_one_of(kind, _CALLS) and self._in_items(said) is None)
        if block.type == "unsupported":
            kind = block.options.get("type")  # without one, some take it for a reference to what is stored
            return kind is not None and _is_one_of(kind, _ITEMS) and self._in_items(block.options) is None
        if block.type == "server_tool_result":
            kind, output = block.options.get(PROVIDER_TYPE), block.options.get("output")
            said = [block.options, {"tools": output} if kind == "tool_search_output" else None]
            return _is_one_of(kind, _RESULTS) and self._in_items(said) is None
        return self._in_medium(block) is None and self._in_items(block.options) is None

    def _in_items(self, value: Any) -> _Fault | None:
        """Something that a provider would read by its name, in what it has said itself."""
        waiting: list[Any] = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, (list, tuple)):
                waiting += one
            elif is_mapping(one):
                if (fault := self._in_item(one)) is not None:
                    return fault
                waiting += one.values()
        return None

    def _in_item(self, item: Json) -> _Fault | None:
        if is_mapping(place := item.get("s3Location")) and "uri" in place and "s3" not in self._allow:
            return _Fault(place["uri"], "names a file in S3", "s3")
        kind = item.get("type")
        fields = _SAYS_WHERE.get(kind, ()) if isinstance(kind, str) else ()
        if _FILE in fields and item.get(_FILE) is not None and _FILE not in self._allow:
            return _Fault(item[_FILE], "names a file that is stored with the provider", _FILE)
        names = [name for name in ("fileUri", *fields) if name != _FILE and isinstance(item.get(name), str)]
        tools = item.get("tools")
        if isinstance(tools, (list, tuple)) and (fault := self._in_tools(tools)) is not None:  # pyright: ignore[reportUnknownArgumentType]
            return fault
        return self._first(self._in_address(item[name]) for name in names)

    def _in_tools(self, tools: Iterable[Any]) -> _Fault | None:
        """Tools that the provider would run, with what the server's key may read."""
        for tool in tools:
            kind = tool.get("type") if is_mapping(tool) else None
            if kind is not None and not _is_one_of(kind, _CLIENTS_TOOLS) and _TOOLS not in self._allow:
                return _Fault(tool, "defines a tool that the provider runs", _TOOLS)
        return None

    def _in_result(self, call: ToolCall) -> _Fault | None:
        """A result is JSON that only a model reads, unless it is in the words of a provider."""
        if call.result is None:
            return None
        content: Any = call.result.content
        if isinstance(content, str) or call.type == "server_tool_call":
            return None
        kind = content.get("type") if is_mapping(content) else None
        its_own = isinstance(kind, str) and kind.endswith("_output")
        if its_own or _has_its_words(call) or (call.call_id or "") in self._in_words:
            output = content.get("output") if is_mapping(content) else None
            screens = [{**one, "type": "computer_screenshot"} for one in (content, output) if is_mapping(one)]
            return self._in_items([content, screens, {"tools": content}])
        parts: list[Any] = [*content] if isinstance(content, (list, tuple)) else [content]
        in_words = all(is_mapping(part) and _is_one_of(part.get("type", ""), _PARTS) for part in parts)
        return self._in_items(parts) if in_words else None


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and (word in (_FILE, _TOOLS) or _name(word) is not None)


def _is_one_of(kind: Any, kinds: frozenset[str]) -> bool:
    """A block of another server's, which says nothing of its kind, goes to no provider in its own form."""
    return kind is None or (isinstance(kind, str) and kind in kinds)


def _has_its_words(call: ToolCall) -> bool:
    kind = call.metadata.get(PROVIDER_TYPE)
    return isinstance(kind, str) and kind in _IN_ITS_WORDS


def _run(block: Block) -> str | None:
    """The call by which a provider's own tool ran: call and result come back together or not at all."""
    if isinstance(block, ToolCall):
        return block.call_id if block.type == "server_tool_call" else None
    found = block.options.get("tool_call_id") if block.type == "server_tool_result" else None
    return found if isinstance(found, str) else None


# The lists.

_MEDIA: Final = frozenset(["image", "image_url", "audio", "video", "file", "file_url"])

_OF_A_PERSONS: Final = frozenset(
    [
        "mime_type",
        "filename",
        "title",
        "context",
        "name",
        "format",
        "detail",
        "url",
        "file_id",
        "bucket_owner",
    ]
)
"""What a person's medium may say of itself."""

_NOT_ITS_METADATA: Final = frozenset(["additional_kwargs"])
"""Metadata of a message that go to the provider as they are, and that no wire writes."""

_CALLS: Final = frozenset(
    [
        # Anthropic, Bedrock
        "mcp_tool_use", "server_tool_use",
        # Gemini
        "executableCode", "toolCall",
        # OpenAI Responses
        "apply_patch_call", "code_interpreter_call", "computer_call", "custom_tool_call", "file_search_call",
        "function_call", "local_shell_call", "mcp_approval_request", "mcp_call", "program", "shell_call",
        "tool_search_call", "web_search_call",
        # Gemini Interactions
        "code_execution_call", "google_maps_call", "google_search_call", "mcp_server_tool_call", "processing_call",
        "url_context_call",
    ]
)  # fmt: skip
"""The calls of tools that a provider runs."""

_RESULTS: Final = _CALLS | frozenset(
    [
        # Anthropic
        "advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result", "mcp_tool_result",
        "text_editor_code_execution_tool_result", "tool_search_tool_result", "web_fetch_tool_result",
        "web_search_tool_result",
        # Bedrock
        "nova_code_interpreter_result", "nova_grounding_result",
        # Gemini
        "codeExecutionResult", "toolResponse",
        # OpenAI Responses
        "program_output", "shell_call_output", "tool_search_output",
        # Gemini Interactions
        "code_execution_result", "file_search_result", "google_maps_result", "google_search_result",
        "mcp_server_tool_result", "processing_result", "url_context_result",
    ]
)  # fmt: skip
"""What such a tool gave back; some providers say it in the call's own item."""

_ITEMS: Final = frozenset(
    [
        # Anthropic
        "compaction", "fallback", "mcp_tool_listing",
        # OpenAI Responses
        "mcp_approval_request", "mcp_list_tools",
        # Mistral
        "reference",
        # Gemini Interactions
        "model_output",
    ]
)  # fmt: skip
"""The other items of a reply that only its provider knows."""

_SAYS_WHERE: Final[Mapping[str, tuple[str, ...]]] = {
    # Anthropic, of a source
    "file": (_FILE,),
    "url": ("url",),
    "container_upload": (_FILE,),
    # OpenAI Responses
    "computer_screenshot": (_FILE, "image_url"),
    "input_file": (_FILE, "file_url"),
    "input_image": (_FILE, "image_url"),
} | dict.fromkeys(["audio", "document", "image", "video"], ("uri",))  # Gemini Interactions
"""By which fields a provider's words say where there is something to be read."""

_PARTS: Final = frozenset(
    ["audio", "document", "image", "input_file", "input_image", "input_text", "text", "video"]
)
"""Of which a tool's result may consist in a provider's words."""
_IN_ITS_WORDS: Final = frozenset(["apply_patch_call", "computer_call", "shell_call", "tool_search_call"])
"""The calls whose result is the provider's own item."""
_CLIENTS_TOOLS: Final = frozenset(["custom", "function", "namespace"])
