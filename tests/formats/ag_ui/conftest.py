"""For all tests of AG-UI."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("CRITICAL", "rxdelta.wire")
