"""Frames of the agent protocol from our encoder, back again, and the rules of the protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import rxdelta as rd
from rxdelta.wire import LangChainEncoder, LangChainFrame

Frame = Mapping[str, Any]
TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": ""}
BOOM = RuntimeError("secret")


def encoder(**options: Any) -> LangChainEncoder:
    ids = iter(f"made-{n}" for n in range(100))
    return LangChainEncoder(**{"now": lambda: 1.5, "new_id": lambda: next(ids), **options})


def sent(*events: rd.Event, error: Exception | None = None, **options: Any) -> list[LangChainFrame]:
    """The frames as a reader gets them."""
    one = encoder(**options)
    frames = [frame for event in events for frame in one.encode(event)]
    frames += one.close() if error is None else one.fail(error)
    return json.loads(json.dumps(frames, allow_nan=False))  # type: ignore[no-any-return]


def data(*events: rd.Event, **options: Any) -> list[dict[str, Any]]:
    return [frame["params"]["data"] for frame in sent(*events, **options)]


def names(*events: rd.Event, **options: Any) -> list[str]:
    return [one.get("event", "custom") for one in data(*events, **options)]


def read(frames: Iterable[Frame]) -> list[rd.Event]:
    decoder = rd.providers.decoder("langchain")
    return [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]


def folded(events: Iterable[rd.Event]) -> rd.Snapshot:
    """The reply of choice 0, as far as it came without an error."""
    fold = rd.Fold(choice=0)
    for event in events:
        try:
            fold.step(event)
        except rd.RxDeltaError:
            break
    return fold.snapshot


def there_and_back(*events: rd.Event) -> rd.Snapshot:
    frames = sent(*events)
    Rules().check(frames)
    return folded(read(frames))


class Rules:
    """What the protocol asks of a stream."""

    def __init__(self) -> None:
        self.open = False
        self.blocks: dict[int, str] = {}
        self.seen: set[int] = set()
        self.running: set[str] = set()
        self.ran: set[str] = set()

    def check(self, frames: Iterable[Frame]) -> None:
        for place, frame in enumerate(frames):
            assert (frame["type"], frame["seq"]) == ("event", place)
            assert set(frame["params"]) == {"namespace", "timestamp", "data"}
            getattr(self, frame["method"])(frame["params"]["data"])
        assert not self.open, "a message is open at the end"
        assert not self.running, "a tool runs on"

    def custom(self, data: Frame) -> None:
        assert data["name"]

    def messages(self, data: Frame) -> None:
        name, index = data["event"], data.get("index")
        assert self.open != (name == "message-start"), name
        if name in ("message-start", "message-finish", "error"):
            assert not self.blocks, "a block is open"
            self.open = name == "message-start"
            self.seen = set()
        elif name == "content-block-start":
            assert index not in self.seen
            assert isinstance(index, int)
            assert index >= 0
            self.seen.add(index)
            self.blocks[index] = data["content"]["type"]
        else:
            kind = self.blocks[index]  # type: ignore[index]
            if name == "content-block-finish":
                del self.blocks[index]  # type: ignore[arg-type]
                fits = {
                    "tool_call_chunk": ("tool_call", "invalid_tool_call"),
                    "server_tool_call_chunk": ("server_tool_call", "invalid_tool_call"),
                }
                self.fits(data["content"]["type"], kind, fits)
            else:
                assert name == "content-block-delta"
                self.delta(data["delta"], kind)

    def fits(self, found: str, kind: str, fits: dict[str, tuple[str, ...]]) -> None:
        assert not found.endswith("_chunk"), "a finish carries the finished block"
        if found not in fits.get(kind, (kind,)):
            self.overruled(found)

    def overruled(self, found: str) -> None:
        """The source's own finish may say that the block is another."""

    def delta(self, delta: Frame, kind: str) -> None:
        takes = {
            "text-delta": ("text",),
            "reasoning-delta": ("reasoning",),
            "tool-call-delta": ("tool_call_chunk", "server_tool_call_chunk"),
            "data-delta": ("image", "audio", "video", "file"),
        }
        if delta["type"] == "block-delta":
            assert "type" in delta["fields"]
        else:
            assert kind in takes[delta["type"]]
            assert any(delta.get(name) for name in ("text", "reasoning", "args", "data")), "an empty delta"

    def tools(self, data: Frame) -> None:
        name, call_id = data["event"], data["tool_call_id"]
        if name == "tool-started":
            assert call_id not in self.ran
            self.running.add(call_id)
            self.ran.add(call_id)
            return
        assert call_id in self.running, f"{name} of a tool that isn't running"
        if name != "tool-output-delta":
            self.running.remove(call_id)
