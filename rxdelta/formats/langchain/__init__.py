"""LangChain's message chunks and event protocol.

Reading: `decoder`; `addresses` (which run), `graph_items`, `forms` and `protocol` (a message or an event in any form),
`messages` and `envelope` (a message), `content`, `parts` and `calls` (its pieces), `blocks` and `merging` (which block a
piece continues), `tool_reports` (the ends of calls), `fields` and `tables`.
Writing: `encoder` on `frames`, `block_frames` and `tool_runs`; `request`. Both sides share `marks` and `protocol_content`.
"""

from rxdelta.formats.format import Format
from rxdelta.formats.langchain.addresses import Addresses
from rxdelta.formats.langchain.decoder import LangChainDecoder, recognises
from rxdelta.formats.langchain.request import request
from rxdelta.formats.tool_definitions import functions

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
)
