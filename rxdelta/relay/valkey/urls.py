"""Where a store on a server is: by a URL, which is shown without its secrets, or where a client of the caller's connects to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import attrs

from rxdelta.core import InvalidValueError

_SCHEME = re.compile(r"(?P<package>valkey|redis)(?P<tls>s)?(?:\+(?P<kind>unix|sentinel|cluster))?")
_DROPPED = re.compile(r"[\x00-\x1f\x7f]")  # `urlsplit` drops some of them unseen, in front of the host, too
_PORT, _SENTINEL_PORT = 6379, 26379
_OPTIONS: Mapping[str, Mapping[str, object]] = {  # what else they may have, and whether that is a path
    "protocol": {"2": 2, "3": 3},
    "ssl_cert_reqs": {"required": "required", "none": "none"},
    "ssl_check_hostname": {"true": True, "false": False, "1": True, "0": False},
    "ssl_ca_certs": {},
    "ssl_certfile": {},
    "ssl_keyfile": {},
}
_EXAMPLE = "for example valkey://user:password@host:6379/0"


class Address(NamedTuple):
    """Where one server listens: a host and a port, or the path of a unix socket as host, with the port 0."""

    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else self.host


@attrs.frozen
class Way:
    """How connections are made.

    Attributes:
        connection: The class, of one of the packages.
        options: What it takes beside the address: user, password, database, protocol, TLS. Read for each connection anew.
    """

    connection: type[Any]
    options: Mapping[str, Any] = attrs.field(repr=False)


@attrs.frozen
class Place:
    """Where a store is.

    Attributes:
        shown: The URL without the user, the password and the query, for messages.
        kind: `"one"` server; or the addresses are those of `"sentinel"`s, or of nodes of a `"cluster"`.
        addresses: At least one.
        way: To a server of the store.
        master: The name of the master that the Sentinels know.
        sentinels: The way to a Sentinel.
        seen: Where a server is that the others know at this host and port, if that differs.
    """

    shown: str
    kind: str
    addresses: tuple[Address, ...]
    way: Way
    master: str = ""
    sentinels: Way | None = None
    seen: Callable[[tuple[str, int]], tuple[str, int]] | None = None


def parse_url(url: object) -> Place:
    """Read a URL.

    Raises:
        InvalidValueError: For a URL that isn't as described, whose text has neither the password nor the query; and if no
            client package is installed.
    """
    found = _SCHEME.fullmatch(url.partition("://")[0]) if isinstance(url, str) else None
    if isinstance(url, str) and url.startswith("valkey+embedded:"):
        raise invalid(_hidden(url), "is no server any more: on one machine use sqlite:////path/to/relay.db")
    if found is None or not isinstance(url, str):
        raise invalid(_hidden(url), f"must be the URL of a Valkey or Redis server, {_EXAMPLE}")
    if _DROPPED.search(url):
        raise invalid(_hidden(url), "has a line break or another control character: percent-encode it")
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        query = dict(pairs)
        if len(query) != len(pairs):
            raise ValueError
    except ValueError:
        raise invalid(_hidden(url), "isn't a URL") from None
    if parts.fragment or "@" in parts.path + parts.query:
        fault = "has a '#', a '/' or a '?' in its password, or an '@' behind the host: percent-encode them"
        raise invalid(_hidden(url), fault)
    login, _, hosts = parts.netloc.rpartition("@")
    shown = f"{parts.scheme}://{hosts}{parts.path}"
    user, _, password = (unquote(part) for part in login.partition(":"))
    options: dict[str, Any] = {"username": user or None, "password": password or None, "protocol": 2}
    kind, tls = found["kind"] or "one", found["tls"] is not None
    guarded, master = kind == "sentinel", unquote(parts.path[1:])
    try:
        if guarded and (not master or "/" in master):
            raise ValueError("must end with the name of the master: valkey+sentinel://host:26379/name")
        options |= _options(query, tls=tls)
        guards = {name: query.pop(f"sentinel_{name}", None) for name in ("username", "password") if guarded}
        options["db"] = _database(kind, parts.path, query)
        if tls:
            options.setdefault("ssl_check_hostname", options.get("ssl_cert_reqs") != "none")
        if query:
            raise ValueError(f"has an unknown {min(query)!r} behind the '?'")
        addresses = tuple(_addresses(kind, hosts, parts.path, tls=tls))
    except ValueError as error:
        raise invalid(shown, str(error)) from None
    class_ = _class(shown, found["package"], kind, tls=tls)
    way, place = Way(class_, options), "one" if kind == "unix" else kind
    if not guarded:
        return Place(shown, place, addresses, way)
    return Place(shown, place, addresses, way, master, Way(class_, {**options, **guards, "db": 0}))


def _options(query: dict[str, str], *, tls: bool) -> Iterator[tuple[str, Any]]:
    for name, allowed in _OPTIONS.items():
        if name in query and (tls or name == "protocol"):
            text = query.pop(name)
            if allowed and text.lower() not in allowed:
                raise ValueError(f"must have one of {', '.join(allowed)} as {name}")
            yield name, allowed.get(text.lower(), text)


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


def _class(shown: str, first: str, kind: str, *, tls: bool) -> type[Any]:
    """The connection class of the package that the URL names, or of the other one."""
    name = "UnixDomainSocketConnection" if kind == "unix" else "SSLConnection" if tls else "Connection"
    for package in (first, "redis", "valkey"):
        with suppress(ModuleNotFoundError):
            found: type[Any] = getattr(import_module(f"{package}.asyncio"), name)
            return found
    raise InvalidValueError.of(
        [("store", shown, "needs the package redis or valkey", "run: pip install 'rxdelta[relay]'")]
    )


def _hidden(url: object) -> str:
    """A URL that can't be read: where its password is isn't known either."""
    scheme, found, _ = url.partition("://") if isinstance(url, str) else ("", "", "")
    return f"{scheme[:20]}://…" if found else "…"


def invalid(shown: str, fault: str) -> InvalidValueError:
    return InvalidValueError.of([("store", shown, fault)])


_PACKAGES = ("redis", "valkey")


def place_of(where: object) -> Place:
    """Where a store is.

    Args:
        where: A URL; or a client of `redis.asyncio` or `valkey.asyncio`: for one server, of `Sentinel.master_for`, or for a
            Cluster; or a pool of connections. A client isn't used itself, and never closed: connections are made as it
            makes its own, with its class and its options. So each asks its credential provider.

    Raises:
        InvalidValueError: For anything else, and for a URL that isn't as described.
    """
    kinds = {
        (kind.__module__.split(".")[1:2] == ["asyncio"], kind.__name__)
        for kind in type(where).__mro__
        if kind.__module__.split(".")[0] in _PACKAGES
    }
    names = {name for is_async, name in kinds if is_async}
    if not kinds:
        return parse_url(where)
    if names & {"RedisCluster", "ValkeyCluster"}:
        return _of_a_cluster(where)
    if not names & {"Redis", "Valkey", "ConnectionPool"}:
        fault = "must be a client or a pool of redis.asyncio or valkey.asyncio, if it isn't a URL"
        raise invalid(f"{type(where).__module__}.{type(where).__qualname__}", fault)
    pool: Any = getattr(where, "connection_pool", where)
    if hasattr(pool, "sentinel_manager"):
        return _of_sentinels(pool)
    address = _address(pool.connection_kwargs)
    return Place(str(address), "one", (address,), Way(pool.connection_class, pool.connection_kwargs))


def _of_sentinels(pool: Any) -> Place:
    if not pool.is_master:
        raise invalid(pool.service_name, "leads to replicas: use master_for instead of slave_for")
    pools = [sentinel.connection_pool for sentinel in pool.sentinel_manager.sentinels]
    addresses = tuple(_address(one.connection_kwargs) for one in pools)
    shown = f"{','.join(map(str, addresses))}/{pool.service_name}"
    # The pool's own class asks the Sentinels by itself.
    plain = next(
        kind for kind in pool.connection_class.__mro__ if kind.__name__ in ("Connection", "SSLConnection")
    )
    way = Way(plain, pool.connection_kwargs)
    guards = Way(pools[0].connection_class, pools[0].connection_kwargs)
    host = getattr(pool.sentinel_manager, "_force_master_ip", None)

    def seen(address: tuple[str, int]) -> tuple[str, int]:
        return host or address[0], address[1]

    return Place(shown, "sentinel", addresses, way, pool.service_name, guards, seen)


def _of_a_cluster(client: Any) -> Place:
    nodes = client.nodes_manager
    addresses = tuple(Address(one.host, int(one.port)) for one in nodes.startup_nodes.values())
    # Our connections don't read from replicas, so options that make the client's do so are left out.
    options = {
        name: value
        for name, value in client.connection_kwargs.items()
        if getattr(value, "__self__", None) is not client
    }
    way = Way(options["connection_class"], options)
    shown = ",".join(map(str, addresses))
    return Place(shown, "cluster", addresses, way, seen=nodes.address_remap)


def _address(options: Any) -> Address:
    if options.get("path"):
        return Address(options["path"], 0)
    return Address(options.get("host", "localhost"), int(options.get("port", 6379)))
