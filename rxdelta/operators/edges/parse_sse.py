"""A provider's server-sent events, from bytes to chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.framing import SseParser
from rxdelta.operators.edges.records import parse_records
from rxdelta.runtime import operator_maker

if TYPE_CHECKING:
    from collections.abc import Callable

    from reactivex import Observable


__all__ = ["parse_sse"]


@operator_maker
def parse_sse(
    *, loads: Callable[[str], Any] | None = None
) -> Callable[[Observable[bytes | str]], Observable[Any]]:
    """Parse the data of each server-sent event as JSON, for bytes that are split anywhere.

    ::

        bytes   <'data: {"te'>-<'xt": "Hi"}\\n\\n'>-<'data: [DONE]\\n\\n'>|
                parse_sse()
        chunks  -             -<{"text": "Hi"}>  -<DONE>              |

    The source emits the body of the response in any pieces, as bytes or as text with its line ends (an HTTP
    client's `aiter_bytes()`, not `aiter_lines()`). Each record is emitted as soon as its last byte has arrived.
    Comments and events without data emit nothing. `[DONE]` emits `rd.wire.DONE`, which `decode` takes. An event's
    name is added as `"_event"` if the record doesn't contain it. `rxdelta.providers.SseParser` has the rules.

    Completes with the source. The last record needs no blank line after it: it is emitted before the source's
    completion, and before the source's error if it is whole.

    Args:
        loads: Reads the JSON of a record, a `str`; `orjson.loads`, say. It makes parsing quicker and changes no value: what it
            refuses, and what has 19 digits in a row, is read by `json.loads`. Other values, such as decimals, are emitted. By
            default msgspec's parser if that is installed (`rxdelta[fast]`), else `json.loads`.

    Raises:
        InvalidValueError: At once, if `loads` is no function.

    Errors: `MalformedChunkError` for data that is no JSON and for a body that is no event stream;
    `LimitExceededError` for an event that is larger than the limits allow. Both come after the records before it.

    Example:
        >>> import reactivex as rx
        >>> import rxdelta as rd
        >>> body = rx.of(b'data: {"te', b'xt": "Hi"}\\n\\n', b"data: [DONE]\\n\\n")
        >>> _ = body.pipe(rd.parse_sse()).subscribe(print)
        {'text': 'Hi'}
        DONE
    """
    return parse_records("parse_sse", SseParser, loads)
