"""`rxdelta diff`: what counts as a difference, and how it is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs
import pytest

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.testing import FakeProvider

TEXT = "The tides.\nHigh water is at six.\nLow water is at noon.\nThat is all.\nGood bye."
CALL = rd.ToolCall(call_id="c1", name="tide", arguments={"port": "Brest", "day": 1}, status="complete")


@pytest.fixture
def diff(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(a: Any, b: Any, *options: str, to: str = "anthropic-messages") -> tuple[int, list[str]]:
        paths = [tmp_path / "a", tmp_path / "b"]
        for path, reply, wire_format in zip(paths, (a, b), ("anthropic-messages", to)):
            ends = isinstance(reply[-1], (rd.events.MessageFinish, rd.events.StreamError))
            told = reply if ends else [*reply, rd.events.MessageFinish(None, usage=rd.TokenUsage(1, 2))]
            with path.open("w") as file:
                for chunk in FakeProvider(told).chunks(wire_format):
                    print(json.dumps(chunk), file=file)
        code = main(["diff", *map(str, paths), *options])
        return code, capsys.readouterr().out.splitlines()[2:]

    return run


def test_equal_replies_are_no_difference_in_any_format(diff: Any) -> None:
    for to in ("anthropic-messages", "openai-chat", "gemini", "ai-sdk"):
        assert diff([TEXT, CALL], [TEXT, CALL], to=to) == (0, [])


def test_how_a_reply_came_is_no_difference(diff: Any) -> None:
    assert diff(["The ", "tides"], ["The tides"]) == (0, [])


@pytest.mark.parametrize(
    ("a", "b", "shown"),
    [
        (
            [TEXT],
            [TEXT.replace("noon", "one")],
            ["@@ block 1: text @@", " The tides.", " High water is at six.", "-Low water is at noon.",
             "+Low water is at one.", " That is all.", " Good bye."],
        ),
        (
            [CALL],
            [attrs.evolve(CALL, arguments={"day": 1, "port": "Plymouth"})],
            ["@@ block 1: tool_call tide @@", " {", '   "day": 1,', '-  "port": "Brest"', '+  "port": "Plymouth"', " }"],
        ),
        (
            ["a", CALL],
            ["a"],
            ["@@ block 2: tool_call tide @@", "-{", '-  "day": 1,', '-  "port": "Brest"', "-}", "@@ end @@",
             " status: complete", "-finish reason: tool_use", "+finish reason: stop", " input tokens: 1",
             " output tokens: 2"],
        ),
    ],
    ids=["text", "arguments", "a block"],
)  # fmt: skip
def test_a_difference_is_shown_by_block(a: Any, b: Any, shown: list[str], diff: Any) -> None:
    assert diff(a, b) == (1, shown)


def test_different_tokens_are_a_difference(diff: Any) -> None:
    replies = [["a", rd.events.MessageFinish("stop", usage=rd.TokenUsage(1, count))] for count in (5, 6)]
    code, shown = diff(*replies)
    assert (code, shown[-2:]) == (1, ["-output tokens: 5", "+output tokens: 6"])


def test_an_incomplete_reply_differs_from_a_whole_one(diff: Any) -> None:
    code, shown = diff(["a"], ["a", rd.events.StreamError("overloaded", "overloaded_error")])
    assert code == 1
    assert "+status: incomplete" in shown
    assert any(line.startswith("+error: ProviderError") and "overloaded" in line for line in shown)


def test_ids_and_models_count_only_if_asked(diff: Any) -> None:
    start = rd.events.MessageStart("another", "another-model")
    pair = [CALL], [start, attrs.evolve(CALL, call_id="c2")]
    assert diff(*pair) == (0, [])
    code, shown = diff(*pair, "--all")
    assert code == 1
    assert {'-  "call_id": "c1",', '+  "call_id": "c2",', '+  "model": "another-model",'} <= {*shown}


def test_far_lines_are_left_out(diff: Any) -> None:
    text = "\n".join(map(str, range(30)))
    _, shown = diff([text], [text.replace("3\n4", "3!\n4").replace("25", "25!")])
    assert (" …" in shown, " 15" in shown, len([line for line in shown if line[0] in "-+"])) == (
        True,
        False,
        4,
    )


def test_control_characters_are_symbols(diff: Any) -> None:
    _, shown = diff(["a\x1b[2Ja\tb"], ["b"])
    assert "-a␛[2Ja␉b" in shown


def test_standard_input_is_one_of_the_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "-", "-"]) == 2
    assert "only once" in capsys.readouterr().err


def test_a_cached_token_is_the_same_token_in_another_format(diff: Any) -> None:
    usage = rd.TokenUsage(131, 74, raw={"prompt_tokens": 131, "prompt_tokens_details": {"cached_tokens": 64}})
    told = ["Hi", rd.events.MessageFinish("stop", usage=usage)]
    assert diff(told, told, to="openai-chat") == (0, [])
