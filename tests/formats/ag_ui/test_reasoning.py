"""Reasoning to an AG-UI client."""

from __future__ import annotations

import json

from support.ag_ui import call, message, read, text, thought, told, types

import rxdelta as rd

ev = rd.events


def test_g8_reasoning_is_a_message_in_a_span_with_what_only_its_provider_can_read() -> None:
    frames = told(*message(thought(0, "hm", signature="c2ln", item_id="rs_1")))
    assert types(frames)[1:-1] == [
        "REASONING_START",
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "REASONING_ENCRYPTED_VALUE",
        "REASONING_END",
    ]
    (said,) = read(frames).messages
    assert said["encryptedValue"] == "c2ln"
    assert said["metadata"] == {"rxdelta": {"options": {"item_id": "rs_1"}}}


def test_g8_reasoning_without_words_is_a_span_and_a_message_only_if_it_holds_something() -> None:
    assert types(told(*message(thought(0))))[1:-1] == ["REASONING_START", "REASONING_END"]
    (said,) = read(told(*message(thought(0, data="x", redacted=True)))).messages
    assert said["encryptedValue"] == "x"
    assert said["metadata"]["rxdelta"] == {"encrypted": "data", "options": {"redacted": True}}


def test_g8_reasoning_can_be_kept_back_with_its_signatures() -> None:
    signed = [*call(1, "c1", "{}")[:-1], ev.BlockDelta(1, {"signature": "s", "a": 1}), ev.BlockFinish(1)]
    frames = told(*message(thought(0, "hm", signature="s"), signed, text(2, "Hi")), reasoning=False)
    assert not any("REASONING" in kind for kind in types(frames))
    assert '"s"' not in json.dumps(frames)
    assert read(frames).messages[0]["toolCalls"][0]["metadata"]["rxdelta"] == {"metadata": {"a": 1}}
