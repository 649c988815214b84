"""Run the fuzzer on the readers: `python tests/fuzz/run.py [--seconds 60] [reader …]`. Needs atheris.

Each reader has a process of its own, in which the package counts the edges of its code. Inputs that reach new ones are kept
in `build/fuzz`, and the next run goes on with them. A broken law doesn't end the run: it is made small, and shown once.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import sys
import tempfile
import traceback
from contextlib import redirect_stderr
from hashlib import sha256
from pathlib import Path
from time import monotonic
from typing import IO, Any

TESTS = Path(__file__).resolve().parent.parent
KEPT = TESTS.parent / "build" / "fuzz"
LONGEST = 8_192
HANGS = 120
"""Seconds after which an input counts as one that hangs."""
IN_BULK = 500
"""Of so many inputs one is tried in bulk, where memory and growth are measured."""
READING = tuple(
    f"rxdelta.{room}"
    for room in ("core", "formats", "framing", "providers", "recording", "relay.memory", "relay.replay", "relay.scope", "relay.places",
                 "relay.postgres_lines", "relay.shared.records", "relay.sqlite", "relay.valkey.urls", "requests", "testing.marbles", "wire")
)  # fmt: skip
"""The modules whose edges are counted: to count takes a while to prepare, and makes each line slower."""
_STATS = re.compile(r"#(\d+)\s+\S+\s+cov: (\d+) ft: \d+ corp: (\d+)/")


def main() -> None:
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--seconds", type=float, default=60, help="for each reader (60)")
    arguments.add_argument("--fresh", action="store_true", help="forget the inputs of earlier runs")
    arguments.add_argument("readers", nargs="*", help="their names; all, if there are none")
    given = arguments.parse_args()
    print("counting the edges of the code", flush=True)
    instrument()
    from fuzz.targets import TARGETS

    if unknown := {*given.readers} - {*TARGETS}:
        arguments.error(f"there is no {min(unknown)}; there are {', '.join(TARGETS)}")
    names = given.readers or [*TARGETS]
    if given.fresh:
        for name in names:
            for path in (KEPT / name).glob("*"):
                path.unlink()
    count = 0
    for name in names:
        for find in watched(name, given.seconds):
            count += 1
            print(f"\n# {name}: {find['place']}\n# {find['text']}\n{find['program']}", flush=True)
    print(f"{len(names)} readers, {count} finds")
    sys.exit(count > 0)


def instrument() -> None:
    """Import the package so that it tells the fuzzer which edges of its code are run."""
    import atheris

    modules = {name: name.startswith(READING) for name in _modules()}
    left_out = [name for name, reads in modules.items() if not reads]
    counting = atheris.instrument_imports(include=["rxdelta"], exclude=left_out, enable_loader_override=False)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere), counting:
        for module, reads in modules.items():
            if reads:
                importlib.import_module(module)


def watched(name: str, seconds: float) -> list[dict[str, Any]]:
    """Fuzz one reader in a process of its own, and show how far it is."""
    with tempfile.TemporaryDirectory() as scratch:
        finds = Path(scratch) / "finds"
        began = monotonic()
        told = shown = 0.0
        last: tuple[int, ...] = (0, 0, 0)
        rest: list[str] = []
        process, output = _started(name, seconds, scratch, finds)
        for line in output:
            rest = [*rest[-30:], line]
            if match := _STATS.search(line):
                last = tuple(map(int, match.groups()))
            told = monotonic() - began
            if told - shown > 10:
                shown = told
                _show(name, told, *last, len(_finds(finds)))
        _, ended, usage = os.wait4(process, 0)
        status = os.waitstatus_to_exitcode(ended)
        found = _finds(finds)
        for path in Path(scratch).glob("[cto]*-*"):  # crash, timeout, oom: libFuzzer leaves the input behind
            text = f"the process ended with {status} at this input"
            found.append(
                {
                    "place": path.name.partition("-")[0],
                    "text": text,
                    "program": _program(name, path.read_bytes()),
                }
            )
        if status and not found:
            found.append(
                {"place": "the fuzzer failed", "text": f"it returned {status}", "program": "".join(rest)}
            )
        _show(
            name, monotonic() - began, *last, len(found), f", {usage.ru_utime + usage.ru_stime:.0f} s of CPU"
        )
        return found


def _started(name: str, seconds: float, scratch: str, finds: Path) -> tuple[int, IO[str]]:
    """A copy of this process, which is prepared, and what the fuzzer tells."""
    reads, writes = os.pipe()
    process = os.fork()
    if process:
        os.close(writes)
        return process, open(reads, errors="replace")
    try:
        os.close(reads)
        os.dup2(writes, 2)
        os.chdir(scratch)
        fuzz(name, seconds, finds)
    except BaseException:
        traceback.print_exc()
    os._exit(1)  # the fuzzer ends the process itself


def _finds(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []


def _program(name: str, data: bytes) -> str:
    from fuzz.targets import TARGETS

    return TARGETS[name].program(data)


def _show(
    name: str, seconds: float, executions: int, edges: int, kept: int, finds: int, more: str = ""
) -> None:
    counts = f"{executions:,} executions, {edges:,} edges, {kept:,} inputs kept, {finds} finds"
    print(f"{name}: {seconds:.0f} s, {counts}{more}", flush=True)


def fuzz(name: str, seconds: float, finds: Path) -> None:
    """Fuzz one reader in this process, which ends with it."""
    import atheris
    from fuzz.finds import place_of, shrunk
    from fuzz.targets import TARGETS

    target = TARGETS[name]
    corpus = KEPT / name
    corpus.mkdir(parents=True, exist_ok=True)
    for seed in target.corpus():
        if len(seed) <= LONGEST:
            (corpus / sha256(seed).hexdigest()[:16]).write_bytes(seed)

    def changed(data: bytes, most: int) -> bytes:
        return bytes(atheris.Mutate(data, most))  # `Setup` puts another function there

    mutated, known, count = target.mutator(changed), set[str](), 0

    def failure(data: bytes, seed: int | None) -> Exception | None:
        try:
            target.holds(data) if seed is None else target.holds_in_bulk(data, seed)
        except Exception as error:
            return error
        return None

    def one_input(data: bytes) -> None:
        nonlocal count
        count += 1
        for seed in (None, count) if count % IN_BULK == 0 else (None,):
            error = failure(data, seed)
            if error is not None and (place := place_of(error)) not in known:
                known.add(place)

                def fails(other: bytes, seed: int | None = seed, place: str = place) -> bool:
                    found = failure(other, seed)
                    return found is not None and place_of(found) == place

                small = shrunk(data, fails, is_json=target.is_json)
                text = f"{type(error).__name__}: {error!s}"[:600]
                with finds.open("a", encoding="utf-8") as file:
                    how = "" if seed is None else f"# in bulk, seed {seed}: .holds_in_bulk(…, {seed})\n"
                    file.write(
                        json.dumps({"place": place, "text": text, "program": how + target.program(small)})
                        + "\n"
                    )

    options = [
        f"-max_total_time={max(1, int(seconds))}",
        f"-max_len={LONGEST}",
        f"-timeout={HANGS}",
        f"-report_slow_units={HANGS}",
        "-rss_limit_mb=3000",
        "-len_control=20",
    ]
    atheris.Setup([__file__, *options, str(corpus)], one_input, custom_mutator=mutated)
    atheris.Fuzz()


def _modules() -> list[str]:
    """All of the package, by their files: to ask a folder for its modules imports it."""
    package = TESTS.parent / "rxdelta"
    files = (path.relative_to(package.parent).with_suffix("") for path in sorted(package.rglob("*.py")))
    return [".".join(path.parts).removesuffix(".__init__") for path in files]


if __name__ == "__main__":
    sys.path[:0] = [str(TESTS.parent), str(TESTS)]
    main()
