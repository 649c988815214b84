"""A JSON object as an instance of the user's class."""

from __future__ import annotations

import dataclasses
import inspect
import json
import typing
from collections.abc import Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from importlib import import_module
from types import UnionType
from typing import Annotated, Any, Generic, TypeGuard, TypeVar, Union, get_args, get_origin

import attrs

from rxdelta.core import InvalidValueError, thaw

__all__ = ["Into", "is_array", "is_object"]

T = TypeVar("T")

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
