"""How the work grows with a reply: at most 2.2 times for twice as much of anything, for every operator, decoder and encoder."""

from __future__ import annotations

import inspect
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import pytest
import reactivex as rx
from reactivex.testing import TestScheduler
from support.cost import work_done
from support.security_page import says
from support.small_replies import REPLIES

import rxdelta as rd
from rxdelta import operators

pytestmark = pytest.mark.slow

ev = rd.events
T = TypeVar("T")
Events: TypeAlias = list[rd.Event]
Act: TypeAlias = Callable[[], Any]

MOST = 2.2
FEW, MANY = 20, 128
TEXT = {"type": "text", "text": ""}


# The ways to grow.


def reply(*events: rd.Event, reason: str = "stop") -> Events:
    return [ev.MessageStart("m", "x"), *events, ev.MessageFinish(reason)]


def text(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "some ") for _ in range(n)), ev.BlockFinish(0))


def one_line(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "abcdefgh") for _ in range(n)), ev.BlockFinish(0))


def paragraphs(n: int) -> Events:
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, "- a\n\n") for _ in range(n)), ev.BlockFinish(0))


def reasoning(n: int) -> Events:
    start = ev.BlockStart(0, {"type": "reasoning", "reasoning": ""})
    return reply(start, *(ev.ReasoningDelta(0, "abc ") for _ in range(n)), ev.BlockFinish(0))


def block(index: int | str) -> Events:
    return [ev.BlockStart(index, TEXT), ev.TextDelta(index, "hi"), ev.BlockFinish(index)]


def blocks(n: int) -> Events:
    return reply(*(event for i in range(n) for event in block(i)))


def descending_blocks(n: int) -> Events:
    return reply(*(event for i in reversed(range(n)) for event in block(i)))


def open_blocks(n: int) -> Events:
    return reply(*(ev.BlockStart(i, TEXT) for i in range(n)), *(ev.TextDelta(i, "hi") for i in range(n)))


def call(index: int, *pieces: str) -> Events:
    start = ev.BlockStart(index, {"type": "tool_call_chunk", "id": f"c{index}", "name": "f", "args": ""})
    return [start, *(ev.ToolCallDelta(index, piece) for piece in pieces), ev.BlockFinish(index)]


def calls(n: int) -> Events:
    return reply(*(event for i in range(n) for event in call(i, '{"a":1}')), reason="tool_use")


def open_calls(n: int) -> Events:
    columns = zip(*(call(i, '{"a":1}') for i in range(n)), strict=True)
    return reply(*(event for column in columns for event in column), reason="tool_use")


def long_argument(n: int) -> Events:
    return reply(*call(0, '{"a":"', *["abcdefgh"] * n, '"}'), reason="tool_use")


def argument_keys(n: int) -> Events:
    return reply(*call(0, '{"a":0', *(f',"k{i}":{i}' for i in range(n)), "}"), reason="tool_use")


def json_text(n: int) -> Events:
    pieces = ['{"a":[0', *(f',{{"k":{i}}}' for i in range(n)), "]}"]
    return reply(ev.BlockStart(0, TEXT), *(ev.TextDelta(0, piece) for piece in pieces), ev.BlockFinish(0))


def fields(n: int) -> Events:
    return reply(
        ev.BlockStart(0, TEXT), *(ev.BlockDelta(0, {f"k{i}": i}) for i in range(n)), ev.BlockFinish(0)
    )


def call_fields(n: int) -> Events:
    start, *rest = call(0, "{}")
    return reply(start, *(ev.BlockDelta(0, {f"k{i}": i}) for i in range(n)), *rest, reason="tool_use")


def metadata(n: int) -> Events:
    return [
        *(ev.MessageStart("m", "x", metadata={f"k{i}": i}, assumed=True) for i in range(n)),
        *reply(*block(0)),
    ]


def usages(n: int) -> Events:
    return reply(*(ev.UsageUpdate(rd.TokenUsage(1, i)) for i in range(n)))


def custom(n: int) -> Events:
    return reply(*(ev.Custom("status", i, id=str(i)) for i in range(n)))


def provider_events(n: int) -> Events:
    return reply(*(ev.ProviderEvent("x", "ping", {"n": i}) for i in range(n)))


def updates(n: int) -> Events:
    told = (ev.ToolUpdate("c0", "executing", display_text=str(i)) for i in range(n))
    return [*reply(*call(0, "{}"), reason="tool_use"), *told, ev.ToolUpdate("c0", "completed")]


def updates_of_calls(n: int) -> Events:
    return [*calls(n), *(ev.ToolUpdate(f"c{i}", "completed") for i in range(n))]


def restarts(n: int) -> Events:
    return reply(*(ev.BlockStart(0, TEXT) for _ in range(n)), ev.BlockFinish(0))


def attempts(n: int) -> Events:
    said = (
        event for i in range(n) for event in (*block(0), ev.AttemptReset(i + 2), ev.MessageStart("m", "x"))
    )
    return reply(*said, *block(0))


def messages(n: int) -> Events:
    return [
        event for i in range(n) for event in (ev.MessageStart(f"m{i}"), *block(0), ev.MessageFinish("stop"))
    ]


def choices(n: int) -> Events:
    def told(i: int) -> Events:
        return [
            ev.MessageStart("m", choice=i),
            ev.BlockStart(0, {"type": "text", "text": "hi"}, choice=i),
            ev.MessageFinish("stop", choice=i),
        ]

    return [event for i in range(n) for event in told(i)]


def runs(n: int) -> Events:
    def told(run: str) -> Events:
        return [
            ev.MessageStart("m", run_id=run),
            ev.BlockStart(0, {"type": "text", "text": "hi"}, run_id=run),
            ev.MessageFinish("stop", run_id=run),
        ]

    return [event for i in range(n) for event in told(f"r{i}")]


SHAPES: dict[str, Callable[[int], Events]] = {
    one.__name__.replace("_", " "): one
    for one in (
        text,
        one_line,
        paragraphs,
        reasoning,
        blocks,
        descending_blocks,
        open_blocks,
        calls,
        open_calls,
        long_argument,
        argument_keys,
        json_text,
        fields,
        call_fields,
        metadata,
        usages,
        custom,
        provider_events,
        updates,
        updates_of_calls,
        restarts,
        attempts,
        messages,
        choices,
        runs,
    )
}


# What is done with them.


def nothing(*_: Any) -> None:
    pass


def drain(source: rx.Observable[Any], scheduler: TestScheduler | None = None) -> None:
    """Read a stream, and the streams in it. One that ends with an error has measured nothing."""
    errors: list[Exception] = []

    def read(value: Any) -> None:
        if isinstance(value, rx.Observable):
            value.subscribe(nothing, errors.append)

    source.subscribe(read, errors.append, scheduler=scheduler)
    if scheduler is not None:
        scheduler.start()
    if errors:
        raise errors[0]


def same(events: Events) -> Events:
    return events


def through(
    make: Callable[[], Any], given: Callable[[Events], Iterable[Any]] = same
) -> Callable[[Events], Act]:
    def prepare(events: Events) -> Act:
        values = [*given(events)]
        return lambda: drain(rx.from_iterable(values).pipe(make()))

    return prepare


def timed(
    make: Callable[[Any], Any], given: Callable[[Events], Iterable[Any]] = same
) -> Callable[[Events], Act]:
    """One value each millisecond of virtual time."""

    def prepare(events: Events) -> Act:
        values = [*given(events)]

        def act() -> None:
            scheduler = TestScheduler()
            ticks = rx.interval(0.001, scheduler=scheduler)
            source = rx.zip(rx.from_iterable(values), ticks).pipe(rx.operators.map(lambda pair: pair[0]))
            drain(source.pipe(make(scheduler)), scheduler)

        return act

    return prepare


def snapshots(events: Events) -> Iterable[rd.Snapshot]:
    folds: dict[Any, rd.Fold] = {}
    for event in events:
        lane = (getattr(event, "choice", None) or 0, event.run_id)
        fold = folds.get(lane)
        if fold is None or fold.begins_another(event):
            fold = folds[lane] = rd.Fold(choice=lane[0], run_id=lane[1])
        yield fold.step(event)


def framed(events: Events) -> Iterable[bytes]:
    return (b"data: %s\n\n" % json.dumps(event.to_dict()).encode() for event in events)


def lined(events: Events) -> Iterable[bytes]:
    return (b"%s\n" % json.dumps(event.to_dict()).encode() for event in events)


def chunk(event: rd.Event) -> dict[str, Any]:
    return event.to_dict()


def chunks(events: Events) -> Iterable[Any]:
    return map(chunk, events)


def frames(events: Events) -> Iterable[Any]:
    encoder = rd.wire.AiSdkEncoder()
    return [*(frame for event in events for frame in encoder.encode(event)), *encoder.close()]


def lines(events: Events) -> Iterable[Any]:
    encoder = rd.wire.OllamaEncoder(now=lambda: 0.0)
    return [*(line for event in events for line in encoder.encode(event)), *encoder.close()]


class Entry(NamedTuple):
    """One line of a log."""

    id: str
    event: rd.Event


def logged(events: Events) -> Iterable[Entry]:
    return (Entry(f"e{number}", event) for number, event in enumerate(events))


OPERATORS: dict[str, Callable[[Events], Act]] = {
    "parse_sse": through(rd.parse_sse, framed),
    "parse_ndjson": through(rd.parse_ndjson, lined),
    "decode": through(lambda: rd.decode("langchain"), chunks),
    "retry_stream": lambda events: lambda: drain(rd.retry_stream(lambda: rx.from_iterable(events))),
    "fallback": lambda events: lambda: drain(rd.fallback(rx.from_iterable(events))),
    "race": lambda events: lambda: drain(rd.race(rx.from_iterable(events), rx.never())),
    "stall_timeout": timed(lambda scheduler: rd.stall_timeout(1, 1, scheduler=scheduler)),
    "until_stopped": through(lambda: rd.until_stopped(rx.never())),
    "redact": through(lambda: rd.redact(r"s\w+k|k\d+")),
    "map_text": through(lambda: rd.map_text(str.upper)),
    "cut_text": through(rd.cut_text),
    "sentences": through(rd.sentences),
    "until_sequence": through(lambda: rd.until_sequence("\n\n-", "some  ")),
    "guard": through(lambda: rd.guard(bool, context=100)),  # without it, each check gets all of the block
    "validate": through(lambda: rd.validate(nothing)),
    "run_tools": through(lambda: rd.run_tools({"f": lambda **_: 1})),
    "smooth": timed(lambda scheduler: rd.smooth(scheduler=scheduler)),
    "compact_deltas": timed(lambda scheduler: rd.compact_deltas(0.05, scheduler=scheduler)),
    "share_events": through(rd.share_events),
    "text_deltas": through(rd.text_deltas),
    "stable_blocks": through(rd.stable_blocks),
    "partial_json": through(rd.partial_json),
    "partial_arguments": through(rd.partial_arguments),
    "json_items": through(lambda: rd.json_items("a")),
    "completed_tool_calls": through(rd.completed_tool_calls),
    "group_by_block": through(rd.group_by_block),
    "only_choice": through(lambda: rd.only_choice(0)),
    "per_block": through(lambda: rd.per_block(lambda block: block)),
    "group_by_choice": through(rd.group_by_choice),
    "group_by_message": through(rd.group_by_message),
    "group_by_run": through(rd.group_by_run),
    "with_custom": through(lambda: rd.with_custom(rx.empty())),
    "with_limits": through(lambda: rd.with_limits(rd.Limits())),
    "with_run": through(lambda: rd.with_run("r")),
    "scan_deltas": through(rd.scan_deltas),
    "throttle_latest": timed(lambda scheduler: rd.throttle_latest(0.05, scheduler=scheduler), snapshots),
    "debounce_latest": timed(lambda scheduler: rd.debounce_latest(0.05, 0.2, scheduler=scheduler), snapshots),
    "conflate": timed(lambda scheduler: rd.conflate(scheduler=scheduler), snapshots),
    "share_latest": through(rd.share_latest, snapshots),
    "until_all_tools_terminal": through(rd.until_all_tools_terminal, snapshots),
    "to_message": through(rd.to_message, snapshots),
    "on_settled": through(lambda: rd.on_settled(nothing)),
    "tap_metrics": through(lambda: rd.tap_metrics(nothing)),
    "tap_otel": through(lambda: rd.tap_otel("openai")),
    "record": through(lambda: rd.record(os.devnull)),
    "to_ai_sdk": through(rd.to_ai_sdk),
    "to_ag_ui": through(lambda: rd.to_ag_ui(thread_id="t", run_id="r")),
    "to_langchain_events": through(rd.to_langchain_events),
    "to_openai_chat": through(lambda: rd.to_openai_chat("x")),
    "to_openai_responses": through(lambda: rd.to_openai_responses("x")),
    "to_anthropic_messages": through(lambda: rd.to_anthropic_messages("x")),
    "to_ollama": through(lambda: rd.to_ollama("x")),
    "to_sse": through(rd.to_sse, frames),
    "to_ndjson": through(rd.to_ndjson, lines),
    "to_resumable_sse": through(lambda: rd.to_resumable_sse(rx.operators.map(chunk)), logged),
}


# What else is done with a reply.


def last(events: Events) -> rd.Snapshot:
    *_, snapshot = snapshots(events)
    return snapshot


def merged(events: Events) -> Act:
    deltas = [rd.MessageDelta(content="hi") for _ in events]
    return lambda: rd.merge_deltas(deltas)


def told_again(events: Events) -> Act:
    snapshot = last(events)
    return lambda: rd.to_events(snapshot)


def stored(events: Events) -> Act:
    snapshot = last(events)
    return lambda: rd.Snapshot.from_dict(snapshot.to_dict())


VALUES = {"merge_deltas": merged, "to_events": told_again, "to_dict": stored}
ENCODERS = {
    "AiSdkEncoder": "to_ai_sdk",
    "AgUiEncoder": "to_ag_ui",
    "LangChainEncoder": "to_langchain_events",
    "OpenAiChatEncoder": "to_openai_chat",
    "OpenAiResponsesEncoder": "to_openai_responses",
    "AnthropicMessagesEncoder": "to_anthropic_messages",
    "OllamaEncoder": "to_ollama",
}
"""Which operator's row is an encoder's, too."""


# What a provider sends.

Chunks: TypeAlias = list[dict[str, Any]]


def whole(wire_format: str, *chunks: Any) -> Chunks:
    reply = REPLIES[wire_format]
    return [*reply.begin, *chunks, *reply.end(reply.stop)]


def in_pieces(chunks: Iterable[Any], word: str, pieces: Sequence[str]) -> Chunks:
    """The chunks with other text: the first that has the word once for each piece, and any other with all of them."""
    found: Chunks = []
    left = [*pieces]
    for chunk in chunks:
        written, mark = json.dumps(chunk), json.dumps(word)
        texts = left or ["".join(pieces)] if mark in written else [word]
        found += [json.loads(written.replace(mark, json.dumps(text))) for text in texts]
        left = left if mark not in written else []
    return found


def long_text(wire_format: str, n: int) -> Chunks:
    return whole(wire_format, *in_pieces(REPLIES[wire_format].text, "Hi", ["some "] * n))


def many_calls(wire_format: str, n: int) -> Chunks:
    return whole(wire_format, *(chunk for i in range(n) for chunk in REPLIES[wire_format].call(i)))


def long_arguments(wire_format: str, n: int) -> Chunks:
    pieces = ['{"n": 0', *["     "] * n, "}"]
    return whole(wire_format, *in_pieces(REPLIES[wire_format].call(0), '{"n": 0}', pieces))


def new_keys(wire_format: str, n: int) -> Chunks:
    return [{**chunk, f"k{i}": i} for i, chunk in enumerate(long_text(wire_format, n))]


def one_key(wire_format: str, n: int) -> Chunks:
    return [{**chunk, "x": {"n": i}} for i, chunk in enumerate(long_text(wire_format, n))]


CHUNKS = {
    one.__name__.replace("_", " "): one for one in (long_text, many_calls, long_arguments, new_keys, one_key)
}


def choice(index: int, delta: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "id": "m",
        "model": "x",
        "choices": [{"index": index, "delta": delta, "finish_reason": None}],
        **fields,
    }


def completion(n: int) -> Chunks:
    return [
        {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "some "}]} for _ in range(n)
    ]


def of_anthropic(deltas: Iterable[dict[str, Any]], **block: Any) -> Chunks:
    told = [{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas]
    start = {"type": "content_block_start", "index": 0, "content_block": block}
    return whole("anthropic-messages", start, *told, {"type": "content_block_stop", "index": 0})


def annotated(n: int) -> Chunks:
    def told(word: str, **fields: Any) -> dict[str, Any]:
        return {"type": f"response.{word}", "output_index": 0, "content_index": 0, **fields}

    item = {"id": "i", "type": "message", "role": "assistant", "content": []}
    notes = ({"type": "url_citation", "url": f"u{i}", "title": "t"} for i in range(n))
    return whole(
        "openai-responses",
        told("output_item.added", item=item),
        told("content_part.added", part={"type": "output_text", "text": "", "annotations": []}),
        *(
            told("output_text.annotation.added", annotation=one, annotation_index=i)
            for i, one in enumerate(notes)
        ),
    )


def gemini_arguments(n: int) -> Chunks:
    def told(**call: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": call}]}}]}

    keys = ({"jsonPath": f"$.k{i}", "numberValue": i} for i in range(n))
    pieces = (told(partialArgs=[key], willContinue=True) for key in keys)
    return whole("gemini", told(name="f", id="c", willContinue=True), *pieces, told())


OWN_CHUNKS: dict[str, tuple[str, Callable[[int], Chunks]]] = {
    "a completion": ("openai-completions", completion),
    "choices": ("openai-chat", lambda n: [choice(i, {"content": "Hi"}) for i in range(n)]),
    "calls of one index": (
        "openai-chat",
        lambda n: [
            choice(0, {"tool_calls": [{"index": 0, "id": f"c{i}", "function": {"name": "f", "arguments": "{}"}}]})
            for i in range(n)
        ],
    ),
    "text and reasoning": (
        "openai-chat",
        lambda n: [choice(0, {"reasoning_content" if i % 2 else "content": "some "}) for i in range(n)],
    ),
    "candidates": (
        "gemini",
        lambda n: [
            {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}, "index": i}]} for i in range(n)
        ],
    ),
    "keys of arguments": ("gemini", gemini_arguments),
    "citations": (
        "anthropic-messages",
        lambda n: of_anthropic(
            ({"type": "citations_delta", "citation": {"cited_text": "a", "document_index": i}} for i in range(n)),
            type="text", text="", citations=[],
        ),
    ),
    "a signature": (
        "anthropic-messages",
        lambda n: of_anthropic(
            [{"type": "signature_delta", "signature": "abcd"}] * n, type="thinking", thinking="", signature=""
        ),
    ),
    "annotations": ("openai-responses", annotated),
}  # fmt: skip


def decoding(wire_format: str, **options: Any) -> Callable[[Chunks], Act]:
    def prepare(chunks: Chunks) -> Act:
        def act() -> None:
            decoder = rd.providers.decoder(wire_format, **options)
            for chunk in chunks:
                decoder.decode(chunk)
            decoder.close()

        return act

    return prepare


# What is asked of them.


def growth(prepare: Callable[[T], Act], make: Callable[[int], T], few: int, most: float) -> float:
    """How many times the work for twice as much is, without what it costs to begin. Measured again if it is above `most`."""
    prepare(make(2))()  # imports what it needs
    least, found = [math.inf] * 3, math.inf
    tries = 4  # a table of the interpreter or of another package may grow meanwhile, which is no work of ours
    while tries and found > most:
        tries -= 1
        least = [min(known, work_done(prepare(make(n)))) for known, n in zip(least, (1, few, 2 * few))]
        one, some, twice = least
        found = (twice - one) / (some - one) if twice - one > 32 * few else 2  # next to nothing for each
    return found


KEEP_A_REPLY = (
    "retry_stream", "share_events", "group_by_choice", "group_by_message", "group_by_run", "scan_deltas",
    "on_settled", "tap_metrics", "tap_otel",
)  # fmt: skip
MANY_BLOCKS = ("blocks", "descending blocks", "open blocks", "calls", "open calls", "updates of calls")
EXCEPTIONS: dict[str, tuple[Iterable[str], Iterable[str]]] = {
    "a snapshot never changes and has a tuple of its blocks, so each copies it: a tenth of the time at 1,000 blocks": (
        MANY_BLOCKS, KEEP_A_REPLY,
    ),
    "a snapshot never changes and has a tuple of the application's events": (["custom"], KEEP_A_REPLY),
    "a snapshot never changes and has a dict of its metadata, which has at most `Limits.members` keys": (
        ["metadata"], KEEP_A_REPLY,
    ),
    "a block never changes and has a dict of its fields, which has at most `Limits.members` keys": (
        ["fields", "call fields"], ["scan_deltas", *OPERATORS],
    ),
    "each value is a `str` or `dict` of its own that never changes": (
        ["long argument", "argument keys", "json text"], ["partial_arguments", "partial_json"],
    ),
    "a block in front of the others begins another document": (["descending blocks"], ["partial_json"]),
    "it asks each call of each snapshot whether its tool has ended": (
        ["updates of calls"], ["share_latest", "until_all_tools_terminal"],
    ),
    "a unit's beginning is looked at again until its end has come, or it is cut": (
        ["json text"], ["cut_text", "map_text", "sentences", "guard"],
    ),
    "the usage in a chunk is every candidate's, of which there are at most eight": (["candidates"], ["gemini"]),
}  # fmt: skip
"""Why it can't be less: the ways to grow, and whose work grows more with them."""

REFUSED: dict[str, Iterable[str]] = {
    "scan_deltas": ["messages", "runs"],
    "retry_stream": ["messages"],
    "text_deltas": ["runs"],
    "sentences": ["runs"],
    "stable_blocks": ["runs"],
    "partial_json": ["runs"],
    "partial_arguments": ["runs"],
    "completed_tool_calls": ["runs"],
    "json_items": [
        "text", "one line", "paragraphs", "blocks", "descending blocks", "open blocks", "metadata", "attempts",
        "messages", "choices", "runs",
    ],
}  # fmt: skip
"""Who ends which streams with an error, because it doesn't take them."""


def check(prepare: Callable[[T], Act], name: str, shapes: Mapping[str, Callable[[int], T]], few: int) -> None:
    excepted = {shape for some, names in EXCEPTIONS.values() if name in names for shape in some}
    above = {}
    for shape, make in shapes.items():
        if shape in REFUSED.get(name, ()):
            with pytest.raises(rd.RxDeltaError):
                prepare(make(2))()
        else:
            most = 2 * MOST if shape in excepted else MOST  # no worse than the square
            times = growth(prepare, make, few, most)
            if times > most:
                above[shape] = times
    assert not above


def sizes(few: int, names: Iterable[str]) -> list[Any]:
    """Each name with few of a thing, and in the soak with many, which may show a square that few don't."""
    many = (pytest.param(name, MANY, marks=pytest.mark.soak) for name in names)
    return [*((name, few) for name in names), *many]


FIRST = ("text", "blocks", "long argument")
OTHERS = [shape for shape in SHAPES if shape not in FIRST]


def shapes_of(name: str, few: int) -> Mapping[str, Callable[[int], Events]]:
    """All shapes in the soak; otherwise the first ones and a quarter of the others, each time another quarter.

    The name's place chooses the quarter, so that each shape is tried on each fourth operator.
    """
    if few == MANY:
        return SHAPES
    quarter = OTHERS[[*OPERATORS, *VALUES].index(name) % 4 :: 4]
    return {shape: SHAPES[shape] for shape in (*FIRST, *quarter)}


@says("**Resources.**")
@pytest.mark.parametrize(("name", "few"), sizes(FEW, [*OPERATORS, *VALUES]))
def test_twice_as_much_is_at_most_so_many_times_the_work(name: str, few: int) -> None:
    check({**OPERATORS, **VALUES}[name], name, shapes_of(name, few), few)


@says("**Resources.**")
@pytest.mark.parametrize(("wire_format", "few"), sizes(2 * FEW, rd.providers.FORMATS))
def test_twice_as_many_chunks_are_at_most_so_many_times_the_work(wire_format: str, few: int) -> None:
    shapes = {name: partial(make, wire_format) for name, make in CHUNKS.items() if wire_format in REPLIES}
    shapes |= {name: make for name, (of, make) in OWN_CHUNKS.items() if of == wire_format}
    check(decoding(wire_format), wire_format, shapes, few)


@pytest.mark.soak
@pytest.mark.parametrize("reason", EXCEPTIONS)
def test_an_exception_is_still_needed(reason: str) -> None:
    shapes, (name, *_) = EXCEPTIONS[reason]
    prepare = OPERATORS.get(name) or decoding(name)
    made = {**SHAPES, **{shape: make for shape, (_, make) in OWN_CHUNKS.items()}}
    assert any(growth(prepare, made[shape], MANY, MOST) > MOST for shape in shapes)


def test_nothing_is_missing_in_the_table() -> None:
    no_operators = {"exponential_backoff", "is_transient"}
    functions = {name for name in operators.__all__ if inspect.isfunction(getattr(operators, name))}
    assert (functions | {"record"}) - no_operators == OPERATORS.keys()
    assert {name for name in rd.wire.__all__ if name.endswith("Encoder")} - {"Encoder"} == ENCODERS.keys()
    assert {*ENCODERS.values()} <= OPERATORS.keys()
    assert {*rd.providers.FORMATS} == {*REPLIES, *(wire_format for wire_format, _ in OWN_CHUNKS.values())}
