"""A provider's newline-delimited JSON, from bytes to chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.framing import NdjsonParser
from rxdelta.operators.edges.records import parse_records
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable


__all__ = ["parse_ndjson"]


@operator_maker
def parse_ndjson(
    *, loads: Callable[[str], Any] | None = None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse each line as JSON, for bytes that are split anywhere.

    ::

        bytes   <'{"n": 1}\\n{"n'>-<'": 2}\\n'>-<'{"n": 3}'>|
                parse_ndjson()
        chunks  <{"n": 1}>       -<{"n": 2}> --           [<{"n": 3}>|]

    The source emits the body of the response in any pieces, as bytes or as text with its line ends (an HTTP
    client's `aiter_bytes()`, not `aiter_lines()`). Each record is emitted as soon as its line has ended;
    empty lines emit nothing.

    Completes with the source. The last record needs no line end: it is emitted before the source's completion, and
    before the source's error if it is whole.

    Args:
        loads: Reads the JSON of a line, see `parse_sse`.

    Errors: `MalformedChunkError` for a line that is not one JSON document; `LimitExceededError` for a line that
    is larger than the limits allow. Both come after the records before that line.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> body = rx.of(b'{"done": fal', b'se}\\n{"done": true}')
        >>> body.pipe(rd.parse_ndjson()).run()
        {'done': True}
    """
    return parse_records("parse_ndjson", NdjsonParser, loads)
