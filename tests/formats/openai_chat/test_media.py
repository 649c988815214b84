"""Images and audio."""

from __future__ import annotations

from support.openai_chat import chunk, decode, of_type, parts_of, reply, shape, text

from rxdelta.core.events import BlockDelta


def test_audio_is_one_block_with_its_data_joined_and_its_transcript() -> None:
    pieces = [
        {"id": "au"},
        {"transcript": "Hel"},
        {"data": "AA"},
        {"data": "BB", "transcript": "lo"},
        {"expires_at": 9},
        {},
    ]
    message = reply(*(chunk({"audio": piece}) for piece in pieces), chunk({}, "stop"))
    assert shape(message) == [("audio", "AABB")]
    assert parts_of(message)[0].options == {"id": "au", "transcript": "Hello", "expires_at": 9}


def test_a_long_transcript_costs_no_more_than_a_few_times_its_length() -> None:
    found = decode(*(chunk({"audio": {"transcript": "word "}}) for _ in range(2000)), chunk({}, "stop"))
    told = [event.fields["transcript"] for event in of_type(BlockDelta, found)]
    assert told[:2] == ["word ", "word word "]
    assert told[-1] == "word " * 2000
    assert sum(map(len, told)) < 12 * len(told[-1])


def test_an_image_is_data_or_an_address() -> None:
    inline = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}, "index": 0}
    linked = {"type": "image_url", "image_url": {"url": "https://x/y.png", "detail": "low"}, "alt": "y"}
    message = reply(
        chunk({"content": "a", "images": [inline, linked, {"type": "image_url"}]}), text("b", "stop")
    )
    assert shape(message) == [
        ("text", "a"),
        ("image", "AAAA"),
        ("image", None),
        ("unsupported", None),
        ("text", "b"),
    ]
    assert [part.options for part in parts_of(message)[1:3]] == [
        {"mime_type": "image/png"}, {"url": "https://x/y.png", "alt": "y", "detail": "low"},
    ]  # fmt: skip
