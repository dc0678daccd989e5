package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
)

// Fill fills an empty journal, as a restored backup and a migration do. It is one act, however many values it writes:
//
//	BeginFill            Fill            Holds, Holds ...       Finish
//	   │ mark: empty      │ mark           │ each shard          │ no mark
//	───▼──────────────────▼────────────────▼─────────────────────▼──► whole
//	   └ Stop: given up   └ killed: no server opens it; the same act begins anew
//
// The mark is in the directory, so that servers of all versions refuse the journal, and shows signs of life. An act
// takes a mark over that has shown none for the TTL: from its own kind, or from any if nothing was filled yet.
type Fill struct {
	at     Value
	cancel context.CancelFunc
	beats  sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	directory placement.Directory
	version   string // of the value; "" if it is not known
}

// startAct makes the directory of a new journal. It fills nothing.
const startAct = "interlock serve"

// BeginFill marks a journal that has no directory, or takes over a mark. act is what fills it, as a person types it.
// empty reports whether nothing was written to the shards. The error is remote.ErrNotEmpty if there is a journal, and
// a *placement.FillingError if another act fills it.
func BeginFill(ctx context.Context, at Value, act string, empty func(context.Context) (bool, error)) (*Fill, error) {
	d, err := placement.NewDirectory(1)
	if err != nil {
		return nil, err
	}
	mark := &placement.Filling{
		Act: act, ID: rand.Text(), Since: time.Now().UTC().Format(time.RFC3339), Empty: true,
	}
	d.Filling = mark
	f := &Fill{at: at, directory: d}
	var last placement.Filling
	for seen := time.Now(); ; {
		v, err := load(ctx, at)
		if err != nil {
			return nil, err
		}
		if v.Version != "" {
			there, err := filling(v.Data)
			switch {
			case err != nil:
				return nil, err
			case there == nil:
				return nil, remote.ErrNotEmpty
			case there.ID == mark.ID: // the answer of Swap was lost
				f.version = v.Version
				return f.begun(ctx, empty)
			case there.yields(act):
			case there.Act != act && (!there.Empty || act == startAct):
				return nil, &placement.FillingError{Filling: there.Filling}
			case there.Filling != last, time.Since(seen) < DefaultTTL:
				if there.Filling != last {
					last, seen = there.Filling, time.Now()
				}
				if !pause(ctx, DefaultTTL/looks) {
					return nil, ctx.Err()
				}
				continue
			}
			mark.Empty = there.Empty
		}
		limit, cancel := context.WithTimeout(ctx, joinTimeout)
		_, done, err := at.Swap(limit, d.Encode(), v.Version)
		cancel()
		if err != nil && !pause(ctx, retryAfter) {
			return nil, err
		}
		if done || err != nil {
			continue // the next look shows the version
		}
	}
}

// mark is a mark that was read.
type mark struct{ placement.Filling }

// yields reports whether an act need not wait for the end of this one: it was given up, or has nothing to lose.
func (m *mark) yields(act string) bool { return m.Act == "" || m.Act == startAct && act != startAct }

// filling returns the mark of a directory; nil if it has none.
func filling(data []byte) (*mark, error) {
	_, err := placement.DecodeDirectory(data)
	if f, ok := errors.AsType[*placement.FillingError](err); ok {
		return &mark{f.Filling}, nil
	}
	return nil, err
}

// begun shows signs of life, if there is nothing in the shards yet that is not this act's.
func (f *Fill) begun(ctx context.Context, empty func(context.Context) (bool, error)) (*Fill, error) {
	keep, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f.cancel = cancel
	f.beats.Go(func() {
		for pause(keep, beatEvery(DefaultTTL)) {
			_ = f.change(keep, func(*placement.Directory) {})
		}
	})
	if !f.directory.Filling.Empty {
		return f, nil
	}
	ok, err := empty(ctx)
	if err == nil && !ok {
		err = remote.ErrNotEmpty
	}
	if err != nil {
		f.Stop(ctx)
		return nil, err
	}
	return f, nil
}

// Fill stores the directory of the journal. From then on only the same act can end this one.
func (f *Fill) Fill(ctx context.Context, d placement.Directory) error {
	return f.change(ctx, func(at *placement.Directory) {
		d.Filling = at.Filling
		d.Filling.Empty = false
		*at = d
	})
}

// Holds returns nil if the mark was this act's at a moment after the call.
func (f *Fill) Holds(ctx context.Context) error {
	return f.change(ctx, func(*placement.Directory) {})
}

// Finish removes the mark: the journal is whole.
func (f *Fill) Finish(ctx context.Context) error {
	f.quiet()
	return f.change(ctx, func(d *placement.Directory) { d.Filling = nil })
}

// Stop ends the signs of life without an end of the act. If nothing was filled, any other may begin at once.
func (f *Fill) Stop(ctx context.Context) {
	f.quiet()
	f.mu.Lock()
	given := f.directory.Filling != nil && f.directory.Filling.Empty // not after Finish
	f.mu.Unlock()
	if given {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), joinTimeout)
		defer cancel()
		_ = f.change(ctx, func(d *placement.Directory) { d.Filling.Act = "" })
	}
}

func (f *Fill) quiet() {
	f.cancel()
	f.beats.Wait()
}

// fillPatience bounds a change of the mark.
const fillPatience = 8 * time.Second

// change stores the directory with a change and a new sign of life. The error is a *placement.FillingError if
// another act has taken over.
func (f *Fill) change(ctx context.Context, change func(*placement.Directory)) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, fillPatience)
	defer cancel()
	id, next := f.directory.Filling.ID, f.directory
	own := *f.directory.Filling
	next.Filling = &own
	next.Filling.Beat++
	change(&next)
	for tried := false; ; tried = true {
		if f.version == "" {
			v, err := load(ctx, f.at)
			if err == nil && v.Version == "" {
				err = remote.ErrNotEmpty
			}
			if err == nil {
				var there *mark
				if there, err = filling(v.Data); err == nil && there == nil && tried && next.Filling == nil {
					return nil // the answer was lost, and only this act removes its mark
				} else if err == nil && there == nil {
					return remote.ErrNotEmpty
				} else if err == nil && there.ID != id {
					return &placement.FillingError{Filling: there.Filling}
				}
			}
			if err == nil {
				f.version = v.Version
			} else if !pause(ctx, retryAfter) {
				return err
			}
			continue
		}
		limit, cancel := context.WithTimeout(ctx, joinTimeout)
		version, done, err := f.at.Swap(limit, next.Encode(), f.version)
		cancel()
		f.version = version
		if err == nil && done {
			f.directory = next
			return nil
		}
		f.version = ""
		if err != nil && !pause(ctx, retryAfter) {
			return err
		}
	}
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
