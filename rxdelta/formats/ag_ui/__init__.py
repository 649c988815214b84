"""The AG-UI protocol."""

from rxdelta.formats.ag_ui.decoder import AgUiDecoder, recognises
from rxdelta.formats.format import Format

__all__ = ["FORMAT"]

FORMAT = Format(name="ag-ui", decoder=AgUiDecoder, recognises=recognises)
