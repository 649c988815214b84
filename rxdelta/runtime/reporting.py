"""Exceptions without a caller to catch them: they go to the reader's session, the loop or the log."""

from __future__ import annotations

import logging
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from rxdelta.core import as_exception
from rxdelta.runtime.loop import running_loop

if TYPE_CHECKING:
    from rxdelta.runtime.session import Session

__all__ = ["is_interrupt", "report"]


def is_interrupt(error: BaseException) -> bool:
    """Whether the exception interrupts the program, and is therefore raised again after its reader got it.

    This holds on the main thread only. On another thread it would only end the code that raised it, such as a
    reader's loop.
    """
    return isinstance(error, (KeyboardInterrupt, SystemExit)) and current_thread() is main_thread()


def report(error: BaseException, what: str, session: Session | None = None) -> None:
    """Raise the error at the session's reader; without a session, pass it to the running loop's exception handler.

    Without a running loop the error goes to the log `rxdelta`. The session is the one that was current when the
    operator was subscribed, because a timer or a task may run in another context.
    """
    if session is not None and session.fail(as_exception(error)):
        return
    loop = running_loop()
    if loop is None:
        logging.getLogger("rxdelta").error(what, exc_info=error)
    else:
        loop.call_exception_handler({"message": what, "exception": error})
