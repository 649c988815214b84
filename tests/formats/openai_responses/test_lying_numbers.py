"""OpenAI Responses: streams whose numbers contradict their content."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from support.openai_responses import (
    Chunk,
    added,
    arguments,
    blocks,
    completed,
    created,
    decode,
    done,
    event,
    fold,
    function,
    message,
    noted,
    part,
    reasoning,
    summed,
    text,
    thought,
    violations,
)

import rxdelta as rd
from rxdelta.core import Fold, thaw
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder

EMPTY = part("")


def begun(place: int, at: int, content: Chunk = EMPTY, **more: Any) -> Chunk:
    return event("content_part.added", place, content_index=at, part=content, **more)


def ended(place: int, at: int, said: str) -> Chunk:
    return event("content_part.done", place, content_index=at, part=part(said))


def told(place: int, at: int, said: str) -> Chunk:
    return event("output_text.done", place, content_index=at, text=said)


def refused(piece: str, place: int = 0, at: int = 0) -> Chunk:
    return event("refusal.delta", place, content_index=at, delta=piece)


def counted(pieces: Sequence[str], thoughts: Sequence[str] = ()) -> list[Chunk]:
    """A response of vLLM, which counts every event of an item in `content_index` (vllm-project/vllm#23741 to #35184).

    Behind reasoning, the message is announced at the reasoning's place, and its parts come at the next. The last event has
    the items under other ids (vllm-project/vllm#38227).
    """
    chunks, whole, count, place = [created()], "".join(pieces), 0, 0

    def item_event(kind: str, **more: Any) -> None:
        nonlocal count
        more = {"item_id": f"item_{place}", "content_index": count, "sequence_number": len(chunks), **more}
        chunks.append({"type": f"response.{kind}", "output_index": place, **more})
        count += 1

    output: list[Chunk] = []
    if thoughts:
        chunks.append(added(reasoning(id="item_0")))
        item_event("content_part.added", part=EMPTY)
        for piece in thoughts:
            item_event("reasoning_text.delta", delta=piece)
        item_event("reasoning_text.done", text="".join(thoughts))
        output.append(reasoning(content=["".join(thoughts)], id="item_0"))
        chunks.append(done(output[0]))
        count = 0
    chunks.append(added(message(id="item_0", status="in_progress")))
    place = len(output)
    item_event("content_part.added", part=EMPTY)
    for piece in pieces:
        item_event("output_text.delta", delta=piece, logprobs=[])
    item_event("output_text.done", text=whole)
    item_event("content_part.done", part=part(whole))
    output.append(message(part(whole), id=f"item_{place}"))
    chunks.append(done(output[-1], place))
    chunks.append(completed(*({**item, "id": f"final_{n}"} for n, item in enumerate(output))))
    return chunks


VLLM = counted(["We", " say", " hello"])
VLLM_THINKS = counted(["We", " say", " hello"], ["th", "ink"])
HELLO = [("text", "We say hello")]
THOUGHT = [("reasoning", "think"), *HELLO]

AB = message(part("ab"))
A_B = message(part("a"), part("b"))
NO = {"type": "refusal", "refusal": "no"}

FORMS: dict[str, tuple[Sequence[Chunk], list[Any]]] = {
    # vllm-project/vllm#23741
    "counts events": (VLLM, HELLO),
    "counts events, one piece": (counted(["Hi"]), [("text", "Hi")]),
    # vllm-project/vllm#35184, #38227
    "counts events behind reasoning": (VLLM_THINKS, THOUGHT),
    # The same by others, who leave something out.
    **{
        f"counts events, without {left_out}": ([one for one in VLLM_THINKS if left_out not in one["type"]], THOUGHT)
        for left_out in ("content_part.added", "content_part", "output_item.done", "output_text.done", "text.done")
    },
    "counts events, without announcements": (
        [created(), text("a", part=1), text("b", part=2), done(AB), completed()],
        [("text", "ab")],
    ),
    "counts places": (
        [created(), *({**text(piece, n), "item_id": "m"} for n, piece in enumerate("abc")),
         done(message(part("abc"), id="m"), 2), completed()],
        [("text", "abc")],
    ),
    "ends at another place": (
        [created(), added(message()), text("ab"), done(message(part("ab"), id="other"), 1), completed()],
        [("text", "ab")],
    ),
    "says the message again at another place": (
        [created(), added(message()), text("ab"), done(AB), done(message(part("ab"), id="x"), 1), completed()],
        [("text", "ab")],
    ),
    "text at the place of the reasoning": (
        [created(), added(reasoning()), thought("hm"), text("ab"), thought("!"),
         completed(reasoning(content=["hm!"]), AB)],
        [("reasoning", "hm!"), ("text", "ab")],
    ),
    "a refusal at the index of a text": (
        [created(), added(message()), begun(0, 0), text("a"), refused("n"), text("b"), refused("o"),
         done(message(part("ab"), NO)), completed()],
        [("text", "ab"), ("refusal", "no")],
    ),
    "arguments at the place behind their call": (
        [created(), added(function()), arguments("{}", 1), done(function("{}"), 1), completed(function("{}"))],
        [("tool_call", "c1", "f")],
    ),
    "a summary behind an announced thought": (
        [created(), added(reasoning()), begun(0, 0, {"type": "reasoning_text", "text": ""}), summed("a"), summed("b", 1),
         done(reasoning("a", "b")), completed()],
        [("reasoning", "a\n\nb")],
    ),
    # What looks alike and is right.
    "two parts": (
        [created(), added(message()), begun(0, 0), text("a"), begun(0, 1), text("b", part=1), done(A_B), completed(A_B)],
        [("text", "a"), ("text", "b")],
    ),
    "two parts in turns": (
        [created(), added(message()), begun(0, 0), begun(0, 1), text("b", part=1), text("a"), text("B", part=1),
         done(message(part("a"), part("bB"))), completed()],
        [("text", "a"), ("text", "bB")],
    ),
    "two parts, without announcements": (
        [created(), text("a"), text("b", part=1), done(A_B), completed(A_B)],
        [("text", "a"), ("text", "b")],
    ),
    "two parts at the index 0": (
        [created(), added(message()), begun(0, 0), text("a"), ended(0, 0, "a"), begun(0, 0), text("b"), ended(0, 0, "b"),
         done(A_B), completed()],
        [("text", "a"), ("text", "b")],
    ),
    "a part whose announcement was lost": (
        [created(), added(message()), begun(0, 0), text("a"), told(0, 0, "a"), text("b", part=1), told(0, 1, "b"),
         done(A_B), completed()],
        [("text", "a"), ("text", "b")],
    ),
    "a text and a refusal": (
        [created(), added(message()), begun(0, 0), text("a"), begun(0, 1, NO | {"refusal": ""}), refused("no", at=1),
         done(message(part("a"), NO)), completed()],
        [("text", "a"), ("refusal", "no")],
    ),
    # Bedrock's harmony
    "parts that begin at 1": (
        [created(), added(message()), begun(0, 1), text("a", part=1), text("b", part=1), begun(0, 2), text("c", part=2),
         done(message(part("ab"), part("c"))), completed()],
        [("text", "ab"), ("text", "c")],
    ),
    "two messages with equal texts": (
        [created(), added(message(id="m1")), text("ab"), done(message(part("ab"), id="m1")), added(message(id="m2"), 1),
         text("ab", 1), done(message(part("ab"), id="m2"), 1),
         completed(message(part("ab"), id="x"), message(part("ab"), id="y"))],
        [("text", "ab"), ("text", "ab")],
    ),
    "a message that only the last event has, equal to another": (
        [created(), added(message(id="m1")), text("ab"), done(message(part("ab"), id="m1")),
         completed(message(part("ab"), id="x"), message(part("ab"), id="y"))],
        [("text", "ab"), ("text", "ab")],
    ),
    "two calls, announced together": (
        [created(), added(function()), added(function(call_id="c2", id="fc2"), 1), arguments("{}", 1), arguments("{}"),
         done(function("{}", call_id="c2", id="fc2"), 1), done(function("{}")), completed()],
        [("tool_call", "c1", "f"), ("tool_call", "c2", "f")],
    ),
}  # fmt: skip


def read_live(chunks: Sequence[Chunk]) -> tuple[list[rd.Event], list[rd.Snapshot]]:
    """The events, and the snapshot behind each chunk."""
    decoder, live, found, seen = (
        OpenAIResponsesDecoder(),
        Fold(choice=0),
        list[rd.Event](),
        list[rd.Snapshot](),
    )
    for chunk in chunks:
        for one in decoder.decode(chunk):
            found.append(one)
            live.step(one)
        seen.append(live.snapshot)
    return found, seen


def pieces_of(found: Sequence[rd.Event], operator: Callable[[], Any]) -> str:
    return "".join(rx.from_iterable(found).pipe(operator(), ops.to_list()).run())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("numbered", [True, False])
def test_numbers_count_only_where_they_agree_with_the_content(form: str, numbered: bool) -> None:
    chunks, wanted = FORMS[form]
    if not numbered:
        chunks = [
            {name: value for name, value in chunk.items() if name != "sequence_number"} for chunk in chunks
        ]
    found, seen = read_live(chunks)
    assert violations(found) == []
    message = seen[-1]
    assert blocks(message) == wanted
    assert message.status == "complete"
    # What has been emitted can't be taken back.
    assert sorted(pieces_of(found, rd.text_deltas)) == sorted(message.text)
    assert sorted(pieces_of(found, partial(rd.text_deltas, of="reasoning"))) == sorted(message.reasoning)
    for before in seen:
        assert len(before.text) <= len(message.text)
        assert len(before.reasoning) <= len(message.reasoning)


def test_each_piece_of_a_counted_text_is_live() -> None:
    for chunks in (VLLM, VLLM_THINKS, FORMS["counts events, without announcements"][0]):
        said, (_, seen) = "", read_live(chunks)
        for chunk, snapshot in zip(chunks, seen, strict=True):
            said += chunk["delta"] if chunk["type"] == "response.output_text.delta" else ""
            assert snapshot.text == said


def test_a_text_that_was_divided_otherwise_than_its_item_says_stands_once() -> None:
    found = decode(
        created(), *(text(piece, part=n) for n, piece in enumerate("abc")), done(message(part("abc")))
    )
    assert fold(found).text == pieces_of(found, rd.text_deltas) == "abc"


def test_a_part_that_the_item_does_not_have_is_emptied() -> None:
    chunks = [
        created(),
        added(message()),
        begun(0, 0),
        text("ab"),
        begun(0, 1),
        text("xyz", part=1),
        done(AB),
    ]
    assert fold(decode(*chunks)).text == "ab"


def test_a_citation_at_a_counted_index_belongs_to_the_text() -> None:
    cited = {**noted(0), "content_index": 3}
    chunks = [created(), added(message()), begun(0, 0), text("a", part=1), text("b", part=2), cited, done(AB)]
    (block,) = fold(decode(*chunks)).blocks
    assert [one.url for one in block.citations] == ["https://x/0"]  # type: ignore[union-attr]


def test_the_call_that_is_announced_elsewhere_gets_its_arguments_once() -> None:
    item = function('{"x": 1}')
    for end in ([done(item, 1)], []):
        (call,) = fold(
            decode(created(), added(function()), arguments('{"x": 1}', 1), *end, completed(item))
        ).tool_calls
        assert thaw(call.arguments) == {"x": 1}


TEXT = st.lists(st.text("ab é\U0001f600", min_size=1, max_size=4), min_size=1, max_size=5)


@given(st.lists(TEXT, min_size=1, max_size=4), st.integers(0, 3), st.booleans())
def test_announced_parts_come_back_as_they_were(said: list[list[str]], first: int, closes: bool) -> None:
    chunks = [created(), added(message())]
    for at, pieces in enumerate(said, first):
        chunks += [begun(0, at), *(text(piece, part=at) for piece in pieces)]
        chunks += [told(0, at, "".join(pieces)), ended(0, at, "".join(pieces))] if closes else []
    wholes = ["".join(pieces) for pieces in said]
    found = decode(*chunks, done(message(*map(part, wholes))), completed())
    assert blocks(fold(found)) == [("text", whole) for whole in wholes]
    assert pieces_of(found, rd.text_deltas) == "".join(wholes)


@given(TEXT, st.lists(st.text("xy ", min_size=1, max_size=3), max_size=3))
def test_a_counted_text_stands_once_however_it_is_cut(said: list[str], thoughts: list[str]) -> None:
    found, seen = read_live(counted(said, thoughts))
    assert violations(found) == []
    whole = [("reasoning", "".join(thoughts))] if thoughts else []
    assert blocks(seen[-1]) == [*whole, ("text", "".join(said))]
    assert pieces_of(found, rd.text_deltas) == "".join(said)
    assert pieces_of(found, partial(rd.text_deltas, of="reasoning")) == "".join(thoughts)


def test_another_message_of_the_same_length_is_another_message() -> None:
    open_one = [created(), added(message()), begun(0, 0), text("Dummy"), text(" PDF")]
    other = message(part("something"), id="other")
    for end in ([done(other, 1)], [done(other, 1), done(message(part("Dummy PDF"))), completed()]):
        assert [block.text for block in fold(decode(*open_one, *end)).blocks] == ["Dummy PDF", "something"]
