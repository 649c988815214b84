"""Tells whether a suspended source awaits its next chunk or is closing.

A reader that leaves cancels the source's current await. That is right while the source waits for a chunk, and wrong
inside a `finally`: the rest of the block would be skipped, and a connection might never be returned. A coroutine
has no attribute for this, so the suspended frames are examined, at the moment of leaving only. Where Python can't
show the frames (no source text, a coroutine of a C extension) the source counts as waiting for a chunk.
"""

from __future__ import annotations

import ast
import gc
import inspect
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from types import CodeType, FrameType

__all__ = ["is_finishing"]

_CLOSING = ("aclose", "close")
_STEP = "async_generator_asend"  # a type without a public name; an object of it, made here, would stay with the running loop
_GROUPS = ("create_task", "start_soon")  # the methods of asyncio's and anyio's task groups
_DEPTH = 64  # awaits within awaits


def is_finishing(awaited: object) -> bool:
    """Whether one of the suspended frames below `awaited` is in a `finally` or in a method that closes something.

    The exit of an `async with` counts as closing, except for a task group, whose exit waits for its tasks' work.
    """
    closing = False
    for _ in range(_DEPTH):
        frame, awaited = _suspended(awaited)
        if frame is not None:
            name = frame.f_code.co_name
            if name in _CLOSING or _in_finally(frame):
                return True
            if name == "__aexit__":
                closing = not any(hasattr(frame.f_locals.get("self"), method) for method in _GROUPS)
        if awaited is None:
            break
    return closing


def _suspended(awaited: Any) -> tuple[FrameType | None, object]:
    """The frame of a coroutine or a generator, and the object that it awaits."""
    if inspect.iscoroutine(awaited):
        return awaited.cr_frame, awaited.cr_await
    if inspect.isasyncgen(awaited):
        return awaited.ag_frame, awaited.ag_await
    if type(awaited).__name__ == _STEP:  # it has no attribute for its generator
        return None, next(filter(inspect.isasyncgen, gc.get_referents(awaited)), None)
    return None, None


def _in_finally(frame: FrameType) -> bool:
    return any(first <= frame.f_lineno <= last for first, last in _finally_lines(frame.f_code))


@lru_cache(maxsize=256)
def _finally_lines(code: CodeType) -> tuple[tuple[int, int], ...]:
    """The first and last line of each `finally` in a function's text."""
    try:
        lines, first = inspect.getsourcelines(code)
        tree = ast.parse("if 1:\n" + "".join(lines) if lines[0][:1].isspace() else "\n" + "".join(lines))
    except (OSError, SyntaxError, ValueError, IndexError):
        return ()
    above = first - 2
    return tuple(
        (node.finalbody[0].lineno + above, (node.finalbody[-1].end_lineno or 0) + above)
        for node in ast.walk(tree)
        if isinstance(node, (ast.Try, ast.TryStar)) and node.finalbody
    )
