"""Which pipelines are refused when they are built: pieces in front of a newest-value operator, and that in front of others."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from reactivex.subject import Subject

import rxdelta as rd
from rxdelta import operators

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    Operator = Callable[[Observable[Any]], Observable[Any]]

Source = rx.never()

KEEPS_THE_NEWEST: dict[str, Callable[..., Operator]] = {
    "throttle_latest": lambda **options: rd.throttle_latest(1, **options),
    "debounce_latest": lambda **options: rd.debounce_latest(1, **options),
    "conflate": rd.conflate,
    "share_latest": rd.share_latest,
}
EMITS_PIECES: dict[str, Operator] = {
    "decode": rd.decode("openai-chat"),
    "parse_sse": rd.parse_sse(),
    "parse_ndjson": rd.parse_ndjson(),
    "validate": rd.validate(),
    "run_tools": rd.run_tools({}),
    "compact_deltas": rd.compact_deltas(1),
    "smooth": rd.smooth(),
    "redact": rd.redact("x"),
    "map_text": rd.map_text(str),
    "cut_text": rd.cut_text(),
    "sentences": rd.sentences(),
    "until_sequence": rd.until_sequence("x"),
    "guard": rd.guard(bool),
    "until_stopped": rd.until_stopped(Subject()),
    "with_custom": rd.with_custom(Subject()),
    "with_run": rd.with_run("a"),
    "share_events": rd.share_events(),
    "retry_stream": lambda source: rd.retry_stream(lambda: source),
    "fallback": lambda source: rd.fallback(source),
    "race": lambda source: rd.race(source),
    "text_deltas": rd.text_deltas(),
    "completed_tool_calls": rd.completed_tool_calls(),
    "json_items": rd.json_items("steps"),
    "group_by_block": rd.group_by_block(),
    "group_by_message": rd.group_by_message(),
    "group_by_choice": rd.group_by_choice(),
    "group_by_run": rd.group_by_run(),
    "to_ai_sdk": rd.to_ai_sdk(),
    "to_ag_ui": rd.to_ag_ui(),
    "to_langchain_events": rd.to_langchain_events(),
    "to_openai_chat": rd.to_openai_chat(),
    "to_openai_responses": rd.to_openai_responses(),
    "to_anthropic_messages": rd.to_anthropic_messages(),
    "to_ollama": rd.to_ollama(),
    "to_sse": rd.to_sse(),
    "to_ndjson": rd.to_ndjson(),
    "to_resumable_sse": rd.to_resumable_sse(rd.to_ai_sdk()),
}
EMITS_STATES: dict[str, Operator] = {
    "scan_deltas": rd.scan_deltas(),
    "per_block": rd.per_block(lambda block: block),
    "partial_arguments": rd.partial_arguments(),
    "partial_json": rd.partial_json(),
    "stable_blocks": rd.stable_blocks(),
    "until_all_tools_terminal": rd.until_all_tools_terminal(),
    "to_message": rd.to_message(),
}
PASSES_ON: dict[str, Operator] = {
    "only_choice": rd.only_choice(0),
    "with_limits": rd.with_limits(rd.Limits()),
    "stall_timeout": rd.stall_timeout(idle=1),
    "tap_metrics": rd.tap_metrics(print),
    "on_settled": rd.on_settled(print),
    "record": rd.record(os.devnull),
    "until_all_tools_terminal": rd.until_all_tools_terminal(),
}
NEEDS_ALL: dict[str, Operator] = {
    name: {**EMITS_PIECES, **EMITS_STATES}[name]
    for name in (
        "decode",
        "parse_sse",
        "parse_ndjson",
        "scan_deltas",
        "redact",
        "map_text",
        "cut_text",
        "sentences",
        "until_sequence",
        "guard",
        "text_deltas",
        "completed_tool_calls",
        "json_items",
        "partial_arguments",
        "partial_json",
        "stable_blocks",
        "to_ai_sdk",
        "to_ag_ui",
        "to_langchain_events",
        "to_openai_chat",
        "to_openai_responses",
        "to_anthropic_messages",
        "to_ollama",
    )
}
NOT_PUBLIC_STEPS = {"tap_otel", *NEEDS_ALL, *EMITS_PIECES, *EMITS_STATES, *PASSES_ON, *KEEPS_THE_NEWEST}

each_newest = pytest.mark.parametrize("newest", KEEPS_THE_NEWEST)


@each_newest
@pytest.mark.parametrize("name", EMITS_PIECES)
def test_pieces_are_refused_when_the_pipeline_is_built(name: str, newest: str) -> None:
    source = Source.pipe(EMITS_PIECES[name])
    with pytest.raises(rd.InvalidValueError) as refused:
        source.pipe(KEEPS_THE_NEWEST[newest]())
    assert f"{newest} would drop" in str(refused.value)
    assert name in str(refused.value)
    source.pipe(KEEPS_THE_NEWEST[newest](key=lambda value: value))


@each_newest
@pytest.mark.parametrize("name", EMITS_STATES)
def test_states_are_taken(name: str, newest: str) -> None:
    Source.pipe(EMITS_STATES[name], KEEPS_THE_NEWEST[newest]())


@each_newest
@pytest.mark.parametrize("name", PASSES_ON)
def test_an_operator_that_passes_values_on_passes_on_what_they_are(name: str, newest: str) -> None:
    passed = Source.pipe(rd.text_deltas(), PASSES_ON[name])
    with pytest.raises(rd.InvalidValueError, match="pieces of text of text_deltas"):
        passed.pipe(KEEPS_THE_NEWEST[newest]())
    Source.pipe(PASSES_ON[name], KEEPS_THE_NEWEST[newest]())
    chosen = Source.pipe(KEEPS_THE_NEWEST[newest](), PASSES_ON[name])
    with pytest.raises(rd.InvalidValueError, match=rf"needs every value, and {newest}\(\)"):
        chosen.pipe(rd.scan_deltas())


@each_newest
def test_an_operator_that_is_measured_refuses_and_is_refused_as_without_the_meter(newest: str) -> None:
    def measured() -> Operator:
        return rd.tap_metrics(print, through=KEEPS_THE_NEWEST[newest]())

    with pytest.raises(rd.InvalidValueError, match=f"{newest} would drop pieces of text"):
        Source.pipe(rd.text_deltas(), measured())
    with pytest.raises(rd.InvalidValueError, match=rf"needs every value, and {newest}\(\)"):
        Source.pipe(measured(), rd.scan_deltas())
    Source.pipe(rd.scan_deltas(), measured())


@each_newest
@pytest.mark.parametrize("name", NEEDS_ALL)
def test_who_needs_every_value_refuses_the_newest(name: str, newest: str) -> None:
    chosen = Source.pipe(KEEPS_THE_NEWEST[newest]())
    with pytest.raises(rd.InvalidValueError, match=rf"{name}\(\) needs every value, and {newest}\(\)"):
        chosen.pipe(NEEDS_ALL[name])


@each_newest
def test_behind_rx_operators_a_value_is_what_the_user_made_of_it(newest: str) -> None:
    Source.pipe(rd.text_deltas(), ops.scan(lambda a, b: a + b), KEEPS_THE_NEWEST[newest]())
    Source.pipe(KEEPS_THE_NEWEST[newest](), ops.map(str), rd.decode("openai-chat"))


def test_branches_of_events_are_refused_and_those_of_blocks_taken() -> None:
    source, branches = Subject[rd.Event](), list[Any]()
    for group in (rd.group_by_block(), rd.group_by_message(), rd.group_by_run(), rd.group_by_choice()):
        source.pipe(group).subscribe(branches.append)
    source.on_next(rd.events.MessageStart())
    source.on_next(rd.events.BlockStart(0, {"type": "text"}))
    assert len(branches) == 4
    for branch in branches:
        if isinstance(branch, rd.types.BlockStream):
            branch.pipe(rd.throttle_latest(1))
        else:
            with pytest.raises(rd.InvalidValueError, match="throttle_latest would drop events of group_by_"):
                branch.pipe(rd.throttle_latest(1))


def test_operators_of_the_users_own_may_say_what_they_emit() -> None:
    class Twice:
        def step(self, value: Any) -> list[Any]:
            return [value, value]

    own = rd.building.lift_machine("twice", lambda _: Twice(), emits="items", needs_all=True)
    with pytest.raises(rd.InvalidValueError, match=r"conflate would drop items of twice\(\)"):
        Source.pipe(own, rd.conflate())
    with pytest.raises(rd.InvalidValueError, match=r"twice\(\) needs every value"):
        Source.pipe(rd.conflate(), own)


@pytest.mark.parametrize("make", [rd.building.lift, rd.building.lift_machine, rd.building.lift_map])
def test_an_unknown_word_for_what_an_operator_emits_is_refused(make: Any) -> None:
    own = make("own", lambda _: None, emits="text")
    with pytest.raises(rd.InvalidValueError, match=r"emits: .* did you mean 'texts'\?"):
        Source.pipe(own)


def test_a_refusal_advises_what_can_be_done_there() -> None:
    def refused(*steps: Operator) -> str:
        with pytest.raises(rd.InvalidValueError) as error:
            Source.pipe(*steps)
        return str(error.value)

    assert "share the events in front of text_deltas() with share_events()" in refused(
        rd.text_deltas(), rd.share_latest()
    )
    with pytest.raises(
        rd.InvalidValueError, match=r"read each stream by itself: per_block\(.*throttle_latest"
    ):
        rd.to_iterable(Source.pipe(rd.group_by_block()), "latest")
    with pytest.raises(rd.InvalidValueError, match="would drop an Observable"):
        rx.of(rx.of(1)).pipe(rd.conflate()).run()
    with pytest.raises(rd.InvalidValueError, match="would drop a UsageUpdate"):
        rx.of(rd.events.UsageUpdate(rd.TokenUsage())).pipe(rd.conflate()).run()


def test_every_operator_is_in_one_of_these_tables() -> None:
    """So that a new one is thought about."""
    makers = {name for name in rd.__all__ if hasattr(operators, name) and name.islower()} | {"record"}
    assert makers - {"exponential_backoff"} == NOT_PUBLIC_STEPS


# Loops.


def test_a_for_loop_over_an_observable_is_refused() -> None:
    for observable in (Source.pipe(rd.scan_deltas()), rd.retry_stream(lambda: Source)):
        with pytest.raises(
            rd.InvalidValueError, match=r"a `for` loop can't read an Observable.*rd\.to_iterable"
        ):
            for _ in observable:  # type: ignore[attr-defined]
                pass


def test_an_async_for_loop_over_an_observable_is_refused() -> None:
    import asyncio

    async def main() -> None:
        snapshots: Any = Source.pipe(rd.scan_deltas())
        with pytest.raises(rd.InvalidValueError, match=r"an `async for` loop.*rd\.to_async_iterable"):
            async for _ in snapshots:
                pass
        with pytest.raises(rd.InvalidValueError, match=r"inside a block.*`async with to_async_iterable"):
            async for _ in rd.to_async_iterable(snapshots):  # type: ignore[attr-defined]
                pass
        with pytest.raises(rd.InvalidValueError, match=r"inside a block.*`with to_iterable"):
            for _ in rd.to_iterable(snapshots):
                pass

    asyncio.run(main())


def test_a_slice_of_an_observable_is_still_rx() -> None:
    got: list[int] = []
    rx.of(1, 2, 3).pipe(rd.conflate())[1:2].subscribe(got.append)
    assert got == [2]
