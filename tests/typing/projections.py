"""What type checkers infer of the projections. Never run: `mypy --strict tests/typing` and `pyright tests/typing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict, assert_type

import attrs
from pydantic import BaseModel
from reactivex import Observable

import rxdelta as rd


@attrs.frozen
class Frozen:
    title: str


@dataclass
class Data:
    title: str


class Model(BaseModel):
    title: str


class Keys(TypedDict):
    title: str
    days: NotRequired[int]


def projections(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.text_deltas()), Observable[str])
    assert_type(events.pipe(rd.text_deltas(of="reasoning")), Observable[str])
    assert_type(
        events.pipe(rd.completed_tool_calls()),
        Observable[rd.types.CompleteToolCall | rd.types.InvalidToolCall],
    )
    assert_type(events.pipe(rd.json_items("items")), Observable[Any])
    assert_type(events.pipe(rd.json_items(["items", 0], call_id="c1")), Observable[Any])


def arguments(events: Observable[rd.Event], call_id: str | None) -> None:
    assert_type(events.pipe(rd.partial_arguments()), Observable[rd.types.PartialValue[Any]])
    assert_type(
        events.pipe(rd.partial_arguments(call_id), rd.with_limits(rd.Limits())),
        Observable[rd.types.PartialValue[Any]],
    )
    assert_type(events.pipe(rd.partial_arguments("c1", None)), Observable[rd.types.PartialValue[Any]])
    assert_type(events.pipe(rd.partial_arguments(into=Frozen)), Observable[rd.types.PartialValue[Frozen]])
    assert_type(events.pipe(rd.partial_arguments("c1", Data)), Observable[rd.types.PartialValue[Data]])
    assert_type(
        events.pipe(rd.partial_arguments(call_id, into=Model)),
        Observable[rd.types.PartialValue[Model]],
    )
    assert_type(events.pipe(rd.partial_arguments("c1", Keys)), Observable[rd.types.PartialValue[Keys]])


def documents(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.partial_json()), Observable[rd.types.PartialValue[Any]])
    assert_type(events.pipe(rd.partial_json(None)), Observable[rd.types.PartialValue[Any]])
    assert_type(events.pipe(rd.partial_json(Model)), Observable[rd.types.PartialValue[Model]])
    assert_type(events.pipe(rd.partial_json(into=Frozen)), Observable[rd.types.PartialValue[Frozen]])
    assert_type(events.pipe(rd.partial_json(into=Keys)), Observable[rd.types.PartialValue[Keys]])


def values(partial: rd.types.PartialValue[Data]) -> None:
    assert_type(partial.value, Data | None)
    print(partial.value.title)  # type: ignore[union-attr]  # pyright: ignore[reportOptionalMemberAccess]
    if partial.value is not None:
        assert_type(partial.value.title, str)
    assert_type(partial.so_far, Mapping[str, Any])
    print(partial.so_far.title)  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    assert_type(partial.is_final("title", 0), bool)
    assert_type(partial.call_id, str | None)
    assert_type(partial.error, str | None)
    partial.value = Data("x")  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def keys(partial: rd.types.PartialValue[Keys]) -> None:
    if partial.value is not None:
        assert_type(partial.value["title"], str)
        print(partial.value["titel"])  # type: ignore[typeddict-item]  # pyright: ignore[reportGeneralTypeIssues, reportTypedDictNotRequiredAccess, reportUnknownArgumentType]


def operators() -> tuple[Any, ...]:
    text: Callable[[Observable[rd.Event]], Observable[str]] = rd.text_deltas()
    plan: Callable[[Observable[rd.Event]], Observable[rd.types.PartialValue[Model]]] = rd.partial_json(Model)
    rd.json_items(1.5)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    rd.text_deltas("text")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
    return text, plan
