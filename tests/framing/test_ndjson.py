"""NDJSON framing: one document a line, however the bytes are split."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st

from rxdelta.core import LimitExceededError, Limits, MalformedChunkError
from rxdelta.providers import NdjsonParser


def parse(*pieces: bytes | str, limits: Limits | None = None) -> list[Any]:
    parser = NdjsonParser(limits=limits or Limits())
    return [record for piece in pieces for record in parser.feed(piece)] + parser.close()


@pytest.mark.parametrize(
    ("body", "records"),
    [
        pytest.param("", [], id="an empty body"),
        pytest.param('{"a": 1}\n', [{"a": 1}], id="one line"),
        pytest.param('{"a": 1}\n{"b": 2}', [{"a": 1}, {"b": 2}], id="the last without its line end"),
        pytest.param('\n\r\n  \n{"a": 1}\n\n', [{"a": 1}], id="blank lines"),
        pytest.param('{"a": 1}\r\n{"b": 2}\r\n', [{"a": 1}, {"b": 2}], id="CRLF"),
        pytest.param('{"a":\r1}\n', [{"a": 1}], id="a CR alone is white space"),
        pytest.param('\ufeff{"a": 1}\n', [{"a": 1}], id="a byte order mark"),
        pytest.param(
            '"ü 👩‍👩‍👧\u2028\u0085"\n',
            ["ü 👩‍👩‍👧\u2028\u0085"],
            id="multibyte characters, no other line ends",
        ),
        pytest.param('[1]\nnull\n"a"\n', [[1], None, "a"], id="values that are no objects (bad input 40)"),
    ],
)
def test_one_document_a_line(body: str, records: list[Any]) -> None:
    """The same records whole, as text, cut in two anywhere, and byte by byte."""
    raw = body.encode()
    assert parse(raw) == parse(body) == parse(*body) == records
    assert parse(*(raw[at : at + 1] for at in range(len(raw)))) == records
    for at in range(len(raw) + 1):
        assert parse(raw[:at], raw[at:]) == records


def test_a_record_is_returned_by_the_call_that_brings_its_line_end() -> None:
    parser = NdjsonParser()
    assert parser.feed(b'{"a": 1}') == []
    assert parser.feed(b"\n2") == [{"a": 1}]
    assert parser.close() == [2]
    assert parser.close() == []


def test_bad_input_36_a_bad_byte_becomes_the_replacement_character() -> None:
    assert parse(b'"a\xff', b'b"\n') == ["a\ufffdb"]


def test_bad_input_38_a_line_without_end_is_refused_as_soon_as_it_is_too_long() -> None:
    parser = NdjsonParser(limits=Limits(line_bytes=20))
    for _ in range(20):
        assert parser.feed(b"1") == []
    with pytest.raises(LimitExceededError) as caught:
        parser.feed(b"1")
    assert (caught.value.limit, caught.value.maximum) == ("line_bytes", 20)


@pytest.mark.parametrize("line", ["<html>", "data: {}", '{"a": ', "{} {}", "9" * 5000])
def test_bad_input_39_what_is_no_json_is_malformed(line: str) -> None:
    parser = NdjsonParser()
    with pytest.raises(MalformedChunkError) as caught:
        parser.feed(f"\n{line}\n")
    error = caught.value
    assert (error.wire_format, error.path) == ("ndjson", "line 2")
    assert error.found == (line if len(line) <= 200 else f"{line[:199]}…")


def test_bad_input_27_nesting_is_bounded() -> None:
    with pytest.raises(LimitExceededError) as caught:
        parse("[" * 100_000)
    assert caught.value.limit == "json_depth"
    with pytest.raises(MalformedChunkError):
        parse("[" * 100_000, limits=Limits(json_depth=10**6))


def test_a_last_line_that_is_cut_off_is_malformed() -> None:
    parser = NdjsonParser()
    assert parser.feed(b'1\n{"a":') == [1]
    with pytest.raises(MalformedChunkError):
        parser.close()


def test_records_before_an_error_come_first_and_then_the_parser_refuses() -> None:
    parser = NdjsonParser()
    assert parser.feed("1\n2\nx\n3\n") == [1, 2]
    assert isinstance(parser.error, MalformedChunkError)
    for call in (lambda: parser.feed(b"4\n"), parser.close):
        with pytest.raises(MalformedChunkError) as caught:
            call()
        assert caught.value is parser.error


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.lists(st.tuples(values, st.booleans(), st.sampled_from(["\n", "\r\n", "\n\n", " \n\r\n"]))),
    st.lists(st.integers(0, 10**6), max_size=12),
)
def test_records_survive_any_encoding_and_any_split(
    lines: list[tuple[Any, bool, str]], cuts: list[int]
) -> None:
    body = "".join(json.dumps(value, ensure_ascii=ascii_) + end for value, ascii_, end in lines).encode()
    at = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    assert parse(*(body[start:end] for start, end in pairwise(at))) == [value for value, _, _ in lines]
