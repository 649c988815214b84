"""What `parse_json` takes is strict JSON that can be written again; everything else is `InvalidJson`."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from rxdelta.core.json_values import InvalidJson, clean_text, parse_json, parse_object

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
surrogates_and_others = st.text(
    st.sampled_from(["\ud83d", "\ude00", "\udbff", "\udc00", "a", "é", "😀", "\\"])
)


def reason_for(text: str, *, max_depth: int = 200) -> str:
    with pytest.raises(InvalidJson) as caught:
        parse_json(text, max_depth=max_depth)
    assert str(caught.value) == caught.value.reason
    return caught.value.reason


@steady
@given(json_values, st.booleans(), st.sampled_from([None, 1]))
def test_what_json_writes_is_read_as_json_loads_reads_it(
    value: object, ascii_only: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert json.dumps(parse_json(text)) == json.dumps(json.loads(text))


@steady
@given(st.text() | st.text(st.sampled_from('{}[]",:\\u0189deE+-.truefalsn \n\t\x01')))
@example("[1,]")
@example('{"a":1,}')
@example("01")
@example("1.")
@example("+1")
@example("\x0b1")
@example("\u0661")
@example("'a'")
@example('"\t"')
@example('"\\x41"')
@example('"\\u12 4"')
@example("[1}")
@example("{} {}")
@example("tru")
@example("// c\n1")
def test_any_text_is_refused_exactly_when_json_loads_refuses_it(text: str) -> None:
    def no_constants(name: str) -> object:
        raise ValueError(name)

    try:
        expected = json.loads(text, parse_constant=no_constants)
    except ValueError:
        reason_for(text)
    else:
        assert json.dumps(parse_json(text)) == json.dumps(expected)


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_the_constants_that_json_does_not_have_are_refused_by_name(name: str) -> None:
    assert reason_for(name) == f"{name} is not JSON"
    assert reason_for(f'{{"a": [{name}]}}') == f"{name} is not JSON"
    assert parse_json(f'"{name}"') == name


@pytest.mark.parametrize("number", ["1e999", "-1e999", "1.5E+400", "1" * 400 + ".0"])
def test_a_float_that_overflows_is_refused(number: str) -> None:
    assert reason_for(f"[{number}]").startswith("a number too large for a float: ")
    assert len(reason_for(number)) < 60


def test_a_float_that_underflows_is_zero() -> None:
    assert parse_json("1e-999") == 0.0


@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_may_have_4300_digits_and_no_more(sign: str) -> None:
    assert parse_json(sign + "7" * 4300) == int(sign + "7" * 4300)
    assert reason_for(sign + "7" * 4301) == "a number with more than 4300 digits"


def test_the_limit_on_digits_holds_whatever_limit_the_process_has_set() -> None:
    before = sys.get_int_max_str_digits()
    try:
        sys.set_int_max_str_digits(0)
        assert reason_for("7" * 4301) == "a number with more than 4300 digits"
        sys.set_int_max_str_digits(640)
        assert reason_for("7" * 641) == "a number with more than 640 digits"
    finally:
        sys.set_int_max_str_digits(before)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_allowed_up_to_the_limit_and_refused_beyond(opening: str, closing: str) -> None:
    parse_json(opening * 200 + "1" + closing * 200)
    assert reason_for(opening * 201 + "1" + closing * 201) == "nested deeper than 200"
    parse_json(opening * 3 + "1" + closing * 3, max_depth=3)
    assert reason_for(opening * 4 + "1" + closing * 4, max_depth=3) == "nested deeper than 3"
    assert reason_for(opening * 100_000) == "nested deeper than 200"


def test_a_limit_deeper_than_the_interpreter_can_go_is_still_an_invalid_json() -> None:
    assert reason_for("[" * 200_000, max_depth=10**9) == "nested deeper than the interpreter can follow"


@pytest.mark.parametrize(
    "text",
    [
        "[" + "[]," * 300 + "[]]",
        '["' + "[" * 300 + '"]',
        '["' + '\\"[{' * 300 + '"]',
        '{"' + "{" * 300 + '\\\\": [[]]}',
    ],
)
def test_only_brackets_that_nest_count_for_the_depth(text: str) -> None:
    assert parse_json(text, max_depth=3) == json.loads(text)


def test_brackets_after_a_string_with_escapes_count_again() -> None:
    assert reason_for('["\\\\",' + "[" * 300, max_depth=3) == "nested deeper than 3"
    assert reason_for('["\\"",' + "[" * 300, max_depth=3) == "nested deeper than 3"


def test_keys_that_become_equal_by_cleaning_are_repeated_keys() -> None:
    assert parse_object('{"\\ud83d": 1, "\\ufffd": 2}') == {"\ufffd": 2}


def test_whitespace_around_the_value_is_only_what_json_calls_so() -> None:
    assert parse_json(" \t\r\n[ ] \t\r\n") == []
    for other in "\x0b\x0c\xa0\u2028":
        reason_for(f"{other}[]")
        reason_for(f"[]{other}")
        assert reason_for(other).startswith("not valid JSON: ")


def test_a_byte_order_mark_is_refused() -> None:
    assert reason_for("\ufeff{}") == "not valid JSON: a byte order mark at character 0"


def test_a_reason_says_what_and_where_without_json_error_wording_twice() -> None:
    assert reason_for('{"a": 1 "b"}') == "not valid JSON: Expecting ',' delimiter at character 8"
    assert reason_for('["abc') == "not valid JSON: Unterminated string starting at character 1"
    assert reason_for("{} x") == "not valid JSON: Extra data at character 3"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[]", "a list"),
        ('"a"', "a string"),
        ("1", "a number"),
        ("1.5", "a number"),
        ("null", "null"),
        ("true", "true"),
        ("false", "false"),
    ],
)
def test_an_object_is_asked_for_and_another_value_is_named(text: str, found: str) -> None:
    with pytest.raises(InvalidJson) as caught:
        parse_object(text)
    assert caught.value.reason == f"not a JSON object but {found}"


def test_an_object_is_read_under_the_same_limits() -> None:
    assert parse_object('{"a": [1]}', max_depth=2) == {"a": [1]}
    with pytest.raises(InvalidJson, match="nested deeper than 1"):
        parse_object('{"a": [1]}', max_depth=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude00"', "😀"),
        (r'"\uD83D\uDE00"', "😀"),
        (r'"\ud83d"', "\ufffd"),
        (r'"\uD83D"', "\ufffd"),
        (r'"\ude00"', "\ufffd"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ud83d\n"', "\ufffd\n"),
        (r'"\ud83d\\ude00"', "\ufffd\\ude00"),
        (r'"\\ud83d"', "\\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        ('"\ud83d\ude00"', "😀"),
        ('"\ud83d"', "\ufffd"),
        ('"\\ud83d\ude00"', "\ufffd\ufffd"),
        ('"\ud83d\\ude00"', "\ufffd\ufffd"),
    ],
)
def test_surrogates_are_joined_or_replaced_in_strings_and_keys(text: str, value: str) -> None:
    assert parse_json(text) == value
    assert parse_json(f'{{{text}: {{"in": {text}}}}}') == {value: {"in": value}}


def test_replacing_a_surrogate_does_not_make_bad_text_good_or_move_the_error() -> None:
    assert reason_for(r'["\ud83d" x]') == "not valid JSON: Expecting ',' delimiter at character 10"
    reason_for(r"\ud83d")
    reason_for(r'"\ud83"')


@steady
@given(surrogates_and_others, st.booleans())
def test_what_is_read_can_always_be_written_as_utf_8(content: str, ascii_only: bool) -> None:
    text = json.dumps({content: [content]}, ensure_ascii=ascii_only)
    value = parse_json(text)
    json.dumps(value, ensure_ascii=False).encode()
    assert value == {clean_text(content): [clean_text(content)]}


@steady
@given(st.text() | surrogates_and_others)
def test_cleaned_text_is_what_utf_16_makes_of_it(text: str) -> None:
    assert clean_text(text) == text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


@pytest.mark.parametrize("text", ["", "abc", "é", "😀", "\ufffd", "\ud7ff\ue000"])
def test_clean_text_is_returned_itself(text: str) -> None:
    assert clean_text(text) is text


def test_cleaning_joins_pairs_and_replaces_the_rest() -> None:
    assert clean_text("\ud800\udc00\udbff\udfff") == "\U00010000\U0010ffff"
    assert clean_text("\udc00\ud800\ud800\udc00x\ud800") == "\ufffd\ufffd\U00010000x\ufffd"
