"""`rxdelta inspect --html`: one page without scripts, in which nothing of a recording is markup."""

from __future__ import annotations

import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from support.browser import chromium
from support.timed_recordings import agents, reply, timed, write

import rxdelta as rd
from rxdelta.cli import main
from rxdelta.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    Custom,
    MessageFinish,
    MessageStart,
    ProviderEvent,
    StreamError,
    TextDelta,
    ToolCallDelta,
    ToolUpdate,
)
from rxdelta.testing import open_sample

VOID = {"meta", "br", "hr", "img", "input", "link"}
EVIL = "</pre></details><script>document.title='owned'</script><img src=http://127.0.0.1:9/x onerror=alert(1)>\"'&\u202e\x1b"
"""A text that ends any element or attribute that it may be in."""


class Page(HTMLParser):
    """A page's elements and its text. It fails on elements that aren't nested."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), f"{tag} has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text.append(data)

    def names(self) -> set[str]:
        return {tag for tag, _ in self.tags}

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [found for _, found in self.tags if name in (found.get("class") or "").split()]

    def said(self) -> str:
        return " ".join("".join(self.text).split())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def page_of(recording: str, code: int = 0) -> str:
    out = Path(recording).with_suffix(".html")
    assert main(["inspect", recording, "--html", str(out)]) == code
    return out.read_text("utf-8")


def everywhere(text: str) -> list[Any]:
    """Events of a reply that has a text in every place."""
    name = text or "x"
    return [
        MessageStart(text, text, metadata={name: text}),
        BlockStart(0, {"type": "text"}),
        TextDelta(0, text),
        BlockDelta(0, {"citations": [{"title": text, "url": text, "cited_text": text}], name: text}),
        BlockFinish(0),
        BlockStart(1, {"type": "tool_call_chunk", "id": name, "name": text}),
        ToolCallDelta(1, json.dumps({name: text})),
        BlockFinish(1),
        BlockStart(2, {"type": "tool_call_chunk", "id": f"{name}2", "name": name}),
        ToolCallDelta(2, text),
        BlockFinish(2),
        BlockStart(3, {"type": text or "image"}),
        BlockFinish(3),
        ToolUpdate(name, "executing", text),
        ToolUpdate(name, "completed", result=rd.ToolResult(name, {"found": text})),
        Custom(name, {name: text}),
        ProviderEvent(text, text, {name: text}),
        MessageFinish("stop", text),
        TextDelta(0, text),
        StreamError(text, text, text),
    ]


LEGAL: set[str] = set()


@pytest.fixture(scope="module", autouse=True)
def legal_tags(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("plain") / "plain.jsonl"
    LEGAL.update(Page(page_of(write(path, timed(everywhere("plain"))), 3)).names())


HOSTILE = st.one_of(
    st.text(max_size=30),
    st.sampled_from([EVIL, "</title>", "</style>", "<!--", "]]>", "&lt;", "\0", "a" * 9000]),
)


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(HOSTILE)
def test_no_text_of_a_recording_becomes_markup(path: Path, text: str) -> None:
    text = "".join(letter for letter in text if not "\ud800" <= letter <= "\udfff")
    found = page_of(write(path, timed(everywhere(text))), 3)
    page = Page(found)
    assert page.names() <= LEGAL | {"caption", "li", "ul"}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    links = [found.get("href") for _, found in page.tags if found.get("href")]
    assert all(re.fullmatch(r"#r\d+(b\d+)?", link or "") for link in links)
    assert not {found.get("src") for _, found in page.tags} - {None}
    assert not set(found) & set("\u202e\x1b\0")


def test_the_page_allows_nothing_from_elsewhere_and_no_script(path: Path) -> None:
    page = Page(page_of(write(path, timed(reply()))))
    policies = [
        found["content"] for tag, found in page.tags if found.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies == ["default-src 'none'; style-src 'unsafe-inline'"]
    assert not page.names() & {"script", "link", "img", "iframe", "object", "base", "form", "embed"}


def test_each_block_has_a_lane_a_picture_in_words_and_details_to_open(path: Path) -> None:
    page = Page(page_of(write(path, agents())))
    lanes = page.with_class("lane")
    assert len(lanes) == 1 + 2 * 2 + 3, "the axis; of each reply its name and its message; the blocks"
    pictures = [found for tag, found in page.tags if tag == "svg" and found.get("role") == "img"]
    labels = [found["aria-label"] or "" for found in pictures]
    assert any(
        re.match(r"tool_call ask: 18 characters in 1 piece · 0\.300 s – 0\.500 s · tool completed", one)
        for one in labels
    )
    assert len(page.with_class("run")) == 1
    targets = {found["id"] for _, found in page.tags if found.get("id")}
    links = [(found["href"] or "")[1:] for tag, found in page.tags if tag == "a"]
    assert set(links) <= targets
    assert '"topic": "walks"' in page.said()
    assert "Three walks" in page.said()


def test_the_tiles_say_what_the_reply_took(path: Path) -> None:
    said = Page(page_of(write(path, timed(reply("Hello there"))))).said()
    for words in (
        "first content0.700 s",
        "took1.400 s",
        "25 tokens/s",
        "7 read from cache",
        "model-1 · 10 events",
    ):
        assert words in said
    assert Page(page_of(write(path, timed(reply())))).with_class("good")
    broken = Page(
        page_of(write(path, timed([*reply()[:6], TextDelta(7, "lost"), StreamError("no room")])), 3)
    )
    assert len(broken.with_class("wrong")) >= 2
    assert broken.with_class("banner")
    assert "no room" in broken.said()


def test_a_long_gap_is_shaded_and_a_recording_without_times_is_drawn_by_numbers(path: Path) -> None:
    events = [
        (at + (5 if place > 6 else 0), event) for place, (at, event) in enumerate(timed(reply("a b c d")))
    ]
    timed_page = Page(page_of(write(path, events)))
    assert timed_page.with_class("gap")
    assert "5.100 s" in timed_page.said()
    with open_sample("tides") as file:
        path.write_bytes(file.read())
    untimed = Page(page_of(str(path)))
    assert "events, by their numbers" in untimed.said()
    assert not untimed.with_class("gap")
    assert "0.000" not in untimed.said()


def test_a_reply_of_5000_events_makes_a_small_page(path: Path) -> None:
    text = [TextDelta(1, f"word{number} ") for number in range(5000)]
    events = [*reply()[:5], *text, *reply()[-3:]]
    found = page_of(write(path, timed(events, 0.02)))
    assert len(found) < 300_000
    assert Page(found).with_class("wave")
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"content": "<" * 400}}]}
    last = {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert len(page_of(write(path, timed([chunk] * 5000 + [last], 0.02)))) < 1_500_000


def test_many_blocks_are_counted_and_not_all_drawn(path: Path) -> None:
    blocks = [
        one
        for number in range(400)
        for one in (BlockStart(number, {"type": "text", "text": "x" * 50}), BlockFinish(number))
    ]
    found = page_of(write(path, timed([MessageStart("m"), *blocks, MessageFinish("stop")], 0.01)))
    said = Page(found).said()
    assert "280 more blocks aren't drawn" in said
    assert "200 more blocks aren't shown" in said
    assert len(found) < 600_000


def test_the_page_goes_to_standard_output_or_over_a_file(
    path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    recording = write(path, timed(reply()))
    page = page_of(recording)
    assert main(["inspect", recording, "--html", "-"]) == 0
    assert capsysbinary.readouterr().out.decode() == page
    path.with_suffix(".html").write_text("older")
    assert page_of(recording) == page


def test_the_page_never_takes_the_place_of_the_recording(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Path(write(path, timed(reply()))).read_bytes()
    assert main(["inspect", str(path), "--html", str(path)]) == 2
    assert "must not take the place" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_page_that_cannot_be_written_is_an_error(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = path.parent / "nowhere" / "page.html"
    assert main(["inspect", write(path, timed(reply())), "--html", str(out)]) == 1
    assert "cannot write" in capsys.readouterr().err
    path.write_bytes(b"no stream")
    assert main(["inspect", str(path), "--html", str(path.with_suffix(".html"))]) == 2
    assert not path.with_suffix(".html").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="paths of file URLs")
@pytest.mark.parametrize("kind", ["agents", "hostile"])
def test_a_browser_shows_the_page_narrow_wide_light_and_dark(kind: str, path: Path) -> None:
    events = agents() if kind == "agents" else timed(everywhere(EVIL * 20))
    page_of(write(path, events), 0 if kind == "agents" else 3)
    colours = set()
    with chromium() as browser:
        for scheme in ("light", "dark"):
            context = browser.new_context(viewport={"width": 360, "height": 800}, color_scheme=scheme)
            opened = context.new_page()
            asked: list[str] = []
            opened.on("request", lambda request, asked=asked: asked.append(request.url))
            opened.on("dialog", lambda dialog: pytest.fail(dialog.message))
            opened.goto(path.with_suffix(".html").as_uri())
            assert len(asked) == 1, "the page itself"
            colours.add(opened.evaluate("getComputedStyle(document.body).backgroundColor"))
            opened.locator(".lane a[href='#r1b0']").click()  # it opens the details that it leads to
            assert opened.locator("#r1b0").is_visible()
            opened.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            for width in (360, 1280):
                opened.set_viewport_size({"width": width, "height": 800})
                assert opened.evaluate("document.documentElement.scrollWidth") == width
                lane = opened.locator(".lane", has=opened.locator("a[href='#r1b0']"))
                name, bar = lane.locator(".name").bounding_box(), lane.locator("> svg").bounding_box()
                assert (name["y"] + name["height"] <= bar["y"] + 1) is (width == 360), (
                    "the name is above the bar"
                )
            assert opened.title() == path.name
            context.close()
    assert len(colours) == 2
