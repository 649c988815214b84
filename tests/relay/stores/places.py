"""The store that a test's processes share: they find it by the environment."""

from __future__ import annotations

import os

from rxdelta.relay import Store
from rxdelta.relay.places import store_at

__all__ = ["URL", "at_the_url"]

URL = "RXDELTA_TEST_STORE"


def at_the_url() -> Store:
    return store_at(os.environ[URL], prefix="rxdelta", replicas=0)
