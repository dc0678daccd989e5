-- Takes Interlock's guard out of a file in which it guards no table any more. What it
-- knows of fences goes with it: installed again, it accepts any.
-- Run it with sqlite3 -bail: it begins with a check that must be its end when it fails.

BEGIN IMMEDIATE;

-- A constraint refuses what a trigger alone could raise.
CREATE TEMP TABLE interlock_guarded (tables TEXT, CONSTRAINT "interlock: a table is still guarded: detach it first" CHECK (tables IS NULL));
INSERT INTO interlock_guarded SELECT group_concat(DISTINCT tbl_name) FROM sqlite_master
WHERE type = 'trigger' AND name LIKE 'interlock\_guard\_%' ESCAPE '\';
DROP TABLE interlock_guarded;

DROP TABLE IF EXISTS interlock_entered;
DROP TABLE IF EXISTS interlock_nobody;
DROP TABLE IF EXISTS interlock_echo;
DROP TABLE IF EXISTS interlock_probe;
DROP TABLE IF EXISTS interlock_fences;
DROP TABLE IF EXISTS interlock_floor;

COMMIT;
