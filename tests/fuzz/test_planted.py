"""Faults that somebody puts into the package are found: by inputs made of the seeds, or in bulk."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from fuzz.finds import place_of, shrunk
from fuzz.laws import LawBroken, does_not_grow
from fuzz.mutation import values
from fuzz.targets import TARGETS
from fuzz.test_targets import made_of

import rxdelta as rd
from rxdelta.core import PartialJsonParser
from rxdelta.formats.cohere.decoder import CohereDecoder
from rxdelta.framing.json_records import LineSplitter
from rxdelta.providers import NdjsonParser
from rxdelta.relay import relay as _relay, watching as _watching

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def found(name: str, count: int = 400) -> tuple[str, bytes]:
    """The first find of a reader, made small."""
    target = TARGETS[name]

    def place(data: bytes) -> str:
        try:
            target.holds(data)
        except Exception as error:
            return place_of(error)
        return ""

    for data in [*target.corpus(), *made_of(target, count, "planted")]:
        if what := place(data):
            return what, shrunk(data, lambda other: place(other) == what, is_json=target.is_json)
    raise AssertionError("nothing was found")


def plant(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, wrap: Wrap) -> None:
    monkeypatch.setattr(where, name, wrap(getattr(where, name)))


def test_a_field_that_a_decoder_takes_for_granted(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(decode: Callable[..., Any]) -> Callable[..., Any]:
        def with_fault(self: Any, chunk: Any) -> Any:
            if isinstance(chunk, dict) and chunk.get("type") == "content-start":
                chunk["delta"]["message"]["content"]["type"]
            return decode(self, chunk)

        return with_fault

    plant(monkeypatch, CohereDecoder, "decode", wrap)
    place, data = found("cohere")
    assert place.partition(" ")[0] in ("KeyError", "TypeError", "AttributeError")
    [chunk] = values(data)
    assert chunk["type"] == "content-start", "the input is as small as it gets"


def test_a_loop_over_all_that_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(line: Callable[..., Any]) -> Callable[..., Any]:
        def with_fault(self: Any, text: str, records: Any) -> Any:
            self.seen = [*getattr(self, "seen", ()), text]
            return line(self, text, records)

        return with_fault

    def read(data: bytes) -> None:
        NdjsonParser().feed(data)

    does_not_grow(read, lambda count: b'{"a": 1}\n' * count)
    plant(monkeypatch, NdjsonParser, "_line", wrap)
    with pytest.raises(LawBroken, match=r"growth: .50 of one thing"):
        does_not_grow(read, lambda count: b'{"a": 1}\n' * count)


def test_memory_that_nobody_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(line: Callable[..., Any]) -> Callable[..., Any]:
        def with_fault(self: Any, text: str, records: Any) -> Any:
            self.kept = [*getattr(self, "kept", ()), bytearray(1 << 20)]
            return line(self, text, records)

        return with_fault

    plant(monkeypatch, NdjsonParser, "_line", wrap)
    with pytest.raises(LawBroken, match="memory"):
        TARGETS["ndjson"].holds_in_bulk(b"1\n" * 9, 1)


def test_an_id_that_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_relay, "check_entry_id", lambda name, given: None)
    monkeypatch.setattr(_watching, "number_of", lambda name, given, epoch, newest: 0)
    assert found("relay-ids")[0] == "another stream's id is refused"


def test_a_cut_that_makes_a_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(feed: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, data: feed(self, data.removeprefix(b"\n") if len(data) == 1 else data)

    plant(monkeypatch, LineSplitter, "feed", wrap)
    assert found("sse")[0] == "cut elsewhere it has the same records"


def test_a_prefix_that_shows_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(show: Callable[..., Any]) -> Callable[..., Any]:
        def with_fault(self: Any) -> Any:
            shown = show(self)
            return f"{shown}…" if isinstance(shown, str) and not self.complete else shown

        return with_fault

    plant(monkeypatch, PartialJsonParser, "_show", wrap)
    assert found("partial-json")[0] == "a value only grows"


def test_a_refusal_that_loses_the_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module(
        "rxdelta.operators.folding.scan_deltas"
    )  # whose folder has a function of this name
    monkeypatch.setattr(module, "with_snapshot", lambda error, snapshot: error)
    assert found("openai-chat")[0] == "a refusal has the partial reply"


def test_a_field_that_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(to_dict: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self: {**to_dict(self), "is_error": False}

    plant(monkeypatch, rd.ToolResult, "to_dict", wrap)
    assert found("parts")[0] == "a ToolResult is the same again"


def test_an_error_on_another_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrap(close: Callable[..., Any]) -> Callable[..., Any]:
        def with_fault(self: Any) -> Any:
            thread = threading.Thread(target=lambda: {}["no such"])
            thread.start()
            thread.join()
            return close(self)

        return with_fault

    plant(monkeypatch, NdjsonParser, "close", wrap)
    assert found("ndjson")[0].startswith("KeyError")
