"""LangChain's agent protocol: its rules one by one, with LangChain's own types and its own reader as judges."""

from __future__ import annotations

import copy
import functools
import json
import logging
from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import Any

import attrs
import pytest
from core import strategies
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta import events as ev
from rxdelta.wire import LangChainEncoder, LangChainFrame

Frame = Mapping[str, Any]
TEXT = {"type": "text", "text": ""}
CALL = {"type": "tool_call_chunk", "id": "c1", "name": "look", "args": ""}
BOOM = RuntimeError("secret")


def encoder(**options: Any) -> LangChainEncoder:
    ids = iter(f"made-{n}" for n in range(100))
    return LangChainEncoder(**{"now": lambda: 1.5, "new_id": lambda: next(ids), **options})


def sent(*events: rd.Event, error: Exception | None = None, **options: Any) -> list[LangChainFrame]:
    """The frames as a reader gets them."""
    one = encoder(**options)
    frames = [frame for event in events for frame in one.encode(event)]
    frames += one.close() if error is None else one.fail(error)
    return json.loads(json.dumps(frames, allow_nan=False))  # type: ignore[no-any-return]


def data(*events: rd.Event, **options: Any) -> list[dict[str, Any]]:
    return [frame["params"]["data"] for frame in sent(*events, **options)]


def names(*events: rd.Event, **options: Any) -> list[str]:
    return [one.get("event", "custom") for one in data(*events, **options)]


def read(frames: Iterable[Frame]) -> list[rd.Event]:
    decoder = rd.providers.decoder("langchain")
    return [*(event for frame in frames for event in decoder.decode(frame)), *decoder.close()]


def folded(events: Iterable[rd.Event]) -> rd.Snapshot:
    """The reply of choice 0, as far as it came without an error."""
    fold = rd.Fold(choice=0)
    for event in events:
        try:
            fold.step(event)
        except rd.RxDeltaError:
            break
    return fold.snapshot


def there_and_back(*events: rd.Event) -> rd.Snapshot:
    frames = sent(*events)
    Rules().check(frames)
    return folded(read(frames))


class Rules:
    """What the protocol asks of a stream."""

    def __init__(self) -> None:
        self.open = False
        self.blocks: dict[int, str] = {}
        self.seen: set[int] = set()
        self.running: set[str] = set()
        self.ran: set[str] = set()

    def check(self, frames: Iterable[Frame]) -> None:
        for place, frame in enumerate(frames):
            assert (frame["type"], frame["seq"]) == ("event", place)
            assert set(frame["params"]) == {"namespace", "timestamp", "data"}
            getattr(self, frame["method"])(frame["params"]["data"])
        assert not self.open, "a message is open at the end"
        assert not self.running, "a tool runs on"

    def custom(self, data: Frame) -> None:
        assert data["name"] == "rxdelta"

    def messages(self, data: Frame) -> None:
        name, index = data["event"], data.get("index")
        assert self.open != (name == "message-start"), name
        if name in ("message-start", "message-finish", "error"):
            assert not self.blocks, "a block is open"
            self.open = name == "message-start"
            self.seen = set()
        elif name == "content-block-start":
            assert index not in self.seen
            assert isinstance(index, int)
            assert index >= 0
            self.seen.add(index)
            self.blocks[index] = data["content"]["type"]
        else:
            kind = self.blocks[index]  # type: ignore[index]
            if name == "content-block-finish":
                del self.blocks[index]  # type: ignore[arg-type]
                fits = {
                    "tool_call_chunk": ("tool_call", "invalid_tool_call"),
                    "server_tool_call_chunk": ("server_tool_call", "invalid_tool_call"),
                }
                self.fits(data["content"]["type"], kind, fits)
            else:
                assert name == "content-block-delta"
                self.delta(data["delta"], kind)

    def fits(self, found: str, kind: str, fits: dict[str, tuple[str, ...]]) -> None:
        assert not found.endswith("_chunk"), "a finish carries the finished block"
        if found not in fits.get(kind, (kind,)):
            self.overruled(found)

    def overruled(self, found: str) -> None:
        """The source's own finish may say that the block is another."""

    def delta(self, delta: Frame, kind: str) -> None:
        takes = {
            "text-delta": ("text",),
            "reasoning-delta": ("reasoning",),
            "tool-call-delta": ("tool_call_chunk", "server_tool_call_chunk"),
            "data-delta": ("image", "audio", "video", "file"),
        }
        if delta["type"] == "block-delta":
            assert "type" in delta["fields"]
        else:
            assert kind in takes[delta["type"]]
            assert any(delta.get(name) for name in ("text", "reasoning", "args", "data")), "an empty delta"

    def tools(self, data: Frame) -> None:
        name, call_id = data["event"], data["tool_call_id"]
        if name == "tool-started":
            assert call_id not in self.ran
            self.running.add(call_id)
            self.ran.add(call_id)
            return
        assert call_id in self.running, f"{name} of a tool that isn't running"
        if name != "tool-output-delta":
            self.running.remove(call_id)


# The envelope.


def test_each_frame_is_an_envelope_with_a_number_a_time_and_a_namespace() -> None:
    first, second = sent(ev.MessageStart("m"), ev.MessageFinish("stop"), namespace=("agent:1",), first_seq=7)
    assert first == {
        "type": "event",
        "seq": 7,
        "method": "messages",
        "params": {
            "namespace": ["agent:1"],
            "timestamp": 1500,
            "data": {"event": "message-start", "id": "m", "role": "ai"},
        },
    }
    assert (second["seq"], second["params"]["data"]) == (8, {"event": "message-finish", "reason": "stop"})


def test_frames_do_not_share_what_can_be_changed() -> None:
    first, second = encoder(namespace=("a",)).encode(ev.BlockStart(0, {"type": "text", "text": "Hi"}))[1:]
    first["params"]["namespace"].append("b")
    assert second["params"]["namespace"] == ["a"]


@pytest.mark.parametrize(
    "options",
    [
        {"choice": -1},
        {"choice": True},
        {"first_seq": -1},
        {"first_seq": 0.5},
        {"namespace": "agent"},
        {"namespace": [1]},
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(rd.InvalidValueError, match=next(iter(options))):
        encoder(**options)


# Messages and blocks.


def test_a_message() -> None:
    assert data(
        ev.MessageStart("m", "small", None, {"provider": "p"}),
        ev.BlockStart(0, TEXT),
        ev.TextDelta(0, "Hel"),
        ev.TextDelta(0, "lo"),
        ev.BlockFinish(0),
        ev.MessageFinish("stop", "end_turn", rd.TokenUsage(3, 2)),
    ) == [
        {
            "event": "message-start",
            "id": "m",
            "role": "ai",
            "metadata": {"model": "small", "provider": "p"},
        },
        {"event": "content-block-start", "index": 0, "content": {"type": "text", "text": ""}},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "Hel"}},
        {"event": "content-block-delta", "index": 0, "delta": {"type": "text-delta", "text": "lo"}},
        {"event": "content-block-finish", "index": 0, "content": {"type": "text", "text": "Hello"}},
        {
            "event": "message-finish",
            "reason": "stop",
            "metadata": {"finish_reason": "end_turn"},
            "usage": {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "raw": {}},
        },
    ]


def test_a_call_is_finished_with_its_arguments_parsed() -> None:
    *_, finish, _ = data(
        ev.MessageStart("m"),
        ev.BlockStart(0, CALL),
        ev.ToolCallDelta(0, '{"at": '),
        ev.ToolCallDelta(0, '"sea"}'),
        ev.BlockFinish(0),
        ev.MessageFinish(),
    )
    assert finish["content"] == {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "sea"}}


def test_a_call_that_does_not_parse_is_invalid_and_keeps_its_text() -> None:
    *_, finish, _ = data(
        ev.MessageStart("m"),
        ev.BlockStart(0, CALL),
        ev.ToolCallDelta(0, '{"at": '),
        ev.BlockFinish(0),
        ev.MessageFinish(),
    )
    content = finish["content"]
    assert (content["type"], content["args"]) == ("invalid_tool_call", '{"at": ')
    assert content["error"]


def test_a_text_that_a_block_begins_with_is_a_delta() -> None:
    _, start, delta, *_ = data(ev.MessageStart("m"), ev.BlockStart(0, {"type": "text", "text": "Hi"}))
    assert start["content"] == {"type": "text", "text": ""}
    assert delta["delta"] == {"type": "text-delta", "text": "Hi"}


def test_nothing_is_sent_for_an_empty_delta_nor_for_one_of_another_kind() -> None:
    start = [ev.MessageStart("m"), ev.BlockStart(0, TEXT)]
    wrong = [ev.TextDelta(0, ""), ev.ReasoningDelta(0, "a"), ev.TextDelta(1, "a"), ev.BlockDelta(0, {})]
    assert names(*start, *wrong) == names(*start)


def test_blocks_keep_their_numbers_by_which_readers_sort_them() -> None:
    starts = [ev.BlockStart(2, TEXT), ev.BlockStart(0, TEXT)]
    told = data(ev.MessageStart("m"), *starts, ev.MessageFinish())
    assert [one["index"] for one in told if one["event"] == "content-block-start"] == [2, 0]


def test_what_is_no_number_is_numbered_and_tells_ours_what_it_was() -> None:
    events = [
        ev.MessageStart("m"),
        ev.BlockStart("part:0", TEXT),
        ev.BlockStart(0, TEXT),
        ev.TextDelta(0, "b"),
    ]
    events += [ev.BlockStart(-1, TEXT), ev.TextDelta("part:0", "a"), ev.MessageFinish()]
    started = [one for one in data(*events) if one["event"] == "content-block-start"]
    assert [(one["index"], one["key"]) for one in started] == [(0, "part:0"), (1, 0), (2, -1)]
    assert there_and_back(*events) == folded(events)


def test_a_second_start_ends_the_block_and_begins_another() -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.BlockStart(0, TEXT)]
    events += [ev.TextDelta(0, "b"), ev.BlockFinish(0), ev.MessageFinish()]
    assert [one.get("index") for one in data(*events)] == [None, 0, 0, 0, 1, 1, 1, None]
    assert there_and_back(*events).text == "b"


def test_a_finish_without_a_start_gets_one_if_it_says_anything() -> None:
    whole = ev.BlockFinish(0, {"type": "text", "text": "Hi"})
    assert names(ev.MessageStart("m"), ev.BlockFinish(1), whole, ev.MessageFinish()) == [
        "message-start",
        "content-block-start",
        "content-block-delta",
        "content-block-finish",
        "message-finish",
    ]


def test_a_message_that_finishes_closes_its_blocks() -> None:
    events = [
        ev.MessageStart("m"),
        ev.BlockStart(0, CALL),
        ev.ToolCallDelta(0, "{"),
        ev.MessageFinish("length"),
    ]
    assert names(*events)[-2:] == ["content-block-finish", "message-finish"]
    assert there_and_back(*events) == folded(events)


def test_a_message_without_a_start_or_an_id_gets_one() -> None:
    (start, *_), events = data(ev.BlockStart(0, TEXT)), [ev.MessageStart(), ev.MessageFinish()]
    assert (start["event"], start["id"], start["synthetic"]) == ("message-start", "made-0", True)
    assert data(*events)[0]["id"] == "made-0"
    assert there_and_back(*events).id is None


def test_a_refusal_is_a_text_that_ours_knows_as_a_refusal() -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "refusal"}), ev.TextDelta(0, "No")]
    events += [ev.BlockFinish(0), ev.MessageFinish()]
    assert [one["content"]["type"] for one in data(*events) if "content" in one] == ["text", "text"]
    assert there_and_back(*events).blocks == folded(events).blocks


def test_media_are_in_base64() -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, {"type": "image", "mime_type": "image/png"})]
    events += [ev.DataDelta(0, "AA"), ev.DataDelta(0, "BB"), ev.BlockFinish(0), ev.MessageFinish()]
    told = data(*events)
    assert told[2]["delta"] == {"type": "data-delta", "data": "AA", "encoding": "base64"}
    assert told[4]["content"] == {"type": "image", "mime_type": "image/png", "base64": "AABB"}
    assert there_and_back(*events) == folded(events)


def test_citations_are_annotations() -> None:
    citation = {"title": "A", "url": "https://a.example", "start_index": 0, "raw": {"n": 1}}
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "x")]
    events += [ev.BlockDelta(0, {"citations": [citation]}), ev.BlockFinish(0), ev.MessageFinish()]
    told = data(*events)
    assert told[3]["delta"]["fields"] == {"type": "text", "annotations": [{"type": "citation", **citation}]}
    assert told[4]["content"]["annotations"] == [{"type": "citation", **citation}]
    assert there_and_back(*events) == folded(events)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param({"type": "made_up", "n": 1}, id="a type of the provider's"),
        pytest.param({"type": "image_url", "url": "u"}, id="a type that the protocol hasn't"),
        pytest.param({"type": "image", "url": 5}, id="a field that can't be so"),
        pytest.param({"type": "text", "text": "a", "annotations": [1]}, id="a name that is taken"),
        pytest.param({"type": "text", "text": 5}, id="a text that is none"),
        pytest.param({"type": "server_tool_result", "output": 1}, id="a result of no call"),
        pytest.param({"type": "server_tool_call", "name": "f", "args": "{"}, id="a call that does not parse"),
        pytest.param({"type": "server_tool_call", "id": "s", "args": {"a": 1}}, id="a call without a name"),
    ],
)
def test_what_the_protocol_has_no_block_for_is_not_standard_and_comes_back(content: dict[str, Any]) -> None:
    events: list[rd.Event] = [ev.MessageStart("m"), ev.BlockStart(0, content), ev.DataDelta(0, "AA")]
    events += [ev.BlockDelta(0, {"more": 1}), ev.BlockFinish(0), ev.MessageFinish()]
    finish = next(one for one in data(*events) if one.get("event") == "content-block-finish")
    assert finish["content"]["type"] == "non_standard"
    assert there_and_back(*events) == folded(events)


def test_a_result_that_says_no_status_was_a_success_to_others() -> None:
    content = {"type": "server_tool_result", "tool_call_id": "s", "output": 1}
    events = [ev.MessageStart("m"), ev.BlockStart(0, content), ev.BlockFinish(0), ev.MessageFinish()]
    assert data(*events)[2]["content"]["status"] == "success"
    assert there_and_back(*events) == folded(events)


def test_metadata_that_is_not_plain_stands_beside_the_plain() -> None:
    events = [
        ev.MessageStart("m", None, None, {"a": 1, "b": {"c": 2}, "provider": ["p"]}),
        ev.MessageFinish(),
    ]
    start = data(*events)[0]
    assert (start["metadata"], start["responseMetadata"]) == ({"a": 1}, {"b": {"c": 2}, "provider": ["p"]})
    assert there_and_back(*events) == folded(events)


def test_usage_is_in_the_protocols_counts_and_the_last_one_finishes_the_message() -> None:
    native = {
        "input_tokens": 3,
        "output_tokens": 2,
        "total_tokens": 5,
        "input_token_details": {"cache_read": 1},
    }
    other = {"prompt_tokens": 3, "total_tokens": 5}
    for raw, told in (
        (native, native),
        (other, {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5, "raw": other}),
    ):
        events = [ev.MessageStart("m"), ev.UsageUpdate(rd.TokenUsage(3, 2, raw)), ev.MessageFinish("stop")]
        assert data(*events)[-1]["usage"] == told
        assert there_and_back(*events) == folded(events)


def test_a_count_that_is_unknown_is_none_to_others_who_must_have_one_and_stays_unknown_to_ours() -> None:
    events = [ev.MessageStart("m"), ev.MessageFinish("stop", None, rd.TokenUsage(None, 2))]
    assert data(*events)[-1]["usage"]["input_tokens"] == 0
    assert there_and_back(*events).usage == rd.TokenUsage(None, 2)


def test_only_the_chosen_choice_is_told_and_is_the_only_one_to_its_reader() -> None:
    events = [
        event
        for choice in (0, 1)
        for event in (
            ev.MessageStart("m", choice=choice),
            ev.BlockStart(0, {"type": "text", "text": "ab"[choice]}, choice=choice),
            ev.UsageUpdate(rd.TokenUsage(1, choice), choice=choice),
            ev.BlockFinish(0, choice=choice),
            ev.MessageFinish("stop", choice=choice),
        )
    ]
    reply = folded(read(sent(*events, choice=1)))
    assert (reply.text, reply.choice) == ("b", 0)
    assert reply.usage == rd.TokenUsage(1, 1)


def test_what_has_no_event_in_the_protocol_is_custom() -> None:
    event = ev.ProviderEvent("p", "ping", {"a": 1})
    _, frame, _ = sent(ev.MessageStart("m"), event, ev.MessageFinish())
    assert (frame["method"], frame["params"]["data"]) == (
        "custom",
        {"name": "rxdelta", "payload": event.to_dict()},
    )
    assert event in read(sent(ev.MessageStart("m"), event, ev.MessageFinish()))


def test_untrusted_names_do_not_break_the_frames() -> None:
    nasty = '"\n\r\u2028\\ud83d</script>'
    events = [ev.MessageStart(nasty), ev.BlockStart(nasty, {**CALL, "id": nasty, "name": nasty})]
    events += [ev.ToolUpdate(nasty, "executing"), ev.BlockFinish(nasty), ev.MessageFinish(nasty)]
    assert b"\n" not in b"".join(rd.wire.sse_frame(frame)[:-2] for frame in sent(*events))
    assert there_and_back(*events) == folded(events)


# Conversations, attempts, ends.


def test_a_conversation_is_message_after_message() -> None:
    turn = [ev.BlockStart(0, TEXT), ev.BlockFinish(0), ev.MessageFinish("stop")]
    events = [ev.MessageStart("m1"), *turn, ev.MessageStart("m2"), *turn]
    Rules().check(sent(*events))
    assert [event.id for event in read(sent(*events)) if isinstance(event, ev.MessageStart)] == ["m1", "m2"]


def test_a_message_that_another_interrupts_ends_with_an_error_which_ours_overlooks() -> None:
    events = [ev.MessageStart("m1"), ev.BlockStart(0, TEXT), ev.MessageStart("m2"), ev.MessageFinish("stop")]
    assert names(*events)[2:4] == ["content-block-finish", "error"]
    assert [type(event) for event in read(sent(*events))] == [type(event) for event in events]


def test_a_second_start_of_one_message_is_told_to_ours_alone() -> None:
    events = [ev.MessageStart("m"), ev.MessageStart("m", None, None, {"a": 1}), ev.MessageFinish()]
    assert names(*events) == ["message-start", "custom", "message-finish"]
    assert there_and_back(*events) == folded(events)


def test_a_failed_attempt_is_a_message_that_failed_and_its_reason_stays_here() -> None:
    events = [ev.MessageStart("m1"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "a")]
    events += [ev.AttemptReset(1, "secret", rd.TokenUsage(1, 2)), ev.MessageStart("m2"), ev.MessageFinish()]
    told = data(*events)
    assert [one["event"] for one in told][-4:] == [
        "content-block-finish",
        "error",
        "message-start",
        "message-finish",
    ]
    assert "secret" not in json.dumps(told)
    assert there_and_back(*events) == folded(events)
    assert there_and_back(*events).attempt == 1


def test_a_reset_where_no_message_is_open_is_told_to_ours_alone() -> None:
    events = [ev.AttemptReset(2, "secret"), ev.MessageStart("m"), ev.MessageFinish()]
    assert names(*events)[0] == "custom"
    assert "secret" not in json.dumps(data(*events))
    assert there_and_back(*events).attempt == 2


@pytest.mark.parametrize("reason", ["the reader left", None])
def test_a_message_that_was_stopped_is_finished_and_ours_knows_that_it_was_stopped(
    reason: str | None,
) -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, CALL), ev.ToolCallDelta(0, "{")]
    events += [ev.UsageUpdate(rd.TokenUsage(1, 2)), ev.MessageInterrupted(reason)]
    assert names(*events)[-2:] == ["content-block-finish", "message-finish"]
    assert data(*events)[-1]["usage"]["total_tokens"] == 3
    assert there_and_back(*events) == folded(events)


def test_a_source_that_fails_closes_what_is_open_and_the_error_is_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    events = [ev.MessageStart("m"), ev.BlockStart(0, TEXT), ev.TextDelta(0, "a"), ev.BlockStart(1, CALL)]
    frames = sent(*events, error=BOOM)
    Rules().check(frames)
    assert [frame["params"]["data"]["event"] for frame in frames][-3:] == [
        "content-block-finish",
        "content-block-finish",
        "error",
    ]
    assert frames[-1]["params"]["data"] == {"event": "error", "message": rd.wire.MASKED}
    assert caplog.records[-1].exc_info is not None
    assert caplog.records[-1].exc_info[1] is BOOM
    *before, error = read(frames)
    assert folded(before) == folded(events), "what was open is still open to ours"
    assert error == ev.StreamError(rd.wire.MASKED)


def test_the_caller_says_what_may_be_known_of_an_error() -> None:
    assert data(ev.MessageStart("m"), error=BOOM, on_error=str)[-1]["message"] == "secret"


def test_an_on_error_that_fails_is_an_error_itself(caplog: pytest.LogCaptureFixture) -> None:
    def fail(error: Exception) -> str:
        raise ValueError(error)

    assert data(error=BOOM, on_error=fail)[-1]["message"] == rd.wire.MASKED
    assert isinstance(caplog.records[-1].exc_info[1], ValueError)  # type: ignore[index]


@pytest.mark.parametrize(
    "before", [[], [ev.MessageStart("m"), ev.MessageFinish()]], ids=["nothing", "finished"]
)
def test_an_error_where_no_message_is_open_is_that_of_an_empty_one(before: list[rd.Event]) -> None:
    frames = sent(*before, error=BOOM)
    Rules().check(frames)
    assert [frame["params"]["data"]["event"] for frame in frames][-2:] == ["message-start", "error"]
    assert read(frames) == [*before, ev.StreamError(rd.wire.MASKED)]


def test_an_error_that_the_provider_reports_is_one_of_the_stream() -> None:
    assert names(ev.MessageStart("m"), ev.StreamError("secret", choice=3), ev.MessageFinish()) == [
        "message-start",
        "error",
    ]


def test_a_source_that_completes_too_early_was_cut_off() -> None:
    assert names(ev.MessageStart("m"), ev.BlockStart(0, TEXT))[-2:] == ["content-block-finish", "error"]


def test_nothing_follows_the_end() -> None:
    one = encoder()
    one.encode(ev.MessageStart("m"))
    assert one.fail(BOOM)
    assert not one.encode(ev.MessageStart("m"))
    assert not one.fail(BOOM)
    assert not one.close()


@pytest.mark.parametrize("wrong", [None, {"event": "message-start"}, rd.Snapshot(content="Hi")])
def test_what_is_no_event_is_refused(wrong: Any) -> None:
    with pytest.raises(rd.InvalidValueError):
        encoder().encode(wrong)


def test_an_absurd_index_is_refused_before_anything_is_told() -> None:
    one = encoder()
    with pytest.raises(rd.LimitExceededError) as caught:
        one.encode(ev.BlockStart(2**31, TEXT))
    Rules().check(one.fail(caught.value))


# Tools.

RUN = [
    ev.MessageStart("m"),
    ev.BlockStart(0, CALL),
    ev.ToolCallDelta(0, '{"at": "sea"}'),
    ev.BlockFinish(0),
    ev.MessageFinish("tool_use"),
]


def tools(*updates: rd.Event) -> list[dict[str, Any]]:
    frames = sent(*RUN, *updates)
    Rules().check(frames)
    return [frame["params"]["data"] for frame in frames if frame["method"] == "tools"]


def test_a_tool_that_runs() -> None:
    updates = [
        ev.ToolUpdate("c1", "identified"),
        ev.ToolUpdate("c1", "executing"),
        ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", "so")),
        ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", "so far")),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", {"n": 1})),
    ]
    of_it = {"tool_call_id": "c1"}
    assert tools(*updates) == [
        {"event": "tool-started", **of_it, "tool_name": "look", "input": {"at": "sea"}},
        {"event": "tool-output-delta", **of_it, "delta": "so"},
        {"event": "tool-output-delta", **of_it, "delta": " far"},
        {"event": "tool-finished", **of_it, "output": {"n": 1}},
    ]
    assert [event for event in read(sent(*RUN, *updates)) if isinstance(event, ev.ToolUpdate)] == updates


def test_a_tool_that_fails() -> None:
    update = ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", "no sea", is_error=True))
    started, error = tools(update)
    assert started["synthetic"] is True
    assert error == {"event": "tool-error", "tool_call_id": "c1", "message": "no sea"}
    assert read(sent(*RUN, update))[-1] == update


@pytest.mark.parametrize(
    "update",
    [
        ev.ToolUpdate("c1", None, "Looking"),
        ev.ToolUpdate("c1", "identified", "Looking"),
        ev.ToolUpdate("c1", "executing", "Looking", rd.ToolResult("c1", "so")),
        ev.ToolUpdate("c1", "completed"),
        ev.ToolUpdate("c1", "completed", "Looked", rd.ToolResult("c1", "sea", duration=0.5)),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult(None, "sea")),
        ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea", is_error=True)),
        ev.ToolUpdate("c1", "failed"),
        ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", ["no", 1], is_error=True)),
        ev.ToolUpdate("c1", "failed", None, rd.ToolResult("c1", "no")),
        ev.ToolUpdate("nobody", "completed", None, rd.ToolResult("nobody", "sea")),
    ],
)
def test_news_of_a_tool_survive(update: ev.ToolUpdate) -> None:
    assert update in read(sent(*RUN, update))
    begun = ev.ToolUpdate("c1", "executing")
    assert update in read(sent(*RUN, begun, update))


def test_results_that_do_not_continue_each_other_are_told_whole_to_ours() -> None:
    updates = [
        ev.ToolUpdate("c1", "executing"),
        *(
            ev.ToolUpdate("c1", "executing", None, rd.ToolResult("c1", one))
            for one in ("a", "b", "bc", {"n": 1})
        ),
    ]
    assert [event for event in read(sent(*RUN, *updates)) if isinstance(event, ev.ToolUpdate)] == updates


def test_a_tool_that_nobody_hears_of_any_more_is_ended_for_others() -> None:
    _, error = tools(ev.ToolUpdate("c1", "executing"))
    assert (error["event"], error["synthetic"]) == ("tool-error", True)
    assert read(sent(*RUN, ev.ToolUpdate("c1", "executing")))[-1] == ev.ToolUpdate("c1", "executing")


def test_a_tool_of_a_failed_attempt_is_ended_with_it() -> None:
    events = [*RUN[:4], ev.ToolUpdate("c1", "executing"), ev.AttemptReset(1), *RUN]
    frames = sent(*events)
    Rules().check(frames)
    assert names(*events).index("tool-error") < names(*events).index("error")


def test_a_tool_ends_once() -> None:
    done = ev.ToolUpdate("c1", "completed", None, rd.ToolResult("c1", "sea"))
    again = ev.ToolUpdate("c1", "failed", "late", rd.ToolResult("c1", "no", is_error=True))
    assert [one["event"] for one in tools(done, again)] == ["tool-started", "tool-finished"]
    assert read(sent(*RUN, done, again))[-1] == again


def test_a_foreign_tools_channel_is_read() -> None:
    def frame(**found: Any) -> Frame:
        return {
            "type": "event",
            "method": "tools",
            "params": {"namespace": [], "timestamp": 1, "data": found},
        }

    assert read(
        [
            frame(event="tool-started", tool_call_id="c", tool_name="f", input={}),
            frame(event="tool-output-delta", tool_call_id="c", delta="a"),
            frame(event="tool-output-delta", tool_call_id="c", delta="b"),
            frame(event="tool-finished", tool_call_id="c", output={"n": 1}),
            frame(event="tool-error", tool_call_id="d", message="no", code="x"),
        ]
    ) == [
        ev.ToolUpdate("c", "executing"),
        ev.ToolUpdate("c", "executing", None, rd.ToolResult("c", "a")),
        ev.ToolUpdate("c", "executing", None, rd.ToolResult("c", "ab")),
        ev.ToolUpdate("c", "completed", None, rd.ToolResult("c", {"n": 1})),
        ev.ToolUpdate("d", "failed", None, rd.ToolResult("d", "no", is_error=True)),
    ]
    assert isinstance(read([frame(event="tool-paused", tool_call_id="c")])[0], ev.ProviderEvent)
    for wrong in (
        {"event": "tool-started", "tool_call_id": None},
        {"event": "tool-started", "tool_call_id": "c", "display_text": 1},
        {"event": "tool-output-delta", "tool_call_id": "c", "delta": 1},
        {"event": "tool-finished", "tool_call_id": "c", "result": 1},
        {"event": "tool-finished", "tool_call_id": "c", "result": {"duration": "x"}},
    ):
        with pytest.raises(rd.MalformedChunkError):
            read([frame(**wrong)])


# Any events, and every recorded stream.


@functools.cache
def shapes() -> dict[str, Any]:
    """LangChain's own types, as validators of what a frame holds."""
    pydantic, protocol = pytest.importorskip("pydantic"), pytest.importorskip("langchain_protocol.protocol")
    kinds = {"messages": protocol.MessagesData, "tools": protocol.ToolsData, "custom": protocol.CustomData}
    return {"frame": pydantic.TypeAdapter(protocol.Event)} | {
        method: pydantic.TypeAdapter(kind) for method, kind in kinds.items()
    }


def check_shapes(frames: Iterable[Frame], types: Mapping[str, Any]) -> None:
    for frame in frames:
        types["frame"].validate_python(frame)
        types[frame["method"]].validate_python(frame["params"]["data"])


def test_langchains_types_would_catch_a_wrong_frame() -> None:
    types, (frame, *_) = shapes(), sent(ev.MessageStart("m"))
    check_shapes([frame], types)
    frame["params"]["data"]["id"] = None
    with pytest.raises(ValueError, match="id"):
        check_shapes([frame], types)


RECORDED = [
    pytest.param(wire_format, *one.values, marks=one.marks, id=f"{wire_format}-{one.id}")
    for wire_format in sorted(
        set(rd.providers.FORMATS) - {"langchain", "ai-sdk", "ag-ui"}
    )  # those of front ends
    for one in recordings(wire_format)
]


def events_of(wire_format: str, chunks: Iterable[Any]) -> list[rd.Event]:
    decoder = rd.providers.decoder(wire_format)
    return [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]


@pytest.fixture(scope="module")
def types() -> dict[str, Any]:
    return shapes()


@pytest.mark.slow
@pytest.mark.parametrize(("wire_format", "chunks", "_expected"), RECORDED)
def test_a_recorded_stream_is_read_back_without_loss(
    wire_format: str,
    chunks: list[Any],
    _expected: Any,
    types: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    events = events_of(wire_format, chunks)
    for choice in {getattr(event, "choice", 0) for event in events}:
        frames = sent(*events, choice=choice)
        Rules().check(frames)
        check_shapes(frames, types)
        back, reply = read(frames), folded(alone(events, choice))
        assert folded(back) == reply
        assert natives(back) == natives(events)
        if reply.status != "incomplete":
            assert folded(back).to_message() == reply.to_message()
            if not any(isinstance(event, ev.StreamError) for event in events):
                check_with_langchain(frames, reply)


def alone(events: Iterable[rd.Event], choice: int) -> list[rd.Event]:
    """The events of one choice, as if there were no other."""
    kept = [
        event
        for event in events
        if getattr(event, "choice", choice) == choice or isinstance(event, ev.StreamError)
    ]
    return [attrs.evolve(event, choice=0) if hasattr(event, "choice") else event for event in kept]


def natives(events: Iterable[rd.Event]) -> list[dict[str, Any]]:
    """What came of the provider's own before the error, if there is one."""
    before = takewhile(lambda event: not isinstance(event, ev.StreamError), events)
    return [event.to_dict() for event in before if isinstance(event, ev.ProviderEvent)]


def check_with_langchain(frames: Iterable[Frame], reply: rd.Snapshot) -> None:
    """What LangChain's own reader ends up with is our final message."""
    core = pytest.importorskip("langchain_core.language_models.chat_model_stream")
    stream = core.ChatModelStream()
    for frame in frames:
        if frame["method"] == "messages":
            stream.dispatch(frame["params"]["data"])
    message = stream.output_message
    assert message.id == (reply.id or "made-0")
    calls = [block for block in reply.blocks if isinstance(block, rd.ToolCall)]
    assert [(call["id"], call["name"], call["args"]) for call in message.tool_calls] == [
        (call.call_id, call.name, rd.thaw(call.arguments)) for call in calls if call.type == "tool_call"
    ]
    invalid = [call for call in calls if call.type == "invalid_tool_call"]
    assert [call["error"] for call in message.invalid_tool_calls] == [call.error for call in invalid]
    words = ("text", "refusal")
    said = [b.text for b in reply.blocks if isinstance(b, rd.ContentPart) and b.type in words]
    assert [block["text"] for block in message.content if block["type"] == "text"] == [
        one or "" for one in said
    ]
    assert str(stream.reasoning) == reply.reasoning
    assert len(message.content) == len(reply.blocks)
    if reply.usage is not None:
        found = message.usage_metadata
        assert (found.get("input_tokens"), found.get("output_tokens")) == (
            reply.usage.input_tokens or 0,
            reply.usage.output_tokens or 0,
        )


def legal(turn: list[rd.Event]) -> list[rd.Event]:
    """The events that keep the protocol, with an end."""
    lifecycle, kept = rd.core.ProtocolChecker(), [ev.MessageStart("m")]
    lifecycle.check(kept[0])
    for event in turn:
        if isinstance(event, (ev.MessageStart, ev.MessageFinish, ev.AttemptReset, ev.MessageInterrupted)):
            continue
        trial = copy.deepcopy(lifecycle)
        if trial.check(event) is None:
            lifecycle = trial
            kept.append(event)
    return kept


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(strategies.events(), max_size=25), st.sampled_from(["stop", "length", "interrupted"]))
def test_any_legal_events_are_read_back_without_loss(turn: list[rd.Event], end: str) -> None:
    events = legal(turn)
    last = ev.MessageInterrupted("left") if end == "interrupted" else ev.MessageFinish(end, "word")
    events.append(last)
    frames = sent(*events)
    Rules().check(frames)
    check_shapes(frames, shapes())
    assert folded(read(frames)) == folded(events)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(strategies.every_event, max_size=25), st.booleans())
def test_no_events_at_all_make_an_illegal_frame(events: list[rd.Event], fails: bool) -> None:
    frames = sent(*events, error=BOOM if fails else None)
    Rules().check(frames)
    check_shapes(frames, shapes())
    read(frames)
