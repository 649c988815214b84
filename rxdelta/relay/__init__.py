"""One stream of events for readers that come, leave and return: through a reload, in a second tab, on another thread."""

from rxdelta.relay._failures import StreamUnreadableError
from rxdelta.relay._ids import Entry
from rxdelta.relay._metrics import RelayHealth, RelayMetrics
from rxdelta.relay._relay import Relay

__all__ = ["Entry", "Relay", "RelayHealth", "RelayMetrics", "StreamUnreadableError"]
