"""A reply as Mistral streams it. The grammar stands in `decoder.py`."""

from __future__ import annotations

import hashlib
import re
from typing import Any

from rxdelta.formats.encoding import Masked
from rxdelta.formats.media import data_url
from rxdelta.formats.openai_chat.tables import THINKING
from rxdelta.formats.openai_chat.usage import written_usage
from rxdelta.formats.provider_reply import BlockItem, Json, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.formats.signatures import MISTRAL

__all__ = ["writer"]


class _Writer(ProviderWriter):
    signers = frozenset([MISTRAL])

    def start(self, _: Counts, /) -> None:
        self._say({"role": "assistant", "content": ""})

    def block_piece(self, item: BlockItem, piece: str, /) -> None:
        if item.content.type == "reasoning":
            self._think([{"type": "text", "text": piece}])
        elif item.as_call is None:
            self._say({"content": piece})

    def block_end(self, item: BlockItem, /) -> None:
        if (call := item.as_call) is not None:
            function = {"name": call.call.name, "arguments": call.written}
            self._say({"tool_calls": [{"index": call.number, "id": call.call_id, "function": function}]})
        elif item.signature is not None and item.content.type == "reasoning":
            self._think([], signature=item.signature)
        elif item.medium is not None:
            self._say({"content": [{"type": "image_url", "image_url": {"url": data_url(item.medium)}}]})

    def end(self, reason: str, counts: Counts, /) -> None:
        usage = written_usage(counts)
        more = {} if usage is None else {"usage": usage}
        self._say({"content": ""}, "tool_calls" if reason == "tool_use" else reason, **more)

    def fail(self, message: str, kind: str | None, code: str | None, /) -> None:
        self.write(object="error", message=message, type=kind, param=None, code=code)

    def _think(self, thinking: list[Any], **more: Any) -> None:
        self._say({"content": [{"type": THINKING, "thinking": thinking, **more}]})

    def _say(self, delta: Json, finish_reason: str | None = None, **more: Any) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        head = {
            "id": self._own_id(),
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
        }
        self.write(**head, choices=[choice], **more)

    def _own_id(self) -> str:
        """The id in Mistral's form, which tells its chunks from those of other vendors."""
        return self.id if _ID.fullmatch(self.id) else hashlib.sha256(self.id.encode()).hexdigest()[:32]


_ID = re.compile("[0-9a-f]{32}")


def writer(on_error: Masked) -> ProviderEncoder:
    return ProviderEncoder(_Writer(), on_error)
