"""What a value holds cannot be changed, at any depth, and is plain JSON all the same (bad inputs 61, 63)."""

from __future__ import annotations

import copy
import enum
import json
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from core.strategies import clean_json
from hypothesis import given

import rxdelta as rd
from rxdelta.core import freeze

NESTED = {"list": [1, {"deep": [2]}], "dict": {"a": [3]}, "none": None, "yes": True, "half": 0.5}


def containers(value: Any) -> list[Any]:
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [value] * isinstance(value, (dict, list)) + [
        found for item in inside for found in containers(item)
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda it: it.__setitem__("a" if isinstance(it, dict) else 0, 9),
        lambda it: it.__delitem__("a" if isinstance(it, dict) else 0),
        lambda it: it.clear(),
        lambda it: it.pop(),
        lambda it: it.update(a=1) if isinstance(it, dict) else it.append(1),
        lambda it: it.setdefault("z", 1) if isinstance(it, dict) else it.extend([1]),
        lambda it: it.popitem() if isinstance(it, dict) else it.insert(0, 1),
        lambda it: it.__ior__({"z": 1}) if isinstance(it, dict) else it.__iadd__([1]),
        lambda it: it.pop("a") if isinstance(it, dict) else it.__imul__(2),
        lambda it: it.pop("a", None) if isinstance(it, dict) else it.sort(),
        lambda it: it.clear() if isinstance(it, dict) else it.reverse(),
        lambda it: it.clear() if isinstance(it, dict) else it.remove(1),
    ],
)
def test_bad_input_63_no_container_inside_a_value_can_be_changed(change: Callable[[Any], object]) -> None:
    call = rd.ToolCall(call_id="c", name="f", arguments=NESTED, status="complete", metadata=NESTED)
    part = rd.ContentPart("text", "x", NESTED, [{"raw": NESTED}])
    delta = rd.MessageDelta("x", [part], [call], metadata=NESTED, usage=rd.TokenUsage(raw=NESTED))
    message = rd.Message(blocks=[part, call], metadata=NESTED)
    roots = [
        call.arguments,
        call.metadata,
        part.options,
        part.citations[0].raw,
        delta.metadata,
        message.metadata,
    ]
    result = rd.ToolResult(content=NESTED, metadata=NESTED)
    roots += [delta.usage.raw, result.content, result.metadata, rd.events.BlockStart(0, NESTED).content]
    roots += [rd.events.ProviderEvent("p", "n", NESTED).payload, rd.events.BlockDelta(0, NESTED).fields]
    found = [container for root in roots for container in containers(root)]
    assert len(found) == 6 * len(roots)
    for container in found:
        before = json.dumps(container)
        with pytest.raises(TypeError, match="read-only"):
            change(container)
        assert json.dumps(container) == before


@given(clean_json)
def test_a_frozen_value_equals_what_it_was_made_of_and_thaws_to_it(value: object) -> None:
    frozen = freeze(value)
    assert frozen == value
    assert json.dumps(frozen) == json.dumps(value) == json.dumps(rd.core.thaw(frozen))
    assert hash(frozen) == hash(freeze(value))
    assert pickle.loads(pickle.dumps(frozen)) == frozen
    assert copy.copy(frozen) is copy.deepcopy(frozen) is freeze(frozen) is frozen
    assert not any(
        isinstance(found, (rd.core.FrozenDict, rd.core.FrozenList))
        for found in containers(rd.core.thaw(frozen))
    )


def test_a_pickled_container_is_still_frozen() -> None:
    again = pickle.loads(pickle.dumps(freeze(NESTED)))
    assert all(isinstance(found, (rd.core.FrozenDict, rd.core.FrozenList)) for found in containers(again))


def test_it_prints_as_a_plain_container_does() -> None:
    assert repr(freeze(NESTED)) == repr(NESTED)


def test_a_copy_for_changing_is_plain() -> None:
    frozen = freeze({"a": [1]})
    assert type(frozen.copy()) is dict
    assert type(frozen["a"].copy()) is list
    assert frozen | {"b": 2} == {"a": [1], "b": 2}


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


def test_enums_are_their_values() -> None:
    assert json.dumps(freeze({Colour.RED: [Colour.RED, Number.ONE]})) == '{"red": ["red", 1]}'
    assert type(freeze(Colour.RED)) is str
    assert type(freeze(Number.ONE)) is int


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (float("nan"), "options.a: is not a number that JSON has"),
        (float("inf"), "options.a: is not a number that JSON has"),
        pytest.param(10**4300, "options.a: is not a number that JSON has", id="4301 digits"),
        ({1: 2}, "options.a: has a key that is not a string"),
        ([{"b": {1}}], "options.a[0].b: is a set, not a JSON value"),
        (b"x", "options.a: is a bytes, not a JSON value"),
        (deep(201), "is nested too deep"),
        (deep(100_000), "is nested too deep"),
    ],
)
def test_what_a_person_gives_must_be_json(value: object, said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        rd.ContentPart(options={"a": value})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("event", "field"),
    [
        (lambda sent: rd.events.ProviderEvent("p", "n", sent), "payload"),
        (lambda sent: rd.events.BlockStart(0, sent), "content"),
        (lambda sent: rd.events.BlockDelta(0, sent), "fields"),
        (lambda sent: rd.events.BlockFinish(0, sent), "content"),
        (lambda sent: rd.events.MessageStart(metadata=sent), "metadata"),
        (lambda sent: rd.events.MessageFinish("stop", metadata=sent), "metadata"),
    ],
)
def test_what_a_provider_sends_is_never_refused(event: Callable[[Any], Any], field: str) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "odd\ud83d"

    sent = {
        "nan": float("nan"),
        "inf": float("-inf"),
        "long": 10**4300,
        1: "key",
        "odd": Odd(),
        "deep": deep(100_000),
    }
    payload = getattr(event(sent), field)
    shown = {key: value for key, value in payload.items() if key != "deep"}
    assert shown == {"nan": None, "inf": None, "long": None, "1": "key", "odd": "odd\ufffd"}
    assert json.dumps(payload["deep"]) == "[" * 199 + "null" + "]" * 199


def test_the_deepest_value_allowed_survives_everything() -> None:
    call = rd.ToolCall(call_id="c", name="f", arguments={"a": deep(199)}, status="complete")
    assert (
        pickle.loads(pickle.dumps(call))
        == call
        == rd.ToolCall.from_dict(json.loads(json.dumps(call.to_dict())))
    )
    assert hash(call) == hash(
        rd.ToolCall(call_id="c", name="f", arguments={"a": deep(199)}, status="complete")
    )


def test_a_result_may_be_as_deep_as_arguments() -> None:
    assert rd.ToolResult("c", deep(200)).to_dict()["content"] == deep(200)
    with pytest.raises(rd.InvalidValueError, match="content"):
        rd.ToolResult("c", deep(201))


def test_bad_input_61_hostile_keys_are_plain_data() -> None:
    hostile = {"__class__": "x", "__proto__": {"a": 1}, "__init__": None, "keys": 1, "self": 2}
    part = rd.ContentPart.from_dict({"type": "text", "text": "x", "options": hostile, **hostile})
    assert part.options == hostile
    assert type(part) is rd.ContentPart
    event = rd.events.from_dict({"event": "content-block-start", "index": 0, "content": hostile, **hostile})
    assert rd.apply_event(None, event).blocks[0].options == {
        k: v for k, v in hostile.items() if v is not None
    }


def test_a_path_is_written_for_an_error_alone() -> None:
    """A long key is no longer for each thing within it."""
    deep: Any = 1
    for _ in range(100):
        deep = [deep, 1]
    tracemalloc.start()
    try:
        freeze({"k" * 1_000_000: deep})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 5_000_000


def test_an_error_names_the_place() -> None:
    with pytest.raises(rd.InvalidValueError, match=r"arguments\.a\[1\]\.b: is not a number that JSON has"):
        rd.ToolCall(arguments={"a": [0, {"b": float("nan")}]}, status="complete")


def test_attributes_cannot_be_set_or_deleted_or_added() -> None:
    values = [
        rd.ContentPart(),
        rd.ToolCall(),
        rd.ToolResult(),
        rd.TokenUsage(),
        rd.Citation(),
        rd.Message(),
        rd.Snapshot(),
        rd.Limits(),
        rd.events.TextDelta(0, ""),
        rd.apply_event(None, rd.events.BlockStart(0, {"type": "text"})),
    ]
    for value in values:
        for name in [*(field for field in type(value).__slots__ if not field.startswith("__")), "novel"]:
            with pytest.raises(AttributeError):
                setattr(value, name, 1)
            with pytest.raises(AttributeError):
                delattr(value, name)
