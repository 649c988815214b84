"""LangChain: message chunks in all their forms, whole messages, and the event protocol."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.replies import ANTHROPIC, OPENAI

import rxdelta as rd
from rxdelta.formats.langchain.decoder import recognises

Chunk = dict[str, Any]

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
LAST: Chunk = {"type": "AIMessageChunk", "content": "", "chunk_position": "last"}
MEDIA = {"type": "image", "mime_type": "image/png"}


def chunk(content: Any = "", **fields: Any) -> Chunk:
    return {"type": "AIMessageChunk", "content": content, **fields}


def call(args: Any = None, index: Any = 0, **fields: Any) -> Chunk:
    return {"name": None, "id": None, **fields, "args": args, "index": index, "type": "tool_call_chunk"}


def decoded(*chunks: Any, close: bool = True) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("langchain")
    events = [event for chunk in chunks for event in decoder.decode(chunk)]
    return [*events, *(decoder.close() if close else ())]


def folded(*chunks: Any) -> rd.Snapshot:
    """The reply; asserts that the events keep the protocol."""
    fold, lifecycle = rd.Fold(choice=0), rd.core.ProtocolChecker()
    for event in decoded(*chunks):
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any) -> dict[str, Any]:
    return folded(*chunks, LAST).to_message().to_dict()


def blocks(*chunks: Any) -> list[dict[str, Any]]:
    return message(*chunks).get("blocks", [])


# The message.


def test_text_goes_on_in_one_block() -> None:
    told = message(chunk("Hel", id="m1"), chunk("lo", id="m1"))
    assert told["id"] == "m1"
    assert told["blocks"] == [{"type": "text", "text": "Hello"}]
    assert told["finish_reason"] == "stop"


def test_a_chunk_that_says_nothing_waits_for_the_providers_id() -> None:
    assert decoded(chunk(id="lc_run--1")) == []
    assert message(chunk(id="lc_run--1"), chunk("Hi", id="msg_1"))["id"] == "msg_1"


def test_a_providers_id_that_comes_late_is_told_with_the_finish() -> None:
    told = message(chunk("Hi", id="lc_run--1"), chunk("!", id="msg_1"))
    assert (told["id"], told["metadata"]) == ("lc_run--1", {"message_id": "msg_1"})


def test_usage_is_added_up_and_each_event_has_the_sum() -> None:
    half = {**USAGE, "input_token_details": {"cache_read": 1}}
    events = decoded(chunk("a", usage_metadata=half), chunk("b", usage_metadata=half))
    told = [event.usage for event in events if isinstance(event, rd.events.UsageUpdate)]
    assert [(usage.input_tokens, usage.output_tokens) for usage in told] == [(3, 2), (6, 4)]
    assert told[-1].raw["input_token_details"]["cache_read"] == 2


def test_of_metadata_the_last_value_counts() -> None:
    told = message(
        chunk("a", response_metadata={"model_name": "m", "service_tier": "x", "logprobs": {"content": [1]}}),
        chunk("b", response_metadata={"model_name": "m", "service_tier": "y", "logprobs": {"content": [2]}}),
    )
    assert told["model"] == "m"
    assert told["metadata"] == {"service_tier": "y", "logprobs": {"content": [1, 2]}}


def test_a_model_that_is_named_late_is_told_with_the_finish() -> None:
    assert message(chunk("a"), chunk("", response_metadata={"model_name": "m"}))["model"] == "m"


@pytest.mark.parametrize(
    ("metadata", "reason", "said"),
    [
        ({"finish_reason": "stop"}, "stop", "stop"),
        ({"finish_reason": "length"}, "length", "length"),
        ({"finish_reason": "MAX_TOKENS"}, "length", "MAX_TOKENS"),
        ({"finish_reason": "SAFETY"}, "content_filter", "SAFETY"),
        ({"stop_reason": "end_turn"}, "stop", "end_turn"),
        ({"stop_reason": "max_tokens"}, "length", "max_tokens"),
        ({"stop_reason": "refusal"}, "content_filter", "refusal"),
        ({"stopReason": "guardrail_intervened"}, "content_filter", "guardrail_intervened"),
        ({"done_reason": "stop"}, "stop", "stop"),
        ({"status": "completed"}, "stop", "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
    ],
)
def test_the_reason_is_what_the_provider_wrote_into_the_metadata(
    metadata: Chunk, reason: str, said: str
) -> None:
    reply = folded(chunk("a"), chunk("", response_metadata=metadata))
    assert (reply.finish_reason, reply.provider_finish_reason) == (reason, said)
    assert reply.status == ("length" if reason == "length" else "complete")


def test_a_stream_without_an_end_is_incomplete() -> None:
    assert folded(chunk("a")).status == "incomplete"


def test_the_last_chunk_ends_the_message_at_once() -> None:
    events = decoded(chunk("a"), LAST, chunk("", id="m"), chunk("late"), close=False)
    assert [event.event for event in events[-3:]] == ["content-block-finish", "message-finish", "provider"]
    assert isinstance(events[-1], rd.events.ProviderEvent)
    assert events[-1].payload["content"] == "late"


def test_a_finish_reason_ends_the_calls_and_the_usage_may_follow() -> None:
    whole = call('{"a": 1}', id="i", name="f")
    before = decoded(
        chunk(tool_call_chunks=[whole], response_metadata={"finish_reason": "tool_calls"}), close=False
    )
    assert [event.event for event in before][-1] == "content-block-finish"
    reply = folded(
        chunk(tool_call_chunks=[whole], response_metadata={"finish_reason": "tool_calls"}),
        chunk(usage_metadata=USAGE),
    )
    assert reply.usage is not None
    assert (reply.finish_reason, reply.usage.input_tokens) == ("tool_use", 3)


# Calls.


def test_fragments_of_a_call_are_joined_by_index() -> None:
    assert blocks(
        chunk(tool_call_chunks=[call('{"a":', name="f", id="i"), call('{"b":', 1, name="g", id="j")]),
        chunk(tool_call_chunks=[call("2}", 1), call("1}")]),
    ) == [
        {"type": "tool_call", "call_id": "i", "name": "f", "arguments": {"a": 1}, "status": "complete"},
        {"type": "tool_call", "call_id": "j", "name": "g", "arguments": {"b": 2}, "status": "complete"},
    ]


def test_another_id_at_an_index_is_another_call_and_what_has_none_goes_on_with_the_open_one() -> None:
    reply = folded(
        chunk(tool_call_chunks=[call("", name="f", id="i")]),
        chunk(tool_call_chunks=[call('{"a": 1}')]),
        chunk(tool_call_chunks=[call("", name="g", id="j")]),
        chunk(tool_call_chunks=[call('{"b":')]),
        chunk(tool_call_chunks=[call(" 2}")]),
        LAST,
    )
    assert [(one.call_id, rd.thaw(one.arguments)) for one in reply.tool_calls] == [
        ("i", {"a": 1}),
        ("j", {"b": 2}),
    ]


def test_a_call_without_an_index_is_whole_and_may_start_at_once() -> None:
    events = decoded(chunk(tool_call_chunks=[call("{}", None, name="f", id="i")]), close=False)
    assert [event.event for event in events][-1] == "content-block-finish"


@pytest.mark.parametrize("index", [-1, -7, 0, "0", "-3"])
def test_indexes_of_calls(index: Any) -> None:
    parts = [
        chunk(tool_call_chunks=[call("{", index, name="f", id="i")]),
        chunk(tool_call_chunks=[call("}", index)]),
    ]
    assert len(folded(*parts, LAST).tool_calls) == 1


@pytest.mark.parametrize("index", [True, 1.5, "lc_0", "x", [], {}])
def test_what_is_no_index_of_a_call_is_malformed(index: Any) -> None:
    with pytest.raises(rd.MalformedChunkError, match=r"langchain chunk: at tool_call_chunks\[0\]\.index"):
        decoded(chunk(tool_call_chunks=[call("{}", index)]))


@pytest.mark.parametrize("index", [2**31, -(2**31), 10**400])
def test_an_absurd_index_is_refused(index: int) -> None:
    with pytest.raises(rd.LimitExceededError):
        decoded(chunk(tool_call_chunks=[call("{}", index)]))
    with pytest.raises(rd.LimitExceededError):
        decoded(chunk([{"type": "text", "text": "a", "index": index}]))


def test_a_call_cut_off_by_the_token_limit_is_never_run() -> None:
    (block,) = folded(
        chunk(tool_call_chunks=[call("{}", name="f", id="i")]),
        chunk("", response_metadata={"finish_reason": "length"}),
    ).blocks
    assert (block.type, getattr(block, "error", "")) == ("invalid_tool_call", "cut off by the token limit")


def test_a_name_that_is_repeated_counts_once_and_one_in_pieces_is_joined() -> None:
    pieces = [call("", name="get_", id="i"), call("{", name="weather"), call("}", name="get_weather")]
    (block,) = folded(*(chunk(tool_call_chunks=[piece]) for piece in pieces), LAST).tool_calls
    assert block.name == "get_weather"


def test_a_call_without_an_id_gets_one_that_a_later_one_replaces() -> None:
    first = chunk(tool_call_chunks=[call("{", name="f")], id="m")
    (block,) = folded(first, chunk(tool_call_chunks=[call("}")]), LAST).tool_calls
    assert (block.call_id, block.metadata["synthetic_id"]) == ("m-0", True)
    (block,) = folded(first, chunk(tool_call_chunks=[call("}", id="i")]), LAST).tool_calls
    assert (block.call_id, block.metadata["synthetic_id"]) == ("i", False)


def test_a_call_in_the_content_and_beside_it_is_one() -> None:
    told = blocks(
        chunk(
            [{"type": "tool_use", "id": "i", "name": "f", "input": {}, "index": 1}],
            tool_call_chunks=[call("", 1, name="f", id="i")],
        ),
        chunk(
            [{"type": "input_json_delta", "partial_json": "{}", "index": 1}],
            tool_call_chunks=[call("{}", 1)],
        ),
    )
    assert told == [{"type": "tool_call", "call_id": "i", "name": "f", "arguments": {}, "status": "complete"}]


def test_a_fragment_in_the_content_counts_by_another_index_and_is_still_not_told_twice() -> None:
    told = blocks(
        chunk(
            [{"type": "tool_use", "id": "i", "name": "f", "index": 3}],
            tool_call_chunks=[call("", 0, name="f", id="i")],
        ),
        chunk([{"type": "tool_use", "input": "{}", "index": 3}], tool_call_chunks=[call("{}", 0)]),
    )
    assert [(one["call_id"], one["arguments"]) for one in told] == [("i", {})]


def test_a_standard_call_in_the_content_has_its_own_index_and_what_the_provider_adds() -> None:
    told = blocks(
        chunk(
            [
                {
                    "type": "tool_call_chunk",
                    "id": "i",
                    "name": "f",
                    "args": "{",
                    "index": "lc_tc_0",
                    "extras": {"s": 1},
                }
            ],
            tool_call_chunks=[call("{", 0, name="f", id="i")],
        ),
        chunk(
            [{"type": "tool_call_chunk", "id": None, "name": None, "args": "}", "index": "lc_tc_0"}],
            tool_call_chunks=[call("}", 0)],
        ),
    )
    assert [(one["type"], one["arguments"], one["metadata"]) for one in told] == [
        ("tool_call", {}, {"extras": {"s": 1}})
    ]


def test_a_call_that_stands_in_the_content_alone_is_read() -> None:
    parts = [
        {"type": "tool_call_chunk", "id": "i", "name": "f", "args": "{", "index": "lc_0"},
        {"type": "tool_call_chunk", "args": "}", "index": "lc_0"},
    ]
    assert [one["arguments"] for one in blocks(*(chunk([part]) for part in parts))] == [{}]


def test_calls_that_langchain_made_of_fragments_are_not_read_twice() -> None:
    parsed = [{"name": "f", "args": {"a": "Po"}, "id": "i", "type": "tool_call"}]
    (block,) = folded(
        chunk(tool_call_chunks=[call('{"a": "Po', name="f", id="i")], tool_calls=parsed),
        chunk(tool_call_chunks=[call('rt"}')], tool_calls=[], invalid_tool_calls=[]),
        LAST,
    ).tool_calls
    assert rd.thaw(block.arguments) == {"a": "Port"}


def test_the_old_function_call_is_a_call() -> None:
    told = blocks(
        chunk(additional_kwargs={"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk(additional_kwargs={"function_call": {"arguments": ": 1}"}}),
    )
    assert [(one["type"], one["name"], one["arguments"]) for one in told] == [("tool_call", "f", {"a": 1})]


def test_an_openai_item_keeps_its_own_id() -> None:
    item = {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "c1", "id": "fc_1"}
    (told,) = blocks({"type": "ai", "content": [item], "tool_calls": [{"name": "f", "args": {}, "id": "c1"}]})
    assert (told["call_id"], told["metadata"]) == ("c1", {"item_id": "fc_1"})


# Parts of a content.


def test_parts_with_one_index_are_joined_and_those_without_stay_apart() -> None:
    def text(said: str, **index: Any) -> Chunk:
        return {"type": "text", "text": said, **index}

    assert [one["text"] for one in blocks(chunk([text("He", index=0)]), chunk([text("llo", index=0)]))] == [
        "Hello"
    ]
    assert [
        one["text"] for one in blocks(chunk([text("He", index="lc_1")]), chunk([text("y", index="lc_1")]))
    ] == ["Hey"]
    assert [one["text"] for one in blocks(chunk([text("He")]), chunk([text("llo")]))] == ["He", "llo"]
    assert [one["text"] for one in blocks(chunk([text("He", index="a")]), chunk([text("y", index="a")]))] == [
        "He",
        "y",
    ]


def test_a_string_after_a_list_is_a_text_of_its_own() -> None:
    told = blocks(chunk("a"), chunk([{"type": "text", "text": "b", "index": 0}]), chunk("c"), chunk("d"))
    assert [one["text"] for one in told] == ["a", "b", "cd"]


@pytest.mark.parametrize(
    "parts",
    [
        [{"type": "reasoning", "reasoning": "Hm"}, {"type": "reasoning", "extras": {"signature": "sig"}}],
        [{"type": "thinking", "thinking": "Hm"}, {"type": "thinking", "signature": "sig"}],
        [
            {"type": "thinking", "thinking": "Hm"},
            {"type": "thinking", "signature": "si"},
            {"type": "thinking", "signature": "g"},
        ],
        [
            {"type": "reasoning_content", "reasoning_content": {"text": "Hm"}},
            {"type": "reasoning_content", "reasoning_content": {"signature": "sig"}},
        ],
    ],
)
def test_reasoning_in_each_make_and_its_signature(parts: list[Chunk]) -> None:
    told = blocks(*(chunk([{**part, "index": 0}]) for part in parts))
    assert told == [{"type": "reasoning", "text": "Hm", "options": {"signature": "sig"}}]


def test_the_parts_of_a_summary_are_joined_with_a_blank_line() -> None:
    def summary(text: str, index: int) -> Chunk:
        part = {"index": index, "type": "summary_text", "text": text}
        return chunk([{"type": "reasoning", "summary": [part], "index": 0}])

    first = chunk([{"type": "reasoning", "id": "rs_1", "summary": [], "index": 0}])
    told = blocks(first, summary("a", 0), summary("b", 0), summary("c", 1))
    assert told == [{"type": "reasoning", "text": "ab\n\nc", "options": {"id": "rs_1"}}]


def test_redacted_reasoning_is_kept() -> None:
    told = blocks(chunk([{"type": "redacted_thinking", "data": "xyz", "index": 0}]))
    assert told == [{"type": "reasoning", "text": "", "options": {"redacted": True, "data": "xyz"}}]


def test_reasoning_beside_the_content_comes_before_it() -> None:
    told = blocks(
        chunk(additional_kwargs={"reasoning_content": "H"}),
        chunk(additional_kwargs={"reasoning_content": "m"}),
        chunk("Hi"),
    )
    assert [(one["type"], one["text"]) for one in told] == [("reasoning", "Hm"), ("text", "Hi")]


def test_refusals() -> None:
    assert blocks(chunk([{"type": "refusal", "refusal": "No"}])) == [{"type": "refusal", "text": "No"}]
    assert blocks(chunk(additional_kwargs={"refusal": "No"})) == [{"type": "refusal", "text": "No"}]


def test_annotations_become_citations_and_keep_the_providers_object() -> None:
    one = {
        "type": "citation",
        "url": "https://a",
        "title": "A",
        "start_index": 0,
        "end_index": 2,
        "cited_text": "x",
    }
    other = {"type": "non_standard_annotation", "value": {"a": 1}}
    (told,) = blocks(
        chunk([{"type": "text", "text": "Hi", "index": 0, "annotations": [one]}]),
        chunk([{"type": "text", "text": "!", "index": 0, "annotations": [other]}]),
    )
    assert told["text"] == "Hi!"
    assert [citation["raw"] for citation in told["citations"]] == [one, other]
    assert (told["citations"][0]["url"], told["citations"][0]["end_index"]) == ("https://a", 2)


def test_a_tool_of_the_provider_is_never_ours_to_run() -> None:
    told = blocks(
        chunk([{"type": "server_tool_call_chunk", "id": "s", "name": "search", "args": '{"q":', "index": 0}]),
        chunk([{"type": "server_tool_call_chunk", "args": "1}", "index": 0}]),
        chunk(
            [
                {
                    "type": "server_tool_result",
                    "tool_call_id": "s",
                    "status": "success",
                    "output": [1],
                    "index": 1,
                }
            ]
        ),
    )
    assert told == [
        {
            "type": "server_tool_call",
            "call_id": "s",
            "name": "search",
            "arguments": {"q": 1},
            "status": "complete",
        },
        {"type": "server_tool_result", "options": {"tool_call_id": "s", "status": "success", "output": [1]}},
    ]


def test_a_tool_of_anthropics_and_its_result() -> None:
    told = blocks(
        chunk([{"type": "server_tool_use", "id": "s", "name": "search", "input": {}, "index": 0}]),
        chunk([{"type": "input_json_delta", "partial_json": '{"q": 1}', "index": 0}]),
        chunk([{"type": "web_search_tool_result", "tool_use_id": "s", "content": [1], "index": 1}]),
    )
    assert (told[0]["type"], told[0]["arguments"]) == ("server_tool_call", {"q": 1})
    assert told[1]["options"] == {
        "tool_call_id": "s",
        "output": [1],
        "provider_type": "web_search_tool_result",
        "status": "success",
    }


def test_images_and_audio_come_in_pieces() -> None:
    told = blocks(
        chunk([{**MEDIA, "base64": "AA", "index": 0}]),
        chunk([{**MEDIA, "data": "BB", "index": 0}]),
        chunk([{"type": "image", "url": "https://a", "index": 1}]),
        chunk([{"type": "image_url", "image_url": {"url": "data:image/gif;base64,CC"}}]),
        chunk([{"type": "file", "file_id": "f1", "mime_type": "application/pdf"}]),
        chunk([{"type": "video", "url": "https://v"}]),
    )
    assert told == [
        {"type": "image", "text": "AABB", "options": {"mime_type": "image/png"}},
        {"type": "image", "options": {"url": "https://a"}},
        {"type": "image", "text": "CC", "options": {"mime_type": "image/gif"}},
        {"type": "file", "options": {"file_id": "f1", "mime_type": "application/pdf"}},
        {"type": "video", "options": {"url": "https://v"}},
    ]


def test_openais_audio_stands_beside_the_content() -> None:
    told = blocks(
        chunk(additional_kwargs={"audio": {"id": "a1", "transcript": "Hel"}}),
        chunk(additional_kwargs={"audio": {"transcript": "lo", "data": "AA"}}),
        chunk(additional_kwargs={"audio": {"data": "BB", "expires_at": 1}}),
    )
    assert told == [
        {"type": "audio", "text": "AABB", "options": {"id": "a1", "transcript": "Hello", "expires_at": 1}}
    ]


def test_what_is_not_standard_is_kept_whole() -> None:
    told = blocks(
        chunk([{"type": "non_standard", "value": {"a": "1"}, "index": 0}]),
        chunk([{"type": "non_standard", "value": {"a": "2", "b": [1]}, "index": 0}]),
        chunk([{"type": "text-plain", "text": "x", "mime_type": "text/plain", "index": 1}]),
        chunk([{"type": "made_up", "deep": {"er": 1}}]),
    )
    assert [one["type"] for one in told] == ["unsupported"] * 3
    assert [one["options"] for one in told] == [
        {"a": "12", "b": [1]},
        {"type": "text-plain", "text": "x", "mime_type": "text/plain"},
        {"type": "made_up", "deep": {"er": 1}},
    ]


def test_what_is_not_standard_about_a_standard_part_is_its_extras() -> None:
    (told,) = blocks(
        chunk([{"type": "text", "text": "a", "index": 0}]),
        chunk([{"type": "non_standard", "value": {"type": "x", "a": 1}, "index": 0}]),
    )
    assert told == {"type": "text", "text": "a", "options": {"extras": {"a": 1}}}


def test_a_signature_among_the_extras_is_where_all_others_have_theirs() -> None:
    extras = {"signature": "s", "x": 1}
    told = blocks(
        chunk(
            [
                {"type": "text", "text": "a", "extras": extras},
                {"type": "tool_call", "id": "i", "name": "f", "args": {}, "extras": extras},
                {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "xyz"}},
            ]
        )
    )
    assert [one.get("options", one.get("metadata")) for one in told] == [
        {"signature": "s", "extras": {"x": 1}},
        {"signature": "s", "extras": {"x": 1}},
        {"redacted": True, "data": "xyz"},
    ]
    assert [one["type"] for one in told] == ["text", "tool_call", "reasoning"]


def test_a_part_of_another_type_at_an_index_is_another_block() -> None:
    told = blocks(
        chunk([{"type": "reasoning", "reasoning": "a", "index": 0}]),
        chunk([{"type": "text", "text": "b", "index": 0}]),
    )
    assert [(one["type"], one["text"]) for one in told] == [("reasoning", "a"), ("text", "b")]


def test_a_field_that_grows_is_told_whole_in_few_events() -> None:
    parts = [chunk([{"type": "x", "v": "ab", "index": 0}]) for _ in range(2_000)]
    events = decoded(*parts, LAST)
    assert sum(isinstance(event, rd.events.BlockDelta) for event in events) < 100
    assert blocks(*parts)[0]["options"]["v"] == "ab" * 2_000


@pytest.mark.parametrize(("first", "second"), [("1", 2), (True, False), (1, 1.5), ({}, []), ([1], "1")])
def test_a_field_that_changes_its_type_is_malformed(first: Any, second: Any) -> None:
    for make in (
        lambda value: chunk([{"type": "x", "v": value, "index": 0}]),
        lambda value: chunk("a", additional_kwargs={"v": value}),
    ):
        with pytest.raises(rd.MalformedChunkError, match=r"\.v expected"):
            decoded(make(first), make(second))


def test_what_is_left_of_the_kwargs_stays_with_the_message() -> None:
    told = message(
        chunk("a", additional_kwargs={"x": "1", "n": 1}), chunk("b", additional_kwargs={"x": "2", "n": 1})
    )
    assert told["metadata"] == {"additional_kwargs": {"x": "12", "n": 1}}


def test_a_piece_of_arguments_at_the_index_of_a_text_belongs_to_no_text() -> None:
    told = blocks(
        chunk([{"type": "text", "text": "a", "index": 1}]),
        chunk([{"type": "input_json_delta", "partial_json": "{", "index": 1}]),
    )
    assert [one["type"] for one in told] == ["text", "invalid_tool_call"]


# Whole messages, and the forms that all of them come in.

STREAM: list[Chunk] = [
    chunk(
        [{"type": "reasoning", "reasoning": "H", "index": 0}], id="m1", response_metadata={"model_name": "m"}
    ),
    chunk([{"type": "reasoning", "reasoning": "m", "index": 0}], id="m1"),
    chunk([{"type": "text", "text": "Let me ", "index": 1}], id="m1"),
    chunk([{"type": "text", "text": "look.", "index": 1}], id="m1"),
    chunk([], tool_call_chunks=[call('{"at": ', 0, name="look", id="c1")], id="m1"),
    chunk([], tool_call_chunks=[call('"sea"}', 0)], id="m1"),
    chunk([], response_metadata={"finish_reason": "tool_calls"}, usage_metadata=USAGE, id="m1"),
    chunk([], chunk_position="last", id="m1"),
]
BODY: Chunk = {
    "type": "ai",
    "id": "m1",
    "content": [{"type": "reasoning", "reasoning": "Hm"}, {"type": "text", "text": "Let me look."}],
    "tool_calls": [{"name": "look", "args": {"at": "sea"}, "id": "c1", "type": "tool_call"}],
    "response_metadata": {"model_name": "m", "finish_reason": "tool_calls"},
    "usage_metadata": USAGE,
}


def test_a_message_that_was_not_streamed_is_the_same() -> None:
    assert folded(BODY).to_message() == folded(*STREAM).to_message()


def test_a_whole_message_keeps_its_calls_where_the_content_has_them() -> None:
    body = {
        "type": "ai",
        "content": [
            {"type": "tool_use", "id": "i", "name": "f", "input": {"a": 1}},
            {"type": "text", "text": "and"},
            {"type": "tool_use", "id": "j", "name": "g", "input": {}},
        ],
        "tool_calls": [{"name": "f", "args": {"a": 1}, "id": "i"}, {"name": "g", "args": {}, "id": "j"}],
        "invalid_tool_calls": [{"name": "h", "args": "{", "id": "k", "error": "broken"}],
    }
    told = folded(body).to_message().to_dict()["blocks"]
    assert [one["type"] for one in told] == ["tool_call", "text", "tool_call", "invalid_tool_call"]
    assert (told[3]["arguments"], told[3]["error"]) == ("{", "broken")


def test_the_whole_message_after_its_chunks_changes_nothing() -> None:
    reply = folded(*STREAM, BODY)
    assert reply == folded(*STREAM)


def test_messages_of_others_pass_on() -> None:
    (event,) = decoded({"type": "human", "content": "Hi"})
    assert isinstance(event, rd.events.ProviderEvent)


def stored(message: Chunk) -> Chunk:
    name = "AIMessage" if message["type"] == "ai" else "AIMessageChunk"
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", name],
        "kwargs": message,
    }


FORMS = {
    "stored in Python": stored,
    "stored in JavaScript": lambda message: {
        **stored(
            {name: value for name, value in message.items() if name != "type"} | {"type": message["type"]}
        ),
        "id": ["langchain_core", "messages", stored(message)["id"][-1]],
        "kwargs": {name: value for name, value in message.items() if name != "type"},
    },
    "with its type beside it": lambda message: {"type": message["type"], "data": message},
    "in a generation": lambda message: {"text": "", "message": message, "generation_info": None},
    "in a run": lambda message: {"event": "on_chat_model_stream", "data": {"chunk": message}, "run_id": "r"},
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_says_the_same(form: str) -> None:
    dressed = [FORMS[form](copy.deepcopy(message)) for message in STREAM]
    assert folded(*dressed) == folded(*STREAM)
    assert rd.providers.detect(dressed[0]) == "langchain"
    if form != "in a run":
        assert folded(FORMS[form](BODY)).to_message() == folded(BODY).to_message()


def test_what_a_generation_knows_belongs_to_the_message() -> None:
    reply = folded(
        {"message": chunk("Hi"), "generation_info": {"finish_reason": "length", "model_name": "m"}}
    )
    assert (reply.finish_reason, reply.model) == ("length", "m")


def test_langchains_own_objects() -> None:
    messages = pytest.importorskip("langchain_core.messages")
    load = pytest.importorskip("langchain_core.load")
    outputs = pytest.importorskip("langchain_core.outputs")
    made = [messages.AIMessageChunk(**message) for message in STREAM]
    wanted = folded(*STREAM)
    assert folded(*made) == wanted
    assert folded(*(one.model_dump() for one in made)) == wanted
    assert folded(*(load.dumpd(one) for one in made)) == wanted
    assert folded(*messages.messages_to_dict(made)) == wanted
    assert folded(*(outputs.ChatGenerationChunk(message=one) for one in made)) == wanted
    total = made[0]
    for one in made[1:]:
        total += one
    whole = messages.message_chunk_to_message(total)
    assert folded(whole).to_message() == wanted.to_message()
    for one in (made[0], load.dumpd(made[0]), messages.AIMessageChunk(content="Hi"), whole):
        assert rd.providers.detect(one) == "langchain"


def test_langchains_own_bridge_to_the_events_says_the_same() -> None:
    """Its events are of the standard parts, so that a stream of them must fold to what its chunks do."""
    bridge = pytest.importorskip("langchain_core.language_models._compat_bridge")
    messages = pytest.importorskip("langchain_core.messages")
    outputs = pytest.importorskip("langchain_core.outputs")
    standard: list[Chunk] = [
        chunk([{"type": "reasoning", "reasoning": "Hm", "index": 0}], id="m1"),
        chunk([{"type": "text", "text": "Hi", "index": 1}]),
        chunk([{"type": "tool_call_chunk", "id": "c", "name": "f", "args": '{"a":', "index": 2}]),
        chunk([{"type": "tool_call_chunk", "id": None, "name": None, "args": "1}", "index": 2}]),
        chunk(
            [], usage_metadata=USAGE, response_metadata={"finish_reason": "tool_calls"}, chunk_position="last"
        ),
    ]
    for one in standard:
        one["response_metadata"] = {**one.get("response_metadata", {}), "output_version": "v1"}
    made = [outputs.ChatGenerationChunk(message=messages.AIMessageChunk(**one)) for one in standard]
    by_events = folded(*bridge.chunks_to_events(iter(made)))
    by_chunks = folded(*standard)
    assert [block.text for block in by_events.blocks if isinstance(block, rd.ContentPart)] == ["Hm", "Hi"]
    assert by_events.to_message().blocks == by_chunks.to_message().blocks
    assert by_events.usage == by_chunks.usage
    assert (by_events.finish_reason, by_events.id) == (by_chunks.finish_reason, by_chunks.id)


# Events.


@pytest.mark.parametrize(
    ("wire_format", "chunks"), [("openai-chat", OPENAI), ("anthropic-messages", ANTHROPIC)]
)
def test_our_own_events_in_their_wire_form_are_read_again(wire_format: str, chunks: list[Chunk]) -> None:
    decoder = rd.providers.decoder(wire_format)
    events = [*(event for one in chunks for event in decoder.decode(one)), *decoder.close()]
    assert decoded(*(event.to_dict() for event in events)) == events
    assert {rd.providers.detect(event.to_dict()) for event in events} == {"langchain"}


EVENTS: list[rd.events.Event] = [
    rd.events.MessageStart("m", "model", rd.TokenUsage(1, 2), {"a": 1}),
    rd.events.BlockStart("lc_0", {"type": "text", "text": ""}),
    rd.events.BlockStart(-1, {"type": "text", "text": ""}, choice=2),
    rd.events.TextDelta(0, "Hi"),
    rd.events.ReasoningDelta(0, "Hm"),
    rd.events.DataDelta(0, "AA"),
    rd.events.ToolCallDelta(0, "{"),
    rd.events.BlockDelta(0, {"a": 1}),
    rd.events.BlockFinish(0),
    rd.events.BlockFinish(0, {"type": "text", "text": ""}),
    rd.events.UsageUpdate(rd.TokenUsage(1, 2)),
    rd.events.MessageFinish("stop", "end_turn", rd.TokenUsage(1, 2), {"a": 1}),
    rd.events.MessageFinish("length", "max_tokens"),
    rd.events.ProviderEvent("p", "n", {"a": 1}),
    rd.events.ToolUpdate("c", "completed", "done"),
    rd.events.MessageInterrupted("stop"),
    rd.events.AttemptReset(1, "boom"),
    rd.events.StreamError("boom", "overloaded", "529"),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_each_event_survives(event: rd.events.Event) -> None:
    assert decoded(event.to_dict()) == [event]
    snake = {**event.to_dict(), "event": event.event.replace("-", "_")}
    assert decoded(snake) == [event]


def test_older_spellings() -> None:
    delta = {"event": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}
    assert decoded(delta) == [rd.events.TextDelta(0, "Hi")]
    older = {"event": "content-block-delta", "index": 0, "content_block": {"type": "text", "text": "Hi"}}
    assert decoded(older) == [rd.events.TextDelta(0, "Hi")]
    finish = {"event": "message-finish", "reason": "stop", "responseMetadata": {"a": 1}}
    assert decoded(finish) == [rd.events.MessageFinish("stop", None, None, {"a": 1})]


def test_the_finish_of_pythons_events_has_its_reason_in_the_metadata() -> None:
    (event,) = decoded({"event": "message-finish", "metadata": {"stop_reason": "max_tokens"}})
    assert isinstance(event, rd.events.MessageFinish)
    assert (event.reason, event.provider_reason) == ("length", "max_tokens")


def test_what_an_event_says_beside_is_not_lost() -> None:
    found = {"event": "message-finish", "reason": "stop", "additional_kwargs": {"signatures": {"c": "s"}}}
    (event,) = decoded(found)
    assert isinstance(event, rd.events.MessageFinish)
    assert rd.thaw(event.metadata) == {"additional_kwargs": {"signatures": {"c": "s"}}}
    delta = {
        "event": "content-block-delta",
        "index": 0,
        "delta": {"type": "text-delta", "text": "a"},
        "node": "n",
    }
    assert decoded(delta) == [
        rd.events.TextDelta(0, "a"),
        rd.events.ProviderEvent("langchain", "content-block-delta", {"node": "n"}),
    ]


def test_an_event_of_unknown_make_passes_on() -> None:
    assert decoded({"event": "heartbeat", "n": 1}) == [
        rd.events.ProviderEvent("", "heartbeat", {"event": "heartbeat", "n": 1})
    ]


def test_an_error_ends_the_stream() -> None:
    assert decoded(
        {"event": "error", "message": "boom", "code": "x", "more": 1}, {"event": "message-start"}
    ) == [
        rd.events.ProviderEvent("langchain", "error", {"more": 1}),
        rd.events.StreamError("boom", None, "x"),
    ]


def test_the_agent_protocols_envelope() -> None:
    event = {"event": "message-start", "role": "ai", "id": "m"}
    wrapped = {
        "type": "event",
        "method": "messages",
        "params": {"namespace": [], "timestamp": 1, "data": event},
    }
    assert decoded(wrapped) == [rd.events.MessageStart("m")]
    assert rd.providers.detect(wrapped) == "langchain"
    (other,) = decoded({**wrapped, "method": "values"})
    assert isinstance(other, rd.events.ProviderEvent)


@pytest.mark.parametrize(
    "found",
    [
        {"event": "content-block-start", "index": None},
        {"event": "content-block-start", "index": 1.5},
        {"event": "content-block-delta", "index": True, "delta": {"type": "text-delta", "text": "a"}},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": 1}},
        {"event": "message-start", "id": 1},
        {"event": "message-finish", "reason": []},
    ],
)
def test_a_malformed_event_is_named(found: Chunk) -> None:
    with pytest.raises(rd.MalformedChunkError) as caught:
        decoded(found)
    assert caught.value.wire_format == "langchain"


# What is malformed, and anything at all.


@pytest.mark.parametrize(
    ("found", "path"),
    [
        (None, ""),
        ([], ""),
        ("x", ""),
        (b"x", ""),
        ({"content": 1}, "content"),
        ({"content": [1]}, "content[0]"),
        ({"content": [{"type": "text", "text": 1}]}, "content[0].text"),
        ({"content": [{"type": "text", "text": "", "annotations": 1}]}, "content[0].annotations"),
        ({"content": "", "tool_call_chunks": 1}, "tool_call_chunks"),
        ({"content": "", "tool_call_chunks": [1]}, "tool_call_chunks[0]"),
        ({"content": "", "tool_call_chunks": [{"name": 1}]}, "tool_call_chunks[0].name"),
        ({"content": "", "tool_call_chunks": [{"args": 1}]}, "tool_call_chunks[0].args"),
        ({"content": "", "usage_metadata": 1}, "usage_metadata"),
        ({"content": "", "response_metadata": 1}, "response_metadata"),
        ({"content": "", "additional_kwargs": 1}, "additional_kwargs"),
        ({"content": "", "id": 1}, "id"),
        ({"lc": 1, "type": "constructor", "kwargs": {"content": 1}}, "kwargs.content"),
    ],
)
def test_what_is_malformed_is_named_by_its_path(found: Any, path: str) -> None:
    with pytest.raises(rd.MalformedChunkError) as caught:
        decoded(found)
    assert (caught.value.wire_format, caught.value.path) == ("langchain", path)


def test_what_came_before_the_fault_is_not_lost() -> None:
    decoder = rd.providers.decoder("langchain")
    with pytest.raises(rd.MalformedChunkError):
        decoder.decode(chunk(["a", 1]))
    assert decoder.decode(chunk("b"))[0].event == "message-start"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(
        ["lc_0", "text", "tool_call_chunk", "last", "ai", "message-start", "length", "reasoning"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "content",
                    "text",
                    "index",
                    "id",
                    "name",
                    "args",
                    "tool_call_chunks",
                    "tool_calls",
                    "additional_kwargs",
                    "data",
                    "kwargs",
                    "event",
                    "response_metadata",
                    "usage_metadata",
                    "chunk_position",
                    "delta",
                    "message",
                    "value",
                    "extras",
                    "annotations",
                    "summary",
                    "input",
                    "function_call",
                    "audio",
                    "reasoning_content",
                    "finish_reason",
                    "fields",
                    "usage",
                    "reason",
                    "metadata",
                    "params",
                    "method",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4))
@settings(max_examples=300)
@example([{"event": "on_chat_model_stream", "data": {"chunk": 1}}])
@example([{"message": {"message": {"message": 1}}}])
def test_any_json_gives_events_or_our_errors(chunks: list[Any]) -> None:
    decoder, fold = rd.providers.decoder("langchain"), rd.Fold()
    for one in chunks:
        if isinstance(one, dict):
            assert recognises(one) in (True, False)
        with suppress(rd.RxDeltaError):
            for event in decoder.decode(one):
                json.dumps(event.to_dict())
                fold.step(event)
    with suppress(rd.ProtocolError):  # of events that were theirs
        for event in decoder.close():
            fold.step(event)


parts = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                "text",
                "reasoning",
                "thinking",
                "tool_call_chunk",
                "tool_use",
                "server_tool_call_chunk",
                "image",
                "x",
                "non_standard",
                "refusal",
                "input_json_delta",
                "server_tool_result",
            ]
        )
    },
    optional={
        "text": st.just("a"),
        "reasoning": st.just("b"),
        "args": st.sampled_from(["{", "}", '{"a": 1}', ""]),
        "id": st.sampled_from(["i", "j", None]),
        "index": st.sampled_from([0, 1, -1, "lc_0", "a", None]),
        "value": st.just({"k": "v"}),
        "extras": st.just({"signature": "s"}),
        "annotations": st.just([{"u": 1}]),
    },
)
fragments = st.fixed_dictionaries(
    {"args": st.sampled_from(["{", "}", '{"a": 1}', "", None])},
    optional={
        "index": st.sampled_from([0, 1, -1, None]),
        "id": st.sampled_from(["i", "j", "", None]),
        "name": st.sampled_from(["f", "g", "", None]),
    },
)
messages = st.fixed_dictionaries(
    {"content": st.sampled_from(["", "a"]) | st.lists(parts, max_size=2)},
    optional={
        "tool_call_chunks": st.lists(fragments, max_size=2),
        "additional_kwargs": st.sampled_from(
            [
                {"reasoning_content": "r"},
                {"function_call": {"name": "f", "arguments": "{}"}},
                {"audio": {"data": "A"}},
            ]
        ),
        "response_metadata": st.sampled_from(
            [{"finish_reason": "stop"}, {"finish_reason": "length"}, {"a": "b"}]
        ),
        "usage_metadata": st.just(USAGE),
        "chunk_position": st.just("last"),
        "id": st.sampled_from(["m", "lc_run-1"]),
    },
)


@given(st.lists(messages, max_size=6))
@settings(max_examples=300)
def test_any_chunks_keep_the_protocol_and_end_every_block(chunks: list[Chunk]) -> None:
    decoder, fold, lifecycle = rd.providers.decoder("langchain"), rd.Fold(), rd.core.ProtocolChecker()
    for one in chunks:
        for event in decoder.decode(one):
            assert lifecycle.check(event) is None, event
            fold.step(event)
    for event in decoder.close():
        assert lifecycle.check(event) is None, event
        fold.step(event)
    if fold.snapshot.status != "incomplete":
        assert not any(block.open for block in fold.snapshot.blocks)
        assert lifecycle.close() is None
        assert rd.Message.from_dict(fold.snapshot.to_message().to_dict()) == fold.snapshot.to_message()
    else:
        assert not any(
            isinstance(one, rd.ToolCall) and one.status == "complete" and one.open
            for one in fold.snapshot.blocks
        )


@pytest.mark.parametrize("place", range(len(STREAM)))
def test_a_stream_with_a_chunk_lost_doubled_or_swapped(place: int) -> None:
    for mangled in (
        [*STREAM[:place], *STREAM[place + 1 :]],
        [*STREAM[: place + 1], *STREAM[place:]],
        [*STREAM[:place], *reversed(STREAM[place : place + 2]), *STREAM[place + 2 :]],
        STREAM[:place],
    ):
        reply = folded(*mangled)
        for one in reply.tool_calls:
            assert one.status == "incomplete" or rd.thaw(one.arguments) in ({"at": "sea"}, {})
