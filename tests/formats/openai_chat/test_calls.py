"""Calls, and which of them each fragment continues."""

from __future__ import annotations

from typing import Any

import pytest
from support.openai_chat import Chunk, call, calls, chunk, decode, fold, fragment, of_type, reply, shape, text

from rxdelta.core import ToolCall
from rxdelta.core.events import BlockDelta


def test_fragments_of_parallel_calls_may_interleave() -> None:
    message = reply(
        call(fragment(1, "", "b", "g", type="function"), fragment(0, "", "a", "f", type="function")),
        call(fragment(0, '{"x":')), call(fragment(1, '{"y"')), call(fragment(1, ":2}"), fragment(0, "1"), fragment(0, "}")),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert calls(message) == [("b", "g", {"y": 2}), ("a", "f", {"x": 1})]
    assert message.finish_reason == "tool_use"


def test_another_id_at_the_same_index_is_another_call() -> None:
    message = reply(
        call(fragment(0, '{"x":', "a", "f")), call(fragment(0, "1}")), call(fragment(0, '{"y":', "b", "f")),
        call(fragment(0, "2")), call(fragment(0, ' ,"z": 0}', "a")), call(fragment(0, "}")), chunk({}, "stop"),
    )  # fmt: skip
    ours = [(block.call_id, block.arguments) for block in message.blocks if isinstance(block, ToolCall)]
    assert ours == [("a", '{"x":1} ,"z": 0}'), ("b", {"y": 2})]


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


@pytest.mark.parametrize(
    "entries",
    [
        [fragment(0, "", "a", "f"), fragment(1, '{"x":'), fragment(1, "1}")],
        [
            fragment(0, None, "a", "f"),
            fragment(1, '{"x"'),
            fragment(2, ":"),
            fragment(3, "1}"),
        ],  # it counts up
        [fragment(0, '{"x":', "a", "f"), fragment(1, "1}")],
    ],
)
def test_arguments_at_an_index_that_no_call_has_are_the_newest_calls(entries: list[Chunk]) -> None:
    message = reply(*map(call, entries), chunk({}, "tool_calls"))
    assert (calls(message), message.invalid_tool_calls) == ([("a", "f", {"x": 1})], ())
    assert calls(reply(call(*entries), chunk({}, "tool_calls"))) == [("a", "f", {"x": 1})]


def test_the_tail_of_a_second_call_at_an_index_of_its_own_is_not_the_first_ones() -> None:
    message = reply(
        call(fragment(0, '{"x":1}', "a", "f")), call(fragment(0, "", "b", "f")), call(fragment(1, '{"x":')),
        call(fragment(1, "2}")), call(fragment(0, "", "c", "f")), call(fragment(2, '{"x":3}')),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert calls(message) == [("a", "f", {"x": 1}), ("b", "f", {"x": 2}), ("c", "f", {"x": 3})]


def test_arguments_without_a_call_belong_to_no_other_choice() -> None:
    found = decode(
        call(fragment(0, '{"x":1}', "a", "f")), call(fragment(1, '{"y":2}'), index=1),
        chunk({}, "stop"), chunk({}, "stop", index=1),
    )  # fmt: skip
    assert calls(fold(found)) == [("a", "f", {"x": 1})]
    assert [bad.arguments for bad in fold(found, 1).invalid_tool_calls] == ['{"y":2}']


@pytest.mark.parametrize("absent", [None, "", " ", "null", "None"])
def test_a_continuation_without_an_id_neither_overwrites_it_nor_begins_a_call(absent: str | None) -> None:
    later = {"index": 0, "id": absent, "type": None, "function": {"name": None, "arguments": '"x"}'}}
    opening = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": None}}
    message = reply(call(opening), call(fragment(0, '{"q":')), call(later), chunk({}, "tool_calls"))
    assert calls(message) == [("a", "f", {"q": "x"})]


def test_id_and_name_repeated_with_every_fragment_count_once() -> None:
    message = reply(
        *(call(fragment(0, piece, "0", "get_version")) for piece in ("", "{", "}")), chunk({}, "tool_calls")
    )
    assert calls(message) == [("0", "get_version", {})]


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


def test_without_an_index_the_id_decides_then_the_newest_is_meant() -> None:
    message = reply(
        call(fragment(None, '{"x":', "a", "f")), call(fragment(None, '{"y":', "b", "g")), call(fragment(None, "1}", "a")),
        call(fragment(None, "2}")), chunk({}, "stop"),
    )  # fmt: skip
    assert calls(message) == [("a", "f", {"x": 1}), ("b", "g", {"y": 2})]
    assert calls(reply(call(fragment(None, "{}", None, "f")), chunk({}, "stop"))) == [("c1-0-0", "f", {})]


@pytest.mark.parametrize("index", [None, 0])
def test_a_delta_that_names_a_tool_twice_without_ids_has_two_calls(index: int | None) -> None:
    one, other = fragment(index, '{"x":1}', "null", "f"), fragment(index, '{"x":2}', "null", "f")
    message = reply(call(one, other, finish="tool_calls"))
    assert calls(message) == [("c1-0-0", "f", {"x": 1}), ("c1-0-1", "f", {"x": 2})]
    assert calls(reply(call(fragment(None, "", None, "f"), fragment(None, "", None, "f")), chunk({}, "stop"))) == [
        ("c1-0-0", "f", {}), ("c1-0-1", "f", {}),
    ]  # fmt: skip
    again = [call(fragment(0, piece, None, "f")) for piece in ('{"x":', "1}")]  # a name with every fragment
    assert calls(reply(*again, chunk({}, "stop"))) == [("c1-0-0", "f", {"x": 1})]


def test_a_call_without_an_id_gets_one_that_is_marked_and_always_the_same() -> None:
    chunks = [text("a"), call(fragment(0, "{}", None, "f")), chunk({}, "tool_calls")]
    (made,) = reply(*chunks).tool_calls
    assert made.call_id == "c1-0-1"
    assert made.metadata["synthetic_id"] is True
    assert decode(*chunks) == decode(*chunks)


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


def test_arguments_may_come_as_an_object() -> None:
    message = reply(call(fragment(0, {"x": 1}, "a", "f")), chunk({}, "tool_calls"))
    assert calls(message) == [("a", "f", {"x": 1})]


def test_text_behind_an_object_of_arguments_is_kept_and_makes_the_call_invalid() -> None:
    message = reply(
        call(fragment(0, {"x": 1}, "a", "f")), call(fragment(0, '{"y')), call(fragment(0, '": 2}')),
        chunk({}, "tool_calls"),
    )  # fmt: skip
    assert message.tool_calls == ()
    assert [each.arguments for each in message.invalid_tool_calls] == ['{"x": 1}{"y": 2}']


@pytest.mark.parametrize("arguments", [None, "", {}])
def test_no_arguments_are_an_empty_object(arguments: Any) -> None:
    assert calls(reply(call(fragment(0, arguments, "a", "f")), chunk({}, "tool_calls"))) == [("a", "f", {})]


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


@pytest.mark.parametrize("reason", ["length", "max_tokens", "model_context_window_exceeded"])
def test_a_call_that_was_cut_off_never_looks_as_if_it_could_be_run(reason: str) -> None:
    message = reply(call(fragment(0, '{"a": 1}', "a", "f")), chunk({}, reason))
    assert message.tool_calls == ()
    (cut,) = message.invalid_tool_calls
    assert (cut.call_id, cut.name, cut.arguments) == ("a", "f", '{"a": 1}')
    assert cut.error is not None
    assert cut.error.startswith(("cut off", "broken off"))


def test_a_call_without_a_name_or_with_broken_arguments_cannot_be_run() -> None:
    entries = fragment(0, "{}", "a"), fragment(1, "{}", "b", " "), fragment(2, "{} }", "c", "f")
    message = reply(call(*entries), chunk({}, "tool_calls"))
    assert message.tool_calls == ()
    assert [bad.call_id for bad in message.invalid_tool_calls] == ["a", "b", "c"]
    assert message.invalid_tool_calls[2].arguments == "{} }"


def test_null_or_an_empty_list_of_calls_is_nothing() -> None:
    message = reply(
        chunk({"content": "a", "tool_calls": None}), chunk({"content": "b", "tool_calls": [{}]}, "stop")
    )
    assert shape(message) == [("text", "ab")]


@pytest.mark.parametrize(("word", "reason"), [("tool_calls", "stop"), ("stop", "stop")])
def test_the_calls_decide_what_the_reason_is(word: str, reason: str) -> None:
    assert reply(text("a"), chunk({}, word)).finish_reason == reason
    finish = decode(call(fragment(0, "{}", "a", "f")), chunk({}, word))[-1]
    assert (finish.reason, finish.provider_reason) == ("tool_use", word)  # type: ignore[union-attr]


def test_an_empty_custom_beside_a_function_is_no_custom_call() -> None:
    entry = fragment(0, '{"x":1}', "a", "f") | {"custom": {"input": "", "name": ""}}
    assert calls(reply(call(entry), chunk({}, "tool_calls"))) == [("a", "f", {"x": 1})]
