"""What a value says to who makes it, reads it or changes it in a wrong way."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from inspect import signature
from typing import Any

import attrs
import pytest

import rxdelta as rd

Message: Any = rd.Message
ToolCall: Any = rd.ToolCall
HELLO: Any = rd.Message.of("user", "Hi")
SO_FAR: Any = rd.Snapshot()


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Message("user", "Hi"), 'by their names; rd.Message.of("user", "Hi")'),
        (lambda: Message(role="user", content="Hi"), "no field 'content'; rd.Message.of("),
        (lambda: Message(text="Hi"), "no field 'text'; rd.Message.of("),
        (lambda: ToolCall("c1", "search"), "by their names; rd.ToolCall(call_id=…"),
        (lambda: ToolCall(id="c1"), "no field 'id'; rd.ToolCall(call_id=…"),
    ],
)
def test_a_wrong_call_is_told_what_is_right(make: Callable[[], object], said: str) -> None:
    with pytest.raises(TypeError) as caught:
        make()
    assert said in str(caught.value)


def test_the_signature_is_that_of_the_fields() -> None:
    assert [*signature(rd.Message).parameters][:3] == ["role", "status", "blocks"]


@pytest.mark.parametrize("name", ["text", "role"])
@pytest.mark.parametrize(
    ("value", "cure"),
    [
        (HELLO, "attrs.evolve(value, "),
        (HELLO.blocks[0], "attrs.evolve(value, "),
        (rd.ToolCall(call_id="c", name="f"), "attrs.evolve(value, "),
        (SO_FAR, "rd.apply_event(snapshot, event)"),
        (rd.MessageDelta(content="Hi"), "rd.apply_event(snapshot, event)"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_is_changed_names_what_makes_another(value: Any, cure: str, name: str) -> None:
    before = value.to_dict()
    with pytest.raises(attrs.exceptions.FrozenInstanceError) as caught:
        setattr(value, name, "x")
    assert "doesn't change" in str(caught.value)
    assert cure in str(caught.value)
    assert value.to_dict() == before
    assert pickle.loads(pickle.dumps(caught.value)).args == caught.value.args


def test_the_cure_for_a_change_works() -> None:
    assert attrs.evolve(HELLO, role="system").role == "system"
    assert copy.copy(HELLO) is HELLO
    assert pickle.loads(pickle.dumps(HELLO)) == HELLO


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("content", ".text"),
        ("choices", ".text"),
        ("stop_reason", ".finish_reason"),
        ("model_dump", ".to_dict()"),
    ],
)
def test_a_name_of_other_libraries_says_what_to_read(name: str, read: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(HELLO, name)
    assert f"read {read}" in str(caught.value)
    assert getattr(HELLO, read.strip(".()")) is not NotImplemented


def test_what_only_the_library_gives_is_in_no_signature_and_stays_in_copies() -> None:
    stored = {"type": "text", "text": "Hi", "key": 3, "open": True, "new_in_two": 1}
    part = rd.ContentPart.from_dict(stored)
    changed = attrs.evolve(part, text="Ho")
    assert (changed.key, changed.open, dict(changed.more)) == (3, True, {"new_in_two": 1})
    assert changed.to_dict() == stored | {"text": "Ho"}
    assert pickle.loads(pickle.dumps(part)).to_dict() == stored
    call = rd.ToolCall.from_dict({"type": "tool_call", "name": "f", "key": 0, "open": True, "new_in_two": 1})
    assert attrs.evolve(call, name="g").to_dict() == call.to_dict() | {"name": "g"}
    usage = rd.TokenUsage.from_dict({"input_tokens": 1, "new_in_two": 1})
    assert attrs.evolve(usage, input_tokens=2).to_dict() == {"input_tokens": 2, "new_in_two": 1}
    for kind in (rd.ContentPart, rd.ToolCall, rd.ToolResult, rd.TokenUsage):
        names = signature(kind).parameters
        assert not {name.strip("_") for name in names} & {"key", "open", "more", "origin"}


VALUES: list[Any] = [
    *sorted(rd.events.EVENT_TYPES, key=lambda kind: kind.__name__),
    *(
        rd.Approval,
        rd.TokenUsage,
        rd.ToolResult,
        rd.Citation,
        rd.ContentPart,
        rd.ToolCall,
        rd.Message,
        rd.MessageDelta,
        rd.Limits,
    ),
]
NEEDED = {
    **dict.fromkeys(("text", "data", "reasoning", "args", "call_id", "name", "provider", "message"), "a"),
    "index": 0,
    "content": {"type": "text"},
    "fields": {"a": 1},
    "type": "text",
    "status": "executing",
    "usage": rd.TokenUsage(input_tokens=1),
    "approved": True,
    "role": "user",
    "payload": {},
}
WRONG = [object(), -1, True, 2.5, [object()], {1: object()}, "no such word", b"x"]


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_the_error_has_the_name_and_the_value_of_the_argument_that_is_refused(kind: Any) -> None:
    parameters = signature(kind).parameters
    needed = {name: NEEDED[name] for name, one in parameters.items() if one.default is one.empty}
    kind(**needed)
    for name in parameters.keys() - {"assumed"}:
        named = set()
        for value in WRONG:
            try:
                kind(**{**needed, name: value})
            except rd.InvalidValueError as error:
                named.add(error.field.partition("[")[0])
                inside = [*value] if isinstance(value, (list, dict, bytes)) else []
                assert any(error.value is one or error.value == one for one in [value, *inside])  # noqa: PT017
        assert named == {name}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: rd.Message.of("bot", "Hi"), "role: is invalid"),  # type: ignore[arg-type]
        (lambda: rd.Message.of("user", 5), "content: must be a list"),  # type: ignore[arg-type]
        (lambda: rd.Message.of("user", [5]), "content: must be ContentPart or ToolCall"),  # type: ignore[list-item]
        (lambda: rd.Message.of("tool", [rd.ToolResult("c1", 2)]), "stands in the conversation by itself"),  # type: ignore[list-item]
        (lambda: rd.Message(blocks="Hi"), 'rd.Message.of("user", "Hi")'),  # type: ignore[arg-type]
        (lambda: rd.Message(blocks=["Hi"]), 'rd.Message.of("user", "Hi")'),  # type: ignore[list-item]
        (lambda: rd.to_events(HELLO), "role: is invalid"),
        (lambda: Message(custom=[(-1, rd.events.Custom("n", 1))]), "custom: is invalid (got custom=-1)"),
        (lambda: rd.TokenUsage(billed={"x": -1}), "billed['x']: must be"),
        (lambda: rd.throttle_latest("50ms"), "seconds: must be a positive number"),  # type: ignore[arg-type]
        (lambda: rd.throttle_latest("50ms"), "write 0.05"),  # type: ignore[arg-type]
        (lambda: rd.throttle_latest(" 2.5 s "), "write 2.5"),  # type: ignore[arg-type]
        (lambda: rd.throttle_latest(1e9 + 1), "at most 1e9"),
        (lambda: rd.ContentPart("Hi"), 'the type comes first: rd.ContentPart("text", "Hi")'),
    ],
)
def test_what_no_message_is_made_of_is_refused_with_the_cure(make: Callable[[], object], said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        make()
    assert f" {said}" in f" {caught.value}"


def test_a_length_of_time_may_be_a_billion_seconds_and_nothing_is_guessed_of_a_word() -> None:
    rd.stall_timeout(1e9)
    with pytest.raises(rd.InvalidValueError) as caught:
        rd.throttle_latest("soon")  # type: ignore[arg-type]
    assert str(caught.value).endswith("(got seconds='soon')")
