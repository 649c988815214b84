"""The identity of a message that is being folded, for those who keep the newest value of each thing."""

from __future__ import annotations

__all__ = ["Origin"]


class Origin:
    """The message that a snapshot or a block is a state of.

    Ids don't tell two messages apart: several formats have none, and two merged streams may repeat one. A fold gives its
    origin to each snapshot and block that it makes. A copy by pickle has none, because it is no longer a state of that fold.
    """

    __slots__ = ()

    def __reduce__(self) -> tuple[type[None], tuple[()]]:
        return type(None), ()
