"""The programs in `examples` run, and print what the pages show: the text file beside each."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.pages import ROOT, missing

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

EXAMPLES = ROOT / "examples"
HOSTED = {
    f"tasks/{name}.py": "tests/examples/test_hosts.py"
    for name in (
        "celery_chat",
        "coding_agents",
        "django_chat",
        "fastapi_chat",
        "gradio_chat",
        "jupyter_cells",
        "langgraph_to_ag_ui",
        "marimo_chat",
        "resume_after_reload",
        "streamlit_chat",
        "textual_chat",
        "use_chat",
        "websocket_chat",
    )
}
"""Programs that don't end by themselves, or need a host: the test that runs each in its host."""

PROGRAMS = [
    path
    for folder in ("", "tutorial/", "tasks/")
    for path in sorted(EXAMPLES.glob(f"{folder}*.py"))
    if path.relative_to(EXAMPLES).as_posix() not in HOSTED
]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.relative_to(EXAMPLES).as_posix())
def test_a_program_prints_what_its_page_shows(path: Path, tmp_path: Path) -> None:
    if package := missing(path.read_text("utf-8")):
        pytest.skip(f"needs {package}")
    done = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    shown = path.with_suffix(".txt")
    if shown.exists():
        assert done.stdout == shown.read_text("utf-8")
    else:
        assert done.stdout


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("tutorial/*.py")), ids=lambda path: path.name)
def test_a_step_of_the_tutorial_has_at_most_25_lines(path: Path) -> None:
    assert len(path.read_text("utf-8").splitlines()) <= 25


@pytest.mark.parametrize("name", HOSTED)
def test_a_program_for_a_host_is_run_by_another_test(name: str) -> None:
    assert (EXAMPLES / name).stem in (ROOT / HOSTED[name]).read_text("utf-8")
