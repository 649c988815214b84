"""Which fields of a stream's chunks a decoder reads, and which nobody does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias, cast

__all__ = ["FieldsRead"]

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
        """The chunk, equal to the given one, which remembers what is read of it. Objects that aren't dicts stay as they are."""
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
