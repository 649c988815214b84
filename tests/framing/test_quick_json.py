"""`loads=`: a quick parser of JSON makes no difference but in time. The judge is `json.loads`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest
import reactivex as rx
from hypothesis import example, given, strategies as st
from support.cost import lines_run

import rxdelta as rd
from rxdelta.core import InvalidValueError, LimitExceededError, Limits, MalformedChunkError, RxDeltaError
from rxdelta.providers import AutoParser, NdjsonParser, SseParser

Loads = Callable[[str], Any]


def broken(error: type[Exception]) -> Loads:
    def loads(text: str) -> Any:
        raise error(text)

    return loads


def loads_of(package: str, path: str) -> Any:
    """The function of a package, if that is installed."""
    if find_spec(package) is None:
        return pytest.param(None, id=package, marks=pytest.mark.skip(f"needs {package}"))
    *modules, name = path.split(".")
    return pytest.param(getattr(import_module(".".join(modules)), name), id=package)


QUICK = pytest.mark.parametrize(
    "loads",
    [
        pytest.param(None, id="by default"),
        loads_of("orjson", "orjson.loads"),
        loads_of("msgspec", "msgspec.json.decode"),
        pytest.param(broken(ValueError), id="broken"),
    ],
)


def outcome(make: Callable[..., Any], body: str, loads: Loads | None, limits: Limits) -> tuple[str, ...]:
    """What comes of a body. `repr` tells types apart, and -0.0 from 0.0, and shows the order of keys."""
    parser, records = make(limits=limits, loads=loads), list[Any]()
    try:
        records += parser.feed(body.encode())
        records += parser.close()
        error = parser.error if make is not AutoParser else None
    except RxDeltaError as raised:
        error = raised
    return (*map(repr, records), type(error).__name__, str(error), getattr(error, "found", ""))


def same(text: str, loads: Loads | None, limits: Limits = Limits()) -> None:  # noqa: B008
    for make, body in (
        (SseParser, f"data: {text}\n\n"),
        (SseParser, f"event: x\ndata:{text}\r\ndata:\r\n\r\n"),
        (NdjsonParser, f"{text}\n"),
        (AutoParser, f"data: {text}\n\n"),
    ):
        assert outcome(make, body, loads, limits) == outcome(make, body, json.loads, limits)


def judged(text: str) -> None:
    """By the standard library itself: the value, or that there is none."""
    try:
        expected = repr(json.loads(text))
    except ValueError:
        expected = "MalformedChunkError"
    assert outcome(NdjsonParser, f"{text}\n", None, Limits())[0] == expected


HARD = """
0 -0 -0.0 1.0 1e5 1E+5 1e-5 0e0 -0e-0 5e-324 2e-324 1e308 1.7976931348623159e308 1e309 1e999 -1e999 NaN Infinity -Infinity
9007199254740993 9007199254740993.0 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
18446744073709551615 18446744073709551616 18446744073709551617 -18446744073709551616 -19710599780832328910
123456789012345678 1234567890123456789 12345678901234567890123456789012345678901234567890 0.1000000000000000055511151231257827
4e4096148474 1e-4096148474 0e99999999999 01 -01 1. .5 +1 - 1e 1.e1 0x1 1_0 １ nan inf nul tru truee
"\\ud800" "\\ude00" "\\ude00\\ud83d" "\\ud83d\\ude00" "\\ud83d\\ud83d\\ude00" "\\ud800\\u0041" "\\u0000" "\\u12" "\\u+123" "\\a" "\\/"
{"\\ud800":1} {"a":1,"b":2,"a":3} {"a":1,"\\u0061":2} {"":{"":[]}} {"a":1,} [1,] [,] {"a"} {1:2} {'a':1} [1}2] {}{} {}x //
"\x7f" "\x01" "\x00" {}\x00 \ufeff{} {}\ufeff "é😀" "\uffff" [] {} [[]] [{}] "" null true false [DONE] "[DONE]"
""".split()  # noqa: SIM905
LONG = [
    *(sign + "1" * digits for digits in (17, 18, 19, 20, 400, 4300, 4301, 5000) for sign in ("", "-")),
    "[1, " + "7" * 19 + "]",
    "1" + "0" * 9_700 + "e-100000",  # msgspec 0.22 reads 1e-300
    "0." + "0" * 9_999 + "1e100000",
    "1" + "0" * 304 + "." + "0" * 740 + "696",
    "0.1" + "0" * 500 + "1",
    '"' + "a" * 100_000 + '"',
    json.dumps({"a": ["[{" * 500, '\\"[' * 500], "b": [[]] * 500}),
    json.dumps({f"key {number}": number / 7 for number in range(2_000)}),
    *("[" * depth + "]" * depth for depth in (3, 4, 5, 199, 200, 201, 1_000, 1_025)),
    *('{"a":' * depth for depth in (3, 5, 200, 201)),
    *("[" * depth for depth in (3, 5, 200, 201, 1_025)),
    '{"a": 1',
    '"\u2028"',
    "\xa0{}",
    "  ",
    " \t{} ",
    '{"a":\r1}',
    "1 2",
]


@QUICK
@pytest.mark.parametrize("limits", [Limits(), Limits(json_depth=4), Limits(json_depth=0)])
def test_hard_texts_are_read_alike(loads: Loads | None, limits: Limits) -> None:
    for text in [*HARD, *LONG]:
        same(text, loads, limits)
        same(f'{{"a": [{text}, {text}]}}', loads, limits)


def test_hard_texts_are_read_as_by_the_standard_library() -> None:
    for text in [*HARD, *LONG[:22]]:
        if text != "\ufeff{}":  # at the start of a body, the mark is no part of it
            judged(text)


@QUICK
def test_a_document_deeper_than_quick_parsers_follow_is_left_to_json(loads: Loads | None) -> None:
    """Where each of them gives up, and Python's own depth, differ."""
    deep = Limits(json_depth=10**6)
    for depth in (150, 250, 20_000):
        for text in ("[" * depth + "]" * depth, "[" * depth, '{"a":' * depth + "1" + "}" * depth):
            same(text, loads, deep)


@QUICK
def test_the_digits_that_a_process_allows_hold_for_all(loads: Loads | None) -> None:
    before = sys.get_int_max_str_digits()
    try:
        for most in (640, 0):
            sys.set_int_max_str_digits(most)
            for digits in (640, 641, 5_000):
                same("1" * digits, loads)
    finally:
        sys.set_int_max_str_digits(before)


digits_ = st.text("0123456789", min_size=1, max_size=25) | st.sampled_from(
    ["0" * 20, "9" * 18, "9" * 19, "0"]
)
numbers = st.builds(
    "{}{}{}{}".format,
    st.sampled_from(["", "-"]),
    st.integers(0, 10**25).map(str) | digits_,
    digits_.map(".{}".format) | st.just(""),
    st.builds("{}{}{}".format, st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), digits_) | st.just(""),
)
floats = st.floats().map(repr)
strings = st.text(st.characters(codec="utf-8")).map(json.dumps) | st.text(
    st.sampled_from('\\"udD8e0/nab\x00\x1fé😀'), max_size=12
).map('"{}"'.format)
texts = st.recursive(
    numbers | floats | strings | st.sampled_from(["null", "true", "false", "NaN", "-Infinity"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(strings, inner), max_size=4).map(
            lambda items: f"{{{','.join(f'{key}:{value}' for key, value in items)}}}"
        )
    ),
    max_leaves=8,
)


@st.composite
def nearly_json(draw: st.DrawFn) -> str:
    """JSON, of which a part may be missing, doubled or replaced."""
    text = draw(texts)
    for _ in range(draw(st.integers(0, 2))):
        start, end = sorted((draw(st.integers(0, len(text))), draw(st.integers(0, len(text)))))
        text = (
            text[:start]
            + draw(st.sampled_from(["", text[start:end] * 2, *'{}[]",:\\e.- 0\x00\ufeff']))
            + text[end:]
        )
    return text.replace("\n", " ").replace("\r", " ")


@QUICK
@given(text=nearly_json() | st.text(st.sampled_from('{}[]",:\\ud8eE.-+ 01\x00é😀nultrefas'), max_size=30))
@example(text="[18446744073709551616]")
def test_any_text_is_read_alike(loads: Loads | None, text: str) -> None:
    same(text, loads)
    same(text, loads, Limits(json_depth=2))


@given(numbers)
def test_any_number_is_read_as_by_the_standard_library(text: str) -> None:
    judged(text)


def asked(texts: list[str]) -> Loads:
    def loads(text: str) -> Any:
        texts.append(text)
        return json.loads(text)

    return loads


def test_the_quick_parser_reads_each_document_once() -> None:
    texts: list[str] = []
    parser = SseParser(loads=asked(texts))
    parser.feed(b'data: {"a": 1}\n\ndata: [DONE]\n\ndata: {"b":\ndata: 2}\n\n{"c": "\xff"}\n')
    assert texts == ['{"a": 1}', '{"b":\n2}', '{"c": "\ufffd"}']


def test_a_number_that_may_be_rounded_is_not_left_to_it() -> None:
    texts: list[str] = []
    parser = NdjsonParser(loads=asked(texts))
    for before in range(20):
        for digits in (18, 19):
            parser.feed(" " * before + "1" * digits + "\n")
    assert [text.strip() for text in texts] == ["1" * 18] * 20


def test_a_nesting_that_not_every_parser_follows_is_not_left_to_it() -> None:
    texts: list[str] = []
    parser = NdjsonParser(loads=asked(texts), limits=Limits(json_depth=10**6))
    for depth in (200, 201, 400):
        parser.feed("[" * depth + "]" * depth + "\n")
    assert [*map(len, texts)] == [400]


def test_what_else_it_returns_is_the_users_choice() -> None:
    parser = NdjsonParser(loads=partial(json.loads, parse_float=Decimal))
    assert parser.feed('{"price": 0.1}\n') == [{"price": Decimal("0.1")}]


def test_what_is_no_exception_ends_the_program_as_everywhere() -> None:
    def loads(_: str) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        NdjsonParser(loads=loads).feed("1\n")


@pytest.mark.parametrize(
    "loads",
    [
        *map(broken, (KeyError, RecursionError, MemoryError, StopIteration, MalformedChunkError)),
        lambda: None,
    ],
)
def test_whatever_it_raises_json_has_the_last_word(loads: Any) -> None:
    for text in ('{"a": 1.5}', " [1] ", "NaN", '{"a"', "[" * 201):
        same(text, loads)


def test_a_quick_parser_saves_the_work_of_the_json_module() -> None:
    event = b'data: {"a": 1}\n\n' * 100
    slow, quick = SseParser(loads=json.loads), SseParser(loads=lambda _: {})
    assert lines_run(lambda: quick.feed(event)) < lines_run(lambda: slow.feed(event))


BODY = (
    b'data: {"id": "c1", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'
)


def test_the_doors_pass_it_on() -> None:
    texts: list[str] = []
    loads = asked(texts)
    chunks = rx.of(BODY).pipe(rd.parse_sse(loads=loads)).run()
    assert [chunks] == [rx.of(texts[0].encode()).pipe(rd.parse_ndjson(loads=loads)).run()]
    for events in (rd.decode("auto", loads=loads), rd.decode("auto", only="openai-chat", loads=loads)):
        assert rx.of(BODY).pipe(events, rd.scan_deltas(), rd.to_message()).run().text == "Hi"
    with rd.stream([BODY], "openai-chat", loads=loads) as reply:
        assert reply.result().text == "Hi"
    assert texts == [BODY[6:-2].decode()] * 5


@pytest.mark.parametrize(
    "act",
    [
        lambda wrong: rd.parse_sse(loads=wrong),
        lambda wrong: rd.parse_ndjson(loads=wrong),
        lambda wrong: rd.decode("auto", loads=wrong),
        lambda wrong: rd.stream([], loads=wrong),
        lambda wrong: SseParser(loads=wrong),
        lambda wrong: NdjsonParser(loads=wrong),
        lambda wrong: AutoParser(loads=wrong),
    ],
)
@pytest.mark.parametrize("wrong", ["orjson", 1, json])
def test_what_is_no_function_is_refused_at_once(act: Callable[[Any], object], wrong: object) -> None:
    with pytest.raises(
        InvalidValueError, match=r"loads: must be a function of JSON text, such as orjson\.loads"
    ):
        act(wrong)


def test_chunks_that_are_parsed_already_have_no_json() -> None:
    with pytest.raises(InvalidValueError, match="no option 'loads'"):
        rd.decode("openai-chat", loads=json.loads)


def test_deep_json_is_refused_before_a_quick_parser_sees_it() -> None:
    texts: list[str] = []
    with pytest.raises(LimitExceededError):
        NdjsonParser(loads=asked(texts)).feed("[" * 300 + "]" * 300 + "\n")
    assert texts == []


FAKE = """
import sys, types
asked = []
class Decoder:
    def decode(self, text):
        asked.append(text)
        return {"quick": text}
fake = types.ModuleType("msgspec")
fake.__version__, fake.json = VERSION, types.SimpleNamespace(Decoder=Decoder)
sys.modules["msgspec"] = fake
"""
READ = """
from rxdelta.providers import SseParser
print(SseParser().feed('data: {"a": 1.5}\\n\\n'), end="")
"""


def ran(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


@pytest.mark.parametrize(
    ("code", "records"),
    [
        pytest.param("import sys; sys.modules['msgspec'] = None", [{"a": 1.5}], id="without"),
        pytest.param(
            FAKE.replace("VERSION", "'0.17.0'"), [{"a": 1.5}], id="an old one, whose exponents overflow"
        ),
        pytest.param(FAKE.replace("VERSION", "'?'"), [{"a": 1.5}], id="another thing of that name"),
        pytest.param(FAKE.replace("VERSION", "'0.18.6'"), [{"quick": '{"a": 1.5}'}], id="with"),
        pytest.param(FAKE.replace("VERSION", "'1.0.0rc1'"), [{"quick": '{"a": 1.5}'}], id="a later one"),
    ],
)
def test_msgspec_reads_by_default_where_it_is_installed(code: str, records: list[Any]) -> None:
    assert ran(code + READ) == repr(records)


def test_msgspec_is_imported_with_the_first_bytes() -> None:
    made = "rd.parse_sse(), rd.parse_ndjson(), rd.decode('auto'), rd.stream([])"
    assert ran(f"import sys, rxdelta as rd; {made}; print('msgspec' in sys.modules, end='')") == "False"
