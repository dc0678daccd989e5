package remotetest

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// OpenTogether lets several open a store at once. Each one either gets an epoch of its own or the error
// that it was fenced, and one of them is the owner.
func OpenTogether(t *testing.T, connect func() *remote.Store) {
	const openers = 8
	var mu sync.Mutex
	epochs := map[interlock.Epoch]bool{}
	var owners []*remote.Journal
	var wg sync.WaitGroup
	for range openers {
		s := connect()
		wg.Go(func() {
			j, err := s.Open(t.Context())
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, journal.ErrFenced):
			case err != nil:
				t.Errorf("open: %v", err)
			case epochs[j.Epoch()]:
				t.Errorf("epoch %d was given twice", j.Epoch())
			default:
				epochs[j.Epoch()] = true
				owners = append(owners, j)
			}
		})
	}
	wg.Wait()
	alive := 0
	for _, j := range owners {
		if err := j.Barrier(t.Context()); err == nil {
			alive++
		} else if !errors.Is(err, journal.ErrFenced) {
			t.Errorf("barrier: %v", err)
		}
		j.Close()
	}
	if alive > 1 {
		t.Errorf("%d owners at once", alive)
	}
	j, err := connect().Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	last := interlock.Epoch(0)
	if err := j.Read(t.Context(), 1, func(e journal.Entry) error {
		if len(e.Data) > 0 || e.Epoch <= last {
			t.Errorf("entry %d of epoch %d after epoch %d: %q", e.Index, e.Epoch, last, e.Data)
		}
		last = e.Epoch
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// Share lets several count in one shared value. Each count is made once, and a version that was replaced, or
// of a value that is not there, is refused.
func Share(t *testing.T, connect func() *remote.Store) {
	const counters, counts = 8, 10
	var wg sync.WaitGroup
	for range counters {
		value := connect().Shared("counter")
		wg.Go(func() {
			for done := 0; done < counts; {
				v, err := value.Load(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(v.Data))
				version, ok, err := value.Swap(t.Context(), strconv.AppendInt(nil, int64(n+1), 10), v.Version)
				if err != nil || ok && (version == "" || version == v.Version) {
					t.Errorf("swap of version %q: version %q, %v", v.Version, version, err)
					return
				}
				if ok {
					done++
				}
			}
		})
	}
	wg.Wait()
	value := connect().Shared("counter")
	v, err := value.Load(t.Context())
	if want := strconv.Itoa(counters * counts); err != nil || string(v.Data) != want {
		t.Errorf("the counter is %q, want %s (%v)", v.Data, want, err)
	}
	if _, ok, err := value.Swap(t.Context(), []byte("new"), ""); ok || err != nil {
		t.Errorf("a value was created over another one: %t, %v", ok, err)
	}
	if _, ok, err := connect().Shared("none").Swap(t.Context(), []byte("new"), v.Version); ok || err != nil {
		t.Errorf("a value that is missing was replaced: %t, %v", ok, err)
	}
	if empty, err := connect().Empty(t.Context()); err != nil || !empty {
		t.Errorf("a shared value made the store one with a journal: %t, %v", empty, err)
	}
}

// Replaced lets an owner do everything after another process has opened the store; it knows nothing of that.
// All is refused.
func Replaced(t *testing.T, connect func() *remote.Store) {
	entry := func(text string) [][]byte { return [][]byte{[]byte(text)} }
	write := func(w io.Writer) error {
		_, err := io.WriteString(w, "state")
		return err
	}
	for name, do := range map[string]func(*remote.Journal) error{
		"append":   func(j *remote.Journal) error { return j.Append(t.Context(), j.Tail()+1, entry("late")) },
		"barrier":  func(j *remote.Journal) error { return j.Barrier(t.Context()) },
		"snapshot": func(j *remote.Journal) error { return j.SaveSnapshot(t.Context(), j.Tail(), write) },
		"truncate": func(j *remote.Journal) error { return j.Truncate(t.Context(), 2) },
		"keep":     func(j *remote.Journal) error { return j.Kept("late").Save([]byte("late")) },
	} {
		old, err := connect().Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := old.Append(t.Context(), old.Tail()+1, entry("before")); err != nil {
			t.Fatal(err)
		}
		if err := old.SaveSnapshot(t.Context(), old.Tail(), write); err != nil {
			t.Fatal(err)
		}
		next, err := connect().Open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Append(t.Context(), next.Tail()+1, entry("after")); err != nil {
			t.Fatal(err)
		}
		at, r, err := next.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		if err := do(old); !errors.Is(err, journal.ErrFenced) {
			t.Errorf("%s by an owner that was replaced: %v", name, err)
		}
		again, r, err := next.Snapshot(t.Context())
		if err != nil || again != at {
			t.Errorf("the snapshot was of entry %d, and is of %d (%v)", at, again, err)
		}
		r.Close()
		if v, err := next.Kept("late").Load(); err != nil || v != nil {
			t.Errorf("a value was kept late: %q, %v", v, err)
		}
		if err := next.Barrier(t.Context()); err != nil {
			t.Errorf("the later owner: %v", err)
		}
		old.Close()
		next.Close()
	}
}

// Own opens a store and closes the journal at the end of the test.
func Own(t testing.TB, s *remote.Store) *remote.Journal {
	t.Helper()
	j, err := s.Open(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

// Add appends an entry.
func Add(t testing.TB, j *remote.Journal, text string) {
	t.Helper()
	if err := j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte(text)}); err != nil {
		t.Fatalf("append at %d: %v", j.Tail()+1, err)
	}
}

// Texts returns all entries of a journal, with blanks between.
func Texts(t testing.TB, j *remote.Journal) string {
	t.Helper()
	var list []string
	if err := j.Read(t.Context(), j.First(), func(e journal.Entry) error {
		list = append(list, string(e.Data))
		return nil
	}); err != nil {
		t.Fatalf("read: %v", err)
	}
	return strings.Join(list, " ")
}

// Writes are the calls of an owner that an engine refuses when it has lost what it acknowledged to this owner. The
// owner has at least two appends, and saved a snapshot behind the first.
var Writes = map[string]func(context.Context, *remote.Journal) error{
	"Append": func(ctx context.Context, j *remote.Journal) error {
		return j.Append(ctx, j.Tail()+1, [][]byte{{1}})
	},
	"Barrier": func(ctx context.Context, j *remote.Journal) error { return j.Barrier(ctx) },
	"SaveSnapshot": func(ctx context.Context, j *remote.Journal) error {
		return j.SaveSnapshot(ctx, j.Tail(), func(w io.Writer) error {
			_, err := io.WriteString(w, "with what was lost")
			return err
		})
	},
	"Truncate": func(ctx context.Context, j *remote.Journal) error { return j.Truncate(ctx, j.First()+1) },
	"Save":     func(_ context.Context, j *remote.Journal) error { return j.Kept("value").Save([]byte("late")) },
}

// Save saves a snapshot at the tail.
func Save(t *testing.T, j *remote.Journal, text string) {
	t.Helper()
	if err := j.SaveSnapshot(t.Context(), j.Tail(), func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Saved reports a newest snapshot that has another text.
func Saved(t *testing.T, j *remote.Journal, want string) {
	t.Helper()
	_, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(r); err != nil || string(text) != want {
		t.Errorf("the newest snapshot is %q, %v: want %q", text, err, want)
	}
}
