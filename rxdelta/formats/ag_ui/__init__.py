"""The AG-UI protocol.

Reading: `decoder` (the events of a run), `messages` (the messages of a request), `run_input` (its other fields, and a
person's answers).
Writing: `encoder`, on a `run`, whose lanes are `run_messages`: replies of `blocks`, which are `texts` (and reasoning) or
`calls` (and activities). Blocks know the replies, lanes and the run below them, never those above.
Both sides share `marks` (and which run they name), `tables` (names of events, token counts) and the application's `data`.
"""

from rxdelta.formats.ag_ui.decoder import AgUiDecoder, recognises
from rxdelta.formats.ag_ui.marks import addresses
from rxdelta.formats.format import ALL_BLOCKS, Format, endpoint_of, later

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ag-ui",
    decoder=AgUiDecoder,
    recognises=recognises,
    address=addresses,
    carries_more=True,
    writer=later("ag_ui", module="encoder"),
    endpoint=endpoint_of("ag_ui", module="encoder"),
    carries=ALL_BLOCKS,
    loses={"id", "model", "metadata", "usage_details", "borders", "order", "empty_blocks"},
)
