"""A reply that is written to a client of a provider's API: what the encoders of all such formats share.

Such a client knows one reply with one end. It runs every call that it has whole, and nothing that it has can be taken
back. So all messages of a stream are one reply; what a sub-agent says isn't in it; of runs that overlap, one is written
at a time; and a call waits until it is certain that it is the client's to run.

    ReplyEncoder    events in, frames out; the ends of a stream
    Writer          the frames of one format, and what they all repeat
    Choice, Run     what the client has of one choice: its runs, one at a time
    Part, CallPart  a block, and what the client has of it
    Reply           a choice as a row of items, of which one is open at a time: Item, TextItem, CallItem
"""

from rxdelta.formats.reply.choice import CallPart, Choice, Part, Run, is_whole
from rxdelta.formats.reply.encoder import ReplyEncoder, as_provider
from rxdelta.formats.reply.items import CallItem, Item, Reply, TextItem
from rxdelta.formats.reply.writer import Counts, Writer

__all__ = [
    "as_provider",
    "CallItem",
    "CallPart",
    "Choice",
    "Counts",
    "Item",
    "Part",
    "Reply",
    "ReplyEncoder",
    "Run",
    "TextItem",
    "Writer",
    "is_whole",
]
