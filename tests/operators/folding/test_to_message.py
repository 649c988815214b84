"""`to_message` in virtual time."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import reactivex as rx
from support.lines import through
from support.replies import REPLIES

import rxdelta as rd
from rxdelta.testing import marbles

BOOM = ValueError("boom")

MARKS: dict[str, Any] = {
    "a": rd.MessageDelta(content="Hel", role="assistant"),
    "b": rd.MessageDelta(content="Hello", role="assistant", status="complete"),
    "c": rd.MessageDelta(
        role="assistant",
        status="complete",
        tool_calls=[rd.ToolCall(call_id="c1", name="f", arguments="{", index=0)],
    ),
    "?": 3,
}
MARKS["m"] = MARKS["b"].to_message()
check = partial(marbles.check, values=MARKS, frame=1)


def test_the_last_snapshot_as_a_message_once_at_completion() -> None:
    check("-a-b-|", rd.to_message(), gives="-----[m|]", reads=[(0, 5)])


@pytest.mark.parametrize(
    ("source", "kind", "snapshot"),
    [
        pytest.param("-a-|", rd.IncompleteMessageError, "a", id="33: the end before the message's"),
        pytest.param("b-a|", rd.IncompleteMessageError, "a", id="the last one counts"),
        pytest.param("---|", rd.IncompleteMessageError, None, id="empty"),
        pytest.param("--c|", rd.errors.InvalidToolCallError, "c", id="a call left open"),
    ],
)
def test_a_message_that_is_none_is_an_error_with_the_snapshot(
    source: str, kind: type, snapshot: str | None
) -> None:
    ((time, _, error),), reads = through(source, rd.to_message(), values=MARKS)
    assert type(error) is kind
    assert error.snapshot is (None if snapshot is None else MARKS[snapshot])
    assert (time, reads) == (3, [(0, 3)])


def test_an_error_of_the_source_is_passed_on_and_no_message_comes() -> None:
    check("-b-#", rd.to_message(), gives="---#", error=BOOM)
    check("#", rd.to_message(), gives="#", error=BOOM)


def test_what_is_no_snapshot_is_an_error_of_the_stream() -> None:
    ((_, _, error),), _ = through("?|", rd.to_message(), values=MARKS)
    assert str(error) == (
        "to_message() reads snapshots, and got an int; decode() makes events of chunks, and scan_deltas() makes "
        "snapshots of events"
    )


@pytest.mark.parametrize("wire_format", sorted(REPLIES))
def test_a_reply(wire_format: str) -> None:
    chunks = rx.from_iterable(REPLIES[wire_format])
    message = chunks.pipe(rd.decode(wire_format), rd.scan_deltas(), rd.to_message()).run()
    assert message.text == "Let me look."
    assert [(call.call_id, call.name, call.arguments) for call in message.tool_calls] == [
        ("call_1", "look", {"at": "sea"})
    ]
    assert (message.finish_reason, message.usage.output_tokens) == ("tool_use", 5)
