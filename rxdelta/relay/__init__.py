"""One stream of events for readers that come, leave and return: through a reload, in a second tab, on another thread."""

# `relay` has the law. `publishing` is the side of a stream's publisher, `watching` that of a reader, each on its own clock by
# `turns`; `replay` has what a late reader gets. `logs` is what both ask of the place of a log: `memory`, or `shared` over a `store`.
# Stores: `sqlite`, `postgres`, `valkey`.

from typing import TYPE_CHECKING

from rxdelta.relay.metrics import RelayHealth, RelayMetrics
from rxdelta.relay.relay import Relay
from rxdelta.relay.replay import StreamUnreadableError
from rxdelta.relay.scope import Entry
from rxdelta.relay.store import Answer, LogKey, Page, Record, Store, Terms, Topic

if TYPE_CHECKING:
    from rxdelta.relay.postgres import PostgresStore
    from rxdelta.relay.sqlite import SqliteStore
    from rxdelta.relay.valkey.store import ValkeyStore
else:

    def __getattr__(name: str) -> object:
        # Not before: two of them need packages that not every relay needs.
        from rxdelta.core import lazily

        places = {
            "rxdelta.relay.postgres": ["PostgresStore"],
            "rxdelta.relay.sqlite": ["SqliteStore"],
            "rxdelta.relay.valkey.store": ["ValkeyStore"],
        }
        return lazily(__name__, places)(name)


__all__ = [
    "Answer",
    "Entry",
    "LogKey",
    "Page",
    "PostgresStore",
    "Record",
    "Relay",
    "RelayHealth",
    "RelayMetrics",
    "SqliteStore",
    "Store",
    "StreamUnreadableError",
    "Terms",
    "Topic",
    "ValkeyStore",
]
