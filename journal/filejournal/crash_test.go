package filejournal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/simdisk"
	"github.com/interlockdev/interlock/journal"
)

// For a night: go test ./journal/filejournal -run Crash -timeout 0 -cuts 2000
var cuts = flag.Int("cuts", 200, "most power cuts of each kind that are tried at each system call")

// fruitless is how many power cuts of a kind in a row may leave what was met before,
// until the others of that kind are passed over.
const fruitless = 8

// tally counts crash states that are different on the disk.
type tally struct {
	disks  map[[32]byte]bool
	judged map[[32]byte]bool // with what the user knew
	kinds  map[string]int    // of the disks, by the operation that made them first
}

func newTally() *tally {
	return &tally{disks: map[[32]byte]bool{}, judged: map[[32]byte]bool{}, kinds: map[string]int{}}
}

// fresh notes a crash state, and reports whether it has to be judged: the same disk, found by
// an observer that knows the same, was not met before.
func (y *tally) fresh(kind string, d *simdisk.Disk, l *ledger) bool {
	image := sha256.New()
	number := func(n int) { image.Write(binary.LittleEndian.AppendUint64(nil, uint64(n))) }
	for _, name := range slices.Sorted(maps.Keys(d.Files)) {
		n := d.Files[name]
		io.WriteString(image, name)
		number(int(n.Number))
		number(len(n.Data))
		image.Write(n.Data)
		if !bytes.Equal(n.Data, n.Synced) {
			number(len(n.Synced))
			image.Write(n.Synced)
		}
	}
	disk := [32]byte(image.Sum(nil))
	if !y.disks[disk] {
		y.disks[disk] = true
		y.kinds[kind]++
	}
	fmt.Fprintf(
		image, "%d %d %d %d %d %d %v %v %v", len(l.known), len(l.maybe), l.openings, l.snapshot, l.saving, l.truncate,
		l.adopted, l.copied, l.roomy,
	)
	both := [32]byte(image.Sum(nil))
	if y.judged[both] {
		return false
	}
	y.judged[both] = true
	return true
}

// report prints how many states there were, as evidence.
func (y *tally) report(t *testing.T, least int) {
	t.Helper()
	t.Attr("count.crash_states", strconv.Itoa(len(y.disks)))
	t.Logf("%d crash states, all different: %v; %d judged with what was known", len(y.disks), y.kinds, len(y.judged))
	if len(y.disks) < least && !testing.Short() {
		t.Errorf("only %d crash states, at least %d should be there", len(y.disks), least)
	}
}

// losses visits what a power cut may leave of a disk, as often as there is something new in it.
// visit reports whether there was.
func losses(d *simdisk.Disk, luck uint64, visit func(kind simdisk.Loss, cut int, after *simdisk.Disk) bool) {
	most := *cuts
	if testing.Short() {
		most = min(most, 2)
	}
	for kind := simdisk.Losses - 1; kind >= 0; kind-- {
		for cut, old := 0, 0; cut < most && old < fruitless; cut++ {
			old++
			if visit(kind, cut, d.PowerCut(kind, rand.New(rand.NewPCG(luck, uint64(cut))))) {
				old = 0
			}
			if kind <= simdisk.LoseNone {
				break // there is one only
			}
		}
	}
}

// Every life is stopped at every boundary between two system calls, and everything that
// may be left there is found by the next start: or the process dies and the machine does
// not, and what was written is seen and must not be lost by a power cut afterwards.
func TestCrashEverywhere(t *testing.T) {
	states := newTally()
	for _, x := range lives {
		t.Run(x.name, func(t *testing.T) {
			n := x.calls(t)
			for stop := 1; stop <= n+1; stop++ {
				d, led := x.stopped(t, stop)
				losses(d, uint64(stop), func(kind simdisk.Loss, cut int, after *simdisk.Disk) bool {
					if !states.fresh(kind.String(), after, led) {
						return false
					}
					if err := led.fork().checkTwice(after); err != nil {
						t.Fatalf("stop %d of %d, %v, cut %d: %v", stop, n, kind, cut, err)
					}
					return true
				})
				d.Restart()
				if !states.fresh("kill", d, led) {
					continue
				}
				if err := led.checkTwice(d); err != nil {
					t.Fatalf("killed at %d of %d: %v", stop, n, err)
				}
			}
		})
	}
	states.report(t, 10_000)
}

// The rest of a crash is recovered, and recovery is stopped at every system call, too.
func TestCrashInRecovery(t *testing.T) {
	if testing.Short() {
		t.Skip("has no goroutines, and takes a while under the race detector")
	}
	states := newTally()
	for i, x := range lives {
		t.Run(x.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			n := x.calls(t)
			for stop := 1; stop <= n+1; stop++ {
				d, led := x.stopped(t, stop)
				for _, kind := range []string{"kill", "power"} {
					d.Restart()
					left := d.Fork()
					if kind == "power" {
						left = d.PowerCut(simdisk.Loss(rng.IntN(int(simdisk.Losses))), rng)
					}
					if !states.fresh(kind, left, led) {
						continue
					}
					if err := recoveries(left, led, rng, states); err != nil {
						t.Fatalf("stop %d of %d, %s: %v", stop, n, kind, err)
					}
				}
			}
		})
	}
	states.report(t, 3_000)
}

// recoveries stops the start on a disk at each of its system calls; then a start on what
// a power cut leaves of that, at any.
func recoveries(left *simdisk.Disk, led *ledger, rng *rand.Rand, states *tally) error {
	judge := func(d *simdisk.Disk, l *ledger) error {
		if known := l.fork(); states.fresh("recovery", d, known) {
			return known.checkTwice(d)
		}
		return nil
	}
	for stop := 1; ; stop++ {
		once := left.Fork()
		once.StopAt = stop
		known, err := led.stopped(once)
		if err != nil || known.openings == 0 {
			return err // it made fewer calls
		}
		twice := once.PowerCut(simdisk.Loss(rng.IntN(int(simdisk.Losses))), rng)
		twice.StopAt = 1 + rng.IntN(30)
		later, err := known.stopped(twice)
		err = errors.Join(
			err,
			judge(once.PowerCut(simdisk.Torn, rng), known),
			judge(once, known),
			judge(twice.PowerCut(simdisk.Reordered, rng), later),
			judge(twice, later),
		)
		if err != nil {
			return fmt.Errorf("start stopped at %d: %w", stop, err)
		}
	}
}

// stopped checks a disk that stops, and returns what is known then: more, if it was checked
// before it stopped. The machine continues.
func (l *ledger) stopped(d *simdisk.Disk) (*ledger, error) {
	known := l.fork()
	_, err := known.check(d)
	d.Restart()
	if errors.Is(err, simdisk.ErrStopped) {
		known = l.fork()
		known.openings++
		return known, nil
	}
	return known, err
}

// Every sync fails once, the way Linux fails: the pages are clean and lost. The journal returns
// ErrFailed from then on, and the next one on the same machine does not build on what is only
// in memory.
func TestEverySyncFails(t *testing.T) {
	failures := 0
	for _, x := range lives {
		for at := 1; at <= x.calls(t); at++ {
			d, led := x.begin(t)
			d.FailSync = at
			err := x.work(d, led)
			if err == nil {
				continue // the call was not a sync
			}
			failures++
			var damage *journal.DamageError
			if errors.As(err, &damage) || !strings.Contains(err.Error(), "input/output error") {
				t.Fatalf("%s, call %d: %v", x.name, at, err)
			}
			if len(led.maybe) > 0 && !errors.Is(err, journal.ErrFailed) {
				t.Fatalf("%s, call %d: append returned %v", x.name, at, err)
			}
			d.Restart()
			if err := led.checkTwice(d); err != nil {
				t.Fatalf("%s, call %d: %v", x.name, at, err)
			}
		}
	}
	if failures < 200 {
		t.Errorf("only %d calls were syncs", failures)
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
