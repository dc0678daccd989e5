package interlock

import "strconv"

// Index is a position in a shard's journal. The first entry has index 1; 0
// means "before everything".
type Index uint64

// Epoch numbers the ownership of a shard. It grows by at least one whenever a
// process opens the shard's journal for writing.
type Epoch uint64

// Fence numbers a grant (a fencing token). It is strictly greater than that of
// every earlier grant of its shard, and is never reset: not by release, expiry,
// restart, fail-over or a restored backup.
type Fence uint64

// Version numbers a state of guarded data. It is never reused, also not after
// the data was deleted.
type Version uint64

// In JSON these counters are decimal strings, because a JSON number loses
// precision above 2^53 in many readers.

func (i Index) String() string   { return strconv.FormatUint(uint64(i), 10) }
func (e Epoch) String() string   { return strconv.FormatUint(uint64(e), 10) }
func (f Fence) String() string   { return strconv.FormatUint(uint64(f), 10) }
func (v Version) String() string { return strconv.FormatUint(uint64(v), 10) }

// At identifies the shard and the state that an answer was taken from. Every answer carries
// one. Answers of one shard can be ordered by Index.
type At struct {
	Shard int
	Epoch Epoch
	Index Index
}
