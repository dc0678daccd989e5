-- Interlock's guard for PostgreSQL 14 and later. It may be run again at any time.
--
--   BEGIN;
--   SELECT interlock.enter('default', 'account:12345', 42);    -- first: namespace, key, fence
--   SELECT balance FROM account WHERE id = 12345;              -- then read,
--   UPDATE account SET balance = 900 WHERE id = 12345;         -- then write
--   COMMIT;
--
--   SELECT interlock.attach('account', 'account:{id}');        -- once for each guarded table
--
-- enter refuses a fence below the highest that it has seen for the key, and holds the
-- key's row until the transaction ends: whoever comes with a higher fence waits, and
-- then reads what was committed. An attached table refuses writes to rows whose key
-- was not entered in the very transaction that writes.
--
-- It stops agents that are late. It does not stop SQL that is malicious: who may call
-- enter may claim any fence, and who owns a table may drop its triggers.

BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL client_min_messages = warning;
DO $$
DECLARE
	owner regrole;
BEGIN
	IF current_setting('server_version_num')::int < 140000 THEN
		RAISE EXCEPTION 'interlock: PostgreSQL % is too old: 14 or later is needed', current_setting('server_version');
	END IF;
	PERFORM pg_advisory_xact_lock(hashtext('interlock.schema')); -- two installations take turns
	SELECT nspowner INTO owner FROM pg_namespace WHERE nspname = 'interlock';
	IF owner IS NULL THEN
		CREATE SCHEMA interlock;
		GRANT USAGE ON SCHEMA interlock TO PUBLIC; -- may be narrowed: this is done once
	ELSIF owner <> current_user::regrole THEN
		-- What is in there would run with the rights of whoever calls it.
		RAISE EXCEPTION 'interlock: the schema interlock belongs to %: install as its owner', owner;
	END IF;
END $$;

-- One row for each key that was ever entered, and for each key above it. Nobody but
-- its owner may read or write it; everybody may call the functions.
--
-- Fences begin at 1 and jump by 2^40 when a server's journal is restored from a
-- backup, so a bigint is enough.
CREATE TABLE IF NOT EXISTS interlock.fences (
	namespace text NOT NULL,
	key text COLLATE "C" NOT NULL,
	highest bigint NOT NULL,   -- highest fence that entered the key itself; 0: none
	below bigint NOT NULL,     -- highest fence that entered a key below it; 0: none
	entered_in xid8,           -- the transaction that entered the key last,
	entered_at timestamptz,    -- and its beginning: a restored row's number may come again
	PRIMARY KEY (namespace, key)
) WITH (fillfactor = 50);      -- room for the next fence on the same page

-- above lists the keys above a key, the topmost first: a and a/b for a/b/c.
CREATE OR REPLACE FUNCTION interlock.above(key text) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	keys text[] := '{}';
	prefix text := '';
	segment text;
BEGIN
	FOREACH segment IN ARRAY string_to_array(above.key, '/') LOOP
		prefix := prefix || segment;
		keys := keys || prefix;
		prefix := prefix || '/';
	END LOOP;
	RETURN trim_array(keys, 1);
END $$;

-- enter says under which fence this transaction writes what belongs to a key, or to
-- keys below it. Call it in a statement of its own, before anything is read.
--
-- It raises IL001 when the fence is stale: a higher one was seen for the key, for one
-- above it, or for one below it. Until the transaction ends it holds the key's row
-- alone, and shares the rows above it. Those that have seen no fence as high as this
-- one below them are changed, and so held alone too.
--
-- A transaction whose snapshot is older than what it has to see fails with 40001,
-- because a row that it needs has changed since. Sharing changes no row, though, and so
-- what was done below a key could go unnoticed. That is why a key that has keys below it
-- is entered at READ COMMITTED only.
CREATE OR REPLACE FUNCTION interlock.enter(namespace text, key text, fence bigint) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	place text; -- the key that is looked at
	seen bigint;
	beneath bigint;
BEGIN
	IF enter.namespace IS NULL OR enter.fence IS NULL OR enter.fence < 1
		OR enter.key IS NULL OR enter.key ~ '(^|/)\.{0,2}(/|$)' THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
			'interlock: namespace %L, key %L and fence %L are not what a lease has', enter.namespace, enter.key, enter.fence);
	END IF;
	FOREACH place IN ARRAY interlock.above(enter.key) LOOP
		INSERT INTO interlock.fences VALUES (enter.namespace, place, 0, enter.fence)
		ON CONFLICT ON CONSTRAINT fences_pkey DO NOTHING;
		UPDATE interlock.fences f SET below = enter.fence
		WHERE f.namespace = enter.namespace AND f.key = place AND f.below < enter.fence;
		SELECT f.highest INTO seen FROM interlock.fences f
		WHERE f.namespace = enter.namespace AND f.key = place FOR SHARE;
		EXIT WHEN seen > enter.fence;
	END LOOP;
	IF seen IS NULL OR seen <= enter.fence THEN
		INSERT INTO interlock.fences AS f
		VALUES (enter.namespace, enter.key, enter.fence, 0, pg_current_xact_id(), transaction_timestamp())
		ON CONFLICT ON CONSTRAINT fences_pkey DO UPDATE
		SET highest = excluded.highest, entered_in = excluded.entered_in, entered_at = excluded.entered_at
		WHERE f.highest <= excluded.highest AND f.below <= excluded.highest
		RETURNING f.below INTO beneath;
		IF beneath > 0 AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
			RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
				'interlock: %s has keys below it: enter it at READ COMMITTED', enter.key);
		END IF;
		IF beneath IS NOT NULL THEN
			RETURN;
		END IF;
		place := enter.key;
		SELECT greatest(f.highest, f.below) INTO seen FROM interlock.fences f
		WHERE f.namespace = enter.namespace AND f.key = place;
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'IL001', MESSAGE = format(
		'interlock: fence %s of %s is stale, %s was seen at %s: do not write; acquire the key anew and read again',
		enter.fence, enter.key, seen, place);
END $$;

-- guard is true when this very transaction has entered the key or one above it, and
-- raises IL002 otherwise. The row that enter wrote is the proof: it goes when a
-- savepoint is rolled back, and no later transaction has its number and beginning.
CREATE OR REPLACE FUNCTION interlock.guard(namespace text, key text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF guard.namespace IS NULL OR guard.key IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE =
			'interlock: a column of the row''s key is null, empty, or has a slash: such a row belongs to no key';
	END IF;
	PERFORM FROM interlock.fences f
	WHERE f.namespace = guard.namespace AND f.key = ANY (interlock.above(guard.key) || guard.key)
		AND f.entered_in = pg_current_xact_id() AND f.entered_at = transaction_timestamp();
	IF NOT FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'IL002', MESSAGE = format(
			'interlock: no fence was entered for %s in this transaction: do not write; '
			'acquire the key, then begin with SELECT interlock.enter(%L, %L, FENCE), and read again',
			guard.key, guard.namespace, guard.key);
	END IF;
	RETURN true;
END $$;

-- segment is a column's value as one segment of a key, or null when it cannot be one:
-- a slash in it would make a key below another one.
CREATE OR REPLACE FUNCTION interlock.segment(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN CASE WHEN segment.value <> '' AND strpos(segment.value, '/') = 0 THEN segment.value END;
END $$;

-- refuse is what the triggers of a guarded table run when there is no fence. Those of
-- its rows never get so far, because guard raises.
CREATE OR REPLACE FUNCTION interlock.refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'IL002', MESSAGE = format(
		'interlock: no fence covers %s on %s: do not write', TG_OP, TG_RELID::regclass);
END $$;

-- expression makes the SQL that spells a template for a row: 'account:' || the id.
CREATE OR REPLACE FUNCTION interlock.expression(target regclass, template text, record text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	part text;
	attribute text;
	spelled text := '';
	parts text[] := '{}';
BEGIN
	FOR part IN SELECT m[1] FROM regexp_matches(expression.template, '(\{[^{}]+\}|[^{}]+)', 'g') m LOOP
		spelled := spelled || part;
		IF part NOT LIKE '{%' THEN
			parts := parts || quote_literal(part);
			CONTINUE;
		END IF;
		attribute := regexp_replace(part, '^\{|(\.\.\.)?\}$', '', 'g');
		PERFORM FROM pg_attribute a
		WHERE a.attrelid = target AND a.attname = attribute AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format('interlock: %s has no column %s', target, attribute);
		END IF;
		parts := parts || format(
			CASE WHEN part LIKE '%...}' THEN 'nullif(%s.%I::text, '''')' ELSE 'interlock.segment(%s.%I::text)' END,
			expression.record, attribute);
	END LOOP;
	IF spelled = '' OR spelled IS DISTINCT FROM expression.template THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
			'interlock: %L is not text with columns in braces, such as account:{id}', expression.template);
	END IF;
	RETURN array_to_string(parts, ' || ');
END $$;

-- attach guards a table. The key says to which key a row belongs: {column} stands for a
-- column's value, which must be one segment of a key; {column...} for one of several
-- segments; a key without either is that of all rows. The namespace may be spelled so too.
--
-- A row that changes its key needs both keys. A table may be attached several times, and
-- then a row needs each of its keys. Doing it again changes nothing.
CREATE OR REPLACE FUNCTION interlock.attach(target regclass, key text, namespace text DEFAULT 'default') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text := 'interlock_' || left(encode(sha256(convert_to(attach.namespace || ' ' || attach.key, 'UTF8')), 'hex'), 8);
	new_key text := interlock.expression(target, attach.namespace, 'NEW') || ', ' || interlock.expression(target, attach.key, 'NEW');
	old_key text := interlock.expression(target, attach.namespace, 'OLD') || ', ' || interlock.expression(target, attach.key, 'OLD');
	every text; -- the key of all rows, or one above them all
BEGIN
	-- The conditions are looked at after the row was written, so they see what it has
	-- become, whatever other triggers did to it.
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW'
		' WHEN (NOT interlock.guard(%s)) EXECUTE FUNCTION interlock.refuse()', name || '_new', target, new_key);
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW'
		' WHEN ((%s) IS DISTINCT FROM (%s) AND NOT interlock.guard(%s)) EXECUTE FUNCTION interlock.refuse()',
		name || '_moved', target, old_key, new_key, new_key);
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE OR DELETE ON %s FOR EACH ROW'
		' WHEN (NOT interlock.guard(%s)) EXECUTE FUNCTION interlock.refuse()', name || '_old', target, old_key);
	IF attach.namespace NOT LIKE '%{%' THEN
		every := CASE WHEN attach.key LIKE '%{%' THEN substring(attach.key FROM '^([^{]*)/') ELSE attach.key END;
	END IF;
	EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT'
		'%s EXECUTE FUNCTION interlock.refuse()', name || '_truncate', target,
		CASE WHEN every IS NULL THEN '' ELSE format(' WHEN (NOT interlock.guard(%L, %L))', attach.namespace, every) END);
END $$;

-- detach takes every guard off a table.
CREATE OR REPLACE FUNCTION interlock.detach(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
BEGIN
	FOR name IN SELECT t.tgname FROM pg_trigger t
		WHERE t.tgrelid = target AND t.tgfoid = 'interlock.refuse()'::regprocedure AND t.tgparentid = 0 LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', name, target);
	END LOOP;
END $$;

COMMIT;
