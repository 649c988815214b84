"""TEMPORARY"""

from __future__ import annotations

import asyncio
import hashlib
import time

import attrs
import redis.asyncio as aredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as CE
from redis.exceptions import TimeoutError as TE

from rxdelta.core import StreamInterrupted


@attrs.frozen
class Script:
    text: str
    writes: bool = True

    @property
    def sha(self):
        return hashlib.sha1(self.text.encode()).hexdigest()


class Away(Exception): ...


class Connections:
    @classmethod
    async def open(cls, url, *, patience, replicas=0):
        self = cls()
        url = url.replace("valkey://", "redis://")
        self.c = aredis.Redis.from_url(
            url, retry=Retry(NoBackoff(), 0), single_connection_client=False, max_connections=2
        )
        self.b = aredis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), max_connections=1)
        self.pending = []
        self.kick = asyncio.Event()
        self.patience = patience
        await self.c.ping()
        self.task = asyncio.create_task(self.flush())
        return self

    def call(self, tag, script, keys, args):
        f = asyncio.get_running_loop().create_future()
        self.pending.append((script, keys, args, f, time.monotonic()))
        self.kick.set()
        return f

    async def flush(self):
        while True:
            await self.kick.wait()
            self.kick.clear()
            work, self.pending = self.pending, []
            while work:
                p = self.c.pipeline(transaction=False)
                for s, k, a, f, t in work:
                    p.execute_command("EVAL", s.text, len(k), *k, *a)
                try:
                    ans = await p.execute(raise_on_error=False)
                except (CE, TE, OSError) as e:
                    ans = [e] * len(work)
                again = []
                for w, x in zip(work, ans):
                    f = w[3]
                    if f.done():
                        continue
                    if isinstance(x, (CE, TE, OSError)):
                        if time.monotonic() - w[4] > self.patience:
                            f.set_exception(StreamInterrupted("away"))
                        else:
                            again.append(w)
                    elif isinstance(x, Exception):
                        e = StreamInterrupted(f"refused {x}")
                        e.__cause__ = x
                        f.set_exception(e)
                    else:
                        f.set_result(x)
                work = again
                if work:
                    await asyncio.sleep(0.05)

    def lane_of(self, tag):
        return 0

    async def read(self, lane, cursors, block):
        try:
            got = await self.b.xread(dict(cursors), count=256, block=int(block * 1000))
        except (CE, TE, OSError) as e:
            raise Away(str(e)) from e
        items = got.items() if isinstance(got, dict) else got or ()
        return [(k, v[0] if isinstance(got, dict) else v) for k, v in items]

    def rest(self, lane):
        pass

    async def aclose(self):
        self.task.cancel()
        for w in self.pending:
            if not w[3].done():
                w[3].set_exception(StreamInterrupted("closed"))
        await self.c.aclose()
        await self.b.aclose()
