"""Mistral: what its dialect has beyond OpenAI's, and that it is told from that."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta.formats.mistral.decoder import recognises

Chunk = dict[str, Any]

USAGE = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
ID = "6dc321029f5d4aa5899c1b38c9657a61"


def chunk(delta: Chunk, finish: str | None = None, **extras: Any) -> Chunk:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **extras,
    }


def thinking(*texts: Any, **extras: Any) -> Chunk:
    entries = [{"type": "text", "text": one} if isinstance(one, str) else one for one in texts]
    return {"type": "thinking", "thinking": entries, **extras}


def text(said: str) -> Chunk:
    return {"type": "text", "text": said}


def decoded(*chunks: Any, close: bool = True) -> list[rd.events.Event]:
    decoder = rd.providers.decoder("mistral")
    events = [event for one in chunks for event in decoder.decode(one)]
    return [*events, *(decoder.close() if close else ())]


def folded(*chunks: Any) -> rd.Snapshot:
    fold, lifecycle = rd.Fold(choice=0), rd.core.ProtocolChecker()
    for event in decoded(*chunks):
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot


def blocks(*chunks: Any) -> list[dict[str, Any]]:
    return (
        folded(*chunks, chunk({"content": ""}, "stop", usage=USAGE)).to_message().to_dict().get("blocks", [])
    )


def told(*chunks: Any) -> list[tuple[str, str]]:
    return [(one["type"], one["text"]) for one in blocks(*chunks)]


def test_content_turns_from_thinking_to_parts_to_a_string() -> None:
    assert told(
        chunk({"content": [thinking("H")]}),
        chunk({"content": [thinking("m", closed=True)]}),
        chunk({"content": [thinking("."), text("4")]}),
        chunk({"content": "2"}),
    ) == [("reasoning", "Hm."), ("text", "42")]


def test_the_signature_of_a_thinking() -> None:
    (one,) = blocks(chunk({"content": [thinking("Hm", signature="sig")]}))
    assert one["options"]["signature"] == "sig"


def test_whole_calls_on_the_chunk_of_the_finish_reason() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": '{"a": 1}'}, "index": 1},
    ]
    events = decoded(chunk({"tool_calls": calls}, "tool_calls", usage=USAGE), close=False)
    assert [event.event for event in events[-2:]] == ["content-block-finish"] * 2  # so the tools start
    reply = folded(chunk({"content": None, "tool_calls": calls}, "tool_calls", usage=USAGE))
    assert [(one.call_id, rd.core.thaw(one.arguments)) for one in reply.tool_calls] == [
        ("a", {}),
        ("b", {"a": 1}),
    ]
    assert reply.finish_reason == "tool_use"


@pytest.mark.parametrize("index", [{}, {"index": 0}])
def test_calls_that_no_index_tells_apart(index: Chunk) -> None:
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}, **index} for name in ("a", "b")]
    reply = folded(chunk({"tool_calls": calls}, "tool_calls"))
    assert [one.call_id for one in reply.tool_calls] == ["a", "b"]


@pytest.mark.parametrize("call_id", [{}, {"id": "null"}, {"id": ""}, {"id": None}])
def test_calls_that_come_in_fragments(call_id: Chunk) -> None:
    first = {"id": "a", "function": {"name": "f", "arguments": ""}, "index": 0}
    more = [
        {**call_id, "function": {"name": "", "arguments": piece}, "index": 0} for piece in ('{"a"', ": 1}")
    ]
    reply = folded(
        *(chunk({"tool_calls": [one]}) for one in (first, *more)), chunk({"content": ""}, "tool_calls")
    )
    assert [(one.name, rd.core.thaw(one.arguments)) for one in reply.tool_calls] == [("f", {"a": 1})]


def test_the_last_text_and_the_usage_come_with_the_finish_reason() -> None:
    reply = folded(chunk({"content": "a"}), chunk({"content": "b"}, "stop", usage=USAGE))
    assert (reply.text, reply.usage and reply.usage.output_tokens) == ("ab", 3)


def test_the_index_of_a_message_in_a_choice_begins_a_new_text() -> None:
    parts = [
        chunk({"index": 0, "content": "a"}),
        chunk({"index": 0, "content": "b"}),
        chunk({"index": 1, "content": "c"}),
    ]
    assert told(*parts) == [("text", "ab"), ("text", "c")]
    assert "index" not in folded(*parts, chunk({}, "stop")).metadata


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("tool_calls", "stop"),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    reply = folded(chunk({"content": "a"}, word, usage=USAGE))
    assert (reply.finish_reason, reply.provider_finish_reason) == (reason, word)


@pytest.mark.parametrize("word", ["length", "model_length"])
def test_a_call_that_was_cut_off_is_never_run(word: str) -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    assert [one.type for one in folded(chunk({"tool_calls": [call]}, word)).blocks] == ["invalid_tool_call"]


def test_the_reason_error_is_an_error() -> None:
    error = decoded(chunk({"content": "a"}, "error", usage=USAGE))[-1]
    assert isinstance(error, rd.events.StreamError)
    assert (error.code, error.transient) == ("error", True)


def test_a_reference_is_a_citation_of_what_is_being_written() -> None:
    reference = {"type": "reference", "reference_ids": [1, "x"]}
    source = {
        "type": "tool_reference",
        "tool": "web_search",
        "title": "A",
        "url": "https://a",
        "description": None,
    }
    one, other = blocks(
        chunk({"content": [thinking("Hm", source, ".")]}),
        chunk({"content": [text("a"), reference, text("b")]}),
    )
    assert (one["type"], one["text"], other["text"]) == ("reasoning", "Hm.", "ab")
    assert one["citations"] == [{"title": "A", "url": "https://a", "raw": source}]
    assert other["citations"] == [{"raw": reference}]


def test_a_reference_of_nothing_is_a_block_of_its_own() -> None:
    reference = {"type": "reference", "reference_ids": [1]}
    assert blocks(chunk({"content": [reference]})) == [{"type": "unsupported", "options": reference}]


def test_documents_files_images_and_audio() -> None:
    assert blocks(
        chunk({"content": [{"type": "document_url", "document_url": "https://d", "document_name": "d.pdf"}]}),
        chunk({"content": [{"type": "file", "file_id": "f1"}]}),
        chunk({"content": [{"type": "image_url", "image_url": {"url": "https://i", "detail": "low"}}]}),
        chunk({"content": [{"type": "image_url", "image_url": "data:image/png;base64,AA"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": "BB"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": "https://a"}]}),
        chunk({"content": [{"type": "input_audio", "input_audio": {"data": "CC", "format": "wav"}}]}),
        chunk({"content": [{"type": "resource_link", "uri": "https://r"}]}),
    ) == [
        {"type": "file", "options": {"url": "https://d", "filename": "d.pdf"}},
        {"type": "file", "options": {"file_id": "f1"}},
        {"type": "image", "options": {"url": "https://i", "detail": "low"}},
        {"type": "image", "text": "AA", "options": {"mime_type": "image/png"}},
        {"type": "audio", "text": "BB"},
        {"type": "audio", "options": {"url": "https://a"}},
        {"type": "audio", "text": "CC", "options": {"format": "wav"}},
        {"type": "unsupported", "options": {"type": "resource_link", "uri": "https://r"}},
    ]


def test_padding_says_nothing() -> None:
    assert "p" not in folded(chunk({"content": "a"}, p="abc"), chunk({}, "stop", p="ab")).metadata


def test_a_body_that_was_not_streamed_is_the_same() -> None:
    content = [thinking("Hm"), text("Hi")]
    body = chunk({}, "stop", usage=USAGE) | {"object": "chat.completion"}
    body["choices"] = [
        {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    ]
    assert folded(body) == folded(
        chunk({"role": "assistant", "content": [content[0]]}),
        chunk({"content": "Hi"}),
        chunk({"content": ""}, "stop", usage=USAGE),
    )
    assert rd.providers.detect(body) == "mistral"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ({"object": "error", "message": "No", "type": "invalid_request_error", "code": "1500"}, "No"),
        ({"object": "error", "message": {"detail": [{"msg": "bad"}]}}, '{"detail": [{"msg": "bad"}]}'),
        ({"error": {"message": "No", "code": 3505}}, "No"),
        ({"detail": "No"}, "No"),
        ({"detail": [{"msg": "bad"}]}, '[{"msg": "bad"}]'),
    ],
)
def test_an_error_ends_the_stream(error: Chunk, said: str) -> None:
    events = decoded(chunk({"content": "a"}), error, chunk({"content": "b"}))
    assert isinstance(events[-1], rd.events.StreamError)
    assert events[-1].message == said
    assert "b" not in [getattr(event, "text", "") for event in events]


def test_errors_and_what_passes_on_are_in_its_name() -> None:
    with pytest.raises(
        rd.errors.MalformedChunkError, match=r"malformed mistral chunk: at choices\[0\]\.delta\.content"
    ) as one:
        decoded(chunk({"content": 1}))
    assert (one.value.wire_format, one.value.path) == ("mistral", "choices[0].delta.content")
    with pytest.raises(rd.errors.MalformedChunkError, match="malformed mistral chunk: as the chunk"):
        decoded("x")
    (event,) = decoded({"something": "else"}, close=False)
    assert isinstance(event, rd.events.ProviderEvent)
    assert event.provider == "mistral"


@pytest.mark.parametrize("index", [True, 1.5, "x"])
def test_what_is_no_index_is_malformed(index: Any) -> None:
    with pytest.raises(rd.errors.MalformedChunkError, match="malformed mistral chunk"):
        decoded(chunk({"index": index, "content": "a"}))


@pytest.mark.parametrize(("chunks", "expected"), recordings("mistral"))
def test_the_sdks_events_say_the_same(chunks: list[Any], expected: Any) -> None:
    models = pytest.importorskip("mistralai.client.models")
    made = [models.CompletionEvent.model_validate({"data": one}) for one in chunks]
    wanted = folded(*chunks)
    assert folded(*made) == wanted
    assert folded(*(one.data for one in made)) == wanted
    assert rd.providers.detect(made[0]) == "mistral"
    assert expected["text"] == wanted.text


# Which of the two it is.


@pytest.mark.parametrize(
    "found",
    [
        {"id": ID, "model": "m", "choices": [{"index": 0, "delta": {"content": "a"}}]},
        {
            "id": f"cmpl-{ID}",
            "model": "mistral-tiny",
            "choices": [{"index": 0, "delta": {"role": "assistant"}}],
        },
        {
            "id": "x",
            "model": "open-mixtral-8x7b",
            "choices": [{"index": 0, "delta": {"content": "a"}}],
            "p": "ab",
        },
        chunk({"content": [thinking("a")]}),
        {"data": {"id": "x", "model": "m", "choices": []}},
    ],
)
def test_is_told_from_what_others_send(found: Chunk) -> None:
    assert rd.providers.detect(found) == "mistral"


@pytest.mark.parametrize(
    "found",
    [
        chunk({"content": "a"}, system_fingerprint=""),
        chunk({"content": "a"}, usage=None),
        chunk({"content": "a", "reasoning_content": None}),
        {**chunk({"content": "a"}), "id": "chatcmpl-1"},
        {**chunk({"content": "a"}), "id": f"chatcmpl-{ID}", "model": "mistralai/Mistral-7B"},
        {**chunk({"content": "a"}), "choices": [{"index": 0, "delta": {}, "stop_reason": None}]},
    ],
)
def test_others_are_not_taken_for_it(found: Chunk) -> None:
    assert rd.providers.detect(found) == "openai-chat"


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-chat"))
def test_no_chunk_of_another_vendor_is_taken_for_it(chunks: list[Any], expected: Any) -> None:
    assert not any(recognises(one) for one in chunks), expected["model"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "choices", "delta", "content", "type", "text", "thinking", "index", "reference_ids", "data",
                    "input_audio", "document_url", "error", "detail", "object", "message", "usage", "tool_calls",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip
parts = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["text", "thinking", "reference", "tool_reference", "document_url", "input_audio", "file"]
        )
    },
    optional={
        "text": st.just("a"),
        "thinking": st.just([text("b"), {"type": "reference", "reference_ids": [1]}]) | json_values,
        "input_audio": st.just("AA") | json_values,
        "document_url": st.just("https://d") | json_values,
        "title": json_values,
    },
)
chunks = st.builds(
    lambda content, index, finish: chunk({"content": content, "index": index}, finish),
    st.lists(parts, max_size=3) | st.just("a"),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([None, None, "stop", "length"]),
)


@pytest.mark.slow
@given(st.lists(json_values | chunks, max_size=6))
@settings(max_examples=300)
def test_anything_gives_events_that_keep_the_protocol_or_our_errors(found: list[Any]) -> None:
    decoder, fold, lifecycle = rd.providers.decoder("mistral"), rd.Fold(choice=0), rd.core.ProtocolChecker()
    for one in [*found, None]:
        told: Any = ()
        with suppress(rd.RxDeltaError):
            told = decoder.close() if one is None else decoder.decode(one)
        for event in told:
            json.dumps(event.to_dict())
            if not isinstance(event, rd.events.StreamError):
                assert lifecycle.check(event) is None
                fold.step(event)
