"""An exception that nobody is there to catch."""

from __future__ import annotations

import asyncio
import logging

__all__ = ["report"]


def report(error: Exception, what: str) -> None:
    """Tell the running asyncio loop's exception handler; where no loop runs, the log `rxdelta`."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        logging.getLogger("rxdelta").error(what, exc_info=error)
    else:
        loop.call_exception_handler({"message": what, "exception": error})
