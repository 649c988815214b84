"""The finished reply (`Message`), the base that it shares with the reply so far (`Reply`), and both as JSON and as markdown.

The text is the model's, so nobody knows what is in it, and a notebook runs the HTML of its own outputs. Nothing of a reply
becomes HTML here, no picture is loaded, and no text hides where a link goes to: outside of code the few characters that
could do so are written as entities; code is HTML of our own, whose every mark is an entity. So it is safe however the
notebook's markdown takes the text apart.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

import attrs

from rxdelta.core.blocks import Block, settled
from rxdelta.core.content_part import PART_TYPES, ContentPart, part_type
from rxdelta.core.custom import Placed, custom_from_json, custom_to_json, to_placed
from rxdelta.core.errors import InvalidValueError, explained, public_signature, refuse_change, visible
from rxdelta.core.json_values import (
    EMPTY,
    FrozenDict,
    check_format,
    check_mapping,
    freeze_mapping,
    is_list,
    is_mapping,
    thaw,
    to_more,
    unknown_fields,
)
from rxdelta.core.literals import (
    CALL_TYPES,
    ENDED,
    FINISH_REASONS,
    MESSAGE_ROLES,
    TERMINAL,
    FinishReason,
    MessageRole,
    MessageStatus,
)
from rxdelta.core.tool_call import (
    CompleteToolCall,
    InvalidToolCall,
    ToolCall,
    is_asked,
    is_waiting,
    with_parsed_arguments,
)
from rxdelta.core.values import (
    TokenUsage,
    ToolResult,
    check,
    clean,
    index_of,
    items_of,
    one_of,
    one_of_or_none,
    shorten,
    text_or_none,
    to_violations,
    usage_or_none,
    whole_number,
    without_empty,
    wrong_items,
)

if TYPE_CHECKING:
    from rxdelta.core.event_classes import Custom
    from rxdelta.core.snapshot import Snapshot

_SHOWN = 50_000
"""How many characters of a block are drawn."""

_FENCED = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^ {0,3}\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)([^\n]+?)(?<!`)\1(?!`)")
_MARKS = re.compile(
    r"<|!(?=\[)|\](?=[(:])|(?<=\])[(:]|\\(?=(?:href|url|class|cssId|data|style|require)(?![a-zA-Z]))"
)
"""What makes HTML, pictures and links; in formulas, which notebooks draw, these are macros."""


def markdown(reply: Snapshot | Message) -> str:
    """The reply's text as markdown, and the rest folded."""
    shown = [_markdown_of(block) for block in reply.blocks]
    if reply.status != "complete":
        shown.append(f"*{reply.status}*")
    return "\n\n".join(part for part in shown if part)


def _markdown_of(block: Block) -> str:
    if isinstance(block, ContentPart):
        if block.type == "text":
            return _text(_shortened(block.text or ""))
        body = block.text or (json.dumps(thaw(block.options), ensure_ascii=False) if block.options else "")
        return _folded(block.type, body) if body else ""
    so_far = block.arguments if block.type == "invalid_tool_call" else block.arguments_so_far
    body = so_far if isinstance(so_far, str) else json.dumps(thaw(so_far or {}), ensure_ascii=False, indent=2)
    return _folded(f"{block.type} {block.name or ''}", body)


def _folded(title: str, body: str) -> str:
    return f"<details><summary>{_literal(title)}</summary><pre>{_literal(_shortened(body))}</pre></details>"


def _shortened(text: str) -> str:
    shown = visible(text[:_SHOWN])
    return shown if len(text) <= _SHOWN else f"{shown}… ({len(text):,} characters)"


def _text(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for found in _FENCED.finditer(text):
        pieces += [_prose(text[end : found.start()]), f"\n\n<pre><code>{_literal(found[2])}</code></pre>\n\n"]
        end = found.end()
    return "".join([*pieces, _prose(text[end:])]).strip("\n")


def _prose(text: str) -> str:
    pieces: list[str] = []
    end = 0
    for found in _CODE.finditer(text):
        pieces += [_without_marks(text[end : found.start()]), f"<code>{_literal(found[2])}</code>"]
        end = found.end()
    return "".join([*pieces, _without_marks(text[end:])])


def _without_marks(text: str) -> str:
    return _MARKS.sub(lambda mark: f"&#{ord(mark[0])};", text)


def _literal(text: str) -> str:
    """The text with every mark of ASCII as an entity, which neither markdown nor HTML takes for anything else."""
    return "".join(one if one.isalnum() or one == " " or one > "\x7f" else f"&#{ord(one)};" for one in text)


def reply_to_dict(reply: Snapshot | Message) -> dict[str, Any]:
    """The JSON object of the fields that snapshots and messages share."""
    failed = reply.failed_usage
    known = without_empty(
        {
            "role": reply.role,
            "status": reply.status,
            "choice": reply.choice,
            "id": reply.id,
            "model": reply.model,
            "blocks": [block.to_dict() for block in reply.blocks],
            "finish_reason": reply.finish_reason,
            "provider_finish_reason": reply.provider_finish_reason,
            "usage": reply.usage.to_dict() if reply.usage else None,
            "metadata": thaw(reply.metadata),
            "attempt": reply.attempt or None,
            "failed_usage": failed.to_dict() if failed else None,
            "run_id": reply.run_id,
            "parent_run_id": reply.parent_run_id,
            "custom": custom_to_json(reply._custom),
            "violations": dict(reply.violations),
        }
    )
    more: dict[str, Any] = thaw(reply.more)
    return known | more


def reply_fields(data: Mapping[str, Any], what: str) -> dict[str, Any]:
    """The fields that the object has, as keywords for the constructor. `what` names the object in errors."""
    check_mapping(what, data)
    check_format(data)
    fields: dict[str, Any] = {name: data[name] for name in _PLAIN if name in data}
    fields["more"] = unknown_fields(data, _FIELDS)
    for name in ("usage", "failed_usage"):
        usage: Any = data.get(name)
        fields[name] = TokenUsage.from_dict(usage) if is_mapping(usage) else usage
    for name in ("choice", "attempt"):
        fields[name] = whole_number(data.get(name, 0))
    fields["custom"] = custom_from_json(data.get("custom"))
    fields["violations"] = data.get("violations")
    fields["blocks"] = tuple(_block(block) for block in listed(data.get("blocks")))
    return fields


_PLAIN = (
    "role", "status", "id", "model", "finish_reason", "provider_finish_reason", "metadata", "run_id", "parent_run_id",
)  # fmt: skip
_OF_SNAPSHOTS = ("content", "merged_content", "tool_calls", "index", "started")
_FIELDS = frozenset(
    [*_PLAIN, *_OF_SNAPSHOTS, "format", "choice", "attempt", "usage", "failed_usage", "blocks", "custom", "violations"]
)  # fmt: skip


def _block(data: Any) -> Block:
    is_call = isinstance(data, ToolCall) or (is_mapping(data) and str(data.get("type")) in CALL_TYPES)
    return call_from_json(data) if is_call else part_from_json(data, "blocks")


def content_to_json(content: Any) -> Any:
    if isinstance(content, ContentPart):
        return content.to_dict()
    return [content_to_json(item) for item in content] if is_list(content) else thaw(content)


def content_from_json(value: Any) -> Any:
    if is_mapping(value):
        return part_from_json(value, "content")
    if is_list(value):
        return [part_from_json(item, "content") if _is_part(item) else item for item in value]
    return value


def _is_part(value: Any) -> bool:
    return is_mapping(value) and part_type(str(value.get("type"))) in PART_TYPES


def listed(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if is_list(value) else [value]


def part_from_json(data: Any, field: str) -> ContentPart:
    if isinstance(data, ContentPart):
        return data
    if not is_mapping(data):
        raise InvalidValueError.of([(field, data, "must hold parts")])
    return ContentPart.from_dict(data)


def call_from_json(data: Any) -> ToolCall:
    if isinstance(data, ToolCall):
        return cast("ToolCall", data)
    if not is_mapping(data):
        raise InvalidValueError.of([("tool_calls", data, "must hold tool calls")])
    return ToolCall.from_dict(data)


def add_usage(mine: TokenUsage | None, theirs: TokenUsage | None) -> TokenUsage | None:
    """`TokenUsage.add`, if either may be unknown."""
    return theirs if mine is None else mine.add(theirs)


def add_attempt(failed: TokenUsage | None, usage: TokenUsage | None) -> TokenUsage | None:
    """The usage of failed attempts plus that of one more, which no cumulative usage includes."""
    return add_usage(failed, usage and attrs.evolve(usage, cumulative=False))


_READ = {
    **dict.fromkeys(("content", "parts"), ".text, or .blocks for all that it consists of"),
    **dict.fromkeys(("choices", "message", "output_text", "delta"), ".text"),
    **dict.fromkeys(("function_call", "tool_use"), ".tool_calls"),
    **dict.fromkeys(("thinking", "reasoning_content"), ".reasoning"),
    "stop_reason": ".finish_reason, or .provider_finish_reason for the provider's own word",
    "usage_metadata": ".usage",
    **dict.fromkeys(("model_dump", "model_dump_json", "dict", "json"), ".to_dict()"),
}
"""What is called otherwise elsewhere."""


class Reply:
    """The views of the blocks that a snapshot and a message share."""

    __slots__ = ()

    blocks: tuple[Block, ...]

    if not TYPE_CHECKING:

        def __init_subclass__(cls, **options: Any) -> None:
            super().__init_subclass__(**options)
            if "__setattr__" in cls.__dict__:  # that of attrs
                cls.__setattr__ = refuse_change

        def __getattr__(self, name: str) -> NoReturn:
            said = f"; read {_READ[name]}" if name in _READ else ""
            raise AttributeError(
                f"a {type(self).__name__} has no attribute {name!r}{said}", name=name, obj=self
            )

    def _repr_markdown_(self) -> str:
        """The reply as a notebook draws it."""
        return markdown(cast("Snapshot | Message", self))

    def __rich__(self) -> object:
        """The reply as rich draws it."""
        return import_module("rxdelta.cli").picture(self)  # a plain import would be a circle

    if TYPE_CHECKING:

        @property
        def _custom(self) -> tuple[Placed, ...]: ...
        @property
        def usage(self) -> TokenUsage | None: ...
        @property
        def failed_usage(self) -> TokenUsage | None: ...

    def _joined(self, type: str) -> str:
        texts = [
            block.text or "" for block in self.blocks if isinstance(block, ContentPart) and block.type == type
        ]
        return texts[0] if len(texts) == 1 else "".join(texts)

    @property
    def text(self) -> str:
        """All text, joined without a separator."""
        return self._joined("text")

    @property
    def reasoning(self) -> str:
        """All reasoning, joined without a separator."""
        return self._joined("reasoning")

    @property
    def total_usage(self) -> TokenUsage | None:
        """`usage` and `failed_usage` together."""
        return self.usage if self.failed_usage is None else add_attempt(self.failed_usage, self.usage)

    @property
    def custom_events(self) -> tuple[Custom, ...]:
        """The application's own events that came with the reply and aren't transient, in the order of their places.

        Several with one name and id are one event, the newest, in the place of the first.
        """
        return tuple(event for _, event in self._custom)

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the caller has to run: neither invalid calls nor those that the provider runs."""
        return tuple(
            block for block in self.blocks if isinstance(block, ToolCall) and block.type == "tool_call"
        )

    @property
    def invalid_tool_calls(self) -> tuple[InvalidToolCall, ...]:
        """The calls that must not be run. The `error` of each is the reason."""
        return tuple(
            cast("InvalidToolCall", block)
            for block in self.blocks
            if isinstance(block, ToolCall) and block.type == "invalid_tool_call"
        )

    @property
    def waiting_calls(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a person's approval, also those that the provider will then run itself."""
        return tuple(block for block in self.blocks if isinstance(block, ToolCall) and is_waiting(block))

    def all_tools_terminal(self) -> bool:
        """Whether there are calls and each is `completed` or `failed`. An invalid call counts as failed.

        It is false while a call waits for approval, or is left to somebody else. A call that the provider runs itself
        counts only if it waits for approval, or has been decided.
        """
        calls = [
            block
            for block in self.blocks
            if isinstance(block, ToolCall)
            and (block.type == "tool_call" or (block.type == "server_tool_call" and is_asked(block)))
        ]
        ended = all(call.execution_status() in TERMINAL for call in calls)
        return ended and bool(calls or self.invalid_tool_calls)

    def content_to_string(self, type: str = "text") -> str | None:
        """The text of the parts of one type, joined by blank lines; `None` instead of `""`.

        A part without text counts as one whose text is empty.
        """
        wanted = "reasoning" if type == "thinking" else type
        texts = [
            block.text or ""
            for block in self.blocks
            if isinstance(block, ContentPart) and block.type == wanted
        ]
        return "\n\n".join(texts) or None


def show(name: str, reply: Snapshot | Message, more: Sequence[str] = ()) -> str:
    shown = [reply.status] + ([f"choice {reply.choice}"] if reply.choice else [])
    shown += [] if reply.run_id is None else [f"run {reply.run_id!r}"]
    for block in reply.blocks:
        mark = " …" if block.open else ""
        if isinstance(block, ContentPart):
            text = f" {shorten(block.text)}" if block.text is not None else ""
            shown.append(f"{block.type}{text}{mark}")
        else:
            arguments = block.arguments
            text = shorten(arguments) if isinstance(arguments, str) else repr(arguments)
            shown.append(f"{block.type} {block.name}({text if arguments is not None else ''}){mark}")
    return f"<{name} {'; '.join([*shown, *more])}>"


_ONE_WAY = 'rd.Message.of("user", "Hi") makes a message of a text'


def _blocks(value: Iterable[Block]) -> tuple[Block, ...]:
    """The blocks, settled. Values that are no blocks pass: the check that follows reports them."""
    if isinstance(value, (str, ContentPart, ToolCall)):
        raise InvalidValueError.of([("blocks", value, "must be a list of parts and calls", _ONE_WAY)])
    return tuple(_finished(block) for block in items_of("blocks", value))


def _finished(block: Any) -> Any:
    if not isinstance(block, (ContentPart, ToolCall)):
        return block
    done = settled(cast("Block", block))
    if isinstance(done, ToolCall) and done.type == "tool_call":
        return with_parsed_arguments(done)
    return done


def _metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata")


@attrs.frozen(kw_only=True, repr=False)
class Message(Reply):
    """A finished, validated message.

    Attributes:
        role: `assistant`; or `user`, `system`, `tool` for the other sides of a conversation.
        status: `complete`; `length`, cut by the token limit; or `interrupted`, stopped by its consumer.
        blocks: Content parts and tool calls in their order, with plain strings. The arguments of a `tool_call` are a
            mapping; text is parsed.
        choice, id, model, finish_reason, provider_finish_reason, usage, metadata: As in `Snapshot`.
        attempt: The number of attempts that failed before this one; `failed_usage` is their usage.
        run_id, parent_run_id: The run that the message belongs to, and the run on whose behalf that one works; see
            `events.MessageStart`.
        custom: The application's own events, each with its place: how many blocks had begun when it came, or one more
            than there are if the message was over.
        violations: As in `Snapshot`: if it isn't empty, something is missing, or came twice.
        more: Fields of a stored message that this version doesn't know; `to_dict` writes them back.

    Raises:
        InvalidValueError: Names each invalid field.
        InvalidToolCallError: The arguments of a `tool_call` are not one JSON object.

    Example:
        >>> import rxdelta as rd
        >>> rd.Message.of("user", "Hi").to_dict()["blocks"]
        [{'type': 'text', 'text': 'Hi'}]
    """

    role: MessageRole = "assistant"
    status: MessageStatus = "complete"
    blocks: tuple[Block, ...] = attrs.field(default=(), converter=_blocks)
    choice: int = 0
    id: str | None = attrs.field(default=None, converter=clean)
    model: str | None = attrs.field(default=None, converter=clean)
    finish_reason: FinishReason | None = None
    provider_finish_reason: str | None = attrs.field(default=None, converter=clean)
    usage: TokenUsage | None = attrs.field(default=None, converter=usage_or_none)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=_metadata)
    attempt: int = attrs.field(default=0, alias="_attempt")
    failed_usage: TokenUsage | None = attrs.field(
        default=None, converter=usage_or_none, alias="_failed_usage"
    )
    run_id: str | None = attrs.field(default=None, converter=clean)
    parent_run_id: str | None = attrs.field(default=None, converter=clean)
    _custom: tuple[Placed, ...] = attrs.field(default=(), converter=to_placed, alias="custom")
    violations: FrozenDict[int] = attrs.field(
        default=EMPTY, eq=False, converter=to_violations, alias="_violations"
    )
    more: FrozenDict[Any] = attrs.field(default=EMPTY, eq=False, converter=to_more, alias="_more")

    def __attrs_post_init__(self) -> None:
        check(
            [
                one_of("role", self.role, MESSAGE_ROLES),
                one_of("status", self.status, ENDED),
                one_of_or_none("finish_reason", self.finish_reason, FINISH_REASONS),
                *wrong_items("blocks", self.blocks, (ContentPart, ToolCall), _ONE_WAY),
                *wrong_items("usage", (self.usage,), (TokenUsage, type(None))),
                *wrong_items("failed_usage", (self.failed_usage,), (TokenUsage, type(None))),
                index_of("choice", self.choice),
                index_of("attempt", self.attempt),
                *(
                    text_or_none(name, getattr(self, name))
                    for name in (
                        "id",
                        "model",
                        "provider_finish_reason",
                        "run_id",
                        "parent_run_id",
                    )
                ),
            ]
        )

    if TYPE_CHECKING:

        @property
        def tool_calls(self) -> tuple[CompleteToolCall, ...]:
            """The calls that the caller has to run. The `arguments` of each are a mapping."""
            ...

    def __copy__(self) -> Message:
        return self

    def __deepcopy__(self, memo: object) -> Message:
        return self

    def __repr__(self) -> str:
        return show("Message", self)

    @classmethod
    def of(cls, role: MessageRole, content: str | Block | Iterable[str | Block]) -> Message:
        """A message that is written by hand.

        Args:
            role: `user`, `system`, `assistant` or `tool`.
            content: A text, a part or a call; or several of them in their order.

        Raises:
            InvalidValueError: There is no such role, or something is neither of these.

        Example:
            >>> import rxdelta as rd
            >>> asked = rd.Message.of("user", ["What is this?", rd.ContentPart("image_url", "https://example.com/a.png")])
            >>> [block.type for block in asked.blocks]
            ['text', 'image_url']
        """
        is_one = isinstance(content, (str, ContentPart, ToolCall))
        items: tuple[Any, ...] = (content,) if is_one else items_of("content", content)
        blocks: list[Any] = [ContentPart("text", item) if isinstance(item, str) else item for item in items]
        if any(isinstance(block, ToolResult) for block in blocks):
            raise InvalidValueError.of(
                [("content", content, "holds a ToolResult", "it stands in the conversation by itself")]
            )
        check(wrong_items("content", blocks, (ContentPart, ToolCall)))
        return cls(role=role, blocks=tuple(blocks))

    def to_dict(self) -> dict[str, Any]:
        """A JSON object that `from_dict` reads."""
        return reply_to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """Read `to_dict`'s form, as untrusted input. A field that this version doesn't know is kept in `.more`.

        Raises:
            InvalidValueError: Names each invalid field; or the `format` is newer than this version's.
            InvalidToolCallError: A complete call without id or name, or whose arguments are not one JSON
                object.
        """
        fields = reply_fields(data, "Message")
        for name in ("attempt", "failed_usage", "violations", "more"):
            fields[f"_{name}"] = fields.pop(name)
        return cls(**fields)


explained(Message, _ONE_WAY)
if not TYPE_CHECKING:
    Message.__signature__ = public_signature(Message)
