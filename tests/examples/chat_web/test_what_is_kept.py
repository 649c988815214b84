"""What the example's store decides when several workers write: each statement builds on what is true, or does nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.served_chat import question

import rxdelta as rd

EXAMPLE = Path(__file__).parents[3] / "examples" / "chat_web"
SAID = [rd.events.MessageStart("m"), rd.events.MessageFinish("stop")]


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    monkeypatch.syspath_prepend(EXAMPLE)
    monkeypatch.setenv("CHATS", str(tmp_path / "chats.sqlite"))
    monkeypatch.delitem(sys.modules, "kept", raising=False)
    module = importlib.import_module("kept")
    yield module
    module.store.close()
    del sys.modules["kept"]


def test_a_chat_has_one_reply_that_comes(kept: Any) -> None:
    first = kept.begin("chat", question("One?"))
    assert kept.begin("chat", question("Two?")) is None
    assert kept.begin("another", question("Three?")).stream == "another/1"
    kept.end(first, kept.DONE)
    assert kept.begin("chat", question("Four?")).stream == "chat/2"
    assert [one.question for one in kept.exchanges("chat")] == [question("One?"), question("Four?")]


def test_an_answer_counts_once_also_when_the_reply_has_gone_on_and_ended(kept: Any) -> None:
    asked = kept.begin("chat", question("A room?"))
    assert kept.go_on(asked) is None
    kept.end(asked, kept.DONE)
    again = kept.go_on(asked)
    assert (again.id, again.stream) == (asked.id, "chat/2")
    kept.end(again, kept.DONE)
    assert kept.go_on(asked) is None
    assert kept.last("chat").ended == kept.DONE


def test_no_answer_counts_behind_another_question_or_an_interruption(kept: Any) -> None:
    asked = kept.begin("chat", question("A room?"))
    kept.end(asked, kept.DONE)
    newer = kept.begin("chat", question("Or none?"))
    assert kept.go_on(asked) is None
    kept.end(newer, kept.DONE)
    assert kept.go_on(asked) is None
    broken = kept.begin("other", question("A room?"))
    kept.end(broken, kept.LOST)
    assert kept.go_on(broken) is None


def test_nothing_is_added_behind_an_end_and_the_first_end_counts(kept: Any) -> None:
    coming = kept.begin("chat", question("Well?"))
    kept.add(coming, SAID[0])
    kept.end(coming, kept.LOST)
    kept.add(coming, SAID[1])
    kept.end(coming, kept.DONE)
    assert kept.last("chat").ended == kept.LOST
    assert [one.status for one in kept.last("chat").messages()] == ["interrupted"]


def test_a_run_adds_to_its_own_and_to_no_later_one(kept: Any) -> None:
    first = kept.begin("chat", question("A room?"))
    kept.add(first, SAID[0])
    kept.add(first, SAID[1])
    kept.end(first, kept.DONE)
    second = kept.go_on(first)
    for event in SAID:
        kept.add(first, event)
    kept.end(first, kept.LOST)
    assert kept.last("chat").ended is None
    assert (len(second.messages()), len(second.messages(before=2))) == (1, 1)
    for event in SAID:
        kept.add(second, event)
    assert (len(second.messages()), len(second.messages(before=2))) == (2, 1)


def test_the_next_stream_is_known_before_it_begins(kept: Any) -> None:
    assert kept.next_stream("chat") == "chat/1"
    first = kept.begin("chat", question("One?"))
    assert (first.stream, kept.next_stream("chat")) == ("chat/1", "chat/2")
    kept.end(first, kept.DONE)
    assert kept.go_on(first).stream == "chat/2"
    assert kept.next_stream("chat") == "chat/3"
