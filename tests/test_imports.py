"""What an import imports: the package nothing, a name what it needs, a format only where it is named; and any module first."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import rxdelta as rd

ROOT = Path(rd.__file__).parent
FORMATS = sorted(path.parent.name for path in ROOT.glob("formats/*/__init__.py"))
MODULES = [
    *(path.stem for path in sorted(ROOT.glob("*.py")) if not path.stem.startswith("__")),
    *(path.parent.name for path in sorted(ROOT.glob("*/__init__.py"))),
]


def imported(program: str) -> set[str]:
    """The modules of the package that a fresh interpreter has after the program."""
    code = f"{program}\nimport json, sys\nprint(json.dumps([one for one in sys.modules if one.startswith('rxdelta')]))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def formats(modules: Iterable[str]) -> list[str]:
    return [
        name
        for name in FORMATS
        if f"rxdelta.formats.{name}.decoder" in modules or f"rxdelta.formats.{name}.encoder" in modules
    ]


def test_the_package_alone_imports_nothing() -> None:
    assert imported("import rxdelta as rd\nrd.__version__\ndir(rd)") == {"rxdelta"}


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            "rd.stream, rd.decode, rd.run_tools, rd.to_ai_sdk, rd.wire.DONE, rd.to_request, rd.types, rd.errors",
            [],
        ),
        ('rd.decode("gemini")', ["gemini"]),
        ('rd.providers.decoder("mistral")', ["mistral", "openai_chat"]),
        ('rd.to_request(["Hi"], "cohere")', ["cohere"]),
        ("rd.to_ag_ui()", ["ag_ui"]),
        ("rd.wire.AI_SDK_HEADERS", ["ai_sdk"]),
    ],
)
def test_a_format_is_imported_when_it_is_named(program: str, expected: list[str]) -> None:
    assert formats(imported(f"import rxdelta as rd\n{program}")) == expected


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_command_answers_before_it_imports_what_replays(option: str) -> None:
    modules = imported(
        f"import rxdelta.cli\ntry:\n    rxdelta.cli.main([{option!r}])\nexcept SystemExit:\n    pass"
    )
    assert "rxdelta.cli" in modules
    assert modules.isdisjoint({"rxdelta.runtime", "rxdelta.operators", "rxdelta.aio", "rxdelta.cli.replay"})


@pytest.mark.parametrize("module", MODULES)
def test_any_module_may_be_imported_first(module: str) -> None:
    if module == "asgi":
        pytest.importorskip("starlette")
    assert f"rxdelta.{module}" in imported(f"import rxdelta.{module}")


def test_type_checkers_see_every_name_that_is_imported_later() -> None:
    for room in ("wire", "requests", "testing"):
        tree = ast.parse((ROOT / room / "__init__.py").read_text("utf-8"))
        (choice,) = [node for node in tree.body if isinstance(node, ast.If) and node.orelse]
        seen: dict[str | None, list[str]] = {}
        for node in choice.body:
            if isinstance(node, ast.ImportFrom):
                seen[node.module] = sorted(
                    [*seen.get(node.module, ()), *(alias.name for alias in node.names)]
                )
        (places,) = [node for node in ast.walk(ast.Module(choice.orelse, [])) if isinstance(node, ast.Dict)]
        assert {home: sorted(names) for home, names in ast.literal_eval(places).items()} == seen
    front = ast.parse((ROOT / "__init__.py").read_text("utf-8"))
    seen_on_rd = {
        alias.name for node in ast.walk(front) if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert {*rd.__all__} <= seen_on_rd


@pytest.mark.parametrize("name", rd.__all__)
def test_a_name_is_the_same_thing_each_time(name: str) -> None:
    assert getattr(rd, name) is getattr(rd, name)


def test_a_name_that_is_imported_later_is_no_module_of_its_package() -> None:
    """The import of a module replaces the package's attribute of that name, so the name would be the module from then on."""
    for path in ROOT.rglob("__init__.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "lazily":
                texts = [one.value for one in ast.walk(node.args[1]) if isinstance(one, ast.Constant)]
                assert not [one for one in texts if (path.parent / f"{one}.py").exists()], path
