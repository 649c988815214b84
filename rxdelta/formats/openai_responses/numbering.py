"""Which chunks of a response have come before, by the numbers that the provider gave them.

A transport that delivers at least once repeats a chunk, or all chunks from an earlier one on. A `sequence_number` shows
it, if it counts. Not every gateway counts: some write 0 or -1 everywhere, count each item or each kind of event anew,
or number an error of their own 0. So a number alone proves nothing. A chunk is a repetition if its number and its
content are those of a chunk that has come, and a number with two contents shows that the provider doesn't count: from
then on nothing in this response is a repetition. A response in which only 0 and 1 have come may be numbered by such a
constant, and is not judged yet; the events of a response that have these numbers may come twice without harm.

Numbers may be missing, begin anywhere, leave gaps, and come out of order.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from typing import Any

__all__ = ["Numbering"]

_GAP = 4_096  # numbers that lie further apart do not count
_MOST = 1 << 20  # numbers that may come with gaps; each has eight bytes


class Numbering:
    """Remembers a mark of each chunk of a response under its number.

    Attributes:
        counts: Whether the numbers are believed to count. If they don't, no chunk is a repetition.
        next: The number of the next chunk, if it is new and none is missing; `None` before the first number.
        note: Notes the mark of the chunk that has this number. For a piece of text, as nearly all chunks are, the mark is
            its hash and the place of its item, by `^`; the decoder writes this out, since a call would cost it a tenth more.
    """

    __slots__ = ("_first", "_marks", "counts", "next", "note")

    def __init__(self) -> None:
        self.counts = True
        self.next: int | None = None
        self._first = 0
        self._marks = array("q")  # by number, from the first on; 0 for those that have not come
        self.note = self._marks.append

    def repeats(self, chunk: Mapping[str, Any], frozen: Mapping[str, Any]) -> bool:
        """Whether the chunk has come before. Note it if it has not.

        Args:
            chunk: The chunk as it came.
            frozen: The same, hashable.
        """
        number = frozen.get("sequence_number")
        if type(number) is not int or not self.counts:
            return False
        if self.next is None:
            self._first = self.next = number
        marks, mark, at = self._marks, _mark(chunk, frozen), number - self._first
        if at < 0:  # nothing is known of the numbers before the first
            return False
        if at > len(marks) + _GAP or at >= _MOST:
            self.counts = False
            return False
        if at >= len(marks):
            marks.extend([0] * (at + 1 - len(marks)))
            self.next = number + 1
        elif marks[at]:
            self.counts = marks[at] == mark
            return self.counts and self.next > 2
        marks[at] = mark
        return False


def _mark(chunk: Mapping[str, Any], frozen: Mapping[str, Any]) -> int:
    """A number for the content of a chunk."""
    place, piece = chunk.get("output_index"), chunk.get("delta")
    if type(place) is int and 0 <= place < 1 << 32 and type(piece) is str:
        return hash(piece) ^ place  # as the decoder makes it
    if "obfuscation" not in frozen:
        return hash(frozenset(frozen.items()))
    return hash(frozenset(item for item in frozen.items() if item[0] != "obfuscation"))
