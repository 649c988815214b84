"""What a browser may bring into the next request.

A request is made with the server's key. If it names a file (in a bucket, or stored with the provider), the provider
reads the file for whoever sent the name. A browser sends whole conversations, and may have changed them. Therefore:

* an address must be one that everybody may read: `https:`, `http:`, `data:`, or a scheme that the application allows.
  The id of a file, or an address in the provider's own store of files, needs `file_id`;
* a person's message has texts and media, with the fields that describe them. What it says of Anthropic's cache has
  Anthropic's words alone, also in calls and results;
* of a reply's items in the provider's own form, only those that a model makes are admitted. A list names them, since
  formats use the same words for questions and answers.

A forbidden name in a person's message or a tool's result is refused, because leaving it out would change the request. In
an assistant's message the block with it is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from itertools import accumulate
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlsplit

import attrs

from rxdelta.core import Block, ContentPart, InvalidValueError, Message, ToolCall, events, is_mapping
from rxdelta.formats.conversation import result_parts
from rxdelta.formats.decoding import Json
from rxdelta.formats.notes import PROVIDER_TYPE

_PUBLIC: Final = frozenset(["https", "http", "data"])
_FILE, _TOOLS, _CACHE = "file_id", "tool_definitions", "cache_control"
_name = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_scheme = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):").match
_has_control = re.compile(r"[\x00-\x1f\x7f]").search
_authority = re.compile(r"https?://([^/?#]{1,1000})(?:[/?#]|\Z)", re.IGNORECASE).match
_ends_host = re.compile(r"[\x00-\x20\x7f\\/?#@%<>^|]").search
_no_letter_of_a_host = re.compile(r"[^a-z0-9.-]")
_LONGEST_LABEL = 63
_STORES: Final = ("generativelanguage.googleapis.com",)
"""Hosts whose addresses are those of files that are stored with the provider."""


class _Fault(NamedTuple):
    """A value that isn't admitted, the reason, and the word in `allow` that would admit it."""

    value: Any
    reason: str
    word: str | None = None

    def error(self, path: str) -> InvalidValueError:
        unless = f"; allow=({self.word!r},) would allow it" if self.word else ""
        return InvalidValueError.of([(path, self.value, f"{self.reason}{unless}")])


class Admission:
    """Decides what an application admits of a browser's messages.

    Args:
        allow: Schemes of addresses beside `https`, `http` and `data`; `file_id`; `tool_definitions`.

    Raises:
        InvalidValueError: `allow` is not a collection of such words.

    Example:
        >>> import rxdelta as rd
        >>> part = rd.ContentPart("file", None, {"url": "s3://bucket/a.pdf"})
        >>> message = rd.Message.of("user", part)
        >>> Admission(["s3"]).message(message, "messages[0]") == message
        True
        >>> Admission([]).message(message, "messages[0]")
        Traceback (most recent call last):
            ...
        rxdelta.core.errors.InvalidValueError: messages[0]: ...
    """

    def __init__(self, allow: Collection[str]) -> None:
        given: Any = allow
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        words: list[Any] = [*given] if several else []  # pyright: ignore[reportUnknownArgumentType]
        if not several or not all(map(_is_word, words)):
            wanted = f"must be schemes of addresses such as 's3', or {_FILE!r}, or {_TOOLS!r}"
            raise InvalidValueError.of([("allow", given, wanted)])  # pyright: ignore[reportUnknownArgumentType]
        self._allow = frozenset(words) | _PUBLIC
        self._native_result_ids: frozenset[str] = frozenset()

    def messages(self, conversation: Iterable[tuple[Message, str]]) -> list[Message]:
        """The admitted part of a conversation. A message without any admitted block is left out.

        Args:
            conversation: The messages, each with its path for errors.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        conversation = [*conversation]
        calls = (call for message, _ in conversation for call in message.blocks if isinstance(call, ToolCall))
        # A request finds the call of a result by its id alone. So one call with a native result decides for all
        # results with its id.
        self._native_result_ids = frozenset(call.call_id or "" for call in calls if _has_native_result(call))
        admitted = [self.message(message, path) for message, path in conversation]
        return [message for message in admitted if message.blocks]

    def message(self, message: Message, path: str) -> Message:
        """The message with its admitted blocks.

        Raises:
            InvalidValueError: A person's file or a tool's result names what isn't allowed.
        """
        if message.role != "assistant":
            return attrs.evolve(message, blocks=[self._from_person(block, path) for block in message.blocks])
        admitted: list[Block] = []
        broken: set[str | None] = set()  # the provider's calls whose call or result is left out
        for block in message.blocks:
            if self._admits(block):
                admitted.append(block)
            else:
                broken.add(_provider_call_id(block))
        blocks = [
            _with_flat_fields(block)
            for block in admitted
            if _provider_call_id(block) is None or _provider_call_id(block) not in broken
        ]
        for block in blocks:
            if isinstance(block, ToolCall) and (fault := self._fault_in_result(block)) is not None:
                raise fault.error(path)
        metadata = {
            name: value for name, value in message.metadata.items() if name not in _FORBIDDEN_METADATA
        }
        return attrs.evolve(message, blocks=blocks, metadata=metadata, custom=_custom_among(blocks, message))

    # A person's message.

    def _from_person(self, block: Block, path: str) -> Block:
        if not isinstance(block, ContentPart):
            raise _Fault(block, "must be a text, an image, a sound, a film or a file").error(path)
        if (fault := self._fault_in_medium(block)) is not None:
            raise fault.error(path)
        known = _MEDIUM_OPTIONS if block.type in _MEDIA else _TEXT_OPTIONS
        options = {name: value for name, value in block.options.items() if name in known}
        return attrs.evolve(block, options=_flat(options, *options), citations=())

    def _fault_in_medium(self, part: ContentPart) -> _Fault | None:
        options = part.options
        if part.type not in _MEDIA:
            return None
        if _FILE in options and _FILE not in self._allow:
            return _Fault(options[_FILE], "names a file that is stored with the provider", _FILE)
        addresses = [options["url"]] if "url" in options else []
        addresses += [part.text] if part.type.endswith("_url") and part.text else []
        return self._first(map(self._fault_in_address, addresses))

    def _fault_in_address(self, address: Any) -> _Fault | None:
        scheme = _scheme(address) if isinstance(address, str) and not _has_control(address) else None
        if scheme is None:
            reason = "must be an address that begins with its scheme, such as https:, and has no control characters"
            return _Fault(address, reason)
        word = scheme[1].lower()
        if word not in self._allow:
            return _Fault(
                address, f"has the scheme {word}, by which the server may read more than others", word
            )
        if word not in ("https", "http"):
            return None
        host = _host_in(address)
        if not host or "\\" in address:  # some parsers end the host at a backslash
            return _Fault(address, "must name a host")
        if _resolved(host).endswith(_STORES) and _FILE not in self._allow:
            return _Fault(address, "is that of a file that is stored with the provider", _FILE)
        return None

    @staticmethod
    def _first(faults: Iterable[_Fault | None]) -> _Fault | None:
        return next((fault for fault in faults if fault is not None), None)

    # An assistant's message.

    def _admits(self, block: Block) -> bool:
        if isinstance(block, ToolCall):
            kind = block.metadata.get(PROVIDER_TYPE)
            if block.type != "server_tool_call":
                return self._fault_in_items(block.metadata) is None
            fields: list[Any] = [block.arguments, block.metadata]
            return _is_one_of(kind, _CALLS) and self._fault_in_items(fields) is None
        if block.type == "unsupported":
            kind = block.options.get(
                "type"
            )  # some providers read an item without a type as a reference to a stored one
            return (
                kind is not None and _is_one_of(kind, _ITEMS) and self._fault_in_items(block.options) is None
            )
        if block.type == "server_tool_result":
            kind, output = block.options.get(PROVIDER_TYPE), block.options.get("output")
            fields = [block.options, {"tools": output} if kind == "tool_search_output" else None]
            return _is_one_of(kind, _RESULTS) and self._fault_in_items(fields) is None
        return self._fault_in_medium(block) is None and self._fault_in_items(block.options) is None

    def _fault_in_items(self, value: Any) -> _Fault | None:
        """A name that a provider would follow, anywhere in an item of its own form."""
        waiting: list[Any] = [value]
        while waiting:
            one = waiting.pop()
            if isinstance(one, (list, tuple)):
                waiting += one
            elif is_mapping(one):
                if (fault := self._fault_in_item(one)) is not None:
                    return fault
                waiting += one.values()
        return None

    def _fault_in_item(self, item: Json) -> _Fault | None:
        if is_mapping(place := item.get("s3Location")) and "uri" in place and "s3" not in self._allow:
            return _Fault(place["uri"], "names a file in S3", "s3")
        kind = item.get("type")
        fields = _ADDRESS_FIELDS.get(kind, ()) if isinstance(kind, str) else ()
        if _FILE in fields and item.get(_FILE) is not None and _FILE not in self._allow:
            return _Fault(item[_FILE], "names a file that is stored with the provider", _FILE)
        names = [name for name in ("fileUri", *fields) if name != _FILE and isinstance(item.get(name), str)]
        tools = item.get("tools")
        if isinstance(tools, (list, tuple)) and (fault := self._fault_in_tools(tools)) is not None:  # pyright: ignore[reportUnknownArgumentType]
            return fault
        return self._first(self._fault_in_address(item[name]) for name in names)

    def _fault_in_tools(self, tools: Iterable[Any]) -> _Fault | None:
        """A tool that the provider would run with the server's key."""
        for tool in tools:
            kind = tool.get("type") if is_mapping(tool) else None
            if kind is not None and not _is_one_of(kind, _CLIENT_TOOLS) and _TOOLS not in self._allow:
                return _Fault(tool, "defines a tool that the provider runs", _TOOLS)
        return None

    def _fault_in_result(self, call: ToolCall) -> _Fault | None:
        """A name that a provider would follow in a result. Only a result in a provider's form has one."""
        if call.result is None:
            return None
        content: Any = call.result.content
        if isinstance(content, str) or call.type == "server_tool_call":
            return None
        kind = content.get("type") if is_mapping(content) else None
        is_item = isinstance(kind, str) and kind.endswith("_output")
        if is_item or _has_native_result(call) or (call.call_id or "") in self._native_result_ids:
            output = content.get("output") if is_mapping(content) else None
            screens = [{**one, "type": "computer_screenshot"} for one in (content, output) if is_mapping(one)]
            return self._fault_in_items([content, screens, {"tools": content}])
        media = self._first(map(self._fault_in_medium, result_parts(content)))
        if media is not None:
            return media
        parts: list[Any] = [*content] if isinstance(content, (list, tuple)) else [content]
        is_native = all(
            is_mapping(part) and _is_one_of(part.get("type", ""), _RESULT_PARTS) for part in parts
        )
        return self._fault_in_items(parts) if is_native else None


def _host_in(address: str) -> str:
    """The host of an `http` address as it is written there; empty if there is none that a resolver would take."""
    found = _authority(address)
    try:
        host = unquote(urlsplit(f"//{found[1]}").hostname or "") if found else ""
    except ValueError:
        return ""
    return "" if _ends_host(host) else host


def _resolved(host: str) -> str:
    """The ASCII letters of the name that a resolver asks for, which reads names as UTS 46 says.

    Wide and styled letters are letters, `。` is a full stop, and some characters are left out, such as soft hyphens. Here
    all others are left out that aren't ASCII: the result is compared with names in ASCII, and refusing too much of such
    spellings costs nobody anything.
    """
    labels = (_plain(_decoded(label)) for label in _plain(host).split("."))
    return ".".join(labels).rstrip(".")


def _plain(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return _no_letter_of_a_host.sub("", text.replace("\u3002", "."))


def _decoded(label: str) -> str:
    """A label without punycode, in which some resolvers read ASCII, too."""
    if not label.startswith("xn--") or len(label) > _LONGEST_LABEL:
        return label
    try:
        return label.removeprefix("xn--").encode().decode("punycode")
    except UnicodeError:
        return label


def _with_flat_fields(block: Block) -> Block:
    """The block without what it, or its result, says of a cache in another way than Anthropic does."""
    if isinstance(block, ContentPart):
        options = _flat(block.options, _CACHE)
        return attrs.evolve(block, options=options) if _CACHE in block.options else block
    result, metadata = block.result, _flat(block.metadata, _CACHE)
    of_result: Json = {} if result is None else result.metadata
    if _CACHE not in block.metadata and _CACHE not in of_result:
        return block
    result = None if result is None else attrs.evolve(result, metadata=_flat(of_result, _CACHE))
    return attrs.evolve(block, metadata=metadata, result=result)


def _flat(fields: Json, *names: str) -> dict[str, Any]:
    """The fields, those of these names only as far as they are a word, a number, or an object of the words that they have."""
    found = {name: _flat_value(name, value) if name in names else value for name, value in fields.items()}
    return {name: value for name, value in found.items() if value is not None}


def _flat_value(name: str, value: Any) -> Any:
    if name not in _FLAT:
        return None if is_mapping(value) or isinstance(value, (list, tuple)) else value
    words = value.items() if is_mapping(value) else ()
    return {
        word: one for word, one in words if word in _FLAT[name] and isinstance(one, (str, int, type(None)))
    } or None


def _is_word(word: Any) -> bool:
    return isinstance(word, str) and (word in (_FILE, _TOOLS) or _name(word) is not None)


def _is_one_of(kind: Any, kinds: frozenset[str]) -> bool:
    """Whether the kind is admitted. A block without a kind is another server's, and reaches no provider in this form."""
    return kind is None or (isinstance(kind, str) and kind in kinds)


def _has_native_result(call: ToolCall) -> bool:
    kind = call.metadata.get(PROVIDER_TYPE)
    return isinstance(kind, str) and kind in _NATIVE_RESULT_CALLS


def _custom_among(blocks: Iterable[Block], message: Message) -> list[tuple[int, events.Custom]]:
    """The application's events of a message, in their places among those of its blocks that are left."""
    left = {id(block) for block in blocks}
    before = [*accumulate((id(block) in left for block in message.blocks), initial=0)]
    return [
        (before[place] if place < len(before) else len(left) + 1, event) for place, event in message._custom
    ]


def _provider_call_id(block: Block) -> str | None:
    """The id of the call of a provider's own tool. Its call and its result are admitted together or not at all."""
    if isinstance(block, ToolCall):
        return block.call_id if block.type == "server_tool_call" else None
    found = block.options.get("tool_call_id") if block.type == "server_tool_result" else None
    return found if isinstance(found, str) else None


# The lists.

_MEDIA: Final = frozenset(["image", "image_url", "audio", "video", "file", "file_url"])

_MEDIUM_OPTIONS: Final = frozenset(
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
        _CACHE,
        "citations",
    ]
)
"""The options that a person's medium may have."""

_TEXT_OPTIONS: Final = frozenset([_CACHE])
"""The options that a person's text may have."""

_FLAT: Final[Mapping[str, frozenset[str]]] = {
    _CACHE: frozenset(["type", "ttl", "scope"]),
    "citations": frozenset(["enabled"]),
}
"""Options with which a person says how to read what they send, and the words that each has."""

_FORBIDDEN_METADATA: Final = frozenset(["additional_kwargs"])
"""Metadata of a message that reach the provider unchanged, and that no encoder writes."""

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
"""The results of such tools. Some providers put the result into the call's own item."""

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
"""The other items of a reply that only its provider can read."""

_ADDRESS_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    # Anthropic, of a source
    "file": (_FILE,),
    "url": ("url",),
    "container_upload": (_FILE,),
    # OpenAI Responses
    "computer_screenshot": (_FILE, "image_url"),
    "input_file": (_FILE, "file_url"),
    "input_image": (_FILE, "image_url"),
} | dict.fromkeys(["audio", "document", "image", "video"], ("uri",))  # Gemini Interactions
"""The fields of a provider's item that hold an address or a file's id, by the item's type."""

_RESULT_PARTS: Final = frozenset(
    [
        "audio",
        "document",
        "image",
        "input_file",
        "input_image",
        "input_text",
        "search_result",
        "text",
        "tool_reference",
        "video",
    ]
)
"""The parts of a tool's result in a provider's own form."""

_NATIVE_RESULT_CALLS: Final = frozenset(
    ["apply_patch_call", "computer_call", "shell_call", "tool_search_call"]
)
"""The calls whose result is an item in the provider's own form."""

_CLIENT_TOOLS: Final = frozenset(["custom", "function", "namespace"])
"""The tools that the client runs."""
