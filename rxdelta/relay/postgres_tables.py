"""What the PostgreSQL store has in its database: two tables, and a function for each step of a store.

A step is a function, so that it takes one round trip, and so that one statement can take the steps of many streams. The
functions are correct at READ COMMITTED: each decides by an `UPDATE` of the stream's one row, which waits for whoever changes
that row at the moment and looks at it again then.
"""

from __future__ import annotations

FORM_QUERY = 'SELECT max(number) FROM "{schema}".form'

_FIRST = """
CREATE TABLE "{schema}".form (number int PRIMARY KEY, since timestamptz NOT NULL DEFAULT clock_timestamp());
COMMENT ON TABLE "{schema}".form IS 'The forms that these tables have had; the highest is that of today.';

CREATE TABLE "{schema}".streams (
  log bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  stream text COLLATE "C" NOT NULL,
  epoch text COLLATE "C" NOT NULL,
  named boolean NOT NULL DEFAULT true,
  began timestamptz NOT NULL,
  signed timestamptz NOT NULL,
  sign bigint NOT NULL DEFAULT 1,
  lease float8 NOT NULL,
  newest bigint NOT NULL DEFAULT 0,
  records bigint NOT NULL DEFAULT 0,
  bytes bigint NOT NULL DEFAULT 0,
  ended timestamptz,
  dead int NOT NULL DEFAULT 0,
  stop_token text COLLATE "C",
  stop_reason bytea,
  expires timestamptz NOT NULL,
  look_at timestamptz NOT NULL,
  UNIQUE (tenant, stream, epoch)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- No column that an append changes is in an index: the new row goes into the same page, and leaves nothing for VACUUM.
CREATE UNIQUE INDEX streams_name ON "{schema}".streams (tenant, stream) WHERE named;
CREATE INDEX streams_look_at ON "{schema}".streams (look_at);
COMMENT ON TABLE "{schema}".streams IS 'One row for each publication of a stream.';
COMMENT ON COLUMN "{schema}".streams.epoch IS 'Which publication of the stream it is.';
COMMENT ON COLUMN "{schema}".streams.named IS 'Whether readers of the name get this publication.';
COMMENT ON COLUMN "{schema}".streams.signed IS 'The last sign of life of the publisher, of which sign is the number.';
COMMENT ON COLUMN "{schema}".streams.lease IS 'Seconds for which a sign counts.';
COMMENT ON COLUMN "{schema}".streams.newest IS 'The number of the last record.';
COMMENT ON COLUMN "{schema}".streams.bytes IS 'What the records count of max_total_bytes.';
COMMENT ON COLUMN "{schema}".streams.ended IS 'When it ended; empty for a live one.';
COMMENT ON COLUMN "{schema}".streams.dead IS '0, but where the publisher died and somebody else wrote the end.';
COMMENT ON COLUMN "{schema}".streams.stop_token IS 'Who told the publisher to stop.';
COMMENT ON COLUMN "{schema}".streams.expires IS 'From when on it counts as deleted.';
COMMENT ON COLUMN "{schema}".streams.look_at IS 'When a process looks whether it has expired, and deletes it.';

-- Without a foreign key: its check would lock the row of streams, which the only function that inserts has locked already.
CREATE TABLE "{schema}".records (
  log bigint NOT NULL,
  number bigint NOT NULL,
  count int NOT NULL,
  events bytea NOT NULL,
  "end" bytea,
  dead int NOT NULL,
  size bigint NOT NULL,
  PRIMARY KEY (log, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 5000);
COMMENT ON TABLE "{schema}".records IS 'What was written at once into a stream: some events, or its end, or both.';

CREATE FUNCTION "{schema}".later(seconds float8) RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT clock_timestamp() + seconds * interval '1 second' $$;

CREATE FUNCTION "{schema}".begin(
  in_tenant text, in_stream text, in_epoch text, in_lease float8, in_keep float8, channel text, news text
) RETURNS text LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
DECLARE
  found_log bigint;
  found_epoch text;
BEGIN
  LOOP
    UPDATE "{schema}".streams SET signed = clock_timestamp(), sign = sign + 1, lease = in_lease,
        expires = "{schema}".later(in_lease + in_keep)
      WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND ended IS NULL AND expires > clock_timestamp();
    IF FOUND THEN
      RETURN NULL;
    END IF;
    SELECT epoch INTO found_epoch FROM "{schema}".streams
      WHERE tenant = in_tenant AND stream = in_stream AND named AND expires > clock_timestamp();
    IF FOUND THEN
      RETURN found_epoch;
    END IF;
    SELECT log INTO found_log FROM "{schema}".streams
      WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch FOR UPDATE;
    IF FOUND THEN
      PERFORM FROM "{schema}".streams WHERE log = found_log AND ended IS NOT NULL AND expires > clock_timestamp();
      IF FOUND THEN
        RETURN in_epoch;
      END IF;
      DELETE FROM "{schema}".records WHERE log = found_log;
      DELETE FROM "{schema}".streams WHERE log = found_log;
    END IF;
    UPDATE "{schema}".streams SET named = false, look_at = clock_timestamp()
      WHERE tenant = in_tenant AND stream = in_stream AND named AND expires <= clock_timestamp();
    INSERT INTO "{schema}".streams (tenant, stream, epoch, began, signed, lease, expires, look_at)
      VALUES (in_tenant, in_stream, in_epoch, clock_timestamp(), clock_timestamp(), in_lease,
        "{schema}".later(in_lease + in_keep), "{schema}".later(in_lease + in_keep))
      ON CONFLICT DO NOTHING;
    IF FOUND THEN
      PERFORM pg_notify(channel, news);
      RETURN NULL;
    END IF;
  END LOOP;
END $$;

CREATE FUNCTION "{schema}".append(
  in_tenant text, in_stream text, in_epoch text, before bigint, in_number bigint, in_count int, in_events bytea,
  ends boolean, in_end bytea, in_dead int, in_size bigint, in_lease float8, in_keep float8, channel text, news text,
  OUT state text, OUT stop bytea, OUT is_named boolean
) LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
DECLARE
  is_sign CONSTANT boolean := in_number < 0;
  found_log bigint;
  last bigint;
  has_ended boolean;
  found_dead int;
  is_this boolean := false;
BEGIN
  IF is_sign THEN
    UPDATE "{schema}".streams SET signed = clock_timestamp(), sign = sign + 1, lease = in_lease,
        expires = "{schema}".later(in_lease + in_keep)
      WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
        AND ended IS NULL AND (before < 0 OR newest = before)
      RETURNING stop_reason, named INTO stop, is_named;
  ELSIF NOT ends THEN
    UPDATE "{schema}".streams SET signed = clock_timestamp(), sign = sign + 1, lease = in_lease,
        expires = "{schema}".later(in_lease + in_keep), newest = in_number, records = records + 1, bytes = bytes + in_size
      WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
        AND ended IS NULL AND newest = before
      RETURNING stop_reason, named, log INTO stop, is_named, found_log;
  ELSE
    UPDATE "{schema}".streams SET signed = clock_timestamp(), sign = sign + 1, lease = in_lease,
        expires = "{schema}".later(CASE WHEN named THEN in_keep ELSE in_lease END),
        look_at = "{schema}".later(CASE WHEN named THEN in_keep ELSE in_lease END),
        newest = in_number, records = records + 1, bytes = bytes + in_size, ended = clock_timestamp(), dead = in_dead
      WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
        AND ended IS NULL AND newest = before
      RETURNING stop_reason, named, log INTO stop, is_named, found_log;
  END IF;
  IF FOUND THEN
    state := 'written';
    IF NOT is_sign THEN
      INSERT INTO "{schema}".records (log, number, count, events, "end", dead, size)
        VALUES (found_log, in_number, in_count, in_events, CASE WHEN ends THEN in_end END, in_dead, in_size);
      PERFORM pg_notify(channel, news);
    END IF;
    RETURN;
  END IF;
  SELECT log, newest, ended IS NOT NULL, dead, stop_reason, named INTO found_log, last, has_ended, found_dead, stop, is_named
    FROM "{schema}".streams
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp();
  IF NOT FOUND THEN
    state := 'gone';
    is_named := false;
    RETURN;
  END IF;
  IF NOT is_sign THEN
    SELECT true INTO is_this FROM "{schema}".records
      WHERE log = found_log AND number = last AND number = in_number AND count = in_count AND dead = 0
        AND "end" IS NOT DISTINCT FROM CASE WHEN ends THEN in_end END;
    is_this := FOUND;
  END IF;
  IF has_ended THEN
    state := CASE WHEN is_this OR is_sign AND before < 0 AND found_dead = 0 THEN 'written' ELSE 'ended' END;
  ELSIF is_this THEN
    UPDATE "{schema}".streams SET signed = clock_timestamp(), sign = sign + 1, lease = in_lease,
        expires = "{schema}".later(in_lease + in_keep)
      WHERE log = found_log AND ended IS NULL AND newest = in_number;
    state := CASE WHEN FOUND THEN 'written' ELSE 'ended' END;
  ELSE
    state := 'lost';
  END IF;
END $$;

CREATE FUNCTION "{schema}".bury(
  in_tenant text, in_stream text, in_epoch text, in_sign bigint, in_number bigint, in_count int, in_end bytea, in_dead int,
  in_size bigint, in_lease float8, in_keep float8, channel text, news text
) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
DECLARE
  found_log bigint;
BEGIN
  UPDATE "{schema}".streams SET newest = in_number, records = records + 1, bytes = bytes + in_size,
      expires = "{schema}".later(CASE WHEN named THEN in_keep ELSE in_lease END),
      look_at = "{schema}".later(CASE WHEN named THEN in_keep ELSE in_lease END),
      ended = clock_timestamp(), dead = in_dead
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
      AND ended IS NULL AND newest < in_number AND (in_sign < 0 OR sign = in_sign)
    RETURNING log INTO found_log;
  IF FOUND THEN
    INSERT INTO "{schema}".records (log, number, count, events, "end", dead, size)
      VALUES (found_log, in_number, in_count, '', in_end, in_dead, in_size);
    PERFORM pg_notify(channel, news);
    RETURN true;
  END IF;
  PERFORM FROM "{schema}".streams JOIN "{schema}".records USING (log)
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
      AND ended IS NOT NULL AND number = newest AND number = in_number AND records.dead = in_dead AND "end" = in_end;
  RETURN FOUND;
END $$;

-- It is STABLE, so all it reads is of one moment: that in which the statement began. Without its settings it may sort all that a
-- log has behind a number, for each page.
CREATE FUNCTION "{schema}".read(
  in_tenant text, in_stream text, in_epoch text, behind bigint, most bigint,
  OUT epoch text, OUT newest bigint, OUT has_ended boolean, OUT sign bigint, OUT age float8, OUT lease float8,
  OUT numbers bigint[], OUT counts int[], OUT events bytea[], OUT ends bytea[], OUT deads int[], OUT sizes bigint[]
) LANGUAGE plpgsql STABLE SET lock_timeout = '2s' SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off AS $$
DECLARE
  found_log bigint;
  until bigint;
  total bigint := 0;
  length bigint;
BEGIN
  IF in_epoch = '' THEN
    SELECT s.log, s.epoch, s.newest, s.ended IS NOT NULL, s.sign, extract(epoch FROM clock_timestamp() - s.signed), s.lease
      INTO found_log, epoch, newest, has_ended, sign, age, lease FROM "{schema}".streams s
      WHERE s.tenant = in_tenant AND s.stream = in_stream AND s.named AND s.expires > clock_timestamp();
  ELSE
    SELECT s.log, s.epoch, s.newest, s.ended IS NOT NULL, s.sign, extract(epoch FROM clock_timestamp() - s.signed), s.lease
      INTO found_log, epoch, newest, has_ended, sign, age, lease FROM "{schema}".streams s
      WHERE s.tenant = in_tenant AND s.stream = in_stream AND s.epoch = in_epoch AND s.expires > clock_timestamp();
  END IF;
  IF found_log IS NULL OR newest <= behind THEN
    RETURN;
  END IF;
  FOR until, length IN
    SELECT r.number, octet_length(r.events) + coalesce(octet_length(r."end"), 0)
      FROM "{schema}".records r WHERE r.log = found_log AND r.number > behind ORDER BY r.number
  LOOP
    total := total + length;
    EXIT WHEN total >= most;
  END LOOP;
  SELECT array_agg(r.number), array_agg(r.count), array_agg(r.events), array_agg(r."end"), array_agg(r.dead), array_agg(r.size)
    INTO numbers, counts, events, ends, deads, sizes
    FROM (SELECT * FROM "{schema}".records WHERE log = found_log AND number > behind AND number <= until ORDER BY number) r;
END $$;

CREATE FUNCTION "{schema}".stop(
  in_tenant text, in_stream text, in_epoch text, in_token text, in_reason bytea, channel text, news text
) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
BEGIN
  UPDATE "{schema}".streams SET stop_token = in_token, stop_reason = in_reason
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
      AND ended IS NULL AND stop_token IS NULL;
  IF FOUND THEN
    PERFORM pg_notify(channel, news);
    RETURN true;
  END IF;
  PERFORM FROM "{schema}".streams
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND expires > clock_timestamp()
      AND stop_token = in_token;
  RETURN FOUND;
END $$;

CREATE FUNCTION "{schema}".free(in_tenant text, in_stream text, in_epoch text, in_lease float8) RETURNS boolean
LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
BEGIN
  UPDATE "{schema}".streams
    SET named = false, expires = "{schema}".later(in_lease), look_at = "{schema}".later(in_lease)
    WHERE tenant = in_tenant AND stream = in_stream AND epoch = in_epoch AND named AND expires > clock_timestamp();
  RETURN true;
END $$;

CREATE FUNCTION "{schema}".names(in_tenant text) RETURNS text[] LANGUAGE sql STABLE SET lock_timeout = '2s'
AS $$
  SELECT coalesce(array_agg(stream ORDER BY log), '{}') FROM "{schema}".streams
    WHERE tenant = in_tenant AND named AND expires > clock_timestamp()
$$;

CREATE FUNCTION "{schema}".total() RETURNS bigint LANGUAGE sql STABLE SET lock_timeout = '2s'
AS $$ SELECT coalesce(sum(bytes), 0)::bigint FROM "{schema}".streams WHERE expires > clock_timestamp() $$;

-- Deletes up to so many records of what has expired. It waits for no lock: what others have is theirs. Returns whether it met
-- all that was to be looked at.
CREATE FUNCTION "{schema}".sweep(most int) RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
DECLARE
  one record;
  moment CONSTANT timestamptz := clock_timestamp(); -- what is volatile finds nothing by an index
  few int;
  deleted int := 0;
  looked int := 0;
BEGIN
  FOR one IN
    SELECT log, expires FROM "{schema}".streams WHERE look_at <= moment
      ORDER BY look_at LIMIT 100 FOR UPDATE SKIP LOCKED
  LOOP
    looked := looked + 1;
    IF one.expires > moment THEN
      UPDATE "{schema}".streams SET look_at = expires WHERE log = one.log;
      CONTINUE;
    END IF;
    DELETE FROM "{schema}".records WHERE log = one.log AND number IN (
      SELECT number FROM "{schema}".records WHERE log = one.log ORDER BY number LIMIT most - deleted);
    GET DIAGNOSTICS few = ROW_COUNT;
    deleted := deleted + few;
    IF deleted >= most THEN
      -- No clock that goes back may show a log that lacks records.
      UPDATE "{schema}".streams SET named = false, expires = '-infinity' WHERE log = one.log;
      RETURN false;
    END IF;
    DELETE FROM "{schema}".streams WHERE log = one.log;
  END LOOP;
  RETURN looked < 100;
END $$;

CREATE FUNCTION "{schema}".beat(channel text, news text) RETURNS boolean LANGUAGE plpgsql
AS $$ BEGIN PERFORM pg_notify(channel, news); RETURN true; END $$;

CREATE FUNCTION "{schema}".probe() RETURNS boolean LANGUAGE plpgsql SET lock_timeout = '2s' SET enable_seqscan = off AS $$
DECLARE
  made bigint;
BEGIN
  INSERT INTO "{schema}".streams (tenant, stream, epoch, named, began, signed, lease, expires, look_at)
    VALUES ('', '', gen_random_uuid()::text, false, clock_timestamp(), clock_timestamp(), 0, '-infinity', clock_timestamp())
    RETURNING log INTO made;
  DELETE FROM "{schema}".streams WHERE log = made;
  RETURN true;
END $$;
"""

_STEPS = (_FIRST,)
"""What makes each form out of the one before it, in one transaction with the row in `form` that says so."""

FORM = len(_STEPS)
"""The form that this version of the library reads and writes. It refuses a newer one."""


def step(schema: str, number: int) -> str:
    """The SQL that makes form `number` out of the one before it."""
    return (_STEPS[number - 1] + _DONE.replace("{number}", str(number))).replace("{schema}", schema)


_DONE = """
INSERT INTO "{schema}".form (number) VALUES ({number});
"""

_ROLE = """
GRANT USAGE ON SCHEMA "{schema}" TO {role};
GRANT SELECT ON "{schema}".form TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}".streams, "{schema}".records TO {role};
GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA "{schema}" TO {role};
"""


def ddl(schema: str, role: str | None) -> str:
    """All SQL for an empty database, and for a role that may use it."""
    made = [
        f'CREATE SCHEMA IF NOT EXISTS "{schema}";\n',
        *(step(schema, number + 1) for number in range(FORM)),
    ]
    if role is not None:
        quoted = '"' + role.replace('"', '""') + '"'
        made.append(_ROLE.replace("{schema}", schema).replace("{role}", quoted))
    return "".join(made)
