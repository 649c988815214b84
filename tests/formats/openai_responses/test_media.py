"""OpenAI Responses: images and audio."""

from __future__ import annotations

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


def test_an_image_has_its_data_at_the_end_and_its_frames_are_passed_on() -> None:
    begin = {"type": "image_generation_call", "id": "ig", "status": "in_progress", "result": None}
    item = {
        **begin,
        "status": "completed",
        "result": "QUJD",
        "output_format": "webp",
        "revised_prompt": "a cat",
    }
    frame = event("image_generation_call.partial_image", partial_image_index=0, partial_image_b64="QQ==")
    found = decode(
        created(), added(begin), event("image_generation_call.generating"), frame, done(item), completed(item)
    )
    image = only(fold(found))
    assert (image.type, image.text, image.options["mime_type"]) == ("image", "QUJD", "image/webp")
    assert image.options["revised_prompt"] == "a cat"
    assert image.options["status"] == "completed"
    passed = [one for one in found if isinstance(one, ProviderEvent)]
    assert [(one.name, one.payload["partial_image_b64"]) for one in passed] == [(frame["type"], "QQ==")]


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
