"""Google's generateContent.

Reading: `decoder` (a response), `wire_form` (the SDK's objects), `candidate` (its parts and its end), which passes parts to
`blocks`, `calls` with `arguments`, `server_tools` and `citations`. Writing: `request`. Both sides share `tables`.
"""

from rxdelta.formats.format import Format
from rxdelta.formats.gemini.decoder import GeminiDecoder, recognises
from rxdelta.formats.gemini.request import request, tools
from rxdelta.formats.signatures import GOOGLE

__all__ = ["FORMAT"]

FORMAT = Format(
    name="gemini",
    decoder=GeminiDecoder,
    recognises=recognises,
    request=request,
    tools=tools,
    vendors={GOOGLE},
)
