package oncejournal

import (
	"context"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal/remote"
)

// readAtOnce bounds the records that are read, and deleted, in one request of several.
const readAtOnce = 100

// Frames implements remote.Driver.
func (d *driver) Frames(ctx context.Context, from interlock.Index, limit int) (list []remote.Frame, err error) {
	end := d.known()
	if end.number == 0 || end.head.Tail.Index < from {
		if end, err = d.current(ctx); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	next := d.next
	d.mu.Unlock()
	if next.index != from || next.number == 0 {
		b, err := d.bounds(ctx)
		if err != nil {
			return nil, err
		}
		if next.number, err = d.locate(ctx, b.first, end.number, from); err != nil {
			return nil, err
		}
	}
	at := next.number
	for at <= end.number && len(list) < limit {
		var names []string
		for n := at; n <= end.number && len(names) < min(limit-len(list), readAtOnce); n++ {
			names = append(names, recordName(n))
		}
		got, err := d.objects.read(ctx, names, true)
		if err != nil {
			return nil, err
		}
		for i := range got {
			if !got[i].exists() {
				d.goOn(place{})
				return list, nil // the Store finds out why
			}
			r, err := d.parse(at, &got[i])
			if err != nil {
				return nil, err
			}
			if r.kind == kindAppend {
				list = append(list, remote.Frame{Name: d.Place(got[i].name), Last: r.head.Tail.Index, Data: got[i].data})
			}
			at++
		}
	}
	if len(list) > 0 {
		d.goOn(place{at, list[len(list)-1].Last + 1})
	}
	return list, nil
}

// goOn notes where a reader that goes on will do so.
func (d *driver) goOn(p place) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next = p
}

// Drop implements remote.Driver. It moves the begin of the log, and then deletes what is before it.
func (d *driver) Drop(
	ctx context.Context, by remote.Head, before interlock.Index,
) (dropped interlock.Index, done bool, err error) {
	b, err := d.bounds(ctx)
	if err != nil {
		return 0, false, err
	}
	first, err := d.locate(ctx, b.first, d.known().number, before)
	if err != nil {
		return 0, false, err
	}
	first = min(first, b.first+readAtOnce)
	if first == b.first {
		return 0, false, nil
	}
	last, err := d.heads(ctx, first-1)
	if err != nil {
		return 0, false, err
	}
	if last[0].number == 0 {
		return 0, false, errMoved
	}
	if dropped = last[0].head.Tail.Index; dropped == 0 {
		return 0, false, nil // no entry lies before
	}
	d.mu.Lock()
	swept := max(b.swept, min(d.sweptTo, b.first))
	d.mu.Unlock()
	_, done, err = d.putOwned(
		ctx, by.Owner, object{name: beginName, head: fmt.Sprintf("%d %d", first, swept), data: fresh(nil)}, b.version,
	)
	if err != nil || !done {
		return dropped, false, err
	}
	// From here on the records are not in the log. What is left of them now is deleted next time.
	if d.sweep(ctx, swept, first) == nil {
		d.mu.Lock()
		d.sweptTo = max(d.sweptTo, first)
		d.mu.Unlock()
	}
	return dropped, true, nil
}

// sweep deletes the records of a range, except those that begin an ownership.
func (d *driver) sweep(ctx context.Context, from, to uint64) error {
	for from < to {
		var names []string
		for ; from < to && len(names) < readAtOnce; from++ {
			names = append(names, recordName(from))
		}
		list, err := d.objects.read(ctx, names, false)
		if err != nil {
			return err
		}
		var old []object
		for i := range list {
			if !list[i].exists() {
				continue
			}
			if r, err := parseRecord(0, list[i].head); err == nil && !r.begins() {
				old = append(old, list[i])
			}
		}
		if err := d.objects.remove(ctx, old); err != nil {
			return err
		}
	}
	return nil
}
