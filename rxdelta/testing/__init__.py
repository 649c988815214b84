"""What tests of pipelines need: a provider that says what a test tells it to, virtual time, samples, and a check of stores.

Everything is imported when it is first used. Nothing here imports pytest, Hypothesis, a web framework or an SDK, but for
`rxdelta.testing.strategies` and the pytest plugin.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rxdelta.testing._fake_provider import FakeProvider
    from rxdelta.testing._fake_provider import provider_of_lines as provider_of_lines  # for the command
    from rxdelta.testing._fake_request import FakeRequest
    from rxdelta.testing._fake_server import FakeServer
    from rxdelta.testing._samples import SAMPLES, open_sample, sample_chunks
    from rxdelta.testing._script import FakePart, FakeReply
    from rxdelta.testing._virtual_time import VirtualTime
    from rxdelta.testing.stores._check import check_store
    from rxdelta.testing.stores._memory_store import MemoryStore
    from rxdelta.testing.stores._report import LawResult, StoreFault, StoreReport
else:

    def __getattr__(name: str) -> object:
        # Not before: pytest imports this module in every run, with the plugin.
        from rxdelta.core import lazily

        places = {
            "rxdelta.testing._fake_provider": ["FakeProvider", "provider_of_lines"],
            "rxdelta.testing._fake_request": ["FakeRequest"],
            "rxdelta.testing._fake_server": ["FakeServer"],
            "rxdelta.testing._samples": ["SAMPLES", "open_sample", "sample_chunks"],
            "rxdelta.testing._script": ["FakePart", "FakeReply"],
            "rxdelta.testing._virtual_time": ["VirtualTime"],
            "rxdelta.testing.stores._check": ["check_store"],
            "rxdelta.testing.stores._memory_store": ["MemoryStore"],
            "rxdelta.testing.stores._report": ["LawResult", "StoreFault", "StoreReport"],
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
