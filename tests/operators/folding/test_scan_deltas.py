"""`scan_deltas` in virtual time."""

from __future__ import annotations

import pickle
from itertools import pairwise, product
from typing import Any

import attrs
import pytest
import reactivex as rx
from hypothesis import given, strategies as st
from reactivex import operators as ops
from reactivex.subject import Subject
from support.bounded import bounded
from support.lines import DAY, through, whole
from support.replies import REPLIES

import rxdelta as rd
from rxdelta import events as ev

BOOM = ValueError("boom")

MARKS: dict[str, Any] = {
    "M": ev.MessageStart(id="m1"),
    "S": ev.BlockStart(0, {"type": "text"}),
    **{mark: ev.TextDelta(0, mark) for mark in "abcde"},
    "_": ev.TextDelta(0, ""),
    "p": ev.ProviderEvent("anthropic", "ping", {}),
    "o": ev.TextDelta(0, "other", choice=1),
    "F": ev.BlockFinish(0),
    "E": ev.MessageFinish("stop"),
    "!": ev.StreamError("overloaded", "overloaded_error"),
    "N": ev.MessageStart(id="m2"),
    "x": rd.MessageDelta(content="x"),
    "y": rd.MessageDelta(content="y"),
    "d": {"choices": []},
    "R": ev.AttemptReset(2, None, None),
}


def scan(source: str, *arguments: Any, **options: Any) -> tuple[str, list[Any], list[Any]]:
    """The snapshots' texts with their times, the ends, and when the source was read."""
    operator = bounded(rd.scan_deltas, *arguments, **options)
    records, reads = through(source, operator, values=MARKS, error=BOOM)
    shown = " ".join(f"{time:g}:{snapshot.text}" for time, kind, snapshot in records if kind == "next")
    return shown, [error or "|" for _, kind, error in records if kind != "next"], reads


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param("MSab-cFE|", "0: 1: 2:a 3:ab 5:abc 6:abc 7:abc", id="each event that changes it"),
        pytest.param("S_a_p_b|", "0: 2:a 6:ab", id="31: what changes nothing is silent"),
        pytest.param("Saob|", "0: 1:a 3:ab", id="another choice"),
        pytest.param("x-y|", "0:x 2:xy", id="small deltas"),
        pytest.param("abc|", "0: 1: 2:", id="deltas of no block, which are counted"),
        pytest.param("--|", "", id="empty"),
        pytest.param("|", "", id="nothing but the end"),
        pytest.param("SaRSb|", "0: 1:a 2: 3: 4:b", id="another attempt begins anew"),
        pytest.param("MSaFEbSb|", "0: 1: 2:a 3:a 4:a 5:a 6:a 7:a", id="after the end only the counts"),
        pytest.param("[MSa|]", "0: 0: 0:a", id="all at once"),
    ],
)
def test_a_snapshot_whenever_it_changes(source: str, expected: str) -> None:
    assert scan(source) == (expected, ["|"], whole(source))


@pytest.mark.parametrize(
    ("source", "kind", "shown"),
    [
        pytest.param("Sa#", rd.StreamInterrupted, "0: 1:a", id="the source's own"),
        pytest.param("#", rd.StreamInterrupted, "", id="at once"),
        pytest.param("Sa!b|", rd.ProviderError, "0: 1:a", id="an error event"),
        pytest.param("SaFENb", rd.ProtocolError, "0: 1:a 2:a 3:a", id="a second message"),
        pytest.param("MSaFEMb", rd.ProtocolError, "0: 1: 2:a 3:a 4:a", id="also of the same id"),
        pytest.param("MSaNSb", rd.ProtocolError, "0: 1: 2:a", id="one while the first is open"),
        pytest.param("Sadb|", rd.InvalidValueError, "0: 1:a", id="a chunk that wasn't decoded"),
        pytest.param("Sabce", rd.errors.LimitExceededError, "0: 1:a 2:ab 3:abc", id="too large"),
    ],
)
def test_every_error_has_the_snapshot(source: str, kind: type, shown: str) -> None:
    text, ends, reads = scan(source, limits=rd.Limits(block_chars=3))
    assert text == shown
    assert [type(end) for end in ends] == [kind]
    assert ends[0].snapshot.text == (shown.rpartition(":")[2] if shown else "")
    assert reads[0][1] < DAY


def test_a_foreign_error_is_the_cause_and_a_chunk_gets_a_hint() -> None:
    (interrupted,) = scan("Sa#")[1]
    assert interrupted.__cause__ is BOOM
    assert str(interrupted) == "the stream broke off: ValueError: boom"
    (unknown,) = scan("d")[1]
    assert "decode()" in str(unknown)


@pytest.mark.parametrize(
    "error", [rd.ProviderError("no", type="t"), rd.errors.MalformedChunkError("bad", path="x")]
)
def test_our_own_errors_pass_as_they_are(error: rd.RxDeltaError) -> None:
    records, _ = through("Sa#", rd.scan_deltas(), values=MARKS, error=error)
    assert records[-1][2] is error
    assert error.snapshot is not None
    assert error.snapshot.text == "a"


def test_two_subscriptions_to_one_error_have_a_snapshot_each() -> None:
    error = rd.ProviderError("no", type="t")
    try:
        raise error from BOOM
    except rd.ProviderError:
        pass
    source = Subject[Any]()
    got: list[Any] = []
    source.pipe(rd.scan_deltas()).subscribe(on_error=got.append)
    source.pipe(rd.scan_deltas(choice=1)).subscribe(on_error=got.append)
    for event in (ev.BlockStart(0, {"type": "text"}, choice=1), ev.TextDelta(0, "hi", choice=1)):
        source.on_next(event)
    source.on_error(error)
    assert [one.snapshot.text for one in got] == ["", "hi"]
    assert [(one.type, one.message, str(one)) for one in got] == [("t", "no", str(error))] * 2
    assert got[0] is error
    assert got[1].__cause__ is BOOM
    assert got[1].__traceback__ is error.__traceback__


def test_an_error_with_its_snapshot_pickles() -> None:
    (error,) = scan("Sa!")[1]
    assert pickle.loads(pickle.dumps(error)).snapshot == error.snapshot


def test_a_seed_goes_on_where_it_was_and_is_not_emitted() -> None:
    seed = rd.Fold().step(MARKS["S"])
    assert scan("--a|", seed) == ("2:a", ["|"], [(0, 3)])
    assert scan("---|", seed)[0] == ""


def test_a_seed_of_another_choice_is_gone_on_with() -> None:
    seed = rd.Fold(choice=1).step(ev.BlockStart(0, {"type": "text"}, choice=1))
    assert scan("a-o|", seed)[0] == "2:other"
    assert scan("Sa-o|", None, 0)[0] == "0: 1:a"


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_snapshots_of_a_reply_do_not_change_after_the_stream_has_gone_on(wire_format: str) -> None:
    snapshots: list[rd.Snapshot] = []
    taken: list[Any] = []

    def keep(snapshot: rd.Snapshot) -> None:
        snapshots.append(snapshot)
        taken.append(snapshot.to_dict())

    rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format), rd.scan_deltas()).subscribe(keep)
    assert [snapshot.to_dict() for snapshot in snapshots] == taken


@given(pieces=st.lists(st.tuples(st.integers(0, 2), st.text(max_size=4)), max_size=40))
def test_snapshots_are_monotone(pieces: list[tuple[int, str]]) -> None:
    events: list[Any] = [ev.BlockStart(index, {"type": "text"}) for index in range(3)]
    events += [ev.TextDelta(index, piece) for index, piece in pieces]
    got: list[rd.Snapshot] = []
    rx.from_iterable(events).pipe(rd.scan_deltas()).subscribe(got.append)
    assert len(got) == 3 + sum(bool(piece) for _, piece in pieces)
    for before, after in pairwise(got):
        assert len(before.blocks) <= len(after.blocks)
        for one, other in zip(before.blocks, after.blocks, strict=False):
            assert (other.text or "").startswith(one.text or "")  # type: ignore[union-attr]
            assert one is other or one != other  # what has not changed is shared
    for index in range(3):
        block = got[-1].blocks[index]
        assert (block.text or "") == "".join(piece for at, piece in pieces if at == index)  # type: ignore[union-attr]


@pytest.mark.parametrize(("first", "second"), [*product(sorted(REPLIES), repeat=2)])
def test_two_replies_that_are_merged_are_refused_and_never_woven(first: str, second: str) -> None:
    replies = [
        rx.from_iterable(REPLIES[wire_format]).pipe(rd.decode(wire_format), ops.to_list()).run()
        for wire_format in (first, second)
    ]
    for position, event in enumerate(replies[1]):
        if isinstance(event, ev.MessageStart) and first == second and event.id is not None:
            replies[1][position] = attrs.evolve(event, id="another")  # two requests have two ids
    begun = next(n for n, event in enumerate(replies[0]) if isinstance(event, ev.BlockStart)) + 1
    woven = [*replies[0][:begun], *(event for pair in zip(replies[0][begun:], replies[1]) for event in pair)]
    snapshots: list[rd.Snapshot] = []
    ends: list[Any] = []
    rx.from_iterable(woven).pipe(rd.scan_deltas()).subscribe(
        snapshots.append, ends.append, lambda: ends.append("|")
    )
    (error,) = ends
    assert type(error) is rd.ProtocolError
    assert "group_by_message()" in str(error)
    assert error.snapshot is snapshots[-1]
    assert error.snapshot.status == "incomplete"
