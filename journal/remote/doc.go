// Package remote keeps a shard's journal in an engine of others, so that another machine can go on
// where one has died. It is everything that such journals have in common; a [Driver] is what
// differs between engines.
//
// A [Store] is one shard of a journal in one engine, and its Open fences the owner before. Which of several
// servers tries to be the owner is decided elsewhere (package cluster), by [Shared] values of shard 0. In a
// store there are:
//
//	head        the newest owner, which is an epoch and a word that only the owner knows; the tail;
//	            and the mark of a journal that was moved here, until its fences have jumped
//	log         appends: a frame for each, which refers to the one before it
//	state       "38 7-2 3 1400000 5d0e11aa" the newest snapshot: its index, its
//	            name, how many chunks and bytes it has, and their checksum
//	older       a line of that form for each older snapshot that leads to the past
//	state/…     the chunks of a snapshot: state/…7-…2/…0 is the first of epoch 7, its second snapshot
//	keeps/NAME  small values for the server, such as the keys that sign fences
//	shared/NAME values that belong to no owner
//
// Why so:
//
//   - One append is one frame, stored as a whole, because engines bound the operations of a
//     transaction and a group of the shard has a thousand entries.
//   - Every write compares the owner, and each append the tail too. So an append may be sent again
//     when no answer came: it is carried out once at most, and the chain in the tail shows whether
//     it was. That is why a member of the engine may die or stand still without a change of owner.
//   - An engine can carry a request out and answer with an error all the same. The outcome is read,
//     never taken from the error.
//   - Open fences first and reads the tail afterwards. Where the epoch record itself is the fence,
//     Open appends it behind whatever the owner before still appends.
//   - Chunks of a snapshot never change. Those of one that is not kept any more stay as long as this owner
//     has a reader of it, so no engine needs a memory of its past.
//
// The package must never answer before the engine has the entries as durably as it promises, and
// never take a shared value or a clock for a proof of ownership: only the comparison of owners is one.
//
// Start reading at [Driver] in driver.go, then [Journal] in journal.go.
package remote
