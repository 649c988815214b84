"""What an import costs a fresh interpreter, beside the two packages that the library stands on. The interpreter's own start
is taken off."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from tempfile import TemporaryDirectory

from harness import Table

BARE, BASE = "a bare interpreter", "reactivex and attrs"
PROGRAMS: dict[str, tuple[list[str], float | None]] = {
    BARE: (["-c", ""], None),
    BASE: (["-c", "import reactivex, reactivex.operators, attrs"], None),
    "`import rxdelta as rd`": (["-c", "import rxdelta as rd"], 2.5),
    "`import rxdelta as rd; rd.stream`": (["-c", "import rxdelta as rd; rd.stream"], 2.5),
    "`from rxdelta import *`": (["-c", "from rxdelta import *"], 2.5),
    '`import rxdelta as rd; rd.decode("openai-chat")`': (
        ["-c", 'import rxdelta as rd; rd.decode("openai-chat")'],
        None,
    ),
    "`rxdelta --version`": (["-m", "rxdelta", "--version"], None),
}


def started(cache: str, *arguments: str) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = cache
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def tables() -> Iterator[Table]:
    table = Table("Import", "ms of CPU time more than a bare interpreter", scale=1e3, base=BASE)
    with TemporaryDirectory() as cache:
        for name, (arguments, goal) in PROGRAMS.items():
            started(cache, *arguments)  # compiles
            over = "" if name == BARE else BARE
            table.row(name, partial(started, cache, *arguments), over=over, goal=goal, told=True)
        yield table
