"""assistant-ui and TanStack AI read `to_ai_sdk()` and `to_ag_ui()` by clients of their own: they agree with our message."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.clients import FOLDER, ask
from support.front_ends import LEAK, Reply, in_javascript, recorded_replies, sse
from support.needs import without

import rxdelta as rd

Json = dict[str, Any]
ERROR = "An error."
CLIENTS: dict[str, Any] = {
    "assistant-ui": lambda: rd.wire.AiSdkEncoder(on_error=lambda _: ERROR),
    "tanstack": lambda: rd.wire.AgUiEncoder(thread_id="t", run_id="r", on_error=lambda _: ERROR),
}
EVERY = 6  # of the recorded replies


def line(client: str, reply: Reply, count: int, split: int) -> Json:
    """So many events of the reply, and a leak behind those that aren't all."""
    encoder = CLIENTS[client]()
    frames = [frame for event in reply.events[:count] for frame in encoder.encode(event)]
    frames += encoder.close() if count == len(reply.events) else encoder.fail(ConnectionError(LEAK))
    return {"client": client, "body": "".join(map(sse, frames)), "split": split}


def answers(client: str, lines: list[Json]) -> list[Json]:
    package = {"assistant-ui": "assistant-stream", "tanstack": "@tanstack/ai-client"}[client]
    if not (FOLDER / "node_modules" / package).is_dir():
        pytest.skip(without("clients", f"`npm ci --prefix {FOLDER}`"))
    return ask("other_fronts.mjs", lines)


def check(client: str, shown: Json, wanted: rd.Snapshot, failed: bool) -> None:
    texts = [block.text or "" for block in wanted.blocks if block.type in ("text", "refusal")]
    assert shown["text"] == "".join(texts)
    assert shown["reasoning"] == wanted.reasoning
    calls = [[name, read(arguments)] for name, arguments in shown["calls"]]
    for call in wanted.tool_calls:
        assert in_javascript([call.name, read(rd.core.thaw(call.arguments))]) in in_javascript(calls)
    status = shown["status"]
    if client == "assistant-ui":
        assert shown["error"] is None
        assert (status["reason"] == "error") is failed
        if wanted.tool_calls and not failed:
            assert status == {"type": "requires-action", "reason": "tool-calls"}
        if wanted.finish_reason == "length":
            assert status == {"type": "incomplete", "reason": "length"}
    else:
        assert status == ("error" if failed else "ready")
        assert shown["error"] == (ERROR if failed else None)
    assert LEAK not in json.dumps(shown)


def read(arguments: Any) -> Any:
    """Arguments that a client has as text. One provider sends an object in a string."""
    try:
        return read(json.loads(arguments)) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_shows_a_recorded_reply_and_knows_where_one_has_failed(client: str) -> None:
    replies = recorded_replies()[::EVERY] or pytest.skip("no recordings")
    cases = [(reply, count) for reply in replies for count in (len(reply.events), len(reply.events) // 2)]
    lines = [line(client, reply, count, 1000 + 7 * n) for n, (reply, count) in enumerate(cases)]
    for (reply, count), shown in zip(cases, answers(client, lines), strict=True):
        whole = count == len(reply.events)
        message = reply.folded(count, cut=not whole)
        try:
            check(client, shown, message, not whole or message.status == "incomplete")
        except AssertionError as error:
            raise AssertionError(f"{reply.name}, {count} events: {error}") from error


def test_what_tanstack_posts_is_a_run_of_ag_ui() -> None:
    hello = rd.to_events(rd.Message.of("assistant", "Hi"))
    encoder = rd.wire.AgUiEncoder(thread_id="t", run_id="r")
    frames = [*(frame for event in hello for frame in encoder.encode(event)), *encoder.close()]
    (shown,) = answers("tanstack", [{"client": "tanstack", "body": "".join(map(sse, frames))}])
    (asked,) = rd.from_ag_ui(shown["request"])
    assert (asked.role, asked.text, shown["text"]) == ("user", "Well?", "Hi")
    (started, *_) = rd.wire.AgUiEncoder(shown["request"]).encode(hello[0])
    assert started.run_id == shown["request"]["runId"]
