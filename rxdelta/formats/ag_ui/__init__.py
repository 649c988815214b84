"""The AG-UI protocol.

Reading: `decoder` (the events of a run) and its `open_block`s, `addresses` (which run), `messages` (the messages of a request). Writing:
`encoder`, on a `run` of `run_messages`, whose `reply`s are of blocks: are `texts`, `reasoning`, `calls` and activities (`blocks`); `retraction` corrects the client, and
`run_input` reads the request. Both sides share `marks`.
"""

from rxdelta.formats.ag_ui.addresses import addresses
from rxdelta.formats.ag_ui.decoder import AgUiDecoder, recognises
from rxdelta.formats.endpoint import endpoint_of
from rxdelta.formats.format import Format, later

__all__ = ["FORMAT"]

FORMAT = Format(
    name="ag-ui",
    decoder=AgUiDecoder,
    recognises=recognises,
    address=addresses,
    carries_more=True,
    writer=later("ag_ui"),
    endpoint=endpoint_of("ag_ui"),
    carries={
        "text",
        "reasoning",
        "redacted_reasoning",
        "refusal",
        "tool_call",
        "invalid_tool_call",
        "tool_result",
        "server_tool_call",
        "server_tool_result",
        "image",
        "image_url",
        "audio",
        "audio_url",
        "video",
        "video_url",
        "file",
        "file_url",
        "file_id",
        "unsupported",
        "citation",
        "citation_without_url",
        "doubtful_tool_call",
    },
    loses={"id", "model", "metadata", "usage_details", "borders", "order", "empty_blocks"},
)
