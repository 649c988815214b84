"""`reasoning_tags=`: reasoning that a model writes between tags in its text is reasoning, wherever a tag is split."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import pytest
import reactivex as rx
from hypothesis import given, strategies as st

import rxdelta as rd

ev = rd.events


def chat(*texts: str, end: str | None = "stop") -> list[Any]:
    chunks: list[Any] = [
        {"id": "c", "model": "m", "choices": [{"index": 0, "delta": {"content": text}}]} for text in texts
    ]
    if end:
        chunks.append({"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": end}]})
    return chunks


def fold(chunks: list[Any], tags: Any = "think", wire_format: str = "openai-chat") -> rd.Snapshot:
    seen: list[rd.Snapshot] = []
    broken: list[Any] = []
    rx.from_iterable(chunks).pipe(
        rd.decode(wire_format, reasoning_tags=tags),
        rd.validate(lambda violation, event: broken.append((violation, event))),
        rd.scan_deltas(),
    ).subscribe(seen.append)
    assert [violation for violation, _ in broken if violation != "missing_message_finish"] == []
    for before, after in pairwise(seen):
        assert shown(after).startswith(shown(before))  # a text may become reasoning in its place
        assert after.reasoning.startswith(before.reasoning)
    return seen[-1]


def shown(reply: rd.Snapshot) -> str:
    return "".join(block.text or "" for block in reply.blocks if isinstance(block, rd.ContentPart))


def blocks(reply: rd.Snapshot) -> list[tuple[str, Any]]:
    return [
        (block.type, block.text if isinstance(block, rd.ContentPart) else block.arguments)
        for block in reply.blocks
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<think>Hm.</think>Hi", [("reasoning", "Hm."), ("text", "Hi")]),
        ("Hi<think>Hm.</think>", [("text", "Hi"), ("reasoning", "Hm.")]),
        ("a<think>b</think>c<think>d</think>e",
         [("text", "a"), ("reasoning", "b"), ("text", "c"), ("reasoning", "d"), ("text", "e")]),
        ("<think>\nHm.\n</think>\n\nHi", [("reasoning", "\nHm.\n"), ("text", "\n\nHi")]),
        ("<think></think>Hi", [("text", "Hi")]),
        ("a < b, a <thin, </thin", [("text", "a < b, a <thin, </thin")]),
        ("<think>a <think> b</think>", [("reasoning", "a <think> b")]),
        ("<think>never closed", [("reasoning", "never closed")]),
        ("ends in half a tag <thi", [("text", "ends in half a tag <thi")]),
        ("<think>half the end </thi", [("reasoning", "half the end </thi")]),
        ("<<think>x</think>", [("text", "<"), ("reasoning", "x")]),
        ("<thinking>no</thinking>", [("text", "<thinking>no</thinking>")]),
        ("Hm.</think>Hi", [("reasoning", "Hm."), ("text", "Hi")]),
        ("Write `</think>` here", [("text", "Write `</think>` here")]),
        ("Write `</think>` here.</think>Hi", [("reasoning", "Write `</think>` here."), ("text", "Hi")]),
        ("`</think>', no</think>Hi", [("reasoning", "`"), ("text", "', no</think>Hi")]),
        ("So:\n```\n</think>\n```\n</think>Hi", [("reasoning", "So:\n```\n</think>\n```\n"), ("text", "Hi")]),
        ("So:\n```\na\n</think>", [("text", "So:\n```\na\n</think>")]),
    ],
)  # fmt: skip
def test_what_is_between_tags_is_reasoning(text: str, expected: list[tuple[str, str]]) -> None:
    assert blocks(fold(chat(text))) == expected
    assert blocks(fold(chat(*text))) == expected
    for at in range(1, len(text)):
        assert blocks(fold(chat(text[:at], text[at:]))) == expected


def test_several_names_and_each_closes_its_own() -> None:
    reply = fold(chat("<a>1</b>2</a>3<b>4</a>5</b>"), tags=("a", "b"))
    assert blocks(reply) == [("reasoning", "1</b>2"), ("text", "3"), ("reasoning", "4</a>5")]


def test_a_cut_stream_keeps_what_may_have_become_a_tag() -> None:
    reply = fold(chat("Hi <thi", end=None))
    assert (reply.status, reply.text) == ("incomplete", "Hi <thi")


def test_reasoning_that_comes_as_such_stays() -> None:
    chunks: list[Any] = [
        {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "<think>"}}]},
        *chat("Hi"),
    ]
    assert blocks(fold(chunks)) == [("reasoning", "<think>"), ("text", "Hi")]


ANTHROPIC = {
    "type": "message",
    "id": "m",
    "role": "assistant",
    "model": "claude",
    "content": [
        {"type": "text", "text": "<think>a</think>b", "citations": [{"cited_text": "x", "type": "y"}]},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}},
    ],
    "stop_reason": "tool_use",
}


def test_a_body_that_was_not_streamed_is_split_too_and_citations_are_of_the_text() -> None:
    reply = fold([ANTHROPIC], wire_format="anthropic-messages")
    assert blocks(reply) == [("reasoning", "a"), ("text", "b"), ("tool_call", {"x": 1})]
    assert [len(block.citations) for block in reply.blocks if isinstance(block, rd.ContentPart)] == [0, 1]


def test_a_finish_that_repeats_the_text_does_not_undo_the_split() -> None:
    class Repeating:
        def decode(self, chunk: Any, /) -> list[rd.Event]:
            return [
                ev.MessageStart("m"),
                ev.BlockStart(7, {"type": "text"}),
                ev.TextDelta(7, chunk),
                ev.BlockFinish(7, {"type": "text", "text": chunk}),
                ev.BlockStart(9, {"type": "text"}),
                ev.BlockFinish(9, {"type": "text", "text": "<think>c</think>d"}),
                ev.MessageFinish("stop"),
            ]

        def close(self) -> list[rd.Event]:
            return []

    seen = rx.of("<think>a</think>b").pipe(rd.decode(Repeating, reasoning_tags="think"), rd.scan_deltas())
    expected = [("reasoning", "a"), ("text", "b"), ("reasoning", "c"), ("text", "d")]
    assert blocks(seen.run()) == expected


@pytest.mark.parametrize("wrong", ["", "a b", "<think>", ["ok", ""], 3, [3], None])
def test_a_name_that_is_none_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError, match="reasoning_tags"):
        rd.decode("openai-chat", reasoning_tags=wrong)


PIECES = st.sampled_from(
    ["<think>", "</think>", "<", "think>", "</", "a", "\n", "<think", ">", "é", "`", "'", "\n```\n", "  ~~~"]
)


def end_of_thought(text: str) -> int:
    """Where a thought ends that has no opening tag; -1 if there is none."""
    at = text.partition("<think>")[0].find("</think>")
    while at >= 0:
        before, after = text[:at][-1:], text[at + 8 : at + 9]
        quoted = before != "" and before in "`'\"" and after in ("", before)
        fences = [line for line in text[:at].split("\n") if re.match(" {0,3}(```|~~~)", line)]
        if not quoted and len(fences) % 2 == 0:
            break
        at = text.partition("<think>")[0].find("</think>", at + 8)
    return at


def cut_by_hand(text: str) -> list[tuple[str, str]]:
    """The blocks of a text that lies there whole."""
    found: list[tuple[str, str]] = []
    kind, tags = "text", {"text": "<think>", "reasoning": "</think>"}
    end = end_of_thought(text)
    if end >= 0:
        found += [("reasoning", text[:end])] if end else []
        text = text[end + 8 :]
    while True:
        piece, tag, text = text.partition(tags[kind])
        found += [(kind, piece)] if piece else []
        if not tag:
            return found
        kind = "reasoning" if kind == "text" else "text"


@given(text=st.lists(PIECES, max_size=20).map("".join), cuts=st.lists(st.integers(0, 80), max_size=8))
def test_where_it_is_cut_changes_nothing_and_only_tags_go(text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    assert blocks(fold(chat(text))) == cut_by_hand(text)
    assert blocks(fold(chat(*(text[a:b] for a, b in pairwise(places))))) == cut_by_hand(text)
