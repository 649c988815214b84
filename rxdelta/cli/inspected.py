"""A recording, read event by event: a row for each, an account of each reply, and fields that no decoder reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any, TypeAlias, cast

import attrs
from reactivex import Subject

from rxdelta.cli.account import Account, Gap, Place, Row, Some, as_json, keep_longest, tell
from rxdelta.cli.files import error_text, is_stored, unwrapped
from rxdelta.core import Event, ProtocolChecker, ProviderError, RxDeltaError, is_over
from rxdelta.core.events import EVENT_TYPES, MessageStart, StreamError
from rxdelta.operators import ChoiceStream, MessageStream, group_by_choice, group_by_message
from rxdelta.providers import decoder
from rxdelta.recording import Line
from rxdelta.wire import DONE

_MOST = 500  # names of fields; a hostile stream may have any number
_LONGEST = 80

Path: TypeAlias = tuple[str, ...]


class FieldsRead:
    """Counts the fields that no decoder has read, over all chunks of a stream.

    A field is named by its path, `choices[].delta.token_id`. One that was read in some chunk is known: providers repeat an
    id in every chunk, and decoders read it once. So is everything in an object that was kept whole.
    """

    def __init__(self) -> None:
        self._read: set[Path] = set()
        self._unread: dict[Path, int] = {}

    def watch(self, chunk: Any) -> Any:
        """The chunk, equal to the given one, which remembers the fields that are read. Objects that aren't dicts stay
        as they are."""
        return _watched(chunk)

    def note(self, chunk: Any) -> None:
        """Count what has not been read of a watched chunk, once its decoder has returned."""
        self._note(chunk, ())

    def unread(self) -> dict[str, int]:
        """The paths of the fields that nothing has read, and how many of them had a value; the most frequent ones first."""
        found = {_spelt(path): count for path, count in self._unread.items() if path not in self._read}
        return dict(sorted(found.items(), key=lambda one: -one[1]))

    def _note(self, value: Any, path: Path) -> None:
        if isinstance(value, _Watched):
            for name, inside in value.fields():
                self._note_field(inside, (*path, name), name in value.read)
        elif isinstance(value, list):
            for item in _items(value):
                self._note(item, (*path, "[]"))

    def _note_field(self, value: Any, path: Path, was_read: bool) -> None:
        if was_read:
            if len(self._read) < _MOST:
                self._read.add(path)
            self._note(value, path)
        elif value not in (None, "", [], {}) and (path in self._unread or len(self._unread) < _MOST):
            self._unread[path] = self._unread.get(path, 0) + 1


def _spelt(path: Path) -> str:
    text = ".".join(path).replace(".[]", "[]")
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


class _Watched(dict[str, Any]):
    """A dict that remembers the names of its fields that were read, in `read`."""

    __slots__ = ("read",)

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__({name: _watched(value) for name, value in fields.items()})
        self.read: set[str] = set()

    def fields(self) -> Iterable[tuple[str, Any]]:
        """The names and values of all fields, which reads none."""
        return super().items()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        self.read.add(name)
        return super().get(name, default)

    def __iter__(self) -> Iterator[str]:
        """Reads no field. Because of this method, `dict(…)` and `{**…}` call `__getitem__`."""
        return super().__iter__()

    def values(self) -> Any:
        self.read.update(self)
        return super().values()

    def items(self) -> Any:
        self.read.update(self)
        return super().items()

    def __reduce__(self) -> Any:
        return dict, ([*self.fields()],)


def _watched(value: Any) -> Any:
    if type(value) is dict:
        return _Watched(cast("dict[str, Any]", value))
    if type(value) is list:
        return [_watched(item) for item in _items(value)]
    return value


def _items(value: Any) -> list[Any]:
    return cast("list[Any]", value)


class Inspection:
    """Reads a recording's lines, and accounts for what they hold.

    Args:
        wire_format: The format of the chunks; `"auto"` finds it out.

    Attributes:
        replies: The accounts, in the order of the replies' beginnings.
        chunks, events: How many came.
        empty_chunks: How many chunks there were of which no event was made.
        begin, end: When the first and the last line came; `None` before them.
        kind: What the file holds: `chunks`, `events`, `text`, `bytes` or `stored messages`; `None` if nothing.
        error: The error that ended the recorded stream, or the reading.
        fields: Which fields of the chunks nothing has read.
        gaps: The longest times in which nothing came, the wait for the first chunk included.
        raw: Some of the chunks: their numbers, their times, and what they are.
    """

    def __init__(self, wire_format: str = "auto") -> None:
        self.replies: list[Account] = []
        self.chunks = self.events = self.empty_chunks = 0
        self.begin: Place | None = None
        self.end: Place | None = None
        self.kind: str | None = None
        self.error: BaseException | None = None
        self.fields = FieldsRead()
        self.raw: Some[tuple[int, float, Any]] = Some(150, 30)
        self.gaps: list[Gap] = []
        self._given = wire_format
        self._decoder: Any = decoder(wire_format)
        self._unnoted: list[Any] = []  # chunks that the decoder may hold
        self._at = Place(0.0, 0)
        self._last: float | None = None
        self._broken: str | None = None
        self._taken: Account | None = None
        self._over = self._failed = False
        self._source = self._grouped()

    @property
    def wire_format(self) -> str | None:
        """The format of the chunks, as far as they have shown it."""
        if not self.chunks:
            return None
        return self._given if self._given != "auto" else self._decoder.wire_format

    @property
    def has_times(self) -> bool:
        """Whether the file says when things came."""
        return self.end is not None and self.end.at > 0

    @property
    def is_whole(self) -> bool:
        """Whether all replies are complete, or were cut by their length."""
        return bool(self.replies) and self.error is None and all(one.is_whole for one in self.replies)

    def rows(self, lines: Iterable[Line]) -> Iterator[Row]:
        """Read the lines of a recording. Faults of the stream are noted in the accounts.

        Raises:
            UnusableError: As the reading of the lines.
        """
        try:
            for line in unwrapped(self._noted(lines)):
                before, self._at = self._at, Place(line.at, self._at.number)
                keep_longest(self.gaps, Gap(line.at - before.at, before, self._at))
                self.begin = self.begin or self._at
                self.end = self._at
                if line.kind != "value":
                    yield from self._close(line.value)
                elif type(line.value) in EVENT_TYPES:
                    yield from self._events([line.value], None)
                else:
                    yield from self._chunk(line.value)
        except RxDeltaError as error:
            yield from self._close(error)
        for reply in self.replies:
            reply.close()

    def _noted(self, lines: Iterable[Line]) -> Iterator[Line]:
        """The lines as they are; the first value says what kind of file it is."""
        for line in lines:
            if self.kind is None and line.kind == "value":
                self._note_kind(line.value)
            yield line

    def _note_kind(self, value: Any) -> None:
        if is_stored(value):
            self.kind = "stored messages"
        elif isinstance(value, (str, bytes)):
            self.kind = "text" if isinstance(value, str) else "bytes"
        else:
            self.kind = "events" if type(value) in EVENT_TYPES else "chunks"

    def _chunk(self, chunk: Any) -> Iterator[Row]:
        self.chunks += 1
        shown = "[DONE]" if chunk is DONE else chunk
        self.raw.add((self.chunks, self._at.at, shown))
        watched = self.fields.watch(chunk)
        try:
            events = self._decoder.decode(watched)
        except RxDeltaError:
            yield self._row(None, "", "malformed chunk", 0, as_json(shown), chunk=shown, is_event=False)
            raise
        self._unnoted.append(watched)
        if events or self.wire_format is not None:
            for one in self._unnoted:
                self.fields.note(one)
            self._unnoted.clear()
        if events:
            yield from self._events(events, shown)
        elif chunk is not DONE:
            self.empty_chunks += 1
            yield self._row(None, "", "no event", 0, as_json(chunk), chunk=chunk, is_event=False)
        else:
            yield self._row(None, "", "end of the stream", 0, "[DONE]", is_event=False)

    def _close(self, error: BaseException | None) -> Iterator[Row]:
        """End the stream. What the decoder has yet to say comes before an error."""
        if self._over:
            return
        self._over = True
        self.error = self.error or error  # what the provider says of it explains more
        try:
            yield from self._events(self._decoder.close(), None)
        except RxDeltaError as wrong:
            self.error = self.error or wrong
        if error is not None:
            yield self._row(None, "", "broken off", 0, error_text(error), is_event=False)

    def _events(self, events: Iterable[Event], chunk: Any) -> Iterator[Row]:
        for event in events:
            self.events += 1
            self._at = Place(self._at.at, self._at.number + 1)
            self.end = self._at
            self._broken, self._taken = None, None
            index = getattr(event, "index", None)
            self._push(event)
            account = self._taken
            kind = "block" if account is None else account.kind_at(index)
            what, size, says = tell(event, kind)
            row = self._row(index, _lane(event), what, size, says, broken=self._broken, chunk=chunk)
            chunk = None
            if account is not None:
                _keep(account, row)
            yield row

    def _grouped(self) -> Subject[Event]:
        """A subject whose events go to the accounts of their replies, until the first error."""
        source: Subject[Event] = Subject()
        source.pipe(group_by_message()).subscribe(self._begin_message, _ignore)
        return source

    def _push(self, event: Event) -> None:
        """Give an event to the replies. The accounts whose reply it ends note it here: the operators only raise it."""
        if self._failed and isinstance(event, MessageStart):  # a file may hold what came after the error, too
            self._source, self._failed = self._grouped(), False
        self._source.on_next(event)
        if not isinstance(event, StreamError):
            return
        self._failed = True
        error = ProviderError.by(event)
        self.error = self.error or error
        self._broken = "error_event"
        if not self.replies:
            self.replies.append(Account(event.run_id, event.choice))
        of_run = [one for one in self.replies if event.run_id in (None, one.run_id)]
        for one in [one for one in of_run if not is_over(one.snapshot)] or self.replies[-1:]:
            one.error, one.end = one.error or error, self._at
            self._taken = one

    def _row(
        self,
        index: Any,
        lane: str,
        what: str,
        size: int,
        says: str,
        *,
        broken: str | None = None,
        chunk: Any = None,
        is_event: bool = True,
    ) -> Row:
        gap = None if self._last is None else self._at.at - self._last
        self._last = self._at.at
        return Row(self._at, gap, lane, index, what, size, says, broken, chunk, is_event)

    def _begin_message(self, message: MessageStream) -> None:
        checker = ProtocolChecker()

        def check(event: Event) -> None:
            with suppress(RxDeltaError):  # a limit, which the fold tells of
                self._broken = checker.check(event)

        message.subscribe(check, _ignore)
        message.pipe(group_by_choice()).subscribe(lambda choice: self._begin_choice(message, choice), _ignore)

    def _begin_choice(self, message: MessageStream, choice: ChoiceStream) -> None:
        account = Account(message.run_id, choice.choice)
        self.replies.append(account)

        def take(event: Event) -> None:
            self._taken = account
            account.run_id = message.run_id
            account.take(event, self._at)

        choice.subscribe(take, _ignore)


def _keep(account: Account, row: Row) -> None:
    """Note in a reply's account what one of its rows shows."""
    if row.broken:
        is_error = row.broken == "error_event"  # the account has it already
        account.marks.add((row.at, "wrong", row.says if is_error else f"{row.what}: {row.broken}"))
        if not is_error:
            account.broken[row.broken] += 1
    block = account.block_at(row.index) if row.index is not None else None
    if block is not None:
        block.rows.add(attrs.evolve(row, chunk=None))
    elif not row.broken:
        account.marks.add((row.at, row.what, row.says))


def _lane(event: Any) -> str:
    run = event.run_id
    choice = getattr(event, "choice", None)
    return "/".join([*([run] if run else []), *([f"choice {choice}"] if choice else [])])


def _ignore(error: Exception) -> None:
    """The accounts have the error."""
