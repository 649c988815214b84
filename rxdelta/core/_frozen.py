"""Read-only JSON containers, so that a snapshot never changes.

They are subclasses of `dict` and `list`, not proxies, because subclasses pickle, print, compare and go through
`json.dumps` as users expect.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final, NoReturn, TypeAlias, TypeGuard, TypeVar

from rxdelta.core._errors import InvalidValueError
from rxdelta.core._limits import DEFAULT_LIMITS
from rxdelta.core._strict_json import MAX_DIGITS, clean_text

__all__ = [
    "FrozenDict",
    "FrozenList",
    "freeze",
    "freeze_mapping",
    "is_iterable",
    "is_list",
    "is_mapping",
    "thaw",
]

V = TypeVar("V")


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """`isinstance(value, Mapping)`, after which type checkers know the types of the members."""
    return isinstance(value, (dict, Mapping))  # asked alone, `Mapping` takes long


def is_list(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether the value is a list or tuple, which JSON writes as an array."""
    return isinstance(value, (list, tuple))


def is_iterable(value: object) -> TypeGuard[Iterable[Any]]:
    """Whether the value is an iterable of items, which text and mappings are not."""
    return isinstance(value, Iterable) and not isinstance(value, (str, Mapping))


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(
        f"{type(self).__name__} is read-only; make a copy with dict(…) or list(…), or rxdelta.core.thaw(…)"
    )


class FrozenDict(dict[str, V]):
    """A read-only `dict`. Equal to a plain `dict` with the same items; hashable if its values are.

    Example:
        >>> FrozenDict({"a": 1}) == {"a": 1}
        True
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # dict sets it to None
        return hash(frozenset(self.items()))

    def __repr__(self) -> str:
        return super().__repr__()

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (dict(self),))

    def __copy__(self) -> FrozenDict[V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenDict[V]:
        return self

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse


class FrozenList(list[V]):
    """A read-only `list`. Equal to a plain `list` with the same items; hashable if its items are.

    Example:
        >>> FrozenList([1, 2]) == [1, 2]
        True
    """

    __slots__ = ()

    def __hash__(self) -> int:  # type: ignore[override]  # list sets it to None
        return hash(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (list(self),))

    def __copy__(self) -> FrozenList[V]:
        return self

    def __deepcopy__(self, memo: object) -> FrozenList[V]:
        return self

    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse


EMPTY: FrozenDict[Any] = FrozenDict()

_MAX_INTEGER = 10**MAX_DIGITS  # `json.dumps` raises for larger ones


def freeze(value: object, field: str = "value", *, lenient: bool = False) -> Any:
    """The same JSON value, read-only at every depth.

    Args:
        value: Strings, numbers, booleans, `None`, and mappings (string keys), lists and tuples of them. Lone
            surrogates in strings become U+FFFD, so that the result can always be written as UTF-8.
        field: The name of the value in errors.
        lenient: Refuse nothing, because the value is a provider's and not a user's. A number that JSON cannot
            express, and a value nested too deep, becomes `None`; keys become strings; other objects become
            their `repr`.

    Raises:
        InvalidValueError: The value is not JSON, or is nested deeper than `Limits.json_depth`.

    Example:
        >>> frozen = freeze({"path": ["a"]})
        >>> frozen["path"].append("b")
        Traceback (most recent call last):
            ...
        TypeError: FrozenList is read-only; make a copy with dict(…) or list(…), or rxdelta.core.thaw(…)
    """
    return _freeze(value, field, lenient, 0)


_Path: TypeAlias = "str | tuple[_Path, str | int]"
"""The name of a field, or the path of a container and the place in it. Only an error writes it as text: keys may be long."""


def _freeze(value: object, path: _Path, lenient: bool, depth: int) -> Any:
    if type(value) is int and -_MAX_INTEGER < value < _MAX_INTEGER:
        return value
    if isinstance(value, str):
        return clean_text(str.__str__(value))  # an enum becomes its value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        known = -_MAX_INTEGER < value < _MAX_INTEGER if isinstance(value, int) else math.isfinite(value)
        if known:
            return int(value) if isinstance(value, int) else float(value)
        if lenient:
            return None
        raise InvalidValueError.of([(_written(path), value, "is not a number that JSON has")])
    if is_mapping(value) or is_list(value):
        if depth == DEFAULT_LIMITS.json_depth:
            if lenient:
                return None
            raise InvalidValueError.of([(_written(path), "…", "is nested too deep")])
        if is_mapping(value):
            return _freeze_mapping(value, path, lenient, depth)
        items = [_freeze(item, (path, n), lenient, depth + 1) for n, item in enumerate(value)]
        if isinstance(value, FrozenList) and all(map(is_, items, value)):
            return value
        return FrozenList(items)
    if lenient:
        return clean_text(repr(value))
    wrong = f"is a {type(value).__name__}, not a JSON value"
    unawaited = inspect.iscoroutine(value)
    advice = "an `await` is missing in front of what made it" if unawaited else ""
    raise InvalidValueError.of([(_written(path), value, wrong, advice)])


def _freeze_mapping(value: Mapping[Any, Any], path: _Path, lenient: bool, depth: int) -> FrozenDict[Any]:
    frozen: dict[str, Any] = {}
    for key, item in value.items():
        if not isinstance(key, str) and not lenient:
            raise InvalidValueError.of([(_written(path), key, "has a key that is not a string")])
        name = clean_text(str.__str__(key) if isinstance(key, str) else str(key))
        frozen[name] = _freeze(item, (path, name), lenient, depth + 1)
    if (
        isinstance(value, FrozenDict)
        and value.keys() == frozen.keys()
        and all(map(is_, value.values(), frozen.values()))
    ):
        return value  # it is frozen at every depth already
    return FrozenDict(frozen)


def _written(path: _Path) -> str:
    places: list[str] = []
    while isinstance(path, tuple):
        path, place = path
        places.append(f"[{place}]" if isinstance(place, int) else f".{place}")
    return path + "".join(reversed(places))


def freeze_mapping(value: object, field: str, *, lenient: bool = False) -> FrozenDict[Any]:
    """`freeze` for a field that holds a mapping; `None` is the empty one."""
    if value is None:
        return EMPTY
    if is_mapping(value):
        return _freeze_mapping(value, field, lenient, 0)
    raise InvalidValueError.of([(field, value, "must be a mapping")])


_SCALARS: Final = frozenset([str, int, float, bool, type(None)])


def thaw(value: Any) -> Any:
    """A plain copy of a frozen JSON value, which can be edited; the value itself stays frozen.

    Example:
        >>> import rxdelta as rd
        >>> arguments = rd.core.thaw(rd.ToolCall(arguments={"path": ["a"]}, status="complete").arguments)
        >>> arguments["path"].append("b")
    """
    if type(value) in _SCALARS:  # most are, and asking them for `Mapping` takes long
        return value
    if is_mapping(value):
        return {key: thaw(item) for key, item in value.items()}
    if is_list(value):
        return [thaw(item) for item in value]
    return value
