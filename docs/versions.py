"""Put the folders of all versions of the site in order: `python docs/versions.py build/site`.

Writes `versions.json`, which the list beside each page reads, makes `stable` of the newest release, and leads the site's
address there.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from packaging.version import InvalidVersion, Version

START = '<!doctype html><title>rxdelta</title><meta http-equiv="refresh" content="0; url=stable/">\n'


def released(site: Path) -> list[str]:
    """The releases that have a folder, the newest first."""
    found: list[Version] = []
    for folder in site.iterdir():
        if (folder / "index.html").is_file():
            try:
                found.append(Version(folder.name))
            except InvalidVersion:
                continue  # stable, dev
    return [str(version) for version in sorted(found, reverse=True)]


def arrange(site: Path) -> None:
    releases = released(site)
    versions = [*releases, *(["dev"] if (site / "dev").is_dir() else [])]
    stable = next((one for one in releases if not Version(one).is_prerelease), versions[0])
    shutil.rmtree(site / "stable", ignore_errors=True)
    shutil.copytree(site / stable, site / "stable")
    shutil.copy(site / "stable/llms.txt", site)
    (site / "versions.json").write_text(json.dumps({"stable": stable, "versions": versions}), "utf-8")
    (site / "index.html").write_text(START, "utf-8")
    (site / ".nojekyll").touch()  # folders that begin with `_` are served, too


if __name__ == "__main__":
    arrange(Path(sys.argv[1]))
