"""Texts, reasoning, files and other blocks in the UI message stream."""

from __future__ import annotations

from typing import Any

import pytest
from support.ai_sdk import (
    CALL,
    OUTPUT,
    SERVER,
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
        (frame,) = told(*whole(content), sdk_version=version, provider_items=True)
        assert frame["type"] == kind


def test_the_providers_own_items_stay_on_the_server() -> None:
    listed = whole(
        {"type": "non_standard", "value": {"type": "mcp_list_tools", "tools": [{"name": "secret"}]}}
    )
    assert told(*listed, *TEXT) == told(*TEXT)
    assert "secret" in str(told(*listed, provider_items=True))


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


# Neighbouring texts.


def texts(*events: Any, **options: Any) -> list[tuple[str, bool]]:
    """The text parts that a client makes of it, and whether each carries anything else."""
    frames = frames_of([START, *events, STOP], **options)
    parts = read(frames, options.get("sdk_version", 7)).parts
    return [(part["text"], "ours" in part) for part in parts if part["type"] == "text"]


def word(text: str, index: int) -> list[Any]:
    return [ev.BlockStart(index, {"type": "text"}), ev.TextDelta(index, text), ev.BlockFinish(index)]


def test_neighbouring_texts_are_one_part() -> None:
    usage = ev.UsageUpdate(rd.TokenUsage(1, 1))
    said = [
        *word("It ", 0),
        *word("is ", 1),
        usage,
        ev.ProviderEvent("x", "ping"),
        *word("", 2),
        *word("here.", 3),
    ]
    frames = told(*said)
    assert types(frames) == ["text-start", "text-delta", "text-delta", "text-delta", "text-end"]
    assert len({frame["id"] for frame in frames}) == 1
    at_once = [*word("It ", 0), ev.BlockFinish(1, {"type": "text", "text": "is."})]
    assert texts(*at_once) == [("It is.", False)]
    untyped = [ev.BlockStart(1), ev.TextDelta(1, "is"), ev.BlockFinish(1), ev.BlockStart(2, {"text": "."})]
    assert texts(*word("It ", 0), *untyped) == [("It is.", False)]


def test_a_text_that_carries_more_is_a_part_of_its_own() -> None:
    cited = [ev.BlockStart(1, {"type": "text"}), ev.BlockDelta(1, {"citations": [{"url": "https://a"}]})]
    cited += [ev.TextDelta(1, "is"), ev.BlockFinish(1)]
    assert texts(*word("It ", 0), *cited, *word(" here.", 2)) == [
        ("It ", False),
        ("is", True),
        (" here.", False),
    ]
    signed = [ev.BlockStart(1, {"type": "text", "text": "is", "signature": "s"}), ev.BlockFinish(1)]
    assert texts(*word("It ", 0), *signed) == [("It ", False), ("is", True)]
    refusal = whole({"type": "refusal", "refusal": "No."})
    assert [text for text, _ in texts(*word("It ", 0), *refusal, *word("is.", 2))] == ["It ", "No.", "is."]


def test_what_comes_between_two_texts_keeps_them_apart() -> None:
    data = ev.Custom("news", 1)
    for between in (CALL, [data], whole({"type": "reasoning", "reasoning": "Hm."})):
        assert len(texts(*word("It ", 0), *between, *word("is.", 2))) == 2
    overlapping = [ev.BlockStart(n, {"type": "text"}) for n in (0, 1)]
    overlapping += [ev.TextDelta(1, "b"), ev.TextDelta(0, "a"), ev.BlockFinish(1), ev.BlockFinish(0)]
    assert texts(*overlapping, *word("c", 2)) == [("a", False), ("b", False), ("c", False)]
    passing = ev.Custom(
        "news", 1, transient=True
    )  # no log keeps it, so it changes nothing for who reads the log
    assert texts(*word("It ", 0), passing, *word("is.", 2)) == [("It is.", False)]


def test_what_a_text_turns_out_to_carry_stays_with_the_part() -> None:
    late = [*word("It ", 0), *word("is", 1)[:2], ev.BlockDelta(1, {"citations": [CITED]}), ev.BlockFinish(1)]
    frames = told(*late, *word(" here.", 2))
    (first, second) = of_type("text-end", frames)
    assert first["citations"][0]["startIndex"] == 3
    assert first["providerMetadata"]["rxdelta"]["citations"][0]["end_index"] == 5
    assert "citations" not in second


CITED = {"url": "https://a", "start_index": 0, "end_index": 2}


def test_a_corrected_text_is_told_again_with_its_neighbours() -> None:
    frames = told(
        *word("It ", 0), *word("was ", 1)[:2], ev.BlockFinish(1, {"text": "is "}), *word("here.", 2)
    )
    assert texts(
        *word("It ", 0), *word("was ", 1)[:2], ev.BlockFinish(1, {"text": "is "}), *word("here.", 2)
    ) == [("It is here.", False)]
    assert types(frames).count("reset-step") == 1
    (old, new) = texts(
        *word("It ", 0), *word("was ", 1)[:2], ev.BlockFinish(1, {"text": "is "}), sdk_version=6
    )
    assert (old[0], new[0]) == ("It was ", "is ")


# Taking back beside the provider's tools.


def test_stale_text_is_taken_back_beside_the_providers_tools() -> None:
    events = [
        *whole(SERVER, 0),
        *whole(OUTPUT, 1),
        *word("It was", 2)[:2],
        ev.BlockFinish(2, {"text": "It is"}),
    ]
    frames = told(*events)
    client = read(frames_of([START, *events, STOP]))
    assert types(frames).count("reset-step") == 1
    assert [part.get("text", part.get("output")) for part in client.parts[1:]] == [[1], "It is"]
    silent = read(frames_of([START, *whole(SERVER, 0), *events[4:], STOP]))
    assert [part.get("state") for part in silent.parts[1:]] == ["output-available", None]


def test_stale_text_stays_beside_a_call_that_somebody_acts_on() -> None:
    stale = [*word("It was", 2)[:2], ev.BlockFinish(2, {"text": "It is"})]
    waits = ev.ToolUpdate("s1", "awaiting_approval")
    for acted_on in (CALL, [*whole(SERVER, 0), waits], [*whole(SERVER, 0), ev.BlockStart(0, SERVER)]):
        assert "reset-step" not in types(told(*acted_on, *stale))
