"""A JSON document that is still arriving, as a value that knows what of it is final."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import attrs

from rxdelta.core import FrozenDict, InvalidJson, Limits, PartialJsonParser, ToolCall
from rxdelta.operators.projections.into import is_array, is_object
from rxdelta.operators.projections.prose import Unfenced

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rxdelta.operators.projections.into import Into
    from rxdelta.operators.projections.projection import ChangeKind

__all__ = ["PartialValue", "PartialReading"]

T = TypeVar("T")


@attrs.frozen(repr=False)
class PartialValue(Generic[T]):
    """A JSON document as far as it had come.

    Attributes:
        value: With a class asked for, the instance that the class made of the whole document; `None` until it has,
            also where it refused. Without one, the document so far. Read-only JSON: an open string is shown as far as
            it came, a number or word when it is whole, open containers with what they hold; `None` before there is
            anything.
        call_id: The call whose arguments they are; `None` for a reply's text.
        name: The tool's name.
        complete: Whether the provider has finished it, all of it is strict JSON, and the class has accepted it.
            Nothing comes after it.
        error: Why the text can't be JSON, or won't be completed, or why the class refused it; `None` where all is
            well. Nothing that was there is taken back.

    Example:
        >>> import rxdelta as rd
        >>> rd.PartialValue({"query": "tides"}, "c1", "search", complete=True).is_final("query")
        True
    """

    # Compared as the JSON that it is made of: theirs may be unable to.
    value: T | None = attrs.field(eq=False)
    call_id: str | None = None
    name: str | None = None
    complete: bool = False
    error: str | None = None
    _json: Any = attrs.field(
        default=attrs.Factory(lambda self: self.value, takes_self=True), kw_only=True, alias="json"
    )
    _open: tuple[str | int, ...] | None = attrs.field(  # the way to what is still open; None where nothing is
        default=attrs.Factory(lambda self: None if self.complete else (), takes_self=True),
        kw_only=True,
        alias="open",
    )

    @property
    def so_far(self) -> Mapping[str, Any]:
        """What has come of the object, by the document's own keys: read-only JSON, to be drawn while it grows.

        Nothing is validated or converted, and a key that hasn't come isn't there: `partial.so_far.get("title", "")`.
        Empty where the document is no object.
        """
        return self._json if is_object(self._json) else FrozenDict()

    def is_final(self, *path: str | int) -> bool:
        """Whether what is at `path` won't change any more: `partial.is_final("files", 0)`.

        The path consists of the document's own keys and indexes, as in `so_far`; without one, the whole document is
        meant. What hasn't begun isn't final. A provider that overrules the arguments at their end can change what
        was final, and so can a document that repeats a key.
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


class PartialReading(Generic[T]):
    """One document and what was last said of it.

    Args:
        into: The class that the whole document is made into.
        limits: How deep it may be nested.
        fenced: Whether it may stand in a markdown fence.
    """

    def __init__(self, into: Into[T] | None, limits: Limits, *, fenced: bool = False) -> None:
        self._into = into
        self._depth = limits.json_depth
        self._fenced = fenced
        self._last: PartialValue[T] | None = None
        self._begin()

    def _begin(self) -> None:
        self._reader = PartialJsonParser(max_depth=self._depth)
        self._unfenced = Unfenced()
        self._has_text = False
        self._is_new = self._last is not None

    def take(self, how: ChangeKind, text: str) -> None:
        """Read on, or begin anew."""
        if how != "more":
            self._begin()
        self._has_text = self._has_text or bool(text)
        if self._fenced:
            for piece in self._unfenced.pieces(text, self._is_whole):
                self._reader.feed(piece)
        else:
            self._reader.feed(text)

    def _is_whole(self) -> bool:
        return self._reader.complete

    def changed_value(
        self, call: ToolCall | None = None, *, error: str | None = None
    ) -> PartialValue[T] | None:
        """What can be seen of it; `None` where this is what was seen last."""
        reader, last = self._reader, self._last
        value, error = reader.value, reader.error or error
        if last is None:
            changed = reader.started or error is not None
        else:
            unchanged = (last._open is None) == reader.is_final() and last.error == error
            changed = self._is_new or not unchanged or last._json != value
        if not changed:
            return None
        self._is_new = False
        return self._show(value, call, error=error, open=_open_path(reader, value))

    def last_value(self, call: ToolCall) -> PartialValue[T] | None:
        """The last that is to be said of a call that has ended."""
        if call.type != "tool_call":
            return self.changed_value(call, error=call.error)
        return self._complete(call.arguments, call)

    def last_value_of_text(self, cut: str | None = None) -> PartialValue[T] | None:
        """The last that is to be said of a text that has ended.

        Args:
            cut: Why it ended before its time, if it did.
        """
        if not self._has_text:
            return None
        self._reader.feed(self._unfenced.rest())
        if cut is not None and not self._reader.complete:
            return self.changed_value(error=cut)
        try:
            value = self._reader.close()
        except InvalidJson as error:
            return self.changed_value(error=error.reason)
        return self._complete(value, None)

    def _complete(self, document: Any, call: ToolCall | None) -> PartialValue[T]:
        if self._into is None:
            return self._show(document, call, complete=True)
        try:
            made = self._into.whole(document)
        except Exception as error:  # theirs: what doesn't fit the class is a partial that says so
            return self._show(document, call, error=f"not a {self._into.name}: {error}")
        return self._show(document, call, made=made, complete=True)

    def _show(
        self,
        document: Any,
        call: ToolCall | None,
        *,
        made: T | None = None,
        complete: bool = False,
        error: str | None = None,
        open: tuple[str | int, ...] | None = None,
    ) -> PartialValue[T]:
        value = document if self._into is None else made
        call_id, name = (None, None) if call is None else (call.call_id, call.name)
        self._last = PartialValue(value, call_id, name, complete, error, json=document, open=open)
        return self._last


def _open_path(reader: PartialJsonParser, value: Any) -> tuple[str | int, ...] | None:
    """The way to what is open. If anything is, it is the last member, the last of its members, and so on."""
    if reader.is_final():
        return None
    path: list[str | int] = []
    while value and (is_object(value) or is_array(value)):
        step: Any = next(reversed(value)) if is_object(value) else len(value) - 1
        path.append(step)
        value = value[step]
    opened, most = 0, len(path)  # from some step on, all is closed
    while opened < most:
        middle = (opened + most + 1) // 2
        if reader.is_final(path[:middle]):
            most = middle - 1
        else:
            opened = middle
    return tuple(path[:opened])


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
