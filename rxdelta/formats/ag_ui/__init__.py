"""The AG-UI protocol.

Reading: `decoder` (the events of a run) and its `open_block`s, `addresses` (which run), `messages` (the messages of a request). Writing:
`encoder`, on a `run` of `run_messages`, whose `reply`s are of blocks: are `texts`, `reasoning`, `calls` and activities (`blocks`); `retraction` corrects the client, and
`run_input` reads the request. Both sides share `marks`.
"""

from rxdelta.formats.ag_ui.addresses import addresses
from rxdelta.formats.ag_ui.decoder import AgUiDecoder, recognises
from rxdelta.formats.format import Format

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ag-ui", decoder=AgUiDecoder, recognises=recognises, address=addresses, carries_more=True
)
