// Package etcdjournal keeps a shard's journal in an etcd cluster. It is the driver of etcd for
// package remote, which has what all such journals have in common.
//
// All keys of a journal stand below interlock/NAME/SHARD/:
//
//	format              "1": a program that does not know the number must not touch the rest
//	epoch               "7 93b1c0…"   the newest epoch, and a word that only its owner knows
//	tail                "41 8f3a0c12" the index of the last entry, and the chain up to it
//	log/00000…00000041  one append: a frame with the entries up to index 41
//	state               "38 7-2 3 1400000 5d0e11aa" the newest snapshot: its index, its
//	                    name, how many chunks and bytes it has, and their checksum
//	state/…7-…2/…0      a chunk of the snapshot 7-2: epoch 7, its second
//	copied              only in a journal that was moved here, until its fences have jumped
//	shared/NAME         values that belong to no owner
//	keeps/NAME          small values for the server, such as the keys that sign fences
//
// Why so:
//
//   - One append is one key, because etcd takes at most 128 operations in a
//     transaction and a group of the shard has a thousand entries. It is named by its
//     last index, so that the append that holds an index is the first key from that
//     index on: etcd walks keys upwards only.
//   - Every transaction compares the whole value of epoch, and each append that of tail too.
//   - etcd can carry a transaction out and answer "no space" all the same (the append that
//     reaches the quota).
//   - Truncation deletes and puts nothing, because etcd under its alarm for space still
//     takes what only deletes.
//   - Nothing is read at a revision of the past, so etcd may compact as it likes.
//   - A barrier is one linearizable read: a majority of the members takes part in it, so an old
//     leader that was cut off does not answer.
//
// The package must never read from a single member, because it may not know the newest state.
//
// Start reading at store.go.
package etcdjournal
