"""Measure all parts, print every figure beside its goal and its peer, and write the report, the site's page and their plots.

    python benchmarks/run.py                      all parts, and the page
    python benchmarks/run.py watching memory      these parts, printed; with --write also their places on the page
    python benchmarks/run.py watching --against ../other-checkout

Each part runs in a process of its own, so that one's packages don't weigh on another's memory.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from harness import digits, goal_of, is_met, lines_of, markdown, multiple, name_of, ratio, say, value

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"
REPORT = HERE / "REPORT.md"
PAGE = ROOT / "docs" / "production" / "benchmarks.md"
PARTS = {
    "front_door": "The front door",
    "memory": "Memory of live streams",
    "from_bytes": "From bytes to snapshots",
    "watching": "Watching and sharing",
    "text": "Text on its way",
    "to_browser": "To a browser",
    "partial_json": "Arguments while they come",
    "importing": "Import",
    "accumulators": "From 1,000 to 1,000,000 deltas",
    "other_events": "Other events, and parallel calls",
    "relay": "Through the relay",
}
PEERS = [
    "reactivex",
    "attrs",
    "langchain-core",
    "openai",
    "anthropic",
    "pydantic-ai-slim",
    "ag-ui-protocol",
    "litellm",
    "jiter",
    "partial-json-parser",
    "orjson",
    "msgspec",
]
SERVER = "relay_server"  # prints its own table

Tables = list[dict[str, Any]]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parts", nargs="*", help="all, if none is named")
    parser.add_argument("--rounds", type=int, help="runs of each row, instead of what the part says")
    parser.add_argument("--write", action="store_true", help="write the page after some parts, too")
    parser.add_argument(
        "--against", type=Path, metavar="DIRECTORY", help="the root of another checkout, in turns"
    )
    parser.add_argument("--only", metavar="PART", choices=PARTS, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.only:
        part = importlib.import_module(given.only)
        tables = [table.measure(given.rounds) for table in part.tables()]
        Path(os.environ["RESULT"]).write_text(json.dumps(tables, indent=1))
        return
    began, failed = time.monotonic(), list[str]()
    parts = [name for name in PARTS if name in given.parts or not given.parts]
    for name in parts:
        since = time.monotonic()
        say(f"{name}\n")
        if given.against:
            compare(name, given.against.resolve(), given.rounds)
            continue
        try:
            tables = measured(name, ROOT, given.rounds)
        except subprocess.CalledProcessError:
            failed.append(name)  # its error is printed, and the other parts aren't lost
            continue
        say(f"  {time.monotonic() - since:.0f} s\n")
        print(f"\n## {PARTS[name]}\n\n{shown(tables)}\n", flush=True)
    if SERVER in given.parts or not (given.parts or given.against):
        say(f"{SERVER}\n")
        subprocess.run([sys.executable, str(HERE / f"{SERVER}.py")], check=True)
    if given.against:
        return
    if aims(done := {name: results(name) for name in parts}):
        print(f"\n## Goals\n\n{goals(done)}\n")
    if given.write or not given.parts:
        write()
    say(f"{time.monotonic() - began:.0f} s in all\n")
    if failed:
        raise SystemExit(f"failed, with the figures of an earlier run: {', '.join(failed)}")


def measured(name: str, root: Path, rounds: int | None, results: Path = RESULTS) -> Tables:
    """The part's tables, measured with the package of this checkout in a process of its own."""
    command = [
        sys.executable,
        str(HERE / "run.py"),
        "--only",
        name,
        *(["--rounds", str(rounds)] if rounds else []),
    ]
    out = results / f"{name}.json"
    out.parent.mkdir(parents=True, exist_ok=True)
    told = {"PYTHONPATH": str(root), "RESULT": str(out), "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **told})
    return json.loads(out.read_text())


def compare(name: str, other: Path, rounds: int | None) -> None:
    """The least of both checkouts, whose processes take turns."""
    least: dict[Path, dict[tuple[str, str, str], float]] = {ROOT: {}, other: {}}
    for _ in range(3):
        for root, figures in least.items():
            for table in measured(name, root, rounds, RESULTS / "against"):
                for row in table["rows"]:
                    key = table["title"], row["name"], row["column"]
                    figure = value(table, row, "least")
                    figures[key] = min(figure, figures.get(key, figure))
    rows = [
        [" ".join(filter(None, key)), digits(ours), digits(before), multiple(ours / before)]
        for key, ours in least[ROOT].items()
        if (before := least[other].get(key))
    ]
    print(lines_of(["", "here", "there", "here / there"], rows), flush=True)


def results(name: str) -> Tables:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else []


def shown(tables: Tables) -> str:
    return "\n\n".join(markdown(table) for table in tables)


def aims(parts: dict[str, Tables]) -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Each row that has a goal: its part, table and row."""
    return [
        (part, table, row)
        for part, tables in parts.items()
        for table in tables
        for row in table["rows"]
        if row["goal"] is not None
    ]


def goals(parts: dict[str, Tables]) -> str:
    """Every figure that has a goal, in one table."""
    rows = []
    for _, table, row in aims(parts):
        figure = digits(row["least"]) if table["base"] == "-" else multiple(ratio(table, row))
        beside = (
            table["unit"]
            if table["base"] == "-"
            else ("as fast as " if table["faster"] else "") + table["base"]
        )
        rows.append([f"{label(table, row)}", figure, goal_of(table, row), beside])
    met = sum(is_met(table, row) for _, table, row in aims(parts))
    return lines_of(["", "measured", "goal", "beside"], rows) + f"\n\n{met} of {len(rows)} goals are met."


def label(table: dict[str, Any], row: dict[str, Any]) -> str:
    return f"{name_of(row)}, {row['column'] or table['title'].split(',')[0]}"


def where() -> str:
    """On what the figures were measured."""
    found = []
    for name in PEERS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    packages = json.loads((ROOT / "tests/clients/package.json").read_text())["dependencies"]
    peers = ", ".join([*found, f"the npm package `ai` {packages['ai']}"])
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {os.cpu_count()} shared cores, {platform.system()} {platform.machine()}; {peers}."


def write() -> None:
    """Put the figures where the report and the page have places for them: between `<!-- bench: NAME -->` and `<!-- end -->`."""
    from draw import draw

    parts = {name: results(name) for name in PARTS}
    texts = {name: shown(tables) for name, tables in parts.items()}
    texts |= {"goals": goals(parts), "where": where()}
    fill(REPORT, texts)
    fill(PAGE, {"one tool call": shown(parts["accumulators"][1:2]), "where": texts["where"]})
    draw(parts, aims(parts), HERE, PAGE.parent)


def fill(page: Path, texts: dict[str, str]) -> None:
    text = page.read_text("utf-8")
    for name, figures in texts.items():
        begin, end = f"<!-- bench: {name} -->\n", "<!-- end -->"
        before, found, rest = text.partition(begin)
        if not found:
            raise SystemExit(f"{page} has no place for {name}: {begin}")
        text = f"{before}{begin}\n{figures}\n\n{end}{rest.partition(end)[2]}"
    page.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
