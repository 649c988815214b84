"""The keys of a stream on the server.

The kind of a key stands in front of the name, and the name is percent-encoded. So no name reaches another stream's key,
or a key of another kind. All keys of a stream have one hash tag, of which there are only a few: a Cluster then needs only
that many blocking reads.

What the server does in one step. Each script may run twice with one outcome, because an answer can be lost.

The last entry of a log says all: its number, and whether the log has ended (`z`), and whether the end says that the
publisher is dead (`d`; 2 if it died before its first event, which frees the name). Times are the server's. A lease (`own`) is
a hash: until when (`u`) the publisher's last sign counts and for how long (`l`), where a stop reaches the publisher
(`i`), and the token (`t`) and the reason (`r`) of the stop that came.
"""

from __future__ import annotations

from urllib.parse import quote, unquote
from zlib import crc32

import attrs

from rxdelta.relay.valkey.calls import Script

TAGS = 16
"""It is a part of the stored form: with another number no stream would be found again."""


@attrs.frozen
class Keys:
    """The keys of one name.

    Attributes:
        tag: Which of the hash tags they have.
        head: The publication that has the name now, as a stream of one entry, so that a reader can wait for it.
        id: The encoded id, as the tenant's index has it.
        names: That index.
        sums: The keys of the bytes.
    """

    tag: int
    head: bytes
    id: str
    names: bytes
    sums: tuple[bytes, bytes]
    _front: str
    _name: str

    @classmethod
    def of(cls, prefix: str, tenant: str, id: str) -> Keys:
        stream = quote(id, safe="")
        full = f"{quote(tenant, safe='')}/{stream}"
        tag = crc32(full.encode()) % TAGS
        front = _front(prefix, tag)
        names = names_key(prefix, tag, tenant)
        return cls(tag, f"{front}head:{full}".encode(), stream, names, bytes_keys(prefix, tag), front, full)

    def log(self, epoch: str) -> bytes:
        """The entries of one publication."""
        return f"{self._front}log:{epoch}:{self._name}".encode()

    def own(self, epoch: str) -> bytes:
        """The lease of one publication."""
        return f"{self._front}own:{epoch}:{self._name}".encode()


def names_key(prefix: str, tag: int, tenant: str) -> bytes:
    """The index of a tenant's streams with this tag."""
    return f"{_front(prefix, tag)}names:{quote(tenant, safe='')}".encode()


def inbox_key(prefix: str, tag: int, token: str) -> bytes:
    """The key of a process's messages about its publications with this tag."""
    return f"{_front(prefix, tag)}inbox:{token}".encode()


def bytes_keys(prefix: str, tag: int) -> tuple[bytes, bytes]:
    """How many bytes the streams with this tag have, and until when."""
    front = _front(prefix, tag)
    return f"{front}bytes".encode(), f"{front}until".encode()


def id_of(member: bytes) -> tuple[str, str]:
    """When a stream of an index began, as text that sorts, and its id."""
    began, _, encoded = member.decode(errors="replace").partition(":")
    return began, unquote(encoded)


def _front(prefix: str, tag: int) -> str:
    return f"{{{prefix}:{tag}}}:"


_COMMON = """
local function now()
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
local function fields(entry)
  local found = {}
  for i = 1, #entry[2], 2 do found[entry[2][i]] = entry[2][i + 1] end
  return found
end
local function newest(key)
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if not entry then return nil end
  return entry[1], tonumber(string.match(entry[1], '^%d+')), fields(entry)
end
local function member(head, id)
  return head.t .. ':' .. id
end
local function list(names, head, id, milliseconds)
  redis.call('ZADD', names, now() + milliseconds, member(head, id))
  if redis.call('PTTL', names) < milliseconds then redis.call('PEXPIRE', names, milliseconds) end
end
local function sign(own, lease, kept, inbox)
  local counts, last = now() + lease, tonumber(redis.call('HGET', own, 'u') or 0)
  if last >= counts and last < counts + 1000 then counts = last + 1 end -- of one millisecond: each is another one
  redis.call('HSET', own, 'u', counts, 'l', lease, 'i', inbox)
  redis.call('PEXPIRE', own, kept)
end
local function outlast(milliseconds, log, epoch) -- KEYS[5] and [6]: the bytes of the logs, if they are counted, and until when
  redis.call('PEXPIRE', log, milliseconds)
  if not KEYS[5] or redis.call('HEXISTS', KEYS[5], epoch) == 0 then return end
  redis.call('ZADD', KEYS[6], now() + milliseconds, epoch)
  for i = 5, 6 do
    if redis.call('PTTL', KEYS[i]) < milliseconds then redis.call('PEXPIRE', KEYS[i], milliseconds) end
  end
end
local function keep(milliseconds, log, head, names, epoch, id)
  outlast(milliseconds, log, epoch)
  local _, _, said = newest(head)
  if not said or said.p ~= epoch then return false end
  redis.call('PEXPIRE', head, milliseconds)
  list(names, said, id, milliseconds)
  return true
end
"""

CLAIM = Script(
    _COMMON
    + """
-- KEYS head log own names; ARGV format epoch lease kept inbox id
local _, _, head = newest(KEYS[1])
local _, _, said = newest(KEYS[2])
if said and said.z then return head and head.p or ARGV[2] end
if not said then
  if head then return head.p end
  local t = redis.call('TIME')
  head = {t = string.format('%016d', t[1] * 1000000 + t[2]), p = ARGV[2]}
  redis.call('XADD', KEYS[1], '*', 'f', ARGV[1], 'p', ARGV[2], 't', head.t)
  redis.call('XADD', KEYS[2], '0-1', 'f', ARGV[1], 'c', 0, 'e', '') -- the fields of most: they are stored once
end
sign(KEYS[3], ARGV[3], ARGV[4], ARGV[5])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now())
keep(tonumber(ARGV[4]), KEYS[2], KEYS[1], KEYS[4], ARGV[2], ARGV[6])
return 1
"""
)
"""Begin a log. Returns 1, or the epoch of the log that has the name, or that of this one if it has ended."""

APPEND = Script(
    _COMMON
    + """
-- KEYS log own head names bytes? until?; ARGV format epoch lease kept inbox id | before count events end afterwards bytes sign
local function add(bytes, live)
  if not KEYS[5] or bytes == 0 then return end
  redis.call('HINCRBY', KEYS[5], 'sum', bytes)
  if redis.call('HINCRBY', KEYS[5], ARGV[2], bytes) == bytes then outlast(live, KEYS[1], ARGV[2]) end
end
local last, at, said = newest(KEYS[1])
if not last then return {-1} end
local before, count, ends, live = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[10] ~= '', tonumber(ARGV[4])
local number = before + math.max(count, 1)
if said.z and (said.d or not ends or at ~= number or said.z ~= ARGV[10]) then
  if said.d or before >= 0 then return {-2} end
  return {1}
end
if not said.z and before >= 0 then
  if at == before then
    if ends then
      redis.call('XADD', KEYS[1], number .. '-0', 'f', ARGV[1], 'c', count, 'e', ARGV[9], 'z', ARGV[10])
    elseif count > 0 then
      redis.call('XADD', KEYS[1], number .. '-0', 'f', ARGV[1], 'c', count, 'e', ARGV[9])
    end
    add(tonumber(ARGV[12]), live)
  elseif ends or count == 0 or at ~= number or tonumber(said.c) ~= count then
    return {-3}
  end
end
if ends then
  redis.call('DEL', KEYS[2])
  local kept = tonumber(ARGV[11])
  if not keep(kept, KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[6]) or kept < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3]) -- for those who follow it
  end
  return {1}
end
sign(KEYS[2], ARGV[3], live, ARGV[5])
if ARGV[13] == '1' or redis.call('PTTL', KEYS[1]) < live - ARGV[3] then
  local code = keep(live, KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[6]) and 1 or 2
  local told = redis.call('HMGET', KEYS[2], 't', 'r')
  if told[1] then return {code, told[2] or ''} end
  return {code}
end
return {1}
"""
)
"""Write events behind the number `before`, or the end, or only a sign of life (`sign`), which renews what expires.

A sign with a negative number says nothing about the log, which may have more, or its end, meanwhile.

Returns an array: 1, or 2 if the log's name was taken away; and behind it the reason of the stop, if one has come. -1:
there is no such log any more. -2: it has ended otherwise. -3: it doesn't end with that number.
"""

LOOK = Script(
    _COMMON
    + """
-- KEYS log own
local last, _, said = newest(KEYS[1])
if not last then return {} end
local lease = redis.call('HMGET', KEYS[2], 'u', 'l')
return {last, said.z and 1 or 0, lease[1] or '0', lease[2] or '0', string.format('%.0f', now())}
""",
    writes=False,
)
"""Return the last entry's id, whether it is the end, until when the publisher's sign counts and for how long, and the time."""

BURY = Script(
    _COMMON
    + """
-- KEYS log own head names bytes? until?; ARGV format epoch kept id number end dead sign
local last, at, said = newest(KEYS[1])
if not last then return 0 end
local number = tonumber(ARGV[5])
if said.z then return at == number and said.z == ARGV[6] and 1 or 0 end
if ARGV[8] ~= '' and (redis.call('HGET', KEYS[2], 'u') or '0') ~= ARGV[8] then return 0 end
redis.call('XADD', KEYS[1], number .. '-0', 'f', ARGV[1], 'c', 0, 'z', ARGV[6], 'd', ARGV[7])
redis.call('DEL', KEYS[2])
keep(tonumber(ARGV[3]), KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[4])
return 1
""",
    writes=False,
)
"""Write the end of a publisher that is dead, if its last sign is still the one that counts until `sign`; or of one that gave up.

Returns whether this is the log's end. A reader asks for its replicas before: see `REPLICATES`.
"""

REPLICATES = Script(
    """
-- KEYS a key that nobody has
redis.call('HSET', KEYS[1], 's', 1)
return redis.call('DEL', KEYS[1])
"""
)
"""Writes, so that `WAIT` waits for it, and leaves nothing. It is answered by a server that has its replicas."""

TELL = Script(
    _COMMON
    + """
-- KEYS own inbox; ARGV token epoch reason kept
local lease = redis.call('HMGET', KEYS[1], 'u', 't', 'i')
if not lease[1] or lease[3] ~= KEYS[2] then return 0 end
if lease[2] then return lease[2] == ARGV[1] and 1 or 0 end
redis.call('HSET', KEYS[1], 't', ARGV[1], 'r', ARGV[3])
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 10000, '*', 'p', ARGV[2], 'r', ARGV[3])
redis.call('PEXPIRE', KEYS[2], ARGV[4])
return 1
"""
)
"""Tell a publisher to stop that has a lease. Returns whether this call was the first to tell it."""

READ_INBOX = Script("return {redis.call('HGET', KEYS[1], 'i')}", writes=False)
"""The key at which a stop reaches the publisher."""

DELETE = Script(
    _COMMON
    + """
-- KEYS head log own names; ARGV epoch id remains
local _, _, head = newest(KEYS[1])
if not head or head.p ~= ARGV[1] then return 1 end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[4], member(head, ARGV[2]))
outlast(tonumber(ARGV[3]), KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
"""
)
"""Free a name.

The log remains for a while, for those who read it.
"""

READ = Script(
    """
-- KEYS stream; ARGV from entries bytes
local found, from, left, room = {}, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
while left > 0 and room > 0 do
  local few = math.min(left, 8)
  local page = redis.call('XRANGE', KEYS[1], from, '+', 'COUNT', few)
  for _, entry in ipairs(page) do
    found[#found + 1] = entry
    for _, word in ipairs(entry[2]) do room = room - #word end
  end
  if #page < few then break end
  left = left - few
  from = '(' .. page[few][1]
end
return found
""",
    writes=False,
    most=1 << 19,
)
"""A page of a stream: at most so many entries, and about so many bytes. For a log, what `READ.most` says."""

HEAD = Script("return redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)", writes=False)
"""The publication that has a name."""

LIST = Script(
    _COMMON
    + """
-- KEYS names
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now())
return redis.call('ZRANGE', KEYS[1], 0, -1)
""",
    writes=False,
    most=1 << 19,
)
"""The streams of an index."""

WAKE = Script(
    """
-- KEYS inbox; ARGV kept cursor
local function place(id)
  local ms, more = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(more)
end
local function add(id)
  return redis.call('XADD', KEYS[1], 'MAXLEN', '~', 10000, id, 'w', 1)
end
local ms, more = place(ARGV[2])
local now_ms, now_more = place(add('*'))
if now_ms < ms or now_ms == ms and now_more <= more then -- the inbox was lost, and the clock has gone back
  add(string.format('%.0f-%.0f', ms, more + 1))
end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])
""",
    writes=False,
)
"""End the blocking read of this process, which waits for what comes behind the cursor, so that it reads something else."""

BYTES = Script(
    _COMMON
    + """
-- KEYS bytes until
for _, epoch in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now(), 'LIMIT', 0, 1000)) do
  local bytes = redis.call('HGET', KEYS[1], epoch)
  if bytes then redis.call('HINCRBY', KEYS[1], 'sum', -bytes) end
  redis.call('HDEL', KEYS[1], epoch)
  redis.call('ZREM', KEYS[2], epoch)
end
return tonumber(redis.call('HGET', KEYS[1], 'sum') or 0)
""",
    writes=False,
)
"""The bytes of all logs with one tag that are counted and there."""

DROP = Script("return redis.call('DEL', unpack(KEYS))", writes=False)
"""Delete keys."""
