"""Every operator, and every function that combines sources, with what it reads and what must come out of it."""

from __future__ import annotations

import inspect
import json
import os
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import reactivex as rx
from reactivex import Observable
from reactivex.testing import TestScheduler

import rxdelta as rd
from support import ag_ui
from support.encoded import encoded
from support.grammar import Source
from support.streams import TOOLS, streams

if TYPE_CHECKING:
    from support.grammar import Bench

__all__ = ["CASES", "FEEDS", "Case", "made_by"]

ev = rd.events
Law: TypeAlias = Callable[[Sequence[Any], Sequence[Any], bool], tuple[Any, Any]]
"""From what was pushed, what came out, and whether the source failed: what came out in sum, and what should have."""


# What the operators read.

REPLY = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    *(ev.TextDelta(0, piece) for piece in ("Hé", "llo. ", "Is ", "it? 👩‍👧", "Yes.")),
    ev.BlockFinish(0),
    ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c", "name": "find", "args": ""}),
    *(ev.ToolCallDelta(1, piece) for piece in ('{"what', '": 1', "}")),
    ev.BlockFinish(1),
    ev.MessageFinish("tool_use"),
]
JSON = [
    ev.MessageStart("m"),
    ev.BlockStart(0, {"type": "text", "text": ""}),
    *(ev.TextDelta(0, piece) for piece in ('[{"a"', ': 1}, {"', 'a": 2}', ', {"a": 3}', "]")),
    ev.BlockFinish(0),
    ev.MessageFinish("stop"),
]

SAFE = {"not legal", "late start"}


@cache
def of_events() -> list[list[rd.Event]]:
    """Streams of events, each with at most one message of each choice."""
    return [
        [*stream.events]
        for seed in (1, 2)
        for stream in streams(seed)
        if not stream.is_conversation and stream.name not in SAFE and stream.events
    ] + [REPLY]


@cache
def of_snapshots() -> list[list[rd.Snapshot]]:
    def folded(events: Sequence[rd.Event]) -> list[rd.Snapshot]:
        found: list[rd.Snapshot] = []
        rx.from_iterable(events).pipe(rd.scan_deltas()).subscribe(found.append, lambda _: None)
        return found

    return [folded(events) for events in of_events()[:6]]


FRAMES: list[dict[str, Any]] = [{"type": "a", "text": "é"}, {"type": "b"}, {"type": "c", "n": [1, {}]}]
LINES = b"".join(b'{"n": %d, "text": "\xc3\xa9"}\n' % number for number in range(4))
RECORDS = b"".join(b'data: {"n": %d, "text": "\xc3\xa9"}\n\n' % number for number in range(4))

FEEDS: dict[str, Callable[[], Sequence[Sequence[Any]]]] = {
    "events": of_events,
    "json": lambda: [JSON, REPLY],
    "calls": lambda: [REPLY],
    "snapshots": of_snapshots,
    "messages": lambda: [[*of_snapshots()[0][-3:]]],
    "chunks": lambda: [list(rd.wire.write(REPLY, "openai-chat")), list(rd.wire.write(JSON, "openai-chat"))],
    "frames": lambda: [FRAMES],
    "lines": lambda: [[LINES[place : place + 7] for place in range(0, len(LINES), 7)]],
    "records": lambda: [[RECORDS[place : place + 9] for place in range(0, len(RECORDS), 9)]],
    "entries": lambda: [[SimpleNamespace(id=str(number), event=event) for number, event in enumerate(REPLY)]],
    "letters": lambda: ["abcd"],
}


# What must come out.

PIECES = {ev.TextDelta: "text", ev.ReasoningDelta: "reasoning", ev.ToolCallDelta: "args"}
DELTAS = (*PIECES,)


def same(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """All values, as they are."""
    return [*got], [*pushed]


def of_one_choice(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """All of the first choice."""
    return [*got], [event for event in pushed if getattr(event, "choice", None) in (None, 0)]


def same_from_content(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """All values, or none if the source has failed before its content: then another one would have been chosen."""
    if failed and not got and not said(pushed)[0]:
        return [], []
    return [*got], [*pushed]


def newest(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """The last value, whatever became of those before it."""
    return got[-1:], pushed[-1:]


def said(events: Sequence[rd.Event]) -> tuple[dict[Any, str], Counter[str]]:
    """The text of each block since the last attempt began, in whatever pieces, and how many there are of each other event."""
    texts: dict[Any, str] = {}
    others: Counter[str] = Counter()
    for event in events:
        if isinstance(event, DELTAS):
            piece = getattr(event, PIECES[type(event)])
            texts[event.choice, event.index] = texts.get((event.choice, event.index), "") + piece
        elif isinstance(event, ev.BlockStart) and "text" in event.content:
            texts[event.choice, event.index] = (
                texts.get((event.choice, event.index), "") + event.content["text"]
            )
        elif isinstance(event, ev.BlockFinish) and event.content is not None:
            whole = event.content.get("text", rd.core.thaw(event.content.get("args")))
            texts[event.choice, event.index] = whole if isinstance(whole, str) else json.dumps(whole)
        elif isinstance(event, ev.AttemptReset):
            texts = {key: text for key, text in texts.items() if event.choice not in (None, key[0])}
        if not isinstance(event, (*DELTAS, ev.ToolUpdate)):
            others[type(event).__name__] += 1
    return {key: text for key, text in texts.items() if text}, others


def texts(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """Each text and each event, in whatever pieces."""
    return said(got), said(pushed)


def texts_before_a_cut(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """As `texts`, but what is held may be dropped where a block stays open."""
    (ours, _), (theirs, _) = said(got), said(pushed)
    ended = set[Any]()
    for event in pushed:
        if isinstance(event, ev.BlockFinish):
            ended.add((event.choice, event.index))
        elif isinstance(event, ev.AttemptReset):
            ended = {key for key in ended if event.choice not in (None, key[0])}
    wanted = {
        key: text for key, text in theirs.items() if key in ended and text != "{}"
    }  # which may be left out
    return {key: ours.get(key) for key in wanted}, wanted


def folded(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """What a fold has in the end."""
    fold = rd.Fold()
    for event in pushed:
        if getattr(event, "choice", None) in (None, 0):
            fold.step(event)
    return (got[-1] if got else rd.Fold().snapshot).to_dict(), fold.snapshot.to_dict()


def text_of(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """The text of the reply's deltas."""
    return "".join(got), "".join(event.text for event in pushed if isinstance(event, ev.TextDelta))


def parsed(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """The records that are whole."""
    data = b"".join(pushed)
    whole = data.count(b"\n\n") if data.startswith(b"data") else data.count(b"\n")
    return [value["n"] for value in got][:whole], list(range(whole))


def decoded(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    """The texts of the chunks."""
    deltas = [choice["delta"] for chunk in pushed for choice in chunk["choices"]]
    return "".join(event.text for event in got if isinstance(event, ev.TextDelta)), "".join(
        delta.get("content") or "" for delta in deltas
    )


def as_encoded(make: Callable[[], Any]) -> Law:
    """As many frames as the encoder makes of the events and of their end."""

    def law(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
        encoder = make()
        frames = [*encoder.open()] if hasattr(encoder, "open") and got[:1] == [{"type": "start"}] else []
        frames += [frame for event in pushed for frame in encoder.encode(event)]
        frames += encoder.fail(ValueError("of the source")) if failed else encoder.close()
        return len(got), len(frames)

    return law


def as_alone(operator: Callable[[], Any]) -> Law:
    """What the operator makes of the same values if nobody disturbs it."""

    def law(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
        values: list[Any] = []
        source = Source(pushed, len(pushed), ValueError("of the source") if failed else "completed")
        source.pipe(operator()).subscribe(values.append, lambda _: None, scheduler=TestScheduler())
        return [*got], values

    return law


# The operators.


@attrs.frozen
class Case:
    """An operator.

    Attributes:
        make: The stream to be read, from a source and whatever else is on a bench.
        feed: What it reads, a name of `FEEDS`.
        law: What must come out when the source ends; `None` where only the form counts.
        queued: Whether what comes while an observer is called comes behind it, from the same thread and from any other.
        shared: Whether all readers have one subscription of the source.
        restarts: Whether it subscribes its source again.
        grace: Whether the source is read for a while when nobody reads any more.
    """

    make: Callable[[Bench], Observable[Any]]
    feed: str = "events"
    law: Law | None = None
    queued: bool = True
    shared: bool = False
    restarts: bool = False
    grace: bool = False


def piped(operator: Callable[[], Any], feed: str = "events", law: Law | None = None, **options: Any) -> Case:
    return Case(lambda bench: bench.source.pipe(operator()), feed, law, **options)


def alone(operator: Callable[[], Any], feed: str = "events", **options: Any) -> Case:
    return piped(operator, feed, as_alone(operator), **options)


def encoder(make: Callable[[], Any]) -> Case:
    return piped(lambda: encoded(make), law=as_encoded(make))


def made(encoder: Any) -> Callable[[], Any]:
    return lambda: encoder(now=lambda: 0.0, new_id=lambda: "m")


def nothing(*_: Any) -> None:
    pass


class Twice:
    """A state."""

    def __init__(self, sink: Any) -> None:
        self._sink = sink

    def on_next(self, value: Any) -> None:
        self._sink.on_next(value)
        self._sink.on_next(value)


class Both:
    """A machine."""

    def step(self, value: Any) -> list[Any]:
        return [value, value]

    def close(self) -> list[Any]:
        return ["end"]

    def fail(self, error: Exception) -> tuple[list[Any], Exception]:
        return ["end"], error


class Itself:
    """A mapper."""

    def step(self, value: Any) -> Any:
        return value


def doubled(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    return [*got], [value for value in pushed for _ in range(2)]


def doubled_and_ended(pushed: Sequence[Any], got: Sequence[Any], failed: bool) -> tuple[Any, Any]:
    return [*got], [*doubled(pushed, got, failed)[1], "end"]


one_each = partial(attrs.evolve, queued=False)
"""They emit at most one value for each and are ready before it, so a call inside of a call comes in order by itself. Their
source must not emit on two threads at once, as everywhere in Rx."""

CASES: dict[str, Case] = {
    # … in
    "parse_sse": piped(rd.parse_sse, "records", parsed),
    "parse_ndjson": piped(rd.parse_ndjson, "lines", parsed),
    "decode": piped(lambda: rd.decode("openai-chat"), "chunks", decoded),
    # … events that go on
    "with_limits": one_each(piped(lambda: rd.with_limits(rd.Limits()), law=same)),
    "only_choice": one_each(piped(lambda: rd.only_choice(0), law=of_one_choice)),
    "retry_stream": Case(lambda bench: rd.retry_stream(lambda: bench.source, 3, lambda *_: 2), restarts=True),
    "retry_stream once": Case(lambda bench: rd.retry_stream(lambda: bench.source, 1), law=texts),
    "fallback": Case(lambda bench: rd.fallback(bench.source), law=same_from_content),
    "fallback to another": Case(lambda bench: rd.fallback(bench.source, bench.source), restarts=True),
    "race": Case(lambda bench: rd.race(bench.source, rx.never()), law=same_from_content),
    "race later": Case(lambda bench: rd.race(bench.source, bench.source, after=3), restarts=True),
    "stall_timeout": piped(lambda: rd.stall_timeout(first=40, idle=10, total=100), law=same),
    "until_stopped": Case(lambda bench: bench.source.pipe(rd.until_stopped(bench.side)), law=texts),
    "validate": one_each(piped(lambda: rd.validate(nothing), law=same)),
    "redact": piped(lambda: rd.redact("\0"), law=texts_before_a_cut),
    "map_text": piped(lambda: rd.map_text(str), law=texts),
    "cut_text": piped(rd.cut_text, law=texts),
    "until_sequence": piped(lambda: rd.until_sequence("\0"), law=texts),
    "guard": piped(lambda: rd.guard(lambda _: True), law=texts_before_a_cut),
    "run_tools": piped(lambda: rd.run_tools(TOOLS, timeout=9, unknown="leave"), law=texts),
    "smooth": piped(lambda: rd.smooth(rate=0.5, max_lag=9), law=texts),
    "compact_deltas": piped(lambda: rd.compact_deltas(5), law=texts),
    "share_events": piped(rd.share_events, law=same, shared=True),
    "share_events again": piped(
        lambda: rd.share_events(unread="restart", grace=5, reset_on_error=True),
        law=same,
        shared=True,
        restarts=True,
        grace=True,
    ),
    # … events → one panel
    "text_deltas": alone(rd.text_deltas, "json"),
    "sentences": piped(rd.sentences, "json", text_of),
    "stable_blocks": alone(rd.stable_blocks, "json"),
    "partial_json": alone(rd.partial_json, "json"),
    "partial_arguments": alone(rd.partial_arguments, "calls"),
    "json_items": alone(rd.json_items, "json"),
    "completed_tool_calls": alone(rd.completed_tool_calls, "calls"),
    # … events → a stream for each part
    "group_by_block": piped(rd.group_by_block),
    "per_block": piped(lambda: rd.per_block(lambda block: block)),
    "group_by_choice": piped(rd.group_by_choice),
    "group_by_message": piped(rd.group_by_message),
    "group_by_run": piped(rd.group_by_run),
    "with_custom": Case(lambda bench: bench.source.pipe(rd.with_custom(bench.side)), law=texts),
    "with_run": piped(lambda: rd.with_run("r"), law=texts),
    # … events → snapshots → a message
    "scan_deltas": one_each(piped(rd.scan_deltas, law=folded)),
    "throttle_latest": piped(lambda: rd.throttle_latest(5), "snapshots", newest),
    "debounce_latest": piped(lambda: rd.debounce_latest(5, 12), "snapshots", newest),
    "conflate": piped(rd.conflate, "snapshots", newest),
    "share_latest": piped(rd.share_latest, "snapshots", newest, shared=True),
    "until_all_tools_terminal": piped(rd.until_all_tools_terminal, "snapshots", same),
    "to_message": one_each(piped(rd.to_message, "messages")),
    # … watching
    "on_settled": one_each(piped(lambda: rd.on_settled(nothing), law=same)),
    "tap_metrics": one_each(piped(lambda: rd.tap_metrics(nothing), law=same)),
    "tap_metrics through": piped(
        lambda: rd.tap_metrics(nothing, every=3, through=rd.compact_deltas(2)), law=texts
    ),
    "tap_otel": one_each(piped(lambda: rd.tap_otel("house"), law=same)),
    "record": one_each(piped(lambda: rd.record(os.devnull), law=same)),
    # … out
    "to_ai_sdk": piped(rd.to_ai_sdk, law=as_encoded(rd.wire.AiSdkEncoder)),
    "to_ag_ui": piped(lambda: rd.to_ag_ui(thread_id="t", run_id="r")),
    "to_ag_ui's frames": encoder(ag_ui.encoder),
    "to_langchain_events": piped(rd.to_langchain_events, law=as_encoded(made(rd.wire.LangChainEncoder))),
    "to_openai_chat": piped(rd.to_openai_chat, law=as_encoded(made(rd.wire.OpenAiChatEncoder))),
    "to_openai_responses": piped(
        rd.to_openai_responses, law=as_encoded(made(rd.wire.OpenAiResponsesEncoder))
    ),
    "to_anthropic_messages": piped(
        rd.to_anthropic_messages, law=as_encoded(made(rd.wire.AnthropicMessagesEncoder))
    ),
    "to_ollama": piped(rd.to_ollama, law=as_encoded(lambda: rd.wire.OllamaEncoder(now=lambda: 0.0))),
    "to_sse": one_each(alone(rd.to_sse, "frames")),
    "to_sse with comments": piped(lambda: rd.to_sse(5), "frames"),
    "to_ndjson": one_each(alone(rd.to_ndjson, "frames")),
    "to_ndjson with spaces": piped(lambda: rd.to_ndjson(5), "frames"),
    "to_resumable_sse": alone(lambda: rd.to_resumable_sse(rd.to_ai_sdk("m")), "entries"),
    "to_resumable_sse behind an id": alone(lambda: rd.to_resumable_sse(rd.to_ai_sdk("m"), "3"), "entries"),
    # … of one's own
    "lift": piped(lambda: rd.building.lift("twice", Twice), "letters", doubled),
    "lift_machine": piped(
        lambda: rd.building.lift_machine("both", lambda _: Both()), "letters", doubled_and_ended
    ),
    "lift_map": one_each(piped(lambda: rd.building.lift_map("itself", lambda _: Itself()), "letters", same)),
}


def made_by(module: Any) -> set[str]:
    """The names of a module's functions that return an Observable, or an operator."""
    return {
        name
        for name in module.__all__
        if inspect.isfunction(found := getattr(module, name))
        and "Observable" in str(inspect.signature(found).return_annotation)
    }
