"""The project's checks: `nox` runs lint, typing and all tests; `nox -l` lists what else there is."""

from __future__ import annotations

import os
import re
import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import nox
from packaging.requirements import Requirement

nox.options.sessions = ["lint", "typing", "tests"]
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"  # the second run of a session takes seconds
nox.options.error_on_missing_interpreters = False  # in CI, too: `quick` takes those that are there

PROJECT = nox.project.load_toml("pyproject.toml")
PYTHONS = nox.project.python_versions(PROJECT)
CLIENTS = Path("tests/clients")
LOCK = Path("requirements-dev.lock")
WITHOUT = [f"--without={material}" for material in ("recordings", "clients", "browser")]
BRIEF = "--hypothesis-profile=brief"  # `coverage` draws all, `tests` a third, `soak` ten times as many


def group(*names: str) -> list[str]:
    return [*nox.project.dependency_groups(PROJECT, *names)]


def install(session: nox.Session, groups: list[str], *constraints: str) -> None:
    """The wheel that pip builds, with all extras, and what these groups hold."""
    session.install(*PROJECT["build-system"]["requires"], *groups, *constraints)
    session.install("--no-build-isolation", ".[all]", *constraints)


def constraints(session: nox.Session, versions: Iterator[str]) -> list[str]:
    path = Path(session.create_tmp()) / "constraints.txt"
    path.write_text("".join(f"{version}\n" for version in versions))
    return ["--constraint", str(path.resolve())]


def locked() -> Iterator[str]:
    """The versions in the lock. Hashes would be wanted of the project, too; a constraint has no extras."""
    for version in re.findall(r"^[^\s#].*?(?= \\$)", LOCK.read_text(), re.MULTILINE):
        yield re.sub(r"\[.*?\]", "", version)


def lowest() -> Iterator[str]:
    """The lowest version of each dependency of the project and of its extras."""
    declared = PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()
    for requirement in (Requirement(one) for each in declared for one in each):
        for specifier in requirement.specifier:
            if specifier.operator == ">=":
                yield f"{requirement.name}=={specifier.version}"


def run_quick(session: nox.Session, *arguments: str) -> None:
    session.run("pytest", "-n", "auto", "-rfE", *WITHOUT, *arguments, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests; with arguments, what pytest makes of them, which leaves out those marked slow."""
    install(session, group("tests", "examples", "hosts", "judges"))
    install_clients(session)
    # One worker more than cores: many of them wait, for a server, a lease or a browser.
    session.run(
        "pytest", "-n", str((os.cpu_count() or 1) + 1), *(session.posargs or ["--slow", "--times=0.3"])
    )


def _is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


def install_clients(session: nox.Session) -> None:
    """The front ends' own clients, without which their tests are skipped."""
    if shutil.which("npm") and _is_older(
        CLIENTS / "node_modules/.package-lock.json", CLIENTS / "package-lock.json"
    ):
        clients = ["npm", "ci", "--prefix", str(CLIENTS)]
        session.run_install(*clients, external=True, silent=True, success_codes=range(256))


@nox.session
def soak(session: nox.Session) -> None:
    """The tests that take minutes: streams that are cut off and read again at random, and properties at length."""
    install(session, group("tests"))
    install_clients(session)
    session.run("pytest", "-n", "auto", "-m", "soak", *session.posargs)
    properties = ["-m", "hypothesis and not soak", "--times=10", *session.posargs]
    session.run("pytest", "-n", "auto", *properties, success_codes=[0, 5])  # 5: where posargs name none


@nox.session(python=PYTHONS)
def quick(session: nox.Session) -> None:
    """On each Python: the tests that need no recordings, SDKs, Node or browser and aren't slow."""
    install(session, group("tests"))
    run_quick(session, BRIEF)


# They have no wheel for a free-threaded Python. Their tests are skipped there.
WITHOUT_FREE_WHEEL = {"orjson", "psycopg", "psycopg-pool"}


@nox.session(python=["3.14t"])
def free(session: nox.Session) -> None:
    """The quick tests on a free-threaded Python, without what has no wheel for it."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    wanted = [
        *PROJECT["project"]["dependencies"],
        *(one for extra in extras for one in extra),
        *group("tests"),
    ]
    left_out = {PROJECT["project"]["name"], *WITHOUT_FREE_WHEEL}
    others = [one for one in wanted if Requirement(one).name not in left_out]
    session.install(*PROJECT["build-system"]["requires"], *others)
    session.install("--no-build-isolation", ".")
    session.run("pytest", "-n", "auto", "-rfE", *WITHOUT, BRIEF, *session.posargs, env={"PYTHON_GIL": "0"})


@nox.session(python=PYTHONS[0], name="lowest")
def lowest_dependencies(session: nox.Session) -> None:
    """The quick tests on the lowest Python, with the lowest version of each dependency that pyproject.toml allows."""
    install(session, group("tests"), *constraints(session, lowest()))
    run_quick(session, BRIEF)


@nox.session
def coverage(session: nox.Session) -> None:
    """The quick tests with branch coverage: fails below the figure in pyproject.toml, and lists what is missed."""
    install(session, group("tests"))
    run_quick(session, "--times=1", "--cov", "--cov-report=term", "--cov-report=html")


@nox.session
def mutation(session: nox.Session) -> None:
    """Put small faults into the library, one at a time, and see that a test fails; `-- core --all` names packages and numbers."""
    session.install("-e", ".[all]", *group("tests"), *constraints(session, locked()))
    packages = sorted(path.parent.name for path in Path("rxdelta").glob("*/__init__.py"))
    arguments = session.posargs or ["--sample", "30", *packages]
    session.run("python", "tests/mutation/run.py", *arguments, env={"PYTHONHASHSEED": "0"})


@nox.session
def lint(session: nox.Session) -> None:
    session.install(*group("lint"), *constraints(session, locked()))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def typing(session: nox.Session) -> None:
    """The package and the inference tests, under both checkers, strict."""
    groups = group("typing", "tests", "judges")
    session.install("-e", ".[all]", *groups, *constraints(session, locked()))
    session.run("mypy")
    session.run("mypy", "tests/typing")
    session.run("pyright", "rxdelta", "tests/typing")


@nox.session
def docs(session: nox.Session) -> None:
    """The site with the API reference, in build/docs, and its tests, with Chromium; a warning is an error."""
    install(session, group("docs"), *constraints(session, locked()))
    build_site(session, Path("build/docs"))
    tests = ["tests/docs/test_search.py", "tests/docs/test_site.py"]
    session.run("pytest", "--slow", *tests, env={"SITE": "build/docs"})
    session.log("see build/docs/index.html; its search needs a server: python -m http.server -d build/docs")


@nox.session
def site(session: nox.Session) -> None:
    """The site of this version beside those of earlier ones, in build/site, which is what the hosted site has."""
    install(session, group("docs"), *constraints(session, locked()))
    version = re.findall(VERSION_LINE, VERSION.read_text("utf-8"))[0]
    name = "dev" if "dev" in version else version
    build_site(session, SITE / name, hosted=name)
    session.run("python", "docs/versions.py", str(SITE))


def build_site(session: nox.Session, place: Path, hosted: str = "") -> None:
    shutil.rmtree(place, ignore_errors=True)
    options = ["--fail-on-warning", "--keep-going", "--fresh-env", "--quiet"]
    doctrees = ["--doctree-dir", "build/doctrees"]  # not among the pages
    session.run(
        "sphinx-build",
        *options,
        *doctrees,
        "docs",
        str(place),
        *session.posargs,
        env={"HOSTED_VERSION": hosted},
    )


VERSION = Path("rxdelta/__init__.py")
VERSION_LINE = re.compile(r'^__version__ = "(.+)"$', re.MULTILINE)
CHANGELOG = Path("CHANGELOG.md")
DIST = Path("dist")
SITE = Path("build/site")
SMOKE = """
import asyncio, sys
import rxdelta as rd
from rxdelta.testing import sample_chunks

chunks = rd.from_async_iterable(lambda: sample_chunks("weather"))
reply = chunks.pipe(rd.decode("anthropic-messages"), rd.scan_deltas(), rd.to_message())
assert len(asyncio.run(rd.last_value(reply)).tool_calls) == 2
assert rd.__version__ == sys.argv[1], rd.__version__
assert rd.__file__.startswith(sys.prefix), rd.__file__
"""


@nox.session
def release(session: nox.Session) -> None:
    """Build wheel and sdist into dist/ with their sums, and check them as a user gets them; `-- 0.1.0` writes that version first."""
    for version in session.posargs:
        write_version(session, version)
    session.install(*PROJECT["build-system"]["requires"], *group("release"), *constraints(session, locked()))
    version = re.findall(VERSION_LINE, VERSION.read_text("utf-8"))[0]
    shutil.rmtree(DIST, ignore_errors=True)
    # The sdist from the tree, and the wheel from the sdist.
    session.run("python", "-m", "build", "--no-isolation", "--outdir", str(DIST), silent=True)
    wheel, sdist = DIST / f"rxdelta-{version}-py3-none-any.whl", DIST / f"rxdelta-{version}.tar.gz"
    session.run("twine", "check", "--strict", str(wheel), str(sdist))
    check_contents(session, wheel, sdist)
    for distribution in (wheel, sdist):
        try_in_empty_environment(session, distribution.resolve(), version)
    sums = [f"{sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in (wheel, sdist)]
    (DIST / "SHA256SUMS").write_text("".join(sums), "utf-8")
    git = ["git", "tag", "--points-at", "HEAD"]
    tags = re.findall(
        r"^v\d.*", str(session.run(*git, external=True, silent=True, success_codes=range(256))), re.MULTILINE
    )
    if tags not in ([], [f"v{version}"]):
        session.error(f"the version is {version}, and HEAD has the tag {tags[0]}")
    session.log(f"{version} is ready. Nothing is published; CONTRIBUTING.md says what is left to do.")


def write_version(session: nox.Session, version: str) -> None:
    """Into the package; for a release also into the changelog and the description of the API."""
    text = VERSION.read_text("utf-8")
    VERSION.write_text(re.sub(VERSION_LINE, f'__version__ = "{version}"', text), "utf-8")
    if "dev" in version:
        return
    changelog = CHANGELOG.read_text("utf-8")
    if f"## {version} " not in changelog:
        headings = f"## Unreleased\n\n## {version} – {datetime.now(UTC).date()}\n"
        CHANGELOG.write_text(changelog.replace("## Unreleased\n", headings, 1), "utf-8")
    # Among the public names are strategies of Hypothesis and fixtures of pytest.
    session.install("-e", ".[all]", *group("tests"), *constraints(session, locked()))
    session.run("python", "tests/support/api.py")
    session.run("python", "tests/support/api.py", "--write")


def check_contents(session: nox.Session, wheel: Path, sdist: Path) -> None:
    """The wheel has the package's files and no others; the sdist also has what the checks need."""
    tree = {str(path) for path in Path("rxdelta").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if different := tree ^ inside:
        session.error(f"the wheel and the tree differ in {sorted(different)}")
    with tarfile.open(sdist) as archive:
        unpacked = {name.partition("/")[2] for name in archive.getnames()}
    if missing := {*tree, "LICENSE", "README.md", "noxfile.py", "tests/conftest.py"} - unpacked:
        session.error(f"the sdist lacks {sorted(missing)}")


def try_in_empty_environment(session: nox.Session, distribution: Path, version: str) -> None:
    place = Path(session.create_tmp()).resolve() / ("sdist" if distribution.suffix == ".gz" else "wheel")
    session.run("python", "-m", "venv", "--clear", str(place))
    programs = place / ("Scripts" if os.name == "nt" else "bin")

    def run(program: str, *arguments: str) -> None:
        session.run(str(programs / program), *arguments, external=True, silent=True, env={"PYTHONPATH": None})

    run("pip", "install", str(distribution))
    with session.chdir(place):
        run("rxdelta", "demo")
        run("python", "-c", SMOKE, version)


@nox.session
def lock(session: nox.Session) -> None:
    """Write the lock anew after a change of pyproject.toml; `-- --upgrade` takes the newest versions."""
    session.install("uv")
    what = f"--universal --all-extras --no-strip-extras --group dev --python-version {PYTHONS[0]} --generate-hashes"
    without = "--no-annotate --no-emit-index-url --no-emit-find-links --quiet --custom-compile-command"
    options = [*what.split(), *without.split(), "nox -s lock", "--output-file", str(LOCK)]
    session.run("uv", "pip", "compile", "pyproject.toml", *options, *session.posargs)
    session.run("python", "tests/support/nox_lock.py")


# They judge whatever the lock has, so they are no part of it.
AUDITORS = ["pip-audit==2.10.1", "zizmor==1.32.0"]


@nox.session
def audit(session: nox.Session) -> None:
    """Known vulnerabilities of what the lock has and of what the extras install, which PyPI knows, and weak workflows."""
    install(session, AUDITORS)
    session.run("zizmor", "--offline", "--quiet", "--min-severity=medium", ".github")
    installed = Path(session.create_tmp()).resolve() / "installed.txt"
    frozen = session.run("python", "-m", "pip", "freeze", "--exclude=rxdelta", silent=True)
    installed.write_text(str(frozen), "utf-8")
    for versions in (LOCK, installed):
        # Strict: what PyPI doesn't know fails, as it does when PyPI can't be reached.
        command = ["pip-audit", "--strict", "--disable-pip", "--no-deps", "--progress-spinner=off"]
        session.run(*command, "--requirement", str(versions))


# What only the benchmarks need: whose work stands beside ours, and what draws the plots.
BENCH = [
    "ag-ui-protocol==1.0.0",
    "jiter==0.19.0",
    "litellm==1.110.2",
    "matplotlib==3.11.2",
    "msgspec==0.22.0",
    "orjson==3.13.0",
    "partial-json-parser==0.2.1.1.post7",
    "pydantic-ai-slim==2.68.0",
]


@nox.session
def bench(session: nox.Session) -> None:
    """Every figure beside its goal and its peer, for benchmarks/REPORT.md and the site's page; `-- watching` measures that part."""
    session.install("-e", ".[all]", *group("judges"), *BENCH)
    install_clients(session)
    session.run("python", "benchmarks/run.py", *session.posargs)


# What only the fuzzer needs. It has wheels for Linux on x86-64, of 35 MB.
FUZZ = ["atheris==3.0.0"]


@nox.session
def fuzz(session: nox.Session) -> None:
    """Each reader of what comes from outside for a minute, with inputs that reach new code; `-- --seconds 10 sse` is for one."""
    session.install("-e", ".[all]", *group("tests"), *FUZZ)
    session.run("python", "tests/fuzz/run.py", *session.posargs)


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures in the README and the docs anew."""
    session.install("-e", ".[all]", "playwright", "uvicorn")
    session.run("python", "docs/draw.py")
    session.run("python", "docs/draw_chat.py")  # with npm and Chromium
    session.run("python", "docs/draw_inspect.py")  # with Chromium
    session.run("python", "docs/draw_preview.py")  # with Chromium
