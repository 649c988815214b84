"""nox and what it needs, with their hashes, which CI installs before anything else: `.github/nox.txt`, made of the lock.

`nox -s lock` runs this file.
"""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["NAMES", "PLACE", "written"]

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "requirements-dev.lock"
PLACE = ROOT / ".github" / "nox.txt"
HEAD = "# nox and what it needs, as in requirements-dev.lock: `nox -s lock` writes both.\n"
# A name that is missing fails the installation, since all that it installs must have a hash.
NAMES = (
    "argcomplete attrs colorama colorlog dependency-groups distlib filelock humanize nox packaging platformdirs "
    "python-discovery virtualenv"
)


def written() -> str:
    """The text of the file: the head, and each package as the lock has it."""
    lock = LOCK.read_text("utf-8")
    entries = dict(re.findall(r"^(([\w.-]+)==.*\\\n(?:    --hash=.*\n?)+)", lock, re.MULTILINE))
    found = {name: entry for entry, name in entries.items()}
    return HEAD + "".join(found[name] for name in NAMES.split())


if __name__ == "__main__":
    PLACE.write_text(written(), "utf-8")
