"""OpenAI Responses: messages, their texts, refusals and citations."""

from __future__ import annotations

import pytest
from support.openai_responses import (
    USAGE,
    Chunk,
    added,
    blocks,
    completed,
    created,
    decode,
    done,
    event,
    fold,
    message,
    names,
    noted,
    only,
    part,
    reply,
    response,
    streamed,
    text,
    violations,
)

from rxdelta.core import (
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    TextDelta,
)
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder


def test_a_text_stream_is_start_deltas_finish() -> None:
    item = message(part("Hi."))
    found = decode(
        created(),
        {"type": "response.in_progress", "response": response()},
        added(message(status="in_progress")),
        event("content_part.added", content_index=0, part=part("")),
        text("Hi", obfuscation="aBc"),
        text("."),
        event("output_text.done", content_index=0, text="Hi."),
        event("content_part.done", content_index=0, part=part("Hi.")),
        done(item),
        completed(item),
    )
    assert names(found) == [
        "message-start",
        "block-start",
        "block-delta",
        "block-delta",
        "block-finish",
        "message-finish",
    ]
    assert violations(found) == []
    told = fold(found).to_message().to_dict()
    assert told == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "resp_1",
        "model": "m",
        "blocks": [{"type": "text", "text": "Hi.", "options": {"item_id": "i0", "status": "completed"}}],
        "finish_reason": "stop",
        "provider_finish_reason": "completed",
        "usage": {"input_tokens": 7, "output_tokens": 3, "cache_read_tokens": 2, "raw": USAGE},
        "metadata": {"created_at": 5},
    }


@pytest.mark.parametrize("extra", [{}, {"unheard_of": 1}, {"logprobs": []}, {"logprobs": None}])
def test_a_piece_is_one_event_whatever_else_it_carries(extra: Chunk) -> None:
    decoder = OpenAIResponsesDecoder()
    decoder.decode(created())
    decoder.decode(text("a"))
    assert list(decoder.decode(text("b", **extra))) == [TextDelta(0, "b")]


def test_parts_of_a_message_are_blocks_and_messages_keep_their_phase() -> None:
    first = message(part("a"), part("b"), id="m1", phase="commentary")
    second = message(part("c"), id="m2", phase="final_answer")
    snapshot = reply(
        created(),
        added(message(id="m1", phase="commentary")),
        text("a"),
        text("b", part=1),
        done(first),
        added(message(id="m2", phase="final_answer"), 2),
        text("c", 2),
        done(second, 2),
        completed(first, second),
    )
    assert blocks(snapshot) == [("text", "a"), ("text", "b"), ("text", "c")]
    told = [(block.options["item_id"], block.options["phase"]) for block in snapshot.blocks]  # type: ignore[union-attr]
    assert told == [("m1", "commentary"), ("m1", "commentary"), ("m2", "final_answer")]
    assert snapshot.text == "abc"


def test_a_text_that_is_told_whole_shows_before_its_item_is_done() -> None:
    whole = event("output_text.done", content_index=0, text="Hello")
    for pieces in ([], [text("He")]):
        snapshot = reply(created(), added(message()), *pieces, whole)
        assert blocks(snapshot) == [("text", "Hello")]
        assert snapshot.blocks[0].open


def test_an_empty_finished_text_says_nothing() -> None:
    item = message(part(""))
    done_empty = event("output_text.done", content_index=0, text="")
    assert blocks(streamed(item, text("kept"), done_empty, begin=message())) == [("text", "kept")]
    assert blocks(streamed(item, done_empty, begin=message())) == [("text", "")]


def test_refusal_is_a_block_of_its_own() -> None:
    item = message({"type": "refusal", "refusal": "I can't."})
    snapshot = streamed(
        item,
        event("content_part.added", content_index=0, part={"type": "refusal", "refusal": ""}),
        event("refusal.delta", content_index=0, delta="I "),
        event("refusal.delta", content_index=0, delta="can't."),
        event("refusal.done", content_index=0, refusal="I can't."),
        begin=message(),
    )
    assert blocks(snapshot) == [("refusal", "I can't.")]
    assert snapshot.text == ""


def test_annotations_that_only_events_tell_are_kept() -> None:
    found = only(streamed(message(part("Hi")), text("Hi"), noted(0), noted(0), noted(1), begin=message()))
    assert [citation.url for citation in found.citations] == ["https://x/0", "https://x/1"]


def test_many_annotations_are_told_in_linear_space() -> None:
    found = decode(created(), text("Hi"), *(noted(n) for n in range(500)))
    told = [one.fields["citations"] for one in found if isinstance(one, BlockDelta)]
    assert sum(map(len, told)) < 500 * 10
    for count in (11, 12, 13):
        snapshot = streamed(
            message(part("Hi")), text("Hi"), *(noted(n) for n in range(count)), begin=message()
        )
        assert len(only(snapshot).citations) == count


def test_logprobs_are_the_finished_ones_or_those_of_the_pieces() -> None:
    one, two = ({"token": token, "logprob": -0.5} for token in "ab")
    pieces = [text("a", logprobs=[one]), text("b", logprobs=[two])]
    finished = message({**part("ab"), "logprobs": [one, two, one]})
    assert thaw(only(streamed(finished, *pieces, begin=message())).options["logprobs"]) == [one, two, one]
    assert thaw(only(streamed(message(part("ab")), *pieces, begin=message())).options["logprobs"]) == [
        one,
        two,
    ]


def test_a_part_of_another_kind_is_kept_whole() -> None:
    odd = {"type": "output_hologram", "rays": [1]}
    snapshot = streamed(message(part("a"), odd), text("a"), begin=message())
    assert blocks(snapshot) == [("text", "a"), ("unsupported", None)]
    assert thaw(snapshot.blocks[1].options) == {**odd, "item_id": "i0", "status": "completed"}  # type: ignore[union-attr]
    begun = event("content_part.added", content_index=1, part=odd)
    assert streamed(message(part("a"), odd), text("a"), begun, begin=message()) == snapshot
