package filejournal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

var crashOptions = Options{SegmentBytes: 4 << 10, ReserveBytes: 4 << 10, inline: true}

// ledger remembers what a workload was told, and what it does not know.
type ledger struct {
	known    []string // entry of index i+1; "" is an epoch record
	maybe    []string // the append under way: whole or not at all
	opening  bool     // an epoch record may follow
	snapshot interlock.Index
	saving   interlock.Index // the snapshot under way
	truncate interlock.Index // the highest truncation asked for
	adopted  bool            // a first Open returned, so the identity is durable
}

func (l *ledger) tail() interlock.Index { return interlock.Index(len(l.known)) }

func (l *ledger) open(d *simdisk.Disk) (*Journal, error) {
	l.opening = true
	j, err := open(context.Background(), d, "", crashOptions)
	if err != nil {
		return nil, err
	}
	l.opening, l.adopted = false, true
	l.known = append(l.known, "")
	return j, nil
}

func (l *ledger) append(j *Journal, n, size int) error {
	var group [][]byte
	for i := range n {
		text := fmt.Sprintf("entry %d of %d ", int(l.tail())+i+1, size)
		text = strings.Repeat(text, size/len(text)+1)[:size]
		l.maybe = append(l.maybe, text)
		group = append(group, []byte(text))
	}
	if err := j.Append(context.Background(), l.tail()+1, group); err != nil {
		return err
	}
	l.known, l.maybe = append(l.known, l.maybe...), nil
	return nil
}

func stateAt(at interlock.Index) string {
	return strings.Repeat(fmt.Sprintf("state after %d\n", at), 20)
}

func (l *ledger) save(j *Journal, at interlock.Index) error {
	l.saving = at
	err := j.SaveSnapshot(context.Background(), at, func(w io.Writer) error {
		_, err := io.WriteString(w, stateAt(at))
		return err
	})
	if err == nil {
		l.snapshot, l.saving = at, 0
	}
	return err
}

func (l *ledger) truncateBefore(j *Journal, before interlock.Index) error {
	l.truncate = before
	return j.Truncate(context.Background(), before)
}

// work is a small life of a journal: it rotates, saves, truncates, closes and opens
// again. It stops at the first error.
func (l *ledger) work(d *simdisk.Disk) error {
	j, err := l.open(d)
	if err != nil {
		return err
	}
	steps := []func() error{
		func() error { return l.append(j, 1, 10) },
		func() error { return l.append(j, 3, 700) },
		func() error { return l.save(j, 2) },
		func() error { return l.append(j, 2, 1500) }, // rotates
		func() error { return l.append(j, 1, 6000) }, // larger than a segment
		func() error { return l.save(j, 7) },
		func() error { return l.truncateBefore(j, 8) },
		func() error { return l.append(j, 5, 100) },
		func() error { return l.save(j, 11) },
		func() error { return l.truncateBefore(j, 12) },
		func() error { return j.Close() },
		func() error { j, err = l.open(d); return err },
		func() error { return l.append(j, 4, 333) },
		func() error { return l.append(j, 1, 3000) },
		func() error { return l.save(j, l.tail()) },
		func() error { return l.truncateBefore(j, l.tail()) },
		func() error { return l.append(j, 1, 1) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// check opens the disk and compares it with what the ledger knows. What it found
// is known from then on. The journal is left open.
func (l *ledger) check(d *simdisk.Disk) (*Journal, error) {
	j, err := open(context.Background(), d, "", crashOptions)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	if l.adopted && j.Copied() {
		return nil, fmt.Errorf("it says that it was copied")
	}
	if limit := max(1, l.truncate); j.First() > limit {
		return nil, fmt.Errorf("first is %d, truncated before %d", j.First(), limit)
	}
	found := make([]string, j.First()-1, j.Tail())
	copy(found, l.known)
	err = j.Read(context.Background(), j.First(), func(e journal.Entry) error {
		if int(e.Index) != len(found)+1 {
			return fmt.Errorf("index %d where %d should be", e.Index, len(found)+1)
		}
		found = append(found, string(e.Data))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	if len(found) < len(l.known) {
		return nil, fmt.Errorf("%d entries were acknowledged, %d are there", len(l.known), len(found))
	}
	for i, want := range l.known {
		if found[i] != want {
			return nil, fmt.Errorf("entry %d is %.30q, acknowledged was %.30q", i+1, found[i], want)
		}
	}
	rest := found[len(l.known):]
	if len(rest) > len(l.maybe) && len(l.maybe) > 0 && rest[0] != "" {
		for i, want := range l.maybe {
			if rest[i] != want {
				return nil, fmt.Errorf("unacknowledged entry is %.30q, appended was %.30q", rest[i], want)
			}
		}
		rest = rest[len(l.maybe):]
	}
	records := 1
	if l.opening {
		records = 2
	}
	if len(rest) < 1 || len(rest) > records || strings.Join(rest, "") != "" {
		return nil, fmt.Errorf("behind what was appended stands %.100q", rest)
	}
	at, r, err := j.Snapshot(context.Background())
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	if at != l.snapshot && (l.saving == 0 || at != l.saving) {
		return nil, fmt.Errorf("snapshot of %d, saved were %d and perhaps %d", at, l.snapshot, l.saving)
	}
	if r != nil {
		defer r.Close()
		if state, err := io.ReadAll(r); err != nil || string(state) != stateAt(at) {
			return nil, fmt.Errorf("snapshot is %.30q, %w", state, err)
		}
	}
	if at+1 < j.First() {
		return nil, fmt.Errorf("snapshot of %d, first entry %d", at, j.First())
	}
	l.known, l.maybe, l.opening, l.snapshot, l.saving, l.adopted = found, nil, false, at, 0, true
	return j, nil
}

// checkTwice also appends until the segment that was recovered is no longer the
// last one, closes, and looks again after a second, total loss.
func (l *ledger) checkTwice(d *simdisk.Disk) error {
	j, err := l.check(d)
	if err != nil {
		return err
	}
	for range 2 {
		if err := l.append(j, 1, 2500); err != nil {
			return fmt.Errorf("append after recovery: %w", err)
		}
	}
	if err := j.Close(); err != nil {
		return fmt.Errorf("close after recovery: %w", err)
	}
	after := d.PowerCut(simdisk.LoseAll, rand.New(rand.NewPCG(0, 0)))
	if _, err := l.check(after); err != nil {
		return fmt.Errorf("after recovery and a power cut: %w", err)
	}
	return nil
}

// calls is how many system calls the workload makes.
func calls(t *testing.T) int {
	d := simdisk.New()
	if err := new(ledger).work(d); err != nil {
		t.Fatal(err)
	}
	return d.Calls
}

// Every boundary between two system calls, and everything that may be left there.
func TestCrashEverywhere(t *testing.T) {
	n := calls(t)
	states := 0
	for stop := 1; stop <= n+1; stop++ {
		for l := range simdisk.Losses {
			for seed := range uint64(6) {
				if l <= simdisk.LoseNone && seed > 0 {
					break
				}
				d, led := simdisk.New(), new(ledger)
				d.StopAt = stop
				if err := led.work(d); err != nil && !errors.Is(err, simdisk.ErrStopped) && !errors.Is(err, journal.ErrFailed) {
					t.Fatalf("stop %d: %v", stop, err)
				}
				after := d.PowerCut(l, rand.New(rand.NewPCG(uint64(stop), seed)))
				if err := led.checkTwice(after); err != nil {
					t.Fatalf("stop %d of %d, %v, seed %d: %v", stop, n, l, seed, err)
				}
				states++
			}
		}
	}
	t.Logf("%d system calls, %d crash states", n, states)
}

// The process dies and the machine does not: all that was written is seen, and
// must not be lost by a power cut afterwards.
func TestKillEverywhere(t *testing.T) {
	n := calls(t)
	for stop := 1; stop <= n+1; stop++ {
		d, led := simdisk.New(), new(ledger)
		d.StopAt = stop
		_ = led.work(d)
		d.Restart()
		if err := led.checkTwice(d); err != nil {
			t.Fatalf("stop %d of %d: %v", stop, n, err)
		}
	}
}

// A crash during the recovery from a crash during the recovery.
func TestCrashInRecovery(t *testing.T) {
	n := calls(t)
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(1, seed))
		d, led := simdisk.New(), new(ledger)
		d.StopAt = 1 + rng.IntN(n)
		_ = led.work(d)
		for range 2 {
			if rng.IntN(3) == 0 {
				d.Restart()
			} else {
				d = d.PowerCut(simdisk.Loss(rng.IntN(int(simdisk.Losses))), rng)
			}
			d.StopAt = 1 + rng.IntN(60)
			if j, err := led.check(d); err == nil {
				_ = led.append(j, 2, 400)
			}
			led.opening = true
		}
		d = d.PowerCut(simdisk.Loss(rng.IntN(int(simdisk.Losses))), rng)
		// Each failed start may have left its epoch record.
		if j, err := open(t.Context(), d, "", crashOptions); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		} else if err := led.agrees(j); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// agrees checks that what is known is a prefix of what is there.
func (l *ledger) agrees(j *Journal) error {
	n := j.First() - 1
	err := j.Read(context.Background(), j.First(), func(e journal.Entry) error {
		if n++; n <= l.tail() && string(e.Data) != l.known[n-1] {
			return fmt.Errorf("entry %d is %.30q, known was %.30q", n, e.Data, l.known[n-1])
		}
		return nil
	})
	if err == nil && n < l.tail() {
		err = fmt.Errorf("%d entries were acknowledged, %d are there", l.tail(), n)
	}
	return err
}

// Every sync fails once, the way Linux fails: the pages are clean and lost. The
// journal says ErrFailed from then on, and the next one on the same machine does
// not build on what is only in memory.
func TestEverySyncFails(t *testing.T) {
	n := calls(t)
	failures := 0
	for at := 1; at <= n; at++ {
		d, led := simdisk.New(), new(ledger)
		d.FailSync = at
		err := led.work(d)
		if err == nil {
			continue // the call was not a sync
		}
		failures++
		var damage *journal.DamageError
		if errors.As(err, &damage) || !strings.Contains(err.Error(), "input/output error") {
			t.Fatalf("call %d: %v", at, err)
		}
		if len(led.maybe) > 0 && !errors.Is(err, journal.ErrFailed) {
			t.Fatalf("call %d: append returned %v", at, err)
		}
		d.Restart()
		if err := led.checkTwice(d); err != nil {
			t.Fatalf("call %d: %v", at, err)
		}
	}
	if failures < 30 {
		t.Errorf("only %d of %d calls were syncs", failures, n)
	}
}

// After a failure nothing is tried again.
func TestFailedForGood(t *testing.T) {
	d, led, ctx := simdisk.New(), new(ledger), t.Context()
	j, err := led.open(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := led.append(j, 1, 10); err != nil {
		t.Fatal(err)
	}
	d.FailSync = d.Calls + 2
	one := [][]byte{[]byte("x")}
	if err := j.Append(ctx, 3, one); !errors.Is(err, journal.ErrFailed) {
		t.Fatal(err)
	}
	before := d.Calls
	for what, err := range map[string]error{
		"append":   j.Append(ctx, 3, one),
		"barrier":  j.Barrier(ctx),
		"snapshot": j.SaveSnapshot(ctx, 1, func(io.Writer) error { return nil }),
		"truncate": j.Truncate(ctx, 1),
		"adopt":    j.Adopt(),
	} {
		if !errors.Is(err, journal.ErrFailed) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if d.Calls != before {
		t.Errorf("%d system calls after the failure", d.Calls-before)
	}
	if j.Tail() != 2 {
		t.Errorf("tail %d", j.Tail())
	}
	if err := j.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if d.Files[cleanName] != nil {
		t.Error("a failed journal was marked clean")
	}
}

// same compares two disks as programs see them.
func same(a, b *simdisk.Disk) bool {
	if len(a.Files) != len(b.Files) {
		return false
	}
	for name, n := range a.Files {
		if m := b.Files[name]; m == nil || !bytes.Equal(n.Data, m.Data) {
			return false
		}
	}
	return true
}

// text writes s as a snapshot's state.
func text(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}
