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

-- One row for each key that was entered, and for each key above it. Its owner alone
-- may read or write it; everybody may call the functions. prune deletes idle rows.
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

-- One row for each namespace: a key without a row in interlock.fences may have had a
-- fence this high, which prune has forgotten.
CREATE TABLE IF NOT EXISTS interlock.floors (
	namespace text PRIMARY KEY,
	floor bigint NOT NULL
);

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

-- admit raises IL001 when the row of a key may have been pruned with a higher fence. It
-- shares the floor until the transaction ends, so that prune cannot raise it meanwhile;
-- and a transaction whose snapshot is older than the floor fails with 40001, because
-- the floor's row is there before any row can be pruned.
CREATE OR REPLACE FUNCTION interlock.admit(namespace text, key text, fence bigint) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	lowest bigint;
BEGIN
	INSERT INTO interlock.floors VALUES (admit.namespace, 0) ON CONFLICT DO NOTHING;
	SELECT f.floor INTO lowest FROM interlock.floors f WHERE f.namespace = admit.namespace FOR SHARE;
	IF admit.fence < lowest THEN
		RAISE EXCEPTION USING ERRCODE = 'IL001', MESSAGE = format(
			'interlock: fence %s of %s is stale, the fences of idle keys up to %s were pruned: do not write; '
			'acquire the key anew and read again', admit.fence, admit.key, lowest);
	END IF;
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
	own text := '';
BEGIN
	IF enter.namespace IS NULL OR enter.fence IS NULL OR enter.fence < 1
		OR enter.key IS NULL OR enter.key ~ '(^|/)\.{0,2}(/|$)' THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
			'interlock: namespace %L, key %L and fence %L are not what a lease has', enter.namespace, enter.key, enter.fence);
	END IF;
	FOREACH place IN ARRAY CASE WHEN strpos(enter.key, '/') = 0 THEN '{}' ELSE interlock.above(enter.key) END LOOP
		LOOP -- changes come first: two that share a row could never both change it
			UPDATE interlock.fences f SET below = enter.fence
			WHERE f.namespace = enter.namespace AND f.key = place AND f.below < enter.fence
			RETURNING f.highest INTO seen;
			EXIT WHEN FOUND;
			SELECT f.highest INTO seen FROM interlock.fences f
			WHERE f.namespace = enter.namespace AND f.key = place AND f.below >= enter.fence FOR SHARE;
			EXIT WHEN FOUND;
			PERFORM interlock.admit(enter.namespace, enter.key, enter.fence);
			INSERT INTO interlock.fences VALUES (enter.namespace, place, 0, enter.fence)
			ON CONFLICT ON CONSTRAINT fences_pkey DO NOTHING;
		END LOOP;
		IF seen > enter.fence THEN
			own := format(', or enter under the fence of %s if you hold it', place);
			EXIT;
		END IF;
	END LOOP;
	IF own = '' THEN
		place := enter.key;
		LOOP
			UPDATE interlock.fences f
			SET highest = enter.fence, entered_in = pg_current_xact_id(), entered_at = transaction_timestamp()
			WHERE f.namespace = enter.namespace AND f.key = place AND f.highest <= enter.fence AND f.below <= enter.fence
			RETURNING f.below INTO beneath;
			EXIT WHEN FOUND;
			SELECT greatest(f.highest, f.below) INTO seen FROM interlock.fences f
			WHERE f.namespace = enter.namespace AND f.key = place;
			EXIT WHEN seen > enter.fence;
			CONTINUE WHEN FOUND; -- it came in between
			PERFORM interlock.admit(enter.namespace, enter.key, enter.fence);
			INSERT INTO interlock.fences VALUES (enter.namespace, place, enter.fence, 0, pg_current_xact_id(), transaction_timestamp())
			ON CONFLICT ON CONSTRAINT fences_pkey DO NOTHING RETURNING 0 INTO beneath;
			EXIT WHEN FOUND;
		END LOOP;
		IF beneath > 0 AND current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
			RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
				'interlock: %s has keys below it: enter it at READ COMMITTED', enter.key);
		END IF;
		IF beneath IS NOT NULL THEN
			RETURN;
		END IF;
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'IL001', MESSAGE = format(
		'interlock: fence %s of %s is stale, %s was seen at %s: do not write; acquire the key anew and read again%s',
		enter.fence, enter.key, seen, place, own);
END $$;

-- entered is true when this very transaction has entered the key, or one of those that
-- are given as the keys above it. The row that enter wrote is the
-- proof: it goes when a savepoint is rolled back, and no later transaction has its
-- number and beginning.
--
-- The triggers call this for each row. So it sets no search path, which would be a
-- third of its cost, but says where each name is from. And the keys above stand in a list
-- of a fixed length, because a search of an array would be planned anew each time.
CREATE OR REPLACE FUNCTION interlock.entered(namespace text, key text, above text[] DEFAULT NULL) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
	IF entered.above IS NULL THEN
		PERFORM FROM interlock.fences f
		WHERE f.namespace OPERATOR(pg_catalog.=) entered.namespace AND f.key OPERATOR(pg_catalog.=) entered.key
			AND f.entered_in OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()
			AND f.entered_at OPERATOR(pg_catalog.=) pg_catalog.transaction_timestamp();
		RETURN FOUND;
	END IF;
	IF entered.key IS NULL THEN
		RETURN false; -- whatever is above it: such a row belongs to no key
	END IF;
	FOR step IN 1 .. greatest(1, pg_catalog.cardinality(entered.above)) BY 3 LOOP
		PERFORM FROM interlock.fences f
		WHERE f.namespace OPERATOR(pg_catalog.=) entered.namespace
			AND f.key OPERATOR(pg_catalog.=) ANY (ARRAY[entered.key, entered.above[step],
				entered.above[step OPERATOR(pg_catalog.+) 1], entered.above[step OPERATOR(pg_catalog.+) 2]])
			AND f.entered_in OPERATOR(pg_catalog.=) pg_catalog.pg_current_xact_id()
			AND f.entered_at OPERATOR(pg_catalog.=) pg_catalog.transaction_timestamp();
		IF FOUND THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;

-- guard is true when this transaction has entered the key or one above it, and raises
-- IL002 otherwise.
CREATE OR REPLACE FUNCTION interlock.guard(namespace text, key text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	IF guard.namespace IS NULL OR guard.key IS NULL THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE =
			'interlock: a column of the row''s key is null, empty, or has a slash: such a row belongs to no key';
	END IF;
	IF interlock.entered(guard.namespace, guard.key, interlock.above(guard.key)) THEN
		RETURN true;
	END IF;
	RAISE EXCEPTION USING ERRCODE = 'IL002', MESSAGE = format(
		'interlock: no fence was entered for %s in this transaction: do not write; '
		'acquire the key, then begin with SELECT interlock.enter(%L, %L, FENCE), and read again',
		guard.key, guard.namespace, guard.key);
END $$;

-- segment is a column's value as one segment of a key, or null when it cannot be one:
-- a slash in it would make a key below another one. Tables that an older version has
-- attached call it.
CREATE OR REPLACE FUNCTION interlock.segment(value text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RETURN CASE WHEN segment.value <> '' AND strpos(segment.value, '/') = 0 THEN segment.value END;
END $$;

-- refuse is what the triggers of a guarded table run when there is no fence. Those of
-- its rows never get so far, because guard raises. Its argument, where there is one,
-- marks a trigger that a table has because it inherits from a guarded one.
CREATE OR REPLACE FUNCTION interlock.refuse() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION USING ERRCODE = 'IL002', MESSAGE = format(
		'interlock: no fence covers %s on %s: do not write', TG_OP, TG_RELID::regclass);
END $$;

-- expression makes the SQL that spells a template for a row: 'account:' || the id. It
-- is built of what PostgreSQL itself has, because it is evaluated for each row.
CREATE OR REPLACE FUNCTION interlock.expression(target regclass, template text, record text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	part text;
	attribute text;
	type regtype;
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
		SELECT a.atttypid INTO type FROM pg_attribute a
		WHERE a.attrelid = target AND a.attname = attribute AND a.attnum > 0 AND NOT a.attisdropped;
		IF NOT FOUND THEN
			RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format('interlock: %s has no column %s', target, attribute);
		END IF;
		parts := parts || format(
			CASE
				WHEN type IN ('smallint'::regtype, 'integer', 'bigint', 'uuid') THEN '%s.%I::text' -- never empty, no slash
				WHEN part LIKE '%...}' THEN 'nullif(%s.%I::text, '''')'
				ELSE 'nullif(CASE WHEN strpos(%1$s.%2$I::text, ''/'') = 0 THEN %1$s.%2$I::text END, '''')'
			END, expression.record, attribute);
	END LOOP;
	IF spelled = '' OR spelled IS DISTINCT FROM expression.template THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
			'interlock: %L is not text with columns in braces, such as account:{id}', expression.template);
	END IF;
	RETURN array_to_string(parts, ' || ');
END $$;

-- missing makes the condition under which a row's key was not entered. It asks entered
-- first, which is quick, and guard only where that found nothing.
CREATE OR REPLACE FUNCTION interlock.missing(target regclass, key text, namespace text, record text) RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	spelled text := interlock.expression(target, missing.key, record);
	place text := interlock.expression(target, missing.namespace, record);
	above text[] := '{}'; -- the keys above, each spelled
	inside boolean := false;
BEGIN
	IF missing.key LIKE '%...}%' THEN
		RETURN format('NOT interlock.entered(%1$s, %2$s, interlock.above(%2$s)) AND NOT interlock.guard(%1$s, %2$s)', place, spelled);
	END IF;
	FOR i IN 1 .. length(missing.key) LOOP
		CASE substr(missing.key, i, 1)
			WHEN '{' THEN inside := true;
			WHEN '}' THEN inside := false;
			WHEN '/' THEN
				IF NOT inside AND i > 1 THEN
					above := above || interlock.expression(target, left(missing.key, i - 1), record);
				END IF;
			ELSE NULL;
		END CASE;
	END LOOP;
	RETURN format('NOT interlock.entered(%1$s, %2$s%3$s) AND NOT interlock.guard(%1$s, %2$s)', place, spelled,
		CASE WHEN cardinality(above) > 0 THEN format(', ARRAY[%s]', array_to_string(above, ', ')) ELSE '' END);
END $$;

-- children lists the tables that inherit from a table, and from those. Partitions are
-- none: PostgreSQL itself passes the triggers of their table on to them. Nor are
-- temporary tables of other sessions: no statement reaches them.
CREATE OR REPLACE FUNCTION interlock.children(target regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	WITH RECURSIVE child AS (
		SELECT i.inhrelid FROM pg_inherits i JOIN pg_class p ON p.oid = i.inhparent
		WHERE i.inhparent = target AND p.relkind <> 'p'
		UNION SELECT i.inhrelid FROM pg_inherits i JOIN child ON i.inhparent = child.inhrelid
	)
	SELECT c.oid::regclass FROM child JOIN pg_class c ON c.oid = child.inhrelid
	WHERE NOT pg_is_other_temp_schema(c.relnamespace) ORDER BY c.oid
$$;

-- open lists the tables that are written with a guarded table, and lack a guard that
-- it has: children that came later, and those whose triggers were disabled.
CREATE OR REPLACE FUNCTION interlock.open(target regclass) RETURNS SETOF regclass
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT child FROM interlock.children(target) child WHERE EXISTS (
		SELECT FROM pg_trigger t
		WHERE t.tgrelid = target AND t.tgfoid = 'interlock.refuse()'::regprocedure AND NOT EXISTS (
			SELECT FROM pg_trigger o
			WHERE o.tgrelid = child AND o.tgname = t.tgname AND o.tgfoid = t.tgfoid AND o.tgenabled <> 'D'))
$$;

-- whole is true when all tables that inherit from a guarded one are guarded, and raises
-- IL003 otherwise. Each statement calls it, so it looks first whether there can be any,
-- and sets no search path.
CREATE OR REPLACE FUNCTION interlock.whole(target regclass) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
	child pg_catalog.regclass;
BEGIN
	PERFORM FROM pg_catalog.pg_class c WHERE c.oid OPERATOR(pg_catalog.=) target::pg_catalog.oid AND c.relhassubclass;
	IF NOT FOUND THEN
		RETURN true;
	END IF;
	SELECT o INTO child FROM interlock.open(target) o LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = pg_catalog.format(
			'interlock: %s inherits from %s and is not guarded: do not write; have its owner attach %s again', child, target, target);
	END IF;
	RETURN true;
END $$;

-- fit puts the triggers of a guard on one table. Its marker is the argument of refuse.
CREATE OR REPLACE FUNCTION interlock.fit(target regclass, key text, namespace text, marker text) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text := 'interlock_' || left(encode(sha256(convert_to(fit.namespace || ' ' || fit.key, 'UTF8')), 'hex'), 8);
	refuse text := format(' EXECUTE FUNCTION interlock.refuse(%s)', marker);
	new_key text := interlock.expression(target, fit.namespace, 'NEW') || ', ' || interlock.expression(target, fit.key, 'NEW');
	old_key text := interlock.expression(target, fit.namespace, 'OLD') || ', ' || interlock.expression(target, fit.key, 'OLD');
	every text; -- the key of all rows, or one above them all
BEGIN
	IF marker <> '' AND EXISTS (
		SELECT FROM pg_trigger t WHERE t.tgrelid = target AND t.tgname = name || '_new' AND t.tgnargs = 0) THEN
		marker := ''; -- it was attached by itself
		refuse := ' EXECUTE FUNCTION interlock.refuse()';
	END IF;
	-- The conditions are looked at after the row was written, so they see what it has
	-- become, whatever other triggers did to it.
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER INSERT ON %s FOR EACH ROW WHEN (%s)',
		name || '_new', target, interlock.missing(target, fit.key, fit.namespace, 'NEW')) || refuse;
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE ON %s FOR EACH ROW WHEN ((%s) IS DISTINCT FROM (%s) AND %s)',
		name || '_moved', target, old_key, new_key, interlock.missing(target, fit.key, fit.namespace, 'NEW')) || refuse;
	EXECUTE format('CREATE OR REPLACE TRIGGER %I AFTER UPDATE OR DELETE ON %s FOR EACH ROW WHEN (%s)',
		name || '_old', target, interlock.missing(target, fit.key, fit.namespace, 'OLD')) || refuse;
	IF fit.namespace NOT LIKE '%{%' THEN
		every := CASE WHEN fit.key LIKE '%{%' THEN substring(fit.key FROM '^([^{]*)/') ELSE fit.key END;
	END IF;
	EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE TRUNCATE ON %s FOR EACH STATEMENT%s', name || '_truncate', target,
		CASE WHEN every IS NULL THEN '' ELSE format(' WHEN (NOT interlock.guard(%L, %L))', fit.namespace, every) END) || refuse;
	IF (SELECT c.relkind FROM pg_class c WHERE c.oid = target) <> 'p' THEN
		EXECUTE format('CREATE OR REPLACE TRIGGER %I BEFORE UPDATE OR DELETE ON %s FOR EACH STATEMENT'
			' WHEN (NOT interlock.whole(%L::regclass))', name || '_children', target, target) || refuse;
	END IF;
	EXECUTE format('COMMENT ON TRIGGER %I ON %s IS %L', name || '_new', target, format('%s in %s', fit.key, fit.namespace));
END $$;

-- attach guards a table, and all that inherit from it. The key says to which key a row
-- belongs: {column} stands for a column's value, which must be one segment of a key;
-- {column...} for one of several segments; a key without either is that of all rows. The
-- namespace may be spelled so too.
--
-- A row that changes its key needs both keys. A table may be attached several times, and
-- then a row needs each of its keys. Doing it again guards children that came later, and
-- changes nothing else.
CREATE OR REPLACE FUNCTION interlock.attach(target regclass, key text, namespace text DEFAULT 'default') RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	child regclass;
BEGIN
	PERFORM interlock.fit(target, attach.key, attach.namespace, '');
	FOR child IN SELECT c FROM interlock.children(target) c LOOP
		PERFORM interlock.fit(child, attach.key, attach.namespace, quote_literal('inherited'));
	END LOOP;
END $$;

-- detach takes every guard off a table, and off those that have it by inheriting.
CREATE OR REPLACE FUNCTION interlock.detach(target regclass) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text;
	member regclass;
BEGIN
	SELECT p.inhparent::regclass INTO member FROM pg_inherits p
	JOIN pg_trigger t ON t.tgrelid = p.inhrelid AND t.tgfoid = 'interlock.refuse()'::regprocedure AND t.tgnargs > 0
	JOIN pg_trigger o ON o.tgrelid = p.inhparent AND o.tgfoid = t.tgfoid AND o.tgname = t.tgname
	WHERE p.inhrelid = target LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = format(
			'interlock: %s is guarded because it inherits from %s: detach that', target, member);
	END IF;
	FOR name, member IN SELECT t.tgname, t.tgrelid::regclass FROM pg_trigger t
		WHERE t.tgfoid = 'interlock.refuse()'::regprocedure AND t.tgparentid = 0 AND (t.tgrelid = target
			OR t.tgnargs > 0 AND t.tgrelid IN (SELECT c FROM interlock.children(target) c) AND EXISTS (
				SELECT FROM pg_trigger o WHERE o.tgrelid = target AND o.tgfoid = t.tgfoid AND o.tgname = t.tgname)) LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', name, member);
	END LOOP;
END $$;

-- tables lists the guarded tables with their keys, and beside them the tables that
-- inherit from them and are not guarded. It leaves out partitions, and children that
-- are guarded like their table.
CREATE OR REPLACE FUNCTION interlock.tables() RETURNS TABLE (guarded regclass, key text, open regclass)
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
	SELECT t.tgrelid::regclass, coalesce(obj_description(t.oid, 'pg_trigger'), ''), o
	FROM pg_trigger t LEFT JOIN LATERAL interlock.open(t.tgrelid) o ON true
	WHERE t.tgfoid = 'interlock.refuse()'::regprocedure AND t.tgparentid = 0 AND t.tgnargs = 0 AND t.tgname LIKE '%\_new'
	ORDER BY 1, 2, 3
$$;

-- prune deletes rows of fences that were not entered for some time, at most so many, and
-- returns how many it has deleted; call it again while that is not 0. A floor takes
-- their place: the highest of those fences. Below it, a fence is refused for every key
-- without a row, so a late writer stays refused. So is a lease that is older than the
-- time and has not entered its key within it: it has to be acquired anew.
--
-- What is not deleted: a row that a transaction is using; the row of a key that has rows
-- below it; and a fence above all that were entered within the time, for it can only be
-- a mistake, and as the floor it would refuse every lease.
CREATE OR REPLACE FUNCTION interlock.prune(idle interval, most bigint DEFAULT 100000) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	cutoff timestamptz := clock_timestamp() - prune.idle;
	space text;
	newest bigint;
	forgotten bigint;
	n bigint;
	total bigint := 0;
BEGIN
	IF current_setting('transaction_isolation') IN ('repeatable read', 'serializable') THEN
		RAISE EXCEPTION USING ERRCODE = 'IL003', MESSAGE = 'interlock: prune at READ COMMITTED';
	END IF;
	FOR space IN SELECT DISTINCT f.namespace FROM interlock.fences f ORDER BY 1 LOOP
		-- While the floor is held, no key gets a row whose fence was not compared with it.
		INSERT INTO interlock.floors VALUES (space, 0) ON CONFLICT DO NOTHING;
		PERFORM FROM interlock.floors f WHERE f.namespace = space FOR UPDATE;
		SELECT max(f.highest) INTO newest FROM interlock.fences f WHERE f.namespace = space AND f.entered_at >= cutoff;
		WITH old AS (
			SELECT f.key, greatest(f.highest, f.below) AS fence FROM interlock.fences f
			WHERE f.namespace = space AND (f.entered_at < cutoff OR f.entered_at IS NULL) AND greatest(f.highest, f.below) <= newest
				AND NOT EXISTS (SELECT FROM interlock.fences b
					WHERE b.namespace = space AND b.key > f.key || '/' AND b.key < f.key || '0') -- 0 comes after /
			LIMIT prune.most - total FOR UPDATE SKIP LOCKED -- to wait for one that waits for the floor would be a deadlock
		), gone AS (
			DELETE FROM interlock.fences f USING old WHERE f.namespace = space AND f.key = old.key RETURNING old.fence
		)
		SELECT count(*), max(gone.fence) INTO n, forgotten FROM gone;
		UPDATE interlock.floors f SET floor = forgotten WHERE f.namespace = space AND f.floor < forgotten;
		total := total + n;
		EXIT WHEN total >= prune.most;
	END LOOP;
	RETURN total;
END $$;

COMMIT;
