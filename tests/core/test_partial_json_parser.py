"""A document read in fragments shows what has come, never takes it back, and ends as if read at once."""

from __future__ import annotations

import itertools
import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st
from support.cost import lines_run

from rxdelta.core.json_values import FrozenDict, FrozenList, InvalidJson, parse_json
from rxdelta.core.partial_json_parser import PartialJsonParser

if TYPE_CHECKING:
    from collections.abc import Iterator

steady = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

characters = st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\b\n\t\x00é😀\u2028')
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(characters, max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(characters, max_size=4), inner, max_size=4)
    ),
    max_leaves=12,
)
sizes = st.just([1]) | st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any)
soup = st.lists(
    st.sampled_from([*'{}[]",:\\/u0189aAdDeE+-. \n\x01é', "\ud83d", "\ude00", "tru", "e", "null", '"a":'])
).map("".join)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """The text of a valid document without repeated keys, however it is spaced and escaped."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    space = draw(st.sampled_from(["", " ", "\r\n"]))
    text = json.dumps(draw(json_values), ensure_ascii=draw(st.booleans()), separators=separators)
    return space + text + space


@st.composite
def damaged_documents(draw: st.DrawFn) -> str:
    """A valid document with one stretch replaced by something else."""
    text = draw(documents())
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 2)))
    return text[:start] + draw(soup.map(lambda other: other[:3])) + text[end:]


def cut(text: str, lengths: list[int]) -> Iterator[str]:
    at = 0
    for length in itertools.cycle(lengths):
        yield text[at : at + length]
        at += length
        if at >= len(text):
            return


def fed(text: str, lengths: list[int] | None = None, *, max_depth: int = 200) -> PartialJsonParser:
    reader = PartialJsonParser(max_depth=max_depth)
    for fragment in cut(text, lengths) if lengths else [text]:
        reader.feed(fragment)
    return reader


def written(value: object) -> str:
    """The value as text, which unlike `==` tells 1 from True and 1.0, and one order of keys from another."""
    return json.dumps(value)


def outcome(reader: PartialJsonParser) -> tuple[str, str | None, bool]:
    return written(reader.value), reader.error, reader.started


def paths(value: object, here: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield here
    if isinstance(value, dict):
        for key, member in value.items():
            yield from paths(member, (*here, key))
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from paths(member, (*here, index))


def at_path(value: object, path: tuple[str | int, ...]) -> object:
    for step in path:
        value = value[step]  # type: ignore[index]
    return value


def is_prefix(earlier: object, later: object) -> bool:
    """Dicts and lists may gain members and only the newest member may still have grown; strings may grow."""
    if isinstance(earlier, dict) and isinstance(later, dict):
        keys = list(earlier)
        return keys == list(later)[: len(keys)] and are_prefixes(list(earlier.values()), list(later.values()))
    if isinstance(earlier, list) and isinstance(later, list):
        return are_prefixes(earlier, later)
    if isinstance(earlier, str) and isinstance(later, str):
        return later.startswith(earlier)
    return written(earlier) == written(later)


def are_prefixes(earlier: list[object], later: list[object]) -> bool:
    if not earlier:
        return True
    last = len(earlier) - 1
    return (
        len(later) > last
        and written(earlier[:last]) == written(later[:last])
        and is_prefix(earlier[last], later[last])
    )


TOKENS = re.compile(r'"(?:[^"\\]|\\u.{4}|\\[^u])*"?|[\[\]{},:]|[^\s\[\]{},:"]+')


def slow_reading(prefix: str) -> tuple[object, bool, list[tuple[str | int, ...]]]:
    """The same by other means: cut off what cannot be shown, close what is open, and let `json` read it.

    Returns the value, whether there is one, and the paths that are not closed, outermost first.
    """
    kept: list[str] = []
    closers = ""
    string_open = False
    for token in TOKENS.findall(prefix):
        if token == "\\":  # the first half of an escape after an open string
            break
        if token.startswith('"') and (
            len(token) == 1 or not token.endswith('"') or ends_in_escaped_quote(token)
        ):
            kept.append(without_cut_escape(token) + '"')
            string_open = True
            break
        kept.append(token)
        if token in "[{":
            closers = ("]" if token == "[" else "}") + closers
        elif token in "]}":
            closers = closers[1:]
    if not string_open and kept and re.fullmatch(r"[-+.\deE]+|[a-z]+", kept[-1]):
        is_word = kept[-1][0] in "tfn"
        cut_off = kept[-1] not in ("true", "false", "null") if is_word else not prefix[-1].isspace()
        if cut_off:
            kept.pop()
    if kept and kept[-1] == ":":
        kept.pop()
        kept.pop()
    elif string_open and closers.startswith("}") and kept[-2] != ":":
        kept.pop()
        string_open = False
    elif closers.startswith("}") and kept[-1].startswith('"') and kept[-2] in "{,":
        kept.pop()
    if kept and kept[-1] == ",":
        kept.pop()
    if not kept:
        return None, False, []
    value = json.loads("".join(kept) + closers)
    levels = len(closers) + string_open
    open_paths: list[tuple[str | int, ...]] = [()] if levels else []
    inner, path = value, ()
    for _ in range(levels - 1):
        step = list(inner)[-1] if isinstance(inner, dict) else len(inner) - 1
        inner, path = inner[step], (*path, step)
        open_paths.append(path)
    return value, True, open_paths


def ends_in_escaped_quote(token: str) -> bool:
    backslashes = len(token[:-1]) - len(token[:-1].rstrip("\\"))
    return backslashes % 2 == 1


def without_cut_escape(token: str) -> str:
    """An open string without an escape at its end that is cut, or is the first half of a surrogate pair."""
    whole = re.match(r'"(?:[^\\]|\\[^u]|\\u[0-9a-fA-F]{4})*', token)
    assert whole
    return re.sub(r"((?:^|[^\\])(?:\\\\)*)\\u[dD][89abAB]..$", r"\1", whole[0])


@steady
@given(documents(), sizes)
@example("[-0, -0.0, 0e0, 1E+2, 0.5, 10]", [1])
@example('{"a":{"b":[{}, [], ""]}}', [1])
def test_every_document_ends_as_if_read_at_once(text: str, lengths: list[int]) -> None:
    reader = fed(text, lengths)
    assert reader.error is None
    assert written(reader.close()) == written(json.loads(text))
    assert written(reader.value) == written(json.loads(text))
    assert reader.complete
    assert reader.is_final()


@steady
@given(documents())
@example('{"a" : -1.5e+3 ,"b":[true,[false],null],"c":"\\\\\\"\\ud83d\\ude00\\u00e9"}')
def test_each_prefix_shows_what_a_slow_reading_of_it_shows(text: str) -> None:
    reader = PartialJsonParser()
    for end, character in enumerate(text, start=1):
        reader.feed(character)
        value, started, open_paths = slow_reading(text[:end])
        assert written(reader.value) == written(value)
        assert reader.started == started
        assert [path for path in paths(value) if started and not reader.is_final(path)] == open_paths


@steady
@given(documents(), sizes)
def test_values_only_grow(text: str, lengths: list[int]) -> None:
    reader = PartialJsonParser()
    earlier, started = reader.value, False
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        assert reader.error is None
        assert reader.started >= started
        if started:
            assert is_prefix(earlier, reader.value)
        earlier, started = reader.value, reader.started
    final = reader.close()
    assert is_prefix(earlier, final) or not started


@steady
@given(documents(), sizes)
def test_a_value_once_read_never_changes(text: str, lengths: list[int]) -> None:
    reader = PartialJsonParser()
    kept = []
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        kept.append((reader.value, written(reader.value)))
    reader.close()
    assert all(written(value) == then for value, then in kept)


@steady
@given(documents(), sizes)
def test_what_is_final_stays_and_containers_that_are_final_are_shared(text: str, lengths: list[int]) -> None:
    reader = PartialJsonParser()
    final: dict[tuple[str | int, ...], object] = {}
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        value = reader.value
        for path, then in final.items():
            assert reader.is_final(path)
            now = at_path(value, path)
            assert now is then if isinstance(then, (dict, list)) else written(now) == written(then)
        if reader.started:
            final |= {path: at_path(value, path) for path in paths(value) if reader.is_final(path)}
    end = reader.close()
    assert all(reader.is_final(path) for path in paths(end))
    assert all(written(at_path(end, path)) == written(then) for path, then in final.items())


@steady
@given(documents(), sizes)
def test_all_containers_are_read_only(text: str, lengths: list[int]) -> None:
    reader = PartialJsonParser()
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        for path in paths(reader.value):
            inner = at_path(reader.value, path)
            assert not isinstance(inner, (dict, list)) or type(inner) in (FrozenDict, FrozenList)


@steady
@given(st.text() | soup | damaged_documents() | documents(), sizes)
@example("01", [1])
@example("-", [1])
@example("1.", [1])
@example("1e+", [1])
@example("[1}", [1])
@example("[1,]", [1])
@example('{"a":1,}', [1])
@example('{"a":1 "b":2}', [1])
@example("[1 2]", [1])
@example("{,}", [1])
@example("[,]", [1])
@example("]", [1])
@example("{]", [1])
@example("[}", [1])
@example("NaN", [1])
@example("-Infinity", [1])
@example("1e999", [1])
@example("[1e999]", [9])
@example('"\x01"', [1])
@example('"\\ud83d\\ud83d\\ude00\\ud83"', [1])
@example('{"\\ud83d":1}\ud83d', [1])
@example('"\ud83d', [1])
@example('"\\ud83d\ud83d\ude00"', [1])
@example("[1,1 ,2]", [9])
@example('{"a" :1,"b" :[2]}', [99])
@example('"\udbff\udfff"', [2])
@example('[1,"a" ,[] ,{"a":1 ,"b":2 }]', [99])
@example('"\\ud800\\udc00\\udbff\\udfff"', [1])
@example('"\\ud7ff\\udc00\\ud800\\ue000\\ud800\\udbff"', [1])
@example("\ufeff{}", [1])
@example("{} {}", [1])
@example("true1", [1])
@example("nulls", [9])
@example("'a'", [1])
@example("1\u0661", [1])
def test_any_text_is_taken_or_refused_as_parse_json_does(text: str, lengths: list[int]) -> None:
    reader = fed(text, lengths)
    if reader.complete:
        parse_json(text)
    try:
        expected = parse_json(text)
    except InvalidJson:
        with pytest.raises(InvalidJson) as caught:
            reader.close()
        assert caught.value.reason == reader.error
        assert not reader.complete
    else:
        assert reader.error is None
        assert written(reader.close()) == written(expected)


@steady
@given(soup | damaged_documents(), sizes)
def test_where_the_text_is_cut_makes_no_difference(text: str, lengths: list[int]) -> None:
    assert outcome(fed(text, lengths)) == outcome(fed(text))
    assert repr(fed(text, lengths)).partition(" ")[0] == "<PartialJsonParser:"


@steady
@given(soup | damaged_documents(), soup)
def test_after_an_error_the_value_stays_and_nothing_is_read(text: str, more: str) -> None:
    reader = PartialJsonParser()
    before: object = None
    for character in text:
        reader.feed(character)
        if reader.error is not None:
            break
        before = reader.value
    if reader.error is not None:
        at_error = outcome(reader)
        # The character at fault can still have ended a number or shown that an escape was half a pair.
        assert is_prefix(before, reader.value) or before is None
        reader.feed(more)
        assert outcome(reader) == at_error
        with pytest.raises(InvalidJson):
            reader.close()
        assert outcome(reader) == at_error


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("", "x"),
        ("", "\ufeff"),
        ("", "N"),
        ("", "I"),
        ("", "+"),
        ("", "."),
        ("", "]"),
        ("", "}"),
        ("", ","),
        ("", ":"),
        ("", "\x0b"),
        ("-", "I"),
        ("-", "-"),
        ("0", "1"),
        ("-0", "0"),
        ("1", "-"),
        ("1.", "e"),
        ("1.", " "),
        ("1.5", "."),
        ("1e", "."),
        ("1e", "]"),
        ("1e+", "-"),
        ("1e5", "e"),
        ("tr", "y"),
        ("true", "r"),
        ("nul", " "),
        ("fals", "E"),
        ("[", ","),
        ("[", "}"),
        ("[1", "}"),
        ("[1", ":"),
        ("[1 ", "2"),
        ("[1,", "]"),
        ("[1,", ","),
        ("{", "1"),
        ("{", ","),
        ("{", "]"),
        ('{"a"', ","),
        ('{"a"', "}"),
        ('{"a":', "}"),
        ('{"a":', ":"),
        ('{"a":1', "]"),
        ('{"a":1', ":"),
        ('{"a":1,', "}"),
        ('{"a":1,', "1"),
        ('"', "\n"),
        ('"', "\x00"),
        ('"\\', "x"),
        ('"\\', "U"),
        ('"\\u12', "g"),
        ('"\\ud83d\\', "x"),
        ('"\\ud83d\\ude', "z"),
        ('{"', "\x1f"),
        ("{} ", "{"),
        ('"a"', '"'),
        ("1 ", "1"),
    ],
)
def test_an_error_is_seen_at_the_first_character_that_cannot_be(good: str, bad: str) -> None:
    reader = fed(good, [1] if good else None)
    assert reader.error is None
    reader.feed(bad)
    assert reader.error is not None
    assert reader.error.startswith("not valid JSON: ")
    # An escape is named by where it begins; all else by the character itself.
    position = good.rfind("\\") if "\\" in good else len(good)
    assert reader.error.endswith(f" at character {position}")
    assert fed(good + bad).error == reader.error


def test_an_error_says_what_was_expected() -> None:
    assert fed('{"a" 1}').error == "not valid JSON: expected ':' but found '1' at character 5"
    assert fed("[1 2]").error == "not valid JSON: expected ',' or ']' but found '2' at character 3"
    assert fed('{"a": 1]').error == "not valid JSON: expected ',' or '}' but found ']' at character 7"
    assert fed("trap").error == "not valid JSON: expected 'ue' but found 'a' at character 2"
    assert fed("[1.]").error == "not valid JSON: expected a digit but found ']' at character 3"
    assert fed('"a\tb').error == "not valid JSON: an unescaped control character in a string at character 2"
    assert fed("{}x").error == "not valid JSON: expected nothing more but found 'x' at character 2"


def test_a_text_that_ends_too_early_says_so_on_closing_and_again() -> None:
    expected = {
        "": "no text",
        " \n": "no text",
        "[": "not valid JSON: it ends where a value or ']' should follow",
        "[1": "not valid JSON: it ends where ',' or ']' should follow",
        '{"a":1': "not valid JSON: it ends where ',' or '}' should follow",
        "-": "not valid JSON: it ends where a digit should follow",
        "tr": "not valid JSON: it ends where 'ue' should follow",
        '"a': "not valid JSON: it ends where the end of a string should follow",
        '{"a': "not valid JSON: it ends where the end of a key should follow",
    }
    for text, reason in expected.items():
        reader = fed(text)
        shown = written(reader.value)
        for _ in range(2):
            with pytest.raises(InvalidJson) as caught:
                reader.close()
            assert caught.value.reason == reader.error == reason
        assert written(reader.value) == shown


def test_only_whole_characters_of_an_open_string_are_shown() -> None:
    steps = [
        ('"a', "a"),
        ("\\", "a"),
        ("u", "a"),
        ("00e", "a"),
        ("9", "aé"),
        ("\\n", "aé\n"),
        ("\\ud83d", "aé\n"),
        ("\\", "aé\n"),
        ("ude0", "aé\n"),
        ("0", "aé\n😀"),
        ("\\ud83d", "aé\n😀"),
        ("\\u1", "aé\n😀\ufffd"),
        ("234", "aé\n😀\ufffd\u1234"),
        ("\\ud83d", "aé\n😀\ufffd\u1234"),
        ("b", "aé\n😀\ufffd\u1234\ufffdb"),
        ("\ud83d", "aé\n😀\ufffd\u1234\ufffdb"),
        ("\ude00", "aé\n😀\ufffd\u1234\ufffdb😀"),
        ('\ud83d"', "aé\n😀\ufffd\u1234\ufffdb😀\ufffd"),
    ]
    reader = PartialJsonParser()
    for fragment, shown in steps:
        reader.feed(fragment)
        assert reader.value == shown
    assert reader.close() == steps[-1][1]


def test_a_number_alone_is_complete_only_when_nothing_can_follow() -> None:
    reader = fed("42")
    assert (reader.value, reader.started, reader.complete, reader.is_final()) == (None, False, False, False)
    reader.feed("\n")
    assert (reader.value, reader.started, reader.complete, reader.is_final()) == (42, True, True, True)
    closed = fed("42")
    closed.close()
    assert (closed.value, closed.started, closed.complete, closed.is_final()) == (42, True, True, True)


def test_a_document_is_complete_while_only_whitespace_follows() -> None:
    reader = fed("[]")
    assert reader.complete
    reader.feed(" \r\n\t")
    assert reader.complete
    reader.feed("x")
    assert not reader.complete
    assert reader.value == []
    assert not fed("[]\ud83d").complete


def test_after_closing_nothing_is_read() -> None:
    reader = fed("[1]")
    assert reader.close() == [1]
    reader.feed("x")
    assert reader.error is None
    assert reader.close() == [1]


def test_of_a_repeated_key_the_last_value_counts_and_is_open_until_closed() -> None:
    reader = fed('{"a": {"x": 1}, "b": 2, "a"')
    assert reader.value == {"a": {"x": 1}, "b": 2}
    assert not reader.is_final(["a"])
    assert not reader.is_final(["a", "x"])
    reader.feed(": 4")
    assert not reader.is_final(["a"])
    reader.feed("2,")
    assert reader.is_final(["a"])
    reader.feed('"b":["new')
    assert reader.value == {"a": 42, "b": ["new"]}
    assert not reader.is_final(["b"])
    reader.feed('"]}')
    assert written(reader.close()) == '{"a": 42, "b": ["new"]}'


def test_a_path_that_is_absent_is_not_final() -> None:
    closed = fed('{"a": [1, "xy"], "1": 0}')
    opened = fed('{"a": [1, "xy"], "1": 0, "b": [[5], [6, 7')
    absent: list[list[str | int]] = [
        ["c"],
        [0],
        ["a", 2],
        ["a", -1],
        ["a", "0"],
        ["a", 0, 0],
        ["a", 1, 0],
        [1],
    ]
    for path in absent:
        assert not closed.is_final(path)
        assert not opened.is_final(path)
    assert not PartialJsonParser().is_final()
    assert not PartialJsonParser().is_final([0])
    assert not fed('"ab" ').is_final([0])
    for path in (["b", 2], ["b", -1], ["b", "1"], ["b", 1, 1], ["b", 1, -1]):
        assert not opened.is_final(path)  # type: ignore[arg-type]
    assert opened.is_final(["b", 1, 0])
    assert not opened.is_final(["b", True, 0])
    assert not opened.is_final(["b", False])


def test_a_closed_container_is_frozen_once_and_shared() -> None:
    reader = fed('{"a": [1, {"b": 2}], "c": [')
    first = reader.value
    reader.feed("3, 4")
    second = reader.value
    reader.feed("]}")
    third = reader.close()
    assert at_path(first, ("a",)) is at_path(second, ("a",)) is at_path(third, ("a",))
    assert at_path(first, ("c",)) == []
    assert at_path(second, ("c",)) == [3]
    assert third == {"a": [1, {"b": 2}], "c": [3, 4]}
    assert reader.value is third


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_allowed_up_to_the_limit_and_refused_beyond(opening: str, closing: str) -> None:
    assert written(fed(opening * 200 + "1" + closing * 200).close()) == opening.replace(
        ":", ": "
    ) * 200 + "1" + (closing * 200)
    reader = fed(opening * 201)
    position = len(opening) * 200
    assert reader.error == f"nested deeper than 200 at character {position}"
    assert fed(opening * 3, max_depth=3).error is None
    assert fed(opening * 4, max_depth=3).error == f"nested deeper than 3 at character {len(opening) * 3}"
    assert fed("[[]," * 3, max_depth=4).error is None


def test_a_hundred_thousand_brackets_are_an_error_and_nothing_worse() -> None:
    reader = fed("[" * 100_000, [7])
    assert reader.error == "nested deeper than 200 at character 200"
    assert written(reader.value) == "[" * 200 + "]" * 200


@pytest.mark.parametrize("lengths", [[1], [13], [10_000]])
@pytest.mark.parametrize("sign", ["", "-"])
def test_an_integer_may_have_4300_digits_and_no_more(sign: str, lengths: list[int]) -> None:
    longest = sign + "7" * 4300
    assert fed(longest, lengths).close() == int(longest)
    assert fed(f"[{longest}]", lengths).value == [int(longest)]
    too_long = fed(longest + "7", lengths)
    with pytest.raises(InvalidJson, match="a number with more than 4300 digits, before char"):
        too_long.close()
    assert fed(f"[1,{longest}7]", lengths).value == [1]
    assert fed(f"[{longest}7e-4300]", lengths).error is None


@pytest.mark.parametrize("lengths", [[1], [10_000]])
def test_a_float_that_overflows_is_an_error_once_it_is_over(lengths: list[int]) -> None:
    assert fed("[1e999", lengths).error is None
    assert fed("[1e999]", lengths).error == "a number too large for a float: 1e999, before character 6"


def test_an_empty_fragment_changes_nothing() -> None:
    reader = fed('["a\\')
    before = outcome(reader)
    reader.feed("")
    assert outcome(reader) == before
    reader.feed('n"]')
    assert reader.close() == ["a\n"]


def test_a_subclass_of_str_is_read_as_its_text() -> None:
    class Odd(str):
        __slots__ = ()

        def __getitem__(self, key: object) -> str:
            return "odd"

        def __str__(self) -> str:
            return "odd"

        def __add__(self, other: str) -> str:
            return "odd"

    reader = PartialJsonParser()
    for fragment in ('{"a', '": ["\\', 'n", tr', "ue]}"):
        reader.feed(Odd(fragment))
    assert reader.close() == {"a": ["\n", True]}
    strings = fed("")
    strings.feed(Odd('"abc'))
    assert type(strings.value) is str


@pytest.mark.parametrize(
    "text",
    [
        "[" + "7" * 3000 + "]",
        "[0." + "1" * 3000 + "]",
        '"' + "a" * 3000,
        '{"' + "k" * 3000,
        '"' + r"\u00e9" * 500,
        '"' + r"\ud83d\ude00" * 250,
        '"' + r"\ud83d" * 500,
        '"' + "\ud83d" * 3000,
        " " * 3000 + "[" + " " * 3000,
        "[" + "true," * 600,
    ],
)
@pytest.mark.parametrize("length", [1, 5])
def test_no_character_is_read_again_but_for_a_bounded_tail(
    text: str, length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    scanned = 0
    read = PartialJsonParser._read

    def counting(self: PartialJsonParser, given: str) -> None:
        nonlocal scanned
        scanned += len(given)
        read(self, given)

    monkeypatch.setattr(PartialJsonParser, "_read", counting)
    fragments = list(cut(text, [length]))
    reader = PartialJsonParser()
    for fragment in fragments:
        reader.feed(fragment)
    assert reader.error is None
    longest_tail = len(r"\ud83d\ude0") + 1
    assert scanned <= len(text) + longest_tail * len(fragments)


@pytest.mark.parametrize(
    "text", ['{"text": "' + "word " * 2000, '[{"a": "x\\n", "b": [1, true]}, "' + "word " * 2000]
)
def test_to_read_an_open_string_at_every_fragment_costs_no_more_when_it_is_long(text: str) -> None:
    def read(size: int) -> None:
        reader = PartialJsonParser()
        for fragment in cut(text[:size], [3]):
            reader.feed(fragment)
            _ = reader.value
        assert not reader._pieces  # joined once, not at every reading

    assert lines_run(lambda: read(10_000)) <= 2.2 * lines_run(lambda: read(5_000))


@steady
@given(documents() | soup | damaged_documents(), sizes)
@example('"a\ud83d', [1])
@example('{"a":"x","a":"x"}', [9])
def test_a_value_that_changes_is_counted(text: str, lengths: list[int]) -> None:
    reader, before = PartialJsonParser(), ("null", False)
    count = reader._changes
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        now = (written(reader.value), reader.started)
        if reader._before_repeat is None:
            assert (reader._changes != count) == (now != before)
        else:  # then a change may lead back
            assert reader._changes != count or now == before
        before, count = now, reader._changes


@steady
@given(documents() | soup, sizes)
def test_the_path_of_what_is_open_is_that_of_all_that_is_not_final(text: str, lengths: list[int]) -> None:
    reader = PartialJsonParser()
    for fragment in cut(text, lengths):
        reader.feed(fragment)
        opened = reader._open_path()
        assert (opened is None) == reader.is_final()
        if reader._before_repeat is None:
            for path in paths(reader.value):
                assert (
                    reader.is_final(path) == (opened is None or opened[: len(path)] != path)
                    or not reader.started
                )


def test_a_reader_can_be_read_by_a_person() -> None:
    assert repr(PartialJsonParser()) == "<PartialJsonParser: 0 characters, 0 containers open>"
    assert repr(fed('{"a": ["\\ud83d')) == "<PartialJsonParser: 14 characters, 2 containers open>"
    assert repr(fed("{} ")) == "<PartialJsonParser: 3 characters, complete>"
    assert repr(fed("[1 2]")) == (
        "<PartialJsonParser: 5 characters, not valid JSON: expected ',' or ']' but found '2' at character 3>"
    )
