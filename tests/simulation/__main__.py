"""`python -m simulation FROM TO` plays seeds, `python -m simulation SEED` one; `--jobs 4` uses four processes."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing import get_context

from simulation.oracle import LAWS
from simulation.seeds import Found, explained, play_seeds

AT_A_TIME = 250


def main() -> int:
    parser = argparse.ArgumentParser("simulation", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="+", metavar="SEED")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--until-broken", action="store_true", help="stop at the first world that breaks a law"
    )
    given = parser.parse_args()
    first, end = given.seeds if len(given.seeds) == 2 else (given.seeds[0], given.seeds[0] + 1)
    parts = [range(at, min(at + AT_A_TIME, end)) for at in range(first, end, AT_A_TIME)]
    judged: Counter[str] = Counter()
    broken: list[Found] = []
    began = time.monotonic()
    for part, (laws, found) in zip(parts, _played(parts, given.jobs), strict=False):
        judged += laws
        for each in found:
            print(explained(each), flush=True)
        broken += found
        print(
            f"{part.stop - first:,} worlds, {time.monotonic() - began:.0f} s, {len(broken)} broken",
            file=sys.stderr,
        )
        if broken and given.until_broken:
            break
    for law, told in LAWS.items():
        print(f"{law:13} {judged[law]:>10,}  {Counter(one.law for one in broken)[law]:>3} broken  {told}")
    return bool(broken)


def _played(parts: Iterable[range], jobs: int) -> Iterator[tuple[Counter[str], list[Found]]]:
    if jobs == 1:
        yield from map(play_seeds, parts)
    else:
        with get_context("forkserver").Pool(jobs) as pool:
            yield from pool.imap(play_seeds, parts)


if __name__ == "__main__":
    sys.exit(main())
