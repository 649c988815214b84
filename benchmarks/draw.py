"""The plots of the report and of the site's page, from the figures of the run. Their colours can be read on a light and on a dark page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
from harness import ratio, reached, value
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

TEXT, LINE = "#7a8088", "#9aa0a844"
OURS, PEER, MISSED = "#2f8fdd", "#d9822b", "#d64550"
STYLE = {
    "svg.fonttype": "none",  # the reader's own font, and a small file
    "svg.hashsalt": "rxdelta",
    "font.family": "sans-serif",
    "font.size": 11,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": LINE,
    "axes.edgecolor": TEXT,
    "legend.frameon": False,
    **dict.fromkeys(["text.color", "axes.labelcolor", "xtick.color", "ytick.color"], TEXT),
}
Tables = list[dict[str, Any]]
Aims = list[tuple[str, dict[str, Any], dict[str, Any]]]


def draw(parts: dict[str, Tables], aims: Aims, report: Path, site: Path) -> None:
    with mpl.rc_context(STYLE):
        goals(aims, report / "bench-goals.svg")
        watching(parts["watching"], report / "bench-watching.svg")
        growing(parts["accumulators"][:3], "µs a chunk", "chunks", site / "bench-growth.svg")
        growing(parts["partial_json"], "µs a fragment", "characters", report / "bench-arguments.svg")


def plain(name: str) -> str:
    return name.replace("`", "")


def save(path: Path) -> None:
    """Without what matplotlib says of itself, and with the font named once."""
    plt.savefig(path, metadata={"Date": None, "Creator": None}, bbox_inches="tight")
    plt.close()
    text = path.read_text("utf-8")
    for useless in (r"<metadata>.*?</metadata>", r"<!--.*?-->", r" font-family: [^;]*;", r"^\s+"):
        text = re.sub(useless, "", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"\n+(?!<)", " ", text).strip() + "\n"
    path.write_text(text.replace("<svg ", '<svg font-family="sans-serif" ', 1), "utf-8")


def bars(axes: Axes, names: list[str], figures: list[float], colours: list[str], start: float = 0.0) -> None:
    places = [*range(len(names))][::-1]
    axes.barh(places, [figure - start for figure in figures], left=start, color=colours, height=0.62)
    axes.set_yticks(places, names)
    axes.set_ylim(-0.6, len(names) - 0.4)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.axvline(1, color=TEXT, linewidth=1.2)
    for place, figure in zip(places, figures, strict=True):
        axes.annotate(
            f"{figure:.2f}",
            (max(figure, start), place),
            (4, 0),
            textcoords="offset points",
            va="center",
            size=9,
        )


def goals(aims: Aims, path: Path) -> None:
    """Each figure as a part of its goal, to the left of the line where it is met."""
    names, shares = [], []
    for _, table, row in aims:
        found = reached(table, row)
        if found is not None:
            names.append(f"{plain(row['name'])}, {plain(row['column'] or table['title'])}")
            shares.append(row["goal"] / found if table["faster"] else found / row["goal"])
    _, axes = plt.subplots(figsize=(8, 0.28 * len(names) + 0.6))
    bars(axes, names, shares, [OURS if round(share, 2) <= 1 else MISSED for share in shares], start=1.0)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.set_xlabel("the figure as a part of its goal: it is met up to 1")
    save(path)


def watching(tables: Tables, path: Path) -> None:
    rows = [(table, row) for table in tables for row in table["rows"] if row["over"]]
    rows.sort(key=lambda pair: ratio(*pair) or 0)
    figures = [ratio(table, row) or 0.0 for table, row in rows]
    _, axes = plt.subplots(figsize=(8, 0.28 * len(rows) + 0.6))
    bars(
        axes,
        [plain(row["name"]) for _, row in rows],
        figures,
        [PEER if row["peer"] else OURS for _, row in rows],
    )
    axes.set_xlabel("what a delta costs, as a multiple of Fold.step")
    save(path)


def growing(tables: Tables, unit: str, of: str, path: Path) -> None:
    """A panel a table: how a figure grows with the size, both in powers of ten."""
    figure, panels = plt.subplots(1, len(tables), figsize=(9, 3.4), sharey=True)
    for axes, table in zip(panels, tables, strict=True):
        names = [*dict.fromkeys(row["name"] for row in table["rows"])]
        for place, name in enumerate(names):
            rows = [row for row in table["rows"] if row["name"] == name]
            sizes = [int(row["column"].replace(",", "")) for row in rows]
            style = {
                "color": PEER if rows[0]["peer"] else OURS,
                "marker": "osDv^<>Px*"[place],
                "markersize": 4.5,
            }
            axes.loglog(
                sizes, [value(table, row, "least") for row in rows], label=plain(name), linewidth=1.3, **style
            )
        axes.set_title(table["title"].removeprefix("Partial JSON, "), size=11)
        axes.set_xlabel(of)
        axes.minorticks_off()
    panels[0].set_ylabel(unit)
    handles = panels[0].get_legend_handles_labels()
    figure.legend(*handles, loc="upper center", bbox_to_anchor=(0.5, -0.02), ncols=2, fontsize=10)
    save(path)
