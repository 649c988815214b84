"""An exception that nobody is there to catch."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from rxdelta.core import as_exception
from rxdelta.runtime.loop import running_loop

if TYPE_CHECKING:
    from collections.abc import Generator

    from reactivex import abc

    from rxdelta.runtime.session import Session

__all__ = ["is_interrupt", "report", "errors_to_session"]


def is_interrupt(error: BaseException) -> bool:
    """Whether an exception is the program's, too, and goes on when its reader has been told.

    On another thread than the main one it isn't: there it would only end what has raised it, such as a reader's loop.
    """
    return isinstance(error, (KeyboardInterrupt, SystemExit)) and current_thread() is main_thread()


def report(error: BaseException, what: str, session: Session | None = None) -> None:
    """Raise the error where the pipeline is read; if it is not read by a session, tell the running loop's handler.

    Where no loop runs, the log `rxdelta` has it. The session is the one that was current when the operator was
    subscribed: a timer or a task may run in another context.
    """
    if session is not None and session.fail(as_exception(error)):
        return
    loop = running_loop()
    if loop is None:
        logging.getLogger("rxdelta").error(what, exc_info=error)
    else:
        loop.call_exception_handler({"message": what, "exception": error})


@contextmanager
def errors_to_session(subscription: abc.DisposableBase, session: Session | None) -> Generator[None]:
    """Where no source calls: in a timer, or when a signal comes. What is raised ends the subscription.

    It is raised where the pipeline is read; if it is not read by a session, by whoever has called.
    """
    try:
        yield
    except BaseException as error:
        subscription.dispose()
        told = session is not None and session.fail(as_exception(error))
        if not told or is_interrupt(error):
            raise
