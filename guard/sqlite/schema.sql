-- Interlock's guard for SQLite 3.24 and later. It may be run again at any time.
--
--   PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;    -- once for each connection
--   BEGIN IMMEDIATE;
--   INSERT INTO interlock_entered VALUES ('account:12345', 42);  -- first: key, fence
--   SELECT balance FROM account WHERE id = 12345;                -- then read,
--   UPDATE account SET balance = 900 WHERE id = 12345;           -- then write
--   DELETE FROM interlock_entered;                               -- last
--   COMMIT;
--
-- SQLite has no number for a transaction, so the transaction marks itself: while a row
-- stands in interlock_entered, its key may be written. A transaction that leaves one
-- there cannot commit, because the row refers to a table that is always empty.
--
-- It stops agents that are late. It does not stop SQL that is malicious: every
-- connection to the file may claim any fence, and drop any trigger.

BEGIN IMMEDIATE;

-- One row for each key that was entered.
CREATE TABLE IF NOT EXISTS interlock_fences (
	key TEXT PRIMARY KEY NOT NULL,
	highest INTEGER NOT NULL CHECK (typeof(highest) = 'integer'),       -- highest fence that entered the key
	entered_at INTEGER NOT NULL CHECK (typeof(entered_at) = 'integer')  -- and when, in seconds since 1970
) WITHOUT ROWID;

-- One row: a key without a row in interlock_fences may have had a fence this high.
CREATE TABLE IF NOT EXISTS interlock_floor (
	id INTEGER PRIMARY KEY CHECK (id = 1),
	floor INTEGER NOT NULL CHECK (typeof(floor) = 'integer')
);
INSERT INTO interlock_floor SELECT 1, 0 WHERE NOT EXISTS (SELECT 1 FROM interlock_floor);

CREATE TABLE IF NOT EXISTS interlock_nobody (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS interlock_entered (
	key TEXT PRIMARY KEY REFERENCES interlock_nobody DEFERRABLE INITIALLY DEFERRED,
	fence INTEGER NOT NULL CHECK (typeof(fence) = 'integer' AND fence > 0)
) WITHOUT ROWID;

-- Both pragmas belong to a connection, and no trigger may read them in a connection
-- that distrusts its schema. So the probe shows them by what they do: an update of its
-- n is passed on to interlock_echo with foreign keys only, and a trigger that updates
-- depth causes itself with recursive triggers only.
CREATE TABLE IF NOT EXISTS interlock_probe (n INTEGER PRIMARY KEY, depth INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS interlock_echo (n INTEGER REFERENCES interlock_probe ON UPDATE CASCADE);
INSERT INTO interlock_probe SELECT 0, 0 WHERE NOT EXISTS (SELECT 1 FROM interlock_probe);
INSERT INTO interlock_echo SELECT n FROM interlock_probe WHERE NOT EXISTS (SELECT 1 FROM interlock_echo);
DROP TRIGGER IF EXISTS interlock_probe_depth;
CREATE TRIGGER interlock_probe_depth AFTER UPDATE OF depth ON interlock_probe WHEN NEW.depth < 2 BEGIN
	UPDATE interlock_probe SET depth = NEW.depth + 1;
END;

-- enter refuses before it changes anything, whatever conflict clause the INSERT has.
-- A fence that is no integer must not come as far as a comparison: in SQLite any text
-- is greater than every integer.
DROP TRIGGER IF EXISTS interlock_enter;
CREATE TRIGGER interlock_enter BEFORE INSERT ON interlock_entered BEGIN
	SELECT RAISE(ABORT, 'interlock: a key is text that is not empty, and a fence an integer above 0')
	WHERE typeof(NEW.key) <> 'text' OR NEW.key = '' OR typeof(NEW.fence) <> 'integer' OR NEW.fence < 1;
	UPDATE interlock_probe SET n = 1 - n, depth = 0;
	SELECT RAISE(ABORT, 'interlock: begin with PRAGMA foreign_keys = ON, before the transaction')
	WHERE (SELECT n FROM interlock_echo) <> (SELECT n FROM interlock_probe);
	SELECT RAISE(ABORT, 'interlock: begin with PRAGMA recursive_triggers = ON: without it REPLACE deletes rows unseen')
	FROM interlock_probe WHERE depth < 2;
	SELECT RAISE(ABORT, 'interlock: the fence is stale: do not write; acquire the key anew and read again')
	WHERE NEW.fence < coalesce((SELECT highest FROM interlock_fences WHERE key = NEW.key), (SELECT floor FROM interlock_floor));
	UPDATE interlock_fences SET highest = NEW.fence, entered_at = CAST(strftime('%s', 'now') AS INTEGER) WHERE key = NEW.key;
	INSERT INTO interlock_fences SELECT NEW.key, NEW.fence, CAST(strftime('%s', 'now') AS INTEGER)
	WHERE NOT EXISTS (SELECT 1 FROM interlock_fences WHERE key = NEW.key);
END;

-- What was entered is taken out, never changed, and nothing stands in the empty table.
DROP TRIGGER IF EXISTS interlock_entered_stays;
CREATE TRIGGER interlock_entered_stays BEFORE UPDATE ON interlock_entered BEGIN
	SELECT RAISE(ABORT, 'interlock: enter a key by INSERT, and leave it by DELETE');
END;
DROP TRIGGER IF EXISTS interlock_nobody_stays;
CREATE TRIGGER interlock_nobody_stays BEFORE INSERT ON interlock_nobody BEGIN
	SELECT RAISE(ABORT, 'interlock: this table stays empty: DELETE FROM interlock_entered before COMMIT');
END;

-- What an older form of this schema knew of fences.
CREATE TABLE IF NOT EXISTS interlock_fence (key TEXT PRIMARY KEY, highest INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO interlock_fences SELECT key, highest, CAST(strftime('%s', 'now') AS INTEGER) FROM interlock_fence
WHERE typeof(key) = 'text' AND typeof(highest) = 'integer'
ON CONFLICT (key) DO UPDATE SET highest = max(highest, excluded.highest);
DROP TABLE interlock_fence;

COMMIT;
