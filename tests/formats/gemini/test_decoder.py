"""Gemini's generateContent: what each part of a response becomes, and that nothing else ever comes out."""

from __future__ import annotations

import base64
import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.shared import recordings

import rxdelta as rd
from rxdelta.core import Event, Fold, ProtocolChecker, events
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    ReasoningDelta,
    StreamError,
    TextDelta,
    ToolCallDelta,
    UsageUpdate,
)
from rxdelta.formats.gemini.decoder import GeminiDecoder, recognises

Chunk = dict[str, Any]


def said(*parts: Any, reason: str | None = None, **candidate: Any) -> Chunk:
    """A response with these parts; its candidate's other fields by name."""
    finish = {} if reason is None else {"finishReason": reason}
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **finish, **candidate}]}


def text(piece: str, **fields: Any) -> Chunk:
    return {"text": piece, **fields}


def call(name: Any = None, **fields: Any) -> Chunk:
    return {"functionCall": ({} if name is None else {"name": name}) | fields}


def piece(path: str, *, more: bool = True, goes_on: bool = False, **value: Any) -> Chunk:
    """A fragment of streamed arguments."""
    argument = {"jsonPath": path, **value, **({"willContinue": True} if goes_on else {})}
    return call(partialArgs=[argument], **({"willContinue": True} if more else {}))


STOP = said(reason="STOP")


def decoded(*chunks: Any) -> list[Event]:
    """All events of a stream, checked against the protocol."""
    decoder = GeminiDecoder()
    found = [*(event for chunk in chunks for event in decoder.decode(chunk)), *decoder.close()]
    lifecycle = ProtocolChecker()
    for event in found:
        assert lifecycle.check(event) is None or isinstance(event, StreamError), event
    return found


def folded(*chunks: Any, choice: int = 0) -> rd.Snapshot:
    fold = Fold(choice=choice)
    for event in decoded(*chunks):
        if isinstance(event, StreamError):
            break
        fold.step(event)
    return fold.snapshot


def message(*chunks: Any, choice: int = 0) -> rd.Message:
    return folded(*chunks, choice=choice).to_message()


def parts_of(found: rd.Message) -> list[rd.ContentPart]:
    return [block for block in found.blocks if isinstance(block, rd.ContentPart)]


def blocks(*chunks: Any) -> list[tuple[str, Any]]:
    """Each block's type and text, or arguments."""
    return [
        (block.type, block.text if isinstance(block, rd.ContentPart) else rd.thaw(block.arguments))
        for block in message(*chunks).blocks
    ]


# Texts and thoughts


def test_a_text_is_one_block_however_many_responses_bring_it() -> None:
    chunks = [
        {**said(text("Hel")), "responseId": "r1", "modelVersion": "gemini-x"},
        {**said(text("lo")), "responseId": "r1", "modelVersion": "gemini-x"},
        {**said(reason="STOP"), "responseId": "r1", "modelVersion": "gemini-x"},
    ]
    assert decoded(*chunks) == [
        MessageStart("r1", "gemini-x"),
        BlockStart(0, {"type": "text", "text": ""}),
        TextDelta(0, "Hel"),
        TextDelta(0, "lo"),
        BlockFinish(0),
        MessageFinish("stop", "STOP"),
    ]


def test_thoughts_are_reasoning_and_end_where_text_begins() -> None:
    found = blocks(
        said(text("Let me ", thought=True)),
        said(text("see.", thought=True), text("Hi")),
        said(text("!"), reason="STOP"),
    )
    assert found == [("reasoning", "Let me see."), ("text", "Hi!")]


def test_a_piece_of_text_takes_the_short_way_to_the_same_event() -> None:
    decoder = GeminiDecoder()
    decoder.decode(said(text("a"), index=0))
    assert decoder.decode(said(text("b"))) == (TextDelta(0, "b"),)
    assert decoder.decode(said(text("c"), index=0)) == (TextDelta(0, "c"),)
    assert decoder.decode(said(text("d", thought=False))) == (TextDelta(0, "d"),)
    decoder.decode(said(text("e", thought=True)))
    assert decoder.decode(said(text("f", thought=True))) == (ReasoningDelta(1, "f"),)


@pytest.mark.parametrize(
    "content",
    [{"role": "model"}, {}, None, {"parts": []}, {"parts": None}, {"parts": [{"text": ""}]}, {"parts": [{}]}],
)
def test_content_without_anything_in_it_makes_no_block(content: Any) -> None:
    chunk = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    assert blocks(said(text("Hi")), chunk) == [("text", "Hi")]


def test_a_candidate_without_content_makes_no_block() -> None:
    assert blocks(said(text("Hi")), {"candidates": [{"finishReason": "STOP"}]}) == [("text", "Hi")]


def test_text_after_a_finish_reason_still_counts() -> None:
    found = message(
        said(text("a"), reason="STOP"), said(text("b"), reason="STOP"), said(text("c"), reason="STOP")
    )
    assert [block.text for block in parts_of(found)] == ["abc"]
    assert found.finish_reason == "stop"


# Signatures


def test_a_signature_on_an_empty_text_is_of_the_text_before() -> None:
    (part,) = parts_of(message(said(text("Hi")), said(text("", thoughtSignature="s1"), reason="STOP")))
    assert (part.text, part.options) == ("Hi", {"signature": "s1"})


def test_a_signature_comes_with_the_first_piece_of_a_text_too() -> None:
    found = message(said(text("a", thoughtSignature="s1")), said(text("b")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [("ab", "s1")]


def test_a_second_signature_begins_a_block_so_that_none_is_lost() -> None:
    found = message(said(text("a", thoughtSignature="s1")), said(text("b", thoughtSignature="s2")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [
        ("a", "s1"),
        ("b", "s2"),
    ]
    found = message(said(text("a", thoughtSignature="s1")), said(text("", thoughtSignature="s2")), STOP)
    assert [(part.text, part.options["signature"]) for part in parts_of(found)] == [
        ("a", "s1"),
        ("", "s2"),
    ]


def test_a_signature_with_no_text_before_it_has_a_block_of_its_own() -> None:
    found = message(said(call("f", args={})), said({"thoughtSignature": "s1"}, reason="STOP"))
    assert [block.type for block in found.blocks] == ["tool_call", "text"]
    assert parts_of(found)[0].options == {"signature": "s1"}


def test_the_signature_of_a_thought() -> None:
    found = message(
        said(text("Hm", thought=True)),
        said({"thought": True, "thoughtSignature": "s"}),
        said(text("a")),
        STOP,
    )
    assert parts_of(found)[0].options == {"signature": "s"}
    assert [block.type for block in found.blocks] == ["reasoning", "text"]


def test_the_first_of_parallel_calls_is_signed() -> None:
    first = {**call("f", args={"a": 1}), "thoughtSignature": "s1"}
    found = message(said(first, call("f", args={"a": 2})), STOP)
    assert [call.metadata.get("signature") for call in found.tool_calls] == ["s1", None]


def test_the_other_parts_keep_their_signatures() -> None:
    parts = [
        {"executableCode": {"language": "PYTHON", "code": "1"}, "thoughtSignature": "s1"},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}, "thoughtSignature": "s2"},
        {"toolCall": {"toolType": "FILE_SEARCH", "id": "t"}, "thoughtSignature": "s3"},
        {"toolResponse": {"toolType": "FILE_SEARCH", "id": "t"}, "thoughtSignature": "s4"},
        {"inlineData": {"mimeType": "image/png", "data": "aaaa"}, "thoughtSignature": "s5"},
    ]
    found = message(said(*parts), STOP)
    fields = [block.metadata if isinstance(block, rd.ToolCall) else block.options for block in found.blocks]
    assert [each["signature"] for each in fields] == ["s1", "s2", "s3", "s4", "s5"]


# Calls


def test_a_call_is_whole_at_once_so_that_its_tool_can_start() -> None:
    decoder = GeminiDecoder()
    found = decoder.decode(said(call("f", args={"a": 1}, id="c1")))
    assert found[1:] == [
        BlockStart(0, {"type": "tool_call_chunk", "name": "f", "args": {"a": 1}, "id": "c1"}),
        BlockFinish(0),
    ]


def test_equal_calls_without_an_id_are_two_calls() -> None:
    same = call("f", args={"a": 1})
    found = message({**said(same, same), "responseId": "r1"}, STOP)
    assert [(each.call_id, each.metadata["synthetic_id"]) for each in found.tool_calls] == [
        ("r1-0-0", True),
        ("r1-0-1", True),
    ]


@pytest.mark.parametrize("absent", ["", "null", "None"])
def test_the_spellings_of_no_id(absent: str) -> None:
    (found,) = message(said(call("f", id=absent)), STOP).tool_calls
    assert found.call_id == "call-0-0"


def test_stop_with_calls_is_tool_use() -> None:
    found = message(
        said(call("f", args={}), reason="STOP", finishMessage="Model generated function call(s).")
    )
    assert (found.finish_reason, found.provider_finish_reason) == ("tool_use", "STOP")
    assert found.metadata == {"finishMessage": "Model generated function call(s)."}


@pytest.mark.parametrize(
    "fields", [{}, {"args": {}}, {"args": None}, {"willContinue": False}, {"partialArgs": []}]
)
def test_a_call_without_arguments_is_a_whole_one(fields: Chunk) -> None:
    (found,) = message(said(call("f", **fields)), STOP).tool_calls
    assert (found.status, found.arguments) == ("complete", {})


def test_a_call_without_a_name_is_invalid() -> None:
    found = message(said(call(args={"a": 1})), STOP)
    assert found.tool_calls == ()
    assert found.invalid_tool_calls[0].error == "the call has no name"


# Streamed arguments


def test_streamed_arguments_are_told_as_the_text_that_they_are_of() -> None:
    found = decoded(
        said(call("f", willContinue=True)),
        said(piece("$.city", stringValue="San ", goes_on=True)),
        said(piece("$.city", stringValue='"Francisco"')),
        said(piece("$.days[0].n", numberValue=3)),
        said(piece("$.days[0].wet", boolValue=False)),
        said(piece("$.days[1].n", numberValue=0.5)),
        said(piece("$.note", nullValue="NULL_VALUE")),
        said(call(), reason="STOP"),
    )
    assert "".join(event.args for event in found if isinstance(event, ToolCallDelta)) == (
        '{"city":"San \\"Francisco\\"","days":[{"n":3,"wet":false},{"n":0.5}],"note":null}'
    )
    assert not any(isinstance(event, BlockDelta) for event in found)
    assert isinstance(found[-2], BlockFinish)


def test_the_picture_of_streamed_arguments_grows() -> None:
    decoder, fold, seen = GeminiDecoder(), Fold(), []
    for chunk in [
        said(call("f", willContinue=True)),
        said(piece("$.a", stringValue="x", goes_on=True)),
        said(piece("$.a", stringValue="y", goes_on=True)),
        said(piece("$.b[0]", stringValue="z")),
    ]:
        for event in decoder.decode(chunk):
            fold.step(event)
        seen.append(rd.thaw(fold.snapshot.blocks[0].arguments_so_far))  # type: ignore[union-attr]
    assert seen[1:] == [{"a": "x"}, {"a": "xy"}, {"a": "xy", "b": ["z"]}]


@pytest.mark.parametrize(
    "chunks",
    [
        [said(call())],
        [said(call("g", args={}))],
        [said(text(""), reason="STOP")],
        [said(reason="STOP")],
    ],
)
def test_a_streamed_call_ends_with_its_terminator_another_call_or_the_finish(chunks: list[Chunk]) -> None:
    start = [said(call("f", willContinue=True)), said(piece("$.a", stringValue="x", goes_on=True))]
    decoder = GeminiDecoder()
    found = [event for chunk in [*start, *chunks] for event in decoder.decode(chunk)]
    assert BlockFinish(0) in found
    assert message(*start, *chunks, STOP).tool_calls[0].arguments == {"a": "x"}


def test_a_fragment_without_will_continue_is_the_last() -> None:
    decoder = GeminiDecoder()
    decoder.decode(said(call("f", willContinue=True)))
    found = decoder.decode(said(piece("$.a", numberValue=1, more=False)))
    assert found == [ToolCallDelta(0, '{"a":1'), ToolCallDelta(0, "}"), BlockFinish(0)]


def test_all_of_streamed_arguments_in_one_part() -> None:
    pieces = [{"jsonPath": "$.a", "stringValue": "x"}, {"jsonPath": "$.b", "stringValue": "y"}]
    (found,) = message(said(call("f", partialArgs=pieces)), STOP).tool_calls
    assert found.arguments == {"a": "x", "b": "y"}


def test_two_streamed_calls_are_two_calls() -> None:
    one = [said(call("f", willContinue=True)), said(piece("$.a", stringValue="x")), said(call())]
    assert [each.arguments for each in message(*one, *one, STOP).tool_calls] == [{"a": "x"}, {"a": "x"}]


def test_a_fragment_may_repeat_its_calls_id_and_name() -> None:
    found = message(
        said(call("f", id="c1", willContinue=True)),
        said(call("f", id="c1", partialArgs=[{"jsonPath": "$.a", "stringValue": "x"}], willContinue=True)),
        said(call(id="c1")),
        STOP,
    )
    assert [(each.call_id, each.arguments) for each in found.tool_calls] == [("c1", {"a": "x"})]


def test_an_id_that_comes_late() -> None:
    found = message(said(call("f", willContinue=True)), said(call(id="c1")), STOP)
    assert [(each.call_id, each.metadata["synthetic_id"]) for each in found.tool_calls] == [("c1", False)]


@pytest.mark.parametrize(
    ("pieces", "arguments"),
    [
        # back to an object that the text has gone on from
        ([("$.a.x", 1), ("$.b", 2), ("$.a.y", 3)], {"a": {"x": 1, "y": 3}, "b": 2}),
        # back to a string
        ([("$.a", "x"), ("$.b", "y"), ("$.a", "z")], {"a": "xz", "b": "y"}),
        ([("$.a", "x"), ("$.a", "z")], {"a": "xz"}),
        # another value in place of one
        ([("$.a", 1), ("$.a", 2)], {"a": 2}),
        ([("$.a", 1), ("$.a.b", 2)], {"a": {"b": 2}}),
        ([("$.a.b", 1), ("$.a", 2)], {"a": 2}),
        ([("$.a.b", 1), ("$.a[0]", 2)], {"a": [2]}),
        # items out of order, and with a gap
        ([("$.a[1]", "y"), ("$.a[0]", "x")], {"a": ["x", "y"]}),
        ([("$.a[0]", "x"), ("$.a[2000000000]", "y")], {"a": ["x", "y"]}),
    ],
)
def test_what_breaks_the_order_is_told_whole(pieces: list[tuple[str, Any]], arguments: Chunk) -> None:
    fragments = [
        said(piece(path, **({"stringValue": value} if isinstance(value, str) else {"numberValue": value})))
        for path, value in pieces
    ]
    (found,) = message(said(call("f", willContinue=True)), *fragments, said(call()), STOP).tool_calls
    assert found.arguments == arguments


def test_arguments_before_those_that_are_streamed() -> None:
    start = said(call("f", args={"a": {"b": ["x"]}}, willContinue=True))
    (found,) = message(start, said(piece("$.a.b[1]", stringValue="y")), said(call()), STOP).tool_calls
    assert found.arguments == {"a": {"b": ["x", "y"]}}


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("$['a b'].c", {"a b": {"c": 1}}),
        ('$["a.b"]', {"a.b": 1}),
        (r"$['it\'s']", {"it's": 1}),
        ("$.a-b.ü[0][0]", {"a-b": {"ü": [[1]]}}),
    ],
)
def test_the_ways_to_write_a_path(path: str, arguments: Chunk) -> None:
    (found,) = message(said(call("f", willContinue=True)), said(piece(path, numberValue=1)), STOP).tool_calls
    assert found.arguments == arguments


@pytest.mark.parametrize("path", ["", "a", "$", "$[0]", "$.", "$..a", "$.a[", "$.a[-1]", "$.a[*]", "$x"])
def test_what_is_no_path_is_malformed(path: str) -> None:
    decoder = GeminiDecoder()
    with pytest.raises(rd.MalformedChunkError, match=r"partialArgs\[0\].jsonPath"):
        decoder.decode(said(call("f", partialArgs=[{"jsonPath": path, "numberValue": 1}])))


def test_a_null_is_said_by_its_name() -> None:
    start = said(call("f", willContinue=True))
    for value in ({"nullValue": "NULL_VALUE"}, {"nullValue": None}, {"nullValue": 0}):
        (found,) = message(start, said(piece("$.a", **value)), STOP).tool_calls
        assert found.arguments == {"a": None}
    (found,) = message(start, said(piece("$.a")), STOP).tool_calls
    assert found.arguments == {}


@pytest.mark.parametrize("path", ["$.a" * 1, "$" + ".a" * 201, "$" + ".a" * 100_000])
def test_a_path_too_deep_is_refused(path: str) -> None:
    chunk = said(call("f", partialArgs=[{"jsonPath": path, "numberValue": 1}]))
    if len(path) < 10:
        message(chunk, STOP)
        return
    with pytest.raises(rd.LimitExceededError):
        GeminiDecoder().decode(chunk)


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "OTHER"])
def test_a_streamed_call_that_was_cut_off_is_never_one_to_run(reason: str) -> None:
    start = [said(call("f", willContinue=True)), said(piece("$.a", stringValue="x"))]
    found = message(*start, said(reason=reason))
    assert found.tool_calls == ()
    assert found.invalid_tool_calls[0].arguments == '{"a":"x"'


def test_a_streamed_call_in_a_cut_stream_stays_open() -> None:
    found = folded(said(call("f", willContinue=True)), said(piece("$.a", stringValue="x")))
    assert (found.status, found.tool_calls[0].status) == ("incomplete", "incomplete")


def test_a_finish_reason_in_every_chunk_does_not_end_a_call_that_goes_on() -> None:
    found = message(
        said(call("f", willContinue=True), reason="STOP"),
        said(piece("$.a", stringValue="x"), reason="STOP"),
        said(call(), reason="STOP"),
    )
    assert [each.arguments for each in found.tool_calls] == [{"a": "x"}]


def test_a_terminator_too_many_is_nothing() -> None:
    assert blocks(said(call("f")), said(call()), STOP) == [("tool_call", {})]


JSON_VALUES = st.recursive(
    st.text(max_size=5)
    | st.integers(-999, 999)
    | st.booleans()
    | st.none()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, min_size=1, max_size=3)
        | st.dictionaries(st.text("ab.'\"]\\ü", min_size=1, max_size=3), inner, min_size=1, max_size=3)
    ),
    max_leaves=8,
)


def as_fragments(value: Any, path: str = "$") -> list[Chunk]:
    """The value as the API would stream it."""
    if isinstance(value, dict):
        names = [(json.dumps(name, ensure_ascii=False), item) for name, item in value.items()]
        return [fragment for name, item in names for fragment in as_fragments(item, f"{path}[{name}]")]
    if isinstance(value, list):
        return [
            fragment
            for place, item in enumerate(value)
            for fragment in as_fragments(item, f"{path}[{place}]")
        ]
    if isinstance(value, str):
        pieces = [piece(path, stringValue=character, goes_on=True) for character in value]
        return [*pieces, piece(path, stringValue="")]
    if isinstance(value, bool):
        return [piece(path, boolValue=value)]
    return [piece(path, nullValue="NULL_VALUE") if value is None else piece(path, numberValue=value)]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    arguments=st.dictionaries(st.text("ab.'\"]\\ü", min_size=1, max_size=3), JSON_VALUES, max_size=3),
    data=st.data(),
)
def test_arguments_in_pieces_are_the_arguments(arguments: Chunk, data: st.DataObject) -> None:
    fragments = [said(each) for each in as_fragments(arguments)]
    found = decoded(said(call("f", willContinue=True)), *fragments, said(call()), STOP)
    assert not any(isinstance(event, BlockDelta) for event in found)
    (told,) = message(said(call("f", willContinue=True)), *fragments, said(call()), STOP).tool_calls
    assert told.arguments == arguments
    shuffled = data.draw(st.permutations(fragments))
    message(said(call("f", willContinue=True)), *shuffled, said(call()), STOP)


# The provider's own tools


def test_code_is_a_server_tool_call_with_its_result() -> None:
    found = message(
        said(
            {"executableCode": {"language": "PYTHON", "code": "print(1)", "id": "x1"}},
            {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n", "id": "x1"}},
            text("One."),
            reason="STOP",
        )
    )
    code, result, _ = found.to_dict()["blocks"]
    assert code == {
        "type": "server_tool_call",
        "call_id": "x1",
        "name": "code_execution",
        "arguments": {"language": "PYTHON", "code": "print(1)"},
        "status": "complete",
        "metadata": {"provider_type": "executableCode"},
    }
    assert result["options"] == {
        "tool_call_id": "x1",
        "provider_type": "codeExecutionResult",
        "output": {"outcome": "OUTCOME_OK", "output": "1\n"},
        "status": "success",
    }
    assert found.finish_reason == "stop"


def test_a_result_without_an_id_is_of_the_newest_code() -> None:
    code, result = {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}}
    first, first_result, second, second_result = message(said(code, result, code, result), STOP).blocks
    assert isinstance(first, rd.ToolCall)
    assert isinstance(second, rd.ToolCall)
    assert first.call_id != second.call_id
    assert isinstance(first_result, rd.ContentPart)
    assert isinstance(second_result, rd.ContentPart)
    assert (first_result.options["tool_call_id"], second_result.options["tool_call_id"]) == (
        first.call_id,
        second.call_id,
    )
    assert first_result.options["status"] == "error"


def test_a_tool_of_the_provider_and_its_response() -> None:
    found = message(
        said({"toolCall": {"toolType": "GOOGLE_MAPS", "id": "t1", "args": {"q": "x"}}}),
        said(
            {"toolResponse": {"toolType": "GOOGLE_MAPS", "id": "t1", "response": {"places": []}}},
            reason="STOP",
        ),
    )
    tool, response = found.blocks
    assert isinstance(tool, rd.ToolCall)
    assert (tool.type, tool.call_id, tool.name, tool.arguments) == (
        "server_tool_call",
        "t1",
        "GOOGLE_MAPS",
        {"q": "x"},
    )
    assert isinstance(response, rd.ContentPart)
    assert response.options == {
        "tool_call_id": "t1",
        "toolType": "GOOGLE_MAPS",
        "provider_type": "toolResponse",
        "output": {"places": []},
    }
    assert found.finish_reason == "stop"


# Media


@pytest.mark.parametrize(
    ("mime_type", "kind"),
    [("image/png", "image"), ("video/mp4", "video"), ("application/pdf", "file"), ("", "file")],
)
def test_inline_data_is_a_part_of_its_kind(mime_type: str, kind: str) -> None:
    blob = {"data": "aGk=", "displayName": "x"} | ({"mimeType": mime_type} if mime_type else {})
    found = message(said({"inlineData": blob}, {"inlineData": blob}), STOP)
    known = {"displayName": "x"} | ({"mime_type": mime_type} if mime_type else {})
    assert [(part.type, part.text, part.options) for part in parts_of(found)] == [(kind, "aGk=", known)] * 2


def test_an_image_among_the_thoughts_says_so() -> None:
    (part,) = parts_of(
        message(said({"inlineData": {"mimeType": "image/png", "data": "aaaa"}, "thought": True}), STOP)
    )
    assert (part.type, part.options["thought"]) == ("image", True)


@pytest.mark.parametrize("sizes", [(3, 3), (1, 1, 1, 1), (4, 2, 5), (2,), (10, 1), (0, 3)])
def test_audio_in_pieces_is_one_base64_text(sizes: tuple[int, ...]) -> None:
    sound = [bytes(range(n, n + size)) for n, size in enumerate(sizes)]
    chunks = [
        said({"inlineData": {"mimeType": "audio/L16;rate=24000", "data": base64.b64encode(one).decode()}})
        for one in sound
    ]
    (part,) = parts_of(message(*chunks, STOP))
    assert (part.type, part.options) == ("audio", {"mime_type": "audio/L16;rate=24000"})
    assert base64.b64decode(part.text or "", validate=True) == b"".join(sound)


def test_audio_that_is_no_base64_is_passed_on_as_it_is() -> None:
    chunks = [said({"inlineData": {"mimeType": "audio/x", "data": data}}) for data in ("YQ==", "!!=", "bb")]
    assert parts_of(message(*chunks, STOP))[0].text == "YQ==!!=bb"


def test_audio_of_another_kind_is_another_block() -> None:
    first, second = ({"inlineData": {"mimeType": f"audio/{kind}", "data": "aaaa"}} for kind in ("mp3", "wav"))
    assert [block[0] for block in blocks(said(first, first, second), STOP)] == ["audio", "audio"]


def test_a_file_by_its_address() -> None:
    (part,) = parts_of(
        message(said({"fileData": {"mimeType": "image/png", "fileUri": "gs://b/x.png"}}), STOP)
    )
    assert (part.type, part.options) == ("image", {"mime_type": "image/png", "url": "gs://b/x.png"})


def test_a_part_of_an_unknown_kind_is_kept_whole() -> None:
    (part,) = parts_of(message(said({"hologram": {"depth": 3}, "thoughtSignature": "s"}), STOP))
    assert part.type == "unsupported"
    assert part.options == {"hologram": {"depth": 3}, "thoughtSignature": "s"}


def test_what_else_a_part_says_is_kept() -> None:
    (part,) = parts_of(message(said(text("Hi", partMetadata={"a_b": 1})), STOP))
    assert part.options == {"partMetadata": {"a_b": 1}}


# The end


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        *(
            (word, "content_filter")
            for word in (
                *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR"),
                *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
            )
        ),
        *(
            (word, "stop")
            for word in ("OTHER", "LANGUAGE", "MALFORMED_FUNCTION_CALL", "NO_IMAGE", "NEW_REASON")
        ),
    ],
)
def test_finish_reasons(word: str, reason: str) -> None:
    found = message(said(text("Hi"), reason=word))
    assert (found.finish_reason, found.provider_finish_reason) == (reason, word)
    assert found.status == ("length" if reason == "length" else "complete")


@pytest.mark.parametrize(
    ("number", "word"), [(1, "STOP"), (2, "MAX_TOKENS"), (3, "SAFETY"), (8, "SPII"), (99, "99")]
)
def test_enums_as_integers(number: int, word: str) -> None:
    assert message(said(text("Hi"), finishReason=number)).provider_finish_reason == word


@pytest.mark.parametrize("nothing", [None, "", 0, "FINISH_REASON_UNSPECIFIED"])
def test_a_reason_that_says_nothing_is_no_end(nothing: Any) -> None:
    assert folded(said(text("Hi"), finishReason=nothing)).status == "incomplete"


def test_an_id_and_a_model_that_come_late_are_the_messages() -> None:
    first = {"promptFeedback": {"safetyRatings": []}}
    reply = folded(first, {**said(text("Hi"), reason="STOP"), "responseId": "r1", "modelVersion": "m"})
    assert (reply.id, reply.model) == ("r1", "m")


def test_citations_held_back_are_told_when_a_stream_is_cut_off() -> None:
    cited = [said(text("a"), citationMetadata={"citations": [{"uri": f"u{n}"}]}) for n in range(30)]
    (part,) = folded(*cited).blocks
    assert isinstance(part, rd.ContentPart)
    assert len(part.citations) == 30


def test_what_else_a_content_says_is_kept() -> None:
    strange = {"candidates": [{"content": {"parts": [text("Hi")], "mood": "calm"}, "finishReason": "STOP"}]}
    assert folded(strange).metadata["mood"] == "calm"


def test_the_last_finish_reason_counts() -> None:
    assert (
        message(said(text("a"), reason="STOP"), said(reason="RECITATION")).finish_reason == "content_filter"
    )


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER", 4])
def test_a_prompt_that_was_refused_is_a_whole_reply(reason: Any) -> None:
    found = message({"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 3}})
    assert (found.finish_reason, found.provider_finish_reason, found.blocks) == ("content_filter", None, ())
    assert found.metadata == {"promptFeedback": {"blockReason": reason}}
    assert found.usage is not None
    assert found.usage.input_tokens == 3


def test_feedback_that_blocks_nothing_ends_nothing() -> None:
    feedback = {"promptFeedback": {"blockReason": "BLOCKED_REASON_UNSPECIFIED", "safetyRatings": [{}]}}
    assert folded({**said(text("Hi")), **feedback}).status == "incomplete"


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            {"code": 503, "message": "Overloaded", "status": "UNAVAILABLE"},
            StreamError("Overloaded", "UNAVAILABLE", "503"),
        ),
        ({"message": "x"}, StreamError("x")),
        ("gone", StreamError("gone")),
    ],
)
def test_an_error_ends_the_stream(error: Any, told: StreamError) -> None:
    found = decoded(said(text("Hi")), {"error": error}, said(text("!"), reason="STOP"))
    assert found[-1] == told
    assert not any(isinstance(event, MessageFinish) for event in found)


def test_what_an_error_says_beyond_its_message_passes() -> None:
    error = {"code": 499, "message": "Cancelled", "status": "CANCELLED", "details": [{"@type": "x"}]}
    assert decoded({"error": error}) == [
        ProviderEvent("google", "error", error),
        StreamError("Cancelled", "CANCELLED", "499"),
    ]


def test_an_error_makes_no_call_complete() -> None:
    found = folded(said(call("f", willContinue=True), reason="STOP"), {"error": {"message": "x"}})
    assert found.tool_calls == ()


def test_what_is_json_but_no_response_passes() -> None:
    strange = {"this": {"is": {"not": "a response"}}}
    assert decoded(strange) == [ProviderEvent("google", "chunk", strange)]
    assert blocks(said(text("a")), strange, said(text("b"), reason="STOP")) == [("text", "ab")]


# Usage


def usage(**figures: Any) -> Chunk:
    return {**said(text("a")), "usageMetadata": figures}


def test_usage_is_merged_figure_by_figure_and_the_newest_counts() -> None:
    found = message(
        usage(trafficType="ON_DEMAND"),
        usage(promptTokenCount=169, candidatesTokenCount=40),
        usage(promptTokenCount=79, candidatesTokenCount=12, thoughtsTokenCount=9, trafficType=None),
        usage(trafficType="ON_DEMAND", promptTokensDetails=[]),
        STOP,
    ).usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (79, 12)  # no thoughts in it
    assert found.raw == {
        "trafficType": "ON_DEMAND",
        "promptTokenCount": 79,
        "candidatesTokenCount": 12,
        "thoughtsTokenCount": 9,
    }


def test_usage_is_told_on_change() -> None:
    found = decoded(usage(promptTokenCount=1), usage(promptTokenCount=1), usage(promptTokenCount=2), STOP)
    assert [event.usage.input_tokens for event in found if isinstance(event, UsageUpdate)] == [2]
    assert isinstance(found[0], MessageStart)
    assert found[0].usage is not None


def test_usage_in_a_malformed_chunk_is_told_with_the_next() -> None:
    decoder = GeminiDecoder()
    decoder.decode(said(text("Hi")))
    with pytest.raises(rd.MalformedChunkError):
        decoder.decode({"candidates": [[]], "usageMetadata": {"promptTokenCount": 3}})
    found = [*decoder.decode(STOP), *decoder.close()]
    assert [event.usage.input_tokens for event in found if isinstance(event, UsageUpdate)] == [3]


def test_output_that_is_all_thought_is_unknown_which_is_not_0() -> None:
    found = message(usage(promptTokenCount=30, thoughtsTokenCount=1947), STOP).usage
    assert found is not None
    assert (found.input_tokens, found.output_tokens) == (30, None)


# Several candidates


def test_candidates_are_choices() -> None:
    chunk = {
        "candidates": [
            {"content": {"parts": [text("a")]}},
            {"index": 1, "content": {"parts": [text("b")]}, "finishReason": "MAX_TOKENS"},
        ]
    }
    chunks = [chunk, {"candidates": [{"index": 1, "content": {"parts": [text("c")]}}]}, STOP]
    assert message(*chunks).text == "a"
    assert message(*chunks, choice=1).text == "bc"
    assert message(*chunks, choice=1).status == "length"


# Metadata


def test_metadata_that_is_empty_erases_nothing() -> None:
    found = message(
        said(text("a"), groundingMetadata={"webSearchQueries": ["q"]}, safetyRatings=[{"category": "X"}]),
        said(text("b"), groundingMetadata={}, safetyRatings=[], urlContextMetadata={"urlMetadata": [1]}),
        said(reason="STOP", groundingMetadata={"groundingChunks": []}, avgLogprobs=-0.5),
    )
    assert found.metadata == {
        "groundingMetadata": {"webSearchQueries": ["q"]},
        "safetyRatings": [{"category": "X"}],
        "urlContextMetadata": {"urlMetadata": [1]},
        "avgLogprobs": -0.5,
    }


def test_citations_are_the_texts() -> None:
    one, two = (
        {"startIndex": 1, "endIndex": 3, "uri": "https://e.org", "title": "E"},
        {"endIndex": 9, "license": "mit"},
    )
    found = message(
        said(text("a"), citationMetadata={"citations": [one]}),
        said(text("b"), citationMetadata={"citationSources": [two]}, reason="STOP"),
    )
    first, second = parts_of(found)[0].citations
    assert (first.url, first.title, first.start_index, first.end_index, first.raw) == (
        "https://e.org",
        "E",
        1,
        3,
        one,
    )
    assert second.raw == two


def test_citations_without_a_text_are_kept() -> None:
    found = message(said(citationMetadata={"citations": [{"endIndex": 9}]}, reason="RECITATION"))
    assert found.metadata == {"citationMetadata": {"citations": [{"endIndex": 9}]}}


def test_what_a_text_rests_on_is_cited() -> None:
    grounding = {
        "groundingChunks": [
            {"web": {"uri": "https://e.org", "title": "E"}},
            {"retrievedContext": {"text": "So."}},
        ],
        "groundingSupports": [
            {"segment": {"endIndex": 2, "text": "ab"}, "groundingChunkIndices": [0, 1, 7, -1]},
            "nonsense",
        ],
    }
    found = message(said(text("ab"), groundingMetadata=grounding), STOP)
    first, second = parts_of(found)[0].citations
    assert (first.url, first.title, first.end_index, first.cited_text) == ("https://e.org", "E", 2, None)
    assert (second.url, second.cited_text) == (None, "So.")
    assert found.metadata["groundingMetadata"] == grounding


def test_logprobs_go_on() -> None:
    found = message(
        said(text("a"), logprobsResult={"chosenCandidates": [{"token": "a"}], "logProbabilitySum": -1}),
        said(text("b"), logprobsResult={"chosenCandidates": [{"token": "b"}], "logProbabilitySum": -2}),
        STOP,
    )
    assert found.metadata["logprobsResult"] == {
        "chosenCandidates": [{"token": "a"}, {"token": "b"}],
        "logProbabilitySum": -2,
    }


# Other shapes


WHOLE = {
    **said(
        text("Hm.", thought=True),
        text("Hi", thoughtSignature="c2ln"),
        call("f", args={"a": 1}),
        reason="STOP",
        index=0,
    ),
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2},
    "modelVersion": "gemini-x",
    "responseId": "r1",
}


def test_a_list_of_responses_is_a_stream() -> None:
    stream = [said(text("Hi")), said(text("!"), reason="STOP")]
    assert message(stream) == message(*stream)
    assert decoded([{"error": {"code": 400, "message": "x", "status": "INVALID_ARGUMENT"}}]) == [
        StreamError("x", "INVALID_ARGUMENT", "400")
    ]


def test_a_body_is_read_as_its_stream() -> None:
    (candidate,) = WHOLE["candidates"]
    parts = candidate["content"]["parts"]
    envelope = {name: WHOLE[name] for name in ("modelVersion", "responseId")}
    stream = [{**envelope, **said(part)} for part in parts]
    last = {**envelope, "usageMetadata": WHOLE["usageMetadata"], **STOP}
    assert message(*stream, last) == message(WHOLE)


def dumps(chunk: Chunk) -> list[Any]:
    """The chunk as the SDK has it, and as its objects are written down."""
    types = pytest.importorskip("google.genai.types")
    response = types.GenerateContentResponse._from_response(response=chunk, kwargs={})
    return [
        response,
        response.model_dump(),
        response.model_dump(exclude_none=True),
        response.to_json_dict(),
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        [WHOLE],
        [
            said(call("f", willContinue=True)),
            said(piece("$.n", numberValue=3)),
            said(piece("$.a_b", stringValue="x")),
            said(piece("$.nothing", nullValue="NULL_VALUE")),
            said(call()),
            STOP,
        ],
        [said(call("f", args={"snake_case": {"also_here": 1}})), STOP],
        [said({"inlineData": {"mimeType": "image/png", "data": "+/+/"}, "thoughtSignature": "+/+/"}), STOP],
        [said({"toolCall": {"toolType": "URL_CONTEXT", "args": {"a_b": 1}}}), STOP],
        [{"promptFeedback": {"blockReason": "SAFETY"}}],
        [{**said(text("a"), reason="STOP"), "createTime": "2025-07-28T16:02:47.774462Z"}],
    ],
)
def test_the_sdks_objects_and_their_dumps_are_read_as_what_they_were_made_of(chunks: list[Chunk]) -> None:
    wanted = message(*chunks)
    ways = zip(*(dumps(copy.deepcopy(chunk)) for chunk in chunks), strict=True)
    assert [message(*way) for way in ways] == [wanted] * 4


@pytest.mark.parametrize(("chunks", "expected"), recordings("gemini"))
def test_recordings_as_the_sdks_objects_are_the_same_message(chunks: list[Chunk], expected: Chunk) -> None:
    """Compared with what the SDK leaves of a chunk, as it drops the fields that it doesn't know."""
    if any("error" in chunk for chunk in chunks):
        pytest.skip("its client raises")
    left = copy.deepcopy(chunks)
    ways = list(zip(*map(dumps, left), strict=True))
    assert [folded(*way) for way in ways] == [folded(*left)] * 4


# What is malformed


@pytest.mark.parametrize(
    ("chunk", "path"),
    [
        ("text", ""),
        (None, ""),
        ([[]], ""),
        ({"candidates": {}}, "candidates"),
        ({"candidates": ["x"]}, "candidates[0]"),
        ({"candidates": [{}, {"content": 1}]}, "candidates[1].content"),
        ({"candidates": [{"index": "0"}]}, "candidates[0].index"),
        ({"candidates": [{"index": -1}]}, "candidates[0].index"),
        ({"candidates": [{"content": {"parts": "x"}}]}, "candidates[0].content.parts"),
        (said(1), "candidates[0].content.parts[0]"),
        (said(text(1)), "candidates[0].content.parts[0].text"),  # type: ignore[arg-type]
        (said(text("a", thoughtSignature=1)), "candidates[0].content.parts[0].thoughtSignature"),
        (said({"functionCall": []}), "candidates[0].content.parts[0].functionCall"),
        (said(call("f", args="{}")), "candidates[0].content.parts[0].functionCall.args"),
        (said(call("f", partialArgs=[1])), "candidates[0].content.parts[0].functionCall.partialArgs[0]"),
        (
            said(piece("$.a", numberValue="NaN")),
            "candidates[0].content.parts[0].functionCall.partialArgs[0].numberValue",
        ),
        (said({"inlineData": {"data": 1}}), "candidates[0].content.parts[0].inlineData.data"),
        (said(finishReason=[]), "candidates[0].finishReason"),
        (said(citationMetadata=[]), "candidates[0].citationMetadata"),
        ({"usageMetadata": 3}, "usageMetadata"),
        ({"promptFeedback": "no"}, "promptFeedback"),
    ],
)
def test_a_malformed_chunk_names_the_place(chunk: Any, path: str) -> None:
    with pytest.raises(rd.MalformedChunkError) as caught:
        GeminiDecoder().decode(chunk)
    assert (caught.value.wire_format, caught.value.path) == ("gemini", path)


def test_a_hostile_index_is_refused() -> None:
    with pytest.raises(rd.LimitExceededError):
        GeminiDecoder().decode(said(text("a"), index=2**31))
    with pytest.raises(rd.LimitExceededError):
        GeminiDecoder().decode(
            said(call("f", partialArgs=[{"jsonPath": f"$.a[{'9' * 5000}]", "numberValue": 1}]))
        )


def test_what_came_before_the_fault_is_not_lost() -> None:
    decoder, fold = GeminiDecoder(), Fold()
    with pytest.raises(rd.MalformedChunkError):
        decoder.decode(said(text("a"), 1))
    for event in [*decoder.decode(said(text("b"), reason="STOP")), *decoder.close()]:
        fold.step(event)
    assert fold.snapshot.text == "ab"


PARTS = st.sampled_from(
    [
        text("a"), text("b", thought=True), text("", thoughtSignature="s"), call("f", args={"a": 1}),
        call("f", willContinue=True), piece("$.a", stringValue="x"), piece("$.a[1].b", numberValue=1), call(),
        {"executableCode": {"code": "1"}}, {"codeExecutionResult": {"output": "1"}}, {"toolResponse": {}},
        {"inlineData": {"mimeType": "audio/x", "data": "YQ=="}}, {"inlineData": {"mimeType": "image/x"}}, {"x": 1},
    ]
)  # fmt: skip
RESPONSES = st.builds(
    lambda parts, reason, index: said(*parts, reason=reason, **({} if index is None else {"index": index})),
    st.lists(PARTS, max_size=3),
    st.sampled_from([None, None, "STOP", "MAX_TOKENS"]),
    st.sampled_from([None, 0, 1]),
) | st.sampled_from([{"error": {"message": "x"}}, {}, {"usageMetadata": {"promptTokenCount": 1}}])


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(chunks=st.lists(RESPONSES, max_size=8))
def test_any_parts_in_any_order_keep_the_protocol(chunks: list[Chunk]) -> None:
    found = decoded(*chunks)
    assert [events.from_dict(event.to_dict()) for event in found] == found
    for choice in (0, 1):
        whole = folded(*chunks, choice=choice)
        if whole.status != "incomplete":
            assert (
                rd.Message.from_dict(json.loads(json.dumps(whole.to_message().to_dict())))
                == whole.to_message()
            )


# Recognising


@pytest.mark.parametrize(
    "chunk",
    [
        said(text("Hi")),
        said(),
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"usageMetadata": {"promptTokenCount": 1}, "modelVersion": "gemini-x"},
        {"usage_metadata": {"prompt_token_count": 1}, "candidates": None},
        {"candidates": [{"content": {"parts": [{"function_call": {"name": "f"}}]}}]},
        {"error": {"code": 429, "message": "x", "status": "RESOURCE_EXHAUSTED"}},
    ],
)
def test_recognises_its_own(chunk: Chunk) -> None:
    assert recognises(chunk)
    assert rd.providers.detect(chunk) == "gemini"


@pytest.mark.parametrize(
    "chunk",
    [
        {},
        {"error": {"message": "x", "type": "server_error", "code": "x"}},
        {"error": {"code": 400, "message": "x", "metadata": {}}},
        {"type": "AIMessageChunk", "content": "", "usage_metadata": {}},
        {"choices": [], "usage": {}},
        {"candidates": "x"},
        {"serverContent": {}, "usageMetadata": {}},
        {"event_type": "step.start", "usageMetadata": {}},
    ],
)
def test_does_not_recognise_others(chunk: Chunk) -> None:
    assert not recognises(chunk)


def test_a_data_delta_is_what_an_image_grows_by() -> None:
    found = decoded(said({"inlineData": {"mimeType": "image/png", "data": "aaaa"}}), STOP)
    assert DataDelta(0, "aaaa") in found
