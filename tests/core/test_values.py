"""Citations, usage and results: what they check, how they add up, how they are written and read."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest
from core.strategies import clean_json, json_objects, results, usages
from hypothesis import given, strategies as st

import rxdelta as rd


@given(usages)
def test_a_usage_is_read_back_as_it_was_written(usage: rd.TokenUsage) -> None:
    written = json.dumps(usage.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    assert rd.TokenUsage.from_dict(json.loads(written)) == usage
    assert pickle.loads(pickle.dumps(usage)) == usage
    assert hash(pickle.loads(pickle.dumps(usage))) == hash(usage)


@given(results)
def test_a_result_is_read_back_as_it_was_written(result: rd.ToolResult) -> None:
    written = json.dumps(result.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    assert rd.ToolResult.from_dict(json.loads(written)) == result
    assert hash(result) == hash(rd.ToolResult.from_dict(json.loads(written)))


@given(
    st.builds(
        rd.Citation,
        *[st.none() | st.text("ab")] * 3,
        *[st.none() | st.integers(0, 9)] * 2,
        json_objects,
    )
)
def test_a_citation_is_read_back_as_it_was_written(citation: rd.Citation) -> None:
    written = json.dumps(citation.to_dict(), allow_nan=False, ensure_ascii=False).encode()
    assert rd.Citation.from_dict(json.loads(written)) == citation


def test_a_citation_keeps_a_providers_object_whole_if_it_says_more() -> None:
    sent = {"type": "char_location", "title": "T", "cited_text": "x", "start_index": -1, "url": 5}
    citation = rd.Citation.from_dict(sent)
    assert (citation.title, citation.cited_text, citation.url, citation.start_index) == ("T", "x", None, None)
    assert citation.raw == sent
    assert rd.Citation.from_dict({"title": "T"}).raw == {}
    assert rd.Citation.from_dict({"raw": {"a": 1}, "other": 2}).raw == {"raw": {"a": 1}, "other": 2}


@pytest.mark.parametrize(
    ("make", "fields"),
    [
        (
            lambda: rd.TokenUsage(-1, "x"),
            "input_tokens: must be greater than or equal to 0; output_tokens: must be a whole",
        ),
        (lambda: rd.TokenUsage(True), "input_tokens: must be a whole number (got input_tokens=True)"),
        (lambda: rd.TokenUsage(1.0), "input_tokens: must be a whole number"),
        (lambda: rd.TokenUsage(2**63), "input_tokens: is too large to be true"),
        (lambda: rd.TokenUsage(raw=[1]), "raw: must be a mapping (got raw=[1])"),
        (lambda: rd.TokenUsage(cumulative="yes"), "cumulative: must be True or False"),
        (lambda: rd.TokenUsage.from_dict({"input_tokens": "-3"}), "input_tokens: must be a whole number"),
        (lambda: rd.TokenUsage.from_dict({"input_tokens": "9" * 30}), "input_tokens: must be a whole number"),
        (
            lambda: rd.Citation(5, [], None, -1, 1.5),
            "cited_text: must be a string; title: must be a string; start_index",
        ),
        (
            lambda: rd.ToolResult(call_id=1, is_error=0),
            "call_id: must be a string; is_error: must be True or False",
        ),
        (lambda: rd.ToolResult(duration=-1), "duration: must be a number of seconds"),
        (lambda: rd.ToolResult(duration=float("inf")), "duration: must be a number of seconds"),
        (lambda: rd.ToolResult(duration=float("nan")), "duration: must be a number of seconds"),
        (lambda: rd.ToolResult(duration=True), "duration: must be a number of seconds"),
        (lambda: rd.ToolResult(content={1}), "content: is a set, not a JSON value"),
    ],
)
def test_what_cannot_be_is_refused_by_name_all_at_once(make: Any, fields: str) -> None:
    with pytest.raises(rd.InvalidValueError) as caught:
        make()
    assert fields in str(caught.value)
    assert caught.value.field == fields.partition(":")[0]


def test_lone_surrogates_are_replaced_everywhere() -> None:
    half = "\ud83d"
    assert rd.Citation(half, half, half) == rd.Citation("\ufffd", "\ufffd", "\ufffd")
    assert rd.ToolResult(half, {half: [half]}) == rd.ToolResult("\ufffd", {"\ufffd": ["\ufffd"]})
    assert rd.TokenUsage(raw={half: half}).raw == {"\ufffd": "\ufffd"}


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ((1, 2), (10, 20), (11, 22)),
        ((None, 2), (10, None), (10, 2)),
        ((None, None), (None, None), (0, 0)),
        ((1, 1, {"a": 1, "b": 2.5, "c": "x", "d": True}), (1, 1, {"a": 2, "b": 1, "c": "y", "d": True}),
         (2, 2, {"a": 3, "b": 3.5, "c": "y", "d": True})),
        ((1, 1, {"in": {"a": 1}}), (1, 1, {"in": {"b": 1}}), (2, 2, {"in": {"b": 1}})),
        ((1, 1), (5, 6, {"a": 1}, True), (5, 6, {"a": 1}, True)),
        ((5, 6, {"a": 1}, True), (1, 1, {"a": 1}), (6, 7, {"a": 2})),
        ((1, 1, {"a": 1e308}), (1, 1, {"a": 1e308}), (2, 2, {"a": None})),
    ],
)  # fmt: skip
def test_adding_usage(left: Any, right: Any, both: Any) -> None:
    assert rd.TokenUsage(*left).add(rd.TokenUsage(*right)) == rd.TokenUsage(*both)


def test_how_they_print() -> None:
    assert repr(rd.TokenUsage()) == "TokenUsage()"
    assert repr(rd.TokenUsage(0, 2, {"a": 1}, True)) == (
        "TokenUsage(input_tokens=0, output_tokens=2, raw={'a': 1}, cumulative=True)"
    )


@given(clean_json)
def test_any_json_makes_a_value_or_an_error_of_ours(data: object) -> None:
    for read in (rd.TokenUsage.from_dict, rd.ToolResult.from_dict, rd.Citation.from_dict):
        try:
            read(
                {
                    "input_tokens": data,
                    "content": data,
                    "call_id": data,
                    "raw": data,
                    "url": data,
                    "duration": data,
                }
            )
        except rd.RxDeltaError:
            continue
