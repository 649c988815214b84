"""`TextDocument`, which `partial_json` and `json_items` read: it is the text of the message."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings, strategies as st

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.core import Walk
from rxdelta.operators.projections.projection import Projection, TextDocument

words = st.text("ab😀", max_size=2) | st.sampled_from(["\ud83d", "\ude00", "x\ud83d"])


def streams(keys: st.SearchStrategy[Any], *types: str) -> st.SearchStrategy[list[rd.Event]]:
    contents = st.builds(lambda kind, text: {"type": kind, kind: text}, st.sampled_from(types), words)
    fields = st.builds(lambda text: {"text": text}, words) | st.just({"lang": "en"})
    return st.lists(
        st.builds(ev.TextDelta, keys, words)
        | st.builds(ev.ReasoningDelta, keys, words)
        | st.builds(ev.BlockStart, keys, contents)
        | st.builds(ev.BlockDelta, keys, fields)
        | st.builds(ev.BlockFinish, keys, st.none() | contents),
        max_size=25,
    )


# A block has its place from the moment when it is a text. For numbers that makes no difference.
numbers, all_keys = st.integers(0, 3), st.sampled_from([0, 1, 2, "a", "b"])
events = streams(numbers, "text", "reasoning") | streams(all_keys, "text")


class _Text(Projection[str]):
    """Collects the text."""

    def begin(self) -> None:
        self.document = TextDocument()
        self.text = ""

    def keeps(self, block: Any) -> bool:
        return self.document.keeps(block)

    def grown(self, fold: rd.core.BlockFold, piece: str) -> Any:
        return self._read([("more", self.document.grown(fold, piece))])

    def changed(self, changes: Any, _: Any) -> Any:
        return self._read(self.document.changed(changes))

    def _read(self, growths: Any) -> tuple[str, ...]:
        for how, text in growths:
            self.text = self.text + text if how == "more" else text
        return ()


TEXT = ev.BlockFinish(0, {"type": "text", "text": "a"})
STOP = ev.MessageFinish("stop")


@example(events=[ev.BlockFinish(0, {"type": "reasoning", "reasoning": ""}), TEXT], end=STOP)
@example(events=[ev.BlockFinish(0, {"type": "tool_call", "id": "c", "name": "n"}), TEXT], end=STOP)
@settings(deadline=None)
@given(events=events, end=st.sampled_from([STOP, ev.MessageInterrupted()]))
def test_it_is_the_text_of_the_message(events: list[rd.Event], end: rd.Event) -> None:
    document, fold = _Text("", Walk(0), ev.TextDelta), rd.Fold()
    for event in events:
        document.step(event)
        snapshot = fold.step(event)
        assert snapshot.text.startswith(document.text)
    document.step(end)
    assert document.text == fold.step(end).text
