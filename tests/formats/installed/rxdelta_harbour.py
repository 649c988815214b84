"""The format of Harbour's server, a JSON object a line.

stream = say* call* done
say    = {"op": "say", "text"}
call   = {"op": "call", "id", "name", "args"}     whole
done   = {"op": "done", "why", "tokens": [in, out]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import rxdelta as rd
from rxdelta import events as ev

NAME = "harbour"


class HarbourDecoder:
    """Chunks of one reply in, events out.

    Args:
        model: The model's name for the message, because the stream doesn't have it.
    """

    def __init__(self, *, model: str | None = None) -> None:
        self._model = model
        self._blocks = 0  # started so far; the newest one has this number less one
        self._text_is_open = False

    def decode(self, chunk: Any) -> Sequence[rd.Event]:
        events: list[rd.Event] = [] if self._blocks else [ev.MessageStart(model=self._model)]
        match chunk:
            case {"op": "say", "text": str(text)}:
                if not self._text_is_open:
                    events.append(self._start({"type": "text"}))
                    self._text_is_open = True
                events.append(ev.TextDelta(self._blocks - 1, text))
            case {"op": "call", "id": str(call_id), "name": str(name), "args": Mapping() as args}:
                events += self._finish_text()
                events.append(self._start({"type": "tool_call", "id": call_id, "name": name, "args": args}))
                events.append(ev.BlockFinish(self._blocks - 1))
            case {"op": "done", "why": str(why), "tokens": [int(read), int(written)]}:
                events += self._finish_text()
                events.append(ev.MessageFinish(why, usage=rd.TokenUsage(read, written)))
            case _:
                raise rd.errors.MalformedChunkError.at(NAME, "", "an op: say, call or done", chunk)
        return events

    def close(self) -> Sequence[rd.Event]:
        return []  # a stream without its "done" was cut off, and stays open

    def _start(self, block: Mapping[str, Any]) -> rd.Event:
        self._blocks += 1
        return ev.BlockStart(self._blocks - 1, block)

    def _finish_text(self) -> list[rd.Event]:
        was_open, self._text_is_open = self._text_is_open, False
        return [ev.BlockFinish(self._blocks - 1)] if was_open else []


def recognises(chunk: Mapping[str, Any]) -> bool:
    return chunk.get("op") in ("say", "call", "done")


def request(turns: Sequence[rd.requests.Turn | rd.requests.Native]) -> dict[str, Any]:
    """The conversation as Harbour's `log`."""
    log: list[Any] = []
    for turn in turns:
        if isinstance(turn, Mapping):  # an item in Harbour's own form
            log.append(rd.core.thaw(turn))
            continue
        for part in turn.parts:
            if part.type == "text":
                log.append({"by": turn.role, "text": part.text})
            elif turn.role != "assistant":  # what a person said is never left out
                raise rd.InvalidValueError.of([("messages", part, f"{NAME} takes nothing but text")])
        log += [
            {"call": call.call_id, "name": call.name, "args": rd.core.thaw(call.arguments)}
            for call in turn.calls
        ]
        log += [
            {"result": rd.core.thaw(result.content), "of": result.call_id, "failed": result.is_error}
            for result in turn.results
        ]
    return {"log": log}


FORMAT = rd.providers.Format(name=NAME, decoder=HarbourDecoder, recognises=recognises, request=request)
