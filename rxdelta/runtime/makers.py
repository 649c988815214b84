"""Checks in every function that makes an operator: no forgotten parentheses, and the options that many have."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeGuard, TypeVar

from reactivex import Observable, abc

from rxdelta.core import InvalidValueError, Limits, quote
from rxdelta.runtime.observables import OwnObservable

P = ParamSpec("P")
R = TypeVar("R")


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_text(value: object) -> bool:
    return value is None or isinstance(value, str)


_OPTIONS: Mapping[str, tuple[Callable[[object], bool], str]] = {
    "call_id": (_is_text, "must be a string"),
    "choice": (_is_number, "must be a whole number from 0"),
    "is_ping": (callable, "must be a function of a value"),
    "limits": (lambda value: isinstance(value, Limits), "must be rd.Limits(…)"),
    "on_error": (callable, "must be a function that returns the text for the reader"),
    "on_violation": (callable, "must be a function of the rule's name and the event"),
    "reason": (_is_text, "must be a string"),
    "scheduler": (lambda value: isinstance(value, abc.SchedulerBase), "must be a scheduler of reactivex"),
}
"""Options that mean the same everywhere. Their defaults are always allowed."""

_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIADIC = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def checks_options(make: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses wrong values of common options. What `*args` and `**kwargs` take is no option.

    Raises:
        InvalidValueError: By the function, at once.
    """
    parameters = signature(make).parameters
    common = _OPTIONS.keys() & {name for name, one in parameters.items() if one.kind not in _VARIADIC}
    positional = [name for name, one in parameters.items() if one.kind in _POSITIONAL]

    @wraps(make)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        given: dict[str, Any] = {**dict(zip(positional, args)), **options}
        for option in common & given.keys():
            is_allowed, wanted = _OPTIONS[option]
            value = given[option]
            if not is_allowed(value) and value is not parameters[option].default:
                raise InvalidValueError.of([(option, value, wanted)])
        return make(*args, **options)

    return checked


def operator_maker(make: Callable[P, R]) -> Callable[P, R]:
    """The same function, which refuses the source as its first argument, and checks options as `checks_options` does.

    Raises:
        InvalidValueError: By the function, at once.
    """
    name = make.__name__
    named = names_operator(make)

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> R:
        first: Any = args[0] if args else None
        if isinstance(first, Observable):
            raise InvalidValueError(f"{name} makes an operator: write source.pipe({name}(…))")
        return named(*args, **options)

    return made


def names_operator(make: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose operator says what it is, and which checks options as `checks_options` does.

    It is for functions whose first argument may be an Observable.
    """
    checked = checks_options(make)

    @wraps(make)
    def made(*args: P.args, **options: P.kwargs) -> R:
        operator: Any = checked(*args, **options)
        return _Operator(make.__name__, args, options, operator)  # type: ignore[return-value]

    return made


class _Operator:
    """An operator with a name: its `repr` is the call that has made it."""

    __slots__ = ("_apply", "_args", "_options", "name")

    def __init__(
        self,
        name: str,
        args: Sequence[Any],
        options: Mapping[str, Any],
        apply: Callable[[Observable[Any]], Observable[Any]],
    ) -> None:
        self.name = name
        self._args = args
        self._options = options
        self._apply = apply

    def __call__(self, source: Observable[Any]) -> Observable[Any]:
        made = self._apply(source)
        if isinstance(made, OwnObservable) and made is not source:
            made._made = self, source
        return made

    def __repr__(self) -> str:
        given = [_shown(one) for one in self._args]
        given += [f"{option}={_shown(one)}" for option, one in self._options.items()]
        return f"<rd.{self.name}({', '.join(given)})>"


def is_made_by(operator: object, name: str) -> TypeGuard[Callable[[Observable[Any]], Observable[Any]]]:
    """Whether it is an operator that our function of this name has made."""
    return isinstance(operator, _Operator) and operator.name == name


def _shown(argument: object) -> str:
    """An argument in short, without secrets. A function is shown by its name, and a stream not at all."""
    if isinstance(argument, Observable):
        return "…"
    text = getattr(argument, "__name__", None) if callable(argument) else None
    shown = quote(text if isinstance(text, str) else repr(argument))
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


_SHOWN = 40
