package etcdtest

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/remote"
)

// own opens a store and closes the journal at the end of the test.
func (c *cluster) own(s *remote.Store) *remote.Journal {
	c.Helper()
	j, err := s.Open(c.Context())
	if err != nil {
		c.Fatalf("open: %v\n%s", err, c.logs())
	}
	c.Cleanup(func() { j.Close() })
	return j
}

func (c *cluster) append(j *remote.Journal, text string) {
	c.Helper()
	if err := j.Append(c.Context(), j.Tail()+1, [][]byte{[]byte(text)}); err != nil {
		c.Fatalf("append at %d: %v", j.Tail()+1, err)
	}
}

func (c *cluster) texts(j *remote.Journal) (list []string) {
	c.Helper()
	err := j.Read(c.Context(), j.First(), func(e journal.Entry) error {
		list = append(list, string(e.Data))
		return nil
	})
	if err != nil {
		c.Fatalf("read: %v", err)
	}
	return list
}

// A member that dies or stands still, also the one that leads, costs time and nothing else: the
// owner continues.
func TestMemberLost(t *testing.T) {
	for _, lose := range []struct {
		name string
		lose func(*cluster, int)
		back func(*cluster, int)
	}{
		{"Killed", func(c *cluster, i int) { c.members[i].kill() }, func(c *cluster, i int) { c.start(i) }},
		{"Paused", func(c *cluster, i int) { c.members[i].pause(c) }, func(c *cluster, i int) { c.members[i].resume(c) }},
	} {
		t.Run(lose.name, func(t *testing.T) {
			c := startCluster(t)
			j := c.own(c.store(c.place()))
			want := []string{""}
			for round := range 3 {
				leader := c.leader()
				lose.lose(c, leader)
				for i := range 20 {
					text := fmt.Sprint(round, "-", i)
					c.append(j, text)
					want = append(want, text)
					if err := j.Barrier(t.Context()); err != nil {
						t.Fatalf("barrier: %v", err)
					}
				}
				lose.back(c, leader)
				c.settled()
			}
			if got := c.texts(j); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the journal holds %v, want %v", got, want)
			}
		})
	}
}

// Without a majority nothing is acknowledged. The outcome of each attempt is decided for ever
// once the next owner has opened the journal.
func TestMajorityLost(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	at.Patience = 3 * time.Second
	j := c.own(c.store(at))
	c.append(j, "sure")
	followers := c.pauseFollowers()
	if err := j.Append(t.Context(), 3, [][]byte{[]byte("perhaps")}); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("append without a majority: %v", err)
	}
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("barrier after a failed append: %v", err)
	}
	for _, m := range followers {
		m.resume(t)
	}
	c.settled()
	first := c.texts(c.own(c.store(at)))
	if fmt.Sprint(first) != "[ sure ]" && fmt.Sprint(first) != "[ sure perhaps ]" {
		t.Fatalf("the next owner reads %q", first)
	}
	for range 2 {
		if again := c.texts(c.own(c.store(at))); fmt.Sprint(again[:len(first)]) != fmt.Sprint(first) {
			t.Fatalf("history changed from %q to %q", first, again)
		}
	}
}

// A barrier of an owner that cannot reach a majority never succeeds.
func TestBarrierWithoutMajority(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	at.Patience = 5 * time.Second // long enough to try each member
	j := c.own(c.store(at))
	c.pauseFollowers()
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("barrier: %v", err)
	}
}

// etcd forgets its past: reads, appends, truncations and takeovers do not notice.
func TestCompaction(t *testing.T) {
	c := startCluster(t)
	etcd := c.client()
	compact := func() {
		got, err := etcd.Get(t.Context(), "none")
		if err == nil {
			_, err = etcd.Compact(t.Context(), got.Header.Revision, clientv3.WithCompactPhysical())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	s := c.store(c.place())
	j := c.own(s)
	state := strings.Repeat("0123456789abcdef", 100_000)
	for i := range 50 {
		c.append(j, fmt.Sprint("e", i))
	}
	save := func(at interlock.Index, state string) {
		t.Helper()
		err := j.SaveSnapshot(t.Context(), at, func(w io.Writer) error { _, err := io.WriteString(w, state); return err })
		if err != nil {
			t.Fatal(err)
		}
	}
	save(40, state)
	_, r, err := j.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	compact() // the reader's revision is still the newest
	c.append(j, "after")
	compact() // and now it is forgotten, but the chunks are there
	if got, err := io.ReadAll(r); err != nil || string(got) != state {
		t.Fatalf("the snapshot reads %d bytes, %v", len(got), err)
	}
	if _, r, err = j.Snapshot(t.Context()); err != nil {
		t.Fatal(err)
	}
	save(41, "new")
	compact() // replaced and forgotten: it stays as long as it is read
	if got, err := io.ReadAll(r); err != nil || string(got) != state {
		t.Fatalf("the replaced snapshot reads %d bytes, %v", len(got), err)
	}
	r.Close()
	if err := j.Truncate(t.Context(), 41); err != nil {
		t.Fatal(err)
	}
	compact()
	if got := c.texts(j); len(got) != 12 || got[11] != "after" {
		t.Fatalf("after truncation: %q", got)
	}
	next := c.own(s)
	compact()
	c.append(next, "next")
	if got := c.texts(next); len(got) != 14 || next.First() != 41 {
		t.Fatalf("the next owner reads %q from %d", got, next.First())
	}
}

// When etcd has no room, nothing that was refused is there, and nothing that was stored
// was refused: also not the append that etcd carries out and answers with an error.
func TestNoSpace(t *testing.T) {
	c := startCluster(t, "--quota-backend-bytes", fmt.Sprint(16<<20))
	s := c.store(c.place())
	j := c.own(s)
	etcd := c.client()
	const others = 4 // keys of 1 MiB that other users keep in this etcd
	for i := range others {
		if _, err := etcd.Put(t.Context(), fmt.Sprint("others/", i), strings.Repeat("x", 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	half := strings.Repeat("x", journal.MaxAppendBytes/2)
	stored := 0
	for stored < 100 {
		// A member compares the quota with its size at its last commit, which comes up to 100 ms after a
		// write. If appends were faster, they could store more than the quota, and deleting what others
		// keep would not free enough.
		busy.Wait(t, "the members to count the last append", func() bool {
			for _, m := range c.members {
				status, err := etcd.Status(t.Context(), m.client)
				if err != nil {
					t.Fatal(err)
				}
				if status.DbSize < int64(others<<20+stored*len(half)) {
					return false
				}
			}
			return true
		})
		err := j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte(half)})
		if errors.Is(err, journal.ErrNoSpace) {
			break
		}
		if err != nil {
			t.Fatalf("append %d: %v", stored, err)
		}
		stored++
	}
	if stored < 5 || stored == 100 {
		t.Fatalf("%d appends of half a megabyte found room in 16 MiB", stored)
	}
	if err := j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte("small")}); !errors.Is(err, journal.ErrNoSpace) {
		t.Fatalf("append under the alarm: %v", err)
	}
	if err := j.Barrier(t.Context()); err != nil {
		t.Fatalf("barrier under the alarm: %v", err)
	}
	if got := c.texts(j); len(got) != 1+stored {
		t.Fatalf("the journal holds %d entries, and %d appends were acknowledged", len(got), stored)
	}
	busy.Wait(t, "the journal to say that space is low", j.Low)

	// An operator's actions.
	rev, err := etcd.Delete(t.Context(), "others/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := etcd.Compact(t.Context(), rev.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	if err := j.Truncate(t.Context(), 1); err != nil {
		t.Fatalf("truncation under the alarm: %v", err)
	}
	// A member compacts, and raises its alarm, when it comes to that entry of the log, which may
	// be later than the others: all is repeated until an append finds room.
	sizes := ""
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the members at the last try:", sizes)
		}
	})
	busy.Wait(t, "an append after the alarms", func() bool {
		now, err := etcd.Get(t.Context(), "others/")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := etcd.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil &&
			!errors.Is(err, rpctypes.ErrCompacted) {
			t.Fatal(err)
		}
		sizes = ""
		for _, m := range c.members { // compaction alone returns no room to the quota
			if _, err := etcd.Defragment(t.Context(), m.client); err != nil {
				t.Fatal(err)
			}
			status, err := etcd.Status(t.Context(), m.client)
			if err != nil {
				t.Fatal(err)
			}
			sizes += fmt.Sprintf(" %d bytes, %d in use;", status.DbSize, status.DbSizeInUse)
		}
		alarms, err := etcd.AlarmList(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range alarms.Alarms {
			alarm := clientv3.AlarmMember{MemberID: a.MemberID, Alarm: a.Alarm}
			if _, err := etcd.AlarmDisarm(t.Context(), &alarm); err != nil {
				t.Fatal(err)
			}
		}
		err = j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte("after")})
		if err != nil && !errors.Is(err, journal.ErrNoSpace) {
			t.Fatalf("append after the alarms: %v", err)
		}
		return err == nil
	})
	next := c.own(s)
	if got := c.texts(next); got[len(got)-2] != "after" {
		t.Errorf("the next owner reads %q", got)
	}
}

// A save replaces what was saved before, also what a save that timed out has left there;
// that of a former owner changes nothing.
func TestKept(t *testing.T) {
	c := startCluster(t)
	s := c.store(c.place())
	kept := c.own(s).Kept("ring")
	load := func(k *remote.Kept, want string) {
		t.Helper()
		if got, err := k.Load(); string(got) != want || err != nil {
			t.Fatalf("loaded %q, %v, want %q", got, err, want)
		}
	}
	save := func(k *remote.Kept, text string) {
		t.Helper()
		if err := k.Save([]byte(text)); err != nil {
			t.Fatalf("save %q: %v", text, err)
		}
		load(k, text)
	}
	load(kept, "")
	save(kept, "one")
	save(kept, "two")
	save(kept, "two")
	if _, err := c.client().Put(t.Context(), kept.String(), "carried out late"); err != nil {
		t.Fatal(err)
	}
	save(kept, "three")
	next := c.own(s).Kept("ring")
	load(next, "three")
	if err := kept.Save([]byte("stale")); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("a former owner saves: %v", err)
	}
	load(next, "three")
	save(next, "four")
}

// A cluster that goes back to an older state, as one that is restored from its snapshot, is noticed by the owner.
func TestLoss(t *testing.T) {
	c := startCluster(t)
	at := c.place()
	s := c.store(at)
	j := c.own(s)
	c.append(j, "kept")
	prefix := "interlock/" + at.Name + "/0/"
	etcd := c.client()
	tail, err := etcd.Get(t.Context(), prefix+"tail")
	if err != nil {
		t.Fatal(err)
	}
	c.append(j, "lost")
	if _, err := etcd.Txn(t.Context()).Then(
		clientv3.OpPut(prefix+"tail", string(tail.Kvs[0].Value)), clientv3.OpDelete(prefix+"log/00000000000000000003"),
	).Commit(); err != nil {
		t.Fatal(err)
	}
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrLost) {
		t.Fatalf("got %v", err)
	}
	next := c.own(s)
	if !next.Copied() {
		t.Error("fences do not jump")
	}
	if got := c.texts(next); fmt.Sprint(got) != "[ kept ]" {
		t.Errorf("the journal holds %q", got)
	}
}

// A change of the keys from outside is found, and located.
func TestDamage(t *testing.T) {
	c := startCluster(t)
	etcd := c.client()
	put := func(key, value string) {
		t.Helper()
		if _, err := etcd.Put(t.Context(), key, value); err != nil {
			t.Fatal(err)
		}
	}
	get := func(key string) string {
		t.Helper()
		got, err := etcd.Get(t.Context(), key)
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("%s: %v, %v", key, got, err)
		}
		return string(got.Kvs[0].Value)
	}
	for _, d := range []struct {
		name   string
		damage func(prefix string)
		newer  bool
	}{
		{"FlippedBit", func(p string) {
			v := []byte(get(p + "log/00000000000000000003"))
			v[len(v)-1] ^= 1
			put(p+"log/00000000000000000003", string(v))
		}, false},
		{"MissingAppend", func(p string) {
			if _, err := etcd.Delete(t.Context(), p+"log/00000000000000000003"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"MovedAppend", func(p string) { put(p+"log/00000000000000000003", get(p+"log/00000000000000000002")) }, false},
		{"Tail", func(p string) { put(p+"tail", "nonsense") }, false},
		{"Epoch", func(p string) { put(p+"epoch", "nonsense") }, false},
		{"Oldest", func(p string) {
			if _, err := etcd.Delete(t.Context(), p+"log/00000000000000000001"); err != nil {
				t.Fatal(err)
			}
		}, false},
		{"NewerFormat", func(p string) { put(p+"format", "2") }, true},
		{"NewerAppend", func(p string) {
			put(p+"log/00000000000000000003", "ilk2"+get(p + "log/00000000000000000003")[4:])
		}, true},
	} {
		t.Run(d.name, func(t *testing.T) {
			at := c.place()
			s := c.store(at)
			j := c.own(s)
			for i := range 4 {
				c.append(j, fmt.Sprint("e", i))
			}
			j.Close()
			d.damage("interlock/" + at.Name + "/0/")
			j, err := s.Open(t.Context())
			if err == nil {
				err = j.Read(t.Context(), j.First(), func(journal.Entry) error { return nil })
				j.Close()
			}
			var damage *journal.DamageError
			if d.newer && !errors.Is(err, journal.ErrNewer) || !d.newer && !errors.As(err, &damage) {
				t.Fatalf("got %v", err)
			}
		})
	}
}
