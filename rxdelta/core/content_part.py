"""The identity of a message that is being folded, for operators that keep the newest value of each key.

A part of what the model says: text, reasoning, media, …
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, final

import attrs

from rxdelta.core.errors import InvalidValueError, public_signature, refuse_change
from rxdelta.core.fast_constructor import fast_constructor, set_field
from rxdelta.core.json_values import (
    EMPTY,
    FrozenDict,
    check_mapping,
    freeze_mapping,
    is_mapping,
    thaw,
    to_more,
    unknown_fields,
)
from rxdelta.core.text import GrowingText, extend, join_when_read
from rxdelta.core.values import (
    Citation,
    Key,
    check,
    clean,
    items_of,
    key_from_json,
    one_of,
    place_repr,
    place_to_dict,
    shorten,
    text_or_none,
    without_empty,
    wrong_key,
)


class Origin:
    """The message that a snapshot or a block is a state of.

    Ids don't tell two messages apart: several formats have none, and two merged streams may repeat one. A fold gives its
    origin to each snapshot and block that it makes. A copy by pickle has none, because it is no longer a state of that fold.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()


PART_TYPES = frozenset(
    {
        "text",
        "reasoning",
        "image",
        "image_url",
        "audio",
        "video",
        "file",
        "file_url",
        "server_tool_result",
        "refusal",
        "unsupported",
    }
)


def part_type(value: str) -> str:
    """`thinking` is an alias of `reasoning`."""
    return "reasoning" if value == "thinking" else value


def _options(value: Mapping[str, Any] | None) -> FrozenDict[Any]:
    return freeze_mapping(value, "options")


def _citations(value: Iterable[Citation | Mapping[str, Any]] | None) -> tuple[Citation, ...]:
    return tuple(_citation(item) for item in items_of("citations", value))


def _citation(value: Citation | Mapping[str, Any]) -> Citation:
    if isinstance(value, Citation):
        return value
    if is_mapping(value):
        return Citation.from_dict(value)
    raise InvalidValueError.of([("citations", value, "must hold citations")])


_TYPE_FIRST = 'the type comes first: rd.ContentPart("text", "Hi")'


@final
@attrs.frozen(weakref_slot=False, repr=False)
class ContentPart:
    """A part of what the model says: text, reasoning, an image, the result of the provider's own tool, …

    Attributes:
        type: `text`, `reasoning`, `image`, `image_url`, `audio`, `video`, `file`, `file_url`, `refusal`,
            `server_tool_result`, or `unsupported` (`options` then holds the whole block). `thinking` is read as
            `reasoning`.
        text: The text, or the base64 of media; `None` if there is none.
        options: The provider's other fields, e.g. the `signature` of a reasoning.
        citations: The sources that the part cites.
        key: The part's name in its snapshot; `None` outside a snapshot. Not compared.
        open: Whether the part may still grow. Not compared.
        more: Fields of a stored part that this version doesn't know; `to_dict` writes them back. Not compared.

    Raises:
        InvalidValueError: The type does not exist, the text is not a string, or the options are not JSON.

    Example:
        >>> import rxdelta as rd
        >>> rd.ContentPart("text", "Hello").merge(rd.ContentPart("text", ", world")).text
        'Hello, world'
    """

    type: str = attrs.field(default="text", converter=part_type)
    text: str | None = attrs.field(default=None, converter=clean)
    options: FrozenDict[Any] = attrs.field(default=None, converter=_options)
    citations: tuple[Citation, ...] = attrs.field(default=(), converter=_citations)
    key: Key = attrs.field(default=None, kw_only=True, eq=False, alias="_key")
    open: bool = attrs.field(default=False, kw_only=True, eq=False, alias="_open")
    more: FrozenDict[Any] = attrs.field(
        default=EMPTY, kw_only=True, eq=False, converter=to_more, alias="_more"
    )
    _origin: Origin | None = attrs.field(default=None, init=False, eq=False)

    def __attrs_post_init__(self) -> None:
        wrong_type = (
            ("type", None, "can't be blank") if self.type is None else one_of("type", self.type, PART_TYPES)
        )
        if wrong_type is not None and self.text is None:
            field, value, wrong, *advice = wrong_type
            wrong_type = (field, value, wrong, "; ".join([*advice, _TYPE_FIRST]))
        check(
            [
                wrong_type,
                text_or_none("text", self.text),
                wrong_key(self.key),
            ]
        )

    def merge(self, part: ContentPart) -> ContentPart:
        """This part with a later piece of the same part.

        If the types are equal, the texts are joined; `None` adds nothing. If they differ, the first text stays
        (`merge_delta` makes a new block instead). Options are merged key by key: two strings are joined, otherwise
        the later value wins. Citations are appended.
        """
        text = raw_text(self)
        piece = part.text
        if self.type == part.type and piece is not None:
            text = piece if text is None else extend(text, piece)
        options = _merge_options(self.options, part.options)
        return remake_part(self, text, options, self.citations + part.citations, self.open)

    def __copy__(self) -> ContentPart:
        return self

    def __deepcopy__(self, memo: object) -> ContentPart:
        return self

    def __repr__(self) -> str:
        shown = [repr(self.type)] + ([shorten(self.text)] if self.text is not None else [])
        shown += [f"options={self.options}"] if self.options else []
        shown += [f"citations={list(self.citations)}"] if self.citations else []
        return f"ContentPart({', '.join(shown + place_repr(self.key, self.open))})"

    def to_dict(self) -> dict[str, Any]:
        """A JSON object. A part of a snapshot also has `key` and, while it is open, `open`."""
        return without_empty(
            {
                **place_to_dict(self.key, self.open),
                "type": self.type,
                "text": self.text,
                "options": thaw(self.options),
                "citations": [citation.to_dict() for citation in self.citations],
                **thaw(self.more),
            }
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ContentPart:
        """Read `to_dict`'s form.

        Raises:
            InvalidValueError: As in the constructor; or it is no mapping.
        """
        check_mapping("ContentPart", data)
        return cls(
            data.get("type", "text"),
            data.get("text"),
            data.get("options"),
            data.get("citations"),
            _key=key_from_json(data.get("key")),
            _open=data.get("open") is True,
            _more=unknown_fields(data, _FIELDS),
        )


if not TYPE_CHECKING:
    ContentPart.__setattr__ = refuse_change
    ContentPart.__signature__ = public_signature(ContentPart)

_FIELDS = frozenset(["type", "text", "options", "citations", "key", "open"])


raw_text: Callable[[ContentPart], GrowingText | None] = join_when_read(ContentPart, "text")


@fast_constructor(ContentPart)
def make_part(
    type: str,
    text: GrowingText | None,
    options: FrozenDict[Any],
    citations: tuple[Citation, ...],
    key: Key,
    open: bool,
    more: FrozenDict[Any] = EMPTY,
    *,
    origin: Origin | None = None,
) -> ContentPart:
    """A part of fields that the caller has checked."""
    raise NotImplementedError


@fast_constructor(ContentPart, like="part")
def remake_part(
    part: ContentPart,
    text: GrowingText | None,
    options: FrozenDict[Any],
    citations: tuple[Citation, ...],
    open: bool,
) -> ContentPart:
    """The part with another content, which the caller has checked."""
    raise NotImplementedError


@fast_constructor(ContentPart, like="part")
def with_text(part: ContentPart, text: GrowingText | None) -> ContentPart:
    """The part with another text."""
    raise NotImplementedError


def change_part(part: ContentPart, **fields: Any) -> ContentPart:
    """The part with fields replaced, which the caller has checked. Growing text stays unjoined."""
    changed = with_text(part, raw_text(part))
    for name, value in fields.items():
        set_field(changed, name, value)
    return changed


def _merge_options(mine: FrozenDict[Any], theirs: FrozenDict[Any]) -> FrozenDict[Any]:
    if not theirs:
        return mine
    merged = dict(mine)
    for key, value in theirs.items():
        known = merged.get(key)
        merged[key] = known + value if isinstance(known, str) and isinstance(value, str) else value
    return FrozenDict(merged)
