package oncejournal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// driver is one journal in a store.
type driver struct {
	objects objects
	home    string
	gather  time.Duration // at least between the beginnings of two barriers

	turn chan struct{} // one creates a record at a time

	checked *atomic.Bool // the store was checked, for all its shards

	mu      sync.Mutex // guards the fields below
	newest  record     // the newest one that was seen
	looked  time.Time  // when the last barrier began
	next    place      // where the last reader went on
	sweptTo uint64     // records below it were deleted by this driver
}

// place is a point in the log.
type place struct {
	number uint64
	index  interlock.Index // the first one in this record
}

var _ remote.Driver = (*driver)(nil)

func newDriver(o objects, gather time.Duration) *driver {
	sum := sha256.Sum256([]byte(o.where()))
	return &driver{
		objects: o, home: hex.EncodeToString(sum[:8]), gather: gather, turn: make(chan struct{}, 1),
		checked: &atomic.Bool{},
	}
}

// Shard implements remote.Driver.
func (d *driver) Shard(n int) remote.Driver {
	other := newDriver(d.objects.shard(n), d.gather)
	other.checked = d.checked
	return other
}

// Close implements remote.Driver.
func (d *driver) Close() error {
	d.objects.close()
	return nil
}

// Place implements remote.Driver.
func (d *driver) Place(name string) string { return d.objects.place(name) }

// Low implements remote.Driver. The room of these stores is not visible, and not bounded.
func (d *driver) Low(context.Context) (bool, error) { return false, nil }

func (d *driver) known() record {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.newest
}

func (d *driver) learn(r record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.number > d.newest.number {
		d.newest = r
	}
}

// forget makes the next Head look for the newest record from where the log begins.
func (d *driver) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.newest, d.next = record{}, place{}
}

// start returns the newest record that is known, and looks for it if none is.
func (d *driver) start(ctx context.Context) (record, error) {
	if at := d.known(); at.number > 0 {
		return at, nil
	}
	return d.current(ctx)
}

// farBehind is how many records ahead of a known one are read before the end is looked for.
const farBehind = 8

// follow returns the newest record, at or behind one that exists. It looks ever further ahead, to overtake an owner that
// appends meanwhile. What it knows may be of an ownership long ago.
func (d *driver) follow(ctx context.Context, at record) (record, error) {
	for ahead := uint64(1); ; ahead = min(2*ahead, readAtOnce) {
		if ahead == farBehind {
			end, err := d.find(ctx, at.number)
			if err != nil || end.number == 0 { // it was truncated meanwhile
				return at, err
			}
			d.learn(end)
			at = end
		}
		var numbers []uint64
		for i := range ahead {
			numbers = append(numbers, at.number+1+i)
		}
		list, err := d.heads(ctx, numbers...)
		if err != nil {
			return at, err
		}
		for i := range list {
			if list[i].number == 0 {
				return at, nil
			}
			at = list[i]
			d.learn(at)
		}
	}
}

// Head implements remote.Driver.
func (d *driver) Head(ctx context.Context) (h remote.Head, err error) {
	if err := d.check(ctx); err != nil {
		return h, err
	}
	r, err := d.current(ctx)
	if err != nil || r.number == 0 {
		return h, err
	}
	h = r.head
	h.Moved = h.Moved || r.home != d.home
	return h, nil
}

// check lets the store check itself, once.
func (d *driver) check(ctx context.Context) error {
	if d.checked.Load() {
		return nil
	}
	err := d.objects.check(ctx)
	if err == nil {
		d.checked.Store(true)
	}
	return err
}

// current returns the newest record; its number is 0 in an empty store.
func (d *driver) current(ctx context.Context) (record, error) {
	for {
		at, more := d.known(), true // more: there may be records behind at
		if at.number > 0 {
			list, err := d.heads(ctx, at.number, at.number+1)
			if err != nil {
				return at, err
			}
			if list[0].number == 0 {
				d.forget() // the log was truncated, or the store has gone back to an older state
				continue
			}
			if more = list[1].number > 0; more {
				at = list[1]
				d.learn(at)
			}
		} else {
			b, err := d.bounds(ctx)
			if err != nil {
				return at, err
			}
			if at, err = d.find(ctx, b.first); err != nil {
				return at, err
			}
			d.learn(at)
		}
		if more {
			var err error
			if at, err = d.follow(ctx, at); err != nil {
				return at, err
			}
		}
		// A record below the begin may be one that was created late, under a name that had been freed.
		b, err := d.bounds(ctx)
		switch {
		case err != nil:
			return at, err
		case at.number >= b.first:
			return at, nil
		case at.number == 0 && b.first == 1:
			return at, nil
		case at.number == 0:
			return at, d.absent(ctx, b)
		}
		d.forget()
	}
}

// absent returns why nothing was found from where the log begins.
func (d *driver) absent(ctx context.Context, b bounds) error {
	again, err := d.bounds(ctx)
	switch {
	case err != nil:
		return err
	case again != b:
		return errMoved
	}
	return &journal.DamageError{File: d.Place(recordName(b.first)), Reason: "the log begins here, and it is missing"}
}

// extend creates the record behind the newest one. link makes it of that one; it returns false if it does not want to
// continue it. The result is false if another record took its place.
func (d *driver) extend(ctx context.Context, data []byte, link func(was record) (record, bool)) (bool, error) {
	select {
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	at, err := d.start(ctx)
	for err == nil {
		next, ok := link(at)
		if ok {
			next.number = at.number + 1
			_, done, err := d.objects.put(ctx, object{name: recordName(next.number), head: next.String(), data: data}, "", "")
			if err != nil {
				return false, err
			}
			if done {
				return true, d.claim(ctx, next)
			}
		}
		// An earlier attempt was carried out, or another owner came first.
		was := at.number
		if at, err = d.follow(ctx, at); at.number == was {
			break
		}
	}
	return false, err
}

// claim notes a record that was created. One that begins an ownership may stand under a name that a truncation has
// freed: then it is not in the log.
func (d *driver) claim(ctx context.Context, r record) error {
	if r.begins() {
		b, err := d.bounds(ctx)
		if err != nil {
			return err
		}
		if r.number < b.first {
			d.forget()
			return fmt.Errorf("record %d was created late, the log begins at %d: %w", r.number, b.first, errMoved)
		}
	}
	d.learn(r)
	return nil
}

// Fence implements remote.Driver.
func (d *driver) Fence(ctx context.Context, was, to remote.Owner, moved bool) (bool, error) {
	return d.extend(ctx, nil, func(r record) (record, bool) {
		head := remote.Head{Owner: to, Tail: r.head.Tail, Moved: r.head.Moved || moved}
		next := record{kind: kindOwner, head: head, home: r.home}
		if r.number == 0 {
			next.home = d.home
		}
		return next, r.head.Owner == was
	})
}

// Found implements remote.Driver. A journal that is founded again begins with its new record: what was before it may
// end at a higher index.
func (d *driver) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (bool, error) {
	again := was != remote.Owner{}
	if again {
		_, done, err := d.putOwned(ctx, was, object{name: valueName(name), data: fresh(data)}, remote.AnyVersion)
		if err != nil {
			return false, err
		}
		if !done { // another founded it, or an earlier attempt of this request
			at, err := d.current(ctx)
			if err != nil || at.kind != kindFounded || at.head.Owner != h.Owner {
				return false, err
			}
			return d.beginAt(ctx, at.number)
		}
	}
	done, err := d.extend(ctx, append([]byte(name+"\n"), data...), func(r record) (record, bool) {
		return record{kind: kindFounded, head: h, home: d.home},
			!again && r.number == 0 || again && r.kind == kindFounded && r.head.Owner == was
	})
	if err != nil || !done || !again {
		return done, err
	}
	return d.beginAt(ctx, d.known().number)
}

// beginAt lets the log begin with a record.
func (d *driver) beginAt(ctx context.Context, number uint64) (bool, error) {
	b, err := d.bounds(ctx)
	if err != nil || b.first >= number {
		return err == nil, err
	}
	_, done, err := d.objects.put(
		ctx, object{name: beginName, head: fmt.Sprintf("%d %d", number, b.swept), data: fresh(nil)}, b.version, "",
	)
	return done, err
}

// Adopt implements remote.Driver.
func (d *driver) Adopt(ctx context.Context, by remote.Owner) (bool, error) {
	return d.extend(ctx, nil, func(r record) (record, bool) {
		return record{kind: kindAdopted, head: remote.Head{Owner: by, Tail: r.head.Tail}, home: d.home}, r.head.Owner == by
	})
}

// Append implements remote.Driver.
func (d *driver) Append(
	ctx context.Context, by remote.Owner, after, next remote.Position, frame []byte,
) (bool, error) {
	return d.extend(ctx, frame, func(r record) (record, bool) {
		return record{kind: kindAppend, head: remote.Head{Owner: by, Tail: next, Moved: r.head.Moved}, home: r.home},
			r.head.Owner == by && r.head.Tail == after
	})
}

// Confirm implements remote.Driver.
func (d *driver) Confirm(ctx context.Context, by remote.Head) (bool, error) {
	if err := d.pace(ctx); err != nil {
		return false, err
	}
	at, err := d.start(ctx)
	if err != nil || at.number == 0 {
		return false, err
	}
	list, err := d.heads(ctx, at.number, at.number+1)
	if err != nil {
		return false, err
	}
	if list[0].number != at.number {
		d.forget() // the store has gone back to an older state
		return false, nil
	}
	if list[1].number != 0 {
		d.learn(list[1])
		if at, err = d.follow(ctx, list[1]); err != nil {
			return false, err
		}
	}
	return at.head.Owner == by.Owner && at.head.Tail.Index >= by.Tail.Index, nil
}

// pace waits until a barrier may begin: those that wait meanwhile share it.
func (d *driver) pace(ctx context.Context) error {
	d.mu.Lock()
	now := time.Now()
	at := d.looked.Add(d.gather)
	if at.Before(now) {
		at = now
	}
	d.looked = at
	d.mu.Unlock()
	if !at.After(now) {
		return nil
	}
	timer := time.NewTimer(at.Sub(now))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
