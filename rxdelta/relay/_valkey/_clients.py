"""Where a store is: what a URL says, or where a client of the caller's connects to."""

from __future__ import annotations

from typing import Any

from rxdelta.relay._valkey._urls import Address, Place, Way, invalid, parse_url

__all__ = ["place_of"]

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

    def seen(told: tuple[str, int]) -> tuple[str, int]:
        return host or told[0], told[1]

    return Place(shown, "sentinel", addresses, way, pool.service_name, guards, seen)


def _of_a_cluster(client: Any) -> Place:
    nodes = client.nodes_manager
    addresses = tuple(Address(one.host, int(one.port)) for one in nodes.startup_nodes.values())
    # What makes its connections read from replicas isn't for ours.
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
