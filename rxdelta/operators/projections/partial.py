"""An incomplete JSON document as a value that knows which parts are final, and as an instance of the user's class."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from importlib import import_module
from types import UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Generic,
    TypeGuard,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import attrs

from rxdelta.core import (
    FrozenDict,
    InvalidJson,
    InvalidValueError,
    Limits,
    PartialJsonParser,
    ToolCall,
    fast_constructor,
    thaw,
)
from rxdelta.operators.projections.json_search import JsonSearch, Unfenced
from rxdelta.runtime import replaceable

if TYPE_CHECKING:
    from rxdelta.operators.projections.projection import Growth

T = TypeVar("T")


@attrs.frozen(weakref_slot=False, repr=False)
class PartialValue(Generic[T]):
    """A JSON document so far.

    Attributes:
        value: With a class, the instance made from the whole document; `None` until then, and if the class refused the
            document. Without a class, the document so far as read-only JSON: an open string with the characters so
            far, an open container with its members so far, a number or word only when it is whole. `None` before the
            first value.
        call_id: The call whose arguments these are; `None` for a reply's text.
        name: The tool's name.
        complete: Whether the provider has finished the document, it is strict JSON, and the class has accepted it.
            Such a value is the last.
        error: Why the text can't be JSON, can't be completed, or was refused by the class; `None` without an error.
            The document so far stays.

    Example:
        >>> import rxdelta as rd
        >>> rd.types.PartialValue({"query": "tides"}, "c1", "search", complete=True).is_final("query")
        True
    """

    # Two values are compared by their JSON: instances of the user's class may not be comparable.
    value: T | None = attrs.field(eq=False)
    call_id: str | None = None
    name: str | None = None
    complete: bool = False
    error: str | None = None
    _json: Any = attrs.field(
        default=attrs.Factory(lambda self: self.value, takes_self=True), kw_only=True, alias="json"
    )
    _open: tuple[str | int, ...] | None = attrs.field(  # the path to the open value; `None` if all are closed
        default=attrs.Factory(lambda self: None if self.complete else (), takes_self=True),
        kw_only=True,
        alias="open",
    )

    @property
    def so_far(self) -> Mapping[str, Any]:
        """The object so far, by the document's own keys: read-only JSON, to be drawn while it grows.

        Values are neither validated nor converted. Keys appear as they arrive, so use
        `partial.so_far.get("title", "")`. Empty if the document is no object.
        """
        return self._json if is_object(self._json) else FrozenDict()

    def is_final(self, *path: str | int) -> bool:
        """Whether the value at `path` won't change any more: `partial.is_final("files", 0)`.

        The path consists of the document's own keys and indexes, as in `so_far`; the empty path is the whole document.
        A value that hasn't begun isn't final. A final value changes only if the provider replaces the arguments at
        their end, or if the document repeats a key.
        """
        if self._open is not None and self._open[: len(path)] == path:
            return False
        return _has_path(self._json, path)

    def __repr__(self) -> str:
        of = "".join(f" {word}" for word in (self.call_id, self.name) if word)
        shown = repr(self._json)
        shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
        last_value = "" if self.complete else " …"
        wrong = f"; {self.error}" if self.error is not None else ""
        return f"<PartialValue{of} {shown}{last_value}{wrong}>"


@fast_constructor(cast("type[PartialValue[Any]]", PartialValue))
def _partial_value(
    value: Any,
    call_id: str | None,
    name: str | None,
    complete: bool,
    error: str | None,
    json: Any,
    open: tuple[str | int, ...] | None,
) -> PartialValue[Any]:
    """A value, made without checks."""
    raise NotImplementedError


replaceable(PartialValue, lambda partial: (partial.call_id,), lambda partial: partial.complete)


class PartialReading(Generic[T]):
    """The reading of one document, and its last `PartialValue`.

    Args:
        into: The class for the whole document.
        limits: The document's greatest depth.
        is_text: Whether the document is the reply's text, which may have a markdown fence around it, and not the
            arguments of a call.
        find: Whether to search the text for the document.

    Attributes:
        call_id, name: The call whose arguments are read.
    """

    def __init__(
        self, into: Into[T] | None, limits: Limits, *, is_text: bool = False, find: bool = False
    ) -> None:
        self._into = into
        self._depth = limits.json_depth
        self._is_text = is_text
        self._find = find
        # Whether the last value is closed, its error, and the version of its JSON. The JSON itself isn't kept without
        # need, so that an open string can grow in its place.
        self._last: tuple[bool, str | None, object] | None = None
        self.call_id: str | None = None
        self.name: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._reader = PartialJsonParser(max_depth=self._depth, control_characters=not self._is_text)
        self._unfenced = Unfenced()
        self._search = JsonSearch(self._depth) if self._find else None
        self._has_text = False
        self._is_new = self._last is not None

    def take(self, growth: Growth) -> None:
        """Read more text, or begin again with this text."""
        how, text = growth
        if how != "more":
            self._begin()
        self.more(text)

    def more(self, text: str) -> None:
        """Read more text."""
        if not self._is_text:
            self._reader.feed(text)
            return
        self._has_text = self._has_text or bool(text)
        if self._search is not None:
            self._search.feed(text)
            self._reader = self._search.shown
        else:
            for piece in self._unfenced.pieces(text, self._is_whole):
                self._reader.feed(piece)

    def _is_whole(self) -> bool:
        return self._reader.complete

    def changed_value(self, error: str | None = None) -> PartialValue[T] | None:
        """Return the value so far, or `None` if it is unchanged since the last call."""
        reader, last = self._reader, self._last
        path = reader._open_path()
        state = (path is None, (self._search or reader).error or error, self._version())
        if last is None:  # arguments that are null so far are none
            if state[1] is None and not (reader.started and (self._is_text or reader.value is not None)):
                return None
        elif not self._is_new:
            if reader._before_repeat is not None and self._search is None and type(last[2]) is int:
                last = (last[0], last[1], reader._before_repeat)
            if last == state:
                return None
        self._is_new = False
        return self._show(state, reader.value, open=path)

    def _version(self) -> object:
        """A value that changes with the JSON: a count, or the JSON itself if an older one may come back."""
        reader = self._reader
        return reader._changes if self._search is None and reader._before_repeat is None else reader.value

    def last_value(self, call: ToolCall) -> PartialValue[T] | None:
        """Return the last value of a call that has ended."""
        if call.type != "tool_call":
            return self.changed_value(call.error)
        return self._complete(call.arguments)

    def last_value_of_text(self, cut: str | None = None) -> PartialValue[T] | None:
        """Return the last value of a text that has ended.

        Args:
            cut: Why the text was cut off, if it was.
        """
        if not self._has_text:
            return None
        if self._search is None:
            self._reader.feed(self._unfenced.rest())
        document = self._search or self._reader
        if cut is not None and not document.complete:
            return self.changed_value(cut)
        try:
            value = document.close()
        except InvalidJson as error:
            return self.changed_value(error.reason)
        return self._complete(value)

    def _complete(self, document: Any) -> PartialValue[T]:
        error, made = None, None
        if self._into is not None:
            try:
                made = self._into.whole(document)
            except Exception as refused:  # raised by the user's class
                error = f"not a {self._into.name}: {refused}"
        state = (True, error, self._version())
        return self._show(state, document, made=made, complete=error is None)

    def _show(
        self,
        state: tuple[bool, str | None, object],
        document: Any,
        *,
        made: T | None = None,
        complete: bool = False,
        open: tuple[str | int, ...] | None = None,
    ) -> PartialValue[T]:
        self._last = state
        value = document if self._into is None else made
        return _partial_value(value, self.call_id, self.name, complete, state[1], document, open)


def _has_path(value: object, path: Sequence[str | int]) -> bool:
    for step in path:
        if is_object(value):
            if not isinstance(step, str) or step not in value:
                return False
            value = value[step]
        elif is_array(value):
            if type(step) is not int or not 0 <= step < len(value):
                return False
            value = value[step]
        else:
            return False
    return True


_LISTS = (list, Sequence, MutableSequence, Collection, Iterable)
_DICTS = (dict, Mapping, MutableMapping)


@attrs.frozen(eq=False)
class _Plan:
    """The conversion that an annotation asks for. Without an unambiguous one, JSON is left unchanged."""

    record: type | None = None
    """Make a mapping an instance of this class; else …"""
    values: _Plan | None = None
    """… convert its values by this plan."""
    items: _Plan | tuple[_Plan, ...] | None = None
    """Convert a list's items by this plan, …"""
    is_tuple: bool = False
    """… and make the list a tuple."""


_AS_IT_IS = _Plan()


@attrs.frozen(eq=False)
class _Field:
    keys: tuple[str, ...]
    argument: str
    """The parameter's name in the constructor."""
    plan: _Plan
    required: bool = False
    """Whether nobody but us misses it: a TypedDict is made without a look at its keys."""


class Into(Generic[T]):
    """Makes instances of a class from JSON, also nested: of a dataclass, an attrs class, a Pydantic model, a msgspec
    Struct or a TypedDict.

    Raises:
        InvalidValueError: The class is none of these, or abstract.
    """

    def __init__(self, cls: type[T]) -> None:
        self._cls = cls
        self._plan = _Plan(record=cls)
        self._fields: dict[type, tuple[_Field, ...]] = {}
        if not isinstance(cls, type) or not _is_record(cls):
            kinds = "a dataclass, an attrs class, a Pydantic model, a msgspec Struct or a TypedDict"
            raise InvalidValueError.of([("into", cls, f"must be {kinds}")])
        if inspect.isabstract(cls):
            raise InvalidValueError.of([("into", cls, "is abstract")])

    @property
    def name(self) -> str:
        return self._cls.__name__

    def whole(self, value: object) -> T:
        """Make the instance by its constructor. Raises the constructor's errors, and `TypeError` without an object."""
        if not is_object(value):
            raise TypeError("the document is not an object")
        made: T = self._construct(value, self._plan)
        return made

    def _construct(self, value: Any, plan: _Plan) -> Any:
        if is_object(value):
            if plan.record is not None:
                return self._construct_record(value, plan.record)
            if plan.values is not None:
                return {key: self._construct(item, plan.values) for key, item in value.items()}
        elif is_array(value) and plan.items is not None:
            made = [self._construct(item, of) for item, of in _with_plans(value, plan.items)]
            return tuple(made) if plan.is_tuple else made
        return thaw(value)

    def _construct_record(self, members: dict[str, Any], cls: Any) -> Any:
        if _is_model(cls):
            return cls.model_validate_json(json.dumps(members))
        if _is_struct(cls):
            return import_module("msgspec.json").decode(json.dumps(members), type=cls)
        arguments: dict[str, Any] = {}
        for field in self._fields_of(cls):
            key = next((key for key in field.keys if key in members), None)
            if key is not None:
                arguments[field.argument] = self._construct(members[key], field.plan)
            elif field.required:
                raise TypeError(f"missing key {field.argument!r}")
        return cls(**arguments)

    def _fields_of(self, cls: type) -> tuple[_Field, ...]:
        fields = self._fields.get(cls)
        if fields is None:
            fields = self._fields[cls] = _fields(cls)
        return fields


def _with_plans(items: Sequence[Any], plans: _Plan | tuple[_Plan, ...]) -> Iterable[tuple[Any, _Plan]]:
    if isinstance(plans, tuple):
        return ((item, plans[n] if n < len(plans) else _AS_IT_IS) for n, item in enumerate(items))
    return ((item, plans) for item in items)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether the value is a JSON object, as a check of its type."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether the value is a JSON array, as a check of its type."""
    return isinstance(value, list)


def _is_model(cls: Any) -> bool:
    """Whether this is a Pydantic model, without an import of Pydantic. A root model has no fields and doesn't count."""
    return (
        isinstance(getattr(cls, "model_fields", None), Mapping)
        and callable(getattr(cls, "model_construct", None))
        and not getattr(cls, "__pydantic_root_model__", False)
    )


def _is_struct(cls: Any) -> bool:
    """Whether this is a msgspec Struct, without an import of msgspec."""
    return hasattr(cls, "__struct_fields__") and hasattr(cls, "__struct_config__")


def _is_typed_dict(cls: Any) -> bool:
    """Whether this is a TypedDict, also one of typing_extensions, which `typing.is_typeddict` doesn't know."""
    return hasattr(cls, "__required_keys__") and issubclass(cls, dict)


def _is_record(cls: Any) -> bool:
    kinds = (_is_model, attrs.has, dataclasses.is_dataclass, _is_struct, _is_typed_dict)
    return isinstance(cls, type) and any(is_kind(cls) for is_kind in kinds)


def _fields(cls: Any) -> tuple[_Field, ...]:
    """The constructor's parameters."""
    if _is_typed_dict(cls):
        return tuple(_members(cls))
    try:
        hints: dict[str, Any] = typing.get_type_hints(cls)
    except Exception:  # an annotation uses names that only type checkers know
        hints = {}
    found: list[_Field] = []
    known: Sequence[Any] = attrs.fields(cls) if attrs.has(cls) else dataclasses.fields(cls)
    for field in known:
        if field.init:
            argument: str = getattr(field, "alias", field.name)  # attrs'
            keys = tuple(dict.fromkeys((argument, field.name)))
            found.append(_Field(keys, argument, _plan(hints.get(field.name, field.type))))
    return tuple(found)


def _members(cls: Any) -> Iterable[_Field]:
    """The keys of a TypedDict. If an annotation can't be read, no key is known to be required."""
    try:
        hints: dict[str, Any] = typing.get_type_hints(cls, include_extras=True)
    except Exception:
        return (_Field((key,), key, _AS_IT_IS) for key in cls.__annotations__)
    return (_member(key, hint, key in cls.__required_keys__) for key, hint in hints.items())


def _member(key: str, hint: Any, required: bool) -> _Field:
    # `__required_keys__` doesn't know of a `NotRequired` in an annotation that is a string.
    while (qualifier := getattr(get_origin(hint), "_name", None)) in _QUALIFIERS or get_origin(
        hint
    ) is Annotated:
        required = {"Required": True, "NotRequired": False}.get(qualifier or "", required)
        hint = get_args(hint)[0]
    return _Field((key,), key, _plan(hint), required)


_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")


def _plan(hint: Any) -> _Plan:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _plan(arguments[0])
    if origin is Union or origin is UnionType:
        return _either([_plan(argument) for argument in arguments])
    if _is_record(origin or hint):
        return _Plan(record=origin or hint)
    if not arguments:
        return _AS_IT_IS
    if origin is tuple:
        alike = arguments[-1] is Ellipsis
        items = _plan(arguments[0]) if alike else tuple(_plan(argument) for argument in arguments)
        return _Plan(items=items, is_tuple=True)
    if origin in _LISTS and _plan(arguments[0]) is not _AS_IT_IS:
        return _Plan(items=_plan(arguments[0]))
    if origin in _DICTS and _plan(arguments[1]) is not _AS_IT_IS:
        return _Plan(values=_plan(arguments[1]))
    return _AS_IT_IS


def _either(plans: Sequence[_Plan]) -> _Plan:
    """The plan of a union: that of its only member for mappings, and of its only member for lists."""
    of_mappings = [plan for plan in plans if plan.record is not None or plan.values is not None]
    of_lists = [plan for plan in plans if plan.items is not None]
    mapping = of_mappings[0] if len(of_mappings) == 1 else _AS_IT_IS
    listing = of_lists[0] if len(of_lists) == 1 else _AS_IT_IS
    if mapping is _AS_IT_IS and listing is _AS_IT_IS:
        return _AS_IT_IS
    return _Plan(mapping.record, mapping.values, listing.items, listing.is_tuple)
