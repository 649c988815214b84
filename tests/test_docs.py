"""What the documentation shows runs: examples in docstrings, in markdown, and the programs in `examples/`."""

from __future__ import annotations

import ast
import asyncio
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    name for _, name, _ in pkgutil.walk_packages(rd.__path__, "rxdelta.") if not name.endswith("__main__")
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
AS_PASTED = [ROOT / "README.md", ROOT / "docs" / "recipes.md"]


def blocks(pages: list[Path]) -> list[Any]:
    return [
        pytest.param(
            match[1], id=f"{page.name}:{page.read_text('utf-8')[: match.start()].count(chr(10)) + 1}"
        )
        for page in pages
        for match in re.finditer(r"^```python\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    ]


PASTED = blocks(AS_PASTED)
BLOCKS = blocks([page for page in PAGES if page not in AS_PASTED])
PROGRAMS = [path.read_text("utf-8") for path in (ROOT / "examples").rglob("*.py")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name: str) -> None:
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    for test in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(test)
    assert runner.failures == 0


def names() -> dict[str, Any]:
    """What the pages take for granted: the guide's first block, and a graph of LangGraph's."""
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8")
    given: dict[str, Any] = {}
    exec(guide.partition("```python\n")[2].partition("```")[0], given)

    async def astream(*_: Any, **__: Any) -> AsyncIterator[Any]:
        for piece in "abc":
            for node in ("one:1", "other:2"):
                chunk = {"type": "AIMessageChunk", "content": piece, "id": node}
                yield (chunk, {"langgraph_checkpoint_ns": node})

    return {**given, "draw": lambda value: None, "graph": SimpleNamespace(astream=astream)}


@pytest.mark.parametrize("code", PASTED)
def test_examples_for_pasting_run_as_pasted(code: str) -> None:
    if "genai_prices" in code:
        pytest.importorskip("genai_prices")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, encoding="utf-8"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("code", BLOCKS)
def test_examples_on_pages_run(
    code: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some write a file
    for package in ("cryptography", "fastapi"):
        if package in code:
            pytest.importorskip(package)
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, names(), "page", None, 0)
        assert doctest.DocTestRunner(optionflags=FLAGS).run(test).failed == 0
        return

    if "VirtualTime()" in code:  # it runs a loop of its own
        exec(code, names())
        return

    async def run() -> None:
        space = names()
        compiled = compile(code, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        result = eval(compiled, space)
        if inspect.isawaitable(result):
            await result

    asyncio.run(run())


def test_the_guides_first_two_pipelines_run_one_after_the_other_lose_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    guide = (ROOT / "docs" / "guide.md").read_text("utf-8")
    section = guide[guide.index("## From chunks to snapshots") :]
    first, second, *_ = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)

    async def chunks() -> AsyncIterator[dict[str, Any]]:
        for piece in ("Hel", "lo", "!"):
            yield {"choices": [{"index": 0, "delta": {"content": piece}}]}

    async def run() -> dict[str, Any]:
        space = {**names(), "chunks": chunks()}
        for code in (first, second):
            compiled = compile(code, "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            result = eval(compiled, space)
            if inspect.isawaitable(result):
                await result
        return space

    assert asyncio.run(run())["snapshot"].text == "Hello!"


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_example_programs_run(path: Path) -> None:
    for package in re.findall(r"^(?:from|import) (textual|uvicorn)\b", path.read_text("utf-8"), re.MULTILINE)[
        :1
    ]:
        pytest.importorskip(package)
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


@pytest.mark.parametrize("name", rd.__all__)
def test_a_name_on_rd_is_shown_in_use(name: str) -> None:
    shown = [*(code.values[0] for code in [*PASTED, *BLOCKS]), *PROGRAMS]
    assert any(re.search(rf"\brd\.{name}\b", code) for code in shown), "show it in a block of the docs"


def test_links_within_the_pages_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
