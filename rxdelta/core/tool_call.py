"""A tool that the model wants to be run, or that the provider ran itself, with a person's decision about it.

A call waits while its execution status is `awaiting_approval`. A refused call has `failed`, with a result that the model
gets; `denied` in the result's metadata tells a refusal from a failure. A call that the provider runs itself isn't run by us:
an allowed one has `completed`, with a result without content, and the next request tells the provider the decision.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeAlias, cast, final

import attrs

from rxdelta.core.content_part import Origin
from rxdelta.core.errors import (
    InvalidToolCallError,
    InvalidValueError,
    MergeError,
    explained,
    public_signature,
    refuse_change,
)
from rxdelta.core.fast_constructor import fast_constructor, set_field
from rxdelta.core.json_values import (
    EMPTY,
    FrozenDict,
    InvalidJson,
    check_mapping,
    freeze_mapping,
    is_mapping,
    parse_object,
    thaw,
    to_more,
    unknown_fields,
)
from rxdelta.core.literals import (
    CALL_TYPES,
    TERMINAL,
    CallStatus,
    CallType,
    ExecutionStatus,
    merge_call_metadata,
    words,
)
from rxdelta.core.partial_json_parser import PartialJsonParser
from rxdelta.core.text import extend, finish_text, join_when_read, last_characters, text_length
from rxdelta.core.values import (
    Key,
    ToolResult,
    check,
    clean,
    index_or_none,
    key_from_json,
    one_of,
    place_repr,
    place_to_dict,
    shorten,
    text_or_none,
    whole_number,
    without_empty,
    wrong_key,
)

DENIED = "The call was not allowed."
"""What the model reads of a refusal."""


@attrs.frozen
class Approval:
    """A decision about a call.

    Attributes:
        approved: Whether the tool may run.
        reason: Why, in the person's words. The model reads the reason of a refusal.

    Raises:
        InvalidValueError: `approved` is not a bool, or the reason not text.

    Example:
        >>> import rxdelta as rd
        >>> rd.Approval(False, "Ask me again tomorrow.").approved
        False
    """

    approved: bool
    reason: str | None = attrs.field(default=None, converter=clean)

    def __attrs_post_init__(self) -> None:
        given: object = self.approved
        check(
            [
                None if isinstance(given, bool) else ("approved", given, "must be True or False"),
                text_or_none("reason", self.reason),
            ]
        )


def is_waiting(call: ToolCall) -> bool:
    """Whether the call waits for a decision."""
    return call.type != "invalid_tool_call" and call.metadata.get("execution_status") == "awaiting_approval"


def is_asked(call: ToolCall) -> bool:
    """Whether the call waits for a decision, or has got one."""
    return is_waiting(call) or decision_of(call.result) is not None


def denied_result(call_id: str | None, reason: str | None = None) -> ToolResult:
    """The result of a call that was refused."""
    content = f"{DENIED} {reason}" if reason else DENIED
    metadata = {"denied": True, **({"reason": reason} if reason else {})}
    return ToolResult(call_id, content, is_error=True, metadata=metadata)


def approved_result(call_id: str | None, reason: str | None = None) -> ToolResult:
    """The outcome of the provider's own call that was allowed: the provider runs it at the next request."""
    return ToolResult(call_id, metadata={"approved": True, **({"reason": reason} if reason else {})})


def decision_of(result: ToolResult | None) -> Approval | None:
    """The decision that a result tells of; `None` for any other result."""
    if result is None:
        return None
    reason = result.metadata.get("reason")
    reason = reason if isinstance(reason, str) else None
    if result.metadata.get("denied") is True:
        return Approval(False, reason)
    return Approval(True, reason) if result.metadata.get("approved") is True else None


if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from typing_extensions import TypeVar  # type checkers know it; at run time it needn't be there

    from rxdelta.core.text import GrowingText

    A = TypeVar("A", bound="Arguments", default="Arguments", covariant=True)
    K = TypeVar("K", bound=CallType, default=CallType, covariant=True)
else:
    from typing import TypeVar

    A = TypeVar("A", covariant=True)
    K = TypeVar("K", covariant=True)


T = TypeVar("T")

Arguments: TypeAlias = str | FrozenDict[Any] | None
"""The arguments of a call in any state."""


def real_id(value: str | None) -> str | None:
    """The id; `None` for `""`, `"null"` and `"None"`, which gateways write if there is no id."""
    return None if value in ("", "null", "None") else value


# Converters let a value of the wrong type pass: the check that follows reports it with the field's name.


def _clean_id(value: str | None) -> str | None:
    return clean(real_id(value) if isinstance(value, str) else value)


def _metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata")


def _arguments(value: str | Mapping[str, Any] | None) -> Any:
    if value is None or isinstance(value, str):
        return clean(value)
    if is_mapping(value):
        return freeze_mapping(value, "arguments")
    raise InvalidValueError.of([("arguments", value, "must be JSON text or a mapping")])


@final
@attrs.frozen(weakref_slot=False, repr=False, kw_only=True)
class ToolCall(Generic[A, K]):
    """A tool that the model wants to be run, or that the provider ran itself.

    To type checkers, `ToolCall` is a call in any state; `CompleteToolCall` and `InvalidToolCall` differ in their
    `type`.

    Attributes:
        call_id: The id by which a result refers to the call.
        name: The tool's name.
        arguments: The JSON text so far while the call is open; a read-only mapping once it is complete; the raw text
            of an invalid call; `None` if no arguments came.
        status: `incomplete` or `complete`; never goes back.
        index: The index that a `MessageDelta` gave the call, if there was one.
        display_text: A line for people, such as "Reading outline.md". It may be replaced, but not removed.
        metadata: All other facts about the call, e.g. `execution_status`.
        result: The tool's result so far.
        type: `tool_call`; `invalid_tool_call`, which must not be run; or `server_tool_call`, which the
            provider ran.
        error: Why an invalid call is invalid.
        key, open, more: As in `ContentPart`. Not compared.

    Raises:
        InvalidValueError: The status or type does not exist, the id or name is not a string, or the arguments are
            neither text nor a mapping.

    Example:
        >>> import rxdelta as rd
        >>> call = rd.ToolCall(call_id="c1", name="search", arguments='{"q": "rx')
        >>> call.arguments_so_far
        {'q': 'rx'}
        >>> call.merge(rd.ToolCall(arguments='"}')).complete().arguments["q"]
        'rx'
    """

    call_id: str | None = attrs.field(default=None, converter=_clean_id)
    name: str | None = attrs.field(default=None, converter=clean)
    arguments: A = attrs.field(default=None, converter=_arguments)
    status: CallStatus = "incomplete"
    index: int | None = None
    display_text: str | None = attrs.field(default=None, converter=clean)
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=_metadata)
    result: ToolResult | None = None
    type: K = attrs.field(default=cast("K", "tool_call"))
    error: str | None = attrs.field(default=None, converter=clean)
    key: Key = attrs.field(default=None, eq=False, alias="_key")
    open: bool = attrs.field(default=False, eq=False, alias="_open")
    more: FrozenDict[Any] = attrs.field(default=EMPTY, eq=False, converter=to_more, alias="_more")
    _origin: Origin | None = attrs.field(default=None, init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        no_result = self.result is not None and not isinstance(self.result, ToolResult)
        check(
            [
                one_of("type", self.type, CALL_TYPES),
                one_of("status", self.status, _STATUSES),
                *(
                    text_or_none(name, getattr(self, name))
                    for name in ("call_id", "name", "display_text", "error")
                ),
                index_or_none("index", self.index, lowest=None),
                ("result", self.result, "must be a ToolResult") if no_result else None,
                wrong_key(self.key),
            ]
        )

    @property
    def arguments_so_far(self) -> Any:
        """The arguments received so far as a read-only value; `None` if there is no value yet.

        An open string is shown up to its last character; an unfinished number or word is left out; open containers
        are closed. Parsing resumes where the last reading stopped, so reading after every delta costs time in
        proportion to that delta.
        """
        text = self._argument_text()
        return self.arguments if text is None else _preview(text, lambda reader: reader.value)

    def is_final(self, *path: str | int) -> bool:
        """Whether the argument at `path` is complete: `call.is_final("files", 0)`. Without a path: all arguments."""
        text = self._argument_text()
        if text is not None:
            return _preview(text, lambda reader: reader.is_final(path))
        return not self.open and isinstance(self.arguments, FrozenDict) and _has_path(self.arguments, path)

    def _argument_text(self) -> GrowingText | None:
        raw = raw_arguments(self)
        return None if not raw or isinstance(raw, FrozenDict) else raw

    def execution_status(self, default: ExecutionStatus = "identified") -> ExecutionStatus:
        """How far the execution is: `identified`, `awaiting_approval`, `executing`, `completed` or `failed`.

        Another word that somebody has put into the metadata is returned unchanged.
        """
        return cast("ExecutionStatus", str(self.metadata.get("execution_status", default)))

    def arguments_as_map(self) -> Mapping[str, Any]:
        """The arguments as a mapping; `{}` if there are none, or if their text is not one JSON object."""
        arguments = self.arguments
        if isinstance(arguments, str):
            try:
                return parse_arguments(arguments)
            except InvalidJson:
                return EMPTY
        return EMPTY if arguments is None else arguments

    def complete(self) -> ToolCall[FrozenDict[Any], K]:
        """The call with its arguments parsed and its status `complete`. A complete call is returned unchanged.

        Raises:
            InvalidToolCallError: No id, no name, or argument text that is not one JSON object. Without any text the
                arguments are `{}`.
        """
        if self.status == "complete" and isinstance(self.arguments, FrozenDict):
            return cast("ToolCall[FrozenDict[Any], K]", self)
        for field, value in (("call_id", self.call_id), ("name", self.name)):
            if not (value or "").strip() and self.type != "server_tool_call":
                raise self._invalid(field, "can't be blank")
        return change(with_parsed_arguments(self), status="complete", open=False)

    def _invalid(self, field: str, wrong: str) -> InvalidToolCallError:
        return InvalidToolCallError(f"{field}: {wrong}", call_id=self.call_id, name=self.name, field=field)

    def merge(self, part: ToolCall) -> ToolCall:
        """This call with a later fragment of the same call.

        Argument text is appended; a repeated name is kept once; a complete object replaces text; `None` changes
        nothing; neither `status` nor the execution status goes back.

        Raises:
            MergeError: The fragment has another `index`.
        """
        if self.index != part.index:
            raise MergeError(
                f"Can only merge tool calls with the same index, not {self.index!r} with {part.index!r}; "
                "merge_delta finds the call that a fragment belongs to"
            )
        mine, theirs = raw_arguments(self), part.arguments
        if isinstance(theirs, FrozenDict):
            if mine is None or (self.status == "incomplete" and part.status == "complete"):
                mine = theirs
        elif theirs is not None and not isinstance(mine, FrozenDict):
            mine = theirs if mine is None else extend(mine, theirs)
        return change(
            self,
            call_id=part.call_id or self.call_id,
            name=_merge_name(self.name, part.name),
            arguments=mine,
            status="complete" if "complete" in (self.status, part.status) else "incomplete",
            display_text=part.display_text or self.display_text,
            metadata=merge_call_metadata(self.metadata, part.metadata),
            result=part.result or self.result,
            error=part.error or self.error,
        )

    def __copy__(self) -> ToolCall:
        return self

    def __deepcopy__(self, memo: object) -> ToolCall:
        return self

    def __repr__(self) -> str:
        shown = [] if self.type == "tool_call" else [f"type={self.type!r}"]
        for name in ("call_id", "name", "arguments", "index", "display_text", "metadata", "result", "error"):
            value = getattr(self, name)
            if value is not None and (value != EMPTY or name == "arguments"):
                shown.append(f"{name}={shorten(value) if isinstance(value, str) else repr(value)}")
        shown += ["status='complete'"] if self.status == "complete" else []
        return f"ToolCall({', '.join(shown + place_repr(self.key, self.open))})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object. An open call has its text in `arguments_text` and its `arguments_so_far` in `arguments`."""
        arguments: dict[str, Any] = {"arguments": thaw(self.arguments)}
        if self.type != "invalid_tool_call" and isinstance(self.arguments, str):
            preview = thaw(self.arguments_so_far)
            arguments = {"arguments_text": self.arguments} | (
                {} if preview is None else {"arguments": preview}
            )
        return (
            without_empty(
                {
                    **place_to_dict(self.key, self.open),
                    "type": self.type,
                    "call_id": self.call_id,
                    "name": self.name,
                }
            )
            | arguments
            | without_empty(
                {
                    "status": None if self.type == "invalid_tool_call" else self.status,
                    "index": self.index,
                    "display_text": self.display_text,
                    "result": None if self.result is None else self.result.to_dict(),
                    "metadata": thaw(self.metadata),
                    "error": self.error,
                    **thaw(self.more),
                }
            )
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        """Read `to_dict`'s form, as untrusted input: an index of digits is cast, a complete call is parsed.

        Raises:
            InvalidValueError: As in the constructor; or it is no mapping.
            InvalidToolCallError: A complete call without id or name, or whose arguments are not one JSON
                object.
        """
        check_mapping("ToolCall", data)
        given, result = data.get("type"), data.get("result")
        kind: Any = given if isinstance(given, str) and given in CALL_TYPES else "tool_call"
        arguments = data.get("arguments_text")
        if arguments is None:
            arguments = data.get("arguments")
            if arguments == "" and kind != "invalid_tool_call":
                arguments = None
        call: ToolCall = ToolCall(
            call_id=data.get("call_id"),
            name=data.get("name"),
            arguments=arguments,
            index=whole_number(data.get("index")),
            display_text=data.get("display_text"),
            metadata=data.get("metadata"),
            result=ToolResult.from_dict(result) if is_mapping(result) else result,
            type=kind,
            error=data.get("error"),
            _key=key_from_json(data.get("key")),
            _open=data.get("open") is True,
            _more=unknown_fields(data, _FIELDS),
        )
        check([one_of("status", data.get("status", "incomplete"), _STATUSES)])
        if data.get("status") != "complete" or kind == "invalid_tool_call":
            return call
        whole = call.complete()  # but a call that was stored without arguments stays so
        return whole if call.arguments is not None else change(whole, arguments=None)


explained(ToolCall, "rd.ToolCall(call_id=…, name=…, arguments={…}) makes a call")
if not TYPE_CHECKING:
    ToolCall.__setattr__ = refuse_change
    ToolCall.__signature__ = public_signature(ToolCall)


CompleteToolCall: TypeAlias = ToolCall[FrozenDict[Any], Literal["tool_call"]]
"""A call that the client is to run: its `arguments` are a mapping."""

InvalidToolCall: TypeAlias = ToolCall[Arguments, Literal["invalid_tool_call"]]
"""A call that must not be run. Its `error` says why, and its `arguments` may be raw text."""

_STATUSES = words(CallStatus)
_FIELDS = frozenset(
    [
        "type", "call_id", "name", "arguments", "arguments_text", "status", "index", "display_text", "result",
        "metadata", "error", "key", "open",
    ]
)  # fmt: skip

raw_arguments: Callable[[ToolCall], GrowingText | FrozenDict[Any] | None] = join_when_read(
    ToolCall, "arguments"
)


@fast_constructor(ToolCall, like="call")
def with_arguments(call: ToolCall, arguments: GrowingText | FrozenDict[Any] | None) -> ToolCall:
    """The call with other arguments, which the caller has checked."""
    raise NotImplementedError


def parse_arguments(text: str) -> FrozenDict[Any]:
    """Parse the text of a call's arguments: one JSON object.

    JSON's null is `{}`: gateways write it for a tool without parameters. Strings may have control characters that
    aren't escaped: models write line ends of code like this, and these have only one meaning.

    Raises:
        InvalidJson: The text is something else.
    """
    if text.strip(" \t\r\n") == "null":
        return EMPTY
    return freeze_mapping(parse_object(text, control_characters=True), "arguments")


def change(call: ToolCall[A, K], **fields: Any) -> ToolCall[A, K]:
    """The call with fields replaced, which the caller has checked. Growing argument text stays unjoined."""
    changed = with_arguments(call, raw_arguments(call))
    for name, value in fields.items():
        set_field(changed, name, value)
    return cast("ToolCall[A, K]", changed)


def with_parsed_arguments(call: ToolCall[Any, K]) -> ToolCall[FrozenDict[Any], K]:
    """The call with a mapping as its arguments: `{}` if none came.

    Raises:
        InvalidToolCallError: The argument text is not one JSON object; see `parse_arguments`.
    """
    arguments = call.arguments
    if isinstance(arguments, FrozenDict):
        return call
    try:
        parsed = EMPTY if arguments is None else parse_arguments(arguments)
    except InvalidJson as error:
        raise call._invalid("arguments", f"invalid json: {error.reason}") from error
    return change(call, arguments=parsed)


def finished_arguments(call: ToolCall) -> str | FrozenDict[Any] | None:
    raw = raw_arguments(call)
    return raw if raw is None or isinstance(raw, FrozenDict) else finish_text(raw)


def invalid(call: ToolCall, error: str) -> ToolCall:
    """The call as an `invalid_tool_call`, with its raw argument text and the reason."""
    raw = finished_arguments(call)
    return change(call, type="invalid_tool_call", arguments=raw, error=error, status="incomplete", open=False)


def with_news(
    call: ToolCall,
    *,
    execution_status: str | None = None,
    display_text: str | None = None,
    result: ToolResult | None = None,
) -> ToolCall:
    """The call with news of its execution; the same object if nothing is new.

    The status never goes back, and `""` does not remove the display text. After the first terminal status the result
    is not replaced any more.
    """
    fields: dict[str, Any] = {}
    if execution_status is not None:
        metadata = merge_call_metadata(call.metadata, {"execution_status": execution_status})
        if metadata is not call.metadata:
            fields["metadata"] = metadata
    if display_text and display_text != call.display_text:
        fields["display_text"] = display_text
    if result is not None and result != call.result and call.execution_status() not in TERMINAL:
        fields["result"] = result
    return change(call, **fields) if fields else call


_CHANGED = "arguments_changed_after_run"
_STATUSES_OF_A_RUN = ("executing", *TERMINAL)
_FIRST_ARGUMENTS = "first_arguments"  # only while a call that has run is open again


def begun_again(before: ToolCall, call: ToolCall) -> ToolCall:
    """A call that begins again. Under the same id it keeps what its tool has reported."""
    status = before.metadata.get("execution_status")
    if before.call_id is None or before.call_id != call.call_id or not isinstance(status, str):
        return call
    again = with_news(call, execution_status=status, display_text=before.display_text, result=before.result)
    first = before.metadata.get(_FIRST_ARGUMENTS) if before.open else before.arguments
    if first is None or not _has_run(before):
        return again
    return change(again, metadata=FrozenDict({**again.metadata, _FIRST_ARGUMENTS: first}))


def ended_again(before: ToolCall, call: ToolCall) -> ToolCall:
    """A call that has ended, marked if a tool has got other arguments at an earlier end of the call.

    A call that has run and that its source calls invalid afterwards stays a call: its result is in the conversation.
    """
    if not _has_run(before):
        return call
    if not before.open and call.type == "invalid_tool_call" != before.type:
        return change(before, metadata=FrozenDict({**call.metadata, _CHANGED: True}))
    first = before.metadata.get(_FIRST_ARGUMENTS) if before.open else before.arguments
    metadata = {name: value for name, value in call.metadata.items() if name != _FIRST_ARGUMENTS}
    if first is not None and first != call.arguments:
        metadata[_CHANGED] = True
    return call if metadata == call.metadata else change(call, metadata=FrozenDict(metadata))


def _has_run(call: ToolCall) -> bool:
    """Whether a tool has been started for the call."""
    return call.metadata.get("execution_status") in _STATUSES_OF_A_RUN


def _preview(text: GrowingText, look: Callable[[PartialJsonParser], T]) -> T:
    """The result of `look` at a parser that has read the text. The parser is taken out of the cache meanwhile."""
    if isinstance(text, str):
        reader = PartialJsonParser(control_characters=True)
        reader.feed(text)
        return look(reader)
    length, kept = text_length(text), text[0].lineage.preview
    try:
        read, reader = kept.pop()  # if another thread has it now, begin a new one
    except IndexError:
        read, reader = 0, PartialJsonParser(control_characters=True)
    if read > length:  # it has read a later text of this lineage
        read, reader = 0, PartialJsonParser(control_characters=True)
    reader.feed(last_characters(text, length - read))
    shown = look(reader)
    kept[:] = ((length, reader),)
    return shown


def _merge_name(mine: str | None, theirs: str | None) -> str | None:
    return mine if not theirs or mine == theirs else (mine or "") + theirs


def _has_path(value: Any, path: Sequence[str | int]) -> bool:
    for step in path:
        if isinstance(value, str) or (isinstance(step, int) and step < 0):
            return False
        try:
            value = value[step]
        except (LookupError, TypeError):
            return False
    return True
