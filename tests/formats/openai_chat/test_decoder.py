"""OpenAI chat completions: what each field becomes, vendor by vendor, and that nothing else ever comes out."""

from __future__ import annotations

import copy
import json
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rxdelta.core import (
    ContentPart,
    Fold,
    LimitExceededError,
    MalformedChunkError,
    ProtocolChecker,
    Snapshot,
    ToolCall,
    events,
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_chat.decoder import OpenAIChatDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Chunk = dict[str, Any]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}


def chunk(
    delta: Chunk | None = None,
    finish: str | None = None,
    *,
    index: int = 0,
    said: Chunk | None = None,
    **extras: Any,
) -> Chunk:
    choice = {"index": index, "delta": delta or {}, "finish_reason": finish, **(said or {})}
    return {
        "id": "c1",
        "object": "chat.completion.chunk",
        "created": 5,
        "model": "m",
        "choices": [choice],
        **extras,
    }


def text(piece: str, finish: str | None = None, **extras: Any) -> Chunk:
    return chunk({"content": piece}, finish, **extras)


def call(*entries: Chunk, finish: str | None = None, **extras: Any) -> Chunk:
    return chunk({"tool_calls": list(entries)}, finish, **extras)


def fragment(
    index: Any = 0, arguments: Any = None, id: str | None = None, name: str | None = None, **more: Any
) -> Chunk:
    function = {"name": name, "arguments": arguments}
    entry = {
        "index": index,
        "id": id,
        "function": {key: value for key, value in function.items() if value is not None},
    }
    return {key: value for key, value in entry.items() if value is not None} | more


def usage(**more: Any) -> Chunk:
    return {"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices": [], "usage": USAGE | more}


def decode(*chunks: Any, close: bool = True) -> list[Event]:
    decoder = OpenAIChatDecoder()
    found = [event for one in chunks for event in decoder.decode(one)]
    return found + (list(decoder.close()) if close else [])


def violations(found: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    broken = [lifecycle.check(event) for event in found]
    return [rule for rule in (*broken, lifecycle.close()) if rule is not None]


def fold(found: Iterable[Event], choice: int = 0) -> Snapshot:
    fold = Fold(choice=choice)
    for event in found:
        if not isinstance(event, StreamError):
            fold.step(event)
    return fold.snapshot


def reply(*chunks: Any, choice: int = 0) -> Snapshot:
    """The snapshot of a complete stream, which must keep the protocol."""
    found = decode(*chunks)
    assert violations(found) == []
    assert [events.from_dict(event.to_dict()) for event in found] == found
    return fold(found, choice)


def shape(message: Snapshot) -> list[tuple[str, str | None]]:
    return [
        (block.type, block.text if isinstance(block, ContentPart) else block.name) for block in message.blocks
    ]


def calls(message: Snapshot) -> list[tuple[Any, ...]]:
    return [(each.call_id, each.name, thaw(each.arguments)) for each in message.tool_calls]


def of_type(kind: type, found: Iterable[Event]) -> list[Any]:
    return [event for event in found if type(event) is kind]


# Text.


def test_a_text_stream_is_start_deltas_finish() -> None:
    found = decode(
        chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), chunk({}, "stop"), usage()
    )

    assert [type(event) for event in found] == [
        MessageStart, BlockStart, TextDelta, TextDelta, BlockFinish, UsageUpdate, MessageFinish,
    ]  # fmt: skip
    message = fold(found)
    assert (message.id, message.model, message.text, message.status) == ("c1", "m", "Hello", "complete")
    assert (message.finish_reason, message.provider_finish_reason) == ("stop", "stop")
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens, message.usage.raw) == (7, 3, USAGE)


@pytest.mark.parametrize(
    "nothing", [{}, {"content": ""}, {"content": None}, {"content": []}, {"role": "assistant"}, None]
)
def test_an_empty_delta_makes_no_block(nothing: Any) -> None:
    empty = chunk({}) | {"choices": [{"index": 0, "delta": nothing}]}
    message = reply(empty, call(fragment(0, "{}", "a", "f")), empty, chunk({}, "tool_calls"))
    assert shape(message) == [("tool_call", "f")]


def test_the_last_text_may_come_with_the_finish_reason() -> None:
    assert reply(text("a"), text("b", "stop")).text == "ab"


def test_another_kind_ends_a_text_at_once_and_text_after_it_is_a_new_block() -> None:
    found = decode(
        text("a"), call(fragment(0, "{}", "x", "f")), text("b"), chunk({"refusal": "no"}), text("c", "stop")
    )
    assert violations(found) == []
    assert shape(fold(found)) == [
        ("text", "a"),
        ("tool_call", "f"),
        ("text", "b"),
        ("refusal", "no"),
        ("text", "c"),
    ]
    starts_and_finishes = [
        event.event[14:] + str(event.index) for event in found if type(event) in (BlockStart, BlockFinish)
    ]
    assert starts_and_finishes == [
        "start0", "finish0", "start1", "start2", "finish2", "start3", "finish3", "start4", "finish1", "finish4",
    ]  # fmt: skip


def test_role_on_every_chunk_opens_nothing() -> None:
    found = decode(*(chunk({"role": "assistant", "content": piece}) for piece in "abc"), chunk({}, "stop"))
    assert len(of_type(MessageStart, found)) == 1
    assert fold(found).text == "abc"


@pytest.mark.parametrize("extra", ["native_finish_reason", "logprobs"])
def test_a_plain_chunk_and_a_careful_one_say_the_same(extra: str) -> None:
    plain = decode(text("a"), text("b"), close=False)
    assert decode(text("a"), text("b", said={extra: None}), close=False) == plain
    assert decode(text("a"), text("b", said={extra: {"x": [1]}}), close=False) == plain
    assert decode(text("a"), text("b", said={"extra": 1}), close=False) == plain


@pytest.mark.parametrize("index", [True, 0.0, False, "0"])
def test_an_index_that_only_equals_a_number_is_not_one(index: Any) -> None:
    decoder = OpenAIChatDecoder()
    decoder.decode(text("a"))
    with pytest.raises(MalformedChunkError) as caught:
        decoder.decode(text("b", index=index))
    assert caught.value.path == "choices[0].index"


def test_content_may_be_a_list_of_parts() -> None:
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}, {"type": "reference", "ids": [1]}]},
        {"type": "thinking", "thinking": "so", "signature": "s"},
        {"type": "text", "text": "Hi"},
        "!",
        {"type": "image_url", "image_url": "https://x/y.png"},
        {"type": "refusal", "refusal": "no"},
        {"type": "tool_use", "id": "t", "name": "evil", "input": {}},
    ]
    message = reply(chunk({"content": parts}), chunk({"content": [{"type": "text", "text": "."}]}, "stop"))
    assert shape(message) == [
        ("reasoning", "hm"), ("unsupported", None), ("reasoning", "so"), ("text", "Hi!"), ("image", None),
        ("refusal", "no"), ("unsupported", None), ("text", "."),
    ]  # fmt: skip
    reasoning, passed_on = message.merged_content[2], message.merged_content[6]
    assert reasoning.options == {"sent_as": "thinking", "signature": "s"}
    assert passed_on.options == parts[-1]
    assert message.tool_calls == ()


def test_a_reasoning_in_the_content_may_have_a_summary_with_its_signature() -> None:
    def said(text: str, signature: str) -> Chunk:
        summary = [{"type": "summary_text", "text": text, "signature": signature}]
        return chunk({"content": [{"type": "reasoning", "summary": summary}]})

    message = reply(
        said("Hm", ""),
        said("m.", ""),
        said("", "s"),
        chunk({"content": [{"type": "text", "text": "Hi"}]}, "stop"),
    )
    assert shape(message) == [("reasoning", "Hmm."), ("text", "Hi")]
    (reasoning, _) = message.merged_content
    assert reasoning.options == {"provider_type": "summary_text", "signature": "s"}


def test_refusal_is_a_block_of_its_own_and_null_or_empty_beside_content_is_nothing() -> None:
    message = reply(chunk({"content": "a", "refusal": None}), chunk({"content": "b", "refusal": ""}, "stop"))
    assert shape(message) == [("text", "ab")]
    assert shape(reply(chunk({"refusal": "I "}), chunk({"refusal": "won't"}, "stop"))) == [
        ("refusal", "I won't")
    ]


# Reasoning.


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_comes_under_two_names(field: str) -> None:
    message = reply(
        chunk({field: "a", "content": None}), chunk({field: "b"}), chunk({field: "", "content": "c"}, "stop")
    )
    assert shape(message) == [("reasoning", "ab"), ("text", "c")]


def test_reasoning_content_comes_before_reasoning() -> None:
    assert reply(chunk({"reasoning_content": "a", "reasoning": "a"}, "stop")).reasoning == "a"


def detail(text: str | None = None, index: int | None = 0, **more: Any) -> Chunk:
    entry = {"type": "reasoning.text", "text": text, "index": index, "format": "f1", **more}
    return {key: value for key, value in entry.items() if value is not None}


def test_reasoning_sent_twice_in_one_delta_counts_once() -> None:
    message = reply(
        chunk({"content": "", "reasoning": "a", "reasoning_details": [detail("a", signature="")]}),
        chunk({"content": "", "reasoning": "b", "reasoning_details": [detail("b")]}),
        chunk({"content": "", "reasoning_details": [detail(signature="s1")]}),
        text("c", "stop"),
    )
    assert shape(message) == [("reasoning", "ab"), ("text", "c")]
    assert message.merged_content[0].options == {"format": "f1", "signature": "s1"}


def test_reasoning_in_details_alone_counts() -> None:
    summary = {"type": "reasoning.summary", "summary": "b", "id": "r1"}
    message = reply(chunk({"reasoning_details": [detail("a"), summary]}, "stop"))
    assert message.reasoning == "ab"
    assert message.merged_content[0].options == {
        "format": "f1",
        "id": "r1",
        "provider_type": "reasoning.summary",
    }


def test_what_describes_a_reasoning_is_told_once() -> None:
    found = decode(*(chunk({"reasoning_details": [detail(piece)]}) for piece in "abc"))
    assert of_type(BlockDelta, found) == []
    assert len(of_type(ReasoningDelta, found)) == 3


def test_encrypted_reasoning_is_kept_to_be_sent_back() -> None:
    entry = {"type": "reasoning.encrypted", "data": "xyz", "id": "r1", "format": "f1", "index": 0}
    message = reply(
        chunk({"content": "", "reasoning": None, "reasoning_details": [entry]}), text("a", "stop")
    )
    assert shape(message) == [("reasoning", None), ("text", "a")]
    assert message.merged_content[0].options == {"redacted": True, "data": "xyz", "id": "r1", "format": "f1"}


def test_a_signature_without_text_opens_a_reasoning() -> None:
    first, late = chunk({"reasoning_details": [detail(signature="s")]}), chunk({"reasoning": "a"})
    message = reply(first, late, text("b", "stop"))
    assert shape(message) == [("reasoning", "a"), ("text", "b")]
    assert message.merged_content[0].options["signature"] == "s"


def test_a_signature_that_comes_late_neither_gets_lost_nor_cuts_the_text() -> None:
    message = reply(
        chunk({"reasoning": "a"}),
        text("b"),
        chunk({"reasoning_details": [detail(signature="s")]}),
        text("c", "stop"),
    )
    assert shape(message) == [("reasoning", "a"), ("text", "bc"), ("reasoning", "")]
    assert message.merged_content[2].options["signature"] == "s"


def test_after_a_signature_another_index_is_another_reasoning() -> None:
    message = reply(
        chunk({"reasoning_details": [detail("a", 0), detail(None, 0, signature="s0"), detail("b", 1)]}),
        chunk({"reasoning_details": [detail(None, 1, signature="s1"), detail("c", 1)]}, "stop"),
    )
    assert [(part.text, part.options["signature"]) for part in message.merged_content] == [
        ("a", "s0"),
        ("bc", "s1"),
    ]


def test_a_second_signature_is_not_written_over_the_first() -> None:
    entries = [detail("a"), detail(signature="s0"), detail(signature="s0"), detail(signature="s1")]
    message = reply(chunk({"reasoning_details": entries}, "stop"))
    assert [part.options["signature"] for part in message.merged_content] == ["s0", "s1"]


def test_thinking_blocks_sign_the_reasoning_beside_them() -> None:
    def thinking(text: str, signature: str = "") -> Chunk:
        block = {"type": "thinking", "thinking": text, "signature": signature}
        return chunk({"reasoning_content": text, "thinking_blocks": [block]})

    hidden = {"type": "redacted_thinking", "data": "x"}
    message = reply(
        thinking("a"), thinking("b"), thinking("", "s0"), thinking("c"), thinking("", "s1"),
        chunk({"thinking_blocks": [hidden]}), text("Hi", "stop"),
    )  # fmt: skip
    assert shape(message) == [("reasoning", "ab"), ("reasoning", "c"), ("reasoning", None), ("text", "Hi")]
    sent_as = {"sent_as": "thinking_blocks"}
    assert [part.options for part in message.merged_content] == [
        {**sent_as, "signature": "s0"}, {**sent_as, "signature": "s1"}, {**sent_as, "redacted": True, "data": "x"}, {},
    ]  # fmt: skip


# Calls.


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
    assert calls(message) == [("a", "f", {"x": 1}), ("a", "g", {"y": 2})]


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
        {"extra_content": google, "note": "n"}, {"provider_type": "builtin_function"},
    ]  # fmt: skip


def test_arguments_may_come_as_an_object() -> None:
    message = reply(call(fragment(0, {"x": 1}, "a", "f")), chunk({}, "tool_calls"))
    assert calls(message) == [("a", "f", {"x": 1})]


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


@pytest.mark.parametrize("reason", ["length", "max_tokens", "error", "abort"])
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


# The other fields of a delta.


def test_audio_is_one_block_with_its_data_joined_and_its_transcript() -> None:
    pieces = [
        {"id": "au"},
        {"transcript": "Hel"},
        {"data": "AA"},
        {"data": "BB", "transcript": "lo"},
        {"expires_at": 9},
        {},
    ]
    message = reply(*(chunk({"audio": piece}) for piece in pieces), chunk({}, "stop"))
    assert shape(message) == [("audio", "AABB")]
    assert message.merged_content[0].options == {"id": "au", "transcript": "Hello", "expires_at": 9}


def test_a_long_transcript_costs_no_more_than_a_few_times_its_length() -> None:
    found = decode(*(chunk({"audio": {"transcript": "word "}}) for _ in range(2000)), chunk({}, "stop"))
    told = [event.fields["transcript"] for event in of_type(BlockDelta, found)]
    assert told[:2] == ["word ", "word word "]
    assert told[-1] == "word " * 2000
    assert sum(map(len, told)) < 12 * len(told[-1])


def test_an_image_is_data_or_an_address() -> None:
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "index": 0}
    linked = {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}, "alt": "y"}
    message = reply(
        chunk({"content": "a", "images": [inline, linked, {"type": "image_url"}]}), text("b", "stop")
    )
    assert shape(message) == [
        ("text", "a"),
        ("image", "AAAA"),
        ("image", None),
        ("unsupported", None),
        ("text", "b"),
    ]
    assert [part.options for part in message.merged_content[1:3]] == [
        {"mime_type": "image/png"}, {"url": "https://x/y.png", "alt": "y", "detail": "low"},
    ]  # fmt: skip


def annotation(n: int) -> Chunk:
    cited = {"url": f"u{n}", "title": f"t{n}", "start_index": n, "end_index": n + 1, "content": "words"}
    return {"type": "url_citation", "url_citation": cited}


def test_annotations_are_citations_of_the_text_being_written() -> None:
    message = reply(
        chunk({"content": "a", "annotations": [annotation(0)]}), chunk({"annotations": [annotation(1)]}),
        chunk({"annotations": [{"url": "u2", "cited_text": "w"}]}, "stop"),
    )  # fmt: skip
    first, second, third = message.merged_content[0].citations
    assert first.to_dict() == {
        "cited_text": "words", "title": "t0", "url": "u0", "start_index": 0, "end_index": 1, "raw": annotation(0),
    }  # fmt: skip
    assert (second.url, third.url, third.cited_text) == ("u1", "u2", "w")


def test_annotations_before_a_text_are_citations_of_it() -> None:
    found = [chunk({"content": "", "annotations": [annotation(n)]}) for n in range(2)]
    message = reply(
        *found, chunk({"reasoning": "Hm"}), text("a"), chunk({"annotations": [annotation(2)]}, "stop")
    )
    assert [citation.url for citation in message.merged_content[1].citations] == ["u0", "u1", "u2"]
    assert "annotations" not in message.metadata


def test_annotations_without_a_text_are_kept_for_the_finish() -> None:
    message = reply(chunk({"content": "a"}), chunk({}, "stop"), chunk({"annotations": [annotation(0)]}))
    assert message.merged_content[0].citations == ()
    assert message.metadata["annotations"] == [annotation(0)]


def test_many_annotations_are_told_in_linear_space() -> None:
    found = decode(
        text("a"), *(chunk({"annotations": [annotation(n)]}) for n in range(500)), chunk({}, "stop")
    )
    assert len(fold(found).merged_content[0].citations) == 500
    assert sum(len(event.fields["citations"]) for event in of_type(BlockDelta, found)) < 12 * 500


def test_a_tool_that_the_provider_ran_is_told_once_and_its_output_once() -> None:
    tool = {"index": 0, "type": "search", "arguments": '{"q": "x"}', "search_results": {"results": [1]}}
    other = {"type": "python", "arguments": "print(1)", "id": "p"}
    message = reply(
        chunk({"reasoning": "a", "executed_tools": [tool]}), chunk({"executed_tools": [other]}),
        chunk({"executed_tools": [tool | {"output": "found"}]}), chunk({"executed_tools": [tool | {"output": "found"}]}),
        chunk({"executed_tools": [other | {"output": {"out": 1}}]}), text("b", "stop"),
    )  # fmt: skip
    kinds = [kind for kind, _ in shape(message)]
    assert kinds == [
        "reasoning",
        "server_tool_call",
        "server_tool_call",
        "server_tool_result",
        "server_tool_result",
        "text",
    ]
    search, python = [block for block in message.blocks if isinstance(block, ToolCall)]
    assert (search.call_id, search.name, search.arguments) == ("c1-0-1", "search", {"q": "x"})
    assert (python.call_id, python.arguments) == ("p", "print(1)")
    assert message.merged_content[1].options == {
        "tool_call_id": "c1-0-1", "output": "found", "search_results": {"results": [1]},
    }  # fmt: skip
    assert message.finish_reason == "stop"
    assert message.tool_calls == ()


def test_a_tool_of_the_provider_that_has_no_name_is_passed_on_whole() -> None:
    message = reply(chunk({"executed_tools": [{"output": "x"}]}, "stop"))
    assert [part.options for part in message.merged_content] == [{"output": "x"}]


def test_message_beside_delta_is_not_read() -> None:
    pieces = ["a", "ab", "abc"]
    chunks = [text(piece[-1], said={"message": {"role": "assistant", "content": piece}}) for piece in pieces]
    assert reply(*chunks, chunk({}, "stop")).text == "abc"


@pytest.mark.parametrize("delta", [{}, {"delta": None}])
def test_a_message_behind_the_deltas_sums_them_up_and_is_not_read(delta: Chunk) -> None:
    whole = {"index": 0, "message": {"content": "ab"}, "finish_reason": "stop", **delta}
    message = reply(text("a"), text("b"), {"id": "c1", "object": "chat.completion.done", "choices": [whole]})
    assert (message.text, message.finish_reason) == ("ab", "stop")
    assert reply({"id": "c1", "choices": [whole]}).text == "ab"  # and alone it is all there is


def test_steps_of_reasoning_are_kept_over_the_chunks() -> None:
    one, two = {"thought": "1", "type": "web_search"}, {"thought": "2", "type": "web_search"}
    message = reply(
        chunk({"reasoning_steps": [one]}), chunk({"reasoning_steps": [two]}), text("a"), chunk({}, "stop")
    )
    assert message.metadata["reasoning_steps"] == [one, two]


def test_what_is_not_known_goes_to_the_metadata_and_the_last_wins() -> None:
    message = reply(
        chunk({"content": "a", "channel": "x"}, said={"content_filter_results": {"hate": 1}}, system_fingerprint="fp"),
        chunk({"channel": "y", "note": None}, "stop", said={"native_finish_reason": "end_turn", "content_filter_results": {}},
              provider="P", service_tier="", obfuscation="zz", x_groq={"id": "r", "usage": USAGE}, citations=["u"]),
    )  # fmt: skip
    assert message.metadata == {
        "created": 5, "system_fingerprint": "fp", "provider": "P", "x_groq": {"id": "r"}, "citations": ["u"],
        "channel": "y", "content_filter_results": {"hate": 1}, "native_finish_reason": "end_turn",
    }  # fmt: skip


def test_logprobs_are_appended_over_the_chunks() -> None:
    message = reply(
        text("a", said={"logprobs": {"content": [], "refusal": None}}), text("b", said={"logprobs": {"content": [1, 2]}}),
        text("c", said={"logprobs": {"content": [3], "refusal": [4]}, "token_ids": [8]}), text("d", said={"logprobs": None}),
        chunk({}, "stop", said={"logprobs": {"content": None, "refusal": None}, "token_ids": [9]}),
    )  # fmt: skip
    assert message.text == "abcd"
    assert message.metadata["logprobs"] == {"content": [1, 2, 3], "refusal": [4]}
    assert message.metadata["token_ids"] == [8, 9]


# The envelope.


def test_the_first_id_and_model_that_are_not_empty_count() -> None:
    azure = {
        "id": "",
        "model": "",
        "object": "",
        "created": 0,
        "choices": [],
        "prompt_filter_results": [{"prompt_index": 0}],
    }
    found = decode(
        azure, text("a") | {"id": "real"}, text("b") | {"id": "other"}, chunk({}, "stop") | {"id": "stub"}
    )
    start = found[0]
    assert start == MessageStart(
        "real", "m", None, {"prompt_filter_results": [{"prompt_index": 0}], "created": 5}
    )
    assert len(of_type(MessageStart, found)) == 1
    assert fold(found).id == "real"


def test_a_chunk_that_says_nothing_does_not_begin_the_message_before_its_id_has_come() -> None:
    message = reply(chunk({"role": "assistant", "content": ""}, id=""), text("a", id="c2"), chunk({}, "stop"))
    assert (message.id, message.text) == ("c2", "a")
    assert (reply(chunk({"role": "assistant"}, id=""), chunk({}, "stop", id="")).finish_reason) == "stop"


def test_an_id_that_is_never_sent_is_none_and_a_model_that_comes_late_is_not_lost() -> None:
    message = reply(text("a") | {"id": "", "model": ""}, chunk({}, "stop") | {"id": "", "model": "late"})
    assert (message.id, message.model) == (None, "late")


def test_a_chunk_that_is_something_else_altogether_is_passed_on() -> None:
    moderation = {
        "id": "c1",
        "object": "chat.completion.chunk",
        "choices": [],
        "moderation": {"flagged": False},
    }
    found = decode(moderation, {"foo": 1}, {}, {"choices": None}, {"choices": [], "system_fingerprint": "fp"})
    assert found == [
        ProviderEvent("openai", "chat.completion.chunk", moderation),
        ProviderEvent("openai", "chunk", {"foo": 1}),
    ]


# The end.


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"), ("eos", "stop"), ("end_turn", "stop"), ("completed", "stop"), ("new_word", "stop"),
        ("length", "length"), ("max_tokens", "length"), ("MAX_TOKENS", "length"), ("model_length", "length"),
        ("content_filter", "content_filter"), ("SAFETY", "content_filter"), ("recitation", "content_filter"),
    ],
)  # fmt: skip
def test_the_provider_keeps_its_own_word_beside_ours(word: str, reason: str) -> None:
    message = reply(text("a"), chunk({}, word))
    assert (message.finish_reason, message.provider_finish_reason) == (reason, word)


def test_blocks_end_with_the_finish_reason_and_the_message_with_the_usage() -> None:
    decoder = OpenAIChatDecoder()
    decoder.decode(call(fragment(0, "{}", "a", "f")))
    assert list(decoder.decode(chunk({}, "tool_calls"))) == [BlockFinish(0)]
    assert [type(event) for event in decoder.decode(usage())] == [UsageUpdate, MessageFinish]
    assert list(decoder.close()) == []


def test_usage_beside_a_choice_leaves_the_message_open() -> None:
    found = decode(text("a"), chunk({}, "stop", usage=USAGE), close=False)
    assert [type(event) for event in found[-2:]] == [BlockFinish, UsageUpdate]
    assert type(decode(text("a", "stop", usage=USAGE), usage(), close=False)[-1]) is MessageFinish
    assert of_type(MessageFinish, decode(text("a", "stop", usage=USAGE)))[0].usage.raw == USAGE


def test_what_comes_behind_a_chunk_with_finish_reason_and_usage_is_kept() -> None:
    end = chunk({}, "stop", usage=USAGE)
    message = reply(text("a"), end, text("b"), text("c"), chunk({}, x_groq={"service_tier": "flex"}))
    assert shape(message) == [("text", "a"), ("text", "bc")]
    assert message.metadata["x_groq"] == {"service_tier": "flex"}
    message = reply(text("a", "stop", usage=USAGE), call(fragment(0, '{"x":1}', "a", "f")), end)
    assert (message.text, calls(message), message.finish_reason) == ("a", [("a", "f", {"x": 1})], "tool_use")


def test_arguments_behind_the_finish_reason_are_those_of_the_call_that_had_none() -> None:
    begun = [call(fragment(0, '{"x":1}', "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    for rest in (
        [fragment(1, '{"y":'), fragment(1, "2}")],
        [fragment(7, '{"y":2}')],
        [fragment(0, '{"y":2}', "b")],
    ):
        message = reply(*begun, *map(call, rest), usage())
        assert (calls(message), message.invalid_tool_calls) == (
            [("a", "f", {"x": 1}), ("b", "g", {"y": 2})],
            (),
        )
    all_along = [fragment(0, "", "a", "f"), fragment(0, '{"x":'), fragment(0, "1}")]
    assert calls(reply(*(call(each, finish="stop", usage=USAGE) for each in all_along))) == [
        ("a", "f", {"x": 1})
    ]


@pytest.mark.parametrize("names", ["ff", "fg"])
@pytest.mark.parametrize("first", ["", '{"x":1}'])
def test_two_calls_to_which_a_provider_gives_one_id_are_told_apart_by_their_indexes(
    names: str, first: str
) -> None:
    one, two = names
    heads = [fragment(0, "", "a", one), fragment(0, first), fragment(1, "", "a", two), fragment(1, '{"x":2}')]
    whole = [fragment(0, first or "{}", "a", one), fragment(1, '{"x":2}', "a", two)]
    wanted = [("a", one, {"x": 1} if first else {}), ("a", two, {"x": 2})]
    assert calls(reply(call(*whole), chunk({}, "tool_calls"))) == wanted
    assert calls(reply(*map(call, whole), chunk({}, "tool_calls"))) == wanted
    if first or one != two:  # else the second head may be the first once more
        assert calls(reply(*map(call, heads), chunk({}, "tool_calls"))) == wanted


def test_a_call_without_arguments_ends_with_the_message_and_the_others_with_the_finish_reason() -> None:
    chunks = [call(fragment(0, "{}", "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    assert of_type(BlockFinish, decode(*chunks, close=False)) == [BlockFinish(0)]
    assert calls(reply(*chunks)) == calls(reply(*chunks, usage())) == [("a", "f", {}), ("b", "g", {})]


def test_a_finish_reason_and_usage_in_every_chunk_end_nothing_but_the_first_block() -> None:
    message = reply(
        *(text(piece, "stop", usage=USAGE | {"completion_tokens": n}) for n, piece in enumerate("abc"))
    )
    assert (message.text, message.finish_reason) == ("abc", "stop")
    assert message.usage is not None
    assert message.usage.output_tokens == 2


def test_without_usage_the_message_ends_with_the_input() -> None:
    assert type(decode(text("a", "stop"), close=False)[-1]) is BlockFinish
    assert decode(text("a", "stop"))[-1] == MessageFinish("stop", "stop", None, {"created": 5})


@pytest.mark.parametrize("again", [None, "stop", "length"])
def test_a_usage_chunk_that_repeats_or_denies_the_reason_changes_nothing(again: str | None) -> None:
    message = reply(
        text("a"),
        chunk({"content": ""}, "stop"),
        chunk({"role": "assistant", "content": ""}, again, usage=USAGE),
    )
    assert (message.provider_finish_reason, message.status) == ("stop", "complete")
    assert message.usage is not None
    assert message.usage.raw == USAGE


def test_a_running_usage_is_replaced_and_never_added() -> None:
    counts = [USAGE | {"completion_tokens": n} for n in range(4)]
    chunks = [
        text("a", usage=counts[0]),
        text("b", usage=counts[1]),
        chunk({}, "stop", usage=counts[2]),
        usage(completion_tokens=9),
    ]
    found = decode(*chunks)
    assert violations(found) == []
    assert found[0].usage.output_tokens == 0  # type: ignore[union-attr]
    assert [event.usage.output_tokens for event in of_type(UsageUpdate, found)] == [1, 2, 9]
    assert fold(found).usage.output_tokens == 9  # type: ignore[union-attr]
    assert not of_type(MessageFinish, decode(*chunks[:3], close=False))
    last = decode(
        *chunks[:2], chunk({}, "stop", usage=counts[2]) | {"object": "chat.completion.done"}, close=False
    )
    assert type(last[-1]) is MessageFinish


def test_usage_before_any_choice_starts_the_message() -> None:
    found = decode(usage(), text("a", "stop"))
    assert found[0].usage.input_tokens == 7  # type: ignore[union-attr]
    assert of_type(UsageUpdate, found) == []


def test_null_never_wipes_a_usage() -> None:
    message = reply(text("a", usage=USAGE), text("b", usage=None), chunk({}, "stop", usage={}))
    assert message.usage is not None
    assert message.usage.raw == USAGE


def test_groq_usage_counts_once_wherever_it_stands() -> None:
    only = decode(text("a"), chunk({}, "stop", x_groq={"id": "r", "usage": USAGE}))
    both = decode(text("a"), chunk({}, "stop", x_groq={"id": "r", "usage": USAGE}, usage=USAGE))
    assert only == both
    assert len(of_type(UsageUpdate, both)) == 1


@pytest.mark.parametrize("count", [-1, 1.5, "7", True, None])
def test_a_count_that_is_none_is_unknown_and_not_zero(count: Any) -> None:
    spent = reply(text("a"), chunk({}, "stop", usage=USAGE | {"prompt_tokens": count})).usage
    assert spent is not None
    assert (spent.input_tokens, spent.output_tokens) == (None, 3)


def test_without_a_finish_reason_the_message_was_cut_off() -> None:
    found = decode(text("a"), call(fragment(0, "{}", "a", "f")), usage())
    assert of_type(MessageFinish, found) == []
    message = fold(found)
    assert message.status == "incomplete"
    assert message.tool_calls[0].status == "incomplete"


def test_text_after_the_finish_reason_is_a_new_block_that_ends_with_the_message() -> None:
    message = reply(text("a", "stop"), text("b"), text("c"), usage())
    assert shape(message) == [("text", "a"), ("text", "bc")]


def test_what_comes_after_the_end_of_its_call_or_message_is_passed_on() -> None:
    again = call(fragment(0, "{}", "a", "f"))
    found = decode(again, chunk({}, "tool_calls"), again, usage())
    assert violations(found) == []
    assert [event.payload for event in of_type(ProviderEvent, found)] == [again]
    late, spent, empty = text("b"), usage(cost=1), chunk({"role": "assistant", "content": ""}, usage=USAGE)
    found = decode(text("a"), chunk({}, "stop"), usage(), empty, late, spent, usage())
    assert violations(found) == []
    assert [event.payload for event in of_type(ProviderEvent, found)] == [late, spent, usage()]


def test_fragments_after_the_finish_reason_begin_a_call_that_cannot_be_run() -> None:
    message = reply(call(fragment(0, "{}", "a", "f")), chunk({}, "tool_calls"), call(fragment(0, '{"x":1}')))
    assert calls(message) == [("a", "f", {})]
    assert [bad.arguments for bad in message.invalid_tool_calls] == ['{"x":1}']


def test_fragments_of_a_call_that_has_ended_are_not_those_of_another_without_arguments() -> None:
    ended = [call(fragment(0, "{}", "a", "f"), fragment(1, "", "b", "g")), chunk({}, "tool_calls")]
    message = reply(*ended, call(fragment(0, " ")), usage())
    assert calls(message) == [("a", "f", {}), ("b", "g", {})]


# Choices.


def test_choices_are_kept_apart_and_numbered_each_for_itself() -> None:
    chunks = [
        text("a", index=0), chunk({"reasoning": "r"}, index=1), text("x", index=1), text("b", index=0),
        chunk({}, "stop", index=0), text("y", index=1), chunk({}, "length", index=1), usage(),
    ]  # fmt: skip
    found = decode(*chunks)
    assert violations(found) == []
    zero, one = fold(found, 0), fold(found, 1)
    assert (zero.text, zero.provider_finish_reason, zero.choice) == ("ab", "stop", 0)
    assert (one.text, one.reasoning, one.status, one.choice) == ("xy", "r", "length", 1)
    assert zero.usage == one.usage is not None
    assert [block.key for block in one.blocks] == [0, 1]


def test_a_choice_that_was_cut_off_does_not_hold_back_the_finish_of_another_for_ever() -> None:
    found = decode(text("a", "stop", index=0), text("x", index=1), usage())
    assert [(event.choice, event.reason) for event in of_type(MessageFinish, found)] == [(0, "stop")]


def test_a_usage_is_not_the_last_while_one_choice_goes_on() -> None:
    counts = [usage(completion_tokens=n) for n in (1, 2)]
    ends = [text("a", "stop", index=0), text("x", index=1), counts[0], chunk({}, "stop", index=1), counts[1]]
    found = decode(*ends)
    assert violations(found) == []
    assert [event.usage.output_tokens for event in of_type(MessageFinish, found)] == [2, 2]


def test_several_choices_in_one_chunk_and_one_without_an_index() -> None:
    both = {"id": "c1", "choices": [{"delta": {"content": "a"}}, {"index": 3, "delta": {"content": "b"}}]}
    assert [(event.choice, event.text) for event in of_type(TextDelta, decode(both))] == [(0, "a"), (3, "b")]


# Errors.


def test_an_error_ends_the_stream_after_what_its_chunk_holds() -> None:
    broken = text("b", "error", error={"code": 429, "message": "slow down"}, usage=USAGE)
    found = decode(text("a"), broken, text("c"), usage())
    assert found[-1] == StreamError("slow down", None, "429")
    message = fold(found)
    assert (message.text, message.status) == ("ab", "incomplete")
    assert message.usage is not None


def test_the_error_of_a_choice_ends_the_stream() -> None:
    failed = chunk({}, "error", said={"error": {"code": 502, "message": "upstream"}})
    found = decode(text("a"), failed)
    assert found[-1] == StreamError("upstream", None, "502")
    assert fold(found).status == "incomplete"


def test_what_was_finished_before_the_error_stays_so() -> None:
    found = decode(text("a", "length"), chunk({}, error={"code": 400, "message": "limit"}, usage=USAGE))
    assert [type(event) for event in found[-2:]] == [MessageFinish, StreamError]
    assert violations(found) == ["error_event"]
    assert fold(found).status == "length"


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({"error": {"message": "m", "type": "t", "code": "c", "param": None}}, StreamError("m", "t", "c")),
        ({"error": "m"}, StreamError("m")),
        ({"object": "error", "message": "m", "type": "t", "code": 400}, StreamError("m", "t", "400")),
        ({"x_groq": {"error": "m"}, "choices": []}, StreamError("m")),
        ({"error": {"message": 5, "code": True}}, StreamError("unknown error")),
        ({"error": [1]}, StreamError("unknown error")),
    ],
)
def test_an_error_has_many_forms(body: Chunk, error: StreamError) -> None:
    assert decode(body)[-1] == error


def test_more_than_an_error_can_hold_is_passed_on_before_it() -> None:
    body = {"message": "m", "code": "tool_use_failed", "failed_generation": "{"}
    assert decode({"_event": "error", "error": body}) == [
        ProviderEvent("openai", "error", body), StreamError("m", None, "tool_use_failed"),
    ]  # fmt: skip


@pytest.mark.parametrize("nothing", [None, {}, "", False])
def test_an_empty_error_is_none(nothing: Any) -> None:
    assert reply(text("a", "stop", error=nothing)).text == "a"


MALFORMED = [
    ([], ""), (None, ""), ("data", ""), (b"{}", ""), (5, ""),
    ({"choices": {}}, "choices"), ({"choices": "x"}, "choices"), ({"choices": [5]}, "choices[0]"),
    ({"choices": [{}, {"index": -1}]}, "choices[1].index"), (chunk() | {"usage": 5}, "usage"),
    ({"x_groq": {"usage": "x"}}, "x_groq.usage"),
    ({"choices": [{"delta": []}]}, "choices[0].delta"), ({"choices": [{"message": 1}]}, "choices[0].message"),
    ({"choices": [{"finish_reason": 1}]}, "choices[0].finish_reason"),
    (chunk({"content": 5}), "choices[0].delta.content"), (chunk({"content": {}}), "choices[0].delta.content"),
    (chunk({"content": [5]}), "choices[0].delta.content[0]"),
    (chunk({"content": [{"type": "text", "text": 1}]}), "choices[0].delta.content[0].text"),
    (chunk({"reasoning": ["x"]}), "choices[0].delta.reasoning"),
    (chunk({"reasoning_details": {}}), "choices[0].delta.reasoning_details"),
    (chunk({"reasoning_details": [{"signature": 1}]}), "choices[0].delta.reasoning_details[0].signature"),
    (chunk({"refusal": 1}), "choices[0].delta.refusal"), (chunk({"audio": "x"}), "choices[0].delta.audio"),
    (chunk({"images": [{"image_url": 1}]}), "choices[0].delta.images[0].image_url"),
    (chunk({"annotations": [1]}), "choices[0].delta.annotations[0]"),
    (chunk({"executed_tools": [1]}), "choices[0].delta.executed_tools[0]"),
    (chunk({"tool_calls": {}}), "choices[0].delta.tool_calls"),
    (call(fragment(0, "{}", "a", "f"), fragment(True)), "choices[0].delta.tool_calls[1].index"),
    (call(fragment(1.0)), "choices[0].delta.tool_calls[0].index"),
    (call(fragment("1")), "choices[0].delta.tool_calls[0].index"),
    (call(fragment(-1)), "choices[0].delta.tool_calls[0].index"),
    (call(fragment(0, 5)), "choices[0].delta.tool_calls[0].function.arguments"),
    (call({"index": 0, "function": "f"}), "choices[0].delta.tool_calls[0].function"),
    (call({"index": 0, "custom": {"input": 1}}), "choices[0].delta.tool_calls[0].custom.input"),
]  # fmt: skip


@pytest.mark.parametrize(("bad", "path"), MALFORMED, ids=[path or repr(bad) for bad, path in MALFORMED])
def test_a_malformed_chunk_is_named_by_its_place(bad: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        OpenAIChatDecoder().decode(bad)
    assert (caught.value.wire_format, caught.value.path) == ("openai-chat", path)


@pytest.mark.parametrize("bad", [call(fragment(2**31, "")), text("a", index=10**400)])
def test_an_absurd_index_is_refused_by_the_limit(bad: Chunk) -> None:
    with pytest.raises(LimitExceededError):
        OpenAIChatDecoder().decode(bad)


def test_a_sparse_index_is_fine() -> None:
    assert calls(reply(call(fragment(2**31 - 1, "{}", "a", "f")), chunk({}, "stop"))) == [("a", "f", {})]


def test_what_a_malformed_chunk_held_before_its_fault_comes_with_the_next() -> None:
    decoder = OpenAIChatDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode(chunk({"content": "a", "refusal": 1}))
    found = [*decoder.decode(text("b")), *decoder.decode(chunk({}, "stop")), *decoder.close()]
    assert violations(found) == []
    assert fold(found).text == "ab"


# Bodies that were not streamed, and the SDK's objects.

WHOLE: Chunk = {
    "id": "c1", "object": "chat.completion", "created": 5, "model": "m", "usage": USAGE, "system_fingerprint": "fp",
    "choices": [
        {
            "index": 0, "finish_reason": "tool_calls", "logprobs": None,
            "message": {
                "role": "assistant", "content": "Hi", "refusal": None, "reasoning_content": "hm",
                "annotations": [annotation(0)],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
                    {"id": "b", "type": "custom", "custom": {"name": "g", "input": "raw"}},
                ],
            },
        }
    ],
}  # fmt: skip


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    streamed = [
        chunk({"reasoning_content": "h"}, system_fingerprint="fp"), chunk({"reasoning_content": "m"}),
        chunk({"content": "H"}), chunk({"content": "i", "annotations": [annotation(0)]}),
        call(fragment(0, '{"x"', "a", "f"), {"index": 1, "id": "b", "type": "custom", "custom": {"name": "g", "input": "r"}}),
        call(fragment(0, ": 1}"), {"index": 1, "custom": {"input": "aw"}}), chunk({}, "tool_calls"), usage(),
    ]  # fmt: skip
    whole = decode(WHOLE, close=False)
    assert type(whole[-1]) is MessageFinish
    assert fold(whole).to_message() == reply(*streamed).to_message()


def test_whole_calls_without_id_and_index_are_calls_of_their_own() -> None:
    entries = [{"function": {"name": "f", "arguments": {"x": n}}} for n in range(3)]
    body = {
        "object": "chat.completion",
        "choices": [{"message": {"tool_calls": entries}, "finish_reason": "stop"}],
    }
    assert [arguments for _, _, arguments in calls(reply(body))] == [{"x": 0}, {"x": 1}, {"x": 2}]


RICH: Sequence[Chunk] = (
    {"id": "", "model": "", "choices": [], "prompt_filter_results": []},
    chunk({"role": "assistant", "content": ""}),
    chunk({"reasoning": "hm", "reasoning_details": [detail("hm")]}),
    chunk({"reasoning_details": [detail(signature="s")]}),
    text("Look"),
    chunk({"content": "ing", "annotations": [annotation(0)]}),
    call(fragment(0, "", "a", "search", type="function")),
    call(fragment(0, '{"q": "é'), fragment(1, '{"n"', "b", "count")),
    call(fragment(1, ": 2}"), fragment(0, '"}')),
    text("x", index=1),
    chunk({"refusal": "no"}, "stop", index=1),
    chunk({"audio": {"id": "au", "data": "AA", "transcript": "t"}}),
    chunk({"content": None}, "tool_calls", said={"native_finish_reason": "tool_use"}),
    chunk({"role": "assistant", "content": ""}, None, usage=USAGE),
)


@pytest.mark.parametrize("end", range(len(RICH) + 1))
def test_a_stream_that_is_cut_anywhere_is_lawful_and_calls_nothing_complete_that_is_not(end: int) -> None:
    found = decode(*RICH[:end])
    broken = set(violations(found))
    finished = end > 12  # the last but one has the last finish reason
    assert broken <= {"missing_message_start"} | (set() if finished else {"missing_message_finish"})
    message = fold(found)
    assert (message.status == "complete") is finished
    for made in message.tool_calls:
        assert (made.status == "complete") is finished


def test_a_chunk_of_the_sdk_gives_the_same_events_as_a_dict() -> None:
    types = pytest.importorskip("openai.types.chat")
    for one in RICH[1:]:
        assert decode(types.ChatCompletionChunk.construct(**copy.deepcopy(one))) == decode(one)
    typed = [
        chunk({"role": "assistant", "content": "a"}),
        call(fragment(0, "{}", "a", "f")),
        chunk({}, "tool_calls"),
        usage(),
    ]
    typed[-1]["created"] = 5
    assert decode(*map(types.ChatCompletionChunk.model_validate, typed)) == decode(*typed)
    assert decode(types.ChatCompletion.model_validate(WHOLE)) == decode(WHOLE)


def test_a_chunk_is_not_changed_and_may_be_changed_afterwards() -> None:
    mine = copy.deepcopy(list(RICH))
    decoder, found = OpenAIChatDecoder(), list[Event]()
    for one in mine:
        found += decoder.decode(one)
    assert mine == list(RICH)
    assert found + list(decoder.close()) == decode(*RICH)


# The SDK's own accumulator as an independent judge.


def judged(*chunks: Chunk) -> tuple[Any, ...]:
    chat = pytest.importorskip("openai.lib.streaming.chat")
    types = pytest.importorskip("openai.types.chat")
    state = chat.ChatCompletionStreamState()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for one in chunks:
            state.handle_chunk(types.ChatCompletionChunk.model_validate({"created": 5, **one}))
    choice = state.current_completion_snapshot.choices[0]
    made = [
        (each.id, each.function.name, each.function.arguments) for each in choice.message.tool_calls or ()
    ]
    return (choice.message.content or "", choice.message.refusal or "", made, choice.finish_reason)


def ours(*chunks: Chunk) -> tuple[Any, ...]:
    found = decode(*chunks)
    message = fold(found)
    refusal = "".join(part.text or "" for part in message.merged_content if part.type == "refusal")
    starts = {event.index: event.content for event in of_type(BlockStart, found) if event.choice == 0}
    said = {index: "" for index, content in starts.items() if content["type"] == "tool_call_chunk"}
    for event in of_type(ToolCallDelta, found):
        said[event.index] += event.args
    made = [(starts[index]["id"], starts[index]["name"], arguments) for index, arguments in said.items()]
    return (message.text, refusal, made, message.provider_finish_reason)


CLEAN = {
    "text": [chunk({"role": "assistant", "content": ""}), text("Hel"), text("lo"), chunk({}, "stop"), usage()],
    "refusal": [chunk({"refusal": "I "}), chunk({"refusal": "won't"}), chunk({}, "stop")],
    "calls": [
        text("Look: "), call(fragment(0, "", "a", "f", type="function")), call(fragment(0, '{"x":')),
        call(fragment(0, "1}")), call(fragment(1, "", "b", "g", type="function")), call(fragment(1, "{}")),
        chunk({}, "tool_calls"), usage(),
    ],
}  # fmt: skip


@pytest.mark.parametrize("chunks", CLEAN.values(), ids=CLEAN)
def test_agrees_with_the_sdk_on_clean_streams(chunks: list[Chunk]) -> None:
    assert ours(*chunks) == judged(*chunks)


def test_is_right_where_the_sdk_joins_repeated_ids_and_names() -> None:
    chunks = [call(fragment(0, piece, "a", "f", type="function")) for piece in ("{", "}")]
    assert judged(*chunks)[2] == [("aa", "ff", "{}")]
    assert ours(*chunks)[2] == [("a", "f", "{}")]


def test_is_right_where_the_sdk_merges_two_calls_of_one_index() -> None:
    chunks = [call(fragment(0, "{}", call_id, "f", type="function")) for call_id in "ab"]
    assert judged(*chunks)[2] == [("ab", "ff", "{}{}")]
    assert ours(*chunks)[2] == [("a", "f", "{}"), ("b", "f", "{}")]


def test_is_right_where_the_sdk_keeps_the_empty_id_of_a_first_chunk() -> None:
    types, chat = pytest.importorskip("openai.types.chat"), pytest.importorskip("openai.lib.streaming.chat")
    state = chat.ChatCompletionStreamState()
    azure = {"id": "", "model": "", "object": "chat.completion.chunk", "created": 0, "choices": []}
    for one in (azure, text("a")):
        state.handle_chunk(types.ChatCompletionChunk.model_validate(one))
    assert state.current_completion_snapshot.id == ""
    assert fold(decode(azure, text("a"))).id == "c1"


def test_is_right_where_the_sdk_fails_on_a_list_without_indexes() -> None:
    chunks = [chunk({"content": "a", "annotations": [annotation(n)]}) for n in range(2)]
    with pytest.raises(RuntimeError, match="index"):
        judged(*chunks)
    assert len(fold(decode(*chunks)).merged_content[0].citations) == 2


# Recognition.


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (chunk({"role": "assistant"}), True), (WHOLE, True), (usage(), True), ({"choices": [{"delta": {}}]}, True),
        ({"id": "", "object": "", "choices": [], "prompt_filter_results": []}, True), ({"error": {"message": "m"}}, True),
        ({"choices": [{"delta": {"content": "a"}, "text": "a"}]}, True),
        ({"object": "text_completion", "choices": [{"index": 0, "text": "Hi"}]}, False),
        ({"choices": []}, False), ({}, False), ({"type": "error", "error": {"message": "m"}}, False),
        ({"object": "fine_tuning.job", "error": {}}, False),
        ({"message": {"content": "Hi"}, "done": False}, False), ({"choices": ["x"]}, False), ({"object": []}, False),
    ],
)  # fmt: skip
def test_recognises_a_first_chunk(first: Chunk, known: bool) -> None:
    assert recognises(first) is known


# Any JSON at all.

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def odd(*plausible: Any) -> st.SearchStrategy[Any]:
    """Nearly always one of these, now and then anything."""
    return st.one_of(st.sampled_from(plausible), st.sampled_from(plausible), st.sampled_from(plausible), JSON)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Chunk]:
    return st.fixed_dictionaries({}, optional=fields)


TEXTS = odd("", "a", "\ud83d", '{"x":', "1}", "null", None)
INDEXES = odd(0, 0, 1, 2, None)
FUNCTION = some(
    name=odd("f", "g", "", None), arguments=odd("", "{", "}", None, {}, {"x": 1}), input=TEXTS, note=JSON
)
ENTRY = some(
    index=INDEXES, id=odd("a", "b", "", None), type=odd("function", "custom", None), function=FUNCTION, custom=FUNCTION,
    extra=JSON,
)  # fmt: skip
DETAIL = some(
    type=odd("reasoning.text", "reasoning.summary", "reasoning.encrypted"), text=TEXTS, summary=TEXTS, data=TEXTS,
    signature=odd("", "s", "t"), index=INDEXES, id=JSON,
)  # fmt: skip
PART = st.one_of(
    TEXTS,
    some(type=odd("text", "thinking", "image_url", "refusal", "x"), text=TEXTS, thinking=st.lists(TEXTS, max_size=2),
         image_url=odd("data:image/png;base64,AA", "https://x"), refusal=TEXTS, signature=TEXTS),
)  # fmt: skip
DELTA = some(
    role=odd("assistant"), content=TEXTS | st.lists(PART, max_size=2), refusal=TEXTS, reasoning=TEXTS, reasoning_content=TEXTS,
    reasoning_details=st.lists(DETAIL, max_size=3), tool_calls=st.lists(ENTRY, max_size=3), function_call=FUNCTION,
    audio=some(id=TEXTS, data=TEXTS, transcript=TEXTS), images=st.lists(PART, max_size=2),
    annotations=st.lists(some(type=odd("url_citation"), url_citation=some(url=TEXTS, start_index=JSON)), max_size=2),
    executed_tools=st.lists(some(index=INDEXES, type=TEXTS, arguments=TEXTS, output=JSON), max_size=2), other=JSON,
)  # fmt: skip
CHOICE = some(
    index=INDEXES, delta=DELTA | st.none(), message=DELTA, finish_reason=odd(None, None, "stop", "length", "tool_calls"),
    logprobs=odd(None) | some(content=st.lists(JSON, max_size=2)), token_ids=JSON, other=JSON,
)  # fmt: skip
CHUNK = some(
    id=odd("c", ""), model=odd("m", ""), object=odd("chat.completion.chunk", "chat.completion.done"), created=odd(0, 5),
    choices=st.lists(CHOICE, max_size=2), usage=odd(None, USAGE, {}), x_groq=some(usage=odd(USAGE), error=odd(None, "e")),
    error=odd(None, None, {"message": "m"}), other=JSON,
)  # fmt: skip


@pytest.mark.slow
@given(chunks=st.lists(st.one_of(CHUNK, CHUNK, CHUNK, CHUNK, JSON), max_size=6))
@example(chunks=[{"choices": [{"delta": {"x": [[[[]]]]}}]}, {"choices": [{"finish_reason": "stop"}]}])
@settings(max_examples=200, deadline=None)
def test_any_json_gives_lawful_events_or_a_named_error_and_nothing_else(chunks: list[Any]) -> None:
    decoder, found = OpenAIChatDecoder(), list[Event]()
    for one in chunks:
        with suppress(MalformedChunkError, LimitExceededError):
            found += decoder.decode(one)
        if isinstance(one, dict):
            recognises(one)
    found += decoder.close()

    assert set(violations(found)) <= {"missing_message_start", "missing_message_finish", "error_event"}
    for choice in {event.choice for event in found if not isinstance(event, ProviderEvent)}:
        message = fold(found, choice)
        Snapshot.from_dict(message.to_dict())
    for event in found:
        events.from_dict(event.to_dict())


@given(pieces=st.lists(st.sampled_from(["a", "b", "r", "{", "}", "t0", "t1", "x1"]), max_size=12))
@settings(max_examples=200, deadline=None)
def test_no_text_is_lost_or_moved_whatever_the_order(pieces: list[str]) -> None:
    def one(piece: str) -> Chunk:
        if piece in "ab":
            return text(piece)
        if piece == "r":
            return chunk({"reasoning": piece})
        if piece in "{}":
            return call(fragment(0, piece, "a", "f"))
        return call(fragment(int(piece[1]), piece[0], "c" + piece[1], "g"))

    message = fold(decode(*map(one, pieces)))
    assert message.text == "".join(piece for piece in pieces if piece in "ab")
    assert message.reasoning == "r" * pieces.count("r")
    said = {each.call_id: each.arguments or "" for each in message.tool_calls}
    assert sorted("".join(str(value) for value in said.values())) == sorted(
        piece[0] for piece in pieces if piece not in ("a", "b", "r")
    )


@pytest.mark.parametrize("depth", [100, 198, 199, 200, 900])
def test_a_value_that_is_nested_too_deep_costs_nothing_else(depth: int) -> None:
    deep = json.loads("[" * depth + "]" * depth)
    hostile = [
        chunk({"odd": deep}),
        chunk(said={"odd": deep}),
        chunk(said={"logprobs": {"content": deep}}),
        chunk(odd=deep),
        call(fragment(1, "{}", "b", "g", odd=deep)),
        call(fragment(1, {"x": deep}, "b", "g")),
        chunk({"reasoning_details": [detail("r", odd=deep)]}),
        chunk({"annotations": [{"url": deep}]}),
        chunk({"content": [{"type": "odd", "odd": deep}]}),
        chunk({"executed_tools": [{"type": "odd", "output": deep}]}),
        chunk(usage={"odd": deep}),
        {"odd": deep},
        {"error": {"message": deep}, "choices": []},
    ]
    for bad in hostile:
        found = decode(text("a"), bad, text("b"), chunk({}, "stop"))
        assert set(violations(found)) <= (
            {"error_event", "missing_message_finish"} if "error" in bad else set()
        )
        assert fold(found).text == ("a" if "error" in bad else "ab")
