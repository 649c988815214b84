"""The ratchet for plain English: no file gets more hard sentences than its baseline, and the baseline only sinks."""

from __future__ import annotations

import json

import pytest
from support.sentences import BASELINE, differences, files, lowered, sentences


def test_no_file_has_other_counts_than_the_baseline() -> None:
    now = {name: len(found) for name, found in files().items()}
    different = differences(now, json.loads(BASELINE.read_text("utf-8")))
    assert not different, "\n".join([*different, "python tests/support/sentences.py --lower"])


@pytest.mark.parametrize(
    "source",
    [
        '"""It is what it is, and that is all of it."""',
        'def f():\n    """Fine. Who has which of those that are so as this one is."""',
        "x = 1  # it is what it is, and that is all",
        "# it is what it is,\n# and that is all\nx = 1",
    ],
    ids=["module", "second sentence", "comment", "comment of two lines"],
)
def test_a_sentence_of_pronouns_is_counted(source: str) -> None:
    assert len(sentences(source)) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""Append a fragment of text to the open block."""',
        '"""It is what it is."""',
        'text = "It is what it is, and that is all of it."',
        '"""Fold.\n\nExample:\n    >>> print("It is what it is, and that is all of it.")\n"""',
    ],
    ids=["nouns", "five words", "no prose", "example"],
)
def test_other_sentences_are_not(source: str) -> None:
    assert sentences(source) == []


def test_both_directions_differ() -> None:
    assert differences({"a": 1, "b": 2}, {"a": 1, "b": 2}) == []
    assert [fault.partition(":")[0] for fault in differences({"a": 2, "new": 1}, {"a": 1, "gone": 1})] == [
        "a",
        "gone",
        "new",
    ]


def test_the_baseline_is_only_lowered_and_files_may_move() -> None:
    assert lowered({"b": 1, "a": 1}, {"old": 3}) == {"a": 1, "b": 1}
    with pytest.raises(ValueError, match="only lowered"):
        lowered({"a": 4}, {"old": 3})
