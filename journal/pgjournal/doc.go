// Package pgjournal keeps a shard's journal in a PostgreSQL database, version 13 or later, also a managed
// one. It is the driver of PostgreSQL for package remote, which has what all such journals have in common.
//
// Any number of journals share four tables, which are made when the first journal is:
//
//	interlock_head    a row for each journal: format, epoch, word and tail; the mark of a journal that was
//	                  moved; which server of the database it was adopted on; and a counter of writes
//	interlock_log     a row for each append, by the index of its last entry
//	interlock_value   snapshots in chunks, the name of the newest one, keys that sign fences
//
// Why so:
//
//   - Every write is one statement, which updates the row of the head under its comparison and writes
//     the rest from what that update returned. The lock on this row puts writers in order. No transaction
//     and no prepared statement outlives a request, so poolers in transaction mode work.
//   - Confirm and Head are writes too. A primary that was cut off from its replicas still answers reads, but
//     with synchronous replication none of its commits returns. And an append that was committed locally, and
//     waited for a replica when the server crashed, is visible to readers before it is safe: the commit of a
//     later write proves that it has arrived.
//   - A replica that lags behind and is promoted has lost what was acknowledged. No client can prevent it.
//     An owner that lives notices, because its tail is not there (journal.ErrLost). And the head remembers the
//     system identifier and the timeline of the server: with another one fences jump, whether or not
//     anything was lost. That covers a database that was restored from a backup. Appends and confirmations
//     compare the timeline, too: what was lost may be the word of a later owner.
//   - A server with settings under which a commit is not durable is refused, unless loss is allowed.
//
// The package must never read from a standby, and never hold a lock longer than one statement.
//
// Start reading at statement.go, then driver.go.
package pgjournal
