"""What LangGraph puts around a message or an event, in each of its modes.

    item     = (message, metadata)                astream(stream_mode="messages")
             | (namespace, payload)               … subgraphs=True
             | (mode, payload)                    … stream_mode=[…]
             | (namespace, mode, payload)         … both
             | type: mode ns data: payload        … version="v2"
             | type: `event` method: mode params  astream_events(version="v3")
    params   = namespace data: payload
    payload  = (message | event, metadata) | event    in the mode `messages`; on the wire without metadata

A server sends the same as JSON, where tuples are lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from rxdelta.core import is_mapping
from rxdelta.formats.json_values import word
from rxdelta.formats.langchain.fields import READ, Json, is_json_object, is_list
from rxdelta.formats.langchain.forms import is_message
from rxdelta.formats.langchain.tables import TOOL_EVENTS

__all__ = ["GraphItem", "graph_item", "message_pair"]


class GraphItem(NamedTuple):
    """An item without its shape.

    Attributes:
        mode: LangGraph's stream mode; empty where the item doesn't say it.
        namespace: Which graph it comes from; empty for the outermost.
        payload: What the mode gives.
        path: Where the payload stands in the item.
    """

    mode: str
    namespace: tuple[str, ...]
    payload: Any
    path: str


def graph_item(item: object) -> GraphItem | None:
    """The item without its shape; `None` if it has none of LangGraph's.

    Raises:
        MalformedChunkError: It is a tuple or a list, but none of LangGraph's.
    """
    if is_list(item):
        return _tuple(item)
    if not is_json_object(item) or ("params" not in item and "ns" not in item):
        return None
    params, mode = item.get("params"), item.get("type")
    if is_mapping(params) and mode == "event" and isinstance(item.get("method"), str):
        return GraphItem(
            item["method"], _namespace(params.get("namespace")), params.get("data"), "params.data"
        )
    if isinstance(mode, str) and "data" in item and is_list(item.get("ns")):
        return GraphItem(mode, _namespace(item["ns"]), item["data"], "data")
    return None


def message_pair(payload: object) -> tuple[object, Json] | None:
    """The message or event, and its metadata, of a payload in the mode `messages`; `None` if it is no such pair."""
    if not is_list(payload) or len(payload) != 2:
        return None
    found, metadata = payload
    return (found, metadata) if is_message(found) and is_mapping(metadata) else None


def _tuple(item: Sequence[Any]) -> GraphItem:
    match item:
        case [str(mode), payload]:
            return GraphItem(mode, (), payload, "[1]")
        case [namespace, payload] if is_list(namespace):
            return GraphItem(_mode_of(payload), _namespace(namespace), payload, "[1]")
        case [namespace, str(mode), payload] if is_list(namespace):
            return GraphItem(mode, _namespace(namespace), payload, "[2]")
        case _ if message_pair(item) is not None:
            return GraphItem("messages", (), item, "")
        case _:
            raise READ.fail("", "an object or one of LangGraph's tuples", item)


def _mode_of(payload: object) -> str:
    """The mode of an item of one mode, which doesn't name it."""
    if message_pair(payload) is not None:
        return "messages"
    return "tools" if is_mapping(payload) and word(payload.get("event")) in TOOL_EVENTS else ""


def _namespace(found: object) -> tuple[str, ...]:
    return tuple(part for part in found if isinstance(part, str)) if is_list(found) else ()
