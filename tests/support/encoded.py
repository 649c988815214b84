"""An encoder of `rd.wire` as an operator, for tests that give it their own clock and ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import rxdelta as rd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reactivex import Observable


class _Encoding:
    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder
        self.step, self.close = encoder.encode, encoder.close

    def fail(self, error: Exception) -> tuple[Sequence[Any], None]:
        return self._encoder.fail(error), None


def encoded(make: Callable[[], Any]) -> Callable[[Observable[rd.Event]], Observable[Any]]:
    """The operator that `make`s an encoder for each subscription."""
    return rd.building.lift_machine("encoded", lambda _: _Encoding(make()), emits="frames", needs_all=True)
