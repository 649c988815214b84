"""How every part measures: CPU time of runs that take turns, the least and the median, as multiples within one run.

Machines differ and are noisy, so a figure is read beside another of its table: the multiple of a row that is called the
base, and the goal for that multiple. A part is a module with `tables()`.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Callable, Iterable
from statistics import median
from typing import Any

import attrs

__all__ = ["Row", "Table", "each", "growth", "markdown", "ratio"]

SECONDS_A_ROW = 2.0
CAP = 1.0


@attrs.define
class Row:
    """What one row measures in one column.

    Attributes:
        act: It is timed, unless the row is `told`: then what it returns is the figure. A number that a timed one returns
            is how many items it took when it stopped early; anything else is kept until the time is taken.
        count: How many items `act` takes.
        over: The name of a row whose figure is taken off first.
        goal: The multiple of the base that the row has to reach.
        peer: Whose work this is, if not ours.
    """

    name: str
    act: Callable[[], Any]
    count: int = 1
    column: str = ""
    over: str = ""
    goal: float | None = None
    peer: bool = False
    told: bool = False
    figures: list[float] = attrs.field(factory=list)
    spent: float = 0.0
    is_short: bool = False

    def run(self) -> None:
        gc.collect()
        if self.is_short:
            self.act()  # what the collector has read isn't in the processor's caches any more
        began = time.process_time()
        result = self.act()
        taken = time.process_time() - began
        self.spent += taken
        self.is_short = taken < 0.005 and not self.told
        self.figures.append(
            result if self.told else taken / (result if isinstance(result, int) else self.count)
        )


@attrs.define
class Table:
    """Rows that are measured in turn.

    Attributes:
        base: The row that the others are told as multiples of; the first if it isn't named, and `-` if there is none.
        scale: What a second, or what a row tells, is multiplied with to be in the table's unit.
        faster: Multiples tell how many times as fast as the base a row is, and a goal is the least.
        growth: Columns are sizes, and the last one says how the figure grows from the first to the last.
        note: A sentence below the table.
    """

    title: str
    unit: str
    scale: float = 1e6
    base: str = ""
    faster: bool = False
    growth: bool = False
    rounds: int = 15
    note: str = ""
    rows: list[Row] = attrs.field(factory=list)

    def row(self, name: str, act: Callable[[], Any], count: int = 1, **more: Any) -> None:
        self.rows.append(Row(name, act, count, **more))

    def measure(self, rounds: int | None = None) -> dict[str, Any]:
        """Run every row in turn, often, but a slow one only as often as a few seconds allow."""
        left_out, base = list[str](), self.base or self.rows[0].name
        say(f"  {self.title or self.unit} ")
        for turn in range((rounds or self.rounds) + 1):  # the first only warms up
            if turn < 2:  # what is ready, or was imported in the first turn, isn't collected again each time
                gc.collect()
                gc.freeze()
            for row in [*self.rows]:
                if row.spent > SECONDS_A_ROW:
                    continue
                try:
                    row.run()
                except (ImportError, AttributeError, TypeError, OSError) as error:
                    if turn:
                        raise
                    left_out.append(f"{row.name} ({type(error).__name__}: {error})"[:200])
                    self.rows.remove(row)
            say(".")
        gc.unfreeze()
        say("\n")
        return {
            **attrs.asdict(self, filter=attrs.filters.exclude("rows", "scale", "rounds")),
            "base": base,
            "left_out": [*dict.fromkeys(left_out)],
            "rows": [
                {
                    **attrs.asdict(
                        row,
                        filter=attrs.filters.exclude("act", "count", "told", "figures", "spent", "is_short"),
                    ),
                    "least": min(figures) * self.scale,
                    "median": median(figures) * self.scale,
                    "runs": len(figures),
                }
                for row in self.rows
                for figures in [row.figures[1:] or row.figures]
            ],
        }


def say(text: str) -> None:
    print(text, end="", file=sys.stderr, flush=True)


def each(items: list[Any], step: Callable[[Any], object], cap: float = CAP) -> Callable[[], int]:
    """Something to time that takes items in turn, and stops after some seconds: a peer that grows would take minutes."""

    def run() -> int:
        deadline = time.process_time() + cap
        for n, item in enumerate(items):
            step(item)
            if not n % 256 and time.process_time() > deadline:
                return n + 1
        return len(items)

    return run


def find(table: dict[str, Any], name: str, column: str) -> dict[str, Any] | None:
    found = (row for row in table["rows"] if row["name"] == name and row["column"] == column)
    return next(found, None)


def value(table: dict[str, Any], row: dict[str, Any], which: str) -> float:
    """The figure, without that of the row which it is told over."""
    over = find(table, row["over"], row["column"]) if row["over"] else None
    return row[which] - (over[which] if over else 0.0)


def ratio(table: dict[str, Any], row: dict[str, Any]) -> float | None:
    """The least beside the base's least."""
    base = find(table, table["base"], row["column"])
    if base is None:
        return None
    ours, theirs = value(table, row, "least"), value(table, base, "least")
    return theirs / ours if table["faster"] else ours / theirs


def reached(table: dict[str, Any], row: dict[str, Any]) -> float | None:
    """What a goal is compared with: the multiple, and where there is no base the figure."""
    return row["least"] if table["base"] == "-" else ratio(table, row)


def is_met(table: dict[str, Any], row: dict[str, Any]) -> bool:
    """To the digits that are shown."""
    found = reached(table, row)
    if found is None:
        return False
    return round(found, 2) >= row["goal"] if table["faster"] else round(found, 2) <= row["goal"]


def digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def multiple(number: float | None) -> str:
    return "" if number is None else f"{number:.0f}×" if number >= 20 else f"{number:.2f}×"


def growth(sizes: list[int], figures: list[float]) -> float:
    """The exponent with which the whole grows: 1.00 is linear."""
    return 1 + math.log(figures[-1] / figures[0]) / math.log(sizes[-1] / sizes[0])


def lines_of(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    cells = [*head]
    both = [cells, ["---"] + ["--:"] * (len(cells) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in both)


def markdown(table: dict[str, Any]) -> str:
    """The table as it stands on the page."""
    columns = [*dict.fromkeys(row["column"] for row in table["rows"])]
    text = plain(table) if columns == [""] else grid(table, columns)
    title = f"**{table['title']}**, {table['unit']}" if table["title"] else f"{table['unit']}"
    left_out = f"Left out: {'; '.join(table['left_out'])}." if table["left_out"] else ""
    return "\n\n".join(part for part in (title, text, table["note"], left_out) if part)


def name_of(row: dict[str, Any]) -> str:
    return f"*{row['name']}*" if row["peer"] else row["name"]


def plain(table: dict[str, Any]) -> str:
    has_base, has_goal = table["base"] != "-", any(row["goal"] for row in table["rows"])
    word = "times as fast" if table["faster"] else f"× {table['base']}"
    head = ["", "least", "median", *[word] * has_base, *["goal"] * has_goal]
    hidden = {row["over"] for row in table["rows"]} - {table["base"]}
    rows = []
    for row in table["rows"]:
        if row["name"] in hidden:
            continue
        line = [name_of(row), *(digits(value(table, row, which)) for which in ("least", "median"))]
        line += [multiple(ratio(table, row))] * has_base
        line += [goal_of(table, row)] * has_goal
        rows.append(line)
    return lines_of(head, rows)


def goal_of(table: dict[str, Any], row: dict[str, Any]) -> str:
    if row["goal"] is None:
        return ""
    unit = "" if table["base"] == "-" else "×"
    return f"{'≥' if table['faster'] else '≤'} {row['goal']:.3g}{unit} {'✓' if is_met(table, row) else '✗'}"


def grid(table: dict[str, Any], columns: list[str]) -> str:
    """A column for each size or format, with least / median and the multiple in a cell."""
    rows = []
    for name in dict.fromkeys(row["name"] for row in table["rows"]):
        cells = [find(table, name, column) for column in columns]
        known = [(column, cell) for column, cell in zip(columns, cells, strict=True) if cell is not None]
        line = [name_of(known[0][1]), *(cell_of(table, cell) for cell in cells)]
        if table["growth"]:
            sizes = [int(column.replace(",", "")) for column, _ in known]
            figures = [cell["least"] for _, cell in known]
            line.append(f"{growth(sizes, figures):.2f}" if len(sizes) > 1 else "")
        rows.append(line)
    return lines_of(["", *columns, *["growth"] * table["growth"]], rows)


def cell_of(table: dict[str, Any], row: dict[str, Any] | None) -> str:
    if row is None:
        return "–"
    figures = [digits(value(table, row, which)) for which in ("least", "median")]
    text = " / ".join(dict.fromkeys(figures) if row["runs"] == 1 else figures)
    if table["base"] != "-":
        text += f" ({multiple(ratio(table, row))})"
    return f"{text} {goal_of(table, row)}".rstrip()
