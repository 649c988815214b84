"""The names under which one side of a format leaves word for the other, in a block's `options` or `metadata`.

A decoder leaves them, the request and the encoders read them, also those of another format: a conversation may go
on with another provider. Only what a standard field has no place for is noted. What a format leaves for itself
alone stands in its own folder.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "FINISH_REASON_ASSUMED",
    "ITEM_ID",
    "PROVIDER_TYPE",
    "REDACTED",
    "SENT_AS",
    "SIGNED_BY",
    "SYNTHETIC_ID",
    "THOUGHT",
]

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
