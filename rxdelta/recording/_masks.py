"""The masks of a recording: what is hidden depends on where it stands, not on its name alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

__all__ = ["masked"]

_GONE = "[redacted]"
_REPLY = frozenset(
    {"args", "arguments", "input", "parsed", "partial_json"}
    | {"content", "delta", "output", "reasoning", "refusal", "text", "thinking"}
    | {"functionResponse", "partial_result", "result", "results", "snapshot"}
)
"""Below these names stands what the model wrote or a tool answered. It is kept, whatever it looks like."""

_SECRETS = ("authorization", "cookie", "cookie2", "credentials", "passphrase", "passwd")
_SECRET_ENDINGS = (
    *("apikey", "accesskey", "accesskeyid", "authkey", "privatekey", "secretkey"),
    *("accesstoken", "authtoken", "bearertoken", "idtoken", "refreshtoken", "securitytoken", "sessiontoken"),
    *("clientsecret", "password"),
)
_IN_HEADERS = ("auth", "cookie", "credential", "key", "password", "secret", "session", "signature", "token")
_LONGEST_NAME = 64
_ATOMS = frozenset({str, int, float, bool, type(None)})


def masked(value: Any, data_of: Callable[[Any], Any], *, in_headers: bool = False) -> Any:
    """The value without its secrets: the same object if it has none, otherwise a copy.

    Args:
        value: JSON, in which objects may stand.
        data_of: Gives the data of such an object.
        in_headers: Whether the value stands below `headers`, where more names are secret.
    """
    kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _ATOMS:
        return value
    if kind is dict or isinstance(value, Mapping):
        return _masked_fields(value, data_of, in_headers)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        items: Any = value  # pyright: ignore[reportUnknownVariableType]
        match items:
            case [str(name), str()] if in_headers and _is_secret(name, True):
                return [name, _GONE]
            case _:
                found = [masked(item, data_of, in_headers=in_headers) for item in items]
        return value if all(map(_is, found, items)) else found  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, (str, bytes, bytearray, int, float)):
        return value
    return masked(data_of(value), data_of, in_headers=in_headers)


def _masked_fields(fields: Mapping[Any, Any], data_of: Callable[[Any], Any], in_headers: bool) -> Any:
    changed: dict[Any, Any] | None = None
    for name, value in fields.items():
        kind: type[Any] = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            new: Any = _GONE if value and _is_secret(name, in_headers) else value
        elif kind in _ATOMS or name in _REPLY:
            continue
        elif (
            isinstance(value, (list, tuple)) and value and _is_secret(name, in_headers) and _are_texts(value)
        ):  # pyright: ignore[reportUnknownArgumentType]
            new = _GONE
        else:
            new = masked(value, data_of, in_headers=in_headers or _names_headers(name))
        if new is not value:
            changed = dict(fields) if changed is None else changed
            changed[name] = new
    return fields if changed is None else changed


def _is(one: object, other: object) -> bool:
    return one is other


def _are_texts(values: Any) -> bool:
    return all(isinstance(value, str) for value in values)


def _names_headers(name: object) -> bool:
    return isinstance(name, str) and name[-7:].lower() == "headers"


def _is_secret(name: object, in_headers: bool) -> bool:
    return isinstance(name, str) and len(name) <= _LONGEST_NAME and _known_secret(name, in_headers)


@lru_cache(4096)
def _known_secret(name: str, in_headers: bool) -> bool:
    plain = name.lower().replace("-", "").replace("_", "")
    if plain.removeprefix("proxy").removeprefix("set") in _SECRETS or plain.endswith(_SECRET_ENDINGS):
        return True
    return in_headers and "ratelimit" not in plain and any(word in plain for word in _IN_HEADERS)
