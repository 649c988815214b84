"""The parts of a content, and what stands beside it."""

from __future__ import annotations

from typing import Any

import pytest
from formats.langchain.chunks import LAST, Chunk, blocks, chunk, decoded, message

import rxdelta as rd

MEDIA = {"type": "image", "mime_type": "image/png"}


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
    assert told == [
        {"type": "reasoning", "text": "Hm", "options": {"signature": "sig", "signed_by": "langchain"}}
    ]


def test_the_parts_of_a_summary_are_joined_with_a_blank_line() -> None:
    def summary(text: str, index: int) -> Chunk:
        part = {"index": index, "type": "summary_text", "text": text}
        return chunk([{"type": "reasoning", "summary": [part], "index": 0}])

    first = chunk([{"type": "reasoning", "id": "rs_1", "summary": [], "index": 0}])
    told = blocks(first, summary("a", 0), summary("b", 0), summary("c", 1))
    assert told == [{"type": "reasoning", "text": "ab\n\nc", "options": {"id": "rs_1"}}]


def test_redacted_reasoning_is_kept() -> None:
    told = blocks(chunk([{"type": "redacted_thinking", "data": "xyz", "index": 0}]))
    assert told == [
        {
            "type": "reasoning",
            "text": "",
            "options": {"redacted": True, "data": "xyz", "signed_by": "langchain"},
        }
    ]


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
        {"signature": "s", "extras": {"x": 1}, "signed_by": "langchain"},
        {"signature": "s", "extras": {"x": 1}, "signed_by": "langchain"},
        {"redacted": True, "data": "xyz", "signed_by": "langchain"},
    ]
    assert [one["type"] for one in told] == ["text", "tool_call", "reasoning"]


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
        with pytest.raises(rd.errors.MalformedChunkError, match=r"\.v expected"):
            decoded(make(first), make(second))


def test_what_is_left_of_the_kwargs_stays_with_the_message() -> None:
    told = message(
        chunk("a", additional_kwargs={"x": "1", "n": 1}), chunk("b", additional_kwargs={"x": "2", "n": 1})
    )
    assert told["metadata"] == {"additional_kwargs": {"x": "12", "n": 1}}


@pytest.mark.parametrize(
    ("provider", "signed_by"),
    [
        ("anthropic", "anthropic via langchain"),
        ("bedrock_converse", "anthropic via langchain"),
        ("google_genai", "google via langchain"),
        ("openai", "langchain"),
    ],
)
def test_the_model_provider_tells_whose_a_signature_is(provider: str, signed_by: str) -> None:
    known = {"model_provider": provider}
    told = blocks(
        chunk([{"type": "reasoning", "reasoning": "Hm", "index": 0}], response_metadata=known),
        chunk([{"type": "reasoning", "extras": {"signature": "s"}, "index": 0}]),
        chunk([{"type": "redacted_thinking", "data": "xyz", "index": 1}]),
    )
    assert [one["options"]["signed_by"] for one in told] == [signed_by, "langchain"]
