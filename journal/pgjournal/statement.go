package pgjournal

// schema makes the tables. Frames are checksummed and mostly small, so PostgreSQL need not try to compress
// them. The row of a head changes with each append: it gets room to do so in its page. Several
// servers may make them at once, so they take a lock.
const schema = `
SELECT pg_advisory_xact_lock(hashtext('interlock'));
CREATE TABLE IF NOT EXISTS interlock_head (
	journal text NOT NULL, shard integer NOT NULL, format integer NOT NULL, epoch bigint NOT NULL, word text NOT NULL,
	tail bigint NOT NULL, chain bigint NOT NULL, moved boolean NOT NULL, server text NOT NULL, beat bigint NOT NULL,
	PRIMARY KEY (journal, shard)) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS interlock_log (
	journal text NOT NULL, shard integer NOT NULL, last bigint NOT NULL, frame bytea NOT NULL,
	PRIMARY KEY (journal, shard, last));
ALTER TABLE interlock_log ALTER COLUMN frame SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS interlock_value (
	journal text NOT NULL, shard integer NOT NULL, name text COLLATE "C" NOT NULL, version bigint NOT NULL,
	data bytea NOT NULL, PRIMARY KEY (journal, shard, name));`

// formatNumber is the layout of the tables that this package knows.
const formatNumber = 1

// The first parameters of a statement are the journal and the shard. Those with an owner have its epoch and
// its word next.
const (
	// sqlSettings is what makes a commit durable, and whether this is a primary.
	sqlSettings = `SELECT current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
		pg_is_in_recovery()::text`

	// sqlServer names the server's data and its timeline, which changes when a standby is promoted or
	// a backup restored. Not every managed database answers it.
	sqlServer = `SELECT (SELECT system_identifier FROM pg_control_system())::text || '/' || ` + timeline

	sqlHead = `UPDATE interlock_head SET beat = beat + 1 WHERE journal = $1 AND shard = $2
		RETURNING format, epoch, word, tail, chain, moved::text, server`

	// sqlCreate has the format, epoch, word, tail, chain, moved and server.
	sqlCreate = `INSERT INTO interlock_head VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 1)
		ON CONFLICT DO NOTHING RETURNING 1`

	// sqlFound has the same, and the name and data of a value.
	sqlFound = `WITH h AS (` + sqlCreate + `)
		INSERT INTO interlock_value SELECT $1, $2, $10, 1, $11 FROM h
		ON CONFLICT (journal, shard, name) DO UPDATE SET version = 1, data = EXCLUDED.data RETURNING 1`

	// sqlFoundAgain has the epoch and word before, and then the same.
	sqlFoundAgain = `WITH h AS (UPDATE interlock_head SET format = $5, epoch = $6, word = $7, tail = $8, chain = $9,
		moved = $10, server = $11` + owned + ` RETURNING 1)
		INSERT INTO interlock_value SELECT $1, $2, $12, 1, $13 FROM h
		ON CONFLICT (journal, shard, name) DO UPDATE SET version = interlock_value.version + 1, data = EXCLUDED.data
		RETURNING 1`

	// owned is the comparison of owners.
	owned = ` WHERE journal = $1 AND shard = $2 AND epoch = $3 AND word = $4`

	// holds is owned, and the parameter behind the owner is the least tail.
	holds = owned + ` AND tail >= $5`

	// beat is the update under which all else is written; it returns a number that is never used twice.
	beat = `UPDATE interlock_head SET beat = beat + 1` + holds + ` RETURNING beat`

	sqlFence = `UPDATE interlock_head SET epoch = $5, word = $6, moved = moved OR $7` + owned + ` RETURNING 1`

	sqlAdopt = `UPDATE interlock_head SET moved = false, server = $5` + owned + ` RETURNING 1`

	// timeline is that of the server; sqlConfirm and sqlAppend compare it with that of the server on which the
	// owner has begun, "" if that is not known. A promoted standby may lack the word of a later owner.
	timeline = `substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)`

	sqlConfirm = `UPDATE interlock_head SET beat = beat + 1` + holds + `
		AND CASE WHEN $6 = '' THEN true ELSE $6 = ` + timeline + ` END RETURNING 1`

	// sqlAppend has the tail and chain before and after, the frame and the timeline.
	sqlAppend = `WITH h AS (UPDATE interlock_head SET tail = $7, chain = $8` + owned + `
			AND tail = $5 AND chain = $6
			AND CASE WHEN $10 = '' THEN true ELSE $10 = ` + timeline + ` END RETURNING 1)
		INSERT INTO interlock_log SELECT $1, $2, $7, $9 FROM h RETURNING 1`

	sqlFrames = `SELECT last, frame FROM interlock_log WHERE journal = $1 AND shard = $2 AND last >= $3
		ORDER BY last LIMIT $4`

	// sqlDrop returns whether the owner is the newest, and the last index that was deleted. The rows of one
	// statement are bounded, because appends wait for it.
	sqlDrop = `WITH old AS (SELECT last FROM interlock_log WHERE journal = $1 AND shard = $2 AND last < $6
			ORDER BY last LIMIT 200),
		h AS (` + beat + `),
		gone AS (DELETE FROM interlock_log WHERE journal = $1 AND shard = $2 AND EXISTS (SELECT FROM h)
			AND last <= (SELECT max(last) FROM old) RETURNING last)
		SELECT (SELECT count(*) FROM h), coalesce((SELECT max(last) FROM gone), 0)`

	sqlGet = `SELECT version, data FROM interlock_value WHERE journal = $1 AND shard = $2 AND name = $3`

	// sqlPut has the name, the data and the version to replace.
	sqlPut = `WITH h AS (` + beat + `)
		INSERT INTO interlock_value SELECT $1, $2, $6, h.beat, $7 FROM h
			WHERE $8 IN ('', '*') OR EXISTS (SELECT FROM interlock_value
				WHERE journal = $1 AND shard = $2 AND name = $6 AND version::text = $8)
		ON CONFLICT (journal, shard, name) DO UPDATE SET version = EXCLUDED.version, data = EXCLUDED.data
			WHERE $8 = '*' OR interlock_value.version::text = $8
		RETURNING version`

	// sqlPutEmpty is for a store without a head.
	sqlPutEmpty = `INSERT INTO interlock_value SELECT $1, $2, $3, 1, $4
			WHERE NOT EXISTS (SELECT FROM interlock_head WHERE journal = $1 AND shard = $2)
		ON CONFLICT (journal, shard, name) DO UPDATE SET version = 1, data = EXCLUDED.data RETURNING 1`

	// sqlSwap has the name, the data and the version to replace.
	sqlSwap = `INSERT INTO interlock_value SELECT $1, $2, $3, 1, $4
			WHERE $5 = '' OR EXISTS (SELECT FROM interlock_value WHERE journal = $1 AND shard = $2 AND name = $3)
		ON CONFLICT (journal, shard, name) DO UPDATE SET version = interlock_value.version + 1, data = EXCLUDED.data
			WHERE interlock_value.version::text = $5
		RETURNING version`

	sqlRemove = `WITH h AS (` + beat + `),
		gone AS (DELETE FROM interlock_value WHERE journal = $1 AND shard = $2 AND EXISTS (SELECT FROM h)
			AND name >= $6 AND name < $7 RETURNING 1)
		SELECT 1 FROM h`
)
