// Package sqlite is the guard for SQLite 3.24 and later: a page of SQL that refuses a write
// under a stale fence, in the same transaction as the write.
//
//	PRAGMA foreign_keys = ON; PRAGMA recursive_triggers = ON;    -- once for each connection
//	BEGIN IMMEDIATE;
//	INSERT INTO interlock_entered VALUES ('account:12345', 42);  -- key, fence
//	SELECT balance FROM account WHERE id = 12345;
//	UPDATE account SET balance = 900 WHERE id = 12345;
//	DELETE FROM interlock_entered;
//	COMMIT;
//
// A trigger on interlock_entered refuses a fence below the highest that the key has seen. Three
// triggers on each guarded table refuse a row if its key does not stand in interlock_entered.
// They run after the row was written, so that they see what it has become, and a refusal undoes
// the statement.
//
// It is right because SQLite has one writer at a time: the transaction that entered a key is
// the only one that writes until it ends, and a foreign key that nothing can satisfy refuses to
// commit a transaction that leaves its entry behind. Two settings of the connection carry this:
// foreign_keys, and recursive_triggers, without which REPLACE deletes a conflicting row without
// any trigger. A connection that has them off cannot enter, and one that has entered nothing
// cannot write.
//
// Keys count as they are spelled: a fence of repo:web does not write repo:web/src.
//
// It does not stop SQL that is malicious: every connection to the file may claim any
// fence, and drop any trigger.
//
// The package must never run SQL, or hold a word of SQL that the command does not
// print.
//
// Start reading at schema.sql.
package sqlite
