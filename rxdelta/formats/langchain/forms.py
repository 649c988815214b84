"""The forms in which a message comes: LangChain's objects, stored and dumped messages, and generations."""

from __future__ import annotations

from rxdelta.core import is_mapping
from rxdelta.formats.decoding import as_mapping
from rxdelta.formats.langchain.fields import READ, Json, is_json_object, is_list
from rxdelta.formats.langchain.tables import MESSAGE_CLASSES

__all__ = ["class_name", "fields_of", "is_message", "is_object", "message_in", "message_of"]


def fields_of(chunk: object) -> Json:
    """A mapping as it is; of LangChain's objects all fields, also those that were never set."""
    if type(chunk) is dict:
        return chunk  # pyright: ignore[reportUnknownVariableType]
    if is_object(chunk):
        extra = getattr(chunk, "model_extra", None)
        return {**extra, **vars(chunk)} if extra else vars(chunk)
    message = None if is_mapping(chunk) else getattr(chunk, "message", None)
    if message is not None:
        return {"message": message, "generation_info": getattr(chunk, "generation_info", None)}
    return as_mapping(chunk, "langchain")


def message_in(found: Json, path: str = "") -> tuple[Json, str]:
    """The message that a chunk holds, and its path in the chunk."""
    if "message" in found and "content" not in found and "done" not in found:  # Ollama's lines have `done`
        inner, at = message_in(fields_of(found["message"]), f"{path}message.")
        info = found.get("generation_info")
        if is_mapping(info) and info:
            metadata = READ.mapping(inner.get("response_metadata"), f"{at}response_metadata")
            inner = {**inner, "response_metadata": {**info, **metadata}}
        return inner, at
    if found.get("type") == "constructor" and is_mapping(found.get("kwargs")):
        name = class_name(found)
        kind = MESSAGE_CLASSES.get(name, name) if isinstance(name, str) else name
        return {"type": kind, **found["kwargs"]}, f"{path}kwargs."
    data = found.get("data")
    if is_mapping(data) and "content" not in found:
        return {"type": found.get("type"), **data}, f"{path}data."
    return found, path


def is_message(value: object) -> bool:
    """Whether this can be a message: LangChain's object, or a mapping."""
    return is_object(value) or is_json_object(value)


def is_object(value: object) -> bool:
    """Whether this is a message as LangChain's object."""
    return "content" in getattr(value, "__dict__", ()) and isinstance(getattr(value, "type", None), str)


def message_of(value: object) -> Json:
    """The fields of a message in any form."""
    return message_in(fields_of(value))[0]


def class_name(stored: Json) -> object:
    """The class of a stored object, the last item of its `id`."""
    found = stored.get("id")
    return found[-1] if is_list(found) and found else None
