"""Draws the README's picture: the bundled sample as the command shows it, frame by frame, as one animated SVG.

Run it with `nox -s pictures`.
"""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

from rich.console import Console

import rxdelta as rd
from rxdelta.cli import picture
from rxdelta.testing import open_sample

HERE = Path(__file__).parent
WIDTH, FRAMES, SECONDS = 84, 14, 8.0
BEGIN = 3.0  # whoever opens the page sees the reply in mid-growth, and its beginning in the next round


def frame(reply: rd.Snapshot | rd.Message, height: int, number: int) -> str:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    with console.capture() as lines:
        console.print(picture(reply))
    console.print(picture(reply))
    for _ in range(height - lines.get().count("\n")):
        console.print()
    svg = console.export_svg(title="$ rxdelta demo", unique_id=f"f{number}")
    return re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no font is fetched from anywhere


def height_of(reply: rd.Snapshot | rd.Message) -> int:
    console = Console(width=WIDTH, file=io.StringIO(), force_terminal=True)
    with console.capture() as lines:
        console.print(picture(reply))
    return lines.get().count("\n")


def drawn() -> str:
    with open_sample("weather") as file:
        sample = file.read().decode()
    decoder, fold, snapshots = rd.providers.decoder("anthropic-messages"), rd.Fold(), []
    for line in sample.splitlines():
        snapshots += [fold.step(event) for event in decoder.decode(json.loads(line))]
    step = len(snapshots) // (FRAMES - 1)
    chosen = [*snapshots[step::step], snapshots[-1]]  # the first ones show next to nothing
    height = height_of(chosen[-1])
    frames = [frame(snapshot, height, number) for number, snapshot in enumerate(chosen)]
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', frames[-1])
    assert box is not None
    share = 100 / (len(frames) + 5)  # the last frame stays a while
    styles, bodies = [], []
    for n, svg in enumerate(frames):
        begin, end = n * share, 100 if n == len(frames) - 1 else (n + 1) * share
        styles.append(
            f"@keyframes k{n}{{0%{{opacity:0}}{begin:.2f}%{{opacity:1}}{end:.2f}%{{opacity:{int(end == 100)}}}100%{{opacity:{int(end == 100)}}}}}"
            f".k{n}{{opacity:{int(end == 100)};animation:k{n} {SECONDS}s -{BEGIN}s infinite;animation-timing-function:step-end}}"
        )
        bodies.append(f'<g class="k{n}">{svg}</g>')
    # Where nothing is animated (print, previews, reduced motion) the finished picture shows.
    still = "@media(prefers-reduced-motion:reduce){g{animation:none!important}}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box[1]} {box[2]}" role="img" '
        'aria-label="A reply grows: reasoning, text, and two tool calls with live arguments">'
        f"<style>{''.join(styles)}{still}</style>{''.join(bodies)}</svg>"
    )


if __name__ == "__main__":
    (HERE / "demo.svg").write_text(drawn(), "utf-8")
