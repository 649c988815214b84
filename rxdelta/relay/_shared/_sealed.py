"""Values that nobody can read without the keys, or move to another place.

Encryption alone doesn't say where a value belongs: who can write to the server could put one user's events into another's
stream. So the place is encrypted with the value, and compared when it is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import StreamInterrupted
from rxdelta.runtime import is_interrupt

if TYPE_CHECKING:
    from collections.abc import Callable

    from rxdelta.relay._shared._records import Place, Values

__all__ = ["SEALED", "Sealed"]

SEALED = b"\xc1"
"""What a sealed value begins with. No other does: msgpack leaves this byte unused, and JSON is ASCII."""


@attrs.frozen
class Sealed:
    """Values in the form of `inside`, encrypted and decrypted by the user's two functions.

    Both methods raise a `StreamInterrupted` whose cause is what a function raised. A value that wasn't sealed, or not for
    its place, is refused likewise.
    """

    inside: Values
    encrypt: Callable[[bytes], bytes]
    decrypt: Callable[[bytes], bytes]

    def dump(self, value: Any, place: Place, /) -> bytes:
        return SEALED + _called("encrypt", self.encrypt, _label(place) + self.inside.dump(value, place))

    def load(self, data: bytes, place: Place, /) -> Any:
        if not data.startswith(SEALED):
            raise StreamInterrupted(
                "the log has a value that isn't encrypted, and this relay was opened with keys"
            )
        opened, label = _called("decrypt", self.decrypt, data[len(SEALED) :]), _label(place)
        if not opened.startswith(label):
            raise StreamInterrupted("the log has a value that was written for another place and moved here")
        return self.inside.load(opened[len(label) :], place)


def _label(place: Place) -> bytes:
    # A name has no control characters besides the one between its tenant and its id, so no label begins another one.
    return f"{place.epoch}-{place.number}\0{place.name}\0".encode()


def _called(name: str, function: Callable[[bytes], bytes], given: bytes) -> bytes:
    try:
        made: object = function(given)
    except BaseException as error:
        if is_interrupt(error):
            raise
        # Without the error's own text, which may have a part of the value.
        raise StreamInterrupted(f"the relay's {name} raised {type(error).__name__}") from error
    if isinstance(made, bytes):
        return made
    raise StreamInterrupted(f"the relay's {name} returned {type(made).__name__}, and must return bytes")
