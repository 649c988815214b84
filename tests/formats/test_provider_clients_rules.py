"""What both protocols of providers' clients have in common, rule by rule: items, calls, turns, runs, and how a reply breaks off."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
import reactivex as rx
from reactivex import operators as ops
from support.provider_clients import WAYS, Way
from support.provider_frames import Reader
from support.runs import Events, answer, call, text, thought, turn, within, woven

import rxdelta as rd

ev = rd.events
each_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
START = ev.MessageStart("m1", "small")
STOP, CALLS, CUT = ev.MessageFinish("stop"), ev.MessageFinish("tool_use"), ev.MessageFinish("length")
SECRET = "hunter2"


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")


def texts(reader: Reader) -> list[str]:
    return reader.texts("output_text", "text")


def asked(call_id: str, at: str) -> Any:
    return [call_id, "look", {"at": at}]


def calls(way: Way, reader: Reader) -> list[Any]:
    return way.shown(reader).calls


def written(index: int, call_id: str, *pieces: str, name: str = "look") -> Events:
    start = ev.BlockStart(index, {"type": "tool_call_chunk", "id": call_id, "name": name})
    return [start, *(ev.ToolCallDelta(index, piece) for piece in pieces), ev.BlockFinish(index)]


def check_failed(reader: Reader, error: str = rd.wire.MASKED) -> None:
    assert reader.over
    assert reader.error == error
    assert reader.end is reader.usage is None


# Items.


@each_way
def test_each_piece_is_sent_at_once(way: Way) -> None:
    encoder, reader = way.new(), way.reader()
    shown: list[str] = []
    for event in [START, *text(0, "Hel"), STOP]:
        reader.read(*encoder.encode(event))
        shown.append("".join(texts(reader)))
    assert shown == ["", "", "H", "He", "Hel", "Hel", "Hel"]
    assert not reader.over
    reader.read(*encoder.close())
    assert reader.over


@each_way
def test_nothing_comes_behind_the_end(way: Way) -> None:
    for end in (lambda one: one.close(), lambda one: one.fail(ValueError(SECRET))):
        encoder = way.new()
        for event in turn(text(0, "Hi")):
            encoder.encode(event)
        assert end(encoder)
        assert not [*encoder.encode(START), *encoder.close(), *encoder.fail(ValueError(SECRET))]


@each_way
def test_one_item_is_open_at_a_time_and_others_follow_it(way: Way) -> None:
    one, two, three = text(0, "abc"), call(1, "c1", "sea"), text(2, "xyz")
    for seed in range(20):
        reader = way.read([START, *woven(one, two, three, seed=seed), CALLS], tools=())
        assert sorted(texts(reader)) == ["abc", "xyz"]
        assert calls(way, reader) == [asked("c1", "sea")]


@each_way
def test_calls_whose_pieces_come_by_turns_are_whole(way: Way) -> None:
    reader = way.read([START, *woven(call(0, "c1", "sea"), call(1, "c2", "sky")), CALLS], tools=())
    assert calls(way, reader) == [asked("c1", "sea"), asked("c2", "sky")]


@each_way
def test_a_block_without_content_is_no_item(way: Way) -> None:
    reader = way.read(turn(text(0, ""), thought(1, ""), text(2, "Hi")))
    assert [item.said for item in reader.items] == ["Hi"]


@each_way
def test_blocks_of_one_type_stay_apart(way: Way) -> None:
    reader = way.read(turn(thought(0, "Hm."), text(1, "So."), text(2, "Well."), thought(3, "Yes.")))
    assert [item.said for item in reader.items] == ["Hm.", "So.", "Well.", "Yes."]


@each_way
def test_reasoning_is_left_out_if_it_is_not_wanted(way: Way) -> None:
    reader = way.read(turn(thought(0, "Hm."), text(1, "So.")), reasoning=False)
    assert [item.said for item in reader.items] == ["So."]


@each_way
def test_a_character_that_comes_in_halves_is_written_whole(way: Way) -> None:
    halves = [ev.BlockStart(0, {"type": "text"}), ev.TextDelta(0, "a\ud83d"), ev.TextDelta(0, "\ude00b")]
    frames = way.frames([START, *halves, STOP])
    assert texts(way.reader(frames)) == ["a😀b"]
    for frame in frames:
        json.dumps(frame, ensure_ascii=False).encode()


@each_way
def test_only_the_first_choice_is_shown(way: Way) -> None:
    other = [
        ev.MessageStart("m1", choice=1),
        ev.BlockStart(0, {"type": "text"}, choice=1),
        ev.TextDelta(0, "No", choice=1),
        ev.MessageFinish("stop", choice=1),
    ]
    assert texts(way.read([*other, *turn(text(0, "Yes"))])) == ["Yes"]


@each_way
def test_what_has_no_place_is_left_out(way: Way) -> None:
    odd = [
        ev.Custom("status", {"step": 1}),
        ev.ProviderEvent("house", "ping", {}),
        ev.BlockFinish(0, {"type": "server_tool_call", "id": "s1", "name": "search", "args": {"q": "x"}}),
        ev.BlockFinish(1, {"type": "server_tool_result", "tool_call_id": "s1", "output": "found"}),
        ev.BlockFinish(2, {"type": "non_standard", "value": {"type": "new"}}),
        ev.BlockFinish(3, {"type": "video", "url": "https://x.test/a.mp4"}),
    ]
    assert [item.said for item in way.read([START, *odd, *text(4, "Hi"), STOP]).items] == ["Hi"]


@each_way
def test_the_head_is_the_replys_own_or_made(way: Way) -> None:
    def head(*events: rd.Event, **options: Any) -> tuple[str, str]:
        frame = way.frames([*events, STOP], **options)[0]
        found = frame.get("response", frame.get("message"))
        return found["id"], found["model"]

    assert head(START) == ("m1", "small")
    assert head(START, model="house") == ("m1", "house")
    assert head(ev.MessageStart()) == ("made", "")


# Calls.


@each_way
def test_a_call_waits_for_the_end_if_the_servers_tools_are_not_known(way: Way) -> None:
    encoder, reader = way.new(), way.reader()
    for event in turn(call(0, "c1", "sea"), text(1, "Hi"), reason="tool_use"):
        reader.read(*encoder.encode(event))
        assert not calls(way, reader)
    assert texts(reader) == ["Hi"]
    reader.read(*encoder.close())
    assert calls(way, reader) == [asked("c1", "sea")]


@each_way
def test_a_call_is_sent_as_it_comes_if_it_is_not_one_of_the_servers(way: Way) -> None:
    both = [*call(0, "c1", "sea"), *written(1, "c2", "{}", name="mine")]
    encoder, reader = way.new(tools={"mine": print}), way.reader()
    said: list[str] = []
    for event in [START, *both]:
        reader.read(*encoder.encode(event))
        said.append("".join(item.said for item in reader.items))
    assert said[1:4] == ["", '{"at": ', '{"at": "sea"}']
    assert calls(way, reader) == [asked("c1", "sea")]
    reader.read(*encoder.encode(CALLS), *encoder.close())
    assert calls(way, reader) == [asked("c1", "sea")]


@each_way
@pytest.mark.parametrize("tools", [None, ["look"]])
@pytest.mark.parametrize(
    "news",
    [
        [ev.ToolUpdate("c1", "executing"), answer("c1", "blue")],
        [ev.ToolUpdate("c1", "executing")],
        [ev.ToolUpdate("c1", "awaiting_approval")],
        [ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "no", is_error=True))],
    ],
    ids=["ran", "runs", "waits for an approval", "failed"],
)
def test_a_call_that_the_server_has_taken_is_not_the_clients(way: Way, news: Events, tools: Any) -> None:
    whole = turn(text(0, "So."), call(1, "c1", "sea"), reason="tool_use")
    for events in ([*whole, *news], [*whole[:-1], *news, whole[-1]]):
        reader = way.read(events, tools=tools)
        assert [item.said for item in reader.items] == ["So."]
        assert reader.end == way.reasons["stop"]


@each_way
def test_the_calls_that_are_left_are_the_clients(way: Way) -> None:
    whole = turn(call(0, "c1", "sea"), call(1, "c2", "sky"), call(2, "c3", "sun"), reason="tool_use")
    reader = way.read([*whole, answer("c2", "blue")])
    assert calls(way, reader) == [asked("c1", "sea"), asked("c3", "sun")]
    assert reader.end == way.reasons["tool_use"]


@each_way
@pytest.mark.parametrize("tools", [None, ["look"]])
def test_an_agents_turns_are_one_reply_without_their_calls(way: Way, tools: Any) -> None:
    first = turn(thought(0, "Hm."), text(1, "Let me see."), call(2, "c1", "sea"), reason="tool_use", used=3)
    second = turn(text(0, "It is blue."), id="m2", used=4)
    reader = way.read([*first, answer("c1", "blue"), *second], tools=tools)
    assert [item.said for item in reader.items] == ["Hm.", "Let me see.", "It is blue."]
    shown = way.shown(reader)
    assert shown.usage == way.usage({"input_tokens": 7, "output_tokens": 7})
    assert (shown.reason, reader.head["id"] if reader.head else None) == (way.reasons["stop"], "m1")


@each_way
@pytest.mark.parametrize("lacking", [{"name": "look"}, {"id": "c1"}])
def test_a_call_without_an_id_or_a_name_is_none_to_run(way: Way, lacking: Any) -> None:
    whole = {"type": "tool_call", "args": {"at": "sea"}, **lacking}
    for tools in (None, ()):
        reader = way.read([START, *text(0, "So."), ev.BlockFinish(1, whole), CALLS], tools=tools)
        assert [item.said for item in reader.items] == ["So."]


@each_way
@pytest.mark.parametrize("tools", [None, ()])
def test_a_call_without_arguments_has_an_empty_object(way: Way, tools: Any) -> None:
    reader = way.read([START, *written(0, "c1"), CALLS], tools=tools)
    assert calls(way, reader) == [["c1", "look", {}]]


@each_way
@pytest.mark.parametrize("tools", [None, ()])
def test_a_call_whose_end_has_other_arguments_than_its_pieces_is_not_run_with_either(
    way: Way, tools: Any
) -> None:
    other = {"type": "tool_call", "id": "c1", "name": "look", "args": {"at": "sky"}}
    reader = way.read([START, *call(0, "c1", "sea")[:-1], ev.BlockFinish(0, other), CALLS], tools=tools)
    if tools is None:
        assert calls(way, reader) == [asked("c1", "sky")]
    else:
        check_failed(reader)
        assert not calls(way, reader)


@each_way
def test_a_call_that_turns_out_invalid_is_not_sent_if_it_was_held(way: Way) -> None:
    reader = way.read([START, *text(0, "So."), *written(1, "c1", '{"at": '), CALLS])
    assert [item.said for item in reader.items] == ["So."]
    assert reader.end == way.reasons["stop"]


@each_way
@pytest.mark.parametrize("pieces", [["[1]"], ['"sea"'], ["1"], ["{}", '{"at": 1}']])
def test_a_call_with_arguments_of_another_kind_ends_with_no_call_that_a_client_runs(
    way: Way, pieces: Sequence[str]
) -> None:
    reader = way.read([START, *written(0, "c1", *pieces), CALLS], tools=())
    fold = rd.Fold()
    for event in [START, *written(0, "c1", *pieces), CALLS]:
        fold.step(event)
    ours = [way.call(one) for one in fold.snapshot.tool_calls]
    assert not ours or reader.error is None
    if reader.error is not None:
        check_failed(reader)
        assert not reader.runnable()


@each_way
def test_a_call_is_not_done_before_its_message_says_that_the_call_was_not_cut(way: Way) -> None:
    encoder, reader = way.new(tools=()), way.reader()
    for event in [START, *written(0, "c1", '{"at": '), *text(1, "Hi")]:
        reader.read(*encoder.encode(event))
    assert reader.open is not None
    assert reader.open.said == '{"at": '
    assert not texts(reader), "it waits"


@each_way
@pytest.mark.parametrize("pieces", [[], ['{"at": "se'], ['{"at": "sea"}'], ["1"]])
@pytest.mark.parametrize("ends", [True, False], ids=["block ends", "block is open"])
def test_a_call_that_the_limit_has_cut_is_none_to_run(way: Way, pieces: Sequence[str], ends: bool) -> None:
    """One that could be read might be run by a client that doesn't look at the reason. It has no end."""
    events = [START, *written(0, "c1", *pieces)[: None if ends else -1], CUT]
    fold = rd.Fold()
    for event in events:
        fold.step(event)
    wanted = [way.call(one) for one in fold.snapshot.tool_calls]
    reader = way.read(events, tools=())
    assert reader.end == way.reasons["length"]
    assert calls(way, reader) == wanted


# Runs.


@each_way
def test_a_sub_agent_is_not_seen_but_paid_for(way: Way) -> None:
    main = within("main", turn(text(0, "abc"), used=1))
    sub = within("sub", turn(text(0, "deep"), call(1, "c9", "sea"), reason="tool_use", used=100), "main")
    for events in ([*main[:3], *sub, *main[3:]], [*main, *sub], woven(main, sub)):
        for tools in (None, ()):
            reader = way.read(events, tools=tools)
            assert [item.said for item in reader.items] == ["abc"]
            assert way.shown(reader).usage == way.usage({"input_tokens": 101, "output_tokens": 101})
            assert reader.end == way.reasons["stop"]


@each_way
def test_runs_that_overlap_are_shown_one_after_the_other(way: Way) -> None:
    first, second = within("a", turn(text(0, "abc"), used=1)), within("b", turn(text(0, "xyz"), used=10))
    for seed in range(10):
        reader = way.read(
            woven(first[:1], second) + first[1:] if seed == 0 else woven(first, second, seed=seed)
        )
        assert sorted(texts(reader)) == ["abc", "xyz"]
        assert way.shown(reader).usage == way.usage({"input_tokens": 11, "output_tokens": 11})


# Broken off.


@each_way
@pytest.mark.parametrize("fails", [ConnectionError(SECRET), None], ids=["fails", "completes"])
@pytest.mark.parametrize("tools", [None, ()])
def test_what_is_open_when_the_stream_breaks_stays_open(way: Way, tools: Any, fails: Any) -> None:
    blocks = [text(0, "Hi"), thought(0, "Hm."), call(0, "c1", "sea")]
    for block in blocks:
        for count in range(len(block) + 1):
            if block is not blocks[2] or count < len(block):
                reader = way.read([START, *block[:count]], fails, tools=tools)
                check_failed(reader)
                done = [item.done for item in reader.items]
                assert done in ([], [count == len(block)])


@each_way
@pytest.mark.parametrize("tools", [None, ()])
def test_an_interruption_ends_nothing_and_says_why(way: Way, tools: Any) -> None:
    for block in (text(0, "Hi"), thought(0, "Hm."), call(0, "c1", "sea")):
        for count in range(1, len(block)):
            reader = way.read([START, *block[:count], ev.MessageInterrupted("user")], tools=tools)
            check_failed(reader, "user")
            assert not any(item.done for item in reader.items)


@each_way
def test_an_error_is_masked_unless_its_text_is_given(way: Way) -> None:
    whole = turn(text(0, "Hi"))[:-1]
    assert way.read(whole, ValueError(SECRET)).error == rd.wire.MASKED
    assert way.read(whole, ValueError(SECRET), on_error=str).error == SECRET
    assert way.read([*whole, ev.StreamError(SECRET, "overloaded")]).error == rd.wire.MASKED

    def broken(error: Exception) -> str:
        raise RuntimeError(SECRET)

    assert way.read(whole, ValueError(SECRET), on_error=broken).error == rd.wire.MASKED


@each_way
def test_a_text_that_the_client_has_is_not_taken_back(way: Way) -> None:
    again = [ev.AttemptReset(1, SECRET), *turn(text(0, "Well."))]
    reader = way.read([START, *text(0, "Hel")[:2], *again])
    check_failed(reader)
    assert texts(reader) == ["H"]


@each_way
@pytest.mark.parametrize("count", [1, 2, 3])
def test_an_attempt_of_which_the_client_has_only_thoughts_is_tried_again(way: Way, count: int) -> None:
    again = [ev.AttemptReset(1, SECRET), *turn(text(0, "Well."))]
    reader = way.read([START, *thought(0, "Hm.")[:count], *again])
    assert texts(reader) == ["Well."]
    assert reader.error is None


@each_way
def test_a_call_that_was_held_is_gone_with_its_attempt(way: Way) -> None:
    again = [ev.AttemptReset(1, SECRET), *turn(call(0, "c2", "sky"), reason="tool_use")]
    reader = way.read([START, *call(0, "c1", "sea"), *again])
    assert calls(way, reader) == [asked("c2", "sky")]
    check_failed(way.read([START, *call(0, "c1", "sea"), *again], tools=()))


@each_way
def test_a_reply_whose_last_turn_was_cut_off_has_no_end(way: Way) -> None:
    first = turn(text(0, "So."), call(1, "c1", "sea"), reason="tool_use")
    check_failed(way.read([*first, answer("c1", "blue"), *turn(text(0, "It"), id="m2")[:-1]]))
    late = way.read([*first, ev.ToolUpdate("c1", "executing"), ev.MessageInterrupted("user")])
    check_failed(late, "user")
    assert not late.runnable()


# Blocks of strangers.

ODD: list[rd.ContentPart] = [
    rd.ContentPart("unsupported", options={"type": "code_interpreter_call", "id": "ci_1"}),
    rd.ContentPart("unsupported", options={"type": {"a": 1}, "id": "x"}),
    rd.ContentPart("unsupported", options={"type": ["fallback"], "id": {"a": 1}}),
    rd.ContentPart(
        "server_tool_result",
        options={"provider_type": "web_search_tool_result", "tool_call_id": {"a": 1}, "output": {}},
    ),
    rd.ContentPart("reasoning", "Hm.", {"signature": 1}),
    rd.ContentPart("reasoning", None, {"signature": {"a": 1}}),
]


@each_way
@pytest.mark.parametrize("block", ODD, ids=str)
def test_a_block_with_odd_fields_leaves_the_reply_whole(way: Way, block: rd.ContentPart) -> None:
    message = rd.Message(role="assistant", blocks=[block, rd.ContentPart("text", "Hi")])
    reader = way.read(rd.to_events(message))
    assert reader.over
    assert reader.error is None
    assert texts(reader) == ["Hi"]


@each_way
def test_a_signature_that_is_no_string_is_left_out(way: Way) -> None:
    thought = rd.ContentPart("reasoning", "Hm.", {"signature": 1})
    written = json.dumps(way.frames(rd.to_events(rd.Message(role="assistant", blocks=[thought]))))
    assert "Hm." in written
    assert "signature_delta" not in written
    assert "encrypted_content" not in written


# Options.


@each_way
@pytest.mark.parametrize(
    ("name", "value"),
    [("model", 1), ("tools", "look"), ("tools", b"look"), ("tools", 7), ("tools", [{"name": "look"}])],
)
def test_an_option_that_makes_no_sense_is_refused(way: Way, name: str, value: Any) -> None:
    with pytest.raises(rd.errors.InvalidValueError, match=name):
        way.new(**{name: value})


OPERATORS = {"openai-responses": rd.to_openai_responses, "anthropic-messages": rd.to_anthropic_messages}


@each_way
def test_the_operator_writes_what_the_encoder_does(way: Way) -> None:
    make: Any = OPERATORS[way.wire_format]
    events = turn(thought(0, "Hm."), text(1, "Hi"), call(2, "c1", "sea"), reason="tool_use")
    for options in ({}, {"tools": ()}, {"reasoning": False}):
        frames = rx.from_iterable(events).pipe(make("house", **options), ops.to_list()).run()
        wanted = way.frames(events, model="house", **options)
        for frame in (*frames, *wanted):
            if "response" in frame:
                frame["response"]["created_at"] = 0
        assert frames == wanted


@each_way
def test_the_frames_name_their_events_for_server_sent_events(way: Way) -> None:
    for frame in way.frames(turn(text(0, "Hi"))):
        assert rd.wire.sse_frame(frame).startswith(f"event: {frame['type']}\ndata: {{".encode())


@pytest.mark.parametrize("encode", [rd.to_openai_responses, rd.to_anthropic_messages, rd.to_ollama])
def test_of_several_choices_the_first_is_written_or_the_one_that_only_choice_lets_through(
    encode: Any,
) -> None:
    told: list[rd.Event] = []
    for number, word in enumerate(("alpha", "omega")):
        told += [
            rd.events.MessageStart("m", choice=number),
            rd.events.BlockStart(0, {"type": "text"}, choice=number),
        ]
        told += [rd.events.TextDelta(0, word, choice=number), rd.events.MessageFinish("stop", choice=number)]
    first = rx.from_iterable(told).pipe(encode("m"), ops.to_list()).run()
    other = rx.from_iterable(told).pipe(rd.only_choice(1), encode("m"), ops.to_list()).run()
    assert ("alpha" in str(first), "omega" in str(first)) == (True, False)
    assert ("alpha" in str(other), "omega" in str(other)) == (False, True)
    assert len(first) == len(other)


@each_way
def test_a_call_that_the_limit_has_cut_is_none_to_run_if_another_message_follows(way: Way) -> None:
    """The reply has one end, which would no longer say that a call was cut."""
    for piece in ("", "{", '{"at'):
        reader = way.read([START, *written(0, "c1", piece)[:-1], CUT, *turn(text(0, "So."))], tools=())
        check_failed(reader)


@each_way
def test_a_call_that_gets_another_name_is_taken_back(way: Way) -> None:
    whole = {"type": "tool_call", "id": "c1", "name": "erase", "args": {"at": "sea"}}
    overruled = [*written(0, "c1", '{"at": "sea"}')[:-1], ev.BlockFinish(0, whole)]
    for tools in ((), ["erase"]):
        reader = way.read([START, *overruled, CALLS], tools=tools)
        check_failed(reader)
        assert not calls(way, reader)


@each_way
def test_a_call_of_the_clients_that_the_server_has_run_is_taken_back(way: Way) -> None:
    whole = [START, *written(0, "c1", '{"at": "sea"}'), CALLS]
    for news in ([answer("c1", "blue")], [ev.ToolUpdate("c1", "executing")]):
        check_failed(way.read([*whole, *news], tools=()))
        check_failed(way.read([*whole, *news, *turn(text(0, "So."), id="m2")], tools=()))
    unknown = ev.ToolUpdate("c1", "failed", result=rd.ToolResult("c1", "there is no tool", is_error=True))
    reader = way.read([*whole, unknown], tools=["another"])
    assert len(calls(way, reader)) == 1
