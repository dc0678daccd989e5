// Package oncejournal keeps a shard's journal in a store with one comparison only, "create this name if it is
// free": Firestore, and stores with the interface of S3. It is the driver of such stores for package remote, which
// has what all journals in engines have in common.
//
// A journal is a chain of records, which are numbered without a gap:
//
//	log/00…1   owner    epoch 1 begins: its creator is the owner from here on
//	log/00…2   append   the epoch record, index 1
//	log/00…3   append   indexes 2 to 40
//	log/00…4   owner    epoch 2 begins                  <- the old owner wanted this name for its next append
//	begin              the first record that is kept, and the first one that may not be deleted yet
//	value/NAME         snapshots in chunks, the name of the newest one, keys that sign fences
//
// Why so:
//
//   - The name of a record follows from the one before it alone, and every change of the head is a record: a new
//     owner, an append, the end of a mark. Its creator wins, which compares owner and tail at once. Each
//     record holds the head as it is after it.
//   - A name must exclude for ever, and truncation frees names. So the records that begin an ownership are never
//     deleted: these are the names that an owner before them may still want to create, however late. And a new owner
//     that has created its record reads afterwards where the log begins: if that is behind its record, the name was
//     used before, and it is no owner. "begin" moves first, and records are deleted afterwards.
//   - A take-over has to win the race for a name. From an owner that appends without pause, which has to give its shard
//     up or seem dead first, that takes some attempts.
//   - Names are dense, so the end of the log is found by looking whether some names exist, in a few rounds.
//   - Confirm looks whether the name behind the newest record is free, and whether that record is there. The first
//     is a proof, because no later owner can be without that name.
//   - A value is written if the name behind the newest record is free and the value has the version that was read.
//     Firestore compares both in one step. In S3 the first is looked at before the second is compared, so a value of
//     an owner before may arrive late. It does no harm: it can only replace the value that this owner has read, every
//     snapshot is true, and the later owner's own write finds another version. What it deletes is not needed by a
//     later owner.
//   - Every write of a value begins with a word of its own, because S3 names a version by its content, and Firestore
//     makes no new version of a write that changes nothing.
//   - A record names the place that it was adopted at. Where a journal finds itself at another place, as after the
//     restore of a backup of Firestore, fences jump.
//
// The package must never take an object's date or the order of a listing for a proof, and never delete a record that
// begins an ownership.
//
// Start reading at objects.go, then record.go and driver.go.
package oncejournal
