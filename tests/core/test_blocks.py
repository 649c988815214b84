"""Content parts and tool calls as values: fields, merging, completing, previews, writing and reading."""

from __future__ import annotations

import copy
import json
import pickle
import tracemalloc
from typing import Any

import pytest
from core.strategies import clean_json, details, plain, results, word
from hypothesis import example, given, strategies as st

import rxdelta as rd
from rxdelta.core import approved_result, decision_of, denied_result

PART_TYPES = [
    "text", "reasoning", "image", "image_url", "audio", "video", "file", "file_url", "server_tool_result", "refusal",
    "unsupported",
]  # fmt: skip
parts = st.builds(
    rd.ContentPart,
    st.sampled_from(PART_TYPES),
    st.none() | plain,
    details,
    st.lists(st.builds(rd.Citation, st.none() | word, raw=details), max_size=2),
)
calls = st.builds(
    rd.ToolCall,
    call_id=st.none() | word,
    name=st.none() | word,
    arguments=st.none() | plain | st.dictionaries(word, clean_json, max_size=2),
    index=st.none() | st.integers(-3, 3),
    display_text=st.none() | word,
    metadata=details,
    result=st.none() | results,
    type=st.sampled_from(["tool_call", "server_tool_call", "invalid_tool_call"]),
    error=st.none() | word,
    _key=st.none()
    | st.integers(0, 3)
    | word
    | st.tuples(st.sampled_from(["part", "call"]), st.none() | st.integers(0, 3)),
    _open=st.booleans(),
)


@given(parts | calls)
def test_a_block_is_read_back_as_it_was_written(block: rd.ContentPart | rd.ToolCall) -> None:
    written = json.dumps(block.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    again = type(block).from_dict(json.loads(written))
    if isinstance(block, rd.ToolCall) and block.arguments == "" and block.type != "invalid_tool_call":
        assert written.count(b'"arguments_text": ""') == 1
    assert (again, again.key, again.open) == (block, block.key, block.open)
    other = pickle.loads(pickle.dumps(block))
    assert (other, other.key, other.open, hash(other)) == (block, block.key, block.open, hash(block))
    assert copy.copy(block) is copy.deepcopy(block) is block


def test_lone_surrogates_are_replaced_and_pairs_joined() -> None:
    half = "\ud83d"
    call = rd.ToolCall(
        call_id=half, name=half, arguments=half, display_text=half, metadata={half: half}, error=half
    )
    assert call == rd.ToolCall(
        call_id="\ufffd", name="\ufffd", arguments="\ufffd", display_text="\ufffd", metadata={"\ufffd": "\ufffd"}, error="\ufffd"
    )  # fmt: skip
    assert rd.ContentPart("text", half).text == "\ufffd"
    assert rd.ContentPart("text", "\ud83d\ude00").text == "😀"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: rd.ContentPart("movie", 5),
            "type: is invalid; text: must be a string (got type='movie', text=5)",
        ),
        (lambda: rd.ContentPart(None), "type: can't be blank"),
        (lambda: rd.ContentPart(options=[]), "options: must be a mapping"),
        (lambda: rd.ContentPart(citations="x"), "citations: must be a list"),
        (lambda: rd.ContentPart(citations={}), "citations: must be a list"),
        (lambda: rd.ContentPart(citations=5), "citations: must be a list"),
        (lambda: rd.ContentPart(citations=[5]), "citations: must hold citations"),
        (lambda: rd.ContentPart(_key=True), "key: is invalid"),
        (lambda: rd.ContentPart(_key=["part", 0]), "key: is invalid"),
        (lambda: rd.ContentPart(_key=("other", 0)), "key: is invalid"),
        (lambda: rd.ContentPart.from_dict({"key": ["part", [0]]}), "key: is invalid"),
        (
            lambda: rd.ToolCall(status="done", call_id=5, index=1.5),
            "status: is invalid; call_id: must be a string; index",
        ),
        (lambda: rd.ToolCall(index=True), "index: is invalid"),
        (lambda: rd.ToolCall(type="text"), "type: is invalid"),
        (lambda: rd.ToolCall(arguments=5), "arguments: must be JSON text or a mapping"),
        (lambda: rd.ToolCall(arguments=[1]), "arguments: must be JSON text or a mapping"),
        (lambda: rd.ToolCall(metadata="x"), "metadata: must be a mapping"),
        (lambda: rd.ToolCall(result={"content": 1}), "result: must be a ToolResult"),
        (lambda: rd.ToolCall.from_dict({"status": "done"}), "status: is invalid"),
        (lambda: rd.ToolCall.from_dict({"index": "x"}), "index: is invalid"),
    ],
)
def test_what_cannot_be_is_refused_by_name_all_at_once(make: Any, said: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        make()
    assert said in str(caught.value)
    assert caught.value.field == said.partition(":")[0]


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ({"name": "f", "arguments": {}}, "call_id"),
        ({"call_id": "null", "name": "f", "arguments": {}}, "call_id"),
        ({"call_id": "c", "name": "  ", "arguments": {}}, "name"),
        ({"call_id": "c", "name": "f", "arguments": '{"a":1} tail'}, "arguments"),
        ({"call_id": "c", "name": "f", "arguments": "[]"}, "arguments"),
        ({"call_id": "c", "name": "f", "arguments_text": ""}, "arguments"),
    ],
)
def test_a_complete_call_from_outside_must_be_one(data: dict[str, Any], field: str) -> None:
    with pytest.raises(rd.errors.InvalidToolCallError) as caught:
        rd.ToolCall.from_dict({**data, "status": "complete"})
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}: ")
    assert (caught.value.call_id, caught.value.name) == (
        data.get("call_id", "null").replace("null", "") or None,
        data["name"],
    )


@pytest.mark.parametrize(
    ("kind", "arguments"), [("tool_call", None), ("server_tool_call", None), ("invalid_tool_call", "")]
)
def test_no_text_is_no_arguments_but_for_an_invalid_call(kind: str, arguments: str | None) -> None:
    assert rd.ToolCall.from_dict({"type": kind, "arguments": ""}).arguments == arguments


def test_blocks_that_are_made_already_are_taken_as_they_are() -> None:
    part, call = rd.ContentPart("text", "a"), rd.ToolCall(call_id="c", name="f")
    delta = rd.MessageDelta.from_dict({"merged_content": [part], "tool_calls": [call]})
    assert (delta.merged_content, delta.tool_calls) == ((part,), (call,))


def test_a_result_tells_the_decision_that_it_was_made_of() -> None:
    decisions = [
        decision_of(make("c", reason))
        for make in (approved_result, denied_result)
        for reason in ("why", None)
    ]
    assert decisions == [
        rd.Approval(True, "why"),
        rd.Approval(True),
        rd.Approval(False, "why"),
        rd.Approval(False),
    ]
    assert decision_of(rd.ToolResult("c", 5, metadata={"reason": "why"})) is None
    assert decision_of(None) is None


def test_what_a_provider_ran_needs_no_id() -> None:
    call = rd.ToolCall.from_dict(
        {"type": "server_tool_call", "name": "python", "arguments": "{}", "status": "complete"}
    )
    assert (call.call_id, call.arguments) == (None, {})


def test_arguments_as_a_map() -> None:
    assert rd.ToolCall(arguments='{"a": [1]}').arguments_as_map() == {"a": [1]}
    assert isinstance(rd.ToolCall(arguments='{"a": [1]}').arguments_as_map()["a"], rd.core.FrozenList)
    assert rd.ToolCall(arguments={"a": 1}).arguments_as_map() == {"a": 1}
    for nothing in (None, "", "[", "[1]"):
        assert rd.ToolCall(arguments=nothing).arguments_as_map() == {}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": "x', {"a": "x"}),
        ('{"a": 4', {}),
        ('{"a": 42,', {"a": 42}),
        ('{"a": tr', {}),
        ('{"a": "\\u00', {"a": ""}),
        ('{"a": "\\ud83d', {"a": ""}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": [1, {"b": ', {"a": [1, {}]}),
        ("", None),
        (None, None),
    ],
)
def test_bad_input_23_a_preview_shows_nothing_that_is_cut(text: str | None, shown: object) -> None:
    preview = rd.ToolCall(arguments=text).arguments_so_far
    assert preview == (shown if text else text)
    json.dumps(preview, ensure_ascii=False).encode()


def test_the_preview_of_complete_arguments_is_the_arguments() -> None:
    call = rd.ToolCall(arguments={"files": ["a"]})
    assert call.arguments_so_far is call.arguments
    assert call.is_final()
    assert call.is_final("files", 0)
    for path in (("files", 1), ("files", -1), ("files", 0, 0), ("other",), (0,), ("files", "a")):
        assert not call.is_final(*path)


def test_which_arguments_are_final_while_they_come() -> None:
    call = rd.ToolCall(arguments='{"files": ["a", "b')
    assert call.is_final("files", 0)
    assert not call.is_final("files", 1)
    assert not call.is_final()
    assert not rd.ToolCall(arguments={}, _open=True).is_final()
    assert not rd.ToolCall().is_final()


def test_a_preview_is_read_on_not_again(monkeypatch: pytest.MonkeyPatch) -> None:
    fed: list[str] = []
    feed = rd.core.PartialJsonParser.feed
    monkeypatch.setattr(
        rd.core.PartialJsonParser, "feed", lambda self, piece: (fed.append(piece), feed(self, piece))[1]
    )
    call = rd.core.BlockFold(rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f"}))
    kept = []
    whole = json.dumps({"text": "abc" * 300, "n": [1, 2, 3]})
    for start in range(0, len(whole), 3):
        now = call.step(rd.events.ToolCallDelta(0, whole[start : start + 3]))
        kept.append((now, now.arguments_so_far, json.dumps(now.arguments_so_far)))
    assert sum(map(len, fed)) == len(whole)
    assert now.arguments_so_far == json.loads(whole)
    for then, preview, shown in kept:
        assert json.dumps(preview) == shown
        assert then.arguments_so_far == preview


def test_branches_of_a_call_have_previews_of_their_own() -> None:
    stem = rd.apply_event(
        None, rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "args": '{"a":'})
    )
    stem = rd.apply_event(stem, rd.events.ToolCallDelta(0, "[1"))
    assert stem.tool_calls[0].arguments_so_far == {"a": []}
    left, right = (rd.apply_event(stem, rd.events.ToolCallDelta(0, more)) for more in (",2", "0,3"))
    for _ in range(2):
        assert right.tool_calls[0].arguments_so_far == {"a": [10]}
        assert left.tool_calls[0].arguments_so_far == {"a": [1]}
        assert stem.tool_calls[0].arguments_so_far == {"a": []}


FRAGMENTS = st.sampled_from(
    ['{"a": [', "1", "2, ", '"x', 'y", ', "[", "]", "{", '"b": ', "}", "\\u00", "\ud83d", "e9"]
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 30), st.lists(FRAGMENTS, min_size=1, max_size=5), st.integers(1, 70), st.booleans()
        ),
        max_size=8,
    ),
    st.lists(st.integers(0, 30), max_size=8),
)
@example(
    [(0, ["1", "2, "], 63, False), (1, ["1"], 1, False), (1, ["["], 1, False)], [2, 3]
)  # two behind a full leaf
def test_whichever_branch_is_read_in_whatever_order_it_shows_its_own_arguments(
    grown: list[tuple[int, list[str], int, bool]], read: list[int]
) -> None:
    stem = rd.ToolCall(call_id="c", name="f", arguments='{"": [')
    branches = [(stem, stem.arguments or "")]

    def check(call: rd.ToolCall, text: Any) -> None:
        assert call.arguments_so_far == rd.ToolCall(arguments=text).arguments_so_far

    for which, fragments, times, at_each_fragment in grown:
        call, text = branches[which % len(branches)]
        for n in range(times):  # beyond the 64 pieces after which a growing text is sealed
            fragment = fragments[n % len(fragments)]
            call, text = call.merge(rd.ToolCall(arguments=fragment)), text + fragment  # type: ignore[operator]
            if at_each_fragment:
                check(call, text)
        branches.append((call, text))
    for which in [*read, *range(len(branches)), *reversed(range(len(branches)))]:
        check(*branches[which % len(branches)])


def test_reading_a_preview_costs_what_came_since_however_long_the_text() -> None:
    fold = rd.core.BlockFold(rd.events.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "f"}))

    def grow(piece: str) -> Any:
        call: Any = fold.step(rd.events.ToolCallDelta(0, piece))
        return call.arguments_so_far

    grow('{"text": "' + "x" * 400_000 + '", "more": {')
    tracemalloc.start()
    try:
        for n in range(50):
            shown = grow(f'"{n}": {n}, ')
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(shown["text"]), len(shown["more"])) == (400_000, 50)
    assert peak < 100_000  # not the text once more


def test_merging_parts() -> None:
    first = rd.ContentPart("text", "a", {"s": "x", "n": 1}, [{"title": "A"}], _key=5, _open=True)
    both = first.merge(rd.ContentPart("text", "b", {"s": "y", "n": 2, "m": 3}, [{"title": "A"}]))
    assert both == rd.ContentPart("text", "ab", {"s": "xy", "n": 2, "m": 3}, [{"title": "A"}, {"title": "A"}])
    assert (both.key, both.open) == (5, True)
    assert first.merge(rd.ContentPart("reasoning", "b", {"m": 3})) == rd.ContentPart(
        "text", "a", {"s": "x", "n": 1, "m": 3}, [{"title": "A"}]
    )
    assert rd.ContentPart("text").merge(rd.ContentPart("text", "b")).text == "b"
    assert rd.ContentPart("text", "a").merge(rd.ContentPart("text")).text == "a"
    assert first.text == "a"


def test_merging_calls() -> None:
    open_call = rd.ToolCall(call_id="c", name="f", arguments='{"a"', display_text="Doing", _key=1, _open=True)
    assert open_call.merge(rd.ToolCall()) == open_call
    more = open_call.merge(
        rd.ToolCall(call_id="d", name="f", arguments=": 1}", display_text="", metadata={"m": 1})
    )
    assert more == rd.ToolCall(
        call_id="d", name="f", arguments='{"a": 1}', display_text="Doing", metadata={"m": 1}
    )
    assert (more.key, more.open) == (1, True)
    assert open_call.merge(rd.ToolCall(arguments={"b": 2})).arguments == '{"a"'
    assert open_call.merge(rd.ToolCall(arguments={"b": 2}, status="complete")).arguments == {"b": 2}
    assert rd.ToolCall().merge(rd.ToolCall(arguments={"b": 2})).arguments == {"b": 2}
    assert rd.ToolCall(arguments={"b": 2}).merge(rd.ToolCall(arguments="x")).arguments == {"b": 2}
    assert rd.ToolCall(name="get_").merge(rd.ToolCall(name="weather")).name == "get_weather"
    done = rd.ToolCall(status="complete", result=rd.ToolResult("c", 1), error="e")
    assert done.merge(rd.ToolCall()) == done == rd.ToolCall().merge(done)
    with pytest.raises(rd.errors.MergeError, match="same index, not 0 with 1"):
        rd.ToolCall(index=0).merge(rd.ToolCall(index=1))


@pytest.mark.parametrize(
    ("known", "new", "after"),
    [
        (None, "executing", "executing"),
        ("identified", "executing", "executing"),
        ("executing", "identified", "executing"),
        ("identified", "awaiting_approval", "awaiting_approval"),
        ("awaiting_approval", "identified", "awaiting_approval"),
        ("awaiting_approval", "executing", "executing"),
        ("awaiting_approval", "failed", "failed"),
        ("executing", "awaiting_approval", "executing"),
        ("failed", "awaiting_approval", "failed"),
        ("paused", "awaiting_approval", "paused"),
        ("completed", "failed", "completed"),
        ("failed", "executing", "failed"),
        ("completed", None, "completed"),
        ("paused", "identified", "paused"),
        ("paused", "completed", "completed"),
        ("identified", "paused", "paused"),
        ("paused", "executing", "executing"),
        ("executing", "paused", "paused"),
        ("paused", "resumed", "resumed"),
    ],
)
def test_bad_input_56_an_execution_status_never_goes_back(
    known: str | None, new: str | None, after: str
) -> None:
    one, other = (rd.ToolCall(metadata={"execution_status": status}) for status in (known, new))
    assert one.merge(other).execution_status() == after


def test_how_they_print() -> None:
    assert repr(rd.ContentPart("text", "x" * 100)) == f"ContentPart('text', {'x' * 60!r}… (100 characters))"
    assert repr(rd.ContentPart("image", None, {"a": 1}, [{"title": "T"}], _key=0, _open=True)).startswith(
        "ContentPart('image', options={'a': 1}, citations=[Citation(cited_text=None, title='T'"
    )
    assert repr(rd.ToolCall(call_id="c", name="f", arguments={}, status="complete")) == (
        "ToolCall(call_id='c', name='f', arguments={}, status='complete')"
    )
    assert repr(
        rd.ToolCall(type="invalid_tool_call", arguments='{"a', index=0, error="cut", _key=("call", 0))
    ) == ("ToolCall(type='invalid_tool_call', arguments='{\"a', index=0, error='cut', key=('call', 0))")
    assert repr(rd.ToolCall(name="f", _open=True)) == "ToolCall(name='f', open=True)"


@given(st.dictionaries(
    st.sampled_from(["type", "text", "options", "citations", "key", "call_id", "name", "arguments", "status", "index",
                     "metadata", "result", "arguments_text", "open"]),
    clean_json | st.sampled_from(["text", "tool_call", "complete", "c"]),
))  # fmt: skip
def test_any_json_makes_a_block_or_an_error_of_ours(data: dict[str, Any]) -> None:
    for kind in (rd.ContentPart, rd.ToolCall):
        try:
            block = kind.from_dict(data)
        except rd.RxDeltaError:
            continue
        assert kind.from_dict(json.loads(json.dumps(block.to_dict()))) == block
        hash(block.key)
