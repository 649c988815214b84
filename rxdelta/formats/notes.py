"""The names under which one side of a format leaves a note for the other, in a block's `options` or `metadata`; signatures.

A decoder leaves notes; the request and the encoders read them, also those of another format, because a conversation may go on
with another provider. Only what no standard field holds is noted. A note that only one format reads stands in its own folder.

A vendor signs or encrypts reasoning, checks it when it comes back, and refuses a request with another vendor's. So the
decoder that reads a signature notes whose it is (`SIGNED_BY`), and a request carries only those that its format's vendor
can read:

    signed_by = vendor | format | vendor " via " format

Claude's are compatible across Anthropic's API, Vertex AI and Bedrock, so they are one vendor's. Several vendors stand behind
most formats, and a stream doesn't always name its own: a signature that is known by its format alone goes back in that format
alone. A gateway may name the vendor; then the signature goes back by either. One without a note goes anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any, Final

import attrs

from rxdelta.core import ContentPart, ToolCall

PROVIDER_TYPE: Final = "provider_type"
"""The provider's own word for the type of a block or call that has become a standard one: `web_search_call`."""

SYNTHETIC_ID: Final = "synthetic_id"
"""`True`: the decoder made up the call's id, because the provider gave none. `False` once one has come after all."""

SENT_AS: Final = "sent_as"
"""The field in which reasoning came, where vendors of one format have several: `reasoning_content`, `thinking`."""

REDACTED: Final = "redacted"
"""`True` for reasoning that can't be read. It stands encrypted in `data`, and only its own provider takes it back."""

FINISH_REASON_ASSUMED: Final = "finish_reason_assumed"
"""`True` in a message's metadata: the reply was whole, and its provider gave no finish reason."""

SIGNED_BY: Final = "signed_by"
"""Whose signature, or encryption, the block has: a vendor, or the format by which it came if that is all that is known.
`signatures` has the words, and the rule of who gets it back."""

ITEM_ID: Final = "item_id"
"""The id of the item of the Responses API of which the block is, or is a part. A call's own id is another."""

THOUGHT: Final = "thought"
"""`True` for an image or a call that Gemini made while thinking. Gemini wants it back as a part of the thought."""


ANTHROPIC: Final = "anthropic"
GOOGLE: Final = "google"
MISTRAL: Final = "mistral"

_SIGNATURES: Final = ("signature", "extra_content")
"""The fields of a block or call that hold one. The second is that of Gemini's calls in chat completions."""

_VIA = " via "


def via(wire_format: str, vendor: str | None) -> str:
    """The note for a signature of this vendor that came by a format which several vendors speak.

    Example:
        >>> via("openai-chat", "anthropic"), via("openai-chat", None)
        ('anthropic via openai-chat', 'openai-chat')
    """
    return wire_format if vendor is None else f"{vendor}{_VIA}{wire_format}"


def signed(signature: str, signed_by: str | None) -> dict[str, Any]:
    """The fields of a block with this signature, and with the note, unless nothing shows whose it is."""
    return {"signature": signature} | ({} if signed_by is None else {SIGNED_BY: signed_by})


def readable(block: ContentPart | ToolCall, readers: Set[str]) -> ContentPart | ToolCall | None:
    """The block as a request of these vendors or formats may have it, without the note.

    Unreadable reasoning keeps its text, like that of a vendor without signatures; `None` without a text.
    `None` also for an encrypted block of a kind that only its own format knows.
    """
    fields = _fields(block)
    if SIGNED_BY not in fields:
        return block
    if not readers.isdisjoint(str(fields[SIGNED_BY]).split(_VIA)):
        return _without(block, (SIGNED_BY,))
    if block.type == "unsupported":
        return None
    if isinstance(block, ToolCall) or block.type != "reasoning":
        return _without(block, (SIGNED_BY, *_SIGNATURES))
    if not block.text or block.options.get(REDACTED):
        return None
    return ContentPart("reasoning", block.text, {SENT_AS: "reasoning"})


def signature_of(block: ContentPart | ToolCall, readers: Set[str]) -> str | None:
    """The signature of a block that these vendors or formats can read; `None` if it has none of theirs.

    Example:
        >>> thought = ContentPart("reasoning", "Hm.", {"signature": "c2ln", "signed_by": "anthropic"})
        >>> signature_of(thought, {ANTHROPIC}), signature_of(thought, {GOOGLE})
        ('c2ln', None)
    """
    known = readable(block, readers)
    found = None if known is None else _fields(known).get("signature")
    return found if isinstance(found, str) and found else None


def unsigned(block: ContentPart | ToolCall) -> ContentPart | ToolCall | None:
    """The block without its signature; `None` for a reasoning."""
    return None if block.type == "reasoning" else _without(block, (SIGNED_BY, *_SIGNATURES))


def without_signatures(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a block, or the metadata of a call, without a signature."""
    return {name: value for name, value in fields.items() if name not in (SIGNED_BY, *_SIGNATURES)}


def _fields(block: ContentPart | ToolCall) -> Mapping[str, Any]:
    return block.metadata if isinstance(block, ToolCall) else block.options


def _without(block: ContentPart | ToolCall, names: tuple[str, ...]) -> ContentPart | ToolCall:
    fields = _fields(block)
    if fields.keys().isdisjoint(names):
        return block
    kept = {name: value for name, value in fields.items() if name not in names}
    return (
        attrs.evolve(block, metadata=kept)
        if isinstance(block, ToolCall)
        else attrs.evolve(block, options=kept)
    )
