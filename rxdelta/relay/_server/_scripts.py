"""What the server does in one step. Each script may run twice with one outcome, because an answer can be lost.

The last entry of a log says all: its number, and whether the log has ended (`z`), and whether the end says that the
publisher is dead (`d`; 2 if it died before its first event, which frees the name). Times are the server's. A lease (`own`) is
a hash: until when (`u`) the publisher's last sign counts and for how long (`l`), since when somebody misses a sign (`s`), where the publisher can be told to stop (`i`),
and by whom it was told (`t`) with which reason (`r`).
"""

from __future__ import annotations

from rxdelta.relay._server._connections import Script

__all__ = [
    "APPEND",
    "BYTES",
    "CHECK",
    "CLAIM",
    "DELETE",
    "DROP",
    "HEAD",
    "LIST",
    "MARK",
    "READ",
    "READ_INBOX",
    "REPLICATES",
    "SIGNS",
    "TELL",
    "WAKE",
]

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
if head and head.p ~= ARGV[2] then return head.p end
if head then
  local _, _, said = newest(KEYS[2])
  if not said or said.z then return head.p end
else
  local t = redis.call('TIME')
  head = {t = string.format('%016d', t[1] * 1000000 + t[2]), p = ARGV[2]}
  redis.call('DEL', KEYS[2])
  redis.call('XADD', KEYS[1], '*', 'f', ARGV[1], 'p', ARGV[2], 't', head.t)
  redis.call('XADD', KEYS[2], '0-1', 'f', ARGV[1], 'c', 0, 'e', '') -- the fields of most: they are stored once
end
redis.call('HSET', KEYS[3], 'u', now() + ARGV[3], 'l', ARGV[3], 'i', ARGV[5])
redis.call('PEXPIRE', KEYS[3], ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[4], '-inf', now())
keep(tonumber(ARGV[4]), KEYS[2], KEYS[1], KEYS[4], ARGV[2], ARGV[6])
return 1
"""
)
"""Begin a log. Returns 1, or the epoch of the log that has the name: this one, if it has ended or is gone meanwhile."""

APPEND = Script(
    _COMMON
    + """
-- KEYS log own head names bytes? until?; ARGV format epoch lease kept inbox id | before count events end renews afterwards bytes
local function add(bytes, live)
  if not KEYS[5] or bytes == 0 then return end
  redis.call('HINCRBY', KEYS[5], 'sum', bytes)
  if redis.call('HINCRBY', KEYS[5], ARGV[2], bytes) == bytes then outlast(live, KEYS[1], ARGV[2]) end
end
local last, at, said = newest(KEYS[1])
if not last then return -1 end
local before, count, ends, live = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[10] ~= '', tonumber(ARGV[4])
if said.z and said.d then return -2 end
if said.z and not ends then return before < 0 and 1 or -2 end
if not said.z and before >= 0 then
  if at == before then
    if ends then
      redis.call('XADD', KEYS[1], before + math.max(count, 1) .. '-0',
        'f', ARGV[1], 'c', count, 'e', ARGV[9], 'z', ARGV[10])
    elseif count > 0 then
      redis.call('XADD', KEYS[1], before + count .. '-0', 'f', ARGV[1], 'c', count, 'e', ARGV[9])
    end
    add(tonumber(ARGV[13]), live)
  elseif ends or count == 0 or at ~= before + count then
    return -3
  end
end
if ends then
  redis.call('DEL', KEYS[2])
  local kept = tonumber(ARGV[12])
  if not keep(kept, KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[6]) or kept < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3]) -- for those who follow it
  end
  return 1
end
redis.call('HSET', KEYS[2], 'u', now() + ARGV[3], 'l', ARGV[3], 'i', ARGV[5])
redis.call('HDEL', KEYS[2], 's')
redis.call('PEXPIRE', KEYS[2], live)
if ARGV[11] == '1' then
  if not keep(live, KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[6]) then return 2 end
  local told = redis.call('HMGET', KEYS[2], 't', 'r')
  if told[1] then return {told[2] or ''} end
end
return 1
"""
)
"""Write events behind the number `before`, or the end, or only a sign of life; renew what expires, if `renews`.

A sign of life with a negative number says nothing about the log, which may have more, or its end, meanwhile.

Returns 1, or 2 if the log's name was taken away, or, as an array, the reason with which the publisher was told to stop: a
message to its inbox can be lost. -1: there is no such log any more. -2: it has ended, because the
publisher was taken for dead. -3: the log doesn't end with what it had acknowledged.
"""

CHECK = Script(
    _COMMON
    + """
-- KEYS log own head names; ARGV format epoch lease afterwards id floor end writes
local last, at, said = newest(KEYS[1])
if not last then return {-1, '', 0} end
if said.z then return {2, last, 0} end
local time = now()
local lease = redis.call('HMGET', KEYS[2], 'u', 'l', 's')
local stands = tonumber(lease[1] or 0)
local length = tonumber(lease[2] or ARGV[3])
local missed = tonumber(lease[3] or 0)
local patience = math.floor(length / 4)
if ARGV[8] ~= 'must' then
  if stands > time + length then -- the clock has gone back
    stands = time + length
    redis.call('HSET', KEYS[2], 'u', stands)
  end
  if time < stands then return {1, last, stands - time} end
  if time < missed or time >= missed + 2 * length then
    redis.call('HSET', KEYS[2], 's', time)
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
    return {1, last, patience}
  end
  if time < missed + patience then return {1, last, missed + patience - time} end
  if ARGV[8] ~= 'may' then return {3, last, 0} end
end
local over = math.max(at, tonumber(ARGV[6])) + 1 .. '-0'
local dead = (ARGV[8] == 'may' and over == '1-0') and 2 or 1
redis.call('XADD', KEYS[1], over, 'f', ARGV[1], 'c', 0, 'z', ARGV[7], 'd', dead)
redis.call('DEL', KEYS[2])
keep(tonumber(ARGV[4]), KEYS[1], KEYS[3], KEYS[4], ARGV[2], ARGV[5])
return {2, over, 0, 1}
""",
    writes=False,
)
"""Whether a log is live, and how many milliseconds its publisher's sign counts. If it counts no more, `may` writes the end.

A sign that is missed for the first time gets another quarter of a lease: after an outage of the server the publisher
may be alive, and a reader may only be the first to come back; or the server's clock has jumped. `must` writes the end
at once; it comes behind the number `floor`, too, which the caller has. Returns -1 (no such log), 1 (live), 2 (ended) or 3
(the end is to be written), the last entry's id, the milliseconds, and one more element if this call has written the end.
"""

SIGNS = 5
"""How many signs of life a publisher gives in a lease: one of these always falls into the quarter that `CHECK` waits."""

MARK = Script(CHECK.text)
"""The same, for who writes the end."""

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
"""Tell a publisher to stop that `CHECK` says is live. Returns whether this call was the first to tell it."""

READ_INBOX = Script("return {redis.call('HGET', KEYS[1], 'i')}", writes=False)
"""Where a publisher can be told."""

DELETE = Script(
    _COMMON
    + """
-- KEYS head log own names; ARGV epoch id remains which
local _, _, head = newest(KEYS[1])
if not head or head.p ~= ARGV[1] then return 1 end
if ARGV[4] == 'unused' then
  local _, at, said = newest(KEYS[2])
  if not said or said.d ~= '2' then return 0 end
end
redis.call('DEL', KEYS[1])
redis.call('ZREM', KEYS[4], member(head, ARGV[2]))
outlast(tonumber(ARGV[3]), KEYS[2], ARGV[1])
redis.call('PEXPIRE', KEYS[3], ARGV[3])
return 1
"""
)
"""Free a name; or only that of a log whose publisher died before its first event (`unused`). Returns whether it is free.

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
