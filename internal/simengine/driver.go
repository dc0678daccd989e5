package simengine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Driver is how a server reaches the journal of one shard in the engine.
type Driver struct {
	// Fault is called with each request, by its method of remote.Driver in small letters, and decides what becomes of
	// it. nil: nothing goes wrong. It is set before the first request, or between two.
	Fault func(method string) Fault

	*shard
}

// shard is the journal of one shard, which any number of servers use, also at once.
type shard struct {
	creates bool

	mu     sync.Mutex // guards the fields below
	state  state
	low    bool
	late   []func() bool
	others map[int]*shard // by number, of shard 0
}

// state is what the engine has stored.
type state struct {
	head    remote.Head // of an engine that creates: of the last record that was dropped
	moved   bool
	log     map[interlock.Index]Record
	values  map[string]remote.Value
	version int
}

// Record is a stored append.
type Record struct {
	By   remote.Owner
	End  remote.Position
	Data []byte
}

// Fault is what becomes of a request.
type Fault int

const (
	None     Fault = iota
	Lost           // it does not arrive
	Answered       // it is carried out, and the answer is lost
	Late           // it is carried out by a later Land
	Full           // it is refused, because there is no room
)

// ErrNoAnswer is the error of a request without an answer.
var ErrNoAnswer = errors.New("no answer")

// New makes an engine, and returns its shard 0. With creates it can do one thing only, as a bucket: create an append
// under a name that is free.
func New(creates bool) *Driver { return &Driver{shard: newShard(creates)} }

func newShard(creates bool) *shard {
	return &shard{
		creates: creates, state: state{log: map[interlock.Index]Record{}, values: map[string]remote.Value{}},
		others: map[int]*shard{},
	}
}

// Via returns another way to the same shard, with faults of its own.
func (d *Driver) Via(fault func(method string) Fault) *Driver { return &Driver{fault, d.shard} }

// Shard implements remote.Driver.
func (d *Driver) Shard(n int) remote.Driver {
	if n == 0 {
		return d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.others[n] == nil {
		d.others[n] = newShard(d.creates)
	}
	return &Driver{d.Fault, d.others[n]}
}

// request carries a change out, as far as the fault permits.
func (d *Driver) request(ctx context.Context, method string, change func() bool) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	f := None
	if d.Fault != nil {
		f = d.Fault(method)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch f {
	case Lost:
		return false, ErrNoAnswer
	case Late:
		d.late = append(d.late, change)
		return false, ErrNoAnswer
	case Full:
		return false, journal.ErrNoSpace
	}
	done := change()
	if f == Answered {
		return false, ErrNoAnswer
	}
	return done, nil
}

// Land carries out the late request that was sent first. It reports whether there was one, and whether it changed
// anything.
func (d *shard) Land() (landed, done bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.late) == 0 {
		return false, false
	}
	change := d.late[0]
	d.late = d.late[1:]
	return true, change()
}

// Mark returns a function that takes the shard back to its present state, as a replica that is promoted with what it
// has. With known the engine itself reports what happened, as a database with a number for each promotion does. The
// function returns how far the log reached before and reaches then.
func (d *shard) Mark() (back func(known bool) (before, after interlock.Index)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	was := d.state
	was.log, was.values = maps.Clone(was.log), maps.Clone(was.values)
	return func(known bool) (before, after interlock.Index) {
		d.mu.Lock()
		defer d.mu.Unlock()
		before = d.current().Tail.Index
		version := d.state.version // a version is never used twice
		d.state = was
		d.state.log, d.state.values = maps.Clone(was.log), maps.Clone(was.values)
		d.state.version = version
		d.state.moved = d.state.moved || known
		return before, d.current().Tail.Index
	}
}

// Moved marks the shard as one that may have lost entries, as Mark's function does with known.
func (d *shard) Moved() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state.moved = true
}

// SetLow sets whether space runs out.
func (d *shard) SetLow(low bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.low = low
}

// Log is the stored appends by the index of the first entry. Its user may change them while nothing else uses the
// engine.
func (d *shard) Log() map[interlock.Index]Record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state.log
}

// Names lists the values below a prefix.
func (d *shard) Names(prefix string) (list []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for name := range d.state.values {
		if strings.HasPrefix(name, prefix) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// current needs mu. Where creation alone fences, the last append has the owner and the tail.
func (d *shard) current() remote.Head {
	h := d.state.head
	if !d.creates {
		return h
	}
	for {
		next, ok := d.state.log[h.Tail.Index+1]
		if !ok {
			return h
		}
		h.Owner, h.Tail = next.By, next.End
	}
}

func (d *shard) owned(by remote.Owner) bool { return d.current().Owner == by }

func (d *shard) holds(by remote.Head) bool {
	return d.owned(by.Owner) && d.current().Tail.Index >= by.Tail.Index
}

// Head implements remote.Driver.
func (d *Driver) Head(ctx context.Context) (h remote.Head, err error) {
	_, err = d.request(ctx, "head", func() bool {
		h = d.current()
		h.Moved = d.state.moved
		return true
	})
	return h, err
}

// Fence implements remote.Driver.
func (d *Driver) Fence(ctx context.Context, was, to remote.Owner, moved bool) (bool, error) {
	return d.request(ctx, "fence", func() bool {
		if d.creates {
			return true
		}
		if d.state.head.Owner != was {
			return false
		}
		d.state.head.Owner = to
		d.state.moved = d.state.moved || moved
		return true
	})
}

// Adopt implements remote.Driver.
func (d *Driver) Adopt(ctx context.Context, by remote.Owner) (bool, error) {
	return d.request(ctx, "adopt", func() bool {
		if !d.owned(by) {
			return false
		}
		d.state.moved = false
		return true
	})
}

// Append implements remote.Driver.
func (d *Driver) Append(ctx context.Context, by remote.Owner, after, next remote.Position, frame []byte) (bool, error) {
	frame = slices.Clone(frame)
	return d.request(ctx, "append", func() bool {
		_, taken := d.state.log[after.Index+1]
		if d.creates && after.Index < d.state.head.Tail.Index {
			return false // a name excludes for ever, also when what had it was dropped
		}
		if taken || !d.creates && (d.state.head.Owner != by || d.state.head.Tail != after) {
			return false
		}
		d.state.log[after.Index+1] = Record{by, next, frame}
		if !d.creates {
			d.state.head.Tail = next
		} else if len(d.state.log) == 1 {
			d.state.head.Tail = after
		}
		return true
	})
}

// Confirm implements remote.Driver.
func (d *Driver) Confirm(ctx context.Context, by remote.Head) (bool, error) {
	return d.request(ctx, "confirm", func() bool { return d.holds(by) })
}

// Frames implements remote.Driver.
func (d *Driver) Frames(ctx context.Context, from interlock.Index, limit int) (list []remote.Frame, err error) {
	_, err = d.request(ctx, "frames", func() bool {
		for _, first := range slices.Sorted(maps.Keys(d.state.log)) {
			if r := d.state.log[first]; r.End.Index >= from && len(list) < limit {
				list = append(list, remote.Frame{Name: fmt.Sprint("log/", first), First: first, Data: r.Data})
			}
		}
		return true
	})
	return list, err
}

// Drop implements remote.Driver. It deletes one append at a time.
func (d *Driver) Drop(
	ctx context.Context, by remote.Head, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	done, err = d.request(ctx, "drop", func() bool {
		if !d.holds(by) {
			dropped = 1
			return false
		}
		if len(d.state.log) == 0 {
			return true
		}
		first := slices.Min(slices.Collect(maps.Keys(d.state.log)))
		r := d.state.log[first]
		if r.End.Index >= before {
			return true
		}
		dropped = r.End.Index
		if d.creates {
			d.state.head = remote.Head{Owner: r.By, Tail: r.End}
		}
		delete(d.state.log, first)
		return true
	})
	return dropped, done, err
}

// Get implements remote.Driver.
func (d *Driver) Get(ctx context.Context, name string) (v remote.Value, err error) {
	_, err = d.request(ctx, "get", func() bool { v = d.state.values[name]; return true })
	return v, err
}

// Put implements remote.Driver.
func (d *Driver) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	data = slices.Clone(data)
	done, err = d.request(ctx, "put", func() bool {
		if !d.holds(by) || was != remote.AnyVersion && d.state.values[name].Version != was {
			return false
		}
		version = d.set(name, data)
		return true
	})
	return version, done, err
}

// Swap implements remote.Driver.
func (d *Driver) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	data = slices.Clone(data)
	done, err = d.request(ctx, "swap", func() bool {
		if d.state.values[name].Version != was {
			return false
		}
		version = d.set(name, data)
		return true
	})
	return version, done, err
}

// set needs mu.
func (d *shard) set(name string, data []byte) string {
	d.state.version++
	v := strconv.Itoa(d.state.version)
	d.state.values[name] = remote.Value{Data: data, Version: v}
	return v
}

// Remove implements remote.Driver.
func (d *Driver) Remove(ctx context.Context, by remote.Head, from, to string) (bool, error) {
	return d.request(ctx, "remove", func() bool {
		if !d.holds(by) {
			return false
		}
		maps.DeleteFunc(d.state.values, func(name string, _ remote.Value) bool { return from <= name && name < to })
		return true
	})
}

// Found implements remote.Driver.
func (d *Driver) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	return d.request(ctx, "found", func() bool {
		if !d.owned(was) {
			return false
		}
		d.state.head, d.state.moved = h, h.Moved
		d.set(name, slices.Clone(data))
		return true
	})
}

// Low implements remote.Driver.
func (d *Driver) Low(context.Context) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.low, nil
}

// Place implements remote.Driver.
func (d *Driver) Place(name string) string { return "simulated/" + name }

// Close implements remote.Driver.
func (d *Driver) Close() error { return nil }
