package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/journal/memjournal"
)

// large makes one step with an entry of more than size bytes: many grants in one. It returns the
// answer of a read that saw it.
func (r *rig) large(size int) (interlock.At, error) {
	return r.shard.visit(r.Context(), "test", func(o *owner, now engine.Time) bool {
		const head = 9 // of an entry: its version and time
		before := len(o.cur.out.Entry)
		for i := 0; len(o.cur.out.Entry)-before <= size; i++ {
			cmd := acquire(nil, fmt.Sprintf("large:%d", ids.Load()))
			cmd.At, cmd.Purpose = now, strings.Repeat("x", interlock.MaxPurposeBytes)
			from := len(o.cur.out.Entry)
			o.eng.Step(cmd, &o.cur.out)
			switch {
			case len(o.cur.out.Entry) == from:
				r.Error("the large step: a grant was refused")
				return true
			case i > 0:
				o.cur.out.Entry = append(o.cur.out.Entry[:from], o.cur.out.Entry[from+head:]...)
			}
		}
		o.cur.mark(&engine.Tick{}, before)
		return true
	})
}

const (
	twoPieces   = journal.MaxAppendBytes
	threePieces = 2_300_000
)

// A large entry has one index, that of its last piece, and is one entry for followers, replays and
// snapshots.
func TestLargeEntry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		seen := new(appends)
		r := newRig(t, func(c *Config) { c.Observer = seen })
		follow := func(from interlock.Index) (visited map[interlock.Index]int, stop func()) {
			ctx, cancel := context.WithCancel(r.Context())
			visited = map[interlock.Index]int{}
			go r.follow(ctx, from, func(i interlock.Index, _ interlock.Epoch, events []record.Event) error {
				for _, ev := range events {
					visited[i] += len(ev.Purpose) + 1
				}
				return nil
			})
			return visited, cancel
		}
		live, _ := follow(0)
		synctest.Wait()
		first := r.shard.At().Index
		at, err := r.large(threePieces)
		if err != nil || at.Index != first+3 {
			t.Fatalf("a step of three pieces is at %d, %v; want %d", at.Index, err, first+3)
		}
		r.expect(engine.Granted, acquire(nil, "a"))
		synctest.Wait()
		if got := seen.list(); len(got) != 5 {
			t.Errorf("appends of %d entries, want five: the term, three pieces, a grant", got)
		}
		later, _ := follow(first)
		midway, _ := follow(first + 2)
		synctest.Wait()
		for name, visited := range map[string]map[interlock.Index]int{"from memory": live, "from the journal": later} {
			if len(visited) != 3 || visited[first] == 0 || visited[first+3] <= threePieces/2 || visited[first+4] == 0 {
				t.Errorf("followed %s: bytes by index %v", name, visited)
			}
		}
		if len(midway) != 1 || midway[first+4] == 0 {
			t.Errorf("followed from the middle of pieces: %v, want only %d", midway, first+4)
		}
		r.consistent()
		r.close()
		r.open()
		r.consistent()
	})
}

// consistent checks that the live engine and the hash chain match the journal.
func (r *rig) consistent() {
	r.Helper()
	if live, replayed := r.hash(), replayedHash(r.T, r.shard.journal); live != replayed {
		r.Error("the live engine is not what the journal says")
	}
	if _, _, err := r.shard.Head(r.Context()); err != nil {
		r.Error("Head:", err)
	}
	checkHead(r.T, r.shard)
}

// grants counts the grants in the journal of keys with this prefix.
func (r *rig) grants(prefix string) (n int) {
	r.Helper()
	var pieces Joiner
	if err := r.shard.journal.Read(r.Context(), 1, func(e journal.Entry) error {
		entry, err := pieces.Join(e)
		if entry == nil {
			return err
		}
		return record.DecodeEntry(entry, func(ev *record.Event) error {
			if ev.Kind == record.Granted && strings.HasPrefix(string(ev.Claims[0].Key), prefix) {
				n++
			}
			return nil
		})
	}); err != nil {
		r.Fatal(err)
	}
	return n
}

// A snapshot made in the background stands at the end of a large entry, and what is
// truncated may end in its middle.
func TestSnapshotsAroundLargeEntries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t, func(c *Config) { c.SnapshotBytes, c.KeepBytes = 1_500_000, 700_000 })
		var f struct {
			seen int
			last interlock.Index
		}
		for i := range 6 {
			if _, err := r.large(twoPieces + i*300_000); err != nil {
				t.Fatal(err)
			}
			r.expect(engine.Granted, acquire(nil, keyNumber(i)))
			synctest.Wait()
		}
		if at := r.shard.snapshotAt.Load(); at == 0 || r.shard.First() == 1 {
			t.Fatalf("a snapshot at %d, the journal begins at %d: want both later", at, r.shard.First())
		}
		ctx, cancel := context.WithCancel(r.Context())
		go func() {
			if err := r.follow(ctx, 0, func(i interlock.Index, _ interlock.Epoch, _ []record.Event) error {
				f.seen, f.last = f.seen+1, i
				return nil
			}); !errors.Is(err, context.Canceled) {
				t.Error("Follow:", err)
			}
		}()
		synctest.Wait()
		cancel()
		if f.seen == 0 || f.last != r.shard.At().Index {
			t.Errorf("followed %d entries up to %d of %d", f.seen, f.last, r.shard.At().Index)
		}
		want := r.hash()
		j, err := r.store.Open(r.Context()) // as after a crash: without the snapshot that Close makes
		if err != nil {
			t.Fatal(err)
		}
		again, err := (&Shard{journal: j}).replay(r.Context(), j.Tail(), inTurn, nil)
		if err != nil || again.engine.Hash() != want {
			t.Errorf("replayed from the snapshot at %d: another state, %v", again.snapshot, err)
		}
	})
}

// When a group takes several appends and one of them fails, what was written before has happened,
// and its callers learn that. No other caller of the group learns that anything was done, and
// pieces without their last one are nothing.
func TestAppendFailsBetweenPieces(t *testing.T) {
	for _, c := range []struct {
		name  string
		fail  func(*memjournal.Store)
		code  interlock.Code
		whole bool // the large entry is in the journal all the same
	}{
		{"no space", func(s *memjournal.Store) { s.Inject(memjournal.NoSpace) }, interlock.CodeNoSpace, false},
		{
			"no space for long", func(s *memjournal.Store) { s.Inject(memjournal.NoSpace, memjournal.NoSpace) },
			interlock.CodeNoSpace, false,
		},
		{"lost", func(s *memjournal.Store) { s.Inject(memjournal.Lost) }, interlock.CodeOutcomeUnknown, false},
		{"stored", func(s *memjournal.Store) { s.Inject(memjournal.Stored) }, interlock.CodeOutcomeUnknown, true},
		{"fenced", func(s *memjournal.Store) { s.Open(background) }, interlock.CodeNotOwner, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				appends := 0
				var r *rig
				r = newRig(t, func(cfg *Config) {
					cfg.Observer = appendObserver(func() {
						if appends++; appends == 3 { // the term, the grant of "first", this group with its first piece
							c.fail(r.store)
						}
					})
				})
				hold := r.store.Hold()
				in := newInbox()
				r.submit(acquire(in, "first"))
				<-hold.Reached
				r.submit(acquire(in, "a"), acquire(in, "a"))
				read := make(chan error, 1)
				go func() {
					_, err := r.large(twoPieces)
					read <- err
				}()
				synctest.Wait()
				r.submit(acquire(in, "b"), acquire(in, "a"))
				synctest.Wait()
				index := r.shard.At().Index + 2
				hold.Release()

				if a := <-in.c; a.Outcome != engine.Granted {
					t.Fatalf("the group before: %v %s", a.Outcome, a.Code)
				}
				a := <-in.c
				if a.Outcome != engine.Granted || a.At.Index != index {
					t.Errorf(
						"what was written with the first piece: %v %s at %d, want granted at %d", a.Outcome, a.Code, a.At.Index, index,
					)
				}
				if a := <-in.c; a.Outcome != engine.Refused || a.Code != interlock.CodeHeld || a.At.Index != index {
					t.Errorf("a refusal behind it: %v %s at %d, want held at %d", a.Outcome, a.Code, a.At.Index, index)
				}
				refusal, _ := errors.AsType[*interlock.Error](<-read)
				if refusal == nil || refusal.Code != c.code || refusal.At.Index != index {
					t.Errorf("the read that saw the large entry: %v at %d, want %s at %d", refusal, refusal.At.Index, c.code, index)
				}
				for range 2 { // one that changes something, one that does not
					a := <-in.c
					if a.Outcome != engine.Refused || a.Code != c.code && a.Code != interlock.CodeShuttingDown {
						t.Errorf("behind the large entry, stepped or not: %v %s, want %s", a.Outcome, a.Code, c.code)
					}
				}
				<-time.After(parkedFor + fullFor)
				if got := in.all(); len(got) != 5 {
					t.Errorf("%d answers to 5 commands", len(got))
				}
				if c.code != interlock.CodeNoSpace {
					<-r.shard.Failed()
					r.open()
				}
				r.consistent()
				r.expect(engine.Done, release(nil, a.Lease.ID))
				if n := r.grants("large:"); n > 0 != c.whole {
					t.Errorf("the journal says %d grants of the large entry; whole: %v", n, c.whole)
				}
				if n := r.grants("b"); n != 0 {
					t.Error("what was stepped behind the large entry has happened")
				}
				if _, err := r.large(threePieces); err != nil {
					t.Error("the next large entry:", err)
				}
				r.consistent()
				r.close()
				r.open()
				r.consistent()
			})
		})
	}
}

// appendObserver is an observer that is called after each append.
type appendObserver func()

func (f appendObserver) Committed([]record.Event)         {}
func (f appendObserver) Appended(time.Duration, int, int) { f() }
func (f appendObserver) Lag(time.Duration)                {}
func (f appendObserver) Saved(time.Duration)              {}

// The file journal keeps pieces as it keeps entries.
func TestLargeEntryInFiles(t *testing.T) {
	dir := t.TempDir()
	open := func() *rig {
		j, err := filejournal.Open(t.Context(), dir, filejournal.Options{SegmentBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), Config{Journal: j, SnapshotBytes: -1})
		if err != nil {
			t.Fatal(err)
		}
		return &rig{T: t, shard: s}
	}
	r := open()
	if _, err := r.large(threePieces); err != nil {
		t.Fatal(err)
	}
	r.consistent()
	n := r.grants("large:")
	r.close()
	r = open()
	r.consistent()
	if again := r.grants("large:"); n == 0 || again != n {
		t.Errorf("%d grants, after a restart %d", n, again)
	}
	r.close()
}

// The largest acknowledgement is carried in pieces: 1 MiB of writes, and tasks with as much of
// payloads. A larger one is refused before it is anything, and its attempt continues.
func TestLargestAcknowledgement(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newRig(t)
		r.expect(engine.Done, &engine.SetQueue{Head: head(nil), Queue: interlock.TaskQueue{Name: "q"}})
		payload := func(n int) []byte { return []byte(`"` + strings.Repeat("x", n-2) + `"`) }
		submit := func() engine.TaskSpec { return engine.TaskSpec{ID: newID(), TaskSpec: interlock.TaskSpec{Queue: "q"}} }
		r.expect(engine.Done, &engine.Submit{Head: head(nil), Task: submit()})
		handed := r.expect(
			engine.Granted, &engine.Pull{Head: head(nil), ID: newID(), Leases: [][16]byte{newID()}, Queue: "q", Max: 1},
		).Handed
		ack := func(each int) *engine.Ack {
			c := &engine.Ack{Head: head(nil), Lease: handed[0].Lease.ID, Result: payload(
				interlock.MaxResultBytes,
			), CommitRequest: interlock.CommitRequest{
				Note: strings.Repeat("n", interlock.MaxNoteBytes),
			}}
			for i := range interlock.MaxWrites {
				c.Writes = append(c.Writes, interlock.Write{
					Key: interlock.Key(fmt.Sprintf("%0*d", interlock.MaxKeyBytes, i)), Op: interlock.Put,
					Body: payload(interlock.MaxCommitBytes / interlock.MaxWrites),
				})
			}
			for range interlock.MaxFollowUps {
				x := submit()
				x.Payload = payload(each)
				c.Tasks = append(c.Tasks, x)
			}
			return c
		}
		r.refused(interlock.CodeBodyTooLarge, ack(interlock.MaxPayloadBytes))
		before := r.shard.At().Index
		_, at := r.do(ack(interlock.MaxCommitBytes / interlock.MaxFollowUps))
		if at.Index < before+3 {
			t.Errorf("it is at %d, after %d: it should take three pieces at least", at.Index, before)
		}
		if got := r.expect(
			engine.Granted, &engine.Pull{Head: head(nil), ID: newID(), Leases: [][16]byte{newID()}, Queue: "q", Max: 1},
		).Handed; len(got) != 1 {
			t.Error("what it submitted is not there")
		}
		r.consistent()
		r.close()
		r.open()
		r.consistent()
	})
}
