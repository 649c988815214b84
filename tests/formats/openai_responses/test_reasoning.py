"""OpenAI Responses: reasoning, as a summary or as the raw chain of thought."""

from __future__ import annotations

import pytest
from support.openai_responses import (
    added,
    blocks,
    completed,
    created,
    decode,
    done,
    event,
    fold,
    message,
    only,
    part,
    reasoning,
    reply,
    streamed,
    summed,
    text,
    thought,
)

from rxdelta.core import (
    thaw,
)
from rxdelta.core.events import (
    ProviderEvent,
)


def test_of_two_encrypted_contents_the_last_wins() -> None:
    begin, end = reasoning(encrypted_content="first"), reasoning(encrypted_content="second")
    assert only(streamed(end, begin=begin)).options["signature"] == "second"
    assert only(streamed(reasoning(), begin=begin)).options["signature"] == "first"


def test_parts_of_a_summary_are_joined_with_a_blank_line() -> None:
    item = reasoning("One two", "Three")
    pieces = [
        event("reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
        summed("One "),
        summed("two"),
        event("reasoning_summary_text.done", summary_index=0, text="One two"),
        event(
            "reasoning_summary_part.done", summary_index=0, part={"type": "summary_text", "text": "One two"}
        ),
        event("reasoning_summary_part.added", summary_index=1, part={"type": "summary_text", "text": ""}),
        summed("Three", 1),
        event("reasoning_summary_text.done", summary_index=1, text="Three"),
    ]
    begun = reply(created(), added(reasoning()), *pieces)
    assert begun.reasoning == "One two\n\nThree"
    assert only(begun).open
    block = only(streamed(item, *pieces, begin=reasoning()))
    assert (block.text, thaw(block.options["part_lengths"])) == ("One two\n\nThree", [7, 5])


def test_a_summary_that_is_told_whole_needs_no_pieces() -> None:
    whole = [event("reasoning_summary_text.done", summary_index=n, text=said) for n, said in enumerate("ab")]
    assert reply(created(), added(reasoning()), *whole).reasoning == "a\n\nb"


@pytest.mark.parametrize("name", ["content_part", "reasoning_part"])
def test_a_raw_chain_of_thought_is_reasoning(name: str) -> None:
    item = reasoning(content=["Let me see."])
    snapshot = streamed(
        item,
        event(f"{name}.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
        thought("Let me "),
        thought("see."),
        event("reasoning_text.done", content_index=0, text="Let me see."),
        event(f"{name}.done", content_index=0, part={"type": "reasoning_text", "text": "Let me see."}),
        begin=reasoning(content=[]),
    )
    assert only(snapshot).text == "Let me see."
    assert only(snapshot).options["provider_type"] == "reasoning_text"


def test_beside_a_summary_the_raw_chain_of_thought_is_kept_but_not_told() -> None:
    item = reasoning("Short", content=["Long"])
    found = decode(
        created(), added(reasoning()), summed("Short"), thought("Long"), done(item), completed(item)
    )
    block = only(fold(found))
    assert (block.text, thaw(block.options["content"])) == ("Short", item["content"])
    assert [one.name for one in found if isinstance(one, ProviderEvent)] == ["response.reasoning_text.delta"]


def test_reasoning_may_end_after_the_text_and_ids_may_change_at_the_end() -> None:
    thinking, said = reasoning(content=["hm"]), message(part("4"))
    snapshot = reply(
        created(),
        added(reasoning(id="rs_tmp_1")),
        thought("h"),
        added(message(id="msg_tmp_1"), 1),
        text("4", 1),
        done({**said, "id": "msg_tmp_1"}, 1),
        thought("m"),
        done({**thinking, "id": "rs_tmp_1"}),
        completed({**thinking, "id": "rs_tmp_9"}, {**said, "id": "msg_tmp_9"}),
    )
    assert blocks(snapshot) == [("reasoning", "hm"), ("text", "4")]
