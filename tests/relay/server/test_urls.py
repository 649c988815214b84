"""The URLs of a store on a server."""

from __future__ import annotations

import pytest

from rxdelta import InvalidValueError
from rxdelta.relay.valkey.urls import Address, Way, parse_url


def named(way: Way) -> str:
    return f"{way.connection.__module__}.{way.connection.__name__}"


def test_one_server() -> None:
    place = parse_url("valkey://bob:p%40ss@example.org:7000/3?protocol=3")
    assert place.kind == "one"
    assert place.addresses == (Address("example.org", 7000),)
    assert named(place.way) == "valkey.asyncio.connection.Connection"
    assert place.way.options == {"username": "bob", "password": "p@ss", "db": 3, "protocol": 3}
    assert place.shown == "valkey://example.org:7000/3"


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("redis://localhost", [("localhost", 6379)]),
        ("redis://:pw@localhost", [("localhost", 6379)]),
        ("redis://[::1]:7000", [("::1", 7000)]),
        ("valkey+unix:///run/my%20valkey.sock?db=2", [("/run/my valkey.sock", 0)]),
        ("redis+unix://:pw@/run/redis.sock", [("/run/redis.sock", 0)]),
        ("valkey+cluster://a,b:7001,[::1]:7002", [("a", 6379), ("b", 7001), ("::1", 7002)]),
        ("redis+sentinel://a,b:26380/main?db=1", [("a", 26379), ("b", 26380)]),
        ("valkeys+cluster://user:pw@a:1,b:2", [("a", 1), ("b", 2)]),
    ],
)
def test_addresses(url: str, addresses: list[tuple[str, int]]) -> None:
    assert [tuple(one) for one in parse_url(url).addresses] == addresses


def test_the_name_of_the_package_is_preferred() -> None:
    assert named(parse_url("rediss://host").way) == "redis.asyncio.connection.SSLConnection"
    assert named(parse_url("valkey+cluster://host").way) == "valkey.asyncio.connection.Connection"
    assert named(parse_url("redis+unix:///s").way) == "redis.asyncio.connection.UnixDomainSocketConnection"


def test_a_sentinel_has_a_login_of_its_own() -> None:
    place = parse_url("valkey+sentinel://:pw@host/main?db=4&sentinel_username=guard&sentinel_password=other")
    assert place.master == "main"
    assert place.way.options == {"username": None, "password": "pw", "db": 4, "protocol": 2}
    assert place.sentinels is not None
    assert place.sentinels.options == {"username": "guard", "password": "other", "db": 0, "protocol": 2}


def test_tls_checks_the_host_unless_it_is_told_not_to() -> None:
    assert parse_url("valkeys://host").way.options["ssl_check_hostname"] is True
    assert parse_url("rediss://host?ssl_check_hostname=false").way.options["ssl_check_hostname"] is False
    unchecked = parse_url("rediss://host?ssl_cert_reqs=none&ssl_ca_certs=/ca.pem").way.options
    assert unchecked["ssl_check_hostname"] is False
    assert unchecked["ssl_cert_reqs"] == "none"
    assert unchecked["ssl_ca_certs"] == "/ca.pem"


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("", "must be the URL"),
        ("localhost:6379", "must be the URL"),
        ("http://u:secret@host", "must be the URL"),
        ("valkey+tcp://u:secret@host", "must be the URL"),
        (b"valkey://u:secret@host", "must be the URL"),
        (None, "must be the URL"),
        ("valkey://u:secret@[host", "isn't a URL"),
        ("valkey://u:sec#ret@host", "percent-encode"),
        ("valkey://u:sec/ret@host:6379", "percent-encode"),
        ("valkey://u:sec?ret@host", "isn't a URL"),
        ("valkey://u:sec?ret=@host", "percent-encode"),
        ("valkey://u:secret@host\n/0", "control character"),
        ("valkey://u:sec\tret@host", "control character"),
        ("valkey://u:secret@ho\rst", "control character"),
        ("valkey://u:secret@host/0\0", "control character"),
        ("valkey://u:secret@host:port", "ort"),
        ("valkey://u:secret@host:99999", "ort"),
        ("valkey://u:secret@", "must have a host"),
        ("valkey://u:secret@host/main", "by a number"),
        ("valkey://u:secret@host/0?db=1", "twice"),
        ("valkey://u:secret@host?db=-1", "by a number"),
        ("valkey://u:secret@a,b", "one host only"),
        ("valkey://u:secret@host?socket_timeout=secret", "unknown 'socket_timeout'"),
        ("valkey://u:secret@host?ssl_ca_certs=secret", "unknown 'ssl_ca_certs'"),
        ("valkey://u:secret@host?protocol=4", "one of 2, 3"),
        ("valkey://u:secret@host?db=1&db=2", "isn't a URL"),
        ("valkey://u:secret@host?secret", "isn't a URL"),
        ("valkeys://u:secret@host?ssl_cert_reqs=maybe", "ssl_cert_reqs"),
        ("valkeys://u:secret@host?ssl_check_hostname=maybe", "ssl_check_hostname"),
        ("valkey+unix://u:secret@host/path", "three slashes"),
        ("valkey+unix:///", "three slashes"),
        ("valkeys+unix:///path", "three slashes"),
        ("valkey+cluster://u:secret@host/1", "Cluster"),
        ("valkey+sentinel://u:secret@host", "name of the master"),
        ("valkey+sentinel://u:secret@host/a/b", "name of the master"),
        ("valkey+embedded:///var/lib/app/relay", "sqlite:////path"),
    ],
)
def test_a_wrong_url_is_refused_without_its_password(url: object, fault: str) -> None:
    with pytest.raises(InvalidValueError, match=fault) as refused:
        parse_url(url)  # type: ignore[arg-type]
    assert refused.value.field == "store"
    for text in (str(refused.value), repr(refused.value.value)):
        assert "sec" not in text


def test_nothing_shows_the_password() -> None:
    place = parse_url("valkey://u:secret@host?protocol=3")
    assert "secret" not in repr(place)
