"""Texts to an AG-UI client: which message a text continues, and what stands at its end."""

from __future__ import annotations

from support.ag_ui import call, message, text, told


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
