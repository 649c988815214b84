"""Events as the stream of a response, rule by rule. `test_provider_clients` has every recorded reply."""

from __future__ import annotations

from typing import Any

import pytest
from support.provider_clients import WAYS
from support.runs import call, text, thought, turn

import rxdelta as rd

ev = rd.events
Json = dict[str, Any]
WAY = WAYS["openai-responses"]
START, CALLS = ev.MessageStart("m1", "small"), ev.MessageFinish("tool_use")


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def body(*events: rd.Event, **options: Any) -> Json:
    """The response at the end."""
    frames = WAY.frames(events, **options)
    WAY.reader(frames)
    found: Json = frames[-1]["response"]
    return found


def items(*events: rd.Event, **options: Any) -> list[Json]:
    found: list[Json] = body(*events, **options)["output"]
    return found


def middle(*events: rd.Event, **options: Any) -> list[Json]:
    """The frames between the two at the start and the last, without their numbers."""
    frames = WAY.frames(events, **options)
    WAY.reader(frames)
    return [
        {name: value for name, value in frame.items() if name != "sequence_number"} for frame in frames[2:-1]
    ]


def test_a_response_begins_with_two_frames_and_ends_with_the_whole_of_it() -> None:
    spent = rd.TokenUsage(3, 5, cache_read_tokens=2, reasoning_tokens=1)
    frames = WAY.frames([START, *text(0, "Hi"), ev.MessageFinish("stop", usage=spent)])
    assert [frame["type"] for frame in (*frames[:2], frames[-1])] == [
        "response.created", "response.in_progress", "response.completed",
    ]  # fmt: skip
    assert [frame["sequence_number"] for frame in frames] == [*range(len(frames))]
    assert frames[0]["response"] == frames[1]["response"]
    response = frames[-1]["response"]
    assert response == {
        **frames[0]["response"], "status": "completed", "output": response["output"], "usage": response["usage"],
    }  # fmt: skip
    assert (response["id"], response["object"], response["created_at"]) == ("m1", "response", 7)
    assert response["usage"] == {
        "input_tokens": 3,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 8,
    }


def test_a_text_is_a_message_of_one_part() -> None:
    place = {"item_id": "msg_made_0_m1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    item = {"id": "msg_made_0_m1", "type": "message", "role": "assistant"}
    whole = {**part, "text": "Hi"}
    done = {**item, "status": "completed", "content": [whole]}
    assert middle(*turn(text(0, "Hi"))) == [
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": part},
        {"type": "response.output_text.delta", **place, "delta": "H", "logprobs": []},
        {"type": "response.output_text.delta", **place, "delta": "i", "logprobs": []},
        {"type": "response.output_text.done", **place, "text": "Hi", "logprobs": []},
        {"type": "response.content_part.done", **place, "part": whole},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
    ]  # fmt: skip
    assert items(*turn(text(0, "Hi"))) == [done]


def test_a_refusal_is_a_part_of_its_own_kind() -> None:
    refusal = [ev.BlockStart(0, {"type": "refusal"}), ev.TextDelta(0, "No."), ev.BlockFinish(0)]
    (item,) = items(*turn(refusal))
    assert item["content"] == [{"type": "refusal", "refusal": "No."}]
    assert "response.refusal.delta" in [frame["type"] for frame in middle(*turn(refusal))]


@pytest.mark.parametrize(
    ("signed_by", "kept"),
    [("openai-responses", True), ("anthropic", False), ("openai via openai-responses", True)],
)
def test_encrypted_reasoning_goes_to_its_own_vendors_clients_only(signed_by: str, kept: bool) -> None:
    more = ev.BlockDelta(0, {"signature": "enc", "signed_by": signed_by})
    (item,) = items(*turn([*thought(0, "Hm.")[:-1], more, ev.BlockFinish(0)]))
    assert item.get("encrypted_content") == ("enc" if kept else None)


def test_encrypted_reasoning_without_a_text_has_no_part() -> None:
    block = {"type": "reasoning", "signature": "enc", "signed_by": "openai-responses"}
    frames = middle(*turn([ev.BlockFinish(0, block)]))
    assert [frame["type"] for frame in frames] == ["response.output_item.added", "response.output_item.done"]
    assert frames[-1]["item"]["summary"] == []


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ('{"input": "*** Begin"}', "*** Begin"),
        ('{"input": 1}', '{"input": 1}'),
        ('{"patch": "x"}', '{"patch": "x"}'),
    ],
)
@pytest.mark.parametrize("tools", [None, ()])
def test_a_custom_tool_gets_the_text_that_the_model_has_written_as_the_one_argument(
    given: str, wanted: str, tools: Any
) -> None:
    start = ev.BlockStart(1, {"type": "tool_call_chunk", "id": "c1", "name": "apply_patch"})
    asked = [start, ev.ToolCallDelta(1, given), ev.BlockFinish(1)]
    after = text(2, "Done.")
    found = items(START, *text(0, "So."), *asked, *after, CALLS, tools=tools, custom=["apply_patch"])
    by_type = {item["type"]: item for item in found}
    custom = by_type["custom_tool_call"]
    assert (custom["call_id"], custom["name"], custom["input"]) == ("c1", "apply_patch", wanted)
    place = found.index(custom)
    assert place == (2 if tools is None else 1), "in its place, or at the end"
    (other,) = items(START, *asked, CALLS, tools=tools)
    assert other["type"] == "function_call"


def test_a_custom_call_that_was_cut_is_not_sent() -> None:
    start = ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c1", "name": "apply_patch"})
    cut = [
        START,
        start,
        ev.ToolCallDelta(0, '{"input": "*** Be'),
        ev.BlockFinish(0),
        ev.MessageFinish("length"),
    ]
    assert not items(*cut, tools=(), custom=["apply_patch"])


@pytest.mark.parametrize(
    "custom", ["apply_patch", 7, None, [{"name": "apply_patch"}], [7], {"apply_patch": "custom"}]
)
def test_the_names_of_custom_tools_are_a_collection(custom: Any) -> None:
    with pytest.raises(rd.errors.InvalidValueError, match="custom"):
        WAY.new(custom=custom)


@pytest.mark.parametrize(
    ("ours", "status", "why"),
    [
        ("stop", "completed", None),
        ("pause", "completed", None),
        ("length", "incomplete", {"reason": "max_output_tokens"}),
        ("content_filter", "incomplete", {"reason": "content_filter"}),
    ],
)
def test_the_reason_is_in_their_words(ours: str, status: str, why: Any) -> None:
    response = body(START, *text(0, "Hi"), ev.MessageFinish(ours))
    assert (response["status"], response["incomplete_details"]) == (status, why)


def test_an_item_keeps_its_own_id_if_no_other_has_it() -> None:
    def named(index: int, said: str) -> list[rd.Event]:
        whole = {"type": "text", "text": said, "item_id": "msg_own"}
        return [ev.BlockFinish(index, whole)]

    assert [item["id"] for item in items(*turn(named(0, "a"), named(1, "b"), text(2, "c")))] == [
        "msg_own", "msg_made_1_m1", "msg_made_2_m1",
    ]  # fmt: skip


def test_citations_are_annotations() -> None:
    cited = [
        {"url": "https://x.test", "title": "X", "start_index": 0, "end_index": 1},
        {"url": "https://y.test"},
        {"title": "a document"},
    ]
    events = turn([*text(0, "Hi")[:-1], ev.BlockDelta(0, {"citations": cited}), ev.BlockFinish(0)])
    annotations = [
        {"type": "url_citation", "url": "https://x.test", "title": "X", "start_index": 0, "end_index": 1},
        {"type": "url_citation", "url": "https://y.test", "title": "https://y.test", "start_index": 0, "end_index": 2},
    ]  # fmt: skip
    (item,) = items(*events)
    assert item["content"][0]["annotations"] == annotations
    told = [frame["annotation"] for frame in middle(*events) if "annotation" in frame]
    assert told == annotations


def test_the_whole_body_is_the_last_frames_response() -> None:
    frames = WAY.frames(turn(text(0, "Hi")))
    assert rd.wire.openai_response(frames) == frames[-1]["response"]
    failed = rd.wire.openai_response(WAY.frames([START], ValueError("hunter2")))
    assert failed["error"]["message"] == rd.wire.MASKED
    assert "output" not in failed
    for some in (frames[:-1], []):
        with pytest.raises(rd.errors.InvalidValueError):
            rd.wire.openai_response(some)
    call_frames = WAY.frames(turn(call(0, "c1", "sea"), reason="tool_use"))
    assert rd.wire.openai_response(call_frames)["output"][0]["call_id"] == "c1"


@pytest.mark.parametrize("named", ["", "msg_made_1_m1"])
def test_each_item_has_an_id_of_its_own_whatever_a_gateway_says(named: str) -> None:
    first = [ev.BlockStart(0, {"type": "text", "item_id": named}), *text(0, "Hi")[1:]]
    ids = [item["id"] for item in items(START, *first, *text(1, "So."), ev.MessageFinish("stop"))]
    assert all(ids)
    assert len({*ids}) == 2
