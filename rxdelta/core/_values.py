"""The small values of a reply (citations, usage, tool results), and the checks that constructors share."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from rxdelta.core._errors import InvalidValueError, LimitExceededError
from rxdelta.core._frozen import EMPTY, FrozenDict, freeze, freeze_mapping, is_iterable, is_mapping, thaw
from rxdelta.core._limits import DEFAULT_LIMITS
from rxdelta.core._stored_form import to_more, unknown_fields
from rxdelta.core._strict_json import clean_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Citation", "TokenUsage", "ToolResult"]

Problem: TypeAlias = tuple[str, object, str]
"""A field, its value, and what is wrong with the value."""


def check(problems: Iterable[Problem | None]) -> None:
    """Raise one `InvalidValueError` for all problems of a value.

    The constructors check here rather than by attrs validators, because those stop at the first faulty field.
    """
    found = [problem for problem in problems if problem is not None]
    if found:
        raise InvalidValueError.of(found)


def one_of(field: str, value: object, allowed: Iterable[str]) -> Problem | None:
    return None if isinstance(value, str) and value in allowed else (field, value, "is invalid")


def one_of_or_none(field: str, value: object, allowed: Iterable[str]) -> Problem | None:
    return None if value is None else one_of(field, value, allowed)


def text_or_none(field: str, value: object) -> Problem | None:
    return None if value is None or isinstance(value, str) else (field, value, "must be a string")


def count_or_none(field: str, value: object) -> Problem | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        return (field, value, "must be a whole number")
    if value < 0:
        return (field, value, "must be greater than or equal to 0")
    return (field, value, "is too large to be true") if value >= 2**63 else None


def index_or_none(field: str, value: object, *, lowest: int | None = 0) -> Problem | None:
    """An index is a key, so a large one costs no memory. One beyond `Limits.index` is refused all the same."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or (lowest is not None and value < lowest):
        return (field, value, "is invalid")
    if abs(value) >= DEFAULT_LIMITS.index:
        raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the {field}")
    return None


def index_of(field: str, value: object, *, lowest: int | None = 0) -> Problem | None:
    """An index that is required."""
    return (field, value, "is invalid") if value is None else index_or_none(field, value, lowest=lowest)


def clean(value: str | None) -> str | None:
    """The text as it can be written in UTF-8. A value of another type passes: the check that follows reports it."""
    return clean_text(value) if isinstance(value, str) else value


def without_empty(items: Mapping[str, Any]) -> dict[str, Any]:
    """The items without `None` and empty containers; `""`, `0` and `False` stay."""
    return {key: value for key, value in items.items() if value is not None and value != [] and value != {}}


def shorten(text: str, width: int = 60) -> str:
    return repr(text) if len(text) <= width else f"{text[:width]!r}… ({len(text):,} characters)"


def items_of(field: str, value: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    if not is_iterable(value):
        raise InvalidValueError.of([(field, value, "must be a list")])
    return tuple(value)


def wrong_items(field: str, items: Iterable[object], kinds: tuple[type, ...]) -> list[Problem]:
    names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
    return [(field, item, f"must be {names}") for item in items if not isinstance(item, kinds)]


def _raw(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "raw")


def _metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata")


def _content(value: object) -> object:
    return freeze(value, "content")


@attrs.frozen
class Citation:
    """A source that a part of the reply cites.

    Attributes:
        cited_text: The cited words of the source, if the provider sends them.
        title, url: The source's name and address.
        start_index, end_index: The range of the reply's text that the citation applies to, in the provider's unit.
        raw: The provider's whole object.

    Example:
        >>> import rxdelta as rd
        >>> rd.Citation(title="RFC 8259", url="https://www.rfc-editor.org/rfc/rfc8259").to_dict()
        {'title': 'RFC 8259', 'url': 'https://www.rfc-editor.org/rfc/rfc8259'}
    """

    cited_text: str | None = attrs.field(default=None, converter=clean)
    title: str | None = attrs.field(default=None, converter=clean)
    url: str | None = attrs.field(default=None, converter=clean)
    start_index: int | None = None
    end_index: int | None = None
    raw: FrozenDict[Any] = attrs.field(default=None, converter=_raw)

    def __attrs_post_init__(self) -> None:
        check(
            [
                *(text_or_none(name, getattr(self, name)) for name in ("cited_text", "title", "url")),
                *(count_or_none(name, getattr(self, name)) for name in ("start_index", "end_index")),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON object of the known fields."""
        return without_empty(
            {field.name: thaw(getattr(self, field.name)) for field in attrs.fields(type(self))}
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Citation:
        """Read `to_dict`'s form, or a provider's own object, which is kept in `raw` if it has other fields."""
        known = {
            field.name: data[field.name]
            for field in attrs.fields(cls)
            if field.name in data and _fits(field.name, data[field.name])
        }
        if data.keys() - known.keys():
            known["raw"] = data
        return cls(**known)


def _fits(field: str, value: object) -> bool:
    if field == "raw":
        return is_mapping(value)
    return (count_or_none if field.endswith("_index") else text_or_none)(field, value) is None


@attrs.frozen
class TokenUsage:
    """The usage of a reply, in the provider's own figures.

    Attributes:
        input_tokens, output_tokens: The provider's counts; `None` is unknown, which is not 0.
        raw: The provider's whole usage object, with cached, reasoning and other details.
        cumulative: In `add`, a cumulative right side replaces the left side instead of being added to it.
        more: Fields of a stored usage that this version doesn't know; `to_dict` writes them back, `add` drops them.
            Not compared.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    raw: FrozenDict[Any] = attrs.field(default=None, converter=_raw)
    cumulative: bool = False
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        check(
            [
                count_or_none("input_tokens", self.input_tokens),
                count_or_none("output_tokens", self.output_tokens),
                None if isinstance(self.cumulative, bool) else ("cumulative", self.cumulative, "is invalid"),
            ]
        )

    def add(self, other: TokenUsage | None) -> TokenUsage:
        """This usage and `other` together.

        Counts are summed, an unknown count as 0. Numbers in `raw` are summed key by key; of other values `other`'s
        wins. A cumulative `other` is the new total itself.

        Example:
            >>> import rxdelta as rd
            >>> rd.TokenUsage(10, 5).add(rd.TokenUsage(1, None))
            TokenUsage(input_tokens=11, output_tokens=5)
        """
        if other is None:
            return self
        if other.cumulative:
            return other
        raw = dict(self.raw)
        for key, value in other.raw.items():
            known = raw.get(key)
            raw[key] = known + value if _is_number(known) and _is_number(value) else value
        return TokenUsage(
            (self.input_tokens or 0) + (other.input_tokens or 0),
            (self.output_tokens or 0) + (other.output_tokens or 0),
            freeze_mapping(raw, "raw", lenient=True),  # a sum may be too large for JSON
        )

    def total(self) -> int:
        """The sum of input and output tokens; an unknown count is 0."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __repr__(self) -> str:
        counts = (("input_tokens", self.input_tokens), ("output_tokens", self.output_tokens))
        shown = [f"{name}={count}" for name, count in counts if count is not None]
        shown += [f"raw={self.raw}"] if self.raw else []
        shown += ["cumulative=True"] if self.cumulative else []
        return f"TokenUsage({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object of the known figures."""
        return without_empty(
            {
                "input_tokens": self.input_tokens,
                "output_tokens": self.output_tokens,
                "raw": thaw(self.raw),
                "cumulative": self.cumulative or None,
                **thaw(self.more),
            }
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TokenUsage:
        """Read `to_dict`'s form; strings of digits are read as numbers.

        Raises:
            InvalidValueError: A count is negative or not a number.
        """
        return cls(
            whole_number(data.get("input_tokens")),
            whole_number(data.get("output_tokens")),
            data.get("raw"),
            data.get("cumulative") is True,
            more=unknown_fields(data, _OF_USAGE),
        )


_OF_USAGE = frozenset(["input_tokens", "output_tokens", "raw", "cumulative"])
_NOTHING = TokenUsage()


def usage_or_none(value: TokenUsage | None) -> TokenUsage | None:
    """The usage; `None` for one without any figure."""
    return None if value == _NOTHING else value


@attrs.frozen
class ToolResult:
    """The result of a tool, as it goes to the model.

    Attributes:
        call_id: The id of the call that it answers.
        content: Any JSON value; most often a string.
        is_error: Whether the tool failed.
        duration: The seconds that the tool ran, if known.
        metadata: Other facts for programs and people, which the model doesn't get. `run_tools` sets `messages`, the
            messages so far of a tool that is an agent, in the form of `Snapshot.to_dict`.
        more: Fields of a stored result that this version doesn't know; `to_dict` writes them back. Not compared.

    Raises:
        InvalidValueError: The content is not JSON, or another field is invalid.

    Example:
        >>> import rxdelta as rd
        >>> rd.ToolResult("c1", {"temperature": 21}).to_dict()
        {'call_id': 'c1', 'content': {'temperature': 21}, 'is_error': False}
    """

    call_id: str | None = attrs.field(default=None, converter=clean)
    content: Any = attrs.field(default=None, converter=_content)  # pyright: ignore[reportUnknownVariableType]
    is_error: bool = False
    duration: float | None = None
    metadata: FrozenDict[Any] = attrs.field(default=None, converter=_metadata, kw_only=True, repr=False)
    more: FrozenDict[Any] = attrs.field(default=EMPTY, kw_only=True, eq=False, repr=False, converter=to_more)

    def __attrs_post_init__(self) -> None:
        seconds = self.duration
        known = seconds is None or (_is_number(seconds) and seconds >= 0 and math.isfinite(seconds))
        check(
            [
                text_or_none("call_id", self.call_id),
                None if isinstance(self.is_error, bool) else ("is_error", self.is_error, "is invalid"),
                None if known else ("duration", self.duration, "must be a number of seconds"),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON object. It has `content` even if that is empty."""
        content = {} if self.content is None else {"content": thaw(self.content)}
        call_id = {} if self.call_id is None else {"call_id": self.call_id}
        known = without_empty({"duration": self.duration, "metadata": thaw(self.metadata)})
        return {**call_id, **content, "is_error": self.is_error, **known, **thaw(self.more)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolResult:
        """Read `to_dict`'s form.

        Raises:
            InvalidValueError: As in the constructor.
        """
        return cls(
            data.get("call_id"),
            data.get("content"),
            data.get("is_error") is True,
            data.get("duration"),
            metadata=data.get("metadata"),
            more=unknown_fields(data, _OF_RESULT),
        )


_OF_RESULT = frozenset(["call_id", "content", "is_error", "duration", "metadata"])


def whole_number(value: object) -> Any:
    """A string of digits, as untrusted input may have it, as a number. Any other value passes: the check reports it."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
