"""Texts to an AG-UI client: which message a text continues, and what stands at its end."""

from __future__ import annotations

from typing import Any

from support.ag_ui import call, message, read, shown, text, told

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


def test_g5_text_goes_on_in_one_message_until_something_else_comes() -> None:
    frames = told(*message(text(0, "a"), text(1, "b"), call(2, "c1"), text(3, "c")))
    assert [(f["type"], f["messageId"]) for f in frames if f["type"].startswith("TEXT")] == [
        ("TEXT_MESSAGE_START", "m1"),
        ("TEXT_MESSAGE_CONTENT", "m1"),
        ("TEXT_MESSAGE_CONTENT", "m1"),
        ("TEXT_MESSAGE_END", "m1"),
        ("TEXT_MESSAGE_START", "m1~1"),
        ("TEXT_MESSAGE_CONTENT", "m1~1"),
        ("TEXT_MESSAGE_END", "m1~1"),
    ]


def test_g5_texts_that_grow_at_once_are_messages_of_their_own() -> None:
    starts = [ev.BlockStart(0, {"type": "text"}), ev.BlockStart(1, {"type": "text"})]
    pieces = [ev.TextDelta(0, "a"), ev.TextDelta(1, "x"), ev.TextDelta(0, "b"), ev.TextDelta(1, "y")]
    client = read(told(ev.MessageStart("m1"), *starts, *pieces, ev.MessageFinish()))
    assert [one["content"] for one in client.messages] == ["ab", "xy"]


def test_a_refusal_is_text_that_is_known_as_one() -> None:
    refusal = [ev.BlockStart(1, {"type": "refusal"}), ev.TextDelta(1, "No."), ev.BlockFinish(1)]
    client = read(told(*message(text(0, "Hm."), refusal)))
    assert [one["content"] for one in client.messages] == ["Hm.", "No."]
    assert client.messages[1]["metadata"]["rxdelta"]["parts"] == [{"length": 3, "type": "refusal"}]


def test_citations_stand_at_the_end_of_their_text() -> None:
    cited = [*text(0, "Hi")[:-1], ev.BlockDelta(0, {"citations": [{"url": "u"}]}), ev.BlockFinish(0)]
    (said,) = read(told(*message(cited, text(1, " there")))).messages
    assert said["metadata"]["rxdelta"]["parts"] == [{"length": 2, "citations": [{"url": "u"}]}, {"length": 6}]


def test_a_character_that_comes_in_halves_is_told_whole() -> None:
    frames = told(*message(text(0, "a\ud83d", "\ude00b", "\ud83d")))
    assert shown(read(frames).messages)["text"] == "a😀b\ufffd"
