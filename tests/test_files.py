"""The project's own files agree with one another: the lock and the pinned tools with pyproject.toml, CI with the classifiers."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKED = {
    name: Version(version)
    for name, version in re.findall(
        r"^([\w.-]+)(?:\[.+?\])?==([\w.]+)", (ROOT / "requirements-dev.lock").read_text("utf-8"), re.MULTILINE
    )
}
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


def test_our_ci_runs_each_supported_python() -> None:
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    assert set(re.findall(r"quick-(3\.\d+)", run)) == set(PYTHONS[1:])


def test_hosted_ci_runs_each_supported_python() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    assert set(re.findall(r'python: "(3\.\d+)"', workflow)) == set(PYTHONS)
    assert all(f"session: quick-{version}," in workflow for version in PYTHONS[1:])


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github/workflows").glob("*.yml")), ids=lambda path: path.name
)
def test_a_workflow_pins_its_actions_and_may_read_only(path: Path) -> None:
    workflow = path.read_text("utf-8")
    assert not re.findall(r"uses: (?!\S+@[0-9a-f]{40} # v\d|\./)\S+", workflow), "an action that isn't pinned"
    assert re.search(r"^permissions:\n  contents: read\n\n", workflow, re.MULTILINE)


def test_a_release_is_uploaded_only_where_somebody_approves_it() -> None:
    workflow = (ROOT / ".github/workflows/release.yml").read_text("utf-8")
    jobs = dict(
        re.findall(r"^  (\w+):\n((?:    .*\n|\n)+)", workflow.partition("\njobs:\n")[2], re.MULTILINE)
    )
    assert [name for name, job in jobs.items() if "pypi-publish@" in job] == ["publish"]
    assert re.search(r"environment:\n +name: pypi\b", jobs["publish"])
    assert "attest-build-provenance@" in jobs["build"]
    assert "twine upload" not in workflow


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
