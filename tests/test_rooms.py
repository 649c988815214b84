"""The rooms of the package: which imports which, in one direction, from a room and not from its files."""

from __future__ import annotations

import ast
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[1] / "rxdelta"

BELOW: dict[str, set[str]] = {
    "core": set(),
    "framing": {"core"},
    "formats": {"core", "framing"},
    "providers": {"core", "framing", "formats"},
    "requests": {"core", "formats"},
    "wire": {"core", "framing", "formats"},
    "runtime": {"core"},
    "cutting": {"core"},
    "operators": {"core", "framing", "providers", "wire", "runtime", "cutting"},
    "recording": {"core", "framing", "providers", "runtime", "operators"},
    "aio": {"core", "runtime", "providers", "operators", "recording"},
    "relay": {"core", "runtime", "aio"},
    "asgi": {"core", "wire", "runtime", "operators", "aio", "relay"},
    "testing": {"core", "cutting", "providers", "recording", "runtime", "wire", "operators", "aio", "relay"},
    "cli": {"core", "providers", "requests", "wire", "operators", "recording", "aio", "testing"},
}
DOORS = {"providers", "requests", "wire"}  # they pass on what stands in the folders of the formats
PURE = {"core", "framing", "formats", "providers", "requests", "wire"}
NOT_PURE = {
    "asyncio",
    "threading",
    "time",
    "socket",
    "selectors",
    "concurrent",
    "multiprocessing",
    "reactivex",
}
THIRD_PARTIES = {
    "core": {"attrs"},
    "formats": {"ag_ui"},
    "runtime": {"reactivex"},
    "operators": {"reactivex", "ag_ui", "opentelemetry"},
    "recording": {"reactivex"},
    "aio": {"reactivex", "opentelemetry"},
    "relay": {"reactivex", "redis", "valkey", "psycopg", "psycopg_pool", "msgspec", "opentelemetry"},
    "asgi": {"reactivex", "starlette"},
    "cli": {"reactivex", "rich"},
    "testing": {"reactivex"},
}
MORE = {  # what one file alone may import
    "testing/pytest_plugin.py": {"pytest"},
    "testing/strategies.py": {"hypothesis"},
}
SDKS = {"openai", "anthropic", "google", "mistralai", "cohere", "ollama", "boto3", "langchain_core"}
DIALECTS = {"mistral": "openai_chat"}  # a format that another one is made of

FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT)
FORMATS = sorted(
    path.parent.name
    for path in (ROOT / "formats").glob("*/__init__.py")
    if "FORMAT = " in path.read_text("utf-8")
)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def imports(path: Path) -> list[tuple[str, str]]:
    """(module, name) of each import, names within the package spelt out."""
    found: list[tuple[str, str]] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path.name}: a relative import; write the whole path"
            found += [(node.module or "", alias.name) for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_keeps_to_its_room(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for module, name in imports(path):
        top, *rest = module.split(".")
        if top != "rxdelta":
            assert top not in SDKS, f"{module}: an SDK is a judge in tests, never a part"
            assert not (room in PURE and top in NOT_PURE), f"{room} is pure, and imports {module}"
            continue
        other = rest[0] if rest else name
        if other == room or (room == "cli" and other == "__version__"):
            continue
        assert other in BELOW[room], f"{room} is below {other}, and imports {module}"
        if other == "formats" and room in DOORS:
            continue
        assert len(rest) == 1 or rest[1:] == ["events"], (
            f"import {name} from rxdelta.{other}, not from {module}"
        )


@pytest.mark.parametrize("path", sorted((ROOT / "operators").glob("*/*.py")), ids=name_of)
def test_a_family_of_operators_knows_no_other(path: Path) -> None:
    for module, _ in imports(path):
        if module.startswith("rxdelta.operators"):
            assert module.startswith(f"rxdelta.operators.{path.parent.name}."), module


@pytest.mark.parametrize("path", sorted((ROOT / "formats").rglob("*.py")), ids=name_of)
def test_a_format_knows_no_other_and_what_they_share_knows_none(path: Path) -> None:
    if path.name == "registry.py":
        return
    own = path.parent.name if path.parent.name in FORMATS else None
    for module, name in imports(path):
        if module.startswith("rxdelta.formats"):
            other = [part for part in (*module.split(".")[2:], name) if part in FORMATS]
            assert other[:1] in ([], [own], [DIALECTS.get(own or "")]), module
            assert name != "registry", "the registry knows the formats; they don't know it"


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_third_parties_are_those_of_the_room(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    for module, _ in imports(path):
        top = module.partition(".")[0]
        if top in sys.stdlib_module_names or top in ("rxdelta", "__future__"):
            continue
        if top == "typing_extensions":
            assert not any(module == getattr(node, "module", "") for node in run_time_imports(parsed(path)))
            continue
        allowed = THIRD_PARTIES.get(room, set()) | THIRD_PARTIES["core"] | MORE.get(name_of(path), set())
        assert top in allowed, f"{room} may not depend on {top}"


def test_no_room_but_the_formats_names_a_provider() -> None:
    """Differences between providers are told in events, not asked for by name."""
    for path in FILES:
        if path.relative_to(ROOT).parts[0] in ("formats", "cli"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                texts = [one.value for one in ast.walk(node) if isinstance(one, ast.Constant)]
                assert not {"openai", "anthropic", "openai-chat", "anthropic-messages"} & set(
                    map(str, texts)
                ), path


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def run_time_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that run, at module level or inside a function, so not those for the type checkers."""
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        for child in node.orelse:
            yield from run_time_imports(child)
    elif isinstance(node, (ast.Import, ast.ImportFrom)):
        yield node
    else:
        for child in ast.iter_child_nodes(node):
            yield from run_time_imports(child)


def file_of(module: str) -> Path | None:
    place = ROOT.parent.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.exists()), None)


def imported_files(path: Path) -> set[Path]:
    """The files that a file imports by name. The packages that Python runs on the way there are not meant."""
    found: set[Path | None] = set()
    for node in run_time_imports(parsed(path)):
        if isinstance(node, ast.Import):
            found |= {file_of(alias.name) for alias in node.names}
        else:
            module = node.module or ""
            found |= {file_of(f"{module}.{alias.name}") or file_of(module) for alias in node.names}
    return {file for file in found if file is not None}


def test_no_circle_of_files() -> None:
    imports_of = {path: imported_files(path) for path in sorted(ROOT.rglob("*.py"))}
    try:
        list(TopologicalSorter(imports_of).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(name_of(path) for path in reversed(error.args[1])))


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_file_has_at_most_700_lines(path: Path) -> None:
    """A file of tables may be longer, and is called so."""
    assert path.name == "tables.py" or len(path.read_text("utf-8").splitlines()) <= 700
