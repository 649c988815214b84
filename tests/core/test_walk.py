"""The law of a message and its blocks, cell by cell, and what must hold for any events."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

import rxdelta as rd
from rxdelta.core import Change, Walk, Walks
from tests.core.strategies import events

ev = rd.events

TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{}"}
WHOLE = {"type": "tool_call", "id": "c1", "name": "f", "args": {"n": 1}}
BEGUN = [ev.MessageStart("m"), ev.BlockStart(0, TEXT)]
OVER = [*BEGUN, ev.MessageFinish("stop")]
ENDED = [*BEGUN, ev.BlockFinish(0)]


def kinds(changes: Any) -> list[str]:
    return [change.kind for change in changes]


def after(before: list[rd.Event], event: rd.Event) -> list[str]:
    walk = Walk(0)
    for one in before:
        walk.step(one)
    return kinds(walk.step(event))


@pytest.mark.parametrize(
    ("state", "event", "expected"),
    [
        # The message.
        ([], ev.MessageStart("m"), ["started"]),
        ([ev.MessageStart("m")], ev.MessageStart("n"), ["started"]),
        (BEGUN, ev.MessageStart("m"), ["started"]),
        (BEGUN, ev.MessageStart("n"), ["another", "started"]),
        (BEGUN, ev.MessageStart(), ["another", "started"]),
        ([ev.BlockStart(0, TEXT)], ev.MessageStart("m"), ["started"]),
        ([ev.BlockStart(0, TEXT), ev.MessageStart()], ev.MessageStart("m"), ["another", "started"]),
        (OVER, ev.MessageStart("m"), ["another", "started"]),
        ([], ev.UsageUpdate(rd.TokenUsage(1)), ["usage"]),
        (OVER, ev.UsageUpdate(rd.TokenUsage(1)), []),
        ([], ev.MessageFinish(), ["ended"]),
        (BEGUN, ev.MessageFinish(), ["closed", "ended"]),
        (OVER, ev.MessageFinish(), []),
        ([], ev.MessageInterrupted(), ["ended"]),
        (BEGUN, ev.MessageInterrupted(choice=0), ["closed", "ended"]),
        (BEGUN, ev.MessageInterrupted(choice=1), []),
        (OVER, ev.MessageInterrupted(), []),
        ([], ev.AttemptReset(), ["reset"]),
        (BEGUN, ev.AttemptReset(), ["reset"]),
        (OVER, ev.AttemptReset(), ["another", "reset"]),
        (OVER, ev.AttemptReset(choice=0), ["reset"]),
        (OVER, ev.AttemptReset(choice=1), []),
        (BEGUN, ev.ProviderEvent("p", "ping"), []),
        (BEGUN, ev.TextDelta(0, "a", choice=1), []),
        # A block.
        ([], ev.BlockStart(0, TEXT), ["opened"]),
        ([], ev.TextDelta(0, "a"), []),
        ([], ev.BlockDelta(0, {"text": "a"}), []),
        ([], ev.BlockFinish(0), []),
        ([], ev.BlockFinish(0, TEXT), ["opened", "closed"]),
        (BEGUN, ev.BlockStart(0, TEXT), ["restarted"]),
        (BEGUN, ev.TextDelta(0, "a"), ["grown"]),
        (BEGUN, ev.TextDelta(0, ""), []),
        (BEGUN, ev.ToolCallDelta(0, "a"), []),
        (BEGUN, ev.BlockDelta(0, {"text": "a"}), ["changed"]),
        (BEGUN, ev.BlockDelta(0, {"text": None}), []),
        (BEGUN, ev.BlockFinish(0), ["closed"]),
        (BEGUN, ev.BlockFinish(0, WHOLE), ["closed"]),
        (ENDED, ev.BlockStart(0, TEXT), ["restarted"]),
        (ENDED, ev.TextDelta(0, "a"), []),
        (ENDED, ev.BlockDelta(0, {"text": "a"}), []),
        (ENDED, ev.BlockFinish(0), []),
        (ENDED, ev.BlockFinish(0, TEXT), ["overruled"]),
        (OVER, ev.BlockStart(1, TEXT), []),
        (OVER, ev.BlockFinish(0, TEXT), []),
        (OVER, ev.BlockFinish(1, TEXT), []),
    ],
)
def test_the_table(state: list[rd.Event], event: rd.Event, expected: list[str]) -> None:
    assert after(state, event) == expected


@pytest.mark.parametrize("state", [[], BEGUN, OVER])
def test_an_error_is_raised_in_every_state_and_for_every_choice(state: list[rd.Event]) -> None:
    with pytest.raises(rd.ProviderError, match="overloaded"):
        after(state, ev.StreamError("overloaded", choice=3))


def test_the_end_closes_the_blocks_in_the_order_of_the_message() -> None:
    walk = Walk()
    for index in (2, "b", 0, "a", 1):
        walk.step(ev.BlockStart(index, TEXT))
    closed = walk.step(ev.MessageFinish())[:-1]
    assert [change.fold.block.key for change in closed] == [0, 1, 2, "b", "a"]


def test_updates_find_a_running_call_of_an_earlier_message_beyond_the_attempts_at_the_next() -> None:
    walk = Walk(0)
    running = [ev.BlockFinish(0, WHOLE), ev.ToolUpdate("c1", "executing"), ev.MessageFinish()]
    for event in [*running, ev.AttemptReset(1), ev.BlockFinish(0, WHOLE | {"id": "c2"}), ev.AttemptReset(2)]:
        walk.step(event)
    assert kinds(walk.step(ev.ToolUpdate("c1", "completed"))) == ["noted"]
    assert kinds(walk.step(ev.ToolUpdate("c2", "completed"))) == []


@pytest.mark.parametrize("acts", [True, False])
def test_a_call_that_was_let_go_by_a_reader_that_acts_is_repeated_when_it_ends_again(acts: bool) -> None:
    walk = Walk()
    (_, closed) = walk.step(ev.BlockFinish(0, WHOLE))
    walk.let_go(closed.fold, acts=acts)
    walk.step(ev.BlockStart(0, CALL))
    assert [change.repeated for change in walk.step(ev.BlockFinish(0))] == [acts]


def test_a_block_that_was_let_go_opens_anew() -> None:
    walk = Walk()
    for index in (0, 1, "a"):
        (_, closed) = walk.step(ev.BlockFinish(index, TEXT))
        walk.let_go(closed.fold)
    assert not walk.blocks
    for index in (0, 1, "a"):
        assert walk.step(ev.BlockFinish(index, TEXT)) == ()
        assert kinds(walk.step(ev.BlockStart(index, TEXT))) == ["opened"]
    assert walk.count == 3


def test_only_an_open_block_of_its_kind_and_choice_grows_by_a_piece() -> None:
    walk = Walk(0)
    assert walk.grow(ev.TextDelta(0, "x")) is None
    walk.step(ev.BlockStart(0, TEXT))
    pieces = [
        ev.TextDelta(1, "x"),
        ev.ToolCallDelta(0, "x"),
        ev.TextDelta(0, "x", choice=1),
        ev.TextDelta(0, ""),
    ]
    assert [walk.grow(piece) for piece in pieces] == [None] * 4
    fold = walk.grow(ev.TextDelta(0, "y"))
    assert fold is walk.blocks[0]
    assert fold.block.text == "y"  # type: ignore[union-attr]


def test_a_block_stays_as_it_was_if_its_new_content_is_too_long() -> None:
    walk = Walk(0, limits=rd.Limits(block_chars=3))
    walk.step(ev.BlockStart(0, {"type": "text", "text": "Hi"}))
    before = walk.blocks[0].block
    long = {"type": "refusal", "refusal": "Hello"}
    for event in (ev.BlockStart(0, long), ev.BlockDelta(0, {"text": "Hello"}), ev.BlockFinish(0, long)):
        with pytest.raises(rd.errors.LimitExceededError):
            walk.step(event)
        assert walk.blocks[0].block is before


def test_limits_hold_where_something_is_added() -> None:
    walk = Walk(limits=rd.Limits(index=5, blocks=1, block_chars=3))
    with pytest.raises(rd.errors.LimitExceededError, match="index"):
        walk.step(ev.BlockStart(5, TEXT))
    walk.step(ev.BlockStart(0, TEXT))
    walk.step(ev.BlockStart(0, TEXT))
    with pytest.raises(rd.errors.LimitExceededError, match="blocks"):
        walk.step(ev.BlockStart(1, TEXT))
    with pytest.raises(rd.errors.LimitExceededError, match="block_chars"):
        walk.step(ev.TextDelta(0, "abcd"))


# What must hold for any events.


def shown(fold: rd.Fold, event: rd.Event) -> object:
    try:
        return fold.step(event)
    except rd.RxDeltaError as error:
        return type(error), error.snapshot


@given(st.lists(events() | st.builds(ev.MessageStart, st.none()), max_size=40))
def test_a_fold_that_is_stored_at_every_step_gives_what_one_fold_gives(told: list[rd.Event]) -> None:
    whole = rd.Fold()
    snapshot: rd.Snapshot | None = None
    for event in told:
        expected = shown(whole, event)
        stored = rd.Fold(None if snapshot is None else rd.Snapshot.from_dict(snapshot.to_dict()))
        assert shown(stored, event) == expected
        snapshot = whole.snapshot
        assert [block.open for block in stored.snapshot.blocks] == [block.open for block in snapshot.blocks]


@given(st.lists(events(), max_size=40))
def test_a_fold_shows_the_blocks_of_the_walk(told: list[rd.Event]) -> None:
    """The quick way of a fold for deltas is the walk's."""
    fold, walk = rd.Fold(), Walk()
    for event in told:
        before = fold.snapshot
        if walk.begins_another(event) or isinstance(event, ev.StreamError):
            continue
        changes = walk.step(event)
        kept = isinstance(event, ev.Custom)  # by a fold, and no walk needs it
        counted = fold.step(event).violations != before.violations
        assert (fold.snapshot is not before) <= bool(changes or kept or counted)
        assert {block.key: block for block in fold.snapshot.blocks} == {
            key: known.block for key, known in walk.blocks.items()
        }
        if any(change.kind == "grown" for change in changes):
            assert fold.snapshot is not before


@given(st.lists(events(), max_size=30), st.lists(events(), max_size=30), st.randoms())
def test_a_choice_is_followed_as_if_it_were_alone(one: list[Any], other: list[Any], random: Any) -> None:
    def of_choice(event: Any, choice: int) -> Any:
        return attrs.evolve(event, choice=choice) if hasattr(event, "choice") else event

    def log(walk: Walk, event: rd.Event) -> list[tuple[str, Any]]:
        return [(change.kind, change.fold and change.fold.block) for change in walk.step(event)]

    lists = [[of_choice(event, 0) for event in one], [of_choice(event, 1) for event in other]]
    alone, together, walks = Walk(0), [], Walks()
    expected = [log(alone, event) for event in lists[0]]
    while any(lists):
        choice = random.choice([number for number in (0, 1) if lists[number]])
        event = lists[choice].pop(0)
        together += [(choice, log(walk, event)) for walk in walks.of(event) if walk.choice == choice]
    got = [changes for choice, changes in together if choice == 0]
    assert [changes for changes in got if changes] == [changes for changes in expected if changes]


CHANGED = "arguments_changed_after_run"


def folded(*told: rd.Event) -> rd.ToolCall:
    fold = rd.Fold()
    for event in told:
        fold.step(event)
    (call,) = fold.snapshot.tool_calls
    return call


@pytest.mark.parametrize("status", ["executing", "completed", "failed"])
def test_a_second_finish_with_other_arguments_marks_a_call_that_has_run(status: str) -> None:
    other = ev.BlockFinish(0, {**WHOLE, "args": {"n": 2}})
    call = folded(ev.BlockFinish(0, WHOLE), ev.ToolUpdate("c1", status), other)
    assert (call.arguments, call.metadata[CHANGED], call.execution_status()) == ({"n": 2}, True, status)
    assert CHANGED not in folded(ev.BlockFinish(0, WHOLE), other).metadata
    same = folded(ev.BlockFinish(0, WHOLE), ev.ToolUpdate("c1", status), ev.BlockFinish(0, WHOLE))
    assert CHANGED not in same.metadata


def test_a_call_that_is_called_invalid_after_its_end_is_invalid_unless_it_has_run() -> None:
    late = ev.BlockFinish(0, {"type": "invalid_tool_call", "error": "no", "late_arguments": "}"})
    fold = rd.Fold()
    for event in (ev.BlockFinish(0, WHOLE), late):
        fold.step(event)
    call: Any = fold.snapshot.blocks[0]
    assert (call.type, call.error, call.metadata["late_arguments"]) == (
        "invalid_tool_call",
        "no",
        "}",
    )
    call = folded(ev.BlockFinish(0, WHOLE), ev.ToolUpdate("c1", "executing"), late)
    assert (call.status, call.arguments, call.error) == ("complete", {"n": 1}, None)
    assert (call.metadata[CHANGED], call.metadata["late_arguments"]) == (True, "}")


@pytest.mark.parametrize(("args", "changed"), [('{"n": 1}', False), ('{"n": 2}', True)])
def test_a_call_that_begins_again_keeps_its_result_and_is_marked_if_it_ends_otherwise(
    args: str, changed: bool
) -> None:
    result = rd.ToolResult("c1", "done")
    run = [ev.BlockFinish(0, WHOLE), ev.ToolUpdate("c1", "completed", "Did it", result)]
    again = [ev.BlockStart(0, {**CALL, "args": ""}), ev.ToolCallDelta(0, args)]
    assert folded(*run, *again).result == result
    call = folded(*run, *again, ev.BlockFinish(0))
    assert (call.result, call.display_text, call.execution_status()) == (result, "Did it", "completed")
    expected = {"execution_status": "completed", **({CHANGED: True} if changed else {})}
    assert call.metadata == expected
    other_id = folded(*run, ev.BlockStart(0, {**CALL, "id": "c2"}), ev.BlockFinish(0))
    assert (other_id.result, dict(other_id.metadata)) == (None, {})


def test_a_change_says_what_it_is() -> None:
    assert repr(Change("ended")) == "Change('ended')"
    assert repr(Walk().step(ev.BlockStart(0, TEXT))[0]).startswith("Change('opened', ContentPart(")


@pytest.mark.parametrize("kept", [True, False])
def test_a_walk_may_keep_the_calls_of_earlier_messages_that_have_no_outcome(kept: bool) -> None:
    walk = Walk(0, keep_calls=kept)
    for event in [ev.BlockFinish(0, WHOLE), ev.BlockFinish(1, {**WHOLE, "id": "c2"}), ev.MessageFinish()]:
        walk.step(event)
    walk.step(ev.ToolUpdate("c2", "completed"))
    walk.step(ev.MessageStart())
    assert kinds(walk.step(ev.ToolUpdate("c1", "completed"))) == (["noted"] if kept else [])
    assert kinds(walk.step(ev.ToolUpdate("c2", display_text="late"))) == []


def test_a_message_that_breaks_off_closes_its_blocks() -> None:
    walk = Walk(0)
    walk.step(ev.BlockStart(0, CALL))
    closed, ended = walk.break_off()
    assert (closed.kind, closed.fold.block.error) == (  # type: ignore[union-attr]
        "closed",
        "the message broke off while the call was open",
    )
    assert ended.kind == "ended"
    assert walk.break_off() == ()


class Names(rd.core.ChangeReader):
    """Notes which method has read which kind of change, and the event."""

    def __init__(self) -> None:
        self.read: list[tuple[str, str]] = []

    def on_opened(self, change: Change, event: Any, /) -> str:
        self.read.append((change.kind, event.event))
        return "opened"

    on_closed = on_ended = on_opened


class LaterNames(Names):
    def on_closed(self, change: Change, event: Any, /) -> str:
        return f"{change.kind} by {event.event}"


def test_each_change_is_read_by_the_method_of_its_kind_in_order() -> None:
    reader, walk = Names(), Walk()
    start, finish = ev.BlockStart(0, TEXT), ev.MessageFinish("stop")
    assert reader.read_changes(walk.step(start), start) == ["opened"]
    assert reader.read_changes(walk.step(finish), finish) == ["opened", "opened"]
    assert reader.read == [
        ("opened", start.event),
        ("closed", finish.event),
        ("ended", finish.event),
    ]


def test_a_method_of_a_subclass_reads_instead_and_other_kinds_mean_nothing() -> None:
    walk, finish = Walk(), ev.BlockFinish(0, TEXT)
    assert LaterNames().read_changes(walk.step(finish), finish) == ["opened", f"closed by {finish.event}"]
    reset = ev.AttemptReset(1)
    assert LaterNames().read_changes(walk.step(reset), reset) == [None]


def test_a_name_that_nobody_has_is_taken_as_it_is_and_another_gets_the_next_suffix() -> None:
    taken: set[str] = set()
    for expected in ("a", "a-2", "a-3"):
        found = rd.core.free_name("a", taken.__contains__)
        assert found == expected
        taken.add(found)
    suffixes = iter("xyz")
    assert rd.core.free_name("b", taken.__contains__, suffixes) == "b"
    assert next(suffixes) == "x"  # no suffix is used up for a free name
    assert rd.core.free_name("a", taken.__contains__, suffixes) == "a-y"
