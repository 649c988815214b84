"""Texts, reasoning, files and other blocks in the UI message stream."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk import (
    CALL,
    OUTPUT,
    START,
    STOP,
    TEXT,
    frames_of,
    of_type,
    read,
    told,
    types,
    whole,
)

import rxdelta as rd

ev = rd.events


def test_u12_a_character_that_comes_in_halves_is_told_whole() -> None:
    halves = [ev.TextDelta(0, "a\ud83d"), ev.TextDelta(0, "\ude00"), ev.TextDelta(0, "b\ud83d")]
    frames = told(TEXT[0], *halves)
    assert [frame["delta"] for frame in of_type("text-delta", frames)] == ["a", "😀", "b", "\ufffd"]


def test_a_refusal_is_a_text_that_comes_back_as_one() -> None:
    frames = told(*whole({"type": "refusal", "refusal": "No."}))
    assert types(frames) == ["text-start", "text-delta", "text-end"]
    assert frames[-1]["providerMetadata"] == {"rxdelta": {"type": "refusal"}}


def test_a_signature_travels_with_its_reasoning() -> None:
    frames = told(*whole({"type": "reasoning", "reasoning": "Hm.", "signature": "s"}))
    assert frames[-1]["providerMetadata"] == {"rxdelta": {"options": {"signature": "s"}}}


def test_reasoning_may_stay_on_the_server() -> None:
    frames = told(*whole({"type": "reasoning", "reasoning": "Hm.", "signature": "s"}), *TEXT, reasoning=False)
    assert types(frames) == ["text-start", "text-delta", "text-end"]


def test_a_file_is_told_when_it_is_whole() -> None:
    image = [ev.BlockStart(1, {"type": "image", "mime_type": "image/webp"}), ev.DataDelta(1, "AA")]
    (frame,) = told(*image, ev.DataDelta(1, "BB"), ev.BlockFinish(1))
    assert (frame["url"], frame["mediaType"]) == ("data:image/webp;base64,AABB", "image/webp")
    assert told(*whole({"type": "file_url", "data": "https://a/b.pdf"}))[0]["url"] == "https://a/b.pdf"
    assert told(*whole({"type": "video", "url": "https://a/b.mp4"}))[0]["mediaType"] == "video/mp4"


def test_half_a_file_is_not_told() -> None:
    frames = frames_of([START, ev.BlockStart(1, {"type": "image"}), ev.DataDelta(1, "AA")], ValueError())
    assert of_type("file", frames) == []


@pytest.mark.parametrize(("version", "kind"), [(7, "custom"), (6, "data-block")])
def test_a_block_that_no_part_is_like_goes_whole(version: int, kind: str) -> None:
    for content in ({"type": "new", "a": 1}, {"type": "file", "file_id": "f1"}, OUTPUT):
        (frame,) = told(*whole(content), sdk_version=version)
        assert frame["type"] == kind


def test_what_the_finish_adds_is_told_and_what_it_changes_is_told_anew() -> None:
    longer = told(*TEXT[:2], ev.BlockFinish(0, {"type": "text", "text": "Hi there"}))
    assert [frame["delta"] for frame in of_type("text-delta", longer)] == ["Hi", " there"]
    other = frames_of([START, *TEXT[:2], ev.BlockFinish(0, {"type": "text", "text": "Bye"}), STOP])
    assert [part.get("text") for part in read(other).parts] == [None, "Bye"]


@pytest.mark.parametrize("options", [{"sdk_version": 6}, {}])
def test_what_cannot_be_taken_back_stays_beside_what_counts(options: Any) -> None:
    changed = [*CALL, *TEXT[:2], ev.BlockFinish(0, {"type": "text", "text": "Bye"})]
    frames = frames_of([START, *changed, STOP], **options)  # the client may be running the call
    assert [part["text"] for part in read(frames).parts if part["type"] == "text"] == ["Hi", "Bye"]


@pytest.mark.parametrize(("version", "shown"), [(7, ["Bye"]), (6, ["Hi", "Bye"])])
def test_a_second_end_overrules_the_text_of_the_first(version: int, shown: list[str]) -> None:
    events = [START, *TEXT, ev.BlockFinish(0, {"type": "text", "text": "Bye"}), STOP]
    client = read(frames_of(events, sdk_version=version), version)
    assert [part["text"] for part in client.parts if part["type"] == "text"] == shown


def test_a_second_end_that_repeats_the_first_shows_nothing() -> None:
    again = ev.BlockFinish(0, {"type": "text", "text": "Hi"})
    assert told(*TEXT, again, sdk_version=6) == told(*TEXT, sdk_version=6)


def test_half_a_character_in_a_block_that_only_ends_is_marked_once() -> None:
    frames = told(ev.BlockFinish(0, {"type": "text", "text": "a\ud83d"}))
    assert types(frames) == ["text-start", "text-delta", "text-end"]
    assert frames[1]["delta"] == "a\ufffd"
