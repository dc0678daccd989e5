// Package postgres is the guard for PostgreSQL 14 and later: a page of SQL that refuses a write
// under a stale fence, in the same transaction as the write.
//
//	BEGIN;
//	SELECT interlock.enter('default', 'account:12345', 42);    -- namespace, key, fence
//	SELECT balance FROM account WHERE id = 12345;
//	UPDATE account SET balance = 900 WHERE id = 12345;
//	COMMIT;
//
// Two things refuse:
//
//	enter    a fence below the highest that was seen      IL001  StaleFence
//	trigger  a write to a row of a guarded table whose    IL002  NoFence
//	         key was not entered in this transaction
//	both     what cannot be a key, or cannot be entered   IL003  Malformed
//	         at this isolation level
//
// Why it is right at every isolation level: enter changes the row of its key in the
// table interlock.fences, and so has it until the transaction ends. One with a higher
// fence waits, and then either reads what was committed or, where its snapshot is
// older (REPEATABLE READ, SERIALIZABLE), fails with 40001 and is to be repeated. One
// with a lower fence fails. So for each key the transactions that entered it are
// committed in the order of their fences, and each saw all that came before it.
//
// Keys above and below count as they do for leases: an exclusive lease on repo:web writes all
// below it. So enter shares the rows of the keys above its own, which a transaction that enters
// one of those must have alone, and each row knows the highest fence below it. Sharing changes
// no row, so an older snapshot would not be noticed: a key that has some below it is entered at
// READ COMMITTED only.
//
// That a fence was entered is known from the row itself, which has the number and the beginning
// of the transaction that wrote it. Nothing else would go away with a savepoint that is rolled
// back, be there in a prepared transaction, and yet not be there for the next transaction of
// the same connection.
//
// One holder may have a lease on a key and then, with a later fence, one above it. Both live;
// but once the later fence was entered above, the earlier is stale at the key. A read under the
// one must not change under the other, and the guard knows fences, not holders. The later fence
// writes the key below as well.
//
// Triggers of a table are on those that inherit from it, too. PostgreSQL fires no trigger of a
// parent for a child's rows and none for a new child, so a guarded table refuses UPDATE and
// DELETE while a child of it lacks the guard.
//
// The rows of idle keys are deleted by prune behind a floor: the highest fence of those
// that it deleted. It is compared wherever a key has no row, and a transaction that adds
// a row shares the floor, so that both cannot miss each other.
//
// It does not stop SQL that is malicious: a user that may call enter may claim any fence, and
// the owner of a table may drop its triggers. Replication and restoring, which write with
// session_replication_role = replica or before triggers exist, are not guarded: what they write
// was accepted before.
//
// The package must never run SQL, or have a word of SQL that is not in a file that an
// operator can read first.
//
// Start reading at schema.sql.
package postgres
