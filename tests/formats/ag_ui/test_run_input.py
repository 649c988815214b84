"""The request of an AG-UI client: ids, version, messages."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from support.ag_ui import ASKED, call, frames_of, message, text, told

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]


@pytest.mark.parametrize("kind", [dict, RunAgentInput])
def test_the_request_says_which_run_it_is_as_object_or_as_json(kind: Any) -> None:
    said = {
        "threadId": "t9",
        "runId": "r9",
        "messages": ASKED,
        "tools": [],
        "context": [],
        "forwardedProps": {},
    }
    request = said if kind is dict else RunAgentInput.model_validate(said)
    frames = frames_of(rd.wire.AgUiEncoder(request), message(text(0, "Hi")))
    assert (frames[0]["threadId"], frames[0]["runId"]) == ("t9", "r9")
    frames = frames_of(rd.wire.AgUiEncoder(request, thread_id="t1", run_id="r1"), message(text(0, "Hi")))
    assert (frames[0]["threadId"], frames[-1]["runId"]) == ("t1", "r1")


@pytest.mark.parametrize("version", [None, "0.0.59", "0.9", "1", "one", "1.0-beta", "01.0", 1.0])
def test_nothing_of_1_0_goes_to_a_client_that_does_not_say_that_it_speaks_it(version: Any) -> None:
    for end in ([], [ev.MessageInterrupted()]):
        frames = told(*message(call(0, "c1", "{}"), reason="tool_use"), *end, version=version)
        assert "protocolVersion" not in frames[0]
        assert "outcome" not in frames[-1]


@pytest.mark.parametrize(
    "wrong", [{}, {"threadId": "t1"}, {"threadId": 1, "runId": "r1"}, {"thread_id": "t1", "run_id": "r1"}]
)
def test_a_request_without_its_ids_is_refused(wrong: Json) -> None:
    with pytest.raises(rd.InvalidValueError, match="_id: must be a string"):
        rd.wire.AgUiEncoder(wrong, new_id=lambda: "made up")
