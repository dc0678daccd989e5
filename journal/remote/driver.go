package remote

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
)

// Driver is one journal in an engine of others: etcd, a database, a bucket. It knows how the engine
// stores and compares, and nothing about entries, snapshots or patience.
//
// A method makes one attempt. A [Store] repeats it when no answer comes, so a request may be
// carried out twice, and also long after its method has returned. For every method that writes:
//
//   - It compares and writes in one atomic step of the engine, or what it writes excludes by itself
//     (an object that is created only if its name is free).
//   - It returns false and no error when the comparison failed. The Store then reads the [Head]:
//     the answer of an earlier attempt may be lost, and the outcome is read, never guessed.
//   - An error that wraps journal.ErrNoSpace reports that the engine has no room; the outcome is
//     read all the same. One of [Final] is an answer: the same request would get it again. Any
//     other error reports that no answer came.
//
// A write is durable when its method returns. A read returns every write that returned before the
// read began, so an engine with lagging replicas is read at its primary.
//
// What an engine needs for the comparisons of this interface:
//
//	engine                  Fence, Append, Put          Confirm
//	etcd                    one transaction             a linearizable read
//	PostgreSQL              one statement               a write: an old primary still answers reads
//	Redis, Valkey           one script                  a write, and a wait for replicas
//	Firestore, S3           create-if-absent of the     the name behind the newest record is free
//	                        name behind the newest
//	                        record
//
// Where creation alone fences, Fence may write nothing: the epoch record, which Open appends next, is then the
// fence, and an Append under a name that is taken returns false.
//
// Where a method takes the Head by, it compares what the caller knows: by holds while its owner is the newest and the
// log reaches at least to the end of its tail. The engine can have lost what it acknowledged, with a promoted replica
// or a restored backup, and an owner that has not noticed must replace and delete nothing: what the next owner begins
// from would lie above the new end. A driver of an engine that cannot lose entries may compare the owner alone.
//
// All methods may be called concurrently, except that appends follow each other.
type Driver interface {
	// Head reads how far the journal has come, as it was at one moment. It is zero where nothing
	// was written yet. The error is journal.ErrNewer for a format of a newer version, and
	// *journal.DamageError for a value that this package cannot have written.
	Head(ctx context.Context) (Head, error)

	// Fence makes to the owner if the owner is still was. The zero Owner means an empty store. With
	// moved it also marks the journal as moved.
	Fence(ctx context.Context, was, to Owner, moved bool) (bool, error)

	// Adopt takes the mark of a moved journal away if by is the owner.
	Adopt(ctx context.Context, by Owner) (bool, error)

	// Append stores a frame if by is the owner and the log ends at after; the log then ends at next.
	Append(ctx context.Context, by Owner, after, next Position, frame []byte) (bool, error)

	// Confirm reports whether by held at some moment after the call. A member of the engine that others
	// have replaced must not answer it.
	Confirm(ctx context.Context, by Head) (bool, error)

	// Frames reads at most limit appends in order, from the one that holds index from on, or from
	// the oldest one if that begins later.
	Frames(ctx context.Context, from interlock.Index, limit int) ([]Frame, error)

	// Drop deletes the oldest appends with all entries below before, as many as one step of
	// the engine should delete, if by still holds. dropped is the last index in them; 0 means that
	// there was none, and that nothing was compared.
	Drop(ctx context.Context, by Head, before interlock.Index) (dropped interlock.Index, done bool, err error)

	// Get reads a value beside the log. Its version is "" when there is none.
	Get(ctx context.Context, name string) (Value, error)

	// Put replaces the value of a name if by still holds and the value's version is was:
	// "" means that there is none, AnyVersion that it does not matter. It returns the new version.
	// The zero Head means that the store is empty. A value has at most MaxValueBytes.
	Put(ctx context.Context, by Head, name string, data []byte, was string) (version string, done bool, err error)

	// Swap is Put for a value that belongs to no owner, such as the table of servers: it compares the
	// version alone, also in an empty store, and does not take AnyVersion. Such a value proves nothing
	// about the journal.
	Swap(ctx context.Context, name string, data []byte, was string) (version string, done bool, err error)

	// Remove deletes the values with from <= name < to, compared by bytes, if by still holds.
	Remove(ctx context.Context, by Head, from, to string) (bool, error)

	// Found makes a store one with this head, and with a value. The store is empty, for the zero Owner, and then that is
	// done as a whole; or it was founded by was and has no other entries, and then it may be done in part.
	Found(ctx context.Context, was Owner, h Head, name string, data []byte) (bool, error)

	// Shard returns the driver of another shard of the same journal, over the same connections, which it
	// does not close.
	Shard(n int) Driver

	// Low reports that space runs out in the engine.
	Low(ctx context.Context) (bool, error)

	// Place returns how a person finds a name in the engine; "" means the journal as a whole.
	Place(name string) string

	// Close ends the connections.
	Close() error
}

// MaxValueBytes bounds a value, because some engines take little more.
const MaxValueBytes = chunkBytes

// AnyVersion matches every version of a value, and none.
const AnyVersion = "*"

// Value is a value beside the log.
type Value struct {
	Data    []byte
	Version string // changes with every Put; "" when there is no value
}

// Frame is one append as it is stored.
type Frame struct {
	Name  string          // how a person finds it
	First interlock.Index // the index of its first entry according to its name; 0 if the name does not contain it
	Last  interlock.Index // of its last entry, likewise
	Data  []byte
}

// Head is how far a journal has come.
type Head struct {
	Owner Owner    // the newest one
	Tail  Position // of the log
	// Moved reports that entries may have been written elsewhere, or lost with a machine: fences
	// must jump before the journal is used. A driver may see more reasons than a mark: a database
	// knows that it was restored, or that a replica was promoted.
	Moved bool
}

// Owner is one ownership of a journal: an epoch, and a word that no other owner knows.
type Owner struct {
	Epoch interlock.Epoch
	Word  string
}

// String is the stored form. That of the zero Owner is "".
func (o Owner) String() string {
	if o == (Owner{}) {
		return ""
	}
	return fmt.Sprintf("%d %s", uint64(o.Epoch), o.Word)
}

// ParseOwner reads the stored form.
func ParseOwner(text string) (o Owner, err error) {
	if text == "" {
		return o, nil
	}
	_, err = fmt.Sscanf(text, "%d %s", (*uint64)(&o.Epoch), &o.Word)
	if err != nil || o.Epoch == 0 || o.String() != text {
		return Owner{}, errors.New("it names no epoch")
	}
	return o, nil
}

// Position is an end of the log: the index of an entry, and the chain of frames up to it.
type Position struct {
	Index interlock.Index
	Chain uint32
}

// String is the stored form. That of the zero Position is "".
func (p Position) String() string {
	if p == (Position{}) {
		return ""
	}
	return fmt.Sprintf("%d %08x", uint64(p.Index), p.Chain)
}

// ParsePosition reads the stored form.
func ParsePosition(text string) (p Position, err error) {
	if text == "" {
		return p, nil
	}
	_, err = fmt.Sscanf(text, "%d %x", (*uint64)(&p.Index), &p.Chain)
	if err != nil || p.Index == 0 || p.String() != text {
		return Position{}, errors.New("it names no place in the log")
	}
	return p, nil
}

// Final marks an error as the engine's answer: the same request would get it again.
func Final(err error) error { return &finalError{err} }

type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }
