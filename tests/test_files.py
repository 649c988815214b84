"""The project's own files agree with one another: the lock and the pinned tools with pyproject.toml, CI with the classifiers."""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from support import nox_lock

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKED = {
    name: Version(version)
    for name, version in re.findall(
        r"^([\w.-]+)(?:\[.+?\])?==([\w.]+)", (ROOT / "requirements-dev.lock").read_text("utf-8"), re.MULTILINE
    )
}
NOX = (ROOT / "noxfile.py").read_text("utf-8")
PYTHONS = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))


def test_the_lock_has_what_the_project_and_its_groups_want() -> None:
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(one for extra in PROJECT["project"]["optional-dependencies"].values() for one in extra),
        *(one for group in PROJECT["dependency-groups"].values() for one in group if isinstance(one, str)),
    ]
    for requirement in map(Requirement, wanted):
        if requirement.name != "rxdelta":
            assert LOCKED[requirement.name] in requirement.specifier, f"run `nox -s lock` for {requirement}"


def test_the_lock_names_no_index() -> None:
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    assert "://" not in lock
    assert "--index-url" not in lock


def test_the_commit_hooks_have_the_locks_ruff() -> None:
    hooks = (ROOT / ".pre-commit-config.yaml").read_text("utf-8")
    assert f"rev: v{LOCKED['ruff']}" in hooks


def test_our_ci_runs_supported_pythons() -> None:
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    assert set(re.findall(r"quick-(3\.\d+)", run)) == set(PYTHONS[1:-1])  # its machine hasn't the newest


def test_hosted_ci_runs_each_supported_python() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert set(re.findall(r'python: "(3\.\d+)"', workflow)) == set(PYTHONS)
    assert all(f"session: quick-{version}," in workflow for version in PYTHONS[1:])
    (free,) = re.findall(r'^@nox.session\(python=\["(3\.\d+t)"\]\)\ndef free\(', NOX, re.MULTILINE)
    assert f'{{ session: free-{free}, python: "{free}" }}' in workflow


def test_the_page_about_where_it_runs_names_each_supported_python() -> None:
    page = (ROOT / "docs" / "help" / "where-it-runs.md").read_text("utf-8")
    assert re.findall(r"^\| Python (3\.\d+) ", page, re.MULTILINE) == PYTHONS
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


WORKFLOWS = {
    path.name: path.read_text("utf-8") for path in sorted((ROOT / ".github/workflows").glob("*.yml"))
}
JOB = re.compile(r"^  (\w+):.*\n((?:    .*\n|\n)+)", re.MULTILINE)
WRITES = {
    ("docs.yml", "site"): ["contents"],  # pushes the site
    ("release.yml", "attest"): ["id-token", "attestations"],
    ("release.yml", "docs"): ["contents"],  # calls docs.yml
    ("release.yml", "publish"): ["id-token"],
}
"""What a job may do beside reading: no other one may."""


def jobs(workflow: str) -> dict[str, str]:
    return dict(JOB.findall(WORKFLOWS[workflow].partition("\njobs:\n")[2]))


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_pins_its_actions_and_knows_no_secret(name: str) -> None:
    workflow = WORKFLOWS[name]
    assert not re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v\d|\./)\S+", workflow), "an action that isn't pinned"
    assert "secrets" not in workflow, "no token is kept"
    assert "pull_request_target" not in workflow, "it would run a stranger's code with our rights"
    commands = re.findall(r"^ *(?:- )?run: ((?:.*\n)(?:^ {10,}.*\n)*)", workflow, re.MULTILINE)
    assert commands
    assert [one for one in commands if "${{ github." in one] == [], (
        "a title or branch would be read as a command"
    )


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_job_ends_and_may_read_only_unless_it_has_to_write(name: str) -> None:
    assert re.search(r"^permissions:\n  contents: read\n\n", WORKFLOWS[name], re.MULTILINE)
    for job, text in jobs(name).items():
        assert re.search(r"^    (timeout-minutes: \d+|uses: \./\S+)$", text, re.MULTILINE), job
        assert re.findall(r"([\w-]+): write\b", text) == WRITES.get((name, job), []), job
        assert "write-all" not in text


@pytest.mark.parametrize("path", [*(f".github/workflows/{name}" for name in WORKFLOWS), ".ci/run"])
def test_nox_is_installed_as_the_lock_has_it(path: str) -> None:
    text = (ROOT / path).read_text("utf-8")
    installed = re.findall(r"pip install (?:--quiet )?(.*)", text)
    assert installed
    assert set(installed) == {"--require-hashes --requirement .github/nox.txt"}


def test_the_list_of_what_nox_needs_is_made_of_the_lock() -> None:
    assert nox_lock.PLACE.read_text("utf-8") == nox_lock.written(), "run `python tests/support/nox_lock.py`"
    try:
        needed = importlib.metadata.requires("nox") or []
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("nox isn't installed")
    wanted = [one for one in map(Requirement, needed) if not one.marker or one.marker.evaluate({"extra": ""})]
    assert {one.name for one in wanted} <= set(nox_lock.NAMES.split())


def test_known_vulnerabilities_are_looked_for_each_week() -> None:
    assert re.search(r"^  schedule:\n    - cron: ", WORKFLOWS["ci.yml"], re.MULTILINE)
    assert "session: audit," in jobs("ci.yml")["checks"]


def test_a_release_is_signed_apart_from_its_build_and_uploaded_only_where_somebody_approves_it() -> None:
    found = jobs("release.yml")
    assert [name for name, job in found.items() if "pypi-publish@" in job] == ["publish"]
    assert re.search(r"environment:\n +name: pypi\b", found["publish"])
    assert [name for name, job in found.items() if "attest-build-provenance@" in job] == ["attest"]
    assert [name for name, job in found.items() if re.search(r"checkout@|pip install|nox ", job)] == ["build"]
    assert [re.findall(r"needs: (\w+)", found[name]) for name in ("attest", "publish")] == [
        ["build"],
        ["attest"],
    ]
    assert "twine upload" not in WORKFLOWS["release.yml"]


def test_the_readme_of_pypis_page_has_no_relative_link(monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("hatchling.metadata.core")
    manager = pytest.importorskip("hatchling.plugin.manager")
    pytest.importorskip("hatch_fancy_pypi_readme")
    monkeypatch.chdir(ROOT)
    readme = core.ProjectMetadata(str(ROOT), manager.PluginManager()).core.readme
    targets = re.findall(r"""(?<=\]\()[^)]+|(?<=src=")[^"]+""", readme)
    assert any("raw.githubusercontent.com" in target for target in targets)
    assert [target for target in targets if not target.startswith(("https://", "#"))] == []


def test_no_file_has_what_a_merge_left() -> None:
    left = [
        f"{path.relative_to(ROOT)}:{number}"
        for folder in ("rxdelta", "tests", "docs", "examples", "benchmarks")
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in (".py", ".md", ".rst", ".toml")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if re.match(r"\s*(<{7}|>{7}|\|{7}) ", line)
    ]
    assert left == []
