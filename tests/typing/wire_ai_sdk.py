"""What type checkers infer of the AI SDK's stream. Never run: `mypy --strict tests/typing` and `pyright tests/typing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, assert_type

from reactivex import Observable

import rxdelta as rd


def frames(events: Observable[rd.Event]) -> None:
    assert_type(events.pipe(rd.to_ai_sdk()), Observable[rd.wire.AiSdkFrame | rd.wire.Done])
    assert_type(events.pipe(rd.to_ai_sdk("m1", sdk_version=6), rd.to_sse()), Observable[bytes])
    assert_type(events.pipe(rd.to_ai_sdk(on_error=str, metadata={"at": 1}), rd.to_sse(15)), Observable[bytes])


def going_on(events: Observable[rd.Event], body: Mapping[str, Any]) -> None:
    assert_type(rd.requests.approvals_from_ai_sdk(body["messages"]), dict[str, rd.Approval])
    more = rd.to_ai_sdk(messages=body["messages"], sources="results", provider_items=True)
    assert_type(events.pipe(more), Observable[rd.wire.AiSdkFrame | rd.wire.Done])
    rd.to_ai_sdk(sources="all")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def told_apart(frame: rd.wire.AiSdkFrame) -> None:
    if frame["type"] == "tool-input-delta":
        assert_type(frame["inputTextDelta"], str)


def messages(body: Mapping[str, Any]) -> None:
    assert_type(rd.from_ai_sdk(body["messages"]), list[rd.Message])
    assert_type(rd.from_ai_sdk([], system=True, allow=("s3",)), list[rd.Message])
    rd.from_ai_sdk([], allow=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def operators() -> tuple[Any, ...]:
    make: Callable[[Observable[rd.Event]], Observable[rd.wire.AiSdkFrame | rd.wire.Done]] = rd.to_ai_sdk()
    encoder: rd.wire.Encoder[rd.wire.AiSdkFrame | rd.wire.Done] = rd.wire.AiSdkEncoder()
    rd.to_ai_sdk(sdk_version="7")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    return make, encoder
