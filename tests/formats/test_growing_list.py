"""What is emitted only as a whole, and when."""

from __future__ import annotations

from rxdelta.formats.decoding import GrowingList, due


def test_it_is_due_when_it_has_grown_by_an_eighth() -> None:
    assert not due(0, 0)
    assert due(1, 0)
    assert not due(8, 8)
    assert due(9, 8)
    assert not due(17, 16)


def test_an_empty_list_is_never_due() -> None:
    growing = GrowingList()
    assert growing.take() is growing.take(at_end=True) is None


def test_a_list_that_has_not_grown_is_not_due_at_the_end() -> None:
    growing = GrowingList()
    growing.add("abcdefgh", 8)
    assert growing.take() == ["abcdefgh"]
    assert growing.take(at_end=True) is None
    growing.add("i", 1)
    assert growing.take() == ["abcdefgh", "i"]


def test_items_from_the_start_are_not_emitted_alone() -> None:
    growing = GrowingList(["abcdefgh"], 8)
    assert growing.take(at_end=True) is None
    growing.add("i")
    assert growing.take() == ["abcdefgh", "i"]


def test_items_from_the_start_can_have_no_size() -> None:
    growing = GrowingList(["abcdefgh"])
    assert growing.take(at_end=True) is None
    growing.add("i")
    assert growing.take() == ["abcdefgh", "i"]
