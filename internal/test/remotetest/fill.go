package remotetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlockdev/interlock/cluster"
	"github.com/interlockdev/interlock/journal/remote"
	"github.com/interlockdev/interlock/placement"
)

// MayFill is for a store that nothing else fills.
func MayFill(context.Context) error { return nil }

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// Seed seeds a store twice, the second time with less than an earlier try has left behind. The first to open it finds
// what the second has written, and a copy; from then on it is not seeded.
func Seed(t *testing.T, s *remote.Store) {
	if empty, err := s.Empty(t.Context()); !empty || err != nil {
		t.Fatalf("empty %v, %v", empty, err)
	}
	state := strings.Repeat("0123456789abcdef", 100_000)
	if err := s.Seed(t.Context(), MayFill, 9, 60, writeText(state+state)); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("another act has taken over")
	err := s.Seed(t.Context(), func(context.Context) error { return lost }, 7, 41, writeText(""))
	if !errors.Is(err, lost) {
		t.Errorf("an act that has lost its mark: %v", err)
	}
	for range 2 {
		if err := s.Seed(t.Context(), MayFill, 7, 41, writeText(state)); err != nil {
			t.Fatalf("seeded anew: %v", err)
		}
	}
	if seeded, err := s.Seeded(t.Context()); !seeded || err != nil {
		t.Errorf("seeded %v, %v", seeded, err)
	}
	j := Own(t, s)
	if !j.Copied() || j.Epoch() != 8 || j.Tail() != 42 || j.First() != 42 {
		t.Errorf("copied %v, epoch %d, entries %d to %d", j.Copied(), j.Epoch(), j.First(), j.Tail())
	}
	at, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); at != 41 || string(got) != state || err != nil {
		t.Errorf("snapshot %d has %d bytes, %v", at, len(got), err)
	}
	Add(t, j, "more")
	if err := s.Seed(t.Context(), MayFill, 7, 41, writeText(state)); !errors.Is(err, remote.ErrNotEmpty) {
		t.Errorf("seeded after it was opened: %v", err)
	}
	if err := j.Adopt(); err != nil {
		t.Fatal(err)
	}
	if next := Own(t, s); next.Copied() || next.Tail() != 44 {
		t.Errorf("after Adopt: copied %v, tail %d", next.Copied(), next.Tail())
	}
}

const filledShards = 3

// fillAll carries out an act, as a restore does.
func fillAll(ctx context.Context, s *remote.Store, act, text string) (err error) {
	f, err := cluster.BeginFill(ctx, s.Shared(cluster.DirectoryName), act, s.Empty)
	if err != nil {
		return err
	}
	defer f.Stop(ctx)
	d, err := placement.NewDirectory(filledShards)
	if err == nil {
		err = f.Fill(ctx, d)
	}
	for n := 0; n < filledShards && err == nil; n++ {
		err = s.Shard(n).Seed(ctx, f.Holds, 7, 41, writeText(fmt.Sprint(text, n)))
	}
	if err == nil {
		err = f.Finish(ctx)
	}
	return err
}

// Filling kills an act at each of its writes, before the engine has carried it out and after. No server starts from
// what is left, no other act touches it, and the same act makes it whole. Each kill waits until the act counts as dead,
// so run is synctest.Test where the engine is in memory.
func Filling(
	t *testing.T, open func(t *testing.T, name string) *remote.Store, run func(*testing.T, func(*testing.T)),
) {
	const writes = 14 // at most, in each act
	var ended atomic.Int32
	t.Run("kills", func(t *testing.T) {
		for n := range writes {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprint(n, after), func(t *testing.T) {
					t.Parallel()
					run(t, func(t *testing.T) {
						if kill(t, open(t, fmt.Sprintf("fill-%d-%v", n, after)), n, after) {
							ended.Add(1)
						}
					})
				})
			}
		}
	})
	if n := ended.Load(); n == 0 || n > writes {
		t.Errorf("%d of %d acts were not killed", n, 2*writes)
	}
}

// kill kills an act at a write, and reports whether it came to its end before.
func kill(t *testing.T, s *remote.Store, n int, after bool) (ended bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d := &victim{life: &life{left: n, after: after, kill: cancel}}
	err := fillAll(ctx, s.Through(d.wrap), "restore", "first")
	if n == 0 && !after {
		return false // nothing was written
	}
	shards, joined := joinTo(t, s)
	if joined == nil && shards == filledShards { // the last write was carried out
		mustBeFilled(t, s, "first")
		if again := fillAll(t.Context(), s, "restore", "second"); !errors.Is(again, remote.ErrNotEmpty) {
			t.Errorf("a whole journal is filled again: %v", again)
		}
		return err == nil
	}
	if !isFilling(joined) || err == nil {
		t.Errorf("the act has ended with %v, and a server starts with %v", err, joined)
	}
	if d.wrote > 2 {
		if other := fillAll(t.Context(), s, "migrate", "other"); !isFilling(other) {
			t.Errorf("another act: %v", other)
		}
	}
	if again := fillAll(t.Context(), s, "restore", "second"); again != nil {
		t.Fatalf("once more: %v", again)
	}
	if shards, err := joinTo(t, s); err != nil || shards != filledShards {
		t.Fatalf("a server finds %d shards, %v", shards, err)
	}
	mustBeFilled(t, s, "second")
	return false
}

func mustBeFilled(t *testing.T, s *remote.Store, text string) {
	t.Helper()
	for i := range filledShards {
		j := Own(t, s.Shard(i))
		_, r, err := j.Snapshot(t.Context())
		if err != nil || r == nil {
			t.Fatalf("shard %d has no snapshot: %v", i, err)
		}
		got, err := io.ReadAll(r)
		r.Close()
		if want := fmt.Sprint(text, i); string(got) != want || err != nil || !j.Copied() {
			t.Errorf("shard %d: %q, %v, copied %v, want %q", i, got, err, j.Copied(), want)
		}
	}
}

func isFilling(err error) bool {
	_, ok := errors.AsType[*placement.FillingError](err)
	return ok
}

// joinTo starts a server at the directory, and returns how many shards it finds.
func joinTo(t *testing.T, s *remote.Store) (shards int, err error) {
	n, err := cluster.Join(t.Context(), cluster.Config{
		Directory: s.Shared(cluster.DirectoryName), Table: s.Shared(cluster.ServersName),
		Changed: func(*cluster.View) {}, Logger: slog.New(slog.DiscardHandler),
	}, func(context.Context) (int, error) { return 1, nil })
	if err != nil {
		return 0, err
	}
	return n.View().Directory.All(), nil
}

// victim is the driver of a process that is killed at a write.
type victim struct {
	remote.Driver
	*life
}

type life struct {
	kill  context.CancelFunc
	after bool // the last write is carried out

	mu    sync.Mutex
	left  int // writes
	wrote int
	dead  bool
}

func (d *victim) wrap(to remote.Driver) remote.Driver { return &victim{to, d.life} }

func (d *victim) Shard(n int) remote.Driver { return &victim{d.Driver.Shard(n), d.life} }

var errDead = remote.Final(errors.New("the process was killed"))

// write reports whether a write is carried out, and whether its answer is seen.
func (l *life) write() (carried, seen bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.dead:
		return false, false
	case l.left == 0:
		l.dead = true
		l.kill()
		return l.after, false
	}
	l.left--
	l.wrote++
	return true, true
}

func (d *victim) Found(
	ctx context.Context, was remote.Owner, h remote.Head, name string, data []byte,
) (done bool, err error) {
	carried, seen := d.write()
	if carried {
		done, err = d.Driver.Found(context.WithoutCancel(ctx), was, h, name, data)
	}
	if !seen {
		return false, errDead
	}
	return done, err
}

func (d *victim) Put(
	ctx context.Context, by remote.Head, name string, data []byte, was string,
) (version string, done bool, err error) {
	carried, seen := d.write()
	if carried {
		version, done, err = d.Driver.Put(context.WithoutCancel(ctx), by, name, data, was)
	}
	if !seen {
		return "", false, errDead
	}
	return version, done, err
}

func (d *victim) Swap(
	ctx context.Context, name string, data []byte, was string,
) (version string, done bool, err error) {
	carried, seen := d.write()
	if carried {
		version, done, err = d.Driver.Swap(context.WithoutCancel(ctx), name, data, was)
	}
	if !seen {
		return "", false, errDead
	}
	return version, done, err
}
