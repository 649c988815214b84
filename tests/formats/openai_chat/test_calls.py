"""Calls, and which of them each fragment continues."""

from __future__ import annotations

from typing import Any

from support.openai_chat import Chunk, call, calls, chunk, decode, fragment, of_type, reply

from rxdelta.core.events import BlockDelta


def test_one_id_at_two_indexes_is_two_calls() -> None:
    message = reply(
        call(fragment(0, '{"x":1}', "a", "f"), fragment(1, '{"y":2}', "a", "g")), chunk({}, "tool_calls")
    )
    assert calls(message) == [("a", "f", {"x": 1}), ("a-2", "g", {"y": 2})]


def test_a_known_id_wins_over_the_index() -> None:
    message = reply(
        call(fragment(0, '{"x":', "a", "f")), call(fragment(1, '{"y":', "b", "g")),
        call(fragment(2, "1", "a")), call(fragment(2, "}")), call(fragment(0, "2}", "b", "g")),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert calls(message) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]
    assert message.invalid_tool_calls == ()


def test_a_name_may_come_in_pieces_before_the_arguments() -> None:
    found = decode(
        call(fragment(0, None, "a", "get_")), call(fragment(0, None, "a", "weather")), call(fragment(0, "{}"))
    )
    assert of_type(BlockDelta, found) == [BlockDelta(0, {"name": "get_weather"})]


def test_a_name_may_come_after_the_id() -> None:
    assert calls(
        reply(call(fragment(0, None, "a")), call(fragment(0, "{}", None, "f")), chunk({}, "stop"))
    ) == [("a", "f", {})]


def test_without_id_another_name_after_arguments_is_another_call() -> None:
    message = reply(
        call(fragment(0, '{"x":1}', "", "f")), call(fragment(0, '{"y":', "", "g")), call(fragment(0, "2}", "", "g")),
        chunk({}, "stop"),
    )  # fmt: skip
    assert [(name, arguments) for _, name, arguments in calls(message)] == [("f", {"x": 1}), ("g", {"y": 2})]
    assert len({call_id for call_id, _, _ in calls(message)}) == 2


def test_a_real_id_that_comes_later_replaces_the_made_up_one() -> None:
    message = reply(
        call(fragment(0, None, None, "f")), call(fragment(0, "{", "real")), call(fragment(0, "}", "real")),
        chunk({}, "stop"),
    )  # fmt: skip
    (made,) = message.tool_calls
    assert (made.call_id, made.arguments, made.metadata) == ("real", {}, {"synthetic_id": False})


def test_what_else_a_call_carries_is_kept() -> None:
    google = {"google": {"thought_signature": "s"}}
    message = reply(
        call(fragment(0, "{}", "a", "f", extra_content=google, type="function")),
        call(fragment(0, None, "a", None, note="n", extra_content=google)),
        call(fragment(1, "{}", "b", "$search", type="builtin_function")), chunk({}, "stop"),
    )  # fmt: skip
    assert [each.metadata for each in message.tool_calls] == [
        {"extra_content": google, "note": "n", "signed_by": "openai-chat"}, {"provider_type": "builtin_function"},
    ]  # fmt: skip


def test_text_behind_an_object_of_arguments_is_kept_and_makes_the_call_invalid() -> None:
    message = reply(
        call(fragment(0, {"x": 1}, "a", "f")), call(fragment(0, '{"y')), call(fragment(0, '": 2}')),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert message.tool_calls == ()
    assert [each.arguments for each in message.invalid_tool_calls] == ['{"x": 1}{"y": 2}']


def test_a_free_form_call_has_its_text_as_input() -> None:
    def custom(said: str | None, **more: Any) -> Chunk:
        return {"index": 0, "custom": {"input": said, **more}}

    message = reply(
        call({**custom("", name="sql"), "id": "a", "type": "custom"}), call(custom('say "hi"\n')), call(custom("ünd \\")),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert calls(message) == [("a", "sql", {"input": 'say "hi"\nünd \\'})]


def test_a_legacy_function_call_is_a_call_without_an_id() -> None:
    message = reply(
        chunk({"function_call": {"name": "f", "arguments": ""}}), chunk({"function_call": {"arguments": '{"x":1}'}}),
        chunk({}, "function_call"),
    )  # fmt: skip
    assert calls(message) == [("c1-0-0", "f", {"x": 1})]
    assert message.finish_reason == "tool_use"
