package remote_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/simengine"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/journaltest"
	"github.com/interlockdev/interlock/journal/remote"
)

// engines are the two kinds: one that compares, and one that only creates.
var engines = map[string]bool{"Compares": false, "Creates": true}

// The law holds over both kinds of engines.
func TestConformance(t *testing.T) {
	for name, creates := range engines {
		t.Run(name, func(t *testing.T) {
			journaltest.Run(t, func(*testing.T) journaltest.Open {
				s := remote.New(simengine.New(creates), 0)
				return func(ctx context.Context) (journal.Journal, error) { return s.Open(ctx) }
			})
		})
	}
}

// own opens a store and closes the journal at the end of the test.
func own(t *testing.T, s *remote.Store) *remote.Journal {
	t.Helper()
	j, err := s.Open(t.Context())
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { j.Close() })
	return j
}

func add(t *testing.T, j *remote.Journal, text string) {
	t.Helper()
	if err := j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte(text)}); err != nil {
		t.Fatalf("append at %d: %v", j.Tail()+1, err)
	}
}

func texts(t *testing.T, j *remote.Journal) string {
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

func write(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Requests that do not arrive, and answers that are lost, cost repetitions and nothing else.
func TestLostAnswers(t *testing.T) {
	for name, creates := range engines {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := simengine.New(creates)
				random := rand.New(rand.NewPCG(1, 2))
				m.Fault = func(string) simengine.Fault {
					return []simengine.Fault{0, 0, 0, 0, simengine.Lost, simengine.Answered}[random.IntN(6)]
				}
				s := remote.New(m, 0)
				want := ""
				for owner := range 20 {
					j := own(t, s)
					if owner > 0 {
						want += " "
					}
					for i := range 20 {
						text := fmt.Sprint(owner, "-", i)
						add(t, j, text)
						want += " " + text
						if err := j.Barrier(t.Context()); err != nil {
							t.Fatal(err)
						}
					}
					if err := j.SaveSnapshot(t.Context(), j.Tail(), write(want)); err != nil {
						t.Fatal(err)
					}
					if err := j.Kept("ring").Save([]byte(want)); err != nil {
						t.Fatal(err)
					}
					if got := texts(t, j); got != want {
						t.Fatalf("the journal holds %q, want %q", got, want)
					}
				}
			})
		})
	}
}

// An append that gets no answer ends the ownership, and its outcome stays what the next owner finds. One
// that gets an answer at last is done.
func TestAppendWithoutAnswer(t *testing.T) {
	for _, c := range []struct {
		name  string
		fault simengine.Fault
		times int // that it happens
		err   error
		want  string
	}{
		{"LostOnce", simengine.Lost, 1, nil, " perhaps "},
		{"AnsweredOnce", simengine.Answered, 1, nil, " perhaps "},
		{"Lost", simengine.Lost, 1000, journal.ErrFailed, " "},
		{"Answered", simengine.Answered, 1000, journal.ErrFailed, " perhaps "},
	} {
		for name, creates := range engines {
			t.Run(c.name+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := simengine.New(creates)
					s := remote.New(m, 0)
					j := own(t, s)
					var faults atomic.Int32
					m.Fault = func(method string) simengine.Fault {
						if method == "append" && faults.Add(-1) >= 0 {
							return c.fault
						}
						return simengine.None
					}
					faults.Store(int32(c.times))
					if err := j.Append(t.Context(), 2, [][]byte{[]byte("perhaps")}); !errors.Is(err, c.err) {
						t.Fatalf("append: %v", err)
					}
					faults.Store(0)
					if err := j.Barrier(t.Context()); !errors.Is(err, c.err) {
						t.Errorf("barrier after it: %v", err)
					}
					if got := texts(t, own(t, s)); got != c.want {
						t.Errorf("the journal holds %q, want %q", got, c.want)
					}
				})
			})
		}
	}
}

// An engine without room refuses, and the journal goes on when there is room again.
func TestWithoutRoom(t *testing.T) {
	for _, c := range []struct {
		method string
		do     func(j *remote.Journal) error
	}{
		{"append", func(j *remote.Journal) error { return j.Append(t.Context(), 2, [][]byte{[]byte("first")}) }},
		{"confirm", func(j *remote.Journal) error { return j.Barrier(t.Context()) }},
	} {
		t.Run(c.method, func(t *testing.T) {
			m := simengine.New(false)
			j := own(t, remote.New(m, 0))
			m.Fault = func(method string) simengine.Fault {
				if method == c.method {
					return simengine.Full
				}
				return simengine.None
			}
			if err := c.do(j); !errors.Is(err, journal.ErrNoSpace) {
				t.Fatalf("without room: %v", err)
			}
			m.Fault = nil
			if err := c.do(j); err != nil {
				t.Errorf("with room again: %v", err)
			}
			add(t, j, "next")
		})
	}
}

// A snapshot stays as long as it is read, and goes with the next one.
func TestSnapshotStaysUnderReader(t *testing.T) {
	m := simengine.New(false)
	j := own(t, remote.New(m, 0))
	state := strings.Repeat("0123456789abcdef", 40_000)
	if err := j.SaveSnapshot(t.Context(), 1, write(state)); err != nil {
		t.Fatal(err)
	}
	_, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{"one", "two"} {
		if err := j.SaveSnapshot(t.Context(), 1, write(next)); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := io.ReadAll(r); string(got) != state || err != nil {
		t.Fatalf("the replaced snapshot reads %d bytes, %v", len(got), err)
	}
	r.Close()
	if err := j.SaveSnapshot(t.Context(), 1, write("three")); err != nil {
		t.Fatal(err)
	}
	if left := m.Names("state/"); len(left) != 1 {
		t.Errorf("chunks %q are left of one", left)
	}
}

func TestSeed(t *testing.T) { remotetest.Seed(t, remote.New(simengine.New(false), 0)) }

func TestFilling(t *testing.T) {
	remotetest.Filling(t, func(*testing.T, string) *remote.Store { return remote.New(simengine.New(false), 0) },
		synctest.Test)
}

// A change of the stored bytes from outside is found, and located.
func TestDamage(t *testing.T) {
	for name, damage := range map[string]func(log map[interlock.Index]simengine.Record){
		"FlippedBit": func(log map[interlock.Index]simengine.Record) { log[3].Data[len(log[3].Data)-1] ^= 1 },
		"Missing":    func(log map[interlock.Index]simengine.Record) { delete(log, 3) },
		"Oldest":     func(log map[interlock.Index]simengine.Record) { delete(log, 1) },
		"Moved":      func(log map[interlock.Index]simengine.Record) { log[3] = log[2] },
		"Newer":      func(log map[interlock.Index]simengine.Record) { log[3].Data[3] = '2' },
	} {
		t.Run(name, func(t *testing.T) {
			m := simengine.New(false)
			s := remote.New(m, 0)
			j := own(t, s)
			for i := range 4 {
				add(t, j, fmt.Sprint("e", i))
			}
			damage(m.Log())
			j, err := s.Open(t.Context())
			if err == nil {
				t.Cleanup(func() { j.Close() })
				err = j.Read(t.Context(), j.First(), func(journal.Entry) error { return nil })
			}
			_, damaged := errors.AsType[*journal.DamageError](err)
			if newer := errors.Is(err, journal.ErrNewer); newer != (name == "Newer") || damaged == newer {
				t.Fatalf("got %v", err)
			}
		})
	}
}
