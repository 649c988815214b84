"""The calls that the client is to run, and the text of their arguments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rxdelta.core import FrozenDict, ToolCall, raw_arguments
from rxdelta.core.events import BlockFinish
from rxdelta.operators.projections.projection import Growth, text_growth

if TYPE_CHECKING:
    from rxdelta.core import BlockFold, Change, Event

__all__ = ["argument_growth", "argument_text", "call_of"]


def call_of(fold: BlockFold | None) -> ToolCall | None:
    """The block, if it is a call that the client is to run."""
    block = None if fold is None else fold.block
    return block if isinstance(block, ToolCall) and block.type != "server_tool_call" else None


def argument_text(call: ToolCall) -> str:
    """The arguments as text. An object is written as JSON, unless it is empty and the call may still get arguments."""
    arguments = call.arguments
    if isinstance(arguments, FrozenDict):
        return json.dumps(arguments) if arguments or not call.open else ""
    return arguments or ""


def argument_growth(call: ToolCall, change: Change, event: Event) -> Growth:
    """What a change of this call means for the text of its arguments."""
    before = change.before
    if change.kind == "restarted" or not isinstance(before, ToolCall):
        return "begun", argument_text(call)
    parsed = change.kind == "closed" and not (isinstance(event, BlockFinish) and event.content)
    if parsed or raw_arguments(before) is raw_arguments(call):
        return "more", ""
    return text_growth(argument_text(before), argument_text(call))
