"""A reply as Mistral streams it, its whole body, and how Mistral's chat completions are served. The grammar is in `decoder.py`."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from rxdelta.core.events import StreamError
from rxdelta.formats.conversation import data_url
from rxdelta.formats.decoding import JsonObject
from rxdelta.formats.encoding import Masked
from rxdelta.formats.format import FAKE_KEY, FAKE_MODEL, Endpoint, by_body, typed_error
from rxdelta.formats.notes import MISTRAL
from rxdelta.formats.openai_chat.encoder import written_usage
from rxdelta.formats.openai_chat.tables import THINKING
from rxdelta.formats.provider_reply import CREATED, BlockItem, ProviderEncoder, ProviderWriter
from rxdelta.formats.reply import Counts
from rxdelta.framing import DONE, sse_frame


def mistral_completion(chunks: Iterable[Mapping[str, Any]]) -> JsonObject:
    """One choice with all parts of the message in their order: a text alone is no list."""
    body: JsonObject = {}
    parts: list[JsonObject] = []
    calls: list[JsonObject] = []
    reason = None
    for chunk in chunks:
        body |= chunk
        for choice in chunk["choices"]:
            delta, reason = choice["delta"], choice["finish_reason"]
            calls += delta.get("tool_calls", ())
            said: str | list[JsonObject] = delta.get("content") or []
            for part in [{"type": "text", "text": said}] if isinstance(said, str) else said:
                _append(parts, part)
    is_text = all(part["type"] == "text" for part in parts)
    content = "".join(part["text"] for part in parts) if is_text else parts
    message = {"role": "assistant", "content": content, "tool_calls": calls or None}
    choice = {"index": 0, "message": message, "finish_reason": reason}
    return {**body, "object": "chat.completion", "choices": [choice]}


def _append(parts: list[JsonObject], part: JsonObject) -> None:
    """Append a part, or let it continue the last one."""
    last = parts[-1] if parts and parts[-1]["type"] == part["type"] else None
    if last is not None and part["type"] == "text":
        last["text"] += part["text"]
    elif last is not None and part["type"] == THINKING and "signature" not in last:
        last |= {**part, "thinking": _joined([*last["thinking"], *part["thinking"]])}
    else:
        parts.append({**part})


def _joined(thinking: list[JsonObject]) -> list[JsonObject]:
    return [{"type": "text", "text": "".join(piece["text"] for piece in thinking)}]


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

    def _say(self, delta: JsonObject, finish_reason: str | None = None, **more: Any) -> None:
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


def _error(error: StreamError, status: int) -> dict[str, Any]:
    return {"object": "error", **typed_error(error, status)["error"], "raw_status_code": status}


_MODEL: Final = {"id": FAKE_MODEL, "object": "model", "created": CREATED, "owned_by": "rxdelta"}

ENDPOINT: Final = Endpoint(
    paths=["/chat/completions"],
    streams=by_body(),
    last=sse_frame(DONE),
    error=_error,
    whole=mistral_completion,
    lookups={
        "/v1/models": {"object": "list", "data": [{**_MODEL, "capabilities": {"completion_chat": True}}]}
    },
    environment={"MISTRAL_API_KEY": FAKE_KEY},
)
