"""LangChain's message chunks and event protocol.

Reading: `decoder` (also of the event protocol); `addresses` (which run), `forms` (a message, an event or a tool's report
in any form), `messages` (the chunks of a message and their pieces), `envelope` (what is said of the message as a whole),
`blocks` (which block a piece continues, by LangChain's rules of merging).
Writing: `encoder` on `frames`; `request`. Both sides share `tables` (names, fields and marks) and `protocol_content`.
"""

from rxdelta.formats.conversation import functions
from rxdelta.formats.format import ALL_BLOCKS, Format, endpoint_of, later
from rxdelta.formats.langchain.addresses import Addresses
from rxdelta.formats.langchain.decoder import LangChainDecoder, recognises
from rxdelta.formats.langchain.request import request

__all__ = ["FORMAT"]

FORMAT = Format(
    name="langchain",
    decoder=LangChainDecoder,
    recognises=recognises,
    address=Addresses,
    keeps_call_ids=True,  # as LangChain merges its chunks
    carries_more=True,
    request=request,
    tools=functions,
    writer=later("langchain", module="encoder"),
    endpoint=endpoint_of("langchain", module="encoder"),
    carries={*ALL_BLOCKS, "runs", "messages", "attempts", "interruption", "corrections", "custom"},
    loses={"usage_details"},
)
