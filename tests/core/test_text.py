"""Growing text: pieces are shared, nothing that somebody kept ever changes, and each character is copied rarely."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import pytest
from core.strategies import text
from hypothesis import given, strategies as st

from rxdelta.core.text import GrowingText, extend, finish_text, read_text, text_length

LEAF = 64


def grown(count: int, piece: Callable[[int], str] = lambda n: f"<{n}>") -> GrowingText:
    value: GrowingText = ""
    for n in range(count):
        value = extend(value, piece(n))
    return value


def joined(count: int) -> str:
    return "".join(f"<{n}>" for n in range(count))


def test_every_text_kept_on_the_way_stays_what_it_was() -> None:
    kept: list[GrowingText] = [""]
    for n in range(300):
        kept.append(extend(kept[-1], f"<{n}>"))
    for order in (range(301), reversed(range(301))):
        assert [read_text(kept[n]) == joined(n) for n in order] == [True] * 301


@given(st.lists(st.tuples(st.integers(0, 10**6), text), max_size=200))
def test_any_text_may_be_extended_any_number_of_times(steps: list[tuple[int, str]]) -> None:
    texts: list[tuple[GrowingText, str]] = [("", "")]
    for place, piece in steps:
        value, whole = texts[place % len(texts)]
        texts.append((extend(value, piece), whole + piece))
    for value, whole in texts:
        assert finish_text(value) == as_utf8(whole)


def as_utf8(value: str) -> str:
    return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@given(text, st.lists(st.integers(0, 20)))
def test_a_surrogate_pair_cut_in_two_is_the_character(value: str, cuts: list[int]) -> None:
    halves = value.encode("utf-16-le", "surrogatepass")
    units = [halves[n : n + 2].decode("utf-16-le", "surrogatepass") for n in range(0, len(halves), 2)]
    grown: GrowingText = ""
    start = 0
    for cut in [*sorted({cut for cut in cuts if cut < len(units)}), len(units)]:
        grown = extend(grown, "".join(units[start:cut]))
        start = cut
    assert finish_text(grown) == as_utf8(value)
    read_text(grown).encode()


def test_half_a_pair_waits_and_is_replaced_at_the_end() -> None:
    value = extend(extend("a", "b"), "\ud83d")
    assert read_text(value) == "ab"
    assert finish_text(value) == "ab\ufffd"
    assert finish_text(extend(value, "\ude00")) == "ab😀"
    assert finish_text(extend(value, "c")) == "ab\ufffdc"
    assert finish_text(extend(extend(value, ""), "\ude00")) == "ab😀"
    assert finish_text(extend("", "\ude00")) == "\ufffd"


class Interrupted(list[str]):
    """A list into which somebody else writes between our look at its length and our append."""

    meanwhile: Callable[[], None] | None = None

    def __len__(self) -> int:
        length = super().__len__()
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return length


@pytest.mark.parametrize("count", [1, 2, LEAF - 1, LEAF, LEAF + 1, 2 * LEAF - 1])
def test_two_writers_at_one_place_get_a_text_each(count: int) -> None:
    shared: Any = grown(count)
    pieces = Interrupted(shared[0].pieces)
    shared[0].pieces = pieces
    theirs: list[GrowingText] = []
    pieces.meanwhile = lambda: theirs.append(extend(shared, "THEIRS"))
    mine = extend(shared, "MINE")
    texts = [(mine, "MINE"), (theirs[0], "THEIRS"), (shared, "")]
    for _ in range(2 * LEAF + 2):  # over a sealing too, where the piece that lost still stands in the list
        texts = [(extend(value, "+"), said + "+") for value, said in texts]
    assert [read_text(value) for value, _ in texts] == [joined(count) + said for _, said in texts]
    assert [text_length(value) for value, _ in texts] == [len(joined(count) + said) for _, said in texts]
    assert read_text(shared) == joined(count)


def test_a_tie_over_the_last_place_of_a_leaf_does_not_reach_the_sealed_text() -> None:
    shared: Any = grown(LEAF - 1)
    pieces = Interrupted(shared[0].pieces)
    shared[0].pieces = pieces
    pieces.meanwhile = lambda: pieces.append("LOST")
    mine = extend(shared, "MINE")
    pieces.append("LOST TOO")
    assert read_text(extend(mine, "+")) == joined(LEAF - 1) + "MINE+"


def test_two_branches_stay_apart_whoever_reads_first() -> None:
    stem = grown(LEAF + 10)
    assert read_text(stem) == joined(LEAF + 10)
    left, right = extend(stem, "left"), extend(stem, "right")
    for _ in range(2):
        assert read_text(right) == joined(LEAF + 10) + "right"
        assert read_text(left) == joined(LEAF + 10) + "left"
        assert read_text(stem) == joined(LEAF + 10)


def test_a_branch_does_not_take_the_memory_of_the_other() -> None:
    stem = grown(10)
    left, right = extend(stem, "left"), extend(stem, "right")
    remembered = read_text(left)
    assert read_text(right) is read_text(right)
    assert read_text(left) is remembered


def test_two_threads_extending_one_text() -> None:
    stems = [grown(n) for n in range(1, 2 * LEAF)]
    ready = threading.Barrier(2)
    ends: dict[str, list[GrowingText]] = {}

    def write(name: str) -> None:
        ready.wait()
        ends[name] = [extend(extend(stem, name), name.upper()) for stem in stems]

    threads = [threading.Thread(target=write, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in ("a", "b"):
        assert [read_text(end) for end in ends[name]] == [
            joined(n) + name + name.upper() for n in range(1, 2 * LEAF)
        ]
    assert [read_text(stem) for stem in stems] == [joined(n) for n in range(1, 2 * LEAF)]


def sealed_texts(value: Any) -> list[str]:
    found, older = [], value[0].sealed
    while older is not None:
        found.append(older[2])
        older = older[0]
    return found


@pytest.mark.parametrize("count", [10**3, 10**4, 10**5])
def test_sealing_copies_each_character_log_n_times_at_most(count: int) -> None:
    value: GrowingText = ""
    copied, seen = 0, set[int]()
    blocks: list[str] = []
    for _ in range(count):
        value = extend(value, "abcd")
        if len(value[0].pieces) == 1:  # a new leaf, so the last one has just been sealed
            new = [block for block in sealed_texts(value) if id(block) not in seen]
            blocks += new  # kept alive, so that an id stays unique
            seen |= {id(block) for block in new}
            copied += sum(map(len, new))
    assert copied <= 4 * count * math.log2(count)
    assert len(sealed_texts(value)) <= math.log2(count)


def test_a_text_that_was_read_is_remembered_and_read_on_from_there() -> None:
    value = grown(LEAF * 3 + 5)
    assert read_text(value) is read_text(value)
    longer = extend(value, "x")
    assert read_text(longer) is read_text(longer)
    assert read_text(value) == joined(LEAF * 3 + 5)
