"""The test kit for pipelines: a fake provider, virtual time, samples, marble lines, and a check of stores.

Everything is imported when it is first used. Nothing here imports pytest, Hypothesis, a web framework or an SDK, but for
`rxdelta.testing.strategies` and the pytest plugin.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rxdelta.testing.fake_provider import (
        FakeProvider,
        provider_of_lines as provider_of_lines,  # for the command
    )
    from rxdelta.testing.fake_server import FakeServer
    from rxdelta.testing.script import SAMPLES, FakePart, FakeReply, FakeRequest, open_sample, sample_chunks
    from rxdelta.testing.stores.check import LawResult, StoreFault, StoreReport, check_store
    from rxdelta.testing.stores.memory_store import MemoryStore
    from rxdelta.testing.virtual_time import VirtualTime
else:

    def __getattr__(name: str) -> object:
        # Not before: pytest imports this module in every run, with the plugin.
        from rxdelta.core import lazily

        places = {
            "rxdelta.testing.fake_provider": ["FakeProvider", "provider_of_lines"],
            "rxdelta.testing.fake_server": ["FakeServer"],
            "rxdelta.testing.script": [
                "SAMPLES",
                "FakePart",
                "FakeReply",
                "FakeRequest",
                "open_sample",
                "sample_chunks",
            ],
            "rxdelta.testing.virtual_time": ["VirtualTime"],
            "rxdelta.testing.stores.check": ["LawResult", "StoreFault", "StoreReport", "check_store"],
            "rxdelta.testing.stores.memory_store": ["MemoryStore"],
        }
        return lazily(__name__, places)(name)


__all__ = [
    "SAMPLES",
    "FakePart",
    "FakeProvider",
    "FakeReply",
    "FakeRequest",
    "FakeServer",
    "LawResult",
    "MemoryStore",
    "StoreFault",
    "StoreReport",
    "VirtualTime",
    "check_store",
    "open_sample",
    "sample_chunks",
]


def __dir__() -> list[str]:
    return [*__all__]
