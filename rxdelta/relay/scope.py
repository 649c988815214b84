"""The names of streams and the ids of their entries, and a user's view of a relay: a tenant, and what this user may do."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeGuard

import attrs
from reactivex.disposable import Disposable

from rxdelta.core import AccessDeniedError, Event, InvalidValueError, quote
from rxdelta.relay.logs import Name
from rxdelta.runtime import Sink, call_on, is_interrupt, other_library, running_loop

_LONGEST_NAME = 256
_EPOCH = re.compile(r"[0-9a-f]{16}")
_ENTRY_ID = re.compile(rf"({_EPOCH.pattern})-([1-9][0-9]{{0,17}})", re.ASCII)


@attrs.frozen
class Entry:
    """An event of a stream in a relay, and the place behind which a reader can continue.

    Attributes:
        id: At most 64 printable ASCII characters. Opaque: each event of each stream has another one, also where two
            streams had one name one after the other.
        event: The event.
    """

    id: str
    event: Event


def check_stream_id(stream_id: Any) -> str:
    """Return the name of a stream as it is.

    Raises:
        InvalidValueError: It isn't a string of 1 to 256 printable characters.
    """
    return _check_name("stream_id", stream_id)


def check_tenant(tenant: Any) -> str:
    """Return the name of a tenant as it is.

    Raises:
        InvalidValueError: It isn't a string of 1 to 256 printable characters.
    """
    return _check_name("tenant", tenant)


def is_name(name: object) -> TypeGuard[str]:
    """Whether it can be the name of a stream or a tenant."""
    # A lone surrogate isn't printable.
    return isinstance(name, str) and 0 < len(name) <= _LONGEST_NAME and name.isprintable()


def is_epoch(epoch: object) -> bool:
    """Whether it can be a log's epoch, with which the ids of its entries begin."""
    return isinstance(epoch, str) and _EPOCH.fullmatch(epoch) is not None


def _check_name(field: str, name: Any) -> str:
    if is_name(name):
        return name
    raise InvalidValueError.of([(field, name, "must be a string of 1 to 256 printable characters")])


def check_entry_id(name: str, given: Any) -> None:
    """Refuse what can't be the id of an entry, whichever stream it is of.

    Raises:
        InvalidValueError: It can't.
    """
    if given is not None and not (isinstance(given, str) and _ENTRY_ID.fullmatch(given)):
        raise InvalidValueError.of([(name, given, "must be the id of an entry")])


def entry_id(epoch: str, number: int) -> str:
    return f"{epoch}-{number}"


def number_of(name: str, given: str, epoch: str, newest: int) -> int:
    """The number of the entry with this id in a log.

    Args:
        name: The argument, for the message.
        given: The id.
        epoch: The log's.
        newest: The number of the log's newest entry.

    Raises:
        InvalidValueError: The log has no such entry.
    """
    own, _, number = given.partition("-")
    if own != epoch or int(number) > newest:
        raise InvalidValueError.of([(name, given, "is no id of an entry of this stream")])
    return int(number)


Action = Literal["publish", "watch", "cancel", "delete"]
Allow = Callable[[Action, str], bool | Awaitable[bool]]

NOT_GIVEN = object()
"""Not `None`: that may be the tenant of a user who has none, and must not open the streams of nobody's."""


@attrs.frozen
class Scope:
    """The streams that a relay reaches.

    Attributes:
        tenant: Whose they are; empty for an application without tenants.
        hooks: Each must allow a call. The outer ones are asked first.
    """

    tenant: str = ""
    hooks: tuple[Allow, ...] = ()

    def within(self, tenant: object, allow: Allow | None) -> Scope:
        """A scope with no streams but those of this one.

        Args:
            tenant: `NOT_GIVEN`, or the name of one.
            allow: One more hook.

        Raises:
            InvalidValueError: `tenant` is no name or comes too late; `allow` can't be called; nothing is given.
        """
        name = self.tenant
        if tenant is not NOT_GIVEN:
            name = check_tenant(tenant)
            if self is not UNSCOPED:
                late = "must be given first: this relay is a scope already"
                raise InvalidValueError.of([("tenant", tenant, late)])
        elif allow is None:
            raise InvalidValueError.of([("allow", allow, "must be given, or a tenant")])
        if allow is None:
            return Scope(name, self.hooks)
        if not callable(allow):
            raise InvalidValueError.of(
                [("allow", allow, "must be a function of an action and a stream's id")]
            )
        return Scope(name, (*self.hooks, allow))

    def name(self, stream_id: str) -> Name:
        return Name(self.tenant, stream_id)

    async def ask(self, action: Action, stream_id: str) -> None:
        """Return if all hooks allow it.

        Raises:
            AccessDeniedError: One doesn't.
        """
        later = _ask(self.hooks, action, stream_id)
        if later is not None:
            await later.answered()

    async def allows(self, action: Action, stream_id: str) -> bool:
        """Whether all hooks allow it.

        Raises:
            AccessDeniedError: The check itself failed.
        """
        try:
            await self.ask(action, stream_id)
        except AccessDeniedError as denied:
            if denied.__cause__ is not None:
                raise
            return False
        return True

    def ask_first(self, sink: Sink[Any], action: Action, stream_id: str, step: Callable[[], object]) -> None:
        """Take a step of a subscription when all hooks allow it, else end the subscription with the refusal.

        Without an async hook this is decided in the call.
        """
        later = _ask(self.hooks, action, stream_id)
        if later is None:
            step()
            return
        loop = running_loop() if other_library() is None else None
        if loop is None:
            later.close()
            why = "subscribe inside a coroutine, or read with to_iterable()"
            raise InvalidValueError(f"an async `allow` needs a running asyncio loop: {why}", field="allow")
        task = loop.create_task(later.answered())
        task.add_done_callback(partial(_answered, sink, later, step))
        sink.own(Disposable(partial(call_on, loop, task.cancel)))


UNSCOPED = Scope()
"""All of an application without tenants."""


def _answered(sink: Sink[Any], later: _Later, step: Callable[[], object], task: asyncio.Task[None]) -> None:
    later.close()  # of a task that was cancelled before it began
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        sink.run(step)
    else:
        denied = error if isinstance(error, AccessDeniedError) else later.denied(error)
        sink.run(sink.on_error, denied)


def _ask(hooks: Sequence[Allow], action: Action, stream_id: str) -> _Later | None:
    """Ask until a hook refuses, which raises, or answers later. `None`: all have allowed it."""
    for place, hook in enumerate(hooks, 1):
        try:
            answer = hook(action, stream_id)
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise _denied(action, stream_id, error) from error
        if inspect.isawaitable(answer):
            return _Later(answer, hooks[place:], action, stream_id)
        _judge(answer, action, stream_id)
    return None


class _Later:
    """A hook that answers later, and those that are to be asked behind it."""

    def __init__(
        self, answer: Awaitable[object], rest: Sequence[Allow], action: Action, stream_id: str
    ) -> None:
        self._answer = answer
        self._rest = rest
        self._action: Action = action
        self._stream_id = stream_id

    async def answered(self) -> None:
        try:
            answer = await self._answer
        except asyncio.CancelledError:
            raise  # the caller's, as far as anybody can know
        except BaseException as error:
            if is_interrupt(error):
                raise
            raise self.denied(error) from error
        _judge(answer, self._action, self._stream_id)
        later = _ask(self._rest, self._action, self._stream_id)
        if later is not None:
            await later.answered()

    def denied(self, cause: BaseException) -> AccessDeniedError:
        return _denied(self._action, self._stream_id, cause)

    def close(self) -> None:
        """Forget the answer. Python warns of a coroutine that was never awaited."""
        if inspect.iscoroutine(self._answer):
            self._answer.close()


def _judge(answer: object, action: Action, stream_id: str) -> None:
    if answer is True:
        return
    if answer is False:
        raise _denied(action, stream_id)
    # A user's record, or the text "no", is true as well. An unclear answer is a refusal.
    unclear = InvalidValueError.of([("allow", answer, "must return True or False")])
    raise _denied(action, stream_id, unclear) from unclear


def _denied(action: Action, stream_id: str, cause: BaseException | None = None) -> AccessDeniedError:
    why = "" if cause is None else ": the check of it failed"
    denied = AccessDeniedError(
        f"it isn't allowed to {action} the stream {quote(stream_id)}{why}", action=action, stream_id=stream_id
    )
    denied.__cause__ = cause
    return denied
