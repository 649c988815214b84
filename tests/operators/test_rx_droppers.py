"""Rx's own operators in front of a reader of events: those that drop events in silence are refused, and all are known."""

from __future__ import annotations

from inspect import isfunction
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from operators.test_marks import NEEDS_ALL
from reactivex import operators as ops

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable

    Operator = Callable[[Observable[Any]], Observable[Any]]

ev = rd.events
Source = rx.never()
READS_NO_EVENTS = {"decode", "parse_sse", "parse_ndjson"}

BY_TIME: dict[str, Operator] = {
    "sample": ops.sample(1),
    "sample by an observable": ops.sample(rx.never()),
    "throttle_first": ops.throttle_first(1),
    "throttle_with_mapper": ops.throttle_with_mapper(lambda _: rx.never()),
    "throttle_with_timeout": ops.throttle_with_timeout(1),
    "debounce": ops.debounce(1),
}
THE_BEGINNING: dict[str, Operator] = {
    "skip": ops.skip(1),
    "skip_until": ops.skip_until(rx.never()),
    "skip_until_with_time": ops.skip_until_with_time(1),
    "skip_while": ops.skip_while(lambda _: True),
    "skip_with_time": ops.skip_with_time(1),
    "slice": ops.slice(1, None),
}
OTHERS: dict[str, Operator] = {
    "distinct": ops.distinct(),
    "distinct_until_changed": ops.distinct_until_changed(),
    "element_at": ops.element_at(1),
    "element_at_or_default": ops.element_at_or_default(1),
    "skip_last": ops.skip_last(1),
    "skip_last_with_time": ops.skip_last_with_time(1),
    "take_last": ops.take_last(1),
    "take_last_with_time": ops.take_last_with_time(1),
}
NEVER = {**BY_TIME, **THE_BEGINNING, **OTHERS}

SAFE = {
    "amb", "as_observable", "catch", "concat", "default_if_empty", "delay", "delay_subscription", "dematerialize", "do",
    "do_action", "do_while", "finally_action", "merge", "observe_on", "on_error_resume_next", "publish", "ref_count",
    "repeat", "retry", "share", "start_with", "subscribe_on", "tap", "timeout", "timeout_with_mapper", "while_do",
}  # fmt: skip
"""All events, in their order. What is added or comes again is refused by the fold as another message, or counted."""

ENDS_EARLY = {
    "first", "first_or_default", "ignore_elements", "take", "take_until", "take_until_with_time", "take_while",
    "take_while_indexed", "take_with_time",
}  # fmt: skip
"""A beginning of the events: the reply is incomplete, and says so."""

THE_USER_SAYS_WHICH = {
    "delay_with_mapper", "exclusive", "expand", "filter", "filter_indexed", "find", "flat_map", "flat_map_indexed",
    "flat_map_latest", "concat_all", "concat_map", "group_by", "group_by_until", "last", "last_or_default", "merge_all",
    "multicast", "partition", "partition_indexed", "publish_value", "replay", "scan", "single", "single_or_default",
    "single_or_default_async", "skip_while_indexed", "switch_latest", "switch_map", "switch_map_indexed", "to_future",
}  # fmt: skip
"""Right or wrong by what the user's function, or the streams within, say. What they leave that is illegal is counted."""

OTHER_VALUES = {
    "all", "average", "buffer", "buffer_toggle", "buffer_when", "buffer_with_count", "buffer_with_time",
    "buffer_with_time_or_count", "combine_latest", "contains", "count", "find_index", "fork_join", "group_join", "is_empty",
    "join", "map", "map_indexed", "materialize", "max", "max_by", "min", "min_by", "pairwise", "pluck", "pluck_attr",
    "reduce", "sequence_equal", "some", "starmap", "starmap_indexed", "sum", "take_last_buffer", "time_interval",
    "timestamp", "to_dict", "to_iterable", "to_list", "to_marbles", "to_set", "window", "window_toggle", "window_when",
    "window_with_count", "window_with_time", "window_with_time_or_count", "with_latest_from", "zip", "zip_latest",
    "zip_with_iterable", "zip_with_list",
}  # fmt: skip
"""Not the events themselves. A reader of events refuses the first value that is none."""


def test_each_operator_of_rx_is_in_one_of_these_tables() -> None:
    """So that a new one is thought about, and `docs/order.md` with it."""
    known = {name for name, made in vars(ops).items() if isfunction(made) and made.__module__ == ops.__name__}
    tables = [SAFE, ENDS_EARLY, THE_USER_SAYS_WHICH, OTHER_VALUES, NEVER.keys() - {"sample by an observable"}]
    assert sum(map(len, tables)) == len(set[str]().union(*tables))
    assert set[str]().union(*tables) == known


@pytest.mark.parametrize("dropper", NEVER)
@pytest.mark.parametrize("name", sorted(NEEDS_ALL.keys() - READS_NO_EVENTS))
def test_a_reader_of_events_refuses_who_drops_some(name: str, dropper: str) -> None:
    source = Source.pipe(rd.decode("openai-chat"), NEVER[dropper])
    with pytest.raises(rd.InvalidValueError, match=rf"^{name}\(\) needs every value, and ops\."):
        source.pipe(NEEDS_ALL[name])


@pytest.mark.parametrize("dropper", NEVER)
@pytest.mark.parametrize("name", sorted(READS_NO_EVENTS))
def test_a_reader_of_chunks_refuses_who_drops_by_time(name: str, dropper: str) -> None:
    """The first lines of a file, or a chunk that was sent twice, may well be left out."""
    if dropper in BY_TIME:
        with pytest.raises(rd.InvalidValueError, match=rf"^{name}\(\) needs every value, and ops\."):
            Source.pipe(BY_TIME[dropper], NEEDS_ALL[name])
    else:
        Source.pipe(NEVER[dropper], NEEDS_ALL[name])


def test_the_refusal_names_the_operator_and_the_cure() -> None:
    def refused(dropper: Operator) -> str:
        with pytest.raises(rd.InvalidValueError) as error:
            Source.pipe(dropper, rd.scan_deltas())
        assert error.value.field == "source"
        return str(error.value)

    assert "ops.sample() in front of it drops some; for fewer updates put throttle_latest()" in refused(
        ops.sample(1)
    )
    assert "ops.debounce() in front" in refused(ops.throttle_with_timeout(1))
    assert "throttle_with_timeout() is another name" in refused(ops.throttle_with_timeout(1))
    assert "choose among snapshots, behind scan_deltas()" in refused(ops.skip(3))
    assert "two equal events are two pieces" in refused(ops.distinct())
    assert "until_stopped()" in refused(ops.skip_last(1))


@pytest.mark.parametrize("dropper", NEVER)
def test_behind_the_fold_everything_may_be_dropped(dropper: str) -> None:
    Source.pipe(rd.scan_deltas(), NEVER[dropper], rd.to_message())


@pytest.mark.parametrize(
    "legal", [ops.filter(bool), ops.take(1), ops.take_while(bool), ops.first(), ops.last(), ops.map(repr)]
)
def test_what_is_the_users_own_decision_is_taken(legal: Operator) -> None:
    for name in NEEDS_ALL.keys() - READS_NO_EVENTS:
        Source.pipe(legal, NEEDS_ALL[name])


def test_who_has_the_beginning_may_skip_it() -> None:
    start = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "Hel")]
    events = [*start, ev.TextDelta(0, "lo"), ev.BlockFinish(0), ev.MessageFinish("stop")]
    half = rx.from_iterable(start).pipe(rd.scan_deltas()).run()
    whole = rx.from_iterable(events).pipe(ops.skip(3), rd.scan_deltas(half)).run()
    assert (whole.text, whole.status, whole.violations) == ("Hello", "complete", {})
    for beginning in THE_BEGINNING.values():
        Source.pipe(beginning, rd.scan_deltas(half))
    for dropper in {**BY_TIME, **OTHERS}.values():
        with pytest.raises(rd.InvalidValueError, match="needs every value"):
            Source.pipe(dropper, rd.scan_deltas(half))
