// Package redisjournal keeps a shard's journal in Redis 7.0 or later, or in Valkey. It is the driver of both for
// package remote, which has what all such journals have in common. It is the weakest of these engines: replication
// follows the answer, so a fail-over may lose what was acknowledged.
//
// A shard of a journal is three keys with a hash tag, so that a cluster keeps them on one node:
//
//	{interlock/NAME/SHARD}:head    a hash: format, epoch, word, tail and chain; the mark of a journal that was
//	                               moved; the server that it was adopted on; how many replicas each write waits
//	                               for; and a counter of writes
//	{interlock/NAME/SHARD}:log     a stream with an entry for each append; its id is the index of the last entry in it
//	{interlock/NAME/SHARD}:value   a hash of values and their versions: snapshots in chunks, keys that sign fences
//
// Why so:
//
//   - Every request is one script, which compares the head and then writes. A server runs one script at a time.
//     Reads are scripts that could write as well, because a replica refuses those and would answer a plain read.
//   - With appendfsync = always a server answers after it has synced its file. Where there are replicas, each
//     write is followed by WAITAOF on its connection, until most servers have synced it too. A server without
//     WAITAOF has WAIT: most servers have it in memory.
//   - How many replicas that are is stored in the head and never falls by itself. A primary that was cut off
//     from its replicas would find that it has none, and answer alone.
//   - Confirm and Head are writes with the same wait. An append that only the primary has is visible before it
//     is safe: a later write that has arrived proves that it has, too.
//   - A replica that lags behind and is promoted has lost what was acknowledged. No client can prevent it. An
//     owner that lives notices, because its tail is not there (journal.ErrLost). And the head remembers the
//     replication id of the server, which changes with a promotion, and also with a restart or a copy: with
//     another one fences jump at the next Open, whether or not anything was lost.
//   - A server with settings under which a crash loses writes, or memory pressure deletes keys, is refused, unless
//     loss is allowed. When memory is full, all that frees it still works, and the barrier does.
//
// The package must never read from a replica, and never count a replica that has not confirmed.
//
// Start reading at script.go, then driver.go.
package redisjournal
