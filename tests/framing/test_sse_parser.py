"""SSE framing: the WHATWG's rules, what providers send beyond them, and bodies that are no event stream."""

from __future__ import annotations

import json
import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.cost import lines_run
from support.security_page import says

from rxdelta.core import LimitExceededError, Limits, MalformedChunkError, RxDeltaError
from rxdelta.providers import SseParser
from rxdelta.wire import DONE


def parse(*pieces: bytes | str, limits: Limits | None = None) -> list[Any]:
    """The records without `DONE`, whose place depends on the pieces."""
    parser = SseParser(limits=limits or Limits())
    found = [record for piece in pieces for record in parser.feed(piece)] + parser.close()
    return [record for record in found if record is not DONE]


def outcome(*pieces: bytes | str, limits: Limits | None = None) -> tuple[list[Any], RxDeltaError | None]:
    """The records without `DONE`, and the error that parsing ended with, whichever call brought it."""
    parser, records = SseParser(limits=limits or Limits()), list[Any]()
    try:
        for piece in pieces:
            records += parser.feed(piece)
        records += parser.close()
        error = parser.error
    except RxDeltaError as raised:
        error = raised
    return [record for record in records if record is not DONE], error


def in_bytes(body: bytes) -> list[bytes]:
    return [body[at : at + 1] for at in range(len(body))]


@pytest.mark.parametrize(
    ("body", "records"),
    [
        pytest.param("", [], id="an empty body"),
        pytest.param("\n\n\n", [], id="blank lines alone"),
        pytest.param('data: {"a": 1}\n\n', [{"a": 1}], id="one event"),
        pytest.param('data: {"a": 1}\n\ndata: {"b": 2}\n\n', [{"a": 1}, {"b": 2}], id="two events"),
        pytest.param('data:{"a": 1}\n\n', [{"a": 1}], id="no space after the colon"),
        pytest.param('data: "a"\ndata\n\n', ["a"], id="a field without a colon"),
        pytest.param('\ufeffdata: {"a": 1}\n\n', [{"a": 1}], id="a byte order mark"),
        pytest.param(
            'data: {"a": 1}\n\n\ufeffdata: {"b": 2}\n\n', [{"a": 1}], id="one later is part of a name"
        ),
        pytest.param('data: {"a":\ndata: 1}\n\n', [{"a": 1}], id="data over two lines"),
        pytest.param('data: {"a":\r\ndata: 1}\r\n\r\n', [{"a": 1}], id="data over two lines, CRLF"),
        pytest.param("data: 1\ndata:\ndata: \n\n", [1], id="empty lines of data"),
        pytest.param('data: {"a": 1}\r\n\r\ndata: 2\r\n\r\n', [{"a": 1}, 2], id="CRLF"),
        pytest.param('data: {"a": 1}\r\rdata: 2\r\r', [{"a": 1}, 2], id="CR"),
        pytest.param("data: 1\r\n\rdata: 2\n\r\ndata: 3\r\r\n", [1, 2, 3], id="a mix of line ends"),
        pytest.param('data: "a\u2028b\u0085c\x0b"\n\n', None, id="a control character in a string"),
        pytest.param('data: "a\u2028b\u0085c"\n\n', ["a\u2028b\u0085c"], id="no other line ends"),
        pytest.param(": hi\ndata: 1\n:\n: data: 3\n\n", [1], id="comments, also within an event"),
        pytest.param(
            ": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: 1\n\n", [1], id="keep-alives"
        ),
        pytest.param("id: 7\nretry: 10\nid\ndata: 1\n\n", [1], id="id and retry are ignored"),
        pytest.param("foo: bar\ndata: 1\nDATA: 2\n data: 3\nfoo\n\n", [1], id="unknown fields are ignored"),
        pytest.param("foo: bar\n\n", [], id="an unknown field alone"),
        pytest.param("event: error\n\n", [], id="an event without data"),
        pytest.param("event: error\ndata\ndata: \n\n", [], id="an event with empty data"),
        pytest.param("  \n\ndata: 1\n\n   \ndata: 2\n\n", [1, 2], id="a line of blanks is an unknown field"),
        pytest.param('data: {"a": 1}', [{"a": 1}], id="the last event without its blank line"),
        pytest.param('data: {"a": 1}\r', [{"a": 1}], id="the last event with its line end only"),
        pytest.param('data: {"a": 1, "a": 2}\n\n', [{"a": 2}], id="of equal keys the last wins"),
    ],
)
def test_framing_is_that_of_the_whatwg(body: str, records: list[Any] | None) -> None:
    """Each rule gives the same records whole, as text, cut in two anywhere, and byte by byte."""
    raw = body.encode()
    expected = outcome(raw)[0] if records is None else records
    assert (outcome(raw)[1] is None) == (records is not None)
    assert outcome(raw)[0] == outcome(body)[0] == outcome(*in_bytes(raw))[0] == outcome(*body)[0] == expected
    for at in range(len(raw) + 1):
        assert outcome(raw[:at], b"", raw[at:])[0] == expected


MIXED = (
    '\ufeff: OPENROUTER PROCESSING\r\n\r\nevent: message_start\r\ndata: {"type": "message_start"}\r\n\r\n'
    'event: thread.run\rdata: {"text": "ünï 👩‍👩‍👧 漢"}\r\rid: 1\ndata: {"a":\r\ndata:  [1, 2]\ndata: }\r\r\n'
    '{\r\n  "error": {\n    "message": "ü }\\" {"\r  }\n}\n\ndata: [DONE]\n\ndata: [DONE]\n\ndata: 7'
).encode()
MIXED_RECORDS = [
    {"type": "message_start"},
    {"text": "ünï 👩‍👩‍👧 漢", "_event": "thread.run"},
    {"a": [1, 2]},
    {"error": {"message": 'ü }" {'}},
    7,
]


def test_a_body_cut_anywhere_gives_the_same_records() -> None:
    """In two at every byte, and one byte at a time: also within a character, a CRLF, the byte order mark."""
    assert parse(MIXED) == parse(MIXED.decode()) == parse(*in_bytes(MIXED)) == MIXED_RECORDS
    for at in range(len(MIXED) + 1):
        assert parse(MIXED[:at], MIXED[at:]) == MIXED_RECORDS


def test_a_record_is_returned_by_the_call_that_brings_its_blank_line() -> None:
    """A CR ends a line without waiting for the LF that may follow."""
    parser = SseParser()
    assert parser.feed(b"data: 1\n") == []
    assert parser.feed(b"\n") == [1]
    assert parser.feed(b"data: 2\r\n\r") == [2]
    assert parser.feed(b"\ndata: 3\n") == []
    assert parser.close() == [3]
    assert parser.close() == []


def test_text_and_bytes_may_be_mixed() -> None:
    assert parse('data: "a', "ü".encode()[:1], "ü".encode()[1:], 'b"\n', b"\n") == ["aüb"]
    assert parse(bytearray(b"data: 1\n\n")) == [1]  # type: ignore[arg-type, unused-ignore]


def test_an_event_name_is_kept_where_the_record_does_not_say_it() -> None:
    """As in the recorded streams; `message` is the name of an event without one."""
    assert parse('event: error\ndata: {"error": {}}\n\n') == [{"error": {}, "_event": "error"}]
    assert parse('data: {"a": 1}\nevent:error\n\ndata: {}\n\n') == [{"a": 1, "_event": "error"}, {}]
    assert parse('event: a\nevent: b\ndata: {"c": 1}\n\n') == [{"c": 1, "_event": "b"}]
    for record in ({"type": "ping"}, {"event": "x"}):
        assert parse(f"event: ping\ndata: {json.dumps(record)}\n\n") == [record]
    assert parse("event: message\ndata: {}\n\nevent:\ndata: {}\n\n") == [{}, {}]
    assert parse("event: ping\ndata: [1]\n\n") == [[1]]


def test_an_event_without_data_takes_its_name_with_it() -> None:
    assert parse("event: ping\n\ndata: {}\n\n") == [{}]


@pytest.mark.parametrize(
    "body", ["data: 1\n\n", "data: [DONE]\n\n" * 2 + "data: 1\n\n", "data:[DONE] \n\ndata: 1"]
)
def test_bad_input_34_done_is_no_record_wherever_it_comes(body: str) -> None:
    """Missing, twice, before the last record, in white space."""
    assert parse(body) == [1]


@pytest.mark.parametrize(
    "body", ["data: 1\n\ndata: [DONE]\n\n", "data: [DONE]\n\n" * 2 + "data: 1\n\n", "data:[DONE] \n\ndata: 1"]
)
def test_done_is_said_once_and_last(body: str) -> None:
    parser = SseParser()
    assert [*parser.feed(body), *parser.close()] == [1, DONE]


def test_done_does_not_wait_for_the_end_of_a_connection_that_stays_open() -> None:
    parser = SseParser()
    assert [parser.feed(piece) for piece in in_bytes(b"data: [DONE]\n\n")][-1] == [DONE]
    assert parser.feed("data: [DONE]\n\n: still here\n\n") == []
    assert parser.feed("data: 1\n\ndata: [DONE]\n\n") == [1, DONE]
    assert parser.close() == []


def test_white_space_is_not_done() -> None:
    assert SseParser().feed("data:  \n\n") == []


def test_bad_input_36_a_character_split_between_reads_is_whole_again() -> None:
    assert parse(*in_bytes('data: "👩‍👩‍👧 ü"\n\n'.encode())) == ["👩‍👩‍👧 ü"]


def test_bad_input_36_a_bad_byte_becomes_the_replacement_character() -> None:
    for pieces in ([b'data: "a\xffb"\n\n'], in_bytes(b'data: "a\xffb"\n\n')):
        assert parse(*pieces) == ["a\ufffdb"]
    assert parse(b'data: "a\xe2\x82', b'"\n\n') == ["a\ufffd"]


def test_bad_input_24_a_lone_surrogate_in_text_becomes_the_replacement_character() -> None:
    assert parse('data: "a\ud800b"\n\n') == ["a\ufffdb"]
    assert parse('data: "\ud83d\ude00"\n\n') == ["😀"]


@says("bytes of a line")
def test_bad_input_38_a_line_without_end_is_refused_as_soon_as_it_is_too_long() -> None:
    """Whole or byte by byte, and as bytes, not characters."""
    limits = Limits(line_bytes=20)
    assert parse(b'data: "' + b"a" * 12 + b'"\n\n', limits=limits) == ["a" * 12]
    for pieces in ([b"data: " + b"a" * 1000], [b"data: " + b"a" * 15 + b"\n\n"], ["data: " + "ü" * 8]):
        records, error = outcome(*pieces, limits=limits)
        assert isinstance(error, LimitExceededError)
        assert (records, error.limit, error.maximum) == ([], "line_bytes", 20)
    parser = SseParser(limits=limits)
    for _ in range(20):
        assert parser.feed(b"a") == []
    with pytest.raises(LimitExceededError):
        parser.feed(b"a")


@says("characters of the data of one SSE event")
def test_bad_input_38_so_is_an_event_of_many_lines() -> None:
    limits = Limits(block_chars=20)
    assert parse("data: [1,\n" + "data: 2,\n" * 4 + "data: 3]\n\n", limits=limits) == [[1, 2, 2, 2, 2, 3]]
    for body in ("data: 2,\n" * 7, "data\n" * 21, "[\n" + "2,\n" * 7):
        records, error = outcome(body, limits=limits)
        assert isinstance(error, LimitExceededError)
        assert (records, error.limit) == ([], "block_chars")


def test_the_size_of_one_event_does_not_count_for_the_next() -> None:
    assert parse('data: "aaaaaaaa"\n\n' * 9, limits=Limits(block_chars=11)) == ["aaaaaaaa"] * 9


def quoted(text: str) -> str:
    shown = text.replace("\x01", "␁")
    return shown if len(shown) <= 200 else f"{shown[:199]}…"


@pytest.mark.parametrize(
    "first",
    [
        "<!DOCTYPE html>",
        "  <html>",
        "upstream connect error or disconnect/reset before headers. reset reason: overflow",
        "HTTP/1.1 502 Bad Gateway",
        "x" * 100 + " " * 200,
    ],
)
def test_bad_input_39_a_page_in_place_of_events_is_quoted(first: str) -> None:
    """At once, not when the body ends."""
    parser = SseParser()
    with pytest.raises(MalformedChunkError) as caught:
        parser.feed(f"\r\n{first}\r\n<body>502</body>")
    error = caught.value
    assert (error.wire_format, error.path, error.found) == ("sse", "line 2", quoted(first))
    assert repr(quoted(first)) in str(error)
    assert "event stream" in str(error)


def test_bad_input_39_a_word_alone_is_not_an_empty_stream() -> None:
    """It is a legal field without a value; only the end of the body shows that there was nothing else."""
    parser = SseParser()
    assert parser.feed(b"\nUnauthorized\nreally\n") == []
    with pytest.raises(MalformedChunkError, match=r"line 2 .* found 'Unauthorized'"):
        parser.close()
    assert parse("Unauthorized\n: but a stream\n") == []


def test_bad_input_39_once_an_event_stream_always_one() -> None:
    """Behind any valid line the WHATWG's rule holds: what is unknown is ignored."""
    for line in ("data: 1", "event: x", "id: 1", "retry", ": hi"):
        assert parse(f"{line}\n<html>\n\n") == parse(f"{line}\n\n")


@pytest.mark.parametrize("indent", [None, 2])
def test_bad_input_39_a_json_body_in_place_of_events_is_a_record(indent: int | None) -> None:
    error = {"error": {"code": 429, "message": 'a "}" and \\"]"', "details": [{"a": []}, "[{"]}}
    body = json.dumps(error, indent=indent)
    for text in (body, f"{body}\n", f"\n\n{body}\r\n", f" {body}"):
        assert parse(text) == parse(*in_bytes(text.encode())) == [error]
    assert parse(json.dumps([error], indent=indent)) == [[error]]


def test_a_json_document_amid_events_is_a_record() -> None:
    """Gemini's error in a running stream. It is returned with its last line."""
    parser = SseParser()
    assert parser.feed('data: {"a": 1}\n\n{\n  "error": {\n\n    "code": 503\n  }\n') == [{"a": 1}]
    assert parser.feed("}\n") == [{"error": {"code": 503}}]
    assert parser.feed("data: 2\n\n") == [2]
    assert parse('data: 1\n{"a": 2}\n{"a": 3}\n') == [1, {"a": 2}, {"a": 3}]


@pytest.mark.parametrize("rest", ["", "data: 1\n\n", "event: x\n"])
def test_a_json_document_that_is_cut_off_is_malformed(rest: str) -> None:
    records, error = outcome('data: 1\n\n{\n  "error": {\n', rest)
    assert records == [1]
    assert isinstance(error, MalformedChunkError)
    assert (error.path, error.found) == ("line 3", '{␊  "error": {')


@pytest.mark.parametrize("body", ["{}}\n", "[DONE\n]\n", "[1] x\n", '["a\n]"]\n'])
def test_a_document_that_only_looks_like_json_is_malformed_where_it_ends(body: str) -> None:
    with pytest.raises(MalformedChunkError):
        SseParser().feed(body)


@pytest.mark.parametrize("value", [[1, "a"], "text", None, True, 1.5])
def test_bad_input_40_a_value_that_is_no_object_is_returned_as_it_is(value: object) -> None:
    """Decoders refuse it, naming their format."""
    assert parse(f"data: {json.dumps(value)}\n\n") == [value]


@pytest.mark.parametrize(
    "data", ['{"a": ', "{'a': 1}", "a" * 300, '{"a": 1} {"b": 2}', '"\x01"', "1" * 5000, "[DONE] 1", "  x"]
)
def test_data_that_is_no_json_is_malformed(data: str) -> None:
    """The error names format and line, quotes no more than 200 characters, and survives pickling."""
    with pytest.raises(MalformedChunkError) as caught:
        parse(f": hi\n\ndata: {data}\n\n")
    error = caught.value
    assert (error.wire_format, error.path, error.found) == ("sse", "line 3", quoted(data))
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.found) == (str(error), error.found)


@pytest.mark.parametrize(
    "body", ["upstream error: token=CANARY-1", 'data: {"api_key": "CANARY-1"', "data: password=CANARY-1"]
)
def test_bad_input_39_a_secret_in_a_body_is_not_quoted(body: str) -> None:
    with pytest.raises(MalformedChunkError) as caught:
        parse(f"{body}\n\n")
    assert "CANARY" not in f"{caught.value} {caught.value.found} {caught.value!r}"
    assert "[redacted]" in caught.value.found


def test_bad_input_27_nesting_is_bounded() -> None:
    """By the limit; without one, by what Python can parse. Brackets in strings don't nest."""
    deep = "[" * 100_000 + "]" * 100_000
    for body in (f"data: {deep}\n\n", f"{deep}\n", f"data: {deep[:100_000]}\n\n"):
        records, error = outcome(body)
        assert isinstance(error, LimitExceededError)
        assert (records, error.limit) == ([], "json_depth")
    assert isinstance(
        outcome(f"data: {deep[:-1]}\n\n", limits=Limits(json_depth=10**6))[1], MalformedChunkError
    )
    flat = {"a": ["[{" * 500, '\\"[' * 500], "b": [[]] * 500}
    assert parse(f"data: {json.dumps(flat)}\n\n", limits=Limits(json_depth=3)) == [flat]
    assert isinstance(outcome(json.dumps(flat), limits=Limits(json_depth=2))[1], LimitExceededError)


def test_records_before_an_error_come_first() -> None:
    """The call that meets the error returns them; `error` has it, and the next call raises it."""
    parser = SseParser()
    assert parser.feed("data: 1\n\ndata: 2\n{bad}\n\ndata: 3\n\n") == [1, 2]
    assert isinstance(parser.error, MalformedChunkError)
    for call in (lambda: parser.feed(b"data: 4\n\n"), parser.close):
        with pytest.raises(MalformedChunkError) as caught:
            call()
        assert caught.value is parser.error


def test_after_an_error_the_parser_refuses() -> None:
    parser = SseParser()
    with pytest.raises(MalformedChunkError) as first:
        parser.feed(b"data: x\n\n")
    for call in (lambda: parser.feed(b"data: 1\n\n"), lambda: parser.feed(b""), parser.close):
        with pytest.raises(MalformedChunkError) as again:
            call()
        assert again.value is first.value


@pytest.mark.parametrize("item", [{"a": 1}, None, 5, ["data: 1"]])
def test_what_is_neither_bytes_nor_text_is_malformed(item: Any) -> None:
    """Such as chunks that somebody has parsed already."""
    with pytest.raises(MalformedChunkError, match="expected bytes or str"):
        SseParser().feed(item)


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        "[NaN, -Infinity, 1e999, -0.0]",
        "1" * 4000,
        " [1,\t2] ",
        '"\\ud83d"',
        '{"a":1}\t',
        "0",
    ],
)
def test_a_record_is_what_the_standard_library_reads(text: str) -> None:
    assert repr(parse(f"data: {text}\n\n")) == repr([json.loads(text)])
    assert repr(parse(f"data:{text}\r\ndata:\r\n\r\n")) == repr([json.loads(text)])


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_an_event_costs_a_few_lines_of_python(end: str) -> None:
    """Counted with those of the JSON module: twice as many once were."""
    event = f'data: {{"a": 1}}{end}{end}'.encode()
    parser, count = SseParser(), 200
    parser.feed(event)
    assert lines_run(lambda: parser.feed(event * count)) <= 40 * count
    assert lines_run(lambda: [parser.feed(event) for _ in range(count)]) <= 65 * count


def test_parsers_share_nothing() -> None:
    one, other = SseParser(), SseParser()
    one.feed(b"data: [1")
    assert other.feed(b"data: 2\n\n") == [2]
    assert one.feed(b"]\n\n") == [[1]]


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
records_ = st.dictionaries(
    st.text().filter(lambda key: key not in ("type", "event", "_event")), values, max_size=4
)
noise = st.sampled_from(
    [":", ": PROCESSING", "id: 1", "id", "retry: 5", "foo: bar", "event", "event: message"]
)


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[Any], bytes]:
    """Records, and one of the many ways to send them."""
    expected, lines = list[Any](), [":"]
    for record in draw(st.lists(records_, max_size=5)):
        name = draw(st.sampled_from(["", "error", "thread.run"]))
        expected.append(record | {"_event": name} if name else record)
        text = json.dumps(
            record, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 0, 2]))
        )
        if name or draw(st.booleans()):
            space = draw(st.sampled_from(["", " "]))
            lines += draw(st.lists(noise, max_size=2))
            lines += [f"data:{space}{line}" for line in text.split("\n")]
            lines += [f"event:{space}{name}"] * bool(name)
        else:
            lines += ["", *text.split("\n")]
        lines += ["", *draw(st.lists(st.sampled_from(["", "data: [DONE]\n", ": hi"]), max_size=2))]
    body, end = "\ufeff" * draw(st.booleans()), ""
    for line in "\n".join(lines).split("\n"):
        # A LF right behind a CR would be the same line end, and swallow a blank line.
        end = draw(st.sampled_from(["\r", "\r\n"] if end == "\r" and not line else ["\r", "\n", "\r\n"]))
        body += line + end
    return expected, body.encode()


def pieces_of(body: bytes, cuts: list[int]) -> list[bytes]:
    at = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    return [body[start:end] for start, end in pairwise(at)]


cuts_ = st.lists(st.integers(0, 10**6), max_size=12)


@given(bodies(), cuts_)
def test_records_survive_any_encoding_and_any_split(body: tuple[list[Any], bytes], cuts: list[int]) -> None:
    expected, raw = body
    assert parse(*pieces_of(raw, cuts)) == expected


TOKENS = (
    r'data:|data| |\r|\n|\n\n|:|event: x|{|}|[|]|"|\\|1|,|[DONE]|\xff|\xef\xbb\xbf|\xc3\xbc|<html>|word|id'
)
hostile = st.lists(
    st.sampled_from(
        [token.encode().decode("unicode_escape").encode("latin-1") for token in TOKENS.split("|")]
    ),
    max_size=40,
).map(b"".join)


@given(hostile | st.binary(max_size=60), cuts_)
def test_any_bytes_give_records_or_one_of_our_errors_alike_for_any_split(
    body: bytes, cuts: list[int]
) -> None:
    limits = Limits(line_bytes=30, block_chars=50, json_depth=3)
    records, error = outcome(body, limits=limits)
    split, same = outcome(*pieces_of(body, cuts), limits=limits)
    assert split == records
    assert (type(same), str(same)) == (type(error), str(error))
