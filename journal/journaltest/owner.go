package journaltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
)

func reopen(b *trial) {
	var last interlock.Epoch
	want := []string{}
	for n := range 4 {
		j := b.own()
		want = append(want, "")
		b.wantEntries(j, want...)
		got := b.read(j, 1)
		if record := got[len(got)-1]; record.Epoch != j.Epoch() {
			b.Fatalf("the epoch record has epoch %d, the journal %d", record.Epoch, j.Epoch())
		}
		if j.Epoch() <= last {
			b.Fatalf("epoch %d after %d", j.Epoch(), last)
		}
		for i, e := range got[1:] {
			if e.Epoch < got[i].Epoch {
				b.Fatalf("entry %d has epoch %d after epoch %d", e.Index, e.Epoch, got[i].Epoch)
			}
		}
		last = j.Epoch()
		for i := range n {
			text := fmt.Sprint("epoch ", n, " entry ", i)
			b.append(j, text)
			want = append(want, text)
		}
		b.close(j)
	}
}

func closedIsUnusable(b *trial) {
	j := b.own()
	b.append(j, "a")
	b.close(j)
	ctx := b.Context()
	b.wantError("append", j.Append(ctx, 3, raw("b")), journal.ErrMisuse)
	b.wantError("barrier", j.Barrier(ctx), journal.ErrMisuse)
	b.wantError("read", j.Read(ctx, 1, func(journal.Entry) error { return nil }), journal.ErrMisuse)
	b.wantError("save snapshot", j.SaveSnapshot(ctx, 1, text("s")), journal.ErrMisuse)
	b.wantError("truncate", j.Truncate(ctx, 1), journal.ErrMisuse)
	_, _, err := j.Snapshot(ctx)
	b.wantError("snapshot", err, journal.ErrMisuse)
	if err := j.Close(); err != nil {
		b.Errorf("second close: %v", err)
	}
	b.wantEntries(b.own(), "", "a", "")
}

// Laws 3, 6 and 7.
func oldOwnerIsFenced(b *trial) {
	ctx := b.Context()
	old := b.own()
	b.append(old, "old 1", "old 2")
	if err := old.SaveSnapshot(ctx, 3, text("old state")); err != nil {
		b.Fatal(err)
	}
	j := b.takeOver(old)
	if j.Epoch() <= old.Epoch() {
		b.Errorf("epoch %d after %d", j.Epoch(), old.Epoch())
	}
	for range 2 {
		b.wantPast("append at its tail", old.Append(ctx, 4, raw("ghost")))
		b.wantPast("append at the new tail", old.Append(ctx, j.Tail()+1, raw("ghost")))
		b.wantPast("barrier", old.Barrier(ctx))
		b.wantPast("save snapshot", old.SaveSnapshot(ctx, 3, text("ghost state")))
		b.wantPast("truncate", old.Truncate(ctx, 2))
	}
	b.append(j, "new")
	b.wantPast("append", old.Append(ctx, 4, raw("ghost")))
	b.wantEntries(j, "", "old 1", "old 2", "", "new")
	b.wantSnapshot(j, 3, "old state")
	if err := j.Barrier(ctx); err != nil {
		b.Errorf("barrier of the new owner: %v", err)
	}
	if err := old.Close(); err != nil {
		b.Errorf("close of the old owner: %v", err)
	}
	b.append(j, "newer")
}

// Laws 3 and 6: the first operation of a past owner is refused because of the stored state, and
// not because the owner has noticed its end before.
func oldOwnerIsFencedAtOnce(b *trial) {
	ctx := b.Context()
	for name, try := range map[string]func(old journal.Journal) error{
		"append":        func(old journal.Journal) error { return old.Append(ctx, old.Tail()+1, raw("ghost")) },
		"barrier":       func(old journal.Journal) error { return old.Barrier(ctx) },
		"save snapshot": func(old journal.Journal) error { return old.SaveSnapshot(ctx, old.Tail(), text("ghost state")) },
		"truncate":      func(old journal.Journal) error { return old.Truncate(ctx, old.First()+1) },
	} {
		old := b.own()
		b.append(old, "old")
		b.save(old, old.Tail(), "old state")
		at, first := old.Tail(), old.First()
		j := b.takeOver(old)
		b.wantPast(name, try(old))
		b.wantSnapshot(j, at, "old state")
		if j.First() != first {
			b.Fatalf("%s by a past owner: first is %d, want %d", name, j.First(), first)
		}
		b.read(j, first)
		b.close(old)
		b.close(j)
	}
}

// Laws 2 to 5 under a race: an owner appends for as long as it can while another one opens. Its
// acknowledged entries are there, in order, and nothing of it stands behind the new epoch's
// record.
func takeoverDuringAppends(b *trial) {
	for range 5 {
		old := b.own()
		reached, result := make(chan struct{}), make(chan interlock.Index, 1)
		go func() {
			going := sync.OnceFunc(func() { close(reached) })
			defer going()
			for i := 0; ; i++ {
				first := old.Tail() + 1
				if err := old.Append(b.Context(), first, raw(fmt.Sprint(first))); err != nil {
					result <- first - 1 // the last index that was acknowledged
					return
				}
				if i == 3 {
					going()
				}
			}
		}()
		<-reached
		j := b.takeOver(old)
		tail := j.Tail()
		acknowledged := <-result
		b.append(j, "new")
		got := b.read(j, 1)
		if acknowledged >= tail {
			b.Fatalf("index %d was acknowledged to the old owner, the new one's epoch record is %d", acknowledged, tail)
		}
		for i, e := range got {
			switch {
			case e.Index != interlock.Index(i+1):
				b.Fatalf("entry %d has index %d", i+1, e.Index)
			case e.Epoch == old.Epoch() && e.Index >= tail:
				b.Fatalf("entry %d of the old epoch stands behind record %d", e.Index, tail)
			case e.Epoch == old.Epoch() && len(e.Data) > 0 && string(e.Data) != fmt.Sprint(e.Index):
				b.Fatalf("entry %d is %q", e.Index, e.Data)
			}
		}
		b.close(old)
		b.close(j)
	}
}

// Law 4: whatever became of an append that was given up, it does not change once
// a later Open has returned.
func noGhosts(b *trial) {
	old := b.own()
	b.append(old, "sure")
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	err := old.Append(ctx, 3, raw("perhaps 1", "perhaps 2"))
	j := b.takeOver(old)
	first := texts(b.read(j, 1))
	switch len(first) {
	case 3: // record, sure, record
		if err == nil {
			b.Fatalf("an acknowledged append is not there: %v", first)
		}
	case 5: // all of it is there
	default:
		b.Fatalf("half of an append is there: %v", first)
	}
	for range 3 {
		b.append(j, "more")
		if now := texts(b.read(j, 1)); fmt.Sprint(now[:len(first)]) != fmt.Sprint(first) {
			b.Fatalf("history changed from %v to %v", first, now)
		}
		j = b.takeOver(j)
	}
}

// text writes s as the state of a snapshot.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

var errHalfway = errors.New("halfway")
