"""For all tests: which ones run, and how long one may take. Time decides nothing else."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings
from support.browser import end_chromium
from support.needs import LEFT_OUT, MATERIAL
from support.shared import changed_recordings

pytest_plugins = ["rxdelta.testing.pytest_plugin"]

# A slow machine makes no property fail, and in CI luck decides nothing: the same examples are drawn each time.
settings.register_profile("rxdelta", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("rxdelta")
# For a second run of the same tests, on another Python: the same examples, but fewer.
settings.register_profile("brief", settings.get_profile("rxdelta"), max_examples=10)

LIMIT, SLOW_LIMIT = 120, 300  # seconds. Nothing takes as long: what hangs fails.
QUICK = 0.4  # of the examples are drawn where the slow tests are left out: as many as judge each mutant
WAITING = ("tests/relay/", "tests/examples/")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run the tests that are marked slow, too")
    parser.addoption(
        "--times",
        type=float,
        help="draw so many times the examples of each property, others in each run if they are more; "
        f"all of them with --slow or a profile, else {QUICK}",
    )
    parser.addoption(
        "--without",
        action="append",
        choices=MATERIAL,
        default=[],
        help="leave out the tests that need this, also where it is there and in CI (may be repeated)",
    )


def pytest_configure(config: pytest.Config) -> None:
    LEFT_OUT.update(config.option.without)


@pytest.fixture(scope="session", autouse=True)
def recordings_stay_as_they_are() -> Iterator[None]:
    """All tests share them, so a test that changed one would decide what others see."""
    yield
    assert changed_recordings() == [], "a test of this process has changed these recordings"


def pytest_sessionfinish() -> None:
    end_chromium()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    is_whole = _runs_slow(config) or config.getoption("--hypothesis-profile", None) is not None
    times = config.option.times or (1 if is_whole else QUICK)
    for item in items:
        if item.get_closest_marker("timeout") is None:
            slow = item.get_closest_marker("slow") is not None
            item.add_marker(pytest.mark.timeout((SLOW_LIMIT if slow else LIMIT) * max(1, times)))
    # What waits, for servers and leases, begins: the first tests go to one worker, and the others have the cores meanwhile.
    items.sort(key=lambda item: not item.nodeid.startswith(WAITING))
    if times != 1:
        _draw(items, times)
    if not _is_named(config):
        _leave_out(config, items, "soak")
        if not config.option.slow:
            _leave_out(config, items, "slow")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Spare collections of garbage the millions of objects that are there for good, while pytest collects the tests and
    while it runs them: they take minutes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _draw(items: list[pytest.Item], times: float) -> None:
    tests = {getattr(item.obj, "__func__", item.obj) for item in items if isinstance(item, pytest.Function)}
    for test in tests:  # one for all its parameters
        if hasattr(test, "hypothesis"):  # its settings can't be read or set by a public name
            known = test._hypothesis_internal_use_settings
            test._hypothesis_internal_use_settings = settings(
                known,
                max_examples=max(1, round(times * known.max_examples)),
                derandomize=known.derandomize and times < 1,
            )


def _leave_out(config: pytest.Config, items: list[pytest.Item], mark: str) -> None:
    left_out = [item for item in items if item.get_closest_marker(mark) is not None]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.get_closest_marker(mark) is None]


def pytest_report_header(config: pytest.Config) -> str | None:
    left_out = [*sorted(LEFT_OUT), *([] if _runs_slow(config) else ["tests marked slow (--slow runs them)"])]
    return f"left out: {', '.join(left_out)}" if left_out else None


def _runs_slow(config: pytest.Config) -> bool:
    return bool(config.option.slow or _is_named(config))


def _is_named(config: pytest.Config) -> bool:
    """Whoever names a test or a mark means it."""
    return bool(config.option.markexpr or any("::" in argument for argument in config.args))
