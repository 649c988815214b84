"""The laws of the operators that rewrite, cut or end a reply's text: any text, any pattern, any way of telling it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from reactivex.subject import Subject
from support.tellings import (
    Told,
    after,
    cut_off,
    final,
    joined,
    plain,
    replies,
    strings,
    taken_back,
    tell,
    tellings,
)

import rxdelta as rd

ev = rd.events

LETTERS = [*"abskxy1 .,@-_*<>\n!?", "\u00e9", "\u4f60", "\u3002", "\U0001f600", "\u017f", "\u212a", "e\u0301"]
WORDS = [
    "sk-",
    "foo",
    "bar",
    "foobar",
    "SECRET",
    "SECRETS",
    "secret",
    "123-45-6789",
    "a@b.c",
    "**",
    "ab",
    "aab",
]
TEXTS = st.lists(st.sampled_from([*LETTERS, *WORDS]), max_size=24).map("".join)
SEEDS = st.integers(0, 2**32)

BOUNDED = [
    r"SECRET", r"(?i)secret", r"\bSECRET\b", r"k(?!x)", r"foo(?=bar)", r"^a", r"b$", r"b\Z", r"\Aa", r"(\w)\1",
    r"\d{3}-\d\d-\d{4}", r"foo|foobar|bar", r"abcd|ab", r"ab|aab", r"[^\W\d_]{2,3}", r"[\u4e00-\u9fff]", r"a{2,3}",
    r"(a)|(b)x", r"\Bk", r"[\U0001f600-\U0001f64f]", r"x?y", r"\n\n", r"a{1,3}?b", r"(?>a{1,2})b", r"\w\b",
]  # fmt: skip
BEHIND = [r"(?<=s)k", r"(?<=sk-)\w", r"(?<!foo)bar", r"(?<=\bs)k", r"(?<=a@b)\."]
UNBOUNDED = [
    r"[\w.]+@[\w.]+", r"a+b", r"sk-\w{4,}", r"<.*?>", r"(?s)<.*>", r"\*\*.+?\*\*", r"(?m)^x.*$", r"a++b", r"(?>a+)b",
    r"\w+", r"[\u4e00-\u9fff]+", r"(\w+) \1", r"s(?:k-|\w)*k", r"(?i)s[a-z]*k", r"\s+$", r"[^@]+@", r"(?:ab|b)+x?",
]  # fmt: skip
PATTERNS = st.sampled_from([*BOUNDED, *BEHIND, *UNBOUNDED])
HELD = st.sampled_from(
    [r"sk-\w{4,}", r"[\w.]+@[\w.]+", r"a+b", r"<.*?>", r"\d{3}-\d\d-\d{4}", r"x+y?", r"\*\*.+?\*\*"]
)
"""In these a match that is recognised in the beginning of a text is one in the whole."""
UNITS = st.sampled_from(["word", "line", "sentence", "char", "block", 1, 7, re.compile(r"[,.]\s*")])


def same(
    result: Told, source: Told, change: Callable[[str], str], kinds: Sequence[str] | None = None
) -> None:
    """The blocks of the result are those of the source, with a change of their texts, and were shown bit by bit."""
    wanted = {
        place: (kind, change(text) if kinds is None or kind in kinds else text)
        for place, (kind, text) in final(source).items()
    }
    assert final(result) == wanted
    assert result.error is source.error
    shown_bit_by_bit(result, source, {place: text for place, (_, text) in wanted.items()})


def shown_bit_by_bit(result: Told, source: Told, whole: dict[Any, str]) -> None:
    """Each text is a beginning of the whole one. What the source takes back may be taken back."""
    excused = taken_back(source)
    for place, seen in joined(result).items():
        if place not in excused:
            for _, text in seen:
                assert whole[place].startswith(text)


# What is redacted.


@given(st.data(), TEXTS, PATTERNS)
def test_what_is_redacted_is_the_text_with_all_matches_replaced(
    data: st.DataObject, text: str, pattern: str
) -> None:
    told = data.draw(tellings(text))
    same(after(told, rd.redact(pattern, "#")), told, lambda text: re.sub(pattern, "#", text))


@pytest.mark.parametrize("pattern", [*BOUNDED, *BEHIND, *UNBOUNDED])
def test_each_pattern_is_redacted_exactly_however_the_text_is_told(pattern: str) -> None:
    draw = Random(pattern)
    for _ in range(25):
        text = "".join(draw.choices([*LETTERS, *WORDS], k=draw.randrange(16)))
        told = tell(draw, text)
        same(after(told, rd.redact(pattern)), told, lambda text: re.sub(pattern, "[redacted]", text))


LONG = [
    "a" * 300 + "b",
    "a" * 300,
    "w" * 200 + "@x",
    "sk-" + "x" * 1500,
    "<" + "y" * 700 + ">",
    "**" + "z " * 300 + "**",
]


@pytest.mark.parametrize("pattern", UNBOUNDED)
@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_long_matches_are_redacted_whole(pattern: str, size: int) -> None:
    draw = Random(size)
    for long in LONG:
        text = f"{long} {draw.choice(LONG)}, {draw.choice(WORDS)}" if len(long) < 1000 else f"x {long}."
        want = re.sub(pattern, "#", text)
        told = plain(text, size)
        result = after(told, rd.redact(pattern, "#"))
        assert final(result)[(None, 0), 0] == ("text", want)
        assert all(want.startswith(shown) for _, shown in joined(result)[(None, 0), 0])


def shortened(match: re.Match[str]) -> str:
    return f"{match['who'][:1]}\u2026@{match['at']}"


def masked(match: re.Match[str]) -> str:
    return match[0][:3] + "x" * (len(match[0]) - 3)


def numbered(match: re.Match[str]) -> str:
    return f"{match[1]}{match[2]}{match.span(1) == (-1, -1)}"


REPLACEMENTS: list[tuple[str, Any]] = [
    (r"(\w)\1", r"<\1>"),
    (r"(?P<who>\w+)@(?P<at>[\w.]+)", r"\g<at> at \g<who>"),
    (r"(?P<who>\w+)@(?P<at>[\w.]+)", shortened),
    (r"sk-\w{4,}", masked),
    (r"(a)|(b)x", numbered),
    (r"SECRET", ""),
    (r"b", "bb"),
    (r"\bab\b", r"\\n\n"),
]


@given(st.data(), TEXTS, st.sampled_from(REPLACEMENTS))
def test_a_replacement_is_a_template_or_a_function_of_the_match(
    data: st.DataObject, text: str, way: tuple[str, Any]
) -> None:
    pattern, replacement = way
    told = data.draw(tellings(text))
    redact = rd.redact(re.compile(pattern), replacement)
    same(after(told, redact), told, lambda text: re.sub(pattern, replacement, text))


@given(st.data(), TEXTS)
def test_reasoning_is_left_as_it_is_if_that_is_wanted(data: st.DataObject, text: str) -> None:
    told = data.draw(tellings(text))
    result = after(told, rd.redact("s", "#", reasoning=False, elsewhere=False))
    wanted = {
        place: (kind, said if kind == "reasoning" else said.replace("s", "#"))
        for place, (kind, said) in final(told).items()
    }
    assert final(result) == wanted


@given(st.data(), TEXTS, PATTERNS, st.integers(1, 12))
def test_with_any_holdback_the_cuts_make_no_difference(
    data: st.DataObject, text: str, pattern: str, holdback: int
) -> None:
    redact = rd.redact(pattern, "#", holdback=holdback)
    one = data.draw(tellings(text, lanes=False, blocks=1, kinds=["text"], takes_back=False))
    result = after(one, redact)
    assert final(result) == final(after(plain(text, 1), redact)) == final(after(plain(text, 1000), redact))
    shown_bit_by_bit(result, one, {place: said for place, (_, said) in final(result).items()})


@given(st.data(), TEXTS, HELD, st.integers(1, 12))
def test_a_match_that_is_recognised_within_the_holdback_is_redacted_whole(
    data: st.DataObject, text: str, pattern: str, holdback: int
) -> None:
    compiled = re.compile(pattern)
    for match in compiled.finditer(text):
        if compiled.match(text, match.start(), match.start() + holdback) is None:
            text = text[: match.start()]  # what lies behind it isn't told
            break
    told = data.draw(tellings(text, takes_back=False))
    same(after(told, rd.redact(pattern, "#", holdback=holdback)), told, lambda text: compiled.sub("#", text))


@given(TEXTS, st.sampled_from([r"\d{3}-\d\d-\d{4}", "SECRET", r"sk-\w{2,4}"]), st.integers(1, 5))
def test_no_more_is_held_than_the_widest_match(text: str, pattern: str, size: int) -> None:
    widest = {"SECRET": 6}.get(pattern, 11 if pattern.startswith(r"\d") else 7)
    at = 0
    seen = list[str]()
    source: Subject[rd.Event] = Subject()
    source.pipe(rd.redact(pattern, ""), rd.text_deltas()).subscribe(seen.append)
    source.on_next(ev.BlockStart(0, {"type": "text"}))
    while at < len(text):
        source.on_next(ev.TextDelta(0, text[at : at + size]))
        at = min(at + size, len(text))
        assert len("".join(seen)) >= len(re.sub(pattern, "", text[:at])) - widest


@given(st.data(), TEXTS, PATTERNS, SEEDS)
def test_what_is_held_at_a_cut_is_dropped(data: st.DataObject, text: str, pattern: str, seed: int) -> None:
    """Whatever the source would have said next: what is shown is a beginning of what would have been shown."""
    whole = data.draw(tellings(text, takes_back=False))
    cut = cut_off(Random(seed), whole)
    redact = rd.redact(pattern, "#")
    result = after(cut, redact)
    said = {place: re.sub(pattern, "#", all_of) for place, (_, all_of) in final(whole).items()}
    for place, (_, shown) in final(result).items():
        assert said[place].startswith(shown)
    assert (result.error is None) is (cut.error is None)  # its words may be redacted, too
    bare = after(Told([event for event in cut.events if event in whole.events]), redact)
    assert final(result) == final(bare)  # the end itself shows nothing


@given(st.data(), TEXTS, SEEDS)
def test_no_event_carries_what_is_redacted(data: st.DataObject, text: str, seed: int) -> None:
    told = data.draw(tellings(f"{text}SECRET{text}"))
    cut = cut_off(Random(seed), told)
    for source in (told, cut):
        result = after(source, rd.redact("SECRET", "#"))
        for event in result.events:
            assert not any("SECRET" in one for one in strings(event.to_dict()))
        for seen in joined(result).values():
            assert not any("SECRET" in shown for _, shown in seen)
        assert "SECRET" not in str(result.error)


def test_two_redactions_are_one_behind_the_other() -> None:
    draw = Random(3)
    for _ in range(50):
        text = "".join(draw.choices([*LETTERS, *WORDS], k=12))
        told = tell(draw, text)
        result = after(told, rd.redact(r"a+b", "sk-"), rd.redact(r"sk-\w+", "#"))
        same(result, told, lambda text: re.sub(r"sk-\w+", "#", re.sub(r"a+b", "sk-", text)))


EVERYWHERE: list[rd.Event] = [
    ev.MessageStart(
        "m", metadata={"echo": "a SECRET", "deep": [{"said": ["SECRETS"]}]}, more={"new": "SECRET"}
    ),
    ev.BlockStart(0, {"type": "text", "text": "SEC", "logprobs": [{"token": "SEC"}, {"token": "RET"}]}),
    ev.TextDelta(0, "RET"),
    ev.BlockDelta(0, {"logprobs": [{"token": "SECRET"}], "annotations": [{"quote": "SECRET"}]}),
    ev.BlockDelta(0, {"citations": [{"cited_text": "SECRET", "raw": {"segment": {"text": "SECRET"}}}]}),
    ev.BlockFinish(0, {"type": "text", "text": "SECRET", "extras": {"note": "SECRET"}}),
    ev.BlockFinish(1, {"type": "server_tool_result", "tool_call_id": "c", "output": [{"text": "SECRET"}]}),
    ev.BlockFinish(2, {"type": "unsupported", "said": {"a": "SECRET"}}),
    ev.BlockDelta(7, {"text": "SECRET"}),
    ev.TextDelta(7, "SECRET"),
    ev.BlockStart(3, {"type": "tool_call_chunk", "id": "c", "name": "find"}),
    ev.BlockFinish(3),
    ev.ToolUpdate("c", "executing", "Looking for SECRET"),
    ev.ToolUpdate("c", "completed", result=rd.ToolResult("c", {"said": ["a SECRET"]})),
    ev.ProviderEvent("house", "trace", {"input": "SECRET"}),
    ev.Custom("note", {"SECRET": ["SECRET"]}),
    ev.AttemptReset(1, "it said SECRET", choice=1),
    ev.MessageFinish(
        "stop", metadata={"trace": "SECRET", "search": [{"title": "SECRET"}], "avg_logprobs": [0.1]}
    ),
    ev.MessageInterrupted("SECRET", choice=2),
    ev.StreamError("no SECRET, please", "bad", "c"),
]


def test_what_quotes_the_text_elsewhere_is_redacted() -> None:
    told = after(Told(EVERYWHERE), rd.redact("SECRET")).events
    assert {*map(type, told)} == {*map(type, EVERYWHERE)}
    for event in told:
        assert not any("RET" in one or "logprobs" in one for one in strings(event.to_dict())), event


def test_elsewhere_is_left_as_it_is_if_that_is_wanted() -> None:
    told = after(Told(EVERYWHERE), rd.redact("SECRET", elsewhere=False))
    assert told.events[0] == EVERYWHERE[0]
    assert told.events[-1] == EVERYWHERE[-1]
    assert any("SECRET" in one for one in strings(told.events[-2].to_dict()))


def spans(text: str) -> list[tuple[int, int]]:
    """Where its words are."""
    return [match.span() for match in re.finditer(r"\S+", text)]


@given(TEXTS, st.booleans(), st.sampled_from(["", "#", "[redacted]"]))
def test_the_range_of_a_citation_follows_the_text(text: str, finish: bool, replacement: str) -> None:
    if not text.isascii():
        return  # a provider's unit may be another
    cited = [{"title": text[i:j], "start_index": i, "end_index": j} for i, j in spans(text)]
    facts: rd.Event = (
        ev.BlockFinish(0, {"type": "text", "text": text, "citations": cited})
        if finish
        else ev.BlockDelta(0, {"citations": cited})
    )
    events = [
        ev.MessageStart("m"),
        ev.BlockStart(0, {"type": "text"}),
        ev.TextDelta(0, text),
        facts,
        *([] if finish else [ev.BlockFinish(0)]),
        ev.MessageFinish("stop"),
    ]
    reply = replies(after(Told(events), rd.redact("a+b", replacement)))[None, 0][-1]
    for block in reply.blocks:
        assert isinstance(block, rd.ContentPart)
        whole = block.text or ""
        for citation, was in zip(block.citations, cited):
            if citation.start_index is None or citation.end_index is None:
                continue  # dropped
            place = whole[citation.start_index : citation.end_index]
            if not re.search("a+b", str(was["title"])):
                assert place == was["title"]


@given(st.data(), st.lists(st.sampled_from(["SECRET", "a", '"', "\\", "\n", "\u00e9"]), max_size=6))
def test_arguments_are_redacted_in_their_strings(data: st.DataObject, words: list[str]) -> None:
    value = {"q": "".join(words), "n": [1, 2.5, None, "SECRET"], "deep": {"SECRET": "x"}}
    raw = json.dumps(value, ensure_ascii=data.draw(st.booleans()))
    size = data.draw(st.integers(1, 40))
    events = [
        ev.MessageStart("m"),
        ev.BlockStart(0, {"type": "tool_call_chunk", "id": "c", "name": "find"}),
        *(ev.ToolCallDelta(0, raw[at : at + size]) for at in range(0, len(raw), size)),
        ev.BlockFinish(
            0, data.draw(st.sampled_from([None, {"type": "tool_call", "name": "find", "args": value}]))
        ),
        ev.MessageFinish("tool_use"),
    ]
    told = after(Told(events), rd.redact("SECRET", "#", arguments=True))
    call = replies(told)[None, 0][-1].tool_calls[0]
    assert not any("SECRET" in one for event in told.events for one in strings(event.to_dict()))
    wanted = {"q": value["q"].replace("SECRET", "#"), "n": [1, 2.5, None, "#"]}  # type: ignore[attr-defined]
    told_args = rd.core.thaw(call.arguments)
    assert {name: told_args[name] for name in wanted} == wanted
    assert replies(after(Told(events), rd.redact("SECRET")))[None, 0][-1].tool_calls[0].arguments == value


# What is mapped and cut.


def units(text: str, by: Any) -> list[str]:
    told = after(plain(text, len(text) or 1), rd.cut_text(by))
    return [event.text for event in told.events if isinstance(event, ev.TextDelta)]


@given(st.data(), TEXTS, UNITS)
def test_what_is_mapped_is_each_unit_of_the_text_for_any_function(
    data: st.DataObject, text: str, by: Any
) -> None:
    def fn(unit: str) -> str:
        return f"{unit.title()}|{len(unit)}"

    told = data.draw(tellings(text))
    same(after(told, rd.map_text(fn, by)), told, lambda text: "".join(map(fn, units(text, by))))


@given(st.data(), TEXTS, UNITS)
def test_cutting_and_the_identity_change_no_reply(data: st.DataObject, text: str, by: Any) -> None:
    told = data.draw(tellings(text))
    for operator in (rd.cut_text(by), rd.map_text(lambda unit: unit, by)):
        result = after(told, operator)
        assert {lane: seen[-1] for lane, seen in replies(result).items()} == {
            lane: seen[-1] for lane, seen in replies(told).items()
        }
        assert taken_back(result) <= taken_back(told)


@given(st.data(), TEXTS, UNITS)
def test_each_delta_is_a_unit(data: st.DataObject, text: str, by: Any) -> None:
    told = data.draw(tellings(text, kinds=["text"], lanes=False, blocks=1, takes_back=False, strays=False))
    pieces = [event.text for event in after(told, rd.cut_text(by)).events if isinstance(event, ev.TextDelta)]
    left = iter(units(text, by))
    assert all(
        piece in left for piece in pieces if piece
    )  # in their order; what another event says whole is no delta


@pytest.mark.parametrize(
    ("by", "text", "wanted"),
    [
        ("word", "one two  three", ["one ", "two  ", "three"]),
        ("line", "a\nb\n\nc", ["a\n", "b\n", "\n", "c"]),
        ("char", "ae\u0301\U0001f468\u200d\U0001f469b", ["a", "e\u0301", "\U0001f468\u200d\U0001f469", "b"]),
        (3, "abcdefgh", ["abc", "def", "gh"]),
        (re.compile(r", "), "a, b, c", ["a, ", "b, ", "c"]),
        ("block", "a b. c\n", ["a b. c\n"]),
        ("sentence", "One. Two! Three", ["One. ", "Two! ", "Three"]),
    ],
)
def test_units(by: Any, text: str, wanted: list[str]) -> None:
    assert units(text, by) == wanted
    for size in (1, 2, 5):
        told = after(plain(text, size), rd.cut_text(by))
        assert [event.text for event in told.events if isinstance(event, ev.TextDelta)] == wanted


@given(st.data(), TEXTS, UNITS, SEEDS)
def test_what_is_held_at_an_end_a_cut_and_an_error_is_emitted(
    data: st.DataObject, text: str, by: Any, seed: int
) -> None:
    told = cut_off(Random(seed), data.draw(tellings(text)))
    for operator in (rd.cut_text(by), rd.map_text(lambda unit: unit, by), rd.until_sequence("\0")):
        result = after(told, operator)
        assert final(result) == final(told)
        assert result.error is told.error


@given(st.data(), TEXTS, UNITS)
def test_reasoning_is_not_mapped_if_that_is_wanted(data: st.DataObject, text: str, by: Any) -> None:
    told = data.draw(tellings(text))
    result = after(told, rd.map_text(str.upper, by, reasoning=False))
    assert final(result) == {
        place: (kind, said if kind == "reasoning" else "".join(map(str.upper, units(said, by))))
        for place, (kind, said) in final(told).items()
    }


# Sentences.


@given(st.data(), TEXTS, SEEDS)
def test_sentences_are_the_whole_text_the_same_however_it_is_told(
    data: st.DataObject, text: str, seed: int
) -> None:
    one, other = (
        data.draw(tellings(text, kinds=["text"], lanes=False, blocks=1, takes_back=False)) for _ in range(2)
    )
    assert after(one, rd.sentences()) == after(other, rd.sentences())
    assert "".join(map(str, after(one, rd.sentences()).events)) == text
    cut = cut_off(Random(seed), one)
    said = "".join(shown for _, shown in final(cut).values())
    assert "".join(map(str, after(cut, rd.sentences()).events)) == said


def test_a_finish_that_contradicts_what_was_heard_is_not_heard() -> None:
    start = ev.BlockStart(0, {"type": "text", "text": "Hi. Yo"})
    other = ev.BlockFinish(0, {"type": "text", "text": "Bye. So long."})
    again = [ev.AttemptReset(1, "busy"), ev.MessageStart("n"), start, ev.MessageFinish("stop")]
    assert after(Told([start, other, *again]), rd.sentences()).events == ["Hi. ", "Hi. ", "Yo"]


def test_a_second_run_is_refused_before_it_is_heard() -> None:
    one = ev.BlockStart(0, {"type": "text", "text": "Yes"}, run_id="a")
    other = ev.BlockStart(0, {"type": "text", "text": "No"}, run_id="b")
    told = after(Told([one, other]), rd.sentences())
    assert told.events == ["Yes"]
    assert isinstance(told.error, rd.ProtocolError)


# Stop sequences.

SEQUENCES = st.lists(
    st.sampled_from(["sk-", "ab", "aab", "a", "foobar", "bar", "\n\n", ".", "SECRET", "aaa", "\U0001f600", "b s"]),
    min_size=1,
    max_size=3,
    unique=True,
)  # fmt: skip


@given(st.data(), TEXTS, SEQUENCES, st.booleans())
def test_a_reply_ends_before_the_first_sequence_and_shows_nothing_of_it(
    data: st.DataObject, text: str, sequences: list[str], drain: bool
) -> None:
    told = data.draw(tellings(text, kinds=["text"], lanes=False, blocks=1, takes_back=False))
    result = after(told, rd.until_sequence(*sequences, drain=drain))
    whole = replies(told)[None, 0][-1]
    seen = replies(result)[None, 0]
    last = seen[-1]
    hits = [(text.find(one), len(one), one) for one in sequences if one in text]
    if not hits:
        assert last == whole
        return
    at, _, first = min(hits)
    assert (last.text, last.status, last.finish_reason) == (text[:at], "complete", "stop")
    assert last.metadata == {"stop_sequence": first}
    assert not drain or last.usage == whole.usage
    assert not any(block.open for block in last.blocks if isinstance(block, rd.ContentPart))
    assert all(text[:at].startswith(snapshot.text) for snapshot in seen)
    assert result.error is None
    assert last.to_message().text == text[:at]


@given(st.data(), TEXTS, SEQUENCES)
def test_several_choices_and_runs_end_each_by_itself(
    data: st.DataObject, text: str, sequences: list[str]
) -> None:
    told = data.draw(tellings(text, kinds=["text"], blocks=1, takes_back=False, strays=False))
    result = after(told, rd.until_sequence(*sequences))
    at = min((text.find(one) for one in sequences if one in text), default=len(text))
    for seen in replies(result).values():
        assert seen[-1].text == text[:at]


def test_a_beginning_that_is_none_is_emitted_as_soon_as_that_is_known() -> None:
    source: Subject[rd.Event] = Subject()
    seen = list[str]()
    source.pipe(rd.until_sequence("STOP"), rd.text_deltas()).subscribe(seen.append)
    source.on_next(ev.BlockStart(0, {"type": "text"}))
    for piece, wanted in [("a S", "a "), ("TO", "a "), ("S", "a STO"), ("TOX", "a STOSTOX")]:
        source.on_next(ev.TextDelta(0, piece))
        assert "".join(seen) == wanted
