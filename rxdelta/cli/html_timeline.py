"""The timeline of a page: a lane for each block, over one axis of time, or of events if the recording has no times.

The pieces of a page are here, too. They escape everything that a recording says.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence

import attrs

from rxdelta.cli.account import Account, BlockAccount, Gap, Place
from rxdelta.cli.facts import block_facts, seconds, state_of, title_of
from rxdelta.cli.inspected import Inspection
from rxdelta.core import clean_text, visible


class Markup(str):
    """Text that is markup already. `element` escapes all other text."""

    __slots__ = ()


def esc(text: str, *, lines: bool = False) -> Markup:
    """A text of the recording as markup: no tags, no control characters, and no change of the direction.

    Args:
        text: Any text.
        lines: Whether line ends and tabs are kept, or spelt out as well.
    """
    return Markup(html.escape(visible(clean_text(text), lines=lines)))


def element(tag: str, *children: str, **attributes: str | None) -> Markup:
    """An element.

    Args:
        tag: Its name.
        children: Its content. Text that isn't `Markup` is escaped.
        attributes: Its attributes, which are escaped; `class_` is `class`, and `_` within a name is `-`. `None` leaves one out,
            and `""` is an attribute without a value.
    """
    given = "".join(
        f" {_attribute(name)}" + (f'="{esc(value)}"' if value else "")
        for name, value in attributes.items()
        if value is not None
    )
    inside = "".join(child if isinstance(child, Markup) else esc(child) for child in children)
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def cut(text: str, most: int) -> tuple[str, int]:
    """The beginning of a text, and how many characters are left out."""
    return (text, 0) if len(text) <= most else (text[:most], len(text) - most)


def table(
    caption: str, heads: Iterable[tuple[str, str]], rows: Iterable[Markup], *, seen: bool = False
) -> Markup:
    """A table, which scrolls by itself where it is too wide.

    Args:
        caption: What it shows.
        heads: The text and the class of each column.
        rows: The rows as markup.
        seen: Whether the caption is for all, or only for screen readers.
    """
    head = element("tr", *(element("th", text, scope="col", class_=kind or None) for text, kind in heads))
    body = Markup("".join(rows))
    inside = element(
        "table",
        element("caption", caption, class_=None if seen else "unseen"),
        element("thead", head),
        element("tbody", body),
    )
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


_LANES = 120  # of one reply
_FINE = 600  # parts of the axis: ticks of a lane within one part are one tick
_GAPS = 12
_LONG_GAP = 0.035  # of the axis
_NOTICED = 0.2  # seconds; nobody notices a shorter gap
_MARKS = 60  # of one reply
_IN_MINUTES = 120  # seconds
_CLOCK = (20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0)
_LONGEST = 1e7  # seconds; a longer axis has its numbers in powers of ten
_NARROW, _WIDE = 0.023, 0.0105
"""The share of the axis that a letter takes, on a narrow screen and on a wide one."""
_HALF = 11  # the height of a bar, in pixels, above and below the middle of its lane

_HUES = {
    "text": "text",
    "reasoning": "reasoning",
    "tool_call": "call",
    "server_tool_call": "call",
    "server_tool_result": "result",
    "refusal": "bad",
    "invalid_tool_call": "bad",
    **dict.fromkeys(("image", "image_url", "audio", "video", "file", "file_url"), "media"),
}


def hue_of(block: BlockAccount) -> str:
    """The class that colours a block."""
    return f"of-{_HUES.get(block.kind, 'other')}"


def anchor(reply: int, block: int) -> str:
    """The id of a block's content on the page, by the numbers of its reply and its own."""
    return f"r{reply}b{block}"


@attrs.frozen
class _Axis:
    """What the lanes are drawn over: seconds, or numbers of events."""

    is_time: bool
    length: float

    def of(self, place: Place) -> float:
        """The share of the axis at which something came."""
        return self.share(place.at if self.is_time else place.number)

    def share(self, value: float) -> float:
        return min(max(value / self.length, 0.0), 1.0)

    def says(self, place: Place) -> str:
        return f"at {seconds(place.at)}" if self.is_time else f"event {place.number:,}"


def timeline(inspection: Inspection) -> Markup:
    """The figure with the timeline of all replies."""
    is_time, end = inspection.has_times, inspection.end or Place(0.0, 0)
    axis = _Axis(is_time, (end.at if is_time else float(end.number)) or 1.0)
    gaps = _shaded(inspection, axis)
    several = len(inspection.replies) > 1
    flag = None if several else _first_text(inspection.replies)
    lanes: list[Markup] = [_axis_lane(axis, gaps, flag, None if several else inspection.replies[0].end)]
    for number, reply in enumerate(inspection.replies, 1):
        if several:
            lanes.append(_lane_of(element("span", title_of(reply, True, number)), None, "head"))
        flag = _first_text([reply])
        ground = _behind(axis, gaps, flag, reply.end)
        lanes.append(_reply_lane(reply, number, axis, ground))
        for place, block in enumerate(reply.blocks[:_LANES]):
            lanes.append(_block_lane(reply, number, place, block, axis, ground))
        if len(reply.blocks) > _LANES:
            left = f"{len(reply.blocks) - _LANES:,} more blocks aren't drawn"
            lanes.append(_lane_of(element("span", left, class_="sub"), None, "head"))
    hatch = (
        '<svg width="0" height="0" aria-hidden="true" style="position:absolute"><defs><pattern id="hatch" width="6" height="6" '
        'patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" y2="6"/></pattern></defs></svg>'
    )
    return element(
        "figure", Markup(hatch), *lanes, _legend(inspection, gaps), class_="timeline", aria_label="Timeline"
    )


def _behind(axis: _Axis, gaps: Sequence[Gap], flag: Place | None, end: Place | None) -> Markup:
    """The background of a lane's bars: gaps, the grid, the first text and the end."""
    found = [_gap_box(gap, axis) for gap in gaps]
    found += [
        f'<line class="grid{odd}" x1="{_percent(share)}" x2="{_percent(share)}" y2="100%"/>'
        for share, _, odd in _ticks(axis)
    ]
    for place, kind in ((flag, "flag"), (end, "stop")):
        if place is not None:
            x = _percent(axis.of(place))
            found.append(f'<line class="{kind}" x1="{x}" x2="{x}" y2="100%"/>')
    return Markup("".join(found))


def _axis_lane(axis: _Axis, gaps: Sequence[Gap], flag: Place | None, end: Place | None) -> Markup:
    """The numbers of the axis, with the words for the gaps and the first text."""
    found: list[str] = []
    for share, words, odd in _ticks(axis):
        x = _percent(share)
        found.append(f'<line class="grid{odd}" x1="{x}" x2="{x}" y1="34" y2="40"/>')
        found.append(_words(share, 31, words, f"tick-words{odd}", 0.04))
    above = _WordsAbove()
    if flag is not None:
        above.add(axis.of(flag), f"first text: {_short(axis, flag)}", "flag-words", _NARROW)
    if end is not None:
        above.add(axis.of(end), f"end: {_short(axis, end)}", "stop-words", _NARROW)
    for gap in gaps:
        words = f"{'' if gap.begin.number else 'waited '}{seconds(gap.seconds)}"
        above.add((axis.of(gap.begin) + axis.of(gap.end)) / 2, words, "gap-words odd", _WIDE)
    found += above.found
    unit = "minutes and seconds" if axis.length >= _IN_MINUTES else "seconds"
    name = element("span", unit if axis.is_time else "events, by their numbers", class_="sub")
    label = "the axis: seconds" if axis.is_time else "the axis: the numbers of the events"
    return _lane_of(name, _svg(40, label, "".join(found)), "axis")


class _WordsAbove:
    """Words above the axis. Those that would stand on others are left out."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._taken: list[tuple[float, float]] = []

    def add(self, share: float, words: str, kind: str, letter: float) -> None:
        """Add words at a share of the axis.

        Args:
            share: The place.
            words: The words.
            kind: Their class.
            letter: The share of the axis that a letter takes.
        """
        width = len(words) * letter
        begin = share - {"start": 0.0, "middle": width / 2, "end": width}[_where(share)]
        if all(begin > end or begin + width < other for other, end in self._taken):
            self._taken.append((begin, begin + width))
            self.found.append(_words(share, 13, words, kind))


def _reply_lane(reply: Account, number: int, axis: _Axis, ground: Markup) -> Markup:
    """What happened to the whole reply: its start, usage, finish, errors, the application's events."""
    found: list[str] = []
    kept = [*reply.marks.first, *reply.marks.last]
    wrong = [one for one in kept if one[1] == "wrong"]
    for at, what, says in [*[one for one in kept if one[1] != "wrong"][:_MARKS], *wrong[:_MARKS]]:
        shape = "M0 -8l8 14h-16z" if what == "wrong" else "M0 -5l5 5l-5 5l-5-5z"
        words = f"{says if what == 'wrong' else f'{what} {says}'}"[:200]
        title = element("title", f"{axis.says(at)}: {words}")
        kind = " wrong" if what == "wrong" else ""
        found.append(
            f'<svg x="{_percent(axis.of(at))}" overflow="visible"><path class="mark{kind}" d="{shape}">{title}</path></svg>'
        )
    said = f"{len(kept):,} marks" + (f", {len(wrong):,} of them of something wrong" if wrong else "")
    problems = sum(reply.broken.values()) + (reply.error is not None)
    sub = (
        f"{problems} problem{'s' if problems > 1 else ''}"
        if problems
        else reply.snapshot.model or "start, usage, finish"
    )
    inner = Markup(element("span", "message", class_="label") + element("span", sub[:60], class_="sub"))
    name = Markup('<span class="dot of-other"></span>' + element("a", inner, href=f"#r{number}"))
    return _lane_of(name, _drawn(f"the message as a whole: {said}", ground, "".join(found)), "of-other")


def _block_lane(
    reply: Account, number: int, place: int, block: BlockAccount, axis: _Axis, ground: Markup
) -> Markup:
    """A bar from the block's first event to its last, with how much of it came when."""
    begin, end = axis.of(block.begin), axis.of(block.end)
    unfinished = block.block is not None and block.block.open
    title = f"{block.kind} {block.name}".strip()[:120]
    facts = block_facts(block, axis.is_time)
    bar = (
        f'<rect class="bar{" open-end" if unfinished else ""}" x="{_percent(begin)}" width="{_percent(max(end - begin, 0.002))}" '
        f'y="{-_HALF}" height="{2 * _HALF}" rx="4">{element("title", f"{title}: {facts}")}</rect>'
    )
    found = [bar, _wave(block, axis)]
    found += [_run(block, axis, span.begin, span.end or span.begin, span.status) for span in block.runs]
    attempt = f"attempt {block.attempt + 1}, " if reply.snapshot.attempt else ""
    inner = Markup(
        element("span", block.name[:120] or block.kind, class_="label")
        + element("span", f"{attempt}{_sub(block)}", class_="sub")
    )
    name = Markup(f'<span class="dot"></span>{element("a", inner, href=f"#{anchor(number, place)}")}')
    return _lane_of(name, _drawn(f"{title}: {facts}", ground, "".join(found)), hue_of(block))


def _wave(block: BlockAccount, axis: _Axis) -> str:
    """The pieces as strokes, higher where more characters came. Pieces that would stand on one another are one stroke."""
    heights: dict[int, int] = {}
    ticks = block.by_time if axis.is_time else block.by_number
    for position, weight in ticks.at():
        place = round(axis.share(position) * _FINE)
        heights[place] = heights.get(place, 0) + weight
    if not heights:
        return ""
    most = math.log1p(max(heights.values()))
    strokes: list[str] = []
    for place, weight in heights.items():
        half = round(1.5 + 6.5 * math.log1p(weight) / most, 1)
        strokes.append(f"M{place} {_number(-half)}v{_number(2 * half)}")
    return (
        f'<svg viewBox="0 {-_HALF} {_FINE} {2 * _HALF}" y="{-_HALF}" width="100%" height="{2 * _HALF}" '
        f'preserveAspectRatio="none" overflow="visible">'
        f'<path class="wave" d="{"".join(strokes)}"/></svg>'
    )


def _run(block: BlockAccount, axis: _Axis, begin: Place, end: Place, status: str) -> str:
    """The time in which the call's tool ran."""
    x, width = axis.of(begin), max(axis.of(end) - axis.of(begin), 0.003)
    title = element(
        "title", f"{block.name or 'tool'}: {status}, {axis.says(begin)} to {axis.says(end)}"[:300]
    )
    return f'<rect class="run" x="{_percent(x)}" width="{_percent(width)}" y="-7" height="14" rx="2">{title}</rect>'


def _sub(block: BlockAccount) -> str:
    state = state_of(block).partition(":")[0] or (f"{block.size:,} characters" if block.size else "")
    return ", ".join(word for word in (block.kind if block.name else "", state) if word)[:80]


def _lane_of(name: Markup, drawn: Markup | None, kind: str) -> Markup:
    cells = [element("div", name, class_="name"), *([] if drawn is None else [drawn])]
    return element("div", *cells, class_=f"lane {kind}")


def _drawn(label: str, ground: Markup, inside: str) -> Markup:
    """A lane's drawing, around the middle of the lane, on what stands behind all bars."""
    return _svg(30, label, f'{ground}<svg y="50%" overflow="visible">{inside}</svg>')


def _svg(height: int, label: str, inside: str) -> Markup:
    title = element("title", label)
    return element("svg", title, Markup(inside), role="img", height=str(height), aria_label=label)


def _gap_box(gap: Gap, axis: _Axis) -> str:
    begin, end = axis.of(gap.begin), axis.of(gap.end)
    title = element("title", f"nothing for {seconds(gap.seconds)}")
    return f'<rect class="gap" x="{_percent(begin)}" width="{_percent(end - begin)}" height="100%">{title}</rect>'


def _shaded(inspection: Inspection, axis: _Axis) -> list[Gap]:
    """The times in which nothing came of any reply that are long enough to be seen, the longest first."""
    if not axis.is_time:
        return []
    found = [one for one in inspection.gaps if one.seconds >= max(_LONG_GAP * axis.length, _NOTICED)]
    return found[:_GAPS]


def _first_text(replies: Iterable[Account]) -> Place | None:
    return min((one.first_text for one in replies if one.first_text is not None), default=None)


def _ticks(axis: _Axis) -> list[tuple[float, str, str]]:
    """The shares of the axis that have a number, with it, and ` odd` for every other one, which narrow screens leave out."""
    step = _step(axis)
    count = int(axis.length / step + 1e-9)
    digits = max(0, -math.floor(math.log10(step)))
    return [
        (place * step / axis.length, _axis_number(place * step, digits, axis), " odd" if place % 2 else "")
        for place in range(count + 1)
    ]


def _axis_number(value: float, digits: int, axis: _Axis) -> str:
    if axis.is_time and axis.length >= _LONGEST:
        return f"{value:.2g}"
    if axis.is_time and axis.length >= _IN_MINUTES:
        minutes, rest = divmod(round(value), 60)
        hours, minutes = divmod(minutes, 60)
        return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return f"{value:,.{digits}f}"


def _step(axis: _Axis) -> float:
    """A round distance of the numbers: 1, 2, 5, 10, …; in minutes those of a clock."""
    rough = axis.length / 8
    if axis.is_time and axis.length >= _IN_MINUTES:
        known = next((step for step in _CLOCK if step >= rough), None)
        if known is not None:
            return known
    if not axis.is_time and rough < 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


def _words(share: float, y: int, words: str, kind: str, near: float = 0.2) -> str:
    """A text at a share of the axis, which stays within it: near an end it begins or ends there."""
    where = _where(share, near)
    return f'<text class="{kind}" x="{_percent(share)}" y="{y}" text-anchor="{where}">{element("tspan", words)}</text>'


def _where(share: float, near: float = 0.2) -> str:
    return "start" if share < near else "end" if share > 1 - near else "middle"


def _short(axis: _Axis, place: Place) -> str:
    return seconds(place.at) if axis.is_time else f"event {place.number:,}"


def _percent(share: float) -> str:
    return f"{_number(share * 100)}%"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _legend(inspection: Inspection, gaps: Sequence[Gap]) -> Markup:
    entries = ["<span>a stroke is a piece, the higher the longer</span>"]
    if _first_text(inspection.replies) is not None:
        entries.append('<span><i class="key-flag"></i>the first text</span>')
    if gaps:
        entries.append('<span><i class="key-gap"></i>nothing came</span>')
    if any(block.runs for reply in inspection.replies for block in reply.blocks):
        entries.append('<span><i class="key-run"></i>the tool ran</span>')
    if any(reply.broken or reply.error for reply in inspection.replies):
        entries.append('<span><i class="key-wrong"></i>an error, or a rule of the protocol broken</span>')
    return element("figcaption", Markup("".join(entries)), class_="legend")
