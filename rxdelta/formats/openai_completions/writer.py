"""A reply as OpenAI's older completions stream it, and how they are served. The grammar is in `decoder.py`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import Endpoint, by_body, typed_error
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.framing import DONE, sse_frame


class _Writer(ProviderWriter):
    def start(self, _: Counts, /) -> None:
        self._say("")

    def block_piece(self, _: BlockItem, piece: str, /) -> None:
        self._say(piece)

    def end(self, reason: str, counts: Counts, /) -> None:
        self._say("", reason if reason in _REASONS else "stop")
        if counts:
            given, made = counts.get("input_tokens", 0), counts.get("output_tokens", 0)
            self._write(
                [], usage={"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}
            )

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        self.write(error={"message": message, "type": kind, "param": None, "code": code})

    def _say(self, text: str, finish_reason: str | None = None) -> None:
        self._write([{"index": 0, "text": text, "finish_reason": finish_reason, "logprobs": None}])

    def _write(self, choices: list[Any], **more: Any) -> None:
        head = {"id": self.id, "object": "text_completion", "created": self.created, "model": self.model}
        self.write(**head, choices=choices, **more)


_REASONS = ("stop", "length", "content_filter")


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)


def _whole(chunks: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The body of a reply that isn't streamed: one chunk with all of the text."""
    body: dict[str, Any] = {}
    choice: dict[str, Any] = {"index": 0, "text": "", "finish_reason": None, "logprobs": None}
    for chunk in chunks:
        body |= chunk
        for one in chunk["choices"]:
            choice = {**one, "text": choice["text"] + one["text"]}
    return {**body, "choices": [choice]}


ENDPOINT: Final = Endpoint(
    base="/v1",
    paths=["/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=typed_error,
    whole=_whole,
)
