"""`retry_stream(resume=True)`: what a model repeats of the text that it continues."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, strategies as st
from reactivex import Observable
from support.cost import lines_run

import rxdelta as rd

ev = rd.events
OVERLOADED = rd.ProviderError("Overloaded", type="overloaded_error")
START = ev.MessageStart("m")
TEXT = ev.BlockStart(0, {"type": "text"})
FINISH = (ev.BlockFinish(0), ev.MessageFinish("stop"))


def pieces(*texts: str) -> list[rd.Event]:
    return [START, TEXT, *(ev.TextDelta(0, text) for text in texts)]


class Run:
    """What comes of these requests, each but the last of which breaks off."""

    def __init__(self, *requests: Sequence[rd.Event], error: Exception | None = None, **options: Any) -> None:
        self.given: list[str | None] = []
        self.snapshots: list[rd.Snapshot] = []
        self.errors: list[Any] = []
        self.events: list[rd.Event] = []
        ends = [OVERLOADED] * (len(requests) - 1) + [error]
        each = iter(zip(requests, ends))

        def request(partial: rd.Snapshot | None) -> Observable[rd.Event]:
            self.given.append(None if partial is None else partial.text)
            events, end = next(each)
            source = rx.from_iterable(events)
            return source if end is None else rx.concat(source, rx.throw(end))

        options = {"attempts": len(requests), "backoff": lambda *_: 0, **options}
        events = rd.retry_stream(request, resume=True, **options)
        events.subscribe(self.events.append, self.errors.append)
        fold = rd.Fold()
        self.snapshots = [fold.step(event) for event in self.events]
        checker = rd.core.ProtocolChecker()
        assert [rule for event in self.events if (rule := checker.check(event))] == []

    @property
    def texts(self) -> list[str]:
        return [snapshot.text for snapshot in self.snapshots]

    @property
    def joint(self) -> tuple[int, int]:
        metadata = self.snapshots[-1].to_message().metadata
        return metadata["resumed_at"], metadata["overlap"]


def joined(broken: str, *new: str, **options: Any) -> str:
    run = Run(pieces(broken), [*pieces(*new), *FINISH], **options)
    assert all(after.startswith(before) for before, after in pairwise(run.texts))
    assert run.joint == (len(broken), len(broken + "".join(new)) - len(run.texts[-1]))
    return run.texts[-1]


TIDE = "The tide is "


@pytest.mark.parametrize(
    ("broken", "new", "whole"),
    [
        pytest.param(TIDE, "The tide is high.", "The tide is high.", id="the whole text"),
        pytest.param("Look. " + TIDE, "The tide is high.", "Look. The tide is high.", id="its last sentence"),
        pytest.param("The tide is hi", "The tide is high.", "The tide is high.", id="broken within a word"),
        pytest.param(TIDE, "high.", "The tide is high.", id="nothing"),
        pytest.param("The tide is", "The tide is high.", "The tide isThe tide is high.", id="too little"),
        pytest.param("ha ha ha ", "ha ha ha!", "ha ha ha ha ha ha!", id="less, and meant"),
        pytest.param("Undernourishment", "nourishment", "Undernourishmentnourishment", id="within a word"),
        pytest.param("Un-nourishment!!", "nourishment!! a", "Un-nourishment!! a", id="behind a hyphen"),
        pytest.param("if x:\n" + " " * 12, " " * 12 + "y", "if x:\n" + " " * 24 + "y", id="blanks"),
        pytest.param("a\n" + "-" * 12, "-" * 12 + "b", "a\n" + "-" * 24 + "b", id="a line"),
        pytest.param("x " + "a b " * 5, "a b " * 4 + "c", "x " + "a b " * 5 + "c", id="the longest that fits"),
        pytest.param("我们今天下午去海边看看潮水有多", "今天下午去海边看看潮水有多高。", "我们今天下午去海边看看潮水有多高。", id="without spaces"),
        pytest.param("밀물과썰물이드나드는서해바다", "썰물이드나드는서해바다에서도", "밀물과썰물이드나드는서해바다썰물이드나드는서해바다에서도", id="within a Korean word"),
        pytest.param("e\u0301te\u0301te\u0301te\u0301te\u0301te\u0301", "te\u0301te\u0301te\u0301te\u0301te\u0301!", "e\u0301" + "te\u0301" * 10 + "!", id="behind a mark"),
        pytest.param(TIDE, "", TIDE, id="no text"),
        pytest.param(TIDE, TIDE, TIDE, id="only what was there"),
    ],
)  # fmt: skip
def test_an_overlap_is_left_out_however_it_comes(broken: str, new: str, whole: str) -> None:
    assert joined(broken, new) == whole
    assert joined(broken, *new) == whole
    for cut in range(len(new)):
        assert joined(broken, new[:cut], new[cut:]) == whole


@pytest.mark.parametrize(("least", "whole"), [(1, "He is here"), (2, "He is here"), (3, "He isis here")])
def test_the_least_overlap_is_the_users(least: int, whole: str) -> None:
    assert joined("He is", "is here", min_overlap=least) == whole


def longest(broken: str, new: str, least: int) -> int:
    """The length of the overlap, by trying each one."""
    for length in range(min(len(broken), len(new)), least - 1, -1):
        end = broken[-length:]
        before = broken[: len(broken) - length][-1:]
        if end == new[:length] and any(map(str.isalnum, end)) and not (before.isalnum() and end[0].isalnum()):
            return length
    return 0


@given(
    broken=st.text("ab -", min_size=1),
    new=st.lists(st.text("ab -"), min_size=1),
    least=st.integers(1, 4),
)
@example("a b a ba b", ["a b a b", "a ba b a"], 1)
def test_it_is_the_longest_of_all_and_held_no_longer_than_it_may_be_one(
    broken: str, new: list[str], least: int
) -> None:
    run = Run(pieces(broken), [*pieces(*new), *FINISH], min_overlap=least)
    length = longest(broken, "".join(new), least)
    assert run.texts[-1] == broken + "".join(new)[length:]
    assert run.joint == (len(broken), length)
    shown = {len(text) for text in run.texts}
    told = ""
    for piece in new:
        told += piece
        may_be = any(
            broken[at:].startswith(told) and longest(broken, broken[at:], least) == len(broken) - at
            for at in range(len(broken))
        )
        if not may_be:
            assert len(broken + told) - longest(broken, told, least) in shown


@pytest.mark.parametrize("count", [1, 100])
def test_a_text_that_repeats_itself_for_ever_costs_linear_time(count: int) -> None:
    def cost(words: int) -> int:
        broken, new = "ab " * words + "x", "ab " * words + "y"
        cut = len(new) // count
        return lines_run(lambda: joined(broken, *(new[at : at + cut] for at in range(0, len(new), cut))))

    assert cost(4_000) < 4.5 * cost(1_000)


@pytest.mark.parametrize("said", ["The ", "The tide", "The tide is"])
def test_what_is_held_is_told_at_the_end_and_dropped_by_another_try(said: str) -> None:
    held = Run(pieces("The tide. The "), pieces(said), error=ValueError())
    assert held.texts[-1] == "The tide. The " + said
    assert [str(error) for error in held.errors] == [""]
    cut = Run(pieces("The tide. The "), pieces(said))
    assert (cut.texts[-1], cut.snapshots[-1].status) == ("The tide. The " + said, "incomplete")
    stopped = Run(pieces("The tide. The "), [*pieces(said), ev.MessageInterrupted("stopped")])
    assert (stopped.texts[-1], stopped.snapshots[-1].status) == ("The tide. The " + said, "interrupted")


def test_a_try_that_broke_off_within_an_overlap_leaves_no_trace() -> None:
    run = Run(pieces(TIDE), pieces("The tide"), [*pieces("The tide is high."), *FINISH])
    assert run.given == [None, TIDE, TIDE]
    assert set(run.texts) == {"", TIDE, "The tide is high."}
    assert run.joint == (12, 12)


def test_the_snapshot_of_the_last_error_has_what_was_held() -> None:
    error = rd.ProviderError("No such model", type="invalid_request_error")
    Run(pieces("The tide. The "), pieces("The tide"), error=error)
    assert error.snapshot is not None
    assert error.snapshot.text == "The tide. The The tide"


def test_several_resumes_tell_the_last_place_and_all_that_was_left_out() -> None:
    run = Run(pieces(TIDE), pieces(TIDE, "high, the "), [*pieces("high, the moon"), *FINISH], min_overlap=5)
    assert run.texts[-1] == "The tide is high, the moon"
    assert run.given == [None, TIDE, "The tide is high, the "]
    assert run.joint == (22, 22)


@pytest.mark.parametrize(
    ("known", "repeated", "whole"),
    [
        ("c1", "c1", "The tide is high"),  # left out, so nothing parts the texts
        ("c1", "c2", "The tide is The tide is high"),  # another call, behind which another text comes
    ],
)
def test_a_model_may_begin_anew_with_a_call_that_the_message_has(
    known: str, repeated: str, whole: str
) -> None:
    def call(name: str) -> list[rd.Event]:
        asked = {"type": "tool_call", "id": name, "name": "f", "args": {}}
        return [START, ev.BlockStart(0, asked), ev.BlockFinish(0), ev.BlockStart(1, {"type": "text"})]

    begun = [*call(known), ev.TextDelta(1, TIDE)]
    anew = [*call(repeated), ev.TextDelta(1, TIDE + "high"), ev.BlockFinish(1), ev.MessageFinish("tool_use")]
    run = Run(begun, anew)
    assert run.texts[-1] == whole
    assert [made.call_id for made in run.snapshots[-1].tool_calls] == [*dict.fromkeys([known, repeated])]


def test_a_call_without_an_id_makes_no_other_block_a_known_call() -> None:
    call = {"type": "invalid_tool_call", "name": "f", "args": "{", "error": "cut"}
    begun = [START, ev.BlockStart(0, call), ev.BlockFinish(0), ev.BlockStart(1, {"type": "text"})]
    image = [ev.BlockStart(0, {"type": "image", "url": "https://x.example/y.png"}), ev.BlockFinish(0)]
    anew = [START, *image, ev.BlockStart(1, {"type": "text", "text": "high"}), ev.BlockFinish(1)]
    run = Run([*begun, ev.TextDelta(1, TIDE)], [*anew, ev.MessageFinish("stop")])
    assert [block.type for block in run.snapshots[-1].blocks] == [
        "invalid_tool_call",
        "text",
        "image",
        "text",
    ]


def test_a_message_that_started_over_or_never_broke_off_tells_nothing() -> None:
    once = Run([*pieces(TIDE), *FINISH])
    assert once.snapshots[-1].metadata == {}
    call = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "f"})
    over = Run([START, call], [*pieces(TIDE), *FINISH])
    assert (over.snapshots[-1].attempt, over.snapshots[-1].metadata) == (1, {})


def test_the_whole_text_at_the_end_overrules_and_has_no_overlap_either() -> None:
    finish = ev.BlockFinish(0, {"type": "text", "text": "The tide is high!"})
    end = ev.MessageFinish("stop", metadata={"speed": 1})
    for new in (["The tide is high."], ["The ti"], []):
        run = Run(pieces(TIDE), [*pieces(*new), finish, end])
        assert run.texts[-1] == "The tide is high!"
        assert run.joint == (12, 12)
        assert run.snapshots[-1].metadata["speed"] == 1
        assert max(map(len, run.texts)) == 17
    replaced = Run(
        pieces(TIDE), [START, TEXT, ev.BlockDelta(0, {"text": TIDE + "hi"}), ev.TextDelta(0, "gh"), *FINISH]
    )
    assert replaced.texts[-1] == "The tide is high"


def test_only_the_joint_is_looked_at() -> None:
    two = [
        *pieces("high. "),
        ev.BlockFinish(0),
        ev.BlockStart(1, {"type": "text", "text": "The tide is high. "}),
    ]
    run = Run(pieces(TIDE), [*two, ev.BlockFinish(1), ev.MessageFinish("stop")])
    assert run.texts[-1] == "The tide is high. The tide is high. "
    ended = Run([*pieces(TIDE), ev.BlockFinish(0)], [*pieces(TIDE), *FINISH])
    assert ended.texts[-1] == TIDE + TIDE
    assert ended.joint == (12, 0)


def test_reasoning_that_broke_off_is_not_continued_so_nothing_is_left_out() -> None:
    thought = ev.BlockStart(0, {"type": "reasoning", "reasoning": "Let me think about it"})
    run = Run([START, thought], [START, thought, *FINISH])
    assert run.snapshots[-1].reasoning == "Let me think about it" * 2


def test_another_block_shows_that_the_text_has_ended() -> None:
    call = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{}"})
    run = Run(pieces("The tide. The "), [*pieces("The ti"), call, ev.BlockFinish(1), *FINISH])
    began = next(snapshot for snapshot in run.snapshots if snapshot.tool_calls)
    assert began.text == "The tide. The The ti"


def test_usage_and_the_providers_own_events_pass_what_is_held() -> None:
    usage = rd.TokenUsage(1, 1)
    own = ev.ProviderEvent("p", "ping")
    second = [*pieces("The ti"), ev.UsageUpdate(usage), own, ev.TextDelta(0, "de is high"), *FINISH]
    run = Run(pieces(TIDE), second)
    assert [event for event in run.events if isinstance(event, (ev.UsageUpdate, ev.ProviderEvent))] == [
        ev.UsageUpdate(usage),
        own,
    ]
    assert run.texts[-1] == "The tide is high"
