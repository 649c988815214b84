"""Constructors of frozen attrs values that cost no more than those of plain ones, for code that runs once a delta.

The `__init__` of a frozen class converts and checks its arguments and sets each field through `object.__setattr__`,
which costs three times an assignment. A fold makes two values a delta, of fields that have been checked. It fills a
blank, an object of a class with the same slots but without the lock, and then changes the blank's class:

    def text_delta(index, text, choice):
        made = Blank()
        made.index = index
        made.text = text
        made.choice = choice
        made.__class__ = TextDelta
        return made

`fast_constructor` writes such code, as attrs writes an `__init__`. The code is written out by hand only in
`Fold.step` and `BlockFold.grow`, where one more call for each delta can be measured.
"""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import attrs

P = ParamSpec("P")
T = TypeVar("T", bound=attrs.AttrsInstance)

set_field = object.__setattr__
"""Sets a field of a frozen value that nothing else refers to yet, as the `__init__` of attrs does."""


def blank(cls: type[attrs.AttrsInstance]) -> type[Any]:
    """A class with the slots of `cls`, whose objects take assignments and can become a `cls`.

    Args:
        cls: A class with slots, but without a weakref slot; its bases have no slots of their own.
    """
    fields = tuple(field.name for field in attrs.fields(cls))
    bases = cls.__dict__.get("__orig_bases__", cls.__bases__)  # `Generic` alone can't be a base
    return types.new_class(
        f"Blank{cls.__name__}", bases, exec_body=lambda body: body.update(__slots__=fields)
    )


def fast_constructor(cls: type[T], *, like: str = "") -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Write the body of the decorated function, which makes a `cls` of its arguments, neither converted nor checked.

    Each parameter has the name of a field, without a leading underscore.

    Args:
        cls: As for `blank`.
        like: The parameter whose value has the fields that no other parameter gives.
    """

    def write(declared: Callable[P, T]) -> Callable[P, T]:
        given = inspect.signature(declared).parameters
        named = [name for name, parameter in given.items() if parameter.kind is parameter.KEYWORD_ONLY]
        names = [name for name in given if name not in named]
        lines = [f"def written({', '.join([*names, '*', *named] if named else names)}):", "made = Blank()"]
        for field in attrs.fields(cls):
            plain = field.name.lstrip("_")
            source = plain if plain in given else f"{like}.{field.name}"
            lines.append(f"made.{field.name} = {source}")
        lines += ["made.__class__ = Class", "return made"]
        space: dict[str, Any] = {"Blank": blank(cls), "Class": cls}
        exec("\n    ".join(lines), space)  # noqa: S102 - of names in our own source
        written = space["written"]
        defaults = {name: one.default for name, one in given.items() if one.default is not one.empty}
        written.__defaults__ = tuple(defaults[name] for name in names if name in defaults)
        written.__kwdefaults__ = {name: defaults[name] for name in named if name in defaults}
        constructor: Callable[P, T] = functools.update_wrapper(written, declared)
        return constructor

    return write
