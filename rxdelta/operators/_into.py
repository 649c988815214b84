"""A JSON value, partial or whole, as an instance of somebody's class."""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, MutableSequence, Sequence
from contextlib import suppress
from operator import is_
from types import UnionType
from typing import Annotated, Any, Generic, TypeGuard, TypeVar, Union, get_args, get_origin

import attrs

from rxdelta.core import FrozenDict, FrozenList, InvalidValueError, thaw

__all__ = ["Into", "Memo", "is_array", "is_object"]

T = TypeVar("T")

Memo = dict[tuple[int, int], tuple[Any, Any]]
"""What was built of which containers, by their identity: those that are closed come again, and need no building.

Also of which lists, by their depth below zero: one that is open comes again with more items.
"""

_LISTS = (list, Sequence, MutableSequence, Collection, Iterable)
_DICTS = (dict, Mapping, MutableMapping)


@attrs.frozen(eq=False)
class _Plan:
    """What an annotation makes of a value. Where it says nothing, or several things, the JSON stays as it is."""

    record: type | None = None
    """Of a mapping an instance of this class; else …"""
    values: _Plan | None = None
    """… a mapping with such values."""
    items: _Plan | tuple[_Plan, ...] | None = None
    """Of a list one with such items, …"""
    is_tuple: bool = False
    """… as a tuple."""


_AS_IT_IS = _Plan()


@attrs.frozen(eq=False)
class _Field:
    name: str
    keys: tuple[str, ...]
    plan: _Plan
    argument: str | None = None
    """What the constructor calls it, if it takes it."""
    default: Callable[[object], Any] | None = None
    """Its default, for the instance that it is for."""


@attrs.frozen(eq=False)
class _Shape:
    fields: tuple[_Field, ...]
    is_model: bool
    """Pydantic makes and validates these itself."""


class Into(Generic[T]):
    """How to build a class from JSON: an attrs class, a dataclass, or a Pydantic model, and those within it.

    Raises:
        InvalidValueError: It is none of these, or abstract.
    """

    def __init__(self, cls: type[T]) -> None:
        self._cls = cls
        self._plan = _Plan(record=cls)
        self._shapes: dict[type, _Shape] = {}
        if not isinstance(cls, type) or not _is_record(cls):
            raise InvalidValueError.of(
                [("into", cls, "must be an attrs class, a dataclass or a Pydantic model")]
            )
        try:
            object.__new__(cls)
        except TypeError as error:
            raise InvalidValueError.of([("into", cls, f"cannot be made: {error}")]) from None

    @property
    def name(self) -> str:
        return self._cls.__name__

    def partial(self, value: object, memo: Memo) -> tuple[T, Memo]:
        """An instance with the fields that are there, and defaults. Nothing is checked, nobody's code but defaults run.

        A field that has neither isn't set: reading it is an `AttributeError`.

        Args:
            value: What has come; nothing is taken from what is no mapping.
            memo: From the last time.
        """
        members: dict[str, Any] = value if is_object(value) else FrozenDict()
        build = _Building(self.shape, memo)
        try:
            made: T = build.any(members, self._plan)
        except Exception:  # their descriptors, or classes nested deeper than the interpreter can follow
            made = object.__new__(self._cls)
        return made, build.known

    def whole(self, value: object) -> T:
        """The instance, made by its own constructor. Raises whatever that raises, and a `TypeError` for no object."""
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
        shape = self.shape(cls)
        if shape.is_model:
            return cls.model_validate_json(json.dumps(members))
        arguments: dict[str, Any] = {}
        for field in shape.fields:
            key = next((key for key in field.keys if key in members), None)
            if key is not None and field.argument is not None:
                arguments[field.argument] = self._construct(members[key], field.plan)
        return cls(**arguments)

    def shape(self, cls: type) -> _Shape:
        shape = self._shapes.get(cls)
        if shape is None:
            shape = self._shapes[cls] = _shape_of(cls)
        return shape


class _Building:
    """One partial instance, with what is closed taken over from the last one."""

    def __init__(self, shape: Callable[[type], _Shape], memo: Memo) -> None:
        self._shape = shape
        self._memo = memo
        self._depth = 0
        self.known: Memo = {}

    def any(self, value: Any, plan: _Plan) -> Any:
        if plan is _AS_IT_IS or not (is_object(value) or is_array(value)):
            return value
        name = (id(value), id(plan))
        found = self._memo.get(name)
        if found is None:
            self._depth += 1
            found = (value, self._container(value, plan))
            self._depth -= 1
        self.known[name] = found
        return found[1]

    def _container(self, value: Any, plan: _Plan) -> Any:
        if is_object(value):
            if plan.record is not None:
                return self._record(value, plan.record)
            if plan.values is not None:
                of = plan.values
                return FrozenDict({key: self.any(item, of) for key, item in value.items()})
        elif plan.items is not None:
            built = self._items(value, plan.items)
            return tuple(built) if plan.is_tuple else FrozenList(built)
        return value

    def _items(self, value: Any, plans: _Plan | tuple[_Plan, ...]) -> list[Any]:
        """The items, but for the last one those of the list that stood here when it was shorter."""
        if isinstance(plans, tuple):
            return [self.any(item, of) for item, of in _with_plans(value, plans)]
        place = (-self._depth, id(plans))
        before, built = self._memo.get(place, ((), ()))
        closed = before[:-1]
        same = len(closed) if len(closed) <= len(value) and all(map(is_, closed, value)) else 0
        items = [*built[:same], *(self.any(item, plans) for item in value[same:])]
        self.known[place] = (value, items)
        return items

    def _record(self, members: dict[str, Any], cls: Any) -> Any:
        shape = self._shape(cls)
        given: dict[str, tuple[str, Any]] = {}  # by the field's name: the key, and the value
        for field in shape.fields:
            key = next((key for key in field.keys if key in members), None)
            if key is not None:
                given[field.name] = (key, self.any(members[key], field.plan))
        if shape.is_model:
            return _model(cls, shape, given)
        instance: object = object.__new__(cls)
        for name, (_, value) in given.items():
            object.__setattr__(instance, name, value)
        _set_defaults(instance, shape, given)
        return instance


def _model(cls: Any, shape: _Shape, given: dict[str, tuple[str, Any]]) -> Any:
    try:
        return cls.model_construct(**dict(given.values()))
    except Exception:  # most likely its `model_post_init`, which relies on what is missing
        model = object.__new__(cls)
        object.__setattr__(model, "__dict__", {name: value for name, (_, value) in given.items()})
        object.__setattr__(model, "__pydantic_fields_set__", {*given})
        object.__setattr__(model, "__pydantic_extra__", None)
        object.__setattr__(model, "__pydantic_private__", None)
        _set_defaults(model, shape, given)
        return model


def _set_defaults(instance: object, shape: _Shape, given: Mapping[str, Any]) -> None:
    for field in shape.fields:
        if field.name not in given and field.default is not None:
            with suppress(Exception):  # a default that is made of fields which are missing is missing too
                object.__setattr__(instance, field.name, field.default(instance))


def _with_plans(items: Sequence[Any], plans: _Plan | tuple[_Plan, ...]) -> Iterable[tuple[Any, _Plan]]:
    if isinstance(plans, tuple):
        return ((item, plans[n] if n < len(plans) else _AS_IT_IS) for n, item in enumerate(items))
    return ((item, plans) for item in items)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """A JSON object, and the checkers know what is inside."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """A JSON array."""
    return isinstance(value, list)


def _is_model(cls: Any) -> bool:
    """Told by what it has, as Pydantic need not be there. A root model has no fields, and is none of ours."""
    return (
        isinstance(getattr(cls, "model_fields", None), Mapping)
        and callable(getattr(cls, "model_construct", None))
        and not getattr(cls, "__pydantic_root_model__", False)
    )


def _is_record(cls: Any) -> bool:
    return isinstance(cls, type) and (_is_model(cls) or attrs.has(cls) or dataclasses.is_dataclass(cls))


def _shape_of(cls: Any) -> _Shape:
    if _is_model(cls):
        return _Shape(tuple(_model_field(name, info) for name, info in cls.model_fields.items()), True)
    try:
        hints: dict[str, Any] = typing.get_type_hints(cls)
    except Exception:  # names that exist for the type checker only
        hints = {}

    def plan(field: Any) -> _Plan:
        return _plan(hints.get(field.name, field.type))

    if attrs.has(cls):
        return _Shape(tuple(_attrs_field(field, plan(field)) for field in attrs.fields(cls)), False)
    return _Shape(tuple(_dataclass_field(field, plan(field)) for field in dataclasses.fields(cls)), False)


def _model_field(name: str, info: Any) -> _Field:
    spoken = info.validation_alias
    aliases = [*getattr(spoken, "choices", [spoken]), info.alias, name]
    keys = tuple(dict.fromkeys(alias for alias in aliases if isinstance(alias, str)))
    default: Callable[[object], Any] | None = None
    if not info.is_required():
        default = lambda _: info.get_default(call_default_factory=True)  # noqa: E731
    return _Field(name, keys, _plan(info.annotation), default=default)


def _attrs_field(field: Any, plan: _Plan) -> _Field:
    default: Callable[[object], Any] | None = None
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]  # a function to checkers, a class in truth
        factory: Any = field.default
        default = factory.factory if factory.takes_self else lambda _: factory.factory()
    elif field.default is not attrs.NOTHING:
        default = lambda _: field.default  # noqa: E731
    keys = tuple(dict.fromkeys((field.alias, field.name)))
    return _Field(field.name, keys, plan, field.alias if field.init else None, default)


def _dataclass_field(field: Any, plan: _Plan) -> _Field:
    default: Callable[[object], Any] | None = None
    if field.default_factory is not dataclasses.MISSING:
        default = lambda _: field.default_factory()  # noqa: E731
    elif field.default is not dataclasses.MISSING:
        default = lambda _: field.default  # noqa: E731
    return _Field(field.name, (field.name,), plan, field.name if field.init else None, default)


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
    """A union's: what one of its members says. Where two say something of a mapping, it is not for us to choose."""
    of_mappings = [plan for plan in plans if plan.record is not None or plan.values is not None]
    of_lists = [plan for plan in plans if plan.items is not None]
    mapping = of_mappings[0] if len(of_mappings) == 1 else _AS_IT_IS
    listing = of_lists[0] if len(of_lists) == 1 else _AS_IT_IS
    if mapping is _AS_IT_IS and listing is _AS_IT_IS:
        return _AS_IT_IS
    return _Plan(mapping.record, mapping.values, listing.items, listing.is_tuple)
