"""Readers of a provider's stream: its chunks, and its bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any
from zlib import crc32

import reactivex as rx
from core.test_partial_json_parser import is_prefix, written as shown
from fuzz.laws import check, or_refused, survives, written
from fuzz.mutation import values

import rxdelta as rd
from rxdelta.core import InvalidJson, parse_json
from rxdelta.providers import NdjsonParser, SseParser
from rxdelta.wire import DONE

__all__ = ["auto", "bytes_to_reply", "decodes", "encodes", "ndjson", "pieces", "partial_json", "sse"]

ev = rd.events
_OF_CALLS = ("args", "error", "id", "name")
SMALL = rd.Limits(line_bytes=90, block_chars=120, json_depth=4)


def pieces(data: Any, seed: int) -> Iterator[Any]:
    """The data cut into pieces, whose lengths the seed and the first characters decide, so that a longer input is cut the same."""
    first = data[:8] if isinstance(data, bytes) else data[:8].encode("utf-8", "surrogatepass")
    lengths = [(1,), (2, 1), (7, 1, 3), (16,), (1, 40), (64, 5)][(crc32(first) + seed) % 6]
    at = number = 0
    while at < len(data):
        length = lengths[number % len(lengths)]
        yield data[at : at + length]
        at, number = at + length, number + 1


def decodes(wire_format: str) -> Callable[[bytes], None]:
    """Chunks, a line each: what was said before a refusal stays, and everything that was told keeps the protocol."""

    def read(data: bytes) -> None:
        chunks = values(data)
        told, refusal, closing = _told(wire_format, chunks)
        for event in told:
            survives(event, ev.from_dict, "an event")
        snapshot = _folded(told)
        survives(snapshot, rd.Snapshot.from_dict, "a snapshot")
        _again(snapshot)
        if len(told) % 3 == 0:
            _through_a_pipe(rx.from_iterable(chunks).pipe(rd.decode(wire_format)), told, refusal or closing)

    return read


def costs(wire_format: str) -> Callable[[bytes], int]:
    """The package's part of `decodes`: to write each event as JSON would cost the usage so far once more with each of them.

    Returns how many events there were.
    """

    def read(data: bytes) -> int:
        decoder, fold = rd.providers.decoder(wire_format), rd.Fold(choice=0)
        count = 0
        for chunk in values(data):
            told = or_refused(decoder.decode, chunk)
            if isinstance(told, rd.RxDeltaError):
                break
            for event in told:
                count += 1
                or_refused(fold.step, event)
        or_refused(decoder.close)
        survives(fold.snapshot, rd.Snapshot.from_dict, "a snapshot")
        return count

    return read


def _told(wire_format: str, chunks: Sequence[Any]) -> tuple[list[Any], Any, Any]:
    """The events; the error of the chunk that was refused; that of the end."""
    decoder = rd.providers.decoder(wire_format)
    told: list[Any] = []
    refusal = None
    for chunk in chunks:
        before = written(chunk)
        found = or_refused(decoder.decode, chunk)
        check(before == written(chunk), "a decoder leaves the chunk as it is", before, chunk)
        if isinstance(found, rd.RxDeltaError):
            refusal = found
            break
        told += found
        if any(isinstance(event, ev.StreamError) for event in found):
            break
    end = or_refused(decoder.close)
    closing = end if isinstance(end, rd.RxDeltaError) else None
    check(
        closing is None or isinstance(closing, rd.errors.MalformedChunkError),
        "the end of a stream is refused only where nothing could be read",
        closing,
    )
    told += () if closing else end
    if wire_format != "langchain" or '"event":' not in written([*chunks]):  # whose own events pass unchanged
        _keep_the_protocol(told)
    return told, refusal, closing


def _keep_the_protocol(told: Iterable[Any]) -> None:
    """Each message by itself: another one may begin behind the end of the one before."""
    checkers: dict[Any, rd.core.ProtocolChecker] = {}
    ended: set[Any] = set()
    for event in told:
        run, choice = event.run_id, getattr(event, "choice", None)
        if isinstance(event, ev.StreamError):
            return
        # What names no choice is about all of them: a tool's news, an interruption, another attempt.
        for lane in [(run, choice)] if choice is not None else [one for one in checkers if one[0] == run]:
            if isinstance(event, ev.MessageStart) and lane in ended:
                ended.discard(lane)
                checkers[lane] = rd.core.ProtocolChecker()
            if isinstance(event, (ev.MessageFinish, ev.MessageInterrupted)):
                ended.add(lane)
            broken = checkers.setdefault(lane, rd.core.ProtocolChecker()).check(event)
            check(broken is None, "the events keep the protocol", broken, event)


def _folded(told: Iterable[Any]) -> rd.Snapshot:
    """What they fold to. A fold takes one message, and a stream may have several."""
    fold = rd.Fold(choice=0)
    for event in told:
        if isinstance(event, ev.StreamError) or isinstance(or_refused(fold.step, event), rd.RxDeltaError):
            break
    return fold.snapshot


def _again(snapshot: rd.Snapshot) -> None:
    """A late reader gets the same reply."""
    fold = rd.Fold(choice=snapshot.choice)
    for event in rd.to_events(snapshot):
        fold.step(event)
    now, then = fold.snapshot.to_dict(), snapshot.to_dict()
    for side in (now, then):  # which a late reader isn't told
        side.pop("violations", None)
        side.pop("started", None)
        for block in side.get("blocks", ()):  # a field of a call that was no text, and was said again as one
            block["metadata"] = {
                name: value for name, value in block.get("metadata", {}).items() if name not in _OF_CALLS
            }
    check(written(now) == written(then), "to_events folds to the same reply", now, then)


def _through_a_pipe(events: rx.Observable[Any], told: Sequence[Any], refused: Any) -> None:
    """The error behind `scan_deltas` has the reply as it was before; a stream without an error has it as its last value."""
    seen: list[rd.Snapshot] = []
    failed: list[Exception] = []
    events.pipe(rd.scan_deltas()).subscribe(seen.append, failed.append)
    if not failed:
        check(refused is None, "a refusal is the stream's error", refused)
        return
    error = failed[0]
    check(isinstance(error, rd.RxDeltaError), "errors of rxdelta come out of a pipe", error)
    if seen:
        kept = getattr(error, "snapshot", None)
        check(kept is not None, "a refusal has the partial reply", error, seen[-1])
        check(kept.text == seen[-1].text, "the partial reply is the newest", kept, seen[-1])


def auto(data: bytes) -> None:
    """Bytes of any format, whole and in pieces: nothing but our errors, and the same reply from each of the decoder's doors."""
    for each in ([data], [*pieces(data, 0)]):
        decoder = rd.providers.decoder("auto")
        for piece in each:
            if isinstance(or_refused(decoder.decode, piece), rd.RxDeltaError):
                break
        or_refused(decoder.close)
    parser = rd.providers.AutoParser()
    or_refused(parser.feed, data)
    chunks = or_refused(parser.close)
    for chunk in values(data) if isinstance(chunks, rd.RxDeltaError) else [*chunks, *values(data)]:
        or_refused(rd.providers.detect, chunk)


def bytes_to_reply(parse: Callable[[], Any], make: Callable[[], Any]) -> Callable[[bytes], None]:
    """The bytes of a stream as a reply. The first byte tells the format."""

    def read(data: bytes) -> None:
        wire_format = rd.providers.FORMATS[data[0] % len(rd.providers.FORMATS)] if data else "openai-chat"
        body = data[1:]
        records, _ = _records(make, [body])
        told, refusal, closing = _told(wire_format, [record for record in records if record is not DONE])
        source = rx.from_iterable([*pieces(body, 3)])
        seen: list[rd.Snapshot] = []
        failed: list[Exception] = []
        source.pipe(parse(), rd.decode(wire_format), rd.scan_deltas()).subscribe(seen.append, failed.append)
        check(len(failed) < 2, "a stream has one end", failed)
        check(
            all(isinstance(one, rd.RxDeltaError) for one in failed),
            "errors of rxdelta come out of a pipe",
            failed,
        )
        # What comes behind `[DONE]` is told or not, as its sender pauses there or doesn't.
        said_last = b"[DONE]" not in body.rstrip()[:-6]
        if not (refusal or closing) and seen and said_last:
            check(_folded(told).text == seen[-1].text, "cut elsewhere it is the same reply", seen[-1].text)

    return read


def _records(make: Callable[[], Any], parts: Iterable[Any]) -> tuple[list[Any], Any]:
    parser, found = make(), list[Any]()
    try:
        for part in parts:
            found += parser.feed(part)
        found += parser.close()
    except rd.RxDeltaError as error:
        return found, error
    return found, parser.error


def _frames(make: Callable[..., Any], data: bytes) -> None:
    """The same records, however the bytes are cut: `[DONE]` alone may come at another place."""
    for limits in (rd.Limits(), SMALL):
        found: list[Any] = []
        for parts in ([data], pieces(data, 0), pieces(data, 2)):
            records, error = _records(lambda limits=limits: make(limits=limits), parts)
            check(records.count(DONE) <= 1 + len(records), "done", records)
            found.append((shown([one for one in records if one is not DONE]), type(error), str(error)))
        check(found[0] == found[1] == found[2], "cut elsewhere it has the same records", *found)
    text = data.decode("utf-8", "replace")
    as_text, as_bytes = (_records(make, [one])[0] for one in (text, text.encode()))
    check(shown_records(as_text) == shown_records(as_bytes), "text and bytes are the same", as_text, as_bytes)


def shown_records(records: Iterable[Any]) -> str:
    return shown([one for one in records if one is not DONE])


def sse(data: bytes) -> None:
    _frames(SseParser, data)


def ndjson(data: bytes) -> None:
    _frames(NdjsonParser, data)


def partial_json(data: bytes) -> None:
    """In pieces as at once; a whole document is as `json` reads it; what is shown of one is a beginning of it."""
    text = data.decode("utf-8", "surrogateescape")
    for control_characters in (False, True):
        whole = rd.core.PartialJsonParser(control_characters=control_characters)
        whole.feed(text)
        for seed in (0, 1):
            parser = rd.core.PartialJsonParser(control_characters=control_characters)
            earlier: list[Any] = []
            for number, piece in enumerate(pieces(text, seed)):
                parser.feed(piece)
                if parser.started and number < 60:
                    earlier.append(parser.value)
            same = (
                (shown(parser.value), parser.error, parser.started),
                (shown(whole.value), whole.error, whole.started),
            )
            check(same[0] == same[1], "in pieces as at once", *same)
            ends = [_ended(parser)]
            for before, after in [] if _repeats_a_key(text) else pairwise([*earlier, parser.value]):
                check(is_prefix(before, after), "a value only grows", before, after)
        ends.append(_ended(whole))
        check(ends[0] == ends[1], "it ends as if read at once", *ends)
        ended, refused = ends[0]
        try:
            read = shown(parse_json(text, control_characters=control_characters))
            check(not refused and ended == read, "as parse_json", ended, read)
        except InvalidJson as error:
            check(refused, "as parse_json", ended, error)
            continue
        expected = shown(json.loads(text, strict=not control_characters))
        check(ended == expected or "\\ud" in expected, "as json", ended, expected)  # half a pair is replaced


_KEYS = re.compile(r'"((?:[^"\\]|\\.)*)"?[ \t\r\n]*:', re.DOTALL)


def _repeats_a_key(text: str) -> bool:
    """Whether it may: then the last value counts, and what was shown of the one before is gone."""
    keys = _KEYS.findall(text)
    return len({*keys}) < len(keys) or any("\\" in key for key in keys)


def _ended(parser: rd.core.PartialJsonParser) -> tuple[str, bool]:
    """The value, or the reason why there is none, and whether there is none."""
    try:
        return shown(parser.close()), False
    except InvalidJson as error:
        return error.reason, True


def encodes(encoders: dict[str, Callable[..., Any]]) -> Callable[[bytes], None]:
    """Events that were stored or sent, to a front end: frames, or a masked error in the protocol's own form."""
    names = [*encoders]

    def read(data: bytes) -> None:
        events = [
            event
            for event in (or_refused(ev.from_dict, one) for one in values(data))
            if isinstance(event, rd.Event)
        ]
        name = names[len(data) % len(names)]
        frames: list[bytes] = []
        failed: list[Exception] = []
        rx.from_iterable(events).pipe(encoders[name](), rd.to_sse()).subscribe(frames.append, failed.append)
        check(
            all(isinstance(one, rd.RxDeltaError) for one in failed),
            "an encoder tells its error",
            name,
            failed,
        )
        _, error = _records(SseParser, [b"".join(frames)])
        check(error is None, "what an encoder writes are server-sent events", name, error)
        for wire_format in rd.providers.FORMATS[len(data) % 4 :: 4]:
            or_refused(rd.wire.write, events, wire_format)

    return read
