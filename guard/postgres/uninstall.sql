-- Takes Interlock's guard out of a database in which it guards nothing any more. What
-- it knows of fences goes with it: installed again, it accepts any.

BEGIN;
DO $$
DECLARE
	guarded text;
BEGIN
	SELECT string_agg(DISTINCT tgrelid::regclass::text, ', ') INTO guarded
	FROM pg_catalog.pg_trigger WHERE tgfoid = to_regprocedure('interlock.refuse()') AND tgparentid = 0;
	IF guarded IS NOT NULL THEN
		RAISE EXCEPTION 'interlock: still guarded: %: detach them first', guarded;
	END IF;
END $$;
SET LOCAL client_min_messages = warning;
DROP SCHEMA IF EXISTS interlock CASCADE;
COMMIT;
