"""The URL of a store on a server: what it may say, and how it is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

from rxdelta.core import InvalidValueError
from rxdelta.relay._server._embedded import check_embedded, is_embedded

__all__ = ["Address", "Kind", "Place", "parse_url"]

Kind = Literal["one", "sentinel", "cluster", "embedded"]

_SCHEME = re.compile(r"(?P<package>valkey|redis)(?P<tls>s)?(?:\+(?P<kind>unix|sentinel|cluster))?")
_PORT, _SENTINEL_PORT = 6379, 26379
_TLS = {"ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname"}
_EXAMPLE = "for example valkey://user:password@host:6379/0"


class Address(NamedTuple):
    """Where one server listens: a host and a port, or the path of a unix socket as host, with the port 0."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else self.host


@attrs.frozen
class Place:
    """What a URL says.

    Attributes:
        shown: The URL without the user, the password and the query, for messages.
        packages: The client packages that may be used, the first that is installed.
        kind: One server; or the addresses are Sentinels, or nodes of a Cluster; or the server is a folder's own.
        addresses: At least one; none if the server is a folder's own, which is found when it is needed.
        url: The URL itself.
        master: The name of the master that the Sentinels know.
        options: What a connection to a server of the store takes: user, password, database, protocol, TLS.
        sentinel_options: The same for a connection to a Sentinel.
    """

    shown: str
    packages: tuple[str, str]
    kind: Kind
    addresses: tuple[Address, ...]
    master: str
    tls: bool
    options: Mapping[str, object] = attrs.field(repr=False)
    sentinel_options: Mapping[str, object] = attrs.field(repr=False)
    url: str = attrs.field(repr=False)


def parse_url(url: str) -> Place:
    """Read a URL.

    Raises:
        InvalidValueError: For a URL that isn't as described. Its text has neither the password nor the query.
    """
    if isinstance(url, str) and is_embedded(url):  # pyright: ignore[reportUnnecessaryIsInstance]
        return _of_a_folder(url)
    found = _SCHEME.fullmatch(url.partition("://")[0]) if isinstance(url, str) else None  # pyright: ignore[reportUnnecessaryIsInstance]
    if found is None:
        raise _invalid(_hidden(url), f"must be the URL of a Valkey or Redis server, {_EXAMPLE}")
    try:
        parts = urlsplit(url)
        query = _query(parts.query)
    except ValueError:
        raise _invalid(_hidden(url), "isn't a URL") from None
    if parts.fragment or "@" in parts.path + parts.query:
        fault = "has a '#', a '/' or a '?' in its password, or an '@' behind the host: percent-encode them"
        raise _invalid(_hidden(url), fault)
    login, _, hosts = parts.netloc.rpartition("@")
    shown = f"{parts.scheme}://{hosts}{parts.path}"
    user, _, password = (unquote(part) for part in login.partition(":"))
    options: dict[str, object] = {"username": user or None, "password": password or None}
    kind, tls = found["kind"] or "one", found["tls"] is not None
    try:
        options["protocol"] = _one_of("protocol", query.pop("protocol", "2"), ("2", "3"))
        for name in sorted(_TLS & query.keys()) if tls else ():
            options[name] = _tls_option(name, query.pop(name))
        if tls:
            options.setdefault("ssl_check_hostname", options.get("ssl_cert_reqs") != "none")
        sentinel = {
            name: query.pop(f"sentinel_{name}", None)
            for name in ("username", "password")
            if kind == "sentinel"
        }
        options["db"] = _database(kind, parts.path, query)
        if query:
            raise ValueError(f"has an unknown {min(query)!r} behind the '?'")
        addresses = tuple(_addresses(kind, hosts, parts.path, tls=tls))
    except ValueError as error:
        raise _invalid(shown, str(error)) from None
    master = unquote(parts.path[1:]) if kind == "sentinel" else ""
    if kind == "sentinel" and (not master or "/" in master):
        raise _invalid(shown, "must end with the name of the master: valkey+sentinel://host:26379/name")
    first, second = ("valkey", "redis") if found["package"] == "valkey" else ("redis", "valkey")
    return Place(
        shown=shown,
        packages=(first, second),
        kind="one" if kind == "unix" else kind,  # type: ignore[arg-type]
        addresses=addresses,
        master=master,
        tls=tls,
        options=options,
        sentinel_options={**options, **sentinel, "db": 0},
        url=url,
    )


def _of_a_folder(url: str) -> Place:
    check_embedded(url)
    return Place(
        shown=url.partition("?")[0],
        packages=("valkey", "redis"),
        kind="embedded",
        addresses=(),
        master="",
        tls=False,
        options={"username": None, "password": None, "protocol": 2, "db": 0},
        sentinel_options={},
        url=url,
    )


def _query(text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True, strict_parsing=True) if text else []
    query = dict(pairs)
    if len(query) != len(pairs):
        raise ValueError
    return query


def _database(kind: str, path: str, query: dict[str, str]) -> int:
    in_path = path[1:] if kind in ("one", "cluster") else ""
    in_query = query.pop("db", "")
    if in_path and in_query:
        raise ValueError("names its database twice")
    text = in_path or in_query or "0"
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise ValueError("must name its database by a number, as in valkey://host:6379/0")
    if kind == "cluster" and int(text) != 0:
        raise ValueError("can't name a database: a Cluster is used with its first")
    return int(text)


def _addresses(kind: str, hosts: str, path: str, *, tls: bool) -> Iterator[Address]:
    if kind == "unix":
        if hosts or tls or not path.strip("/"):
            raise ValueError("must have three slashes and a path: valkey+unix:///run/valkey.sock")
        yield Address(unquote(path), 0)
        return
    several = hosts.split(",")
    if len(several) > 1 and kind == "one":
        raise ValueError("can have one host only, unless it says valkey+cluster:// or valkey+sentinel://")
    for one in several:
        parts = urlsplit(f"//{one}")
        port = parts.port or (_SENTINEL_PORT if kind == "sentinel" else _PORT)  # a wrong port: ValueError
        if not parts.hostname or "@" in one:
            raise ValueError(f"must have a host, {_EXAMPLE}")
        yield Address(parts.hostname, port)


def _one_of(name: str, text: str, allowed: tuple[str, ...]) -> int:
    if text not in allowed:
        raise ValueError(f"must have one of {', '.join(allowed)} as {name}")
    return int(text)


def _tls_option(name: str, text: str) -> object:
    if name == "ssl_check_hostname":
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError("must have true or false as ssl_check_hostname")
        return text.lower() in ("true", "1")
    if name == "ssl_cert_reqs" and text not in ("required", "none"):
        raise ValueError("must have required or none as ssl_cert_reqs")
    return text


def _hidden(url: object) -> str:
    """A URL that can't be read: where its password is isn't known either."""
    scheme, found, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    return f"{scheme[:20]}://…" if found else "…"


def _invalid(shown: str, fault: str) -> InvalidValueError:
    return InvalidValueError.of([("url", shown, fault)])
