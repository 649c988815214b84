"""An asyncio loop whose time is virtual: it jumps to the next timer instead of waiting for it."""

from __future__ import annotations

import asyncio
import selectors
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

__all__ = ["block", "run_virtually"]

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):  # type: ignore[misc,valid-type]
    """What the loop would wait for, it has waited for already."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        if timeout is None:
            raise RuntimeError("nothing will ever happen again")
        self.now += max(0.0, timeout)
        return super().select(0)


class _VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _Jumping()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


def run_virtually(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """What `main()` returns. Everything runs on one thread, and takes no time but what it sleeps."""
    with asyncio.Runner(loop_factory=_VirtualLoop) as runner:
        return runner.run(main())


def block(seconds: float) -> None:
    """Keep the loop busy for so long, as `time.sleep` would."""
    loop: Any = asyncio.get_running_loop()
    loop._jumping.now += seconds
