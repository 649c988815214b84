"""One stream of events for readers that come, leave and return: through a reload, in a second tab, on another thread."""

from typing import TYPE_CHECKING

from rxdelta.relay._failures import StreamUnreadableError
from rxdelta.relay._ids import Entry
from rxdelta.relay._metrics import RelayHealth, RelayMetrics
from rxdelta.relay._relay import Relay
from rxdelta.relay._store import Answer, LogKey, Page, Record, Store, Terms, Topic

if TYPE_CHECKING:
    from rxdelta.relay._postgres import PostgresStore
    from rxdelta.relay._sqlite import SqliteStore
    from rxdelta.relay._valkey._store import ValkeyStore
else:

    def __getattr__(name: str) -> object:
        # Not before: two of them need packages that not every relay needs.
        from rxdelta.core import lazily

        places = {
            "rxdelta.relay._postgres": ["PostgresStore"],
            "rxdelta.relay._sqlite": ["SqliteStore"],
            "rxdelta.relay._valkey._store": ["ValkeyStore"],
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
