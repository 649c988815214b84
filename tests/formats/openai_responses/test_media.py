"""OpenAI Responses: images and audio."""

from __future__ import annotations

from typing import Any

from support.openai_responses import (
    Chunk,
    added,
    completed,
    created,
    decode,
    done,
    event,
    fold,
    only,
    reply,
)

from rxdelta.core.events import (
    ProviderEvent,
)

BEGUN = {"type": "image_generation_call", "id": "ig", "status": "in_progress", "result": None}


def frame(at: int, data: str, **more: Any) -> Chunk:
    more = {"partial_image_index": at, "partial_image_b64": data, **more}
    return event("image_generation_call.partial_image", **more)


def test_an_image_is_its_newest_frame_until_it_has_its_data() -> None:
    item = {
        **BEGUN,
        "status": "completed",
        "result": "QUJD",
        "output_format": "webp",
        "revised_prompt": "a cat",
    }
    chunks = [created(), added(BEGUN), event("image_generation_call.generating"), frame(0, "QQ==")]
    image = only(reply(*chunks))
    assert (image.type, image.text, image.open) == ("image", "QQ==", True)
    chunks += [frame(1, "QUI=", output_format="webp")]
    assert (only(reply(*chunks)).text, only(reply(*chunks)).options["mime_type"]) == ("QUI=", "image/webp")
    found = decode(*chunks, done(item), completed(item))
    image = only(fold(found))
    assert (image.type, image.text, image.options["mime_type"]) == ("image", "QUJD", "image/webp")
    assert image.options["revised_prompt"] == "a cat"
    assert image.options["status"] == "completed"
    assert image == only(reply(created(), added(BEGUN), done(item), completed(item)))
    assert [one for one in found if isinstance(one, ProviderEvent)] == []


def test_a_frame_that_comes_late_is_passed_on() -> None:
    found = decode(created(), added(BEGUN), frame(1, "QUI="), frame(0, "QQ=="))
    assert only(fold(found)).text == "QUI="
    assert [one.payload["partial_image_b64"] for one in found if isinstance(one, ProviderEvent)] == ["QQ=="]


def test_audio_is_one_block_with_its_data_joined_and_its_transcript() -> None:
    def piece(kind: str, said: str = "") -> Chunk:
        return {"type": f"response.audio.{kind}", "delta": said}

    snapshot = reply(
        created(), piece("delta", "AA"), piece("transcript.delta", "He"), piece("delta", "BB"),
        piece("transcript.delta", "llo"), piece("done"), piece("transcript.done"), completed(),
    )  # fmt: skip
    assert (only(snapshot).type, only(snapshot).text, only(snapshot).options["transcript"]) == (
        "audio",
        "AABB",
        "Hello",
    )
