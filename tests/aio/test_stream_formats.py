"""`rd.stream` on every recorded format is `decode` of its name and a fold: as dicts, bytes and SDKs' objects."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from support.loops import run
from support.sdk_objects import SDK_FORMATS, sdk_objects
from support.shared import RECORDED, recordings

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator


def cases(wire_format: str) -> Iterator[Any]:
    """The recordings: the first in each way, half of the others in one of them, and in the soak all in all ways."""
    ways = ["dicts", "bytes", *(["objects"] if wire_format in SDK_FORMATS else [])]
    for number, case in enumerate(recordings(wire_format)):
        for place, how in enumerate(ways):
            rank = pytest.mark.slow if number % (2 * len(ways)) == place else pytest.mark.soak
            marks = [*case.marks, *([rank] if number else [])]
            name = f"{wire_format}/{how}/{case.id}"
            yield pytest.param(wire_format, how, case.values[0], id=name, marks=marks)


@pytest.mark.parametrize(
    ("wire_format", "how", "chunks"),
    [case for wire_format in RECORDED for case in cases(wire_format)],
)
def test_a_recording(wire_format: str, how: str, chunks: list[Any]) -> None:
    given, source = chunks, chunks
    if how == "objects":
        try:
            given = source = sdk_objects(wire_format, chunks)
        except ValueError:
            pytest.skip("the SDK refuses this chunk")
    elif how == "bytes":
        body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode()
        source = [body[at : at + 999] for at in range(0, len(body), 999)]
        given = [chunk for chunk in chunks if chunk != "[DONE]"]

    async def pieces() -> AsyncIterator[Any]:
        for item in source:
            yield item

    async def asynchronous() -> Any:
        async with rd.stream(pieces) as reply:
            return await ending(reply)

    async def named() -> Any:
        async with rd.stream(pieces, wire_format) as reply:
            return await ending(reply)

    async def ending(reply: rd.types.Reply) -> Any:
        try:
            snapshot = reply.snapshot
            async for snapshot in reply:
                assert snapshot.status in ("incomplete", "complete", "length", "interrupted")
            return snapshot, "".join([piece async for piece in reply.text_deltas]) or None
        except rd.RxDeltaError as error:
            return error.snapshot, str(error)

    def blocking() -> Any:
        with rd.stream(source) as reply:
            try:
                snapshot = reply.snapshot
                for snapshot in reply:
                    pass
                return snapshot, "".join(reply.text_deltas) or None
            except rd.RxDeltaError as error:
                return error.snapshot, str(error)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of pydantic's, about values that a recording has and a type hasn't
        snapshot, text = expected(wire_format, given)
        for found in (run(asynchronous), run(named), blocking()):
            assert found[0] == snapshot
            assert found[1] == text


def expected(wire_format: str, chunks: list[Any]) -> tuple[rd.Snapshot | None, str | None]:
    """The last snapshot of a pipeline, and its text; or the error's."""
    seen: list[rd.Snapshot] = [rd.Snapshot()]
    pieces: list[str] = []
    errors: list[Exception] = []
    events = rd.from_iterable(chunks).pipe(rd.decode(wire_format))
    try:
        with rd.to_iterable(events.pipe(rd.scan_deltas())) as snapshots:
            seen.extend(snapshots)
        with rd.to_iterable(events.pipe(rd.text_deltas())) as texts:
            pieces.extend(texts)
    except rd.RxDeltaError as error:
        errors.append(error)
        return error.snapshot, str(error)
    return seen[-1], "".join(pieces) or None
