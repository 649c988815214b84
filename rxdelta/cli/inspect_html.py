"""An inspection as one page: no script, nothing from elsewhere, and all that the recording says is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rxdelta.cli.account import Account, BlockAccount, Row
from rxdelta.cli.facts import (
    Facts,
    block_facts,
    chunk_text,
    in_seconds,
    reply_facts,
    seconds,
    stream_facts,
    title_of,
)
from rxdelta.cli.files import error_text
from rxdelta.cli.html_timeline import Markup, anchor, cut, element, esc, hue_of, table, timeline
from rxdelta.cli.inspected import Inspection
from rxdelta.core import ContentPart, ToolCall, thaw

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f6f5f2; --card: #fff; --line: #e2dfd8; --grid: #ebe8e1; --ink: #1d2026; --soft: #5d6370;
  --gap: #efece5; --gap-ink: #6a6558; --accent: #0b6b5d;
  --good: #17714a; --warn: #8f5600; --bad: #bb1f2e; --good-back: #e2f3ea; --warn-back: #fcefd8; --bad-back: #fde6e7;
  --text: #2a63c9; --reasoning: #7a4bc4; --call: #b2580c; --result: #1c7a55; --media: #b3307f; --other: #59616e;
  --mono: ui-monospace, "SF Mono", SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #121418; --card: #1a1d23; --line: #2d323b; --grid: #262a32; --ink: #e8e9ec; --soft: #a1a8b5;
    --gap: #22262d; --gap-ink: #a29c8c; --accent: #52cdb6;
    --good: #5fd09b; --warn: #edb256; --bad: #ff8088; --good-back: #16302a; --warn-back: #33291a; --bad-back: #3b1f24;
    --text: #7ba8ff; --reasoning: #bb97fb; --call: #f0a052; --result: #5fcf9d; --media: #f283c0; --other: #a3acba;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; padding: 2rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif;
}
main { max-width: 70rem; margin: 0 auto; }
h1, h2, h3, p, dl, dd, figure, table { margin: 0; }
h1 { font-size: 1.5rem; line-height: 1.25; font-weight: 650; letter-spacing: -.01em; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; font-weight: 650; margin: 2.25rem 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: .95rem; font-weight: 600; margin: 1.25rem 0 .5rem; }
a { color: inherit; }
a:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 4px; }
bdi, .says { unicode-bidi: isolate; }
.above { color: var(--soft); font-size: .85rem; margin-bottom: .2rem; }
.below { color: var(--soft); margin-top: .3rem; }

.badge {
  display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-size: .85rem; font-weight: 600;
  vertical-align: .15em; white-space: nowrap;
}
.good { color: var(--good); background: var(--good-back); }
.warn { color: var(--warn); background: var(--warn-back); }
.bad { color: var(--bad); background: var(--bad-back); }
.banner { margin: 1rem 0 0; padding: .7rem 1rem; border-radius: .6rem; overflow-wrap: anywhere; }

.tiles { display: grid; grid-template-columns: repeat(4, minmax(0, 1fr)); gap: .7rem; margin-top: 1.25rem; }
.tiles.in-5 { grid-template-columns: repeat(5, minmax(0, 1fr)); }
.tiles.in-3 { grid-template-columns: repeat(3, minmax(0, 1fr)); }
.tiles > div { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .65rem .85rem; }
.tiles dt { color: var(--soft); font-size: .8rem; }
.tiles dd { font-size: 1.3rem; font-weight: 620; line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.tiles dd small { display: block; font-size: .8rem; font-weight: 400; color: var(--soft); line-height: 1.35; }
.tiles dd.is-bad { color: var(--bad); }
.tiles dd.is-warn { color: var(--warn); }

.timeline { margin-top: 1.25rem; background: var(--card); border: 1px solid var(--line); border-radius: .7rem; padding: .9rem 1rem .5rem; }
.lane { display: grid; grid-template-columns: 13.5rem minmax(0, 1fr); column-gap: .9rem; align-items: stretch; }
.lane + .lane { border-top: 1px solid var(--grid); }
.lane.axis + .lane, .lane.foot { border-top: 1px solid var(--line); }
.lane.head { border-top: 1px solid var(--line); }
.lane.head .name { font-weight: 650; grid-column: 1 / -1; padding: .5rem 0 .3rem; }
.name { display: flex; gap: .5rem; align-items: center; min-width: 0; font-size: .88rem; padding: .25rem 0; }
.name a { text-decoration: none; min-width: 0; display: block; }
.name a:hover { text-decoration: underline; }
.label { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2; overflow: hidden; overflow-wrap: anywhere; line-height: 1.3; }
.sub { color: var(--soft); font-size: .78rem; line-height: 1.3; display: block; font-variant-numeric: tabular-nums; }
.dot { flex: none; width: .65rem; height: .65rem; border-radius: .2rem; background: var(--hue); align-self: flex-start; margin-top: .3rem; }
.lane > svg { display: block; width: 100%; height: 100%; min-height: 30px; overflow: visible; }
.lane.axis > svg { height: 40px; }
.grid { stroke: var(--grid); }
.gap { fill: var(--gap); }
.gap-words, .tick-words { font-size: 11px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.gap-words { fill: var(--gap-ink); }
.flag { stroke: var(--accent); stroke-width: 1.5; stroke-dasharray: 3 3; }
.flag-words { font-size: 11px; font-weight: 600; fill: var(--accent); }
.stop { stroke: var(--soft); stroke-width: 1.5; }
.stop-words { font-size: 11px; font-weight: 600; fill: var(--soft); }
.bar { fill: var(--hue); fill-opacity: .16; stroke: var(--hue); stroke-opacity: .45; }
.open-end { stroke-dasharray: 4 3; }
.wave { stroke: var(--hue); stroke-width: 1.6; fill: none; stroke-linecap: round; vector-effect: non-scaling-stroke; }
.run { fill: url(#hatch); stroke: var(--hue); stroke-opacity: .6; }
.mark { fill: var(--soft); }
.mark.wrong { fill: var(--bad); stroke: var(--card); stroke-width: 1.5; }
.hatch { stroke: var(--call); stroke-width: 1.5; stroke-opacity: .5; }
.of-text { --hue: var(--text); } .of-reasoning { --hue: var(--reasoning); } .of-call { --hue: var(--call); }
.of-result { --hue: var(--result); } .of-media { --hue: var(--media); } .of-bad { --hue: var(--bad); }
.of-other { --hue: var(--other); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1.1rem; padding: .6rem 0 .3rem; color: var(--soft); font-size: .8rem; }
.legend span { display: inline-flex; align-items: center; gap: .4rem; }
.legend i { width: .9rem; height: .7rem; border-radius: .15rem; display: inline-block; }
.legend .key-flag { width: 0; height: .9rem; border-left: 2px dashed var(--accent); border-radius: 0; }
.legend .key-gap { background: var(--gap); border: 1px solid var(--line); }
.legend .key-run { background: repeating-linear-gradient(45deg, transparent 0 2px, var(--call) 2px 3px); border: 1px solid var(--call); }
.legend .key-wrong { width: .7rem; background: var(--bad); clip-path: polygon(50% 0, 100% 100%, 0 100%); }

details { background: var(--card); border: 1px solid var(--line); border-radius: .7rem; margin-top: .6rem; }
summary { cursor: pointer; padding: .6rem .9rem; display: flex; flex-wrap: wrap; gap: .1rem .6rem; align-items: baseline; overflow-wrap: anywhere; list-style: none; }
summary::-webkit-details-marker { display: none; }
summary::before { content: "›"; color: var(--soft); font-weight: 700; width: .6rem; transition: transform .12s; flex: none; }
details[open] > summary::before { transform: rotate(90deg); }
summary .dot { align-self: center; margin: 0; }
summary b { font-weight: 600; min-width: 0; }
summary .sub { font-size: .85rem; min-width: 0; }
.inside { padding: 0 .9rem .9rem; min-width: 0; }
.inside details { background: none; }
.inside > :first-child { margin-top: 0; }
pre {
  margin: .5rem 0 0; padding: .7rem .85rem; background: var(--page); border-radius: .5rem; font: .83rem/1.5 var(--mono);
  white-space: pre-wrap; overflow-wrap: anywhere; max-height: 30rem; overflow-y: auto; unicode-bidi: isolate;
}
pre.prose { font: inherit; font-size: .93rem; }
.more { color: var(--soft); font-size: .85rem; margin-top: .4rem; }
ul { margin: .4rem 0 0; padding-left: 1.2rem; }
li { overflow-wrap: anywhere; }
.facts { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: .2rem 1.2rem; font-size: .9rem; }
.facts dt { color: var(--soft); }
.facts dd { overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .83rem; font-variant-numeric: tabular-nums; table-layout: auto; }
caption { text-align: left; color: var(--soft); padding: .3rem 0; }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th { text-align: left; font-weight: 600; color: var(--soft); border-bottom: 1px solid var(--line); padding: .25rem .8rem .25rem 0; white-space: nowrap; }
td { border-bottom: 1px solid var(--grid); padding: .2rem .8rem .2rem 0; vertical-align: top; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.says { font-family: var(--mono); font-size: .8rem; width: 99%; overflow-wrap: anywhere; }
tr.wrong td { color: var(--bad); }
td.what { white-space: nowrap; }

@media (max-width: 40rem) {
  body { padding: 1.25rem .75rem 3rem; }
  h1 { font-size: 1.25rem; }
  .lane > svg { height: 30px; }
  .tiles, .tiles.in-3, .tiles.in-5 { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem; }
  .tiles dd { font-size: 1.1rem; }
  .timeline { padding: .7rem .7rem .4rem; }
  .lane { grid-template-columns: minmax(0, 1fr); padding: .25rem 0; }
  .name { padding: 0 0 .15rem; }
  .name a { display: flex; flex-wrap: wrap; gap: 0 .5rem; align-items: baseline; }
  .odd { display: none; }
  .facts { grid-template-columns: minmax(0, 1fr); gap: 0; }
  .facts dd { margin-bottom: .4rem; }
  .wide { display: none; }
  td, th { padding-right: .5rem; }
  td.what { white-space: normal; }
}
@media (prefers-reduced-motion: reduce) { summary::before { transition: none; } }
@media (forced-colors: active) { .bar, .gap, .run { stroke: CanvasText; } .dot { border: 1px solid CanvasText; } }
@media print {
  body { background: #fff; padding: 0; font-size: 11pt; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .tiles > div, .timeline, details { break-inside: avoid; }
  details[open] { break-inside: auto; }
  pre { max-height: none; }
}
"""


_BLOCKS = 200  # of one reply that can be opened
_TEXT = 400_000  # characters of all blocks
_LONGEST, _SHORTEST = 20_000, 400  # characters of one block
_ROWS = 2_000  # events of all blocks
_SAYS = 160
_RAW = 700  # characters of a chunk
_CITATIONS = 50
_MODELS = 3  # that are named in the header
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"

_STATUS = {"complete": "good", "length": "warn", "interrupted": "warn", "incomplete": "warn"}


def page(inspection: Inspection, title: str) -> str:
    """The page.

    Args:
        inspection: That of a recording that was read to its end, and has a reply.
        title: The name of the recording.
    """
    several = len(inspection.replies) > 1
    count = sum(min(len(reply.blocks), _BLOCKS) for reply in inspection.replies) or 1
    sections = [
        _Section(inspection, reply, number, several, count).markup()
        for number, reply in enumerate(inspection.replies, 1)
    ]
    body = element(
        "main",
        _header(inspection, title),
        _tiles(_total_tiles(inspection) if several else _reply_tiles(inspection.replies[0], inspection)),
        timeline(inspection),
        *sections,
        element("h2", "The file"),
        _facts(stream_facts(inspection)),
        _chunks(inspection),
    )
    head = (
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{esc(_POLICY)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<title>{esc(title)}</title><style>{STYLE}</style>"
    )
    return f'<!doctype html>\n<html lang="en">\n<head>{head}</head>\n<body>{body}</body>\n</html>\n'


def _header(inspection: Inspection, title: str) -> Markup:
    words, kind = _verdict(inspection)
    kinds = [inspection.wire_format, f"{inspection.events:,} events"]
    kinds += [f"{inspection.chunks:,} chunks"] if inspection.chunks else []
    models = [*dict.fromkeys(reply.snapshot.model for reply in inspection.replies)]
    kinds = [*models[:_MODELS], *kinds]
    error = [] if inspection.error is None else [inspection.error]
    said = dict.fromkeys(
        error_text(one) for one in [*error, *(reply.error for reply in inspection.replies if reply.error)]
    )
    return element(
        "header",
        element("p", "rxdelta inspect", class_="above"),
        element("h1", f"{cut(title, 200)[0]} ", element("span", words, class_=f"badge {kind}")),
        element("p", " · ".join(one for one in kinds if one), class_="below"),
        *(element("p", cut(one, 2_000)[0], class_="banner bad", role="note") for one in said),
    )


def _verdict(inspection: Inspection) -> tuple[str, str]:
    if inspection.error is not None or any(reply.error for reply in inspection.replies):
        return "error", "bad"
    statuses = [reply.snapshot.status for reply in inspection.replies]
    word = next((one for one in ("incomplete", "interrupted", "length") if one in statuses), "complete")
    return {"length": "cut by length"}.get(word, word), _STATUS[word]


Tile = tuple[str, str, str, str]
"""A name, a value, the text below it, and a class."""


def _reply_tiles(reply: Account, inspection: Inspection) -> Iterator[Tile]:
    snapshot, usage = reply.snapshot, reply.snapshot.usage
    word = snapshot.provider_finish_reason
    below = f"the provider's word: {word}" if word not in (None, snapshot.finish_reason) else snapshot.status
    yield "finish reason", snapshot.finish_reason or "none", below, "" if reply.is_whole else "is-warn"
    if inspection.has_times:
        text, content = reply.first_text, reply.content
        if content is not None and (text is None or text != content[0]):
            below = "" if text is None else f"first text {seconds(text.at)}"
            yield "first content", seconds(content[0].at), below, ""
        elif text is not None:
            yield "first text", seconds(text.at), "", ""
        if reply.end is not None and reply.begin is not None:
            name = "ended" if len(inspection.replies) > 1 else "took"
            yield name, seconds(reply.end.at), f"{reply.events:,} events", ""
        if (gap := reply.longest_gap) is not None:
            yield "longest gap", seconds(gap.seconds), f"from {seconds(gap.begin.at)}", ""
        if (rate := reply.tokens_per_second) is not None:
            yield "speed", f"{rate:,.0f} tokens/s", "while content came", ""
    else:
        yield "events", f"{reply.events:,}", "without times", ""
    if usage is not None and usage.output_tokens is not None:
        below = f"{usage.reasoning_tokens:,} of reasoning" if usage.reasoning_tokens else ""
        yield "output tokens", f"{usage.output_tokens:,}", below, ""
    if usage is not None and usage.input_tokens is not None:
        cached = [
            (usage.cache_read_tokens, "read from cache"),
            (usage.cache_write_tokens, "written to cache"),
        ]
        below = ", ".join(f"{number:,} {words}" for number, words in cached if number)
        yield "input tokens", f"{usage.input_tokens:,}", below, ""
    kinds: dict[str, int] = {}
    for block in reply.blocks:
        kinds[block.kind] = kinds.get(block.kind, 0) + 1
    said = ", ".join(f"{number} {kind}" for kind, number in [*kinds.items()][:5])
    yield "blocks", f"{len(reply.blocks):,}", said, ""
    if reply.broken:
        yield "violations", f"{sum(reply.broken.values()):,}", ", ".join([*reply.broken][:5]), "is-bad"
    if snapshot.attempt:
        yield "failed attempts", str(snapshot.attempt), "", "is-warn"


def _total_tiles(inspection: Inspection) -> Iterator[Tile]:
    replies = inspection.replies
    whole = sum(reply.is_whole for reply in replies)
    yield "replies", f"{len(replies):,}", f"{whole:,} whole", "" if whole == len(replies) else "is-warn"
    if inspection.has_times and inspection.end is not None:
        yield "took", seconds(inspection.end.at), f"{inspection.events:,} events", ""
        first = min((reply.first_text for reply in replies if reply.first_text), default=None)
        if first is not None:
            yield "first text", seconds(first.at), "", ""
        for gap in inspection.gaps[:1]:
            yield "longest gap", seconds(gap.seconds), f"from {seconds(gap.begin.at)}", ""
    usages = [reply.snapshot.usage for reply in replies if reply.snapshot.usage is not None]
    if usages:
        yield "output tokens", f"{sum(usage.output_tokens or 0 for usage in usages):,}", "all replies", ""
        yield "input tokens", f"{sum(usage.input_tokens or 0 for usage in usages):,}", "all replies", ""
    broken = sum(sum(reply.broken.values()) for reply in replies)
    if broken:
        yield "violations", f"{broken:,}", "", "is-bad"


def _tiles(tiles: Iterable[Tile]) -> Markup:
    cells = [
        element(
            "div",
            element("dt", name),
            element(
                "dd",
                cut(value, 60)[0],
                *([element("small", cut(below, 120)[0])] if below else []),
                class_=kind or None,
            ),
        )
        for name, value, below, kind in tiles
    ]
    columns = next((count for count in (4, 5, 3) if len(cells) % count == 0), 4)
    return element("dl", *cells, class_=f"tiles in-{columns}")


class _Section:
    """One reply: its tiles, its blocks to open, and its facts."""

    def __init__(
        self, inspection: Inspection, reply: Account, number: int, several: bool, blocks: int
    ) -> None:
        self._inspection, self._reply, self._number, self._several = inspection, reply, number, several
        self._longest = max(_SHORTEST, min(_LONGEST, _TEXT // blocks))
        self._rows = max(4, _ROWS // blocks)

    def markup(self) -> Markup:
        reply = self._reply
        title = title_of(reply, True, self._number) if self._several else "Blocks"
        found = [element("h2", cut(title, 200)[0], id=f"r{self._number}")]
        if self._several:
            found.append(_tiles(_reply_tiles(reply, self._inspection)))
        found += [self._block(place, block) for place, block in enumerate(reply.blocks[:_BLOCKS])]
        if len(reply.blocks) > _BLOCKS:
            found.append(_more(len(reply.blocks) - _BLOCKS, "blocks"))
        if not reply.blocks:
            found.append(element("p", "There are none.", class_="more"))
        found.append(_details("As a table", self._table()))
        found.append(_details("All facts", _facts(reply_facts(reply, self._inspection.has_times))))
        return element("section", *found)

    def _block(self, place: int, block: BlockAccount) -> Markup:
        attempt = f" of attempt {block.attempt + 1}" if self._reply.snapshot.attempt else ""
        name = f" {cut(block.name, 80)[0]}" if block.name else ""
        heading = Markup(
            '<span class="dot"></span>'
            + element("b", f"{block.kind}{name}")
            + element(
                "span",
                f"block {block.index}{attempt} · {block_facts(block, self._inspection.has_times)}",
                class_="sub",
            )
        )
        inside = [*self._content(block), self._events(block)]
        return element(
            "details",
            element("summary", heading),
            element("div", *inside, class_="inside", id=anchor(self._number, place)),
            class_=hue_of(block),
        )

    def _content(self, block: BlockAccount) -> Iterator[Markup]:
        part = block.block
        if part is None:
            yield element("p", "Nothing became of it: its events break a rule.", class_="more")
        elif isinstance(part, ToolCall):
            yield from self._call(part)
        else:
            yield from self._part(part)

    def _call(self, call: ToolCall) -> Iterator[Markup]:
        if call.error:
            yield element("p", cut(call.error, 1_000)[0], class_="banner bad")
        arguments = call.arguments
        yield element("h3", "Arguments")
        yield from self._pre(arguments if isinstance(arguments, str) else _pretty(arguments))
        if call.result is not None:
            content = call.result.content
            yield element("h3", "Result" if not call.result.is_error else "Result, which is an error")
            yield from self._pre(content if isinstance(content, str) else _pretty(content))
        name = {"name": call.name} if call.name and len(call.name) > 80 else {}
        more = {**name, "id": call.call_id, "display_text": call.display_text, **thaw(call.metadata)}
        yield from self._options({name: value for name, value in more.items() if value is not None})

    def _part(self, part: ContentPart) -> Iterator[Markup]:
        is_prose = part.type in ("text", "reasoning", "refusal")
        if part.text:
            yield from self._pre(
                part.text, "prose" if is_prose else None, self._longest if is_prose else _SHORTEST
            )
        if part.citations:
            yield element("h3", "Citations")
            said = [
                " · ".join(one for one in (cited.title, cited.url, cited.cited_text) if one)
                for cited in part.citations
            ]
            yield element("ul", *(element("li", cut(one or "a source", 400)[0]) for one in said[:_CITATIONS]))
            if len(said) > _CITATIONS:
                yield _more(len(said) - _CITATIONS, "citations")
        yield from self._options(thaw(part.options))

    def _options(self, options: dict[str, Any]) -> Iterator[Markup]:
        if options:
            yield element("h3", "Other fields")
            yield from self._pre(_pretty(options), most=2_000)

    def _pre(self, text: str, kind: str | None = None, most: int | None = None) -> Iterator[Markup]:
        shown, left = cut(text, most or self._longest)
        yield element("pre", esc(shown, lines=True), class_=kind, tabindex="0")
        if left:
            yield _more(left, "characters")

    def _events(self, block: BlockAccount) -> Markup:
        kept = [*block.rows.first[: self._rows]]
        last = [*block.rows.last][-(self._rows // 4) :] if len(kept) == len(block.rows.first) else []
        left = len(block.rows) - len(kept) - len(last)
        return _details(f"{len(block.rows):,} events", _rows(kept, last, left, self._inspection.has_times))

    def _table(self) -> Markup:
        has_times = self._inspection.has_times
        rows: list[Markup] = []
        for block in self._reply.blocks[:_BLOCKS]:
            begin, end = (
                (block.begin.at, block.end.at) if has_times else (block.begin.number, block.end.number)
            )
            cells = [
                element("td", str(block.index)),
                element("td", block.kind),
                element("td", cut(block.name, 120)[0], class_="says"),
                *(element("td", _position(one, has_times), class_="n") for one in (begin, end)),
                element("td", f"{block.size:,}", class_="n"),
                element("td", f"{block.deltas:,}", class_="n wide"),
            ]
            rows.append(element("tr", *cells))
        heads = [
            ("block", ""),
            ("type", ""),
            ("name", ""),
            ("from", "n"),
            ("to", "n"),
            ("characters", "n"),
            ("pieces", "n wide"),
        ]
        unit = "seconds since the beginning" if has_times else "numbers of events"
        return table(f"The blocks. From and to are {unit}.", heads, rows, seen=True)


def _rows(first: list[Row], last: list[Row], left: int, has_times: bool) -> Markup:
    lines = [_row(row, has_times) for row in first]
    if left:
        lines.append(element("tr", element("td", f"{left:,} more events", colspan="5", class_="more")))
    lines += [_row(row, has_times) for row in last]
    times = [("seconds", "n"), ("gap", "n wide")] if has_times else [("event", "n")]
    return table("The events of the block", [*times, ("what", ""), ("size", "n wide"), ("says", "")], lines)


def _row(row: Row, has_times: bool) -> Markup:
    gap = "" if row.gap is None else f"+{in_seconds(row.gap)}"
    times = (
        [element("td", in_seconds(row.at.at), class_="n"), element("td", gap, class_="n wide")]
        if has_times
        else [element("td", str(row.at.number), class_="n")]
    )
    broken = f"{row.broken}: " if row.broken else ""
    return element(
        "tr",
        *times,
        element("td", row.what, class_="what"),
        element("td", str(row.size or ""), class_="n wide"),
        element("td", f"{broken}{cut(row.says, _SAYS)[0]}", class_="says"),
        class_="wrong" if row.broken else None,
    )


def _chunks(inspection: Inspection) -> Markup:
    raw = inspection.raw
    if not len(raw):
        return Markup()
    times = [("seconds", "n")] if inspection.has_times else []
    lines = [_chunk(*one, bool(times)) for one in raw.first]
    if raw.left_out:
        lines.append(
            element("tr", element("td", f"{raw.left_out:,} more chunks", colspan="3", class_="more"))
        )
    lines += [_chunk(*one, bool(times)) for one in raw.last]
    heads = [("chunk", "n"), *times, ("as it came", "")]
    return _details(f"{len(raw):,} chunks, as they came", table("The provider's chunks", heads, lines))


def _chunk(number: int, at: float, chunk: Any, has_times: bool) -> Markup:
    shown, left = cut(chunk_text(chunk), _RAW)
    said = f"{shown}… {left:,} more characters" if left else shown
    return element(
        "tr",
        element("td", str(number), class_="n"),
        *([element("td", in_seconds(at), class_="n")] if has_times else []),
        element("td", said, class_="says"),
    )


def _facts(facts: Facts) -> Markup:
    pairs = [Markup(element("dt", name) + element("dd", cut(value, 2_000)[0])) for name, value in facts]
    return element("dl", *pairs, class_="facts")


def _details(summary: str, *inside: Markup) -> Markup:
    heading = element("summary", element("span", summary, class_="sub"))
    return element("details", heading, element("div", *inside, class_="inside"))


def _more(count: int, of: str) -> Markup:
    return element("p", f"{count:,} more {of} aren't shown.", class_="more")


def _pretty(value: Any) -> str:
    return "" if value is None else json.dumps(thaw(value), ensure_ascii=False, indent=2)


def _position(value: float, has_times: bool) -> str:
    return in_seconds(value) if has_times else f"{value:,}"
