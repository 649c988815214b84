"""What LangGraph emits, in each of its modes: every reply is a run, and each run is what its model said."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from typing import Any

import pytest

pytest.importorskip("langgraph.graph")

import reactivex as rx
from formats.langchain.chunks import decoded
from formats.langchain.graphs import (
    ASKS,
    GRAPHS,
    MODES,
    Case,
    as_json,
    graph,
    items_of,
    speaks,
)
from reactivex import operators as ops
from support.scripted_model import PROVIDERS, Reply, ScriptedModel

import rxdelta as rd

pytestmark = pytest.mark.filterwarnings("ignore:.*v3.*:Warning")


def said(reply: Reply) -> tuple[Any, ...]:
    call = reply.call and (reply.call[0], reply.call[1], str(reply.call[2]))
    return (reply.text, call, reply.usage)


def told(snapshot: rd.Snapshot) -> tuple[Any, ...]:
    message = snapshot.to_message()
    calls = [(call.call_id, call.name, str(rd.core.thaw(call.arguments))) for call in message.tool_calls]
    usage = message.usage and (message.usage.input_tokens, message.usage.output_tokens)
    return (message.text, calls[0] if calls else None, usage)


def lanes(events: list[rd.Event]) -> dict[str | None, list[rd.Event]]:
    """The events of each run. News of calls and the provider's own may have none: they concern every run."""
    runs: dict[str | None, list[rd.Event]] = {}
    for event in events:
        if event.run_id is not None or not isinstance(event, (rd.events.ProviderEvent, rd.events.ToolUpdate)):
            runs.setdefault(event.run_id, []).append(event)
    return runs


def fold(events: list[rd.Event]) -> rd.Snapshot:
    """Their reply; asserts that they keep the protocol."""
    fold, lifecycle = rd.Fold(), rd.core.ProtocolChecker()
    for event in events:
        assert lifecycle.check(event) is None, event
        fold.step(event)
    return fold.snapshot or rd.Snapshot()


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("mode", MODES)
def test_each_run_is_what_its_model_said(mode: str, name: str, provider: str) -> None:
    case = GRAPHS[name](provider)
    items = items_of(case, mode)
    assert not isinstance(items[0], dict) or rd.providers.detect(items[0]) == "langchain"
    runs = lanes(decoded(*items))
    assert None not in runs
    assert Counter(told(fold(events)) for events in runs.values()) == Counter(map(said, case.replies))

    messages = rx.from_iterable(items).pipe(rd.decode("langchain"), rd.group_by_message())
    replies = messages.pipe(ops.flat_map(lambda one: one.pipe(rd.validate(), rd.scan_deltas(), ops.last())))
    found = replies.pipe(ops.to_list()).run()
    assert {one.run_id for one in found} == runs.keys()
    assert Counter(map(told, found)) == Counter(map(said, case.replies))


def test_json_does_not_tell_whose_the_first_chunks_of_one_node_are_and_nothing_is_woven() -> None:
    """The provider's id is in the first chunk only, and the copies of both metadata are equal."""
    case = GRAPHS["parallel in one node"]("anthropic")
    runs = lanes(decoded(*as_json(items_of(case, "messages"))))
    snapshots = [fold(events) for events in runs.values()]
    assert sorted((one.text, one.status) for one in snapshots) == [
        ("", "incomplete"),
        ("", "incomplete"),
        *((reply.text, "complete") for reply in case.replies),
    ]


def test_the_parent_says_what_called_the_model() -> None:
    items = items_of(GRAPHS["tool"]("anthropic"), "events v2")
    starts = [event for event in decoded(*items) if isinstance(event, rd.events.MessageStart)]
    assert {start.parent_run_id for start in starts} == {items[0]["run_id"]}

    for mode in ("messages", "events v3"):
        items = items_of(GRAPHS["tool"]("anthropic"), mode)
        starts = [event for event in decoded(*items) if isinstance(event, rd.events.MessageStart)]
        assert [str(start.parent_run_id).partition(":")[0] for start in starts] == ["agent", "tools", "agent"]


def test_a_model_that_does_not_stream_is_read_where_it_ends() -> None:
    for provider in PROVIDERS:
        for mode in ("events v2", "events v3", "messages"):
            model = ScriptedModel(replies=[ASKS], provider=provider, disable_streaming=True)
            case = Case(graph({"a": speaks(model)}, ("__start__", "a")), (ASKS,))
            (events,) = lanes(decoded(*items_of(case, mode))).values()
            assert told(fold(events)) == said(ASKS), mode


def test_a_chat_model_alone_has_a_run_only_where_it_says_so() -> None:
    def model() -> ScriptedModel:
        return ScriptedModel(replies=[ASKS], provider="anthropic")

    async def collect(stream: Any) -> list[Any]:
        return [item async for item in (await stream if inspect.isawaitable(stream) else stream)]

    for stream, has_run in (
        (model().astream("Go"), False),
        (model().astream_events("Go", version="v3"), False),
        (model().astream_events("Go", version="v2"), True),
    ):
        ((run_id, events),) = lanes(decoded(*asyncio.run(collect(stream)))).items()
        assert (run_id is not None) is has_run
        assert told(fold(events)) == said(ASKS)
