"""The finished reply (`Message`), and the base that it shares with the reply so far (`Reply`)."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, cast

import attrs

from rxdelta.core._approval import is_asked, is_waiting
from rxdelta.core._blocks import Block, settled
from rxdelta.core._content_part import ContentPart
from rxdelta.core._custom import Placed, to_placed
from rxdelta.core._errors import InvalidValueError
from rxdelta.core._execution_status import TERMINAL
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze_mapping
from rxdelta.core._literals import (
    ENDED,
    FINISH_REASONS,
    MESSAGE_ROLES,
    FinishReason,
    MessageRole,
    MessageStatus,
)
from rxdelta.core._notebook import markdown
from rxdelta.core._reply_json import reply_fields, reply_to_dict
from rxdelta.core._stored_form import to_more
from rxdelta.core._tool_call import ToolCall, with_parsed_arguments
from rxdelta.core._values import (
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
    usage_or_none,
    wrong_items,
)
from rxdelta.core._violations import to_violations
from rxdelta.core._wrong_use import explained, public_signature, refuse_change

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from rxdelta.core._events import Custom
    from rxdelta.core._snapshot import Snapshot
    from rxdelta.core._tool_call import CompleteToolCall, InvalidToolCall

__all__ = ["Message", "Reply", "add_attempt", "add_usage", "show"]


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

        Of several with one name and id it is the newest, in the place of the first.
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
