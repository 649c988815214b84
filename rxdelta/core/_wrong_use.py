"""What is said to who calls a value's class in a wrong way, or tries to change a value."""

from __future__ import annotations

from functools import wraps
from inspect import Signature, signature
from typing import Any, NoReturn, TypeVar

import attrs
import attrs.exceptions

__all__ = ["explained", "public_signature", "refuse_change"]

T = TypeVar("T", bound=type)


class FrozenInstanceError(attrs.exceptions.FrozenInstanceError):
    """That of attrs, with a text of our own."""

    def __init__(self, msg: str) -> None:
        AttributeError.__init__(self, msg)
        self.msg = msg


def refuse_change(self: Any, name: str, _: object) -> NoReturn:
    """The `__setattr__` of a value. That of attrs says only that it can't."""
    kind: Any = self.__class__
    is_field = any(name == field.alias for field in attrs.fields(kind) if field.init)
    cure = f"attrs.evolve(value, {f'{name}=…' if is_field else '…'})"
    if hasattr(kind, "__attrs_init__"):  # a snapshot, whose constructor doesn't take the fields
        cure = "rd.apply_event(snapshot, event)"
    raise FrozenInstanceError(f"a {kind.__name__} is a value, which doesn't change; {cure} makes another")


def public_signature(cls: type) -> Signature:
    """The signature without the fields that only the library gives, whose names there begin with an underscore."""
    whole = signature(cls)
    public = [one for name, one in whole.parameters.items() if not name.startswith("_")]
    return whole.replace(parameters=public)


def explained(cls: T, advice: str) -> T:
    """The attrs class, all of whose fields are given by name. A wrong call is told what is right.

    Args:
        cls: The class.
        advice: How a value is usually made.
    """
    make: Any = cls.__init__  # type: ignore[misc]
    fields = {field.alias for field in attrs.fields(cls) if field.init}

    @wraps(make)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        if args:
            raise TypeError(f"{cls.__name__} takes its fields by their names; {advice}")
        unknown = given.keys() - fields
        if unknown:
            raise TypeError(f"{cls.__name__} has no field {', '.join(map(repr, sorted(unknown)))}; {advice}")
        make(self, **given)

    cls.__init__ = checked  # type: ignore[misc]
    return cls
