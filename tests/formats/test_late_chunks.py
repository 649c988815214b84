"""Recorded streams, cut off anywhere, behind which one more chunk comes: usage, a text, arguments, an error, the end.

No call is complete without arguments that were sent for it, and nothing is silently gone: what the late chunk says
is in the snapshot, or in an event that passes the chunk on, or the stream ends with an error that tells it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any

import attrs
import pytest
from support.late_chunks import COUNT, MARK, Late, late_chunks
from support.shared import RECORDED, recordings

import rxdelta as rd

ev = rd.events
DONE: Any = rd.wire.DONE
VALUES = ("gemini",)
"""Formats whose arguments come as values, of which none is half said, and whose calls end where the next begins."""


@attrs.define
class Stream:
    """A stream that is being decoded and folded. A copy goes on by itself."""

    decoder: rd.providers.Decoder
    fold: rd.Fold = attrs.field(factory=lambda: rd.Fold(choice=0))
    checker: rd.core.ProtocolChecker = attrs.field(factory=rd.core.ProtocolChecker)
    told: list[str] = attrs.field(factory=list)  # what was passed on, or said by an error
    broken: list[str] = attrs.field(factory=list)  # the rules of the protocol that the events broke
    begun: bool = False
    finished: bool = False  # whether the message is over
    failed: bool = False

    def branch(self) -> Stream:
        seen = rd.Fold(self.fold.snapshot, choice=0) if self.fold.snapshot else rd.Fold(choice=0)
        return attrs.evolve(
            self,
            decoder=deepcopy(self.decoder),
            fold=seen,
            checker=deepcopy(self.checker),
            told=[*self.told],
            broken=[*self.broken],
        )

    @property
    def snapshot(self) -> rd.Snapshot:
        return self.fold.snapshot or rd.Snapshot()

    def take(self, chunk: Any) -> None:
        try:
            self._step(self.decoder.decode(chunk))
        except rd.errors.MalformedChunkError as error:
            self.failed = True
            self.told.append(str(error))

    def end(self, *, is_done: bool) -> None:
        """The end of the input, with or without a `DONE` before it. Neither raises, whatever came before."""
        if is_done:
            self._step(self.decoder.decode(DONE))
        self._step(self.decoder.close())

    def _step(self, events: Iterable[rd.Event]) -> None:
        for event in events:
            if self.failed:
                return
            rule = self.checker.check(event)
            if rule is not None and rule != "error_event":
                self.broken.append(rule)
            if isinstance(event, (ev.ProviderEvent, ev.StreamError)):
                self.told.append(json.dumps(event.to_dict(), ensure_ascii=False))
            self.failed = isinstance(event, ev.StreamError)
            if not self.failed:
                self.begun |= isinstance(event, ev.MessageStart)
                self.finished |= isinstance(event, ev.MessageFinish) and event.choice == 0
                self.fold.step(event)


def complete_calls(snapshot: rd.Snapshot) -> list[rd.ToolCall]:
    return [call for call in snapshot.tool_calls if call.status == "complete"]


def is_whole(wire_format: str, call: rd.ToolCall, arguments: Any) -> bool:
    """Whether an end makes these arguments of what an open call had so far.

    The text must be that of an object. The free text of a custom call, and values, have nothing that shows them to be
    cut: there the end closes what is open.
    """
    text = call.arguments or "{}"
    if not isinstance(text, str):
        return False
    if wire_format in VALUES or "provider_type" in call.metadata:
        ends = [written.removeprefix(text) for written in (json_of(arguments), compact(arguments))]
        return any(set(end) <= set('"]}') for end in ends)
    try:
        return bool(json.loads(text) == arguments)
    except ValueError:
        return False


def tells(text: str) -> bool:
    return MARK in text or str(COUNT) in text


def json_of(value: Any) -> str:
    return json.dumps(rd.core.thaw(value), ensure_ascii=False)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def faults(
    wire_format: str, whole: rd.Snapshot, before: Stream, late: Late | None, after: Stream
) -> Iterator[str]:
    """What is wrong with a stream behind its late chunk. `None`: only the end came."""
    said = {call.call_id: call for call in before.snapshot.tool_calls}
    known = [(call.call_id, call.arguments) for call in complete_calls(whole)]
    for call in complete_calls(after.snapshot):
        shown = json_of(call.arguments)
        if MARK in shown or call.call_id == MARK:
            continue
        open_before = said.get(call.call_id, call)
        is_known = (call.call_id, call.arguments) in known
        if not (is_known or is_whole(wire_format, open_before, rd.core.thaw(call.arguments))):
            yield f"call {call.call_id} is complete with {shown}"
        elif late is not None and call.call_id == late.call_id and not before.finished:
            yield f"call {call.call_id} is complete without the arguments that came late"
    if late is not None and not any(map(tells, (json_of(after.snapshot.to_dict()), *after.told))):
        yield "silently gone"
    if not after.snapshot.text.startswith(before.snapshot.text):
        yield "a text that had come is gone"
    for rule in after.broken:
        yield f"the events break {rule}"


def late_streams(
    wire_format: str, chunks: Sequence[Any], cuts: Sequence[int]
) -> Iterator[tuple[int, Late | None, bool, Stream, Stream]]:
    """(cut, late chunk, whether `DONE` follows, stream before, stream after) of each."""
    stream = Stream(rd.providers.decoder(wire_format))
    for place, chunk in enumerate(chunks, 1):
        stream.take(chunk)
        if stream.failed:
            return  # what follows an error has no reader
        if place not in cuts:
            continue
        for late in [None, *late_chunks(wire_format, chunks[:place])]:
            if late is not None and "usage" in late.kind and not stream.begun:
                continue  # there is no message that it could be the usage of
            for is_done in (True,) if late is None else (False, True):
                after = stream.branch()
                if late is not None:
                    after.take(late.chunk)
                after.end(is_done=is_done)
                yield place, late, is_done, stream, after


def soak(wire_format: str, chunks: Sequence[Any], cuts: Sequence[int]) -> list[str]:
    whole = Stream(rd.providers.decoder(wire_format))
    for chunk in chunks:
        whole.take(chunk)
    whole.end(is_done=False)
    found: list[str] = []
    for place, late, is_done, before, after in late_streams(wire_format, chunks, cuts):
        kind = "the end" if late is None else late.kind
        at = f"{kind}{' and the end' if is_done and late else ''} behind {place} of {len(chunks)} chunks"
        found += [f"{at}: {fault}" for fault in faults(wire_format, whole.snapshot, before, late, after)]
    return found


def places(count: int, most: int, seed: str) -> list[int]:
    """Where to cut: everywhere if it is so short, else at the last three places and at random ones before them."""
    last = range(max(count - 2, 1), count + 1)
    return [*last, *Random(seed).sample(range(1, last[0]), min(last[0] - 1, max(0, most - 3)))]


CASES = [
    pytest.param(wire_format, case.id, case.values[0], id=f"{wire_format}/{case.id}", marks=case.marks)
    for wire_format in RECORDED
    for case in recordings(wire_format)
]


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "name", "chunks"), CASES)
def test_a_late_chunk_costs_no_call_its_arguments_and_is_not_lost(
    wire_format: str, name: str, chunks: list[Any]
) -> None:
    assert soak(wire_format, chunks, places(len(chunks), 12, name)) == []


@pytest.mark.parametrize("wire_format", RECORDED)
def test_a_late_chunk_is_not_lost_in_some_streams_of_each_format(wire_format: str) -> None:
    some = [case for case in recordings(wire_format) if case.values[0]]
    for case in Random(wire_format).sample(some, min(len(some), 20)):
        chunks = case.values[0]
        assert soak(wire_format, chunks, places(len(chunks), 4, case.id)) == [], case.id
