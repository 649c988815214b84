"""The first two pipelines of the documentation, from chunks to what is drawn and what is kept."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from support.loops import Stream, run, turns
from support.replies import ANTHROPIC, OPENAI, REPLIES, sse

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FORMATS = pytest.mark.parametrize("wire_format", sorted(REPLIES))


def sdk_objects(wire_format: str) -> list[Any]:
    if wire_format == "openai-chat":
        chat = pytest.importorskip("openai.types.chat")
        return [chat.ChatCompletionChunk.model_validate(chunk) for chunk in OPENAI]
    types = pytest.importorskip("anthropic.types")
    pydantic = pytest.importorskip("pydantic")
    event = pydantic.TypeAdapter(types.RawMessageStreamEvent)
    return [event.validate_python(chunk) for chunk in ANTHROPIC if chunk["type"] != "ping"]


def source(wire_format: str, form: str, end: Exception | None = None, cut: int | None = None) -> Any:
    """The reply as the client's `create(stream=True)` gives it, and the operators that read its chunks."""
    chunks: list[Any] = (sdk_objects(wire_format) if form == "sdk" else REPLIES[wire_format])[:cut]
    operators: list[Any] = [rd.decode(wire_format)]
    if form == "bytes":
        body = sse(chunks) if cut is None else sse(chunks).removesuffix(b"data: [DONE]\n\n")
        chunks = [body[start : start + 7] for start in range(0, len(body), 7)]
        operators.insert(0, rd.parse_sse())
    stream = Stream(*chunks, end=end)

    async def create() -> Any:
        await asyncio.sleep(0)
        return stream

    return stream, rd.from_async_iterable(create).pipe(*operators)


@FORMATS
@pytest.mark.parametrize("form", ["dicts", "bytes", "sdk"])
def test_1_drawing_the_reply(wire_format: str, form: str) -> None:
    stream, events = source(wire_format, form)

    async def main() -> None:
        drawn: list[rd.Snapshot] = []

        async def draw(snapshot: rd.Snapshot) -> None:
            drawn.append(snapshot)
            await asyncio.sleep(0)

        await rd.for_each(events.pipe(rd.scan_deltas(), rd.throttle_latest(3600)), draw)
        assert len(drawn) == 2  # the first and the last: an hour hasn't passed
        last = drawn[-1]
        assert (last.text, last.status, last.finish_reason) == ("Let me look.", "complete", "tool_use")
        assert [(call.name, call.arguments, call.status) for call in last.tool_calls] == [
            ("look", {"at": "sea"}, "complete")
        ]
        assert stream.closed == 1

    run(main)


@FORMATS
@pytest.mark.parametrize("form", ["dicts", "bytes", "sdk"])
def test_2_the_final_message(wire_format: str, form: str) -> None:
    stream, events = source(wire_format, form)

    async def main() -> None:
        message = await rd.last_value(events.pipe(rd.scan_deltas(), rd.to_message()))
        assert isinstance(message, rd.Message)
        assert (message.text, message.model) == ("Let me look.", "small")
        assert [call.arguments for call in message.tool_calls] == [{"at": "sea"}]
        assert message.usage is not None
        assert (message.usage.input_tokens, message.usage.output_tokens) == (3, 5)
        assert stream.closed == 1

    run(main)


@FORMATS
@pytest.mark.parametrize("form", ["dicts", "bytes", "sdk"])
def test_1_the_last_state_is_drawn_also_when_the_connection_breaks(wire_format: str, form: str) -> None:
    cut = {"openai-chat": 5, "anthropic-messages": 8}[wire_format] - (form == "sdk" and wire_format[0] == "a")
    stream, events = source(wire_format, form, ConnectionError("reset"), cut)

    async def main() -> None:
        drawn: list[rd.Snapshot] = []
        with pytest.raises(rd.StreamInterrupted) as raised:
            await rd.for_each(events.pipe(rd.scan_deltas(), rd.throttle_latest(3600)), drawn.append)
        assert isinstance(raised.value.__cause__, ConnectionError)
        assert raised.value.snapshot is drawn[-1]
        assert (drawn[-1].text, drawn[-1].status) == ("Let me look.", "incomplete")
        assert [call.name for call in drawn[-1].tool_calls] == ["look"]
        assert stream.closed == 1

    run(main)


@FORMATS
def test_1_an_error_inside_the_stream_is_raised_with_what_had_come(wire_format: str) -> None:
    async def main() -> None:
        stream, _ = source(wire_format, "dicts", cut=5)
        error: dict[str, Any] = {"error": {"type": "overloaded_error", "message": "Overloaded"}}
        stream.items.append(error if wire_format[0] == "o" else {"type": "error", **error})
        drawn: list[rd.Snapshot] = []
        pipeline = rd.from_async_iterable(stream).pipe(
            rd.decode(wire_format), rd.scan_deltas(), rd.throttle_latest(3600)
        )
        with pytest.raises(rd.ProviderError, match="Overloaded") as raised:
            await rd.for_each(pipeline, drawn.append)
        assert raised.value.type == "overloaded_error"
        assert raised.value.snapshot is drawn[-1]
        assert drawn[-1].text == "Let me look."

    run(main)


@FORMATS
def test_33_a_reply_that_was_cut_off_is_no_message(wire_format: str) -> None:
    async def main() -> None:
        _, events = source(wire_format, "dicts", cut=5)
        with pytest.raises(rd.IncompleteMessageError) as raised:
            await rd.last_value(events.pipe(rd.scan_deltas(), rd.to_message()))
        assert raised.value.snapshot is not None
        assert raised.value.snapshot.text == "Let me look."

    run(main)


def test_32_a_stream_that_never_ends_is_left_at_once_and_what_had_come_was_drawn() -> None:
    async def main() -> None:
        stream = Stream(*OPENAI[:3], hold=True)
        drawn: list[rd.Snapshot] = []
        pipeline = rd.from_async_iterable(stream).pipe(rd.decode("openai-chat"), rd.scan_deltas())
        drawing = asyncio.ensure_future(rd.for_each(pipeline, drawn.append))
        await turns()
        drawing.cancel()
        await asyncio.wait([drawing])
        assert (drawn[-1].text, stream.cancelled, stream.closed) == ("Let me look.", 1, 1)

    run(main)


def test_31_keep_alives_are_not_drawn() -> None:
    async def body() -> AsyncIterator[bytes]:
        chunks = [f"data: {chunk}\n\n" for chunk in sse(OPENAI).decode().split("data: ")[1:]]
        for chunk in chunks:
            yield b": keep-alive\n\n" * 1000
            yield chunk.encode()

    async def main() -> None:
        plain: list[Any] = []
        alive: list[Any] = []
        scanned = rd.from_async_iterable(lambda: Stream(*OPENAI)).pipe(
            rd.decode("openai-chat"), rd.scan_deltas()
        )
        await rd.for_each(scanned, plain.append)
        kept = rd.from_async_iterable(body).pipe(rd.parse_sse(), rd.decode("openai-chat"), rd.scan_deltas())
        await rd.for_each(kept, alive.append)
        assert alive == plain

    run(main)
