"""An inspection as one page: no script, nothing from elsewhere, and all that the recording says is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rxdelta.cli._account import Account, BlockAccount, Row
from rxdelta.cli._facts import (
    Facts,
    block_facts,
    chunk_text,
    in_seconds,
    reply_facts,
    seconds,
    stream_facts,
    title_of,
)
from rxdelta.cli._files import error_text
from rxdelta.cli._html_parts import Markup, cut, element, esc, table
from rxdelta.cli._html_style import STYLE
from rxdelta.cli._html_timeline import anchor, hue_of, timeline
from rxdelta.cli._inspected import Inspection
from rxdelta.core import ContentPart, ToolCall, thaw

__all__ = ["page"]

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
        inspection: Of a recording that was read to its end, and has a reply.
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
"""A name, a value, what is said below it, and a class."""


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
