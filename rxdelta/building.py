"""What an operator of your own is made of, see `docs/extend/operators.md`.

The operators of rxdelta are made of the same parts, so one of yours keeps their promises: it serialises threads, ends the source
when its own code raises, keeps the session of the reader, and says what it emits.
"""

from rxdelta.operators import MarkdownSplitter
from rxdelta.runtime import Machine, Mapper, Serial, Sink, State, lift, lift_machine, lift_map

__all__ = [
    "Machine",
    "Mapper",
    "MarkdownSplitter",
    "Serial",
    "Sink",
    "State",
    "lift",
    "lift_machine",
    "lift_map",
]
