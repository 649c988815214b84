"""OpenAI Responses: what each item and event becomes, vendor by vendor, and that nothing else ever comes out."""

from __future__ import annotations

import copy
import json
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import reactivex as rx
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta.core import (
    ContentPart,
    Fold,
    LimitExceededError,
    MalformedChunkError,
    ProtocolChecker,
    Snapshot,
    ToolCall,
    events,
    thaw,
)
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Event,
    MessageFinish,
    ProviderEvent,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.openai_responses.decoder import OpenAIResponsesDecoder, recognises

if TYPE_CHECKING:
    from collections.abc import Iterable

Chunk = dict[str, Any]

USAGE = {
    "input_tokens": 7,
    "output_tokens": 3,
    "total_tokens": 10,
    "input_tokens_details": {"cached_tokens": 2},
}


def response(status: str = "in_progress", **more: Any) -> Chunk:
    return {"id": "resp_1", "object": "response", "created_at": 5, "model": "m", "status": status, **more}


def created(**more: Any) -> Chunk:
    return {"type": "response.created", "sequence_number": 0, "response": response(output=[], **more)}


def completed(*output: Chunk, status: str = "completed", **more: Any) -> Chunk:
    whole = response(status, output=list(output), usage=USAGE, **more)
    return {"type": f"response.{status}", "sequence_number": 99, "response": whole}


def incomplete(*output: Chunk, reason: str | None = "max_output_tokens") -> Chunk:
    return completed(*output, status="incomplete", incomplete_details={"reason": reason} if reason else None)


def event(kind: str, place: int = 0, **more: Any) -> Chunk:
    return {
        "type": f"response.{kind}",
        "output_index": place,
        "item_id": f"i{place}",
        "sequence_number": 1,
        **more,
    }


def added(item: Chunk, place: int = 0) -> Chunk:
    return {"type": "response.output_item.added", "output_index": place, "item": item}


def done(item: Chunk, place: int = 0) -> Chunk:
    return {"type": "response.output_item.done", "output_index": place, "item": item}


def text(piece: str, place: int = 0, part: int = 0, **more: Any) -> Chunk:
    return event("output_text.delta", place, content_index=part, delta=piece, **more)


def part(said: str, *annotations: Chunk, **more: Any) -> Chunk:
    return {"type": "output_text", "text": said, "annotations": list(annotations), "logprobs": [], **more}


def message(*parts: Chunk, id: str = "i0", status: str = "completed", **more: Any) -> Chunk:
    return {
        "type": "message",
        "id": id,
        "role": "assistant",
        "status": status,
        "content": list(parts),
        **more,
    }


def reasoning(*summary: str, content: list[str] | None = None, **more: Any) -> Chunk:
    item = {
        "type": "reasoning",
        "id": "rs",
        "summary": [{"type": "summary_text", "text": s} for s in summary],
    }
    if content is not None:
        item["content"] = [{"type": "reasoning_text", "text": said} for said in content]
    return item | more


def function(arguments: Any = "", name: str = "f", call_id: Any = "c1", **more: Any) -> Chunk:
    item = {
        "type": "function_call",
        "id": "fc",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        **more,
    }
    return {key: value for key, value in item.items() if value is not ...}


def arguments(piece: str, place: int = 0) -> Chunk:
    return event("function_call_arguments.delta", place, delta=piece)


def decode(*chunks: Any) -> list[Event]:
    decoder = OpenAIResponsesDecoder()
    found = [one for chunk in chunks for one in decoder.decode(chunk)]
    return [*found, *decoder.close()]


def violations(found: Iterable[Event]) -> list[str]:
    lifecycle = ProtocolChecker()
    broken = [lifecycle.check(one) for one in found]
    return [rule for rule in (*broken, lifecycle.close()) if rule is not None]


def fold(found: Iterable[Event]) -> Snapshot:
    fold = Fold(choice=0)
    for one in found:
        if not isinstance(one, StreamError):
            fold.step(one)
    return fold.snapshot


def reply(*chunks: Any) -> Snapshot:
    found = decode(*chunks)
    assert set(violations(found)) <= {"missing_message_finish", "error_event"}
    return fold(found)


def streamed(item: Chunk, *pieces: Chunk, begin: Chunk | None = None) -> Snapshot:
    """A response of this item alone, which begins with what is known of it at the beginning."""
    return reply(created(), added(begin or item), *pieces, done(item), completed(item))


def blocks(snapshot: Snapshot) -> list[tuple[Any, ...]]:
    return [
        (block.type, block.text)
        if isinstance(block, ContentPart)
        else (block.type, block.call_id, block.name)
        for block in snapshot.blocks
    ]


def only(snapshot: Snapshot) -> Any:
    (block,) = snapshot.blocks
    return block


def names(found: Iterable[Event]) -> list[str]:
    return [one.event.removeprefix("content-") for one in found]


# -- messages


def test_a_text_stream_is_start_deltas_finish() -> None:
    item = message(part("Hi."))
    found = decode(
        created(),
        {"type": "response.in_progress", "response": response()},
        added(message(status="in_progress")),
        event("content_part.added", content_index=0, part=part("")),
        text("Hi", obfuscation="aBc"),
        text("."),
        event("output_text.done", content_index=0, text="Hi."),
        event("content_part.done", content_index=0, part=part("Hi.")),
        done(item),
        completed(item),
    )
    assert names(found) == [
        "message-start",
        "block-start",
        "block-delta",
        "block-delta",
        "block-finish",
        "message-finish",
    ]
    assert violations(found) == []
    told = fold(found).to_message().to_dict()
    assert told == {
        "role": "assistant",
        "status": "complete",
        "choice": 0,
        "id": "resp_1",
        "model": "m",
        "blocks": [{"type": "text", "text": "Hi.", "options": {"item_id": "i0", "status": "completed"}}],
        "finish_reason": "stop",
        "provider_finish_reason": "completed",
        "usage": {"input_tokens": 7, "output_tokens": 3, "raw": USAGE},
        "metadata": {"created_at": 5},
    }


@pytest.mark.parametrize("extra", [{}, {"unheard_of": 1}, {"logprobs": []}, {"logprobs": None}])
def test_a_piece_is_one_event_whatever_else_it_carries(extra: Chunk) -> None:
    decoder = OpenAIResponsesDecoder()
    decoder.decode(created())
    decoder.decode(text("a"))
    assert list(decoder.decode(text("b", **extra))) == [TextDelta(0, "b")]


@pytest.mark.parametrize("place", [True, 0.0, "0"])
def test_an_index_that_only_equals_a_number_is_not_one(place: Any) -> None:
    decoder = OpenAIResponsesDecoder()
    for first in (text("a", 0), text("a", 1)):
        decoder.decode(first)
    with pytest.raises(MalformedChunkError, match="output_index"):
        decoder.decode({**text("b"), "output_index": place})
    with pytest.raises(MalformedChunkError, match="content_index"):
        decoder.decode({**text("b"), "content_index": place})


def test_parts_of_a_message_are_blocks_and_messages_keep_their_phase() -> None:
    first = message(part("a"), part("b"), id="m1", phase="commentary")
    second = message(part("c"), id="m2", phase="final_answer")
    snapshot = reply(
        created(),
        added(message(id="m1", phase="commentary")),
        text("a"),
        text("b", part=1),
        done(first),
        added(message(id="m2", phase="final_answer"), 2),
        text("c", 2),
        done(second, 2),
        completed(first, second),
    )
    assert blocks(snapshot) == [("text", "a"), ("text", "b"), ("text", "c")]
    told = [(block.options["item_id"], block.options["phase"]) for block in snapshot.blocks]  # type: ignore[union-attr]
    assert told == [("m1", "commentary"), ("m1", "commentary"), ("m2", "final_answer")]
    assert snapshot.text == "abc"


def test_a_phase_that_only_the_finished_item_tells_is_kept() -> None:
    assert (
        streamed(message(part("a"), phase="final_answer"), text("a"), begin=message())
        .blocks[0]
        .options[  # type: ignore[union-attr]
            "phase"
        ]
        == "final_answer"
    )


def test_content_index_may_begin_with_1() -> None:
    item = message(part("Hello"))
    snapshot = reply(
        created(), added(message()), text("Hel", part=1), text("lo", part=1), done(item), completed(item)
    )
    assert blocks(snapshot) == [("text", "Hello")]


@pytest.mark.parametrize("pieces", [[], ["Hel"], ["Hel", "lo, wor", "ld"], ["Something else"]])
def test_the_finished_text_wins_over_its_pieces(pieces: list[str]) -> None:
    item = message(part("Hello, world"))
    snapshot = streamed(item, *(text(piece) for piece in pieces), begin=message())
    assert blocks(snapshot) == [("text", "Hello, world")]


def test_a_text_that_is_told_whole_shows_before_its_item_is_done() -> None:
    whole = event("output_text.done", content_index=0, text="Hello")
    for pieces in ([], [text("He")]):
        snapshot = reply(created(), added(message()), *pieces, whole)
        assert blocks(snapshot) == [("text", "Hello")]
        assert snapshot.blocks[0].open


def test_an_empty_finished_text_says_nothing() -> None:
    item = message(part(""))
    done_empty = event("output_text.done", content_index=0, text="")
    assert blocks(streamed(item, text("kept"), done_empty, begin=message())) == [("text", "kept")]
    assert blocks(streamed(item, done_empty, begin=message())) == [("text", "")]


def test_refusal_is_a_block_of_its_own() -> None:
    item = message({"type": "refusal", "refusal": "I can't."})
    snapshot = streamed(
        item,
        event("content_part.added", content_index=0, part={"type": "refusal", "refusal": ""}),
        event("refusal.delta", content_index=0, delta="I "),
        event("refusal.delta", content_index=0, delta="can't."),
        event("refusal.done", content_index=0, refusal="I can't."),
        begin=message(),
    )
    assert blocks(snapshot) == [("refusal", "I can't.")]
    assert snapshot.text == ""


def annotation(n: int = 0) -> Chunk:
    return {
        "type": "url_citation",
        "url": f"https://x/{n}",
        "title": f"T{n}",
        "start_index": n,
        "end_index": n + 1,
    }


def noted(n: int, **more: Any) -> Chunk:
    return event(
        "output_text.annotation.added", content_index=0, annotation_index=n, annotation=annotation(n), **more
    )


def test_annotations_come_twice_and_count_once() -> None:
    item = message(part("Hi", annotation(0), annotation(1)))
    whole = event("content_part.done", content_index=0, part=item["content"][0])
    found = only(streamed(item, text("Hi"), noted(0), noted(1), whole, begin=message()))
    assert [thaw(citation.raw) for citation in found.citations] == [annotation(0), annotation(1)]
    assert (found.citations[1].title, found.citations[1].url, found.citations[1].end_index) == (
        "T1",
        "https://x/1",
        2,
    )


def test_annotations_that_only_events_tell_are_kept() -> None:
    found = only(streamed(message(part("Hi")), text("Hi"), noted(0), noted(0), noted(1), begin=message()))
    assert [citation.url for citation in found.citations] == ["https://x/0", "https://x/1"]


def test_a_file_is_cited_by_its_name() -> None:
    cited = {"type": "file_citation", "file_id": "f1", "filename": "a.pdf", "index": 9}
    citation = only(streamed(message(part("Hi", cited)))).citations[0]
    assert (citation.title, thaw(citation.raw)) == ("a.pdf", cited)


def test_many_annotations_are_told_in_linear_space() -> None:
    found = decode(created(), text("Hi"), *(noted(n) for n in range(500)))
    told = [one.fields["citations"] for one in found if isinstance(one, BlockDelta)]
    assert sum(map(len, told)) < 500 * 10
    for count in (11, 12, 13):
        snapshot = streamed(
            message(part("Hi")), text("Hi"), *(noted(n) for n in range(count)), begin=message()
        )
        assert len(only(snapshot).citations) == count


def test_citations_held_back_are_told_when_a_stream_is_cut_off() -> None:
    chunks = [created(), added(message()), text("Hi"), *(noted(n) for n in range(30))]
    for end in ([], [{"type": "error", "message": "Oh"}]):
        assert len(only(reply(*chunks, *end)).citations) == 30


def test_logprobs_are_the_finished_ones_or_those_of_the_pieces() -> None:
    one, two = ({"token": token, "logprob": -0.5} for token in "ab")
    pieces = [text("a", logprobs=[one]), text("b", logprobs=[two])]
    finished = message({**part("ab"), "logprobs": [one, two, one]})
    assert thaw(only(streamed(finished, *pieces, begin=message())).options["logprobs"]) == [one, two, one]
    assert thaw(only(streamed(message(part("ab")), *pieces, begin=message())).options["logprobs"]) == [
        one,
        two,
    ]


def test_a_part_of_another_kind_is_kept_whole() -> None:
    odd = {"type": "output_hologram", "rays": [1]}
    snapshot = streamed(message(part("a"), odd), text("a"), begin=message())
    assert blocks(snapshot) == [("text", "a"), ("unsupported", None)]
    assert thaw(snapshot.blocks[1].options) == {**odd, "item_id": "i0", "status": "completed"}  # type: ignore[union-attr]
    begun = event("content_part.added", content_index=1, part=odd)
    assert streamed(message(part("a"), odd), text("a"), begun, begin=message()) == snapshot


# -- reasoning


def test_a_reasoning_with_neither_summary_nor_content_stays() -> None:
    assert only(streamed(reasoning(encrypted_content="gAA=="))).to_dict() == {
        "key": 0,
        "type": "reasoning",
        "text": "",
        "options": {"item_id": "rs", "signature": "gAA=="},
    }


def test_of_two_encrypted_contents_the_last_wins() -> None:
    begin, end = reasoning(encrypted_content="first"), reasoning(encrypted_content="second")
    assert only(streamed(end, begin=begin)).options["signature"] == "second"
    assert only(streamed(reasoning(), begin=begin)).options["signature"] == "first"


def summed(piece: str, at: int = 0) -> Chunk:
    return event("reasoning_summary_text.delta", summary_index=at, delta=piece)


def test_parts_of_a_summary_are_joined_with_a_blank_line() -> None:
    item = reasoning("One two", "Three")
    pieces = [
        event("reasoning_summary_part.added", summary_index=0, part={"type": "summary_text", "text": ""}),
        summed("One "),
        summed("two"),
        event("reasoning_summary_text.done", summary_index=0, text="One two"),
        event(
            "reasoning_summary_part.done", summary_index=0, part={"type": "summary_text", "text": "One two"}
        ),
        event("reasoning_summary_part.added", summary_index=1, part={"type": "summary_text", "text": ""}),
        summed("Three", 1),
        event("reasoning_summary_text.done", summary_index=1, text="Three"),
    ]
    begun = reply(created(), added(reasoning()), *pieces)
    assert begun.reasoning == "One two\n\nThree"
    assert only(begun).open
    block = only(streamed(item, *pieces, begin=reasoning()))
    assert (block.text, thaw(block.options["part_lengths"])) == ("One two\n\nThree", [7, 5])


def test_a_summary_that_is_told_whole_needs_no_pieces() -> None:
    whole = [event("reasoning_summary_text.done", summary_index=n, text=said) for n, said in enumerate("ab")]
    assert reply(created(), added(reasoning()), *whole).reasoning == "a\n\nb"


def thought(piece: str, at: int = 0) -> Chunk:
    return event("reasoning_text.delta", content_index=at, delta=piece)


@pytest.mark.parametrize("name", ["content_part", "reasoning_part"])
def test_a_raw_chain_of_thought_is_reasoning(name: str) -> None:
    item = reasoning(content=["Let me see."])
    snapshot = streamed(
        item,
        event(f"{name}.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
        thought("Let me "),
        thought("see."),
        event("reasoning_text.done", content_index=0, text="Let me see."),
        event(f"{name}.done", content_index=0, part={"type": "reasoning_text", "text": "Let me see."}),
        begin=reasoning(content=[]),
    )
    assert only(snapshot).text == "Let me see."
    assert only(snapshot).options["provider_type"] == "reasoning_text"


def test_beside_a_summary_the_raw_chain_of_thought_is_kept_but_not_told() -> None:
    item = reasoning("Short", content=["Long"])
    found = decode(
        created(), added(reasoning()), summed("Short"), thought("Long"), done(item), completed(item)
    )
    block = only(fold(found))
    assert (block.text, thaw(block.options["content"])) == ("Short", item["content"])
    assert [one.name for one in found if isinstance(one, ProviderEvent)] == ["response.reasoning_text.delta"]


def test_reasoning_may_end_after_the_text_and_ids_may_change_at_the_end() -> None:
    thinking, said = reasoning(content=["hm"]), message(part("4"))
    snapshot = reply(
        created(),
        added(reasoning(id="rs_tmp_1")),
        thought("h"),
        added(message(id="msg_tmp_1"), 1),
        text("4", 1),
        done({**said, "id": "msg_tmp_1"}, 1),
        thought("m"),
        done({**thinking, "id": "rs_tmp_1"}),
        completed({**thinking, "id": "rs_tmp_9"}, {**said, "id": "msg_tmp_9"}),
    )
    assert blocks(snapshot) == [("reasoning", "hm"), ("text", "4")]


# -- calls of the client


def test_a_call_is_named_by_its_call_id_and_keeps_its_items_id() -> None:
    item = function('{"x": 1}', namespace="ns", caller={"type": "direct"}, status="completed")
    call = only(streamed(item, arguments('{"x"'), arguments(": 1}"), begin=function()))
    assert (call.type, call.call_id, call.name, thaw(call.arguments)) == ("tool_call", "c1", "f", {"x": 1})
    assert thaw(call.metadata) == {
        "item_id": "fc",
        "namespace": "ns",
        "caller": {"type": "direct"},
        "status": "completed",
    }


def test_a_call_ends_with_its_item_before_the_message_does() -> None:
    found = decode(created(), added(function()), arguments("{}"), done(function("{}")))
    assert isinstance(found[-1], BlockFinish)
    assert only(fold(found)).status == "complete"


def test_arguments_may_come_without_pieces() -> None:
    whole = event("function_call_arguments.done", arguments='{"x": 1}')
    assert only(reply(created(), added(function()), whole)).arguments == '{"x": 1}'
    assert thaw(only(streamed(function('{"x": 1}'), whole, begin=function())).arguments) == {"x": 1}


def test_finished_arguments_win_over_their_pieces() -> None:
    whole = event("function_call_arguments.done", arguments='{"x": 12}')
    assert only(reply(created(), added(function()), arguments('{"x"'), whole)).arguments == '{"x": 12}'
    assert thaw(only(streamed(function('{"x": 12}'), arguments('{"y"'), begin=function())).arguments) == {
        "x": 12
    }


def test_arguments_may_come_as_an_object() -> None:
    assert thaw(only(streamed(function({"x": 1}), begin=function())).arguments) == {"x": 1}


def test_a_finished_item_may_still_call_itself_in_progress() -> None:
    call = only(streamed(function('{"x": 1}', status="in_progress"), begin=function()))
    assert (call.type, call.status, call.metadata["status"]) == ("tool_call", "complete", "in_progress")


def test_parallel_calls_may_interleave_and_calls_may_share_an_id() -> None:
    one, two = function('{"a": 1}'), function('{"b": 2}', name="g", id="fc2")
    snapshot = reply(
        created(),
        added(function()),
        added(function(name="g", id="fc2"), 1),
        arguments('{"a"'),
        arguments('{"b"', 1),
        arguments(": 1}"),
        arguments(": 2}", 1),
        done(two, 1),
        done(one),
        completed(one, two),
    )
    assert [(call.call_id, thaw(call.arguments)) for call in snapshot.tool_calls] == [
        ("c1", {"a": 1}),
        ("c1", {"b": 2}),
    ]
    assert snapshot.finish_reason == "tool_use"


def test_a_call_without_a_call_id_is_named_by_its_items_id_or_gets_one() -> None:
    assert only(streamed(function("{}", call_id=None))).call_id == "fc"
    call = only(streamed(function("{}", call_id="", id=None)))
    assert (call.call_id, call.metadata["synthetic_id"]) == ("call-resp_1-0", True)


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        (function('{"x": 1}'), "tool_call"),
        ({"type": "tool_search_call", "id": "ts", "execution": "client", "arguments": {"x": 1}}, "tool_call"),
        ({"type": "custom_tool_call", "id": "ct", "name": "f", "input": "x"}, "tool_call"),
        ({"type": "web_search_call", "id": "ws", "action": {"query": "x"}}, "server_tool_call"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["type"],
)
@pytest.mark.parametrize("placed", [True, False])
def test_an_item_whose_call_id_changes_when_it_is_done_is_one_call_under_the_last_one(
    item: Chunk, kind: str, placed: bool
) -> None:
    begun = {**item, "call_id": "early", "status": "in_progress", "arguments": {}, "input": "", "action": {}}
    begun = {name: value for name, value in begun.items() if name in (*item, "call_id", "status")}
    item = {**item, "call_id": "late", "status": "completed"}
    chunks = [created(), added(begun), done(item), done(item), completed(item)]
    for chunk in chunks if not placed else ():
        chunk.pop("output_index", None)
    for call in (only(reply(*chunks)), only(reply(*chunks[:2], completed(item)))):
        assert (call.type, call.call_id, call.status) == (kind, "late", "complete")
        assert thaw(call.arguments) in ({"x": 1}, {"input": "x"}, {"action": {"query": "x"}})


def test_a_call_whose_id_changes_runs_once_and_every_front_end_sees_one_call() -> None:
    begun, ended = function("", call_id="early"), function('{"x": 1}', call_id="late", status="completed")
    chunks = rx.of(created(), added(begun), arguments('{"x": 1}'), done(ended), completed(ended))
    ran: list[int] = []
    told: list[Event] = []
    chunks.pipe(
        rd.decode("openai-responses"), rd.run_tools({"f": lambda x: ran.append(x)}), rd.validate()
    ).subscribe(told.append)
    call = only(fold(told))
    assert (ran, call.call_id, call.result.call_id, call.execution_status()) == (
        [1],
        "late",
        "late",
        "completed",
    )
    frames: list[Any] = []
    rx.from_iterable(told).pipe(rd.to_ai_sdk()).subscribe(frames.append)
    asked = [frame for frame in frames if frame != rd.wire.DONE and frame["type"] == "tool-input-available"]
    answers = [
        frame for frame in frames if frame != rd.wire.DONE and frame["type"] == "tool-output-available"
    ]
    assert [frame["toolCallId"] for frame in asked] == [frame["toolCallId"] for frame in answers]
    assert len(asked) == 1


def test_a_call_id_that_changes_is_told_also_where_only_the_end_says_what_the_call_is_worth() -> None:
    bare = function("", call_id="late")
    snapshot = reply(created(), added(function("", call_id="early")), done(bare), completed())
    assert blocks(snapshot) == [("tool_call", "late", "f")]


def test_a_result_that_names_no_search_is_that_of_the_id_which_the_search_ended_with() -> None:
    search = {
        "type": "tool_search_call",
        "id": "ts",
        "execution": "server",
        "arguments": {},
        "call_id": "early",
    }
    ended = {**search, "call_id": "late", "status": "completed"}
    found = {"type": "tool_search_output", "id": "to", "status": "completed", "tools": []}
    snapshot = reply(created(), added(search), done(ended), added(found, 1), done(found, 1), completed())
    assert [block.options["tool_call_id"] for block in snapshot.blocks if isinstance(block, ContentPart)] == [
        "late"
    ]


def test_a_call_that_cannot_be_parsed_or_has_no_name_cannot_be_run() -> None:
    for item in (function('{"x": '), function("{}", name="")):
        assert only(streamed(item, begin=function(name=item["name"]))).type == "invalid_tool_call"


@pytest.mark.parametrize("status", ["incomplete", None, "in_progress"])
@pytest.mark.parametrize("said", ['{"x": 1}', "", '{"x"'])
def test_a_call_cut_off_by_the_token_limit_never_looks_as_if_it_could_be_run(
    said: str, status: str | None
) -> None:
    item = function(said, status=status)
    cut = reply(created(), added(function()), arguments(said), incomplete(item))
    assert (only(cut).type, cut.status, cut.finish_reason) == ("invalid_tool_call", "length", "length")
    assert cut.to_message().provider_finish_reason == "incomplete"
    if status == "incomplete" or said != '{"x": 1}':
        ended = reply(created(), added(function()), arguments(said), done(item), incomplete(item))
        assert only(ended).type == "invalid_tool_call"
    assert only(reply(response("incomplete", output=[item]))).type == "invalid_tool_call"


def test_a_call_that_had_come_whole_before_the_limit_stays_one() -> None:
    first = function('{"x": 1}', status="completed")
    text_cut = message(part("And th"), status="incomplete")
    snapshot = reply(created(), added(function()), done(first), added(message(), 1), text("And th", 1), done(text_cut, 1), incomplete(first, text_cut))  # fmt: skip
    assert blocks(snapshot) == [("tool_call", "c1", "f"), ("text", "And th")]
    assert snapshot.blocks[1].options["status"] == "incomplete"  # type: ignore[union-attr]
    assert (
        reply(response("incomplete", output=[function('{"x": 1}'), text_cut])).tool_calls[0].status
        == "complete"
    )


@pytest.mark.parametrize("status", ["completed", None, "in_progress"])
def test_no_arguments_are_an_empty_object(status: str | None) -> None:
    item = function("", status=status)
    found = decode(created(), added(function()), done(item), completed(item))
    assert violations(found) == []
    call = only(fold(found))
    assert (call.status, thaw(call.arguments)) == ("complete", {})
    early = decode(created(), added(function()), done(item))
    assert isinstance(early[-1], BlockFinish) is (status == "completed")


def custom(said: str, **more: Any) -> Chunk:
    return {"type": "custom_tool_call", "id": "ct", "call_id": "c1", "name": "sql", "input": said, **more}


def test_a_custom_call_has_its_text_as_input() -> None:
    said = 'SELECT "é"\nFROM t'
    pieces = [event("custom_tool_call_input.delta", delta=piece) for piece in (said[:9], said[9:])]
    begun = only(reply(created(), added(custom("")), *pieces))
    assert thaw(begun.arguments_so_far) == {"input": said}
    call = only(streamed(custom(said), *pieces, begin=custom("")))
    assert (call.type, call.name, thaw(call.arguments)) == ("tool_call", "sql", {"input": said})
    assert thaw(call.metadata) == {"item_id": "ct", "provider_type": "custom_tool_call"}
    finished = event("custom_tool_call_input.done", input=said)
    assert thaw(only(reply(created(), added(custom("")), finished)).arguments_so_far) == {"input": said}
    without_its_done = reply(created(), added(custom("")), *pieces, completed())
    assert thaw(only(without_its_done).arguments) == {"input": said}
    cut = only(reply(created(), added(custom("")), *pieces, incomplete()))
    assert (cut.type, cut.arguments) == (
        "invalid_tool_call",
        json.dumps({"input": said}, ensure_ascii=False)[:-2],
    )


@pytest.mark.parametrize(
    ("tools", "ours"),
    [
        ([{"type": "x_search"}], False),
        ([{"type": "x_search"}, {"type": "custom", "name": "sql"}], True),
        ([{"type": "namespace", "name": "n", "tools": [{"type": "custom", "name": "sql"}]}], True),
        ([{"type": "tool_search"}], True),
        ([], True),
        (None, True),
    ],
)
def test_a_custom_call_of_a_tool_that_the_request_did_not_have_is_the_providers_own(
    tools: Any, ours: bool
) -> None:
    item = custom("{}", status="completed")
    snapshot = reply(created(tools=tools), added(custom("")), done(item), completed(item))
    assert only(snapshot).type == ("tool_call" if ours else "server_tool_call")
    assert snapshot.finish_reason == ("tool_use" if ours else "stop")
    assert snapshot.to_message() == reply({**completed(item, tools=tools)["response"]}).to_message()


LOCAL: list[tuple[Chunk, str, Chunk]] = [
    (
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["ls"], "env": {}}},
        "local_shell",
        {"action": {"type": "exec", "command": ["ls"], "env": {}}},
    ),
    ({"type": "shell_call", "action": {"commands": ["ls"]}}, "shell", {"action": {"commands": ["ls"]}}),
    (
        {"type": "shell_call", "action": {"commands": ["ls"]}, "environment": {"type": "local"}},
        "shell",
        {"action": {"commands": ["ls"]}},
    ),
    (
        {"type": "apply_patch_call", "operation": {"type": "delete_file", "path": "a"}},
        "apply_patch",
        {"operation": {"type": "delete_file", "path": "a"}},
    ),
    ({"type": "computer_call", "action": {"type": "wait"}}, "computer", {"action": {"type": "wait"}}),
    (
        {"type": "tool_search_call", "execution": "client", "arguments": {"query": "x"}},
        "tool_search",
        {"query": "x"},
    ),
]


@pytest.mark.parametrize(("item", "name", "said"), LOCAL)
def test_what_the_client_must_run_is_a_tool_call(item: Chunk, name: str, said: Chunk) -> None:
    item = {"id": "x1", "call_id": "c1", "status": "completed", **item}
    snapshot = streamed(item)
    call = only(snapshot)
    assert (call.type, call.call_id, call.name, thaw(call.arguments)) == ("tool_call", "c1", name, said)
    assert (call.status, snapshot.finish_reason) == ("complete", "tool_use")
    assert (call.metadata["provider_type"], call.metadata["item_id"]) == (item["type"], "x1")


def test_commands_of_a_shell_show_while_they_stream() -> None:
    def command(step: str, at: int, said: str) -> Chunk:
        chunk = event(f"shell_call_command.{step}", command_index=at)
        del chunk["item_id"]
        return {**chunk, "delta" if step == "delta" else "command": said}

    pieces = [
        command("added", 0, ""), command("delta", 0, 'echo "'), command("delta", 0, 'a"'), command("done", 0, 'echo "a"'),
        command("added", 1, ""), command("delta", 1, "ls"), command("done", 1, "ls"),
        command("added", 2, ""), command("done", 2, "pwd"),
    ]  # fmt: skip
    begin = {"type": "shell_call", "id": "sh", "call_id": "c1", "action": {"commands": []}}
    begun = only(reply(created(), added(begin), *pieces))
    assert thaw(begun.arguments_so_far) == {"action": {"commands": ['echo "a"', "ls", "pwd"]}}
    assert thaw(only(reply(created(), added(begin), *pieces, completed())).arguments) == thaw(
        begun.arguments_so_far
    )
    found = decode(created(), added(begin), command("delta", 4, "lost"))
    assert isinstance(found[-1], ProviderEvent)


def test_a_patch_shows_while_it_streams() -> None:
    operation = {"type": "update_file", "path": "a", "diff": ""}
    begin = {"type": "apply_patch_call", "id": "ap", "call_id": "c1", "operation": operation}
    pieces = [event("apply_patch_call_operation_diff.delta", delta=piece) for piece in ("@@\n", '-"a"\n')]
    begun = only(reply(created(), added(begin), *pieces))
    whole = {"operation": {**operation, "diff": '@@\n-"a"\n'}}
    assert thaw(begun.arguments_so_far) == whole
    finished = event("apply_patch_call_operation_diff.done", diff='@@\n-"a"\n')
    assert only(reply(created(), added(begin), *pieces, finished)) == begun
    assert thaw(only(reply(created(), added(begin), *pieces, completed())).arguments) == whole
    assert thaw(only(streamed({**begin, **whole}, *pieces, begin=begin)).arguments) == whole


# -- tools of the provider


def test_a_shell_in_a_container_is_the_providers_with_its_output() -> None:
    place = {"type": "container_reference", "container_id": "cntr"}
    call = {
        "type": "shell_call",
        "id": "sh",
        "call_id": "c1",
        "action": {"commands": ["ls"]},
        "environment": place,
    }
    output = [{"outcome": {"type": "exit", "exit_code": 0}, "stdout": "a\n", "stderr": ""}]
    result = {
        "type": "shell_call_output",
        "id": "sho",
        "call_id": "c1",
        "status": "completed",
        "output": output,
    }
    found = decode(
        created(),
        added({**call, "action": {"commands": []}}),
        done(call),
        added({**result, "output": []}, 1),
        event("shell_call_output_content.delta", 1, command_index=0, delta={"stdout": "a\n"}),
        event("shell_call_output_content.done", 1, command_index=0, output=output),
        done(result, 1),
        completed(call, result),
    )
    assert violations(found) == []
    snapshot = fold(found)
    assert snapshot.blocks[0].type == "server_tool_call"
    told = snapshot.blocks[1]
    assert isinstance(told, ContentPart)
    assert (told.type, told.options["tool_call_id"], thaw(told.options["output"])) == (
        "server_tool_result",
        "c1",
        output,
    )
    assert (told.options["status"], told.options["item_status"]) == ("success", "completed")
    assert snapshot.finish_reason == "stop"
    live = [one for one in found if isinstance(one, ProviderEvent)]
    assert thaw(live[0].payload["delta"]) == {"stdout": "a\n"}


def test_a_web_search_shows_how_far_it_has_come() -> None:
    begin = {"type": "web_search_call", "id": "ws", "status": "in_progress"}
    item = {
        **begin,
        "status": "completed",
        "action": {"type": "search", "query": "x", "sources": [{"url": "u"}]},
    }
    decoder, folded = OpenAIResponsesDecoder(), Fold()
    seen = []
    for chunk in (
        created(),
        added(begin),
        event("web_search_call.searching"),
        event("web_search_call.completed"),
        done(item),
    ):
        for one in decoder.decode(chunk):
            folded.step(one)
        seen.append(
            [block.metadata.get("status") for block in folded.snapshot.blocks if isinstance(block, ToolCall)]
        )
    assert seen == [[], [None], ["searching"], ["completed"], ["completed"]]
    call = only(folded.snapshot)
    assert (call.type, call.call_id, call.name) == ("server_tool_call", "ws", "web_search")
    assert thaw(call.arguments) == {"action": item["action"]}


def test_a_finished_search_may_still_call_itself_searching() -> None:
    item = {
        "type": "web_search_call",
        "id": "ws",
        "status": "searching",
        "action": {"type": "search", "query": "x"},
    }
    call = only(streamed(item, event("web_search_call.completed")))
    assert (call.status, call.metadata["status"]) == ("complete", "searching")


def test_what_a_file_search_found_is_its_result() -> None:
    item = {"type": "file_search_call", "id": "fs", "status": "completed", "queries": ["q"], "results": None}
    call = only(streamed(item, begin={**item, "queries": []}))
    assert (call.name, thaw(call.arguments)) == ("file_search", {"queries": ["q"]})
    found = [{"file_id": "f", "score": 0.5}]
    snapshot = streamed({**item, "results": found})
    assert [block.type for block in snapshot.blocks] == ["server_tool_call", "server_tool_result"]
    assert thaw(snapshot.blocks[1].options) == {  # type: ignore[union-attr]
        "tool_call_id": "fs", "output": found, "provider_type": "file_search_call", "item_id": "fs", "status": "success",
    }  # fmt: skip


def test_code_that_the_provider_runs_streams_and_has_its_outputs() -> None:
    begin = {"type": "code_interpreter_call", "id": "ci", "code": "", "container_id": "cntr", "outputs": []}
    code, outputs = 'print("a")\n', [{"type": "logs", "logs": "a"}]
    item = {**begin, "status": "completed", "code": code, "outputs": outputs}
    pieces = [
        event("code_interpreter_call.in_progress"),
        event("code_interpreter_call_code.delta", delta=code[:5]),
        event("code_interpreter_call_code.delta", delta=code[5:]),
        event("code_interpreter_call_code.done", code=code),
        event("code_interpreter_call.interpreting"),
        event("code_interpreter_call.completed"),
    ]
    assert thaw(only(reply(created(), added(begin), *pieces)).arguments_so_far) == {"code": code}
    snapshot = streamed(item, *pieces, begin=begin)
    call, result = snapshot.blocks
    assert isinstance(call, ToolCall)
    assert isinstance(result, ContentPart)
    assert (call.name, thaw(call.arguments)) == ("code_interpreter", {"code": code})
    assert (call.metadata["container_id"], thaw(result.options["output"])) == ("cntr", outputs)
    assert len(streamed({**item, "outputs": None}, *pieces, begin=begin).blocks) == 1


def test_a_call_of_an_mcp_server_has_its_output_or_its_error() -> None:
    begin = {
        "type": "mcp_call",
        "id": "mcp",
        "name": "find",
        "server_label": "s",
        "arguments": "",
        "output": None,
    }
    item = {**begin, "arguments": '{"q": 1}', "output": "found", "error": None, "status": "completed"}
    pieces = [
        event("mcp_call.in_progress"),
        event("mcp_call_arguments.delta", delta='{"q": 1}'),
        event("mcp_call_arguments.done", arguments='{"q": 1}'),
        event("mcp_call.completed"),
    ]
    snapshot = streamed(item, *pieces, begin=begin)
    assert blocks(snapshot) == [("server_tool_call", "mcp", "find"), ("server_tool_result", None)]
    assert thaw(snapshot.blocks[0].arguments) == {"q": 1}  # type: ignore[union-attr]
    assert snapshot.blocks[0].metadata["server_label"] == "s"  # type: ignore[union-attr]
    wrong = {"type": "http_error", "code": 500, "message": "m"}
    failed = streamed({**item, "output": None, "error": wrong, "status": "failed"}, event("mcp_call.failed"))
    result = failed.blocks[1].options  # type: ignore[union-attr]
    assert (result["status"], thaw(result["output"]), thaw(result["item_error"])) == ("error", wrong, wrong)


def test_an_approval_that_is_asked_for_is_no_call_to_run() -> None:
    item = {"type": "mcp_approval_request", "id": "mcpr", "name": "f", "arguments": "{}", "server_label": "s"}
    snapshot = streamed(item)
    assert blocks(snapshot) == [("server_tool_call", "mcpr", "f")]
    assert snapshot.finish_reason == "stop"
    assert only(snapshot).metadata["provider_type"] == "mcp_approval_request"


def test_a_tool_search_of_the_provider_names_its_result_though_the_wire_does_not() -> None:
    call = {
        "type": "tool_search_call",
        "id": "tsc",
        "call_id": None,
        "execution": "server",
        "arguments": {"paths": ["a"]},
    }
    found = {
        "type": "tool_search_output",
        "id": "tso",
        "call_id": None,
        "execution": "server",
        "tools": [{"name": "a"}],
    }
    snapshot = reply(
        created(), added(call), done(call), added(found, 1), done(found, 1), completed(call, found)
    )
    assert blocks(snapshot) == [("server_tool_call", "tsc", "tool_search"), ("server_tool_result", None)]
    told = snapshot.blocks[1].options  # type: ignore[union-attr]
    assert (told["tool_call_id"], thaw(told["output"])) == ("tsc", [{"name": "a"}])


def test_a_program_is_the_providers_and_the_calls_in_it_are_ours() -> None:
    program = {"type": "program", "id": "p", "call_id": "cp", "code": "f()", "fingerprint": "x"}
    call = function("{}", caller={"type": "program", "caller_id": "cp"})
    output = {"type": "program_output", "id": "po", "call_id": "cp", "result": "1", "status": "completed"}
    snapshot = reply(completed(program, call, output)["response"])
    assert blocks(snapshot) == [
        ("server_tool_call", "cp", "program"),
        ("tool_call", "c1", "f"),
        ("server_tool_result", None),
    ]
    assert snapshot.blocks[2].options["output"] == "1"  # type: ignore[union-attr]


def test_a_call_of_a_kind_that_is_not_known_is_not_run() -> None:
    item = {
        "type": "x_search_call",
        "id": "xs",
        "name": "x_keyword_search",
        "arguments": '{"q": 1}',
        "status": "completed",
    }
    snapshot = streamed(item, event("x_search_call.searching"), begin={**item, "arguments": ""})
    assert blocks(snapshot) == [("server_tool_call", "xs", "x_keyword_search")]
    assert thaw(only(snapshot).arguments) == {"q": 1}
    look = {"type": "view_image_call", "id": "v", "action": {"url": "u"}, "index": 3}
    call = only(streamed(look))
    assert (call.name, thaw(call.arguments)) == ("view_image", {"action": {"url": "u"}})
    assert call.metadata["item_index"] == 3


def test_an_image_has_its_data_at_the_end_and_its_frames_are_passed_on() -> None:
    begin = {"type": "image_generation_call", "id": "ig", "status": "in_progress", "result": None}
    item = {
        **begin,
        "status": "completed",
        "result": "QUJD",
        "output_format": "webp",
        "revised_prompt": "a cat",
    }
    frame = event("image_generation_call.partial_image", partial_image_index=0, partial_image_b64="QQ==")
    found = decode(
        created(), added(begin), event("image_generation_call.generating"), frame, done(item), completed(item)
    )
    image = only(fold(found))
    assert (image.type, image.text, image.options["mime_type"]) == ("image", "QUJD", "image/webp")
    assert image.options["revised_prompt"] == "a cat"
    assert image.options["status"] == "completed"
    passed = [one for one in found if isinstance(one, ProviderEvent)]
    assert [(one.name, one.payload["partial_image_b64"]) for one in passed] == [(frame["type"], "QQ==")]


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "mcp_list_tools",
            "id": "l",
            "server_label": "s",
            "tools": [{"name": "a", "input_schema": {}}],
        },
        {"type": "compaction", "id": "cmp", "encrypted_content": "gAA"},
        {"type": "mcp_approval_response", "id": "r", "approval_request_id": "q", "approve": True},
        {"type": "text", "id": "t", "text": "no item of this name is known"},
    ],
)
def test_any_other_item_is_kept_whole(item: Chunk) -> None:
    begin = {name: [] if isinstance(value, list) else value for name, value in item.items()}
    snapshot = streamed(item, event(f"{item['type']}.completed"), begin=begin)
    assert (only(snapshot).type, thaw(only(snapshot).options)) == ("unsupported", item)
    assert snapshot.finish_reason == "stop"


def test_audio_is_one_block_with_its_data_joined_and_its_transcript() -> None:
    def piece(kind: str, said: str = "") -> Chunk:
        return {"type": f"response.audio.{kind}", "delta": said}

    snapshot = reply(
        created(), piece("delta", "AA"), piece("transcript.delta", "He"), piece("delta", "BB"),
        piece("transcript.delta", "llo"), piece("done"), piece("transcript.done"), completed(),
    )  # fmt: skip
    assert (only(snapshot).type, only(snapshot).text, only(snapshot).options["transcript"]) == (
        "audio",
        "AABB",
        "Hello",
    )


# -- places and ids


def test_ids_that_change_with_every_event_do_not_matter() -> None:
    numbers = iter(range(100))

    def rotated(chunk: Chunk) -> Chunk:
        chunk = copy.deepcopy(chunk)
        for holder in (chunk, chunk.get("item") or {}, chunk.get("response") or {}):
            for name in ("id", "item_id"):
                if name in holder:
                    holder[name] = f"rotated{next(numbers)}"
        return chunk

    said, call = message(part("Hello")), function('{"x": 1}')
    chunks = [
        created(), added(message()), event("content_part.added", content_index=0, part=part("")), text("Hel"), text("lo"),
        done(said), added(function(), 1), arguments('{"x"', 1), arguments(": 1}", 1), done(call, 1), completed(said, call),
    ]  # fmt: skip
    snapshot = reply(*map(rotated, chunks))
    assert blocks(snapshot) == [("text", "Hello"), ("tool_call", "c1", "f")]
    assert snapshot.id == "rotated0"


def test_without_places_the_ids_tell_and_without_those_the_order() -> None:
    said, call = message(part("Hello")), function('{"x": 1}')
    chunks = [
        created(), added(message()), event("content_part.added", part=part("")), event("output_text.delta", delta="Hello"),
        done(said), added(function()), event("function_call_arguments.delta", delta='{"x": 1}'), done(call),
        completed(said, call),
    ]  # fmt: skip
    for chunk in chunks:
        chunk.pop("output_index", None)
    for chunk, item_id in zip(chunks[2:7], ("i0", "i0", None, None, "fc")):
        if "item_id" in chunk:
            chunk["item_id"] = item_id
    assert blocks(reply(*chunks)) == [("text", "Hello"), ("tool_call", "c1", "f")]
    for chunk in chunks:
        chunk.pop("item_id", None)
    assert blocks(reply(*chunks)) == [("text", "Hello"), ("tool_call", "c1", "f")]


def test_another_item_at_the_same_place_is_another() -> None:
    one, two = function('{"a": 1}'), function('{"b": 2}', call_id="c2", id="fc2")
    chunks = [
        created(), added(function()), arguments('{"a": 1}'), done(one),
        added(function(call_id="c2", id="fc2")), arguments('{"b": 2}'), done(two),
    ]  # fmt: skip
    for snapshot in (reply(*chunks), reply(*chunks, completed(one, two))):
        assert [thaw(call.arguments) for call in snapshot.tool_calls] == [{"a": 1}, {"b": 2}]


def test_an_item_that_is_named_only_when_done_counts_once() -> None:
    said, call = message(part("a"), id="m1"), function("{}")
    nameless = [{**text("a"), "item_id": None}, {**arguments("{}", 1), "item_id": None}]
    snapshot = reply(created(), *nameless, done(said), done(said), done(call, 1), done(call, 1))
    assert blocks(snapshot) == [("text", "a"), ("tool_call", "c1", "f")]


def test_an_event_that_is_sent_twice_counts_once() -> None:
    item = message(part("a"))
    chunks = [
        created(),
        added(message()),
        text("a"),
        done(item),
        added(function(), 1),
        done(function("{}"), 1),
    ]
    doubled = [chunk for chunk in chunks for _ in range(1 if chunk["type"].endswith("delta") else 2)]
    assert reply(*doubled) == reply(*chunks)


def test_a_stream_that_begins_in_the_middle_is_read_from_there() -> None:
    said, call = message(part("Hello")), function('{"x": 1}')
    assert blocks(reply(text("lo", 1), completed(message(part("Hello"), id="i1")))) == [("text", "Hello")]
    assert blocks(reply(arguments("1}"), done(call), completed(call))) == [("tool_call", "c1", "f")]
    assert thaw(reply(arguments(": 1}"), completed(call)).tool_calls[0].arguments) == {"x": 1}
    queued = {"type": "response.queued", "sequence_number": 7, "response": response("queued")}
    assert reply(queued, added(message()), text("Hello"), done(said), completed(said)).id == "resp_1"
    late = reply(text("Hello"), completed(said))
    assert (late.id, late.model, dict(late.metadata)) == ("resp_1", "m", {"created_at": 5})


@pytest.mark.parametrize(
    ("chunk", "kind"),
    [
        (event("refusal.delta", content_index=0, delta="x"), "refusal"),
        (thought("x"), "reasoning"),
        (summed("x"), "reasoning"),
        (
            event("content_part.added", content_index=0, part={"type": "reasoning_text", "text": ""}),
            "reasoning",
        ),
        (event("custom_tool_call_input.delta", delta="x"), "tool_call"),
        (event("mcp_call_arguments.delta", delta="{"), "server_tool_call"),
        (event("code_interpreter_call_code.delta", delta="x"), "server_tool_call"),
        (event("shell_call_command.delta", command_index=0, delta="x"), "tool_call"),
        (event("apply_patch_call_operation_diff.delta", delta="x"), "tool_call"),
        (noted(0), "text"),
    ],
)
def test_an_event_whose_item_was_lost_begins_it(chunk: Chunk, kind: str) -> None:
    block = only(reply(chunk))
    assert (block.type, block.open) == (kind, True)


def test_items_that_only_the_last_event_has_are_read_from_there() -> None:
    output = [reasoning("hm"), message(part("Hi")), function("{}")]
    snapshot = reply(created(), completed(*output))
    assert blocks(snapshot) == [("reasoning", "hm"), ("text", "Hi"), ("tool_call", "c1", "f")]


def test_items_that_were_never_done_are_finished_by_the_last_event() -> None:
    snapshot = reply(created(), added(message()), text("He"), added(function(), 1), completed(message(part("Hello")), function("{}")))  # fmt: skip
    assert blocks(snapshot) == [("text", "Hello"), ("tool_call", "c1", "f")]
    folded = reply(
        created(), added(message()), text("He"), added(function(), 1), arguments("{}", 1), completed()
    )
    assert blocks(folded) == [("text", "He"), ("tool_call", "c1", "f")]
    assert folded.tool_calls[0].status == "complete"


# -- the end


def test_usage_is_the_providers_own() -> None:
    usage = reply(created(), completed()).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens, thaw(usage.raw)) == (7, 3, USAGE)
    assert reply(created(), {**completed(), "response": response("completed", usage=None)}).usage is None


def test_of_the_response_only_what_the_request_did_not_say_is_kept() -> None:
    more = {
        "service_tier": "default",
        "tools": [{"type": "web_search"}],
        "instructions": "Be brief",
        "temperature": 1,
    }
    snapshot = reply(
        created(service_tier="auto", tools=more["tools"]), completed(**more, conversation={"id": "cv"})
    )
    assert thaw(snapshot.metadata) == {
        "created_at": 5,
        "service_tier": "default",
        "conversation": {"id": "cv"},
    }


@pytest.mark.parametrize(
    ("why", "reason", "status"),
    [
        ("max_output_tokens", "length", "length"),
        (None, "length", "length"),
        ("content_filter", "content_filter", "complete"),
        ("max_tool_calls", "stop", "complete"),
        ("steered", "stop", "complete"),
    ],
)
def test_an_incomplete_response_says_why(why: str | None, reason: str, status: str) -> None:
    snapshot = reply(created(), text("a"), incomplete(reason=why))
    assert (snapshot.finish_reason, snapshot.status, snapshot.provider_finish_reason) == (
        reason,
        status,
        "incomplete",
    )
    assert snapshot.to_message().text == "a"
    if why is not None:
        assert thaw(snapshot.metadata["incomplete_details"]) == {"reason": why}


def test_completed_may_say_that_it_is_incomplete() -> None:
    chunk = incomplete()
    assert reply(created(), {**chunk, "type": "response.completed"}).finish_reason == "length"
    assert reply(created(), {**completed(), "type": "response.done"}).finish_reason == "stop"


@pytest.mark.parametrize(
    ("chunk", "error"),
    [
        ({"type": "error", "code": "c", "message": "m", "param": None}, StreamError("m", None, "c")),
        ({"type": "error", "error": {"type": "t", "code": "c", "message": "m"}}, StreamError("m", "t", "c")),
        ({"type": "error", "error": "m"}, StreamError("m")),
        ({"type": "error", "error": {"code": 429}}, StreamError("unknown error", None, "429")),
        ({"type": "error"}, StreamError("unknown error")),
        ({"error": {"message": "m", "type": "t", "code": None}}, StreamError("m", "t")),
        (completed(status="failed", error={"code": "c", "message": "m"}), StreamError("m", None, "c")),
        (completed(status="failed", error=None), StreamError("unknown error")),
        ({"type": "response.failed", "response": response("in_progress")}, StreamError("unknown error")),
    ],
)
def test_an_error_has_many_forms_and_nothing_follows_it(chunk: Chunk, error: StreamError) -> None:
    found = decode(created(), text("a"), chunk, text("b"), completed(), {"type": "response.later"})
    assert [one for one in found if not isinstance(one, (UsageUpdate, ProviderEvent))][-1] == error
    assert not any(isinstance(one, MessageFinish) for one in found)
    assert fold(found).text == "a"


def test_an_error_counts_once_though_a_failed_response_follows() -> None:
    found = decode(
        created(),
        {"type": "error", "error": {"type": "t", "code": "c", "message": "first"}},
        completed(status="failed", error={"code": "c", "message": "second"}),
    )
    assert [one.message for one in found if isinstance(one, StreamError)] == ["first"]


def test_what_a_failed_response_had_cost_and_said_is_told_first() -> None:
    found = decode(completed(message(part("Hel")), status="failed", error={"message": "m"}))
    assert names(found) == ["message-start", "block-start", "block-delta", "block-finish", "usage", "error"]


def test_more_than_an_error_can_hold_is_passed_on_before_it() -> None:
    found = decode({"type": "error", "code": "c", "message": "m", "param": "input"})
    assert [type(one) for one in found] == [ProviderEvent, StreamError]
    assert found[0].payload["param"] == "input"  # type: ignore[union-attr]


def test_a_stream_without_its_last_event_was_cut_off() -> None:
    snapshot = reply(created(), added(message()), text("a"), done(message(part("a"))))
    assert snapshot.status == "incomplete"
    with pytest.raises(rd.IncompleteMessageError):
        snapshot.to_message()


def test_a_response_that_was_cancelled_is_not_complete() -> None:
    found = decode(created(), text("a"), {"type": "response.cancelled", "response": response("cancelled")})
    assert isinstance(found[-1], ProviderEvent)
    assert fold(found).status == "incomplete"


def test_what_is_not_known_is_passed_on_whole() -> None:
    odd = [
        {"type": "response.steer.accepted", "steer": {"id": "s"}},
        {"type": "response.hologram.delta", "output_index": 0, "delta": "x"},
        {"type": "response.output_text.hum", "output_index": 9},
        {"type": "another.thing", "output_index": "x"},
    ]
    found = decode(created(), text("a"), *odd, completed(), odd[0])
    passed = [one for one in found if isinstance(one, ProviderEvent)]
    assert [(one.provider, one.name, thaw(one.payload)) for one in passed] == [
        ("openai", chunk["type"], chunk) for chunk in (*odd, odd[0])
    ]
    assert decode({"type": "keepalive", "sequence_number": 3}) == []


def test_what_comes_after_the_end_of_its_item_is_passed_on() -> None:
    found = decode(created(), added(message()), done(message(part("a"))), text("late"), completed())
    assert [one.payload["delta"] for one in found if isinstance(one, ProviderEvent)] == ["late"]
    assert violations(found) == []


def test_another_response_may_follow_and_the_same_one_does_not() -> None:
    decoder = OpenAIResponsesDecoder()
    for chunk in (created(), completed()):
        decoder.decode(chunk)
    assert list(decoder.decode(created())) == []
    second = {**created(), "response": response(id="resp_2")}
    assert names(decoder.decode(second)) == ["message-start"]


# -- bodies


WHOLE: list[Chunk] = [
    reasoning("One", "Two", encrypted_content="gAA", status="completed"),
    message(part("Look", annotation(3)), {"type": "refusal", "refusal": "no"}, phase="commentary"),
    {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "x"}},
    {"type": "mcp_call", "id": "mc", "name": "f", "server_label": "s", "arguments": "{}", "output": "o", "status": "completed"},
    {"type": "image_generation_call", "id": "ig", "status": "completed", "result": "QUJD"},
    {"type": "compaction", "id": "cm", "encrypted_content": "e"},
    function('{"x": 1}', status="completed"),
    custom("text", status="completed"),
]  # fmt: skip


def test_a_body_that_was_not_streamed_is_the_same_message() -> None:
    body = completed(*WHOLE, service_tier="default")["response"]
    begins = [
        {name: [] if isinstance(value, list) else value for name, value in item.items() if name != "status"}
        for item in WHOLE
    ]
    stream = [
        created(),
        *(chunk for n, item in enumerate(WHOLE) for chunk in (added(begins[n], n), done(item, n))),
        {"type": "response.completed", "response": body},
    ]
    found = decode(body)
    assert violations(found) == []
    assert fold(found).to_message() == reply(*stream).to_message()


@pytest.mark.parametrize("status", ["in_progress", "queued", "cancelled"])
def test_a_body_that_is_not_done_is_incomplete(status: str) -> None:
    found = decode(response(status, output=[message(part("a"), status="in_progress")]))
    assert fold(found).status == "incomplete"
    assert fold(found).text == "a"


def test_a_body_may_leave_out_its_status() -> None:
    body = completed(message(part("a")))["response"]
    del body["status"]
    assert reply(body).status == "complete"
    assert isinstance(decode({**body, "error": {"message": "m"}})[-1], StreamError)


# -- what is wrong


@pytest.mark.parametrize(
    ("bad", "path"),
    [
        ([], ""),
        ("data: x", ""),
        ({}, "type"),
        ({"type": 3}, "type"),
        ({"type": "response.created"}, "response"),
        ({"type": "response.created", "response": []}, "response"),
        ({"type": "response.created", "response": {"id": 1}}, "response.id"),
        ({"type": "response.created", "response": {"model": 1}}, "response.model"),
        ({"type": "response.completed", "response": {"output": {}}}, "response.output"),
        ({"type": "response.completed", "response": {"output": [1]}}, "response.output[0]"),
        ({"type": "response.completed", "response": {"output": [{}]}}, "response.output[0].type"),
        ({"type": "response.completed", "response": {"usage": 1}}, "response.usage"),
        ({"object": "response", "output": [message(part(3))]}, "output[0].content[0].text"),  # type: ignore[arg-type]
        (added([]), "item"),  # type: ignore[arg-type]
        (added({}), "item.type"),
        ({**added(message()), "output_index": -1}, "output_index"),
        ({**text("a"), "output_index": 1.5}, "output_index"),
        ({**text("a"), "delta": 3}, "delta"),
        ({**text("a"), "content_index": "0"}, "content_index"),
        (event("content_part.added", content_index=0), "part"),
        (event("content_part.added", content_index=0, part={}), "part.type"),
        (event("output_text.done", content_index=0, text=1), "text"),
        (event("output_text.annotation.added", content_index=0, annotation=1), "annotation"),
        (summed(3), "delta"),  # type: ignore[arg-type]
        ({**summed("a"), "summary_index": "0"}, "summary_index"),
        (done(reasoning(3)), "item.summary[0].text"),  # type: ignore[arg-type]
        (done(reasoning(encrypted_content=3)), "item.encrypted_content"),
        (done(function(3)), "item.arguments"),
        (added(function(name=3)), "item.name"),  # type: ignore[arg-type]
        (event("function_call_arguments.delta", delta={}), "delta"),
        (event("shell_call_command.delta", command_index=-1, delta="x"), "command_index"),
        (done({"type": "image_generation_call", "result": 3}), "item.result"),
    ],
)
def test_a_malformed_chunk_is_named_by_its_place(bad: Any, path: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        decode(bad)
    assert (caught.value.wire_format, caught.value.path) == ("openai-responses", path)


@pytest.mark.parametrize("field", ["output_index", "content_index"])
def test_an_absurd_index_is_refused_by_the_limit(field: str) -> None:
    with pytest.raises(LimitExceededError):
        decode({**text("a"), field: 2**31})
    assert reply({**text("a"), field: 2**31 - 1}).text == "a"


def test_what_a_malformed_chunk_held_before_its_fault_comes_with_the_next() -> None:
    decoder = OpenAIResponsesDecoder()
    with pytest.raises(MalformedChunkError):
        decoder.decode(completed(message(part("a")), message(part(3))))  # type: ignore[arg-type]
    found = [*decoder.decode(completed(message(part("a")))), *decoder.close()]
    assert violations(found) == []
    assert fold(found).text == "a"


def test_a_value_that_is_nested_too_deep_costs_nothing_else() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    item = message(part("a"), extra=deep)
    assert reply(created(), done(item), completed(item)).text == "a"


# -- the SDK, and detection


def test_an_event_of_the_sdk_gives_the_same_as_a_dict() -> None:
    types = pytest.importorskip("openai.types.responses")
    from openai._models import construct_type

    chunks = [created(), *(chunk for n, item in enumerate(WHOLE) for chunk in (added(item, n), done(item, n))), completed(*WHOLE)]  # fmt: skip
    typed = [construct_type(type_=types.ResponseStreamEvent, value=copy.deepcopy(chunk)) for chunk in chunks]
    body = construct_type(type_=types.Response, value=copy.deepcopy(completed(*WHOLE)["response"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(*typed) == decode(*chunks)
        assert decode(body) == decode(completed(*WHOLE)["response"])


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_sdks_events_of_a_recording_are_the_same_message(chunks: list[Chunk], expected: Chunk) -> None:
    types = pytest.importorskip("openai.types.responses")
    from openai._models import construct_type

    assert reply(
        *(construct_type(type_=types.ResponseStreamEvent, value=chunk) for chunk in chunks)
    ) == reply(*chunks)


def test_a_chunk_is_not_changed_and_may_be_changed_afterwards() -> None:
    chunks = [created(), *(done(item, n) for n, item in enumerate(copy.deepcopy(WHOLE))), completed()]
    before = copy.deepcopy(chunks)
    found = decode(*chunks)
    assert chunks == before
    told = fold(found).to_dict()
    for chunk in chunks:
        chunk.get("item", {}).clear()
    assert fold(found).to_dict() == told


@pytest.mark.parametrize(
    ("first", "known"),
    [
        (created(), True),
        (text("a"), True),
        (completed(), True),
        ({"type": "response.steer.pending"}, True),
        (response("completed", output=[]), True),
        (response("failed", error={"message": "m"}), True),
        ({"type": "error", "sequence_number": 2, "error": {"message": "m"}}, True),
        ({"type": "error", "code": None, "message": "m", "param": None}, True),
        ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, False),
        ({"type": "message_start", "message": {}}, False),
        ({"type": "message", "role": "assistant", "content": []}, False),
        ({"object": "chat.completion.chunk", "choices": []}, False),
        ({"object": "response.deleted"}, False),
        ({"type": ["response."]}, False),
        ({}, False),
    ],
)
def test_recognises_a_first_chunk(first: Chunk, known: bool) -> None:
    assert recognises(first) is known
    if known:
        assert rd.providers.detect(first) == "openai-responses"


def test_a_field_whose_name_means_something_here_is_kept_under_another() -> None:
    odd: Chunk = {
        name: {"x": name}
        for name in ("citations", "data", "text", "reasoning", "thinking", "signature", "index")
    }
    for item in (message(part("a"), **odd), reasoning("a", **odd), function("{}", **odd)):
        block = only(streamed(item))
        kept = thaw(block.metadata if isinstance(block, ToolCall) else block.options)
        assert {f"item_{name}": value for name, value in odd.items()}.items() <= kept.items()
        assert isinstance(block, ToolCall) or (block.text, block.citations) == ("a", ())


# -- recordings: nothing that the next request needs is lost


def items_of(snapshot: Snapshot) -> list[Chunk]:
    """The response's items again, from our blocks alone."""
    items: list[Chunk] = []
    for block in snapshot.blocks:
        said = thaw(block.metadata if isinstance(block, ToolCall) else block.options)
        item_id, kind = said.pop("item_id", None), said.pop("provider_type", None)
        mine = {"id": item_id} if item_id else {}
        if block.type == "unsupported":
            items.append(said)
        elif isinstance(block, ToolCall):
            mine |= {"type": kind or "function_call", "name": block.name, **said}
            if block.call_id != item_id:
                mine["call_id"] = block.call_id
            raw = mine["type"] in ("function_call", "mcp_call", "tool_search_call", "mcp_approval_request")
            mine |= {"arguments": thaw(block.arguments)} if raw else thaw(block.arguments)
            items.append(mine)
        elif block.type == "server_tool_result":
            owner, output = said.pop("tool_call_id"), said.pop("output")
            if items[-1]["id"] == item_id:
                items[-1][
                    {"file_search_call": "results", "code_interpreter_call": "outputs"}.get(kind, "output")
                ] = output
            else:
                said["status"] = said.pop("item_status", None)
                mine |= {"type": kind, "call_id": owner, **said}
                items.append({**mine, {"tool_search_output": "tools"}.get(kind, "output"): output})
        elif block.type == "image":
            items.append({**mine, "type": kind, "result": block.text, **said})
        elif block.type == "reasoning":
            lengths, parts, at = said.pop("part_lengths", [len(block.text or "")]), [], 0
            for length in lengths:
                parts.append((block.text or "")[at : at + length])
                at += length + (0 if kind else 2)
            field = "content" if kind else "summary"
            said["encrypted_content"] = said.pop("signature", None)
            items.append({**mine, "type": "reasoning", field: parts, **said})
        else:
            found = {"type": f"output_{block.type}", "text": block.text}
            found["annotations"] = [thaw(citation.raw) for citation in block.citations]
            found["logprobs"] = said.pop("logprobs", [])
            if not items or items[-1].get("id") != item_id:
                items.append({**mine, "type": "message", "role": "assistant", "content": [], **said})
            items[-1]["content"].append(found)
    return items


def plainly(item: Chunk) -> Chunk:
    """An item without what says nothing, and with its arguments parsed."""
    known = dict(item)
    name = known["type"].removesuffix("_call")
    if known.get("name") == name:
        del known["name"]
    if isinstance(known.get("arguments"), str):
        known["arguments"] = json.loads(known["arguments"])
    for field in ("summary", "content"):
        if known["type"] == "reasoning":
            parts = [part["text"] if isinstance(part, dict) else part for part in known.get(field) or []]
            known[field] = [part for part in parts if part]
    if known["type"] == "message":
        known["content"] = [{"logprobs": [], **part} for part in known["content"]]
    for field in [field for field, value in known.items() if value in (None, [], {}, "")]:
        del known[field]
    if known["type"] in ("tool_search_call", "tool_search_output"):
        known.pop("call_id", None)  # which we make out, where the wire has none
    known.pop("mime_type", None)
    return known


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_items_can_be_told_again_from_our_blocks_alone(chunks: list[Chunk], expected: Chunk) -> None:
    order = [chunk["output_index"] for chunk in chunks if chunk["type"] == "response.output_item.added"]
    sent = {
        chunk["output_index"]: chunk["item"]
        for chunk in chunks
        if chunk["type"] == "response.output_item.done"
    }
    if len(sent) < len(order):
        output = chunks[-1]["response"]["output"]
        sent = dict(enumerate(output)) | sent
    told = [plainly(item) for item in items_of(reply(*chunks))]
    assert told == [plainly(sent[place]) for place in order]


@pytest.mark.parametrize(("chunks", "expected"), recordings("openai-responses"))
def test_the_last_events_response_is_the_same_message_as_its_stream(
    chunks: list[Chunk], expected: Chunk
) -> None:
    body = chunks[-1]["response"]
    if body["status"] == "failed" or [item.get("id") for item in body["output"]] != [
        chunk["item"].get("id") for chunk in chunks if chunk["type"] == "response.output_item.added"
    ]:
        return  # whose items are others than those that were streamed
    streamed, whole = reply(*chunks), reply(body)
    if [block.to_dict() for block in whole.blocks] != [block.to_dict() for block in streamed.blocks]:
        sent = {
            chunk["output_index"]: chunk["item"]
            for chunk in chunks
            if chunk["type"] == "response.output_item.done"
        }
        assert body["output"] != [sent.get(place) for place in range(len(body["output"]))]
    assert (whole.text, whole.usage, whole.finish_reason) == (
        streamed.text,
        streamed.usage,
        streamed.finish_reason,
    )
    assert whole.tool_calls == streamed.tool_calls


# -- anything at all


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def odd(*plausible: Any) -> st.SearchStrategy[Any]:
    """Nearly always one of these, now and then anything."""
    return st.one_of(st.sampled_from(plausible), st.sampled_from(plausible), st.sampled_from(plausible), JSON)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Chunk]:
    return st.fixed_dictionaries({}, optional=fields)


TEXTS = odd("", "a", "\ud83d", '{"x":', "1}", "{}", None)
INDEXES = odd(0, 0, 1, 2, None)
IDS = odd("a", "b", "", None)
KINDS = [
    *(
        "message",
        "reasoning",
        "function_call",
        "custom_tool_call",
        "mcp_call",
        "shell_call",
        "apply_patch_call",
    ),
    *(
        "code_interpreter_call",
        "web_search_call",
        "file_search_call",
        "image_generation_call",
        "tool_search_call",
    ),
    *(
        "shell_call_output",
        "tool_search_output",
        "program",
        "compaction",
        "mcp_list_tools",
        "odd",
        "odd_call",
    ),
]
PART = some(
    type=odd("output_text", "refusal", "reasoning_text", "summary_text", "odd"), text=TEXTS, refusal=TEXTS,
    annotations=st.lists(some(type=odd("url_citation"), url=TEXTS, start_index=JSON), max_size=2), logprobs=odd([], [1]),
)  # fmt: skip
ITEM = some(
    type=odd(*KINDS), id=IDS, call_id=IDS, name=odd("f", "", None), status=odd("in_progress", "completed", "incomplete"),
    content=st.lists(PART, max_size=2) | TEXTS, summary=st.lists(PART, max_size=2), encrypted_content=TEXTS,
    arguments=TEXTS | st.just({"x": 1}), input=TEXTS, code=TEXTS, action=odd({"commands": ["a"]}, {}, None),
    operation=odd({"type": "update_file", "path": "a", "diff": "b"}, None), output=TEXTS, outputs=odd([], [1], None),
    result=TEXTS, error=odd(None, "e", {"message": "m"}), environment=odd(None, {"type": "local"}, {"type": "c"}),
    execution=odd("server", "client"), tools=odd([], [{}]), results=odd(None, [1]), other=JSON, index=JSON, data=JSON,
)  # fmt: skip
RESPONSE = some(
    id=IDS, object=odd("response"), model=odd("m", ""), status=odd("completed", "incomplete", "failed", "queued", None),
    output=st.lists(ITEM, max_size=3), usage=odd(None, USAGE), error=odd(None, None, {"message": "m"}), other=JSON,
    incomplete_details=odd(None, {"reason": "max_output_tokens"}), tools=odd([], [{"type": "custom", "name": "f"}], None),
)  # fmt: skip
EVENTS = [
    *("created", "queued", "in_progress", "completed", "incomplete", "failed", "cancelled", "done"),
    *("output_item.added", "output_item.added", "output_item.added", "output_item.done", "output_item.done"),
    *(
        "content_part.added",
        "content_part.done",
        "output_text.delta",
        "output_text.delta",
        "output_text.done",
    ),
    *("output_text.annotation.added", "refusal.delta", "refusal.done", "reasoning_part.added", "audio.delta"),
    *("reasoning_summary_part.added", "reasoning_summary_text.delta", "reasoning_summary_text.done"),
    *(
        "reasoning_text.delta",
        "reasoning_text.done",
        "function_call_arguments.delta",
        "function_call_arguments.done",
    ),
    *(
        "custom_tool_call_input.delta",
        "custom_tool_call_input.done",
        "mcp_call_arguments.delta",
        "mcp_call.failed",
    ),
    *(
        "code_interpreter_call_code.delta",
        "shell_call_command.added",
        "shell_call_command.delta",
        "audio.done",
    ),
    *(
        "apply_patch_call_operation_diff.delta",
        "web_search_call.searching",
        "image_generation_call.partial_image",
    ),
    *("audio.transcript.delta", "odd", "odd_call.hum"),
]
CHUNK = some(
    type=odd(*(f"response.{name}" for name in EVENTS), "keepalive", "error"), output_index=INDEXES, content_index=INDEXES,
    summary_index=INDEXES, command_index=INDEXES, annotation_index=INDEXES, item_id=IDS, delta=TEXTS, text=TEXTS,
    refusal=TEXTS, arguments=TEXTS, input=TEXTS, code=TEXTS, diff=TEXTS, command=TEXTS, part=PART, item=ITEM,
    response=RESPONSE, annotation=some(url=TEXTS, title=JSON), logprobs=odd([], [1], None), other=JSON,
)  # fmt: skip


@pytest.mark.slow
@given(chunks=st.lists(st.one_of(CHUNK, CHUNK, CHUNK, CHUNK, RESPONSE, JSON), max_size=8))
@settings(max_examples=400, deadline=None)
def test_any_json_gives_lawful_events_or_a_named_error_and_nothing_else(chunks: list[Any]) -> None:
    decoder, found = OpenAIResponsesDecoder(), list[Event]()
    for one in chunks:
        with suppress(MalformedChunkError, LimitExceededError):
            found += decoder.decode(one)
        if isinstance(one, dict):
            recognises(one)
    found += decoder.close()

    starts = [n for n, one in enumerate(found) if one.event == "message-start"]
    for begin, end in zip(starts or [0], [*starts[1:], len(found)]):
        said = found[begin:end]
        assert set(violations(said)) <= {"missing_message_start", "missing_message_finish", "error_event"}
        Snapshot.from_dict(fold(said).to_dict())
    for one in found:
        events.from_dict(one.to_dict())


STREAM: list[Chunk] = [
    created(),
    added(reasoning()),
    summed("One"),
    summed("Two", 1),
    done(reasoning("One", "Two")),
    added(message(id="m1"), 1),
    event("content_part.added", 1, content_index=0, part=part("")),
    text("Hel", 1),
    text("lo", 1),
    event("output_text.done", 1, content_index=0, text="Hello"),
    done(message(part("Hello"), id="m1"), 1),
    added(function(), 2),
    arguments('{"x"', 2),
    added(custom("", call_id="c2"), 3),
    event("custom_tool_call_input.delta", 3, delta="SEL"),
    arguments(": 1}", 2),
    event("function_call_arguments.done", 2, arguments='{"x": 1}'),
    done(function('{"x": 1}'), 2),
    event("custom_tool_call_input.delta", 3, delta="ECT"),
    done(custom("SELECT", call_id="c2"), 3),
    completed(reasoning("One", "Two"), message(part("Hello"), id="m1"), function('{"x": 1}'), custom("SELECT", call_id="c2")),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(STREAM)))
def test_a_stream_that_lost_or_doubled_any_event_is_still_the_same(place: int) -> None:
    whole = reply(*STREAM)
    lost = reply(*STREAM[:place], *STREAM[place + 1 :])
    if place < len(STREAM) - 1:
        assert sorted(blocks(lost)) == sorted(blocks(whole))
        assert [thaw(call.arguments) for call in lost.tool_calls] == [
            thaw(call.arguments) for call in whole.tool_calls
        ]
    doubled = reply(*STREAM[: place + 1], *STREAM[place:])
    assert blocks(doubled) == blocks(whole)
    if place:
        swapped = reply(*STREAM[: place - 1], STREAM[place], STREAM[place - 1], *STREAM[place + 1 :])
        if place < len(STREAM) - 1:
            assert sorted(blocks(swapped)) == sorted(blocks(whole))


@pytest.mark.parametrize("end", range(1, len(STREAM) + 1))
def test_a_stream_that_is_cut_anywhere_calls_nothing_complete_that_is_not(end: int) -> None:
    snapshot = reply(*STREAM[:end])
    assert (snapshot.status == "complete") is (end == len(STREAM))
    ended = [chunk["item"]["call_id"] for chunk in STREAM[:end] if chunk["type"].endswith("item.done") and "call_id" in chunk["item"]]  # fmt: skip
    assert [call.call_id for call in snapshot.tool_calls if call.status == "complete"] == ended


def test_a_piece_costs_the_same_however_many_have_come() -> None:
    decoder = OpenAIResponsesDecoder()
    decoder.decode(created())
    for n in range(1000):
        (one,) = decoder.decode(arguments("1")) if n else decoder.decode(arguments("1"))[-1:]
        assert isinstance(one, ToolCallDelta)
    assert isinstance(decode(created(), arguments("1"))[1], BlockStart)
