"""`reasoning_tags=`: a closing tag without its opening one, because the model's template opens it in the prompt."""

from __future__ import annotations

from typing import Any

import pytest
import reactivex as rx
from formats.test_reasoning_tags import ANTHROPIC, blocks, chat, fold
from reactivex import operators as ops
from support import ag_ui, ai_sdk
from support.shared import recordings

import rxdelta as rd

ev = rd.events
SPOKEN = ["So they ", "ask.", "\n</thi", "nk>", "\n\nHi", " there"]


def decoded(chunks: list[Any], tags: Any = "think") -> list[rd.Event]:
    return rx.from_iterable(chunks).pipe(rd.decode("openai-chat", reasoning_tags=tags), ops.to_list()).run()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ponder</think>answer", [("reasoning", "ponder"), ("text", "answer")]),
        ("\nHm.\n</think>\n\nHi", [("reasoning", "\nHm.\n"), ("text", "\n\nHi")]),
        ("</think>Hi", [("text", "Hi")]),
        ("never answered</think>", [("reasoning", "never answered")]),
        ("a</think>b</think>c", [("reasoning", "a"), ("text", "b</think>c")]),
        ("a</think>b<think>c</think>d",
         [("reasoning", "a"), ("text", "b"), ("reasoning", "c"), ("text", "d")]),
        ("<think></think>b</think>c", [("text", "b</think>c")]),
        ("a<think>b</think>c</think>d", [("text", "a"), ("reasoning", "b"), ("text", "c</think>d")]),
        ("I use `x`</think>Use y", [("reasoning", "I use `x`"), ("text", "Use y")]),
        ("```\nx\n```</think>Use y", [("reasoning", "```\nx\n```"), ("text", "Use y")]),
        ("Is `</think>` a tag?</think>Yes", [("reasoning", "Is `</think>` a tag?"), ("text", "Yes")]),
        ("It ends with `</think>`.", [("text", "It ends with `</think>`.")]),
        ("The tag \"</think>\", '</think>'", [("text", "The tag \"</think>\", '</think>'")]),
        ("It ends with “</think>”, «</think>» or 「</think>」.", [("text", "It ends with “</think>”, «</think>» or 「</think>」.")]),
        ("He said “go”</think>“Go”", [("reasoning", "He said “go”"), ("text", "“Go”")]),
        ("Write `</think>", [("text", "Write `</think>")]),
        ("Like this:\n```xml\nHm.\n</think>\n```\nSee?", [("text", "Like this:\n```xml\nHm.\n</think>\n```\nSee?")]),
        ("So:\n```\n</think></think>\n```\nb</think>c",
         [("reasoning", "So:\n```\n</think></think>\n```\nb"), ("text", "c")]),
        ("~~~\n</think></think>\n~~~\nb</think>c", [("reasoning", "~~~\n</think></think>\n~~~\nb"), ("text", "c")]),
    ],
)  # fmt: skip
def test_what_stands_before_it_was_reasoning(text: str, expected: list[tuple[str, str]]) -> None:
    assert blocks(fold(chat(text))) == expected
    assert blocks(fold(chat(*text))) == expected
    for at in range(1, len(text)):
        assert blocks(fold(chat(text[:at], text[at:]))) == expected


@pytest.mark.parametrize(("chunks", "_expected"), recordings("openai-chat"))
def test_recorded_replies_fold_alike_without_the_opening_tag(chunks: list[Any], _expected: Any) -> None:
    """As the same model replies where the prompt ends with the tag."""
    first = chunks[0].get("choices") or [{}]
    if len(first) != 1 or first[0].get("delta", {}).get("content") != "<think>":
        return
    whole, headless = fold(chunks), fold(chunks[1:])
    assert blocks(whole) == blocks(headless)
    assert [block.type for block in headless.blocks] == ["reasoning", "text"]


def test_not_behind_reasoning_that_came_as_such() -> None:
    thought: Any = {"id": "c", "choices": [{"index": 0, "delta": {"reasoning_content": "Hm."}}]}
    assert blocks(fold([thought, *chat("a</think>b")])) == [("reasoning", "Hm."), ("text", "a</think>b")]


def test_only_in_the_first_text_of_a_message() -> None:
    parts = [{"type": "text", "text": text} for text in ("a", "b</think>c")]
    body = {**ANTHROPIC, "content": parts, "stop_reason": "end_turn"}
    assert blocks(fold([body], wire_format="anthropic-messages")) == [("text", "a"), ("text", "b</think>c")]
    call = {"type": "tool_use", "id": "t", "name": "f", "input": {}}
    body = {**ANTHROPIC, "content": [call, parts[1]], "stop_reason": "tool_use"}
    assert blocks(fold([body], wire_format="anthropic-messages")) == [
        ("tool_call", {}),
        ("reasoning", "b"),
        ("text", "c"),
    ]


def test_fields_of_the_text_stay_with_the_text() -> None:
    cited = [{"cited_text": "x", "type": "y"}]

    class Cited:
        def decode(self, chunk: Any, /) -> list[rd.Event]:
            return chunk

        def close(self) -> list[rd.Event]:
            return []

    streamed = [
        [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "", "note": 1})],
        [ev.TextDelta(0, "a")],
        [ev.BlockDelta(0, {"citations": cited})],
        [ev.TextDelta(0, "</think>b"), ev.BlockFinish(0), ev.MessageFinish("stop")],
    ]
    reply = rx.from_iterable(streamed).pipe(rd.decode(Cited, reasoning_tags="think"), rd.scan_deltas()).run()
    thought, text = reply.blocks
    assert (thought, text) == (
        rd.ContentPart("reasoning", "a"),
        rd.ContentPart("text", "b", {"note": 1}, [rd.Citation.from_dict(cited[0])]),
    )


@pytest.mark.parametrize("reasoning", [True, False])
def test_browsers_take_the_text_back(reasoning: bool) -> None:
    events = decoded(chat(*SPOKEN))
    client = ai_sdk.read(ai_sdk.frames_of(events, reasoning=reasoning))
    shown = [(part["type"], part["text"]) for part in client.parts if "text" in part]
    thought = [("reasoning", "So they ask.\n")] if reasoning else []
    assert shown == [*thought, ("text", "\n\nHi there")]
    messages = ag_ui.read(ag_ui.told(*events, reasoning=reasoning)).messages
    said = [(one["role"], one["content"]) for one in messages if one["role"] != "activity"]
    assert said == [*thought, ("assistant", "\n\nHi there")]


def test_an_older_client_of_the_ai_sdk_keeps_the_text() -> None:
    client = ai_sdk.read(ai_sdk.frames_of(decoded(chat(*SPOKEN)), sdk_version=6), 6)
    shown = [(part["type"], part["text"]) for part in client.parts if "text" in part]
    assert shown == [("text", "So they ask.\n"), ("reasoning", "So they ask.\n"), ("text", "\n\nHi there")]


def test_many_tags_in_code_cost_linear_time() -> None:
    text = "```\n" + "</think>x" * 20_000
    assert fold(chat(text)).text == text
