"""An incomplete JSON document as a value that knows which parts are final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

import attrs

from rxdelta.core import FrozenDict, InvalidJson, Limits, PartialJsonParser, ToolCall, fast_constructor
from rxdelta.operators.projections.into import is_array, is_object
from rxdelta.operators.projections.json_search import JsonSearch
from rxdelta.operators.projections.unfenced import Unfenced
from rxdelta.runtime import replaceable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rxdelta.operators.projections.into import Into
    from rxdelta.operators.projections.projection import Growth

__all__ = ["PartialValue", "PartialReading"]

T = TypeVar("T")


@attrs.frozen(weakref_slot=False, repr=False)
class PartialValue(Generic[T]):
    """A JSON document so far.

    Attributes:
        value: With a class, the instance made from the whole document; `None` until then, and if the class refused the
            document. Without a class, the document so far as read-only JSON: an open string with the characters so
            far, an open container with its members so far, a number or word only when it is whole. `None` before the
            first value.
        call_id: The call whose arguments these are; `None` for a reply's text.
        name: The tool's name.
        complete: Whether the provider has finished the document, it is strict JSON, and the class has accepted it.
            Such a value is the last.
        error: Why the text can't be JSON, can't be completed, or was refused by the class; `None` without an error.
            The document so far stays.

    Example:
        >>> import rxdelta as rd
        >>> rd.types.PartialValue({"query": "tides"}, "c1", "search", complete=True).is_final("query")
        True
    """

    # Two values are compared by their JSON: instances of the user's class may not be comparable.
    value: T | None = attrs.field(eq=False)
    call_id: str | None = None
    name: str | None = None
    complete: bool = False
    error: str | None = None
    _json: Any = attrs.field(
        default=attrs.Factory(lambda self: self.value, takes_self=True), kw_only=True, alias="json"
    )
    _open: tuple[str | int, ...] | None = attrs.field(  # the path to the open value; `None` if all are closed
        default=attrs.Factory(lambda self: None if self.complete else (), takes_self=True),
        kw_only=True,
        alias="open",
    )

    @property
    def so_far(self) -> Mapping[str, Any]:
        """The object so far, by the document's own keys: read-only JSON, to be drawn while it grows.

        Values are neither validated nor converted. Keys appear as they arrive, so use
        `partial.so_far.get("title", "")`. Empty if the document is no object.
        """
        return self._json if is_object(self._json) else FrozenDict()

    def is_final(self, *path: str | int) -> bool:
        """Whether the value at `path` won't change any more: `partial.is_final("files", 0)`.

        The path consists of the document's own keys and indexes, as in `so_far`; the empty path is the whole document.
        A value that hasn't begun isn't final. A final value changes only if the provider replaces the arguments at
        their end, or if the document repeats a key.
        """
        if self._open is not None and self._open[: len(path)] == path:
            return False
        return _has_path(self._json, path)

    def __repr__(self) -> str:
        of = "".join(f" {word}" for word in (self.call_id, self.name) if word)
        shown = repr(self._json)
        shown = shown if len(shown) <= 80 else f"{shown[:79]}…"
        last_value = "" if self.complete else " …"
        wrong = f"; {self.error}" if self.error is not None else ""
        return f"<PartialValue{of} {shown}{last_value}{wrong}>"


@fast_constructor(cast("type[PartialValue[Any]]", PartialValue))
def _partial_value(
    value: Any,
    call_id: str | None,
    name: str | None,
    complete: bool,
    error: str | None,
    json: Any,
    open: tuple[str | int, ...] | None,
) -> PartialValue[Any]:
    """A value, made without checks."""
    raise NotImplementedError


replaceable(PartialValue, lambda partial: (partial.call_id,), lambda partial: partial.complete)


class PartialReading(Generic[T]):
    """The reading of one document, and its last `PartialValue`.

    Args:
        into: The class for the whole document.
        limits: The document's greatest depth.
        is_text: Whether the document is the reply's text, which may have a markdown fence around it, and not the
            arguments of a call.
        find: Whether to search the text for the document.

    Attributes:
        call_id, name: The call whose arguments are read.
    """

    def __init__(
        self, into: Into[T] | None, limits: Limits, *, is_text: bool = False, find: bool = False
    ) -> None:
        self._into = into
        self._depth = limits.json_depth
        self._is_text = is_text
        self._find = find
        # Of the last value: whether it is closed, its error, and the version of its JSON. The JSON itself isn't kept without
        # need, so that an open string can grow in its place.
        self._last: tuple[bool, str | None, object] | None = None
        self.call_id: str | None = None
        self.name: str | None = None
        self._begin()

    def _begin(self) -> None:
        self._reader = PartialJsonParser(max_depth=self._depth, control_characters=not self._is_text)
        self._unfenced = Unfenced()
        self._search = JsonSearch(self._depth) if self._find else None
        self._has_text = False
        self._is_new = self._last is not None

    def take(self, growth: Growth) -> None:
        """Read more text, or begin again with this text."""
        how, text = growth
        if how != "more":
            self._begin()
        self.more(text)

    def more(self, text: str) -> None:
        """Read more text."""
        if not self._is_text:
            self._reader.feed(text)
            return
        self._has_text = self._has_text or bool(text)
        if self._search is not None:
            self._search.feed(text)
            self._reader = self._search.shown
        else:
            for piece in self._unfenced.pieces(text, self._is_whole):
                self._reader.feed(piece)

    def _is_whole(self) -> bool:
        return self._reader.complete

    def changed_value(self, error: str | None = None) -> PartialValue[T] | None:
        """Return the value so far, or `None` if it is unchanged since the last call."""
        reader, last = self._reader, self._last
        path = reader._open_path()
        state = (path is None, (self._search or reader).error or error, self._version())
        if last is None:  # arguments that are null so far are none
            if state[1] is None and not (reader.started and (self._is_text or reader.value is not None)):
                return None
        elif not self._is_new:
            if reader._before_repeat is not None and self._search is None and type(last[2]) is int:
                last = (last[0], last[1], reader._before_repeat)
            if last == state:
                return None
        self._is_new = False
        return self._show(state, reader.value, open=path)

    def _version(self) -> object:
        """What changes with the JSON: a count, or the JSON itself if an older one may come back."""
        reader = self._reader
        return reader._changes if self._search is None and reader._before_repeat is None else reader.value

    def last_value(self, call: ToolCall) -> PartialValue[T] | None:
        """Return the last value of a call that has ended."""
        if call.type != "tool_call":
            return self.changed_value(call.error)
        return self._complete(call.arguments)

    def last_value_of_text(self, cut: str | None = None) -> PartialValue[T] | None:
        """Return the last value of a text that has ended.

        Args:
            cut: Why the text was cut off, if it was.
        """
        if not self._has_text:
            return None
        if self._search is None:
            self._reader.feed(self._unfenced.rest())
        document = self._search or self._reader
        if cut is not None and not document.complete:
            return self.changed_value(cut)
        try:
            value = document.close()
        except InvalidJson as error:
            return self.changed_value(error.reason)
        return self._complete(value)

    def _complete(self, document: Any) -> PartialValue[T]:
        error, made = None, None
        if self._into is not None:
            try:
                made = self._into.whole(document)
            except Exception as refused:  # raised by the user's class
                error = f"not a {self._into.name}: {refused}"
        state = (True, error, self._version())
        return self._show(state, document, made=made, complete=error is None)

    def _show(
        self,
        state: tuple[bool, str | None, object],
        document: Any,
        *,
        made: T | None = None,
        complete: bool = False,
        open: tuple[str | int, ...] | None = None,
    ) -> PartialValue[T]:
        self._last = state
        value = document if self._into is None else made
        return _partial_value(value, self.call_id, self.name, complete, state[1], document, open)


def _has_path(value: object, path: Sequence[str | int]) -> bool:
    for step in path:
        if is_object(value):
            if not isinstance(step, str) or step not in value:
                return False
            value = value[step]
        elif is_array(value):
            if type(step) is not int or not 0 <= step < len(value):
                return False
            value = value[step]
        else:
            return False
    return True
