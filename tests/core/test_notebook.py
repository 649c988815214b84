"""A reply in a notebook: its text as markdown, and nothing of it as HTML."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given, strategies as st

import rxdelta as rd

OURS = re.compile(r"</?(details|summary|pre|code)>")


def drawn(*blocks: rd.ContentPart | rd.ToolCall | str) -> str:
    return rd.Message.of("assistant", blocks)._repr_markdown_()


def test_the_text_is_markdown_and_the_rest_is_folded() -> None:
    call = rd.ToolCall(call_id="c1", name="look", arguments={"q": "x"}, status="complete")
    shown = drawn(rd.ContentPart("reasoning", "Hm"), "# Well\n\n*so*", call)
    assert "\n\n# Well\n\n*so*\n\n" in shown
    assert "<details><summary>reasoning</summary><pre>Hm</pre></details>" in shown
    assert '"q": "x"' in html.unescape(shown)
    assert shown.count("<details>") == 2


def test_an_unfinished_reply_says_so() -> None:
    snapshot = rd.apply_event(rd.Snapshot(), rd.events.BlockStart(0, {"type": "text", "text": "Hi"}))
    assert snapshot._repr_markdown_() == "Hi\n\n*incomplete*"


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>",
        "`<b>` and ``<i>``",
        "```html\n<script>\n\n</script>\n```\n<b>",
        "```\nnever closed <script>",
        "a </pre></details> b",
        "<javascript:alert(1)>",
    ],
)
@pytest.mark.parametrize("kind", ["text", "reasoning", "refusal"])
def test_no_html_of_the_model_is_left(text: str, kind: str) -> None:
    shown = OURS.sub("", drawn(rd.ContentPart(kind, text)))
    assert "<" not in shown
    assert re.findall(r"\w+", text)[-1] in html.unescape(shown)


@given(st.text(alphabet="<>`~![](): \n\tab&$\\/\x1b", max_size=60))
def test_no_text_makes_html_a_picture_or_a_link_with_another_name(text: str) -> None:
    shown = OURS.sub("", drawn(text))
    assert "<" not in shown
    assert "![" not in shown
    assert "](" not in shown
    assert "]:" not in shown
    assert "\x1b" not in shown


def test_code_is_shown_letter_by_letter() -> None:
    code = 'd[x](1)  # <b> & "y"\n\n*z*\n'
    shown = drawn(f"So:\n\n```python\n{code}```\n\nand `a<b`.")
    inside = re.findall(r"<code>(.*?)</code>", shown)
    assert [html.unescape(part) for part in inside] == [code, "a<b"]


def test_a_large_text_is_cut_and_says_how_long_it_is() -> None:
    assert drawn("x" * 200_000).endswith("… (200,000 characters)")
