"""Google's Interactions API: calls for the client, and the provider's own tools."""

from __future__ import annotations

import pytest
from support.gemini_interactions import (
    CREATED,
    completed,
    decoded,
    delta,
    folded,
    message,
    parts_of,
    start,
    step,
    stop,
    text,
)

import rxdelta as rd
from rxdelta.core.events import (
    ProviderEvent,
)


def test_arguments_may_bring_the_id_and_signature_of_their_call() -> None:
    piece = delta(0, "arguments_delta", id="c1", signature="s", arguments='{"a": 1}')
    (call,) = message(CREATED, *step(0, "function_call", piece, name="f"), completed()).tool_calls
    assert (call.call_id, call.arguments, call.metadata["signature"]) == ("c1", {"a": 1}, "s")


def test_a_call_without_arguments_waits_for_what_follows() -> None:
    chunks = [CREATED, *step(0, "function_call", id="c1", name="f", arguments={})]
    assert folded(*chunks).tool_calls[0].status == "incomplete"
    (call,) = message(*chunks, *step(1, "model_output"), completed()).tool_calls
    assert (call.status, call.arguments) == ("complete", {})
    assert message(*chunks, completed("requires_action")).tool_calls[0].status == "complete"
    late = delta(0, "arguments_delta", arguments='{"a": 1}')
    assert message(*chunks, late, completed()).tool_calls[0].arguments == {"a": 1}


@pytest.mark.parametrize("status", ["incomplete", "budget_exceeded", "cancelled"])
@pytest.mark.parametrize("arguments", ["", '{"a": '])
def test_a_call_that_was_cut_off_is_never_one_to_run(status: str, arguments: str) -> None:
    pieces = [delta(0, "arguments_delta", arguments=arguments)]
    found = message(
        CREATED, *step(0, "function_call", *pieces, id="c1", name="f", arguments={}), completed(status)
    )
    assert found.tool_calls == ()
    assert len(found.invalid_tool_calls) == 1


def test_a_server_tool_and_its_result_also_after_the_output() -> None:
    found = message(
        CREATED,
        *step(0, "model_output", text(0, "Found it.")),
        *step(
            1,
            "google_search_call",
            delta(1, "google_search_call", arguments={"queries": ["q"]}, signature="s"),
            id="g1",
            search_type="web_search",
        ),
        *step(
            2,
            "google_search_result",
            delta(2, "google_search_result", result=[{"search_suggestions": "x"}], is_error=False),
            delta(2, "google_search_result", result=[{"search_suggestions": "y"}]),
            call_id="g1",
        ),
        completed(),
    )
    _, call, result = found.blocks
    assert isinstance(call, rd.ToolCall)
    assert (call.type, call.call_id, call.name, call.arguments) == (
        "server_tool_call",
        "g1",
        "google_search",
        {"queries": ["q"]},
    )
    assert call.metadata == {
        "provider_type": "google_search_call",
        "signature": "s",
        "signed_by": "google",
        "search_type": "web_search",
    }
    assert isinstance(result, rd.ContentPart)
    assert result.options == {
        "tool_call_id": "g1",
        "provider_type": "google_search_result",
        "output": [{"search_suggestions": "x"}, {"search_suggestions": "y"}],
        "status": "success",
    }
    assert found.finish_reason == "stop"


def test_the_result_of_code_is_a_text_that_goes_on() -> None:
    result = [delta(0, "code_execution_result", result=piece) for piece in ("a", "b", "c")]
    (part,) = parts_of(
        message(CREATED, *step(0, "code_execution_result", *result, call_id="x", is_error=True), completed())
    )
    assert (part.options["output"], part.options["status"]) == ("abc", "error")


def test_a_result_may_say_only_later_which_call_it_is_of() -> None:
    piece = delta(0, "google_search_result", call_id="s1", result=[{"title": "Tides"}])
    (part,) = parts_of(message(CREATED, *step(0, "google_search_result", piece), completed()))
    assert part.options["tool_call_id"] == "s1"


def test_steps_that_the_client_put_in_are_no_part_of_the_reply() -> None:
    put_in = step(0, "user_input", content=[{"type": "text", "text": "Hi"}])
    found = decoded(CREATED, *put_in, *step(1, "function_result", call_id="c", result="x"), completed())
    assert [event.name for event in found if isinstance(event, ProviderEvent)] == [
        "user_input",
        "function_result",
    ]
    assert message(CREATED, *put_in, completed()).blocks == ()


def test_an_unknown_step_is_kept_whole_and_its_deltas_pass() -> None:
    change = delta(0, "hologram_delta", depth=3)
    found = decoded(CREATED, *step(0, "hologram", change, depth=2), completed())
    assert ProviderEvent("google", "hologram_delta", change) in found
    (part,) = parts_of(message(CREATED, *step(0, "hologram", change, depth=2), completed()))
    assert part.options["depth"] == 2


def test_a_piece_of_arguments_behind_whole_ones_makes_the_call_invalid() -> None:
    whole = start(0, "function_call", id="c1", name="f", arguments={"n": 1})
    found = folded(whole, delta(0, "arguments_delta", arguments='{"m":2}'), stop(0), completed())
    (bad,) = found.invalid_tool_calls
    assert (bad.arguments, bad.metadata["late_arguments"]) == ({"n": 1}, '{"m":2}')
