"""Rules for the calls of tools that formats share: the id of a call, and calls that must not be run."""

from __future__ import annotations

import re
from typing import Any, Final

from rxdelta.core import real_id
from rxdelta.formats.notes import SYNTHETIC_ID

__all__ = [
    "BROKEN_OFF",
    "CUT_OFF",
    "CUT_OFF_AMID_ARGUMENTS",
    "CUT_OFF_BEFORE_ARGUMENTS",
    "CUT_OFF_BY_FILTER",
    "arguments_after_end",
    "call_identity",
    "given_id",
    "invalid_call",
    "made_up_id",
    "plain_id",
]

BROKEN_OFF: Final = "broken off by an error"
CUT_OFF: Final = "cut off by the token limit"
CUT_OFF_BEFORE_ARGUMENTS: Final = f"{CUT_OFF} before its arguments came"
CUT_OFF_AMID_ARGUMENTS: Final = f"{CUT_OFF} while its arguments came"
CUT_OFF_BY_FILTER: Final = "cut off by the content filter"


def given_id(value: str) -> str | None:
    """The id unchanged, or `None` for one of the known spellings of no id."""
    return None if real_id(value.strip()) is None else value


def made_up_id(message_id: str | None, index: int) -> str:
    """An id for a call that has none. The message's id makes it unique in a conversation.

    Example:
        >>> made_up_id("m1", 2), made_up_id(None, 2)
        ('call-m1-2', 'call-2')
    """
    return "-".join(filter(None, ["call", message_id, str(index)]))


def call_identity(call_id: str | None, made_up: str) -> dict[str, Any]:
    """The fields that identify a call: the provider's id, else one that the decoder made up.

    Example:
        >>> call_identity(None, "call-0"), call_identity("c1", "call-0")
        ({'id': 'call-0', 'synthetic_id': True}, {'id': 'c1'})
    """
    return {"id": call_id} if call_id else {"id": made_up, SYNTHETIC_ID: True}


def plain_id(call_id: str | None) -> str:
    """The id for a request to an API that refuses other characters, which other providers' ids may have.

    Example:
        >>> plain_id("functions.now:0"), plain_id(None)
        ('functions_now_0', 'call')
    """
    return re.sub(r"[^a-zA-Z0-9_-]", "_", call_id or "call")


def arguments_after_end(text: str) -> dict[str, Any]:
    """The content of a second finish, for a call that had ended before this text came: it can't be run.

    A call that has run by then stays what it is. The text is in its metadata. A decoder takes only the first piece; it
    passes on what follows, since a finish for each would cost as much as all pieces before.
    """
    return invalid_call("arguments came after the call's end") | {"late_arguments": text}


def invalid_call(error: str) -> dict[str, Any]:
    """The content of the finish of a call that must not be run. `error` is the reason."""
    return {"type": "invalid_tool_call", "error": error}
