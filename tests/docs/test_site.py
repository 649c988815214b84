"""The built site: no dead link, each page as text and with a preview, and readable on a telephone, by keyboard and in the dark."""

from __future__ import annotations

import re
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from support.browser import chromium, page, tab
from support.pages import FENCE

pytestmark = [pytest.mark.slow]

BASE = "https://rxdelta.github.io/rxdelta/stable/"
KEY_PAGES = (
    "index.html",
    "operators.html",
    "tasks/redact.html",
    "guide/tools.html",
    "reference/pacing.html",
    "genindex.html",
    "search.html?q=throttle",
)
NARROW = {"width": 360, "height": 740}


class Seen(HTMLParser):
    """What a page links to, its anchors, and what a preview reads in its head."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.named: dict[str, str] = {}
        self.without_alt: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links |= {given[name] for name in ("href", "src") if name in given and tag != "use"}
        if tag == "meta" and (name := given.get("name") or given.get("property")):
            self.named[name] = given.get("content", "")
        if tag == "link" and "rel" in given:
            self.named[given["rel"]] = given.get("href", "")
        if tag == "img" and not given.get("alt"):
            self.without_alt.append(given.get("src", ""))


@pytest.fixture(scope="module")
def seen(site: Path) -> dict[Path, Seen]:
    files = sorted(site.rglob("*.html"))
    return {path: Seen(path.read_text("utf-8")) for path in files if "_static" not in path.parts}


def names(site: Path, seen: dict[Path, Seen]) -> list[str]:
    """The pages that somebody wrote."""
    made = {"genindex", "py-modindex", "search"}
    found = [path.relative_to(site).with_suffix("").as_posix() for path in seen]
    return [name for name in found if name not in made and not name.startswith("pagefind/")]


def test_links_and_anchors_lead_somewhere(site: Path, seen: dict[Path, Seen]) -> None:
    dead: dict[str, list[str]] = defaultdict(list)
    for path, content in seen.items():
        for link in content.links:
            if re.match(r"[a-z]+:", link) or (link == "#" and path.name == "genindex.html"):
                continue
            file, _, anchor = link.partition("#")
            target = (path.parent / unquote(file.partition("?")[0])).resolve() if file else path
            there = seen.get(target)
            if not target.is_file() or (anchor and there and unquote(anchor) not in there.anchors):
                dead[path.relative_to(site).as_posix()].append(link)
    assert dead == {}


def test_each_page_has_its_text(site: Path, seen: dict[Path, Seen]) -> None:
    for name in names(site, seen):
        beside = seen[site / f"{name}.html"].named["alternate"]
        text = (site / name).with_name(beside).read_text("utf-8")
        assert len(text) > 50, name
        assert "```{" not in text, f"{name} has a directive that isn't resolved"
        for link in re.findall(r"\]\((?![a-z]+:|#)([^)#\s]+)", FENCE.sub("", text)):
            assert (site / name).parent.joinpath(link).is_file(), f"{name}: {link}"


def test_llms_txt_lists_each_page_once_with_a_line(site: Path, seen: dict[Path, Seen]) -> None:
    text = (site / "llms.txt").read_text("utf-8")
    assert re.match(r"# rxdelta\n\n> \S.{30,}\n\n", text)
    listed = re.findall(rf"^- \[.+\]\({BASE}(\S+)\)(: \S.+)?$", text, re.MULTILINE)
    assert all((site / file).is_file() for file, _ in listed)
    assert sorted(file.rpartition(".")[0] for file, _ in listed) == sorted(set(names(site, seen)) - {"index"})
    assert [file for file, said in listed if not said] == []


def test_a_link_to_a_page_has_a_preview(site: Path, seen: dict[Path, Seen]) -> None:
    for name in names(site, seen):
        head = seen[site / f"{name}.html"].named
        assert head["canonical"] == head["og:url"] == f"{BASE}{name}.html"
        assert head["og:title"]
        assert 20 <= len(head["description"]) <= 210, name
        assert head["og:description"] == head["description"]
        assert (site / head["og:image"].removeprefix(BASE)).is_file()
    assert (site / "_static/logo.svg").is_file()


def test_each_picture_says_what_it_shows(site: Path, seen: dict[Path, Seen]) -> None:
    assert {path.name: content.without_alt for path, content in seen.items() if content.without_alt} == {}


def test_key_pages_fit_a_telephone(address: str) -> None:
    with page() as opened:
        opened.set_viewport_size(NARROW)
        for name in KEY_PAGES:
            opened.goto(f"{address}/{name}", wait_until="load")
            # What is too wide for the page scrolls in the theme's `.content`.
            parts = opened.locator("html, .content")
            widths = parts.evaluate_all("parts => parts.map(part => part.scrollWidth)")
            assert len(widths) == 2
            assert max(widths) <= NARROW["width"], f"{name} is {max(widths)} wide"


def test_key_pages_are_read_by_keyboard(address: str) -> None:
    """The first key leads past the sidebar; where the focus is, is seen."""
    with page() as opened:
        for name in KEY_PAGES:
            opened.goto(f"{address}/{name}", wait_until="load")
            if "search" in name:
                continue
            opened.keyboard.press("Tab")
            assert opened.evaluate("document.activeElement.hash") == "#furo-main-content"
            for _ in range(6):
                opened.keyboard.press("Tab")
                shown: Any = opened.evaluate(
                    "(s => s.outlineStyle !== 'none' || s.boxShadow !== 'none' || s.borderStyle !== 'none')"
                    "(getComputedStyle(document.activeElement))"
                )
                assert shown, f"{name}: {opened.evaluate('document.activeElement.outerHTML')}"


# All results are there, in the place of the dots that stand for them at first.
SHOWN = (
    "document.querySelector('.pagefind-ui__result-link') && !document.querySelector('.pagefind-ui__loading')"
)

# The contrast of each text in the article, also of its pictures of time, with what lies behind it, by WCAG's formula. `color-mix` computes to `color(srgb …)`.
FAINT = """() => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgba = text => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = color => color.slice(0, 3).map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const color = rgba(getComputedStyle(e).backgroundColor);
      if (color[3] > 250) return color;
    }
    return rgba(getComputedStyle(document.body).backgroundColor);
  };
  const faint = {};
  for (const element of document.querySelectorAll("article *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    if (element.closest(".headerlink, .highlight, style, script, svg title, svg desc")) continue;
    const inPicture = element.closest("svg"), ground = behind(inPicture ? inPicture.parentElement : element);
    let shown = rgba(getComputedStyle(element)[inPicture ? "fill" : "color"]);
    if (inPicture) {
      let opacity = 1;
      for (let e = element; e !== inPicture; e = e.parentElement) opacity *= getComputedStyle(e).opacity;
      shown = shown.map((v, i) => v * opacity + ground[i] * (1 - opacity));
    }
    const [a, b] = [light(shown), light(ground)];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) faint[element.tagName + "." + element.className + ": " + element.textContent.trim().slice(0, 30)] = ratio.toFixed(2);
  }
  return faint;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(address: str, scheme: str) -> None:
    with chromium() as browser, tab(browser) as opened:
        opened.emulate_media(color_scheme=scheme)
        for name in KEY_PAGES:
            opened.goto(f"{address}/{name}", wait_until="load")
            if "search" in name:
                opened.wait_for_function(SHOWN)
            assert opened.evaluate(FAINT) == {}, name


def test_print_leaves_out_what_leads_elsewhere(address: str) -> None:
    with page() as opened:
        opened.emulate_media(media="print")
        for name in KEY_PAGES[:-1]:
            opened.goto(f"{address}/{name}", wait_until="load")
            for part in (".sidebar-drawer", ".toc-drawer", ".mobile-header", ".related-pages"):
                assert opened.locator(part).evaluate_all("x => x.every(e => !e.checkVisibility())"), (
                    name,
                    part,
                )
