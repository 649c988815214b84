"""The marks that `to_langchain_events` adds to frames, and that `decode("langchain")` reads.

LangChain's protocol has fewer words than our events. The marks let our reader restore the very events, and other
readers skip them. An id of ours carries `notes.SYNTHETIC_ID`, as everywhere.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "ASSUMED",
    "ATTEMPT_RESET",
    "BLOCK_MARKS",
    "CUSTOM_NAME",
    "DISPLAY_TEXT",
    "FOLDED",
    "INTERRUPTED",
    "IN_RUN",
    "PARENT_RUN_ID",
    "REFUSAL",
    "RESULT",
    "SEPARATOR",
    "SOURCE_INDEX",
    "SYNTHETIC",
    "UNWRAP",
]

CUSTOM_NAME: Final = "rxdelta"
"""The name of a `custom` frame whose payload is one of our events, whole, because the protocol has none like it."""

SYNTHETIC: Final = "synthetic"
"""`True` on a frame that stands for no event: the protocol requires it. Our reader skips it."""

SOURCE_INDEX: Final = "key"
"""On the start of a block: the index that the source gave it, where the protocol doesn't allow that one."""

FOLDED: Final = "folded"
"""`True` on the finish of a block whose content only repeats what came before. Our reader drops the content."""

INTERRUPTED: Final = "interrupted"
"""On the finish of a message that was interrupted: the reason, or `True` if there is none."""

ATTEMPT_RESET: Final = "attempt_reset"
"""On an error that ends a failed attempt: the fields of the `AttemptReset`."""

UNWRAP: Final = "unwrap"
"""`True` on a block of the type `non_standard` whose `value` is the content of the block itself."""

ASSUMED: Final = "assumed"
"""In a block or a usage: the names of fields that the protocol requires and the source didn't give."""

BLOCK_MARKS: Final = frozenset([ASSUMED, UNWRAP])
"""The marks that stand in the content of a block, where an option of the same name can't stand beside them."""

REFUSAL: Final = "refusal"
"""`True` on a block of the type `text` that is a refusal."""

RESULT: Final = "result"
"""On a frame of a tool: the `ToolResult`, where the protocol's own fields don't say all of it; `None` if it has none."""

DISPLAY_TEXT: Final = "display_text"
"""On a frame of a tool: what the user is shown about the run."""

SEPARATOR: Final = "|"
"""Between the parts of a run's id that are the parts of its namespace, as in LangGraph's own names of namespaces."""

IN_RUN: Final = "in_run"
"""`True` on a frame of a tool, or of the application: its namespace names the run. LangGraph's have one of their own."""

PARENT_RUN_ID: Final = "parent_run_id"
"""On the start of a message, if its run has a name: the run's parent, or `None`."""
