"""The ratchet for plain English: no file or page gets more hard sentences than its baseline, and the baseline only falls."""

from __future__ import annotations

import json

import pytest
from support.sentences import BASELINE, differences, files, lowered, page_sentences, sentences


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


@pytest.mark.parametrize(
    "sentence",
    [
        "Who joins late gets the text so far.",
        "What is held comes first.",
        "Whoever asks for pictures allows more.",
        "What can't be read is refused.",
        "Of several answers the first counts.",
        "**What stays:** the text.",
    ],
)
def test_a_sentence_that_begins_with_a_clause_is_counted(sentence: str) -> None:
    assert len(sentences(f'"""{sentence}"""')) == 1
    assert len(sentences(f"# Fine. {sentence}\n")) == 1
    assert len(sentences(f'def f():\n    """Do.\n\n    Args:\n        key: {sentence}\n    """')) == 1
    for page in (sentence, f"- {sentence}", f"Fine. {sentence}", f"| a | {sentence} |"):
        assert [found.text.startswith(sentence[:14]) for found in page_sentences(page)] == [True]


@pytest.mark.parametrize(
    "sentence",
    [
        "What happens when the connection breaks?",
        "Readers that join late get the text so far.",
        "Often the first counts.",
        "The first of several answers counts.",
        "What a reader has seen stays.",
        "Whose words count is another matter.",
    ],
)
def test_a_question_or_another_beginning_is_not(sentence: str) -> None:
    assert sentences(f'"""{sentence}"""') == []
    assert page_sentences(sentence) == []


def test_headings_and_code_of_a_page_are_no_sentences() -> None:
    page = "# What is public\n\n(what-is)=\n\n```python\n# What is held comes first.\n```\n\n   ```text\nOf two\n   ```\n"
    assert page_sentences(page) == []
    glossary = "Fine.\n\n```{glossary}\nFold\n  Adds.\n\nKey\n  What is replaced.\n```\n"
    assert [(found.line, found.text) for found in page_sentences(glossary)] == []


def test_a_sentence_of_a_page_has_its_line() -> None:
    assert [found.line for found in page_sentences("# A\n\nFine.\n\nOf two the first counts.\n")] == [5]


def test_a_sentence_is_counted_once() -> None:
    assert len(sentences('"""What is so is what it is, and that is all."""')) == 1


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
