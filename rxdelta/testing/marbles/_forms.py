"""The forms in which items may say given events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rxdelta.core import events
from rxdelta.testing.marbles._items import BEGINS_A_BLOCK, NAMES_A_BLOCK, PART, WORD
from rxdelta.testing.marbles._scanner import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rxdelta.testing.marbles._told import Lane, Told

__all__ = ["STRUCTURE", "forms", "lane_of", "switch"]

_LOOKED_AHEAD = 64
"""How many events an item may imply."""


def forms(left: Sequence[Any], told: Told) -> Iterator[str]:
    """The forms that may say the next events, the preferred one first among those that say as many."""
    is_open = told.has_open_blocks
    for place, event in enumerate(left[:_LOOKED_AHEAD]):
        write = _FORMS.get(event.__class__)
        if write is not None:
            for form in write(event, left[place + 1 : place + 2]):
                yield form
                if form.startswith("("):
                    name = form[1:].partition(":")[0].rstrip(")")
                    if name in BEGINS_A_BLOCK and is_open:
                        yield f"(+{form[1:]}"
                    if name in NAMES_A_BLOCK:
                        yield f"({name}@{event.index}{form[1 + len(name) :]}"
        if event.__class__ not in STRUCTURE:
            return


def _word(text: str) -> str:
    spelt = text.replace(" ", "_")
    return spelt if "_" not in text and spelt.isprintable() and WORD.fullmatch(spelt) else quoted(text)


def _free(text: str) -> str:
    """A text as the body of an item."""
    return text if text.isprintable() and ")" not in text and not text.startswith('"') else quoted(text)


def _parts(*texts: str | None) -> str:
    """Parts as the body of an item, without `None` at the end."""
    said = [*texts]
    while said and said[-1] is None:
        said.pop()
    spelt = [
        "" if text is None else text if text and text.isprintable() and PART.fullmatch(text) else quoted(text)
        for text in said
    ]
    return f":{','.join(spelt)}" if spelt else ""


def _digits(count: int | None) -> str | None:
    return None if count is None else str(count)


def _text_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return [_word(event.text), f"(text:{_free(event.text)})"]


def _block_forms(event: Any, behind: Sequence[Any]) -> list[str]:
    content = event.content
    kind, piece = content.get("type"), behind[0] if behind else None
    forms = ["(text)", "(think)"]
    if kind == "tool_call_chunk":
        name = f"(call:{content.get('name')}"
        for head in (name, f"{name}#{content.get('id')}"):
            if isinstance(piece, events.ToolCallDelta) and piece.args.isprintable():
                forms.append(f"{head}{piece.args})")
            forms.append(f"{head})")
    elif kind == "image":
        if isinstance(piece, events.DataDelta):
            forms.append(f"(image:{_free(piece.data)})")
        forms.append("(image)")
    spelt = quoted(event.to_dict()["content"])
    return [*forms, f"(block:{spelt})", f"(+block@{event.index}:{spelt})"]


def _end_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return ["(end)" if event.content is None else f"(end:{quoted(event.to_dict()['content'])})"]


def _tool_forms(event: Any, _: Sequence[Any]) -> list[str]:
    result = "" if event.result is None else f",{quoted(event.result.to_dict().get('content'))}"
    return [f"(tool{_parts(event.call_id, event.execution_status or '')}{result})"]


def _custom_forms(event: Any, _: Sequence[Any]) -> list[str]:
    return [f"(custom{_parts(event.name)},{quoted(event.to_dict()['data'])})"]


def _provider_forms(event: Any, _: Sequence[Any]) -> list[str]:
    payload = f",{quoted(event.to_dict().get('payload'))}" if event.payload else ""
    return [f"(provider{_parts(event.provider, event.name)}{payload})"]


_FORMS: Mapping[type, Callable[[Any, Sequence[Any]], list[str]]] = {
    events.TextDelta: _text_forms,
    events.ReasoningDelta: lambda event, _: [f"(think:{_free(event.reasoning)})"],
    events.ToolCallDelta: lambda event, _: [f"(args:{_free(event.args)})"],
    events.DataDelta: lambda event, _: [f"(data:{_free(event.data)})"],
    events.BlockStart: _block_forms,
    events.BlockDelta: lambda event, _: [f"(fields:{quoted(event.to_dict()['delta']['fields'])})"],
    events.BlockFinish: _end_forms,
    events.MessageStart: lambda event, _: [f"(start{_parts(event.id, event.model)})"],
    events.UsageUpdate: lambda event, _: [
        f"(usage{_parts(_digits(event.usage.input_tokens), _digits(event.usage.output_tokens))})"
    ],
    events.MessageFinish: lambda event, _: [
        f"(finish{_parts(event.reason)})",
        f"(finish{_parts(event.reason, event.provider_reason)})",
    ],
    events.StreamError: lambda event, _: [f"(error{_parts(event.message, event.type, event.code)})"],
    events.ToolUpdate: _tool_forms,
    events.Custom: _custom_forms,
    events.ProviderEvent: _provider_forms,
    events.MessageInterrupted: lambda event, _: [
        "(stop)" if event.reason is None else f"(stop:{_free(event.reason)})"
    ],
    events.AttemptReset: lambda event, _: [f"(reset{_parts(str(event.attempt), event.error)})"],
}
STRUCTURE = (events.MessageStart, events.BlockStart, events.BlockFinish)


def lane_of(event: Any, here: Lane) -> Lane:
    choice = getattr(event, "choice", None)
    return event.run_id, choice if choice is not None else here[1] if event.run_id == here[0] else 0


def switch(here: Lane, there: Lane) -> str:
    run = "" if here[0] == there[0] else "(run)" if there[0] is None else f"(run:{_free(there[0])})"
    return run + (f"(choice:{there[1]})" if there[1] != (0 if run else here[1]) else "")
