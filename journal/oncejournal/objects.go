package oncejournal

import (
	"context"

	"github.com/interlockdev/interlock/journal"
)

// objects is a store of named objects. A method makes one attempt; an error means what it does in remote.Driver. All
// may be called concurrently. A read returns every write that returned before the read began.
type objects interface {
	// where names the journal, for all servers alike.
	where() string

	// shard returns the objects of another shard, over the same connections.
	shard(n int) objects

	// check refuses a store that cannot keep a journal.
	check(ctx context.Context) error

	// put stores an object if the one of its name has the version was: "" means that there is none, and
	// remote.AnyVersion that it does not matter. If free is not "", no object of that name may exist either. It
	// returns the new version, and false if a comparison failed.
	put(ctx context.Context, o object, was, free string) (version string, done bool, err error)

	// read returns the objects of these names, in their order. One that does not exist has no version. Unless whole
	// is set, the data may be missing.
	read(ctx context.Context, names []string, whole bool) ([]object, error)

	// list returns the names that begin with a prefix.
	list(ctx context.Context, prefix string) ([]string, error)

	// remove deletes objects as they were read. One that does not exist is no error.
	remove(ctx context.Context, list []object) error

	// place returns how a person finds a name.
	place(name string) string

	close()
}

// object is a named value. Objects below "log/" never change.
type object struct {
	name    string
	head    string // at most 200 characters of ASCII, which can be read without the data
	data    []byte
	version string // changes with every write; "" when there is no object
	parts   int    // what the store has it in, beyond its name; only the store knows
}

func (o *object) exists() bool { return o.version != "" }

func damaged(o objects, name, reason string) error {
	return &journal.DamageError{File: o.place(name), Reason: reason}
}
