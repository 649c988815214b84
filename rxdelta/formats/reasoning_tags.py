"""Reasoning that a model writes into its text between tags, as in `<think>…</think>`, as blocks of its own.

This wraps a decoder and splits its text blocks, so it serves every format. A tag may be split over any number of
deltas. Text that may be the beginning of a tag is held back, and no other; if it turns out not to be a tag, it is
emitted as text. All text between the tags is unchanged, white space included.

Some models' templates write the opening tag into the prompt (Qwen3-Thinking, DeepSeek R1), so the reply begins within
the thought, and only the closing tag comes. Then all that stands before it in the message's first text was reasoning,
though it has been emitted as text. The finish of its block says so: a finish may have content of another type, which
overrules what was folded. A closing tag means this once for a message, only if no reasoning has come, and not in
quotation marks, inline code or a code block.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from rxdelta.core import Event, InvalidValueError, reasoning_delta, text_delta
from rxdelta.core.events import (
    BlockDelta,
    BlockFinish,
    BlockStart,
    DataDelta,
    MessageFinish,
    MessageStart,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
)

if TYPE_CHECKING:
    from rxdelta.formats.decoding import Decoder


_USUAL = ("think", "thinking")
_DELTAS = (TextDelta, ReasoningDelta, ToolCallDelta, DataDelta, BlockDelta, BlockFinish)


def tag_names(value: bool | str | Iterable[str]) -> tuple[str, ...]:
    """The names of the tags that an argument `reasoning_tags` asks for; none if it switches them off."""
    if isinstance(value, bool):
        return _USUAL if value else ()
    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Iterable) else ("",)
    for name in names:
        if not isinstance(name, str) or not name or set("<>/ \t\n") & set(name):
            problem = ("reasoning_tags", value, 'must be True, or names of tags such as "think"')
            raise InvalidValueError.of([problem])
    return names


class ReasoningTagsDecoder:
    """Another decoder's events, with the text between tags as reasoning.

    Blocks get new numbers in the order in which they start, because a text with a tag becomes several blocks.

    Example:
        >>> import rxdelta as rd
        >>> decoder = rd.providers.decoder("openai-chat", reasoning_tags="think")
        >>> for text in ("<thi", "nk>Hm.</think>", "Hi"):
        ...     choice = {"index": 0, "delta": {"content": text}}
        ...     for event in decoder.decode({"id": "c", "choices": [choice]})[-1:]:
        ...         print(event)
        MessageStart(id='c', model=None, usage=None, metadata={}, choice=0)
        BlockFinish(index=0, content=None, choice=0)
        TextDelta(index=1, text='Hi', choice=0)
    """

    def __init__(self, decoder: Decoder, names: Sequence[str]) -> None:
        self._decoder = decoder
        self._opening = {f"<{name}>": f"</{name}>" for name in names}
        self._next: dict[int, int] = {}
        # By choice, the message's first block with text or reasoning.
        self._first: dict[int, _Text | int] = {}
        self._blocks: dict[tuple[int, object], _Text | int] = {}

    def decode(self, chunk: object, /) -> Sequence[Event]:
        return self._split(self._decoder.decode(chunk))

    def close(self) -> Sequence[Event]:
        decoded = self._split(self._decoder.close())
        if decoded:
            return decoded
        # The stream was cut off. Half a tag that was held back is the end of the text.
        cut: list[Event] = []
        for block in self._blocks.values():
            if isinstance(block, _Text):
                block.release(cut)
        return cut

    def new_number(self, choice: int) -> int:
        number = self._next.get(choice, 0)
        self._next[choice] = number + 1
        return number

    def is_first(self, text: _Text, choice: int) -> bool:
        """Whether the message has text or reasoning in this block only, which has some now."""
        return self._first.setdefault(choice, text) is text

    def _split(self, decoded: Sequence[Event]) -> Sequence[Event]:
        out: list[Event] = []
        for event in decoded:
            if isinstance(event, BlockStart):
                self._start(out, event)
            elif isinstance(event, _DELTAS):
                self._change(out, event)
            else:
                if isinstance(event, (MessageStart, MessageFinish)):
                    self._first.pop(event.choice, None)
                out.append(event)
        return out

    def _start(self, out: list[Event], event: BlockStart) -> None:
        key = (event.choice, event.index)
        if event.content.get("type") == "text":
            text = self._blocks[key] = _Text(self, self._opening, event.content, event.choice)
            begun = event.content.get("text")
            if isinstance(begun, str) and begun:
                text.append(out, begun)
        else:
            number = self._blocks[key] = self.new_number(event.choice)
            if event.content.get("type") == "reasoning":
                self._first.setdefault(event.choice, number)
            out.append(BlockStart(number, event.content, choice=event.choice))

    def _change(self, out: list[Event], event: Any) -> None:
        block = self._blocks.get((event.choice, event.index))
        if block is None:  # the block never started, so it has no number
            return
        if not isinstance(block, _Text):
            out.append(event if event.index == block else attrs.evolve(event, index=block))
        elif isinstance(event, TextDelta):
            block.append(out, event.text)
        elif isinstance(event, BlockFinish):
            block.finish(out, event.content)
            del self._blocks[event.choice, event.index]
        elif isinstance(event, BlockDelta):
            block.change(out, event.fields)


class _Text:
    """One text block of the decoder, split into texts and reasonings.

    The current piece is a reasoning while `_closing`, the tag that ends it, is set. It is a text that may have been
    reasoning while there is a `_thought`.
    """

    def __init__(
        self, owner: ReasoningTagsDecoder, opening: Mapping[str, str], content: Mapping[str, Any], choice: int
    ) -> None:
        self._owner = owner
        self._opening = opening
        self._fields = {
            name: value for name, value in content.items() if name not in ("type", "text", "index")
        }
        self._choice = choice
        self._thought: _Thought | None = _Thought()
        self._emitted_fields: dict[str, Any] = {}  # of the current text
        self._held: str = ""
        self._closing: str | None = None
        self._number: int | None = None  # of the current piece
        self._has_text = False
        self._has_tags = False

    def append(self, out: list[Event], text: str) -> None:
        self._has_text = True
        text, self._held = self._held + text, ""
        if self._thought is not None and text and not self._owner.is_first(self, self._choice):
            self._thought = None
        done = 0
        while (found := _tags(self._tags_here()).search(text, done)) is not None:
            (at, end), tag = found.span(), found[0]
            before = text[done:at]
            if self._thought is not None and tag not in self._opening:
                after = text[end : end + 1]
                quoted = self._thought.is_quoted(before, tag, after)
                if quoted is None:
                    self._write(out, before)
                    self._held = text[at:]
                    return
                if quoted:
                    self._write(out, before + tag)
                else:
                    self._was_reasoning(out, before, tag)
            else:
                self._write(out, before)
                self._end(out, None)
                self._has_tags, self._thought = True, None
                self._closing = self._opening[tag] if self._closing is None else None
            done = end
        safe = len(text) - _partial_tag(text[done:], self._tags_here())
        self._write(out, text[done:safe])
        self._held = text[safe:]

    def _tags_here(self) -> tuple[str, ...]:
        """The tags that mean something now."""
        if self._closing is not None:
            return (self._closing,)
        return (*self._opening, *(() if self._thought is None else self._opening.values()))

    def _was_reasoning(self, out: list[Event], rest: str, tag: str) -> None:
        """Take the text so far for reasoning, because a closing tag follows this rest of it."""
        thought, self._thought, self._has_tags = self._thought, None, True
        if thought is not None and self._number is not None:
            self._end(out, {"type": "reasoning", "reasoning": thought.text() + rest})
            self._fields = self._emitted_fields
        elif rest:
            self._closing = tag
            self._write(out, rest)
            self._end(out, None)
            self._closing = None

    def release(self, out: list[Event]) -> None:
        held, self._held = self._held, ""
        self._write(out, held)

    def change(self, out: list[Event], fields: Mapping[str, Any]) -> None:
        """Change the current text, or the next one: fields such as citations belong to no reasoning."""
        if self._closing is None and self._number is not None:
            out.append(BlockDelta(self._number, fields, choice=self._choice))
            self._emitted_fields.update(fields)
        else:
            self._fields.update(fields)

    def finish(self, out: list[Event], content: Mapping[str, Any] | None) -> None:
        whole = None if content is None else content.get("text")
        if isinstance(whole, str) and not self._has_text:
            self.append(out, whole)
        self.release(out)
        if content is not None and self._has_tags:  # the finish repeats the text of all pieces
            content = {name: value for name, value in content.items() if name != "text"}
        if self._number is None and not self._has_tags:
            self._begin(out)  # a text that is empty remains an empty text
        self._end(out, None if self._closing is not None else content)

    def _write(self, out: list[Event], text: str) -> None:
        if not text:
            return
        if self._number is None:
            self._begin(out)
        if self._thought is not None:
            self._thought.pieces.append(text)
        make = text_delta if self._closing is None else reasoning_delta
        out.append(make(self._number or 0, text, self._choice))

    def _begin(self, out: list[Event]) -> None:
        self._number = self._owner.new_number(self._choice)
        if self._closing is None:
            content = {"type": "text", "text": "", **self._fields}
            self._emitted_fields, self._fields = self._fields, {}
        else:
            content = {"type": "reasoning", "reasoning": ""}
        out.append(BlockStart(self._number, content, choice=self._choice))

    def _end(self, out: list[Event], content: Mapping[str, Any] | None) -> None:
        if self._number is not None:
            out.append(BlockFinish(self._number, content, choice=self._choice))
            self._number = None


class _Thought:
    """The beginning of a message's text, which was reasoning if a closing tag follows.

    Attributes:
        pieces: The emitted pieces.
    """

    __slots__ = ("_in_block", "_line", "_read", "pieces")

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self._read = 0  # so many pieces have been looked at
        self._line = ""  # the beginning of the last line there
        self._in_block = False

    def text(self) -> str:
        return "".join(self.pieces)

    def is_quoted(self, before: str, tag: str, after: str) -> bool | None:
        """Whether a tag is only spoken of. If it is, the next piece must be `before` and the tag.

        Args:
            before: The text between the pieces and the tag.
            tag: The tag.
            after: The character behind it. If that is missing and would decide, the result is `None`.
        """
        last = before[-1:] or (self.pieces[-1][-1] if self.pieces else "")
        if last in _QUOTES and (not after or after == _QUOTES[last]):
            return True if after else None
        *lines, line = "".join([self._line, *self.pieces[self._read :], before]).split("\n")
        self._in_block ^= sum(map(_is_fence, lines)) % 2 == 1
        self._line, self._read = (line + tag)[:_FENCE_WIDTH], len(self.pieces) + 1
        return self._in_block ^ _is_fence(line)


_QUOTES = dict(zip("`'\"“„‘«「『", "`'\"”“’»」』"))  # by what begins it, what ends a quotation
_FENCE_WIDTH = 6  # so many characters show whether a line is a fence


def _is_fence(line: str) -> bool:
    """Whether a line begins or ends a block of code."""
    return line[:_FENCE_WIDTH].lstrip(" ")[:3] in ("```", "~~~")


@lru_cache
def _tags(tags: tuple[str, ...]) -> re.Pattern[str]:
    """Finds the next of these tags."""
    return re.compile("|".join(map(re.escape, tags)))


def _partial_tag(text: str, tags: Iterable[str]) -> int:
    """The length of the end of a text that may be the beginning of a tag."""
    at = text.rfind("<")
    end = text[at:] if at >= 0 else ""
    return len(end) if end and any(tag.startswith(end) for tag in tags) else 0
