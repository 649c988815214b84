"""A reply as OpenAI's older completions stream it. The grammar stands in `decoder.py`."""

from __future__ import annotations

from typing import Any

from rxdelta.formats.encoding import Masked
from rxdelta.formats.provider_reply import BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts

__all__ = ["writer"]


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
