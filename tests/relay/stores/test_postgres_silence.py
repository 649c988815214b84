"""A connection to PostgreSQL that goes silent unnoticed."""

from __future__ import annotations

import asyncio

import pytest
from support.cutting_proxy import CuttingProxy
from support.loops import run
from support.postgres_servers import has_postgres, running

pytest.importorskip("psycopg")

import attrs
from relay.stores.postgres_steps import TERMS, begun, come, opened

pytestmark = pytest.mark.skipif(not has_postgres(), reason="needs PostgreSQL's initdb and postgres")


def test_a_silent_connection_is_given_up_while_there_is_time_for_a_sign_on_another() -> None:
    async def main() -> None:
        with running() as server:
            async with CuttingProxy(server.port) as proxy:
                url = server.url.replace(f":{server.port}/", f":{proxy.port}/")
                async with opened(url, terms=attrs.evolve(TERMS, lease=1.0)) as store:
                    key = await begun(store)
                    assert proxy.silence()
                    async with asyncio.timeout(4):  # a round trip with a long lease takes 5 seconds
                        assert (await come(lambda: store.append(key, 0, None))).state == "written"

    run(main)
