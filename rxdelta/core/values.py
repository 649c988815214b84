"""The small values of a reply: citations, usage, results, keys of blocks, counts of broken rules; and checks that constructors share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from rxdelta.core.errors import InvalidValueError, LimitExceededError, public_signature
from rxdelta.core.fast_constructor import fast_constructor
from rxdelta.core.json_values import (
    EMPTY,
    FrozenDict,
    check_mapping,
    clean_text,
    freeze,
    freeze_mapping,
    is_iterable,
    is_list,
    is_mapping,
    thaw,
    to_more,
    unknown_fields,
)
from rxdelta.core.options import DEFAULT_LIMITS, alternatives

Problem: TypeAlias = tuple[str, object, str] | tuple[str, object, str, str]
"""A field, its value, what is wrong with the value, and perhaps what is allowed."""


def check(problems: Iterable[Problem | None]) -> None:
    """Raise one `InvalidValueError` for all problems of a value.

    The constructors check here rather than by attrs validators, because those stop at the first faulty field.
    """
    found = [problem for problem in problems if problem is not None]
    if found:
        raise InvalidValueError.of(found)


def one_of(field: str, value: object, allowed: Iterable[str]) -> Problem | None:
    if isinstance(value, str) and value in allowed:
        return None
    return (field, value, "is invalid", alternatives(value, allowed))


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
    return (field, value, "is too large to be true") if value >= _TOO_LARGE else None


_TOO_LARGE = 2**63


def count_of(field: str, value: object) -> Problem | None:
    """A count that is required."""
    return (field, value, "must be a whole number") if value is None else count_or_none(field, value)


def index_or_none(field: str, value: object, *, lowest: int | None = 0) -> Problem | None:
    """An index is a key, so a large one costs no memory. One beyond `Limits.index` is refused all the same."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or (lowest is not None and value < lowest):
        return _wrong_index(field, value, lowest)
    if abs(value) >= DEFAULT_LIMITS.index:
        raise LimitExceededError.of("index", DEFAULT_LIMITS.index, f"the {field}")
    return None


def index_of(field: str, value: object, *, lowest: int | None = 0) -> Problem | None:
    """An index that is required."""
    return _wrong_index(field, value, lowest) if value is None else index_or_none(field, value, lowest=lowest)


def _wrong_index(field: str, value: object, lowest: int | None) -> Problem:
    return (
        field,
        value,
        "is invalid",
        f"{field} is a whole number{'' if lowest is None else f' from {lowest}'}",
    )


def clean(value: str | None) -> str | None:
    """The text as it can be written in UTF-8. A value of another type passes: the check that follows reports it."""
    return clean_text(value) if isinstance(value, str) else value


def without_empty(items: Mapping[str, Any]) -> dict[str, Any]:
    """The items without `None` and empty containers; `""`, `0` and `False` stay."""
    return {key: value for key, value in items.items() if value is not None and value != [] and value != {}}


def shorten(text: str, width: int = 60) -> str:
    return repr(text) if len(text) <= width else f"{text[:width]!r}… ({len(text):,} characters)"


def free_name(
    wanted: str, is_taken: Callable[[str], object], suffixes: Iterable[object] | None = None
) -> str:
    """A name that nobody has yet: the wanted one, or the first of `wanted-2`, `wanted-3`, … that isn't taken.

    Args:
        wanted: The name, if it can be had.
        is_taken: Whether somebody has a name.
        suffixes: What to try instead of 2, 3, ….

    Example:
        >>> free_name("a", {"a", "a-2"}.__contains__)
        'a-3'
    """
    found, rest = wanted, iter(count(2) if suffixes is None else suffixes)
    while is_taken(found):
        found = f"{wanted}-{next(rest)}"
    return found


def items_of(field: str, value: object) -> tuple[Any, ...]:
    if value is None:
        return ()
    if not is_iterable(value):
        raise InvalidValueError.of([(field, value, "must be a list")])
    return tuple(value)


def wrong_items(
    field: str, items: Iterable[object], kinds: tuple[type, ...], advice: str = ""
) -> list[Problem]:
    names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in kinds)
    return [(field, item, f"must be {names}", advice) for item in items if not isinstance(item, kinds)]


def _raw(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "raw")


def _metadata(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "metadata")


def _counts(value: Mapping[str, int] | None) -> FrozenDict[int]:
    return freeze_mapping(value, "billed") if value else EMPTY


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
        """Read `to_dict`'s form, or a provider's own object, which is kept in `raw` if it has other fields.

        Raises:
            InvalidValueError: It is no mapping.
        """
        check_mapping("Citation", data)
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


USAGE_DETAILS: Mapping[str, str] = {
    "cache_read_tokens": "cache_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
    "input_audio_tokens": "input_audio_tokens",
    "output_audio_tokens": "output_audio_tokens",
}
"""The counts of a usage beyond the two totals, with their names in `TokenUsage.billed`."""

USAGE_COUNTS = ("input_tokens", "output_tokens", *USAGE_DETAILS)


@attrs.frozen(weakref_slot=False)
class TokenUsage:
    """The usage of a reply, in the provider's own figures.

    An unknown count is `None`. Providers' totals differ: Anthropic's `input_tokens` excludes what its cache reads and
    writes, Gemini's `output_tokens` excludes the reasoning. `billed` has the same form for all.

    Attributes:
        input_tokens, output_tokens: The provider's totals.
        raw: The provider's whole usage object.
        cumulative: In `add`, a cumulative right side replaces the left side instead of being added to it.
        cache_read_tokens: Input that was read from the provider's cache.
        cache_write_tokens: Input that was written to it.
        reasoning_tokens: Output that is reasoning.
        input_audio_tokens, output_audio_tokens: Input and output that is audio.
        billed: As an argument, what is billed, where that isn't exactly the counts above.
        more: Fields of a stored usage that this version doesn't know; `to_dict` writes them back, `add` drops them.
            Not compared.

    Example:
        >>> import rxdelta as rd
        >>> chunk = {"type": "message_start", "message": {"usage": {"input_tokens": 9, "cache_read_input_tokens": 90}}}
        >>> start, *_ = rd.providers.decoder("anthropic-messages").decode(chunk)
        >>> start.usage.input_tokens, start.usage.cache_read_tokens, start.usage.output_tokens
        (9, 90, None)
        >>> start.usage.billed
        {'input_tokens': 99, 'cache_read_tokens': 90}
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    raw: FrozenDict[Any] = attrs.field(default=None, converter=_raw)
    cumulative: bool = False
    cache_read_tokens: int | None = attrs.field(default=None, kw_only=True)
    cache_write_tokens: int | None = attrs.field(default=None, kw_only=True)
    reasoning_tokens: int | None = attrs.field(default=None, kw_only=True)
    input_audio_tokens: int | None = attrs.field(default=None, kw_only=True)
    output_audio_tokens: int | None = attrs.field(default=None, kw_only=True)
    _billed: FrozenDict[int] = attrs.field(default=None, kw_only=True, alias="billed", converter=_counts)
    more: FrozenDict[Any] = attrs.field(
        default=EMPTY, kw_only=True, eq=False, converter=to_more, alias="_more"
    )

    def __attrs_post_init__(self) -> None:
        known = [count for count in _of_usage(self) if count is not None]
        if _are_counts(known) and _are_counts(self._billed.values()) and type(self.cumulative) is bool:
            return  # without the work for messages: some providers send a usage with each chunk
        check(
            [
                *(count_or_none(name, getattr(self, name)) for name in USAGE_COUNTS),
                *(count_of(f"billed[{name!r}]", count) for name, count in self._billed.items()),
                None
                if isinstance(self.cumulative, bool)
                else ("cumulative", self.cumulative, "must be True or False"),
            ]
        )

    @property
    def billed(self) -> FrozenDict[int]:
        """What the provider bills, in one form for all providers.

        The names are those of the package `genai-prices`, whose `calc_price` takes it. `input_tokens` and
        `output_tokens` include all other counts of their direction. A count that is unknown has no key.
        """
        return self._billed or FrozenDict(
            {
                USAGE_DETAILS.get(name, name): count
                for name, count in zip(USAGE_COUNTS, _of_usage(self))
                if count is not None
            }
        )

    def add(self, other: TokenUsage | None) -> TokenUsage:
        """This usage and `other` together.

        Counts are summed, those of `billed` too. An unknown total counts as 0; a detail that neither side knows stays
        unknown. Numbers in `raw` are summed key by key; of other values `other`'s wins. A cumulative `other` is the new
        total itself.

        Example:
            >>> import rxdelta as rd
            >>> rd.TokenUsage(10, 5, cache_read_tokens=8).add(rd.TokenUsage(1, None))
            TokenUsage(input_tokens=11, output_tokens=5, cache_read_tokens=8)
        """
        if other is None:
            return self
        if other.cumulative:
            return other
        raw = dict(self.raw)
        for key, value in other.raw.items():
            known = raw.get(key)
            raw[key] = known + value if _is_number(known) and _is_number(value) else value
        details: dict[str, Any] = {
            name: _sum(getattr(self, name), getattr(other, name)) for name in USAGE_DETAILS
        }
        mine, theirs = self.billed, other.billed
        billed = {name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}}
        return TokenUsage(
            (self.input_tokens or 0) + (other.input_tokens or 0),
            (self.output_tokens or 0) + (other.output_tokens or 0),
            freeze_mapping(raw, "raw", lenient=True),  # a sum may be too large for JSON
            **details,
            billed=billed if self._billed or other._billed else None,
        )

    def total(self) -> int:
        """The sum of input and output tokens; an unknown count is 0."""
        return (self.input_tokens or 0) + (self.output_tokens or 0)

    def __repr__(self) -> str:
        shown = [f"{name}={value!r}" for name, value in self._known().items()]
        return f"TokenUsage({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object of the known figures."""
        return {**{name: thaw(value) for name, value in self._known().items()}, **thaw(self.more)}

    def _known(self) -> dict[str, Any]:
        """The arguments that make this usage."""
        counts = {name: getattr(self, name) for name in USAGE_COUNTS}
        return without_empty(
            {**counts, "billed": self._billed, "raw": self.raw, "cumulative": self.cumulative or None}
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TokenUsage:
        """Read `to_dict`'s form; strings of digits are read as numbers.

        Raises:
            InvalidValueError: A count is negative or not a number; or it is no mapping.
        """
        check_mapping("TokenUsage", data)
        counts = {name: whole_number(data.get(name)) for name in USAGE_COUNTS}
        billed = data.get("billed")
        if is_mapping(billed):
            billed = {name: whole_number(count) for name, count in billed.items()}
        return cls(
            **counts,
            raw=data.get("raw"),
            cumulative=data.get("cumulative") is True,
            billed=billed,
            _more=unknown_fields(data, _OF_USAGE),
        )


_of_usage: Callable[[TokenUsage], tuple[int | None, ...]] = attrgetter(*USAGE_COUNTS)


def _are_counts(values: Iterable[object]) -> bool:
    return all(type(value) is int and 0 <= value < _TOO_LARGE for value in values)


def _sum(mine: int | None, theirs: int | None) -> int | None:
    return theirs if mine is None else mine + (theirs or 0)


@fast_constructor(TokenUsage)
def make_usage(
    input_tokens: int | None,
    output_tokens: int | None,
    raw: FrozenDict[Any],
    cache_read_tokens: int | None,
    cache_write_tokens: int | None,
    reasoning_tokens: int | None,
    input_audio_tokens: int | None,
    output_audio_tokens: int | None,
    billed: FrozenDict[int] = EMPTY,
    cumulative: bool = False,
    more: FrozenDict[Any] = EMPTY,
) -> TokenUsage:
    """A usage of counts and a frozen object that have been checked."""
    raise NotImplementedError


_OF_USAGE = frozenset([*USAGE_COUNTS, "billed", "raw", "cumulative"])
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
        metadata: Other facts for programs and people, which the model doesn't get. One of them reaches the provider:
            `cache_control`, which tells Anthropic's API what to cache. `run_tools` sets `messages`, the
            messages so far of a tool that is an agent, in the form of `Snapshot.to_dict`. `denied` is true if a
            person refused the call, which tells a refusal from a failure; `reason` has the person's words.
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
    more: FrozenDict[Any] = attrs.field(
        default=EMPTY, kw_only=True, eq=False, repr=False, converter=to_more, alias="_more"
    )

    def __attrs_post_init__(self) -> None:
        seconds = self.duration
        known = seconds is None or (_is_number(seconds) and seconds >= 0 and math.isfinite(seconds))
        check(
            [
                text_or_none("call_id", self.call_id),
                None
                if isinstance(self.is_error, bool)
                else ("is_error", self.is_error, "must be True or False"),
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
            InvalidValueError: As in the constructor; or it is no mapping.
        """
        check_mapping("ToolResult", data)
        return cls(
            data.get("call_id"),
            data.get("content"),
            data.get("is_error") is True,
            data.get("duration"),
            metadata=data.get("metadata"),
            _more=unknown_fields(data, _OF_RESULT),
        )


if not TYPE_CHECKING:
    TokenUsage.__signature__ = public_signature(TokenUsage)
    ToolResult.__signature__ = public_signature(ToolResult)

_OF_RESULT = frozenset(["call_id", "content", "is_error", "duration", "metadata"])


def whole_number(value: object) -> Any:
    """A string of digits, as untrusted input may have it, as a number. Any other value passes: the check reports it."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


_NAMES = frozenset(
    [
        "block_not_finished",
        "delta_after_finish",
        "delta_before_start",
        "delta_type_mismatch",
        "duplicate_block_finish",
        "duplicate_block_start",
        "duplicate_message_finish",
        "duplicate_message_start",
        "event_after_message_finish",
        "finish_without_start",
        "missing_message_start",
        "unknown_delta_type",
    ]
)
"""The rules whose violation leaves the stream readable. So counts stay small, however many events are wrong."""

_MOST = 2**53  # what JSON's readers tell exactly


def to_violations(value: Mapping[str, Any] | None) -> FrozenDict[int]:
    """The counts as a frozen mapping; they may be untrusted input.

    Raises:
        InvalidValueError: They aren't counts by the names of rules.
    """
    if value is None:
        return EMPTY
    if isinstance(value, FrozenDict) and not value:
        return value
    if not is_mapping(value) or not all(_is_count(name, count) for name, count in value.items()):
        raise InvalidValueError.of([("violations", value, "must be counts from 1 by the names of rules")])
    return FrozenDict(sorted(value.items()))


def _is_count(name: object, count: object) -> bool:
    is_number = isinstance(count, int) and not isinstance(count, bool) and 1 <= count < _MOST
    return is_number and isinstance(name, str) and name in _NAMES


def add_violations(mine: FrozenDict[int], theirs: Mapping[str, int]) -> FrozenDict[int]:
    """Both counts together, up to the most that a count may be; the same object if there are no more."""
    if not theirs:
        return mine
    names = sorted({*mine, *theirs})
    return FrozenDict({name: min(mine.get(name, 0) + theirs.get(name, 0), _MOST - 1) for name in names})


def usage_to_wire(usage: TokenUsage | None) -> dict[str, Any] | None:
    """The usage in the protocol's form. A provider's object in this form is used unchanged."""
    if usage is None:
        return None
    raw: dict[str, Any] = thaw(usage.raw)
    if not usage.more and usage_from_wire(raw) == usage:
        return raw
    return usage.to_dict() | {"total_tokens": usage.total(), "raw": raw}


def usage_from_wire(value: object) -> TokenUsage | None:
    """Read either form that `usage_to_wire` writes. An invalid count becomes `None` (unknown), not 0."""
    if not is_mapping(value):
        return None
    raw = value.get("raw")
    if not is_mapping(raw):
        return _of_the_protocol(value)
    billed = value.get("billed")
    return TokenUsage(
        **_counts_in(value, USAGE_COUNTS),
        raw=freeze_mapping(raw, "usage", lenient=True),
        cumulative=value.get("cumulative") is True,
        billed=_counts_in(billed, billed) if is_mapping(billed) else None,
        _more=unknown_fields(value, _WRITTEN),
    )


def _of_the_protocol(value: Mapping[str, Any]) -> TokenUsage:
    """The totals, and details that they include.

    Integrations that know the cache's lifetime report the written tokens per lifetime, and `cache_creation` as 0.
    """
    inputs, outputs = _details(value, "input_token_details"), _details(value, "output_token_details")
    known = (
        _counts_in(value, ("input_tokens", "output_tokens"))
        | _named(inputs, _INPUT)
        | _named(outputs, _OUTPUT)
    )
    lasting = _named(inputs, _LASTING)
    if any(lasting.values()):
        known["cache_write_tokens"] = sum(lasting.values())
    usage = TokenUsage(**known, raw=freeze_mapping(value, "usage", lenient=True))
    return attrs.evolve(usage, billed={**usage.billed, **lasting}) if lasting else usage


def _details(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = value.get(name)
    return found if is_mapping(found) else {}


def _named(value: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[name]: count for name, count in _counts_in(value, names).items()}


def _counts_in(value: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """The valid counts among these fields."""
    found = {name: value.get(name) for name in names}
    return {
        name: count
        for name, count in found.items()
        if count is not None and count_or_none(name, count) is None
    }


_INPUT = {
    "cache_read": "cache_read_tokens",
    "cache_creation": "cache_write_tokens",
    "audio": "input_audio_tokens",
}
_OUTPUT = {"reasoning": "reasoning_tokens", "audio": "output_audio_tokens"}
_LASTING = {
    "ephemeral_5m_input_tokens": "cache_write_5m_tokens",
    "ephemeral_1h_input_tokens": "cache_write_1h_tokens",
}
_WRITTEN = frozenset([*USAGE_COUNTS, "billed", "total_tokens", "raw", "cumulative"])


Key: TypeAlias = int | str | tuple[str, int | str | None] | None
"""The index of the block's events; or `("part", slot)`, `("call", index)` of a block that was merged from deltas."""


def message_order(key: Key) -> tuple[int, int]:
    """The order of blocks that end together: numbered blocks by their numbers, others as they began."""
    return (0, key) if isinstance(key, int) else (1, 0)


def place_to_dict(key: Key, open: bool) -> dict[str, Any]:
    """The members of a block's JSON object that only a block of a snapshot has; elsewhere they are `None`."""
    return {"key": list(key) if isinstance(key, tuple) else key, "open": True if open else None}


def key_from_json(value: Any) -> Any:
    return tuple(value) if is_list(value) else value


def place_repr(key: Key, open: bool) -> list[str]:
    return ([] if key is None else [f"key={key!r}"]) + (["open=True"] if open else [])


def wrong_key(key: object) -> Problem | None:
    number = key
    if is_list(key):
        if isinstance(key, list) or len(key) != 2 or key[0] not in ("part", "call"):
            return ("key", key, "is invalid", "key is a number, a text, ('part', slot) or ('call', index)")
        number = key[1]
    return None if isinstance(number, str) else index_or_none("key", number, lowest=None)
